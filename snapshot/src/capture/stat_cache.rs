//! What the last capture saw of each file: enough to know, without opening it, that a file is still the same.
//!
//! The cache is only ever a shortcut (`records.rs`). Its content is trusted as Git trusts its index: a file whose
//! times are not clearly older than the capture may have changed again within the same tick of the clock, and is read
//! once more.
//!
//! Layout, integers little-endian: `RIVETST2`; id length (u8); the secret-scan version (u32); a hash of the settings
//! that decide what may be stored (32 bytes); the commit that was the newest snapshot (id); the hash of what its manifest
//! affirms (32 bytes); the hash of its list of packages (32 bytes); when the walk began (i64, u32); the number of entries and of skipped paths (u64 each); the
//! entries; the skipped; BLAKE3 of all before.

use std::path::Path;

use gix_hash::ObjectId;
use rustix::fs::FileType;

use super::walk::Stat;
use crate::manifest::{Content, EntryRef, KindRef, Reason, Time};
use crate::records::{self, Input, Output, Sealed};

const MAGIC: &[u8; 8] = b"RIVETST2";
/// A millisecond clock's tick and then some: times within it of each other may not tell what came first.
const TICK: i64 = 20_000_000;
/// The same for file systems that keep whole seconds, of which FAT keeps only even ones.
const COARSE_TICK: i64 = 2_000_000_000;

/// What is common to all entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The version of the secret scan that cleared the content.
    pub secret_scan_version: u32,
    /// A hash of the settings that decide what may be stored.
    pub settings: [u8; 32],
    /// The newest snapshot.
    pub commit: ObjectId,
    /// What its manifest affirms.
    pub affirmation: [u8; 32],
    /// The hash of the list of packages that it has.
    pub packages: [u8; 32],
    /// When the walk began, by the clock of the system.
    pub began: Time,
}

/// One captured thing.
#[derive(Debug, Clone, Copy)]
pub struct Cached<'a> {
    /// What the manifest says.
    pub entry: EntryRef<'a>,
    /// What the walk saw.
    pub stat: Stat,
}

impl Cached<'_> {
    /// Whether a file that now looks like `stat` is the one that was captured, content included. `began` is when the
    /// walk of that capture began.
    pub fn is_same(&self, stat: &Stat, began: Time) -> bool {
        self.stat == *stat && !is_racy(stat, began)
    }
}

/// Whether a file may have changed after it was read at `began` or later, without its times telling.
pub fn is_racy(stat: &Stat, began: Time) -> bool {
    let tick = if stat.ctime.nanoseconds == 0 {
        COARSE_TICK
    } else {
        TICK
    };
    let nanoseconds = |time: Time| i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanoseconds);
    // Times of the future that a user has set say nothing; the other one cannot be set.
    nanoseconds(stat.ctime) + i128::from(tick) >= nanoseconds(began)
}

/// A cache file in memory. Entries are read where they lie.
pub struct StatCache {
    bytes: Sealed,
    /// The settings and the rest.
    pub head: Head,
    entries: u64,
    skipped: u64,
    start: usize,
}

impl std::fmt::Debug for StatCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StatCache")
            .field("head", &self.head)
            .field("entries", &self.entries)
            .finish_non_exhaustive()
    }
}

impl StatCache {
    /// Reads a cache in one piece; `None` where there is none that can be used.
    pub fn read(path: &Path) -> Option<StatCache> {
        let bytes = records::read(path, MAGIC)?;
        let mut input = Input(&bytes[MAGIC.len()..]);
        let id_length = usize::from(input.byte()?);
        let head = Head {
            secret_scan_version: input.u32()?,
            settings: input.take(32)?.try_into().ok()?,
            commit: input.id(id_length)?,
            affirmation: input.take(32)?.try_into().ok()?,
            packages: input.take(32)?.try_into().ok()?,
            began: input.time()?,
        };
        let (entries, skipped) = (input.u64()?, input.u64()?);
        let start = bytes.len() - input.0.len();
        Some(StatCache {
            bytes,
            head,
            entries,
            skipped,
            start,
        })
    }

    /// The number of entries.
    pub fn count(&self) -> u64 {
        self.entries
    }

    /// The entries, in path order.
    pub fn entries(&self) -> Entries<'_> {
        Entries {
            input: Input(&self.bytes[self.start..]),
            left: self.entries,
            id_length: self.head.commit.as_bytes().len(),
        }
    }

    /// The skipped paths that follow the entries.
    pub fn skipped(&self) -> impl Iterator<Item = (&[u8], Reason)> {
        let mut entries = self.entries();
        entries.by_ref().for_each(drop);
        let mut input = entries.input;
        (0..self.skipped).map_while(move |_| {
            let path = input.bytes()?;
            let reason = Reason::ALL.get(usize::from(input.byte()?))?.0;
            Some((path, reason))
        })
    }
}

/// Reads entries one by one.
pub struct Entries<'a> {
    input: Input<'a>,
    left: u64,
    id_length: usize,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Cached<'a>;

    fn next(&mut self) -> Option<Cached<'a>> {
        self.left = self.left.checked_sub(1)?;
        let input = &mut self.input;
        let path = input.bytes()?;
        let stat = input.stat()?;
        let mut hard_link = None;
        let kind = match stat.file_type() {
            FileType::Directory => KindRef::Folder,
            FileType::Symlink => KindRef::Link {
                id: input.id(self.id_length)?,
                target: input.bytes()?,
            },
            _ => {
                let content = Content {
                    blake3: input.take(32)?.try_into().ok()?,
                    id: input.id(self.id_length)?,
                    size: input.u64()?,
                };
                hard_link = Some(input.bytes()?).filter(|first| !first.is_empty());
                KindRef::File(content)
            }
        };
        Some(Cached {
            entry: EntryRef {
                path,
                kind,
                mode: stat.permissions(),
                mtime: stat.mtime,
                hard_link,
            },
            stat,
        })
    }
}

