//! What new commits change: the trees and blobs that the receiver lacks.
//!
//! The tree of each new commit is compared with those of all its parents at once. An entry that any of them has too is
//! no news, and neither is what lies below it. What differs is searched for among the objects that the receiver is known
//! to have: all entries of the receiver's trees that were read on the way. So a file that moves between two folders
//! that are touched anyway is not sent again. Where something stands that has no counterpart before it, more of the
//! receiver's trees are read, above all those that have disappeared: that finds renamed folders, at a cost that stays in
//! proportion to what is new.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::iter::Peekable;
use std::rc::Rc;

use gix_hash::{ObjectId, oid};
use gix_object::Kind;

use super::error::Error;
use super::frontier::Frontier;
use super::marks::{IdMap, IdSet};
use super::name_hash::{self, ROOT};
use super::objects::{Fact, Objects};
use super::tips::Tips;
use super::tree_reader::TreeReader;
use crate::object::tree::{Entries, Entry};
use crate::object::tree_delta;
use crate::progress::Progress;
use crate::store::{Position, Store};

/// How many of the receiver's trees may be read only to see what they hold: so many, and so many more for each new object
/// without a counterpart.
const FREE: usize = 32;
const PER_UNMATCHED: usize = 4;
/// Where histories come together, content may come from the other side: one more tree for so many new objects.
const MATCHED_PER: usize = 4;
/// How many commits or trees pass between two looks at the progress.
const TICK: usize = 256;

/// An object that the receiver seems to lack.
#[derive(Debug)]
struct Found {
    kind: Kind,
    name_hash: u32,
    /// What the path held before.
    predecessor: Option<ObjectId>,
    referrer: ObjectId,
}

/// The same folder in a parent.
#[derive(Debug, Clone, Copy)]
struct Counterpart {
    id: ObjectId,
    /// True if the receiver has it.
    old: bool,
}

/// A new tree to be read.
struct Task {
    id: ObjectId,
    /// What it is compared with; often nothing.
    counterparts: Vec<Counterpart>,
    name_hash: u32,
    /// The hash of its own name, to match it with trees that disappeared.
    name: u32,
}

/// What is found on the way.
pub(super) struct Changes<'s> {
    store: &'s Store,
    trees: TreeReader<'s>,
    known: IdSet,
    /// Trees of the receiver whose entries are known.
    opened: IdSet,
    /// Trees of the receiver that were not read yet, in the order of discovery.
    unopened: VecDeque<ObjectId>,
    /// Trees of the receiver that are not where they were, with the hashes of their names.
    gone: Vec<(ObjectId, u32)>,
    found: IdMap<Found>,
    tasks: Vec<Task>,
    /// How many found objects have no counterpart.
    unmatched: usize,
    /// The first root tree of the receiver that something was compared with, and whether there are others.
    edge: Option<ObjectId>,
    several_edges: bool,
    /// How many trees were read only to see what they hold.
    spent: usize,
}

