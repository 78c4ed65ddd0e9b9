//! Packs: deltas, indexing what comes in, writing what goes out.

pub mod delta;
pub mod index;
pub mod inflate;
pub mod write;
