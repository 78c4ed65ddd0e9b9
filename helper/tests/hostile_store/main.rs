//! Stores that are wrong in every way a good one can be spoilt: each is refused with one line of the right kind, and
//! nothing of the repository has moved.

#![allow(clippy::unwrap_used)]

#[path = "../support/client.rs"]
mod client;
mod content;
mod forged;
mod good;
mod heads;
mod packs;
mod tampered;
#[path = "../support/world.rs"]
mod world;
