//! Entry point of `git-e2ee`.
#![forbid(unsafe_code)]

fn main() {}
