//! From a file to chunks in a pack.
//!
//! A [`Writer`] belongs to one command and makes one pack. A file is read a few mebibytes at a time; while the next ones
//! are read and cut, chunks are hashed and compressed on all cores and appended to the pack. Chunks that the repository
//! has already are not written. Memory does not grow with the file.

mod cutter;
mod earlier;
mod guard;
mod guided;
mod lists;
mod probe;
mod source;
mod writer;

pub use guard::{remove_chunks, use_chunks};
pub use lists::Lists;
pub use probe::compresses;
pub use source::Source;
pub use writer::{Added, KEEP, Writer};
