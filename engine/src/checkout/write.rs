//! Writes the files that an index names, on several threads.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::num::NonZero;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bstr::{BStr, BString, ByteSlice as _};
use gix::filter::plumbing::Pipeline;
use gix::filter::plumbing::driver::apply::{Delay, MaybeDelayed};
use gix::filter::plumbing::pipeline::convert::{ToWorktreeOutcome, to_worktree};
use gix::index::entry::{Mode, Stat};
use gix::worktree::Stack;
use gix_object::Kind;

use super::content::{Encoding, identify};
use super::objects::Objects;
use super::{Error, Summary, is_file};
use crate::progress::Progress;
use crate::repository::{Repository, explain};
use crate::store::{self, Store};

/// So many files of one folder are dealt out at once.
const SHARE: usize = 128;
/// Larger files are written while they are read, unless their content has to change on the way.
const WHOLE: u64 = 16 << 20;

/// Everything that the threads share.
struct Job<'j> {
    index: &'j gix::index::State,
    shares: Vec<Range<usize>>,
    next: AtomicUsize,
    stop: AtomicBool,
    failure: Mutex<Option<Error>>,
    /// Refuses objects that are to be streamed.
    small: Store,
    /// Takes all.
    store: &'j Store,
    links: bool,
    converts_by_default: bool,
    progress: &'j dyn Progress,
}

/// What one thread has done.
#[derive(Default)]
struct Done {
    stats: Vec<(usize, Stat)>,
    collisions: Vec<BString>,
    bytes: u64,
}

/// Writes all entries of `index` below `root` and notes their file data in it.
pub(super) fn all(
    repository: &Repository,
    store: &Store,
    index: &mut gix::index::State,
    root: &Path,
    options: gix::worktree::state::checkout::Options,
    progress: &dyn Progress,
) -> Result<Summary, Error> {
    let small = Store::open_with(
        store.objects_dir(),
        store.format(),
        store::Options {
            object_limit: WHOLE,
            ..store.options().clone()
        },
    )?;
    let stack = Stack::from_state_and_ignore_case(
        root,
        options.fs.ignore_case,
        gix::worktree::stack::State::for_checkout(false, options.validate, options.attributes),
        index,
        index.path_backing(),
    );
    let config = repository.config();
    let mut done = Done::default();
    {
        let job = Job {
            shares: shares(index),
            index,
            next: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            failure: Mutex::new(None),
            small,
            store,
            links: options.fs.symlink,
            converts_by_default: config.string("core.autocrlf").is_some_and(|value| {
                !value.eq_ignore_ascii_case(b"input") && !value.eq_ignore_ascii_case(b"false")
            }),
            progress,
        };
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let threads = match options.thread_limit {
            Some(limit) if limit > 0 => limit,
            _ => cores,
        }
        .clamp(1, job.shares.len().max(1));
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|_| {
                    let (stack, filters) = (stack.clone(), options.filters.clone());
                    let job = &job;
                    scope.spawn(move || Worker::new(job, stack, filters).run())
                })
                .collect();
            for worker in workers {
                match worker.join() {
                    Ok(part) => done.add(part),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        });
        if let Some(error) = job
            .failure
            .into_inner()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
        {
            return Err(error);
        }
    }
    finish(store, index, stack, options.fs.symlink, progress, &mut done)?;
    Ok(summarize(index, done))
}

impl Done {
    fn add(&mut self, other: Done) {
        self.stats.extend(other.stats);
        self.collisions.extend(other.collisions);
        self.bytes += other.bytes;
    }
}

/// Ranges of entries that are in one folder, so that threads seldom meet.
fn shares(index: &gix::index::State) -> Vec<Range<usize>> {
    fn folder(path: &BStr) -> &[u8] {
        path.rfind_byte(b'/').map_or(b"", |slash| &path[..slash])
    }
    let entries = index.entries();
    let mut shares = Vec::new();
    let mut start = 0;
    for end in 1..=entries.len() {
        let split = end == entries.len()
            || end - start == SHARE
            || folder(entries[end].path(index)) != folder(entries[start].path(index));
        if split {
            shares.push(start..end);
            start = end;
        }
    }
    shares
}

