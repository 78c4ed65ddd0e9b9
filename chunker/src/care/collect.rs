//! Removes chunks that nobody needs.
//!
//! Only packs that this program made are looked at, as their `.keep` files tell; Git takes care of the others. A pack of
//! which nothing is needed goes; one of which a part is needed is replaced by the packs of what is needed, which is
//! durable before the old one goes. Packs that are newer than the period of grace stay: somebody may be about to refer
//! to them. Where chunks of earlier versions are worth being stored as differences from later ones, packs are written anew
//! for that.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use gix_hash::ObjectId;
use ingot_engine::pack::create::{self, Creator};
use ingot_engine::progress::Progress;
use ingot_engine::repository::Repository;
use ingot_engine::store::{Cache, Pack, Store};

use super::deltas::{Copier, Successors};
use super::exchange::Source;
use super::reach::{needed, reachable};
use crate::Error;
use crate::error::During as _;
use crate::store::{KEEP, remove_chunks};

/// A pack is written anew only if at least one part in so many of its objects is garbage.
const WORTH_IT: u32 = 10;

/// Packs below this size are small, and more of them than that become one.
const SMALL: u64 = 16 << 20;
const MOST_SMALL: usize = 16;

/// How to collect.
#[derive(Debug, Clone, Copy)]
pub struct Collection {
    /// Packs that are younger stay.
    pub grace: Duration,
    /// Changes nothing.
    pub dry_run: bool,
}

/// What was collected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Collected {
    /// Packs that were looked at.
    pub packs: u64,
    /// Packs that are gone.
    pub removed_packs: u64,
    /// Objects that are gone.
    pub removed_objects: u64,
    /// Bytes of the disk that are free now.
    pub freed: u64,
    /// Packs that stayed because they are young.
    pub young: u64,
    /// Small packs that became one.
    pub united_packs: u64,
    /// Chunks of earlier versions that became differences from later ones.
    pub deltas: u64,
    /// What that saves, in bytes; part of `freed`.
    pub saved: u64,
}

/// A store of which every pack can be read. Where one cannot, what is in it looks absent, and what only it leads to looks
/// like garbage: nothing may be removed then.
fn whole_store(repository: &Repository) -> Result<Store, Error> {
    let store = repository.store()?;
    match store.set_aside().first() {
        None => Ok(store),
        Some(error) => Err(Error::Other(format!(
            "{error}; nothing is removed while what may still be needed cannot be seen: make the pack readable, or fetch \
             what it had, and see: git chunk fsck"
        ))),
    }
}

/// Removes what neither references, logs, indexes, work trees nor the stash lead to.
pub fn collect(
    repository: &Repository,
    options: Collection,
    progress: &dyn Progress,
) -> Result<Collected, Error> {
    let _guard = remove_chunks(repository)?;
    let store = whole_store(repository)?;
    let needed = needed(repository, &store, progress)?;
    let successors = Successors::find(repository, &store, progress)?;
    let gain = successors.gain(&store, &|pack| {
        is_candidate(repository, pack) && !is_young(pack.path(), options.grace)
    })?;
    let rewriting = Rewriting {
        successors: &successors,
        packs: &gain.packs,
    };
    let mut collected = sweep(repository, &store, options, rewriting, progress, &mut |id| {
        Ok(needed.contains(&store, id))
    })?;
    (collected.deltas, collected.saved) = (gain.chunks, gain.saved);
    match options.dry_run {
        true => collected.freed += gain.saved,
        false => collected.united_packs = unite_small(repository, &successors)?,
    }
    Ok(collected)
}

/// Every command that adds makes a pack; many small ones slow everybody down.
fn unite_small(repository: &Repository, successors: &Successors) -> Result<u64, Error> {
    let store = whole_store(repository)?;
    let small: Vec<PathBuf> = store
        .packs()
        .iter()
        .map(|pack| pack.path())
        .filter(|path| path.starts_with(repository.objects_dir()) && is_ours(path) && size(path) < SMALL)
        .map(Path::to_owned)
        .collect();
    drop(store);
    if small.len() <= MOST_SMALL {
        return Ok(0);
    }
    unite_with(repository, &small, successors)?;
    Ok(small.len() as u64)
}

/// Removes chunks that the other repository has, whole and readable. Unless `all`, what the current commit and the index
/// need stays.
pub fn prune(
    repository: &Repository,
    source: &Source,
    all: bool,
    dry_run: bool,
    progress: &dyn Progress,
) -> Result<Collected, Error> {
    let _guard = remove_chunks(repository)?;
    let store = whole_store(repository)?;
    let there = source
        .here()
        .ok_or_else(|| {
            Error::Other(format!(
                "'{}' is not on this machine, so it cannot be read whole",
                source.name
            ))
        })?
        .store()?;
    let mut current = HashSet::new();
    if !all {
        let mut lists = HashSet::new();
        for (_, pointer) in reachable(repository, &store, false, progress)? {
            ingot_engine::chunked::reach(
                &store,
                &pointer,
                &mut Cache::new(0),
                |list| !lists.insert(*list),
                |reached| {
                    current.insert(reached.id);
                },
            )?;
        }
    }
    let mut cache = Cache::new(1 << 20);
    let mut bytes = Vec::new();
    let options = Collection {
        grace: Duration::ZERO,
        dry_run,
    };
    let successors = Successors::find(repository, &store, progress)?;
    let rewriting = Rewriting {
        successors: &successors,
        packs: &HashSet::new(),
    };
    sweep(repository, &store, options, rewriting, progress, &mut |id| {
        if current.contains(id) {
            return Ok(true);
        }
        // Pointers belong to history, which stays whole.
        if ingot_engine::chunked::read_pointer(&store, id, &mut cache)?.is_some() {
            return Ok(true);
        }
        // A copy that cannot be read is none.
        Ok(!matches!(
            there.read_verified(id, &mut cache, &mut bytes),
            Ok(Some(_))
        ))
    })
}

