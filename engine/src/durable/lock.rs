//! Files that Git edits too: written as `<name>.lock`, which excludes other writers, and renamed into place.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Context as _, Error, Fs, Handle, parent};

/// Git's lock on a file. The new content is written through [`Write`]; [`commit`](Self::commit) puts it into place,
/// dropping the lock leaves the old content. Also useful to exclude others without any new content.
pub struct Lock {
    fs: Arc<dyn Fs>,
    target: PathBuf,
    path: PathBuf,
    file: Option<Box<dyn Handle>>,
    synced: bool,
    held: bool,
}

impl std::fmt::Debug for Lock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lock")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Lock {
    /// Takes the lock on `target`, trying again for `patience` while somebody else holds it; then the error's kind is
    /// [`io::ErrorKind::AlreadyExists`] and its path the lock file's.
    pub fn acquire(fs: Arc<dyn Fs>, target: &Path, mode: u32, patience: Duration) -> Result<Lock, Error> {
        let mut name = target.as_os_str().to_owned();
        name.push(".lock");
        let path = PathBuf::from(name);
        let give_up = Instant::now() + patience;
        let mut pause = Duration::from_millis(1);
        loop {
            match fs.create_new(&path, mode) {
                Ok(file) => {
                    return Ok(Lock {
                        fs,
                        target: target.to_owned(),
                        path,
                        file: Some(file),
                        synced: false,
                        held: true,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && Instant::now() < give_up => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(50));
                }
                Err(error) => return Err(Error::new("create", path, error)),
            }
        }
    }

    /// The lock file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file that is locked.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Closes the new content, so that many locks can be held at once; more cannot be written.
    pub(crate) fn close(&mut self) {
        self.file = None;
    }

    /// Makes the new content durable and closes it.
    pub fn seal(&mut self) -> Result<(), Error> {
        if !self.synced {
            match self.file.take() {
                Some(mut file) => file.sync(),
                None => self.fs.sync_file(&self.path),
            }
            .during("sync", &self.path)?;
            self.synced = true;
        }
        Ok(())
    }

    /// Puts the new content into place, durably, and gives the lock up.
    pub fn commit(self) -> Result<(), Error> {
        let fs = Arc::clone(&self.fs);
        let folder = parent(&self.target).to_owned();
        self.commit_unsynced()?;
        fs.sync_dir(&folder).during("sync folder", &folder)
    }

    /// [`commit`](Self::commit) for one of many files: the caller syncs the folder when all are in place.
    pub(crate) fn commit_unsynced(mut self) -> Result<(), Error> {
        self.rename()
    }

    /// The step of [`commit_unsynced`](Self::commit_unsynced) that can fail and be tried again.
    pub(crate) fn rename(&mut self) -> Result<(), Error> {
        self.seal()?;
        self.fs
            .rename(&self.path, &self.target)
            .during("replace", &self.target)?;
        self.held = false;
        Ok(())
    }
}

impl Write for Lock {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file
            .as_mut()
            .ok_or(io::ErrorKind::NotConnected)?
            .write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if self.held {
            self.file = None;
            // Nobody to tell; the next writer's error names the file.
            let _ = self.fs.unlink(&self.path);
        }
    }
}
