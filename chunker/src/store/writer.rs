//! Makes chunks of files.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use gix_hash::ObjectId;
use gix_object::Kind;
use ingot_engine::chunked::{self, Entry, Piece, Pieces, Pointer};
use ingot_engine::durable::{self, Fs};
use ingot_engine::pack::create::{self, Created, Creator, Encoder, Object};
use ingot_engine::pack::inflate::Level;
use ingot_engine::progress::Progress;
use ingot_engine::repository::Repository;
use ingot_engine::store::{Cache, Pack, Store};
use rayon::prelude::*;

use super::cutter::{Cutter, SEGMENT, Segment};
use super::lists::Lists;
use super::probe::compresses;
use super::source::Source;
use crate::{Error, cut};

/// So many objects are in one pack at most; the tables for a pack are in memory while it is made.
const MOST_OBJECTS: u32 = 400_000;
/// Packs that are older are made to look new when something in them is used again, so that nobody collects them.
const FRESH: Duration = Duration::from_secs(60 * 60);
/// What the `.keep` files of chunk packs say.
pub const KEEP: &str = "git-chunk: chunks of chunked files; git chunk gc takes care of this pack";

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Added {
    /// What stands in the tree.
    pub pointer: Pointer,
    /// Chunks and lists that are new in this pack.
    pub new_objects: u64,
    /// The bytes of the new chunks before compression.
    pub new_bytes: u64,
}

/// Makes the pack of one command.
pub struct Writer<'s> {
    store: &'s Store,
    fs: Arc<dyn Fs>,
    objects: PathBuf,
    creator: Creator,
    /// Packs of this command that are complete already.
    finished: Vec<Pack>,
    created: Vec<Created>,
    freshened: HashSet<usize>,
    new_objects: u64,
    new_bytes: u64,
}

impl std::fmt::Debug for Writer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer")
            .field("objects", &self.objects)
            .finish_non_exhaustive()
    }
}

