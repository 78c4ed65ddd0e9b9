//! Key files as people keep them: behind a passphrase, out of work trees, on paper.

#![allow(clippy::unwrap_used)]

#[path = "../support/client.rs"]
mod client;
mod commands;
mod files;
mod paper;
mod places;
mod protect;
mod terminal;
#[path = "../support/world.rs"]
mod world;
