//! Creates packs of objects that exist nowhere yet.
//!
//! A [`Creator`] takes new objects in the order in which they are to lie and makes one durable pack of them. Objects
//! that fit in memory are compressed by an [`Encoder`], on any thread, and added afterwards; a blob that does not fit is
//! written through a [`Blob`] and passes in pieces. No deltas are made: whoever repacks makes them. Few objects are
//! compressed where they are added, with [`Creator::add_whole`].
//!
//! Nothing is written to disk before [`Options::buffer`] bytes have come together, so the pack of a small change is
//! written at once when it is complete, and one that is given up has left no trace.

mod blob;
mod completed;
mod encoder;
mod error;
mod output;
mod pieces;

use std::collections::HashMap;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gix_hash::{ObjectId, oid};
use gix_object::Kind;

pub use blob::Blob;
pub use completed::Completed;
pub use encoder::{Encoder, Object, StreamDigest, id_of};
pub use error::Error;

use crate::durable::{self, Context as _, Fs};
use crate::pack::index::write::Index;
use crate::pack::inflate::{Deflater, Level};
use crate::pack::write::digest::Digest;
use crate::phase::Phase;
use output::Output;

/// What the names of packs in the making, and of their indexes, begin with. Git prunes leftovers of such names.
pub const TEMPORARY_PREFIXES: [&str; 2] = ["tmp_pack_new_", "tmp_idx_new_"];
/// What is read at once of a blob that is not held in memory.
const PIECE: usize = 256 * 1024;
/// Nobody changes packs.
const MODE: u32 = 0o444;

/// How a pack is created.
#[derive(Clone)]
pub struct Options {
    /// Effort of compression of blobs that are streamed.
    pub level: Level,
    /// Bytes of the pack that are held in memory before a file is made.
    pub buffer: usize,
    /// The likely number of objects. A pack begins with the number of its objects: when a pack that did not fit in the
    /// buffer turns out to have another number, it has to be read again for its checksum.
    pub expected: u32,
    /// Where the files are written.
    pub fs: Arc<dyn Fs>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            level: Level::BEST_SPEED,
            buffer: 8 << 20,
            expected: 0,
            fs: durable::real(),
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("level", &self.level)
            .field("buffer", &self.buffer)
            .field("expected", &self.expected)
            .finish_non_exhaustive()
    }
}

/// Whether compressing an object is worth the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Text, trees and the like.
    Compressible,
    /// Ciphertext and what is compressed already: stored as it is.
    Random,
}

/// A pack that is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// The `.pack` file; the `.idx` file is beside it.
    pub pack: PathBuf,
    /// The checksum of the pack, which is in the names.
    pub id: ObjectId,
    /// The number of its objects.
    pub objects: u32,
    /// The length of the pack file.
    pub bytes: u64,
}

/// A pack in the making. Dropping it leaves nothing behind.
pub struct Creator {
    folder: PathBuf,
    format: gix_hash::Kind,
    fs: Arc<dyn Fs>,
    level: Level,
    output: Output,
    ids: Vec<ObjectId>,
    offsets: Vec<u64>,
    crcs: Vec<u32>,
    known: HashMap<ObjectId, u32>,
    thorough: Option<Deflater>,
    stored: Option<Deflater>,
    /// A blob was begun and not ended, so that the bytes so far are no pack.
    unfinished: bool,
}

impl std::fmt::Debug for Creator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Creator")
            .field("folder", &self.folder)
            .field("objects", &self.ids.len())
            .finish_non_exhaustive()
    }
}

impl Creator {
    /// Begins a pack for the object folder of a repository. Touches nothing yet.
    pub fn begin(objects: &Path, format: gix_hash::Kind, options: &Options) -> Creator {
        Creator::in_folder(&objects.join("pack"), format, options)
    }

