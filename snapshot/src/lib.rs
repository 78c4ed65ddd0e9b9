//! Snapshots of a person's environment: dotfiles and the package list, captured, scanned for secrets and restored.
//!
//! The secret scan by itself:
//!
//! ```
//! use ingot_snapshot::secrets::{AllowList, Scanner};
//!
//! let scanner = Scanner::new(&AllowList::default());
//! let mut scan = scanner.file(b".config/app/cloud.toml");
//! scan.feed(b"region = \"north\"\n");
//! scan.feed(b"aws_secret_access_key = \"hK3vQ9xT2mWz8RfL5nYb7JcD1sGp4EuA6oXiB0rS\"\n"); // rivet:allow
//! let findings = scan.finish();
//! assert_eq!((findings[0].rule, findings[0].line), ("aws-secret-key", 2));
//! ```

#![forbid(unsafe_code)]

pub mod archive;
pub mod capture;
pub mod cli;
pub mod config;
pub mod diff;
pub mod manifest;
pub mod names;
pub mod packages;
pub mod prune;
pub mod restore;
pub mod rooted;
pub mod rules;
pub mod secrets;
pub mod show;
pub mod tracked;
pub mod transfer;
pub mod verify;
pub mod watch;
