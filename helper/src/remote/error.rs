//! What can go wrong with a remote, and what kind of trouble that is for the user.

use std::io;
use std::path::PathBuf;

use gix_hash::ObjectId;
use ingot_engine::pack::{index, write};
use ingot_engine::{durable, import, repository, store, walk};

use crate::flock;
use crate::protocol::{
    ContentId, DeviceId, chain, invitation, key_file, pack_stream, policy, publication, refs,
};
use crate::{state, storage};

/// An operation on a remote failed. Nothing of the user has moved.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no encrypted repository at that place.
    #[error("encrypted repository is not initialized: nothing is stored at {store}")]
    NoRepository {
        /// The place.
        store: String,
    },
    /// There was one.
    #[error(
        "nothing is stored at {store} any more: this repository has seen generation {generation} there. Nothing is begun \
         anew in its place"
    )]
    Vanished {
        /// The place.
        store: String,
        /// The newest generation that was seen.
        generation: u64,
    },
    /// There is one already.
    #[error("encrypted repository is already initialized: {store}")]
    AlreadyInitialized {
        /// The place.
        store: String,
    },
    /// The head is not the id of a manifest.
    #[error("the HEAD of {store} is not the id of a manifest: the store is damaged")]
    HeadUnreadable {
        /// The place.
        store: String,
    },
    /// Only the key that a repository is named after can begin it.
    #[error("{} was made for another repository and cannot begin one; make a key with git-e2ee keygen", .key.display())]
    NotFounder {
        /// The key file.
        key: PathBuf,
    },
    /// The key began a repository before.
    #[error("{} already owns a repository; make another key with git-e2ee keygen", .key.display())]
    KeyInUse {
        /// The key file.
        key: PathBuf,
    },
    /// Storage did not do what was asked.
    #[error(transparent)]
    Storage(#[from] storage::Error),
    /// The chain of manifests was refused.
    #[error(transparent)]
    Chain(#[from] chain::Error),
    /// The head cannot be opened, and nothing is known of the store.
    #[error(
        "device {device} is not an active reader of the current generation (revoked, never added, or envelope \
         malformed): manifest {head}, which claims generation {generation}, holds no envelope for it"
    )]
    NotReader {
        /// This device.
        device: DeviceId,
        /// The head.
        head: ContentId,
        /// The generation that the head claims.
        generation: u64,
    },
    /// The head cannot be opened, but an earlier one could.
    #[error(
        "device {device} is no longer an active reader: it could open manifest {known_id} (generation {known}), but \
         manifest {head}, which claims generation {generation}, holds no envelope for it"
    )]
    Revoked {
        /// This device.
        device: DeviceId,
        /// The head.
        head: ContentId,
        /// The generation that the head claims.
        generation: u64,
        /// The newest generation that is known here.
        known: u64,
        /// Its manifest.
        known_id: ContentId,
    },
    /// The invitation that came with the key was refused.
    #[error(transparent)]
    Invitation(#[from] invitation::Error),
    /// One key, two repositories.
    #[error("{} holds the invitation to another repository; join with another key", .path.display())]
    OtherInvitation {
        /// The invitation that is there.
        path: PathBuf,
    },
    /// A reference in the store that no client would accept.
    #[error(transparent)]
    Refs(#[from] refs::Error),
    /// Two references of the store of which one is a folder of the other.
    #[error("the store holds both {name} and {other}, which no repository can")]
    RefConflict {
        /// One full name.
        name: String,
        /// The other one.
        other: String,
    },
    /// What is remembered of the store could not be used, or contradicts the store.
    #[error(transparent)]
    State(#[from] state::Error),
    /// The next generation could not be made.
    #[error(transparent)]
    Publication(#[from] publication::Error),
    /// A pack could not be encrypted into the store.
    #[error("cannot write a pack to the store: {0}")]
    Seal(io::Error),
    /// A pack could not be decrypted.
    #[error("pack {id}: {source}")]
    Stream {
        /// The pack.
        id: ContentId,
        /// Why.
        source: io::Error,
    },
    /// A pack of the chain was decrypted, but is no acceptable Git pack.
    #[error("pack {id}: {source}")]
    Pack {
        /// The pack.
        id: ContentId,
        /// Why.
        source: Box<index::Error>,
    },
    /// A pack that the chain does not list.
    #[error("pack {id} is not part of this chain")]
    ForeignPack {
        /// The pack.
        id: ContentId,
    },
    /// Packs could not be taken in.
    #[error(transparent)]
    Import(import::Error),
    /// What the store's references need is not in the store.
    #[error("fetched refs contain missing Git objects: {id} is in no pack of the store{}", referred(.referrer))]
    Missing {
        /// What is missing.
        id: ObjectId,
        /// What refers to it.
        referrer: Option<ObjectId>,
    },
    /// A branch of the store that is no commit.
    #[error("branch ref {name} must resolve to a commit, but {id} is {}", .kind.map_or("missing".to_owned(), |kind| format!("a {kind}")))]
    BranchKind {
        /// Full name.
        name: String,
        /// Its value.
        id: ObjectId,
        /// What that is.
        kind: Option<gix::object::Kind>,
    },
    /// One store holds one object format.
    #[error("the store holds {stored} objects and the repository {local} objects; they cannot be mixed")]
    ObjectFormat {
        /// In the store.
        stored: gix_hash::Kind,
        /// In the repository.
        local: gix_hash::Kind,
    },
    /// Incomplete history is not pushed.
    #[error("this clone is shallow and lacks {id}; complete it with: git fetch --unshallow")]
    Shallow {
        /// What is missing.
        id: ObjectId,
    },
    /// Incomplete history is not pushed.
    #[error("this clone is partial and lacks {id}; complete it with: git fetch --refetch --no-filter")]
    Partial {
        /// What is missing.
        id: ObjectId,
    },
    /// The repository itself is damaged.
    #[error("the repository is damaged: {id} is missing{}; see git fsck", referred(.referrer))]
    LocalMissing {
        /// What is missing.
        id: ObjectId,
        /// What refers to it.
        referrer: Option<ObjectId>,
    },
    /// A tag object that cannot be parsed.
    #[error("tag object {id} cannot be read; see git fsck")]
    TagUnreadable {
        /// The tag object.
        id: ObjectId,
    },
    /// The repository could not be opened.
    #[error(transparent)]
    Repository(#[from] repository::Error),
    /// Its objects could not be read.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Its history could not be walked.
    #[error(transparent)]
    Walk(walk::Error),
    /// A pack could not be made.
    #[error(transparent)]
    Write(write::Error),
    /// A file could not be written or removed.
    #[error(transparent)]
    File(#[from] durable::Error),
    /// A key file could not be read or written.
    #[error(transparent)]
    KeyFile(#[from] key_file::Error),
    /// Another administrator was faster.
    #[error(
        "another administrator changed the membership first: policy generation was {expected}, now it is {seen}, \
         signed by device {by}; nothing was changed; look at git-e2ee device-list, then repeat what still applies"
    )]
    MembershipChanged {
        /// Policy generation that the change was made for.
        expected: u64,
        /// Policy generation now.
        seen: u64,
        /// Who signed the new policy.
        by: DeviceId,
    },
    /// Others publish all the time.
    #[error("somebody else published first, {attempts} times in a row; nothing was changed; try again later")]
    Busy {
        /// Tries.
        attempts: u32,
    },
    /// Another process put another key into the key file.
    #[error("{} was replaced by another process in the meantime; repeat the command", .key.display())]
    KeyReplaced {
        /// The key file.
        key: PathBuf,
    },
    /// No room for temporary files.
    #[error("cannot make a temporary folder: {0}")]
    Temporary(io::Error),
    /// The user wanted it.
    #[error("interrupted")]
    Interrupted,
}

/// What kind of trouble an error is; exit codes follow from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Anything else.
    Failed,
    /// There is no store.
    NoStore,
    /// Another process is in the way.
    Locked,
    /// The key at hand cannot open the store, or may not do what was asked.
    Key,
    /// The store is damaged, forged, or shows an old or another history.
    Alarm,
    /// The user ended it.
    Interrupted,
}

impl Error {
    /// What kind of trouble this is.
    pub fn kind(&self) -> Kind {
        match self {
            Error::NoRepository { .. } | Error::Vanished { .. } => Kind::NoStore,
            Error::HeadUnreadable { .. }
            | Error::Refs(_)
            | Error::RefConflict { .. }
            | Error::Pack { .. }
            | Error::ForeignPack { .. }
            | Error::Missing { .. }
            | Error::BranchKind { .. } => Kind::Alarm,
            // What a disk or a network does is no fault of the stream.
            Error::Stream { source, .. } if pack_stream::Error::within(source).is_some() => Kind::Alarm,
            Error::Stream { source, .. } if storage::Error::within(source).is_some() => {
                storage::Error::within(source).map_or(Kind::Failed, storage_kind)
            }
            Error::Storage(error) => storage_kind(error),
            Error::Chain(error) => match error.kind() {
                chain::Kind::WrongKey => Kind::Key,
                chain::Kind::Unsupported => Kind::Failed,
                chain::Kind::Integrity => Kind::Alarm,
            },
            Error::NotReader { .. } | Error::Revoked { .. } => Kind::Key,
            Error::Invitation(error) => match error {
                invitation::Error::Recipient { .. } => Kind::Key,
                invitation::Error::Signer { .. }
                | invitation::Error::Signature(_)
                | invitation::Error::Policy { .. } => Kind::Alarm,
                _ => Kind::Failed,
            },
            Error::State(error) => state_kind(error),
            Error::Publication(
                publication::Error::ReadOnly
                | publication::Error::NotWriter
                | publication::Error::ForeignRepository { .. }
                | publication::Error::Policy(policy::Error::NotAdministrator(_)),
            ) => Kind::Key,
            Error::Interrupted => Kind::Interrupted,
            _ => Kind::Failed,
        }
    }

    /// A failure while a pack was opened: what the decryptor says, or what storage says.
    pub(super) fn from_stream(id: ContentId, source: io::Error) -> Error {
        Error::Stream { id, source }
    }

    /// A failure while a decrypted pack was indexed: the user's, the stream's own, the disk's, or the pack's.
    pub(super) fn from_import(id: ContentId, error: import::Error) -> Error {
        match error {
            import::Error::Pack(index::Error::Interrupted) => Error::Interrupted,
            import::Error::Pack(index::Error::Read { source, .. }) => Error::Stream { id, source },
            import::Error::Pack(index::Error::File { .. }) => Error::Import(error),
            import::Error::Pack(source) => Error::Pack {
                id,
                source: Box::new(source),
            },
            other => other.into(),
        }
    }
}

fn storage_kind(error: &storage::Error) -> Kind {
    match error {
        storage::Error::NotInitialized { .. } => Kind::NoStore,
        storage::Error::Locked(flock::Error::Interrupted { .. }) => Kind::Interrupted,
        storage::Error::Locked(flock::Error::Io { .. }) => Kind::Failed,
        storage::Error::Locked(_) => Kind::Locked,
        storage::Error::Corrupt { .. }
        | storage::Error::HeadMissing { .. }
        | storage::Error::Absent { .. } => Kind::Alarm,
        storage::Error::Objects { source, .. } => match **source {
            ingot_engine::store::Error::Io { .. } => Kind::Failed,
            _ => Kind::Alarm,
        },
        storage::Error::Transport(error) => match **error {
            ingot_engine::transport::Error::Interrupted => Kind::Interrupted,
            ingot_engine::transport::Error::NotFound { .. } => Kind::NoStore,
            _ => Kind::Failed,
        },
        storage::Error::Branch { source, .. } => match **source {
            ingot_engine::refs::Error::Locked { .. } => Kind::Locked,
            _ => Kind::Failed,
        },
        _ => Kind::Failed,
    }
}

fn state_kind(error: &state::Error) -> Kind {
    match error {
        state::Error::Alarm { .. } => Kind::Alarm,
        state::Error::Locked(flock::Error::Interrupted { .. }) => Kind::Interrupted,
        state::Error::Locked(flock::Error::Io { .. }) => Kind::Failed,
        state::Error::Locked(_) => Kind::Locked,
        _ => Kind::Failed,
    }
}

impl From<chain::ReadError<storage::Error>> for Error {
    fn from(error: chain::ReadError<storage::Error>) -> Self {
        match error {
            chain::ReadError::Storage { source, .. } => source.into(),
            chain::ReadError::Chain(error) => error.into(),
        }
    }
}

impl From<walk::Error> for Error {
    fn from(error: walk::Error) -> Self {
        match error {
            walk::Error::Interrupted => Error::Interrupted,
            walk::Error::Store(error) => Error::Store(error),
            error => Error::Walk(error),
        }
    }
}

impl From<write::Error> for Error {
    fn from(error: write::Error) -> Self {
        match error {
            write::Error::Interrupted => Error::Interrupted,
            error => Error::Write(error),
        }
    }
}

impl From<import::Error> for Error {
    fn from(error: import::Error) -> Self {
        match error {
            import::Error::Pack(index::Error::Interrupted) => Error::Interrupted,
            import::Error::Walk(error) => error.into(),
            error => Error::Import(error),
        }
    }
}

fn referred(by: &Option<ObjectId>) -> String {
    by.map(|by| format!(", needed by {by}")).unwrap_or_default()
}
