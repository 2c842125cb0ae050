//! One rule: what it matches and what it decides.

pub use super::path::{PathPattern, Segment};
pub use super::query::QueryRule;

use super::path::PathReadings;
use super::query::QueryReadings;
use crate::action::http::{HttpAction, Method};

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
    /// All decisions, the most lenient first.
    pub const ALL: [Self; 3] = [Self::Allow, Self::Ask, Self::Deny];

    /// The word in a configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    /// Reads the word of a configuration.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|decision| decision.as_str() == text)
    }
}

/// A rule of an HTTP target.
#[derive(PartialEq, Eq, Debug)]
pub struct HttpRule {
    pub(crate) decision: Decision,
    /// In the order of [`Method::ALL`], each once.
    pub(crate) methods: Vec<Method>,
    pub(crate) path: PathPattern,
    /// In a rule that allows or asks: the only names that a query may have, with the pattern of each
    /// value. In one that denies: names of which each is denied where its value fits. `None`: any query.
    pub(crate) query: Option<Vec<QueryRule>>,
}

/// A request taken apart as rules look at it.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    method: Method,
    path: PathReadings<'a>,
    query: QueryReadings<'a>,
}

impl<'a> Asked<'a> {
    /// Takes a request apart whose path after the target's base is `path`.
    pub(crate) fn of(action: &'a HttpAction, path: &'a str) -> Self {
        Self {
            method: action.method,
            path: PathReadings::of(path),
            query: QueryReadings::of(action.url.query.as_deref()),
        }
    }

    /// Its path after the target's base.
    pub(crate) fn path(&self) -> &PathReadings<'a> {
        &self.path
    }

    /// The names and values of its query.
    pub(crate) fn query(&self) -> &QueryReadings<'a> {
        &self.query
    }
}

/// What a rule says to a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Fit {
    /// It matches.
    Whole,
    /// It matches a part of the query: enough for a question where another rule grants, never for a grant.
    Partly,
    /// It looks at the query, in which this name stands twice.
    Repeated(String),
    /// It does not match.
    Misses(Miss),
}

/// Why a rule does not match.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Miss {
    /// Another method.
    Method,
    /// Another path.
    Path,
    /// The query has this name, which is not listed, or is with another value.
    Name(String),
    /// The query has no listed name with a value that fits.
    NoName,
}

impl HttpRule {
    /// What it says to a request.
    pub(crate) fn fit(&self, asked: &Asked<'_>) -> Fit {
        let Self { decision, methods, path, query } = self;
        if !methods.contains(&asked.method) {
            return Fit::Misses(Miss::Method);
        }
        let path_fits = match decision {
            Decision::Allow => path.fits(&asked.path),
            Decision::Ask | Decision::Deny => path.fits_loosely(&asked.path),
        };
        match query {
            _ if !path_fits => Fit::Misses(Miss::Path),
            None => Fit::Whole,
            Some(names) => fit_query(*decision, names, &asked.query),
        }
    }
}

fn fit_query(decision: Decision, names: &[QueryRule], query: &QueryReadings<'_>) -> Fit {
    if let Some(name) = query.repeated_name() {
        return Fit::Repeated(name.into_owned());
    }
    match (decision, query.fits(names)) {
        (Decision::Allow | Decision::Ask, Ok(())) => Fit::Whole,
        (Decision::Allow, Err(name)) => Fit::Misses(Miss::Name(name.into_owned())),
        (Decision::Ask, Err(_)) if query.touches(names) => Fit::Partly,
        (Decision::Ask, Err(name)) => Fit::Misses(Miss::Name(name.into_owned())),
        (Decision::Deny, _) if query.touches(names) => Fit::Whole,
        (Decision::Deny, _) => Fit::Misses(Miss::NoName),
    }
}

/// The rule that decides, by its place, and what it decides; `None` where no rule permits and none denies.
pub(crate) fn strictest(rules: &[HttpRule], fits: &[Fit]) -> Option<(usize, Decision)> {
    let hold = |fit: &Fit| match fit {
        Fit::Whole => Hold::Whole,
        Fit::Partly => Hold::Partly,
        Fit::Repeated(_) | Fit::Misses(_) => Hold::Nothing,
    };
    let held: Vec<_> =
        rules.iter().zip(fits).map(|(rule, fit)| (rule.decision, hold(fit))).collect();
    strictest_of(&held)
}

/// How much of an action a rule matches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hold {
    /// All.
    Whole,
    /// Enough for a question where another rule grants, never for a grant.
    Partly,
    /// Nothing.
    Nothing,
}

/// The strictest of what rules decide, by its place.
///
/// A deny outranks an ask, an ask outranks an allow; the order of rules only says which of equal
/// ones is named. A rule that asks about a part holds up what another one permits.
pub(crate) fn strictest_of(rules: &[(Decision, Hold)]) -> Option<(usize, Decision)> {
    let first = |wanted: Decision, enough: &[Hold]| {
        rules.iter().position(|(decision, hold)| *decision == wanted && enough.contains(hold))
    };
    if let Some(place) = first(Decision::Deny, &[Hold::Whole]) {
        return Some((place, Decision::Deny));
    }
    let allow = first(Decision::Allow, &[Hold::Whole]);
    let ask = match allow {
        Some(_) => first(Decision::Ask, &[Hold::Whole, Hold::Partly]),
        None => first(Decision::Ask, &[Hold::Whole]),
    };
    match (ask, allow) {
        (Some(place), _) => Some((place, Decision::Ask)),
        (None, Some(place)) => Some((place, Decision::Allow)),
        (None, None) => None,
    }
}
