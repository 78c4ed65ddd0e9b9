//! Packs: deltas, indexing what comes in, writing what goes out, creating them of new objects.

pub mod create;
pub mod delta;
pub mod index;
pub mod inflate;
pub mod write;
