//! Entry point of `git-remote-e2ee`.
#![forbid(unsafe_code)]

fn main() {}
