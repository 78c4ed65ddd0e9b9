//! The packs that a large push is cut into, and how they are sent.
//!
//! A server keeps nothing of a request that was cut off. So what is large goes there in several requests: each brings some
//! parts, a folder with all parts so far, and a commit that a branch of its own is moved to. When the last one has come, the
//! real commit finds its parts there. Groups grow, so that a huge push takes few connections and what is lost is never much
//! more than what was sent.

use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};

use gix::object::Kind;
use gix_hash::ObjectId;
use ingot_engine::durable;
use ingot_engine::pack::create::{Content, Creator};

use super::super::layout;

/// Parts of the first group have so many bytes; a push that has no more is one request.
const FIRST: u64 = 2 * layout::PART;
/// The most bytes of parts in a group: far below what hosts take in one push.
const MOST: u64 = 16 * layout::PART;
/// The head of a pack: signature, version, number of entries.
const HEADER: u64 = 12;
/// What is read and sent at once.
const BLOCK: usize = 256 << 10;

/// Bytes of parts in a group.
pub(super) fn room(number: usize) -> u64 {
    let doublings = u32::try_from(number).unwrap_or(u32::MAX);
    FIRST.saturating_mul(2u64.saturating_pow(doublings)).min(MOST)
}

/// A pack of parts.
#[derive(Debug, Clone)]
pub(super) struct Group {
    /// The file.
    pub path: PathBuf,
    /// A commit in it, which leads to all parts up to here. Its parent is that of the group before.
    pub commit: ObjectId,
    /// The pack's checksum, which ends the file.
    pub checksum: ObjectId,
    /// The number of entries.
    pub objects: u32,
    /// The length.
    pub bytes: u64,
}

impl Group {
    /// Ends `pack`, which has the last of `parts`.
    pub fn end(
        mut pack: Creator,
        parts: &[ObjectId],
        before: Option<ObjectId>,
    ) -> Result<Group, durable::Error> {
        let mut tree = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            tree.extend_from_slice(format!("{:o} {}\0", layout::FILE, layout::part_name(number)).as_bytes());
            tree.extend_from_slice(part.as_slice());
        }
        let tree = pack.add_whole(Kind::Tree, &tree, Content::Compressible)?;
        let text = layout::commit_of_upload(tree, before);
        let commit = pack.add_whole(Kind::Commit, &text, Content::Compressible)?;
        let built = pack.complete()?;
        Ok(Group {
            path: built.path,
            commit,
            checksum: built.id,
            objects: built.objects,
            bytes: built.bytes,
        })
    }

    /// Whether the file is there and has the content that it had: what was kept on a disk may have changed.
    pub fn is_whole(&self) -> bool {
        let check = || -> io::Result<bool> {
            if std::fs::metadata(&self.path)?.len() != self.bytes {
                return Ok(false);
            }
            let mut hasher = gix_hash::hasher(self.checksum.kind());
            let end = self.bytes.saturating_sub(self.checksum.as_slice().len() as u64);
            copy(&self.path, 0, end, &mut |block| {
                hasher.update(block);
                Ok(())
            })?;
            let found = hasher.try_finalize().map_err(io::Error::other)?;
            let mut said = Vec::new();
            copy(&self.path, end, self.bytes, &mut |block| {
                said.extend_from_slice(block);
                Ok(())
            })?;
            Ok(found == self.checksum && said == self.checksum.as_slice())
        };
        check().unwrap_or(false)
    }
}

/// Sends a pack as it is.
pub(super) fn send(path: &Path, out: &mut dyn Write) -> io::Result<()> {
    copy(path, 0, u64::MAX, &mut |block| out.write_all(block))
}

/// Sends packs, given by path, number of entries and length, as one.
pub(super) fn send_joined(
    packs: &[(&Path, u32, u64)],
    format: gix_hash::Kind,
    out: &mut dyn Write,
) -> io::Result<()> {
    let count = packs
        .iter()
        .try_fold(0u32, |sum, (_, objects, _)| sum.checked_add(*objects))
        .ok_or_else(|| io::Error::from(io::ErrorKind::FileTooLarge))?;
    let mut hasher = gix_hash::hasher(format);
    let mut put = |block: &[u8]| {
        hasher.update(block);
        out.write_all(block)
    };
    put(b"PACK\0\0\0\x02")?;
    put(&count.to_be_bytes())?;
    for (path, _, bytes) in packs {
        let end = bytes.saturating_sub(format.len_in_bytes() as u64);
        copy(path, HEADER, end, &mut put)?;
    }
    let checksum = hasher.try_finalize().map_err(io::Error::other)?;
    out.write_all(checksum.as_slice())
}

/// Hands the bytes of a file from `start` to `end`, or to its own end, to `put`.
fn copy(path: &Path, start: u64, end: u64, put: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut file = File::open(path)?;
    io::Seek::seek(&mut file, io::SeekFrom::Start(start))?;
    let mut file = file.take(end.saturating_sub(start));
    let mut block = vec![0; BLOCK];
    loop {
        match file.read(&mut block) {
            Ok(0) => break,
            Ok(count) => put(&block[..count])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    match end != u64::MAX && file.limit() != 0 {
        true => Err(io::ErrorKind::UnexpectedEof.into()),
        false => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn groups_grow_to_a_limit() {
        let mib = |number| room(number) >> 20;
        assert_eq!([0, 1, 2, 3, 4, 100].map(mib), [64, 128, 256, 512, 512, 512]);
    }

    #[test]
    fn joined_packs_are_a_pack_and_changed_ones_are_found_out() {
        let folder = tempfile::tempdir().unwrap();
        for format in [gix_hash::Kind::Sha1, gix_hash::Kind::Sha256] {
            let mut parts = Vec::new();
            let mut groups: Vec<Group> = Vec::new();
            for number in 0..3u8 {
                let mut pack = Creator::in_folder(folder.path(), format, &Default::default());
                let content = vec![number; 1000];
                parts.push(pack.add_whole(Kind::Blob, &content, Content::Random).unwrap());
                let before = groups.last().map(|group| group.commit);
                groups.push(Group::end(pack, &parts, before).unwrap());
            }
            assert!(groups.iter().all(Group::is_whole));
            let packs: Vec<_> = groups
                .iter()
                .map(|group| (group.path.as_path(), group.objects, group.bytes))
                .collect();
            let mut joined = Vec::new();
            send_joined(&packs, format, &mut joined).unwrap();
            let options = ingot_engine::pack::index::Options::new(format);
            let to = folder.path().join(format!("{format}-joined"));
            std::fs::create_dir(&to).unwrap();
            let silent = ingot_engine::progress::Silent;
            let indexed =
                ingot_engine::pack::index::index(&mut joined.as_slice(), &to, &options, &silent).unwrap();
            assert_eq!(indexed.objects, 9);
            assert!(indexed.external.is_empty(), "{:?}", indexed.external);

            let damaged = Group {
                path: folder.path().join("damaged"),
                ..groups[0].clone()
            };
            let bytes = std::fs::read(&groups[0].path).unwrap();
            for at in [0, bytes.len() / 2, bytes.len() - 1] {
                let mut bytes = bytes.clone();
                bytes[at] ^= 1;
                std::fs::write(&damaged.path, bytes).unwrap();
                assert!(!damaged.is_whole(), "{at}");
            }
            std::fs::write(&damaged.path, &bytes[..bytes.len() - 1]).unwrap();
            assert!(!damaged.is_whole());
        }
    }
}
