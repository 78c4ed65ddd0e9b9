//! Snapshots of a person's environment: dotfiles and the package list, captured, scanned for secrets and restored.

#![forbid(unsafe_code)]

pub mod packages;
pub mod secrets;
