//! Big files in ordinary Git repositories: content-defined chunks, each stored once.

#![forbid(unsafe_code)]
