use super::*;
use crate::action::argument::Argument;
use crate::policy::helper::tests::helper;

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn list(texts: &[&str]) -> Value {
    Value::List(texts.iter().map(|it| text(it)).collect())
}

fn run(helper: &Helper, arguments: &[(&str, Value)]) -> Result<Words, String> {
    let argument = |(name, value): &(&str, Value)| Argument {
        name: String::from(*name),
        value: value.clone(),
    };
    let arguments = arguments.iter().map(argument).collect();
    helper.words(&HelperAction { tool: "h".into(), arguments }).map_err(|refused| {
        assert_eq!(refused.reason, Reason::Arguments);
        refused.message
    })
}

fn argv(helper: &Helper, arguments: &[(&str, Value)]) -> Result<Vec<String>, String> {
    run(helper, arguments).map(|words| words.argv)
}

/// One argument `a`, at most 65536 characters of anything, as a word of its own and inside others.
const ONE: &str = r#""argv": ["/bin/x", "{a}", "--to={a}", "end"],
    "arguments": { "a": { "type": "string", "max_length": 65536 } }"#;

#[test]
fn a_hostile_value_is_one_word_or_refused_by_name() {
    let helper = helper(ONE);
    for value in [
        "", "$(id)", "a b", "`id`", "'\"", "a\nb", "*", "~", "{a}", "{{", "}", "a;b", "é-",
        "\u{202e}", "a--help", " -rf", "=-x", "\u{2d0}-", "−x",
    ] {
        let found = argv(&helper, &[("a", text(value))]).unwrap();
        assert_eq!(found, ["/bin/x", value, &format!("--to={value}"), "end"], "{value:?}");
    }
    for value in ["--help", "-rf", "-", "--", "+x", "-1"] {
        assert_eq!(
            argv(&helper, &[("a", text(value))]).unwrap_err(),
            "`a` must not make a word that begins with - or +.",
            "{value:?}"
        );
    }
    for value in ["\0", "a\0", "\0-x", "a\0b"] {
        assert_eq!(
            argv(&helper, &[("a", text(value))]).unwrap_err(),
            "`a` must be without NUL characters.",
            "{value:?}"
        );
    }
    assert_eq!(
        argv(&helper, &[("a", text(&"x".repeat(200 * 1024)))]).unwrap_err(),
        "`a` must be a string of 0 to 65536 characters."
    );
    assert_eq!(
        argv(&helper, &[("a", text(&"é".repeat(65536)))]).unwrap_err(),
        "`a` must make no word of more than 131071 bytes."
    );
    let longest = format!("{}x", "é".repeat(65535));
    assert_eq!(
        argv(&helper, &[("a", text(&longest))]).unwrap_err(),
        "`a` must make no word of more than 131071 bytes.",
        "131071 bytes fit, and not with --to= in front"
    );
}

#[test]
fn words_are_bounded_together() {
    let helper = helper(
        r#""argv": ["/bin/x", "{all}", "{b}"], "stdin": "{b}{b}{b}{b}{b}{b}{b}{b}{b}",
        "arguments": { "all": { "type": "array", "max_items": 256,
            "items": { "type": "string", "max_length": 65536 } },
          "b": { "type": "string", "max_length": 65536, "default": "" } }"#,
    );
    let long = "é".repeat(65535);
    let words = |count: usize, b: &str| {
        let all = list(&vec![long.as_str(); count]);
        argv(&helper, &[("all", all), ("b", text(b))]).map(|words| words.len())
    };
    let refused = |name: &str| {
        Err(format!("`{name}` must be shorter: the program is given at most 1048576 bytes."))
    };
    assert_eq!(words(8, ""), Ok(10), "exactly as much, with the NUL of each");
    assert_eq!(words(8, "x"), refused("all"));
    assert_eq!(words(9, ""), refused("all"));
    assert_eq!(words(0, &long), refused("b"), "stdin is bounded too");
}

