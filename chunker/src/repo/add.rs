//! From the work tree into the index.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice as _};
use gix::filter::plumbing::pipeline::convert::ToGitOutcome;
use gix::index::entry::{Mode, Stat};
use gix_hash::ObjectId;
use gix_object::Kind;
use ingot_engine::chunked;
use ingot_engine::pack::create::{self, Creator, Encoder, Object};
use ingot_engine::pack::inflate::Level;
use ingot_engine::phase::Phase;
use ingot_engine::progress::Progress;
use ingot_engine::repository::Repository;
use ingot_engine::store::{Cache, Store};
use rayon::prelude::*;

use super::index::{Change, Index};
use super::scan::{Found, scan};
use crate::attributes::{Attributes, Wishes};
use crate::error::During as _;
use crate::filter::THRESHOLD;
use crate::store::{Source, Writer, compresses, use_chunks};
use crate::{Error, paths};

/// Files from this size on are not held in memory.
const STREAMED: u64 = 16 << 20;
/// Bytes of small files that are read, hashed and compressed together.
const BATCH: u64 = 16 << 20;

/// How to add.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Ignored files, too, where they are named.
    pub force: bool,
    /// Only files that the index has.
    pub update: bool,
}

/// What was added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Files whose content was read, and that are in the index now.
    pub added: Vec<BString>,
    /// Those of them that are chunked files.
    pub chunked: u64,
    /// Paths that are no longer in the index, because the files are gone.
    pub removed: Vec<BString>,
    /// Bytes of new chunks.
    pub new_chunk_bytes: u64,
    /// Folders that are repositories of their own and were left out.
    pub repositories: Vec<BString>,
}

/// Turns paths as the user gives them, relative to the folder `here`, into paths relative to the top.
pub fn specs(repository: &Repository, here: &Path, given: &[PathBuf]) -> Result<Vec<BString>, Error> {
    let top = work_dir(repository)?;
    let real_top = top.canonicalize().during("examine", top)?;
    let real_here = here.canonicalize().during("examine", here)?;
    given
        .iter()
        .map(|path| {
            let refused = |reason: &str| Error::Refused {
                path: paths::git(path),
                reason: reason.to_owned(),
            };
            let mut parts: Vec<std::ffi::OsString> = Vec::new();
            // Symbolic links in the folder where the user stands are followed, those in what is named are not.
            let whole = real_here.join(path);
            for part in whole.components() {
                match part {
                    std::path::Component::ParentDir => {
                        parts.pop();
                    }
                    std::path::Component::CurDir => {}
                    part => parts.push(part.as_os_str().to_owned()),
                }
            }
            let whole: PathBuf = parts.iter().collect();
            let relative = whole
                .strip_prefix(&real_top)
                .or_else(|_| whole.strip_prefix(top))
                .map_err(|_| refused("it is outside of the work tree"))?;
            let spec = paths::git(relative);
            match spec.split_str("/").any(|part| part.eq_ignore_ascii_case(b".git")) {
                true => Err(refused("it belongs to the repository itself")),
                false => Ok(spec),
            }
        })
        .collect()
}

pub(crate) fn work_dir(repository: &Repository) -> Result<&Path, Error> {
    repository
        .work_dir()
        .ok_or_else(|| Error::Other(format!("{} has no work tree", repository.git_dir().display())))
}

