//! Carries the steps of a plan out, through open folders.
//!
//! Paths are resolved by [`crate::rooted`], which follows no link, so these calls cannot go through the path-based
//! module that the rest of the program writes with. Its rule holds all the same: content is durable before its name is.

use std::fs::File;
use std::io::{self, Seek as _, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use ingot_engine::progress::Progress;
use ingot_engine::store::{self, Cache, Store};
use rayon::prelude::*;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode, Timespec, Timestamps};
use rustix::io::Errno;

use super::journal::kept_name;
use super::plan::{Action, Conflict, Obstacle, Step, hash};
use super::{Error, Restored};
use crate::capture::walk::{Stat, names};
use crate::manifest::{self, Content, Entry, Kind, Manifest, Time};
use crate::rooted::{Parent, Root, is_absent, is_link};

/// What names of files in the making begin with.
pub(super) const TEMPORARY_PREFIX: &str = ".rivet-new-";
/// Files that are written before they are made durable together.
const TOGETHER: usize = 200;
/// With fewer files, each is made durable for itself; more are cheaper as one.
const FEW: usize = 8;
/// Runs of so many zeros become holes.
const HOLE: usize = 64 * 1024;
/// Memory for objects that are stored as differences.
const CACHE: usize = 8 << 20;

/// A step that could not be carried out: told as a conflict, or the end of all.
enum Failed {
    Conflict(Obstacle),
    Fatal(Error),
}

type Outcome<T> = Result<T, Failed>;

/// Carries steps out.
pub(super) struct Placer<'a> {
    pub(super) root: &'a Root,
    pub(super) store: &'a Store,
    pub(super) manifest: &'a Manifest,
    pub(super) kept: &'a Root,
    pub(super) progress: &'a dyn Progress,
}

/// A file or link beside its place.
struct Ready<'s> {
    number: usize,
    step: &'s Step,
    parent: Parent,
    temporary: String,
    file: Option<File>,
    bytes: u64,
}

