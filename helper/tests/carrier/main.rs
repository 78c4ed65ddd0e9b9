//! Stores on a branch of a Git repository on this machine.

#![allow(clippy::unwrap_used)]

#[path = "../support/client.rs"]
mod client;
mod commands;
mod golden;
mod hostile;
mod many;
mod owner;
mod shape;
#[path = "../support/world.rs"]
mod world;

/// The branch with the ciphertext.
const BRANCH: &str = "refs/heads/git-remote-e2ee";
