//! Patterns over the words of a command.
//!
//! Invariant: a pattern that permits matches to the letter, and no wildcard of it makes an option or leads to a
//! parent folder; one that restricts matches whatever looks alike. What permits is never wider than what
//! restricts.

/// A pattern over all words of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArgvPattern {
    words: Vec<WordPattern>,
    /// Whether any further words may follow.
    rest: bool,
}

/// A pattern over one word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WordPattern {
    /// Exactly this word.
    Literal(String),
    /// `*`: one whole word.
    Any,
    /// A text with asterisks, each of which stands for a part without a slash.
    Parts(String),
}

/// Why texts are no pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ArgvFault {
    /// `**` stands beside others in a word.
    ManyInside,
    /// `**` is a word before the last one.
    ManyBefore,
    /// An asterisk beside a part that is `..` matches nothing.
    Parent,
}

/// What keeps a command from fitting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ArgvMiss {
    /// Other words.
    Words,
    /// A wildcard would take this word, which may be an option.
    Option(String),
    /// A wildcard would take this word, which has a `..` part.
    Parent(String),
}

impl ArgvPattern {
    /// Reads a pattern; an error has the place of the word.
    pub(crate) fn parse(texts: &[String]) -> Result<Self, (usize, ArgvFault)> {
        let mut words = Vec::with_capacity(texts.len());
        let mut rest = false;
        for (place, text) in texts.iter().enumerate() {
            if text == "**" && place + 1 == texts.len() {
                rest = true;
            } else {
                words.push(WordPattern::parse(text).map_err(|fault| (place, fault))?);
            }
        }
        Ok(Self { words, rest })
    }

    /// Its words.
    pub(crate) fn words(&self) -> &[WordPattern] {
        &self.words
    }

    /// Whether any further words may follow.
    pub(crate) fn is_open_ended(&self) -> bool {
        self.rest
    }

    /// Whether words fit to the letter: what a rule that permits asks. `options`: whether a wildcard takes a word
    /// that begins with `-` or `+`.
    pub(crate) fn fits(&self, words: &[String], options: bool) -> Result<(), ArgvMiss> {
        if !self.has_room_for(words.len()) {
            return Err(ArgvMiss::Words);
        }
        let (named, further) = words.split_at(self.words.len());
        let others = self.words.iter().zip(named).any(|(pattern, word)| !pattern.is_alike(word));
        if others {
            return Err(ArgvMiss::Words);
        }
        let taken = self.words.iter().zip(named).filter(|(pattern, _)| !pattern.is_literal());
        let taken = taken.map(|(pattern, word)| (word, pattern.may_be_option(options)));
        let mut taken = taken.chain(further.iter().map(|word| (word, options)));
        taken.try_for_each(|(word, may_be_option)| check_taken(word, may_be_option))
    }

    /// Whether words fit in any way: what a rule that restricts asks.
    pub(crate) fn fits_loosely(&self, words: &[String]) -> bool {
        self.has_room_for(words.len())
            && self.words.iter().zip(words).all(|(pattern, word)| pattern.is_loosely_alike(word))
    }

    /// Whether all words that fit `other` fit this one loosely. It may say no where the answer is yes.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let has_room = if other.rest {
            self.rest && self.words.len() <= other.words.len()
        } else {
            self.has_room_for(other.words.len())
        };
        has_room && self.words.iter().zip(&other.words).all(|(here, there)| here.covers(there))
    }

    fn has_room_for(&self, count: usize) -> bool {
        count == self.words.len() || (self.rest && count > self.words.len())
    }
}

fn check_taken(word: &str, may_be_option: bool) -> Result<(), ArgvMiss> {
    if !may_be_option && word.starts_with(['-', '+']) {
        return Err(ArgvMiss::Option(word.into()));
    }
    // Also in `--file=..`, in `host:../x` and in `-C../x`.
    let mut parts = word.split(['/', '=', ':', ',']).peekable();
    let is_attached =
        word.starts_with(['-', '+']) && parts.peek().is_some_and(|first| first.ends_with(".."));
    if is_attached || parts.any(|part| part == "..") {
        return Err(ArgvMiss::Parent(word.into()));
    }
    Ok(())
}

