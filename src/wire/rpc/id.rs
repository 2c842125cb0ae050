//! Ids of requests.
//!
//! Invariant: an id that was read is echoed exactly.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::wire::json::Json;
use crate::wire::write::write_string;

/// The id of a request, written as JSON by its `Display`, exactly as it came.
///
/// `1` and `"1"` differ; `0` and `-0` are the same number, so they are equal.
#[derive(Clone, Eq)]
pub enum Id {
    /// Plain digits, with or without a minus; fits `i64` or `u64`.
    Integer(String),
    /// A string, escapes resolved.
    Text(String),
}

impl Id {
    /// Reads an id: a string without half surrogate pairs, or an integer of 64 bits.
    pub fn parse(value: Json<'_>) -> Option<Self> {
        if let Some(text) = sound_text(value) {
            return Some(Self::Text(text.into_owned()));
        }
        let fits = value.as_i64().is_some() || value.as_u64().is_some();
        fits.then(|| Self::Integer(value.as_text().to_owned()))
    }

    /// What two ids must share to be the same: whether they are text, and what they say.
    fn meaning(&self) -> (bool, &str) {
        match self {
            Self::Integer(digits) if digits == "-0" => (false, "0"),
            Self::Integer(digits) => (false, digits),
            Self::Text(text) => (true, text),
        }
    }
}

impl PartialEq for Id {
    fn eq(&self, other: &Self) -> bool {
        self.meaning() == other.meaning()
    }
}

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.meaning().hash(state);
    }
}

/// JSON, as it is echoed.
impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(digits) => f.write_str(digits),
            Self::Text(text) => {
                let mut json = String::with_capacity(text.len() + 2);
                write_string(&mut json, text);
                f.write_str(&json)
            }
        }
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({self})")
    }
}

/// The text of a string without half surrogate pairs.
pub(super) fn sound_text(value: Json<'_>) -> Option<Cow<'_, str>> {
    value.as_str().filter(|_| !value.has_lone_surrogate())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_same_where_they_mean_the_same() {
        let id = |text: &str| Id::parse(Json::check(text).unwrap().value).unwrap();
        assert!(id("1") == id("1") && id("-0") == id("0") && id(r#""a""#) == id(r#""\u0061""#));
        assert!(id("1") != id(r#""1""#) && id("1") != id("-1") && id(r#""-0""#) != id(r#""0""#));
        let set: std::collections::HashSet<Id> = ["0", "-0", r#""0""#].map(id).into();
        assert_eq!(set.len(), 2);
    }
}