    /// Begins a pack whose files will lie in `folder`.
    pub fn in_folder(folder: &Path, format: gix_hash::Kind, options: &Options) -> Creator {
        Creator {
            output: Output::new(folder, format, options),
            folder: folder.to_owned(),
            format,
            fs: Arc::clone(&options.fs),
            level: options.level,
            ids: Vec::new(),
            offsets: Vec::new(),
            crcs: Vec::new(),
            known: HashMap::new(),
            thorough: None,
            stored: None,
            unfinished: false,
        }
    }

    /// The number of objects so far.
    pub fn len(&self) -> u32 {
        self.ids.len() as u32
    }

    /// True while no object was added.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// True if the pack has this object already.
    pub fn contains(&self, id: &oid) -> bool {
        self.known.contains_key(id)
    }

    /// Adds a compressed object unless the pack has it already; tells whether it was added.
    pub fn add(&mut self, object: &Object) -> Result<bool, Error> {
        if self.contains(&object.id) {
            return Ok(false);
        }
        self.room()?;
        let offset = self.output.start_entry(object.kind, object.size)?;
        self.output.put(&object.body)?;
        self.entered(object.id, offset);
        Ok(true)
    }

    /// Compresses an object and adds it, unless the pack has it already. Returns its id.
    pub fn add_whole(&mut self, kind: Kind, bytes: &[u8], content: Content) -> Result<ObjectId, Error> {
        let id = id_of(self.format, kind, bytes);
        if self.contains(&id) {
            return Ok(id);
        }
        self.room()?;
        let offset = self.output.start_entry(kind, bytes.len() as u64)?;
        let (slot, level) = match content {
            Content::Compressible => (&mut self.thorough, Level::DEFAULT),
            Content::Random => (&mut self.stored, Level::NONE),
        };
        let deflater = slot.get_or_insert_with(|| Deflater::new(level));
        let (mut input, output) = (bytes, &mut self.output);
        let mut failure = None;
        let streamed = deflater.stream(&mut input, &mut |piece| {
            output.put(piece).map_err(|error| {
                failure = Some(error);
                std::io::ErrorKind::Other.into()
            })
        });
        match (failure, streamed) {
            (Some(error), _) => return Err(error),
            // Reading memory does not fail.
            (None, streamed) => streamed.during("write", &self.folder)?,
        }
        self.entered(id, offset);
        Ok(id)
    }

