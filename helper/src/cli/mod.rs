//! The commands of `git-e2ee`.
