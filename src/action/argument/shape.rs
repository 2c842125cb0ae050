//! What the value of an argument may be, and how a schema shows that.

use std::fmt;

use serde_json::{Map, Value as Shown, json};

use super::Value;
use crate::action::pattern::Pattern;
use crate::limits;
use crate::mcp::catalog::Fit;
use crate::wire::json::Json;

/// What the value of an argument may be.
#[derive(Clone, PartialEq, Debug)]
pub enum Shape {
    /// A string.
    Text(Text),
    /// An integer in plain digits.
    Integer {
        /// The smallest.
        min: i64,
        /// The largest.
        max: i64,
    },
    /// A finite number.
    Number {
        /// The smallest.
        min: Option<f64>,
        /// The largest.
        max: Option<f64>,
    },
    /// `true` or `false`.
    Boolean,
    /// One of these strings.
    OneOf(Vec<String>),
    /// An array.
    Array(Box<Items>),
}

/// A string without NUL.
#[derive(Clone, PartialEq, Debug)]
pub struct Text {
    /// What it must match as a whole.
    pub pattern: Option<Pattern>,
    /// Fewest characters.
    pub min_length: usize,
    /// Most characters.
    pub max_length: usize,
}

/// The elements of an array.
#[derive(Clone, PartialEq, Debug)]
pub struct Items {
    /// Each of them; no array.
    pub shape: Shape,
    /// For the model.
    pub description: String,
    /// Fewest.
    pub min: usize,
    /// Most.
    pub max: usize,
}

/// Why a value does not fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unfit {
    /// It holds a NUL.
    Nul,
    /// It is not what [`Shape`]'s words say.
    Other,
}

impl Shape {
    /// One sentence where a value does not fit.
    pub fn fault(&self, name: &str, value: &Value) -> Option<String> {
        self.unfit(value).map(|unfit| self.sentence(name, unfit))
    }

    /// The strings that a configuration lists for it.
    pub(crate) fn words(&self) -> &[String] {
        match self {
            Self::OneOf(words) => words,
            Self::Array(items) => items.shape.words(),
            Self::Text(_) | Self::Integer { .. } | Self::Number { .. } | Self::Boolean => &[],
        }
    }

    /// Leaves out all numbers that are written with a minus.
    pub(crate) fn leave_out_negative(&mut self) {
        match self {
            Self::Integer { min, max: _ } => *min = (*min).max(0),
            Self::Number { min, max: _ } => *min = Some(min.map_or(0.0, |min| min.max(0.0))),
            Self::Array(items) => items.shape.leave_out_negative(),
            Self::Text(_) | Self::Boolean | Self::OneOf(_) => {}
        }
    }

    fn sentence(&self, name: &str, unfit: Unfit) -> String {
        match unfit {
            Unfit::Nul => format!("`{name}` must be without NUL characters."),
            Unfit::Other => format!("`{name}` must be {self}."),
        }
    }

    /// Why a value does not fit; `None` where it does.
    pub(crate) fn unfit(&self, value: &Value) -> Option<Unfit> {
        let fits = match (self, value) {
            (Self::Text(_) | Self::OneOf(_), Value::Text(text)) if text.contains('\0') => {
                return Some(Unfit::Nul);
            }
            (Self::Text(rule), Value::Text(text)) => rule.fits(text),
            (Self::Integer { min, max }, Value::Number(text)) => {
                text.parse::<i64>().is_ok_and(|number| (*min..=*max).contains(&number))
            }
            (Self::Number { min, max }, Value::Number(text)) => number_fits(*min, *max, text),
            (Self::Boolean, Value::Flag(_)) => true,
            (Self::OneOf(words), Value::Text(text)) => words.contains(text),
            (Self::Array(items), Value::List(elements)) => {
                if let Some(unfit) = elements.iter().find_map(|it| items.shape.unfit(it)) {
                    return Some(unfit);
                }
                (items.min..=items.max).contains(&elements.len())
            }
            (
                Self::Text(_)
                | Self::Integer { .. }
                | Self::Number { .. }
                | Self::Boolean
                | Self::OneOf(_)
                | Self::Array(_),
                Value::Text(_) | Value::Number(_) | Value::Flag(_) | Value::List(_),
            ) => false,
        };
        (!fits).then_some(Unfit::Other)
    }
}

impl Text {
    fn fits(&self, text: &str) -> bool {
        let Self { pattern, min_length, max_length } = self;
        // Counted no further than it has to be; the pattern sees nothing longer.
        let characters = text.chars().take(max_length + 1).count();
        (*min_length..=*max_length).contains(&characters)
            && pattern.as_ref().is_none_or(|pattern| pattern.matches(text))
    }
}

fn number_fits(min: Option<f64>, max: Option<f64>, text: &str) -> bool {
    text.len() <= limits::ARGUMENT_NUMBER_CHARACTERS
        && text.parse::<f64>().is_ok_and(|number| {
            number.is_finite()
                && min.is_none_or(|min| number >= min)
                && max.is_none_or(|max| number <= max)
        })
}

/// What is wanted, as a sentence goes on after "must be".
impl fmt::Display for Shape {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(Text { pattern, min_length, max_length }) => {
                write!(out, "a string of {min_length} to {max_length} characters")?;
                match pattern {
                    Some(pattern) => write!(out, " that matches `{}` as a whole", pattern.as_str()),
                    None => Ok(()),
                }
            }
            Self::Integer { min, max } => write!(out, "an integer from {min} to {max}"),
            Self::Number { min: Some(min), max: Some(max) } => {
                write!(out, "a number from {min} to {max}")
            }
            Self::Number { min: Some(min), max: None } => write!(out, "a number of at least {min}"),
            Self::Number { min: None, max: Some(max) } => write!(out, "a number of at most {max}"),
            Self::Number { min: None, max: None } => out.write_str("a finite number"),
            Self::Boolean => out.write_str("true or false"),
            Self::OneOf(words) => write!(out, "one of {}", words.join(", ")),
            Self::Array(items) => {
                let Items { shape, description: _, min, max } = &**items;
                write!(out, "an array of {min} to {max} elements, each {shape}")
            }
        }
    }
}

