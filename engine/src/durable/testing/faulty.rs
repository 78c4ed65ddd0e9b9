//! Fails on purpose.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::durable::{Fs, Handle, Kind};

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The device fails (`EIO`).
    Broken,
    /// The device is full (`ENOSPC`).
    Full,
    /// A write takes half of its bytes, the one after it finds the device full. Other calls fail as with
    /// [`Fault::Full`].
    Short,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 3] = [Fault::Broken, Fault::Full, Fault::Short];

    fn error(self) -> io::Error {
        match self {
            Fault::Broken => io::Error::from(rustix::io::Errno::IO),
            Fault::Full | Fault::Short => io::Error::from(rustix::io::Errno::NOSPC),
        }
    }
}

struct Plan {
    fault: Fault,
    at: u64,
    stays: bool,
    calls: AtomicU64,
}

impl Plan {
    fn count(&self) -> (bool, u64) {
        let number = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        (number == self.at || (self.stays && number > self.at), number)
    }

    fn step(&self) -> io::Result<()> {
        match self.count() {
            (true, _) => Err(self.fault.error()),
            _ => Ok(()),
        }
    }
}

/// Passes everything on to another file system, but the n-th call fails.
pub struct Faulty {
    inner: Arc<dyn Fs>,
    plan: Arc<Plan>,
}

impl Faulty {
    /// The call number `at` (from 1) fails; with `stays`, so do all after it.
    pub fn new(inner: Arc<dyn Fs>, fault: Fault, at: u64, stays: bool) -> Faulty {
        Faulty {
            inner,
            plan: Arc::new(Plan {
                fault,
                at,
                stays,
                calls: AtomicU64::new(0),
            }),
        }
    }

    /// Whether the failing call was reached. A loop over `at` ends when it was not.
    pub fn failed(&self) -> bool {
        self.plan.calls.load(Ordering::SeqCst) >= self.plan.at
    }
}

struct FaultyHandle {
    inner: Box<dyn Handle>,
    plan: Arc<Plan>,
    full: bool,
}

impl Write for FaultyHandle {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.full {
            return Err(Fault::Full.error());
        }
        match self.plan.count() {
            (true, _) if self.plan.fault == Fault::Short && bytes.len() > 1 => {
                self.full = true;
                self.inner.write(&bytes[..bytes.len() / 2])
            }
            (true, _) => Err(self.plan.fault.error()),
            _ => self.inner.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl Handle for FaultyHandle {
    fn sync(&mut self) -> io::Result<()> {
        self.plan.step()?;
        self.inner.sync()
    }

    fn rewrite(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.plan.step()?;
        self.inner.rewrite(offset, bytes)
    }
}

impl Faulty {
    fn handle(&self, inner: Box<dyn Handle>) -> Box<dyn Handle> {
        Box::new(FaultyHandle {
            inner,
            plan: Arc::clone(&self.plan),
            full: false,
        })
    }
}

impl Fs for Faulty {
    fn create_new(&self, path: &Path, mode: u32) -> io::Result<Box<dyn Handle>> {
        self.plan.step()?;
        Ok(self.handle(self.inner.create_new(path, mode)?))
    }

    fn append(&self, path: &Path, mode: u32) -> io::Result<Box<dyn Handle>> {
        self.plan.step()?;
        Ok(self.handle(self.inner.append(path, mode)?))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.plan.step()?;
        self.inner.read(path)
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<OsString>> {
        self.plan.step()?;
        self.inner.read_dir(path)
    }

    fn kind(&self, path: &Path) -> io::Result<Option<Kind>> {
        self.plan.step()?;
        self.inner.kind(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.plan.step()?;
        self.inner.rename(from, to)
    }

    fn hard_link(&self, existing: &Path, new: &Path) -> io::Result<()> {
        self.plan.step()?;
        self.inner.hard_link(existing, new)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.plan.step()?;
        self.inner.unlink(path)
    }

    fn create_dir(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.plan.step()?;
        self.inner.create_dir(path, mode)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.plan.step()?;
        self.inner.remove_dir(path)
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        self.plan.step()?;
        self.inner.sync_file(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.plan.step()?;
        self.inner.sync_dir(path)
    }
}
