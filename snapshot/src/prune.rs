//! Lets old snapshots go, and packs what is left anew.
//!
//! History is rewritten: a kept snapshot keeps its tree, time and message, and gets the kept one before it as its
//! parent, so ids change from the first gap on. First the new commits are made durable, then the branch moves, then
//! everything that any branch reaches is packed into one pack, and only then older packs are removed.

use std::io::BufReader;
use std::sync::Arc;

use gix_hash::ObjectId;
use gix_object::Kind;
use ingot_engine::durable::{self, Fs};
use ingot_engine::import::{self, Import, Limits};
use ingot_engine::pack::create::{self, Creator, Encoder};
use ingot_engine::pack::inflate::Level;
use ingot_engine::pack::write;
use ingot_engine::progress::Progress;
use ingot_engine::refs::{self, Edit, Expected, Transaction};
use ingot_engine::{store, walk};

use crate::archive::{self, Archive, Snapshot};

/// How many snapshots to keep, of which kind. For each period, the newest one of as many periods as said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Keep {
    /// The newest ones.
    pub last: usize,
    /// One for each hour.
    pub hourly: usize,
    /// One for each day.
    pub daily: usize,
    /// One for each week, from Monday on.
    pub weekly: usize,
    /// One for each month.
    pub monthly: usize,
    /// One for each year.
    pub yearly: usize,
}

impl Keep {
    /// Whether anything is kept at all.
    pub fn any(&self) -> bool {
        *self != Keep::default()
    }
}

