//! Which entries of a tree its delta brings in.
