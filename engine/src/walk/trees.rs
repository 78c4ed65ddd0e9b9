//! Marks everything that trees reach, level by level.
//!
//! All trees of a level are read in the order of their packs, so each delta finds its base read shortly before, and
//! nearly every tree is inflated once. An entry that a tree takes over from its delta base is not even looked at, if the
//! base itself is among the trees of this walk: see [`crate::object::tree_delta`]. Levels are divided among threads;
//! because a base counts only if it was there when the level started, what is found never depends on who was faster.

use std::sync::atomic::{AtomicUsize, Ordering};

use gix_hash::{ObjectId, oid};
use gix_object::Kind;
use gix_pack::data::Entry;
use gix_pack::data::entry::Header;

use super::error::{Error, Fault};
use super::marks::{KNOWN, Marked, Marks};
use super::name_hash;
use super::tree_cache::{Tree, TreeCache};
use super::visits::Visits;
use crate::object::tree_delta::Error::Delta;
use crate::object::tree_delta::{all_entries, changed_entries_from};
use crate::pack::delta;
use crate::progress::Progress;
use crate::store::{self, Cache, Pack, Position, Reader, Store};

/// Decoded trees that all threads keep together, in bytes.
pub(super) const CACHE: usize = 32 << 20;
/// How many trees a thread takes at once. Fewer would tear delta chains apart.
const BATCH: usize = 256;
/// How many trees pass between two looks at the progress.
const TICK: u64 = 1024;

/// A packed tree of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Item {
    pack: u32,
    offset: u64,
    at: u32,
    name_hash: u32,
}

/// The trees to read next.
#[derive(Debug, Default)]
pub(super) struct Level {
    packed: Vec<Position>,
    loose: Vec<ObjectId>,
}

impl Level {
    /// Marks a root tree and puts it in the level if it is new.
    pub(super) fn add(&mut self, marks: &Marks<'_>, id: &oid, bits: u8) -> Marked {
        let marked = marks.mark(id, bits, name_hash::ROOT);
        self.found(marked, id);
        marked
    }

    /// [`Level::add`] for a canonical position.
    pub(super) fn add_packed(&mut self, marks: &Marks<'_>, at: Position, bits: u8) {
        if marks.mark_packed(at, bits, name_hash::ROOT) {
            self.packed.push(at);
        }
    }

    #[inline]
    pub(super) fn found(&mut self, marked: Marked, id: &oid) {
        match marked {
            Marked::Packed(at) => self.packed.push(at),
            Marked::Loose => self.loose.push(id.to_owned()),
            Marked::Seen | Marked::Missing => {}
        }
    }

    /// Takes over all of another one.
    pub(super) fn append(&mut self, other: &mut Level) {
        self.packed.append(&mut other.packed);
        self.loose.append(&mut other.loose);
    }

    fn is_empty(&self) -> bool {
        self.packed.is_empty() && self.loose.is_empty()
    }
}

/// Whose trees these are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// To be sent: everything must be there.
    New,
    /// The receiver's: marked as known, and what is absent does not matter.
    Known,
}

impl Side {
    pub(super) fn bits(self) -> u8 {
        match self {
            Side::New => 0,
            Side::Known => KNOWN,
        }
    }
}

/// Marks all that the trees of `level` reach.
pub(super) fn expand(
    marks: &Marks<'_>,
    mut level: Level,
    side: Side,
    threads: usize,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let mut workers: Vec<Worker<'_, '_>> = (0..threads.max(1))
        .map(|_| Worker::new(marks, side, CACHE / threads.max(1), progress))
        .collect();
    while !level.is_empty() {
        level = step(marks, level, &mut workers)?;
    }
    Ok(())
}

