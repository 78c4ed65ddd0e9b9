//! From commits and the index into the work tree.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice as _};
use gix::filter::plumbing::driver::apply::{Delay, MaybeDelayed};
use gix::filter::plumbing::pipeline::convert::{ToWorktreeOutcome, to_worktree};
use gix::index::entry::{Mode, Stat};
use gix_hash::ObjectId;
use gix_object::Kind;
use ingot_engine::chunked::{self, Pointer};
use ingot_engine::progress::Progress;
use ingot_engine::refs::{self, Edit};
use ingot_engine::repository::Repository;
use ingot_engine::store::{Cache, Store};
use rayon::prelude::*;

use super::add::{converts_by_default, excludes_of, is_below, is_excluded, work_dir};
use super::commit::{head_commit, tree_of};
use super::index::{Change, Index, stat_of};
use super::scan::{Found, scan};
use super::status::Compare;
use super::trees::{Flat, Side, flatten};
use crate::attributes::Attributes;
use crate::error::During as _;
use crate::worktree::{self, Journal, Target};
use crate::{Error, paths};

/// Files up to this size are written many at a time.
const SMALL: u64 = 1 << 20;

/// What was done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Files that were written.
    pub written: u64,
    /// Files that were removed.
    pub removed: u64,
    /// Bytes that were written.
    pub bytes: u64,
    /// Chunked files whose pointers were written instead, with the reason.
    pub pointers: Vec<(BString, String)>,
}

/// Where to switch to.
#[derive(Debug, Clone)]
pub struct Switch {
    /// A branch, or with `detach` or without such a branch, any commit.
    pub target: String,
    /// Makes a branch of that name at `start`, or at the current commit.
    pub create: bool,
    /// For `create`.
    pub start: Option<String>,
    /// Leaves the branch.
    pub detach: bool,
    /// Gives up local changes.
    pub force: bool,
}

/// Switches the work tree, the index and `HEAD`. Local changes that are in the way are an error that names them.
pub fn switch(repository: &Repository, switch: &Switch, progress: &dyn Progress) -> Result<Summary, Error> {
    let mut index = Index::lock(repository)?;
    let store = repository.store()?;
    worktree::recover(repository, &store)?;
    let before = head_commit(repository)?;
    let branch = format!("refs/heads/{}", switch.target);
    let spec = match (switch.create, &switch.start) {
        (true, Some(start)) => Some(start.clone()),
        (true, None) => None,
        (false, _) => Some(switch.target.clone()),
    };
    let is_branch = !switch.create && !switch.detach && refs::resolve(repository, &branch).is_ok();
    if !is_branch && !switch.create && !switch.detach && !refs_to_commit(repository, &switch.target) {
        return Err(Error::Other(format!(
            "there is no branch '{}'; make one with: git-chunk switch -c {}",
            switch.target, switch.target
        )));
    }
    let commit = match spec {
        Some(spec) => Some(commit_of(repository, &spec)?),
        None => before,
    };
    let head = match before {
        Some(before) => flatten(&store, tree_of(&store, before)?)?,
        None => Flat::new(),
    };
    let target = match commit {
        Some(commit) => flatten(&store, tree_of(&store, commit)?)?,
        None => Flat::new(),
    };
    let plan = Plan::switch(repository, &index, &store, &head, &target, switch.force)?;
    let (summary, changes) = carry_out(repository, &index, &store, plan, progress)?;
    index.apply(changes);
    index.write()?;

    let from = describe(repository)?;
    let message = format!("checkout: moving from {from} to {}", switch.target);
    let head = refs::validate("HEAD")?;
    let mut edits = Vec::new();
    if switch.create {
        let name = refs::validate(&branch)?;
        if let Some(commit) = commit {
            edits.push(
                Edit::set(name.clone(), commit)
                    .expecting(refs::Expected::Absent)
                    .because(format!(
                        "branch: Created from {}",
                        switch.start.as_deref().unwrap_or("HEAD")
                    )),
            );
        }
        edits.push(Edit::point(head, name).because(message));
    } else if is_branch {
        edits.push(Edit::point(head, refs::validate(&branch)?).because(message));
    } else if let Some(commit) = commit {
        edits.push(Edit::set(head, commit).detached().because(message));
    }
    refs::apply(repository, edits)?;
    Ok(summary)
}

