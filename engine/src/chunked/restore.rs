//! From a pointer to the bytes of the file.
//!
//! Chunks are read in the order of their packs, a few mebibytes at a time, decoded on all cores, hashed in the order of
//! the file, and written while the next ones are read. Memory does not grow with the file. The BLAKE3 of the whole file
//! is compared before anything counts; when it is wrong, the damaged chunk is looked for and named.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use rayon::prelude::*;

use super::pieces::{Piece, Pieces, Source};
use super::{Error, Pointer};
use crate::progress::Progress;
use crate::store::{Cache, Pack, Reader, Store};

/// Bytes that are decoded together. Twice as many are in memory.
const BATCH: usize = 8 << 20;
/// Runs of zeros from this length on are not written; the file has a hole there.
const HOLE: u64 = 64 * 1024;
/// A file is patched in place only if no more than one part in so many changes.
const PATCH_PART: u64 = 4;

/// How to restore.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Learns of bytes as they are written, and may stop the work.
    pub progress: &'a dyn Progress,
}

impl std::fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").finish_non_exhaustive()
    }
}

/// What was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Restored {
    /// The length of the file.
    pub size: u64,
    /// Bytes that were written.
    pub written: u64,
}

/// Writes the file that `pointer` stands for into `file`, which is empty and called `path` in messages. The content has
/// been verified when this returns without an error.
pub fn restore(
    store: &Store,
    pointer: &Pointer,
    file: &File,
    path: &Path,
    options: &Options<'_>,
) -> Result<Restored, Error> {
    file.set_len(pointer.size).map_err(|source| Error::Io {
        action: "set the length of",
        path: path.to_owned(),
        source,
    })?;
    let mut written = 0;
    run(store, pointer, options, &mut |batch| {
        let Part::Bytes(bytes) = &batch.part else {
            return Ok(());
        };
        written += bytes.len() as u64;
        write_at(file, bytes, batch.start).map_err(|source| Error::Io {
            action: "write",
            path: path.to_owned(),
            source,
        })
    })?;
    Ok(Restored {
        size: pointer.size,
        written,
    })
}

/// Writes the file that `pointer` stands for into `sink`, from front to back. What is wrong with it as a whole is known
/// only after all of it has been written.
pub fn write_to(
    store: &Store,
    pointer: &Pointer,
    sink: &mut (dyn Write + Send),
    options: &Options<'_>,
) -> Result<Restored, Error> {
    let zeros = vec![0; 1 << 16];
    run(store, pointer, options, &mut |batch| {
        let result = match &batch.part {
            Part::Bytes(bytes) => sink.write_all(bytes),
            Part::Zeros(length) => in_steps(*length, zeros.len(), |step| sink.write_all(&zeros[..step])),
        };
        result.map_err(|source| Error::Io {
            action: "hand on",
            path: "the content".into(),
            source,
        })
    })?;
    Ok(Restored {
        size: pointer.size,
        written: pointer.size,
    })
}

/// Changes `file`, which holds the file of `old`, into that of `new`, by writing only what differs. The caller knows
/// that nobody else changes it, and takes care that an interruption is repaired. The result has been verified by
/// reading all of it.
///
/// `None`, with the file untouched, if too much differs: then [`restore`] into a new file costs less.
pub fn patch(
    store: &Store,
    (old, new): (&Pointer, &Pointer),
    file: &File,
    path: &Path,
    options: &Options<'_>,
) -> Result<Option<Restored>, Error> {
    let Some(changed) = differences(store, old, new)? else {
        return Ok(None);
    };
    let failed = |action: &'static str| {
        move |source| Error::Io {
            action,
            path: path.to_owned(),
            source,
        }
    };
    // All that is needed is read before the first byte is written, as far as memory allows: most failures come here.
    let mut cache = Cache::new(0);
    let mut bytes = Vec::new();
    for piece in &changed {
        if options.progress.interrupted() {
            return Err(Error::Interrupted);
        }
        if piece.source != Source::Zeros {
            piece.read(store, &mut cache, &mut bytes)?;
        }
    }
    let mut written = 0;
    file.set_len(new.size).map_err(failed("set the length of"))?;
    for piece in &changed {
        match piece.source {
            Source::Zeros => {
                let zeros = vec![0; 1 << 16];
                let mut at = piece.offset;
                in_steps(piece.length, zeros.len(), |step| {
                    write_at(file, &zeros[..step], at)?;
                    at += step as u64;
                    Ok(())
                })
                .map_err(failed("write"))?;
            }
            _ => {
                piece.read(store, &mut cache, &mut bytes)?;
                write_at(file, &bytes, piece.offset).map_err(failed("write"))?;
            }
        }
        written += piece.length;
        options.progress.advance(piece.length);
    }
    let found = hash_file(file, new.size).map_err(failed("read"))?;
    if found != new.blake3 {
        return Err(Error::Whole {
            size: new.size,
            expected: new.blake3,
        });
    }
    Ok(Some(Restored {
        size: new.size,
        written,
    }))
}

