//! Why a walk could not answer.

use gix_hash::ObjectId;
use gix_object::Kind;

use crate::object::{links, tree_delta};
use crate::store;

/// Why a walk could not answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An object that should be there is not.
    #[error("object {id} is missing{}", referred(.referrer))]
    Missing {
        /// The absent object.
        id: ObjectId,
        /// What refers to it; `None` for an object that was asked for by its id.
        referrer: Option<ObjectId>,
    },
    /// An object is not of the kind that the reference to it needs.
    #[error("object {id} is a {actual} where a {expected} is needed{}", referred(.referrer))]
    WrongKind {
        /// The object.
        id: ObjectId,
        /// What it has to be.
        expected: Kind,
        /// What it is.
        actual: Kind,
        /// What refers to it; `None` for an object that was asked for by its id.
        referrer: Option<ObjectId>,
    },
    /// An object that can be read but not understood.
    #[error("object {id} is damaged: {fault}")]
    Malformed {
        /// The object.
        id: ObjectId,
        /// What is wrong with it.
        fault: Fault,
    },
    /// The objects could not be read.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// [`crate::progress::Progress::interrupted`] said so.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// True if something that refers to objects may be wrong in place of the objects.
    pub(super) fn is_contradiction(&self) -> bool {
        matches!(
            self,
            Error::Missing { .. } | Error::WrongKind { .. } | Error::Malformed { .. }
        )
    }
}

/// What is wrong with an object that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Its content is not what objects of its kind have.
    #[error(transparent)]
    Links(#[from] links::Error),
    /// Its content or its delta is not that of a tree.
    #[error(transparent)]
    Tree(#[from] tree_delta::Error),
    /// It is stored as a delta of something that is not before it in its pack.
    #[error("its delta base lies outside of the pack")]
    Base,
}

fn referred(referrer: &Option<ObjectId>) -> String {
    match referrer {
        Some(id) => format!(" (needed by {id})"),
        None => String::new(),
    }
}
