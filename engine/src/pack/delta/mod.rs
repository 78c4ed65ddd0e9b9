//! Deltas: reading, applying and making them.
