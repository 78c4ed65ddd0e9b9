//! The commands of `git-e2ee`.

pub mod args;
pub mod documents;
pub mod exit;
pub mod interrupt;
pub mod progress;
pub mod refspec;
pub mod report;
pub mod summary;
