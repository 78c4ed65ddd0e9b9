//! Measurements of the engine and its tools beside plain Git and other peers.

#![forbid(unsafe_code)]
