//! Encrypted Git remotes: protocol v5, its storage, and what the two programs do with them.

#![forbid(unsafe_code)]

pub mod cli;
pub mod config;
mod counted;
pub mod flock;
pub mod gitremote;
pub mod protocol;
pub mod remote;
pub mod state;
pub mod storage;
