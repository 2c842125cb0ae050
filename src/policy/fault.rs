//! What is wrong with a configuration, where, and what to do about it.

use std::fmt;

use crate::wire::json::Json;
use crate::wire::write::write_string;

/// One fault of a configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// A JSON path, `$.http.github.rules[1].path` for example.
    pub path: String,
    /// What is wrong there.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, what, remedy } = self;
        write!(out, "{path}: {what}; try: {remedy}")
    }
}

/// All faults of a configuration, in the order in which they are found.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<Fault>);

impl Faults {
    /// Notes one.
    pub(crate) fn add(
        &mut self,
        place: &Place,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let Place(path) = place;
        self.0.push(Fault { path: path.clone(), what: what.into(), remedy: remedy.into() });
    }

    /// Sees to it that what could not be decoded is never silently left out.
    pub(crate) fn cover(&mut self, place: &Place) {
        let Place(path) = place;
        if !self.0.iter().any(|fault| fault.path.starts_with(path)) {
            self.add(place, "could not be read", "compare it with `keyward schema`");
        }
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Hands them over.
    pub(crate) fn into_vec(self) -> Vec<Fault> {
        self.0
    }
}

/// Where something stands in a configuration, as a JSON path.
#[derive(Clone, Debug)]
pub(crate) struct Place(String);

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl Place {
    /// The whole.
    pub(crate) fn root() -> Self {
        Self("$".into())
    }

    /// A member of the object here.
    pub(crate) fn member(&self, name: &str) -> Self {
        let is_plain =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'$');
        if !name.is_empty() && name.bytes().all(is_plain) {
            return Self(format!("{}.{name}", self.0));
        }
        let mut path = format!("{}[", self.0);
        write_string(&mut path, name);
        path.push(']');
        Self(path)
    }

    /// An element of the array here.
    pub(crate) fn element(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// What follows the last dot, `rules[1]` for example: enough for a sentence about a neighbour.
    pub(crate) fn last_step(&self) -> &str {
        self.0.rsplit('.').next().unwrap_or_default()
    }
}

/// A value of a configuration, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Node<'a> {
    pub(crate) value: Json<'a>,
    pub(crate) place: Place,
}

impl<'a> Node<'a> {
    /// The member of this name.
    pub(crate) fn member(&self, name: &str) -> Option<Self> {
        let value = self.value.member(name)?;
        Some(Self { value, place: self.place.member(name) })
    }

    /// All members, with their names.
    pub(crate) fn members(&self) -> impl Iterator<Item = (String, Self)> {
        self.value.members().map(|(name, value)| {
            let place = self.place.member(&name);
            (name.into_owned(), Self { value, place })
        })
    }

    /// All elements.
    pub(crate) fn elements(&self) -> impl Iterator<Item = Self> {
        let place = |(index, value)| Self { value, place: self.place.element(index) };
        self.value.elements().enumerate().map(place)
    }

    /// The text of a string.
    pub(crate) fn text(&self) -> Option<String> {
        Some(self.value.as_str()?.into_owned())
    }

    /// A switch that is off where it is not there.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.member(name).and_then(|node| node.value.as_bool()).unwrap_or(false)
    }
}
