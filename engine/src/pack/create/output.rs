//! The bytes of a pack: in memory first, then in a file.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gix_hash::ObjectId;
use gix_object::Kind;

use super::{Error, MODE, Options, TEMPORARY_PREFIXES, header};
use crate::durable::{self, Context as _, Fs, Handle};
use crate::pack::write::digest::Digest;

/// Small pieces are gathered until they are worth a system call.
const PIECE: usize = 256 * 1024;
/// From this size on, syncing takes long enough to do something else meanwhile.
const WORTH_A_THREAD: u64 = 32 << 20;

pub(super) struct Output {
    folder: PathBuf,
    format: gix_hash::Kind,
    fs: Arc<dyn Fs>,
    expected: u32,
    limit: usize,
    buffer: Vec<u8>,
    /// Bytes before the buffer, which are in the file.
    flushed: u64,
    digest: Digest,
    file: Option<(PathBuf, Box<dyn Handle>)>,
    crc: crc32fast::Hasher,
    /// Nobody guessed the number of objects, so hashing on the way would be in vain.
    hash_later: bool,
    /// The buffer has the whole pack.
    complete: bool,
}

impl Output {
    pub(super) fn new(folder: &Path, format: gix_hash::Kind, options: &Options) -> Output {
        let mut output = Output {
            folder: folder.to_owned(),
            format,
            fs: Arc::clone(&options.fs),
            expected: options.expected,
            limit: options.buffer.max(64),
            buffer: Vec::new(),
            flushed: 0,
            digest: Digest::new(format),
            file: None,
            crc: crc32fast::Hasher::new(),
            hash_later: false,
            complete: false,
        };
        output.buffer.extend_from_slice(&pack_header(options.expected));
        output
    }

    pub(super) fn offset(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    /// Writes the header of an entry and returns where it starts.
    pub(super) fn start_entry(&mut self, kind: Kind, size: u64) -> Result<u64, Error> {
        let offset = self.offset();
        self.crc = crc32fast::Hasher::new();
        let mut bytes = Vec::with_capacity(16);
        // Memory takes everything.
        let _ = header(kind).write_to(size, &mut bytes);
        self.put(&bytes)?;
        Ok(offset)
    }

    /// The next bytes of the entry.
    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.crc.update(bytes);
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= self.limit {
            self.flush()?;
        }
        Ok(())
    }

    /// The CRC of the entry that ends here.
    pub(super) fn end_entry(&mut self) -> u32 {
        std::mem::take(&mut self.crc).finalize()
    }

    fn flush(&mut self) -> Result<(), Error> {
        if self.file.is_none() {
            let created =
                durable::create_unique(&*self.fs, &self.folder, TEMPORARY_PREFIXES[0].as_ref(), MODE)?;
            self.file = Some(created);
            self.hash_later = self.expected == 0 && !self.complete;
            self.limit = self.limit.min(PIECE);
        }
        if let Some((path, file)) = &mut self.file {
            file.write_all(&self.buffer).during("write", path)?;
        }
        if !self.hash_later {
            self.digest.update(&self.buffer);
        }
        self.flushed += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Writes what is left, with the right number of objects and the checksum, and with `sync` makes it durable under its
    /// temporary name. Returns the checksum and the length of the pack.
    pub(super) fn finish(&mut self, objects: u32, sync: bool) -> Result<(ObjectId, u64), Error> {
        if self.file.is_none() {
            self.buffer[..12].copy_from_slice(&pack_header(objects));
            self.complete = true;
            self.flush()?;
        } else {
            self.flush()?;
            if objects != self.expected {
                self.recount(objects, sync)?;
            }
        }
        let checksum = std::mem::replace(&mut self.digest, Digest::new(self.format)).finish();
        if let Some((path, file)) = &mut self.file {
            file.write_all(checksum.as_slice()).during("write", path)?;
            if sync {
                file.sync().during("sync", path)?;
            }
        }
        Ok((checksum, self.flushed + checksum.as_slice().len() as u64))
    }

    /// Corrects the number of objects in the header, and the checksum with it. A large file is written to the disk while
    /// it is read again, if it is to be synced.
    fn recount(&mut self, objects: u32, sync: bool) -> Result<(), Error> {
        let Some((path, file)) = &mut self.file else {
            return Ok(());
        };
        file.rewrite(0, &pack_header(objects)).during("write", path)?;
        let (format, path) = (self.format, &*path);
        let (digest, synced) = match !sync || self.flushed < WORTH_A_THREAD {
            true => (digest_of(path, format), Ok(())),
            false => std::thread::scope(|scope| {
                let sync = scope.spawn(|| file.sync());
                let digest = digest_of(path, format);
                let synced = sync
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                (digest, synced)
            }),
        };
        synced.during("sync", path)?;
        self.digest = digest.during("read", path)?;
        Ok(())
    }

    /// The file under its temporary name, which whoever gets it takes care of.
    pub(super) fn leave(&mut self) -> Option<PathBuf> {
        self.file.take().map(|(path, _)| path)
    }

    /// Gives the file its name. The folder is synced by the caller, once for all names.
    pub(super) fn publish(&mut self, target: &Path) -> Result<(), durable::Error> {
        if let Some((path, file)) = self.file.take() {
            drop(file);
            if let Err(error) = self.fs.rename(&path, target) {
                let _ = self.fs.unlink(&path);
                return Err(durable::Error::new("publish", target, error));
            }
        }
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some((path, file)) = self.file.take() {
            drop(file);
            // A leftover is harmless, and there is nobody to tell.
            let _ = self.fs.unlink(&path);
        }
    }
}

fn digest_of(path: &Path, format: gix_hash::Kind) -> std::io::Result<Digest> {
    let mut digest = Digest::new(format);
    let mut written = File::open(path)?;
    let mut piece = vec![0; 4 * PIECE];
    loop {
        match written.read(&mut piece)? {
            0 => return Ok(digest),
            count => digest.update(&piece[..count]),
        }
    }
}

fn pack_header(objects: u32) -> [u8; 12] {
    gix_pack::data::header::encode(gix_pack::data::Version::V2, objects)
}
