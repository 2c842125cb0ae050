//! What becomes one row.

use super::{Answer, Item, Turn};
use crate::limits;
use crate::name::CallId;

/// The events of one row, and who waits for them.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) text: Vec<u8>,
    pub(super) items: Vec<Item>,
}

impl Batch {
    /// Takes an event, or gives it back where it does not fit any more.
    pub(super) fn push(&mut self, item: Item) -> Option<Item> {
        let fits = self.text.len() + item.text.len() < limits::AUDIT_TEXT_BYTES;
        if !fits && !self.items.is_empty() {
            return Some(item);
        }
        self.text.extend_from_slice(item.text.as_bytes());
        self.text.push(b'\n');
        self.items.push(item);
        None
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Splits off what is not the end of a call.
    pub(super) fn keep_ends(self) -> (Self, Vec<Item>) {
        let (mut ends, mut others) = (Self::default(), Vec::new());
        for item in self.items {
            if matches!(item.turn, Turn::Closes(_)) {
                others.extend(ends.push(item));
            } else {
                others.push(item);
            }
        }
        (ends, others)
    }

    pub(super) fn opened(&self) -> impl Iterator<Item = CallId> {
        self.items.iter().filter_map(|item| match item.turn {
            Turn::Opens(call) => Some(call),
            Turn::Closes(_) | Turn::Begins | Turn::OfWitness | Turn::Neither => None,
        })
    }

    /// Whether the session itself begins with it.
    pub(super) fn begins(&self) -> bool {
        self.items.iter().any(|item| item.turn == Turn::Begins)
    }

    pub(super) fn closed(&self) -> impl Iterator<Item = CallId> {
        self.items.iter().filter_map(|item| match item.turn {
            Turn::Closes(call) => Some(call),
            Turn::Opens(_) | Turn::Begins | Turn::OfWitness | Turn::Neither => None,
        })
    }
}

impl Item {
    /// Answers whoever waits; false where nobody does.
    pub(super) fn answer(&self, answer: &Answer) -> bool {
        // Who stopped waiting needs no answer.
        self.reply.as_ref().map(|reply| reply.send(answer.clone()).ok()).is_some()
    }
}
