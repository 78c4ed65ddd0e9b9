//! Writes the files of a commit into a work tree.
