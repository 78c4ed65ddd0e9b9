//! Many small packs taken in as one.
//!
//! A store has a pack for each push. Who fetches hundreds of pushes at once would get hundreds of packs of some hundred
//! bytes, each with its index, and every later look at an object would search all of them. The entries of several packs,
//! one after another, are a pack again: a delta names its base by the distance to it, which stays, or by its id.
//!
//! Nothing is joined that was not decrypted and verified to its end, and whose own checksum is not right. Where the joined
//! pack is not accepted, each of its parts is tried by itself, which tells what is wrong with which.

use std::io::Read as _;

use super::{Error, Remote, View};
use crate::protocol::manifest::PackDescriptor;

/// Fewer packs than this stay as they are: one by one they are decrypted while they are indexed.
const FEWEST: usize = 8;
/// The largest pack that is joined with others.
const SMALL: u64 = 1 << 20;
/// The most bytes that are joined: they are held in memory.
const MOST: u64 = 32 << 20;

const HEADER: usize = 12;

/// How many of the next packs are to be joined; 0 or 1 where joining is not worth it.
pub(super) fn together(packs: &[&PackDescriptor]) -> usize {
    let mut total = 0u64;
    let small = packs.iter().take_while(|pack| {
        total = total.saturating_add(pack.plaintext_size);
        pack.plaintext_size <= SMALL && total <= MOST
    });
    match small.count() {
        count if count >= FEWEST => count,
        _ => 1,
    }
}

impl Remote<'_> {
    /// The packs as one; `None` where one of them has to be looked at alone.
    pub(super) fn joined(&self, view: &View, packs: &[&PackDescriptor]) -> Result<Option<Vec<u8>>, Error> {
        let format = view.format().unwrap_or(gix_hash::Kind::Sha1);
        let mut joined = b"PACK\0\0\0\x02\0\0\0\0".to_vec();
        let mut objects = 0u32;
        let mut plain = Vec::new();
        for pack in packs {
            plain.clear();
            self.opened(view, pack)?
                .read_to_end(&mut plain)
                .map_err(|source| Error::from_stream(pack.id, source))?;
            let Some((count, entries)) = entries(&plain, format) else {
                return Ok(None);
            };
            let Some(sum) = objects.checked_add(count) else {
                return Ok(None);
            };
            objects = sum;
            joined.extend_from_slice(entries);
            if self.progress.interrupted() {
                return Err(Error::Interrupted);
            }
        }
        joined[8..HEADER].copy_from_slice(&objects.to_be_bytes());
        let Some(checksum) = checksum(&joined, format) else {
            return Ok(None);
        };
        joined.extend_from_slice(checksum.as_slice());
        Ok(Some(joined))
    }
}

/// Number and bytes of the entries of a whole pack with the right checksum.
fn entries(pack: &[u8], format: gix_hash::Kind) -> Option<(u32, &[u8])> {
    let (content, trailer) = pack.split_at_checked(pack.len().checked_sub(format.len_in_bytes())?)?;
    let (header, entries) = content.split_first_chunk::<HEADER>()?;
    if header[..8] != *b"PACK\0\0\0\x02" || checksum(content, format)?.as_slice() != trailer {
        return None;
    }
    let [.., a, b, c, d] = *header;
    Some((u32::from_be_bytes([a, b, c, d]), entries))
}

/// `None` where the content was made to collide with another.
fn checksum(content: &[u8], format: gix_hash::Kind) -> Option<gix_hash::ObjectId> {
    let mut hasher = gix_hash::hasher(format);
    hasher.update(content);
    hasher.try_finalize().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::ContentId;

    #[test]
    fn only_many_small_packs_are_joined() {
        let pack = |plaintext_size| PackDescriptor {
            id: ContentId::of(b"x"),
            plaintext_size,
            generation: 0,
            ordinal: 0,
        };
        let sized = |sizes: &[u64]| {
            let packs: Vec<PackDescriptor> = sizes.iter().map(|size| pack(*size)).collect();
            together(&packs.iter().collect::<Vec<_>>())
        };
        assert_eq!(sized(&[]), 1);
        assert_eq!(sized(&[100; 7]), 1);
        assert_eq!(sized(&[100; 8]), 8);
        assert_eq!(sized(&[SMALL; 100]), 32);
        assert_eq!(
            sized(&[100, 100, SMALL + 1, 100, 100, 100, 100, 100, 100, 100, 100]),
            1
        );
        assert_eq!(sized(&[100, 100, 100, 100, 100, 100, 100, 100, u64::MAX]), 8);
    }

    #[test]
    fn what_is_no_whole_pack_is_not_joined() {
        let format = gix_hash::Kind::Sha1;
        let mut pack = b"PACK\0\0\0\x02\0\0\0\x07entries".to_vec();
        let sum = checksum(&pack, format).expect("no collision");
        pack.extend_from_slice(sum.as_slice());
        assert_eq!(entries(&pack, format), Some((7, b"entries".as_slice())));
        for length in 0..pack.len() {
            assert_eq!(entries(&pack[..length], format), None);
        }
        for at in 0..pack.len() {
            pack[at] ^= 1;
            assert_eq!(entries(&pack, format), None);
            pack[at] ^= 1;
        }
    }
}
