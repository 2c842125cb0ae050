//! Takes credentials out of what comes back, on the stream.
//!
//! The stream is read in several ways at once: as it is, with percent-encoding resolved, with JSON escapes
//! resolved, and with two layers of these. As long as there is no escape all of them agree, and one
//! scan serves all.
//!
//! Invariant: for any split of the input the output is the same, and no part of a form of four bytes
//! or more leaves while it could still become the whole, or at an edge where the input was cut.
//!
//! Bound: what is held back is at most the longest form, each byte of it escaped twice.

use zeroize::Zeroize as _;

use super::automaton::{Automaton, ROOT, State};
use super::forms::Forms;
use super::view::{Escape, Found, View};
use crate::limits;
use crate::name::Name;

/// What is looked for, and what is put in its place.
pub struct Redactor {
    automaton: Automaton,
    /// `[redacted:NAME]`, by owner.
    markers: Vec<String>,
    layers: Vec<&'static [Escape]>,
    /// Bytes at which the scan of raw bytes has something to do when nothing is matched yet.
    notable: [bool; 256],
    /// Bytes that begin an escape.
    escapes: [bool; 256],
}

/// How the input ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Edge {
    /// By itself: a part of a credential that stands there is a coincidence.
    Whole,
    /// We, or the network, cut it: a part of a credential that stands there is one.
    Cut,
}

const LAYERS: [&[Escape]; 7] = {
    use Escape::{Json, Percent};
    [
        &[],
        &[Percent],
        &[Json],
        &[Json, Percent],
        &[Percent, Json],
        &[Json, Json],
        &[Percent, Percent],
    ]
};

/// Looked at only where a form has a blank.
const FORM_LAYERS: [&[Escape]; 2] = [&[Escape::Form], &[Escape::Json, Escape::Form]];

impl Redactor {
    /// Looks for the forms of these credentials.
    pub fn new(credentials: &[(&Name, Forms)]) -> Self {
        let owned = (0..).zip(credentials);
        let forms =
            owned.flat_map(|(owner, (_, forms))| forms.iter().map(move |form| (form, owner)));
        let automaton = Automaton::new(forms);
        let mut layers = LAYERS.to_vec();
        if automaton.contains(b' ') {
            layers.extend(FORM_LAYERS);
        }
        // Each layer is of one of these, and they are looked at for every byte and every request.
        let mut kinds: Vec<Escape> = Vec::new();
        for escape in layers.iter().copied().flatten() {
            if !kinds.contains(escape) {
                kinds.push(*escape);
            }
        }
        let begins_escape = |byte| kinds.iter().any(|escape| escape.begins(byte));
        let escapes = std::array::from_fn(|byte| begins_escape(byte as u8));
        let notable = std::array::from_fn(|byte| escapes[byte] || automaton.begins(byte as u8));
        let marker = |(name, _): &(&Name, Forms)| format!("[redacted:{name}]");
        let markers = credentials.iter().map(marker).collect();
        Self { automaton, markers, layers, notable, escapes }
    }

    /// Looks for nothing.
    pub fn none() -> Self {
        Self::new(&[])
    }

    /// Whether it looks for nothing, so that what passes through is what was put in.
    pub fn is_idle(&self) -> bool {
        self.automaton.is_empty()
    }

    /// The length of an escape after which every view still matches nothing; 0 where that is not certain.
    ///
    /// This is what keeps text with many escapes fast: most of them mean no byte of any form, or are none.
    fn quiet_escape(&self, bytes: &[u8]) -> usize {
        let plain = |byte: &u8| !self.escapes[usize::from(*byte)];
        let (meant, length) = match bytes {
            [b'%', high, low, ..] => match (hex_digit(*high), hex_digit(*low)) {
                (Some(high), Some(low)) => (Some(high << 4 | low), 3),
                _ if plain(high) && plain(low) => (None, 1),
                _ => return 0,
            },
            [b'\\', byte @ (b'"' | b'/'), ..] => (Some(*byte), 2),
            [b'\\', b'n', ..] => (Some(b'\n'), 2),
            [b'\\', b'\\' | b'b' | b'f' | b'r' | b't' | b'u', ..] => return 0,
            [b'\\', other, ..] if plain(other) => (None, 1),
            _ => return 0,
        };
        let starts = |byte: &u8| self.automaton.begins(*byte);
        let loud = meant.is_some_and(|byte| self.notable[usize::from(byte)])
            || bytes[..length].iter().any(starts);
        if loud { 0 } else { length }
    }

