//! What one process has of a carrier on a server: connections, and what was fetched.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bstr::BStr;
use gix_hash::ObjectId;
use ingot_engine::import::Limits;
use ingot_engine::pack::create::Content;
use ingot_engine::pack::index;
use ingot_engine::progress::Silent;
use ingot_engine::store::Store;
use ingot_engine::transport::{self, Fetch, Haves, ReceivePack, UploadPack};
use tempfile::TempDir;

use super::super::super::Error;
use super::super::layout::{BRANCH, FOLDER_LIMIT};
use super::super::outer::Purpose;
use super::super::snapshot::Snapshot;
use super::{Shared, cache, failed};

/// A connection for a push that waits longer than this is given up, before the server does.
const LONGEST_WAIT: Duration = Duration::from_secs(20);
/// Packs of so many bytes are fetched in one request; of more, if there is one that is larger.
const GROUP_BYTES: u64 = 64 << 20;
/// The most blobs that are wanted in one request.
const GROUP_BLOBS: usize = 1000;
/// No object but the parts of packs may be larger, and no answer needs more than this.
const KEPT_LIMITS: Limits = Limits {
    pack_bytes: 4 << 30,
    objects: u32::MAX,
    object_bytes: FOLDER_LIMIT,
    held_bytes: FOLDER_LIMIT,
};

/// See the module.
#[derive(Default)]
pub(super) struct Session {
    upload: Option<UploadPack>,
    receive: Option<(ReceivePack, Instant)>,
    /// What had to be fetched with more than was wanted.
    spools: Vec<TempDir>,
    /// The packs that were fetched last.
    group: Option<(TempDir, Arc<Store>)>,
    /// Packs that will be read next, with their sizes.
    expected: VecDeque<(Vec<ObjectId>, u64)>,
    /// The cache was forgotten once, and it was not that.
    distrusted: bool,
}

impl Session {
    /// The branch as it is now.
    pub fn look(&mut self, shared: &Shared, purpose: Purpose) -> Result<Snapshot, Error> {
        let (format, tip) = match purpose {
            Purpose::Read => self.ask_for_reading(shared)?,
            Purpose::Push => self.ask_for_pushing(shared)?,
        };
        let (kept, store) = self.open_cache(shared, format)?;
        let Some(tip) = tip else {
            return Snapshot::open(&shared.name, store, None);
        };
        if kept == Some(tip)
            && let Ok(snapshot) = Snapshot::open(&shared.name, Arc::clone(&store), Some(tip))
        {
            return Ok(snapshot);
        }
        self.fetch_tip(shared, tip, kept, &store)
    }

    fn open_cache(
        &self,
        shared: &Shared,
        format: gix_hash::Kind,
    ) -> Result<(Option<ObjectId>, Arc<Store>), Error> {
        let spools: Vec<_> = self.spools.iter().map(|spool| spool.path().to_owned()).collect();
        shared.cache.open(format, &spools)
    }

    /// Object format and tip, from the service that fetches are made from.
    fn ask_for_reading(&mut self, shared: &Shared) -> Result<(gix_hash::Kind, Option<ObjectId>), Error> {
        let ask = |upload: &mut UploadPack| -> Result<_, transport::Error> {
            let refs = upload.refs(&[BStr::new(BRANCH)])?;
            let tip = refs
                .iter()
                .find(|known| known.name == BRANCH)
                .map(|known| known.id);
            Ok((upload.object_format(), tip))
        };
        // A connection that idled may be gone without anything being wrong.
        if let Some(upload) = self.upload.as_mut().filter(|upload| upload.lists_anew())
            && let Ok(answer) = ask(upload)
        {
            return Ok(answer);
        }
        self.upload = None;
        ask(self.connected(shared)?).map_err(failed)
    }

    /// The same from the service that takes pushes, which stays connected for the push.
    fn ask_for_pushing(&mut self, shared: &Shared) -> Result<(gix_hash::Kind, Option<ObjectId>), Error> {
        let receive = match self.take_receive_pack() {
            Some(receive) => receive,
            None => shared.place.push.receive_pack().map_err(failed)?,
        };
        let answer = (receive.object_format(), receive.find(BStr::new(BRANCH)));
        self.receive = Some((receive, Instant::now()));
        Ok(answer)
    }

    /// The connection for a push, if there is one that did not wait for too long. Its references were read when it was
    /// made; the server compares them when it is asked to move one.
    pub fn take_receive_pack(&mut self) -> Option<ReceivePack> {
        self.receive
            .take()
            .filter(|(_, since)| since.elapsed() < LONGEST_WAIT)
            .map(|(receive, _)| receive)
    }

