//! Snapshots of a person's environment: dotfiles and the package list, captured, scanned for secrets and restored.

#![forbid(unsafe_code)]

pub mod config;
pub mod names;
pub mod rooted;
pub mod rules;
pub mod tracked;
pub mod manifest;
