//! What objects refer to.
