//! One rule: what it matches and what it decides.

use crate::action::http::Method;

/// What a rule decides. The order is that of strictness.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Decision {
    /// It may happen.
    Allow,
    /// A person decides.
    Ask,
    /// It may not happen.
    Deny,
}

impl Decision {
    /// The word in a configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// A rule of an HTTP target.
#[derive(PartialEq, Eq, Debug)]
pub struct HttpRule {
    pub(crate) decision: Decision,
    /// In the order of [`Method::ALL`], each once.
    pub(crate) methods: Vec<Method>,
    pub(crate) path: PathPattern,
    /// Names that a query may have, with the pattern of each value; `None`: any query passes.
    pub(crate) query: Option<Vec<QueryRule>>,
}

/// A pattern over the path after a target's base, from its slash.
#[derive(PartialEq, Eq, Debug)]
pub struct PathPattern {
    /// As the configuration spells it.
    pub(crate) text: String,
    pub(crate) segments: Vec<Segment>,
}

/// One segment of a path's pattern.
#[derive(PartialEq, Eq, Debug)]
pub enum Segment {
    /// Exactly this segment, percent-encoded as in a URL.
    Literal(String),
    /// `*`: one whole segment.
    One,
    /// `**`: any number of segments, also none.
    Many,
}

/// A query name that a rule lets through, and what its value must be.
#[derive(Debug)]
pub struct QueryRule {
    pub(crate) name: String,
    /// As the configuration spells it; matches the whole value.
    pub(crate) text: String,
    pub(crate) pattern: regex_lite::Regex,
}

impl PartialEq for QueryRule {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.text == other.text
    }
}

impl Eq for QueryRule {}

impl PathPattern {
    /// Whether the path after a target's base, from its slash, fits to the letter.
    pub(crate) fn matches(&self, path: &str) -> bool {
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        fits(&self.segments, &segments)
    }
}

fn fits(pattern: &[Segment], path: &[&str]) -> bool {
    match pattern {
        [] => path.is_empty(),
        [Segment::Literal(text), rest @ ..] => {
            path.first() == Some(&text.as_str()) && fits(rest, &path[1..])
        }
        [Segment::One, rest @ ..] => {
            path.first().is_some_and(|segment| !segment.is_empty()) && fits(rest, &path[1..])
        }
        [Segment::Many, rest @ ..] => (0..=path.len()).any(|taken| fits(rest, &path[taken..])),
    }
}
