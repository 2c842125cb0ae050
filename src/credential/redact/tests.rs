//! What is redacted, however it is written and split.

use super::*;
use crate::policy::config::CredentialKind;
use crate::secret::Secret;

fn redactor(values: &[&str]) -> Redactor {
    let names: Vec<Name> =
        (0..values.len()).map(|place| Name::parse(&format!("k{place}")).unwrap()).collect();
    let forms =
        |value: &&str| Forms::new(&CredentialKind::Bearer, &Secret::new(value.as_bytes().to_vec()));
    let credentials: Vec<(&Name, Forms)> = names.iter().zip(values.iter().map(forms)).collect();
    Redactor::new(&credentials)
}

fn run(redactor: &Redactor, pieces: &[&[u8]], edge: Edge) -> (String, u64) {
    let mut out = Vec::new();
    let mut stream = redactor.stream();
    for piece in pieces {
        stream.push(piece, &mut out);
    }
    let count = stream.finish(edge, &mut out);
    (String::from_utf8_lossy(&out).into_owned(), count)
}

/// Runs a text whole, split in two at every place, in three at every pair of places, and byte by byte.
fn every_way(redactor: &Redactor, text: &str, edge: Edge) -> (String, u64) {
    let bytes = text.as_bytes();
    let whole = run(redactor, &[bytes], edge);
    for first in 0..=bytes.len() {
        let (a, rest) = bytes.split_at(first);
        for second in 0..=rest.len() {
            let (b, c) = rest.split_at(second);
            assert_eq!(run(redactor, &[a, b, c], edge), whole, "{text} {first} {second}");
        }
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(run(redactor, &single, edge), whole, "{text}");
    whole
}

#[test]
fn every_form_however_it_is_split() {
    let secret = "s3cr/t+v=";
    for (text, expected, count) in [
        ("nothing here", "nothing here", 0),
        ("s3cr/t+v=", "[redacted:k0]", 1),
        ("a s3cr/t+v= b", "a [redacted:k0] b", 1),
        ("s3cr/t+v=s3cr/t+v=", "[redacted:k0][redacted:k0]", 2),
        ("s3cs3cr/t+v=cr/t", "s3c[redacted:k0]cr/t", 1),
        ("s3cr/t+v", "s3cr/t+v", 0),
        ("x s3cr%2Ft%2Bv%3D y", "x [redacted:k0] y", 1),
        ("%733cr%2ft%2bv=", "[redacted:k0]", 1),
        ("%s3cr/t+v=%7", "%[redacted:k0]%7", 1),
        (r#"{"a":"s3cr\/t+v="}"#, r#"{"a":"[redacted:k0]"}"#, 1),
        (r"\u00733cr\u002Ft\u002bv\u003d", "[redacted:k0]", 1),
        (r"s3cr\/t%2Bv\u003d", "[redacted:k0]", 1),
        (r"s3cr%5C%2Ft%2Bv%3D", "[redacted:k0]", 1),
        (r"\\u0073\u0033cr\\\/t+v=", r"[redacted:k0]", 1),
        ("s3cr%252Ft%252Bv%253D", "[redacted:k0]", 1),
        ("czNjci90K3Y9", "[redacted:k0]", 1),
        ("aHMzY3IvdCt2PWg=", "aH[redacted:k0]Wg=", 1),
        ("xczNjci90K3Y9", "x[redacted:k0]", 1),
        ("czNjci90K3Y9 s3cr/t+v= czNjci90K3Y9", "[redacted:k0] [redacted:k0] [redacted:k0]", 3),
    ] {
        let found = every_way(&redactor(&[secret]), text, Edge::Whole);
        assert_eq!(found, (expected.to_owned(), count), "{text}");
    }
}

#[test]
fn self_similar_values_are_covered_as_a_whole() {
    let redactor = redactor(&["aaaaaaaa"]);
    for length in 0..40 {
        let (text, count) = every_way(&redactor, &"a".repeat(length), Edge::Whole);
        let expected = if length < 8 { "a".repeat(length) } else { "[redacted:k0]".into() };
        assert_eq!((text, count), (expected, u64::from(length >= 8)));
    }
    let (text, _) = every_way(&redactor, "baaaaaaaaab%61aaaaaaaaab", Edge::Whole);
    assert_eq!(text, "b[redacted:k0]b[redacted:k0]b");
    let periodic = super::tests::redactor(&["abcabcab"]);
    let (text, count) = every_way(&periodic, "xabcabcabcabcabx abcabca", Edge::Whole);
    assert_eq!((text.as_str(), count), ("x[redacted:k0]x abcabca", 1));
}

#[test]
fn one_value_may_begin_another() {
    let redactor = redactor(&["token", "token-long", "n-long-tail"]);
    for (text, expected) in [
        ("token", "[redacted:k0]"),
        ("token-lon", "[redacted:k0]-lon"),
        ("token-long", "[redacted:k1]"),
        ("token-long-tail", "[redacted:k1]"),
        ("token token-long", "[redacted:k0] [redacted:k1]"),
        ("tokentoken-long", "[redacted:k0][redacted:k1]"),
    ] {
        // Where two begin at one place, either name tells the truth; the region is what counts.
        let (found, _) = every_way(&redactor, text, Edge::Whole);
        assert_eq!(found.replace("k1", "k0"), expected.replace("k1", "k0"), "{text}");
    }
}

#[test]
fn a_blank_may_come_as_plus() {
    let redactor = redactor(&["pass word+1"]);
    for text in ["pass word+1", "pass+word%2B1", "pass%20word%2b1", r"pass+word%2B\u0031"] {
        let found = every_way(&redactor, text, Edge::Whole);
        assert_eq!(found, ("[redacted:k0]".into(), 1), "{text}");
    }
}

#[test]
fn beyond_ascii() {
    let redactor = redactor(&["pä😀ßword"]);
    for text in ["pä😀ßword", r"p\u00e4\ud83d\ude00\u00DFword", "p%C3%A4%F0%9f%98%80%C3%9Fword"]
    {
        let found = every_way(&redactor, text, Edge::Whole);
        assert_eq!(found, ("[redacted:k0]".into(), 1), "{text}");
    }
}

#[test]
fn at_a_cut_edge_a_part_goes_too() {
    let secret = "s3cr/t+v=X9";
    let redactor = redactor(&[secret]);
    for text in [
        format!("a {secret} b"),
        "x s3cr%2Ft%2Bv%3DX9".into(),
        r"x \u0073\u0033\u0063\u0072\/t\u002bv\u003dX9".into(),
        "x s3cr%252Ft%252Bv%253DX9".into(),
        "x czNjci90K3Y9WDk".into(),
    ] {
        for cut in 0..=text.len() {
            let (found, _) = every_way(&redactor, &text[..cut], Edge::Cut);
            for part in secret.as_bytes().windows(limits::REDACTED_MIN_BYTES) {
                let part = std::str::from_utf8(part).unwrap();
                assert!(!found.contains(part), "{found}");
            }
            for part in ["czNj", "Njci", "90K3", r"\u0073\u0033\u0063\u0072", "cr%2F"] {
                assert!(!found.contains(part), "{found}");
            }
        }
    }
    assert_eq!(every_way(&redactor, "x s3c", Edge::Cut), ("x s3c".into(), 0));
    assert_eq!(every_way(&redactor, "x s3cr", Edge::Cut), ("x [redacted:k0]".into(), 1));
    assert_eq!(every_way(&redactor, "x s3cr", Edge::Whole), ("x s3cr".into(), 0));
    assert_eq!(every_way(&redactor, "s3cr%2", Edge::Cut), ("[redacted:k0]".into(), 1));
}

#[test]
fn short_values_and_none_pass() {
    assert_eq!(every_way(&redactor(&["abc"]), "abc abc", Edge::Cut), ("abc abc".into(), 0));
    assert_eq!(every_way(&Redactor::none(), "anything%20", Edge::Cut), ("anything%20".into(), 0));
    assert_eq!(Redactor::none().redact_whole(b"x"), (b"x".to_vec(), 0));
}

#[test]
fn what_is_held_back_is_bounded() {
    let redactor = redactor(&["aaaaaaaaaaaaaaab"]);
    let mut stream = redactor.stream();
    let mut out = Vec::new();
    for text in ["a", "%61", r"\u0061", r"\u0025\u0036\u0031", "%", r"\", "%25", r"\\"] {
        for _ in 0..1000 {
            stream.push(text.as_bytes(), &mut out);
            assert!(stream.held.len() < 32 * 18, "{text}");
        }
    }
}

/// Every text of these pieces that is short enough, against a search that knows nothing of streams.
#[test]
fn agrees_with_a_plain_search() {
    let redactor = redactor(&["abab"]);
    // A percent sign of its own is left out: before `ab` it makes another byte of them.
    let pieces = ["a", "b", "%61", r"\u0062", "-"];
    for number in 0..5usize.pow(6) {
        let chosen = (0..6).map(|place| pieces[number / 5usize.pow(place) % 5]);
        let text: String = chosen.collect();
        let (found, _) = run(&redactor, &[text.as_bytes()], Edge::Whole);
        let plain = text.replace("%61", "a").replace(r"\u0062", "b");
        let kept: String = found.split("[redacted:k0]").collect();
        let left = kept.replace("%61", "a").replace(r"\u0062", "b");
        assert_eq!(found.contains("[redacted"), plain.contains("abab"), "{text} {found}");
        assert!(!left.contains("abab") || plain.contains("abab"), "{text} {found}");
        let covered = plain.len() - left.len();
        assert_eq!(covered, covered_by(&plain, "abab"), "{text} {found}");
    }
}

fn covered_by(text: &str, word: &str) -> usize {
    let mut covered = vec![false; text.len()];
    for start in 0..text.len() {
        if text[start..].starts_with(word) {
            covered[start..start + word.len()].fill(true);
        }
    }
    covered.into_iter().filter(|&covered| covered).count()
}

/// Every text of these pieces, in which escapes run into each other, whole and byte by byte: only the whole
/// goes by the short cuts, of which none may change anything.
#[test]
fn short_cuts_change_nothing() {
    for secret in ["/%2u", "a\\b%", "%%%%", "25/u"] {
        let redactor = redactor(&[secret]);
        let pieces = ["%", "2", "\\", "/", "u", "5", "%25", "\\\\", "\\u0025", "a", "b"];
        for number in 0..pieces.len().pow(4) {
            let chosen =
                (0..4).map(|place| pieces[number / pieces.len().pow(place) % pieces.len()]);
            let text: String = chosen.collect();
            let whole = run(&redactor, &[text.as_bytes()], Edge::Whole);
            let single: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(run(&redactor, &single, Edge::Whole), whole, "{secret} {text}");
        }
    }
}

/// Run with `cargo test --release -- --ignored --nocapture throughput`.
#[test]
#[ignore = "a measurement, which says something in a release build only"]
#[expect(clippy::print_stderr, reason = "it prints what it measured")]
fn throughput() {
    let redactor = redactor(&["ghp_1bZ9kQ3nV7xR2mT8cW5yL0aS6dF4gH1jK9pE"]);
    let random = |alphabet: &'static [u8]| {
        let mut seed = 1u64;
        move || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            alphabet[(seed >> 33) as usize % alphabet.len()]
        }
    };
    let base64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut noise = random(base64);
    let words = r#"{"id":1296269,"name":"Hello-World","url":"https:\/\/api.example.test\/x%20y"},"#;
    for (name, text) in [
        ("json", words.repeat(1 << 17).into_bytes()),
        ("base64", (0..10 << 20).map(|_| noise()).collect()),
        ("binary", (0..10u32 << 20).map(|at| (at.wrapping_mul(2654435761) >> 24) as u8).collect()),
    ] {
        let mut out = Vec::with_capacity(text.len());
        let begun = std::time::Instant::now();
        let mut stream = redactor.stream();
        for piece in text.chunks(16 * 1024) {
            stream.push(piece, &mut out);
        }
        stream.finish(Edge::Whole, &mut out);
        let rate = text.len() as f64 / begun.elapsed().as_secs_f64() / 1e6;
        let begun = std::time::Instant::now();
        for _ in 0..100 {
            super::tests::redactor(&["ghp_1bZ9kQ3nV7xR2mT8cW5yL0aS6dF4gH1jK9pE"]);
        }
        eprintln!("{name}: {rate:.0} MB/s; built in {:?}", begun.elapsed() / 100);
        assert!(rate > 100.0);
    }
}
