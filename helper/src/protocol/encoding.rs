//! Encodings shared by all documents: length prefixes, domain strings, base64 and compact JSON.

use data_encoding::BASE64;
use serde::Serialize;

/// Domain strings. Each is hashed, signed or authenticated together with what it describes, so that bytes made for
/// one purpose can never be taken for another. All but the one of the envelopes end with a zero byte.
pub(crate) mod domain {
    pub const DEVICE_ID: &[u8] = b"git-remote-e2ee device id v3\0";
    pub const REPOSITORY_ROOT: &[u8] = b"git-remote-e2ee repository root v2\0";
    pub const SUBKEY: &[u8] = b"git-remote-e2ee subkey derivation v5\0";
    pub const COMMITMENT: &[u8] = b"git-remote-e2ee generation key commitment v5\0";
    pub const ENVELOPE_INFO: &[u8] = b"git-remote-e2ee generation key v5";
    pub const ENVELOPE: &[u8] = b"git-remote-e2ee generation envelope v5\0";
    pub const BODY: &[u8] = b"git-remote-e2ee manifest body v5\0";
    pub const LINK: &[u8] = b"git-remote-e2ee predecessor link v5\0";
    pub const PACK: &[u8] = b"git-remote-e2ee pack v5\0";
    pub const PACK_STREAM: &[u8] = b"git-remote-e2ee pack stream v5\0";
    pub const MANIFEST_SIGNATURE: &[u8] = b"git-remote-e2ee manifest v5\0";
    pub const POLICY_SIGNATURE: &[u8] = b"git-remote-e2ee policy v5\0";
    pub const INVITATION_SIGNATURE: &[u8] = b"git-remote-e2ee invitation checkpoint v5\0";
    pub const INVITATION_FINGERPRINT: &[u8] = b"git-remote-e2ee invitation fingerprint v1\0";
    pub const DEVICE_FINGERPRINT: &[u8] = b"git-remote-e2ee device fingerprint v1\0";
}

/// Appends `bytes` behind their length as four little-endian bytes.
///
/// Everything that goes through here is a document that was read under the manifest size limit, or an id.
pub(crate) fn push_lp(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).expect("documents are limited to 16 MiB before they get here");
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(bytes);
}

/// The document as compact JSON: no whitespace, fields in declaration order, absent values as `null`, and only
/// `"`, `\` and control characters escaped.
pub(crate) fn compact_json<T: Serialize>(document: &T) -> Vec<u8> {
    serde_json::to_vec(document).expect("maps have string keys and writing to memory does not fail")
}

/// Strict base64: standard alphabet, padded, no line breaks, no stray bits at the end.
pub(crate) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    if !padded_at_end_only(text) {
        return None;
    }
    BASE64.decode(text.as_bytes()).ok()
}

/// The decoder accepts several padded texts in a row; the format has one.
fn padded_at_end_only(text: &str) -> bool {
    text.find('=').is_none_or(|first| first + 2 >= text.len())
}

/// Strict base64 of exactly `N` bytes, decoded into `out`.
pub(crate) fn decode_base64_into<const N: usize>(text: &str, out: &mut [u8; N]) -> bool {
    // The decoder writes up to the unpadded length, which can exceed N by the padding, hence the check of the text.
    if text.len() != BASE64.encode_len(N) || !padded_at_end_only(text) {
        return false;
    }
    let mut buffer = zeroize::Zeroizing::new([0u8; 72]);
    let Some(buffer) = BASE64
        .decode_len(text.len())
        .ok()
        .and_then(|length| buffer.get_mut(..length))
    else {
        return false;
    };
    match BASE64.decode_mut(text.as_bytes(), buffer) {
        Ok(length) if length == N => {
            out.copy_from_slice(&buffer[..N]);
            true
        }
        _ => false,
    }
}

/// `serde(with)` for a byte string of any length as base64.
pub(crate) mod base64_bytes {
    use super::{BASE64, decode_base64};
    use serde::{Deserializer, Serializer, de};
    use std::fmt;

    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64.encode(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        deserializer.deserialize_str(Visitor)
    }

    pub(super) struct Visitor;
    impl de::Visitor<'_> for Visitor {
        type Value = Vec<u8>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("padded standard base64")
        }
        fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<u8>, E> {
            decode_base64(text).ok_or_else(|| E::custom("expected padded standard base64"))
        }
    }
}

/// `serde(with)` for an optional byte string of any length as base64, absent being `null`.
pub(crate) mod base64_optional {
    use super::BASE64;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(bytes: &Option<Vec<u8>>, serializer: S) -> Result<S::Ok, S::Error> {
        match bytes {
            Some(bytes) => serializer.serialize_some(&BASE64.encode(bytes)),
            None => serializer.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<u8>>, D::Error> {
        #[derive(Deserialize)]
        struct Text(#[serde(with = "super::base64_bytes")] Vec<u8>);
        Ok(Option::<Text>::deserialize(deserializer)?.map(|text| text.0))
    }
}

/// `serde(with)` for a byte string of fixed length as base64.
pub(crate) mod base64_array {
    use super::{BASE64, decode_base64_into};
    use serde::{Deserializer, Serializer, de};
    use std::fmt;

    pub fn serialize<S: Serializer, const N: usize>(
        bytes: &[u8; N],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64.encode(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>, const N: usize>(
        deserializer: D,
    ) -> Result<[u8; N], D::Error> {
        deserializer.deserialize_str(Visitor)
    }

    struct Visitor<const N: usize>;
    impl<const N: usize> de::Visitor<'_> for Visitor<N> {
        type Value = [u8; N];
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "padded standard base64 of {N} bytes")
        }
        fn visit_str<E: de::Error>(self, text: &str) -> Result<[u8; N], E> {
            let mut bytes = [0; N];
            decode_base64_into(text, &mut bytes)
                .then_some(bytes)
                .ok_or_else(|| E::custom(format_args!("expected padded standard base64 of {N} bytes")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_strict() {
        assert_eq!(decode_base64("aGk=").as_deref(), Some(&b"hi"[..]));
        for bad in ["aGk", "aGl=", "aG k=", "aGk=\n", "a-k=", "aGk=aGk="] {
            assert_eq!(decode_base64(bad), None, "{bad:?}");
        }
        let mut two = [0; 2];
        assert!(decode_base64_into("aGk=", &mut two));
        assert_eq!(&two, b"hi");
        assert!(!decode_base64_into("aGkh", &mut two), "three bytes");
        assert!(!decode_base64_into("aA==", &mut two), "one byte");
        assert!(!decode_base64_into("aGl=", &mut two), "stray bits");
        let mut five = [0; 5];
        assert!(decode_base64_into("aGkhaGk=", &mut five));
        assert!(
            !decode_base64_into("aGk=aGkh", &mut five),
            "padding in the middle"
        );
    }

    #[test]
    fn json_escapes_only_what_the_format_escapes() {
        let text = "\"\\/\u{8}\u{c}\n\r\t\u{1}\u{1f}\u{7f}\u{e9}\u{2028}";
        let expected = "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\u{7f}\u{e9}\u{2028}\"";
        assert_eq!(String::from_utf8(compact_json(&text)).as_deref(), Ok(expected));
    }
}
