//! One run of a helper as the agent asks for it: a tool's name and typed arguments.

use super::Refused;
use super::argument::{Argument, Value};
use crate::mcp::catalog::Arguments;
use crate::state::Reason;

/// A run of a helper that was parsed and not yet judged.
#[derive(Debug)]
pub struct HelperAction {
    /// The helper's name.
    pub tool: String,
    /// In the order given; each name once.
    pub arguments: Vec<Argument>,
}

impl HelperAction {
    /// Reads the arguments of a call that fit the tool's schema.
    ///
    /// # Errors
    /// [`Refused`]: the call ends `rejected`.
    pub fn parse(tool: &str, arguments: &Arguments<'_>) -> Result<Self, Refused> {
        let argument = |(name, json)| match Value::parse(json) {
            Some(value) => Ok(Argument { name: String::from(name), value }),
            None => Err(Refused {
                reason: Reason::Arguments,
                message: format!(
                    "`{name}` must be a string, a number, true, false, or an array of these."
                ),
            }),
        };
        let arguments = arguments.iter().map(argument).collect::<Result<_, _>>()?;
        Ok(Self { tool: tool.into(), arguments })
    }

    /// The same call with one argument's value replaced by what its resolver printed.
    #[must_use]
    pub fn with_resolved(mut self, argument: &str, value: String) -> Self {
        if let Some(given) = self.arguments.iter_mut().find(|given| given.name == argument) {
            given.value = Value::Text(value);
        }
        self
    }

    /// Hands every part of it to a digest, each under its own label.
    pub fn encode(&self, part: &mut impl FnMut(&str, &[u8])) {
        let Self { tool, arguments } = self;
        part("tool", tool.as_bytes());
        for Argument { name, value } in arguments {
            part("argument", name.as_bytes());
            value.encode(&mut *part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: &str, value: &str) -> Argument {
        Argument { name: name.into(), value: Value::Text(value.into()) }
    }

    fn action(tool: &str, arguments: &[(&str, &str)]) -> HelperAction {
        let arguments = arguments.iter().map(|(name, value)| text(name, value)).collect();
        HelperAction { tool: tool.into(), arguments }
    }

    #[test]
    fn what_was_resolved_stands_in_place_of_the_name() {
        let resolved = action("t", &[("a", "1"), ("b", "2")]).with_resolved("a", "3".into());
        assert_eq!(resolved.arguments, [text("a", "3"), text("b", "2")]);
        let without = action("t", &[("a", "1")]).with_resolved("b", "3".into());
        assert_eq!(without.arguments, [text("a", "1")], "what was not given is not resolved");
    }

    #[test]
    fn all_that_decides_is_encoded() {
        let actions = [
            action("t", &[]),
            action("u", &[]),
            action("t", &[("a", "b")]),
            action("t", &[("b", "a")]),
            action("t", &[("a", "b"), ("c", "d")]),
            action("t", &[("a", "d"), ("c", "b")]),
        ];
        let encodings = actions.map(|action| {
            let mut parts = Vec::new();
            action.encode(&mut |label, bytes| parts.push((label.to_owned(), bytes.to_vec())));
            parts
        });
        for (place, encoding) in encodings.iter().enumerate() {
            assert!(!encodings[..place].contains(encoding), "action {place}");
        }
    }
}