impl Placer<'_> {
    /// Carries out all steps. Conflicts end a step, errors end all; what was done stays, and can be undone.
    pub(super) fn run(&self, steps: &[Step]) -> Result<(Restored, Vec<Conflict>), Error> {
        let mut restored = Restored::default();
        let mut conflicts = Vec::new();
        let numbered: Vec<(usize, &Step)> = steps.iter().enumerate().collect();
        let of = |wanted: fn(&Action) -> bool| numbered.iter().filter(move |(_, step)| wanted(&step.action));
        let mut tell = |step: &Step, result: Outcome<()>, count: &mut u64| match result {
            Ok(()) => {
                *count += 1;
                self.progress.advance(1);
                Ok(())
            }
            Err(Failed::Conflict(obstacle)) => {
                conflicts.push(Conflict {
                    path: step.path.clone(),
                    obstacle,
                });
                Ok(())
            }
            Err(Failed::Fatal(error)) => Err(error),
        };
        for (_, step) in of(|action| matches!(action, Action::MakeFolder)) {
            tell(step, self.make_folder(step), &mut restored.folders)?;
        }
        let (linked, files): (Vec<_>, Vec<_>) =
            of(|action| matches!(action, Action::Create | Action::Replace(_)))
                .partition(|(_, step)| step.hard_link.is_some());
        for batch in files.chunks(TOGETHER) {
            if self.progress.interrupted() {
                return Err(Error::Interrupted);
            }
            let ready: Vec<Outcome<Ready<'_>>> = batch
                .par_iter()
                .with_min_len(2)
                .map_init(
                    || Cache::new(CACHE),
                    |cache, (number, step)| self.prepare(*number, step, cache),
                )
                .collect();
            self.make_durable(&ready)?;
            for (ready, (_, step)) in ready.into_iter().zip(batch) {
                let placed = ready.and_then(|ready| {
                    let bytes = ready.bytes;
                    let placed = self.place(&ready);
                    if placed.is_err() {
                        discard(self.root, &ready.parent, &ready.temporary);
                    }
                    placed.map(|()| bytes)
                });
                let bytes = placed.as_ref().copied().unwrap_or(0);
                restored.bytes += bytes;
                tell(step, placed.map(drop), &mut restored.written)?;
            }
        }
        for (_, step) in of(|action| matches!(action, Action::Adjust(_))) {
            tell(step, self.adjust(step), &mut restored.adjusted)?;
        }
        // Their first names are as they should be by now.
        let mut cache = Cache::new(CACHE);
        for (number, step) in linked {
            let placed = self.link(number, step, &mut cache);
            restored.bytes += placed.as_ref().copied().unwrap_or(0);
            tell(step, placed.map(drop), &mut restored.written)?;
        }
        for (number, step) in of(|action| matches!(action, Action::Delete(_))) {
            tell(step, self.delete(*number, step), &mut restored.deleted)?;
        }
        // Making things in a folder changes its times and needs its permissions, so these come last.
        for (_, step) in of(|action| matches!(action, Action::MakeFolder))
            .collect::<Vec<_>>()
            .iter()
            .rev()
        {
            let mut ignored = 0;
            tell(step, self.finish_folder(step), &mut ignored)?;
        }
        self.sync_all()?;
        Ok((restored, conflicts))
    }

    fn entry(&self, step: &Step) -> Option<&Entry> {
        step.entry.and_then(|at| self.manifest.entries.get(at))
    }

    fn fatal(&self, action: &'static str, step: &Step, error: io::Error) -> Failed {
        Failed::Fatal(Error::io(
            action,
            &self.root.path().join(crate::show::os(&step.path)),
            error,
        ))
    }

    /// What an error of the system means for one step.
    fn failed(&self, action: &'static str, step: &Step, error: impl Into<io::Error>) -> Failed {
        let error = error.into();
        match Errno::from_io_error(&error) {
            _ if is_link(&error) || is_absent(&error) => Failed::Conflict(Obstacle::BeyondLink),
            Some(
                Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::NAMETOOLONG | Errno::INVAL | Errno::ILSEQ,
            ) => Failed::Conflict(Obstacle::Refused),
            Some(Errno::EXIST) => Failed::Conflict(Obstacle::ChangedMeanwhile),
            _ => self.fatal(action, step, error),
        }
    }

    fn make_folder(&self, step: &Step) -> Outcome<()> {
        let (parent, name) = self
            .root
            .place(&step.path)
            .map_err(|error| self.failed("make", step, error))?;
        match rustix::fs::mkdirat(parent.fd(self.root), name, Mode::RWXU) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.failed("make", step, error)),
        }
    }

    fn finish_folder(&self, step: &Step) -> Outcome<()> {
        let Some(entry) = self.entry(step) else {
            return Ok(());
        };
        let folder = match self.root.folder(&step.path) {
            Ok(folder) => folder,
            // It was told when it could not be made.
            Err(_) => return Ok(()),
        };
        rustix::fs::fchmod(&folder, mode(entry.mode))
            .and_then(|()| rustix::fs::futimens(&folder, &times(entry.mtime)))
            .map_err(|error| self.failed("adjust", step, error))
    }

    /// Writes a file or link beside its place and verifies it.
    fn prepare<'s>(&self, number: usize, step: &'s Step, cache: &mut Cache) -> Outcome<Ready<'s>> {
        let Some(entry) = self.entry(step) else {
            return Err(Failed::Conflict(Obstacle::Refused));
        };
        let (parent, _) = self
            .root
            .place(&step.path)
            .map_err(|error| self.failed("write", step, error))?;
        let mut ready = Ready {
            number,
            step,
            parent,
            temporary: temporary_name(),
            file: None,
            bytes: 0,
        };
        let result = match &entry.kind {
            Kind::File(content) => self.write_file(entry, content, &mut ready, cache),
            Kind::Link { target, .. } => self.write_link(entry, target, &ready),
            Kind::Folder => Err(Failed::Conflict(Obstacle::Refused)),
        };
        match result {
            Ok(()) => Ok(ready),
            Err(failed) => {
                discard(self.root, &ready.parent, &ready.temporary);
                Err(failed)
            }
        }
    }

    /// Makes another name of a file that has its first one, or a file of its own where that cannot be. Returns the bytes
    /// that were written.
    fn link(&self, number: usize, step: &Step, cache: &mut Cache) -> Outcome<u64> {
        let ready = match self.prepare_name(number, step) {
            Some(ready) => ready,
            None => {
                let ready = self.prepare(number, step, cache)?;
                if let Some(file) = &ready.file {
                    file.sync_data()
                        .map_err(|error| self.fatal("sync", step, error))?;
                }
                ready
            }
        };
        let placed = self.place(&ready);
        // Where both names are of the same file already, a rename does nothing.
        if placed.is_err() || ready.file.is_none() {
            discard(self.root, &ready.parent, &ready.temporary);
        }
        placed.map(|()| ready.bytes)
    }

    /// Another name of the first one's file, beside its place, if that is the file that it should be.
    fn prepare_name<'s>(&self, number: usize, step: &'s Step) -> Option<Ready<'s>> {
        let entry = self.entry(step)?;
        let Kind::File(content) = &entry.kind else {
            return None;
        };
        let (parent, _) = self.root.place(&step.path).ok()?;
        let (first_parent, first) = self.root.place(step.hard_link.as_ref()?).ok()?;
        let ready = Ready {
            number,
            step,
            parent,
            temporary: temporary_name(),
            file: None,
            bytes: 0,
        };
        let (folder, name) = (ready.parent.fd(self.root), ready.temporary.as_str());
        rustix::fs::linkat(first_parent.fd(self.root), first, folder, name, AtFlags::empty()).ok()?;
        let is_it = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|found| {
            let found = Stat::of(&found);
            found.file_type() == FileType::RegularFile
                && (found.size, found.permissions(), found.mtime) == (content.size, entry.mode, entry.mtime)
        });
        // That it has the right name does not make it the right file: the first one may have been left alone.
        let beside = match manifest::parent(&step.path) {
            b"" => name.as_bytes().to_vec(),
            parent => [parent, b"/", name.as_bytes()].concat(),
        };
        let is_it = is_it && hash(self.root, &beside).is_ok_and(|hash| hash == content.blake3);
        if !is_it {
            discard(self.root, &ready.parent, &ready.temporary);
        }
        is_it.then_some(ready)
    }

    fn write_link(&self, entry: &Entry, target: &[u8], ready: &Ready<'_>) -> Outcome<()> {
        let folder = ready.parent.fd(self.root);
        let made = rustix::fs::symlinkat(target, folder, ready.temporary.as_str()).and_then(|()| {
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            rustix::fs::utimensat(folder, ready.temporary.as_str(), &times(entry.mtime), flags)
        });
        made.map_err(|error| self.failed("write", ready.step, error))
    }

    fn write_file(
        &self,
        entry: &Entry,
        content: &Content,
        ready: &mut Ready<'_>,
        cache: &mut Cache,
    ) -> Outcome<()> {
        let step = ready.step;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let access = Mode::RUSR | Mode::WUSR;
        let folder = ready.parent.fd(self.root);
        let file = rustix::fs::openat(folder, ready.temporary.as_str(), flags, access)
            .map_err(|error| self.failed("write", step, error))?;
        let mut sink = Sink {
            file: File::from(file),
            hasher: blake3::Hasher::new(),
            length: 0,
            hole: false,
        };
        let found = self.store.stream(&content.id, cache, &mut sink);
        match found {
            Ok(Some(_)) => {}
            Ok(None) => {
                return Err(Failed::Fatal(Error::Missing {
                    path: step.path.clone(),
                    id: content.id,
                }));
            }
            Err(store::Error::Sink { source, .. }) => return Err(self.fatal("write", step, source)),
            Err(source) => {
                return Err(Failed::Fatal(Error::Store {
                    path: step.path.clone(),
                    source: Box::new(source),
                }));
            }
        }
        if sink.length != content.size || *sink.hasher.finalize().as_bytes() != content.blake3 {
            return Err(Failed::Fatal(Error::Damaged(step.path.clone())));
        }
        if sink.hole {
            let end = sink.file.set_len(sink.length);
            end.map_err(|error| self.fatal("write", step, error))?;
        }
        rustix::fs::fchmod(&sink.file, mode(entry.mode))
            .and_then(|()| rustix::fs::futimens(&sink.file, &times(entry.mtime)))
            .map_err(|error| self.failed("adjust", step, error))?;
        ready.bytes = sink.length;
        ready.file = Some(sink.file);
        Ok(())
    }

    /// Makes the content of files durable before they get their names.
    fn make_durable(&self, ready: &[Outcome<Ready<'_>>]) -> Result<(), Error> {
        let files = || {
            ready
                .iter()
                .flatten()
                .filter_map(|ready| Some((ready, ready.file.as_ref()?)))
        };
        if files().count() > FEW && self.sync_all().is_ok() {
            return Ok(());
        }
        for (ready, file) in files() {
            file.sync_data()
                .map_err(|error| Error::io("sync", crate::show::os(&ready.step.path), error))?;
        }
        Ok(())
    }

    /// Everything on the file system of the target: one call for all files and folders.
    fn sync_all(&self) -> Result<(), Error> {
        let failed = |error: io::Error| Error::io("sync", self.root.path(), error);
        let folder = self.root.folder(b"").map_err(failed)?;
        #[cfg(target_os = "linux")]
        rustix::fs::syncfs(&folder).map_err(|error| failed(error.into()))?;
        #[cfg(not(target_os = "linux"))]
        rustix::fs::fsync(&folder).map_err(|error| failed(error.into()))?;
        Ok(())
    }

    /// Gives a file or link its name.
    fn place(&self, ready: &Ready<'_>) -> Outcome<()> {
        let step = ready.step;
        let folder = ready.parent.fd(self.root);
        let name = name_of(&step.path);
        if let Action::Replace(seen) = step.action {
            if !is_still(folder, name, &seen) {
                return Err(Failed::Conflict(Obstacle::ChangedMeanwhile));
            }
            self.keep(ready.number, step, &ready.parent, seen)?;
            return rustix::fs::renameat(folder, ready.temporary.as_str(), folder, name)
                .map_err(|error| self.failed("replace", step, error));
        }
        rename_new(folder, ready.temporary.as_bytes(), name)
            .map_err(|error| self.failed("write", step, error))
    }

    /// Keeps what is there under the step's number.
    fn keep(&self, number: usize, step: &Step, parent: &Parent, seen: Stat) -> Outcome<()> {
        let folder = parent.fd(self.root);
        keep(folder, name_of(&step.path), self.kept, &kept_name(number), &seen)
            .map_err(|error| self.failed("keep", step, error))
    }

    fn adjust(&self, step: &Step) -> Outcome<()> {
        let (Some(entry), Action::Adjust(seen)) = (self.entry(step), step.action) else {
            return Ok(());
        };
        set_attributes(self.root, &step.path, &seen, entry.mode, entry.mtime)
            .map_err(|error| self.failed("adjust", step, error))
    }

    fn delete(&self, number: usize, step: &Step) -> Outcome<()> {
        let Action::Delete(seen) = step.action else {
            return Ok(());
        };
        let (parent, name) = self
            .root
            .place(&step.path)
            .map_err(|error| self.failed("delete", step, error))?;
        let folder = parent.fd(self.root);
        if seen.file_type() == FileType::Directory {
            return match rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR) {
                // What is not tracked stays, and its folder with it.
                Ok(()) | Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
                Err(error) => Err(self.failed("delete", step, error)),
            };
        }
        if !is_still(folder, name, &seen) {
            return Err(Failed::Conflict(Obstacle::ChangedMeanwhile));
        }
        self.keep(number, step, &parent, seen)?;
        rustix::fs::unlinkat(folder, name, AtFlags::empty())
            .map_err(|error| self.failed("delete", step, error))
    }
}

