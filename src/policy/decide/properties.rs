//! What must hold of every URL, path and pattern, tried with many made by a fixed sequence of chances.

use super::tests::{policy, verdict};
use crate::action::http::Url;
use crate::action::{percent, reading};
use crate::policy::path::{PathPattern, PathReadings, Segment};

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

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn join(&mut self, from: &[&str], most: usize) -> String {
        (0..self.below(most + 1)).map(|_| self.pick(from)).collect()
    }
}

const NASTY: &[&str] = &[
    "a",
    "B",
    "/",
    "//",
    ".",
    "..",
    ";",
    "?",
    "#",
    "@",
    ":",
    "\\",
    "%",
    "%2",
    "%2f",
    "%2F",
    "%2e",
    "%5c",
    "%25",
    "%00",
    "%0a",
    "%20",
    "%3B",
    "%3f",
    "%40",
    "%c3%a9",
    "%c0%ae",
    "%ff",
    "é",
    "\u{ff0f}",
    "\u{301}",
    "%EF%BC%8E",
    "+",
    "&",
    "=",
    "a=1",
    "[",
    "]",
    "::1",
    "443",
    ":80",
    "h.test",
    "http://",
    "https://",
    " ",
    "\t",
    "\r\n",
    "\0",
    "*",
    "**",
    "~",
    "_",
    "-",
    "'",
    "\"",
    "<",
    "`",
    "|",
    "{",
    "}",
    "^",
    "\u{202e}",
];

#[test]
fn an_accepted_url_is_what_its_parser_reads() {
    let mut chance = Chance(1);
    let mut accepted = 0;
    for _ in 0..40_000 {
        let scheme = chance.pick(&["https://", "HTTP://", "http://", "//", ""]);
        let host = chance.pick(&["h.test", "H.test", "h.test:443", "[::1]:80", "u@h", "", "h:0"]);
        let text =
            format!("{scheme}{host}{}{}", chance.pick(&["", "/", "/", "?"]), chance.join(NASTY, 6));
        let Ok(url) = Url::parse(&text) else { continue };
        accepted += 1;
        let written = url.uri.to_string();
        assert_eq!(Url::parse(&written).as_ref(), Ok(&url), "{text:?}: the canonical form is one");
        assert!(written.bytes().all(|byte| byte.is_ascii_graphic()), "{text:?}");
        assert!(!written.contains(['\\', '#']), "{text:?}");
        let authority = url.uri.authority().unwrap().as_str();
        assert!(!authority.contains('@'), "{text:?}");
        assert_eq!(
            written,
            format!("{}{}", url.origin, url.uri.path_and_query().unwrap()),
            "{text:?}"
        );
        assert_eq!(
            (url.uri.path(), url.uri.query()),
            (&*url.path, url.query.as_deref()),
            "{text:?}"
        );
        assert_one_reading(&url.path);
    }
    assert!(accepted > 2_000, "{accepted}");
}

/// Decoding a path once or twice, and taking its dots away, must lead nowhere else.
fn assert_one_reading(path: &str) {
    let once = percent::decoded(path);
    assert_eq!(percent::decoded(&once), once, "{path}");
    assert_eq!(once.matches('/').count(), path.matches('/').count(), "{path}");
    let segments: Vec<&str> = once.split('/').skip(1).collect();
    for (place, segment) in segments.iter().enumerate() {
        let stem = segment.split(';').next().unwrap_or_default();
        assert!(!matches!(stem, "." | ".."), "{path}");
        assert!(!stem.is_empty() || place + 1 == segments.len(), "{path}");
        assert!(!segment.contains(['\\', '\0', '\r', '\n']), "{path}");
    }
}

/// Ways in which the same segment is written for some server.
fn disguise(chance: &mut Chance, segment: &str) -> String {
    let mut written = segment.to_owned();
    for _ in 0..=chance.below(3) {
        written = match chance.below(10) {
            0 => written.to_uppercase(),
            1 => format!("{written};{}", chance.pick(&["", "a", "a=1", "a;b", "%20", ".json"])),
            2 => format!("{written}%3B{}", chance.pick(&["", "x"])),
            3 => format!("{written}{}", chance.pick(&[".", "%20", "..", ".%20", "%C2%A0"])),
            4 => format!("%20{written}"),
            5 => written.replacen('@', "%40", 1),
            6 => written.replacen('a', chance.pick(&["á", "%EF%BD%81", "a%CC%81", "A", "ａ"]), 1),
            7 => written.replacen('e', chance.pick(&["e%E2%80%8B", "%C3%89", "É", "e%C2%AD"]), 1),
            8 => written.replacen('s', chance.pick(&["ſ", "S", "%C5%BF"]), 1),
            _ => written.replacen(':', "%3A", 1),
        };
    }
    written
}