/// Reads the trees of one level; returns the next.
fn step(marks: &Marks<'_>, level: Level, workers: &mut [Worker<'_, '_>]) -> Result<Level, Error> {
    let Level { packed, mut loose } = level;
    let store = marks.store();
    let mut items: Vec<Item> = packed
        .into_iter()
        .map(|at| {
            let (pack, local) = store.pack_of(at);
            marks.open_packed(at);
            Item {
                pack: store.pack_number(at) as u32,
                offset: pack.offset(local),
                at: at.0,
                name_hash: marks.name_hash(at),
            }
        })
        .collect();
    items.sort_unstable();
    loose.sort_unstable();
    let loose: Vec<(ObjectId, u32)> = loose
        .into_iter()
        .map(|id| (id, marks.name_hash_of_loose(&id)))
        .collect();

    let needed = (items.len() + loose.len())
        .div_ceil(BATCH)
        .clamp(1, workers.len());
    let workers = &mut workers[..needed];
    let shares = Shares::new(items.len(), needed);
    let loose_next = AtomicUsize::new(0);
    let work = |number: usize, worker: &mut Worker<'_, '_>| {
        while let Some(range) = shares.take(number) {
            for place in range {
                worker.run(place, |worker| worker.packed(&items[place]));
            }
            if worker.stopped {
                return;
            }
        }
        loop {
            let place = loose_next.fetch_add(1, Ordering::Relaxed);
            let Some((id, name_hash)) = loose.get(place) else {
                break;
            };
            worker.run(items.len() + place, |worker| worker.loose(id, *name_hash));
            if worker.stopped {
                return;
            }
        }
    };
    match &mut *workers {
        [only] => work(0, only),
        _ => std::thread::scope(|scope| {
            for (number, worker) in workers.iter_mut().enumerate() {
                let work = &work;
                scope.spawn(move || work(number, worker));
            }
        }),
    }

    let mut next = Level::default();
    let mut failure: Option<(usize, Error)> = None;
    for worker in workers {
        let missing = worker.visits.end(&mut next);
        for other in worker.failure.take().into_iter().chain(missing) {
            if failure.as_ref().is_none_or(|first| other.0 < first.0) {
                failure = Some(other);
            }
        }
    }
    match failure {
        Some((_, error)) => Err(error),
        None => Ok(next),
    }
}

/// Divides a level: one range of neighbours for each thread, taken batch by batch; who has finished helps the others.
struct Shares {
    ranges: Vec<(AtomicUsize, usize)>,
}

impl Shares {
    fn new(count: usize, threads: usize) -> Shares {
        let bound = |number: usize| count / threads * number + count % threads * number / threads;
        Shares {
            ranges: (0..threads)
                .map(|number| (AtomicUsize::new(bound(number)), bound(number + 1)))
                .collect(),
        }
    }

    fn take(&self, own: usize) -> Option<std::ops::Range<usize>> {
        let threads = self.ranges.len();
        (0..threads).find_map(|distance| {
            let (next, end) = &self.ranges[(own + distance) % threads];
            let start = next.fetch_add(BATCH, Ordering::Relaxed);
            (start < *end).then(|| start..(start + BATCH).min(*end))
        })
    }
}

/// What one thread has.
struct Worker<'m, 's> {
    marks: &'m Marks<'s>,
    side: Side,
    progress: &'m dyn Progress,
    reader: Reader,
    trees: TreeCache,
    delta: Vec<u8>,
    chain: Vec<Entry>,
    visits: Visits<'m, 's>,
    /// The first failure in the order of the level.
    failure: Option<(usize, Error)>,
    done: u64,
    stopped: bool,
}

impl<'m, 's> Worker<'m, 's> {
    fn new(marks: &'m Marks<'s>, side: Side, budget: usize, progress: &'m dyn Progress) -> Self {
        Worker {
            marks,
            side,
            progress,
            reader: Reader::new(),
            trees: TreeCache::new(budget),
            delta: Vec::new(),
            chain: Vec::new(),
            visits: Visits::new(marks, side),
            failure: None,
            done: 0,
            stopped: false,
        }
    }

    /// Does one piece of work of a level and keeps the error that comes first in it.
    fn run(&mut self, place: usize, work: impl FnOnce(&mut Self) -> Result<(), Error>) {
        if self.stopped {
            return;
        }
        self.visits.begin(place);
        if let Err(error) = work(self)
            && self.failure.as_ref().is_none_or(|(first, _)| place < *first)
        {
            self.failure = Some((place, error));
        }
        self.done += 1;
        if self.done.is_multiple_of(TICK) {
            self.progress.advance(TICK);
            if self.progress.interrupted() {
                self.failure = Some((0, Error::Interrupted));
                self.stopped = true;
            }
        }
    }