/// A cache in the making.
#[derive(Debug)]
pub struct Writer {
    out: Output,
    counts: usize,
    entries: u64,
}

impl Writer {
    /// Begins.
    pub fn new(head: &Head) -> Writer {
        let mut out = Output::new(MAGIC);
        out.raw(&[head.commit.as_bytes().len() as u8]);
        out.u32(head.secret_scan_version);
        out.raw(&head.settings);
        out.raw(head.commit.as_bytes());
        out.raw(&head.affirmation);
        out.raw(&head.packages);
        out.time(head.began);
        let counts = out.0.len();
        out.raw(&[0; 16]);
        Writer {
            out,
            counts,
            entries: 0,
        }
    }

    /// Adds an entry; they come in path order.
    pub fn entry(&mut self, entry: EntryRef<'_>, stat: &Stat) {
        self.entries += 1;
        self.out.bytes(entry.path);
        self.out.stat(stat);
        match entry.kind {
            KindRef::Folder => {}
            KindRef::Link { target, id } => {
                self.out.raw(id.as_bytes());
                self.out.bytes(target);
            }
            KindRef::File(content) => {
                self.out.raw(&content.blake3);
                self.out.raw(content.id.as_bytes());
                self.out.u64(content.size);
                self.out.bytes(entry.hard_link.unwrap_or_default());
            }
        }
    }

    /// Adds the skipped paths; returns the bytes of the file.
    pub fn finish<'a>(mut self, skipped: impl IntoIterator<Item = (&'a [u8], Reason)>) -> Vec<u8> {
        let mut count = 0u64;
        for (path, reason) in skipped {
            count += 1;
            self.out.bytes(path);
            let number = Reason::ALL.iter().position(|(other, _)| *other == reason);
            self.out.raw(&[number.unwrap_or(0) as u8]);
        }
        let at = self.counts;
        self.out.0[at..at + 8].copy_from_slice(&self.entries.to_le_bytes());
        self.out.0[at + 8..at + 16].copy_from_slice(&count.to_le_bytes());
        self.out.seal()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // in tests, failing is the point
mod tests {
    use super::*;

    fn at(seconds: i64, nanoseconds: u32) -> Time {
        Time { seconds, nanoseconds }
    }

    #[test]
    fn times_that_do_not_tell_are_not_trusted() {
        let began = at(1000, 500_000_000);
        for (ctime, racy) in [
            (at(1000, 400_000_000), false),
            (at(1000, 490_000_000), true),
            (at(1000, 500_000_000), true),
            (at(1001, 1), true),
            (at(999, 0), true), // whole seconds: perhaps a coarse clock
            (at(997, 0), false),
            (at(999, 1), false),
        ] {
            let stat = Stat {
                ctime,
                ..Stat::default()
            };
            assert_eq!(is_racy(&stat, began), racy, "{ctime:?}");
        }
    }

    #[test]
    fn what_is_written_is_read_and_damage_is_noticed() {
        for format in [gix_hash::Kind::Sha1, gix_hash::Kind::Sha256] {
            let id = ObjectId::empty_blob(format);
            let head = Head {
                secret_scan_version: 7,
                settings: [1; 32],
                commit: id,
                affirmation: [2; 32],
                packages: [4; 32],
                began: at(-1, 5),
            };
            let stat = |kind: u32| Stat {
                mode: kind | 0o640,
                size: 99,
                mtime: at(-3, 4),
                ctime: at(5, 6),
                inode: 12,
            };
            let entries = [
                (&b"a"[..], KindRef::Folder, stat(0o040_000)),
                (
                    b"a/\xff",
                    KindRef::File(Content {
                        size: 99,
                        blake3: [3; 32],
                        id,
                    }),
                    stat(0o100_000),
                ),
                (b"b", KindRef::Link { target: b"t\xfe", id }, stat(0o120_000)),
            ];
            let mut writer = Writer::new(&head);
            for (path, kind, stat) in &entries {
                let entry = EntryRef {
                    path,
                    kind: *kind,
                    mode: 0o640,
                    mtime: stat.mtime,
                    hard_link: matches!(kind, KindRef::File(_)).then_some(&b"a/0"[..]),
                };
                writer.entry(entry, stat);
            }
            let bytes = writer.finish([(&b"x"[..], Reason::Mount), (b"y", Reason::Cache)]);
            let temp = tempfile::tempdir().unwrap();
            let path = temp.path().join("stat");
            std::fs::write(&path, &bytes).unwrap();
            let cache = StatCache::read(&path).unwrap();
            assert_eq!(cache.head, head);
            let read: Vec<Cached<'_>> = cache.entries().collect();
            assert_eq!(read.len(), 3);
            for (read, (path, kind, stat)) in read.iter().zip(&entries) {
                assert_eq!(read.entry.path, *path);
                assert_eq!(read.entry.kind, *kind);
                assert_eq!(read.stat, *stat);
                assert_eq!(read.entry.hard_link.is_some(), matches!(kind, KindRef::File(_)));
            }
            let skipped: Vec<_> = cache.skipped().collect();
            assert_eq!(skipped, [(&b"x"[..], Reason::Mount), (b"y", Reason::Cache)]);
            for at in 0..bytes.len() {
                let mut bad = bytes.clone();
                bad[at] ^= 1;
                std::fs::write(&path, &bad).unwrap();
                assert!(StatCache::read(&path).is_none(), "{at}");
            }
            std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
            assert!(StatCache::read(&path).is_none());
        }
    }
}
