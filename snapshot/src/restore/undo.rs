//! Takes the last restore back.

use std::path::Path;

use data_encoding::HEXLOWER;
use ingot_engine::progress::{Progress, Unit};
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use super::Error;
use super::journal::{self, Did, Line, kept_name};
use super::place::{copy, name_of, rename_new, set_attributes, temporary_name};
use super::plan::{Conflict, Obstacle, hash};
use crate::capture::walk::Stat;
use crate::rooted::Root;

/// What was taken back.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Undone {
    /// Paths that are as they were before the restore.
    pub undone: u64,
    /// What changed since the restore, and is left alone.
    pub conflicts: Vec<Conflict>,
}

/// Takes the last restore back, in the reverse of its order. What changed since then is a conflict and stays; where there
/// are conflicts, what was kept stays as well. An interrupted restore, or an interrupted undoing, is undone as far as it
/// went.
pub fn undo(folder: &Path, progress: &dyn Progress) -> Result<Undone, Error> {
    let mut all = journal::list(folder)?;
    let (last, root, lines) = loop {
        let last = all.pop().ok_or(Error::NothingToUndo)?;
        match journal::read(&last)? {
            Some((root, lines)) => break (last, root, lines),
            None => journal::remove(&last)?,
        }
    };
    let root = Root::open(&root).map_err(|error| Error::io("open", &root, error))?;
    let kept = last.join("kept");
    let kept = Root::open(&kept).map_err(|error| Error::io("open", &kept, error))?;
    progress.begin("Undoing", Some(lines.len() as u64), Unit::Files);
    let mut undone = Undone::default();
    for (number, line) in lines.iter().enumerate().rev() {
        if progress.interrupted() {
            return Err(Error::Interrupted);
        }
        let Some(path) = line.path() else { continue };
        match take_back(&root, &kept, number, line, &path) {
            Ok(true) => undone.undone += 1,
            Ok(false) => {}
            Err(obstacle) => undone.conflicts.push(Conflict { path, obstacle }),
        }
        progress.advance(1);
    }
    progress.end();
    undone.conflicts.reverse();
    if undone.conflicts.is_empty() {
        journal::remove(&last)?;
    }
    Ok(undone)
}

/// Whether there was anything to take back.
fn take_back(root: &Root, kept: &Root, number: usize, line: &Line, path: &[u8]) -> Result<bool, Obstacle> {
    let refused = |error: std::io::Error| match error {
        error if crate::rooted::is_link(&error) => Obstacle::BeyondLink,
        _ => Obstacle::Refused,
    };
    let now = match root.stat(path) {
        Ok(stat) => Some(Stat::of(&stat)),
        Err(error) if crate::rooted::is_absent(&error) => None,
        Err(error) => return Err(refused(error)),
    };
    let name = kept_name(number);
    match (line.did, now) {
        (Did::Folder | Did::Create, None) => Ok(false),
        (Did::Folder, Some(now)) if now.file_type() == FileType::Directory => {
            let (parent, last) = root.place(path).map_err(refused)?;
            match rustix::fs::unlinkat(parent.fd(root), last, AtFlags::REMOVEDIR) {
                Ok(()) => Ok(true),
                // Something else is in it by now.
                Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
                Err(error) => Err(refused(error.into())),
            }
        }
        (Did::Create, Some(now)) => {
            if !is_restored(root, path, &now, line) {
                return Err(Obstacle::ChangedMeanwhile);
            }
            let (parent, last) = root.place(path).map_err(refused)?;
            rustix::fs::unlinkat(parent.fd(root), last, AtFlags::empty())
                .map_err(|error| refused(error.into()))?;
            Ok(true)
        }
        (Did::Replace, now) => {
            if kept.stat(name.as_bytes()).is_err() {
                return Ok(false); // it was not replaced
            }
            if now.is_some_and(|now| !is_restored(root, path, &now, line) && !is_kept(kept, &name, &now)) {
                return Err(Obstacle::ChangedMeanwhile);
            }
            put_back(root, kept, &name, path, true).map_err(refused)?;
            Ok(true)
        }
        (Did::Delete, now) => {
            let was_folder = line.mode.is_some_and(|mode| {
                FileType::from_raw_mode(mode as rustix::fs::RawMode) == FileType::Directory
            });
            if was_folder {
                if now.is_some() {
                    return Ok(false);
                }
                let (parent, last) = root.place(path).map_err(refused)?;
                let permissions = super::place::mode(line.mode.unwrap_or(0o700) & 0o7777);
                rustix::fs::mkdirat(parent.fd(root), last, permissions)
                    .map_err(|error| refused(error.into()))?;
                return Ok(true);
            }
            if kept.stat(name.as_bytes()).is_err() {
                return Ok(false);
            }
            if let Some(now) = now {
                return match is_kept(kept, &name, &now) {
                    true => Ok(false),
                    false => Err(Obstacle::ChangedMeanwhile),
                };
            }
            put_back(root, kept, &name, path, false).map_err(refused)?;
            Ok(true)
        }
        (Did::Adjust, Some(now)) => {
            let (Some(mode), Some(time)) = (line.mode, line.time()) else {
                return Ok(false);
            };
            set_attributes(root, path, &now, mode & 0o7777, time).map_err(refused)?;
            Ok(true)
        }
        (Did::Adjust, None) => Ok(false),
        (Did::Folder, Some(_)) => Err(Obstacle::ChangedMeanwhile),
    }
}

