//! Carriers on Git servers: real ones, on this machine's own network.

#![allow(clippy::unwrap_used)]

mod cache;
mod places;
mod servers;
mod trouble;
#[path = "../support/world.rs"]
mod world;
