//! Measurements of the engine and its tools beside plain Git and other peers.
//!
//! Every row runs the tools alternately in one run, in fresh folders, and reports medians and ratios. Absolute times
//! differ between machines and days; the ratio inside one run is what counts.

#![forbid(unsafe_code)]

pub mod capture;
pub mod chunks;
pub mod counts;
pub mod engine;
pub mod environment;
pub mod gcrypt;
pub mod halves;
pub mod measure;
pub mod page;
pub mod probe;
pub mod remote;
pub mod report;
pub mod synthetic;
pub mod tables;
pub mod workload;