/// What is known beforehand of packs that are written anew.
struct Rewriting<'a> {
    successors: &'a Successors,
    /// Packs, by number, that are written anew even if all of them is needed.
    packs: &'a HashSet<usize>,
}

/// Whether the pack is one that this program made here.
fn is_candidate(repository: &Repository, pack: &Pack) -> bool {
    pack.path().starts_with(repository.objects_dir()) && is_ours(pack.path())
}

fn sweep(
    repository: &Repository,
    store: &Store,
    options: Collection,
    rewriting: Rewriting<'_>,
    progress: &dyn Progress,
    needed: &mut dyn FnMut(&ObjectId) -> Result<bool, Error>,
) -> Result<Collected, Error> {
    let mut collected = Collected::default();
    let begin = || {
        Creator::begin(
            repository.objects_dir(),
            store.format(),
            &create::Options::default(),
        )
    };
    let mut creator = begin();
    let mut going: Vec<&Pack> = Vec::new();
    let mut staying: Vec<ObjectId> = Vec::new();
    for (number, pack) in store.packs().iter().enumerate() {
        if !is_candidate(repository, pack) {
            continue;
        }
        collected.packs += 1;
        if is_young(pack.path(), options.grace) {
            collected.young += 1;
            continue;
        }
        if progress.interrupted() {
            return Err(Error::Interrupted);
        }
        let mut live = Vec::new();
        let mut live_bytes = 0;
        for &local in pack.by_offset() {
            let id = pack.id(local).to_owned();
            if needed(&id)? {
                live.push(id);
                live_bytes += pack.end(local)? - pack.offset(local);
            }
        }
        let garbage = pack.len() - live.len() as u32;
        let worth_it = garbage > 0 && (live.is_empty() || garbage >= pack.len().div_ceil(WORTH_IT));
        if !worth_it && !rewriting.packs.contains(&number) {
            continue;
        }
        collected.removed_packs += 1;
        collected.removed_objects += u64::from(garbage);
        collected.freed += match options.dry_run {
            true => size(pack.path()).saturating_sub(live_bytes),
            false => size(pack.path()),
        };
        going.push(pack);
        staying.extend(live);
    }
    if options.dry_run {
        return Ok(collected);
    }
    Copier::new(store, rewriting.successors).copy(&staying, &mut creator)?;
    // What is needed is durable in its new place before the old one goes.
    if !creator.is_empty()
        && let Some(created) = creator.finish_kept(KEEP)?
    {
        collected.freed = collected.freed.saturating_sub(created.bytes);
        going.retain(|pack| pack.path() != created.pack);
    }
    for pack in going {
        // Somebody may have used something in it since it was looked at: then it looks new.
        match is_young(pack.path(), options.grace) {
            true => {
                collected.removed_packs -= 1;
                collected.freed = collected.freed.saturating_sub(size(pack.path()));
            }
            false => remove(pack.path())?,
        }
    }
    Ok(collected)
}

/// Makes one pack of several that one conversation has made. When that fails, they stay as they are.
pub fn unite(repository: &Repository, packs: &[PathBuf]) -> Result<(), Error> {
    unite_with(repository, packs, &Successors::default())
}

fn unite_with(repository: &Repository, packs: &[PathBuf], successors: &Successors) -> Result<(), Error> {
    if packs.len() < 2 {
        return Ok(());
    }
    let store = whole_store(repository)?;
    let mut creator = Creator::begin(
        repository.objects_dir(),
        store.format(),
        &create::Options::default(),
    );
    let mut ids: Vec<ObjectId> = Vec::new();
    for path in packs {
        let pack = Pack::open(path, store.format())?;
        ids.extend(pack.by_offset().iter().map(|&local| pack.id(local).to_owned()));
    }
    Copier::new(&store, successors).copy(&ids, &mut creator)?;
    if let Some(created) = creator.finish_kept(KEEP)? {
        for path in packs.iter().filter(|path| **path != created.pack) {
            remove(path)?;
        }
    }
    Ok(())
}

/// Whether this program made the pack.
pub(super) fn is_ours(pack: &Path) -> bool {
    std::fs::read(pack.with_extension("keep")).is_ok_and(|text| text.starts_with(KEEP.as_bytes()))
}

fn is_young(pack: &Path, grace: Duration) -> bool {
    let age = std::fs::metadata(pack)
        .and_then(|meta| meta.modified())
        .ok()
        .and_then(|time| SystemTime::now().duration_since(time).ok());
    // A pack of the future, or one that nothing is known of, is not touched unless everything is to go.
    age.is_none_or(|age| age < grace) && !grace.is_zero()
}

fn size(pack: &Path) -> u64 {
    ["pack", "idx", "rev"]
        .iter()
        .filter_map(|extension| std::fs::metadata(pack.with_extension(extension)).ok())
        .map(|meta| meta.len())
        .sum()
}

/// Removes a pack: its index first, without which it does not count.
fn remove(pack: &Path) -> Result<(), Error> {
    for extension in ["idx", "rev", "pack", "keep"] {
        let path: PathBuf = pack.with_extension(extension);
        match std::fs::remove_file(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).during("remove", &path),
        }
    }
    Ok(())
}