/// What must wait until no file is written any more: submodules' folders first, then links, which nothing may pass.
fn finish(
    store: &Store,
    index: &mut gix::index::State,
    mut stack: Stack,
    links: bool,
    progress: &dyn Progress,
    done: &mut Done,
) -> Result<(), Error> {
    for (number, stat) in std::mem::take(&mut done.stats) {
        if let Some(entry) = index.entries_mut().get_mut(number) {
            entry.stat = stat;
        }
    }
    let mut stats = BTreeMap::new();
    let objects = Objects::new(store);
    for wanted in [Mode::COMMIT, Mode::SYMLINK] {
        if wanted == Mode::SYMLINK && !links {
            continue; // written as files
        }
        for (number, entry) in index
            .entries()
            .iter()
            .enumerate()
            .filter(|(_, entry)| entry.mode == wanted)
        {
            if progress.interrupted() {
                return Err(Error::Interrupted);
            }
            let name = entry.path(index);
            let failed = |error: io::Error| Error::Write {
                path: name.to_owned(),
                message: error.to_string(),
            };
            // Creates the folders above, and refuses to pass a link on the way.
            let place = stack.at_path(name, Some(wanted), &objects);
            let result = match place {
                Ok(place) if wanted == Mode::SYMLINK => {
                    let mut target = Vec::new();
                    objects.blob(entry.id, &mut target)?;
                    link(&target, place.path(), name)
                }
                place => place.map(|_| None),
            };
            match result {
                Ok(stat) => stats.extend(stat.map(|stat| (number, stat))),
                Err(error) if is_collision(&error) => done.collisions.push(name.to_owned()),
                Err(error) => return Err(failed(error)),
            }
            progress.advance(1);
        }
    }
    for (number, stat) in stats {
        index.entries_mut()[number].stat = stat;
    }
    Ok(())
}

fn link(target: &[u8], path: &Path, name: &BStr) -> io::Result<Option<Stat>> {
    let target = gix::path::from_byte_slice(target).map_err(|error| io::Error::other(explain(&error)))?;
    gix::fs::symlink::create(target, path)?;
    let meta = gix::index::fs::Metadata::from_path_no_follow(path)?;
    stat(&meta, name).map(Some).map_err(io::Error::other)
}

fn summarize(index: &gix::index::State, mut done: Done) -> Summary {
    let count = |mode: Mode| index.entries().iter().filter(|entry| entry.mode == mode).count() as u64;
    done.collisions.sort();
    let (links, submodules) = (count(Mode::SYMLINK), count(Mode::COMMIT));
    let total = index.entries().len() as u64 - submodules;
    Summary {
        files: total.saturating_sub(done.collisions.len() as u64),
        links,
        submodules,
        bytes: done.bytes,
        collisions: done.collisions,
    }
}

fn is_collision(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotADirectory || gix::fs::symlink::is_collision_error(error)
}

fn stat(meta: &gix::index::fs::Metadata, name: &BStr) -> Result<Stat, Error> {
    Stat::from_fs(meta).map_err(|error| Error::Write {
        path: name.to_owned(),
        message: error.to_string(),
    })
}

/// What attributes say about one file.
#[derive(Debug, Clone, Copy, Default)]
struct Wishes {
    identify: bool,
    encoding: Option<Encoding>,
    /// Whether anything at all may change the content.
    any: bool,
    filter: bool,
}

