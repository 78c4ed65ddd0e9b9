//! What a snapshot says about each file: `manifest.json`.
//!
//! A manifest is one JSON document with one form: the same entries give the same bytes, and bytes in any other form are
//! refused. Each entry has a line of its own, so manifests are read and written without being held as a tree of values,
//! and a change of one file is a change of one line. `docs/rivet.md` describes the format.
//!
//! Entries are in path order: compared name by name, each name by its bytes. A folder comes directly before what is in
//! it.

mod decode;
mod encode;

use std::time::{SystemTime, UNIX_EPOCH};

use gix_hash::ObjectId;

pub use decode::{Error, decode};
pub use encode::{Encoder, affirmation};

/// The newest version of the format.
pub const VERSION: u32 = 2;
/// The version of manifests without hard links, so that they are what they always were.
const WITHOUT_HARD_LINKS: u32 = 1;
/// Its name in the document and in the tree of a snapshot.
pub const FORMAT: &str = "rivet-manifest";
/// The file in the tree of a snapshot.
pub const FILE: &str = "manifest.json";

/// A point in time, as file systems keep it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Time {
    /// Seconds since 1970, negative before.
    pub seconds: i64,
    /// 0 to 999,999,999, counted forward.
    pub nanoseconds: u32,
}

impl Time {
    /// The clock, as file systems use it; `None` where it stands before 1970.
    pub fn now() -> Option<Time> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        Some(Time {
            seconds: i64::try_from(now.as_secs()).ok()?,
            nanoseconds: now.subsec_nanos(),
        })
    }
}

/// A file with content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content {
    /// Its length in bytes.
    pub size: u64,
    /// BLAKE3 of its bytes.
    pub blake3: [u8; 32],
    /// The Git blob that has them.
    pub id: ObjectId,
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A folder.
    Folder,
    /// A regular file.
    File(Content),
    /// A symbolic link.
    Link {
        /// Where it leads; any bytes but zero.
        target: Vec<u8>,
        /// The Git blob that has the target.
        id: ObjectId,
    },
}

/// One thing that was captured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Relative to the root, `/` between names, any bytes but zero.
    pub path: Vec<u8>,
    /// What it is.
    pub kind: Kind,
    /// Permission bits, 0 to 0o7777.
    pub mode: u32,
    /// When its content was last changed.
    pub mtime: Time,
    /// Of a file with several names, for all names but the first in path order: the first. All have the same content,
    /// permissions and time.
    pub hard_link: Option<Vec<u8>>,
}

/// Why something that is tracked was not captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// A socket.
    Socket,
    /// A named pipe.
    Pipe,
    /// A block or character device.
    Device,
    /// Permission was refused, or the disk failed.
    Unreadable,
    /// It was there when the folder was listed, and not when it was read.
    Vanished,
    /// It changed while it was read, twice. What was read is stored.
    Changed,
    /// A file larger than the configuration allows.
    TooLarge,
    /// Another file system is mounted there.
    Mount,
    /// A folder that declares itself to be a cache. The folder is kept, empty.
    Cache,
    /// A tracked path that leads through a link.
    BeyondLink,
}

impl Reason {
    /// All of them, with the words of the manifest.
    pub const ALL: [(Reason, &'static str); 10] = [
        (Reason::Socket, "socket"),
        (Reason::Pipe, "pipe"),
        (Reason::Device, "device"),
        (Reason::Unreadable, "unreadable"),
        (Reason::Vanished, "vanished"),
        (Reason::Changed, "changed"),
        (Reason::TooLarge, "too-large"),
        (Reason::Mount, "mount"),
        (Reason::Cache, "cache"),
        (Reason::BeyondLink, "beyond-link"),
    ];

    /// The word in the manifest.
    pub fn word(self) -> &'static str {
        let found = Reason::ALL.iter().find(|(reason, _)| *reason == self);
        found.map_or("", |(_, word)| word)
    }

