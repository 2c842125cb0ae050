//! The protocol's revisions, and what each of them knows.

/// A revision that is served.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Revision {
    /// 2024-11-05: tools with input schemas.
    V2024November,
    /// 2025-03-26: tool annotations, a message in progress notifications.
    V2025March,
    /// 2025-06-18: titles, output schemas and structured content.
    V2025June,
    /// 2025-11-25: an error without a known id carries none.
    V2025November,
    /// 2026-07-28: stateless; everything travels with each request.
    V2026July,
}

use Revision::{V2024November, V2025June, V2025March, V2025November, V2026July};

impl Revision {
    /// Those that begin with a handshake, the newest first.
    pub const HANDSHAKE: [Self; 4] = [V2025November, V2025June, V2025March, V2024November];
    /// The one without a handshake.
    pub const MODERN: Self = V2026July;

    /// The revision's name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            V2024November => "2024-11-05",
            V2025March => "2025-03-26",
            V2025June => "2025-06-18",
            V2025November => "2025-11-25",
            V2026July => "2026-07-28",
        }
    }

    /// The revision that answers an `initialize` which asks for `asked`: that one where it has a
    /// handshake, else the newest that has. An empty version is none.
    pub fn negotiate(asked: &str) -> Option<Self> {
        if asked.is_empty() {
            return None;
        }
        let known = Self::HANDSHAKE.into_iter().find(|revision| revision.as_str() == asked);
        Some(known.unwrap_or(Self::HANDSHAKE[0]))
    }

    /// Whether results say their type, and lists how long they hold.
    pub(crate) fn has_result_type(self) -> bool {
        self >= V2026July
    }

    /// Whether an error without a known id leaves the member out instead of saying null.
    pub(crate) fn omits_unknown_id(self) -> bool {
        self >= V2025November
    }

    /// Whether results have `structuredContent`, and tools titles and output schemas.
    pub(crate) fn has_structured_content(self) -> bool {
        self >= V2025June
    }

    /// Whether tools have annotations.
    pub(crate) fn has_annotations(self) -> bool {
        self >= V2025March
    }

    /// Whether a progress notification may carry a message.
    pub(crate) fn has_progress_message(self) -> bool {
        self >= V2025March
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negotiation() {
        let table = [
            ("2024-11-05", Some(V2024November)),
            ("2025-03-26", Some(V2025March)),
            ("2025-06-18", Some(V2025June)),
            ("2025-11-25", Some(V2025November)),
            ("2026-07-28", Some(V2025November)),
            ("2099-01-01", Some(V2025November)),
            ("x", Some(V2025November)),
            ("", None),
        ];
        for (asked, expected) in table {
            assert_eq!(Revision::negotiate(asked), expected, "{asked:?}");
        }
    }
}
