//! H11: what is packed is unpacked behind the cap, or withheld.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use keyward::execute::{BodyEnd, End, Observation};
use keyward::state::Outcome;

use crate::call::{CANARY, Target, response, text};
use crate::server::{Server, answer};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn raw_deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn get(coding: &str, body: &[u8], cap: usize) -> Observation {
    let server = Server::answering(answer(200, &[("content-encoding", coding)], body));
    let target = Target::new(&server.http()).with_canary();
    let seen = target.call("GET", "").reading(cap).run();
    assert_eq!(seen.end, End::Completed(Outcome::Success), "{seen:?}");
    assert!(server.requests()[0].values("accept-encoding").is_empty());
    seen
}

#[test]
fn known_packings() {
    let text_ = b"packed text, packed text".as_slice();
    let two_members = [gzip(b"packed text, "), gzip(b"packed text")].concat();
    for (coding, body) in [
        ("gzip", gzip(text_)),
        ("GZIP", gzip(text_)),
        ("x-gzip", gzip(text_)),
        ("gzip", two_members),
        ("deflate", deflate(text_)),
        ("identity", text_.to_vec()),
        ("", text_.to_vec()),
        ("gzip, gzip", gzip(&gzip(text_))),
        ("deflate, gzip", gzip(&deflate(text_))),
        ("gzip, deflate", deflate(&gzip(text_))),
        ("gzip, identity, gzip,deflate , gzip", gzip(&deflate(&gzip(&gzip(text_))))),
    ] {
        let seen = get(coding, &body, 1000);
        assert_eq!(text(&seen).as_bytes(), text_, "{coding}");
        // They would be those of the packed bytes, which nobody sees.
        let unpacked = !matches!(coding, "" | "identity");
        let hidden = response(&seen).headers.is_empty();
        assert_eq!(hidden, unpacked, "{coding}");
        assert_eq!(response(&seen).body_end, BodyEnd::Whole, "{coding}");
    }
}

#[test]
fn an_empty_body_is_empty_in_any_packing() {
    for coding in ["gzip", "deflate", "br", "gzip, br"] {
        let seen = get(coding, b"", 1000);
        assert_eq!((text(&seen).as_str(), response(&seen).body_end), ("", BodyEnd::Whole));
    }
}

#[test]
fn what_cannot_be_looked_into_is_withheld() {
    let canary = CANARY.as_bytes();
    let mut damaged = gzip(canary);
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0xFF;
    for (coding, body) in [
        ("br", canary.to_vec()),
        ("zstd", canary.to_vec()),
        ("compress", canary.to_vec()),
        ("gzip, br", canary.to_vec()),
        ("nonsense", canary.to_vec()),
        ("gzip, gzip, gzip, gzip, gzip", gzip(canary)),
        ("gzip", canary.to_vec()),
        ("gzip", damaged),
        ("deflate", canary.to_vec()),
        ("deflate", raw_deflate(canary)),
        ("deflate", gzip(canary)),
    ] {
        let seen = get(coding, &body, 1000);
        let found = response(&seen);
        assert_eq!(
            (found.body.as_slice(), found.body_end),
            (&b""[..], BodyEnd::Withheld),
            "{coding}"
        );
    }
}

#[test]
fn what_ends_too_early_is_not_proven() {
    let whole = gzip(b"some text that is long enough to be cut, and then some more of it");
    let seen = get("gzip", &whole[..whole.len() - 8], 1000);
    assert_eq!(response(&seen).body_end, BodyEnd::NotProven);
    assert!(text(&seen).starts_with("some text"));
}

#[test]
fn bombs_are_cut_at_the_cap() {
    let zeros = vec![0; 10 << 20];
    let bomb = gzip(&zeros);
    assert!(bomb.len() < 11 << 10);
    for (coding, body) in [("gzip", bomb.clone()), ("gzip, gzip", gzip(&bomb))] {
        let seen = get(coding, &body, 1 << 20);
        assert_eq!(response(&seen).body.len(), 1 << 20);
        assert_eq!(response(&seen).body_end, BodyEnd::CutAtCap);
    }
    let seen = get("gzip", &bomb, 10 << 20);
    assert_eq!((response(&seen).body.len(), response(&seen).body_end), (10 << 20, BodyEnd::Whole));
}

#[test]
fn a_credential_is_found_inside() {
    let body = format!("before {CANARY} after").repeat(60);
    let seen = get("gzip", &gzip(body.as_bytes()), 1 << 20);
    assert_eq!(text(&seen), "before [redacted:the-key] after".repeat(60));
    assert_eq!(response(&seen).redactions, 60);
}
