//! What objects refer to.

pub mod links;
pub mod tree;
pub mod tree_delta;

pub use links::{Link, links};
