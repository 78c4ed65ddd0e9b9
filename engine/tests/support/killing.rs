//! A file system whose process is killed at its n-th call.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ingot_engine::durable::{Fs, Handle, Kind, real};

/// Passes everything on to the system, until this process ends before the n-th call.
pub struct Killing {
    inner: Arc<dyn Fs>,
    left: Arc<Left>,
}

struct Left(AtomicU64);

impl Left {
    fn step(&self, call: &str, path: &Path) {
        if self.0.fetch_sub(1, Ordering::SeqCst) == 1 {
            // For whoever reads the output of a failed test.
            eprintln!("killed before {call} {}", path.display());
            let me = rustix::process::getpid();
            rustix::process::kill_process(me, rustix::process::Signal::KILL).unwrap();
            // It may take a moment.
            std::thread::sleep(std::time::Duration::from_secs(60));
        }
    }
}

impl Killing {
    /// The call number `at`, from 1, is not made any more.
    pub fn new(at: u64) -> Killing {
        Killing {
            inner: real(),
            left: Arc::new(Left(AtomicU64::new(at))),
        }
    }

    fn handle(&self, inner: Box<dyn Handle>, path: &Path) -> Box<dyn Handle> {
        Box::new(KillingHandle {
            inner,
            path: path.to_owned(),
            left: Arc::clone(&self.left),
        })
    }
}

struct KillingHandle {
    inner: Box<dyn Handle>,
    path: std::path::PathBuf,
    left: Arc<Left>,
}

impl Write for KillingHandle {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left.step("write to", &self.path);
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl Handle for KillingHandle {
    fn sync(&mut self) -> io::Result<()> {
        self.left.step("sync", &self.path);
        self.inner.sync()
    }

    fn rewrite(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.left.step("write into", &self.path);
        self.inner.rewrite(offset, bytes)
    }
}

impl Fs for Killing {
    fn create_new(&self, path: &Path, mode: u32) -> io::Result<Box<dyn Handle>> {
        self.left.step("create", path);
        Ok(self.handle(self.inner.create_new(path, mode)?, path))
    }

    fn append(&self, path: &Path, mode: u32) -> io::Result<Box<dyn Handle>> {
        self.left.step("append to", path);
        Ok(self.handle(self.inner.append(path, mode)?, path))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.inner.read(path)
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<OsString>> {
        self.inner.read_dir(path)
    }

    fn kind(&self, path: &Path) -> io::Result<Option<Kind>> {
        self.inner.kind(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.left.step("rename to", to);
        self.inner.rename(from, to)
    }

    fn hard_link(&self, existing: &Path, new: &Path) -> io::Result<()> {
        self.left.step("link", new);
        self.inner.hard_link(existing, new)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.left.step("unlink", path);
        self.inner.unlink(path)
    }

    fn create_dir(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.left.step("create folder", path);
        self.inner.create_dir(path, mode)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.left.step("remove folder", path);
        self.inner.remove_dir(path)
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        self.left.step("sync file", path);
        self.inner.sync_file(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.left.step("sync folder", path);
        self.inner.sync_dir(path)
    }
}
