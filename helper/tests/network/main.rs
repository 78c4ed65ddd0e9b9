//! Carriers on Git servers: real ones, on this machine's own network.

#![allow(clippy::unwrap_used)]

mod cache;
mod places;
mod programs;
mod resumed;
mod servers;
mod terminal;
mod trouble;
#[path = "../support/world.rs"]
mod world;
