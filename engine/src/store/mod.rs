//! Reads objects from packs, loose files and alternates.
//!
//! A [`Store`] is a view of a repository's objects at the time it was opened: it sees later loose objects, but no later
//! packs. Pack data is read by positioned reads through bounded windows, so walking a large repository keeps little of
//! it in memory; only index files are mapped.

mod alternates;
pub mod bitmap;
mod cache;
mod chain;
pub mod commit_graph;
mod error;
mod index;
mod lookup;
mod loose;
mod order;
mod pack;
mod reader;
mod verify;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use gix_hash::{ObjectId, oid};
use gix_object::Kind;

pub use bitmap::{Bitmap, Bits};
pub use cache::Cache;
pub use commit_graph::CommitGraph;
pub use error::{Error, Fault};
use lookup::Lookup;
pub(crate) use loose::LooseFolders;
pub use pack::Pack;
pub use reader::Reader;

use crate::notice;

/// With so many packs or fewer, all data files are opened at once. That keeps them readable while Git repacks.
const OPENED_EAGERLY: usize = 64;
/// How often the folders are listed because a pack vanished between the listing and its opening.
const TRIES: u32 = 4;

/// How a store reads.
#[derive(Debug, Clone)]
pub struct Options {
    /// The largest object that is ever held in memory as a whole, in bytes, be it a result or a delta base. Larger ones
    /// are refused with [`Error::TooLarge`]; blobs that are not stored as deltas can still be streamed. By default 4 GiB.
    pub object_limit: u64,
    /// Object folders to borrow from, looked into before those that `info/alternates` names; Git takes them from
    /// `GIT_ALTERNATE_OBJECT_DIRECTORIES`.
    pub alternates: Vec<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            object_limit: 4 << 30,
            alternates: Vec::new(),
        }
    }
}

/// The number of a packed object: its pack's first number plus its place in the pack's index. Numbers belong to one
/// [`Store`]; an object that is in several packs has one there in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u32);

/// The objects of a repository and its alternates. May be used from many threads at once.
#[derive(Debug)]
pub struct Store {
    format: gix_hash::Kind,
    objects: PathBuf,
    alternates: Vec<PathBuf>,
    ignored_alternates: Vec<PathBuf>,
    /// Why some packs are not among `packs`.
    set_aside: Vec<Error>,
    /// Shared with stores that were made from this one.
    packs: Vec<Arc<Pack>>,
    /// When the folders of packs had last changed before they were read.
    changed: Vec<Option<SystemTime>>,
    /// The position of the first object of each pack, then the number of all.
    starts: Vec<u32>,
    lookup: Lookup,
    options: Options,
    /// Readers for questions that bring none of their own.
    readers: Mutex<Vec<Reader>>,
}

impl Store {
    /// Opens the object folder of a repository, with the packs in it and in its alternates. Costs a few system calls for
    /// each pack, whatever its size.
    ///
    /// As in Git, a pack that cannot be used, because it is cut off or its index is damaged, does not keep the others
    /// from being read: see [`Store::set_aside`]. What is nowhere else is then missing.
    pub fn open(objects: &Path, format: gix_hash::Kind) -> Result<Store, Error> {
        Store::open_with(objects, format, Options::default())
    }

    /// Like [`Store::open`], with options.
    pub fn open_with(objects: &Path, format: gix_hash::Kind, options: Options) -> Result<Store, Error> {
        // Without this, a mistyped path would read as a repository without objects.
        fs::read_dir(objects).map_err(|source| Error::Io {
            action: "open the object folder",
            path: objects.to_owned(),
            source,
        })?;
        let alternates = alternates::resolve(objects, &options.alternates).map_err(|source| Error::Io {
            action: "read the alternates of",
            path: objects.to_owned(),
            source,
        })?;
        let changed = folders(objects, &alternates.folders).map(changed).collect();
        let Opened { packs, set_aside } = open_packs(objects, &alternates.folders, format)?;
        for error in &set_aside {
            notice::passed_over(error.path().unwrap_or(objects), error);
        }
        Ok(Store {
            starts: starts_of(&packs, objects)?,
            format,
            objects: objects.to_owned(),
            alternates: alternates.folders,
            ignored_alternates: alternates.ignored,
            set_aside,
            packs,
            changed,
            lookup: Lookup::default(),
            options,
            readers: Mutex::new(Vec::new()),
        })
    }

