//! Pack streams: a Git pack in sealed segments of 1 MiB.
//!
//! Segments do not depend on each other, so they are sealed and opened on all cores, in place. Only the SHA-256 over
//! the stored bytes, which is the pack's name, is serial. A pack of one segment is handled without any thread.

mod open;
mod seal;
#[cfg(test)]
mod tests;

use std::io;

use chacha20poly1305::aead::AeadInOut as _;
use chacha20poly1305::{Tag, XChaCha20Poly1305, XNonce};

use super::crypto::{self, GenerationKey, Purpose, Secret, TAG};
use super::encoding::{domain, push_lp};
use super::ids::{ContentId, RepositoryRoot};

pub use open::Opener;
pub use seal::Sealer;

/// Plaintext bytes of a segment; the last may be shorter.
pub const SEGMENT: usize = 1024 * 1024;
/// Bytes in front of the first segment: magic number, segment size, nonce prefix.
pub const HEADER: usize = 31;

const MAGIC: &[u8; 8] = b"E2EEPK5\0";
const PREFIX: usize = 19;
/// The counter is 32 bits wide, and its last two values stay unused.
const MAX_SEGMENTS: u64 = u32::MAX as u64 - 1;
/// Buffers of a pipeline beyond one per worker: one being filled, one being drained, one waiting.
const SPARE_BUFFERS: usize = 3;

/// Why a pack stream was refused. Comes out of [`Opener`] inside an [`io::Error`]; see [`Error::within`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A pack has at least one byte.
    #[error("pack has no content")]
    Empty,
    /// More than the segment counter can number.
    #[error("pack of {size} bytes is larger than a pack stream can be")]
    TooLarge {
        /// Plaintext bytes.
        size: u64,
    },
    /// Not a pack stream, or one with other segments.
    #[error("pack {id} does not begin with a pack stream header")]
    Header {
        /// The pack.
        id: ContentId,
    },
    /// The stored bytes end too early.
    #[error("pack {id} is truncated: expected {expected} stored bytes, got {seen}")]
    Truncated {
        /// The pack.
        id: ContentId,
        /// Bytes that the descriptor implies.
        expected: u64,
        /// Bytes there are.
        seen: u64,
    },
    /// The stored bytes go on after the last segment.
    #[error("pack stream has trailing data: pack {id} has more than {expected} stored bytes")]
    TrailingData {
        /// The pack.
        id: ContentId,
        /// Bytes that the descriptor implies.
        expected: u64,
    },
    /// A segment was changed, moved, or sealed under another key.
    #[error("pack stream authentication failed: segment {segment} of pack {id}")]
    Authentication {
        /// The pack.
        id: ContentId,
        /// Number of the segment, from 0.
        segment: u32,
    },
    /// The stored bytes are not those that the id names.
    #[error("pack ciphertext hash mismatch for {expected}: stored bytes hash to {seen}")]
    IdMismatch {
        /// In the descriptor.
        expected: ContentId,
        /// Of the stored bytes.
        seen: ContentId,
    },
}

impl Error {
    /// The refusal inside an error of [`Opener`] or [`Sealer`], if it is one and not a failure of the system.
    pub fn within(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::new(io::ErrorKind::InvalidData, error)
    }
}

/// What seals and opens one pack: a key of its own, and what the pack is bound to.
#[derive(Debug, Clone)]
pub struct PackKey {
    key: Secret,
    base: Vec<u8>,
}

impl PackKey {
    pub(crate) fn derive(key: &GenerationKey, root: &RepositoryRoot, generation: u64, ordinal: u64) -> Self {
        let mut base = domain::PACK.to_vec();
        push_lp(&mut base, root.to_hex().as_bytes());
        base.extend_from_slice(&generation.to_le_bytes());
        base.extend_from_slice(&ordinal.to_le_bytes());
        Self {
            key: key.subkey(root, generation, Purpose::Pack, ordinal),
            base,
        }
    }

    fn segments(&self, header: &[u8; HEADER]) -> Segments {
        let mut aad = domain::PACK_STREAM.to_vec();
        push_lp(&mut aad, &self.base);
        push_lp(&mut aad, header);
        let mut prefix = [0; PREFIX];
        prefix.copy_from_slice(&header[HEADER - PREFIX..]);
        Segments {
            cipher: crypto::cipher(&self.key),
            prefix,
            aad,
        }
    }
}

/// A pack that was sealed and written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedPack {
    /// SHA-256 of what was written.
    pub id: ContentId,
    /// Bytes of the Git pack.
    pub plaintext_size: u64,
    /// Bytes written.
    pub stored_size: u64,
}

/// Bytes that a pack of this size takes when sealed. `None` if it is empty or larger than a stream can be.
pub fn stored_size(plaintext_size: u64) -> Option<u64> {
    let segments = plaintext_size.div_ceil(SEGMENT as u64);
    if !(1..=MAX_SEGMENTS).contains(&segments) {
        return None;
    }
    (HEADER as u64)
        .checked_add(plaintext_size)?
        .checked_add(segments.checked_mul(TAG as u64)?)
}

fn header(prefix: &[u8; PREFIX]) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&(SEGMENT as u32).to_le_bytes());
    header[12..].copy_from_slice(prefix);
    header
}

fn is_header(header: &[u8; HEADER]) -> bool {
    header.starts_with(MAGIC) && header[8..12] == (SEGMENT as u32).to_le_bytes()
}

/// Seals and opens segments, each by itself.
struct Segments {
    cipher: XChaCha20Poly1305,
    prefix: [u8; PREFIX],
    aad: Vec<u8>,
}

impl Segments {
    fn nonce(&self, number: u32, last: bool) -> XNonce {
        let mut nonce = [0; 24];
        nonce[..PREFIX].copy_from_slice(&self.prefix);
        nonce[PREFIX..23].copy_from_slice(&number.to_be_bytes());
        nonce[23] = u8::from(last);
        nonce.into()
    }

    /// Turns plaintext into ciphertext and tag, in place.
    fn seal(&self, number: u32, last: bool, segment: &mut Vec<u8>) {
        let tag = self
            .cipher
            .encrypt_inout_detached(
                &self.nonce(number, last),
                &self.aad,
                segment.as_mut_slice().into(),
            )
            .expect("1 MiB is less than the 256 GiB the cipher allows");
        segment.extend_from_slice(&tag);
    }

    /// Turns ciphertext and tag into plaintext, in place. Nothing is decrypted before the tag is known to be right.
    fn open(&self, number: u32, last: bool, segment: &mut Vec<u8>) -> Option<()> {
        let length = segment.len().checked_sub(TAG)?;
        let (ciphertext, tag) = segment.split_at_mut(length);
        let tag = Tag::try_from(&*tag).ok()?;
        self.cipher
            .decrypt_inout_detached(&self.nonce(number, last), &self.aad, ciphertext.into(), &tag)
            .ok()?;
        segment.truncate(length);
        Some(())
    }
}
