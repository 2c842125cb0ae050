//! JSON-RPC to tool calls and back.
//!
//! Invariant: method names and revision dates of the Model Context Protocol stand in this layer
//! only; it knows nothing of policy and effects, and takes the tools from the wiring.

pub mod answer;
pub mod call;
pub mod catalog;
pub mod client;
pub mod revision;
