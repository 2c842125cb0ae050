//! The words that a helper is started with.

use super::{Helper, Parameter, Presence};
use crate::action::Refused;
use crate::action::argument::Value;
use crate::action::helper::HelperAction;
use crate::limits;
use crate::policy::template::Template;
use crate::state::Reason;

/// All that a helper is started with, beside its environment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Words {
    /// The program, then its words.
    pub argv: Vec<String>,
    /// What it reads.
    pub stdin: Vec<u8>,
}

impl Words {
    /// Hands every word to a digest.
    pub(crate) fn encode(&self, part: &mut impl FnMut(&str, &[u8])) {
        let Self { argv, stdin } = self;
        for word in argv {
            part("word", word.as_bytes());
        }
        part("stdin", stdin);
    }
}

/// Whether a program may take a word for an option.
pub(crate) fn may_begin_option(word: &str) -> bool {
    word.starts_with(['-', '+'])
}

/// What stands for an argument in one call.
enum Bound<'a> {
    /// Nothing: its word vanishes.
    Absent,
    /// A value.
    One(&'a str),
    /// The operator's own word for true.
    Own(&'a str),
    /// A value of many words.
    Many(Vec<&'a str>),
    /// What another helper has still to resolve.
    Later(String),
}

/// Whether arguments that another helper resolves are resolved.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Unresolved,
    Resolved,
}

impl Helper {
    /// All words that run, by one pass; every argument is checked against its shape again.
    ///
    /// Bound: `limits::HELPER_WORD_BYTES` a word, `limits::HELPER_WORDS_BYTES` all of them, and stdin.
    ///
    /// # Errors
    /// [`Refused`], with the name of the argument that is at fault.
    pub fn words(&self, action: &HelperAction) -> Result<Words, Refused> {
        self.words_of(self.bind(action, Stage::Resolved)?)
    }

    /// The same before anything is resolved: for an argument that another helper resolves stands what will
    /// be there, `<host by find_host>`, and all others are checked.
    ///
    /// # Errors
    /// [`Refused`]: the call would be refused whatever is resolved.
    pub fn outline(&self, action: &HelperAction) -> Result<Words, Refused> {
        self.words_of(self.bind(action, Stage::Unresolved)?)
    }

    fn words_of(&self, bound: Vec<Bound<'_>>) -> Result<Words, Refused> {
        let mut argv = vec![self.program.to_string_lossy().into_owned()];
        for template in &self.argv {
            self.push_words(template, &bound, &mut argv)?;
        }
        let stdin = self.stdin.as_ref().map(|template| stdin(template, &bound)).unwrap_or_default();
        let bytes: usize = argv.iter().map(|word| word.len() + 1).sum();
        if bytes > limits::HELPER_WORDS_BYTES || stdin.len() > limits::HELPER_WORDS_BYTES {
            let (name, most) = (self.longest(&bound), limits::HELPER_WORDS_BYTES);
            let message =
                format!("`{name}` must be shorter: the program is given at most {most} bytes.");
            return Err(refused(message));
        }
        Ok(Words { argv, stdin: stdin.into_bytes() })
    }

    /// What stands for each parameter, in their order.
    fn bind<'a>(
        &'a self,
        action: &'a HelperAction,
        stage: Stage,
    ) -> Result<Vec<Bound<'a>>, Refused> {
        let HelperAction { tool, arguments } = action;
        if tool != self.name.as_str() {
            return Err(refused("The call is of another tool.".into()));
        }
        for (place, argument) in arguments.iter().enumerate() {
            let name = &argument.name;
            if self.parameters.iter().all(|parameter| parameter.name != *name) {
                let shown = name.escape_debug();
                return Err(refused(format!("`{shown}` is not an argument of this tool.")));
            }
            if arguments[..place].iter().any(|other| other.name == *name) {
                return Err(refused(format!("`{name}` is given twice.")));
            }
        }
        let bind = |parameter: &'a Parameter| {
            let given = arguments.iter().find(|argument| argument.name == parameter.name);
            match (stage, parameter.resolver(), given) {
                (Stage::Unresolved, Some(resolver), Some(_)) => {
                    Ok(Bound::Later(format!("<{} by {resolver}>", parameter.name)))
                }
                (Stage::Unresolved | Stage::Resolved, _, _) => {
                    parameter.bind(given.map(|argument| &argument.value))
                }
            }
        };
        self.parameters.iter().map(bind).collect()
    }

    fn push_words(
        &self,
        template: &Template,
        bound: &[Bound<'_>],
        argv: &mut Vec<String>,
    ) -> Result<(), Refused> {
        let whole = template.whole().and_then(|place| Some((bound.get(place)?, place)));
        match whole {
            Some((Bound::Absent, _)) => {}
            Some((Bound::Own(word), _)) => argv.push((*word).into()),
            Some((Bound::Later(word), _)) => argv.push(word.clone()),
            Some((Bound::One(word), place)) => argv.push(self.value_word(word, place)?),
            Some((Bound::Many(words), place)) => {
                for word in words {
                    argv.push(self.value_word(word, place)?);
                }
            }
            None => argv.push(self.mixed_word(template, bound)?),
        }
        Ok(())
    }

    /// A word that is all a value.
    fn value_word(&self, word: &str, place: usize) -> Result<String, Refused> {
        self.check_option(word, place)?;
        self.check_length(word, place)?;
        Ok(word.into())
    }

    /// A word of which values are parts.
    fn mixed_word(&self, template: &Template, bound: &[Bound<'_>]) -> Result<String, Refused> {
        let (word, filled) = template.fill(|place| bound.get(place).map_or("", Bound::inside));
        if let Some(first) = template.first() {
            // An empty value in front makes what follows the beginning.
            let begins = filled.iter().find(|(_, range)| range.contains(&0));
            self.check_option(&word, begins.map_or(first, |(place, _)| *place))?;
        }
        if let Some((place, _)) = filled.iter().max_by_key(|(_, range)| range.len()) {
            self.check_length(&word, *place)?;
        }
        Ok(word)
    }

    fn check_option(&self, word: &str, place: usize) -> Result<(), Refused> {
        match self.parameters.get(place) {
            Some(Parameter { name, may_be_option: false, .. }) if may_begin_option(word) => {
                let message = format!("`{name}` must not make a word that begins with - or +.");
                Err(refused(message))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn check_length(&self, word: &str, place: usize) -> Result<(), Refused> {
        const MOST: usize = limits::HELPER_WORD_BYTES;
        if word.len() <= MOST {
            return Ok(());
        }
        let name = self.parameters.get(place).map_or("", Parameter::name);
        Err(refused(format!("`{name}` must make no word of more than {MOST} bytes.")))
    }

    /// The name of the argument with the longest value.
    fn longest(&self, bound: &[Bound<'_>]) -> &str {
        let pairs = self.parameters.iter().zip(bound);
        let longest = pairs.max_by_key(|(_, bound)| bound.bytes());
        longest.map_or("", |(parameter, _)| parameter.name())
    }
}

impl Parameter {
    fn bind<'a>(&'a self, given: Option<&'a Value>) -> Result<Bound<'a>, Refused> {
        let value = match (given, &self.presence) {
            (Some(value), _) => value,
            (None, Presence::Default(value)) => value,
            (None, Presence::Optional) => return Ok(Bound::Absent),
            (None, Presence::Required) => {
                return Err(refused(format!("`{}` is missing.", self.name)));
            }
        };
        if let Some(message) = self.shape.fault(&self.name, value) {
            return Err(refused(message));
        }
        Ok(match (value, &self.word) {
            (Value::Flag(true), Some(word)) => Bound::Own(word),
            (Value::Flag(false), Some(_)) => Bound::Absent,
            (Value::List(elements), _) => Bound::Many(elements.iter().map(text).collect()),
            (Value::Text(_) | Value::Number(_) | Value::Flag(_), _) => Bound::One(text(value)),
        })
    }
}

impl Bound<'_> {
    /// What stands inside a word. A configuration has only values there.
    fn inside(&self) -> &str {
        match self {
            Self::One(text) | Self::Own(text) => text,
            Self::Later(text) => text,
            Self::Absent | Self::Many(_) => "",
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::One(text) => text.len(),
            Self::Many(texts) => texts.iter().map(|text| text.len() + 1).sum(),
            Self::Own(_) | Self::Later(_) | Self::Absent => 0,
        }
    }
}

/// The text of a scalar; a list in a list fits no shape.
fn text(value: &Value) -> &str {
    match value {
        Value::Text(text) | Value::Number(text) => text,
        Value::Flag(true) => "true",
        Value::Flag(false) => "false",
        Value::List(_) => "",
    }
}

fn stdin(template: &Template, bound: &[Bound<'_>]) -> String {
    template.fill(|place| bound.get(place).map_or("", Bound::inside)).0
}

fn refused(message: String) -> Refused {
    Refused { reason: Reason::Arguments, message }
}

#[cfg(test)]
mod tests;
