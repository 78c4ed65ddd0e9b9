//! What can go wrong.

use std::io;
use std::path::{Path, PathBuf};

use bstr::BString;
use ingot_engine::pack::create;
use ingot_engine::{chunked, connectivity, durable, refs, repository, store, walk};

/// What happened, to which thing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file that could not be read or written.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
    /// A file that was written to by somebody else while it was read.
    #[error("{} changed while it was read; add it again when nothing writes to it", .path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// A path that is not in the work tree or the commit.
    #[error("'{path}' matches no file; check the spelling, or see: git chunk status")]
    NoMatch {
        /// As given.
        path: BString,
    },
    /// A path that may not be added.
    #[error("'{path}' cannot be added: {reason}")]
    Refused {
        /// The path.
        path: BString,
        /// Why.
        reason: String,
    },
    /// Local changes are in the way.
    #[error("local changes would be lost: {}; commit them, or use --force", list(.paths))]
    LocalChanges {
        /// The first of them.
        paths: Vec<BString>,
    },
    /// The index cannot be used.
    #[error("cannot {action} the index: {message}")]
    Index {
        /// What was attempted.
        action: &'static str,
        /// Why not.
        message: String,
    },
    /// Another process holds a lock.
    #[error("{} is locked; if no other process works on the repository, remove {}", .path.display(), .lock.display())]
    Locked {
        /// What is locked.
        path: PathBuf,
        /// The lock file.
        lock: PathBuf,
    },
    /// Chunks are being added, or removed, by another process.
    #[error("another process adds or removes chunks (it holds {}); try again when it has ended", .path.display())]
    Busy {
        /// The file that is locked.
        path: PathBuf,
    },
    /// Something that has to be said in words of its own.
    #[error("{0}")]
    Other(String),
    /// The conversation with Git broke off or makes no sense.
    #[error("Git's filter protocol: {0}")]
    Protocol(String),
    /// The user wanted it to end.
    #[error("interrupted")]
    Interrupted,
    /// A chunked file that cannot be read.
    #[error(transparent)]
    Chunked(#[from] chunked::Error),
    /// A pack that cannot be written.
    #[error(transparent)]
    Create(#[from] create::Error),
    /// A write that failed.
    #[error(transparent)]
    Durable(#[from] durable::Error),
    /// Objects that cannot be read.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A repository that cannot be used.
    #[error(transparent)]
    Repository(#[from] repository::Error),
    /// References that cannot be read or changed.
    #[error(transparent)]
    Refs(#[from] refs::Error),
    /// History that cannot be walked.
    #[error(transparent)]
    Walk(#[from] walk::Error),
    /// A pack that cannot be sent.
    #[error(transparent)]
    Write(#[from] ingot_engine::pack::write::Error),
    /// A server that does not answer as it should.
    #[error(transparent)]
    Transport(#[from] ingot_engine::transport::Error),
    /// A pack that cannot be received.
    #[error(transparent)]
    Import(#[from] ingot_engine::import::Error),
}

fn list(paths: &[BString]) -> String {
    let mut text = paths
        .iter()
        .take(5)
        .map(|path| path.to_string())
        .collect::<Vec<_>>()
        .join(", ");
    if paths.len() > 5 {
        text.push_str(&format!(" and {} more", paths.len() - 5));
    }
    text
}

impl Error {
    /// The answer to "is an object merely absent?".
    pub fn is_missing(&self) -> bool {
        matches!(self, Error::Chunked(error) if error.is_missing())
    }

    /// True if what is stored is not what it should be.
    pub fn is_damage(&self) -> bool {
        matches!(self, Error::Chunked(error) if error.is_damage())
    }
}

impl From<connectivity::Connectivity> for Error {
    fn from(answer: connectivity::Connectivity) -> Error {
        Error::Other(match answer {
            connectivity::Connectivity::Missing { id, .. } => format!("object {id} is missing"),
            connectivity::Connectivity::Connected { .. } => "nothing is missing".to_owned(),
        })
    }
}

/// Puts the path and the attempted action beside an [`io::Error`].
pub(crate) trait During<T> {
    fn during(self, action: &'static str, path: &Path) -> Result<T, Error>;
}

impl<T> During<T> for io::Result<T> {
    fn during(self, action: &'static str, path: &Path) -> Result<T, Error> {
        self.map_err(|source| Error::Io {
            action,
            path: path.to_owned(),
            source,
        })
    }
}
