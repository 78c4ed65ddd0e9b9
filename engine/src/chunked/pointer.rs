//! The text that stands in the tree for a chunked file.

use gix_hash::ObjectId;

/// The first line of every pointer.
pub(super) const FIRST_LINE: &str = "chunked-file v1\n";
/// Columns of the size, enough for any 64-bit number. They make all pointers equally long, so that an object's size
/// tells whether it can be one.
const SIZE_COLUMNS: usize = 20;

/// What a pointer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pointer {
    /// The length of the file in bytes.
    pub size: u64,
    /// The BLAKE3 of the whole file.
    pub blake3: blake3::Hash,
    /// The root list.
    pub list: ObjectId,
}

/// The length of every pointer of a repository with this object format: 160 bytes with SHA-1, 184 with SHA-256.
pub const fn pointer_length(format: gix_hash::Kind) -> usize {
    FIRST_LINE.len()
        + "size \n".len()
        + SIZE_COLUMNS
        + "blake3 \n".len()
        + 2 * blake3::OUT_LEN
        + "list \n".len()
        + format.len_in_hex()
}

impl Pointer {
    /// The bytes that stand in the tree.
    pub fn to_bytes(&self) -> Vec<u8> {
        format!(
            "{FIRST_LINE}size {:>SIZE_COLUMNS$}\nblake3 {}\nlist {}\n",
            self.size, self.blake3, self.list
        )
        .into_bytes()
    }

    /// Reads exactly what [`Pointer::to_bytes`] writes; `None` for everything else.
    pub fn parse(bytes: &[u8], format: gix_hash::Kind) -> Option<Pointer> {
        if bytes.len() != pointer_length(format) {
            return None;
        }
        let text = std::str::from_utf8(bytes).ok()?.strip_prefix(FIRST_LINE)?;
        let (size, rest) = line(text, "size ")?;
        let (blake3, rest) = line(rest, "blake3 ")?;
        let (list, rest) = line(rest, "list ")?;
        let pointer = Pointer {
            size: size.trim_start_matches(' ').parse().ok()?,
            blake3: blake3::Hash::from_hex(blake3).ok()?,
            list: ObjectId::from_hex(list.as_bytes()).ok()?,
        };
        // There is one way to write a pointer: no sign, no leading zero, lowercase digits.
        (rest.is_empty() && pointer.to_bytes() == bytes).then_some(pointer)
    }
}

fn line<'t>(text: &'t str, name: &str) -> Option<(&'t str, &'t str)> {
    text.strip_prefix(name)?.split_once('\n')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn pointer(size: u64, format: gix_hash::Kind) -> Pointer {
        Pointer {
            size,
            blake3: blake3::hash(b"content"),
            list: ObjectId::empty_blob(format),
        }
    }

    #[test]
    fn all_sizes_make_pointers_of_one_length() {
        for format in [gix_hash::Kind::Sha1, gix_hash::Kind::Sha256] {
            for size in [0, 1, 65_536, 1 << 40, u64::MAX] {
                let pointer = pointer(size, format);
                let bytes = pointer.to_bytes();
                assert_eq!(bytes.len(), pointer_length(format));
                assert_eq!(Pointer::parse(&bytes, format), Some(pointer));
            }
        }
        assert_eq!(pointer_length(gix_hash::Kind::Sha1), 160);
        assert_eq!(pointer_length(gix_hash::Kind::Sha256), 184);
    }

    #[test]
    fn there_is_one_way_to_write_a_pointer() {
        let format = gix_hash::Kind::Sha1;
        let text = String::from_utf8(pointer(1234, format).to_bytes()).unwrap();
        for (from, to) in [
            ("size                 1234", "size 00000000000000001234"),
            ("size                 1234", "size                +1234"),
            ("size                 1234", "size 1234                "),
            ("size                 1234", "size                 123 "),
            ("v1", "v2"),
            ("list", "lisp"),
            ("e69de29b", "E69DE29B"),
            ("\nlist", " list"),
        ] {
            let other = text.replace(from, to);
            assert_ne!(other, text, "{from}");
            assert_eq!(Pointer::parse(other.as_bytes(), format), None, "{other}");
        }
        assert_eq!(Pointer::parse(text.as_bytes(), gix_hash::Kind::Sha256), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_pointer_or_none(mut bytes in proptest::collection::vec(any::<u8>(), 160), at in 0usize..160) {
            let _ = Pointer::parse(&bytes, gix_hash::Kind::Sha1);
            let good = pointer(77, gix_hash::Kind::Sha1).to_bytes();
            bytes[..at].copy_from_slice(&good[..at]);
            let _ = Pointer::parse(&bytes, gix_hash::Kind::Sha1);
        }
    }
}
