//! Makes deltas.
