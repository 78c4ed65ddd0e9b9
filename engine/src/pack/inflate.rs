//! zlib in one place.