/// Whether what is there looks as it did. What happens to one name of a file changes a time of all of them.
fn is_still(folder: rustix::fd::BorrowedFd<'_>, name: &[u8], seen: &Stat) -> bool {
    let Ok(found) = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else {
        return false;
    };
    let mut now = Stat::of(&found);
    if names(&found) > 1 {
        now.ctime = seen.ctime;
    }
    now == *seen
}

/// Keeps a file or link in the folder of kept ones: as a second name where that is possible, so that its place is never
/// empty; otherwise as a copy.
fn keep(
    folder: rustix::fd::BorrowedFd<'_>,
    name: &[u8],
    kept: &Root,
    as_name: &str,
    seen: &Stat,
) -> io::Result<()> {
    let kept_folder = kept.folder(b"")?;
    match rustix::fs::linkat(folder, name, &kept_folder, as_name, AtFlags::empty()) {
        Ok(()) => return Ok(()),
        Err(Errno::XDEV | Errno::PERM | Errno::MLINK | Errno::OPNOTSUPP) => {}
        Err(error) => return Err(error.into()),
    }
    if seen.file_type() == FileType::Symlink {
        let target = rustix::fs::readlinkat(folder, name, Vec::new())?;
        rustix::fs::symlinkat(target, &kept_folder, as_name)?;
        return Ok(());
    }
    copy(folder, name, &kept_folder, as_name.as_bytes(), seen)
}