impl<'s> Writer<'s> {
    /// A writer for the objects of `repository`, of which `store` is a view.
    pub fn new(repository: &Repository, store: &'s Store) -> Writer<'s> {
        Writer::with_fs(repository.objects_dir(), store, durable::real())
    }

    /// [`Writer::new`] on another file system.
    pub fn with_fs(objects: &Path, store: &'s Store, fs: Arc<dyn Fs>) -> Writer<'s> {
        Writer {
            creator: begin(objects, store.format(), &fs),
            store,
            fs,
            objects: objects.to_owned(),
            finished: Vec::new(),
            created: Vec::new(),
            freshened: HashSet::new(),
            new_objects: 0,
            new_bytes: 0,
        }
    }

    /// Chunks a file and returns its pointer. Nothing counts before [`Writer::finish`].
    ///
    /// `before` is the version that stood there earlier: content that is equal to it as a whole, or begins with it, is
    /// recognised by its BLAKE3 alone.
    pub fn add(
        &mut self,
        mut source: Source<'_>,
        before: Option<&Pointer>,
        progress: &dyn Progress,
    ) -> Result<Added, Error> {
        let (objects, bytes) = (self.new_objects, self.new_bytes);
        let pointer = self.chunk(&mut source, before, progress)?;
        source.check_unchanged(pointer.size)?;
        Ok(Added {
            pointer,
            new_objects: self.new_objects - objects,
            new_bytes: self.new_bytes - bytes,
        })
    }

    fn chunk(
        &mut self,
        source: &mut Source<'_>,
        before: Option<&Pointer>,
        progress: &dyn Progress,
    ) -> Result<Pointer, Error> {
        let mut lists = Lists::default();
        let mut hasher = blake3::Hasher::new();
        if let (Some(before), Some(size)) = (before, source.size())
            && size >= before.size
            && before.size > 0
            && let Some(begun) = self.begins_with(source, before, size)?
        {
            if size == before.size {
                return Ok(*before);
            }
            // All but the last chunk stand as they are; that one may have ended only because the file did.
            hasher = begun;
            let last = self.take_over(before, &mut lists)?;
            let hashed = before.size;
            source.seek(last);
            self.run(source, &mut lists, &mut hasher, hashed, progress)?;
        } else {
            source.seek(0);
            self.run(source, &mut lists, &mut hasher, 0, progress)?;
        }
        let (list, size) = lists.finish(&mut |bytes: &[u8]| self.put_list(bytes))?;
        Ok(Pointer {
            size,
            blake3: hasher.finalize(),
            list,
        })
    }

    /// Whether the file begins with what `before` stands for, and everything of that is here; the hasher has its bytes.
    fn begins_with(
        &mut self,
        source: &mut Source<'_>,
        before: &Pointer,
        size: u64,
    ) -> Result<Option<blake3::Hasher>, Error> {
        if size > before.size && !self.first_chunk_is_same(source, before)? {
            return Ok(None);
        }
        let mut hasher = blake3::Hasher::new();
        let mut buffer = Vec::new();
        source.seek(0);
        while source.position() < before.size {
            buffer.clear();
            let wanted = usize::try_from(before.size - source.position())
                .unwrap_or(usize::MAX)
                .min(SEGMENT);
            source.fill(&mut buffer, wanted)?;
            if buffer.len() < wanted {
                return Ok(None);
            }
            hasher.update_rayon(&buffer);
        }
        if hasher.finalize() != before.blake3 {
            return Ok(None);
        }
        // Equal content is of no use if its chunks are elsewhere: then they are made again.
        for piece in Pieces::new(self.store, before) {
            match piece {
                Ok(Piece {
                    source: chunked::Source::Chunk(id),
                    ..
                }) => {
                    if !self.is_known(&id) {
                        return Ok(None);
                    }
                }
                Ok(Piece {
                    source: chunked::Source::Zeros,
                    ..
                }) => {}
                _ => return Ok(None),
            }
        }
        Ok(Some(hasher))
    }

    /// A quick look that saves hashing a file whose very beginning is different.
    fn first_chunk_is_same(&self, source: &mut Source<'_>, before: &Pointer) -> Result<bool, Error> {
        let Some(Ok(first)) = Pieces::new(self.store, before).next() else {
            return Ok(false);
        };
        if first.length > cut::LARGEST as u64 {
            return Ok(true);
        }
        let (mut stored, mut here) = (Vec::new(), Vec::new());
        if first.read(self.store, &mut Cache::new(0), &mut stored).is_err() {
            return Ok(false);
        }
        source.seek(0);
        source.fill(&mut here, stored.len())?;
        Ok(here == stored)
    }

    /// Takes all entries but the last over from an earlier version; returns where that one starts.
    fn take_over(&mut self, before: &Pointer, lists: &mut Lists) -> Result<u64, Error> {
        let store = self.store;
        let mut held: Option<Piece> = None;
        for piece in Pieces::new(store, before) {
            if let Some(piece) = held.replace(piece?) {
                let entry = match piece.source {
                    chunked::Source::Chunk(id) => Entry::Chunk {
                        length: piece.length,
                        id,
                    },
                    chunked::Source::Delta { delta, base } => Entry::Delta {
                        length: piece.length,
                        delta,
                        base,
                    },
                    chunked::Source::Zeros => Entry::Zeros { length: piece.length },
                };
                lists.push(entry, &mut |bytes: &[u8]| self.put_list(bytes))?;
            }
        }
        Ok(held.map_or(0, |piece| match piece.source {
            // Zeros may be many chunks; what was not a whole one may have become part of another.
            chunked::Source::Zeros => {
                let whole = piece.length / cut::zero_length() as u64 * cut::zero_length() as u64;
                if whole > 0 {
                    lists.add_zeros(whole);
                }
                piece.offset + whole
            }
            _ => piece.offset,
        }))
    }

    /// Cuts, hashes and stores what `source` has from its position on. `hashed` bytes of the file are in the hasher.
    fn run(
        &mut self,
        source: &mut Source<'_>,
        lists: &mut Lists,
        hasher: &mut blake3::Hasher,
        hashed: u64,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let mut cutter = Cutter {
            source,
            hasher,
            hashed,
            carry: Vec::new(),
            spare: Vec::new(),
            ended: false,
        };
        let mut ready: Option<Segment> = None;
        loop {
            if progress.interrupted() {
                return Err(Error::Interrupted);
            }
            let (next, done) = match &ready {
                None => (cutter.next(), Ok(())),
                Some(segment) => rayon::join(|| cutter.next(), || self.segment(segment, lists)),
            };
            done?;
            if let Some(Segment::Bytes { bytes, used, .. }) = ready.take() {
                progress.advance(used as u64);
                cutter.spare = bytes;
            }
            match next? {
                Some(segment) => ready = Some(segment),
                None => return Ok(()),
            }
        }
    }

    /// Stores the chunks of a segment.
    fn segment(&mut self, segment: &Segment, lists: &mut Lists) -> Result<(), Error> {
        let (bytes, lengths) = match segment {
            Segment::Zeros(length) => {
                return lists.push(Entry::Zeros { length: *length }, &mut |bytes: &[u8]| {
                    self.put_list(bytes)
                });
            }
            Segment::Bytes { bytes, lengths, .. } => (bytes, lengths),
        };
        let mut rest = bytes.as_slice();
        let mut chunks: Vec<&[u8]> = Vec::with_capacity(lengths.len());
        for length in lengths {
            let (chunk, next) = rest.split_at(*length);
            chunks.push(chunk);
            rest = next;
        }
        let share = chunks.len().div_ceil(rayon::current_num_threads() * 2).max(1);
        let format = self.store.format();
        let (store, finished) = (self.store, &self.finished);
        let made: Vec<Vec<Made>> = chunks
            .par_chunks(share)
            .map(|chunks| {
                let mut encoder = Encoder::new(format, Level::DEFAULT);
                chunks
                    .iter()
                    .map(|chunk| make(store, finished, &mut encoder, chunk))
                    .collect()
            })
            .collect();
        for (made, chunk) in made.into_iter().flatten().zip(&chunks) {
            let length = chunk.len() as u64;
            let entry = match made {
                Made::Zeros => Entry::Zeros { length },
                Made::Known(id) => {
                    self.freshen(&id);
                    Entry::Chunk { length, id }
                }
                Made::New(object) => {
                    if self.add_object(&object)? {
                        self.new_bytes += length;
                    }
                    Entry::Chunk {
                        length,
                        id: object.id,
                    }
                }
            };
            lists.push(entry, &mut |bytes: &[u8]| self.put_list(bytes))?;
        }
        Ok(())
    }

    /// True if the object is in a pack of the repository or of this command.
    fn is_known(&self, id: &ObjectId) -> bool {
        self.creator.contains(id) || is_stored(self.store, &self.finished, id)
    }

    /// Makes an old pack look new when something in it is used again: whoever collects garbage spares what is new.
    fn freshen(&mut self, id: &ObjectId) {
        let Some(at) = self.store.find(id) else { return };
        let number = self.store.pack_number(at);
        if !self.freshened.insert(number) {
            return;
        }
        let path = self.store.packs()[number].path();
        let old = std::fs::metadata(path)
            .and_then(|meta| meta.modified())
            .is_ok_and(|time| {
                SystemTime::now()
                    .duration_since(time)
                    .is_ok_and(|age| age > FRESH)
            });
        if old {
            // A pack that cannot be changed belongs to somebody else, who collects it or does not.
            let _ = std::fs::OpenOptions::new()
                .read(true)
                .open(path)
                .and_then(|file| file.set_modified(SystemTime::now()));
        }
    }

    fn put_list(&mut self, bytes: &[u8]) -> Result<ObjectId, Error> {
        let mut encoder = Encoder::new(self.store.format(), Level::DEFAULT);
        let id = encoder.id(Kind::Blob, bytes);
        if self.is_known(&id) {
            self.freshen(&id);
        } else {
            // Ids do not compress.
            self.add_object(&encoder.store_as(id, Kind::Blob, bytes))?;
        }
        Ok(id)
    }

    fn add_object(&mut self, object: &Object) -> Result<bool, Error> {
        if self.creator.len() >= MOST_OBJECTS {
            let next = begin(&self.objects, self.store.format(), &self.fs);
            let full = std::mem::replace(&mut self.creator, next);
            self.complete(full)?;
        }
        let added = self.creator.add(object)?;
        self.new_objects += u64::from(added);
        Ok(added)
    }

    fn complete(&mut self, creator: Creator) -> Result<(), Error> {
        if creator.is_empty() {
            return Ok(());
        }
        chunked::mark(&*self.fs, &self.objects)?;
        if let Some(created) = creator.finish_kept(KEEP)? {
            self.finished
                .push(Pack::open(&created.pack, self.store.format())?);
            self.created.push(created);
        }
        Ok(())
    }

    /// Makes what was added so far durable and part of the repository; more can be added. True if there was anything.
    pub fn publish(&mut self) -> Result<bool, Error> {
        let next = begin(&self.objects, self.store.format(), &self.fs);
        let full = std::mem::replace(&mut self.creator, next);
        let any = !full.is_empty();
        self.complete(full)?;
        Ok(any)
    }

    /// Adds the blob of a pointer, so that a pack has what leads to its chunks.
    pub fn put_pointer(&mut self, pointer: &Pointer) -> Result<ObjectId, Error> {
        let bytes = pointer.to_bytes();
        let mut encoder = Encoder::new(self.store.format(), Level::DEFAULT);
        let id = encoder.id(Kind::Blob, &bytes);
        if !self.is_known(&id) {
            self.add_object(&encoder.encode_as(id, Kind::Blob, &bytes))?;
        }
        Ok(id)
    }

    /// Makes everything durable and part of the repository. The packs; none if nothing was new.
    pub fn finish(mut self) -> Result<Vec<Created>, Error> {
        self.publish()?;
        Ok(self.created)
    }
}

fn begin(objects: &Path, format: gix_hash::Kind, fs: &Arc<dyn Fs>) -> Creator {
    let options = create::Options {
        fs: Arc::clone(fs),
        buffer: 16 << 20,
        ..create::Options::default()
    };
    Creator::begin(objects, format, &options)
}

fn is_stored(store: &Store, finished: &[Pack], id: &ObjectId) -> bool {
    store.find(id).is_some() || finished.iter().any(|pack| pack.find(id).is_some())
}

/// Hashes a chunk, and compresses it if it is new.
fn make(store: &Store, finished: &[Pack], encoder: &mut Encoder, chunk: &[u8]) -> Made {
    if cut::is_zero(chunk) {
        return Made::Zeros;
    }
    let id = encoder.id(Kind::Blob, chunk);
    match is_stored(store, finished, &id) {
        true => Made::Known(id),
        false => Made::New(encode(encoder, id, chunk)),
    }
}

/// Compresses a chunk if that is worth anything.
fn encode(encoder: &mut Encoder, id: ObjectId, chunk: &[u8]) -> Object {
    if compresses(chunk) {
        let object = encoder.encode_as(id, Kind::Blob, chunk);
        if object.held() < chunk.len() {
            return object;
        }
    }
    encoder.store_as(id, Kind::Blob, chunk)
}

enum Made {
    Zeros,
    Known(ObjectId),
    New(Object),
}
