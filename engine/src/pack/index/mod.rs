//! Indexes an incoming pack: from a stream to a `.pack`, an `.idx` and a `.rev` file.
//!
//! The stream is read once. While it comes in, other threads already compute ids and apply deltas to bases that are
//! still at hand, which for packs in Git's order is nearly all of them; the rest is resolved from the file afterwards.
//! Each object is looked at while it is in memory: what it refers to is collected, so that a pack that is complete in
//! itself needs no second walk to know it.
//!
//! What is checked, of each pack: its structure, its checksum, all sizes, and that it has the base of every delta. Of
//! each object: that no SHA-1 collision attack is hidden in it; that it does not differ from one of the same id that is
//! here already; that commits, trees and tags can be read as far as Git's own walk reads them; that what other objects
//! of the pack take for a tree or commit is one; and, if wanted, that no tree has a name that leaves the work tree or
//! hits `.git`.
//! What Git's fsck finds beyond that (order of tree entries, dates, encodings) is history that exists and has to be
//! carried; the names of submodules are checked when they are checked out.
//!
//! As with Git, the same object may be in a pack more than once; the index then lists each. Unlike with Git, it may even
//! be the base of a reference delta then.

mod bases;
mod batch;
mod deltas;
mod error;
mod examine;
mod ids;
mod input;
mod make;
mod pack_file;
mod receive;
mod references;
mod table;
mod threads;
mod work;
pub(super) mod write;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gix_hash::ObjectId;

pub use error::Error;

use crate::durable::Fs;
use crate::phase::Phase;
use crate::progress::Progress;
use crate::store::Store;
use input::Input;
use pack_file::{PackFile, Reader};
use references::References;
use table::Resolved;
use work::Work;

/// Permissions of packs and indexes: nobody changes them.
const MODE: u32 = 0o444;

/// What a pack may ask for. Beyond them, it is refused before the memory or the disk is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The length of the pack in bytes. No limit by default.
    pub pack_bytes: u64,
    /// The number of its entries. No limit by default.
    pub objects: u32,
    /// The size of any one object in bytes. No limit by default.
    pub object_bytes: u64,
    /// The size in bytes of one object that has to be held in memory: every commit, tree and tag, every delta and what
    /// is made from it or by it. Three such objects can be in memory for each thread. 1 GiB by default, which is twice
    /// the size from which on Git makes no deltas.
    pub held_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            pack_bytes: u64::MAX,
            objects: u32::MAX,
            object_bytes: u64::MAX,
            held_bytes: 1 << 30,
        }
    }
}

/// How to index.
#[derive(Clone)]
pub struct Options<'a> {
    /// The format of object ids.
    pub format: gix_hash::Kind,
    /// How many threads work, the calling one included. 0 stands for one per processor.
    pub threads: usize,
    /// Bytes of delta bases that are kept in memory, beyond those in use.
    pub memory: u64,
    /// What the pack may ask for.
    pub limits: Limits,
    /// Objects that exist already: one of the same id in the pack must be the same. Those of the pack itself need not be
    /// in it.
    pub existing: Option<&'a Store>,
    /// Refuses trees with names that leave the work tree or hit `.git`, as Git does when `transfer.fsckObjects` is set.
    /// Checkout refuses them in any case.
    pub safe_names: bool,
    /// Where files are written.
    pub fs: Arc<dyn Fs>,
}

impl std::fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("format", &self.format)
            .field("threads", &self.threads)
            .field("memory", &self.memory)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Options<'_> {
    /// All processors, 10 MiB of bases, default limits, nothing to compare with.
    pub fn new(format: gix_hash::Kind) -> Options<'static> {
        Options {
            format,
            threads: 0,
            memory: 10 << 20,
            limits: Limits::default(),
            existing: None,
            safe_names: true,
            fs: crate::durable::real(),
        }
    }
}

/// An indexed pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Indexed {
    /// The checksum of the pack, which names its files.
    pub id: ObjectId,
    /// How many entries it has.
    pub objects: u32,
    /// The length of the pack file.
    pub bytes: u64,
    /// The `.pack` file. Not synced. The `.idx` and `.rev` files are beside it, with those extensions.
    pub pack: PathBuf,
    /// What its objects refer to that is not in it, sorted.
    pub external: Vec<ObjectId>,
}

/// Reads a pack from `source` to its end and puts it with its index into `folder`, under the names that Git gives them,
/// in place of the same pack if it is there already. Nothing is synced yet. When it fails, it leaves nothing behind.
///
/// Only one pack at a time may be indexed into the same folder.
pub fn index(
    source: &mut dyn Read,
    folder: &Path,
    options: &Options<'_>,
    progress: &dyn Progress,
) -> Result<Indexed, Error> {
    let mut phase = Phase::begin("index");
    let result = index_into(source, folder, options, progress);
    if let Ok(indexed) = &result {
        phase.objects(indexed.objects.into());
        phase.bytes(indexed.bytes);
    } else {
        for extension in EXTENSIONS {
            // The first failure is the one worth reporting; most often, not all of the files exist.
            let _ = options.fs.unlink(&temporary(folder, extension));
        }
    }
    result
}

