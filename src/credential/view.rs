//! Ways to read a stream: as it is, or with its escapes resolved, each byte with where it came from.
//!
//! Invariant: a view never loses a byte. What is no escape passes as it is.

use std::collections::VecDeque;

use super::automaton::{Automaton, Hit, ROOT, State};

/// A byte as a view reads it, and the place of what it was read from in the raw stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Piece {
    byte: u8,
    start: u64,
    end: u64,
}

/// A kind of escape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Escape {
    /// `%hh`. Source: RFC 3986, section 2.1.
    Percent,
    /// `%hh`, and a plus sign for a blank. Source: URL standard, application/x-www-form-urlencoded.
    Form,
    /// `\"`, `\/`, `\u00hh` and the like. Source: RFC 8259, section 7.
    Json,
}

/// What a stage makes of the pieces it holds.
enum Reading {
    /// It could be an escape: more is needed.
    More,
    /// The first pieces, as many as `used`, stand for the first `length` bytes.
    Token { used: usize, bytes: [u8; 4], length: usize },
}

impl Escape {
    /// Whether an escape of this kind begins with the byte.
    pub(super) fn begins(self, byte: u8) -> bool {
        match self {
            Self::Percent => byte == b'%',
            Self::Form => matches!(byte, b'%' | b'+'),
            Self::Json => byte == b'\\',
        }
    }

    fn read(self, held: &[Piece]) -> Reading {
        match (self, held[0].byte) {
            (Self::Percent | Self::Form, b'%') => read_percent(held),
            (Self::Form, b'+') => one(b' ', 1),
            (Self::Json, b'\\') => read_json(held),
            (_, other) => one(other, 1),
        }
    }
}

fn one(byte: u8, used: usize) -> Reading {
    Reading::Token { used, bytes: [byte, 0, 0, 0], length: 1 }
}

fn read_percent(held: &[Piece]) -> Reading {
    match hex(&held[1..], 2) {
        Hex::Value(value) => one(value as u8, 3),
        Hex::More => Reading::More,
        Hex::None => one(b'%', 1),
    }
}

fn read_json(held: &[Piece]) -> Reading {
    let Some(kind) = held.get(1) else { return Reading::More };
    match kind.byte {
        byte @ (b'"' | b'\\' | b'/') => one(byte, 2),
        b'b' => one(8, 2),
        b'f' => one(12, 2),
        b'n' => one(b'\n', 2),
        b'r' => one(b'\r', 2),
        b't' => one(b'\t', 2),
        b'u' => match hex(&held[2..], 4) {
            Hex::Value(unit @ 0xD800..0xDC00) => read_low_surrogate(unit, &held[6..]),
            Hex::Value(unit) => character(unit, 6),
            Hex::More => Reading::More,
            Hex::None => one(b'\\', 1),
        },
        _ => one(b'\\', 1),
    }
}

/// What follows the first half of a character beyond the basic plane.
fn read_low_surrogate(high: u32, rest: &[Piece]) -> Reading {
    let lone = character(high, 6);
    for (piece, wanted) in rest.iter().zip(*b"\\u") {
        if piece.byte != wanted {
            return lone;
        }
    }
    match hex(rest.get(2..).unwrap_or_default(), 4) {
        Hex::Value(low @ 0xDC00..0xE000) => {
            character(0x10000 + ((high - 0xD800) << 10 | (low - 0xDC00)), 12)
        }
        Hex::More => Reading::More,
        Hex::Value(_) | Hex::None => lone,
    }
}

fn character(code: u32, used: usize) -> Reading {
    let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
    let mut bytes = [0; 4];
    let length = character.encode_utf8(&mut bytes).len();
    Reading::Token { used, bytes, length }
}

enum Hex {
    Value(u32),
    More,
    None,
}

/// Reads a fixed number of hex digits.
fn hex(held: &[Piece], digits: usize) -> Hex {
    let mut value = 0;
    for place in 0..digits {
        let Some(piece) = held.get(place) else { return Hex::More };
        let Some(digit) = char::from(piece.byte).to_digit(16) else { return Hex::None };
        value = value << 4 | digit;
    }
    Hex::Value(value)
}

/// One layer of escapes that is being resolved.
struct Stage {
    escape: Escape,
    /// The beginning of what may become an escape; at most twelve pieces.
    held: Vec<Piece>,
}

impl Stage {
    fn push(&mut self, piece: Piece, emit: &mut dyn FnMut(Piece)) {
        if self.held.is_empty() && !self.escape.begins(piece.byte) {
            emit(piece);
            return;
        }
        self.held.push(piece);
        self.settle(emit);
    }

    fn settle(&mut self, emit: &mut dyn FnMut(Piece)) {
        while !self.held.is_empty() {
            let Reading::Token { used, bytes, length } = self.escape.read(&self.held) else {
                return;
            };
            let (start, end) = (self.held[0].start, self.held[used - 1].end);
            for &byte in &bytes[..length] {
                emit(Piece { byte, start, end });
            }
            self.held.drain(..used);
        }
    }

    /// Passes on what is held as it is: nothing comes that could complete it.
    fn flush(&mut self, emit: &mut dyn FnMut(Piece)) {
        while !self.held.is_empty() {
            emit(self.held.remove(0));
            self.settle(emit);
        }
    }
}

/// A pattern's occurrence in the raw stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Found {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) owner: u16,
}