impl WordPattern {
    fn parse(text: &str) -> Result<Self, ArgvFault> {
        match text {
            "*" => Ok(Self::Any),
            _ if !text.contains('*') => Ok(Self::Literal(text.into())),
            "**" => Err(ArgvFault::ManyBefore),
            _ if text.contains("**") => Err(ArgvFault::ManyInside),
            _ if check_taken(text, true).is_err() => Err(ArgvFault::Parent),
            _ => Ok(Self::Parts(text.into())),
        }
    }

    /// As the configuration spells it.
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Literal(text) | Self::Parts(text) => text,
            Self::Any => "*",
        }
    }

    fn is_literal(&self) -> bool {
        matches!(self, Self::Literal(_))
    }

    /// An option that is spelt out in the pattern is meant; an asterisk at the beginning of a longer one never is.
    fn may_be_option(&self, options: bool) -> bool {
        match self {
            Self::Literal(_) => true,
            Self::Any => options,
            Self::Parts(text) => !text.starts_with('*'),
        }
    }

    fn is_alike(&self, word: &str) -> bool {
        match self {
            Self::Literal(text) => text == word,
            Self::Any => true,
            Self::Parts(text) => {
                let (parts, others) = (text.split('/'), word.split('/'));
                parts.clone().count() == others.clone().count()
                    && parts
                        .zip(others)
                        .all(|(part, other)| glob(part.as_bytes(), other.as_bytes()))
            }
        }
    }

    fn is_loosely_alike(&self, word: &str) -> bool {
        match self {
            Self::Literal(text) => text.eq_ignore_ascii_case(word),
            Self::Any => true,
            Self::Parts(text) => is_glob_of(text, word),
        }
    }

    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (_, Self::Literal(text)) => self.is_loosely_alike(text),
            (Self::Parts(here), Self::Parts(there)) => here.eq_ignore_ascii_case(there),
            (Self::Literal(_), Self::Any | Self::Parts(_)) | (Self::Parts(_), Self::Any) => false,
        }
    }
}

/// Whether a text fits a pattern without case; an asterisk is any part, slashes too.
pub(super) fn is_glob_of(pattern: &str, text: &str) -> bool {
    glob(pattern.to_ascii_lowercase().as_bytes(), text.to_ascii_lowercase().as_bytes())
}

