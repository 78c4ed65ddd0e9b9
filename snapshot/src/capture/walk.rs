//! The walk: what is there, in path order.
//!
//! One sequential pass. Nothing is opened but folders, and each only when something in it can be tracked; links are
//! noted and never followed. Names come sorted from each folder, so what comes out needs no sorting.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

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
    /// Files with several names: an item, and the first item in path order that is the same file. By item.
    pub hard_links: Vec<(usize, usize)>,
    /// The first item of each file that may have more, by device and number.
    first: HashMap<(u64, u64), usize>,
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

    /// Adds a file; `names` is how many it has.
    fn push_file(&mut self, path: &[u8], stat: Stat, device: u64, names: u64) {
        if names > 1 {
            let number = self.items.len();
            match self.first.entry((device, stat.inode)) {
                Entry::Occupied(first) => self.hard_links.push((number, *first.get())),
                Entry::Vacant(place) => drop(place.insert(number)),
            }
        }
        self.push(path, stat);
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
                self.name(path, name, &folder, None, scope, device, listing)?;
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
        let ahead = match scope {
            Scope::All => look_ahead(&folder, &names),
            Scope::Some(_) => Vec::new(),
        };
        let mut ahead = ahead.into_iter();
        listing.items.reserve(names.ranges.len());
        for name in names.iter() {
            self.name(
                path,
                name,
                &folder,
                ahead.next().flatten(),
                scope,
                device,
                listing,
            )?;
        }
        Ok(())
    }

    /// Visits one name in a folder; `seen` is what the system says about it, if it was asked already.
    #[expect(clippy::too_many_arguments)] // one name and all that is known of where it lies
    fn name(
        &self,
        path: &mut Vec<u8>,
        name: &[u8],
        folder: &OwnedFd,
        seen: Option<Asked>,
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
        let seen = seen.unwrap_or_else(|| see(folder, name));
        let result = self.visit(path, seen, &inner, scope, parent_device, listing);
        path.truncate(before);
        result
    }

    fn visit(
        &self,
        path: &mut Vec<u8>,
        seen: Asked,
        inner: &Scope,
        outer: &Scope,
        parent_device: u64,
        listing: &mut Listing,
    ) -> Result<(), Interrupted> {
        let Seen { stat, device, names } = match seen {
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
        let kind = stat.file_type();
        let whole = *inner == Scope::All;
        if self.rules.leaves_out(path, kind == FileType::Directory) {
            return Ok(());
        }
        let reason = match kind {
            FileType::Directory => {
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
            FileType::RegularFile => {
                listing.push_file(path, stat, device, names);
                return Ok(());
            }
            FileType::Symlink => {
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

/// What the system says about a name.
#[derive(Clone, Copy)]
struct Seen {
    stat: Stat,
    /// The device that it is on.
    device: u64,
    /// How many names the file has.
    names: u64,
}

type Asked = Result<Seen, Errno>;

fn see(folder: &OwnedFd, name: &[u8]) -> Asked {
    let found = rustix::fs::statat(folder.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(Seen {
        stat: Stat::of(&found),
        device: device(&found),
        names: names(&found),
    })
}

/// Asks about all names of a large folder, on several threads; about none of a small one, for which that would take
/// longer. These are threads of their own: to have one more for so short a time is cheaper than to start a pool, which
/// a capture that finds nothing changed does not need.
fn look_ahead(folder: &OwnedFd, names: &Names) -> Vec<Option<Asked>> {
    let count = names.ranges.len();
    if count < MANY {
        return Vec::new();
    }
    let share = count.div_ceil(threads(count));
    let mut seen = vec![None; count];
    let look = |seen: &mut [Option<Asked>], ranges: &[(u64, usize, usize)]| {
        for (seen, &(_, start, end)) in seen.iter_mut().zip(ranges) {
            *seen = Some(see(folder, &names.bytes[start..end]));
        }
    };
    std::thread::scope(|scope| {
        let look = &look;
        let mut shares = seen.chunks_mut(share).zip(names.ranges.chunks(share));
        let own = shares.next();
        // Without a thread for them, names are asked about when they are visited.
        for (seen, ranges) in shares {
            let other = std::thread::Builder::new().stack_size(STACK);
            if other.spawn_scoped(scope, move || look(seen, ranges)).is_err() {
                break;
            }
        }
        if let Some((seen, ranges)) = own {
            look(seen, ranges);
        }
    });
    seen
}

/// How many threads ask about so many names: one for each [`SHARE`], as long as nobody wants fewer.
fn threads(names: usize) -> usize {
    let wanted = match rayon::current_thread_index() {
        Some(_) => rayon::current_num_threads(),
        None => std::env::var("RAYON_NUM_THREADS")
            .ok()
            .and_then(|number| number.parse().ok())
            .filter(|number| *number > 0)
            .unwrap_or(MOST_THREADS),
    };
    (names / SHARE).clamp(2, MOST_THREADS).min(wanted.max(1))
}

/// The device that a file is on.
pub fn device(stat: &rustix::fs::Stat) -> u64 {
    #[allow(clippy::unnecessary_cast)] // the type differs between systems
    {
        stat.st_dev as u64
    }
}

/// How many names a file has.
pub fn names(stat: &rustix::fs::Stat) -> u64 {
    #[allow(clippy::unnecessary_cast, clippy::useless_conversion)] // the type differs between systems
    {
        stat.st_nlink as u64
    }
}

/// Folders with so many names are looked at by several threads.
const MANY: usize = 400;
/// Names for each of them.
const SHARE: usize = 500;
/// A folder is read by no more.
const MOST_THREADS: usize = 8;
/// They do next to nothing.
const STACK: usize = 64 << 10;

/// The names in one folder, sorted.
struct Names {
    bytes: Vec<u8>,
    /// The first eight bytes of each name as a number, which decides most comparisons, and where the name is.
    ranges: Vec<(u64, usize, usize)>,
}

impl Names {
    fn of(folder: &OwnedFd) -> io::Result<Names> {
        let mut names = Names {
            bytes: Vec::new(),
            ranges: Vec::new(),
        };
        names.list(folder)?;
        let bytes = &names.bytes;
        names
            .ranges
            .sort_unstable_by(|a, b| (a.0, &bytes[a.1..a.2]).cmp(&(b.0, &bytes[b.1..b.2])));
        Ok(names)
    }

    /// The folder has just been opened, so that listing it begins at its beginning.
    #[cfg(target_os = "linux")]
    fn list(&mut self, folder: &OwnedFd) -> io::Result<()> {
        let mut buffer = Vec::with_capacity(32 * 1024);
        let mut entries = rustix::fs::RawDir::new(folder, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            self.push(entry?.file_name());
        }
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    fn list(&mut self, folder: &OwnedFd) -> io::Result<()> {
        for entry in rustix::fs::Dir::read_from(folder)? {
            self.push(entry?.file_name());
        }
        Ok(())
    }

    fn push(&mut self, name: &CStr) {
        let name = name.to_bytes();
        if name == b"." || name == b".." {
            return;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(name);
        self.ranges.push((first_bytes(name), start, self.bytes.len()));
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.ranges.iter().map(|&(_, start, end)| &self.bytes[start..end])
    }

    fn contains(&self, name: &[u8]) -> bool {
        let bytes = &self.bytes;
        self.ranges
            .binary_search_by(|&(_, start, end)| bytes[start..end].cmp(name))
            .is_ok()
    }
}

/// The first eight bytes of a name, zeros behind a shorter one, so that numbers are in the order of names.
fn first_bytes(name: &[u8]) -> u64 {
    let mut first = [0; 8];
    let count = name.len().min(8);
    first[..count].copy_from_slice(&name[..count]);
    u64::from_be_bytes(first)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // in tests, failing is the point
mod tests {
    use super::*;

    fn walked(root: &std::path::Path) -> Listing {
        let root = Root::open(root).unwrap();
        let walk = Walk {
            root: &root,
            tracked: &Tracked::new(["."]).unwrap(),
            rules: &Rules::new([]).unwrap(),
            max_file_size: u64::MAX,
            cross_mounts: false,
            skip_caches: true,
            own: Vec::new(),
            interrupted: &|| false,
        };
        walk.run().unwrap()
    }

    fn paths(listing: &Listing) -> Vec<Vec<u8>> {
        let paths = listing.items.iter().map(|item| listing.path(item).to_vec());
        paths.collect()
    }

    #[test]
    fn names_come_in_the_order_of_their_bytes() {
        use std::os::unix::ffi::OsStrExt as _;
        let temp = tempfile::tempdir().unwrap();
        // Long common beginnings, beginnings of each other around the eighth byte, bytes of every kind.
        let mut names: Vec<Vec<u8>> = vec![
            b"\x01".to_vec(),
            b"\xff\xfe".to_vec(),
            b"12345678".to_vec(),
            b"1234567".to_vec(),
        ];
        names.extend((0..600).map(|number| format!("a-common-beginning-{number}").into_bytes()));
        names.extend((0..100u8).map(|number| [b"1234567", &[number + 100][..]].concat()));
        names.extend((0..100u8).map(|number| [b"12345678", &[number + 100][..]].concat()));
        names.sort();
        names.dedup();
        for name in &names {
            std::fs::write(temp.path().join(std::ffi::OsStr::from_bytes(name)), name).unwrap();
        }
        let listing = walked(temp.path());
        assert_eq!(paths(&listing), names);
        for (item, name) in listing.items.iter().zip(&names) {
            assert_eq!(item.stat.size, name.len() as u64, "{}", name.escape_ascii());
        }
    }

    #[test]
    fn a_large_folder_holds_what_a_small_one_may() {
        let temp = tempfile::tempdir().unwrap();
        for number in 0..MANY {
            std::fs::write(temp.path().join(format!("file-{number:04}")), "x").unwrap();
        }
        std::fs::create_dir_all(temp.path().join("folder/inside")).unwrap();
        std::os::unix::fs::symlink("folder", temp.path().join("link")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(temp.path().join("socket")).unwrap();
        let listing = walked(temp.path());
        assert_eq!(listing.items.len(), MANY + 3);
        let last: Vec<Vec<u8>> = paths(&listing).split_off(MANY);
        assert_eq!(last, [&b"folder"[..], b"folder/inside", b"link"]);
        assert_eq!(listing.skipped[0].reason, Reason::Socket);
    }

    #[test]
    fn files_with_several_names_belong_to_the_first() {
        let temp = tempfile::tempdir().unwrap();
        let at = |name: &str| temp.path().join(name);
        std::fs::create_dir(at("b")).unwrap();
        for (name, other) in [
            ("z", Some("b/x")),
            ("other", None),
            ("c", Some("b/x")),
            ("lone", None),
        ] {
            match other {
                None => std::fs::write(at(name), name).unwrap(),
                Some(other) => {
                    let _ = std::fs::write(at(other), other);
                    std::fs::hard_link(at(other), at(name)).unwrap();
                }
            }
        }
        std::fs::hard_link(at("other"), at("b/a")).unwrap();
        let listing = walked(temp.path());
        let path = |at: usize| String::from_utf8_lossy(listing.path(&listing.items[at])).into_owned();
        let links: Vec<_> = listing
            .hard_links
            .iter()
            .map(|&(at, first)| format!("{} {}", path(at), path(first)))
            .collect();
        assert_eq!(links, ["c b/x", "other b/a", "z b/x"]);
    }
}