/// True if `path` is `spec` or lies below it. The empty spec is the top.
pub fn is_below(path: &BStr, spec: &BStr) -> bool {
    spec.is_empty()
        || path
            .strip_prefix(spec.as_bytes())
            .is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

/// Adds what is at the given paths, which are relative to the top; new files, changed ones, and the absence of others.
pub fn add(
    repository: &Repository,
    specs: &[BString],
    options: Options,
    progress: &dyn Progress,
) -> Result<Summary, Error> {
    let _phase = Phase::begin("add");
    let mut index = Index::lock(repository)?;
    let _guard = use_chunks(repository)?;
    let store = repository.store()?;
    crate::worktree::recover(repository, &store)?;
    let (summary, changes) = changes(repository, &index, &store, specs, options, progress)?;
    index.apply(changes);
    index.write()?;
    Ok(summary)
}

fn changes(
    repository: &Repository,
    index: &Index,
    store: &Store,
    specs: &[BString],
    options: Options,
    progress: &dyn Progress,
) -> Result<(Summary, Vec<Change>), Error> {
    let top = work_dir(repository)?;
    let mut summary = Summary::default();
    let found = collect(top, index, specs)?;
    let selected = select(repository, index, found, specs, options, &mut summary)?;
    let mut changes = removals(index, &selected, specs, &mut summary);

    let mut attributes = Attributes::new(repository, &index.state, false)?;
    let converts = converts_by_default(repository);
    let (mut small, mut others) = (Vec::new(), Vec::new());
    for found in &selected {
        let entry = index.entry(found.path.as_bstr());
        if entry.is_some_and(|entry| index.is_unchanged(entry, &found.meta)) {
            continue;
        }
        let Some(mode) = index.mode_of(&found.meta, entry) else {
            continue;
        };
        let mut wishes = match mode {
            Mode::SYMLINK => Wishes::default(),
            _ => attributes.of(found.path.as_bstr())?,
        };
        wishes.chunked &= found.meta.len() >= THRESHOLD as u64;
        wishes.converted |= converts;
        let task = Task {
            found,
            mode,
            wishes,
            before: entry.map(|entry| entry.id),
        };
        match wishes.chunked || (wishes.converted && mode != Mode::SYMLINK) || found.meta.len() >= STREAMED {
            true => others.push(task),
            false => small.push(task),
        }
    }
    let mut adder = Adder {
        top,
        store,
        blobs: Creator::begin(
            repository.objects_dir(),
            store.format(),
            &create::Options::default(),
        ),
        chunks: Writer::new(repository, store),
        changes: Vec::new(),
    };
    adder.small(&small, progress)?;
    let mut pipeline = None;
    for task in &others {
        if progress.interrupted() {
            return Err(Error::Interrupted);
        }
        if task.wishes.chunked {
            summary.chunked += 1;
            summary.new_chunk_bytes += adder.chunked(task, progress)?;
        } else if task.wishes.converted {
            let pipeline = match &mut pipeline {
                Some(pipeline) => pipeline,
                none => none.insert(
                    repository
                        .gix()
                        .filter_pipeline(None)
                        .map_err(|error| Error::Other(format!("filters cannot be used: {error}")))?
                        .0,
                ),
            };
            adder.converted(task, pipeline, index)?;
        } else {
            adder.streamed(task)?;
        }
    }
    let Adder {
        blobs,
        chunks,
        changes: set,
        ..
    } = adder;
    chunks.finish()?;
    blobs.finish()?;
    for change in &set {
        if let Change::Set { path, .. } = change {
            summary.added.push(path.clone());
        }
    }
    summary.added.sort();
    changes.extend(set);
    Ok((summary, changes))
}

/// The files at the given paths.
fn collect(top: &Path, index: &Index, specs: &[BString]) -> Result<Vec<Found>, Error> {
    let mut found = Vec::new();
    for spec in specs {
        let at = paths::below(top, spec.as_bstr());
        check_parents(top, spec.as_bstr())?;
        match gix::index::fs::Metadata::from_path_no_follow(&at) {
            Ok(meta) if meta.is_dir() => {
                let mut prefix = spec.clone();
                if !prefix.is_empty() {
                    prefix.push(b'/');
                }
                found.extend(scan(top, prefix.as_bstr())?);
            }
            Ok(meta) => found.push(Found {
                path: spec.clone(),
                meta,
                repository: false,
            }),
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
                ) =>
            {
                let known = index
                    .state
                    .entries()
                    .iter()
                    .any(|entry| is_below(entry.path(&index.state), spec.as_bstr()));
                if !known {
                    return Err(Error::NoMatch { path: spec.clone() });
                }
            }
            Err(error) => return Err(error).during("examine", &at),
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found.dedup_by(|a, b| a.path == b.path);
    Ok(found)
}

/// Refuses a path that leads through a symbolic link: what is behind it is not in the work tree.
fn check_parents(top: &Path, spec: &BStr) -> Result<(), Error> {
    for slash in spec.find_iter(b"/") {
        let folder = paths::below(top, spec[..slash].as_bstr());
        if folder.is_symlink() {
            return Err(Error::Refused {
                path: spec.to_owned(),
                reason: "it is beyond a symbolic link".to_owned(),
            });
        }
    }
    Ok(())
}

/// Leaves out what is ignored and not in the index, and other repositories.
fn select(
    repository: &Repository,
    index: &Index,
    found: Vec<Found>,
    specs: &[BString],
    options: Options,
    summary: &mut Summary,
) -> Result<Vec<Found>, Error> {
    let mut excludes = None;
    let mut selected = Vec::with_capacity(found.len());
    for found in found {
        let tracked = index.state.entry_index_by_path(found.path.as_bstr()).is_ok();
        if found.repository {
            if !tracked {
                summary.repositories.push(found.path);
            }
            continue;
        }
        if tracked {
            selected.push(found);
            continue;
        }
        if options.update {
            continue;
        }
        if !options.force {
            let named = specs.contains(&found.path);
            let excludes = match &mut excludes {
                Some(excludes) => excludes,
                none => none.insert(excludes_of(repository, &index.state)?),
            };
            if is_excluded(excludes, found.path.as_bstr())? {
                if named {
                    return Err(Error::Refused {
                        path: found.path,
                        reason: "it is ignored; use --force to add it nevertheless".to_owned(),
                    });
                }
                continue;
            }
        }
        selected.push(found);
    }
    Ok(selected)
}

pub(crate) fn excludes_of<'r>(
    repository: &'r Repository,
    state: &gix::index::State,
) -> Result<gix::AttributeStack<'r>, Error> {
    repository
        .gix()
        .excludes(
            state,
            None,
            gix::worktree::stack::state::ignore::Source::WorktreeThenIdMappingIfNotSkipped,
        )
        .map_err(|error| Error::Other(format!("ignore files cannot be read: {error}")))
}

