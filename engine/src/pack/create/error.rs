//! What can go wrong while a pack is created.

use crate::durable;

/// Why no pack was created. Nothing of it is visible then, unless the failing call was the last one, which makes names
/// durable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be written.
    #[error(transparent)]
    File(#[from] durable::Error),
    /// More objects than a pack can number.
    #[error("one pack cannot hold more than 2,147,483,647 objects")]
    TooMany,
    /// What was to be stored could not be read.
    #[error("could not read what was to be stored")]
    Source(#[source] std::io::Error),
    /// A streamed blob was neither finished nor abandoned.
    #[error("a blob was begun in this pack and not ended")]
    Unfinished,
    /// A streamed blob was given more or fewer bytes than announced.
    #[error("a blob of {expected} bytes was announced, but {actual} came")]
    Length {
        /// What was announced.
        expected: u64,
        /// What came.
        actual: u64,
    },
}

impl From<Error> for durable::Error {
    fn from(error: Error) -> durable::Error {
        match error {
            Error::File(error) => error,
            other => {
                let path = std::path::Path::new("a new pack");
                durable::Error::new("write", path, std::io::Error::other(other))
            }
        }
    }
}
