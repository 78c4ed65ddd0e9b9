//! Files that are written piece by piece and appear whole.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Context as _, Error, Fs, Handle, Kind, create_unique, parent};

/// How a staged file came to its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// It is the file at that place now.
    New,
    /// A file was there already and was left alone; the staged one is gone.
    AlreadyThere,
}

/// A file under a temporary name, which disappears with this value unless it is published.
///
/// Write to it (it is a [`Write`]), then call [`publish_new`](Self::publish_new) for content that is never replaced, or
/// [`publish_replacing`](Self::publish_replacing). Both sync the content first and the folder afterwards.
pub struct StagedFile {
    fs: Arc<dyn Fs>,
    path: PathBuf,
    file: Option<Box<dyn Handle>>,
    written: u64,
    dirty: bool,
}

impl std::fmt::Debug for StagedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StagedFile")
            .field("path", &self.path)
            .field("written", &self.written)
            .finish_non_exhaustive()
    }
}

impl StagedFile {
    /// Creates a file in `folder`, which must be on the file system of the final place, named `prefix` and something
    /// unique. `mode` is the Unix permission set that the file keeps.
    pub fn create(
        fs: Arc<dyn Fs>,
        folder: &Path,
        prefix: impl AsRef<OsStr>,
        mode: u32,
    ) -> Result<StagedFile, Error> {
        let (path, file) = create_unique(&*fs, folder, prefix.as_ref(), mode)?;
        Ok(StagedFile {
            fs,
            path,
            file: Some(file),
            written: 0,
            dirty: true,
        })
    }

    /// Where the file is until it is published.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes written so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Makes what was written so far durable. Publishing does it anyway; doing it early spreads the work.
    pub fn sync(&mut self) -> Result<(), Error> {
        if let Some(file) = &mut self.file
            && self.dirty
        {
            file.sync().during("sync", &self.path)?;
            self.dirty = false;
        }
        Ok(())
    }

    /// Makes the file durable at `target` unless something is there already, as is right for content whose name is
    /// its hash. Either way the name at `target` is durable afterwards. The folder of `target` must exist.
    pub fn publish_new(mut self, target: &Path) -> Result<Published, Error> {
        self.sync()?;
        self.file = None;
        let published = match self.fs.hard_link(&self.path, target) {
            Ok(()) => Published::New,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Published::AlreadyThere,
            // Not every file system has hard links.
            Err(_) => match self.fs.kind(target).during("examine", target)? {
                Some(Kind::File) => Published::AlreadyThere,
                _ => {
                    self.fs.rename(&self.path, target).during("publish", target)?;
                    self.path = PathBuf::new();
                    Published::New
                }
            },
        };
        // A name that someone else published may not be durable yet: sync in both cases.
        let folder = parent(target);
        self.fs.sync_dir(folder).during("sync folder", folder)?;
        Ok(published)
    }

    /// Makes the file durable at `target`, in place of whatever is there.
    pub fn publish_replacing(mut self, target: &Path) -> Result<(), Error> {
        self.sync()?;
        self.file = None;
        self.fs.rename(&self.path, target).during("publish", target)?;
        self.path = PathBuf::new();
        let folder = parent(target);
        self.fs.sync_dir(folder).during("sync folder", folder)
    }
}

impl Write for StagedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let file = self.file.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        self.dirty = true;
        let count = file.write(bytes)?;
        self.written += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            self.file = None;
            // A leftover is harmless, and there is nobody to tell.
            let _ = self.fs.unlink(&self.path);
        }
    }
}