    fn packed(&mut self, item: &Item) -> Result<(), Error> {
        match self.stored(item) {
            // Another copy may be sound.
            Err(Error::Store(error)) => {
                let id = self.marks.store().id(Position(item.at)).to_owned();
                self.loose(&id, item.name_hash).map_err(|_| Error::Store(error))
            }
            result => result,
        }
    }

    fn stored(&mut self, item: &Item) -> Result<(), Error> {
        let store = self.marks.store();
        let pack = &store.packs()[item.pack as usize];
        let entry = self.reader.entry(pack, item.offset)?;
        match entry.header {
            Header::Tree => {
                let mut tree = self.trees.fresh(entry.decompressed_size);
                Self::inflate(&mut self.reader, store, pack, &entry, &mut tree.bytes)?;
                let id = store.id(Position(item.at));
                let result = self.whole(&mut tree, id, item.name_hash);
                tree.at = Some(Position(item.at));
                self.trees.put((item.pack as usize, item.offset), tree);
                result
            }
            Header::OfsDelta { .. } => self.delta(pack, item, entry),
            // Bases by id are rare: a thin pack that was completed. The store knows how to find them.
            Header::RefDelta { .. } => {
                let id = store.id(Position(item.at));
                let mut tree = Tree::default();
                let mut cache = Cache::new(0);
                let kind = store.read_entry(pack, item.offset, &mut cache, &mut tree.bytes)?;
                self.needs_tree(kind, id)?;
                let result = self.whole(&mut tree, id, item.name_hash);
                tree.at = Some(Position(item.at));
                self.trees.put((item.pack as usize, item.offset), tree);
                result
            }
            Header::Commit => self.needs_tree(Kind::Commit, store.id(Position(item.at))),
            Header::Blob => self.needs_tree(Kind::Blob, store.id(Position(item.at))),
            Header::Tag => self.needs_tree(Kind::Tag, store.id(Position(item.at))),
        }
    }

    fn loose(&mut self, id: &oid, name_hash: u32) -> Result<(), Error> {
        let mut tree = Tree::default();
        let mut cache = Cache::new(0);
        match self.marks.store().read(id, &mut cache, &mut tree.bytes)? {
            Some(kind) => self.needs_tree(kind, id)?,
            // Someone removed it since it was marked.
            None if self.side == Side::Known => return Ok(()),
            None => {
                return Err(Error::Missing {
                    id: id.to_owned(),
                    referrer: None,
                });
            }
        }
        self.whole(&mut tree, id, name_hash)
    }

    fn needs_tree(&self, actual: Kind, id: &oid) -> Result<(), Error> {
        match actual {
            Kind::Tree => Ok(()),
            actual => Err(Error::WrongKind {
                id: id.to_owned(),
                expected: Kind::Tree,
                actual,
                referrer: None,
            }),
        }
    }

