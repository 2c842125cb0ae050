//! Bytes of one peer to typed JSON-RPC, strictly and in stages ([`frame`], [`json`], [`rpc`]), and
//! JSON back to it ([`mod@write`]).
//!
//! It knows nothing of MCP, tools or effects, and reads in both directions: what a client sends to
//! us and, one day, what a server sends to us.
//!
//! Invariant: input that can be read in two ways leaves this layer as a fault, never as a message.

pub mod frame;
pub mod json;
pub mod rpc;
pub mod write;
