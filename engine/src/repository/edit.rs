//! Changing the configuration file of a repository.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bstr::{BStr, BString, ByteSlice as _};
use gix::config::{File, KeyRef};

use super::{Error, Repository, explain};
use crate::durable::{self, Lock};

/// The repository's own configuration file while its lock is held. Comments, order and everything else that is not
/// changed stay as they are.
pub struct Edit {
    path: PathBuf,
    file: File,
    changed: bool,
}

impl std::fmt::Debug for Edit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Edit")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Edit {
    fn parse(path: &Path, text: &[u8]) -> Result<Edit, Error> {
        let place = gix::config::file::Metadata::from(gix::config::Source::Local).at(path);
        let file = File::from_bytes_no_includes(text, place, Default::default())
            .map_err(|error| Error::open(path, &error))?;
        Ok(Edit {
            path: path.to_owned(),
            file,
            changed: false,
        })
    }

    fn key<'k>(&self, key: &'k [u8]) -> Result<KeyRef<'k>, Error> {
        KeyRef::parse_unvalidated(key.as_bstr())
            .filter(|parsed| !parsed.section_name.is_empty())
            .ok_or_else(|| self.failed(key, "not a configuration key"))
    }

    fn failed(&self, key: &[u8], message: impl std::fmt::Display) -> Error {
        Error::Edit {
            path: self.path.clone(),
            message: format!("'{}': {message}", key.as_bstr()),
        }
    }

    fn check(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        if value.contains(&0) {
            return Err(self.failed(key, "the value contains a NUL byte"));
        }
        Ok(())
    }

    /// All values of `key` in this file.
    pub fn values(&self, key: impl AsRef<[u8]>) -> Vec<BString> {
        KeyRef::parse_unvalidated(key.as_ref().as_bstr())
            .and_then(|key| self.file.strings(key))
            .unwrap_or_default()
    }

    /// Gives `key` this value: instead of the last one that the file has, or as its first.
    pub fn set(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<(), Error> {
        let (key, value) = (key.as_ref(), value.as_ref());
        self.check(key, value)?;
        let parsed = self.key(key)?;
        self.file
            .set_raw_value(parsed, value.as_bstr())
            .map_err(|error| self.failed(key, explain(&error)))?;
        self.changed = true;
        Ok(())
    }

    /// Adds a value to those that `key` has.
    pub fn add(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<(), Error> {
        let (key, value) = (key.as_ref(), value.as_ref());
        self.check(key, value)?;
        let parsed = self.key(key)?;
        let result = self
            .file
            .section_mut_or_create_new(parsed.section_name, parsed.subsection_name)
            .and_then(|mut section| section.push(parsed.value_name, value.as_bstr()).map(drop));
        result.map_err(|error| self.failed(key, explain(&error)))?;
        self.changed = true;
        Ok(())
    }

    /// Removes all values of `key`; returns how many there were.
    pub fn unset(&mut self, key: impl AsRef<[u8]>) -> Result<usize, Error> {
        let parsed = self.key(key.as_ref())?;
        let count = match self.file.raw_values_mut(parsed) {
            Ok(mut values) => {
                let count = values.len();
                values.delete_all();
                count
            }
            Err(_) => 0, // no such value
        };
        self.changed |= count > 0;
        Ok(count)
    }

    /// Removes the sections with this name, all values included; returns how many there were.
    pub fn remove_section(&mut self, section: &str, subsection: Option<&BStr>) -> usize {
        let mut count = 0;
        while self.file.remove_section(section, subsection).is_some() {
            count += 1;
        }
        self.changed |= count > 0;
        count
    }
}

impl Repository {
    /// Changes the repository's configuration file under Git's lock, durably, all or nothing, and makes the result
    /// visible in [`config`](Self::config). When `change` fails, the file stays as it was.
    pub fn edit_config<T, E: From<Error>>(
        &mut self,
        change: impl FnOnce(&mut Edit) -> Result<T, E>,
    ) -> Result<T, E> {
        let result = edit(&durable::real(), &self.common_dir().join("config"), change)?;
        self.reload()?;
        Ok(result)
    }
}

/// The text of a configuration file that is going to be at `path`, with more settings.
pub(super) fn with_settings(
    path: &Path,
    text: &[u8],
    settings: &[(String, String)],
) -> Result<Vec<u8>, Error> {
    if settings.is_empty() {
        return Ok(text.to_vec());
    }
    let mut edit = Edit::parse(path, text)?;
    for (key, value) in settings {
        edit.set(key, value)?;
    }
    Ok(edit.file.to_bstring().into())
}

/// Changes the configuration file at `path`.
pub(super) fn edit<T, E: From<Error>>(
    fs: &std::sync::Arc<dyn durable::Fs>,
    path: &Path,
    change: impl FnOnce(&mut Edit) -> Result<T, E>,
) -> Result<T, E> {
    // The link stays and what it leads to is replaced, as Git does.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mode = mode_of(&path);
    let mut lock = Lock::acquire(std::sync::Arc::clone(fs), &path, mode, Duration::from_millis(500))
        .map_err(|error| {
            if error.kind() == std::io::ErrorKind::AlreadyExists {
                Error::Locked {
                    path: path.clone(),
                    lock: error.path().to_owned(),
                }
            } else {
                Error::Durable(error)
            }
        })?;
    let bytes = match fs.read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(Error::read(&path, error).into()),
    };
    let mut edit = Edit::parse(&path, &bytes)?;
    let result = change(&mut edit)?;
    if edit.changed {
        lock.write_all(&edit.file.to_bstring())
            .map_err(|error| Error::Durable(durable::Error::new("write", lock.path(), error)))?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            // The umask may have taken bits away that the file had.
            std::fs::set_permissions(lock.path(), std::fs::Permissions::from_mode(mode)).map_err(
                |error| Error::Durable(durable::Error::new("set the mode of", lock.path(), error)),
            )?;
        }
        lock.commit().map_err(Error::Durable)?;
    }
    Ok(result)
}

#[cfg(unix)]
fn mode_of(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).map_or(0o644, |meta| meta.permissions().mode() & 0o777)
}

#[cfg(not(unix))]
fn mode_of(_path: &Path) -> u32 {
    0
}