    /// Adds a blob of exactly `size` bytes from `source` without compressing it, in pieces. If the pack had it before, it
    /// lies there twice afterwards, which Git accepts.
    pub fn add_stream(&mut self, size: u64, source: &mut dyn Read) -> Result<ObjectId, Error> {
        self.room()?;
        self.unfinished = true;
        let offset = self.output.start_entry(Kind::Blob, size)?;
        let deflater = self.stored.get_or_insert_with(|| Deflater::new(Level::NONE));
        let mut digest = Digest::of_object(self.format, Kind::Blob, size);
        let mut piece = vec![0; PIECE.min(usize::try_from(size).unwrap_or(PIECE)).max(1)];
        let (mut compressed, mut written) = (Vec::new(), 0u64);
        deflater.begin();
        loop {
            let count = match source.read(&mut piece) {
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Error::Source(error)),
            };
            written += count as u64;
            match count {
                _ if written > size => break,
                0 => break,
                count => {
                    digest.update(&piece[..count]);
                    deflater.push(&piece[..count], &mut compressed);
                }
            }
            self.output.put(&compressed)?;
            compressed.clear();
        }
        if written != size {
            return Err(Error::Length {
                expected: size,
                actual: written,
            });
        }
        deflater.end(&mut compressed);
        self.output.put(&compressed)?;
        let id = digest.finish();
        self.entered(id, offset);
        Ok(id)
    }

    /// Begins a blob of `size` bytes, which is then written piece by piece.
    pub fn blob(&mut self, size: u64) -> Result<Blob<'_>, Error> {
        self.room()?;
        Blob::begin(self, size)
    }

    /// Completes the pack and makes it durable: data and index are synced before their names appear, then the folder. A
    /// pack without objects is not written.
    pub fn finish(self) -> Result<Option<Created>, Error> {
        self.finish_with(None)
    }

    /// [`finish`](Self::finish) with a `.keep` file of that text beside the pack, so that Git leaves it alone.
    pub fn finish_kept(self, keep: &str) -> Result<Option<Created>, Error> {
        self.finish_with(Some(keep))
    }

    /// Completes the pack under its temporary name, without an index and not synced, for those who look at it or send it
    /// before it counts. From now on, the file is theirs.
    pub fn complete(mut self) -> Result<Completed, Error> {
        self.room()?;
        let objects = self.len();
        let (id, bytes) = self.output.finish(objects, false)?;
        Ok(Completed {
            path: self.output.leave().unwrap_or_default(),
            id,
            objects,
            bytes,
            format: self.format,
            ids: self.ids,
            offsets: self.offsets,
            crcs: self.crcs,
        })
    }

    fn finish_with(mut self, keep: Option<&str>) -> Result<Option<Created>, Error> {
        self.room()?;
        if self.is_empty() {
            return Ok(None);
        }
        let mut phase = Phase::begin("finish pack");
        let objects = self.len();
        let (id, bytes) = self.output.finish(objects, true)?;
        phase.objects(objects.into());
        phase.bytes(bytes);
        let mut order: Vec<u32> = (0..objects).collect();
        order.sort_unstable_by(|a, b| self.ids[*a as usize].cmp(&self.ids[*b as usize]));
        let index = Index {
            format: self.format,
            order: &order,
            offsets: &self.offsets,
            crcs: &self.crcs,
            pack: id,
        };
        let pack = self.folder.join(format!("pack-{id}.pack"));
        let target = pack.with_extension("idx");
        let (temporary, mut file) =
            durable::create_unique(&*self.fs, &self.folder, TEMPORARY_PREFIXES[1].as_ref(), MODE)?;
        let published = index
            .write(|entry| &self.ids[entry as usize], &mut file)
            .during("write", &temporary)
            .and_then(|()| file.sync().during("sync", &temporary))
            .and_then(|()| {
                drop(file);
                if let Some(text) = keep {
                    self.keep(&pack.with_extension("keep"), text)?;
                }
                self.output.publish(&pack)?;
                // A pack counts from the moment when it has an index.
                self.fs.rename(&temporary, &target).during("publish", &target)
            });
        if let Err(error) = published {
            let _ = self.fs.unlink(&temporary);
            return Err(error.into());
        }
        self.fs
            .sync_dir(&self.folder)
            .during("sync folder", &self.folder)?;
        Ok(Some(Created {
            pack,
            id,
            objects,
            bytes,
        }))
    }

    /// Writes the file whose presence keeps Git from repacking. It need not be synced, as its text does not count.
    fn keep(&self, path: &Path, text: &str) -> Result<(), durable::Error> {
        match self.fs.create_new(path, MODE) {
            Ok(mut file) => writeln!(file, "{text}").during("write", path),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(durable::Error::new("create", path, error)),
        }
    }

    /// Bytes of the pack so far.
    pub fn bytes(&self) -> u64 {
        self.output.offset()
    }

    /// Packs number their objects by 32 bits, and indexes of large packs by 31.
    fn room(&self) -> Result<(), Error> {
        match self.ids.len() < 0x7fff_ffff {
            _ if self.unfinished => Err(Error::Unfinished),
            true => Ok(()),
            false => Err(Error::TooMany),
        }
    }

    fn entered(&mut self, id: ObjectId, offset: u64) {
        self.unfinished = false;
        let crc = self.output.end_entry();
        self.known.insert(id, self.ids.len() as u32);
        self.ids.push(id);
        self.offsets.push(offset);
        self.crcs.push(crc);
    }
}

/// The header of an entry that is stored whole.
fn header(kind: Kind) -> gix_pack::data::entry::Header {
    use gix_pack::data::entry::Header;
    match kind {
        Kind::Commit => Header::Commit,
        Kind::Tree => Header::Tree,
        Kind::Blob => Header::Blob,
        Kind::Tag => Header::Tag,
    }
}

#[cfg(test)]
mod tests;
