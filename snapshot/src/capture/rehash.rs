//! Reads files again to see whether they still have the content that the last capture stored.
//!
//! Most do, and such a file costs one opening, one reading and one hash: what has the recorded length and BLAKE3 is
//! what was recorded, whatever became of its name meanwhile. All others are left to the reader, which scans and stores.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, OwnedFd};

use ingot_engine::progress::{Progress, Unit};
use rayon::prelude::*;
use rustix::fs::FileType;

use super::Error;
use super::intake::Known;
use super::matching::Matched;
use super::read::HELD;
use super::walk::Listing;
use crate::manifest::{self, Content};
use crate::rooted::{self, Root};

/// Files of one folder that one thread reads in a row.
const ROW: usize = 64;

/// Marks those items as known whose content is that of the last capture; returns how many they are.
pub(super) fn rehash(
    root: &Root,
    listing: &Listing,
    matched: &mut Matched,
    progress: &dyn Progress,
) -> Result<u64, Error> {
    let candidates: Vec<(usize, Content)> = listing
        .items
        .iter()
        .enumerate()
        .filter_map(|(at, item)| {
            let old = matched.old[at].filter(|old| {
                item.stat.file_type() == FileType::RegularFile
                    && old.size == item.stat.size
                    && old.size <= HELD
            })?;
            matches!(matched.known[at], Known::Unknown).then_some((at, old))
        })
        .collect();
    let folder = |at: usize| manifest::parent(listing.path(&listing.items[at]));
    let rows: Vec<&[(usize, Content)]> = candidates
        .chunk_by(|(a, _), (b, _)| folder(*a) == folder(*b))
        .flat_map(|row| row.chunks(ROW))
        .collect();
    progress.begin("Hashing", Some(candidates.len() as u64), Unit::Files);
    let same: Vec<usize> = rows
        .par_iter()
        .flat_map_iter(|row| {
            let mut buffer = Vec::new();
            let first = row.first().map(|&(at, _)| root.folder(folder(at)));
            let folder = match first {
                Some(Ok(folder)) if !progress.interrupted() => Some(folder),
                _ => None,
            };
            progress.advance(row.len() as u64);
            row.iter().filter_map(move |(at, old)| {
                let path = listing.path(&listing.items[*at]);
                let name = &path[path.len() - name_length(path)..];
                let same = has_content(folder.as_ref()?, name, old, &mut buffer);
                same.is_ok_and(|same| same).then_some(*at)
            })
        })
        .collect();
    progress.end();
    if progress.interrupted() {
        return Err(Error::Interrupted);
    }
    for &at in &same {
        if let Some(old) = matched.old[at] {
            matched.known[at] = Known::File(old, listing.items[at].stat);
        }
    }
    Ok(same.len() as u64)
}

fn name_length(path: &[u8]) -> usize {
    path.iter().rev().take_while(|&&byte| byte != b'/').count()
}

/// Whether a file has this content, of at most [`HELD`] bytes.
fn has_content(folder: &OwnedFd, name: &[u8], content: &Content, buffer: &mut Vec<u8>) -> io::Result<bool> {
    let mut file = File::from(rooted::file_in(folder.as_fd(), name)?);
    // One more than there should be, so that one call reads all and notices growth.
    let room = content.size as usize + 1;
    if buffer.len() < room {
        buffer.resize(room.next_power_of_two().max(16 * 1024), 0);
    }
    let mut filled = 0;
    while filled as u64 != content.size {
        match file.read(&mut buffer[filled..room]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
    }
    Ok(filled as u64 == content.size && *blake3::hash(&buffer[..filled]).as_bytes() == content.blake3)
}
