//! Patterns over the names and values of a query, and the ways in which a server may read a query.
//!
//! A query is compared decoded. Servers differ in what a raw `+` is (itself, or a blank) and in whether
//! a raw `;` separates like `&`; what permits must fit in every reading, what restricts in any.

use std::borrow::Cow;

use super::alike;
use crate::action::pattern::compile_whole;
use crate::action::percent::decoded;

/// A query name that a rule speaks of, and what its value must be.
#[derive(Debug)]
pub struct QueryRule {
    pub(crate) name: String,
    /// As the configuration spells it; matches the whole value.
    pub(crate) text: String,
    pub(crate) pattern: regex_lite::Regex,
    /// The same without case: what a rule that restricts compares.
    loose: regex_lite::Regex,
}

impl PartialEq for QueryRule {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.text == other.text
    }
}

impl Eq for QueryRule {}

impl QueryRule {
    /// Compiles the pattern of one name.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self, regex_lite::Error> {
        let (pattern, loose) = (compile_whole(text, false)?, compile_whole(text, true)?);
        Ok(Self { name: name.into(), text: text.into(), pattern, loose })
    }
}

/// A query's names and values, not decoded.
#[derive(Debug)]
pub(crate) struct QueryReadings<'a> {
    /// Separated by `&` alone.
    pairs: Vec<Pair<'a>>,
    /// Separated by `;` too; the same as `pairs` where there is none.
    split_further: Vec<Pair<'a>>,
}

#[derive(PartialEq, Eq, Debug)]
struct Pair<'a> {
    name: &'a str,
    value: &'a str,
}

impl<'a> QueryReadings<'a> {
    /// Takes the query of a checked URL apart.
    pub(crate) fn of(query: Option<&'a str>) -> Self {
        let query = query.unwrap_or_default();
        Self { pairs: pairs(query, &['&']), split_further: pairs(query, &['&', ';']) }
    }

    /// A name that stands in it twice, decoded.
    pub(crate) fn repeated_name(&self) -> Option<Cow<'a, str>> {
        let mut names: Vec<_> =
            self.split_further.iter().flat_map(|pair| distinct_readings(pair.name)).collect();
        names.sort_unstable();
        names.windows(2).find(|two| two[0] == two[1]).map(|two| two[0].clone())
    }

    /// Whether it has only listed names, each with a value that fits: what a rule that permits asks.
    ///
    /// # Errors
    /// The first name that is not listed or has another value, decoded.
    pub(crate) fn fits(&self, rules: &[QueryRule]) -> Result<(), Cow<'a, str>> {
        let listed = |pair: &Pair<'_>| {
            all_readings(pair).all(|(name, value)| {
                rules.iter().any(|rule| rule.name == name && rule.pattern.is_match(&value))
            })
        };
        let unfit = |pair: &&Pair<'a>| !listed(pair);
        let first = self.pairs.iter().chain(&self.split_further).find(unfit);
        first.map_or(Ok(()), |pair| Err(decoded(pair.name)))
    }

    /// Whether any name is listed with a value that fits: what a rule that restricts asks.
    pub(crate) fn touches(&self, rules: &[QueryRule]) -> bool {
        self.all().any(|(name, value)| {
            let hits = |rule: &QueryRule| {
                alike::may_be_same_name(&rule.name, &name)
                    && (rule.loose.is_match(&value) || rule.loose.is_match(value.trim()))
            };
            rules.iter().any(hits)
        })
    }

    /// Whether some server may take one of its names for `name`.
    pub(crate) fn may_name(&self, name: &str) -> bool {
        self.all().any(|(given, _)| alike::may_be_same_name(name, &given))
    }

    /// Every name and value in every reading, decoded.
    fn all(&self) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> {
        self.pairs.iter().chain(&self.split_further).flat_map(all_readings)
    }
}

fn pairs<'a>(query: &'a str, separators: &[char]) -> Vec<Pair<'a>> {
    if query.is_empty() {
        return Vec::new();
    }
    let pair = |text: &'a str| match text.split_once('=') {
        Some((name, value)) => Pair { name, value },
        None => Pair { name: text, value: "" },
    };
    query.split(separators).map(pair).collect()
}

fn all_readings<'a>(pair: &Pair<'a>) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> {
    let names = readings(pair.name);
    let values = readings(pair.value);
    names.into_iter().zip(values)
}

/// With a raw `+` as itself, and as a blank.
fn readings(text: &str) -> [Cow<'_, str>; 2] {
    if text.contains('+') {
        [decoded(text), decoded(&text.replace('+', " ")).into_owned().into()]
    } else {
        [decoded(text), decoded(text)]
    }
}

fn distinct_readings(text: &str) -> Vec<Cow<'_, str>> {
    let [itself, blank] = readings(text);
    if itself == blank { vec![itself] } else { vec![itself, blank] }
}