/// Copies a file with its permissions and times, durably.
pub(super) fn copy(
    from: rustix::fd::BorrowedFd<'_>,
    name: &[u8],
    to: &rustix::fd::OwnedFd,
    as_name: &[u8],
    seen: &Stat,
) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut source = File::from(rustix::fs::openat(from, name, flags, Mode::empty())?);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut target = File::from(rustix::fs::openat(to, as_name, flags, Mode::RUSR | Mode::WUSR)?);
    let copied = io::copy(&mut source, &mut target)
        .and_then(|_| Ok(rustix::fs::fchmod(&target, mode(seen.permissions()))?))
        .and_then(|()| Ok(rustix::fs::futimens(&target, &times(seen.mtime))?))
        .and_then(|()| target.sync_data());
    if copied.is_err() {
        let _ = rustix::fs::unlinkat(to, as_name, AtFlags::empty());
    }
    copied
}

/// Sets permissions and times of what still looks as it did.
pub(super) fn set_attributes(
    root: &Root,
    path: &[u8],
    seen: &Stat,
    permissions: u32,
    mtime: Time,
) -> io::Result<()> {
    let (parent, name) = root.place(path)?;
    let folder = parent.fd(root);
    match seen.file_type() {
        // Links have no permissions of their own.
        FileType::Symlink => {
            rustix::fs::utimensat(folder, name, &times(mtime), AtFlags::SYMLINK_NOFOLLOW)?;
        }
        FileType::Directory => {
            rustix::fs::fchmod(root.folder(path)?, mode(permissions))?;
        }
        _ => {
            let file = root.file(path)?;
            if Stat::of(&rustix::fs::fstat(&file)?).inode != seen.inode {
                return Err(Errno::EXIST.into());
            }
            rustix::fs::fchmod(&file, mode(permissions))?;
            rustix::fs::futimens(&file, &times(mtime))?;
        }
    }
    Ok(())
}