    /// Reads a tree that is a delta of another entry of the same pack.
    fn delta(&mut self, pack: &Pack, item: &Item, first: Entry) -> Result<(), Error> {
        let store = self.marks.store();
        let number = item.pack as usize;
        let id = store.id(Position(item.at));
        // Down to a base that is at hand.
        let mut chain = std::mem::take(&mut self.chain);
        chain.clear();
        let mut base = base_of(store, pack, &first)?;
        let direct = base;
        chain.push(first);
        let mut held: Option<(u64, Tree)> = None;
        while self.trees.get((number, base)).is_none() {
            let entry = self.reader.entry(pack, base)?;
            match entry.header {
                Header::OfsDelta { .. } => {
                    let next = base_of(store, pack, &entry)?;
                    chain.push(entry);
                    base = next;
                }
                _ => {
                    let mut tree = self.trees.fresh(entry.decompressed_size);
                    let kind = match entry.header.as_kind() {
                        Some(kind) => {
                            Self::inflate(&mut self.reader, store, pack, &entry, &mut tree.bytes)?;
                            kind
                        }
                        None => store.read_entry(pack, base, &mut Cache::new(0), &mut tree.bytes)?,
                    };
                    self.needs_tree(kind, id)?;
                    all_entries(&tree.bytes, id_length(store), &mut tree.starts, |_| ())
                        .map_err(|fault| malformed(pack, base, store, fault))?;
                    held = Some((base, tree));
                    break;
                }
            }
        }
        // And up again, each delta on the tree below it.
        while let Some(entry) = chain.pop() {
            let at = entry.pack_offset();
            Self::inflate(&mut self.reader, store, pack, &entry, &mut self.delta)?;
            let (_, size, _) =
                delta::header(&self.delta).map_err(|fault| malformed(pack, at, store, Delta(fault)))?;
            within_limit(store, pack, at, size)?;
            let mut tree = self.trees.fresh(size);
            let below = match &held {
                Some((_, tree)) => tree,
                None => self
                    .trees
                    .get((number, base))
                    .expect("the loop above ended because it is there"),
            };
            delta::apply(&below.bytes, &self.delta, &mut tree.bytes)
                .map_err(|fault| malformed(pack, at, store, Delta(fault)))?;
            let last = chain.is_empty();
            let skip = last
                && match below.at {
                    Some(at) => self.marks.is_open(at),
                    None => self.covers(number, pack, direct),
                };
            let visits = &mut self.visits;
            changed_entries_from(
                &below.starts,
                &self.delta,
                &tree.bytes,
                id_length(store),
                &mut tree.starts,
                |entry| {
                    if skip {
                        visits.add(&entry, item.name_hash, id);
                    }
                },
            )
            .map_err(|fault| malformed(pack, at, store, fault))?;
            let mut result = Ok(());
            if last {
                tree.at = Some(Position(item.at));
            }
            if last && !skip {
                result = self.whole(&mut tree, id, item.name_hash);
            }
            if let Some((at, tree)) = held.replace((at, tree)) {
                self.trees.put((number, at), tree);
            }
            result?;
        }
        if let Some((at, tree)) = held {
            self.trees.put((number, at), tree);
        }
        self.chain = chain;
        Ok(())
    }

    /// True if the entries of the tree at this offset are marked, or will be.
    fn covers(&self, number: usize, pack: &Pack, offset: u64) -> bool {
        let store = self.marks.store();
        let Some(local) = pack.local_at(offset) else {
            return false;
        };
        let at = match number {
            0 => Some(store.position(0, local)),
            _ => store.find(pack.id(local)),
        };
        at.is_some_and(|at| self.marks.is_open(at))
    }

    /// Inflates what an entry holds, within the store's limit for one object.
    fn inflate(
        reader: &mut Reader,
        store: &Store,
        pack: &Pack,
        entry: &Entry,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let at = entry.pack_offset();
        within_limit(store, pack, at, entry.decompressed_size)?;
        reader.inflate(pack, entry, out)?;
        Ok(())
    }

    /// Marks all entries of a tree, and notes where they start.
    fn whole(&mut self, tree: &mut Tree, id: &oid, folder: u32) -> Result<(), Error> {
        let visits = &mut self.visits;
        let length = id_length(self.marks.store());
        all_entries(&tree.bytes, length, &mut tree.starts, |entry| {
            visits.add(&entry, folder, id);
        })
        .map_err(|fault| Error::Malformed {
            id: id.to_owned(),
            fault: fault.into(),
        })
    }
}

fn id_length(store: &Store) -> usize {
    store.format().len_in_bytes()
}

/// Where the base of a delta starts in its pack. Always before the delta, so chains end.
fn base_of(store: &Store, pack: &Pack, entry: &Entry) -> Result<u64, Error> {
    let base = match entry.header {
        Header::OfsDelta { base_distance } => entry.checked_base_pack_offset(base_distance),
        _ => None,
    };
    base.ok_or_else(|| malformed(pack, entry.pack_offset(), store, Fault::Base))
}

fn within_limit(store: &Store, pack: &Pack, offset: u64, size: u64) -> Result<(), Error> {
    let limit = store.options().object_limit;
    match size > limit {
        false => Ok(()),
        true => Err(Error::Store(store::Error::TooLarge {
            id: id_at(pack, offset, store),
            size,
            limit,
        })),
    }
}

fn id_at(pack: &Pack, offset: u64, store: &Store) -> ObjectId {
    match pack.local_at(offset) {
        Some(local) => pack.id(local).to_owned(),
        None => ObjectId::null(store.format()),
    }
}

fn malformed(pack: &Pack, offset: u64, store: &Store, fault: impl Into<Fault>) -> Error {
    Error::Malformed {
        id: id_at(pack, offset, store),
        fault: fault.into(),
    }
}