#[test]
fn what_stands_for_each_type() {
    let helper = helper(
        r#""argv": ["/bin/x", "{n}", "{f}", "{flag}", "{on}", "{one}", "{all}", "{may}", "{maybe}", "",
            "{{{one}}}", "n={n}"],
        "arguments": {
          "n": { "type": "integer", "default": 7, "may_be_option": true },
          "f": { "type": "number", "default": 0.50 },
          "flag": { "type": "boolean", "default": false },
          "on": { "type": "boolean", "word": "-v", "default": false },
          "one": { "type": "enum", "values": ["a", "b"] },
          "all": { "type": "array", "items": { "type": "string", "may_be_option": true },
                   "default": [] },
          "may": { "type": "string", "optional": true, "may_be_option": true },
          "maybe": { "type": "string", "optional": true } }"#,
    );
    let least = argv(&helper, &[("one", text("a"))]).unwrap();
    assert_eq!(least, ["/bin/x", "7", "0.50", "false", "a", "", "{a}", "n=7"]);
    let number = |text: &str| Value::Number(text.into());
    let most = argv(
        &helper,
        &[
            ("maybe", text("m")),
            ("may", text("-m")),
            ("all", list(&["-x", "", "{n}"])),
            ("one", text("b")),
            ("on", Value::Flag(true)),
            ("flag", Value::Flag(true)),
            ("f", number("1e3")),
            ("n", number("-1")),
        ],
    );
    let expected =
        ["/bin/x", "-1", "1e3", "true", "-v", "b", "-x", "", "{n}", "-m", "m", "", "{b}", "n=-1"];
    assert_eq!(most.unwrap(), expected);
    for (arguments, message) in [
        (vec![], "`one` is missing."),
        (vec![("one", text("c"))], "`one` must be one of a, b."),
        (vec![("one", text("a")), ("one", text("b"))], "`one` is given twice."),
        (vec![("x\n", text("a"))], "`x\\n` is not an argument of this tool."),
        (vec![("one", text("a")), ("f", number("-1"))], "`f` must be a number of at least 0."),
        (
            vec![("one", text("a")), ("f", number("-0"))],
            "`f` must not make a word that begins with - or +.",
        ),
        (
            vec![("one", text("a")), ("maybe", text("+"))],
            "`maybe` must not make a word that begins with - or +.",
        ),
    ] {
        assert_eq!(argv(&helper, &arguments).unwrap_err(), message);
    }
    let other = HelperAction { tool: "other".into(), arguments: vec![] };
    assert!(helper.words(&other).is_err());
}

#[test]
fn an_empty_value_makes_no_option_of_what_follows_it() {
    let helper = helper(
        r#""argv": ["/bin/x", "{a}-rf", "{a}{b}"], "arguments": {
          "a": { "type": "string" }, "b": { "type": "string", "default": "" } }"#,
    );
    let run = |a: &str, b: &str| argv(&helper, &[("a", text(a)), ("b", text(b))]);
    assert_eq!(run("x", "-f").unwrap(), ["/bin/x", "x-rf", "x-f"]);
    let refused =
        |name: &str| Err(format!("`{name}` must not make a word that begins with - or +."));
    assert_eq!(run("", ""), refused("a"));
    assert_eq!(run("-", ""), refused("a"));
    let second = self::helper(
        r#""argv": ["/bin/x", "{a}{b}"], "arguments": {
          "a": { "type": "string", "may_be_option": true }, "b": { "type": "string" } }"#,
    );
    let run = |a: &str, b: &str| argv(&second, &[("a", text(a)), ("b", text(b))]);
    assert_eq!(run("", "-f"), refused("b"));
    assert_eq!(run("-", "-f").unwrap(), ["/bin/x", "--f"]);
}

fn helper_with_stdin(stdin: &str) -> Helper {
    helper(&format!(
        r#""argv": ["/bin/x"], "stdin": "{stdin}",
        "arguments": {{ "a": {{ "type": "string", "optional": true, "max_length": 65536 }} }}"#
    ))
}

