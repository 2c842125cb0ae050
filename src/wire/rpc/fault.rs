//! Why a frame is no message, who is told what, and what becomes of the session.
//!
//! Invariant: nothing of a frame but a valid id stands in what the peer is told.

use super::Id;
use crate::wire::frame::FrameFault;
use crate::wire::json::JsonFault;

/// Why a frame is no message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Not one JSON value on one line: -32700, without an id; the session closes.
    Parse(ParseFault),
    /// JSON, and not a JSON-RPC message: -32600; the session closes.
    Invalid {
        /// The id that the answer carries: a valid one, of a message with a method.
        id: Option<Id>,
        /// What is wrong.
        cause: Shape,
    },
    /// Half a surrogate pair in a message that is sound otherwise: -32602; the session goes on.
    LoneSurrogate {
        /// The id that the answer carries; `None` for a notification, which is not answered.
        id: Option<Id>,
    },
}

/// Why a line is not one JSON value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseFault {
    /// The line itself.
    Frame(FrameFault),
    /// What stands in it.
    Json(JsonFault),
}

/// What is wrong with an envelope.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// An array: batches are not accepted.
    Batch,
    /// Not an object.
    NotObject,
    /// `jsonrpc` is missing or not `"2.0"`.
    Version,
    /// `method` is not a string, or has half a surrogate pair in it.
    Method,
    /// Neither a method nor a result nor an error.
    Nothing,
    /// More than one of method, result and error.
    Ambiguous,
    /// `id` is neither a string nor an integer of 64 bits, or has half a surrogate pair in it.
    Id,
    /// `params` is there and not an object.
    Params,
}

impl From<FrameFault> for Fault {
    fn from(fault: FrameFault) -> Self {
        Self::Parse(ParseFault::Frame(fault))
    }
}

impl From<JsonFault> for Fault {
    fn from(fault: JsonFault) -> Self {
        Self::Parse(ParseFault::Json(fault))
    }
}

impl Fault {
    /// The code of the answer. Source: JSON-RPC 2.0, section 5.1.
    pub fn code(&self) -> i32 {
        match self {
            Self::Parse(_) => -32700,
            Self::Invalid { .. } => -32600,
            Self::LoneSurrogate { .. } => -32602,
        }
    }

    /// Whether the session reads no further.
    pub fn closes(&self) -> bool {
        match self {
            Self::Parse(_) | Self::Invalid { .. } => true,
            Self::LoneSurrogate { .. } => false,
        }
    }

    /// Whether it is answered at all: not where only a notification was refused.
    pub fn is_answered(&self) -> bool {
        !matches!(self, Self::LoneSurrogate { id: None })
    }

    /// The id that the answer echoes; `None` is `null`, or no id, as the revision wants it.
    pub fn id(&self) -> Option<&Id> {
        match self {
            Self::Parse(_) => None,
            Self::Invalid { id, .. } | Self::LoneSurrogate { id } => id.as_ref(),
        }
    }

    /// A fixed sentence for the peer; nothing of the frame is in it.
    pub fn message(&self) -> &'static str {
        match self {
            Self::Parse(ParseFault::Frame(fault)) => fault.message(),
            Self::Parse(ParseFault::Json(JsonFault { defect, .. })) => defect.message(),
            Self::Invalid { cause, .. } => cause.message(),
            Self::LoneSurrogate { .. } => "Invalid params: a string holds half of a surrogate pair",
        }
    }

    /// A short word for logs and counters.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Parse(ParseFault::Frame(fault)) => fault.word(),
            Self::Parse(ParseFault::Json(JsonFault { defect, .. })) => defect.word(),
            Self::Invalid { cause, .. } => cause.word(),
            Self::LoneSurrogate { .. } => "lone_surrogate",
        }
    }
}

impl Shape {
    /// A fixed sentence for the peer.
    pub fn message(self) -> &'static str {
        match self {
            Self::Batch => "Invalid request: batches are not accepted",
            Self::NotObject => "Invalid request: the message is not an object",
            Self::Version => "Invalid request: jsonrpc must be \"2.0\"",
            Self::Method => "Invalid request: method must be a string of whole characters",
            Self::Nothing => "Invalid request: neither method nor result nor error",
            Self::Ambiguous => "Invalid request: more than one of method, result and error",
            Self::Id => "Invalid request: id must be a string or an integer of 64 bits",
            Self::Params => "Invalid request: params must be an object",
        }
    }

    /// A short word for logs and counters.
    pub fn word(self) -> &'static str {
        match self {
            Self::Batch => "batch",
            Self::NotObject => "not_an_object",
            Self::Version => "jsonrpc_version",
            Self::Method => "method",
            Self::Nothing => "no_method",
            Self::Ambiguous => "ambiguous_message",
            Self::Id => "id",
            Self::Params => "params",
        }
    }
}