impl Wishes {
    fn of(attributes: &gix::attrs::search::Outcome) -> Wishes {
        let mut wishes = Wishes::default();
        for found in attributes.iter_selected() {
            let state = found.assignment.state;
            let given = !state.is_unspecified() && state != gix::attrs::StateRef::Unset;
            match found.assignment.name.as_str() {
                "ident" => {
                    wishes.identify = state == gix::attrs::StateRef::Set;
                    wishes.any |= wishes.identify;
                }
                "working-tree-encoding" => {
                    if let gix::attrs::StateRef::Value(value) = state {
                        wishes.encoding = Encoding::by_name(value.as_bstr());
                        wishes.any = true;
                    }
                }
                "filter" => {
                    wishes.filter |= given;
                    wishes.any |= given;
                }
                _ => wishes.any |= given,
            }
        }
        wishes
    }
}

struct Worker<'j> {
    job: &'j Job<'j>,
    stack: Stack,
    filters: Pipeline,
    attributes: gix::attrs::search::Outcome,
    objects: Objects<'j>,
    whole: Objects<'j>,
    buffer: Vec<u8>,
    done: Done,
}

impl<'j> Worker<'j> {
    fn new(job: &'j Job<'j>, stack: Stack, filters: Pipeline) -> Worker<'j> {
        let attributes = stack.selected_attribute_matches([
            "crlf",
            "ident",
            "filter",
            "eol",
            "text",
            "working-tree-encoding",
        ]);
        Worker {
            objects: Objects::new(&job.small),
            whole: Objects::new(job.store),
            job,
            stack,
            filters,
            attributes,
            buffer: Vec::new(),
            done: Done::default(),
        }
    }

    fn run(mut self) -> Done {
        let result = self.work();
        let ended = self
            .filters
            .driver_state_mut()
            .shutdown(gix::filter::plumbing::driver::shutdown::Mode::WaitForProcesses);
        let result = result.and_then(|()| {
            ended.map(drop).map_err(|error| Error::Setup {
                message: format!("a filter process did not end well: {error}"),
            })
        });
        if let Err(error) = result {
            self.job.stop.store(true, Ordering::Relaxed);
            let mut slot = match self.job.failure.lock() {
                Ok(slot) => slot,
                Err(poisoned) => poisoned.into_inner(),
            };
            slot.get_or_insert(error);
        }
        self.done
    }

    fn work(&mut self) -> Result<(), Error> {
        let job = self.job;
        while let Some(share) = job.shares.get(job.next.fetch_add(1, Ordering::Relaxed)) {
            for number in share.clone() {
                if job.stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                if job.progress.interrupted() {
                    return Err(Error::Interrupted);
                }
                let mode = job.index.entries()[number].mode;
                if is_file(mode) || (mode == Mode::SYMLINK && !job.links) {
                    self.entry(number)?;
                    job.progress.advance(1);
                }
            }
        }
        Ok(())
    }

    fn entry(&mut self, number: usize) -> Result<(), Error> {
        let entry = &self.job.index.entries()[number];
        let name = entry.path(self.job.index);
        match self.file(entry, name) {
            Ok((stat, bytes)) => {
                self.done.stats.push((number, stat));
                self.done.bytes += bytes;
                Ok(())
            }
            Err(Failure::Io(error)) if is_collision(&error) => {
                self.done.collisions.push(name.to_owned());
                Ok(())
            }
            Err(Failure::Io(error)) => Err(Error::Write {
                path: name.to_owned(),
                message: error.to_string(),
            }),
            Err(Failure::Other(Error::Missing { id })) => Err(Error::Write {
                path: name.to_owned(),
                message: format!("object {id} is missing"),
            }),
            Err(Failure::Other(error)) => Err(error),
        }
    }

    /// Writes one file; returns its file data and size.
    fn file(&mut self, entry: &gix::index::Entry, name: &BStr) -> Result<(Stat, u64), Failure> {
        let failed = |message: String| {
            Failure::Other(Error::Write {
                path: name.to_owned(),
                message,
            })
        };
        let place = self.stack.at_path(name, Some(entry.mode), &self.whole)?;
        let path = place.path();
        let small = match self.objects.blob(entry.id, &mut self.buffer) {
            Ok(()) => true,
            Err(Error::Store(store::Error::TooLarge { .. })) => false,
            Err(error) => return Err(Failure::Other(error)),
        };
        if entry.mode == Mode::SYMLINK {
            return create(path, Mode::FILE, name, |file| {
                file.write_all(&self.buffer).map(|()| self.buffer.len() as u64)
            });
        }
        let mut wishes = Wishes::default();
        // Seldom needed beforehand: the pipeline asks by itself.
        if !small || self.buffer.contains_str("$Id") {
            place.matching_attributes(&mut self.attributes);
            wishes = Wishes::of(&self.attributes);
        }
        if !small {
            if !wishes.any && !self.job.converts_by_default {
                let cache = &mut *self.whole.cache.borrow_mut();
                return create(path, entry.mode, name, |file| {
                    match self.job.store.stream(&entry.id, cache, file) {
                        Ok(Some((_, size))) => Ok(size),
                        Ok(None) => Err(io::Error::other(format!("object {} is missing", entry.id))),
                        Err(store::Error::Sink { source, .. }) => Err(source),
                        Err(error) => Err(io::Error::other(error)),
                    }
                });
            }
            self.whole.blob(entry.id, &mut self.buffer)?;
        }
        let identified = wishes
            .identify
            .then(|| identify(&self.buffer, &entry.id))
            .flatten();
        let source = identified.as_deref().unwrap_or(&self.buffer);
        self.filters.driver_context_mut().blob = Some(entry.id);
        let converted = self
            .filters
            .convert_to_worktree(
                source,
                name,
                &mut |_, attributes| {
                    place.matching_attributes(attributes);
                    wishes = Wishes::of(attributes);
                },
                to_worktree::Options {
                    can_delay: Delay::Forbid,
                    unknown_encoding: to_worktree::UnknownEncoding::Ignore,
                },
            )
            .map_err(|error| failed(explain(&error)))?;
        let bytes = match converted {
            ToWorktreeOutcome::Unchanged(bytes) | ToWorktreeOutcome::Buffer(bytes) => bytes,
            ToWorktreeOutcome::Process(MaybeDelayed::Immediate(mut output)) => {
                return create(path, entry.mode, name, |file| io::copy(&mut output, file));
            }
            ToWorktreeOutcome::Process(MaybeDelayed::Delayed(_)) => {
                return Err(failed(
                    "the filter process put it off without being allowed to".to_owned(),
                ));
            }
        };
        // gix leaves these encodings out. Text that is none stays as it is, as with Git.
        let encoded = wishes.encoding.and_then(|encoding| encoding.encode(bytes));
        let bytes = encoded.as_deref().unwrap_or(bytes);
        create(path, entry.mode, name, |file| {
            file.write_all(bytes).map(|()| bytes.len() as u64)
        })
    }
}

