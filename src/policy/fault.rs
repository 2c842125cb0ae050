//! What is wrong with a configuration, where, and what to do about it.

use std::borrow::Cow;
use std::cell::OnceCell;
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
        // One is made for every value of a configuration, at every start.
        let mut path = String::with_capacity(self.0.len() + name.len() + "[\"\"]".len());
        path.push_str(&self.0);
        if !name.is_empty() && name.bytes().all(is_plain) {
            path.push('.');
            path.push_str(name);
            return Self(path);
        }
        path.push('[');
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
    /// The members, once they were asked for: each look for one would scan all of them.
    members: OnceCell<Vec<(Cow<'a, str>, Json<'a>)>>,
}

impl<'a> Node<'a> {
    pub(crate) fn new(value: Json<'a>, place: Place) -> Self {
        Self { value, place, members: OnceCell::new() }
    }

    fn listed(&self) -> &[(Cow<'a, str>, Json<'a>)] {
        self.members.get_or_init(|| self.value.members().collect())
    }

    fn value_of(&self, name: &str) -> Option<Json<'a>> {
        self.listed().iter().find_map(|(key, value)| (key == name).then_some(*value))
    }

    /// Whether there is a member of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.value_of(name).is_some()
    }

    /// The member of this name.
    pub(crate) fn member(&self, name: &str) -> Option<Self> {
        Some(Self::new(self.value_of(name)?, self.place.member(name)))
    }

    /// All members, with their names.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&str, Self)> {
        self.listed().iter().map(|(name, value)| {
            let name: &str = name;
            (name, Self::new(*value, self.place.member(name)))
        })
    }

    /// All elements.
    pub(crate) fn elements(&self) -> impl Iterator<Item = Self> {
        let node = |(index, value)| Self::new(value, self.place.element(index));
        self.value.elements().enumerate().map(node)
    }

    /// The text of a string.
    pub(crate) fn text(&self) -> Option<String> {
        Some(self.value.as_str()?.into_owned())
    }

    /// A switch that is off where it is not there.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.value_of(name).and_then(Json::as_bool).unwrap_or(false)
    }
}
