//! Fixture repositories, Git as judge, and golden files for the tests of the other crates.
//!
//! Tests run the real `git` found on PATH, always with an environment of their own: no user configuration, fixed
//! names and dates, so that the same script makes the same object ids everywhere.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)] // a fixture that cannot be made has to fail the test that wanted it

pub mod checker;
pub mod git;
pub mod guide;
pub mod random;
pub mod repo;
pub mod serve;
pub mod terminal;
pub mod textual;

use std::path::{Path, PathBuf};

/// The folder of this crate, which holds scripts and golden files.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A golden file or folder by its path below `testdata/golden`.
pub fn golden(relative: &str) -> PathBuf {
    root().join("golden").join(relative)
}
