//! Removes chunks that nobody needs.
//!
//! Only packs that this program made are looked at, as their `.keep` files tell; Git takes care of the others. A pack of
//! which nothing is needed goes; one of which a part is needed is replaced by the packs of what is needed, which is
//! durable before the old one goes. Packs that are newer than the period of grace stay: somebody may be about to refer
//! to them.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use gix_hash::ObjectId;
use ingot_engine::pack::create::{self, Creator, Encoder};
use ingot_engine::pack::inflate::Level;
use ingot_engine::progress::Progress;
use ingot_engine::repository::Repository;
use ingot_engine::store::{Cache, Pack, Store};

use super::exchange::Source;
use super::reach::{needed, reachable};
use crate::Error;
use crate::error::During as _;
use crate::store::{KEEP, compresses, remove_chunks};

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
}

/// Removes what neither references, logs, indexes, work trees nor the stash lead to.
pub fn collect(
    repository: &Repository,
    options: Collection,
    progress: &dyn Progress,
) -> Result<Collected, Error> {
    let _guard = remove_chunks(repository)?;
    let store = repository.store()?;
    let needed = needed(repository, &store, progress)?;
    let mut collected = sweep(repository, &store, options, progress, &mut |id| {
        Ok(needed.contains(&store, id))
    })?;
    if !options.dry_run {
        collected.united_packs = unite_small(repository)?;
    }
    Ok(collected)
}

/// Every command that adds makes a pack; many small ones slow everybody down.
fn unite_small(repository: &Repository) -> Result<u64, Error> {
    let store = repository.store()?;
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
    unite(repository, &small)?;
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
    let store = repository.store()?;
    let there = source
        .here()
        .ok_or_else(|| {
            Error::Other(format!(
                "'{}' is not on this machine, so it cannot be read whole",
                source.name
            ))
        })?
        .store()?;
    let mut current = std::collections::HashSet::new();
    if !all {
        let mut lists = std::collections::HashSet::new();
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
    sweep(repository, &store, options, progress, &mut |id| {
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

fn sweep(
    repository: &Repository,
    store: &Store,
    options: Collection,
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
    let mut encoder = Encoder::new(store.format(), Level::DEFAULT);
    let mut going: Vec<&Pack> = Vec::new();
    for pack in store.packs() {
        if !pack.path().starts_with(repository.objects_dir()) || !is_ours(pack.path()) {
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
        for &local in pack.by_offset() {
            let id = pack.id(local).to_owned();
            if needed(&id)? {
                live.push(id);
            }
        }
        let garbage = pack.len() - live.len() as u32;
        if garbage == 0 || (!live.is_empty() && garbage < pack.len().div_ceil(WORTH_IT)) {
            continue;
        }
        collected.removed_packs += 1;
        collected.removed_objects += u64::from(garbage);
        collected.freed += size(pack.path());
        going.push(pack);
        if !options.dry_run {
            copy(store, &live, &mut creator, &mut encoder)?;
        }
    }
    if options.dry_run {
        return Ok(collected);
    }
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
    if packs.len() < 2 {
        return Ok(());
    }
    let store = repository.store()?;
    let mut creator = Creator::begin(
        repository.objects_dir(),
        store.format(),
        &create::Options::default(),
    );
    let mut encoder = Encoder::new(store.format(), Level::DEFAULT);
    for path in packs {
        let pack = Pack::open(path, store.format())?;
        let ids: Vec<ObjectId> = pack
            .by_offset()
            .iter()
            .map(|&local| pack.id(local).to_owned())
            .collect();
        copy(&store, &ids, &mut creator, &mut encoder)?;
    }
    if let Some(created) = creator.finish_kept(KEEP)? {
        for path in packs.iter().filter(|path| **path != created.pack) {
            remove(path)?;
        }
    }
    Ok(())
}

/// Writes objects into another pack.
fn copy(store: &Store, ids: &[ObjectId], creator: &mut Creator, encoder: &mut Encoder) -> Result<(), Error> {
    let mut cache = Cache::new(4 << 20);
    let mut bytes = Vec::new();
    for id in ids {
        let Some(kind) = store.read_verified(id, &mut cache, &mut bytes)? else {
            continue;
        };
        let object = match compresses(&bytes) {
            true => encoder.encode_as(*id, kind, &bytes),
            false => encoder.store_as(*id, kind, &bytes),
        };
        creator.add(&object)?;
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
