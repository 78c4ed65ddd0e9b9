//! Packs made of objects that somebody has at hand, one after the other, whole.
//!
//! For few objects, or few large ones, whose number is not known before the last: no delta is looked for. The header of
//! a pack holds the number, and its checksum covers the header. So what stays small is put together in memory, and what
//! grows is written with a number to be filled in, and read once more for the checksum.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gix_hash::ObjectId;
use gix_object::Kind;
use gix_pack::data::entry::Header;

use super::index::write::Index;
use super::inflate::{Deflater, Level};
use super::write::digest::Digest;
use crate::durable::{Context as _, Error, Fs, Handle};

/// Permissions of packs and indexes: nobody changes them.
const MODE: u32 = 0o444;
/// Packs up to this length are put together in memory.
const SMALL: usize = 1 << 20;
/// What is read at once for the checksum.
const BLOCK: usize = 1 << 20;
/// Where the header has the number of entries.
const COUNT_AT: u64 = 8;

/// Whether compressing an object is worth the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Text, trees and the like.
    Compressible,
    /// Ciphertext and what is compressed already: stored as it is.
    Random,
}

/// A pack in the making. Dropped unfinished, it leaves its file, if there is one yet, to whoever owns the folder.
pub struct Builder {
    fs: Arc<dyn Fs>,
    path: PathBuf,
    format: gix_hash::Kind,
    /// Made when the pack outgrows `buffer`.
    file: Option<Box<dyn Handle>>,
    /// What is not in the file yet.
    buffer: Vec<u8>,
    /// The length of the pack so far.
    written: u64,
    ids: Vec<ObjectId>,
    known: HashSet<ObjectId>,
    offsets: Vec<u64>,
    crcs: Vec<u32>,
    thorough: Option<Deflater>,
    stored: Option<Deflater>,
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("path", &self.path)
            .field("objects", &self.ids.len())
            .field("written", &self.written)
            .finish_non_exhaustive()
    }
}

/// A pack that is complete in its file, without an index yet. Not synced.
#[derive(Debug, Clone)]
pub struct Built {
    /// The file.
    pub path: PathBuf,
    /// The checksum of the pack.
    pub id: ObjectId,
    /// The number of its entries.
    pub objects: u32,
    /// Its length.
    pub bytes: u64,
    format: gix_hash::Kind,
    ids: Vec<ObjectId>,
    offsets: Vec<u64>,
    crcs: Vec<u32>,
}

/// The id of an object.
pub fn id_of(format: gix_hash::Kind, kind: Kind, bytes: &[u8]) -> ObjectId {
    let mut digest = Digest::of_object(format, kind, bytes.len() as u64);
    digest.update(bytes);
    digest.finish()
}

impl Builder {
    /// Begins a pack that will be the file `path`, which does not exist yet, in an existing folder.
    pub fn new(fs: Arc<dyn Fs>, path: &Path, format: gix_hash::Kind) -> Builder {
        let header = gix_pack::data::header::encode(gix_pack::data::Version::V2, 0);
        Builder {
            fs,
            path: path.to_owned(),
            format,
            file: None,
            buffer: header.to_vec(),
            written: header.len() as u64,
            ids: Vec::new(),
            known: HashSet::new(),
            offsets: Vec::new(),
            crcs: Vec::new(),
            thorough: None,
            stored: None,
        }
    }

    /// The hash that names the objects.
    pub fn format(&self) -> gix_hash::Kind {
        self.format
    }

    /// The length of the pack so far, without its checksum.
    pub fn bytes(&self) -> u64 {
        self.written
    }