#[test]
fn stdin_is_one_text() {
    let helper = helper_with_stdin("{a}");
    let stdin = |value: &str| run(&helper, &[("a", text(value))]).map(|words| words.stdin);
    assert_eq!(stdin("-x {a}\n"), Ok(b"-x {a}\n".to_vec()), "no option, and no template");
    assert_eq!(stdin(&"é".repeat(65536)).unwrap().len(), 131_072, "longer than any word");
    assert_eq!(stdin("a\0"), Err("`a` must be without NUL characters.".into()));
    assert_eq!(run(&helper, &[]).unwrap().stdin, b"");
}

#[test]
fn what_a_resolver_printed_is_checked_like_any_value() {
    let helper = helper(
        r#""argv": ["/bin/x", "{id}"], "arguments": {
            "id": { "type": "string", "pattern": "i-[0-9]+", "resolve": "other" } }"#,
    );
    assert_eq!(helper.resolves().collect::<Vec<_>>(), [("id", "other")]);
    let run = |printed: &str| {
        let given = Argument { name: "id".into(), value: text("web") };
        let action = HelperAction { tool: "h".into(), arguments: vec![given] };
        helper.words(&action.with_resolved("id", printed.into())).map(|words| words.argv)
    };
    assert_eq!(run("i-1").unwrap(), ["/bin/x", "i-1"]);
    for printed in ["web", "i-1\n", "", "-i-1", "i-1\0"] {
        assert!(run(printed).unwrap_err().message.starts_with("`id` must be "), "{printed:?}");
    }
}

/// A small generator of numbers: the same ones in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap()
    }

    fn text(&mut self) -> String {
        const BYTES: &[char] = &[
            '-', '+', '{', '}', 'a', 'b', ' ', '\n', '"', '\'', '$', '\\', '\0', 'é', '=', '/',
            '.', '*',
        ];
        (0..self.below(6)).map(|_| BYTES[self.below(BYTES.len())]).collect()
    }
}

#[test]
fn no_value_changes_the_number_of_words_or_another_word() {
    let helper = helper(
        r#""argv": ["/bin/x", "-h", "{a}", "--b={b}", "{all}", "{a}.{b}", "--", "{c}", "{{a}}"],
        "arguments": { "a": { "type": "string" }, "b": { "type": "string" },
          "c": { "type": "string", "optional": true, "may_be_option": true },
          "all": { "type": "array", "items": { "type": "string" } } }"#,
    );
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let (mut ran, mut refused) = (0, 0);
    for _ in 0..20_000 {
        let (a, b) = (numbers.text(), numbers.text());
        let c = (numbers.below(2) == 0).then(|| numbers.text());
        let all: Vec<String> = (0..numbers.below(4)).map(|_| numbers.text()).collect();
        let words: Vec<&str> = all.iter().map(String::as_str).collect();
        let mut arguments = vec![("a", text(&a)), ("b", text(&b)), ("all", list(&words))];
        arguments.extend(c.as_ref().map(|c| ("c", text(c))));
        let values = || [&a, &b].into_iter().chain(&c).chain(&all);
        let is_option = |word: &String| word.starts_with(['-', '+']);
        let both = format!("{a}.{b}");
        let may_run = values().all(|value| !value.contains('\0'))
            && ![&a, &both].into_iter().chain(&all).any(is_option);
        let Ok(found) = argv(&helper, &arguments) else {
            assert!(!may_run, "{arguments:?}");
            refused += 1;
            continue;
        };
        assert!(may_run, "{arguments:?}");
        let with_b = format!("--b={b}");
        let mut expected = vec!["/bin/x", "-h", &a, &with_b];
        expected.extend(words);
        expected.extend([both.as_str(), "--"]);
        expected.extend(c.as_deref());
        expected.push("{a}");
        assert_eq!(found, expected);
        ran += 1;
    }
    assert!(ran > 1000 && refused > 1000, "{ran} ran, {refused} refused");
}