/// Why pruning failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The repository could not be used.
    #[error(transparent)]
    Archive(#[from] archive::Error),
    /// The rewritten history could not be stored.
    #[error(transparent)]
    Create(#[from] create::Error),
    /// The new pack could not be planned or read.
    #[error(transparent)]
    Write(#[from] write::Error),
    /// The new pack could not be taken in.
    #[error(transparent)]
    Import(#[from] import::Error),
    /// What the branches reach could not be found out.
    #[error(transparent)]
    Walk(#[from] walk::Error),
    /// A file could not be removed, or no pipe be made.
    #[error(transparent)]
    File(#[from] durable::Error),
    /// The user wanted it.
    #[error("interrupted")]
    Interrupted,
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Error {
        Error::Archive(error.into())
    }
}

impl From<refs::Error> for Error {
    fn from(error: refs::Error) -> Error {
        Error::Archive(error.into())
    }
}

/// Which snapshots, newest first, the rules keep.
pub fn select(snapshots: &[Snapshot], keep: &Keep) -> Vec<bool> {
    let mut kept = vec![false; snapshots.len()];
    kept.iter_mut().take(keep.last).for_each(|kept| *kept = true);
    type Period = fn(&jiff::civil::DateTime) -> (i64, i64);
    let rules: [(usize, Period); 5] = [
        (keep.hourly, |at| (day(at), i64::from(at.hour()))),
        (keep.daily, |at| (day(at), 0)),
        (keep.weekly, |at| {
            let week = at.date().iso_week_date();
            (i64::from(week.year()), i64::from(week.week()))
        }),
        (keep.monthly, |at| (i64::from(at.year()), i64::from(at.month()))),
        (keep.yearly, |at| (i64::from(at.year()), 0)),
    ];
    for (count, period) in rules {
        let mut last = None;
        let mut left = count;
        for (snapshot, kept) in snapshots.iter().zip(&mut kept) {
            if left == 0 {
                break;
            }
            let here = Some(period(&local_time(snapshot)));
            if here != last {
                last = here;
                left -= 1;
                *kept = true;
            }
        }
    }
    kept
}

fn day(at: &jiff::civil::DateTime) -> i64 {
    i64::from(at.year()) * 400 + i64::from(at.date().day_of_year())
}

/// The time of a snapshot where it was made.
pub fn local_time(snapshot: &Snapshot) -> jiff::civil::DateTime {
    let at = jiff::Timestamp::from_second(snapshot.commit.seconds).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let offset = jiff::tz::Offset::from_seconds(snapshot.commit.offset.saturating_mul(60));
    offset.unwrap_or(jiff::tz::Offset::UTC).to_datetime(at)
}

/// What pruning did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// The newest snapshot, under its new id.
    pub tip: Option<ObjectId>,
    /// Snapshots that are gone.
    pub removed: u64,
    /// Snapshots that are left.
    pub kept: u64,
    /// Bytes of packs before.
    pub bytes_before: u64,
    /// Bytes of packs after.
    pub bytes_after: u64,
}

/// Keeps those of `snapshots`, the history of this machine, newest first, that `kept` says, and packs what is left anew.
pub fn prune(
    archive: &Archive,
    snapshots: &[Snapshot],
    kept: &[bool],
    fs: Arc<dyn Fs>,
    progress: &dyn Progress,
) -> Result<Pruned, Error> {
    let mut pruned = Pruned {
        kept: kept.iter().filter(|kept| **kept).count() as u64,
        bytes_before: pack_bytes(archive),
        ..Pruned::default()
    };
    pruned.removed = snapshots.len() as u64 - pruned.kept;
    pruned.tip = rewrite(archive, snapshots, kept, &fs)?;
    if progress.interrupted() {
        return Err(Error::Interrupted);
    }
    repack(archive, fs, progress)?;
    pruned.bytes_after = pack_bytes(archive);
    Ok(pruned)
}

/// Makes the commits of the new history and moves the branch.
fn rewrite(
    archive: &Archive,
    snapshots: &[Snapshot],
    kept: &[bool],
    fs: &Arc<dyn Fs>,
) -> Result<Option<ObjectId>, Error> {
    let repository = archive.repository();
    let options = create::Options {
        fs: Arc::clone(fs),
        ..create::Options::default()
    };
    let mut creator = Creator::begin(repository.objects_dir(), repository.format(), &options);
    let mut encoder = Encoder::new(repository.format(), Level::default());
    let mut parent: Option<ObjectId> = None;
    for (snapshot, _) in snapshots.iter().zip(kept).rev().filter(|(_, kept)| **kept) {
        if snapshot.commit.parents.first() == parent.as_ref() {
            parent = Some(snapshot.id);
            continue;
        }
        let mut commit = snapshot.commit.clone();
        commit.parents = parent.into_iter().collect();
        let object = encoder.encode(Kind::Commit, &commit.encode());
        creator.add(&object)?;
        parent = Some(object.id);
    }
    let old = snapshots.first().map(|snapshot| snapshot.id);
    if parent == old || parent.is_none() {
        return Ok(parent);
    }
    creator.finish()?;
    let edits = parent.zip(old).map(|(new, old)| {
        Ok::<_, archive::Error>(
            Edit::set(archive.branch()?, new)
                .expecting(Expected::Is(old))
                .because("prune"),
        )
    });
    let edits = edits.into_iter().collect::<Result<Vec<_>, _>>()?;
    let options = refs::Options {
        fs: Arc::clone(fs),
        ..refs::Options::default()
    };
    Transaction::prepare(repository, edits, &options)?.commit()?;
    Ok(parent)
}

/// Packs everything that a branch reaches into one pack and removes the others. Those with a `.keep` file stay.
fn repack(archive: &Archive, fs: Arc<dyn Fs>, progress: &dyn Progress) -> Result<(), Error> {
    let repository = archive.repository();
    let store = archive.store()?;
    let wants: Vec<ObjectId> = refs::list(repository, "")?
        .into_iter()
        .map(|reference| reference.id)
        .collect();
    let request = walk::Request {
        wants: &wants,
        ..walk::Request::default()
    };
    let members = walk::enumerate(&store, &request, progress)?;
    let old: Vec<std::path::PathBuf> = store.packs().iter().map(|pack| pack.path().to_owned()).collect();
    let mut new = None;
    if !members.is_empty() {
        let plan = write::plan(&store, &members, &write::Options::default(), progress)?;
        let options = import::Options {
            fs: Arc::clone(&fs),
            ..import::Options::default()
        };
        let mut import = Import::begin(repository.objects_dir(), repository.format(), options)?;
        let (reader, writer) = std::io::pipe().map_err(|error| {
            Error::File(durable::Error::new(
                "make a pipe for",
                repository.objects_dir(),
                error,
            ))
        })?;
        let (written, taken) = std::thread::scope(|scope| {
            let writing = scope.spawn(|| {
                let mut writer = writer;
                plan.stream(&mut writer, progress)
            });
            let mut reader = BufReader::with_capacity(256 * 1024, reader);
            let taken = import.add_pack(&mut reader, &Limits::default(), progress);
            drop(reader);
            let written = writing
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (written, taken)
        });
        // When one side fails, the other one sees the pipe close; the cause is worth telling.
        if let Err(error) = taken {
            return Err(match written {
                Err(cause) if !matches!(cause, write::Error::Output(_)) => cause.into(),
                _ => error.into(),
            });
        }
        written?;
        new = import.publish(false)?.into_iter().next().map(|pack| pack.pack);
    }
    for pack in old.iter().filter(|pack| Some(*pack) != new.as_ref()) {
        if pack.with_extension("keep").exists() {
            continue;
        }
        // A pack counts as long as it has an index.
        for extension in ["idx", "rev", "bitmap", "pack"] {
            let path = pack.with_extension(extension);
            match fs.unlink(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(durable::Error::new("remove", path, error).into());
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Bytes of all packs of the repository.
pub fn pack_bytes(archive: &Archive) -> u64 {
    let folder = archive.repository().objects_dir().join("pack");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.metadata().ok())
        .map(|meta| meta.len())
        .sum()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // in tests, failing is the point
mod tests {
    use super::*;
    use crate::archive::commit::Commit;

    /// Snapshots at these hours before a fixed moment, a Wednesday at noon.
    fn history(hours: &[i64]) -> Vec<Snapshot> {
        let id = ObjectId::empty_tree(gix_hash::Kind::Sha1);
        let snapshot = |hour: &i64| Snapshot {
            id,
            commit: Commit {
                tree: id,
                parents: Vec::new(),
                author: "desk".into(),
                seconds: 1_700_049_600 - hour * 3600,
                offset: 60,
                message: String::new(),
            },
        };
        hours.iter().map(snapshot).collect()
    }

    fn kept(hours: &[i64], keep: Keep) -> Vec<i64> {
        let kept = select(&history(hours), &keep);
        hours
            .iter()
            .zip(kept)
            .filter(|(_, kept)| *kept)
            .map(|(hour, _)| *hour)
            .collect()
    }

    #[test]
    fn the_newest_of_each_period_stays() {
        let hours = [0, 1, 2, 20, 25, 30, 50, 100, 200, 800, 9000];
        let keep = Keep::default();
        assert_eq!(kept(&hours, Keep { last: 3, ..keep }), [0, 1, 2]);
        assert_eq!(kept(&hours, Keep { hourly: 2, ..keep }), [0, 1]);
        // Noon at an offset of one hour is 13 o'clock: 13 hours back is still today.
        assert_eq!(kept(&hours, Keep { daily: 3, ..keep }), [0, 20, 50]);
        assert_eq!(kept(&hours, Keep { weekly: 2, ..keep }), [0, 100]);
        assert_eq!(kept(&hours, Keep { monthly: 2, ..keep }), [0, 800]);
        assert_eq!(kept(&hours, Keep { yearly: 9, ..keep }), [0, 9000]);
        assert_eq!(
            kept(
                &hours,
                Keep {
                    last: 1,
                    yearly: 2,
                    ..keep
                }
            ),
            [0, 9000]
        );
        assert_eq!(kept(&hours, Keep { last: 99, ..keep }), hours);
        assert!(!keep.any() && kept(&hours, keep).is_empty());
    }
}
