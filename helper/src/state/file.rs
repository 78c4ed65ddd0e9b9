//! State on disk.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ingot_engine::durable::{self, Fs};

use super::json::{self, Unreadable};
use super::{Alarm, Observed, State};
use crate::flock::{self, FileLock, Patience};

/// State could not be read, kept or trusted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store contradicts the state.
    #[error(
        "{alarm} (pinned in {}; if you know why and accept what the store shows now, move that file away)",
        .path.display()
    )]
    Alarm {
        /// The state file.
        path: PathBuf,
        /// The contradiction.
        #[source]
        alarm: Alarm,
    },
    /// Not a state file, or not a whole one.
    #[error(
        "client state {} is damaged: {reason}; it protects against rolled-back storage and is not replaced: restore \
         it, or move it away to trust the store as it is now", .path.display()
    )]
    Damaged {
        /// The state file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The names of devices cannot be read.
    #[error("{} does not hold names of devices: {reason}; mend it, or remove it and name the devices again", .path.display())]
    Names {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A format of another time.
    #[error(
        "unsupported git-remote-e2ee client state format {} in {}",
        .format.as_deref().unwrap_or("(none given)"), .path.display()
    )]
    UnsupportedFormat {
        /// The state file.
        path: PathBuf,
        /// What it calls its format.
        format: Option<String>,
    },
    /// Another operation on the same store and clone is under way.
    #[error(transparent)]
    Locked(flock::Error),
    /// The system does not let the state be read.
    #[error("cannot read {}: {source}", .path.display())]
    Read {
        /// The state file.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
    /// The system does not let the state be kept.
    #[error("client state not saved: {0}")]
    Write(#[from] durable::Error),
}

/// The state in a file, without a lock; `None` where there is no file. For looking only.
pub fn load(path: &Path) -> Result<Option<State>, Error> {
    let Some(text) = read_if_there(path)? else {
        return Ok(None);
    };
    match json::read(&text) {
        Ok(state) => Ok(Some(state)),
        Err(Unreadable::Format(format)) => Err(Error::UnsupportedFormat {
            path: path.to_owned(),
            format,
        }),
        Err(Unreadable::Damaged(reason)) => Err(Error::Damaged {
            path: path.to_owned(),
            reason,
        }),
    }
}

pub(super) fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

/// Mode bits before the umask. Who may look into a clone is for its owner to say.
const FOLDER_MODE: u32 = 0o777;
pub(super) const FILE_MODE: u32 = 0o666;

/// Writes a small file durably, making its folder.
pub(super) fn write(fs: &dyn Fs, path: &Path, text: &[u8]) -> Result<(), Error> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        durable::create_dirs(fs, folder, FOLDER_MODE)?;
    }
    Ok(durable::write_atomic(fs, path, text, FILE_MODE)?)
}

/// Takes the lock that goes with a file, making its folder.
pub(super) fn lock(fs: &dyn Fs, path: &Path, patience: Patience<'_>) -> Result<FileLock, Error> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        durable::create_dirs(fs, folder, FOLDER_MODE)?;
    }
    FileLock::acquire(&with_suffix(path, ".lock"), patience).map_err(Error::Locked)
}

pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// A state file that only the holder of a lock looks at.
#[derive(Debug)]
pub(super) struct StateFile {
    path: PathBuf,
    state: Option<State>,
}

impl StateFile {
    pub(super) fn read(path: PathBuf) -> Result<StateFile, Error> {
        Ok(StateFile {
            state: load(&path)?,
            path,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn state(&self) -> Option<&State> {
        self.state.as_ref()
    }

    pub(super) fn check(&self, observed: &Observed<'_>) -> Result<(), Error> {
        match &self.state {
            None => Ok(()),
            Some(state) => state.check(observed).map_err(|alarm| self.alarm(alarm)),
        }
    }

    /// Merges what was learned into the file. Nothing is written when nothing changes.
    pub(super) fn record(&mut self, fs: &dyn Fs, newer: State) -> Result<(), Error> {
        let merged = match &self.state {
            None => newer,
            Some(state) => state.merge(newer).map_err(|alarm| self.alarm(alarm))?,
        };
        if self.state.as_ref() != Some(&merged) {
            write(fs, &self.path, &json::write(&merged))?;
            self.state = Some(merged);
        }
        Ok(())
    }

    fn alarm(&self, alarm: Alarm) -> Error {
        Error::Alarm {
            path: self.path.clone(),
            alarm,
        }
    }
}

/// The pin beside an administrator's key file: what the last operation on the membership saw, in whatever clone, or
/// without one. Locked while this value lives.
pub struct AdminPin {
    fs: Arc<dyn Fs>,
    file: StateFile,
    _lock: FileLock,
}

impl std::fmt::Debug for AdminPin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AdminPin")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

impl AdminPin {
    /// Where the pin of a key file is.
    pub fn path_for(key_file: &Path) -> PathBuf {
        with_suffix(key_file, ".admin-state.json")
    }

    /// Locks and reads the pin of a key file.
    pub fn open(fs: Arc<dyn Fs>, key_file: &Path, patience: Patience<'_>) -> Result<AdminPin, Error> {
        let path = Self::path_for(key_file);
        let lock = lock(&*fs, &path, patience)?;
        Ok(AdminPin {
            file: StateFile::read(path)?,
            fs,
            _lock: lock,
        })
    }

    /// What is pinned; `None` before the first use of the key.
    pub fn state(&self) -> Option<&State> {
        self.file.state()
    }

    /// Requires that a history continues what is pinned.
    pub fn check(&self, observed: &Observed<'_>) -> Result<(), Error> {
        self.file.check(observed)
    }

    /// Pins the head of a history that passed [`AdminPin::check`].
    pub fn record(&mut self, observed: &Observed<'_>) -> Result<(), Error> {
        let imported_generation = Some(observed.generation);
        self.file.record(
            &*self.fs,
            State {
                imported_generation,
                ..State::new(observed)
            },
        )
    }
}
