//! Finds any of several byte strings in one pass: Aho and Corasick, 1975.
//!
//! Children hang in sibling lists: a credential's forms are few and long, so almost every node has one
//! child, and building costs some microseconds where a dense table would cost a millisecond.
//!
//! Invariant: a step costs constant time on average over any input, and the patterns are wiped on drop.

use zeroize::Zeroize as _;

/// Where a scan stands: how much of which pattern the input ends with.
pub(super) type State = u32;

/// The state in which the input ends with no part of any pattern.
pub(super) const ROOT: State = 0;

/// The patterns, ready for scanning.
pub(super) struct Automaton {
    nodes: Vec<Node>,
    /// The root's children by their byte; [`ROOT`] where there is none.
    first: [State; 256],
}

/// A pattern that ends where the scan stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Hit {
    /// Its length in bytes.
    pub(super) length: usize,
    /// Whose it is.
    pub(super) owner: u16,
}

struct Node {
    byte: u8,
    /// Whose pattern came here first.
    owner: u16,
    depth: u32,
    child: State,
    sibling: State,
    /// The longest other prefix that the input ends with.
    fallback: State,
    /// The longest pattern that ends here; length 0 for none.
    hit: Hit,
}

impl Automaton {
    /// Takes the patterns with their owners; empty ones count for nothing.
    pub(super) fn new<'p>(patterns: impl Iterator<Item = (&'p [u8], u16)> + Clone) -> Self {
        // Reserved at once, so that no half-built copy is left behind in the heap.
        let room = 1 + patterns.clone().map(|(pattern, _)| pattern.len()).sum::<usize>();
        let mut automaton = Self { nodes: Vec::with_capacity(room), first: [ROOT; 256] };
        automaton.add(0, 0, 0);
        for (pattern, owner) in patterns {
            automaton.insert(pattern, owner);
        }
        automaton.link();
        automaton
    }

    /// Whether there is no pattern at all.
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.len() == 1
    }

    /// Whether a pattern begins with this byte.
    pub(super) fn begins(&self, byte: u8) -> bool {
        self.first[usize::from(byte)] != ROOT
    }

    /// Whether a pattern contains this byte.
    pub(super) fn contains(&self, byte: u8) -> bool {
        self.nodes[1..].iter().any(|node| node.byte == byte)
    }

    /// Reads one byte.
    pub(super) fn step(&self, mut state: State, byte: u8) -> State {
        while state != ROOT {
            if let Some(child) = self.child(state, byte) {
                return child;
            }
            state = self.node(state).fallback;
        }
        self.first[usize::from(byte)]
    }

    /// How many bytes at the input's end are the beginning of a pattern.
    pub(super) fn depth(&self, state: State) -> usize {
        self.node(state).depth as usize
    }

    /// The longest pattern that ends here.
    pub(super) fn hit(&self, state: State) -> Option<Hit> {
        let hit = self.node(state).hit;
        (hit.length > 0).then_some(hit)
    }

    /// Whose pattern it is that the input ends with a part of.
    pub(super) fn owner(&self, state: State) -> u16 {
        self.node(state).owner
    }

    fn insert(&mut self, pattern: &[u8], owner: u16) {
        let mut state = ROOT;
        for (depth, &byte) in (1..).zip(pattern) {
            state = match self.child(state, byte) {
                Some(child) => child,
                None => {
                    let child = self.add(byte, owner, depth);
                    let sibling = std::mem::replace(&mut self.nodes[state as usize].child, child);
                    self.nodes[child as usize].sibling = sibling;
                    child
                }
            };
        }
        if state != ROOT {
            self.nodes[state as usize].hit = Hit { length: pattern.len(), owner };
        }
    }

    fn add(&mut self, byte: u8, owner: u16, depth: u32) -> State {
        let nothing = Hit { length: 0, owner };
        let (child, sibling, fallback) = (ROOT, ROOT, ROOT);
        self.nodes.push(Node { byte, owner, depth, child, sibling, fallback, hit: nothing });
        State::try_from(self.nodes.len() - 1).unwrap_or(ROOT)
    }

    /// Sets the fallbacks, the shallow nodes first: those of a node need those of the nodes above.
    fn link(&mut self) {
        let mut queue: Vec<State> = Vec::with_capacity(self.nodes.len());
        queue.extend(self.children(ROOT));
        for &child in &queue {
            self.first[usize::from(self.node(child).byte)] = child;
        }
        let mut at = 0;
        while let Some(&state) = queue.get(at) {
            at += 1;
            let mut child = self.node(state).child;
            while child != ROOT {
                let fallback = self.step(self.node(state).fallback, self.node(child).byte);
                self.inherit(child, fallback);
                queue.push(child);
                child = self.node(child).sibling;
            }
        }
    }

    fn inherit(&mut self, state: State, fallback: State) {
        let inherited = self.node(fallback).hit;
        let node = &mut self.nodes[state as usize];
        node.fallback = fallback;
        if node.hit.length == 0 {
            node.hit = inherited;
        }
    }

    fn node(&self, state: State) -> &Node {
        &self.nodes[state as usize]
    }

    fn children(&self, state: State) -> impl Iterator<Item = State> {
        let listed = |state: State| (state != ROOT).then_some(state);
        std::iter::successors(listed(self.node(state).child), move |&child| {
            listed(self.node(child).sibling)
        })
    }

    fn child(&self, state: State, byte: u8) -> Option<State> {
        self.children(state).find(|&child| self.node(child).byte == byte)
    }
}

impl Drop for Automaton {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            node.byte.zeroize();
        }
        self.first.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(patterns: &[&str], text: &str) -> Vec<(usize, usize)> {
        let automaton =
            Automaton::new(patterns.iter().zip(0..).map(|(text, owner)| (text.as_bytes(), owner)));
        let mut state = ROOT;
        let mut found = Vec::new();
        for (end, byte) in (1..).zip(text.bytes()) {
            state = automaton.step(state, byte);
            if let Some(hit) = automaton.hit(state) {
                found.push((end - hit.length, end));
            }
        }
        found
    }

    #[test]
    fn finds_the_longest_pattern_at_each_end() {
        assert_eq!(hits(&["he", "she", "his", "hers"], "ushers"), [(1, 4), (2, 6)]);
        assert_eq!(hits(&["ab", "abcd", "bcd"], "abcd"), [(0, 2), (0, 4)]);
        assert_eq!(hits(&["aa"], "aaaa"), [(0, 2), (1, 3), (2, 4)]);
        assert_eq!(hits(&["abab"], "abababab"), [(0, 4), (2, 6), (4, 8)]);
        assert_eq!(hits(&["", "x"], "axa"), [(1, 2)]);
        assert_eq!(hits(&[], "anything"), []);
    }

    #[test]
    fn agrees_with_a_plain_search() {
        // Every text of nine letters over {a, b} against patterns that overlap in every way.
        let patterns = ["ab", "aba", "babb", "bbb", "aab"];
        for number in 0..512u32 {
            let letter = |bit: u32| if number >> bit & 1 == 1 { 'b' } else { 'a' };
            let text: String = (0..9).map(letter).collect();
            let plain: Vec<(usize, usize)> = (1..=9)
                .filter_map(|end| {
                    let ending = patterns.iter().filter(|pattern| text[..end].ends_with(**pattern));
                    ending.map(|pattern| pattern.len()).max().map(|length| (end - length, end))
                })
                .collect();
            assert_eq!(hits(&patterns, &text), plain, "{text}");
        }
    }
}
