//! What must hold of every pattern and every command, tried with many made by a fixed sequence of chances.

use super::ArgvPattern;
use crate::action::ssh::RemotePath;
use crate::policy::remote_files::FilePattern;

/// A sequence of chances that is the same in every run (xorshift64*).
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(high).unwrap() % bound
    }

    fn join(&mut self, from: &[&str], most: usize) -> String {
        (0..self.below(most + 1)).map(|_| from[self.below(from.len())]).collect()
    }

    fn list(&mut self, from: &[&str]) -> Vec<String> {
        (0..=self.below(3)).map(|_| self.join(from, 3)).collect()
    }
}

const PIECES: &[&str] = &["a", "A", "b", "/", "..", ".", "-", "+", "=", ""];
const PATTERNS: &[&str] = &["a", "A", "b", "/", "..", "-", "*", "*", ""];

#[test]
fn what_permits_is_never_wider_than_what_restricts() {
    let mut chance = Chance(1);
    let (mut fitting, mut covering) = (0, 0);
    while fitting < 3000 {
        let mut texts = chance.list(PATTERNS);
        if chance.below(3) == 0 {
            texts.push("**".into());
        }
        let Ok(pattern) = ArgvPattern::parse(&texts) else { continue };
        let Ok(other) = ArgvPattern::parse(&chance.list(PATTERNS)) else { continue };
        let words = chance.list(PIECES);
        let options = chance.below(2) == 0;
        if pattern.fits(&words, options).is_err() {
            continue;
        }
        fitting += 1;
        assert!(pattern.fits_loosely(&words), "{pattern:?} {words:?}");
        assert!(pattern.covers(&pattern), "{pattern:?}");
        assert!(pattern.fits(&words, true).is_ok(), "options only widen: {pattern:?} {words:?}");
        if other.covers(&pattern) {
            covering += 1;
            assert!(other.fits_loosely(&words), "{other:?} covers {pattern:?}, not {words:?}");
        }
    }
    assert!(covering > 100, "{covering}");
}

#[test]
fn no_wildcard_makes_an_option_or_leads_to_a_parent_folder() {
    let mut chance = Chance(2);
    let mut fitting = 0;
    while fitting < 3000 {
        let texts = chance.list(PATTERNS);
        let Ok(pattern) = ArgvPattern::parse(&texts) else { continue };
        let words = chance.list(PIECES);
        if pattern.fits(&words, false).is_err() {
            continue;
        }
        fitting += 1;
        for (word, text) in words.iter().zip(&texts) {
            if text.contains('*') {
                assert!(!word.split('/').any(|part| part == ".."), "{texts:?} {words:?}");
                let spelt = text.starts_with(['-', '+']);
                assert!(spelt || !word.starts_with(['-', '+']), "{texts:?} {words:?}");
            } else {
                assert_eq!(word, text);
            }
            if text.contains('*') && text != "*" && text != "**" {
                let slashes = |text: &str| text.matches('/').count();
                assert_eq!(slashes(word), slashes(text), "{texts:?} {words:?}");
            }
        }
    }
}

#[test]
fn the_same_holds_of_files() {
    let mut chance = Chance(3);
    let (mut fitting, mut covering) = (0, 0);
    while fitting < 3000 {
        let text = |chance: &mut Chance| {
            format!("/{}", chance.join(&["a", "A", "b", "/", "/", "*", "**"], 6))
        };
        let Ok(pattern) = FilePattern::parse(&text(&mut chance)) else { continue };
        let Ok(other) = FilePattern::parse(&text(&mut chance)) else { continue };
        let path = format!("/{}", chance.join(&["a", "A", "b", "/", ".."], 5));
        let Ok(path) = RemotePath::parse(&path) else { continue };
        if !pattern.fits(&path) {
            continue;
        }
        fitting += 1;
        assert!(pattern.fits_loosely(&path) && pattern.covers(&pattern), "{pattern:?} {path:?}");
        if other.covers(&pattern) {
            covering += 1;
            assert!(other.fits_loosely(&path), "{other:?} covers {pattern:?}, not {path:?}");
        }
    }
    assert!(covering > 100, "{covering}");
}
