//! Why an import failed.

use crate::{durable, pack, store, walk};

/// Why an import failed. Nothing of it is visible in the repository then, unless publishing had begun; and even then,
/// what is visible is whole.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A pack was refused.
    #[error(transparent)]
    Pack(#[from] pack::index::Error),
    /// The objects that are here already, or those in quarantine, cannot be read.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The objects could not be checked for completeness.
    #[error(transparent)]
    Walk(#[from] walk::Error),
    /// A file could not be written.
    #[error(transparent)]
    File(#[from] durable::Error),
}
