//! Keyward lets an AI agent act without holding a key.
//!
//! The layers, each of which imports only from itself and from those above it:
//! words ([`limits`], [`name`], [`secret`], [`state`], [`clock`],
//! [`large`], [`hex`]), [`wire`] (bytes to JSON-RPC),
//! [`mcp`] (JSON-RPC to tool calls), judgement ([`action`], [`policy`], [`authorize`], [`examination`]), effects
//! ([`cut`], [`trust`], [`home`], [`window`], [`credential`], [`dial`], [`child`], [`ssh`], [`execute`],
//! [`audit`], [`witness`]), wiring ([`gateway`]) and commands ([`cli`]).

pub mod action;
pub mod audit;
pub mod authorize;
pub mod child;
pub mod cli;
pub mod clock;
pub mod credential;
pub mod cut;
pub mod dial;
pub mod examination;
pub mod execute;
pub mod gateway;
pub mod hex;
pub mod home;
pub mod large;
pub mod limits;
pub mod mcp;
pub mod name;
pub mod policy;
pub mod secret;
pub mod ssh;
pub mod state;
pub mod trust;
pub mod window;
pub mod wire;
pub mod witness;
