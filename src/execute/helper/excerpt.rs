//! What is shown of a helper's stderr: to the agent, and on our own stderr.
//!
//! Invariant: it is labelled, shorter than its bound with every note included, and holds no control byte
//! but line feeds; bytes that are no text are replaced here only.

use std::fmt::Write as _;

use crate::child::Stderr;
use crate::limits;
use crate::name::CallId;
use crate::state::Kept;
use crate::wire::write::is_unseen;

/// What marks such lines in the log: nothing else is logged here.
pub const CAPTURED: &str = module_path!();

/// The end of what was kept, in at most `max_bytes`; `None` where nothing was printed or nothing may be shown.
pub(super) fn excerpt(stderr: &Stderr, max_bytes: usize) -> Option<String> {
    if stderr.seen_bytes == 0 {
        return None;
    }
    let mut front = String::from("[captured stderr]\n");
    front += &ring_note(stderr);
    let (head, tail) = stderr.kept.split_at(stderr.head_bytes.min(stderr.kept.len()));
    let text = match stderr.kept_how {
        Kept::HeadAndTail => {
            let dropped = stderr.redacted_bytes.saturating_sub(stderr.kept.len() as u64);
            format!("{}\n[{dropped} bytes left out]\n{}", shown(head), shown(tail))
        }
        Kept::All | Kept::Tail | Kept::Head => shown(&stderr.kept),
    };
    let room = max_bytes.checked_sub(front.len())?;
    if text.len() <= room {
        return Some(front + &text);
    }
    let note =
        |count: usize| format!("[stderr excerpt: last {count} of {} bytes as shown]\n", text.len());
    let room = room.checked_sub(note(text.len()).len())?;
    let end = &text[text.ceil_char_boundary(text.len() - room)..];
    Some(front + &note(end.len()) + end)
}

fn ring_note(stderr: &Stderr) -> String {
    let (kept, seen) = (stderr.kept.len(), stderr.redacted_bytes);
    let mut note = match stderr.kept_how {
        Kept::All => String::new(),
        Kept::Tail => format!("[stderr truncated: kept last {kept} of {seen} bytes]\n"),
        Kept::Head => format!("[stderr truncated: kept first {kept} of {seen} bytes]\n"),
        Kept::HeadAndTail => {
            let (head, tail) = (stderr.head_bytes, kept - stderr.head_bytes.min(kept));
            format!("[stderr truncated: kept first {head} and last {tail} of {seen} bytes]\n")
        }
    };
    if stderr.granted_bytes < stderr.wanted_bytes {
        let (granted, wanted) = (stderr.granted_bytes, stderr.wanted_bytes);
        // Writing to a string cannot fail.
        writeln!(
            note,
            "[stderr budget: {granted} of {wanted} bytes were left for this call, others held the rest]"
        )
        .ok();
    }
    note
}

/// Text with what cannot be seen escaped, but for line feeds and tabs; what is not UTF-8 is replaced.
fn shown(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for character in String::from_utf8_lossy(bytes).chars() {
        if is_unseen(character) && !matches!(character, '\n' | '\t') {
            text.extend(character.escape_default());
        } else {
            text.push(character);
        }
    }
    text
}

/// Puts the same on our own stderr, a line of the log for each of its lines, labelled by the call.
pub(super) fn log(call: CallId, stderr: &Stderr, max_bytes: usize) {
    let Some(text) = excerpt(stderr, max_bytes) else { return };
    // Each line is labelled there by itself.
    let lines = text.lines().skip(1).flat_map(pieces);
    let labelled = lines.map(|line| format!("{call} stderr: {line}"));
    let send = |block: &str| log::warn!(target: CAPTURED, "{block}");
    let last = labelled.fold(String::new(), |mut block, line| {
        if block.len() + line.len() >= limits::LOG_BLOCK_BYTES {
            send(&block);
            block.clear();
        }
        if !block.is_empty() {
            block.push('\n');
        }
        block + &line
    });
    if !last.is_empty() {
        send(&last);
    }
}

/// A line in pieces that the log does not cut.
fn pieces(mut line: &str) -> Vec<&str> {
    const LABEL_BYTES: usize = 128;
    let mut pieces = Vec::new();
    while !line.is_empty() {
        let (piece, rest) =
            line.split_at(line.floor_char_boundary(limits::LOG_LINE_BYTES - LABEL_BYTES));
        pieces.push(piece);
        line = rest;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stderr(kept: &[u8], seen_bytes: u64, kept_how: Kept) -> Stderr {
        Stderr {
            kept: kept.to_vec(),
            head_bytes: if kept_how == Kept::HeadAndTail { 2 } else { 0 },
            seen_bytes,
            redacted_bytes: seen_bytes,
            kept_how,
            truncated: kept_how != Kept::All,
            redactions: 0,
            granted_bytes: 16,
            wanted_bytes: 16,
        }
    }

    #[test]
    fn every_cut_states_its_own_numbers() {
        for (kept, seen, how, expected) in [
            ("ab\n", 3, Kept::All, "ab\n"),
            ("ab", 9, Kept::Tail, "[stderr truncated: kept last 2 of 9 bytes]\nab"),
            ("ab", 9, Kept::Head, "[stderr truncated: kept first 2 of 9 bytes]\nab"),
            (
                "abcd",
                9,
                Kept::HeadAndTail,
                "[stderr truncated: kept first 2 and last 2 of 9 bytes]\nab\n[5 bytes left out]\ncd",
            ),
        ] {
            let text = excerpt(&stderr(kept.as_bytes(), seen, how), 4096).unwrap();
            assert_eq!(text, format!("[captured stderr]\n{expected}"));
        }
        let mut short = stderr(b"ab", 9, Kept::Tail);
        short.granted_bytes = 2;
        assert!(excerpt(&short, 4096).unwrap().contains("budget: 2 of 16 bytes"), "{short:?}");
        assert_eq!(excerpt(&stderr(b"", 0, Kept::All), 4096), None);
    }

    #[test]
    fn it_never_passes_its_bound_and_escapes_what_a_terminal_would_obey() {
        let bytes = b"\x1b]0;x\x07\xff\xfe\xc3\xa9\x00\xe2\x80\xa8\r\n".repeat(200);
        for max_bytes in 0..600 {
            let Some(text) = excerpt(&stderr(&bytes, 90_000, Kept::Tail), max_bytes) else {
                assert!(max_bytes < 180, "{max_bytes}");
                continue;
            };
            assert!(text.len() <= max_bytes, "{max_bytes}: {}", text.len());
            let held = |character: char| character.is_control() && character != '\n';
            assert!(!text.contains(held) && !text.contains('\u{2028}'), "{text:?}");
        }
        let text = excerpt(&stderr(&bytes[..19], 19, Kept::All), 4096).unwrap();
        assert_eq!(
            text,
            "[captured stderr]\n\\u{1b}]0;x\\u{7}\u{fffd}\u{fffd}é\\u{0}\\u{2028}\\r\n\\u{1b}]0"
        );
    }
}