/// The files of a pack, in the order in which they get their names.
const EXTENSIONS: [&str; 3] = ["pack", "rev", "idx"];

/// The name of a file until it is complete. Git takes no such file for a pack or an index, and prunes it in the end.
fn temporary(folder: &Path, extension: &str) -> PathBuf {
    folder.join(format!("tmp_{extension}_incoming"))
}

fn index_into(
    source: &mut dyn Read,
    folder: &Path,
    options: &Options<'_>,
    progress: &dyn Progress,
) -> Result<Indexed, Error> {
    let threads = match options.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let create = |path: &Path| {
        let file = options.fs.create_new(path, MODE);
        file.map_err(error::file("create", path))
    };
    let path = temporary(folder, "pack");
    let file = create(&path)?;
    let input = Input::new(
        source,
        file,
        path.clone(),
        options.format,
        options.limits.pack_bytes,
    );
    let work = Work::new(options, PackFile::open(path)?, progress);
    let received = threads::run(&work, threads, input)?;
    deltas::resolve(&work, threads)?;
    compare_streamed(&work)?;
    progress.end();
    let (entries, resolved, references) = work.finish();
    let order = order(&resolved);
    let external = external(&resolved, &order, references)?;

    let index = write::Index {
        format: options.format,
        order: &order,
        offsets: &entries.offsets,
        crcs: &entries.crcs,
        pack: received.checksum,
    };
    let path = temporary(folder, "rev");
    index
        .write_reverse(&mut create(&path)?)
        .map_err(error::file("write", &path))?;
    let path = temporary(folder, "idx");
    index
        .write(|entry| resolved.id(entry), &mut create(&path)?)
        .map_err(error::file("write", &path))?;
    let pack = folder.join(format!("pack-{}.pack", received.checksum));
    for extension in EXTENSIONS {
        let from = temporary(folder, extension);
        let renamed = options.fs.rename(&from, &pack.with_extension(extension));
        renamed.map_err(error::file("rename", &from))?;
    }
    Ok(Indexed {
        id: received.checksum,
        objects: entries.len() as u32,
        bytes: received.bytes,
        pack,
        external,
    })
}

/// Blobs that were never held are compared with their doubles by a second, unbroken hash of both.
fn compare_streamed(work: &Work<'_>) -> Result<(), Error> {
    use sha2::Digest as _;
    let Some(examine::Existing { store, .. }) = work.existing else {
        return Ok(());
    };
    let streamed = std::mem::take(&mut work.resolved().streamed);
    for entry in streamed {
        let id = work.resolved().id(entry).to_owned();
        if !store.contains(&id) {
            continue;
        }
        let mut theirs = examine::Digest::default();
        let found = store
            .stream(&id, &mut crate::store::Cache::new(0), &mut theirs)
            .map_err(|source| Error::Existing {
                id,
                source: Box::new(source),
            })?;
        let mut ours = sha2::Sha256::new();
        let range = work.entries().range(entry);
        work.file
            .stream(range, work.format, &mut Reader::new(), &mut |piece| {
                ours.update(piece);
            })?;
        let same = match found {
            // What vanished in the meantime cannot differ.
            None => true,
            Some((kind, _)) => kind == gix_object::Kind::Blob && theirs.0.finalize() == ours.finalize(),
        };
        if !same {
            return Err(Error::Collision { id });
        }
    }
    Ok(())
}

/// Entry numbers in the order of ids; the same id twice in pack order.
fn order(resolved: &Resolved) -> Vec<u32> {
    let mut order: Vec<u32> = (0..resolved.count() as u32).collect();
    order.sort_unstable_by(|a, b| resolved.id(*a).cmp(resolved.id(*b)).then(a.cmp(b)));
    order
}

/// What is referred to and not in the pack. What is in it has to be of the right kind.
fn external(resolved: &Resolved, order: &[u32], references: References) -> Result<Vec<ObjectId>, Error> {
    let mut external: Vec<ObjectId> = Vec::new();
    let mut own = order.iter().copied().peekable();
    references.for_each(|id, expected| {
        while let Some(_passed) = own.next_if(|entry| resolved.id(*entry) < id) {}
        match own.peek() {
            Some(&entry) if resolved.id(entry) == id => match (expected, resolved.kind(entry)) {
                (Some(expected), Some(actual)) if expected != actual => Err(Error::WrongKind {
                    id: id.to_owned(),
                    expected,
                    actual,
                }),
                _ => Ok(()),
            },
            _ => {
                if external.last().is_none_or(|last| **last != *id) {
                    external.push(id.to_owned());
                }
                Ok(())
            }
        }
    })?;
    Ok(external)
}

/// What a failed inflation of the entry at `offset` means.
fn inflate_error(failure: crate::pack::inflate::Error, offset: u64, claimed: u64) -> Error {
    use crate::pack::inflate::Error as Inflate;
    match failure {
        Inflate::Longer { .. } | Inflate::Shorter { .. } => Error::EntrySize { offset, claimed },
        source => Error::Inflate { offset, source },
    }
}