    /// Begins a stream.
    pub fn stream(&self) -> Stream<'_> {
        Stream {
            redactor: self,
            held: Vec::new(),
            base: 0,
            read: 0,
            state: ROOT,
            views: Vec::new(),
            diverged: false,
            regions: Vec::new(),
            covered: 0,
            count: 0,
        }
    }

    /// Redacts a text that is there as a whole, and says how often.
    pub fn redact_whole(&self, text: &[u8]) -> (Vec<u8>, u64) {
        let mut out = Vec::with_capacity(text.len());
        let mut stream = self.stream();
        stream.push(text, &mut out);
        let count = stream.finish(Edge::Whole, &mut out);
        (out, count)
    }
}

/// A stream that is being redacted.
pub struct Stream<'r> {
    redactor: &'r Redactor,
    /// The raw bytes from `base` that have not left yet.
    held: Vec<u8>,
    base: u64,
    /// How far the raw bytes were scanned.
    read: u64,
    /// The scan of all views, while they agree.
    state: State,
    /// Made at the first escape.
    views: Vec<View>,
    diverged: bool,
    /// What will be replaced and was not yet: in order, without overlaps.
    regions: Vec<Found>,
    /// Everything before this place has left or was replaced.
    covered: u64,
    count: u64,
}

impl Stream<'_> {
    /// Takes a piece of input, and adds to the output what is decided by now.
    pub fn push(&mut self, input: &[u8], out: &mut Vec<u8>) {
        if self.redactor.automaton.is_empty() {
            out.extend_from_slice(input);
            return;
        }
        // The new part must not move what is held without wiping it.
        let mut held = grown(std::mem::take(&mut self.held), input.len());
        held.extend_from_slice(input);
        self.scan(&held[(self.read - self.base) as usize..]);
        self.held = held;
        self.release(self.decided(), out);
    }

    /// Ends the stream: adds the rest to the output, and says how many occurrences were replaced.
    pub fn finish(mut self, edge: Edge, out: &mut Vec<u8>) -> u64 {
        if edge == Edge::Cut {
            self.cover_partials();
        }
        self.flush();
        if edge == Edge::Cut {
            self.cover_partials();
        }
        self.release(self.read, out);
        self.count
    }

    fn scan(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let done =
                if self.diverged { self.scan_apart(bytes) } else { self.scan_together(bytes) };
            bytes = &bytes[done..];
        }
    }

    /// Scans raw bytes up to the next escape; says how many.
    fn scan_together(&mut self, bytes: &[u8]) -> usize {
        let Redactor { automaton, notable, escapes, .. } = self.redactor;
        let mut state = self.state;
        let mut at = 0;
        while at < bytes.len() {
            if state == ROOT {
                let rest = &bytes[at..];
                let quiet = rest.iter().position(|&byte| notable[usize::from(byte)]);
                at += quiet.unwrap_or(rest.len());
            }
            let Some(&byte) = bytes.get(at) else { break };
            if escapes[usize::from(byte)] {
                let quiet =
                    if state == ROOT { self.redactor.quiet_escape(&bytes[at..]) } else { 0 };
                if quiet > 0 {
                    at += quiet;
                    continue;
                }
                self.diverge(state, self.read + at as u64);
                break;
            }
            state = automaton.step(state, byte);
            at += 1;
            if let Some(hit) = automaton.hit(state) {
                let end = self.read + at as u64;
                let start = end - hit.length as u64;
                cover(&mut self.regions, Found { start, end, owner: hit.owner });
            }
        }
        self.state = state;
        self.read += at as u64;
        at
    }

    fn diverge(&mut self, state: State, at: u64) {
        let Redactor { automaton, layers, .. } = self.redactor;
        if self.views.is_empty() {
            self.views = layers.iter().map(|layers| View::new(layers)).collect();
        }
        let depth = automaton.depth(state);
        for view in &mut self.views {
            view.resume(state, depth, at);
        }
        self.diverged = true;
    }

    /// Scans each view for itself until they agree again; says how many raw bytes.
    fn scan_apart(&mut self, bytes: &[u8]) -> usize {
        let automaton = &self.redactor.automaton;
        let Self { views, regions, read, state, diverged, .. } = self;
        for (done, &byte) in (1..).zip(bytes) {
            for view in views.iter_mut() {
                view.push(automaton, byte, *read, &mut |found| cover(regions, found));
            }
            *read += 1;
            if let Some(agreed) = agreed_state(views, *read) {
                *state = agreed;
                *diverged = false;
                return done;
            }
        }
        bytes.len()
    }

    fn flush(&mut self) {
        if self.diverged {
            let automaton = &self.redactor.automaton;
            for view in &mut self.views {
                view.flush(automaton, &mut |found| cover(&mut self.regions, found));
            }
        }
    }

    /// Where in the raw stream that begins which is not yet decided.
    fn decided(&self) -> u64 {
        if self.diverged {
            self.views.iter().filter_map(View::pending).min().unwrap_or(self.read)
        } else {
            self.read - self.redactor.automaton.depth(self.state) as u64
        }
    }

    /// Replaces what the stream ends with where that is a part of a form, up to the edge.
    fn cover_partials(&mut self) {
        let automaton = &self.redactor.automaton;
        let mut part = |state: State, start: u64, length: usize| {
            if length >= limits::REDACTED_MIN_BYTES {
                let owner = automaton.owner(state);
                cover(&mut self.regions, Found { start, end: self.read, owner });
            }
        };
        if self.diverged {
            for view in &self.views {
                if let Some((start, length)) = view.partial() {
                    part(view.state(), start, length);
                }
            }
        } else {
            let depth = automaton.depth(self.state);
            part(self.state, self.read - depth as u64, depth);
        }
    }

    /// Lets everything before a place leave, with the regions that begin there at the latest.
    fn release(&mut self, place: u64, out: &mut Vec<u8>) {
        let due = self.regions.partition_point(|region| region.start <= place);
        for region in self.regions.drain(..due) {
            if region.start >= self.covered {
                emit(&self.held, self.base, self.covered, region.start, out);
                out.extend_from_slice(self.redactor.markers[usize::from(region.owner)].as_bytes());
                self.count += 1;
            }
            self.covered = self.covered.max(region.end);
        }
        emit(&self.held, self.base, self.covered, place, out);
        self.covered = self.covered.max(place);
        let gone = (self.covered.min(self.read) - self.base) as usize;
        self.held.drain(..gone);
        self.base += gone as u64;
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        self.held.zeroize();
    }
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

