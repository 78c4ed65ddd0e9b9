//! Where ciphertext is kept.
