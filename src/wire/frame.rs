//! Frames: what stands between two line feeds, as text.
//!
//! Owns the first two stages of the wire, bytes to lines and lines to UTF-8. No I/O.
//!
//! Invariant: the verdict on a frame depends on its bytes only, never on how they arrived.

use std::{fmt, mem};

use memchr::memchr;

use crate::large;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// One line as it came, without its line feed: UTF-8, not blank, no NUL, no byte order mark first.
///
/// Bound: the `max_bytes` of the [`Splitter`] that made it.
#[derive(Clone, PartialEq, Eq)]
pub struct Frame(String);

/// Why a line is no frame. The stream is not read again after one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameFault {
    /// Longer than the limit.
    TooLong,
    /// Not UTF-8.
    NotUtf8,
    /// A byte order mark at its start.
    Bom,
    /// A NUL somewhere.
    Nul,
    /// Nothing, or blanks only.
    Blank,
    /// The input ended before the line did.
    Unterminated,
}

impl Frame {
    /// Checks one whole line, given without its line feed.
    ///
    /// # Errors
    /// Every [`FrameFault`] but those of length and end, which are the splitter's.
    pub fn parse(line: Vec<u8>) -> Result<Self, FrameFault> {
        Self::parse_or_return(line).map_err(|(fault, _)| fault)
    }

    fn parse_or_return(line: Vec<u8>) -> Result<Self, (FrameFault, Vec<u8>)> {
        if line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r')) {
            return Err((FrameFault::Blank, line));
        }
        if line.starts_with(BYTE_ORDER_MARK) {
            return Err((FrameFault::Bom, line));
        }
        if memchr(0, &line).is_some() {
            return Err((FrameFault::Nul, line));
        }
        String::from_utf8(line).map(Self).map_err(|fault| (FrameFault::NotUtf8, fault.into_bytes()))
    }

    /// The line as it came.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Shows the size only: frames hold what agents and people write, and do not belong in logs.
impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Frame({} bytes)", self.0.len())
    }
}

/// Splits a stream of bytes into frames.
///
/// Shape: a frame is what stands before a LF; a CR before it belongs to the frame and is JSON white
/// space. Bound: holds at most `max_bytes`, and nothing once a frame is out; what was no frame is held, to
/// be told apart by who has to.
/// Source: MCP 2026-07-28, basic/transports/stdio.
#[derive(Debug)]
pub struct Splitter {
    max_bytes: usize,
    line: Vec<u8>,
    failed: bool,
}

impl Splitter {
    /// A splitter whose frames have at most `max_bytes` bytes, not counting the LF.
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, line: Vec::new(), failed: false }
    }

    /// Takes the next frame off the front of `chunk`; `None` once the chunk is used up.
    ///
    /// After a fault it takes nothing more: every further chunk is used up and gives `None`.
    ///
    /// # Errors
    /// Every [`FrameFault`] but `Unterminated`.
    pub fn take(&mut self, chunk: &mut &[u8]) -> Option<Result<Frame, FrameFault>> {
        if self.failed {
            *chunk = &[];
            return None;
        }
        let end = memchr(b'\n', chunk);
        let (piece, rest) = chunk.split_at(end.unwrap_or(chunk.len()));
        *chunk = rest.get(1..).unwrap_or_default();
        let room = self.max_bytes.saturating_sub(self.line.len());
        let verdict = if piece.len() > room {
            self.keep(&piece[..room]);
            Err(FrameFault::TooLong)
        } else {
            self.keep(piece);
            end?;
            Frame::parse_or_return(mem::take(&mut self.line)).map_err(|(fault, line)| {
                self.line = line;
                fault
            })
        };
        self.failed = verdict.is_err();
        Some(verdict)
    }

    /// What came of a frame that is not out: the beginning of one, or, after a fault, what was none; of one
    /// that is too long, the first `max_bytes`.
    pub fn held(&self) -> &[u8] {
        &self.line
    }

    /// Grows by doubling, but never past the limit; a large one goes back to the system afterwards.
    fn keep(&mut self, piece: &[u8]) {
        let len = self.line.len() + piece.len();
        if len > self.line.capacity() {
            let doubled = len.max(self.line.capacity().saturating_mul(2)).min(self.max_bytes);
            self.line.reserve_exact(large::capacity(doubled) - self.line.len());
        }
        self.line.extend_from_slice(piece);
    }

    /// Says whether the input ended between two lines.
    ///
    /// # Errors
    /// [`FrameFault::Unterminated`] where it ended inside one.
    pub fn finish(&self) -> Result<(), FrameFault> {
        if self.failed || self.line.is_empty() { Ok(()) } else { Err(FrameFault::Unterminated) }
    }
}