enum Failure {
    /// May be a collision.
    Io(io::Error),
    Other(Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Io(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Other(error)
    }
}

/// Creates a file that does not exist yet, and lets `fill` write it.
fn create(
    path: &Path,
    mode: Mode,
    name: &BStr,
    fill: impl FnOnce(&mut File) -> io::Result<u64>,
) -> Result<(Stat, u64), Failure> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(if mode == Mode::FILE_EXECUTABLE {
            0o777
        } else {
            0o666
        });
    }
    #[cfg(not(unix))]
    let _ = mode;
    let mut file = options.open(path)?;
    let failed = |error: io::Error| {
        Failure::Other(Error::Write {
            path: name.to_owned(),
            message: error.to_string(),
        })
    };
    let bytes = fill(&mut file).map_err(failed)?;
    let meta = gix::index::fs::Metadata::from_file(&file).map_err(failed)?;
    Ok((stat(&meta, name)?, bytes))
}

impl Objects<'_> {
    fn blob(&self, id: gix_hash::ObjectId, out: &mut Vec<u8>) -> Result<(), Error> {
        match self.store.read(&id, &mut self.cache.borrow_mut(), out)? {
            Some(Kind::Blob) => Ok(()),
            Some(kind) => Err(Error::NoBlob { id, kind }),
            None => Err(Error::Missing { id }),
        }
    }
}