fn agreed_state(views: &[View], end: u64) -> Option<State> {
    let (first, others) = views.split_first()?;
    let state = first.plain_state(end)?;
    others.iter().all(|view| view.plain_state(end) == Some(state)).then_some(state)
}

/// Adds the raw bytes between two places, where there are any.
fn emit(held: &[u8], base: u64, from: u64, to: u64, out: &mut Vec<u8>) {
    if from < to {
        out.extend_from_slice(&held[(from - base) as usize..(to - base) as usize]);
    }
}

/// Adds a region and joins it with those that it overlaps. Regions that only touch stay apart.
fn cover(regions: &mut Vec<Found>, mut found: Found) {
    let from = regions.partition_point(|region| region.end <= found.start);
    let to = from + regions[from..].partition_point(|region| region.start < found.end);
    for region in &regions[from..to] {
        if region.start <= found.start {
            found.owner = region.owner;
        }
        found.start = found.start.min(region.start);
        found.end = found.end.max(region.end);
    }
    regions.splice(from..to, [found]);
}

/// The same bytes with room for more; where they had to move, the old place is wiped.
fn grown(mut held: Vec<u8>, more: usize) -> Vec<u8> {
    if held.capacity() - held.len() >= more {
        return held;
    }
    let mut larger = Vec::with_capacity((held.len() + more).next_power_of_two());
    larger.extend_from_slice(&held);
    held.zeroize();
    larger
}

#[cfg(test)]
mod tests;