/// Whether what is there is what the restore put there.
fn is_restored(root: &Root, path: &[u8], now: &Stat, line: &Line) -> bool {
    match now.file_type() {
        FileType::RegularFile => line
            .blake3
            .as_deref()
            .is_some_and(|wanted| hash(root, path).is_ok_and(|hash| HEXLOWER.encode(&hash) == wanted)),
        FileType::Symlink => line.target.as_deref().is_some_and(|wanted| {
            root.link(path)
                .is_ok_and(|target| HEXLOWER.encode(&target) == wanted)
        }),
        _ => false,
    }
}

/// Whether what is there is the kept file itself: the restore, or an undoing, ended between two calls.
fn is_kept(kept: &Root, name: &str, now: &Stat) -> bool {
    kept.stat(name.as_bytes())
        .is_ok_and(|kept| Stat::of(&kept).inode == now.inode)
}

/// Puts a kept file back into its place by one rename.
fn put_back(root: &Root, kept: &Root, name: &str, path: &[u8], replace: bool) -> std::io::Result<()> {
    let (parent, last) = root.place(path)?;
    let last = match last {
        b"." => name_of(path),
        last => last,
    };
    let folder = parent.fd(root);
    let from = kept.folder(b"")?;
    let temporary = temporary_name();
    let seen = Stat::of(&kept.stat(name.as_bytes())?);
    match rustix::fs::linkat(&from, name, folder, temporary.as_str(), AtFlags::empty()) {
        Ok(()) => {}
        Err(Errno::XDEV | Errno::PERM | Errno::MLINK | Errno::OPNOTSUPP) => {
            if seen.file_type() == FileType::Symlink {
                let target = rustix::fs::readlinkat(&from, name, Vec::new())?;
                rustix::fs::symlinkat(target, folder, temporary.as_str())?;
            } else {
                let to = rustix::io::dup(folder)?;
                use std::os::fd::AsFd as _;
                copy(from.as_fd(), name.as_bytes(), &to, temporary.as_bytes(), &seen)?;
            }
        }
        Err(error) => return Err(error.into()),
    }
    let placed = match replace {
        true => rustix::fs::renameat(folder, temporary.as_str(), folder, last),
        false => rename_new(folder, temporary.as_bytes(), last),
    };
    if placed.is_err() {
        let _ = rustix::fs::unlinkat(folder, temporary.as_str(), AtFlags::empty());
    }
    // Two names of the same file: then the rename did nothing and left both.
    let _ = rustix::fs::unlinkat(folder, temporary.as_str(), AtFlags::empty());
    Ok(placed?)
}
