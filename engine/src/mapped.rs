//! Read-only maps of index-like files: the one place with unsafe code.
//!
//! Pack indexes, reverse indexes, commit-graphs and bitmaps are looked up at random and hold a few bytes an object, so
//! they are mapped. Pack data is not: its pages would count as resident memory of whoever walks a repository.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::Path;

/// The bytes of a file, mapped read-only and private to this process.
///
/// # What makes this sound
///
/// A map is only as constant as its file. Three invariants hold for every file mapped here:
///
/// 1. Git and this crate never write into an index-like file that has its final name. They write a new file and rename
///    it into place, which leaves the mapped one as it was until the last map of it is gone.
/// 2. The map is read-only and private. Nothing in this process can write through it, and no `&mut` to it exists.
/// 3. What is read is never believed: readers check every count and offset against the length of the map at each
///    access, copy integers out before they use them, and keep no reference whose validity depends on the content.
///
/// A foreign program that breaks the first rule can make reads return different bytes from one call to the next, which
/// by the third rule leads to an error or a wrong answer about that file, or can shorten the file, which ends the
/// process by signal (SIGBUS), as it ends Git.
#[derive(Debug)]
pub struct Mapped {
    /// `None` for an empty file, which operating systems refuse to map.
    map: Option<memmap2::Mmap>,
}

impl Mapped {
    /// Maps the file at `path`.
    pub fn open(path: &Path) -> io::Result<Mapped> {
        Mapped::of(&File::open(path)?)
    }

    /// Maps an open file. The file may be closed afterwards.
    pub fn of(file: &File) -> io::Result<Mapped> {
        let length = file.metadata()?.len();
        if length == 0 {
            return Ok(Mapped { map: None });
        }
        if usize::try_from(length).is_err() {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("{length} bytes do not fit into the address space"),
            ));
        }
        // SAFETY: the type's invariants say why the bytes stay as they are and why nothing relies on it.
        let map = unsafe { memmap2::MmapOptions::new().map_copy_read_only(file)? };
        Ok(Mapped { map: Some(map) })
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn shows_the_bytes_of_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index");
        std::fs::write(&path, b"some bytes").unwrap();
        assert_eq!(&*Mapped::open(&path).unwrap(), b"some bytes");
    }

    #[test]
    fn an_empty_file_is_an_empty_slice() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("empty");
        std::fs::write(&path, b"").unwrap();
        assert!(Mapped::open(&path).unwrap().is_empty());
    }

    #[test]
    fn an_absent_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let error = Mapped::open(&folder.path().join("absent")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
