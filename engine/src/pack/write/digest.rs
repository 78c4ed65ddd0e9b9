//! Checksums of one's own data.
//!
//! Packs and objects that this repository holds already need no search for crafted SHA-1 collisions, so the plain
//! functions are used, which run on the processor's hash instructions.

use gix_hash::{Kind as Format, ObjectId};
use gix_object::Kind;
use sha1::Digest as _;

/// A running checksum in the object format of a repository.
#[derive(Debug, Clone)]
pub(crate) enum Digest {
    Sha1(sha1::Sha1),
    Sha256(sha2::Sha256),
}

impl Digest {
    pub(crate) fn new(format: Format) -> Digest {
        match format {
            Format::Sha256 => Digest::Sha256(sha2::Sha256::new()),
            _ => Digest::Sha1(sha1::Sha1::new()),
        }
    }

    /// The checksum of an object begins with its kind and size.
    pub(crate) fn of_object(format: Format, kind: Kind, size: u64) -> Digest {
        let mut digest = Digest::new(format);
        digest.update(&gix_object::encode::loose_header(kind, size));
        digest
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Digest::Sha1(state) => state.update(bytes),
            Digest::Sha256(state) => state.update(bytes),
        }
    }

    pub(crate) fn finish(self) -> ObjectId {
        match self {
            Digest::Sha1(state) => ObjectId::from_bytes_or_panic(&state.finalize()),
            Digest::Sha256(state) => ObjectId::from_bytes_or_panic(&state.finalize()),
        }
    }
}

/// True if `bytes`, the whole content of a file of Git's, end with the checksum of what is before.
pub(crate) fn ends_with_checksum(bytes: &[u8], format: Format) -> bool {
    let Some(end) = bytes.len().checked_sub(format.len_in_bytes()) else {
        return false;
    };
    let mut digest = Digest::new(format);
    digest.update(&bytes[..end]);
    digest.finish().as_slice() == &bytes[end..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_have_gits_ids() {
        for format in [Format::Sha1, Format::Sha256] {
            let mut digest = Digest::of_object(format, Kind::Blob, 0);
            digest.update(b"");
            assert_eq!(digest.finish(), ObjectId::empty_blob(format));
            assert_eq!(
                Digest::of_object(format, Kind::Tree, 0).finish(),
                ObjectId::empty_tree(format)
            );
        }
    }
}
