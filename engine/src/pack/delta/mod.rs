//! Deltas: reading, applying and making them.

pub mod encode;
