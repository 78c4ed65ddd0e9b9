//! The daily commands, in this process, on an ordinary repository: what they leave behind is what Git would have made.
//!
//! Hooks are not run and commits are not signed, because both need programs; [`commit`] says so where it matters.

pub mod add;
pub mod checkout;
pub mod commit;
mod files;
pub mod history;
mod index;
mod plan;
mod scan;
pub mod status;
mod trees;

pub use index::{Change, Index, stat_of};
pub use scan::{Found, scan};
pub use trees::{Flat, Side, flatten};
