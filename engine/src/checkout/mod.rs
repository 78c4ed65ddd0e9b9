//! Writes the files of a commit into a work tree.
//!
//! Made for fresh clones: the work tree is empty, the index is written anew. Names that Git refuses are refused before
//! the first file is written. Then whole folders are dealt out to all cores; gix finds the attributes and applies line
//! endings, encodings, and the programs that the user configured (`filter.<name>.smudge`, `filter.<name>.process`).
//! Symbolic links come last, so that nothing can be written through one.

mod content;
mod entries;
mod error;
mod names;
mod objects;
mod worker;
mod write;

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use bstr::BString;
use gix::index::entry::Mode;
use gix_hash::ObjectId;

pub use error::Error;

use crate::durable::{self, Lock};
use crate::phase::Phase;
use crate::progress::{Progress, Unit};
use crate::repository::{Repository, explain};

/// What was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Files and symbolic links.
    pub files: u64,
    /// Those of them that are symbolic links.
    pub links: u64,
    /// Submodules, each of which has an empty folder now.
    pub submodules: u64,
    /// Bytes written into files.
    pub bytes: u64,
    /// Chunked files that were put together from their chunks.
    pub chunked: u64,
    /// Chunked files whose pointers were written instead, each with the reason: chunks are absent or damaged. Sorted.
    pub pointers: Vec<(BString, String)>,
    /// Paths that could not be written because something has that name already: another file of the same commit whose
    /// name the file system takes for the same, or a file that was there before. Sorted.
    pub collisions: Vec<BString>,
}

/// Writes the tree of `commit` (or of the tag or tree that it is) below `work_dir`, and the repository's index, such
/// that `git status` finds nothing changed. Uses as many threads as `checkout.workers` says, else one for each core.
///
/// Nothing is overwritten: see [`Summary::collisions`]. When this fails or `progress` interrupts, the files written so
/// far stay, and the index is not written. Files are not synced, as Git does not sync them: they can be had again.
pub fn checkout(
    repository: &Repository,
    commit: ObjectId,
    work_dir: &Path,
    progress: &dyn Progress,
) -> Result<Summary, Error> {
    let mut phase = Phase::begin("checkout");
    let store = repository.store()?;
    let tree = objects::tree_of(&store, commit)?;
    let options = repository
        .gix()
        .checkout_options(gix::worktree::stack::state::attributes::Source::IdMapping)
        .map_err(|error| Error::Setup {
            message: explain(&error),
        })?;
    let mut index = entries::collect(&store, tree, progress)?;
    names::check(&index, options.validate)?;
    std::fs::create_dir_all(work_dir)
        .map_err(|error| durable::Error::new("create folder", work_dir, error))?;

    progress.begin("Writing files", Some(index.entries().len() as u64), Unit::Files);
    phase.objects(index.entries().len() as u64);
    let summary = write::all(repository, &store, &mut index, work_dir, options, progress)?;
    progress.end();
    write_index(index, repository)?;
    Ok(summary)
}

fn write_index(index: gix::index::State, repository: &Repository) -> Result<(), Error> {
    let path = repository.gix().index_path();
    let mut lock =
        Lock::acquire(durable::real(), &path, 0o666, Duration::from_millis(500)).map_err(|error| {
            if error.kind() == std::io::ErrorKind::AlreadyExists {
                Error::Locked {
                    lock: error.path().to_owned(),
                }
            } else {
                error.into()
            }
        })?;
    let mut buffered = std::io::BufWriter::with_capacity(64 * 1024, &mut lock);
    gix::index::File::from_state(index, path.clone())
        .write_to(&mut buffered, gix::index::write::Options::default())
        .map_err(|error| Error::Index {
            path: path.clone(),
            message: explain(&error),
        })?;
    buffered
        .flush()
        .map_err(|error| durable::Error::new("write", &path, error))?;
    drop(buffered);
    lock.commit()?;
    Ok(())
}

/// Whether an entry is a file with content.
fn is_file(mode: Mode) -> bool {
    mode == Mode::FILE || mode == Mode::FILE_EXECUTABLE
}
