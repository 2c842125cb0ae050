//! Words with places for arguments: read once, at load, and filled in one pass.
//!
//! Invariant: what is put in is never read as a template again.

use std::ops::Range;

/// A text with places for arguments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Template(Vec<Part>);

/// A part of a template.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// What stands there as it is.
    Literal(String),
    /// The argument of this place among the parameters.
    Argument(usize),
}

/// Why a text is no template.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum TemplateFault {
    /// A brace that neither begins nor ends the name of an argument.
    LoneBrace,
    /// There is no such argument.
    Unknown(String),
}

impl Template {
    /// Reads a text: `{name}` is an argument, `{{` and `}}` are braces.
    ///
    /// # Errors
    /// The first fault.
    pub(crate) fn parse(text: &str, names: &[&str]) -> Result<Self, TemplateFault> {
        let mut template = Self(Vec::new());
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            template.literal(before);
            if let Some(after) = from.strip_prefix("{{") {
                template.literal("{");
                rest = after;
            } else if let Some(after) = from.strip_prefix("}}") {
                template.literal("}");
                rest = after;
            } else {
                let inside = from.strip_prefix('{').and_then(|after| after.split_once('}'));
                let (name, after) = inside.ok_or(TemplateFault::LoneBrace)?;
                let place = names.iter().position(|known| *known == name);
                let place = place.ok_or_else(|| TemplateFault::Unknown(name.into()))?;
                template.0.push(Part::Argument(place));
                rest = after;
            }
        }
        template.literal(rest);
        Ok(template)
    }

    fn literal(&mut self, text: &str) {
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some(Part::Literal(before)) => before.push_str(text),
            Some(Part::Argument(_)) | None => self.0.push(Part::Literal(text.into())),
        }
    }

    /// The argument that is all of it.
    pub(crate) fn whole(&self) -> Option<usize> {
        match self.0.as_slice() {
            [Part::Argument(place)] => Some(*place),
            _ => None,
        }
    }

    /// The argument that it begins with.
    pub(crate) fn first(&self) -> Option<usize> {
        match self.0.first() {
            Some(Part::Argument(place)) => Some(*place),
            Some(Part::Literal(_)) | None => None,
        }
    }

    /// All arguments that it names.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = usize> {
        self.0.iter().filter_map(|part| match part {
            Part::Argument(place) => Some(*place),
            Part::Literal(_) => None,
        })
    }

    /// What stands in it as it is.
    pub(crate) fn literals(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            Part::Literal(text) => Some(text.as_str()),
            Part::Argument(_) => None,
        })
    }

    /// Puts the arguments in; each with where its text stands in the whole.
    pub(crate) fn fill<'a>(
        &self,
        text_of: impl Fn(usize) -> &'a str,
    ) -> (String, Vec<(usize, Range<usize>)>) {
        let (mut text, mut filled) = (String::new(), Vec::new());
        for part in &self.0 {
            match part {
                Part::Literal(literal) => text.push_str(literal),
                Part::Argument(place) => {
                    let from = text.len();
                    text.push_str(text_of(*place));
                    filled.push((*place, from..text.len()));
                }
            }
        }
        (text, filled)
    }

    /// Hands it to a digest.
    pub(crate) fn encode(&self, part: &mut impl FnMut(&str, &[u8])) {
        let Self(parts) = self;
        for each in parts {
            match each {
                Part::Literal(text) => part("literal", text.as_bytes()),
                Part::Argument(place) => part("place", &(*place as u64).to_be_bytes()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates() {
        let names = ["a", "b"];
        let fill = |text: &str| {
            let template = Template::parse(text, &names)?;
            Ok(template.fill(|place| ["{b}", ""][place]).0)
        };
        let unknown = |name: &str| Err(TemplateFault::Unknown(name.into()));
        for (text, filled) in [
            ("", Ok("")),
            ("x", Ok("x")),
            ("{a}", Ok("{b}")),
            ("-{a}={b}.", Ok("-{b}=.")),
            ("{{a}}", Ok("{a}")),
            ("{{{a}}}", Ok("{{b}}")),
            ("}}{{", Ok("}{")),
            ("{", Err(TemplateFault::LoneBrace)),
            ("}", Err(TemplateFault::LoneBrace)),
            ("{a", Err(TemplateFault::LoneBrace)),
            ("a}", Err(TemplateFault::LoneBrace)),
            ("{{a}", Err(TemplateFault::LoneBrace)),
            ("{}", unknown("")),
            ("{c}", unknown("c")),
            ("{ a }", unknown(" a ")),
            ("{print $1}", unknown("print $1")),
        ] {
            assert_eq!(fill(text), filled.map(String::from), "{text}");
        }
        assert_eq!(Template::parse("{b}", &names).unwrap().whole(), Some(1));
        assert_eq!(Template::parse("{b}{a}", &names).unwrap().whole(), None);
        assert_eq!(Template::parse("{b}x", &names).unwrap().first(), Some(1));
        assert_eq!(Template::parse("x{b}", &names).unwrap().first(), None);
    }
}
