//! What can go wrong with a store, kept apart by what the user can do about it.

use std::error::Error as _;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use ingot_engine::durable;

use crate::flock;
use crate::protocol::ContentId;

/// The two kinds of immutable things in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A manifest.
    Manifest,
    /// A sealed pack.
    Pack,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Manifest => "manifest",
            Kind::Pack => "pack",
        })
    }
}

/// A store did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing was ever stored there.
    #[error("encrypted repository is not initialized: nothing is stored at {store}")]
    NotInitialized {
        /// The place.
        store: String,
    },
    /// There was a repository, and its head is gone.
    #[error(
        "{store} has lost its HEAD: {found} is still there, so a repository was there before; restore HEAD from a \
         backup, or choose another place"
    )]
    HeadMissing {
        /// The place.
        store: String,
        /// What proves it, relative to the place.
        found: String,
    },
    /// The repository is there, the thing is not.
    #[error("{kind} {id} is missing from {store}")]
    Absent {
        /// The place.
        store: String,
        /// What is missing.
        kind: Kind,
        /// Its id.
        id: ContentId,
    },
    /// The place itself cannot be reached.
    #[error("{store} cannot be reached: {reason}")]
    Unreachable {
        /// The place.
        store: String,
        /// What was tried, and what came of it.
        reason: String,
    },
    /// The system forbids it.
    #[error("no permission to {action} {}: {source}", .path.display())]
    Denied {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
    /// What is there is not what a store holds.
    #[error("{} {problem}", .path.display())]
    Corrupt {
        /// The thing.
        path: PathBuf,
        /// What is wrong with it, as the rest of a sentence.
        problem: String,
    },
    /// Another process is moving the head, for too long.
    #[error(transparent)]
    Locked(flock::Error),
    /// Somebody else published first.
    #[error("head changed concurrently (expected {}, actual {})", shown(.expected), shown(.actual))]
    HeadChanged {
        /// What the caller had seen.
        expected: Option<ContentId>,
        /// What is there.
        actual: Option<ContentId>,
    },
    /// The head was moved, but it is not sure that this survives a power cut.
    #[error("the head of {store} was moved, but could not be made durable: {source}")]
    Uncertain {
        /// The place.
        store: String,
        /// The call that failed.
        source: durable::Error,
    },
    /// More bytes than any reader would take.
    #[error("manifest of {size} bytes is too large; readers take at most {limit}: push fewer refs")]
    ManifestTooLarge {
        /// What should have been stored.
        size: u64,
        /// [`super::MANIFEST_LIMIT`].
        limit: u64,
    },
    /// Whoever manages the place does not allow it.
    #[error("{store} refuses the push: {reason}")]
    Refused {
        /// The place.
        store: String,
        /// In the words of the place.
        reason: String,
    },
    /// More bytes than a pack may have in this place.
    #[error(
        "the pack is larger than {limit} bytes, the most that a carrier holds in one piece: push in several steps"
    )]
    PackTooLarge {
        /// The limit.
        limit: u64,
    },
    /// There is no interrupted push to go on with, any more.
    #[error("there is no interrupted push to {store} to go on with")]
    NothingUnfinished {
        /// The place.
        store: String,
    },
    /// The Git repository around the ciphertext cannot be used.
    #[error("{store}: {source}")]
    Repository {
        /// The place.
        store: String,
        /// Why.
        source: Box<ingot_engine::repository::Error>,
    },
    /// Its objects cannot be read.
    #[error("{store}: {source}")]
    Objects {
        /// The place.
        store: String,
        /// Why.
        source: Box<ingot_engine::store::Error>,
    },
    /// Its branch cannot be read or moved.
    #[error("{store}: {source}")]
    Branch {
        /// The place.
        store: String,
        /// Why.
        source: Box<ingot_engine::refs::Error>,
    },
    /// Its server, or the way there.
    #[error(transparent)]
    Transport(Box<ingot_engine::transport::Error>),
    /// Everything was sent, and nobody can tell what became of it.
    #[error(
        "whether {store} took the push is not known: {reason}; a fetch will tell, and the same push again does no harm"
    )]
    OutcomeUnknown {
        /// The place.
        store: String,
        /// What went wrong.
        reason: String,
    },
    /// New objects could not be brought into it.
    #[error("{store}: {source}")]
    Import {
        /// The place.
        store: String,
        /// Why.
        source: Box<ingot_engine::import::Error>,
    },
    /// Any other failure of the system.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
    /// Any other failure on the way to durability.
    #[error(transparent)]
    Write(durable::Error),
}

fn shown(id: &Option<ContentId>) -> String {
    id.map_or_else(|| "none".to_owned(), |id| id.to_string())
}

impl Error {
    /// Whether it is what was read that is wrong, and not the reading of it.
    pub(super) fn is_about_content(&self) -> bool {
        matches!(
            self,
            Error::Corrupt { .. } | Error::Objects { .. } | Error::HeadMissing { .. } | Error::Absent { .. }
        )
    }

    /// The failure of a store inside a failure of one of its streams.
    pub fn within(error: &io::Error) -> Option<&Error> {
        error.get_ref()?.downcast_ref()
    }

    /// The same, taken out.
    pub(super) fn from_stream(error: io::Error) -> Result<Error, io::Error> {
        error.downcast()
    }

    /// Sorts an answer of the system.
    pub(super) fn from_io(store: &str, action: &'static str, path: &Path, source: io::Error) -> Error {
        match Trouble::of(&source) {
            Trouble::Denied => Error::Denied {
                action,
                path: path.to_owned(),
                source,
            },
            Trouble::Unreachable => Error::Unreachable {
                store: store.to_owned(),
                reason: format!("cannot {action} {}: {source}", path.display()),
            },
            Trouble::Other => Error::Io {
                action,
                path: path.to_owned(),
                source,
            },
        }
    }

    /// Sorts a failed write.
    pub(super) fn from_durable(store: &str, error: durable::Error) -> Error {
        let cause = error
            .source()
            .and_then(|source| source.downcast_ref::<io::Error>());
        match cause.map_or(Trouble::Other, Trouble::of) {
            Trouble::Denied => Error::Denied {
                action: "write",
                path: error.path().to_owned(),
                source: cause
                    .and_then(io::Error::raw_os_error)
                    .map_or_else(|| io::Error::from(error.kind()), io::Error::from_raw_os_error),
            },
            Trouble::Unreachable => Error::Unreachable {
                store: store.to_owned(),
                reason: error.to_string(),
            },
            Trouble::Other => Error::Write(error),
        }
    }

    /// Sorts a lock that was not got.
    pub(super) fn from_lock(store: &str, error: flock::Error) -> Error {
        match error {
            flock::Error::Io { path, source } => Error::from_io(store, "lock", &path, source),
            error => Error::Locked(error),
        }
    }
}

enum Trouble {
    Denied,
    Unreachable,
    Other,
}

impl Trouble {
    fn of(error: &io::Error) -> Trouble {
        use io::ErrorKind as K;
        match error.kind() {
            K::PermissionDenied | K::ReadOnlyFilesystem => Trouble::Denied,
            K::StaleNetworkFileHandle
            | K::HostUnreachable
            | K::NetworkUnreachable
            | K::NetworkDown
            | K::NotConnected
            | K::TimedOut => Trouble::Unreachable,
            _ => Trouble::Other,
        }
    }
}
