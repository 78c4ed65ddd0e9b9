//! Encrypted Git remotes: protocol v5, its storage, and what the two programs do with them.

#![forbid(unsafe_code)]

pub mod cli;
pub mod config;
pub mod flock;
pub mod gitremote;
pub mod keys;
pub mod protocol;
pub mod remote;
pub mod state;
pub mod storage;
