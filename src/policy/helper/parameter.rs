//! One argument of a helper, and how its tool shows it.

use std::fmt::Write as _;

use serde_json::{Map, Value as Shown, json};

use crate::action::argument::{Shape, Text, Value};
use crate::action::pattern::Pattern;
use crate::mcp::catalog::{Fit, Property, Schema};
use crate::policy::Policy;
use crate::wire::json::Json;

/// One argument of a helper.
#[derive(PartialEq, Debug)]
pub struct Parameter {
    pub(in crate::policy) name: String,
    pub(in crate::policy) description: String,
    pub(in crate::policy) shape: Shape,
    pub(in crate::policy) presence: Presence,
    /// Whether a word of it may begin with `-` or `+`.
    pub(in crate::policy) may_be_option: bool,
    /// Whether some word of the helper begins with it.
    pub(in crate::policy) begins_a_word: bool,
    /// The word that stands for true, none standing for false.
    pub(in crate::policy) word: Option<String>,
    /// The helper that makes the value of what the agent gives.
    pub(in crate::policy) resolver: Option<String>,
}

/// Whether a call must give an argument.
#[derive(PartialEq, Debug)]
pub(crate) enum Presence {
    /// It must.
    Required,
    /// It may; without it the word vanishes.
    Optional,
    /// It may; without it this is the value.
    Default(Value),
}

impl Parameter {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it says, for the model; may be empty.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Whether a call must give it.
    pub fn is_required(&self) -> bool {
        self.presence == Presence::Required
    }

    /// What its value may be; of one that another helper resolves, what that helper prints.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The helper that makes its value of what the agent gives.
    pub fn resolver(&self) -> Option<&str> {
        self.resolver.as_deref()
    }

    /// As the tool shows it, and as the arguments of a call are checked.
    pub(in crate::policy) fn property(&self, policy: &Policy) -> Property {
        let asked = self.resolver.as_ref().and_then(|name| policy.helper(name)?.only_required());
        let shown = asked.unwrap_or(self);
        let default = match &self.presence {
            Presence::Default(value) => Some(value.clone()),
            Presence::Required | Presence::Optional => None,
        };
        Property {
            name: self.name.clone().into(),
            description: format!("{}{}", self.description, shown.hints()).trim_start().into(),
            required: self.is_required(),
            schema: Schema::Given(Box::new(Rule { shape: shown.shape.clone(), default })),
        }
    }

    /// What is checked and stands in no keyword of the schema.
    fn hints(&self) -> String {
        let Self { shape, may_be_option, begins_a_word, .. } = self;
        let mut hints = String::new();
        let (is_list, shape) = match shape {
            Shape::Array(items) => (true, &items.shape),
            other => (false, other),
        };
        let Shape::Text(Text { pattern, .. }) = shape else { return hints };
        if let Some(pattern) = pattern.as_ref().filter(|it| it.for_schema().is_none()) {
            _ = write!(hints, " Matches the regular expression `{}` as a whole.", pattern.as_str());
        }
        if *begins_a_word && !may_be_option && !pattern.as_ref().is_some_and(begins_plainly) {
            hints.push_str(if is_list {
                " No element begins with - or +."
            } else {
                " Does not begin with - or +."
            });
        }
        hints
    }

    /// Hands what decides about words to a digest.
    pub(super) fn encode(&self, part: &mut impl FnMut(&str, &[u8])) {
        let Self {
            name,
            description: _,
            shape: _, // What does not fit does not run; what fits runs as it is.
            presence,
            may_be_option,
            begins_a_word: _, // Follows from the templates.
            word,
            resolver,
        } = self;
        part("parameter", name.as_bytes());
        match presence {
            Presence::Required => part("required", b""),
            Presence::Optional => part("optional", b""),
            Presence::Default(value) => {
                part("default", b"");
                value.encode(&mut *part);
            }
        }
        part("may_be_option", &[u8::from(*may_be_option)]);
        if let Some(word) = word {
            part("word for true", word.as_bytes());
        }
        if let Some(resolver) = resolver {
            part("resolver", resolver.as_bytes());
        }
    }
}

/// Whether a pattern says itself that a value begins with a letter, a digit or a slash.
fn begins_plainly(pattern: &Pattern) -> bool {
    let text = pattern.as_str();
    let mut characters = text.chars();
    let first = characters.next().is_some_and(|it| it.is_ascii_alphanumeric() || it == '/');
    let repeats = characters.next().is_some_and(|it| "*?{".contains(it));
    first && !repeats && !text.contains('|')
}

/// The rule that a schema shows and checks.
#[derive(Debug)]
struct Rule {
    shape: Shape,
    default: Option<Value>,
}

impl Fit for Rule {
    fn fault_of(&self, name: &str, value: Json<'_>) -> Option<String> {
        self.shape.fault_of(name, value)
    }