/// True if [`patch`] would not refuse because too much differs.
pub fn differs_little(store: &Store, old: &Pointer, new: &Pointer) -> Result<bool, Error> {
    Ok(differences(store, old, new)?.is_some())
}

/// The pieces of `new` that `old` does not have in the same place. `None` if they are too much of the file.
fn differences(store: &Store, old: &Pointer, new: &Pointer) -> Result<Option<Vec<Piece>>, Error> {
    let mut before = Pieces::new(store, old).peekable();
    let mut changed = Vec::new();
    let mut sum = 0u64;
    for piece in Pieces::new(store, new) {
        let piece = piece?;
        while let Some(Ok(_)) =
            before.next_if(|other| matches!(other, Ok(other) if other.offset < piece.offset))
        {}
        match before.peek() {
            Some(Ok(other)) if *other == piece => continue,
            // The old lists need not be here any more.
            Some(Err(_)) => return Ok(None),
            _ => {}
        }
        sum += piece.length;
        if sum > new.size / PATCH_PART {
            return Ok(None);
        }
        changed.push(piece);
    }
    Ok(Some(changed))
}

/// The BLAKE3 of a file that has to have `size` bytes.
pub(super) fn hash_file(file: &File, size: u64) -> io::Result<blake3::Hash> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; BATCH.min(usize::try_from(size).unwrap_or(BATCH)).max(1)];
    let mut at = 0;
    while at < size {
        let step = usize::try_from(size - at).unwrap_or(usize::MAX).min(buffer.len());
        read_at(file, &mut buffer[..step], at)?;
        hasher.update_rayon(&buffer[..step]);
        at += step as u64;
    }
    Ok(hasher.finalize())
}

enum Part {
    Bytes(Vec<u8>),
    Zeros(u64),
}

struct Batch {
    start: u64,
    part: Part,
}

/// Decodes everything and hands it to `sink` in the order of the file.
fn run(
    store: &Store,
    pointer: &Pointer,
    options: &Options<'_>,
    sink: &mut (dyn FnMut(&Batch) -> Result<(), Error> + Send),
) -> Result<(), Error> {
    let mut pieces = Pieces::new(store, pointer).peekable();
    let mut hasher = blake3::Hasher::new();
    let mut ready: Option<Batch> = None;
    let mut spare = Vec::new();
    loop {
        if options.progress.interrupted() {
            return Err(Error::Interrupted);
        }
        let batch = next_batch(&mut pieces)?;
        if batch.is_empty() && ready.is_none() {
            break;
        }
        let memory = std::mem::take(&mut spare);
        let (written, decoded) = rayon::join(
            || ready.as_ref().map_or(Ok(()), &mut *sink),
            || decode(store, &batch, memory, &mut hasher),
        );
        written?;
        if let Some(done) = ready.take() {
            options.progress.advance(match &done.part {
                Part::Bytes(bytes) => bytes.len() as u64,
                Part::Zeros(length) => *length,
            });
            if let Part::Bytes(bytes) = done.part {
                spare = bytes;
            }
        }
        // A chunk that cannot even be decoded is named by the error already.
        ready = decoded?;
    }
    if hasher.finalize() == pointer.blake3 {
        return Ok(());
    }
    match super::verify(store, pointer, options.progress)?
        .into_iter()
        .next()
    {
        Some(fault) => Err(fault.into_error()),
        None => Err(Error::Whole {
            size: pointer.size,
            expected: pointer.blake3,
        }),
    }
}

/// The next pieces that are decoded together: as many as a batch takes, or one long run of zeros.
fn next_batch(pieces: &mut std::iter::Peekable<Pieces<'_>>) -> Result<Vec<Piece>, Error> {
    let mut batch: Vec<Piece> = Vec::new();
    let mut sum = 0u64;
    while let Some(next) = pieces.peek() {
        let hole = matches!(next, Ok(piece) if is_hole(piece));
        if !batch.is_empty() && (hole || sum >= BATCH as u64) {
            break;
        }
        match pieces.next() {
            Some(Ok(piece)) => {
                sum += piece.length;
                batch.push(piece);
                if hole {
                    break;
                }
            }
            Some(Err(error)) => return Err(error),
            None => break,
        }
    }
    Ok(batch)
}

fn is_hole(piece: &Piece) -> bool {
    piece.source == Source::Zeros && piece.length >= HOLE
}