    /// What people read.
    pub fn explain(self) -> &'static str {
        match self {
            Reason::Socket => "a socket, which has no content",
            Reason::Pipe => "a named pipe, which has no content",
            Reason::Device => "a device",
            Reason::Unreadable => "cannot be read",
            Reason::Vanished => "disappeared while it was captured",
            Reason::Changed => "kept changing while it was read; what was read is stored",
            Reason::TooLarge => "larger than max_file_size",
            Reason::Mount => "another file system is mounted there; track it itself, or set cross_mounts",
            Reason::Cache => "a cache, by its CACHEDIR.TAG",
            Reason::BeyondLink => "lies beyond a link, which is not followed; track what the link leads to",
        }
    }

    /// Whether something that the user wants kept is missing, as opposed to what was never to be kept.
    pub fn is_trouble(self) -> bool {
        matches!(
            self,
            Reason::Unreadable | Reason::Vanished | Reason::Changed | Reason::BeyondLink
        )
    }
}

/// Something that was not captured, or not well.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Skip {
    /// Relative to the root.
    pub path: Vec<u8>,
    /// Why.
    pub reason: Reason,
}

/// A whole manifest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Manifest {
    /// The version of the secret scan that cleared the content.
    pub secret_scan_version: u32,
    /// In path order.
    pub entries: Vec<Entry>,
    /// In path order.
    pub skipped: Vec<Skip>,
}

impl Manifest {
    /// The entry at a path.
    pub fn find(&self, path: &[u8]) -> Option<&Entry> {
        let at = self
            .entries
            .binary_search_by(|entry| order(&entry.path, path))
            .ok()?;
        self.entries.get(at)
    }

    /// The document.
    pub fn encode(&self) -> Vec<u8> {
        let mut encoder = Encoder::new(self.secret_scan_version);
        for entry in &self.entries {
            encoder.entry(entry.borrow());
        }
        encoder.finish(
            self.skipped
                .iter()
                .map(|skip| (skip.path.as_slice(), skip.reason)),
        )
    }
}

/// An entry whose bytes lie elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct EntryRef<'a> {
    /// See [`Entry::path`].
    pub path: &'a [u8],
    /// See [`Entry::kind`].
    pub kind: KindRef<'a>,
    /// See [`Entry::mode`].
    pub mode: u32,
    /// See [`Entry::mtime`].
    pub mtime: Time,
    /// See [`Entry::hard_link`].
    pub hard_link: Option<&'a [u8]>,
}

/// See [`Kind`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KindRef<'a> {
    /// A folder.
    Folder,
    /// A regular file.
    File(Content),
    /// A symbolic link.
    Link {
        /// Where it leads.
        target: &'a [u8],
        /// The Git blob that has the target.
        id: ObjectId,
    },
}

impl Entry {
    /// The same, borrowed.
    pub fn borrow(&self) -> EntryRef<'_> {
        EntryRef {
            path: &self.path,
            kind: match &self.kind {
                Kind::Folder => KindRef::Folder,
                Kind::File(content) => KindRef::File(*content),
                Kind::Link { target, id } => KindRef::Link { target, id: *id },
            },
            mode: self.mode,
            mtime: self.mtime,
            hard_link: self.hard_link.as_deref(),
        }
    }
}

impl EntryRef<'_> {
    /// The same, owned.
    pub fn to_owned(&self) -> Entry {
        Entry {
            path: self.path.to_vec(),
            kind: match self.kind {
                KindRef::Folder => Kind::Folder,
                KindRef::File(content) => Kind::File(content),
                KindRef::Link { target, id } => Kind::Link {
                    target: target.to_vec(),
                    id,
                },
            },
            mode: self.mode,
            mtime: self.mtime,
            hard_link: self.hard_link.map(<[u8]>::to_vec),
        }
    }
}

/// Path order: name by name, so that a folder comes directly before what is in it.
pub fn order(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    let common = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    // Where they differ, the end of a name comes first, which a slash is too.
    let rank = |path: &[u8]| match path.get(common) {
        None => 0,
        Some(b'/') => 1,
        Some(&byte) => u16::from(byte) + 2,
    };
    rank(a).cmp(&rank(b))
}

/// Whether `path` is `folder` or lies in it. The empty folder holds everything.
pub fn is_in(path: &[u8], folder: &[u8]) -> bool {
    match path.strip_prefix(folder) {
        Some(rest) => folder.is_empty() || rest.is_empty() || rest[0] == b'/',
        None => false,
    }
}

/// The folder that a path is in; empty for the root.
pub fn parent(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(slash) => &path[..slash],
        None => b"",
    }
}

#[cfg(test)]
mod tests;
