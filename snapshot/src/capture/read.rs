//! Reads one file: scanned, hashed, and compressed unless its content is stored already.

use std::fs::File;
use std::io::{self, Read as _};
use std::sync::{Mutex, PoisonError};

use gix_object::Kind as ObjectKind;
use ingot_engine::pack::create::{self, Creator, Encoder, Object, StreamDigest};
use ingot_engine::pack::inflate::Level;
use ingot_engine::store::Store;
use rustix::fs::FileType;

use super::walk::Stat;
use crate::manifest::{Content, Reason};
use crate::rooted::{Root, is_absent, is_link};
use crate::secrets::{Finding, Scanner};

/// Files up to this size are read whole, many at a time; larger ones pass in pieces, one at a time.
pub const HELD: u64 = 1 << 20;
/// A piece of a large file.
const PIECE: usize = 1 << 20;
/// Pieces on their way from the disk to the pack.
const AHEAD: usize = 3;
/// A file that changes while it is read is read once more.
const ATTEMPTS: usize = 2;

/// What became of a file.
#[derive(Debug)]
pub enum Outcome {
    /// It was read, or known to be the same.
    File {
        /// Its content.
        content: Content,
        /// What it looked like when it was read.
        stat: Stat,
        /// What is to be stored, where that is not there yet.
        object: Option<Object>,
        /// It changed all the time; the content is what was read, and need not be what is there.
        unsteady: bool,
    },
    /// A link.
    Link {
        /// Where it leads.
        target: Vec<u8>,
        /// What is to be stored.
        object: Object,
    },
    /// It is not captured.
    Skipped(Reason),
    /// It has a secret.
    Blocked(Vec<Finding>),
    /// It is too large to be held after all.
    Large,
}

/// Reads files of one capture, on any thread.
pub struct Reader<'a> {
    root: &'a Root,
    /// `None` where nothing is to be stored or said about secrets.
    scanner: Option<&'a Scanner>,
    /// What is stored already; `None` where nothing is to be stored.
    store: Option<&'a Store>,
    format: gix_hash::Kind,
    level: Level,
    idle: Mutex<Vec<Worker>>,
}

/// What one thread works with.
struct Worker {
    encoder: Encoder,
    buffer: Vec<u8>,
}

