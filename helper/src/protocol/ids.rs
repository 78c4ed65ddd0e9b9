//! The 32-byte names of the protocol. Each is a SHA-256 value, written as 64 lower-case hexadecimal digits.
//!
//! Text with upper-case digits is refused: ids are compared with computed, lower-case text everywhere, so an id in
//! another spelling could never be found or matched.

use std::fmt;
use std::str::FromStr;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};

/// Text that is not 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid opaque object id: expected 64 lower-case hexadecimal digits, got {}", shown(.text))]
pub struct InvalidId {
    /// What was found instead, as it was read.
    pub text: String,
}

/// At most 80 characters of an unexpected text, escaped, so that a hostile value cannot flood or drive a terminal.
fn shown(text: &str) -> String {
    let mut out = String::from("\"");
    out.extend(text.chars().take(80).flat_map(char::escape_default));
    out.push_str(if text.chars().nth(80).is_some() {
        "\"…"
    } else {
        "\""
    });
    out
}

macro_rules! name32 {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 32]);

        impl $name {
            /// The name with these raw bytes.
            pub const fn from_bytes(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }

            /// The raw 32 bytes.
            pub const fn as_bytes(&self) -> &[u8; 32] {
                &self.0
            }

            /// The 64 lower-case hexadecimal digits, as they stand in documents and associated data.
            pub fn to_hex(&self) -> String {
                HEXLOWER.encode(&self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.to_hex())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                parse_hex(text).map(Self).ok_or_else(|| InvalidId { text: text.to_owned() })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.to_hex())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl de::Visitor<'_> for Visitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("64 lower-case hexadecimal digits")
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Visitor)
            }
        }
    };
}

name32! {
    /// Name of stored or serialised bytes: the SHA-256 of a manifest, of a sealed pack, or of a policy object.
    ContentId
}

name32! {
    /// Name of a device, computed from its two public keys.
    DeviceId
}

name32! {
    /// Name of a repository and its trust anchor, computed from the public keys of the device that created it.
    RepositoryRoot
}

name32! {
    /// A SHA-256 value inside a document that names nothing in storage: a digest or a key commitment.
    Digest
}

impl ContentId {
    /// The id of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

fn parse_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 {
        return None;
    }
    HEXLOWER.decode_mut(text.as_bytes(), &mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_64_lower_case_digits_and_nothing_else() {
        let id = ContentId::of(b"");
        let text = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(id.to_string(), text);
        assert_eq!(text.parse::<ContentId>().as_ref(), Ok(&id));
        for bad in [
            "",
            &text[1..],
            &text.to_uppercase(),
            &format!("{text}0"),
            &format!(" {}", &text[1..]),
        ] {
            assert!(bad.parse::<ContentId>().is_err(), "{bad:?}");
        }
        let shown = format!("\u{1b}[2J{}", "x".repeat(500))
            .parse::<ContentId>()
            .map_err(|e| e.to_string());
        let shown = shown.expect_err("not an id");
        assert!(shown.len() < 250 && !shown.contains('\u{1b}'), "{shown}");
    }
}
