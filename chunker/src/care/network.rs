//! Chunks from and to Git servers.
//!
//! What is missing is asked for by its id, lists first, as current servers allow for anything that a reference leads to;
//! from a server that refuses, everything that is published is taken. What is published goes out as a thin pack: new
//! chunks as deltas against those of the version before.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use gix_hash::ObjectId;
use ingot_engine::chunked::{self, Difference, Pointer};
use ingot_engine::import::{self, Import, Limits};
use ingot_engine::pack::write;
use ingot_engine::progress::{Progress, Silent};
use ingot_engine::repository::Repository;
use ingot_engine::store::{Cache, Store};
use ingot_engine::transport::{Command, Fetch, Push, PushError, Remote, Status, UploadPack};
use ingot_engine::walk::{self, Request};

use super::exchange::{CHUNKS_REF, Fetched, Pushed, gather, published, write_commit};
use crate::Error;
use crate::repo::{commit, flatten, history};
use crate::store::KEEP;

/// So many objects are asked for at once.
const BATCH: usize = 4096;
/// So far back is an earlier version of a file looked for.
const LOOK_BACK: usize = 64;

/// Gets what the pointers lead to and is not here.
pub(super) fn fetch(
    repository: &Repository,
    remote: &Remote,
    pointers: &[Pointer],
    progress: &dyn Progress,
) -> Result<Fetched, Error> {
    let mut fetched = Fetched::default();
    let mut upload = remote.upload_pack()?;
    let mut asked: HashSet<ObjectId> = HashSet::new();
    let mut all_taken = false;
    loop {
        let store = repository.store()?;
        let missing = missing(&store, pointers)?;
        let wanted: Vec<ObjectId> = missing
            .iter()
            .filter(|id| !asked.contains(*id))
            .copied()
            .take(BATCH)
            .collect();
        if wanted.is_empty() || all_taken {
            fetched.absent = missing.len() as u64;
            return Ok(fetched);
        }
        asked.extend(&wanted);
        if let Err(error) = take(
            repository,
            &mut upload,
            Fetch::new(wanted),
            true,
            &mut fetched,
            progress,
        ) {
            let published = upload.refs(&[CHUNKS_REF.into()]).unwrap_or_default();
            let Some(tip) = published.iter().find(|reference| reference.name == CHUNKS_REF) else {
                return Err(error);
            };
            all_taken = true;
            take(
                repository,
                &mut upload,
                Fetch::new(vec![tip.id]),
                true,
                &mut fetched,
                progress,
            )?;
        }
    }
}

/// Lists and chunks that are not here, as far as lists that are here tell.
fn missing(store: &Store, pointers: &[Pointer]) -> Result<BTreeSet<ObjectId>, Error> {
    let mut missing = BTreeSet::new();
    let mut lists = HashSet::new();
    for pointer in pointers {
        chunked::reach(
            store,
            pointer,
            &mut Cache::new(0),
            |list| !lists.insert(*list),
            |reached| {
                if !store.contains(&reached.id) {
                    missing.insert(reached.id);
                }
            },
        )?;
    }
    Ok(missing)
}

fn take(
    repository: &Repository,
    upload: &mut UploadPack,
    request: Fetch<'_>,
    keep: bool,
    fetched: &mut Fetched,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let options = import::Options {
        keep_message: KEEP.to_owned(),
        ..import::Options::default()
    };
    let mut import = Import::begin(repository.objects_dir(), repository.format(), options)?;
    let mut stream = upload.fetch(request)?;
    let received = import.add_pack(&mut stream, &Limits::default(), progress)?;
    stream.finish()?;
    if keep {
        chunked::mark(&ingot_engine::durable::Real, repository.objects_dir())?;
    }
    import.publish(keep)?;
    fetched.objects += u64::from(received.objects);
    fetched.bytes += received.bytes;
    Ok(())
}

