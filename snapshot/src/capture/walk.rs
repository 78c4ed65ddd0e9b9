//! The walk: what is there, in path order.
//!
//! One sequential pass. Nothing is opened but folders, and each only when something in it can be tracked; links are
//! noted and never followed. Names come sorted from each folder, so what comes out needs no sorting.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType};

use crate::manifest::{Reason, Skip, Time};
use crate::rooted::{Root, is_absent, is_link};
use crate::rules::Rules;
use crate::tracked::{Scope, Tracked};

/// What the system says about a file, as far as it tells whether the file changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stat {
    /// The whole mode, type included.
    pub mode: u32,
    /// Bytes.
    pub size: u64,
    /// When the content was changed.
    pub mtime: Time,
    /// When anything was changed; nobody can set it at will.
    pub ctime: Time,
    /// The number of the file on its file system.
    pub inode: u64,
}

impl Stat {
    /// From a system call's answer.
    pub fn of(stat: &rustix::fs::Stat) -> Stat {
        #[allow(clippy::unnecessary_cast)] // the types differ between systems
        Stat {
            mode: stat.st_mode as u32,
            size: stat.st_size as u64,
            mtime: Time {
                seconds: stat.st_mtime as i64,
                nanoseconds: stat.st_mtime_nsec as u32,
            },
            ctime: Time {
                seconds: stat.st_ctime as i64,
                nanoseconds: stat.st_ctime_nsec as u32,
            },
            inode: stat.st_ino as u64,
        }
    }

    /// Permission bits.
    pub fn permissions(&self) -> u32 {
        self.mode & 0o7777
    }

    /// What it is.
    pub fn file_type(&self) -> FileType {
        FileType::from_raw_mode(self.mode as rustix::fs::RawMode)
    }
}

/// A folder, file or link that is to be captured.
#[derive(Debug, Clone, Copy)]
pub struct Item {
    start: usize,
    end: usize,
    /// What the walk saw.
    pub stat: Stat,
}

/// Everything that the walk found, in path order.
#[derive(Debug, Default)]
pub struct Listing {
    /// All paths, one after the other.
    paths: Vec<u8>,
    /// What is to be captured.
    pub items: Vec<Item>,
    /// What is not.
    pub skipped: Vec<Skip>,
}

impl Listing {
    /// The path of an item, relative to the root.
    pub fn path(&self, item: &Item) -> &[u8] {
        &self.paths[item.start..item.end]
    }

    fn push(&mut self, path: &[u8], stat: Stat) {
        let start = self.paths.len();
        self.paths.extend_from_slice(path);
        self.items.push(Item {
            start,
            end: self.paths.len(),
            stat,
        });
    }

    fn pop(&mut self) {
        if let Some(item) = self.items.pop() {
            self.paths.truncate(item.start);
        }
    }

    fn skip(&mut self, path: &[u8], reason: Reason) {
        self.skipped.push(Skip {
            path: path.to_vec(),
            reason,
        });
    }
}

/// What is looked for, and what is passed over.
pub struct Walk<'a> {
    /// Where.
    pub root: &'a Root,
    /// What is tracked.
    pub tracked: &'a Tracked,
    /// What is left out.
    pub rules: &'a Rules,
    /// Larger files are left out.
    pub max_file_size: u64,
    /// Goes into other file systems.
    pub cross_mounts: bool,
    /// Leaves caches out.
    pub skip_caches: bool,
    /// Folders of this program itself, by device and number of the file.
    pub own: Vec<(u64, u64)>,
    /// Asked now and then whether to go on.
    pub interrupted: &'a dyn Fn() -> bool,
}

/// The walk was ended by the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted;

/// What begins a `CACHEDIR.TAG`.
const CACHE_SIGNATURE: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";

