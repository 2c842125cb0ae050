//! Words that were seen to run code, or to be changed, in some shell.

use keyward::action::command::RemoteShell;

use crate::scene::{SHELLS, Scene, simple, written};

/// `P` becomes the path of the marker.
const WORDS: &[&str] = &[
    r"\';touch P;\'",
    r"\'; touch P; \'",
    ";touch P;",
    "'; touch P; '",
    "\"; touch P; \"",
    "\n touch P\n",
    "`touch P`",
    "$(touch P)",
    "(touch P)",
    "<(touch P)",
    "|touch P|",
    "&touch P&",
    "%(touch P)",
    "{touch,P}",
    "!#:1",
    "!!",
    "^a^b^",
    "it's",
    r"a\b",
    r"\",
    r"\\",
    "''",
    "'",
    "#x",
    "~",
    "~root",
    "=ls",
    "*",
    "?",
    "[a-z]",
    "$HOME",
    "$0",
    "%self",
    "%1",
    "a=b",
    "-x",
    "--",
    "",
    " ",
    "  a  ",
    "\t",
    "\r",
    "\u{1b}[0m",
    "\u{7f}",
    "é",
    "日本",
    "if",
    "end",
    "and",
    ">P",
    "<P",
    "2>P",
    "\"",
    "a\"b",
    "@",
    "{",
    "}",
    "{}",
    "[[",
    "/**/",
];

#[test]
fn a_hostile_word_arrives_as_it_is_or_is_judged_as_a_shell_command() {
    let scene = Scene::new();
    let marker = scene.marker();
    let (mut arrived, mut judged_otherwise) = (0, 0);
    for word in WORDS {
        let word = word.replace('P', marker.to_str().unwrap());
        for (shell, kind) in SHELLS {
            for place in
                [&["show", &word, "last"][..], &["show", &word], &["show", "first", &word, &word]]
            {
                for kind in [RemoteShell::Unknown, kind] {
                    let Some((words, sent)) = simple(&written(place), kind) else {
                        assert_eq!(kind, RemoteShell::Unknown, "{word:?}");
                        judged_otherwise += 1;
                        continue;
                    };
                    assert_eq!(words, place);
                    assert_eq!(scene.told(shell, &sent), [&words[1..]], "{shell}: {sent}");
                    arrived += 1;
                }
            }
            assert!(!marker.exists(), "{shell} ran {word:?}");
        }
    }
    let left: Vec<_> = std::fs::read_dir(scene.work()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(arrived > 500 && judged_otherwise > 100, "{arrived}, {judged_otherwise}");
}

/// Why some characters are on the list: the marker does appear where they are quoted as POSIX has it.
#[test]
fn this_test_sees_what_it_looks_for() {
    let scene = Scene::new();
    let hostile = format!(r"\';touch {};\'", scene.marker().display());
    scene.run("fish", &written(&["show", &hostile]));
    assert!(scene.marker().exists(), "fish no longer runs it");
    assert_eq!(simple(&written(&["show", &hostile]), RemoteShell::Unknown), None);
    for (shell, word) in [("tcsh", "a!b\n"), ("fish", r"a\\b")] {
        let sent = written(&["show", word]);
        assert_ne!(scene.told(shell, &sent), [[word]], "{shell} now keeps {word:?}");
        assert_eq!(simple(&sent, RemoteShell::Unknown), None);
    }
}

/// Every word is quoted, the first too, and quotes keep an alias away. In fish an alias is a function, and
/// a function is found by its name before any program, as in all other shells.
#[test]
fn an_alias_is_no_program() {
    for (shell, kind) in SHELLS {
        let scene = Scene::new();
        let (_, sent) = simple("aliased a", kind).unwrap();
        assert_eq!(sent, "'aliased' 'a'");
        let told = scene.told(shell, &sent);
        if shell == "fish" {
            assert!(
                scene.marker().exists() && told.is_empty(),
                "fish no longer takes an alias for a function"
            );
        } else {
            assert_eq!(told, [["program", "a"]], "{shell}");
            assert!(!scene.marker().exists(), "{shell}");
        }
        // Without quotes the alias is there to be used, so that the test above can fail.
        if shell != "dash" && shell != "fish" {
            scene.run(shell, "aliased a\naliased a");
            assert!(scene.marker().exists(), "{shell} has no alias");
        }
    }
}

/// A first word that looks like anything but a program's name is one all the same.
#[test]
fn a_program_may_have_any_name() {
    const NAMES: &[&str] = &[
        "a b", ";x", "#x", "~", "~x", "$x", "$(x)", "`x`", "{a,b}", "*", "a*", "?", "[x]", "@",
        "@x", "^x^y", ",", "\"x\"", "<x", ">x", "|x", "&x", "(x)", ":x", "x:", "-x", "--", "+x",
        "..x", "0", "1>x", "]", "x.txt", "foreach_", "IF",
    ];
    let scene = Scene::new();
    for name in NAMES {
        scene.name_show(name);
        let (words, sent) = simple(&written(&[name, "a", "b c"]), RemoteShell::Unknown).unwrap();
        assert_eq!(words[0], *name);
        for (shell, _) in SHELLS {
            assert_eq!(scene.told(shell, &sent), [["a", "b c"]], "{shell}: {sent}");
        }
    }
    assert!(!scene.marker().exists());
    assert_eq!(std::fs::read_dir(scene.work()).unwrap().count(), 0);
}

/// A first word that some shell takes for a keyword, also in quotes, is none here.
#[test]
fn keywords_are_no_programs() {
    for name in [
        "and", "or", "not", "begin", "if", "while", "end", "switch", "time", "!", "foreach",
        "repeat", "-", "noglob",
    ] {
        assert_eq!(simple(&written(&[name, "show", "a"]), RemoteShell::Unknown), None, "{name}");
    }
    let scene = Scene::new();
    assert_eq!(
        scene.told("fish", "'not' 'show' 'a'"),
        [["a"]],
        "fish no longer takes quoted keywords"
    );
}
