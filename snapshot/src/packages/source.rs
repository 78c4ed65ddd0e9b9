//! Bounded reading of other programs' files.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

/// Entries of one folder that are looked at.
const MAX_ENTRIES: usize = 200_000;
/// Warnings of one manager that are kept.
const MAX_WARNINGS: usize = 50;

/// The files of one machine, and what could not be read of them.
pub(super) struct Source<'a> {
    root: &'a Path,
    home: &'a Path,
    warnings: Vec<String>,
    suppressed: usize,
}

impl<'a> Source<'a> {
    pub fn new(root: &'a Path, home: &'a Path) -> Source<'a> {
        Source {
            root,
            home,
            warnings: Vec::new(),
            suppressed: 0,
        }
    }

    /// A path of the system.
    pub fn system(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// A path in the home folder.
    pub fn home(&self, relative: &str) -> PathBuf {
        self.home.join(relative)
    }

    /// An absolute path, as a file names it, below the root.
    pub fn absolute(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Notes what could not be read.
    pub fn warn(&mut self, path: &Path, what: impl std::fmt::Display) {
        if self.warnings.len() < MAX_WARNINGS {
            let path: String = path.display().to_string().chars().map(printable).collect();
            let what: String = what.to_string().chars().map(printable).take(300).collect();
            self.warnings.push(format!("{path}: {what}"));
        } else {
            self.suppressed += 1;
        }
    }

    pub fn into_warnings(mut self) -> Vec<String> {
        if self.suppressed > 0 {
            self.warnings.push(format!("{} more warnings", self.suppressed));
        }
        self.warnings
    }

    /// A whole file of at most `limit` bytes. Nothing when it is not there; a warning when it cannot be read.
    pub fn file(&mut self, path: &Path, limit: u64) -> Option<Vec<u8>> {
        match read(path, limit) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.warn(path, error);
                None
            }
        }
    }

    /// The same as text; bytes that are none are replaced.
    pub fn text(&mut self, path: &Path, limit: u64) -> Option<String> {
        self.file(path, limit)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A JSON document.
    pub fn json<T: DeserializeOwned>(&mut self, path: &Path, limit: u64) -> Option<T> {
        let bytes = self.file(path, limit)?;
        match serde_json::from_slice(&bytes) {
            Ok(document) => Some(document),
            Err(error) => {
                self.warn(path, format_args!("damaged: {error}"));
                None
            }
        }
    }

    /// Names in a folder, sorted; those that are no UTF-8 are warned about. Nothing when it is not there.
    pub fn names(&mut self, path: &Path) -> Option<Vec<String>> {
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) if absent(&error) => return None,
            Err(error) => {
                self.warn(path, error);
                return None;
            }
        };
        let mut names = Vec::new();
        for entry in entries {
            match entry.map(|entry| entry.file_name().into_string()) {
                Ok(Ok(name)) => names.push(name),
                Ok(Err(name)) => self.warn(path, format_args!("the name {name:?} is no UTF-8")),
                Err(error) => {
                    self.warn(path, error);
                    break;
                }
            }
            if names.len() == MAX_ENTRIES {
                self.warn(
                    path,
                    format_args!("more than {MAX_ENTRIES} entries; the rest is left out"),
                );
                break;
            }
        }
        names.sort_unstable();
        Some(names)
    }

    /// Where a link points, as text.
    pub fn link(&self, path: &Path) -> Option<String> {
        fs::read_link(path).ok()?.into_os_string().into_string().ok()
    }
}

/// Whether there is nothing, also because a part of the path is a file.
pub(super) fn absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Opens a regular file. Asked before opening, since opening a named pipe waits.
pub(super) fn open(path: &Path) -> io::Result<Option<(File, u64)>> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(io::Error::other("not a regular file")),
        Ok(_) => {
            let file = File::open(path)?;
            let size = file.metadata()?.len();
            Ok(Some((file, size)))
        }
        Err(error) if absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn read(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let Some((file, size)) = open(path)? else {
        return Ok(None);
    };
    let too_large = || io::Error::other(format!("larger than {limit} bytes; not read"));
    if size > limit {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(too_large());
    }
    Ok(Some(bytes))
}

fn printable(c: char) -> char {
    if c.is_control() { '\u{fffd}' } else { c }
}