impl Walk<'_> {
    /// Walks.
    pub fn run(&self) -> Result<Listing, Interrupted> {
        let mut listing = Listing::default();
        let scope = self.tracked.root();
        // That the root itself cannot be listed is told like that of any folder.
        let device = self.root.stat(b"").map(|stat| device(&stat)).unwrap_or(0);
        let mut path = Vec::with_capacity(256);
        self.folder(&mut path, &scope, device, &mut listing)?;
        Ok(listing)
    }

    /// Visits what is in the folder at `path`, which is on `device`.
    fn folder(
        &self,
        path: &mut Vec<u8>,
        scope: &Scope,
        device: u64,
        listing: &mut Listing,
    ) -> Result<(), Interrupted> {
        if (self.interrupted)() {
            return Err(Interrupted);
        }
        let folder = match self.root.folder(path) {
            Ok(folder) => folder,
            Err(error) => {
                let reason = match error {
                    error if is_absent(&error) => Reason::Vanished,
                    error if is_link(&error) => Reason::BeyondLink,
                    _ => Reason::Unreadable,
                };
                listing.skip(path, reason);
                return Ok(());
            }
        };
        if let Some(names) = self.tracked.names(scope) {
            for name in names {
                self.name(path, name, &folder, scope, device, listing)?;
            }
            return Ok(());
        }
        let names = match Names::of(&folder) {
            Ok(names) => names,
            Err(_) => {
                listing.skip(path, Reason::Unreadable);
                return Ok(());
            }
        };
        if self.skip_caches && !path.is_empty() && names.contains(b"CACHEDIR.TAG") && self.is_cache(path) {
            listing.skip(path, Reason::Cache);
            return Ok(());
        }
        for name in names.iter() {
            self.name(path, name, &folder, scope, device, listing)?;
        }
        Ok(())
    }

    /// Visits one name in a folder.
    fn name(
        &self,
        path: &mut Vec<u8>,
        name: &[u8],
        folder: &OwnedFd,
        scope: &Scope,
        parent_device: u64,
        listing: &mut Listing,
    ) -> Result<(), Interrupted> {
        let Some(inner) = self.tracked.enter(scope, name) else {
            return Ok(());
        };
        let before = path.len();
        if before > 0 {
            path.push(b'/');
        }
        path.extend_from_slice(name);
        let result = self.visit(path, name, folder, &inner, scope, parent_device, listing);
        path.truncate(before);
        result
    }

    #[expect(clippy::too_many_arguments)] // one name and all that is known of where it lies
    fn visit(
        &self,
        path: &mut Vec<u8>,
        name: &[u8],
        folder: &OwnedFd,
        inner: &Scope,
        outer: &Scope,
        parent_device: u64,
        listing: &mut Listing,
    ) -> Result<(), Interrupted> {
        let found = match rustix::fs::statat(folder.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(error) => {
                // What is named in the configuration need not be on every machine.
                let error = io::Error::from(error);
                if !is_absent(&error) {
                    listing.skip(path, Reason::Unreadable);
                } else if *outer == Scope::All {
                    listing.skip(path, Reason::Vanished);
                }
                return Ok(());
            }
        };
        let stat = Stat::of(&found);
        let kind = stat.file_type();
        let whole = *inner == Scope::All;
        if self.rules.leaves_out(path, kind == FileType::Directory) {
            return Ok(());
        }
        let reason = match kind {
            FileType::Directory => {
                let device = device(&found);
                if self.own.contains(&(device, stat.inode)) {
                    return Ok(());
                }
                // What the user names is meant, wherever it is mounted; what lies in it by chance is not.
                if device != parent_device && *outer == Scope::All && !self.cross_mounts {
                    listing.push(path, stat);
                    listing.skip(path, Reason::Mount);
                    return Ok(());
                }
                let (items, skipped) = (listing.items.len(), listing.skipped.len());
                listing.push(path, stat);
                self.folder(path, inner, device, listing)?;
                // Folders on the way are kept for the sake of what is in them.
                if !whole && listing.items.len() == items + 1 && listing.skipped.len() == skipped {
                    listing.pop();
                }
                return Ok(());
            }
            FileType::RegularFile | FileType::Symlink if !whole => {
                // A pattern leads on, but nothing can be beyond.
                if kind == FileType::Symlink && self.leads_on(inner) {
                    listing.skip(path, Reason::BeyondLink);
                }
                return Ok(());
            }
            FileType::RegularFile if stat.size > self.max_file_size => Reason::TooLarge,
            FileType::RegularFile | FileType::Symlink => {
                listing.push(path, stat);
                return Ok(());
            }
            _ if !whole => return Ok(()),
            FileType::Socket => Reason::Socket,
            FileType::Fifo => Reason::Pipe,
            _ => Reason::Device,
        };
        listing.skip(path, reason);
        Ok(())
    }

    /// Whether a pattern names something in a folder of this scope, rather than searching for it.
    fn leads_on(&self, scope: &Scope) -> bool {
        self.tracked.names(scope).is_some()
    }

    fn is_cache(&self, path: &[u8]) -> bool {
        let tag = [path, b"/CACHEDIR.TAG"].concat();
        let is_file = |stat: rustix::fs::Stat| Stat::of(&stat).file_type() == FileType::RegularFile;
        if !self.root.stat(&tag).is_ok_and(is_file) {
            return false;
        }
        let mut start = [0; CACHE_SIGNATURE.len()];
        let read = self
            .root
            .file(&tag)
            .and_then(|file| io::Read::read_exact(&mut std::fs::File::from(file), &mut start));
        read.is_ok() && start == *CACHE_SIGNATURE
    }
}

/// The device that a file is on.
pub fn device(stat: &rustix::fs::Stat) -> u64 {
    #[allow(clippy::unnecessary_cast)] // the type differs between systems
    {
        stat.st_dev as u64
    }
}

/// The names in one folder, sorted.
struct Names {
    bytes: Vec<u8>,
    ranges: Vec<(usize, usize)>,
}

impl Names {
    fn of(folder: &OwnedFd) -> io::Result<Names> {
        let mut names = Names {
            bytes: Vec::new(),
            ranges: Vec::new(),
        };
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let name: &CStr = entry.file_name();
            let name = name.to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let start = names.bytes.len();
            names.bytes.extend_from_slice(name);
            names.ranges.push((start, names.bytes.len()));
        }
        let bytes = &names.bytes;
        names
            .ranges
            .sort_unstable_by(|a, b| bytes[a.0..a.1].cmp(&bytes[b.0..b.1]));
        Ok(names)
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.ranges.iter().map(|&(start, end)| &self.bytes[start..end])
    }

    fn contains(&self, name: &[u8]) -> bool {
        let bytes = &self.bytes;
        self.ranges
            .binary_search_by(|&(start, end)| bytes[start..end].cmp(name))
            .is_ok()
    }
}
