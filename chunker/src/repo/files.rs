//! Writes and removes files of the work tree.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice as _};
use gix::filter::plumbing::driver::apply::{Delay, MaybeDelayed};
use gix::filter::plumbing::pipeline::convert::{ToWorktreeOutcome, to_worktree};
use gix::index::entry::{Mode, Stat};
use gix_object::Kind;
use ingot_engine::chunked::{self, Pointer};
use ingot_engine::progress::Progress;
use ingot_engine::repository::Repository;
use ingot_engine::store::{Cache, Store};
use rayon::prelude::*;

use super::add::{converts_by_default, work_dir};
use super::checkout::Summary;
use super::index::{Change, Index, stat_of};
use super::plan::Plan;
use super::trees::Side;
use crate::attributes::Attributes;
use crate::error::During as _;
use crate::worktree::{self, Journal, Target};
use crate::{Error, paths};

/// Files up to this size are written many at a time.
const SMALL: u64 = 1 << 20;

/// Removes and writes what a plan says; returns what has to change in the index.
pub(super) fn carry_out(
    repository: &Repository,
    index: &Index,
    store: &Store,
    plan: Plan,
    progress: &dyn Progress,
) -> Result<(Summary, Vec<Change>), Error> {
    let top = work_dir(repository)?;
    let mut summary = Summary::default();
    let mut changes = Vec::new();
    check_names(repository, &plan)?;
    for path in &plan.remove {
        remove(
            top,
            path.as_bstr(),
            index.entry(path.as_bstr()).map(|entry| entry.mode),
        )?;
        summary.removed += 1;
        changes.push(Change::Remove(path.clone()));
    }
    changes.extend(plan.forget.iter().cloned().map(Change::Remove));

    // Attributes that the new version brings count already while it is written.
    let mut state = gix::index::State::new(store.format());
    let mut all: BTreeMap<BString, Side> = index
        .state
        .entries()
        .iter()
        .map(|entry| {
            (
                entry.path(&index.state).to_owned(),
                Side {
                    mode: entry.mode,
                    id: entry.id,
                },
            )
        })
        .collect();
    for path in &plan.remove {
        all.remove(path);
    }
    all.extend(plan.write.iter().map(|(path, side)| (path.clone(), *side)));
    for (path, side) in &all {
        state.dangerously_push_entry(
            Stat::default(),
            side.id,
            gix::index::entry::Flags::empty(),
            side.mode,
            path.as_bstr(),
        );
    }
    let mut attributes = Attributes::new(repository, &state, true)?;
    let converts = converts_by_default(repository);
    let (mut plain, mut rest) = (Vec::new(), Vec::new());
    let mut folders = Folders::default();
    for (path, side) in &plan.write {
        let place = folders.make(top, path.as_bstr())?;
        if side.mode == Mode::COMMIT {
            std::fs::create_dir_all(&place).during("create the folder", &place)?;
            changes.push(Change::Set {
                path: path.clone(),
                mode: side.mode,
                id: side.id,
                stat: Stat::default(),
            });
            continue;
        }
        let wishes = match side.mode {
            Mode::SYMLINK => crate::attributes::Wishes::default(),
            _ => attributes.of(path.as_bstr())?,
        };
        let simple = !wishes.chunked && !wishes.converted && !converts && side.mode != Mode::SYMLINK;
        let job = Job { path, side, place };
        match simple && store.header(&side.id)?.is_some_and(|(_, size)| size <= SMALL) {
            true => plain.push(job),
            false => rest.push((job, wishes)),
        }
    }
    let written: Vec<Result<u64, Error>> = plain
        .par_iter()
        .map_init(
            || (Cache::new(1 << 20), Vec::new()),
            |(cache, bytes), job| {
                if progress.interrupted() {
                    return Err(Error::Interrupted);
                }
                read_blob(store, job, cache, bytes)?;
                clear_way(&job.place)?;
                worktree::write_file(&job.target(None), bytes)?;
                progress.advance(1);
                Ok(bytes.len() as u64)
            },
        )
        .collect();
    for written in written {
        summary.bytes += written?;
    }
    let journal = Journal::of(repository);
    let mut pipeline = None;
    // Links come last, so that nothing is written through one.
    rest.sort_by_key(|(job, _)| job.side.mode == Mode::SYMLINK);
    for (job, wishes) in &rest {
        if progress.interrupted() {
            return Err(Error::Interrupted);
        }
        clear_way(&job.place)?;
        let mut cache = Cache::new(0);
        let pointer = match wishes.chunked {
            true => chunked::read_pointer(store, &job.side.id, &mut cache)?,
            false => None,
        };
        summary.bytes += match pointer {
            Some(pointer) => chunked_file(
                index,
                store,
                job,
                &pointer,
                &journal,
                &mut summary.pointers,
                progress,
            )?,
            None => other_file(repository, store, job, index.links, &mut pipeline)?,
        };
        progress.advance(1);
    }
    for job in plain.iter().chain(rest.iter().map(|(job, _)| job)) {
        let (_, stat) = stat_of(&job.place)?;
        changes.push(Change::Set {
            path: job.path.clone(),
            mode: job.side.mode,
            id: job.side.id,
            stat,
        });
    }
    summary.written = (plain.len() + rest.len()) as u64;
    Ok((summary, changes))
}