    fn to_json(&self) -> Map<String, Shown> {
        let mut schema = self.shape.to_json();
        if let Some(default) = &self.default {
            schema.insert("default".into(), shown(default));
        }
        schema
    }
}

fn shown(value: &Value) -> Shown {
    match value {
        Value::Text(text) => json!(text),
        Value::Flag(flag) => json!(flag),
        Value::List(elements) => elements.iter().map(shown).collect(),
        Value::Number(text) => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(integer), _) => json!(integer),
            (Err(_), Ok(number)) => json!(number),
            (Err(_), Err(_)) => Shown::Null,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::policy;
    use crate::action::helper::HelperAction;
    use crate::mcp::catalog::ObjectSchema;
    use crate::wire::json::Json;
    use serde_json::{Value, json};

    fn tool(keys: &str) -> ObjectSchema {
        let policy = policy(keys);
        ObjectSchema { properties: policy.tool_properties(policy.helper("h").unwrap()) }
    }

    const KEYS: &str = r#""argv": ["/bin/x", "{id}", "{text}", "{any}", "{n}", "{on}", "{all}"],
        "arguments": {
          "text": { "type": "string", "pattern": "(?i)a+", "description": "Some text." },
          "id": { "type": "string", "pattern": "i-[0-9]+", "resolve": "other" },
          "any": { "type": "string", "optional": true },
          "n": { "type": "integer", "max": 9, "default": 3 },
          "on": { "type": "boolean", "word": "-v" },
          "all": { "type": "array", "items": { "type": "enum", "values": ["a", "b"] },
                   "default": ["a"] } }"#;

    #[test]
    fn a_tool_shows_its_arguments_in_the_order_of_the_configuration() {
        let tool = tool(KEYS);
        let shown: Vec<(&str, bool, Value, &str)> = tool
            .properties
            .iter()
            .map(|property| {
                let crate::mcp::catalog::Schema::Given(rule) = &property.schema else { panic!() };
                let schema = Value::Object(rule.to_json());
                (&*property.name, property.required, schema, property.description.as_str())
            })
            .collect();
        let text = json!({ "type": "string", "minLength": 0, "maxLength": 4096 });
        let mut name = text.clone();
        name["pattern"] = "^(?:[a-z]+)$".into();
        let list = json!({ "type": "array", "items": { "type": "string", "enum": ["a", "b"] },
            "minItems": 0, "maxItems": 64, "default": ["a"] });
        let matches = "Some text. Matches the regular expression `(?i)a+` as a whole. \
            Does not begin with - or +.";
        let integer = json!({ "type": "integer", "minimum": 0, "maximum": 9, "default": 3 });
        assert_eq!(
            shown,
            [
                ("text", true, text.clone(), matches),
                ("id", true, name, "Does not begin with - or +."),
                ("any", false, text, "Does not begin with - or +."),
                ("n", false, integer, ""),
                ("on", true, json!({ "type": "boolean" }), ""),
                ("all", false, list, ""),
            ]
        );
    }

    #[test]
    fn a_call_is_checked_as_the_tool_shows() {
        let tool = tool(KEYS);
        let faults = |text: &str| {
            let checked = tool.check(Some(Json::check(text).unwrap().value));
            checked.err().unwrap_or_default()
        };
        assert!(faults(r#"{"text":"AA","id":"web","on":true}"#).is_empty());
        assert_eq!(
            faults(r#"{"text":"b","id":"i-1","on":1,"n":10,"all":["c"],"any":null}"#),
            [
                "`text` must be a string of 0 to 4096 characters that matches `(?i)a+` as a whole.",
                "`id` must be a string of 0 to 4096 characters that matches `[a-z]+` as a whole.",
                "`on` must be true or false.",
                "`n` must be an integer from 0 to 9.",
                "`all` must be an array of 0 to 64 elements, each one of a, b.",
                "`any` must be a string of 0 to 4096 characters.",
            ]
        );
    }

    #[test]
    fn from_the_line_of_a_call_to_the_words_that_run() {
        let policy = policy(
            r#""argv": ["/usr/bin/df", "-h", "{path}", "{all}"], "arguments": {
                "path": { "type": "string", "pattern": "/[A-Za-z0-9/_-]*", "default": "/" },
                "all": { "type": "array", "items": { "type": "number" }, "optional": true } }"#,
        );
        let helper = policy.helper("h").unwrap();
        let tool = ObjectSchema { properties: policy.tool_properties(helper) };
        let argv = |text: &str| {
            let value = Json::check(text).unwrap().value;
            let action = HelperAction::parse("h", &tool.check(Some(value)).unwrap()).unwrap();
            helper.words(&action).unwrap().argv
        };
        assert_eq!(argv("{}"), ["/usr/bin/df", "-h", "/"]);
        assert_eq!(
            argv(r#"{"all":[1,2.50],"path":"\/\u0061--help"}"#),
            ["/usr/bin/df", "-h", "/a--help", "1", "2.50"]
        );
    }
}
