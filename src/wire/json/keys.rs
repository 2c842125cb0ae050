//! The keys of the objects that are open while a text is checked.
//!
//! Invariant: a key that stands twice in an object is found, however many keys and whatever their
//! escapes, in time that a peer cannot make quadratic.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;

use super::{step, string};
use crate::large;

/// Up to this many keys without escapes are compared each with each.
const FEW: usize = 8;

/// The keys of all open objects, those of the innermost last.
pub(super) struct Keys<'a> {
    text: &'a str,
    open: Vec<Key>,
    /// Made for the first large object; no peer can choose keys whose hashes are equal.
    hashes: Option<RandomState>,
    scratch: Vec<u8>,
}

/// A key in eight bytes: a tag above, where its body begins below.
///
/// Equal keys have equal tags: [`ESCAPED`] or a [`sketch`], in large objects a hash. Whole keys are
/// sorted as one number, by tag and then by place.
type Key = u64;

/// The tag of keys with escapes.
const ESCAPED: u32 = u32::MAX;

fn key(tag: u32, start: usize) -> Key {
    u64::from(tag) << 32 | start as u64
}

fn start(key: Key) -> usize {
    (key & u64::from(u32::MAX)) as usize
}

fn tag(key: Key) -> u32 {
    (key >> 32) as u32
}

/// A cheap tag that differs for most keys of ordinary objects: length, first and last bytes.
fn sketch(body: &[u8]) -> u32 {
    let (first, last) = match (body.first_chunk(), body.last_chunk()) {
        (Some(first), Some(last)) => (u32::from_le_bytes(*first), u32::from_le_bytes(*last)),
        _ => (body.iter().fold(0, |all, byte| all << 8 | u32::from(*byte)), 0),
    };
    let mixed = (body.len() as u32) << 24 ^ first ^ last.rotate_left(11);
    mixed.min(ESCAPED - 1)
}

impl<'a> Keys<'a> {
    /// The longest text whose keys can be held, in bytes.
    pub(super) const REACH: usize = u32::MAX as usize;

    pub(super) fn new(text: &'a str) -> Self {
        Self { text, open: Vec::new(), hashes: None, scratch: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Takes a key of the innermost object, without its quotes.
    pub(super) fn push(&mut self, body: Range<usize>, escaped: bool) {
        let bytes = self.text.as_bytes().get(body.clone()).unwrap_or_default();
        let tag = if escaped { ESCAPED } else { sketch(bytes) };
        if self.open.len() == self.open.capacity() {
            let doubled = size_of::<Key>() * 2 * self.open.len().max(FEW);
            self.open.reserve_exact(large::capacity(doubled) / size_of::<Key>() - self.open.len());
        }
        self.open.push(key(tag, body.start));
    }

    /// Drops the keys from `first` on: the object that holds them ends.
    ///
    /// Where one of them stands there twice, tells where the quote before the first repetition is.
    pub(super) fn close(&mut self, first: usize) -> Option<usize> {
        let repeated = match self.open.get(first..)? {
            [] | [_] => None,
            few if few.len() <= FEW && !few.iter().any(|key| tag(*key) == ESCAPED) => {
                first_repeated(self.text, few)
            }
            _ => self.repeated_of_many(first),
        };
        self.open.truncate(first);
        repeated.map(|body| body - 1)
    }

    /// Sorts by hash, so that only keys with the same hash are compared.
    ///
    /// A hash table is slower: it touches more memory, in no order.
    fn repeated_of_many(&mut self, first: usize) -> Option<usize> {
        let Self { text, open, hashes, scratch } = self;
        let hashes = hashes.get_or_insert_default();
        let keys = open.get_mut(first..)?;
        for place in &mut *keys {
            let (start, body) = (start(*place), body(text, start(*place)));
            let escaped = tag(*place) == ESCAPED;
            let mut hasher = hashes.build_hasher();
            hasher.write(if escaped { string::meaning(body, scratch) } else { body.as_bytes() });
            *place = key(hasher.finish() as u32, start);
        }
        keys.sort_unstable();
        let runs = keys.chunk_by(|a, b| tag(*a) == tag(*b)).filter(|run| run.len() > 1);
        runs.filter_map(|run| first_repeated(text, run)).min()
    }
}

/// The body of the key that begins at `start`.
fn body(text: &str, start: usize) -> &str {
    text.get(start..step::body_end(text.as_bytes(), start)).unwrap_or_default()
}

/// Whether two keys with equal tags are the same; with different tags they are not.
fn same(text: &str, a: Key, b: Key) -> bool {
    tag(a) == tag(b) && string::same(body(text, start(a)), body(text, start(b)))
}

/// Where the first of `keys` begins that is the same as one before it, each compared with each.
fn first_repeated(text: &str, keys: &[Key]) -> Option<usize> {
    let is_repeated =
        |(at, key): &(usize, Key)| keys.iter().take(*at).any(|a| same(text, *a, *key));
    keys.iter().copied().enumerate().find(is_repeated).map(|(_, key)| start(key))
}

#[cfg(test)]
mod tests {
    use crate::wire::json::{Defect, Json, JsonFault};

    fn check(keys: &[String]) -> Result<(), JsonFault> {
        let members: Vec<String> = keys.iter().map(|key| format!("\"{key}\":0")).collect();
        Json::check(&format!("{{{}}}", members.join(","))).map(|_| ())
    }

    #[test]
    fn a_repetition_is_found_at_every_size_place_and_spelling() {
        for count in [2, 3, 15, 16, 17, 18, 100, 5000] {
            let keys: Vec<String> = (0..count).map(|n| format!("k{n}")).collect();
            assert_eq!(check(&keys), Ok(()));
            for (first, second) in [(0, count - 1), (0, 1), (count / 2 - 1, count / 2)] {
                let mut plain = keys.clone();
                plain[second].clone_from(&keys[first]);
                assert_eq!(check(&plain).unwrap_err().defect, Defect::DuplicateKey);
                let mut escaped = plain.clone();
                escaped[second] = escaped[second].replace('k', "\\u006B");
                assert_eq!(check(&escaped).unwrap_err().defect, Defect::DuplicateKey);
                escaped[second] = escaped[second].replace('B', "C");
                assert_eq!(check(&escaped), Ok(()));
            }
        }
    }

    #[test]
    fn the_offset_is_that_of_the_first_repetition() {
        let many: String = (0..20).map(|n| format!(",\"k{n}\":0")).collect();
        for more in ["", many.as_str()] {
            let text = format!(r#"{{"a":0,"b":{{"a":1}},"b":2,"a":3,"a":4{more}}}"#);
            let fault = Json::check(&text).unwrap_err();
            assert_eq!((fault.defect, fault.offset), (Defect::DuplicateKey, 19));
        }
    }

    #[test]
    fn equal_meanings_only() {
        let pairs = [
            (r"\ud83d\ude00", "\u{1f600}", true),
            (r"\ud800", r"\uD800", true),
            (r"\ud800", r"\ud801", false),
            (r"\ud800", r"\ufffd", false),
            (r"\ud800", "\u{fffd}", false),
            (r"\/", "/", true),
            (r"\u005c", r"\\", true),
            (r"\n", "n", false),
            ("\u{e4}", "a\u{308}", false),
            (r"\u00e4", "\u{e4}", true),
        ];
        for (a, b, same) in pairs {
            assert_eq!(check(&[a.to_owned(), b.to_owned()]).is_err(), same, "{a} {b}");
        }
    }
}
