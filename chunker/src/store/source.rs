//! Bytes to be chunked: a file, of which holes need not be read, or a stream.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::Error;
use crate::error::During as _;

/// Where the content of a file comes from.
pub struct Source<'a> {
    kind: Kind<'a>,
    position: u64,
}

enum Kind<'a> {
    File {
        file: File,
        path: PathBuf,
        meta: Metadata,
        sparse: bool,
    },
    Stream(&'a mut (dyn Read + Send)),
}

impl<'a> Source<'a> {
    /// A regular file, of which `meta` was just read.
    pub fn file(file: File, path: &Path, meta: Metadata) -> Source<'a> {
        Source {
            kind: Kind::File {
                sparse: is_sparse(&meta),
                file,
                path: path.to_owned(),
                meta,
            },
            position: 0,
        }
    }

    /// Opens a regular file.
    pub fn open(path: &Path) -> Result<Source<'a>, Error> {
        let file = File::open(path).during("open", path)?;
        let meta = file.metadata().during("examine", path)?;
        Ok(Source::file(file, path, meta))
    }

    /// Anything that can be read to its end.
    pub fn stream(stream: &'a mut (dyn Read + Send)) -> Source<'a> {
        Source {
            kind: Kind::Stream(stream),
            position: 0,
        }
    }

    /// The length, where it is known beforehand.
    pub fn size(&self) -> Option<u64> {
        match &self.kind {
            Kind::File { meta, .. } => Some(meta.len()),
            Kind::Stream(_) => None,
        }
    }

    /// The file, which may be read anywhere; `None` for a stream.
    pub fn as_file(&self) -> Option<&File> {
        match &self.kind {
            Kind::File { file, .. } => Some(file),
            Kind::Stream(_) => None,
        }
    }

    /// Where the next byte is read.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Makes the next byte the one at `position`. Files only; a stream stays where it is.
    pub fn seek(&mut self, position: u64) {
        if matches!(self.kind, Kind::File { .. }) {
            self.position = position;
        }
    }

    /// Appends bytes to `buffer` until it has `wanted`, or there are no more; true at the end.
    pub fn fill(&mut self, buffer: &mut Vec<u8>, wanted: usize) -> Result<bool, Error> {
        let start = buffer.len();
        if start >= wanted {
            return Ok(false);
        }
        buffer.resize(wanted, 0);
        let mut filled = start;
        let result = loop {
            if filled == wanted {
                break Ok(false);
            }
            match self.read(&mut buffer[filled..wanted]) {
                Ok(0) => break Ok(true),
                Ok(count) => {
                    filled += count;
                    self.position += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        buffer.truncate(filled);
        result.map_err(|source| Error::Io {
            action: "read",
            path: match &self.kind {
                Kind::File { path, .. } => path.clone(),
                Kind::Stream(_) => "the content that Git sends".into(),
            },
            source,
        })
    }

    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match &mut self.kind {
            Kind::File { file, .. } => read_at(file, out, self.position),
            Kind::Stream(stream) => stream.read(out),
        }
    }

    /// The end of the hole that begins at `offset` or before, if there is one that reaches beyond `offset`.
    pub fn hole_end(&self, offset: u64) -> Option<u64> {
        match &self.kind {
            Kind::File {
                file,
                meta,
                sparse: true,
                ..
            } => hole_end(file, offset, meta.len()).filter(|end| *end > offset),
            _ => None,
        }
    }

    /// Checks that the file is still the one that was opened, of which `read` bytes were taken.
    pub fn check_unchanged(&self, read: u64) -> Result<(), Error> {
        let Kind::File { file, path, meta, .. } = &self.kind else {
            return Ok(());
        };
        let now = file.metadata().during("examine", path)?;
        let same =
            read == meta.len() && now.len() == meta.len() && now.modified().ok() == meta.modified().ok();
        match same {
            true => Ok(()),
            false => Err(Error::Changed { path: path.clone() }),
        }
    }
}

#[cfg(unix)]
fn read_at(file: &File, out: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, out, offset)
}

#[cfg(windows)]
fn read_at(file: &File, out: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, out, offset)
}

#[cfg(unix)]
fn is_sparse(meta: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    meta.blocks().saturating_mul(512) < meta.len()
}

#[cfg(not(unix))]
fn is_sparse(_meta: &Metadata) -> bool {
    false
}

#[cfg(target_os = "linux")]
fn hole_end(file: &File, offset: u64, length: u64) -> Option<u64> {
    match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(offset)) {
        Ok(data) => Some(data),
        // No data from there on.
        Err(rustix::io::Errno::NXIO) => Some(length),
        Err(_) => None,
    }
}

#[cfg(not(target_os = "linux"))]
fn hole_end(_file: &File, _offset: u64, _length: u64) -> Option<u64> {
    None
}
