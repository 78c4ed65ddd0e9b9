//! Devices: who may do what, how that changes, and what is left when a change does not end well.

#![allow(clippy::unwrap_used)]

mod changes;
#[path = "../support/client.rs"]
mod client;
mod commands;
mod interrupted;
#[path = "../support/meddled.rs"]
mod meddled;
mod random;
mod roles;
#[path = "../support/world.rs"]
mod world;