/// Gives a file a name that must be free.
pub(super) fn rename_new(folder: rustix::fd::BorrowedFd<'_>, from: &[u8], to: &[u8]) -> Result<(), Errno> {
    #[cfg(target_os = "linux")]
    match rustix::fs::renameat_with(folder, from, folder, to, rustix::fs::RenameFlags::NOREPLACE) {
        Err(Errno::NOSYS | Errno::INVAL) => {}
        result => return result,
    }
    rustix::fs::linkat(folder, from, folder, to, AtFlags::empty())?;
    rustix::fs::unlinkat(folder, from, AtFlags::empty())
}

fn discard(root: &Root, parent: &Parent, temporary: &str) {
    // A leftover is harmless, and the first failure is the one worth telling.
    let _ = rustix::fs::unlinkat(parent.fd(root), temporary, AtFlags::empty());
}

/// A name that nobody else uses.
pub(super) fn temporary_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let clock = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |now| now.subsec_nanos());
    format!(
        "{TEMPORARY_PREFIX}{}-{clock}-{}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    )
}

/// The last name of a path.
pub(super) fn name_of(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(slash) => &path[slash + 1..],
        None => path,
    }
}

pub(super) fn mode(permissions: u32) -> Mode {
    Mode::from_raw_mode(permissions as RawMode)
}

pub(super) fn times(mtime: Time) -> Timestamps {
    let time = |seconds: i64, nanoseconds: u32| Timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds.into(),
    };
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: rustix::fs::UTIME_OMIT,
        },
        last_modification: time(mtime.seconds, mtime.nanoseconds),
    }
}

/// Takes the content of a file, hashes it, and leaves holes for zeros.
struct Sink {
    file: File,
    hasher: blake3::Hasher,
    length: u64,
    /// The last thing was a hole.
    hole: bool,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.hasher.update(bytes);
        for piece in bytes.chunks(HOLE) {
            self.hole = piece.len() >= HOLE / 2 && piece.iter().all(|&byte| byte == 0);
            if self.hole {
                self.file.seek(io::SeekFrom::Current(piece.len() as i64))?;
            } else {
                self.file.write_all(piece)?;
            }
            self.length += piece.len() as u64;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