/// Publishes every list and chunk that references here lead to.
pub(super) fn push(
    repository: &Repository,
    remote: &Remote,
    progress: &dyn Progress,
) -> Result<Pushed, Error> {
    let mut pushed = Pushed::default();
    let receive = remote.receive_pack()?;
    if receive.object_format() != repository.format() {
        return Err(Error::Other(format!(
            "'{}' names its objects by another hash",
            remote.address()
        )));
    }
    let old = receive.find(CHUNKS_REF.into());
    let mut folders = match old {
        Some(old) => match published(&repository.store()?, old) {
            Ok(folders) => folders,
            Err(_) => {
                // Somebody else has published. Its trees say what is there.
                let mut upload = remote.upload_pack()?;
                let mut request = Fetch::new(vec![old]);
                request.filter = upload.offers_filter().then_some("blob:none");
                take(
                    repository,
                    &mut upload,
                    request,
                    false,
                    &mut Fetched::default(),
                    progress,
                )?;
                published(&repository.store()?, old)?
            }
        },
        None => BTreeMap::new(),
    };
    let before: HashSet<ObjectId> = folders.values().flatten().copied().collect();
    let store = repository.store()?;
    for id in gather(repository, &store, &mut pushed, progress)? {
        if folders.entry(id.first_byte()).or_default().insert(id) {
            pushed.objects += 1;
        }
    }
    if pushed.objects == 0 {
        return Ok(pushed);
    }
    let tip = write_commit(repository, &store, &folders, old)?;
    let store = repository.store()?;
    let haves: Vec<ObjectId> = old.into_iter().collect();
    let request = Request {
        wants: &[tip],
        haves: &haves,
        ..Request::default()
    };
    let mut objects = walk::enumerate(&store, &request, progress)?;
    let mut pairs = earlier(repository, &store, &before)?;
    if let Some(old) = old {
        // Most folders of chunks are the same as before.
        pairs.push((commit::tree_of(&store, tip)?, commit::tree_of(&store, old)?));
    }
    objects.add_predecessors(&store, pairs);
    let options = write::Options {
        thin: true,
        ..write::Options::default()
    };
    let plan = write::plan(&store, &objects, &options, progress)?;
    let change = match old {
        Some(old) => Command::update(CHUNKS_REF, old, tip),
        None => Command::create(CHUNKS_REF, tip),
    };
    let mut bytes = 0;
    let report = receive
        .push(
            Push {
                commands: vec![change],
                atomic: false,
                quiet: true,
                options: Vec::new(),
            },
            |out| {
                let summary = plan.stream(out, &Silent)?;
                bytes = summary.bytes;
                Ok::<(), write::Error>(())
            },
        )
        .map_err(|error| match error {
            PushError::Pack(error) => Error::from(error),
            PushError::Remote(error) => Error::from(error),
        })?;
    pushed.bytes = bytes;
    let refused = |reason: &dyn std::fmt::Display| {
        Error::Other(format!(
            "'{}' does not take the chunks: {reason}",
            remote.address()
        ))
    };
    report.unpack.map_err(|reason| refused(&reason))?;
    match report.refs.first().map(|report| &report.status) {
        Some(Status::Rejected(reason)) => Err(refused(reason)),
        _ => Ok(pushed),
    }
}

/// For chunks and lists of current files, those that stood in their place in the last version that is published.
fn earlier(
    repository: &Repository,
    store: &Store,
    published: &HashSet<ObjectId>,
) -> Result<Vec<(ObjectId, ObjectId)>, Error> {
    let mut pairs = Vec::new();
    let mut cache = Cache::new(1 << 20);
    let mut waiting = BTreeMap::new();
    for (number, entry) in history::log(repository, None, LOOK_BACK)?.into_iter().enumerate() {
        let flat = flatten(store, commit::tree_of(store, entry.id)?)?;
        if number == 0 {
            for (path, side) in &flat {
                if let Some(pointer) = chunked::read_pointer(store, &side.id, &mut cache)?
                    && !published.contains(&pointer.list)
                {
                    waiting.insert(path.clone(), pointer);
                }
            }
        }
        if waiting.is_empty() {
            break;
        }
        for (path, side) in &flat {
            let Some(new) = waiting.get(path) else { continue };
            let Some(old) = chunked::read_pointer(store, &side.id, &mut cache)? else {
                continue;
            };
            if !published.contains(&old.list) {
                continue;
            }
            // A version that cannot be read is no help.
            if let Ok(difference) = Difference::find(store, &old, new, &mut cache) {
                pairs.extend(
                    difference
                        .new_chunks()
                        .filter_map(|chunk| Some((chunk.id, chunk.before?))),
                );
                pairs.extend(difference.list_bases());
            }
            waiting.remove(path);
        }
    }
    pairs.retain(|(_, base)| published.contains(base));
    Ok(pairs)
}
