//! Read-only maps of index-like files: the one place with unsafe code.
