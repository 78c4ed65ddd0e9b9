//! Continuity state: what this clone has already seen and checked.
