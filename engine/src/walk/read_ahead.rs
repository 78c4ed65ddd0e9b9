//! Reads packed commits before they are asked for.
//!
//! A search through history knows only a few commits at a time that it needs next, which leaves nothing to divide among
//! threads. But Git lays commits side by side, in nearly the order in which such a search reaches them. So when one is
//! needed, those behind it in the pack are read as well, on all threads. How many depends on how many of the last ones
//! were needed indeed.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use gix_object::Kind;
use gix_pack::data::entry::Header;

use super::history;
use super::marks::NumberHasher;
use crate::store::{Cache, Pack, Position, Store};

/// Memory for delta bases of each thread, in bytes.
const CACHE: usize = 1 << 20;
/// How many entries are read at once, at least and at most.
const FEWEST: u32 = 32;
const MOST: u32 = 8192;
/// So many for one thread before another one is started.
const SHARE: u32 = 512;
/// After so many other objects in a row, the pack's commits seem to end.
const OTHERS: u32 = 64;

/// A commit whose tree and parents are packed, by their canonical positions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ahead {
    pub(super) tree: Position,
    /// The first parent, and the others.
    pub(super) parent: Option<Position>,
    pub(super) others: Box<[Position]>,
}

/// Commits that were read and are not needed yet.
pub(super) struct ReadAhead<'s> {
    store: &'s Store,
    commits: HashMap<u32, Ahead, BuildHasherDefault<NumberHasher>>,
    caches: Vec<Cache>,
    /// The entries read last: their pack, and their places in its order.
    last: (usize, std::ops::Range<u32>),
    /// How many entries to read next time.
    size: u32,
    /// How many commits were read last time, and how many were taken since.
    read: usize,
    taken: usize,
}

impl<'s> ReadAhead<'s> {
    pub(super) fn new(store: &'s Store, threads: usize) -> ReadAhead<'s> {
        ReadAhead {
            store,
            commits: HashMap::default(),
            caches: (0..threads.max(1)).map(|_| Cache::new(CACHE)).collect(),
            last: (0, 0..0),
            size: FEWEST,
            read: 0,
            taken: 0,
        }
    }

    /// The commit at a position, which must be canonical. `None` if it has to be read on its own: because it refers to
    /// something that is not packed, or is damaged.
    pub(super) fn take(&mut self, at: Position) -> Option<Ahead> {
        if let Some(commit) = self.commits.remove(&at.0) {
            self.taken += 1;
            return Some(commit);
        }
        self.fill(at)?;
        self.commits.remove(&at.0)
    }

    /// Reads the entry at a position and those behind it, unless that has just been done.
    fn fill(&mut self, at: Position) -> Option<()> {
        let store = self.store;
        let number = store.pack_number(at);
        let (pack, local) = store.pack_of(at);
        let first = pack.rank(pack.offset(local))?;
        if self.last.0 == number && self.last.1.contains(&first) {
            return None;
        }
        self.size = match self.taken * 2 >= self.read {
            true => (self.size * 2).min(MOST),
            false => (self.size / 2).max(FEWEST),
        };
        let order = pack.by_offset();
        let count = self.size.min(pack.len() - first);
        self.last = (number, first..first + count);
        let entries = &order[first as usize..][..count as usize];
        let threads = (count.div_ceil(SHARE) as usize).min(self.caches.len());
        let share = entries.len().div_ceil(threads);
        let mut found: Vec<Vec<(u32, Ahead)>> = Vec::new();
        match threads {
            1 => found.push(read(store, number, pack, entries, &mut self.caches[0])),
            _ => std::thread::scope(|scope| {
                let workers: Vec<_> = entries
                    .chunks(share)
                    .zip(&mut self.caches)
                    .map(|(entries, cache)| scope.spawn(move || read(store, number, pack, entries, cache)))
                    .collect();
                for worker in workers {
                    match worker.join() {
                        Ok(commits) => found.push(commits),
                        Err(panic) => std::panic::resume_unwind(panic),
                    }
                }
            }),
        }
        self.read = found.iter().map(Vec::len).sum();
        self.taken = 0;
        self.commits.extend(found.into_iter().flatten());
        Some(())
    }
}

/// Reads those of the entries that are commits.
fn read(store: &Store, number: usize, pack: &Pack, entries: &[u32], cache: &mut Cache) -> Vec<(u32, Ahead)> {
    let mut found = Vec::new();
    let mut bytes = Vec::new();
    let mut others = 0;
    for &local in entries {
        if others == OTHERS {
            break;
        }
        let offset = pack.offset(local);
        // What fails here fails again, with a message, if the commit is needed.
        let Ok(entry) = cache.reader().entry(pack, offset) else {
            continue;
        };
        let is_commit = match entry.header {
            Header::Commit => true,
            Header::Tree | Header::Blob | Header::Tag => false,
            _ => store
                .entry_kind(pack, &entry, cache.reader())
                .is_ok_and(|kind| kind == Kind::Commit),
        };
        if !is_commit {
            others += 1;
            continue;
        }
        others = 0;
        let at = store.canonical(store.position(number, local));
        if store.read_entry(pack, offset, cache, &mut bytes).is_ok()
            && let Some(commit) = links(store, at, &bytes)
        {
            found.push((at.0, commit));
        }
    }
    found
}

fn links(store: &Store, at: Position, bytes: &[u8]) -> Option<Ahead> {
    let commit = history::parse(store.id(at), bytes, store.format()).ok()?;
    let mut parents = commit.parents.iter().map(|id| store.find(id));
    let parent = match parents.next() {
        Some(found) => Some(found?),
        None => None,
    };
    Some(Ahead {
        tree: store.find(&commit.tree)?,
        parent,
        others: parents.collect::<Option<_>>()?,
    })
}
