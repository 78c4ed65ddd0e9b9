//! One thread of a checkout: from an object to a file.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use bstr::{BStr, ByteSlice as _};
use gix::filter::plumbing::Pipeline;
use gix::filter::plumbing::driver::apply::{Delay, MaybeDelayed};
use gix::filter::plumbing::pipeline::convert::{ToWorktreeOutcome, to_worktree};
use gix::index::entry::{Mode, Stat};
use gix::worktree::Stack;
use gix_object::Kind;

use super::content::{Encoding, identify};
use super::objects::Objects;
use super::write::{Done, Job, is_collision, stat};
use super::{Error, is_file};
use crate::chunked::{self, Pointer};
use crate::repository::explain;
use crate::store;

/// What attributes say about one file.
#[derive(Debug, Clone, Copy, Default)]
struct Wishes {
    identify: bool,
    encoding: Option<Encoding>,
    /// Whether anything at all may change the content.
    any: bool,
    filter: bool,
    /// The file is a chunked one, if its content is a pointer.
    chunked: bool,
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
                    wishes.chunked = matches!(
                        state,
                        gix::attrs::StateRef::Value(value) if value.as_bstr() == chunked::FILTER
                    );
                    wishes.any |= given;
                }
                _ => wishes.any |= given,
            }
        }
        wishes
    }
}

pub(super) struct Worker<'j> {
    job: &'j Job<'j>,
    stack: Stack,
    filters: Pipeline,
    attributes: gix::attrs::search::Outcome,
    objects: Objects<'j>,
    whole: Objects<'j>,
    buffer: Vec<u8>,
    /// Of the file at work.
    path: PathBuf,
    done: Done,
}

impl<'j> Worker<'j> {
    pub fn new(job: &'j Job<'j>, stack: Stack, filters: Pipeline) -> Worker<'j> {
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
            path: PathBuf::new(),
            done: Done::default(),
        }
    }

    pub fn run(mut self) -> Done {
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
        self.path.clear();
        self.path.push(path);
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
        if let Some(pointer) = small
            .then(|| Pointer::parse(&self.buffer, self.job.store.format()))
            .flatten()
        {
            place.matching_attributes(&mut self.attributes);
            wishes = Wishes::of(&self.attributes);
            if wishes.chunked {
                return self.chunked(&pointer, entry.mode, name);
            }
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

impl Worker<'_> {
    /// Writes a chunked file, or its pointer where the chunks cannot be had: then the rest of the checkout goes on.
    fn chunked(&mut self, pointer: &Pointer, mode: Mode, name: &BStr) -> Result<(Stat, u64), Failure> {
        let job = self.job;
        let options = chunked::RestoreOptions {
            progress: &crate::progress::Silent,
        };
        let mut reason = None;
        let written = create(&self.path, mode, name, |file| {
            match chunked::restore(job.store, pointer, file, &self.path, &options) {
                Ok(restored) => return Ok(restored.size),
                Err(chunked::Error::Io { source, .. }) => return Err(source),
                Err(error) => reason = Some(error.to_string()),
            }
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(&self.buffer)?;
            Ok(self.buffer.len() as u64)
        })?;
        match reason {
            Some(reason) => self.done.pointers.push((name.to_owned(), reason)),
            None => self.done.chunked += 1,
        }
        Ok(written)
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
    pub fn blob(&self, id: gix_hash::ObjectId, out: &mut Vec<u8>) -> Result<(), Error> {
        match self.store.read(&id, &mut self.cache.borrow_mut(), out)? {
            Some(Kind::Blob) => Ok(()),
            Some(kind) => Err(Error::NoBlob { id, kind }),
            None => Err(Error::Missing { id }),
        }
    }
}
