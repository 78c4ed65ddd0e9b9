//! Chunked files: big files that a repository holds as many blobs instead of one.
//!
//! In the tree stands a small text, the [`Pointer`]. It names a [list](List), a blob that says in which order which
//! chunks make the file; lists of large files are lists of lists. `docs/format-chunked.md` is the specification. This
//! module reads all of it, and says what a pointer leads to; making chunks is the business of the `ingot-chunker` crate.
//!
//! For Git a pointer is an ordinary file that refers to nothing. So that a repository without chunked files pays
//! nothing, pointers are looked for only where [`has_chunks`] is true: who brings chunks into an object folder calls
//! [`mark`].

mod difference;
mod error;
mod list;
mod pieces;
mod pointer;
mod restore;
mod verify;

use std::path::{Path, PathBuf};

use bstr::ByteSlice as _;
use gix_hash::ObjectId;
use gix_object::Kind;

use crate::durable::{self, Context as _, Fs};
use crate::store::{self, Cache, Pack, Reader, Store};

pub use difference::{Difference, NewChunk};
pub use error::Error;
pub use list::{
    Child, Children, Entry, LARGEST_CHUNK, LARGEST_LIST, List, ListFault, Part, group_ends, is_border, varint,
};
pub use pieces::{Piece, Pieces, Source};
pub use pointer::{Pointer, pointer_length};
pub use restore::{Options as RestoreOptions, Restored, differs_little, patch, restore, write_to};
pub use verify::{Fault, verify};

/// The attribute value that makes a file a chunked one: `filter=chunk`.
pub const FILTER: &str = "chunk";

/// The file that says that an object folder may hold chunked files.
pub fn marker(objects: &Path) -> PathBuf {
    objects.join("info").join("chunked")
}

/// Notes that an object folder may hold chunked files from now on, durably. Costs one look when that is known already.
pub fn mark(fs: &dyn Fs, objects: &Path) -> Result<(), durable::Error> {
    let path = marker(objects);
    if fs.kind(&path).during("examine", &path)?.is_some() {
        return Ok(());
    }
    durable::create_dirs(fs, &objects.join("info"), 0o777)?;
    durable::write_atomic(fs, &path, b"This object folder holds chunked files.\n", 0o444)
}

/// True if the object folder of the store, or one that it borrows from, may hold chunked files.
pub fn has_chunks(store: &Store) -> bool {
    std::iter::once(store.objects_dir())
        .chain(store.alternates().iter().map(PathBuf::as_path))
        .any(|objects| marker(objects).exists())
}

/// Reads the pointer that the object `id` is. `None` if it is something else, or is not there.
pub fn read_pointer(store: &Store, id: &gix_hash::oid, cache: &mut Cache) -> Result<Option<Pointer>, Error> {
    match store.header(id)? {
        Some((Kind::Blob, size)) if size == pointer_length(store.format()) as u64 => {}
        _ => return Ok(None),
    }
    let mut bytes = Vec::new();
    store.read(id, cache, &mut bytes)?;
    Ok(Pointer::parse(&bytes, store.format()))
}

/// True if the pack brings chunks: it has a pointer, and the list that this names. Only pointers that are not stored as
/// deltas are found; a pack that is complete in itself and has pointers has such a one. The index tells which entries can
/// be one; only these are looked at.
pub fn holds_chunks(pack: &Pack, format: gix_hash::Kind) -> Result<bool, store::Error> {
    let length = pointer_length(format) as u64;
    let order = pack.by_offset();
    let mut reader = Reader::new();
    for (place, &local) in order.iter().enumerate() {
        let start = pack.offset(local);
        let end = match order.get(place + 1) {
            Some(&next) => pack.offset(next),
            None => pack.data_end()?,
        };
        if !whole_pointer_may_take(end.saturating_sub(start), length) {
            continue;
        }
        let entry = reader.entry(pack, start)?;
        if entry.decompressed_size == length && entry.header.as_kind() == Some(Kind::Blob) {
            let mut bytes = Vec::new();
            reader.inflate(pack, &entry, &mut bytes)?;
            if let Some(pointer) = Pointer::parse(&bytes, format)
                && pack.find(&pointer.list).is_some()
            {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Whether a whole pointer may take so many bytes of a pack. The hexadecimal digits of its hashes cannot be compressed
/// below half, and a stream that is merely stored adds a few bytes.
fn whole_pointer_may_take(packed: u64, length: u64) -> bool {
    (length / 3..=length + 32).contains(&packed)
}

/// True for bytes that begin as a pointer does, whether or not they are one.
pub fn looks_like_pointer(bytes: &[u8]) -> bool {
    bytes.starts_with_str(pointer::FIRST_LINE)
}

/// An id and what it is called, for those who collect what pointers lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reached {
    /// The object: a list, a chunk or a delta.
    pub id: ObjectId,
    /// True for lists.
    pub list: bool,
}

/// Calls `each` for every object that a pointer leads to: lists first, each before what it names. An absent list is
/// given, too, but what it would name cannot be. `skip` is asked about each list; what it takes for known is not read.
pub fn reach(
    store: &Store,
    pointer: &Pointer,
    cache: &mut Cache,
    mut skip: impl FnMut(&ObjectId) -> bool,
    mut each: impl FnMut(Reached),
) -> Result<(), Error> {
    let mut waiting = vec![(pointer.list, pointer.size, None)];
    let mut bytes = Vec::new();
    while let Some((id, size, level)) = waiting.pop() {
        if skip(&id) {
            continue;
        }
        each(Reached { id, list: true });
        match store.read(&id, cache, &mut bytes)? {
            None => continue,
            Some(Kind::Blob) => {}
            Some(kind) => return Err(Error::NoList { id, kind }),
        }
        let list = List::parse(&bytes, store.format()).map_err(|fault| Error::List { id, fault })?;
        list.check(id, size, level)?;
        match list.children() {
            Children::Lists(lists) => {
                let below = list.level().checked_sub(1);
                waiting.extend(lists.iter().rev().map(|child| (child.id, child.length, below)));
            }
            Children::Entries(entries) => {
                for entry in entries {
                    match entry {
                        Entry::Chunk { id, .. } => each(Reached { id: *id, list: false }),
                        Entry::Delta { delta, base, .. } => {
                            each(Reached {
                                id: *base,
                                list: false,
                            });
                            each(Reached {
                                id: *delta,
                                list: false,
                            });
                        }
                        Entry::Zeros { .. } => {}
                    }
                }
            }
        }
    }
    Ok(())
}
