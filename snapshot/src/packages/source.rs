//! Bounded reading of other programs' files.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use serde::de::DeserializeOwned;

use super::memory::{Look, View};
use crate::rooted::is_absent;

/// Entries of one folder that are looked at.
const MAX_ENTRIES: usize = 200_000;
/// Warnings of one manager that are kept.
const MAX_WARNINGS: usize = 50;

/// The files of one machine, what could not be read of them, and what was looked at.
pub(super) struct Source<'a> {
    root: &'a Path,
    home: &'a Path,
    warnings: Vec<String>,
    suppressed: usize,
    looks: Vec<Look>,
}

impl<'a> Source<'a> {
    pub fn new(root: &'a Path, home: &'a Path) -> Source<'a> {
        Source {
            root,
            home,
            warnings: Vec::new(),
            suppressed: 0,
            looks: Vec::new(),
        }
    }

    /// Whatever a reader learns of a path begins here, so that the same look later means the same answer.
    fn look(&mut self, path: &Path, follow: bool) -> View {
        let look = Look::at(path, follow);
        let view = look.view;
        self.looks.push(look);
        view
    }

    fn is(&mut self, path: &Path, kind: FileType) -> bool {
        matches!(self.look(path, true), View::There(stat) if stat.file_type() == kind)
    }

    /// Whether there is a folder, or a link to one.
    pub fn is_folder(&mut self, path: &Path) -> bool {
        self.is(path, FileType::Directory)
    }

    /// Whether there is a file, or a link to one.
    pub fn is_file(&mut self, path: &Path) -> bool {
        self.is(path, FileType::RegularFile)
    }

    /// Whether there is anything.
    pub fn exists(&mut self, path: &Path) -> bool {
        matches!(self.look(path, true), View::There(_))
    }

    /// Opens a regular file.
    pub fn open(&mut self, path: &Path) -> io::Result<Option<(File, u64)>> {
        match self.look(path, true) {
            View::There(_) => open(path),
            view => view.error().map_or(Ok(None), Err),
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

    /// What could not be read, and everything that was looked at.
    pub fn finish(mut self) -> (Vec<String>, Vec<Look>) {
        if self.suppressed > 0 {
            self.warnings.push(format!("{} more warnings", self.suppressed));
        }
        (self.warnings, self.looks)
    }

    /// A whole file of at most `limit` bytes. Nothing when it is not there; a warning when it cannot be read.
    pub fn file(&mut self, path: &Path, limit: u64) -> Option<Vec<u8>> {
        match self.open(path).and_then(|opened| read(opened, limit)) {
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
        if let Some(error) = self.look(path, true).error() {
            self.warn(path, error);
            return None;
        }
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) if is_absent(&error) => return None,
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
    pub fn link(&mut self, path: &Path) -> Option<String> {
        self.look(path, false);
        fs::read_link(path).ok()?.into_os_string().into_string().ok()
    }
}

/// Opens a regular file. Asked before opening, since opening a named pipe waits.
fn open(path: &Path) -> io::Result<Option<(File, u64)>> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(io::Error::other("not a regular file")),
        Ok(_) => {
            let file = File::open(path)?;
            let size = file.metadata()?.len();
            Ok(Some((file, size)))
        }
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn read(opened: Option<(File, u64)>, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let Some((file, size)) = opened else {
        return Ok(None);
    };
    let too_large = || io::Error::other(format!("larger than {limit} bytes; not read"));
    if size > limit {
        return Err(too_large());
    }
    // One more than there should be, so that one call reads all.
    let mut bytes = Vec::with_capacity(size as usize + 1);
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(too_large());
    }
    Ok(Some(bytes))
}

fn printable(c: char) -> char {
    if c.is_control() { '\u{fffd}' } else { c }
}
