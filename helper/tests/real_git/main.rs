//! The helper under real Git: what people do with a remote, one test for each thing.

#![allow(clippy::unwrap_used)]

mod clone;
mod conversation;
mod fetch;
mod names;
mod places;
mod push;
mod refused;
#[path = "../support/world.rs"]
mod world;
