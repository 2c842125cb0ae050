//! Generated commands.

use keyward::action::command::RemoteShell;

use crate::scene::{SHELLS, Scene, simple};

/// Pieces of words: what shells act on, and what they leave alone.
const PIECES: &[&str] = &[
    "a", "b", "-", "--x=", "+", "/", "..", ".", " ", "  ", "$", "$a", "${a}", "$(id)", "`id`", "*",
    "?", "[a]", "{a,b}", "{1..3}", "~", "=", ":", ";", "&", "|", "<", ">", "(", ")", "#", "%", "^",
    "@", ",", "\"", "_", "0", "A", "if", "]", "}", "{",
];
/// Those that not every shell keeps.
const ODD_PIECES: &[&str] =
    &["'", "\\", "!", "\t", "\n", "é", "\u{1}", "!!", "\\'", "''", "日", "\u{7f}"];

/// Commands of one run.
const TOGETHER: usize = 50;
const RUNS: usize = 30;

/// A xorshift generator: the same commands each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % count as u64).unwrap()
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn word(&mut self, odd: bool) -> String {
        let count = self.below(6);
        let mut piece = || {
            if odd && self.below(4) == 0 { self.one(ODD_PIECES) } else { self.one(PIECES) }
        };
        (0..count).map(|_| piece()).collect()
    }

    fn words(&mut self, odd: bool) -> Vec<String> {
        let count = self.below(5);
        let words: Vec<String> = (0..count).map(|_| self.word(odd)).collect();
        [vec!["show".to_owned()], words].concat()
    }

    /// A text that means these words, with one quoting or another.
    fn written(&mut self, words: &[String]) -> String {
        let mut text = String::new();
        for word in words {
            text += self.one(&[" ", "  ", "\t"]);
            if word.is_empty() {
                text += self.one(&["''", "\"\""]);
            }
            for character in word.chars() {
                let kind = self.below(4);
                text += &match (kind, character) {
                    (0, _) if character.is_ascii_alphanumeric() => character.to_string(),
                    (1, _) if character != '\n' => format!("\\{character}"),
                    (2, '$' | '`' | '"' | '\\') => format!("\"\\{character}\""),
                    (2, _) => format!("\"{character}\""),
                    (_, '\'') => "\"'\"".into(),
                    (_, _) => format!("'{character}'"),
                };
            }
        }
        text
    }
}

/// Words through all five shells; odd ones through those that are POSIX shells.
#[test]
fn the_words_that_arrive_are_the_words_that_were_judged() {
    let scene = Scene::new();
    for (shell, kind) in SHELLS {
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
        for run in 0..RUNS {
            let (mut expected, mut texts) = (Vec::new(), Vec::new());
            while texts.len() < TOGETHER {
                let meant = dice.words(kind == RemoteShell::Posix);
                let text = dice.written(&meant);
                let Some((words, sent)) = simple(&text, kind) else {
                    panic!("a shell command: {text:?}");
                };
                assert_eq!(words, meant, "{text:?}");
                expected.push(words[1..].to_vec());
                texts.push(sent);
            }
            // Some by themselves, as they are sent.
            if run == 0 {
                for (text, words) in texts.iter().zip(&expected) {
                    assert_eq!(
                        scene.told(shell, text),
                        std::slice::from_ref(words),
                        "{shell}: {text}"
                    );
                }
            }
            let told = scene.told(shell, &texts.join("\n"));
            for (text, (told, expected)) in texts.iter().zip(told.iter().zip(&expected)) {
                assert_eq!(told, expected, "{shell}: {text}");
            }
            assert_eq!(told.len(), expected.len(), "{shell}");
        }
    }
    assert!(!scene.marker().exists());
}

/// Any text that is judged to be a simple command is read by POSIX shells as these very words.
#[test]
fn a_simple_command_is_what_posix_shells_read() {
    const BETWEEN: &[&str] = &[" ", " ", "'", "\"", "\\", "a"];
    let scene = Scene::new();
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let mut others = 0;
    for _ in 0..RUNS {
        let (mut expected, mut texts) = (Vec::new(), Vec::new());
        while texts.len() < TOGETHER {
            let mut text = String::from("show ");
            for _ in 0..dice.below(8) {
                text += dice.one(BETWEEN);
                let pieces = if dice.below(3) == 0 { ODD_PIECES } else { PIECES };
                text += dice.one(pieces);
            }
            match simple(&text, RemoteShell::Posix) {
                Some((words, _)) => {
                    expected.push(words[1..].to_vec());
                    texts.push(text);
                }
                None => others += 1,
            }
        }
        for shell in ["dash", "bash"] {
            let told = scene.told(shell, &texts.join("\n"));
            for (text, (told, expected)) in texts.iter().zip(told.iter().zip(&expected)) {
                assert_eq!(told, expected, "{shell}: {text:?}");
            }
            assert_eq!(told.len(), expected.len(), "{shell}");
        }
    }
    assert!(others > 1000, "{others}");
    assert_eq!(std::fs::read_dir(scene.work()).unwrap().count(), 0);
}