impl Fit for Shape {
    fn fault_of(&self, name: &str, value: Json<'_>) -> Option<String> {
        match Value::parse(value) {
            Some(value) => self.fault(name, &value),
            None => Some(self.sentence(name, Unfit::Other)),
        }
    }

    fn to_json(&self) -> Map<String, Shown> {
        let mut schema = Map::new();
        let mut say = |keyword: &str, value: Shown| schema.insert(keyword.into(), value);
        match self {
            Self::Text(Text { pattern, min_length, max_length }) => {
                say("type", "string".into());
                if let Some(pattern) = pattern.as_ref().and_then(Pattern::for_schema) {
                    say("pattern", pattern.into());
                }
                say("minLength", (*min_length).into());
                say("maxLength", (*max_length).into());
            }
            Self::Integer { min, max } => {
                say("type", "integer".into());
                say("minimum", (*min).into());
                say("maximum", (*max).into());
            }
            Self::Number { min, max } => {
                say("type", "number".into());
                min.map(|min| say("minimum", json!(min)));
                max.map(|max| say("maximum", json!(max)));
            }
            Self::Boolean => _ = say("type", "boolean".into()),
            Self::OneOf(words) => {
                say("type", "string".into());
                say("enum", json!(words));
            }
            Self::Array(items) => {
                let Items { shape, description, min, max } = &**items;
                let mut element = shape.to_json();
                if !description.is_empty() {
                    element.insert("description".into(), description.as_str().into());
                }
                say("type", "array".into());
                say("items", element.into());
                say("minItems", (*min).into());
                say("maxItems", (*max).into());
            }
        }
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pattern: Option<&str>, min_length: usize, max_length: usize) -> Shape {
        let pattern = pattern.map(|text| Pattern::parse(text).unwrap());
        Shape::Text(Text { pattern, min_length, max_length })
    }

    fn fault(shape: &Shape, json: &str) -> Option<String> {
        shape.fault_of("x", Json::check(json).unwrap().value)
    }

    #[test]
    fn what_fits_and_what_does_not() {
        let list = |shape, min, max| {
            Shape::Array(Box::new(Items { shape, description: String::new(), min, max }))
        };
        let number = |min, max| Shape::Number { min, max };
        let long = format!("0.{}", "0".repeat(limits::ARGUMENT_NUMBER_CHARACTERS));
        for (shape, good, bad) in [
            (
                text(Some("/[a-z/]*"), 0, 4),
                vec![r#""/""#, r#""/abc""#],
                vec!["\"\"", "\"a\"", r#""/abcd""#, r#""/\n""#, "1", "null", "[]", "{}"],
            ),
            (text(None, 1, 2), vec!["\"éé\"", "\" \""], vec!["\"\"", "\"ééé\"", r#""\u0000""#]),
            (
                Shape::Integer { min: -1, max: 9 },
                vec!["-1", "0", "-0", "9"],
                vec!["-2", "10", "1.0", "1e0", "\"1\"", "99999999999999999999", "true"],
            ),
            (
                number(Some(0.5), Some(1.5)),
                vec!["0.5", "1", "15e-1"],
                vec!["0.4", "1.6", "-1", "\"1\"", &long],
            ),
            (number(None, None), vec!["-1e308", "0"], vec!["1e400", "-1e400", "true"]),
            (Shape::Boolean, vec!["true", "false"], vec!["\"true\"", "0", "null"]),
            (
                Shape::OneOf(vec!["a".into(), "B".into()]),
                vec!["\"a\"", "\"B\""],
                vec!["\"A\"", "\"\"", "\"a \"", r#""a\u0000""#],
            ),
            (
                list(text(None, 1, 2), 1, 2),
                vec![r#"["a"]"#, r#"["a","bb"]"#],
                vec!["[]", "[\"\"]", "[1]", r#"["a","b","c"]"#, "\"a\"", r#"["\u0000"]"#, "[[]]"],
            ),
        ] {
            for json in good {
                assert_eq!(fault(&shape, json), None, "{json} {shape}");
            }
            for json in bad {
                let fault = fault(&shape, json).unwrap_or_else(|| panic!("{json} fits {shape}"));
                assert!(fault.starts_with("`x` must be ") && fault.ends_with('.'), "{fault}");
            }
        }
    }

    #[test]
    fn a_schema_says_what_is_checked() {
        let shown = |shape: Shape| Shown::Object(shape.to_json());
        assert_eq!(
            shown(text(Some("a|b"), 0, 9)),
            json!({ "type": "string", "pattern": "^(?:a|b)$", "minLength": 0, "maxLength": 9 })
        );
        assert_eq!(
            shown(text(Some("(?i)a"), 0, 9)),
            json!({ "type": "string", "minLength": 0, "maxLength": 9 }),
            "what clients would read otherwise is not shown"
        );
        assert_eq!(
            shown(Shape::Number { min: None, max: Some(0.5) }),
            json!({ "type": "number", "maximum": 0.5 })
        );
        let items = Items { shape: Shape::Boolean, description: "d".into(), min: 1, max: 2 };
        assert_eq!(
            shown(Shape::Array(Box::new(items))),
            json!({ "type": "array", "items": { "type": "boolean", "description": "d" },
                    "minItems": 1, "maxItems": 2 })
        );
    }
}