/// Decodes a batch and hashes it.
fn decode(
    store: &Store,
    pieces: &[Piece],
    mut memory: Vec<u8>,
    hasher: &mut blake3::Hasher,
) -> Result<Option<Batch>, Error> {
    let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else {
        return Ok(None);
    };
    let start = first.offset;
    if is_hole(first) {
        let zeros = vec![0; BATCH / 8];
        let hash = in_steps(first.length, zeros.len(), |step| {
            hasher.update_rayon(&zeros[..step]);
            Ok(())
        });
        debug_assert!(hash.is_ok(), "hashing cannot fail");
        return Ok(Some(Batch {
            start,
            part: Part::Zeros(first.length),
        }));
    }
    // A batch is bounded by its size and the largest piece.
    let length = (last.end() - start) as usize;
    memory.resize(length, 0);
    let mut rest = memory.as_mut_slice();
    let mut jobs: Vec<Job<'_>> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let (out, next) = rest.split_at_mut(piece.length as usize);
        rest = next;
        jobs.push(Job {
            place: place(store, piece),
            piece,
            out,
        });
    }
    jobs.sort_by_key(|job| job.place);
    let share = jobs.len().div_ceil(rayon::current_num_threads() * 2).max(1);
    jobs.par_chunks_mut(share)
        .map_init(Decoder::default, |decoder, jobs| {
            jobs.iter_mut().try_for_each(|job| decoder.piece(store, job))
        })
        .collect::<Result<(), Error>>()?;
    drop(jobs);
    hasher.update_rayon(&memory);
    Ok(Some(Batch {
        start,
        part: Part::Bytes(memory),
    }))
}

struct Job<'a> {
    place: Option<(usize, u64)>,
    piece: &'a Piece,
    out: &'a mut [u8],
}

/// Pack and offset, so that neighbours are read together.
fn place(store: &Store, piece: &Piece) -> Option<(usize, u64)> {
    let Source::Chunk(id) = piece.source else {
        return None;
    };
    let at = store.find(&id)?;
    let (pack, local) = store.pack_of(at);
    Some((store.pack_number(at), pack.offset(local)))
}

/// What a thread needs to decode.
#[derive(Default)]
struct Decoder {
    reader: Reader,
    cache: Option<Cache>,
    bytes: Vec<u8>,
}

impl Decoder {
    fn piece(&mut self, store: &Store, job: &mut Job<'_>) -> Result<(), Error> {
        if job.piece.source == Source::Zeros {
            job.out.fill(0);
            return Ok(());
        }
        if let Some((pack, offset)) = job.place
            && stored(&mut self.reader, &store.packs()[pack], offset, job.out)?
        {
            return Ok(());
        }
        let cache = self.cache.get_or_insert_with(|| Cache::new(0));
        job.piece.read(store, cache, &mut self.bytes)?;
        job.out.copy_from_slice(&self.bytes);
        Ok(())
    }
}

/// Reads a chunk that is in its pack as it is, in stored blocks of a zlib stream (RFC 1951, 3.2.4). False if it is not.
/// The stream's own checksum is not looked at, as the BLAKE3 of the file covers everything.
fn stored(reader: &mut Reader, pack: &Pack, offset: u64, out: &mut [u8]) -> Result<bool, Error> {
    let entry = reader.entry(pack, offset)?;
    if entry.header.as_kind() != Some(gix_object::Kind::Blob) || entry.decompressed_size != out.len() as u64 {
        return Ok(false);
    }
    let mut at = entry.data_offset;
    let start = reader.bytes(pack, at, 2)?;
    let Some(&[method, flags]) = start.first_chunk::<2>() else {
        return Ok(false);
    };
    let checks = (u16::from(method) << 8 | u16::from(flags)) % 31 == 0;
    if method & 0x0f != 8 || flags & 0x20 != 0 || !checks {
        return Ok(false);
    }
    at += 2;
    let mut filled = 0;
    loop {
        let header = reader.bytes(pack, at, 5)?;
        let Some(&[kind, low, high, not_low, not_high]) = header.first_chunk::<5>() else {
            return Ok(false);
        };
        let length = u16::from_le_bytes([low, high]);
        if kind > 1 || length != !u16::from_le_bytes([not_low, not_high]) {
            return Ok(false);
        }
        at += 5;
        let length = usize::from(length);
        let Some(target) = out.get_mut(filled..filled + length) else {
            return Ok(false);
        };
        match reader.bytes(pack, at, length)?.get(..length) {
            Some(bytes) => target.copy_from_slice(bytes),
            None => return Ok(false),
        }
        at += length as u64;
        filled += length;
        if kind == 1 {
            return Ok(filled == out.len());
        }
    }
}

fn in_steps(length: u64, most: usize, mut step: impl FnMut(usize) -> io::Result<()>) -> io::Result<()> {
    let mut rest = length;
    while rest > 0 {
        let now = usize::try_from(rest).unwrap_or(usize::MAX).min(most);
        step(now)?;
        rest -= now as u64;
    }
    Ok(())
}

#[cfg(unix)]
pub(super) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(unix)]
pub(super) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(windows)]
pub(super) fn write_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_write(file, bytes, offset)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            count => {
                bytes = &bytes[count..];
                offset += count as u64;
            }
        }
    }
    Ok(())
}

#[cfg(windows)]
pub(super) fn read_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, bytes, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                bytes = &mut bytes[count..];
                offset += count as u64;
            }
        }
    }
    Ok(())
}
