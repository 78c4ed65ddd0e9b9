//! Writes the files of a commit into a work tree.
//!
//! Made for fresh clones: the work tree is empty, the index is written anew. gix writes the files, on all cores and with
//! Git's filters: line endings, encodings, `ident`, and programs that the user configured (`filter.<name>.smudge`,
//! `filter.<name>.process`). This module reads the objects, refuses names that Git refuses before the first file is
//! written, makes the folders of submodules, and writes the index.

mod error;
mod names;
mod objects;
mod watch;

use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bstr::BString;
use gix::index::entry::Mode;
use gix_hash::ObjectId;

pub use error::Error;
use objects::Objects;

use crate::durable::{self, Lock};
use crate::progress::{Progress, Unit};
use crate::repository::{Repository, explain};
use crate::store::Store;

/// What was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Files and symbolic links.
    pub files: u64,
    /// Those of them that are symbolic links.
    pub links: u64,
    /// Submodules, each of which has an empty folder now.
    pub submodules: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Paths that could not be written because something has that name already: another file of the same commit whose
    /// name the file system takes for the same, or a file that was there before.
    pub collisions: Vec<BString>,
}

/// Writes the tree of `commit` (or of the tag or tree that it is) below `work_dir`, and the repository's index, such
/// that `git status` finds nothing changed.
///
/// Nothing is overwritten: see [`Summary::collisions`]. Names that lead out of the work tree or into `.git` are refused
/// before anything is written. When `progress` interrupts, the files written so far stay and the index is not written.
pub fn checkout(
    repository: &Repository,
    commit: ObjectId,
    work_dir: &Path,
    progress: &dyn Progress,
) -> Result<Summary, Error> {
    let store = repository.store()?;
    let objects = Objects::new(&store);
    let tree = objects::tree_of(&store, commit)?;
    let mut options = repository
        .gix()
        .checkout_options(gix::worktree::stack::state::attributes::Source::IdMapping)
        .map_err(|error| Error::Setup {
            message: explain(&error),
        })?;
    options.destination_is_initially_empty = true;
    options.overwrite_existing = false;
    options.keep_going = false;
    let mut index = index(&tree, &store, &objects, options.validate)?;
    names::check(&index, options.validate)?;

    std::fs::create_dir_all(work_dir)
        .map_err(|error| durable::Error::new("create folder", work_dir, error))?;
    let mut summary = Summary::default();
    make_submodules(&index, work_dir, &mut summary)?;
    let total = index.entries().len() as u64;
    progress.begin("Writing files", Some(total), Unit::Files);
    let stop = AtomicBool::new(false);
    let counter = watch::Counter::default();
    let outcome = watch::during(progress, &counter, &stop, || {
        gix::worktree::state::checkout(
            &mut index,
            work_dir,
            objects,
            &counter,
            &watch::Counter::default(),
            &stop,
            options,
        )
    });
    progress.end();
    if progress.interrupted() {
        return Err(Error::Interrupted);
    }
    let outcome = outcome.map_err(|error| Error::Write {
        message: explain(&error),
    })?;
    if let Some(path) = outcome.delayed_paths_unprocessed.first() {
        return Err(Error::Write {
            message: format!("the filter process never delivered '{path}'"),
        });
    }
    summary.bytes = outcome.bytes_written;
    summary.collisions = outcome
        .collisions
        .into_iter()
        .map(|collision| collision.path)
        .collect();
    for entry in index.entries() {
        match entry.mode {
            Mode::SYMLINK => {
                summary.links += 1;
                summary.files += 1;
            }
            Mode::COMMIT => {}
            _ => summary.files += 1,
        }
    }
    summary.files = summary.files.saturating_sub(summary.collisions.len() as u64);
    write_index(index, repository)?;
    Ok(summary)
}

fn index(
    tree: &ObjectId,
    store: &Store,
    objects: &Objects<'_>,
    validate: gix::validate::path::component::Options,
) -> Result<gix::index::State, Error> {
    if tree.is_empty_tree() && !store.contains(tree) {
        return Ok(gix::index::State::new(store.format()));
    }
    gix::index::State::from_tree(tree, objects, validate).map_err(|error| {
        let message = explain(&error);
        match objects.take_failure() {
            Some(failure) => failure,
            None => Error::Tree { id: *tree, message },
        }
    })
}

fn make_submodules(index: &gix::index::State, work_dir: &Path, summary: &mut Summary) -> Result<(), Error> {
    for entry in index.entries().iter().filter(|entry| entry.mode == Mode::COMMIT) {
        let name = entry.path(index);
        let relative = gix::path::from_bstr(name).map_err(|error| Error::Name {
            path: name.to_owned(),
            reason: explain(&error),
        })?;
        // The work tree has no links yet that could lead elsewhere.
        let path = work_dir.join(relative);
        std::fs::create_dir_all(&path).map_err(|error| durable::Error::new("create folder", &path, error))?;
        summary.submodules += 1;
    }
    Ok(())
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
    let failed = |error: &gix::Error| Error::Write {
        message: format!("{}: {}", path.display(), explain(error)),
    };
    gix::index::File::from_state(index, path.clone())
        .write_to(&mut buffered, gix::index::write::Options::default())
        .map_err(|error| failed(&error))?;
    buffered
        .flush()
        .map_err(|error| durable::Error::new("write", &path, error))?;
    drop(buffered);
    lock.commit()?;
    Ok(())
}