    fn connected(&mut self, shared: &Shared) -> Result<&mut UploadPack, Error> {
        let upload = match self.upload.take() {
            Some(upload) => upload,
            None => shared.place.fetch.upload_pack().map_err(failed)?,
        };
        Ok(self.upload.insert(upload))
    }

    /// Completes the cache for `tip`; `have` is what it is complete for now.
    fn fetch_tip(
        &mut self,
        shared: &Shared,
        tip: ObjectId,
        have: Option<ObjectId>,
        store: &Arc<Store>,
    ) -> Result<Snapshot, Error> {
        let upload = self.connected(shared)?;
        let have: Vec<ObjectId> = have.into_iter().filter(|have| store.contains(have)).collect();
        let snapshot = if upload.offers_filter() && upload.offers_any_want() {
            self.fetch_folders(shared, tip, have, store)?
        } else {
            self.fetch_everything(shared, tip, have, store)?
        };
        shared.cache.set_tip(tip)?;
        tidy(shared, &snapshot)?;
        Ok(snapshot)
    }

    /// From a server that leaves out what is not wanted: commits and trees, then the head and the new manifests.
    fn fetch_folders(
        &mut self,
        shared: &Shared,
        tip: ObjectId,
        have: Vec<ObjectId>,
        store: &Arc<Store>,
    ) -> Result<Snapshot, Error> {
        let format = store.format();
        let request = Fetch {
            depth: depth_for(&have),
            haves: Haves::Known(have),
            filter: Some("blob:none"),
            ..Fetch::new(vec![tip])
        };
        self.fetch_into_cache(shared, request, store)?;
        let (_, store) = self.open_cache(shared, format)?;
        let snapshot = Snapshot::open(&shared.name, Arc::clone(&store), Some(tip))?;
        let mut blobs = snapshot.all_manifests()?;
        blobs.extend(snapshot.head_blob()?);
        blobs.retain(|blob| !store.contains(blob));
        blobs.sort_unstable();
        blobs.dedup();
        if blobs.is_empty() {
            return Ok(snapshot);
        }
        for wants in blobs.chunks(GROUP_BLOBS) {
            self.fetch_into_cache(shared, Fetch::new(wants.to_vec()), &store)?;
        }
        let (_, store) = self.open_cache(shared, format)?;
        Snapshot::open(&shared.name, store, Some(tip))
    }

    fn fetch_into_cache(
        &mut self,
        shared: &Shared,
        request: Fetch<'_>,
        store: &Arc<Store>,
    ) -> Result<(), Error> {
        let mut import = shared.cache.import(store)?;
        let upload = self.connected(shared)?;
        let mut stream = upload.fetch(request).map_err(failed)?;
        let received = import.add_pack(&mut stream, &KEPT_LIMITS, &Silent);
        match received {
            Ok(_) => stream.finish().map_err(failed)?,
            Err(error) => {
                drop(stream);
                self.upload = None;
                return Err(not_taken(shared, error));
            }
        }
        shared.cache.keep(import)
    }

    /// From a server that sends everything with a commit: it stays in a spool as long as this process may need it.
    fn fetch_everything(
        &mut self,
        shared: &Shared,
        tip: ObjectId,
        have: Vec<ObjectId>,
        store: &Arc<Store>,
    ) -> Result<Snapshot, Error> {
        let format = store.format();
        let request = Fetch {
            depth: depth_for(&have),
            haves: Haves::Known(have),
            ..Fetch::new(vec![tip])
        };
        let spool = self.fetch_into_spool(shared, request)?;
        self.spools.push(spool);
        let (_, all) = self.open_cache(shared, format)?;
        let snapshot = Snapshot::open(&shared.name, Arc::clone(&all), Some(tip))?;
        // What is kept is not in the spool's way, and the other way round.
        let (_, kept) = shared.cache.open(format, &[])?;
        copy(shared, &snapshot, &kept)?;
        Ok(snapshot)
    }

    fn fetch_into_spool(&mut self, shared: &Shared, request: Fetch<'_>) -> Result<TempDir, Error> {
        let spool = shared.cache.spool()?;
        let packs = spool.path().join("pack");
        std::fs::create_dir(&packs).map_err(|error| Error::from_io(&shared.name, "create", &packs, error))?;
        let upload = self.connected(shared)?;
        let options = index::Options {
            fs: Arc::clone(&shared.place.fs),
            safe_names: false,
            ..index::Options::new(upload.object_format())
        };
        let mut stream = upload.fetch(request).map_err(failed)?;
        let received = index::index(&mut stream, &packs, &options, &Silent);
        match received {
            Ok(_) => stream.finish().map_err(failed)?,
            Err(error) => {
                drop(stream);
                self.upload = None;
                return Err(not_taken(shared, error.into()));
            }
        }
        Ok(spool)
    }