fn refs_to_commit(repository: &Repository, spec: &str) -> bool {
    refs::resolve(repository, spec).is_ok()
}

fn describe(repository: &Repository) -> Result<BString, Error> {
    Ok(match refs::head(repository)? {
        refs::Head::Branch { name, .. } => name.shorten().to_owned(),
        refs::Head::Detached(id) => id.to_string().into(),
    })
}

/// The commit that a revision names; tags are followed.
pub fn commit_of(repository: &Repository, spec: &str) -> Result<ObjectId, Error> {
    let resolved = refs::resolve(repository, spec)?;
    let (id, kind) = refs::peel(repository, resolved.id)?;
    match kind {
        Kind::Commit => Ok(id),
        kind => Err(Error::Other(format!("'{spec}' is a {kind}, not a commit"))),
    }
}

/// Where files are restored from.
#[derive(Debug, Clone, Default)]
pub struct Restore {
    /// A commit; `None` for the index.
    pub source: Option<String>,
    /// Gives up local changes of the files.
    pub force: bool,
    /// Only chunked files of which the pointer is in the work tree.
    pub pointers: bool,
}

/// Writes the files at the given paths anew.
pub fn restore(
    repository: &Repository,
    specs: &[BString],
    options: &Restore,
    progress: &dyn Progress,
) -> Result<Summary, Error> {
    let mut index = Index::lock(repository)?;
    let store = repository.store()?;
    worktree::recover(repository, &store)?;
    let from: Flat = match &options.source {
        Some(source) => flatten(&store, tree_of(&store, commit_of(repository, source)?)?)?,
        None => index
            .state
            .entries()
            .iter()
            .filter(|entry| entry.stage() == gix::index::entry::Stage::Unconflicted)
            .map(|entry| {
                (
                    entry.path(&index.state).to_owned(),
                    Side {
                        mode: entry.mode,
                        id: entry.id,
                    },
                )
            })
            .collect(),
    };
    let mut plan = Plan::default();
    let mut in_the_way = Vec::new();
    let mut compare = Compare::new(repository, &index, &store)?;
    let top = work_dir(repository)?;
    for spec in specs {
        if !from.keys().any(|path| is_below(path.as_bstr(), spec.as_bstr())) {
            return Err(Error::NoMatch { path: spec.clone() });
        }
    }
    for (path, side) in &from {
        if !specs.iter().any(|spec| is_below(path.as_bstr(), spec.as_bstr())) || side.mode == Mode::COMMIT {
            continue;
        }
        let now = there(top, path.as_bstr());
        let entry = index.entry(path.as_bstr());
        let same = match (&now, entry) {
            (Some(found), Some(entry)) => compare.is_same(entry, found)?,
            (None, _) => true,
            (Some(_), None) => false,
        };
        if options.pointers && compare.pointers.last() != Some(path) {
            continue;
        }
        if !same && !options.force {
            in_the_way.push(path.clone());
        }
        let unchanged = same && now.is_some() && entry.is_some_and(|entry| entry.id == side.id);
        if !unchanged || options.pointers {
            plan.write.insert(path.clone(), *side);
        }
    }
    if !in_the_way.is_empty() {
        return Err(Error::LocalChanges { paths: in_the_way });
    }
    drop(compare);
    let from_commit = options.source.is_some();
    let (summary, changes) = carry_out(repository, &index, &store, plan, progress)?;
    // From another commit, the work tree alone changes, as with Git: the index keeps what it has.
    if !from_commit {
        index.apply(changes);
        index.write()?;
    }
    Ok(summary)
}

/// What is at a path of the work tree, if it is a file or link.
fn there(top: &Path, path: &BStr) -> Option<Found> {
    let at = paths::below(top, path);
    let meta = gix::index::fs::Metadata::from_path_no_follow(&at).ok()?;
    Some(Found {
        path: path.to_owned(),
        repository: meta.is_dir() && at.join(".git").exists(),
        meta,
    })
}

/// What has to be done.
#[derive(Debug, Default)]
struct Plan {
    remove: BTreeSet<BString>,
    write: BTreeMap<BString, Side>,
    /// Paths whose index entries alone go.
    forget: BTreeSet<BString>,
}