    /// A view of the objects in `objects`, a folder that has this store's as its alternates: its packs are opened, those
    /// of this store are shared with it. For a quarantine, which has nothing but packs.
    pub(crate) fn beneath(&self, objects: &Path) -> Result<Store, Error> {
        let mut alternates = vec![self.objects.clone()];
        alternates.extend_from_slice(&self.alternates);
        // These were made a moment ago, so nothing about them may be wrong.
        let own = pack_paths(objects)?;
        let open = |path: &PathBuf| open_pack(path, self.format, own.len());
        let mut packs = own.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        packs.extend(self.packs.iter().cloned());
        let mut changed = vec![changed(objects)];
        changed.extend_from_slice(&self.changed);
        Ok(Store {
            starts: starts_of(&packs, objects)?,
            format: self.format,
            objects: objects.to_owned(),
            alternates,
            ignored_alternates: Vec::new(),
            set_aside: Vec::new(),
            packs,
            changed,
            lookup: Lookup::default(),
            options: self.options.clone(),
            readers: Mutex::new(Vec::new()),
        })
    }

    /// Whether the packs are still those that this store opened, as far as their folders tell. Packs that are added
    /// while it is asked, or in the same tick of the file system's clock, may go unnoticed.
    pub fn is_current(&self) -> bool {
        self.object_dirs().map(changed).eq(self.changed.iter().copied())
    }

    /// The hash function of the repository.
    pub fn format(&self) -> gix_hash::Kind {
        self.format
    }

    /// The repository's own object folder.
    pub fn objects_dir(&self) -> &Path {
        &self.objects
    }

    /// The object folders that the repository borrows from, in the order of lookup.
    pub fn alternates(&self) -> &[PathBuf] {
        &self.alternates
    }

    /// Alternates that do not exist or are nested too deep. Git warns of them and goes on without.
    pub fn ignored_alternates(&self) -> &[PathBuf] {
        &self.ignored_alternates
    }

    /// Why packs that lie in the object folders are not read: one error for each. Their objects count as missing unless
    /// they are somewhere else, too.
    pub fn set_aside(&self) -> &[Error] {
        &self.set_aside
    }

    /// How this store reads.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The packs in the order of their positions: those of the own folder by name, then those of each alternate.
    pub fn packs(&self) -> &[Arc<Pack>] {
        &self.packs
    }

    /// One more than the largest position.
    pub fn packed_len(&self) -> u32 {
        *self.starts.last().expect("there is one start more than packs")
    }

    /// The position of a packed object. Of several, the one in the first pack, so that every object has one canonical
    /// position.
    pub fn find(&self, id: &oid) -> Option<Position> {
        self.lookup.find(&self.packs, &self.starts, id).map(Position)
    }

    /// [`Store::find`] for several objects, whose answers are handed to `each` in their order. After
    /// [`Store::prepare_find`] that is faster than one by one in a store of one pack.
    pub fn find_all(&self, ids: &[ObjectId], mut each: impl FnMut(Option<Position>)) {
        match &self.packs[..] {
            [only] => only.find_all(ids, |local| each(local.map(Position))),
            _ => ids.iter().for_each(|id| each(self.find(id))),
        }
    }

    /// Makes later calls of [`Store::find`] faster, for walks that look up a good part of all objects.
    pub fn prepare_find(&self) {
        lookup::prepare(&self.packs);
    }

    /// The canonical position of the object at `at`, which another pack may have too; see [`Store::find`].
    pub fn canonical(&self, at: Position) -> Position {
        match self.pack_number(at) {
            0 => at,
            _ => self.find(self.id(at)).unwrap_or(at),
        }
    }

    /// The object at a position of this store. Panics on a position of another one that is too large.
    pub fn id(&self, at: Position) -> &oid {
        let (pack, local) = self.pack_of(at);
        pack.id(local)
    }