/// One way of reading, scanned for patterns.
pub(super) struct View {
    stages: Vec<Stage>,
    scan: Scan,
}

/// How far the patterns are matched, and where each matched byte stands in the raw stream.
struct Scan {
    state: State,
    /// As many as the state is deep.
    starts: VecDeque<u64>,
}

impl View {
    /// A view that resolves these layers, the outermost first.
    pub(super) fn new(layers: &[Escape]) -> Self {
        let stage = |&escape| Stage { escape, held: Vec::new() };
        let scan = Scan { state: ROOT, starts: VecDeque::new() };
        Self { stages: layers.iter().map(stage).collect(), scan }
    }

    /// Takes up a scan that has matched the last `depth` raw bytes before `end`.
    pub(super) fn resume(&mut self, state: State, depth: usize, end: u64) {
        self.scan.state = state;
        self.scan.starts.clear();
        self.scan.starts.extend(end - depth as u64..end);
    }

    /// Reads the raw byte at a place.
    pub(super) fn push(
        &mut self,
        automaton: &Automaton,
        byte: u8,
        at: u64,
        report: &mut impl FnMut(Found),
    ) {
        let Self { stages, scan } = self;
        let piece = Piece { byte, start: at, end: at + 1 };
        descend(stages, piece, &mut |piece| scan.read(automaton, piece, report));
    }

    /// Reads what is held back as it is: the stream has ended.
    pub(super) fn flush(&mut self, automaton: &Automaton, report: &mut impl FnMut(Found)) {
        let Self { stages, scan } = self;
        for depth in 0..stages.len() {
            let (head, below) = stages.split_at_mut(depth + 1);
            let emit = &mut |piece| scan.read(automaton, piece, report);
            head[depth].flush(&mut |piece| descend(below, piece, emit));
        }
    }

    /// Where in the raw stream that begins which is not yet decided.
    pub(super) fn pending(&self) -> Option<u64> {
        let held = self.stages.iter().filter_map(|stage| stage.held.first());
        held.map(|piece| piece.start).chain(self.scan.starts.front().copied()).min()
    }

    /// The matched part of a pattern that the stream ends with: where it begins, and its length.
    pub(super) fn partial(&self) -> Option<(u64, usize)> {
        self.scan.starts.front().map(|&start| (start, self.scan.starts.len()))
    }

    /// The state of a scan that has matched nothing but raw bytes up to `end`, and holds nothing back.
    pub(super) fn plain_state(&self, end: u64) -> Option<State> {
        let Scan { state, starts } = &self.scan;
        let settled = self.stages.iter().all(|stage| stage.held.is_empty());
        let raw = starts.front().is_none_or(|&start| end - start == starts.len() as u64);
        (settled && raw).then_some(*state)
    }

    /// How far the patterns are matched.
    pub(super) fn state(&self) -> State {
        self.scan.state
    }
}

fn descend(stages: &mut [Stage], piece: Piece, read: &mut dyn FnMut(Piece)) {
    match stages {
        [] => read(piece),
        [outer, inner @ ..] => outer.push(piece, &mut |piece| descend(inner, piece, read)),
    }
}

impl Scan {
    fn read(&mut self, automaton: &Automaton, piece: Piece, report: &mut impl FnMut(Found)) {
        self.state = automaton.step(self.state, piece.byte);
        self.starts.push_back(piece.start);
        while self.starts.len() > automaton.depth(self.state) {
            self.starts.pop_front();
        }
        if let Some(Hit { length, owner }) = automaton.hit(self.state) {
            let start = self.starts[self.starts.len() - length];
            report(Found { start, end: piece.end, owner });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(layers: &[Escape], text: &str) -> String {
        let mut stages = View::new(layers).stages;
        let mut bytes = Vec::new();
        for (at, byte) in (0..).zip(text.bytes()) {
            let piece = Piece { byte, start: at, end: at + 1 };
            descend(&mut stages, piece, &mut |piece| bytes.push(piece.byte));
        }
        for depth in 0..stages.len() {
            let (head, below) = stages.split_at_mut(depth + 1);
            head[depth].flush(&mut |piece| {
                descend(below, piece, &mut |piece| bytes.push(piece.byte));
            });
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    #[test]
    fn escapes() {
        use Escape::{Form, Json, Percent};
        for (layers, text, expected) in [
            (&[Percent][..], "a%2fb%2F%C3%a9+", "a/b/é+"),
            (&[Percent], "%%41%4%zz%", "%A%4%zz%"),
            (&[Form], "a+b%20c%2B", "a b c+"),
            (&[Json], r#"\"\\\/\b\f\n\r\t"#, "\"\\/\u{8}\u{c}\n\r\t"),
            (&[Json], r"\u0041\u00e9\u20AC\ud83d\ude00", "Aé€😀"),
            (&[Json], r"\ud83d\u0041\ude00\ud83dx", "\u{fffd}A\u{fffd}\u{fffd}x"),
            (&[Json], r"\x\u00\u12G4\", r"\x\u00\u12G4\"),
            (&[Json, Percent], r"\u00252f%2\u0046", "//"),
            (&[Percent, Json], "%5c%2f%5Cu0041", "/A"),
            (&[Json, Json], r"\\u0041\\\/", "A/"),
            (&[Percent, Percent], "%252f%25%32%66", "//"),
        ] {
            assert_eq!(read(layers, text), expected, "{layers:?} {text}");
        }
    }
}