impl<'s> Changes<'s> {
    pub(super) fn new(store: &'s Store) -> Changes<'s> {
        Changes {
            store,
            trees: TreeReader::new(store),
            known: IdSet::default(),
            opened: IdSet::default(),
            unopened: VecDeque::new(),
            gone: Vec::new(),
            found: IdMap::default(),
            tasks: Vec::new(),
            unmatched: 0,
            edge: None,
            several_edges: false,
            spent: 0,
        }
    }

    /// Finds all objects that come with the new commits of `frontier` and with the other `wants`.
    pub(super) fn find(
        mut self,
        frontier: &Frontier,
        wants: &Tips,
        haves: &Tips,
        progress: &dyn Progress,
    ) -> Result<Objects, Error> {
        self.know(haves)?;
        // Parents come before children, and everything below a commit before the next one: what a tree shares with its
        // counterpart is dealt with only if the counterpart is. When a folder goes back to what it was, each of two
        // versions could otherwise rely on the other.
        for (number, commit) in frontier.parents_first().into_iter().enumerate() {
            let tree = commit.tree.expect("new commits have been read");
            let mut parents = Vec::with_capacity(commit.parents.len());
            for &parent in &commit.parents {
                let parent = &frontier.nodes()[parent as usize];
                if let Some(tree) = parent.tree {
                    add(&mut parents, tree, parent.is_old());
                }
            }
            self.found.insert(commit.id, found(Kind::Commit, commit.id));
            self.root(tree, commit.id, parents);
            self.read_tasks(progress)?;
            if number % TICK == TICK - 1 {
                progress.advance(TICK as u64);
                interrupted(progress)?;
            }
        }
        for id in &wants.tags {
            self.found.insert(*id, found(Kind::Tag, *id));
        }
        for id in &wants.trees {
            self.root(*id, *id, Vec::new());
            self.read_tasks(progress)?;
        }
        for id in &wants.blobs {
            self.found.insert(*id, found(Kind::Blob, *id));
        }
        self.unopened.extend(frontier.nearby_trees());
        self.look_around(progress)?;
        self.settle()?;
        self.into_objects()
    }

    /// What the receiver has beyond commits, and what comes with it.
    fn know(&mut self, haves: &Tips) -> Result<(), Error> {
        self.known
            .extend(haves.tags.iter().chain(&haves.blobs).chain(&haves.trees));
        let mut rest = haves.trees.clone();
        while let Some(id) = rest.pop() {
            rest.extend(self.open(&id)?.iter().map(|(id, _)| *id));
        }
        Ok(())
    }

    /// Takes up the tree of a commit.
    fn root(&mut self, id: ObjectId, commit: ObjectId, parents: Vec<Counterpart>) {
        for parent in parents.iter().filter(|parent| parent.old) {
            self.several_edges |= *self.edge.get_or_insert(parent.id) != parent.id;
            self.unopened.push_back(parent.id);
        }
        if parents.iter().any(|parent| parent.id == id) || self.has(&id) {
            return;
        }
        let found = Found {
            kind: Kind::Tree,
            name_hash: ROOT,
            predecessor: parents.first().map(|parent| parent.id),
            referrer: commit,
        };
        self.take(id, found, parents, b"");
    }

    /// Notes a new object. If it is a tree, it will be read.
    fn take(&mut self, id: ObjectId, found: Found, counterparts: Vec<Counterpart>, name: &[u8]) {
        if found.predecessor.is_none() {
            self.unmatched += 1;
        }
        if found.kind == Kind::Tree {
            self.tasks.push(Task {
                id,
                counterparts,
                name_hash: found.name_hash,
                name: name_hash::of_path(name),
            });
        }
        self.found.insert(id, found);
    }

    /// Reads all trees that wait, and those that are found on the way.
    fn read_tasks(&mut self, progress: &dyn Progress) -> Result<(), Error> {
        let mut count = 0usize;
        while let Some(task) = self.tasks.pop() {
            if task.counterparts.is_empty() {
                self.open_gone(task.name)?;
            }
            if !self.known.contains(&task.id) {
                self.compare(task)?;
            }
            count += 1;
            if count.is_multiple_of(TICK) {
                interrupted(progress)?;
            }
        }
        Ok(())
    }

    fn has(&self, id: &oid) -> bool {
        self.known.contains(id) || self.found.contains_key(id)
    }

    /// Compares a new tree with what was in its place.
    fn compare(&mut self, task: Task) -> Result<(), Error> {
        let tree = self.new_tree(&task.id)?;
        let mut before = Vec::with_capacity(task.counterparts.len());
        for counterpart in &task.counterparts {
            if counterpart.old {
                self.open(&counterpart.id)?;
            }
            if let Some(tree) = self.trees.read(&counterpart.id)? {
                before.push((tree, *counterpart));
            }
        }
        let format = self.store.format();
        let mut sides: Vec<Side<'_>> = before
            .iter()
            .map(|(tree, counterpart)| Side {
                entries: Entries::new(tree, format).peekable(),
                counterpart: *counterpart,
            })
            .collect();
        for entry in Entries::new(&tree, format) {
            let entry = entry.map_err(|fault| malformed(&task.id, fault))?;
            let mut same = false;
            let mut predecessor = None;
            let mut counterparts = Vec::new();
            for side in &mut sides {
                let Some((id, old)) = side.at(&entry, &mut self.gone)? else {
                    continue;
                };
                if id == entry.id {
                    same = true;
                    continue;
                }
                predecessor = predecessor.or(Some(id.to_owned()));
                if entry.is_tree() {
                    // What a new commit has taken over from the receiver is the receiver's too.
                    add(&mut counterparts, id.to_owned(), old || self.known.contains(id));
                }
            }
            if same || entry.is_gitlink() || self.has(entry.id) {
                continue;
            }
            let found = Found {
                kind: if entry.is_tree() { Kind::Tree } else { Kind::Blob },
                name_hash: name_hash::child(task.name_hash, entry.name),
                predecessor,
                referrer: task.id,
            };
            self.take(entry.id.to_owned(), found, counterparts, entry.name);
        }
        for side in &mut sides {
            side.finish(&mut self.gone)?;
        }
        Ok(())
    }

    /// How many trees may be read altogether only to see what they hold.
    fn budget(&self) -> usize {
        let matched = if self.several_edges {
            self.found.len() / MATCHED_PER
        } else {
            0
        };
        FREE + PER_UNMATCHED * self.unmatched + matched
    }

    /// Before a tree without counterpart is read: opens trees that have disappeared, because it may be one of them under
    /// another name or in another folder. Those that had the same name come first.
    fn open_gone(&mut self, name: u32) -> Result<(), Error> {
        let (same, other): (Vec<_>, Vec<_>) = std::mem::take(&mut self.gone)
            .into_iter()
            .filter(|(id, _)| !self.opened.contains(id))
            .partition(|(_, gone)| *gone == name);
        for (id, name) in same.into_iter().chain(other) {
            if self.spent < self.budget() {
                self.spent += 1;
                let below = self.open(&id)?;
                self.gone.extend(below);
            } else {
                self.gone.push((id, name));
            }
        }
        Ok(())
    }

    /// In the end, opens further trees of the receiver, as many as what was found is worth: content may have been copied
    /// from folders that nothing has touched, or have come with a merge.
    fn look_around(&mut self, progress: &dyn Progress) -> Result<(), Error> {
        if self.unmatched == 0 && !self.several_edges {
            return Ok(());
        }
        let budget = self.budget();
        let gone = std::mem::take(&mut self.gone);
        let mut rest: VecDeque<ObjectId> = gone.into_iter().map(|(id, _)| id).collect();
        rest.append(&mut self.unopened);
        while self.spent < budget
            && let Some(id) = rest.pop_front()
        {
            if !self.opened.contains(&id) {
                self.spent += 1;
                self.open(&id)?;
                rest.append(&mut self.unopened);
                if self.spent.is_multiple_of(TICK) {
                    interrupted(progress)?;
                }
            }
        }
        Ok(())
    }

    /// What lies in found trees that turned out to be known is known as well.
    fn settle(&mut self) -> Result<(), Error> {
        let late = |(id, found): (&ObjectId, &Found)| {
            (found.kind == Kind::Tree && self.known.contains(id) && !self.opened.contains(id)).then_some(*id)
        };
        let mut rest: Vec<ObjectId> = self.found.iter().filter_map(late).collect();
        while let Some(id) = rest.pop() {
            let subtrees = self.open(&id)?;
            rest.extend(
                subtrees
                    .iter()
                    .map(|(id, _)| *id)
                    .filter(|id| self.found.contains_key(id)),
            );
        }
        Ok(())
    }

    /// Makes the entries of one of the receiver's trees known. Returns its subtrees with the hashes of their names; none
    /// if that was done before, or if the tree is not here.
    fn open(&mut self, id: &oid) -> Result<Vec<(ObjectId, u32)>, Error> {
        if !self.opened.insert(id.to_owned()) {
            return Ok(Vec::new());
        }
        self.known.insert(id.to_owned());
        let Some(tree) = self.trees.read(id)? else {
            return Ok(Vec::new());
        };
        let mut subtrees = Vec::new();
        for entry in Entries::new(&tree, self.store.format()) {
            let entry = entry.map_err(|fault| malformed(id, fault))?;
            if entry.is_gitlink() {
                continue;
            }
            self.known.insert(entry.id.to_owned());
            if entry.is_tree() {
                self.unopened.push_back(entry.id.to_owned());
                subtrees.push((entry.id.to_owned(), name_hash::of_path(entry.name)));
            }
        }
        Ok(subtrees)
    }

    fn new_tree(&mut self, id: &oid) -> Result<Rc<Vec<u8>>, Error> {
        match self.trees.read(id)? {
            Some(tree) => Ok(tree),
            None => Err(Error::Missing {
                id: id.to_owned(),
                referrer: self.found.get(id).map(|found| found.referrer),
            }),
        }
    }

    /// What was found and is not known. Everything in it exists: trees have been read, and blobs are looked up here.
    fn into_objects(self) -> Result<Objects, Error> {
        let (mut packed, mut loose) = (Vec::new(), Vec::new());
        let mut missing: Option<(ObjectId, ObjectId)> = None;
        for (id, found) in self.found {
            if self.known.contains(&id) {
                continue;
            }
            let fact = Fact {
                kind: found.kind,
                name_hash: found.name_hash,
            };
            match self.store.find(&id) {
                Some(at) => packed.push((at, fact, found.predecessor)),
                None if self.store.contains_loose(&id) => loose.push((id, fact, found.predecessor)),
                // The order of a hash map must not decide which one is named.
                None => {
                    missing =
                        Some(missing.map_or((id, found.referrer), |other| other.min((id, found.referrer))))
                }
            }
        }
        if let Some((id, referrer)) = missing {
            return Err(Error::Missing {
                id,
                referrer: Some(referrer),
            });
        }
        packed.sort_unstable_by_key(|(at, ..)| *at);
        loose.sort_unstable_by_key(|(id, ..)| *id);
        let predecessors = packed
            .iter()
            .map(|(_, _, predecessor)| predecessor)
            .chain(loose.iter().map(|(_, _, predecessor)| predecessor))
            .zip(0u32..)
            .filter_map(|(predecessor, number)| Some((number, (*predecessor)?)))
            .filter(|(_, id)| self.store.contains(id))
            .collect();
        let mut objects = Objects::new(
            self.store,
            packed
                .iter()
                .map(|(at, fact, _): &(Position, Fact, _)| (*at, *fact)),
            loose.iter().map(|(id, fact, _)| (*id, *fact)),
        );
        objects.set_predecessors(predecessors);
        Ok(objects)
    }
}

/// A counterpart on the way through its entries.
struct Side<'a> {
    entries: Peekable<Entries<'a>>,
    counterpart: Counterpart,
}