    /// The pack of a position and the object's place in its index. Panics on a position that is not this store's.
    pub fn pack_of(&self, at: Position) -> (&Pack, u32) {
        let number = self.pack_number(at);
        (&self.packs[number], at.0 - self.starts[number])
    }

    /// The place in [`Store::packs`] of a position's pack. Panics on a position that is not this store's.
    pub fn pack_number(&self, at: Position) -> usize {
        assert!(at.0 < self.packed_len(), "{at:?} is a position of another store");
        match self.starts.len() {
            2 => 0,
            _ => self.starts.partition_point(|&start| start <= at.0) - 1,
        }
    }

    /// The position of entry `local` of the pack at `pack` in [`Store::packs`].
    pub fn position(&self, pack: usize, local: u32) -> Position {
        debug_assert!(local < self.packs[pack].len());
        Position(self.starts[pack] + local)
    }

    /// True if the object is in a pack or a file of its own.
    pub fn contains(&self, id: &oid) -> bool {
        self.find(id).is_some() || self.contains_loose(id)
    }

    /// The kind and size of an object, without inflating more than its first bytes. `None` if it is not there.
    pub fn header(&self, id: &oid) -> Result<Option<(Kind, u64)>, Error> {
        self.with_reader(|reader| match self.find(id) {
            Some(at) => {
                let (pack, local) = self.pack_of(at);
                match self.entry_header(pack, pack.offset(local), reader) {
                    Err(error) if error.is_damage() => {
                        let copy = self
                            .copies(id, pack)
                            .find_map(|(pack, offset)| self.entry_header(pack, offset, reader).ok())
                            .or_else(|| self.loose_header(id, reader.inflater()).ok().flatten());
                        copy.map(Some).ok_or(error)
                    }
                    header => header.map(Some),
                }
            }
            None => self.loose_header(id, reader.inflater()),
        })
    }

    /// Reads a whole object, which replaces the content of `out`. `None` if it is not there; `out` is then undefined.
    ///
    /// Sizes, checksums of compressed data and delta instructions are checked; the id is not, see
    /// [`Store::read_verified`]. In place of a damaged copy in a pack another one is read, if there is any.
    pub fn read(&self, id: &oid, cache: &mut Cache, out: &mut Vec<u8>) -> Result<Option<Kind>, Error> {
        match self.find(id) {
            Some(at) => self.read_at(at, cache, out).map(Some),
            None => self.read_loose(id, cache.reader.inflater(), out),
        }
    }

    /// Hands an object to `sink` in pieces. Loose objects and those that a pack has whole pass through 64 KiB of memory;
    /// what a pack has as a delta is made in memory first, within [`Options::object_limit`]. Returns kind and size,
    /// `None` if the object is not there. On an error, `sink` may have got a part.
    pub fn stream(
        &self,
        id: &oid,
        cache: &mut Cache,
        sink: &mut dyn io::Write,
    ) -> Result<Option<(Kind, u64)>, Error> {
        let Some(at) = self.find(id) else {
            return self.stream_loose(id, cache.reader.inflater(), sink);
        };
        let (pack, local) = self.pack_of(at);
        let refused = |source| Error::Sink {
            id: id.to_owned(),
            source,
        };
        // Where the entry is damaged from the start, another copy may be sound.
        if let Ok(entry) = cache.reader.entry(pack, pack.offset(local))
            && let Some(kind) = entry.header.as_kind()
        {
            let (mut error, mut begun) = (None, false);
            let result = cache.reader.stream(pack, &entry, &mut |bytes| {
                begun = true;
                sink.write_all(bytes).map_err(|source| {
                    let kind = source.kind();
                    error = Some(source);
                    kind.into()
                })
            });
            match (error, result) {
                (Some(source), _) => return Err(refused(source)),
                (None, Err(error)) if begun => return Err(error),
                (None, Err(_)) => {}
                (None, Ok(_)) => return Ok(Some((kind, entry.decompressed_size))),
            }
        }
        let mut bytes = Vec::new();
        let kind = self.read_at(at, cache, &mut bytes)?;
        sink.write_all(&bytes).map_err(refused)?;
        Ok(Some((kind, bytes.len() as u64)))
    }

