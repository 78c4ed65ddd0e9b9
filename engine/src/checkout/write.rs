//! Writes the files that an index names, on several threads.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZero;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use bstr::{BStr, BString, ByteSlice as _};
use gix::index::entry::{Mode, Stat};
use gix::worktree::Stack;

use super::objects::Objects;
use super::worker::Worker;
use super::{Error, Summary};
use crate::progress::Progress;
use crate::repository::{Repository, explain};
use crate::store::{self, Store};

/// So many files of one folder are dealt out at once.
const SHARE: usize = 128;
/// Larger files are written while they are read, unless their content has to change on the way.
const WHOLE: u64 = 16 << 20;

/// Everything that the threads share.
pub(super) struct Job<'j> {
    pub index: &'j gix::index::State,
    pub shares: Vec<Range<usize>>,
    pub next: AtomicUsize,
    pub stop: AtomicBool,
    pub failure: Mutex<Option<Error>>,
    /// Refuses objects that are to be streamed.
    pub small: Store,
    /// Takes all.
    pub store: &'j Store,
    pub links: bool,
    pub converts_by_default: bool,
    pub progress: &'j dyn Progress,
}

/// What one thread has done.
#[derive(Default)]
pub(super) struct Done {
    pub stats: Vec<(usize, Stat)>,
    pub collisions: Vec<BString>,
    pub pointers: Vec<(BString, String)>,
    pub chunked: u64,
    pub bytes: u64,
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
        self.pointers.extend(other.pointers);
        self.chunked += other.chunked;
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
    done.pointers.sort();
    let (links, submodules) = (count(Mode::SYMLINK), count(Mode::COMMIT));
    let total = index.entries().len() as u64 - submodules;
    Summary {
        files: total.saturating_sub(done.collisions.len() as u64),
        links,
        submodules,
        bytes: done.bytes,
        chunked: done.chunked,
        pointers: done.pointers,
        collisions: done.collisions,
    }
}

pub(super) fn is_collision(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotADirectory || gix::fs::symlink::is_collision_error(error)
}

pub(super) fn stat(meta: &gix::index::fs::Metadata, name: &BStr) -> Result<Stat, Error> {
    Stat::from_fs(meta).map_err(|error| Error::Write {
        path: name.to_owned(),
        message: error.to_string(),
    })
}
