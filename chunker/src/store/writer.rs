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

use super::cutter::{Cutter, Segment};
use super::earlier::{self, Earlier};
use super::guided::{self, Guide};
use super::lists::Lists;
use super::probe::compresses;
use super::source::Source;
use crate::{Error, cut};

/// So many objects are in one pack at most; the tables for a pack are in memory while it is made.
const MOST_OBJECTS: u32 = 400_000;
/// Bytes that are cut together where a file differs from the version before: more than the largest chunk.
const FOLLOWED: usize = 1 << 20;
/// A pack for so many bytes does not fit in memory.
const LARGE: u64 = 24 << 20;
/// A chunk is a little shorter on average, so that the announced number of objects is reached.
const LIKELY_CHUNK: u64 = 80 * 1024;
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
    /// Bytes of the file that are still to be chunked, as far as that is known.
    ahead: u64,
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
            ahead: 0,
        }
    }

    /// Chunks a file and returns its pointer. Nothing counts before [`Writer::finish`].
    ///
    /// `before` is the version that stood there earlier: content that is equal to it as a whole, or begins with it, is
    /// recognised by its BLAKE3 alone, and chunks that differ little from those that stood in their place are stored as
    /// deltas.
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
        let mut file = Assembly {
            lists: Lists::default(),
            earlier: before.map(|before| Earlier::new(self.store, before)),
        };
        let mut hasher = blake3::Hasher::new();
        let mut from = 0;
        let mut known = None;
        if let (Some(before), Some(size)) = (before, source.size())
            && self.is_here(before)
        {
            match guided::find(self.store, source, before, size, progress)? {
                Some(guided::Found::Same) => return Ok(*before),
                Some(guided::Found::Alike(guide)) => {
                    self.take_over(guide.head(), &mut file.lists)?;
                    from = guide.start();
                    known = guide.blake3;
                    match known {
                        Some(_) => self.follow(source, &guide, &mut file, progress)?,
                        None => hasher = guide.hasher,
                    }
                }
                None => {}
            }
        }
        if known.is_none() {
            source.seek(from);
            self.run(source, &mut file, &mut hasher, from, progress)?;
        }
        let (list, size) = file.lists.finish(&mut |bytes: &[u8]| self.put_list(bytes))?;
        let blake3 = known.unwrap_or_else(|| hasher.finalize());
        // The same content can be divided into chunks and deltas in more than one way.
        match before {
            Some(before) if before.size == size && before.blake3 == blake3 && self.is_here(before) => {
                Ok(*before)
            }
            _ => Ok(Pointer { size, blake3, list }),
        }
    }

    /// True if every part of a version is here.
    fn is_here(&self, version: &Pointer) -> bool {
        Pieces::new(self.store, version).all(|piece| match piece.map(|piece| piece.source) {
            Ok(chunked::Source::Chunk(id)) => self.is_known(&id),
            Ok(chunked::Source::Delta { delta, base }) => self.is_known(&delta) && self.is_known(&base),
            Ok(chunked::Source::Zeros) => true,
            Err(_) => false,
        })
    }

    /// Takes entries over from an earlier version.
    fn take_over(&mut self, pieces: &[Piece], lists: &mut Lists) -> Result<(), Error> {
        for piece in pieces {
            let length = piece.length;
            let entry = match piece.source {
                chunked::Source::Chunk(id) => Entry::Chunk { length, id },
                chunked::Source::Delta { delta, base } => Entry::Delta { length, delta, base },
                chunked::Source::Zeros => Entry::Zeros { length },
            };
            lists.push(entry, &mut |bytes: &[u8]| self.put_list(bytes))?;
        }
        Ok(())
    }

    /// Cuts where the file differs from the version before until a cut of that one comes again; what follows is known.
    fn follow(
        &mut self,
        source: &mut Source<'_>,
        guide: &Guide,
        file: &mut Assembly<'_>,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let mut at = guide.start();
        let mut bytes = Vec::new();
        loop {
            if progress.interrupted() {
                return Err(Error::Interrupted);
            }
            if let Some(rest) = guide.rest(at) {
                return self.take_over(rest, &mut file.lists);
            }
            source.seek(at);
            bytes.clear();
            let ended = source.fill(&mut bytes, FOLLOWED)?;
            if bytes.is_empty() {
                return Ok(());
            }
            let mut lengths = Vec::new();
            cut::all(&bytes, ended, &mut lengths);
            let mut used = 0;
            let wanted = lengths.iter().take_while(|length| {
                let again = used > 0 && guide.rest(at + used as u64).is_some();
                used += if again { 0 } else { **length };
                !again
            });
            let wanted = wanted.count();
            lengths.truncate(wanted);
            bytes.truncate(used);
            at += used as u64;
            let segment = Segment::Bytes {
                bytes: std::mem::take(&mut bytes),
                lengths,
                used,
            };
            self.segment(&segment, file)?;
            progress.advance(used as u64);
            if let Segment::Bytes { bytes: memory, .. } = segment {
                bytes = memory;
            }
        }
    }

    /// Cuts, hashes and stores what `source` has from its position on. `hashed` bytes of the file are in the hasher.
    fn run(
        &mut self,
        source: &mut Source<'_>,
        file: &mut Assembly<'_>,
        hasher: &mut blake3::Hasher,
        hashed: u64,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        self.ahead = source.size().unwrap_or(0).saturating_sub(source.position());
        self.announce();
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
                Some(segment) => rayon::join(|| cutter.next(), || self.segment(segment, file)),
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
    fn segment(&mut self, segment: &Segment, file: &mut Assembly<'_>) -> Result<(), Error> {
        let (bytes, lengths) = match segment {
            Segment::Zeros(length) => {
                return (file.lists).push(Entry::Zeros { length: *length }, &mut |bytes: &[u8]| {
                    self.put_list(bytes)
                });
            }
            Segment::Bytes { bytes, lengths, .. } => (bytes, lengths),
        };
        let mut rest = bytes.as_slice();
        let mut offset = file.lists.size();
        let mut chunks: Vec<Chunk<'_>> = Vec::with_capacity(lengths.len());
        for length in lengths {
            let (bytes, next) = rest.split_at(*length);
            chunks.push(Chunk {
                bytes,
                offset,
                bases: Vec::new(),
            });
            offset += *length as u64;
            rest = next;
        }
        let share = chunks.len().div_ceil(rayon::current_num_threads() * 2).max(1);
        let format = self.store.format();
        let (store, finished) = (self.store, &self.finished);
        let named: Vec<Named> = match &mut file.earlier {
            // What is new is looked for in the version before.
            Some(earlier) if earlier.is_worth_trying() => {
                let named: Vec<Vec<Named>> = chunks
                    .par_chunks(share)
                    .map(|chunks| {
                        let encoder = Encoder::new(format, Level::DEFAULT);
                        let named = |chunk: &Chunk<'_>| name(store, finished, &encoder, chunk.bytes);
                        chunks.iter().map(named).collect()
                    })
                    .collect();
                let named: Vec<Named> = named.into_iter().flatten().collect();
                for (named, chunk) in named.iter().zip(&mut chunks) {
                    match named {
                        Named::Known(id) => earlier.met(chunk.offset, id),
                        Named::New(_) => chunk.bases = earlier.bases(chunk.offset, chunk.bytes.len() as u64),
                        Named::Zeros => {}
                    }
                }
                named
            }
            _ => Vec::new(),
        };
        let made: Vec<Vec<Made>> = chunks
            .par_chunks(share)
            .enumerate()
            .map(|(number, chunks)| {
                let mut encoder = Encoder::new(format, Level::DEFAULT);
                let named = named.get(number * share..).unwrap_or_default();
                chunks
                    .iter()
                    .enumerate()
                    .map(|(number, chunk)| {
                        let named = match named.get(number) {
                            Some(named) => *named,
                            None => name(store, finished, &encoder, chunk.bytes),
                        };
                        make(store, &mut encoder, named, chunk)
                    })
                    .collect()
            })
            .collect();
        for (made, chunk) in made.into_iter().flatten().zip(&chunks) {
            let length = chunk.bytes.len() as u64;
            self.ahead = self.ahead.saturating_sub(length);
            if let Some(earlier) = &mut file.earlier
                && !chunk.bases.is_empty()
            {
                earlier.tried(matches!(made, Made::Delta { .. }));
            }
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
                Made::Delta { object, base } => {
                    self.freshen(&base);
                    if self.is_known(&object.id) {
                        self.freshen(&object.id);
                    } else if self.add_object(&object)? {
                        self.new_bytes += object.size;
                    }
                    Entry::Delta {
                        length,
                        delta: object.id,
                        base,
                    }
                }
            };
            file.lists.push(entry, &mut |bytes: &[u8]| self.put_list(bytes))?;
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

    /// Announces how many objects the pack will have if it is going to be large: it begins with their number, and its
    /// checksum covers that. An announcement that is too low makes one more pack; one that is too high costs reading the
    /// pack again.
    fn announce(&mut self) {
        if self.ahead >= LARGE {
            let chunks = (self.ahead / LIKELY_CHUNK).min(u64::from(MOST_OBJECTS)) as u32;
            self.creator.expect(self.creator.len() + chunks);
        }
    }

    fn add_object(&mut self, object: &Object) -> Result<bool, Error> {
        if self.creator.len() >= MOST_OBJECTS || self.creator.is_full() {
            let next = begin(&self.objects, self.store.format(), &self.fs);
            let full = std::mem::replace(&mut self.creator, next);
            self.complete(full)?;
            self.announce();
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

/// A file in the making.
struct Assembly<'s> {
    lists: Lists,
    /// The version that stood there before.
    earlier: Option<Earlier<'s>>,
}

struct Chunk<'b> {
    bytes: &'b [u8],
    offset: u64,
    /// Chunks that it may differ little from.
    bases: Vec<ObjectId>,
}

/// What a chunk is called, if it has a name.
#[derive(Clone, Copy)]
enum Named {
    Zeros,
    Known(ObjectId),
    New(ObjectId),
}

fn name(store: &Store, finished: &[Pack], encoder: &Encoder, chunk: &[u8]) -> Named {
    if cut::is_zero(chunk) {
        return Named::Zeros;
    }
    let id = encoder.id(Kind::Blob, chunk);
    match is_stored(store, finished, &id) {
        true => Named::Known(id),
        false => Named::New(id),
    }
}

/// Makes a delta of a new chunk, or compresses it.
fn make(store: &Store, encoder: &mut Encoder, named: Named, chunk: &Chunk<'_>) -> Made {
    match named {
        Named::Zeros => Made::Zeros,
        Named::Known(id) => Made::Known(id),
        Named::New(id) => {
            if !chunk.bases.is_empty()
                && let Some((delta, base)) =
                    earlier::delta(store, &mut Cache::new(0), &chunk.bases, chunk.bytes)
            {
                let object = encode(encoder, encoder.id(Kind::Blob, &delta), &delta);
                return Made::Delta { object, base };
            }
            Made::New(encode(encoder, id, chunk.bytes))
        }
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
    /// A small difference from a chunk that is here.
    Delta {
        object: Object,
        base: ObjectId,
    },
}