impl<'a> Reader<'a> {
    /// A reader that looks into `store` for what need not be stored again, or stores nothing.
    pub fn new(
        root: &'a Root,
        scanner: Option<&'a Scanner>,
        store: Option<&'a Store>,
        format: gix_hash::Kind,
        level: Level,
    ) -> Reader<'a> {
        Reader {
            root,
            scanner,
            store,
            format,
            level,
            idle: Mutex::new(Vec::new()),
        }
    }

    fn with_worker<T>(&self, work: impl FnOnce(&mut Worker) -> T) -> T {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let mut worker = idle().pop().unwrap_or_else(|| Worker {
            encoder: Encoder::new(self.format, self.level),
            buffer: Vec::new(),
        });
        let result = work(&mut worker);
        idle().push(worker);
        result
    }

    fn scan_path(&self, path: &[u8]) -> Option<Finding> {
        self.scanner?.scan_path(path)
    }

    fn scan(&self, path: &[u8], bytes: &[u8]) -> Vec<Finding> {
        let Some(scanner) = self.scanner else {
            return Vec::new();
        };
        let mut scan = scanner.file(path);
        scan.feed(bytes);
        scan.finish()
    }

    /// Whether the repository has an object already.
    pub fn is_stored(&self, id: &gix_hash::oid) -> bool {
        self.store.is_some_and(|store| store.find(id).is_some())
    }

    /// Reads a file of up to [`HELD`] bytes, which the walk saw as `seen`. `known` is what the last capture stored for
    /// the same path, if that still counts.
    pub fn small(&self, path: &[u8], seen: &Stat, known: Option<&Content>) -> Outcome {
        if let Some(finding) = self.scan_path(path) {
            return Outcome::Blocked(vec![finding]);
        }
        self.with_worker(|worker| {
            let mut before = Some(*seen);
            for attempt in 1..=ATTEMPTS {
                let read = match self.read_whole(path, before.take(), &mut worker.buffer) {
                    Ok(read) => read,
                    Err(Failed::Io(error)) => return Outcome::Skipped(reason(&error)),
                    Err(Failed::OtherKind) => return Outcome::Skipped(Reason::Vanished),
                    Err(Failed::Large) => return Outcome::Large,
                };
                if read.steady || attempt == ATTEMPTS {
                    return self.examine(worker, path, read, known);
                }
            }
            Outcome::Skipped(Reason::Changed)
        })
    }

    /// Reads a whole file. Steady is what looked afterwards as it did `before`, and had the length that this says.
    fn read_whole(&self, path: &[u8], before: Option<Stat>, buffer: &mut Vec<u8>) -> Result<Whole, Failed> {
        let mut file = File::from(self.root.file(path)?);
        let before = match before {
            Some(before) => before,
            None => stat(&file)?,
        };
        if before.file_type() != FileType::RegularFile {
            return Err(Failed::OtherKind);
        }
        if before.size > HELD {
            return Err(Failed::Large);
        }
        // One more than there should be, so that one call reads all and notices growth.
        let room = before.size as usize + 1;
        if buffer.len() < room {
            buffer.resize(room.next_power_of_two().max(16 * 1024), 0);
        }
        let mut filled = 0;
        loop {
            match file.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            }
            // A short read of a regular file is its end.
            if filled as u64 == before.size && filled < buffer.len() {
                break;
            }
            if filled as u64 > HELD {
                return Err(Failed::Large);
            }
            if filled == buffer.len() {
                buffer.resize(buffer.len() * 2, 0);
            }
        }
        let after = stat(&file)?;
        if after.file_type() != FileType::RegularFile {
            return Err(Failed::OtherKind);
        }
        Ok(Whole {
            length: filled,
            steady: after == before && filled as u64 == before.size,
            stat: after,
        })
    }

    fn examine(&self, worker: &mut Worker, path: &[u8], read: Whole, known: Option<&Content>) -> Outcome {
        let bytes = &worker.buffer[..read.length];
        let blake3 = *blake3::hash(bytes).as_bytes();
        let file = |content, object| Outcome::File {
            content,
            stat: read.stat,
            object,
            unsteady: !read.steady,
        };
        if let Some(known) = known
            && known.blake3 == blake3
            && known.size == bytes.len() as u64
        {
            return file(*known, None);
        }
        let findings = self.scan(path, bytes);
        if !findings.is_empty() {
            return Outcome::Blocked(findings);
        }
        let id = worker.encoder.id(ObjectKind::Blob, bytes);
        let content = Content {
            size: bytes.len() as u64,
            blake3,
            id,
        };
        let is_new = self.store.is_some_and(|store| store.find(&id).is_none());
        let object = is_new.then(|| worker.encoder.encode_as(id, ObjectKind::Blob, bytes));
        file(content, object)
    }

    /// Reads where a link leads.
    pub fn link(&self, path: &[u8]) -> Outcome {
        match self.root.link(path) {
            Ok(target) if target.is_empty() => Outcome::Skipped(Reason::Unreadable),
            Ok(target) => {
                if let Some(finding) = self.scan_path(path) {
                    return Outcome::Blocked(vec![finding]);
                }
                // A link may say anything, a password included.
                let findings = self.scan(path, &target);
                if !findings.is_empty() {
                    return Outcome::Blocked(findings);
                }
                let object = self.with_worker(|worker| worker.encoder.encode(ObjectKind::Blob, &target));
                Outcome::Link { target, object }
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Outcome::Skipped(Reason::Vanished),
            Err(error) => Outcome::Skipped(reason(&error)),
        }
    }

    /// Reads a file of any size, in pieces, into `creator`, or to compare only. `interrupted` ends it early.
    pub fn large(
        &self,
        path: &[u8],
        known: Option<&Content>,
        mut creator: Option<&mut Creator>,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Outcome, create::Error> {
        if let Some(finding) = self.scan_path(path) {
            return Ok(Outcome::Blocked(vec![finding]));
        }
        for attempt in 1..=ATTEMPTS {
            let (file, before) = match self.open_regular(path) {
                Ok(opened) => opened,
                Err(Failed::Io(error)) => return Ok(Outcome::Skipped(reason(&error))),
                Err(_) => return Ok(Outcome::Skipped(Reason::Vanished)),
            };
            // Whoever touches a large file should not have it stored twice: reading it costs far less.
            if let Some(known) = known.filter(|known| known.size == before.size)
                && let Ok(true) = is_known(&file, known, &before)
            {
                return Ok(Outcome::File {
                    content: *known,
                    stat: before,
                    object: None,
                    unsteady: false,
                });
            }
            let passed = match self.pass(path, &file, before.size, creator.as_deref_mut(), interrupted)? {
                Ok(passed) => passed,
                Err(error) => return Ok(Outcome::Skipped(reason(&error))),
            };
            if !passed.findings.is_empty() {
                return Ok(Outcome::Blocked(passed.findings));
            }
            let after = match stat(&file) {
                Ok(after) => after,
                Err(_) => return Ok(Outcome::Skipped(Reason::Unreadable)),
            };
            let steady = after == before && passed.content.is_some();
            if let Some(content) = passed.content
                && (steady || attempt == ATTEMPTS)
            {
                return Ok(Outcome::File {
                    content,
                    stat: after,
                    object: None,
                    unsteady: !steady,
                });
            }
            if interrupted() {
                break;
            }
        }
        Ok(Outcome::Skipped(Reason::Changed))
    }

    fn open_regular(&self, path: &[u8]) -> Result<(File, Stat), Failed> {
        let file = File::from(self.root.file(path)?);
        let before = stat(&file)?;
        match before.file_type() {
            FileType::RegularFile => Ok((file, before)),
            _ => Err(Failed::OtherKind),
        }
    }

    /// Passes `size` bytes of a file on. One thread reads, scans and hashes; this one compresses and stores.
    fn pass(
        &self,
        path: &[u8],
        file: &File,
        size: u64,
        creator: Option<&mut Creator>,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<io::Result<Passed>, create::Error> {
        let (full, pieces) = crossbeam_channel::bounded::<Vec<u8>>(AHEAD);
        let (empty, spares) = crossbeam_channel::bounded::<Vec<u8>>(AHEAD + 1);
        std::thread::scope(|scope| {
            let work = move || {
                let mut scan = self.scanner.map(|scanner| scanner.file(path));
                let mut hasher = blake3::Hasher::new();
                let mut file = file;
                let mut left = size;
                while left > 0 {
                    let mut piece = spares.try_recv().unwrap_or_default();
                    piece.clear();
                    let wanted = left.min(PIECE as u64);
                    if (&mut file).take(wanted).read_to_end(&mut piece)? == 0 {
                        break;
                    }
                    left -= piece.len() as u64;
                    hasher.update(&piece);
                    if let Some(scan) = &mut scan {
                        scan.feed(&piece);
                    }
                    // The other side is gone when the user wants to stop or the disk is full.
                    if full.send(piece).is_err() {
                        break;
                    }
                }
                drop(full);
                Ok::<_, io::Error>((
                    left,
                    *hasher.finalize().as_bytes(),
                    scan.map_or(Vec::new(), |scan| scan.finish()),
                ))
            };
            let reading = match std::thread::Builder::new().spawn_scoped(scope, work) {
                Ok(reading) => reading,
                Err(error) => return Ok(Err(error)),
            };
            let stored = store_pieces(self.format, size, creator, pieces, &empty, interrupted);
            let read = reading
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let id = stored?;
            Ok(read.map(|(left, blake3, findings)| Passed {
                content: id.filter(|_| left == 0).map(|id| Content { size, blake3, id }),
                findings,
            }))
        })
    }
}

/// What was passed on of a large file.
struct Passed {
    /// `None` where the file was shorter than it said.
    content: Option<Content>,
    findings: Vec<Finding>,
}

/// Stores what comes; `None` if that were not all the bytes.
fn store_pieces(
    format: gix_hash::Kind,
    size: u64,
    creator: Option<&mut Creator>,
    pieces: crossbeam_channel::Receiver<Vec<u8>>,
    spares: &crossbeam_channel::Sender<Vec<u8>>,
    interrupted: &dyn Fn() -> bool,
) -> Result<Option<gix_hash::ObjectId>, create::Error> {
    let Some(creator) = creator else {
        let mut digest = StreamDigest::new(format, ObjectKind::Blob, size);
        let mut came = 0;
        for piece in pieces {
            came += piece.len() as u64;
            digest.update(&piece);
            let _ = spares.try_send(piece);
        }
        return Ok((came == size).then(|| digest.finish()));
    };
    let mut blob = creator.blob(size)?;
    for piece in &pieces {
        if interrupted() {
            return Ok(None); // the pack as a whole is given up
        }
        blob.write(&piece)?;
        let _ = spares.try_send(piece);
    }
    match blob.missing() {
        0 => blob.finish().map(Some),
        _ => blob.abandon().map(|()| None),
    }
}

struct Whole {
    length: usize,
    steady: bool,
    stat: Stat,
}

enum Failed {
    Io(io::Error),
    OtherKind,
    Large,
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Failed {
        Failed::Io(error)
    }
}

fn stat(file: &File) -> io::Result<Stat> {
    Ok(Stat::of(&rustix::fs::fstat(file)?))
}

fn reason(error: &io::Error) -> Reason {
    match error {
        error if is_absent(error) || is_link(error) => Reason::Vanished,
        _ => Reason::Unreadable,
    }
}

/// Whether a file has the content that is known, and kept still while it was compared.
fn is_known(mut file: &File, known: &Content, before: &Stat) -> io::Result<bool> {
    let mut hasher = blake3::Hasher::new();
    let mut piece = vec![0; PIECE];
    let mut length = 0u64;
    loop {
        match file.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => {
                length += count as u64;
                hasher.update(&piece[..count]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let same = length == known.size && *hasher.finalize().as_bytes() == known.blake3;
    let steady = stat(file)? == *before;
    io::Seek::rewind(&mut file)?;
    Ok(same && steady)
}
