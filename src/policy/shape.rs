//! The shape of a configuration as data. One table checks a file and makes the schema.

use crate::limits::{Limit, TABLE};

/// What a value may be.
#[derive(Debug)]
pub(crate) enum Shape {
    /// Any string.
    Text,
    /// `true` or `false`.
    Flag,
    /// The number that says how the file is to be read.
    Version,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A whole number between these two.
    Whole(u64, u64),
    /// `"*"`, or an array of methods or `"*"`.
    Methods,
    /// Any integer of 64 bits.
    Integer,
    /// Any number.
    Number,
    /// A string, number, boolean or array of these: what it must be, something else says.
    Anything,
    /// An array.
    List(&'static Shape),
    /// An array with at least one element.
    Some(&'static Shape),
    /// An object with these keys and no others.
    Object(&'static [Key]),
    /// An object whose keys are names of this kind that the operator gives.
    Named(Names, &'static Shape),
    /// An object that has exactly one of these keys.
    Choice(&'static [Key]),
    /// An object whose `type` says which further keys it has.
    Tagged(&'static [Variant]),
    /// An object of the limits of this section, as their table has them, and of these further keys.
    Limits(&'static str, &'static [Key]),
    /// What this shape says, with exactly one of these keys.
    OneOf(&'static Shape, &'static [&'static str]),
    /// What a later version serves.
    NotServed,
}

/// What a name that the operator gives may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Names {
    /// Whatever a query may have.
    Any,
    /// An entry of the configuration, or a thing outside of it.
    Entry,
    /// A tool: widely used model APIs refuse dots.
    Tool,
    /// An argument of a tool.
    Argument,
    /// A variable of an environment.
    Variable,
}

impl Names {
    /// The expression that such a name matches.
    pub(crate) fn pattern(self) -> Option<&'static str> {
        match self {
            Self::Any => None,
            Self::Entry => Some("^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"),
            Self::Tool => Some("^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"),
            Self::Argument => Some("^[A-Za-z_][A-Za-z0-9_]{0,63}$"),
            Self::Variable => Some("^[A-Za-z_][A-Za-z0-9_]*$"),
        }
    }
}

/// A key of an object.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) need: Need,
    pub(crate) shape: Shape,
    /// What it says, in a few words.
    pub(crate) meaning: &'static str,
}

/// Whether a key must be there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Need {
    /// It must.
    Required,
    /// It may.
    Optional,
}

/// What an object is under one value of its `type`.
#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) tag: &'static str,
    /// The keys beside `type`; `None`: a later version serves it.
    pub(crate) keys: Option<&'static [Key]>,
    pub(crate) meaning: &'static str,
}

/// The key that selects a [`Variant`].
pub(crate) const TAG: &str = "type";

impl Key {
    /// Whether this version serves it.
    pub(crate) fn is_served(&self) -> bool {
        !matches!(self.shape, Shape::NotServed)
    }
}

/// The limits of a section, with their names inside it; those of a section within it are not among them.
pub(crate) fn limits(section: &str) -> impl Iterator<Item = (&'static str, &'static Limit)> {
    let name = move |key: &'static str| {
        key.strip_prefix(section)?.strip_prefix('.').filter(|name| !name.contains('.'))
    };
    TABLE.iter().filter_map(move |limit| Some((name(limit.key)?, limit)))
}
