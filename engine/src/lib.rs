//! Git inside your process.
//!
//! Reads, enumerates, packs, indexes, checks and checks out Git repositories without ever starting a `git` program.
//! The crate prints nothing, encrypts nothing and parses no arguments: progress goes through [`progress::Progress`],
//! failures through one error enum per module, and what is worth a warning through [`tracing`] events.

#![deny(unsafe_code)]

pub mod checkout;
pub mod chunked;
pub mod connectivity;
pub mod durable;
pub mod import;
pub mod mapped;
mod notice;
pub mod object;
pub mod pack;
pub mod phase;
pub mod progress;
pub mod refs;
pub mod repository;
pub mod store;
pub mod transport;
pub mod walk;
