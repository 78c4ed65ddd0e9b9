//! Writes packs: first a plan, then a stream.