    /// A store with `blobs`.
    pub fn bring(
        &mut self,
        shared: &Shared,
        snapshot: &Snapshot,
        blobs: &[ObjectId],
    ) -> Result<Arc<Store>, Error> {
        let has_all = |store: &Store| blobs.iter().all(|blob| store.contains(blob));
        if has_all(snapshot.store()) {
            return Ok(Arc::clone(snapshot.store()));
        }
        if let Some((_, store)) = &self.group
            && has_all(store)
        {
            return Ok(Arc::clone(store));
        }
        self.group = None;
        let any = self.connected(shared)?.offers_any_want();
        let request = match (any, snapshot.tip()) {
            (false, Some(tip)) => Fetch {
                depth: depth_for(&[]),
                ..Fetch::new(vec![tip.commit])
            },
            _ => Fetch::new(self.next_group(blobs)),
        };
        let spool = self.fetch_into_spool(shared, request)?;
        let store = cache::open_spool(spool.path(), snapshot.format())?;
        self.group = Some((spool, Arc::clone(&store)));
        Ok(store)
    }

    /// `blobs`, and what will be wanted after them.
    fn next_group(&mut self, blobs: &[ObjectId]) -> Vec<ObjectId> {
        let mut wants = blobs.to_vec();
        if self.expected.front().is_some_and(|(parts, _)| parts == blobs) {
            let mut total = self.expected.pop_front().map_or(0, |(_, size)| size);
            while let Some((parts, size)) = self.expected.front() {
                total = total.saturating_add(*size);
                if total > GROUP_BYTES || wants.len() + parts.len() > GROUP_BLOBS {
                    break;
                }
                wants.extend(parts);
                self.expected.pop_front();
            }
        }
        wants.sort_unstable();
        wants.dedup();
        wants
    }

    /// These packs will be read, in this order.
    pub fn expect(&mut self, packs: Vec<(Vec<ObjectId>, u64)>) {
        self.expected = packs.into();
    }

    /// Forgets everything that was kept; false if it is not worth doing.
    pub fn distrust(&mut self, shared: &Shared) -> bool {
        if self.distrusted || !shared.cache.forget() {
            return false;
        }
        self.distrusted = true;
        self.upload = None;
        self.group = None;
        self.spools.clear();
        true
    }
}

/// How much history is needed: the tip alone. Where an earlier tip is here, what came between is little and not cut off.
fn depth_for(have: &[ObjectId]) -> Option<u32> {
    have.is_empty().then_some(1)
}

/// Puts what is kept of a snapshot into the cache, of which `kept` is the content.
fn copy(shared: &Shared, snapshot: &Snapshot, kept: &Arc<Store>) -> Result<(), Error> {
    let mut import = shared.cache.import(kept)?;
    let mut builder = import.builder();
    snapshot.for_each_kept(&mut |id, kind, bytes| {
        if kept.contains(&id) {
            return Ok(());
        }
        builder
            .add_whole(kind, bytes, Content::Compressible)
            .map(drop)
            .map_err(|error| Error::Write(error.into()))
    })?;
    import.adopt(builder).map_err(|error| not_taken(shared, error))?;
    shared.cache.keep(import)
}

/// Makes one pack of many.
pub(super) fn tidy(shared: &Shared, snapshot: &Snapshot) -> Result<(), Error> {
    let (_, kept) = shared.cache.open(snapshot.format(), &[])?;
    if !shared.cache.is_scattered(&kept) {
        return Ok(());
    }
    let mut import = shared.cache.import(&kept)?;
    let mut builder = import.builder();
    snapshot.for_each_kept(&mut |_, kind, bytes| {
        builder
            .add_whole(kind, bytes, Content::Compressible)
            .map(drop)
            .map_err(|error| Error::Write(error.into()))
    })?;
    import.adopt(builder).map_err(|error| not_taken(shared, error))?;
    shared.cache.replace(&kept, import)
}

/// A pack that was not taken: the connection's fault, the disk's, or the server's.
fn not_taken(shared: &Shared, error: ingot_engine::import::Error) -> Error {
    use ingot_engine::import::Error as Import;
    match error {
        Import::Pack(index::Error::Read { source, .. }) => match transport::Error::from_io(source) {
            Ok(error) => failed(error),
            Err(error) => Error::from_io(&shared.name, "read from", Path::new(&shared.name), error),
        },
        error => Error::Import {
            store: shared.name.clone(),
            source: Box::new(error),
        },
    }
}