impl<'a> Side<'a> {
    /// What this side has in the place of `entry`, and whether the receiver has it. Entries before that place have
    /// disappeared.
    fn at(
        &mut self,
        entry: &Entry<'_>,
        gone: &mut Vec<(ObjectId, u32)>,
    ) -> Result<Option<(&'a oid, bool)>, Error> {
        while let Some(next) = self.entries.peek() {
            let next = next
                .as_ref()
                .map_err(|fault| malformed(&self.counterpart.id, *fault))?;
            match next.cmp_place(entry) {
                Ordering::Less => {
                    leave(self.counterpart, next, gone);
                    self.entries.next();
                }
                Ordering::Equal => {
                    let (id, gitlink) = (next.id, next.is_gitlink());
                    self.entries.next();
                    // A submodule that becomes a file is no earlier version of it.
                    return Ok((gitlink == entry.is_gitlink()).then_some((id, self.counterpart.old)));
                }
                Ordering::Greater => break,
            }
        }
        Ok(None)
    }

    fn finish(&mut self, gone: &mut Vec<(ObjectId, u32)>) -> Result<(), Error> {
        while let Some(next) = self.entries.next() {
            let next = next.map_err(|fault| malformed(&self.counterpart.id, fault))?;
            leave(self.counterpart, &next, gone);
        }
        Ok(())
    }
}

/// Notes an entry of the receiver that is not where it was.
fn leave(side: Counterpart, entry: &Entry<'_>, gone: &mut Vec<(ObjectId, u32)>) {
    if side.old && entry.is_tree() {
        gone.push((entry.id.to_owned(), name_hash::of_path(entry.name)));
    }
}

/// Adds a counterpart unless it is there already.
fn add(counterparts: &mut Vec<Counterpart>, id: ObjectId, old: bool) {
    match counterparts.iter_mut().find(|other| other.id == id) {
        Some(other) => other.old |= old,
        None => counterparts.push(Counterpart { id, old }),
    }
}

fn found(kind: Kind, id: ObjectId) -> Found {
    Found {
        kind,
        name_hash: ROOT,
        predecessor: None,
        referrer: id,
    }
}

fn malformed(id: &oid, fault: crate::object::links::Error) -> Error {
    Error::Malformed {
        id: id.to_owned(),
        fault: tree_delta::Error::Tree(fault).into(),
    }
}

fn interrupted(progress: &dyn Progress) -> Result<(), Error> {
    match progress.interrupted() {
        true => Err(Error::Interrupted),
        false => Ok(()),
    }
}
