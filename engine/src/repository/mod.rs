//! Opens repositories and says what kind they are.