impl Plan {
    /// Git's rules for two trees: what is the same in both stays as it is, also if it was changed locally; what the
    /// index has already stays, too; everything else must be as the old tree has it.
    fn switch(
        repository: &Repository,
        index: &Index,
        store: &Store,
        head: &Flat,
        target: &Flat,
        force: bool,
    ) -> Result<Plan, Error> {
        let top = work_dir(repository)?;
        let mut plan = Plan::default();
        let mut compare = Compare::new(repository, index, store)?;
        let mut excludes = None;
        let mut lost = Vec::new();
        if !force && let Some(path) = index.conflicts().first() {
            return Err(Error::Other(format!("'{path}' is in conflict; settle it first")));
        }
        let mut paths: BTreeSet<&BString> = head.keys().chain(target.keys()).collect();
        let indexed: Vec<BString> = index
            .state
            .entries()
            .iter()
            .map(|entry| entry.path(&index.state).to_owned())
            .collect();
        paths.extend(&indexed);
        for path in paths {
            let (old, new) = (head.get(path), target.get(path));
            let entry = index.entry(path.as_bstr());
            let now = entry.map(|entry| Side {
                mode: entry.mode,
                id: entry.id,
            });
            let found = there(top, path.as_bstr());
            if force {
                let as_wanted = now.as_ref() == new
                    && match (entry, &found) {
                        (Some(entry), Some(found)) => compare.is_same(entry, found)?,
                        (None, _) => true,
                        (Some(_), None) => false,
                    };
                if !as_wanted {
                    plan.add(path, new, now.is_some());
                }
                continue;
            }
            if old == new || now.as_ref() == new {
                continue;
            }
            if now.as_ref() != old {
                lost.push(path.clone());
                continue;
            }
            let safe = match (entry, &found) {
                (_, None) => true,
                (Some(entry), Some(found)) => {
                    (entry.mode == Mode::COMMIT || found.meta.is_dir()) || compare.is_same(entry, found)?
                }
                // Something untracked is in the way of a new file. Ignored files may go, as with Git; folders are
                // dealt with when they turn out not to be empty.
                (None, Some(found)) => {
                    found.meta.is_dir() || {
                        let excludes = match &mut excludes {
                            Some(excludes) => excludes,
                            none => none.insert(excludes_of(repository, &index.state)?),
                        };
                        is_excluded(excludes, path.as_bstr())?
                    }
                }
            };
            match safe {
                true => plan.add(path, new, now.is_some()),
                false => lost.push(path.clone()),
            }
        }
        lost.extend(plan.obstacles(top)?);
        match lost.is_empty() {
            true => Ok(plan),
            false => Err(Error::LocalChanges { paths: lost }),
        }
    }

    /// Untracked things in the way: a file where a folder is needed, or files below a folder where a file is.
    fn obstacles(&self, top: &Path) -> Result<Vec<BString>, Error> {
        let mut obstacles = BTreeSet::new();
        let mut folders = BTreeSet::new();
        for path in self.write.keys() {
            for slash in path.find_iter(b"/") {
                let folder = path[..slash].as_bstr();
                if !folders.insert(folder.to_owned()) || self.remove.contains(folder) {
                    continue;
                }
                let at = paths::below(top, folder);
                if std::fs::symlink_metadata(&at).is_ok_and(|meta| !meta.is_dir()) {
                    obstacles.insert(folder.to_owned());
                }
            }
            let at = paths::below(top, path.as_bstr());
            if self.write[path].mode != Mode::COMMIT
                && std::fs::symlink_metadata(&at).is_ok_and(|meta| meta.is_dir())
            {
                let mut prefix = path.clone();
                prefix.push(b'/');
                let found = scan(top, prefix.as_bstr())?;
                let strangers = found.into_iter().map(|found| found.path);
                obstacles.extend(strangers.filter(|path| !self.remove.contains(path)));
            }
        }
        Ok(obstacles.into_iter().collect())
    }

    fn add(&mut self, path: &BString, new: Option<&Side>, was: bool) {
        match new {
            Some(side) => {
                self.write.insert(path.clone(), *side);
            }
            None if was => {
                self.remove.insert(path.clone());
            }
            None => {
                self.forget.insert(path.clone());
            }
        }
    }
}

fn carry_out(
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