    /// The own object folder, then the alternates.
    fn object_dirs(&self) -> impl Iterator<Item = &Path> {
        folders(&self.objects, &self.alternates)
    }

    /// Lends a reader from the pool.
    fn with_reader<T>(&self, work: impl FnOnce(&mut Reader) -> T) -> T {
        let pool = || match self.readers.lock() {
            Ok(readers) => readers,
            Err(poisoned) => poisoned.into_inner(),
        };
        let mut reader = pool().pop().unwrap_or_default();
        let result = work(&mut reader);
        pool().push(reader);
        result
    }

    /// The file that has an object, for messages.
    fn place_of(&self, id: &oid) -> PathBuf {
        match self.find(id) {
            Some(at) => self.pack_of(at).0.path().to_owned(),
            None => self
                .object_dirs()
                .map(|folder| loose::path_in(folder, id))
                .find(|path| path.exists())
                .unwrap_or_else(|| self.objects.clone()),
        }
    }
}

/// The repository's own object folder, then those that it borrows from.
fn folders<'a>(objects: &'a Path, alternates: &'a [PathBuf]) -> impl Iterator<Item = &'a Path> {
    std::iter::once(objects).chain(alternates.iter().map(PathBuf::as_path))
}

/// When packs were last added to an object folder, or removed. `None` where there is no folder of packs.
fn changed(objects: &Path) -> Option<SystemTime> {
    fs::metadata(objects.join("pack")).ok()?.modified().ok()
}

/// What became of the packs of some folders.
struct Opened {
    packs: Vec<Arc<Pack>>,
    set_aside: Vec<Error>,
}

/// Opens the packs of an object folder, then of those that it borrows from. Those that cannot be used are set aside.
fn open_packs(objects: &Path, alternates: &[PathBuf], format: gix_hash::Kind) -> Result<Opened, Error> {
    let mut tries = TRIES;
    'again: loop {
        tries -= 1;
        let mut paths = Vec::new();
        for folder in folders(objects, alternates) {
            paths.extend(pack_paths(folder)?);
        }
        let (mut packs, mut set_aside) = (Vec::with_capacity(paths.len()), Vec::new());
        for path in &paths {
            match open_pack(path, format, paths.len()) {
                Ok(pack) => packs.push(pack),
                // Whoever removes a pack has put its objects into another one, which the folder has now.
                Err(error) if error.is_absence() && tries > 0 => continue 'again,
                Err(error) if error.is_exhaustion() => return Err(error),
                Err(error) => set_aside.push(error),
            }
        }
        return Ok(Opened { packs, set_aside });
    }
}

/// Opens one of `count` packs, and looks whether the data are those that the index was made for.
fn open_pack(path: &Path, format: gix_hash::Kind, count: usize) -> Result<Arc<Pack>, Error> {
    let pack = Pack::open(path, format)?;
    match count <= OPENED_EAGERLY {
        true => pack.open_data()?,
        false => pack.check()?,
    }
    Ok(Arc::new(pack))
}

/// The position of the first object of each pack, then the number of all.
fn starts_of(packs: &[Arc<Pack>], objects: &Path) -> Result<Vec<u32>, Error> {
    let mut starts = vec![0u32];
    let mut count = 0u32;
    for pack in packs {
        count = count
            .checked_add(pack.len())
            .ok_or_else(|| Error::TooManyObjects {
                path: objects.to_owned(),
            })?;
        starts.push(count);
    }
    Ok(starts)
}

/// The packs of an object folder that have an index, sorted by name. As in Git, a pack without an index does not count,
/// nor an index without a pack.
fn pack_paths(objects: &Path) -> Result<Vec<PathBuf>, Error> {
    let folder = objects.join("pack");
    let failed = |source| Error::Io {
        action: "list the folder of packs",
        path: folder.clone(),
        source,
    };
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let (mut packs, mut indexes) = (Vec::new(), Vec::new());
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("pack") => packs.push(path),
            Some("idx") => indexes.push(path.with_extension("pack")),
            _ => {}
        }
    }
    indexes.sort_unstable();
    packs.retain(|path| indexes.binary_search(path).is_ok());
    packs.sort_unstable();
    Ok(packs)
}
