//! What protects a key file.

use std::fmt;

use zeroize::Zeroizing;

/// A passphrase: overwritten when dropped, never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Passphrase(Zeroizing<String>);

impl Passphrase {
    /// Takes what was typed, as it was typed.
    pub fn new(text: Zeroizing<String>) -> Passphrase {
        Passphrase(text)
    }

    /// The bytes that are hashed.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether nothing was typed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<&str> for Passphrase {
    fn from(text: &str) -> Passphrase {
        Passphrase(Zeroizing::new(text.to_owned()))
    }
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase(…)")
    }
}
