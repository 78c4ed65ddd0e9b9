//! Writes a pack object by object, with its index, for those who make objects rather than send them.
//!
//! Nothing is searched for deltas and nothing is read back: entries are appended as they come. The number of entries,
//! with which a pack begins, is known only at the end; so a small pack is kept in memory and written once, and a large
//! one gets its number afterwards and is hashed from the file, while the disk is still busy with it.

use std::collections::HashSet;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gix_hash::{ObjectId, oid};
use gix_object::Kind;

use super::index::write::Index;
use super::inflate::{Deflater, Level};
use super::write::digest::Digest;
use crate::durable::{self, Context as _, Fs, Handle, Kind as FileKind};

/// Packs up to this size are written at once.
const IN_MEMORY: usize = 16 << 20;
/// Larger ones are written in pieces of this size.
const PIECE: usize = 4 << 20;
/// Permissions of packs and indexes: nobody changes them.
const MODE: u32 = 0o444;
/// "PACK", the version, the number of entries.
const HEADER: usize = 12;

/// A pack that is part of the repository now, durably.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The `.pack` file.
    pub pack: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// The number of its entries.
    pub objects: u32,
}

/// A pack in the making. Dropping it leaves nothing behind.
pub struct Builder {
    fs: Arc<dyn Fs>,
    folder: PathBuf,
    format: gix_hash::Kind,
    buffer: Vec<u8>,
    file: Option<Staged>,
    /// How much was written to the file.
    flushed: u64,
    ids: Vec<ObjectId>,
    known: HashSet<ObjectId>,
    offsets: Vec<u64>,
    crcs: Vec<u32>,
}

struct Staged {
    path: PathBuf,
    handle: Option<Box<dyn Handle>>,
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("folder", &self.folder)
            .field("objects", &self.ids.len())
            .finish_non_exhaustive()
    }
}

impl Builder {
    /// A pack for the object folder `objects`. No file is made before there is much to write.
    pub fn new(fs: Arc<dyn Fs>, objects: &Path, format: gix_hash::Kind) -> Builder {
        Builder {
            fs,
            folder: objects.join("pack"),
            format,
            buffer: Vec::new(),
            file: None,
            flushed: 0,
            ids: Vec::new(),
            known: HashSet::new(),
            offsets: Vec::new(),
            crcs: Vec::new(),
        }
    }

