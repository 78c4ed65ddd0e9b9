//! Why one reference of a push is refused while the others may go on.

use gix_hash::ObjectId;

/// A reference that is not moved, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The value in the store is not known here, so it cannot be told whether the update would lose history.
    #[error("fetch first")]
    FetchFirst,
    /// The new value does not contain the one in the store.
    #[error("non-fast-forward")]
    NonFastForward,
    /// A tag of that name is there; tags move only by force.
    #[error("already exists")]
    AlreadyExists,
    /// The value in the store is not what the lease says.
    #[error("stale info")]
    StaleInfo,
    /// Protocol v5 carries branches and tags only.
    #[error("unsupported ref namespace for {name}; only refs/heads/* and refs/tags/* are supported")]
    Namespace {
        /// The full name.
        name: String,
    },
    /// Git would not accept the name.
    #[error("invalid Git ref name {name}")]
    Name {
        /// The name, shortened and escaped.
        name: String,
    },
    /// Protocol v5 stores names as text.
    #[error("the name {name} is not UTF-8, which the encrypted format cannot store; rename the ref")]
    NotText {
        /// The name with escapes in place of what is not text.
        name: String,
    },
    /// One name is a folder of the other.
    #[error("{name} and {other} cannot both exist; delete or rename one of them")]
    Conflict {
        /// The refused name.
        name: String,
        /// A name that is there, or that the same push makes.
        other: String,
    },
    /// A branch has to point at a commit.
    #[error("branch ref {name} must resolve to a commit, but {id} is a {kind}")]
    NotACommit {
        /// The full name.
        name: String,
        /// What it would have pointed at.
        id: ObjectId,
        /// What that is.
        kind: gix::object::Kind,
    },
    /// There is nothing to delete.
    #[error("remote ref {name} does not exist")]
    Absent {
        /// The full name.
        name: String,
    },
    /// Clones check that branch out.
    #[error(
        "cannot delete {name} because it is advertised as the remote default branch; use --force to delete it"
    )]
    DefaultBranch {
        /// The full name.
        name: String,
    },
    /// The local revision does not exist.
    #[error("{revision} does not match anything here")]
    Source {
        /// What was to be pushed.
        revision: String,
    },
    /// Another reference of the same atomic push was refused.
    #[error("atomic push failed")]
    Atomic,
}

impl Rejection {
    /// The text that goes to Git. Git maps some texts to its own statuses, which read a little differently (see
    /// `transport-helper.c`); others are shown as they are.
    pub fn as_git_status(&self) -> String {
        match self {
            Rejection::NonFastForward => "non-fast forward".to_owned(),
            other => other.to_string(),
        }
    }
}