pub(crate) fn is_excluded(excludes: &mut gix::AttributeStack<'_>, path: &BStr) -> Result<bool, Error> {
    let place = excludes
        .at_entry(path, Some(Mode::FILE))
        .map_err(|error| Error::Other(format!("whether '{path}' is ignored cannot be told: {error}")))?;
    Ok(place.is_excluded())
}

/// Entries below the given paths whose files are gone.
fn removals(index: &Index, selected: &[Found], specs: &[BString], summary: &mut Summary) -> Vec<Change> {
    let here: BTreeSet<&BStr> = selected.iter().map(|found| found.path.as_bstr()).collect();
    let mut removed = Vec::new();
    for entry in index.state.entries() {
        let path = entry.path(&index.state);
        let gone = entry.mode != Mode::COMMIT
            && specs.iter().any(|spec| is_below(path, spec.as_bstr()))
            && !here.contains(path);
        if gone && summary.removed.last().is_none_or(|last| last != path) {
            summary.removed.push(path.to_owned());
            removed.push(Change::Remove(path.to_owned()));
        }
    }
    removed
}

/// Whether line endings are converted without any attribute saying so.
pub(crate) fn converts_by_default(repository: &Repository) -> bool {
    repository
        .config()
        .string("core.autocrlf")
        .is_some_and(|value| !value.eq_ignore_ascii_case(b"false") && value != "0")
}

struct Task<'f> {
    found: &'f Found,
    mode: Mode,
    wishes: Wishes,
    before: Option<ObjectId>,
}

struct Adder<'a> {
    top: &'a Path,
    store: &'a Store,
    blobs: Creator,
    chunks: Writer<'a>,
    changes: Vec<Change>,
}

/// What reading a small file gave.
enum Read {
    Known(ObjectId),
    New(Object),
    /// It disappeared meanwhile.
    Gone,
}