    /// True if nothing was added.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Bytes so far.
    pub fn bytes(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    /// True if the object was added.
    pub fn contains(&self, id: &oid) -> bool {
        self.known.contains(id)
    }

    /// Appends an entry that [`Encoder::encode`] has made of the object `id`. An object that is there already is left
    /// out; false then.
    pub fn push(&mut self, id: ObjectId, entry: &[u8]) -> Result<bool, durable::Error> {
        if !self.known.insert(id) {
            return Ok(false);
        }
        if self.ids.is_empty() {
            self.buffer.extend_from_slice(b"PACK\0\0\0\x02\0\0\0\0");
        }
        if self.ids.len() >= 0x7fff_ffff {
            let full = io::Error::other("it has as many objects as a pack can have");
            return Err(durable::Error::new("add to a pack in", &self.folder, full));
        }
        self.ids.push(id);
        self.offsets.push(self.bytes());
        self.crcs.push(crc32fast::hash(entry));
        self.buffer.extend_from_slice(entry);
        let limit = if self.file.is_some() { PIECE } else { IN_MEMORY };
        if self.buffer.len() > limit {
            self.flush()?;
        }
        Ok(true)
    }

    fn flush(&mut self) -> Result<(), durable::Error> {
        if self.file.is_none() {
            durable::create_dirs(&*self.fs, &self.folder, 0o777)?;
            let (path, handle) =
                durable::create_unique(&*self.fs, &self.folder, "tmp_pack_".as_ref(), MODE)?;
            self.file = Some(Staged {
                path,
                handle: Some(handle),
            });
        }
        if let Some(Staged {
            path,
            handle: Some(handle),
        }) = &mut self.file
        {
            handle.write_all(&self.buffer).during("write", path)?;
        }
        self.flushed += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Makes the pack part of the repository, durably. With `keep`, a `.keep` file with that text is beside it, so that
    /// Git leaves it alone. `None` if there is nothing to write.
    pub fn finish(mut self, keep: Option<&str>) -> Result<Option<Built>, durable::Error> {
        let Ok(count) = u32::try_from(self.ids.len()) else {
            return Ok(None);
        };
        if count == 0 {
            return Ok(None);
        }
        let whole = self.file.is_none();
        let checksum = if whole {
            self.buffer[8..HEADER].copy_from_slice(&count.to_be_bytes());
            let mut digest = Digest::new(self.format);
            digest.update(&self.buffer);
            let checksum = digest.finish();
            self.buffer.extend_from_slice(checksum.as_bytes());
            self.flush()?;
            checksum
        } else {
            self.flush()?;
            let checksum = self.hash_file(count)?;
            self.buffer.extend_from_slice(checksum.as_bytes());
            self.flush()?;
            checksum
        };
        let index = self.write_index(checksum);
        let target = self.folder.join(format!("pack-{checksum}.pack"));
        let result = index.and_then(|index| {
            let published = self.publish(&index, &target, keep);
            if published.is_err() {
                // The first failure is the one worth reporting.
                let _ = self.fs.unlink(&index);
            }
            published
        });
        result?;
        let bytes = self.flushed;
        self.file = None;
        Ok(Some(Built {
            pack: target,
            bytes,
            objects: count,
        }))
    }

    /// Puts the number of entries in its place and hashes the file, which is written to the disk meanwhile.
    fn hash_file(&mut self, count: u32) -> Result<ObjectId, durable::Error> {
        let Some(Staged {
            path,
            handle: Some(handle),
        }) = &mut self.file
        else {
            return Ok(ObjectId::null(self.format));
        };
        handle.write_at(&count.to_be_bytes(), 8).during("write", path)?;
        let (format, path) = (self.format, &*path);
        let (synced, hashed) = std::thread::scope(|scope| {
            let sync = scope.spawn(|| handle.sync());
            let hashed = hash_whole(path, format);
            let synced = sync.join();
            (synced, hashed)
        });
        match synced {
            Ok(result) => result.during("sync", path)?,
            Err(panic) => std::panic::resume_unwind(panic),
        }
        hashed.during("read", path)
    }

    /// Writes the index under a temporary name, which is returned.
    fn write_index(&self, checksum: ObjectId) -> Result<PathBuf, durable::Error> {
        let mut order: Vec<u32> = (0..self.ids.len() as u32).collect();
        order.sort_unstable_by_key(|&entry| self.ids[entry as usize]);
        let index = Index {
            format: self.format,
            order: &order,
            offsets: &self.offsets,
            crcs: &self.crcs,
            pack: checksum,
        };
        let (path, mut handle) =
            durable::create_unique(&*self.fs, &self.folder, "tmp_idx_".as_ref(), MODE)?;
        let result = index
            .write(|entry| &self.ids[entry as usize], &mut handle)
            .during("write", &path)
            .and_then(|()| handle.sync().during("sync", &path));
        if let Err(error) = result {
            let _ = self.fs.unlink(&path);
            return Err(error);
        }
        Ok(path)
    }

    fn publish(&mut self, index: &Path, target: &Path, keep: Option<&str>) -> Result<(), durable::Error> {
        let Some(file) = &mut self.file else { return Ok(()) };
        if let Some(mut handle) = file.handle.take() {
            handle.sync().during("sync", &file.path)?;
        }
        let keep_path = target.with_extension("keep");
        let mut kept = false;
        if let Some(text) = keep {
            match self.fs.create_new(&keep_path, 0o444) {
                Ok(mut handle) => {
                    kept = true;
                    // That the file is there is what counts, so its text need not be synced.
                    writeln!(handle, "{text}").during("write", &keep_path)?;
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(durable::Error::new("create", keep_path, error)),
            }
        }
        let index_target = target.with_extension("idx");
        let moved = (self.fs.rename(&file.path, target).during("publish", target))
            .and_then(|()| self.fs.rename(index, &index_target).during("publish", &index_target));
        if moved.is_err() {
            if kept {
                let _ = self.fs.unlink(&keep_path);
            }
            // A pack without an index does not count, but takes space.
            if !matches!(self.fs.kind(&index_target), Ok(Some(FileKind::File))) {
                let _ = self.fs.unlink(target);
            }
        }
        moved?;
        self.fs.sync_dir(&self.folder).during("sync folder", &self.folder)
    }
}

impl Drop for Builder {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            drop(file.handle);
            // A leftover is harmless, and there is nobody to tell; Git prunes it in the end.
            let _ = self.fs.unlink(&file.path);
        }
    }
}

fn hash_whole(path: &Path, format: gix_hash::Kind) -> io::Result<ObjectId> {
    let mut file = std::fs::File::open(path)?;
    let mut digest = Digest::new(format);
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(digest.finish()),
            count => digest.update(&buffer[..count]),
        }
    }
}

/// The id of an object that this process has made: without the search for crafted collisions, on the processor's hash
/// instructions.
pub fn id_of(format: gix_hash::Kind, kind: Kind, bytes: &[u8]) -> ObjectId {
    let mut digest = Digest::of_object(format, kind, bytes.len() as u64);
    digest.update(bytes);
    digest.finish()
}

/// How much effort an entry is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// None: the bytes as they are, in a frame.
    Stored,
    /// Git's own.
    Deflated,
}

/// Makes entries, one after the other with the same state.
#[derive(Debug, Default)]
pub struct Encoder {
    stored: Option<Deflater>,
    deflated: Option<Deflater>,
}

impl Encoder {
    /// Appends the entry of an object to `out`. What does not get smaller is stored, whatever `effort` says.
    pub fn encode(&mut self, kind: Kind, bytes: &[u8], effort: Effort, out: &mut Vec<u8>) {
        put_header(kind, bytes.len() as u64, out);
        let start = out.len();
        if effort == Effort::Deflated {
            self.deflated
                .get_or_insert_with(|| Deflater::new(Level::DEFAULT))
                .deflate(bytes, out);
            if out.len() - start < bytes.len() {
                return;
            }
            out.truncate(start);
        }
        self.stored
            .get_or_insert_with(|| Deflater::new(Level::NONE))
            .deflate(bytes, out);
    }
}

/// The header of an entry (gitformat-pack(5)): kind, and size in groups of 4, 7, 7, ... bits.
fn put_header(kind: Kind, size: u64, out: &mut Vec<u8>) {
    let kind: u8 = match kind {
        Kind::Commit => 1,
        Kind::Tree => 2,
        Kind::Blob => 3,
        Kind::Tag => 4,
    };
    let mut byte = kind << 4 | (size & 0x0f) as u8;
    let mut rest = size >> 4;
    while rest != 0 {
        out.push(byte | 0x80);
        byte = (rest & 0x7f) as u8;
        rest >>= 7;
    }
    out.push(byte);
}
