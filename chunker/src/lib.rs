//! Big files in ordinary Git repositories: content-defined chunks, each stored once.
//!
//! In the tree stands a pointer of a few lines; what it leads to is read by [`ingot_engine::chunked`] and made here.
//! `docs/format-chunked.md` has the format.
//!
//! | Module | What it does |
//! | --- | --- |
//! | [`cut`] | where chunks end |
//! | [`store`] | from a file to chunks in a pack |
//! | [`worktree`] | from pointers to files, and what is known of them |
//! | [`filter`] | Git's clean and smudge, as a long-running process |
//! | [`repo`] | add, commit, switch, status and the like, without Git |
//! | [`care`] | collecting, checking, counting, exchanging and converting |
//! | [`cli`] | the command line of `git-chunk` |

#![forbid(unsafe_code)]

pub mod attributes;
pub mod care;
pub mod cli;
pub mod cut;
mod error;
pub mod filter;
mod paths;
pub mod repo;
pub mod store;
pub mod worktree;

pub use error::Error;