impl Adder<'_> {
    fn place(&self, path: &BStr) -> PathBuf {
        paths::below(self.top, path)
    }

    fn set(&mut self, task: &Task<'_>, id: ObjectId) -> Result<(), Error> {
        // As the file was before it was read: a later change shows.
        let stat = Stat::from_fs(&task.found.meta)
            .map_err(|error| Error::Other(format!("'{}': {error}", task.found.path)))?;
        self.changes.push(Change::Set {
            path: task.found.path.clone(),
            mode: task.mode,
            id,
            stat,
        });
        Ok(())
    }

    /// Files that fit in memory and need no conversion, many at a time.
    fn small(&mut self, tasks: &[Task<'_>], progress: &dyn Progress) -> Result<(), Error> {
        let mut rest = tasks;
        while !rest.is_empty() {
            if progress.interrupted() {
                return Err(Error::Interrupted);
            }
            let mut bytes = 0;
            let count = rest
                .iter()
                .take_while(|task| {
                    let first = bytes == 0;
                    bytes += task.found.meta.len() + 256;
                    first || bytes <= BATCH
                })
                .count();
            let (batch, next) = rest.split_at(count.max(1));
            rest = next;
            let (store, top) = (self.store, self.top);
            let share = batch.len().div_ceil(rayon::current_num_threads() * 4).max(1);
            let read: Vec<Vec<Result<Read, Error>>> = batch
                .par_chunks(share)
                .map(|tasks| {
                    let mut encoder = Encoder::new(store.format(), Level::DEFAULT);
                    tasks
                        .iter()
                        .map(|task| read(store, top, &mut encoder, task))
                        .collect()
                })
                .collect();
            for (read, task) in read.into_iter().flatten().zip(batch) {
                match read? {
                    Read::Known(id) => self.set(task, id)?,
                    Read::New(object) => {
                        self.blobs.add(&object)?;
                        self.set(task, object.id)?;
                    }
                    Read::Gone => {}
                }
                progress.advance(1);
            }
        }
        Ok(())
    }

    fn is_known(&self, id: &ObjectId) -> bool {
        self.store.contains(id) || self.blobs.contains(id)
    }

    fn put(&mut self, content: &[u8]) -> Result<ObjectId, Error> {
        let mut encoder = Encoder::new(self.store.format(), Level::DEFAULT);
        let id = encoder.id(Kind::Blob, content);
        if !self.is_known(&id) {
            self.blobs.add(&encoder.encode_as(id, Kind::Blob, content))?;
        }
        Ok(id)
    }

    fn chunked(&mut self, task: &Task<'_>, progress: &dyn Progress) -> Result<u64, Error> {
        let before = match &task.before {
            Some(id) => chunked::read_pointer(self.store, id, &mut Cache::new(0))?,
            None => None,
        };
        let path = self.place(task.found.path.as_bstr());
        let added = self.chunks.add(Source::open(&path)?, before.as_ref(), progress)?;
        let id = self.chunks.put_pointer(&added.pointer)?;
        self.set(task, id)?;
        Ok(added.new_bytes)
    }

    fn converted(
        &mut self,
        task: &Task<'_>,
        pipeline: &mut gix::filter::Pipeline<'_>,
        index: &Index,
    ) -> Result<(), Error> {
        let path = self.place(task.found.path.as_bstr());
        let file = std::fs::File::open(&path).during("open", &path)?;
        let relative = paths::native(task.found.path.as_bstr());
        let failed =
            |error: String| Error::Other(format!("'{}' cannot be converted: {error}", task.found.path));
        let mut content = Vec::new();
        match pipeline
            .convert_to_git(file, relative.as_ref(), &index.state)
            .map_err(|error| failed(error.to_string()))?
        {
            ToGitOutcome::Unchanged(mut file) => {
                file.read_to_end(&mut content).during("read", &path)?;
            }
            ToGitOutcome::Buffer(bytes) => content.extend_from_slice(bytes),
            ToGitOutcome::Process(mut output) => {
                output
                    .read_to_end(&mut content)
                    .map_err(|error| failed(error.to_string()))?;
            }
        }
        let id = self.put(&content)?;
        self.set(task, id)
    }

    /// A large file that stays one blob.
    fn streamed(&mut self, task: &Task<'_>) -> Result<(), Error> {
        let path = self.place(task.found.path.as_bstr());
        let mut source = Source::open(&path)?;
        let size = source.size().unwrap_or_default();
        let mut blob = self.blobs.blob(size)?;
        let mut buffer = Vec::new();
        loop {
            buffer.clear();
            let ended = source.fill(&mut buffer, 1 << 20)?;
            if buffer.len() as u64 > blob.missing() {
                break;
            }
            blob.write(&buffer)?;
            if ended {
                break;
            }
        }
        if blob.missing() > 0 {
            blob.abandon()?;
            return Err(Error::Changed { path });
        }
        let id = blob.finish()?;
        source.check_unchanged(size)?;
        self.set(task, id)
    }
}

/// Reads, hashes and compresses a small file.
fn read(store: &Store, top: &Path, encoder: &mut Encoder, task: &Task<'_>) -> Result<Read, Error> {
    let path = paths::below(top, task.found.path.as_bstr());
    let content = match task.mode {
        Mode::SYMLINK if task.found.meta.is_symlink() => {
            std::fs::read_link(&path).map(|target| paths::git(&target).into())
        }
        _ => std::fs::read(&path),
    };
    let content: Vec<u8> = match content {
        Ok(content) => content,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Read::Gone),
        Err(error) => return Err(error).during("read", &path),
    };
    let id = encoder.id(Kind::Blob, &content);
    if store.contains(&id) {
        return Ok(Read::Known(id));
    }
    Ok(Read::New(match compresses(&content) {
        true => encoder.encode_as(id, Kind::Blob, &content),
        false => encoder.store_as(id, Kind::Blob, &content),
    }))
}
