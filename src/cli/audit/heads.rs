//! Heads that were kept elsewhere, as a file holds them: one a line, as many as were collected.
//!
//! Invariant: no remedy has anybody write to that file: it is what the record is held against.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use crate::audit::SignedHead;
use crate::cli::cells::counted;
use crate::cli::{Exit, print};
use crate::limits;

/// Reads the heads of a file in their order, at least one. Lines that are none are counted, and told.
pub(super) fn read(path: &Path) -> Result<Vec<SignedHead>, Exit> {
    let shown = path.display();
    let refuse = |what: &str, remedy: &str| {
        Err(print::trouble(&format!("{shown}: {what}"), remedy, Exit::Usage))
    };
    let text = match text_of(path) {
        Ok(text) => text,
        Err(fault) => {
            return refuse(&fault.to_string(), "the file in which a witness, or you, keep heads");
        }
    };
    if text.len() as u64 > limits::HEADS_BYTES {
        let what = format!("it is longer than {} bytes", limits::HEADS_BYTES);
        return refuse(&what, "its last lines alone: tail -n 100000, into another file");
    }
    let (mut heads, mut others) = (Vec::new(), 0);
    for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
        match std::str::from_utf8(line).ok().and_then(SignedHead::parse) {
            Some(head) if head.is_signed() => heads.push(head),
            Some(_) => {
                let what = format!(
                    "line {number}: this head was changed: the key that it names did not sign it"
                );
                return refuse(&what, "another copy of it; leave this one as it is");
            }
            None => others += u64::from(!line.trim_ascii().is_empty()),
        }
    }
    if heads.is_empty() {
        let remedy = "the file in which a witness, or you, keep heads; leave this one as it is";
        return refuse("it holds no head that is signed", remedy);
    }
    if others > 0 {
        let verb = if others == 1 { "is no head" } else { "are no heads" };
        print::aside(&format!(
            "keyward: {shown}: {} {verb}, and passed over; {} read",
            counted(others, "line"),
            counted(heads.len() as u64, "head")
        ));
    }
    Ok(heads)
}

fn text_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(limits::HEADS_BYTES + 1).read_to_end(&mut text)?;
    Ok(text)
}
