//! The note that a file is being changed in place.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ingot_engine::chunked::Pointer;
use ingot_engine::durable::{self, Fs};
use ingot_engine::progress::Silent;
use ingot_engine::repository::Repository;
use ingot_engine::store::Store;

use super::{Target, restore};
use crate::Error;
use crate::error::During as _;

/// Where the note of a work tree is.
#[derive(Clone)]
pub struct Journal {
    fs: Arc<dyn Fs>,
    path: PathBuf,
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// A note that stands. When it is dropped without [`Note::done`], it stays for [`recover`].
pub(super) struct Note<'j>(&'j Journal);

impl Journal {
    /// The journal of the work tree of `repository`.
    pub fn of(repository: &Repository) -> Journal {
        Journal {
            fs: durable::real(),
            path: repository.git_dir().join("chunk").join("patching"),
        }
    }

    /// Notes durably what a file is going to be.
    pub(super) fn begin(&self, path: &Path, new: &Pointer, executable: bool) -> Result<Note<'_>, Error> {
        if let Some(folder) = self.path.parent() {
            durable::create_dirs(&*self.fs, folder, 0o777)?;
        }
        let mut bytes = new.to_bytes();
        bytes.extend_from_slice(if executable { b"executable\n" } else { b"plain\n" });
        bytes.extend_from_slice(path.as_os_str().as_encoded_bytes());
        durable::write_atomic(&*self.fs, &self.path, &bytes, 0o600)?;
        Ok(Note(self))
    }
}

impl Note<'_> {
    pub(super) fn done(self) -> Result<(), Error> {
        self.0.fs.unlink(&self.0.path).during("remove", &self.0.path)
    }
}

/// Finishes what an interrupted command left half done: writes the file of the note, if there is one. Returns its path.
pub fn recover(repository: &Repository, store: &Store) -> Result<Option<PathBuf>, Error> {
    let journal = Journal::of(repository);
    let bytes = match journal.fs.read(&journal.path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).during("read", &journal.path),
    };
    let length = ingot_engine::chunked::pointer_length(store.format());
    let parsed = bytes.split_at_checked(length).and_then(|(pointer, rest)| {
        let pointer = Pointer::parse(pointer, store.format())?;
        let line = rest.iter().position(|byte| *byte == b'\n')?;
        Some((
            pointer,
            &rest[..line] == b"executable",
            path_of(&rest[line + 1..])?,
        ))
    });
    let done = match parsed {
        // The file may be gone on purpose by now; then there is nothing to repair.
        Some((pointer, executable, path)) if path.exists() => {
            let target = Target {
                path: &path,
                executable,
                holds: None,
            };
            restore(store, &pointer, &target, None, &Silent)?;
            Some(path)
        }
        _ => None,
    };
    Note(&journal).done()?;
    Ok(done)
}

#[cfg(unix)]
fn path_of(bytes: &[u8]) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt as _;
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(bytes)))
}

#[cfg(not(unix))]
fn path_of(bytes: &[u8]) -> Option<PathBuf> {
    std::str::from_utf8(bytes).ok().map(PathBuf::from)
}