impl FrameFault {
    /// A fixed sentence for the peer.
    pub fn message(self) -> &'static str {
        match self {
            Self::TooLong => "Parse error: the message is longer than this server accepts",
            Self::NotUtf8 => "Parse error: the message is not UTF-8",
            Self::Bom => "Parse error: the message begins with a byte order mark",
            Self::Nul => "Parse error: the message holds a NUL byte",
            Self::Blank => "Parse error: the line is blank",
            Self::Unterminated => "Parse error: the input ended inside a message",
        }
    }

    /// A short word for logs and counters.
    pub fn word(self) -> &'static str {
        match self {
            Self::TooLong => "frame_too_long",
            Self::NotUtf8 => "not_utf8",
            Self::Bom => "byte_order_mark",
            Self::Nul => "nul",
            Self::Blank => "blank_line",
            Self::Unterminated => "unterminated",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 16;

    /// An input and what it splits into.
    type Case = (&'static [u8], &'static [Result<&'static str, FrameFault>]);

    /// What a splitter says of `input`, fed in pieces that end at `cuts`.
    fn split(input: &[u8], cuts: &[usize]) -> Vec<Result<String, FrameFault>> {
        let mut splitter = Splitter::new(LIMIT);
        let mut verdicts = Vec::new();
        let mut start = 0;
        for end in cuts.iter().copied().chain([input.len()]) {
            let mut chunk = &input[start..end];
            while let Some(verdict) = splitter.take(&mut chunk) {
                verdicts.push(verdict.map(|frame| frame.as_str().to_owned()));
            }
            assert!(chunk.is_empty());
            start = end;
        }
        verdicts.extend(splitter.finish().err().map(Err));
        verdicts
    }

    #[test]
    fn the_verdict_depends_on_the_bytes_and_not_on_the_cutting() {
        use FrameFault::*;
        let cases: &[Case] = &[
            (b"", &[]),
            (b"{}\n", &[Ok("{}")]),
            (b"{}\r\n", &[Ok("{}\r")]),
            (b"a\nb\nc\n", &[Ok("a"), Ok("b"), Ok("c")]),
            ("\u{2192}\u{85}\u{2028}\n".as_bytes(), &[Ok("\u{2192}\u{85}\u{2028}")]),
            (b"0123456789abcdef\n", &[Ok("0123456789abcdef")]),
            (b"0123456789abcde\r\n", &[Ok("0123456789abcde\r")]),
            (b"0123456789abcdef\r\n", &[Err(TooLong)]),
            (b"0123456789abcdefg\n{}\n", &[Err(TooLong)]),
            (b"0123456789abcdefg", &[Err(TooLong)]),
            (b"{}\n0123456789abcdef\n{}\n", &[Ok("{}"), Ok("0123456789abcdef"), Ok("{}")]),
            (b"\n{}\n", &[Err(Blank)]),
            (b"{}\n \t\r\n", &[Ok("{}"), Err(Blank)]),
            (b"\xef\xbb\xbf{}\n", &[Err(Bom)]),
            (b"{}\n\xef\xbb\xbf{}\n", &[Ok("{}"), Err(Bom)]),
            (b"{\0}\n{}\n", &[Err(Nul)]),
            (b"\0\n", &[Err(Nul)]),
            (b"\xff\xfe{\n", &[Err(NotUtf8)]),
            (b"\"\xe2\x86\"\n", &[Err(NotUtf8)]),
            (b"\"\xed\xa0\x80\"\n", &[Err(NotUtf8)]),
            (b"\"\xc0\x80\"\n", &[Err(NotUtf8)]),
            (b"{}\n{}", &[Ok("{}"), Err(Unterminated)]),
            (b" ", &[Err(Unterminated)]),
        ];
        for (input, expected) in cases {
            let expected: Vec<_> = expected.iter().map(|it| it.map(str::to_owned)).collect();
            let shown = String::from_utf8_lossy(input);
            assert_eq!(split(input, &[]), expected, "{shown:?} whole");
            let every: Vec<usize> = (1..input.len()).collect();
            assert_eq!(split(input, &every), expected, "{shown:?} byte by byte");
            for cut in 0..=input.len() {
                assert_eq!(split(input, &[cut]), expected, "{shown:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn nothing_is_held_beyond_the_limit_or_after_a_frame() {
        let mut splitter = Splitter::new(1000);
        for _ in 0..999 {
            assert!(splitter.take(&mut b"xy".as_slice()).is_none_or(|verdict| verdict.is_err()));
            assert!(splitter.line.capacity() <= 1000);
        }
        assert_eq!(splitter.held(), b"xy".repeat(500));
        let mut splitter = Splitter::new(1000);
        assert!(splitter.take(&mut b"xyz".as_slice()).is_none());
        assert!(splitter.take(&mut b"\n".as_slice()).is_some());
        assert_eq!(splitter.line.capacity(), 0);
    }
}
