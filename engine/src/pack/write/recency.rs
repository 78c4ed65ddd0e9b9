//! In which order history leads to objects, newest first.
//!
//! Objects of equal path and size, as most versions of a folder are, make the smallest deltas against their neighbours
//! in time; and readers like to find together what is used together.

use gix_object::{CommitRefIter, Kind, TreeRefIter};

use super::Error;
use super::item::Objects;
use crate::progress::Progress;
use crate::store::Cache;

/// Cached delta bases; loose trees are no deltas, but their neighbours may be.
const CACHE: usize = 1 << 20;

/// The loose objects by their numbers.
pub(super) struct Order {
    /// The numbers, ordered as walking from the newest commit down to the files of each finds them. What is reached
    /// through no loose object comes last.
    pub(super) numbers: Vec<u32>,
    /// Kinds and sizes of those that were read on the way, by number.
    pub(super) headers: Vec<Option<(Kind, u64)>>,
}

/// Orders the loose objects; only loose ones are followed. `kind` tells what each of them is.
pub(super) fn order(
    objects: Objects<'_>,
    kind: impl Fn(u32) -> Kind,
    progress: &dyn Progress,
) -> Result<Order, Error> {
    let count = objects.loose.len() as u32;
    let mut walk = Walk {
        objects,
        found: vec![false; objects.loose.len()],
        order: Vec::with_capacity(objects.loose.len()),
        headers: vec![None; objects.loose.len()],
        cache: Cache::new(CACHE),
    };
    let mut commits = Vec::new();
    for number in (0..count).filter(|&number| kind(number) == Kind::Commit) {
        if progress.interrupted() {
            return Err(Error::Interrupted);
        }
        let (time, tree) = walk.commit(number)?;
        commits.push((std::cmp::Reverse(time), number, tree));
    }
    commits.sort_unstable();
    for &(_, number, _) in &commits {
        walk.find(number);
    }
    for &(_, _, tree) in &commits {
        if progress.interrupted() {
            return Err(Error::Interrupted);
        }
        if let Some(tree) = tree {
            walk.tree(tree)?;
        }
    }
    for number in 0..count {
        walk.find(number);
    }
    Ok(Order {
        numbers: walk.order,
        headers: walk.headers,
    })
}

struct Walk<'a> {
    objects: Objects<'a>,
    found: Vec<bool>,
    order: Vec<u32>,
    headers: Vec<Option<(Kind, u64)>>,
    cache: Cache,
}

impl Walk<'_> {
    /// Appends an object to the order; false if it is there already.
    fn find(&mut self, number: u32) -> bool {
        let first = !std::mem::replace(&mut self.found[number as usize], true);
        if first {
            self.order.push(number);
        }
        first
    }

    /// Reads an object. Its id is checked when it is encoded.
    fn read(&mut self, number: u32, out: &mut Vec<u8>) -> Result<Kind, Error> {
        let id = &self.objects.loose[number as usize];
        let kind = self.objects.store.read(id, &mut self.cache, out)?;
        let kind = kind.ok_or_else(|| Error::Disappeared(id.to_owned()))?;
        self.headers[number as usize] = Some((kind, out.len() as u64));
        Ok(kind)
    }

    fn number(&self, id: &gix_hash::oid) -> Option<u32> {
        let place = self
            .objects
            .loose
            .binary_search_by(|other| other.as_ref().cmp(id))
            .ok()?;
        Some(place as u32)
    }

    /// When a commit was made, and the number of its tree if that is loose. What cannot be parsed counts as old.
    fn commit(&mut self, number: u32) -> Result<(i64, Option<u32>), Error> {
        let mut bytes = Vec::new();
        self.read(number, &mut bytes)?;
        let format = self.objects.store.format();
        let tree = CommitRefIter::from_bytes(&bytes, format).tree_id().ok();
        let time = CommitRefIter::from_bytes(&bytes, format)
            .committer()
            .map_or(i64::MIN, |committer| committer.seconds());
        Ok((time, tree.and_then(|tree| self.number(&tree))))
    }

    /// Finds a tree and what is below it.
    fn tree(&mut self, root: u32) -> Result<(), Error> {
        let mut pending = vec![(root, true)];
        let mut bytes = Vec::new();
        while let Some((number, is_tree)) = pending.pop() {
            if !self.find(number) || !is_tree {
                continue;
            }
            let kind = self.read(number, &mut bytes)?;
            if kind != Kind::Tree {
                continue;
            }
            let start = pending.len();
            for entry in TreeRefIter::from_bytes(&bytes, self.objects.store.format()).filter_map(Result::ok) {
                if let Some(number) = self
                    .number(entry.oid)
                    .filter(|&number| !self.found[number as usize])
                {
                    pending.push((number, entry.mode.is_tree()));
                }
            }
            // The stack gives back the last one first.
            pending[start..].reverse();
        }
        Ok(())
    }
}