#[test]
fn no_spelling_leads_around_a_deny() {
    let policy = policy(
        r#""a": { "base_url": "https://h.test/", "rules": [
            { "decision": "allow", "methods": ["*"], "path": "/**" },
            { "decision": "deny", "methods": ["*"], "path": "/admin/**" },
            { "decision": "deny", "methods": ["*"], "path": "/u@me/*/keys" },
            { "decision": "deny", "methods": ["*"], "path": "/a/**/secrets:read/**" }
        ] }"#,
    );
    let mut chance = Chance(2);
    let (mut denied, mut refused) = (0, 0);
    for _ in 0..20_000 {
        let path = chance.pick(&[
            "admin",
            "admin/x",
            "u@me/1/keys",
            "a/secrets:read",
            "a/b/c/secrets:read/d",
        ]);
        let segments: Vec<String> = path.split('/').map(|one| disguise(&mut chance, one)).collect();
        let suffix = chance.pick(&["", "/", ".json", "?x=1", "/;x", "%3Fx", "%23"]);
        let url = format!("https://h.test/{}{suffix}", segments.join("/"));
        let found = verdict(&policy, "GET", &url, &[]);
        match found.split(':').next().unwrap_or_default() {
            "policy" => denied += 1,
            "ambiguous_url" => refused += 1,
            _ => panic!("{url}: {found}"),
        }
    }
    assert!(denied > 10_000, "{denied} denied, {refused} refused");
}

const SEGMENTS: &[&str] = &["a", "A", "b", "á", "a;x", "%20", "a.x", "é", "%3Fx", "a%40", "a@"];

fn some_pattern(chance: &mut Chance) -> PathPattern {
    let mut text = String::new();
    for _ in 0..=chance.below(4) {
        text.push('/');
        text.push_str(match chance.below(6) {
            0 | 1 => "**",
            2 => "*",
            _ => chance.pick(SEGMENTS),
        });
    }
    text.push_str(chance.pick(&["", "", "/"]));
    PathPattern::parse(&text).unwrap()
}

fn some_path(chance: &mut Chance) -> String {
    let mut path = String::new();
    for _ in 0..chance.below(5) {
        path.push('/');
        path.push_str(chance.pick(SEGMENTS));
    }
    path.push_str(chance.pick(&["", "/", "/;x"]));
    path
}

#[test]
fn a_pattern_that_covers_another_matches_wherever_that_one_does() {
    let mut chance = Chance(3);
    let mut tried = 0;
    for _ in 0..60_000 {
        let (wide, narrow) = (some_pattern(&mut chance), some_pattern(&mut chance));
        if !wide.covers(&narrow) {
            continue;
        }
        for _ in 0..8 {
            let path = some_path(&mut chance);
            let readings = PathReadings::of(&path);
            if narrow.fits_loosely(&readings) {
                tried += 1;
                assert!(wide.fits_loosely(&readings), "{} {} {path}", wide.text, narrow.text);
            }
        }
    }
    assert!(tried > 4_000, "{tried}");
}

/// The plainest reading of what a pattern means, in exponential time.
fn fits_plainly(pattern: &[Segment], path: &[&str]) -> bool {
    match pattern {
        [] => path.is_empty(),
        [Segment::Literal(text), rest @ ..] => {
            path.first() == Some(&text.as_str()) && fits_plainly(rest, &path[1..])
        }
        [Segment::One, rest @ ..] => {
            path.first().is_some_and(|text| !text.is_empty()) && fits_plainly(rest, &path[1..])
        }
        [Segment::Many, rest @ ..] => {
            (0..=path.len()).any(|taken| fits_plainly(rest, &path[taken..]))
        }
    }
}

#[test]
fn matching_means_what_it_plainly_means() {
    let mut chance = Chance(4);
    let mut fitting = 0;
    for _ in 0..40_000 {
        let pattern = some_pattern(&mut chance);
        let path = some_path(&mut chance);
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        let expected = fits_plainly(&pattern.segments, &segments);
        assert_eq!(pattern.fits(&PathReadings::of(&path)), expected, "{} {path}", pattern.text);
        fitting += usize::from(expected);
    }
    assert!(fitting > 2_000, "{fitting}");
}

#[test]
fn many_stars_take_no_longer() {
    let pattern = PathPattern::parse(&"/**/a".repeat(200)).unwrap();
    let path = "/a".repeat(199) + &"/b".repeat(4_000);
    let readings = PathReadings::of(&path);
    assert!(!pattern.fits(&readings) && !pattern.fits_loosely(&readings));
}

#[test]
fn folding_is_done_once() {
    let mut chance = Chance(5);
    for _ in 0..20_000 {
        let text = chance.join(NASTY, 5);
        let folded = reading::fold_characters(&text);
        assert_eq!(reading::fold_characters(&folded), folded, "{text:?}");
    }
}