/// Whether a text fits a pattern in which an asterisk is any part.
///
/// Time: at most the product of both lengths, since only the last asterisk is ever taken back.
pub(super) fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut taken) = (0, 0);
    let mut last_asterisk = None;
    while let Some(byte) = text.get(taken) {
        match pattern.get(at) {
            Some(b'*') => {
                at += 1;
                last_asterisk = Some((at, taken));
            }
            Some(expected) if expected == byte => {
                at += 1;
                taken += 1;
            }
            Some(_) | None => match last_asterisk {
                Some((after, from)) => {
                    (at, taken) = (after, from + 1);
                    last_asterisk = Some((after, taken));
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).into()).collect()
    }

    fn pattern(words: &[&str]) -> ArgvPattern {
        ArgvPattern::parse(&owned(words)).unwrap()
    }

    #[test]
    fn what_permits_matches_to_the_letter() {
        let status: &[&str] = &["systemctl", "status", "*"];
        let service = &["systemctl", "status", "*.service"];
        let cat = &["cat", "/var/log/*"];
        let ls: &[&str] = &["ls", "**"];
        for (rule, words, fits) in [
            (status, &["systemctl", "status", "nginx"][..], true),
            (status, &["systemctl", "status", "a b"], true),
            (status, &["systemctl", "status", ""], true),
            (status, &["systemctl", "status", "a/b"], true),
            (status, &["systemctl", "status", "-Hroot@evil"], false),
            (status, &["systemctl", "status", "+x"], false),
            (status, &["systemctl", "status"], false),
            (status, &["systemctl", "status", "a", "b"], false),
            (status, &["Systemctl", "status", "a"], false),
            (status, &["/usr/bin/systemctl", "status", "a"], false),
            (status, &["systemctl", "status", "../a"], false),
            (status, &["systemctl", "status", "HEAD..main"], true),
            (service, &["systemctl", "status", "nginx.service"], true),
            (service, &["systemctl", "status", ".service"], true),
            (service, &["systemctl", "status", "-Hevil.service"], false),
            (service, &["systemctl", "status", "a/b.service"], false),
            (cat, &["cat", "/var/log/../../etc/shadow"], false),
            (cat, &["cat", "/var/log/.."], false),
            (cat, &["cat", "/var/log/a/b"], false),
            (cat, &["cat", "/var/log/x"], true),
            (cat, &["cat", "/var/log/"], true),
            (ls, &["ls", "-la"], false),
            (ls, &["ls", "+x"], false),
            (ls, &["ls", "x"], true),
            (ls, &["ls", "x", "y", "-z"], false),
            (ls, &["ls", "x", "../y"], false),
            (ls, &["ls"], true),
            (&["x", "-n*"], &["x", "-n5"], true),
            (&["x", "-n*"], &["x", "-n../a"], false),
            (&["x", "--file=*"], &["x", "--file=.."], false),
            (&["x", "-C*"], &["x", "-C.."], false),
            (&["x", "-C*/y"], &["x", "-C../y"], false),
            (&["x", "-C*/y"], &["x", "-Ca..b/y"], true),
            (&["x", "h:*"], &["x", "h:.."], false),
            (&["x", "../a"], &["x", "../a"], true),
            (&["x", "*a*b*"], &["x", "ab"], true),
            (&["x", "*a*b*"], &["x", "ba"], false),
        ] {
            assert_eq!(
                pattern(rule).fits(&owned(words), false).is_ok(),
                fits,
                "{rule:?} {words:?}"
            );
        }
    }

    #[test]
    fn options_are_taken_where_the_rule_says_so() {
        for (rule, words, fits) in [
            (&["ls", "**"][..], &["ls", "-la", "+x"][..], true),
            (&["ls", "*"], &["ls", "-la"], true),
            (&["ls", "**"], &["ls", "-la", "../x"], false),
            (&["ls", "**"], &["ls", "-I../../x"], false),
            (&["ls", "*.x"], &["ls", "-la.x"], false),
        ] {
            assert_eq!(pattern(rule).fits(&owned(words), true).is_ok(), fits, "{rule:?} {words:?}");
        }
    }

    #[test]
    fn what_restricts_matches_all_that_looks_alike_and_whatever_is_permitted() {
        for (rule, words, fits) in [
            (&["rm", "**"][..], &["rm", "-rf", "../x"][..], true),
            (&["rm", "**"], &["RM"], true),
            (&["rm", "*"], &["rm", "-rf"], true),
            (&["rm", "*"], &["rm", "-r", "x"], false),
            (&["cat", "/etc/*"], &["cat", "/etc/a/../b"], true),
            (&["cat", "*.key"], &["cat", "-/a/B.KEY"], true),
            (&["rm"], &["/bin/rm"], false),
        ] {
            assert_eq!(pattern(rule).fits_loosely(&owned(words)), fits, "{rule:?} {words:?}");
        }
    }

    #[test]
    fn patterns_cover_others() {
        for (rule, other, covers) in [
            (&["a", "**"][..], &["a"][..], true),
            (&["a", "**"], &["A", "b", "**"], true),
            (&["a", "b", "**"], &["a", "**"], false),
            (&["a", "*"], &["a", "b*c"], true),
            (&["a", "b*"], &["a", "bc"], true),
            (&["a", "b*"], &["a", "B*"], true),
            (&["a", "b*"], &["a", "*"], false),
            (&["a", "b"], &["a", "*"], false),
            (&["a", "*"], &["a", "**"], false),
            (&["**"], &["a", "b"], true),
        ] {
            assert_eq!(pattern(rule).covers(&pattern(other)), covers, "{rule:?} {other:?}");
        }
    }

    #[test]
    fn what_is_no_pattern() {
        for (rule, fault) in [
            (&["a", "**", "b"][..], (1, ArgvFault::ManyBefore)),
            (&["a", "x**"], (1, ArgvFault::ManyInside)),
            (&["a", "../*"], (1, ArgvFault::Parent)),
            (&["a", "/x/../*"], (1, ArgvFault::Parent)),
        ] {
            assert_eq!(ArgvPattern::parse(&owned(rule)), Err(fault), "{rule:?}");
        }
    }
}
