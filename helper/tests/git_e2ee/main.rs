//! `git-e2ee` as its users run it; Git only judges the results.

#![allow(clippy::unwrap_used)]

mod clone;
mod codes;
mod fetch;
mod push;
mod setup;
mod show;
mod signals;
mod traces;
#[path = "../support/world.rs"]
mod world;
