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
//!
//! Where chunks end depends on what is around, so that an insertion moves borders and changes few chunks:
//!
//! ```
//! use std::collections::HashSet;
//!
//! let mut bytes: Vec<u8> = (0..2_000_000u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
//! let chunks = |bytes: &[u8]| {
//!     let (mut lengths, mut at) = (Vec::new(), 0);
//!     ingot_chunker::cut::all(bytes, true, &mut lengths);
//!     let ids = lengths.iter().map(|length| {
//!         at += length;
//!         blake3::hash(&bytes[at - length..at])
//!     });
//!     ids.collect::<HashSet<_>>()
//! };
//! let before = chunks(&bytes);
//! bytes.insert(0, b'x');
//! let after = chunks(&bytes);
//! assert!(before.len() > 50);
//! assert!(after.difference(&before).count() <= 2);
//! ```

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
