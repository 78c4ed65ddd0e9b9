//! Indexes an incoming pack.
