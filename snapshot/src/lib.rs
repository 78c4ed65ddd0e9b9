//! Snapshots of a person's environment: dotfiles and the package list, captured, scanned for secrets and restored.

#![forbid(unsafe_code)]

pub mod archive;
pub mod capture;
pub mod cli;
pub mod config;
pub mod diff;
pub mod manifest;
pub mod names;
pub mod packages;
pub mod prune;
mod records;
pub mod restore;
pub mod rooted;
pub mod rules;
pub mod secrets;
pub mod show;
pub mod tracked;
pub mod transfer;
pub mod verify;
pub mod watch;