    /// Adds an object, unless the pack has it already, and returns its id.
    pub fn add(&mut self, kind: Kind, bytes: &[u8], content: Content) -> Result<ObjectId, Error> {
        let id = id_of(self.format, kind, bytes);
        if !self.known.insert(id) {
            return Ok(id);
        }
        let offset = self.written;
        let mut crc = crc32fast::Hasher::new();
        let mut header = Vec::with_capacity(16);
        match kind {
            Kind::Commit => Header::Commit,
            Kind::Tree => Header::Tree,
            Kind::Blob => Header::Blob,
            Kind::Tag => Header::Tag,
        }
        .write_to(bytes.len() as u64, &mut header)
        .during("write", &self.path)?;
        crc.update(&header);
        self.put(&header).during("write", &self.path)?;

        let (slot, level) = match content {
            Content::Compressible => (&mut self.thorough, Level::DEFAULT),
            Content::Random => (&mut self.stored, Level::NONE),
        };
        let mut deflater = slot.take().unwrap_or_else(|| Deflater::new(level));
        let mut input = bytes;
        let deflated = deflater.stream(&mut input, &mut |piece| {
            crc.update(piece);
            self.put(piece)
        });
        match content {
            Content::Compressible => self.thorough = Some(deflater),
            Content::Random => self.stored = Some(deflater),
        }
        deflated.during("write", &self.path)?;
        self.ids.push(id);
        self.offsets.push(offset);
        self.crcs.push(crc.finalize());
        Ok(id)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written += bytes.len() as u64;
        if self.buffer.len() + bytes.len() > SMALL {
            self.spill()?;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Moves the buffer to the file.
    fn spill(&mut self) -> io::Result<()> {
        if self.file.is_none() {
            self.file = Some(self.fs.create_new(&self.path, MODE)?);
        }
        if let Some(file) = &mut self.file {
            file.write_all(&self.buffer)?;
        }
        self.buffer.clear();
        Ok(())
    }

    /// Completes the pack.
    pub fn finish(mut self) -> Result<Built, Error> {
        let count = u32::try_from(self.ids.len())
            .map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))
            .during("write", &self.path)?;
        let path = self.path.clone();
        let id = match &self.file {
            None => self.finish_small(count),
            Some(_) => self.finish_large(count),
        }
        .during("write", &path)?;
        Ok(Built {
            path,
            id,
            objects: count,
            bytes: self.written + id.as_slice().len() as u64,
            format: self.format,
            ids: self.ids,
            offsets: self.offsets,
            crcs: self.crcs,
        })
    }

    fn finish_small(&mut self, count: u32) -> io::Result<ObjectId> {
        let at = COUNT_AT as usize;
        self.buffer[at..at + 4].copy_from_slice(&count.to_be_bytes());
        let mut digest = Digest::new(self.format);
        digest.update(&self.buffer);
        let id = digest.finish();
        self.buffer.extend_from_slice(id.as_slice());
        self.spill()?;
        Ok(id)
    }

    fn finish_large(&mut self, count: u32) -> io::Result<ObjectId> {
        self.spill()?;
        let Some(file) = &mut self.file else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        file.rewrite(COUNT_AT, &count.to_be_bytes())?;
        let mut digest = Digest::new(self.format);
        let mut source = File::open(&self.path)?.take(self.written);
        let mut block = vec![0; BLOCK];
        loop {
            match source.read(&mut block) {
                Ok(0) => break,
                Ok(read) => digest.update(&block[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if source.limit() != 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let id = digest.finish();
        file.write_all(id.as_slice())?;
        Ok(id)
    }
}

impl Built {
    /// Writes the `.idx` and `.rev` files of the pack. Not synced.
    pub fn write_index(&self, fs: &dyn Fs, idx: &Path, rev: &Path) -> Result<(), Error> {
        let mut order: Vec<u32> = (0..self.objects).collect();
        order.sort_unstable_by_key(|entry| self.ids[*entry as usize]);
        let index = Index {
            format: self.format,
            order: &order,
            offsets: &self.offsets,
            crcs: &self.crcs,
            pack: self.id,
        };
        let mut file = fs.create_new(rev, MODE).during("create", rev)?;
        index.write_reverse(&mut file).during("write", rev)?;
        let mut file = fs.create_new(idx, MODE).during("create", idx)?;
        index
            .write(|entry| &self.ids[entry as usize], &mut file)
            .during("write", idx)
    }
}