struct Job<'p> {
    path: &'p BString,
    side: &'p Side,
    place: PathBuf,
}

impl Job<'_> {
    fn target<'t>(&'t self, holds: Option<&'t Pointer>) -> Target<'t> {
        Target {
            path: &self.place,
            executable: self.side.mode == Mode::FILE_EXECUTABLE,
            holds,
        }
    }
}

fn read_blob(store: &Store, job: &Job<'_>, cache: &mut Cache, bytes: &mut Vec<u8>) -> Result<(), Error> {
    match store.read(&job.side.id, cache, bytes)? {
        Some(Kind::Blob) => Ok(()),
        Some(kind) => Err(Error::Other(format!(
            "'{}' is a {kind} where a file belongs",
            job.path
        ))),
        None => Err(Error::Other(format!(
            "'{}': object {} is missing",
            job.path, job.side.id
        ))),
    }
}

/// Puts a chunked file together, or leaves its pointer where that cannot be done.
fn chunked_file(
    index: &Index,
    store: &Store,
    job: &Job<'_>,
    pointer: &Pointer,
    journal: &Journal,
    pointers: &mut Vec<(BString, String)>,
    progress: &dyn Progress,
) -> Result<u64, Error> {
    // What the file holds now is known if its data says that it is what was added.
    let holds = match index.entry(job.path.as_bstr()) {
        Some(entry) => match gix::index::fs::Metadata::from_path_no_follow(&job.place) {
            Ok(meta) if index.is_unchanged(entry, &meta) => {
                chunked::read_pointer(store, &entry.id, &mut Cache::new(0))?
                    .filter(|pointer| pointer.size == meta.len())
            }
            _ => None,
        },
        None => None,
    };
    let target = job.target(holds.as_ref());
    match worktree::restore(store, pointer, &target, Some(journal), progress) {
        Ok((_, written)) => Ok(written),
        Err(Error::Chunked(error)) if error.is_missing() || error.is_damage() => {
            pointers.push((job.path.clone(), error.to_string()));
            worktree::write_file(&target, &pointer.to_bytes())?;
            Ok(0)
        }
        Err(error) => Err(error),
    }
}

fn other_file<'r>(
    repository: &'r Repository,
    store: &Store,
    job: &Job<'_>,
    links: bool,
    pipeline: &mut Option<gix::filter::Pipeline<'r>>,
) -> Result<u64, Error> {
    let mut cache = Cache::new(0);
    if job.side.mode == Mode::SYMLINK {
        let mut target = Vec::new();
        read_blob(store, job, &mut cache, &mut target)?;
        if links {
            let _ = std::fs::remove_file(&job.place);
            let target = gix::path::from_byte_slice(&target)
                .map_err(|error| Error::Other(format!("'{}': {error}", job.path)))?;
            gix::fs::symlink::create(target, &job.place).during("create", &job.place)?;
        } else {
            worktree::write_file(&job.target(None), &target)?;
        }
        return Ok(target.len() as u64);
    }
    let pipeline = match pipeline {
        Some(pipeline) => pipeline,
        none => none.insert(
            (repository.gix().filter_pipeline(None))
                .map_err(|error| Error::Other(format!("filters cannot be used: {error}")))?
                .0,
        ),
    };
    let mut bytes = Vec::new();
    read_blob(store, job, &mut cache, &mut bytes)?;
    let options = to_worktree::Options {
        can_delay: Delay::Forbid,
        unknown_encoding: to_worktree::UnknownEncoding::Ignore,
    };
    let failed = |error: String| Error::Other(format!("'{}' cannot be converted: {error}", job.path));
    match pipeline
        .convert_to_worktree(&bytes, job.path.as_bstr(), options)
        .map_err(|error| failed(error.to_string()))?
    {
        ToWorktreeOutcome::Unchanged(bytes) | ToWorktreeOutcome::Buffer(bytes) => {
            worktree::write_file(&job.target(None), bytes)?;
            Ok(bytes.len() as u64)
        }
        ToWorktreeOutcome::Process(MaybeDelayed::Immediate(mut output)) => {
            Ok(worktree::copy_file(&job.target(None), &mut output)?.len())
        }
        ToWorktreeOutcome::Process(MaybeDelayed::Delayed(_)) => Err(failed(
            "the filter put it off without being allowed to".to_owned(),
        )),
    }
}

