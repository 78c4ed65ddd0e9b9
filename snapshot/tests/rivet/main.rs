//! `rivet` as people use it, on real file systems, with Git as the judge of what it stores.

#![allow(clippy::unwrap_used)] // in tests, failing is the point

mod capture;
mod crashes;
mod determinism;
mod home;
mod hostile;
mod races;
mod restore;
mod retention;
mod secrets;
mod transfer;
mod tree;
mod watch;
