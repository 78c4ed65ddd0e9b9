//! Files that are only shortcuts: what is known already, in binary records, little-endian.
//!
//! Such a file begins with a word that names its layout and ends with the BLAKE3 of all before. A damaged, foreign or
//! older one counts as absent, so it is written without waiting for the disk.

use std::ops::Deref;
use std::path::Path;

use gix_hash::ObjectId;
use ingot_engine::durable::Fs;
use ingot_engine::mapped::Mapped;

use crate::capture::walk::Stat;
use crate::manifest::Time;

/// Bytes of the checksum at the end.
const SUM: usize = 32;

/// A file whose checksum is right; its bytes without that. It is mapped: [`write()`] renames, and never changes a file
/// that has its name.
pub(crate) struct Sealed(Mapped);

impl Deref for Sealed {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0[..self.0.len().saturating_sub(SUM)]
    }
}

/// Opens a file that begins with `magic`; `None` where there is none that can be used.
pub(crate) fn read(path: &Path, magic: &[u8; 8]) -> Option<Sealed> {
    let map = Mapped::open(path).ok()?;
    let end = map.len().checked_sub(SUM)?;
    let is_whole = map[..end].starts_with(magic) && blake3::hash(&map[..end]).as_bytes()[..] == map[end..];
    is_whole.then_some(Sealed(map))
}

/// Puts a file in its place. Whether it reaches the disk is of no importance, but half of it must not be taken for all,
/// which its checksum prevents.
pub(crate) fn write(fs: &dyn Fs, path: &Path, bytes: &[u8]) {
    let temporary = path.with_extension("new");
    let _ = fs.unlink(&temporary);
    let written = fs
        .create_new(&temporary, 0o600)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs.rename(&temporary, path));
    if written.is_err() {
        let _ = fs.unlink(&temporary);
    }
}

/// Takes records off the beginning of bytes; `None` where there are too few.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    pub(crate) fn time(&mut self) -> Option<Time> {
        Some(Time {
            seconds: self.u64()? as i64,
            nanoseconds: self.u32()?,
        })
    }

    /// Bytes behind their length.
    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()? as usize;
        self.take(length)
    }

    pub(crate) fn id(&mut self, length: usize) -> Option<ObjectId> {
        ObjectId::try_from(self.take(length)?).ok()
    }

    pub(crate) fn stat(&mut self) -> Option<Stat> {
        Some(Stat {
            mode: self.u32()?,
            size: self.u64()?,
            mtime: self.time()?,
            ctime: self.time()?,
            inode: self.u64()?,
        })
    }
}

/// Records in the making.
#[derive(Debug)]
pub(crate) struct Output(pub(crate) Vec<u8>);

impl Output {
    pub(crate) fn new(magic: &[u8; 8]) -> Output {
        let mut bytes = Vec::with_capacity(4096);
        bytes.extend_from_slice(magic);
        Output(bytes)
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.raw(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.raw(&value.to_le_bytes());
    }

    pub(crate) fn time(&mut self, time: Time) {
        self.u64(time.seconds as u64);
        self.u32(time.nanoseconds);
    }

    /// Bytes behind their length.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.u32(bytes.len() as u32);
        self.raw(bytes);
    }

    pub(crate) fn stat(&mut self, stat: &Stat) {
        self.u32(stat.mode);
        self.u64(stat.size);
        self.time(stat.mtime);
        self.time(stat.ctime);
        self.u64(stat.inode);
    }

    /// The bytes of the file.
    pub(crate) fn seal(mut self) -> Vec<u8> {
        let sum = blake3::hash(&self.0);
        self.raw(sum.as_bytes());
        self.0
    }
}