/// Refuses names that Git refuses, before anything is written.
fn check_names(repository: &Repository, plan: &Plan) -> Result<(), Error> {
    let options = repository
        .gix()
        .checkout_options(gix::worktree::stack::state::attributes::Source::IdMapping)
        .map_err(|error| Error::Other(format!("the checkout cannot be prepared: {error}")))?
        .validate;
    for (path, side) in &plan.write {
        let mode = match side.mode {
            Mode::SYMLINK => Some(gix::validate::path::component::Mode::Symlink),
            _ => None,
        };
        let mut parts = path.split_str("/").peekable();
        while let Some(part) = parts.next() {
            let mode = if parts.peek().is_none() { mode } else { None };
            gix::validate::path::component(part.as_bstr(), mode, options).map_err(|error| {
                Error::Refused {
                    path: path.clone(),
                    reason: error.to_string(),
                }
            })?;
        }
    }
    Ok(())
}

/// Folders that are known to be there and to be folders, not links.
#[derive(Default)]
struct Folders {
    known: BTreeSet<BString>,
}

impl Folders {
    /// Makes the folders above a path. A link or file in the place of one is removed: what Git tracks there is gone or
    /// was found to be unchanged.
    fn make(&mut self, top: &Path, path: &BStr) -> Result<PathBuf, Error> {
        for slash in path.find_iter(b"/") {
            let folder = &path[..slash];
            if self.known.contains(folder.as_bstr()) {
                continue;
            }
            let at = paths::below(top, folder.as_bstr());
            match std::fs::symlink_metadata(&at) {
                Ok(meta) if meta.is_dir() => {}
                Ok(_) => {
                    return Err(Error::LocalChanges {
                        paths: vec![folder.into()],
                    });
                }
                Err(_) => std::fs::create_dir(&at).during("create the folder", &at)?,
            }
            self.known.insert(folder.into());
        }
        Ok(paths::below(top, path))
    }
}

/// An empty folder in the place of a file goes; one that is not empty holds something that is not tracked.
fn clear_way(place: &Path) -> Result<(), Error> {
    match std::fs::symlink_metadata(place) {
        Ok(meta) if meta.is_dir() => std::fs::remove_dir(place).during("make way for", place),
        _ => Ok(()),
    }
}

/// Removes a file and the folders that become empty with it.
fn remove(top: &Path, path: &BStr, mode: Option<Mode>) -> Result<(), Error> {
    let at = paths::below(top, path);
    // Nothing is removed through a link.
    for slash in path.find_iter(b"/") {
        let folder = paths::below(top, path[..slash].as_bstr());
        if !std::fs::symlink_metadata(&folder).is_ok_and(|meta| meta.is_dir()) {
            return Ok(());
        }
    }
    if mode == Some(Mode::COMMIT) {
        let _ = std::fs::remove_dir(&at);
        return Ok(());
    }
    match std::fs::remove_file(&at) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(_) if at.is_dir() => return Ok(()),
        Err(error) => return Err(error).during("remove", &at),
    }
    let mut folder = at.parent();
    while let Some(at) = folder.filter(|at| *at != top) {
        if std::fs::remove_dir(at).is_err() {
            break;
        }
        folder = at.parent();
    }
    Ok(())
}
