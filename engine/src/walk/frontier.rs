//! Which commits are newer than what the receiver has.
//!
//! Two searches go down from the tips, newest first: one from the wants, one from the haves. What the second reaches, the
//! receiver has. The searches end as soon as the second can no longer reach what the first has found, so that their
//! cost follows the new commits and not the age of the history. Generation numbers tell that exactly; without a
//! commit-graph, dates do, and where clocks were wrong some commits may be found that the receiver has already. Never
//! is one left out that it lacks.

use std::collections::BinaryHeap;

use gix_hash::{ObjectId, oid};

use super::error::Error;
use super::history::{History, NO_GENERATION};
use super::marks::IdMap;
use crate::progress::Progress;

/// Reached from a want.
const NEW: u8 = 1;
/// The receiver has it.
const OLD: u8 = 1 << 1;
/// Its parents have been reached from wants.
const EXPANDED: u8 = 1 << 2;
/// It is an ancestor of all that is new, so nothing new is an ancestor of it.
const BELOW: u8 = 1 << 3;

/// How often the search for old commits goes on although dates say that it cannot reach a new one any more. Only for haves
/// beside the new commits; what lies below these is not read. With Git's five, wrong clocks make it send more.
const SLOP: u32 = 32;
/// How often it goes on where only a commit that is older than its own parents says that it could still reach one. So
/// many commits are read if a clock was wrong, and not all of history.
const DOUBTFUL: u32 = 256;
/// Every so many steps the search from the wants moves on, whatever dates say. A new commit with an old date would
/// otherwise have to wait until all old commits of later date have been read.
const TURN: u32 = 4;
/// How many commits pass between two looks at the progress.
const TICK: u64 = 1024;

/// A commit that one of the searches has reached.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) id: ObjectId,
    /// `None` for a commit of the receiver that is not here.
    pub(super) tree: Option<ObjectId>,
    /// Where both searches go next. Numbers of nodes once [`Node::is_new`].
    pub(super) parents: Vec<u32>,
    /// The parents by id, until they are looked up.
    unread: Vec<ObjectId>,
    date: i64,
    generation: u32,
    flags: u8,
}

impl Node {
    /// True if the receiver has to get it.
    pub(super) fn is_new(&self) -> bool {
        self.flags & (OLD | EXPANDED) == EXPANDED
    }

    /// True if the receiver has it.
    pub(super) fn is_old(&self) -> bool {
        self.flags & OLD != 0
    }
}

/// Newest first: by generation, then by date, then by order of discovery.
type Key = (u32, i64, std::cmp::Reverse<u32>);

/// A commit to look for, and its generation.
#[derive(Debug)]
struct Goal {
    id: ObjectId,
    generation: u32,
    reached: bool,
}

/// The commits that were found on both sides.
#[derive(Debug, Default)]
pub(super) struct Frontier {
    nodes: Vec<Node>,
    numbers: IdMap<u32>,
    /// So many nodes at the beginning are haves.
    haves: usize,
    from_wants: BinaryHeap<Key>,
    from_haves: BinaryHeap<Key>,
    /// Everything expanded from wants, in that order; some may have turned out to be old.
    expanded: Vec<u32>,
    /// How many of them are new.
    new: usize,
    goal: Option<Goal>,
}

impl Frontier {
    /// True if `from` reaches `goal`, given as id and generation, whose parents are `parents`.
    pub(super) fn reaches(
        history: &mut History<'_>,
        from: &oid,
        goal: (&oid, u32),
        parents: &[ObjectId],
        progress: &dyn Progress,
    ) -> Result<bool, Error> {
        let mut frontier = Frontier {
            goal: Some(Goal {
                id: goal.0.to_owned(),
                generation: goal.1,
                reached: false,
            }),
            ..Frontier::default()
        };
        for id in parents {
            frontier.reach_old(history, id)?;
        }
        frontier.reach_new(history, from, None)?;
        frontier.run(usize::MAX, history, progress)?;
        Ok(frontier.goal.is_some_and(|goal| goal.reached))
    }

    /// Finds the commits that `wants` reach and `haves` do not. Those of `haves` that do not exist are passed over.
    pub(super) fn find(
        history: &mut History<'_>,
        wants: &[ObjectId],
        haves: &[ObjectId],
        progress: &dyn Progress,
    ) -> Result<Frontier, Error> {
        let mut frontier = Frontier::begin(history, wants, haves)?;
        frontier.run(usize::MAX, history, progress)?;
        Ok(frontier)
    }

    /// Prepares the search that [`Frontier::find`] makes. [`Frontier::run`] makes it.
    pub(super) fn begin(
        history: &mut History<'_>,
        wants: &[ObjectId],
        haves: &[ObjectId],
    ) -> Result<Frontier, Error> {
        let mut frontier = Frontier::default();
        for id in haves {
            frontier.reach_old(history, id)?;
        }
        frontier.haves = frontier.nodes.len();
        for id in wants {
            frontier.reach_new(history, id, None)?;
        }
        Ok(frontier)
    }

    /// All commits that either search has reached. Parents of new commits are among them.
    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The new commits, each after all of its parents whatever their dates say, otherwise oldest first.
    pub(super) fn parents_first(&self) -> Vec<&Node> {
        let is_new = |number: u32| self.nodes[number as usize].is_new();
        let new: Vec<u32> = self
            .expanded
            .iter()
            .copied()
            .filter(|&number| is_new(number))
            .collect();
        let mut place = vec![usize::MAX; self.nodes.len()];
        for (index, &number) in new.iter().enumerate() {
            place[number as usize] = index;
        }
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); new.len()];
        let mut waiting = vec![0u32; new.len()];
        let mut ready = BinaryHeap::new();
        for (index, &number) in new.iter().enumerate() {
            for &parent in self.nodes[number as usize]
                .parents
                .iter()
                .filter(|&&parent| is_new(parent))
            {
                children[place[parent as usize]].push(index as u32);
                waiting[index] += 1;
            }
            if waiting[index] == 0 {
                ready.push(index);
            }
        }
        // The searches found the newest first, so the oldest have the largest places.
        let mut sorted = Vec::with_capacity(new.len());
        while let Some(index) = ready.pop() {
            sorted.push(&self.nodes[new[index] as usize]);
            for &child in &children[index] {
                let child = child as usize;
                waiting[child] -= 1;
                if waiting[child] == 0 {
                    ready.push(child);
                }
            }
        }
        sorted
    }

    /// The new commits in no particular order.
    pub(super) fn new_commits(&self) -> impl Iterator<Item = &Node> {
        let nodes = self.expanded.iter().map(|&number| &self.nodes[number as usize]);
        nodes.filter(|node| node.is_new())
    }

    /// Trees of the receiver near the new commits, beyond those of their parents: of commits that were thought to be new
    /// for a while, and of the haves themselves, as far as the search got to them.
    pub(super) fn nearby_trees(&self) -> impl Iterator<Item = ObjectId> {
        let painted = self.expanded.iter().map(|&number| &self.nodes[number as usize]);
        let haves = &self.nodes[..self.haves];
        painted
            .chain(haves)
            .filter(|node| node.is_old())
            .filter_map(|node| node.tree)
    }

    /// How many commits are new.
    pub(super) fn new_len(&self) -> usize {
        self.new
    }

    /// Searches on. False if that ended for having found `limit` commits that seem to be new; a further call goes on.
    pub(super) fn run(
        &mut self,
        limit: usize,
        history: &mut History<'_>,
        progress: &dyn Progress,
    ) -> Result<bool, Error> {
        let mut end = End::default();
        let mut steps = 0u64;
        loop {
            while let Some(&key) = self.from_wants.peek()
                && self.node(key).is_old()
            {
                self.from_wants.pop();
            }
            if let Some(goal) = &self.goal
                && (goal.reached || self.from_wants.is_empty())
            {
                return Ok(true);
            }
            if self.new >= limit {
                return Ok(false);
            }
            match (self.from_wants.peek(), self.from_haves.peek()) {
                (None, None) => return Ok(true),
                (None, Some(_)) if self.new == 0 => return Ok(true),
                (None, Some(&key)) => {
                    if end.reached(self, key) {
                        return Ok(true);
                    }
                    self.step_old(history)?;
                }
                (Some(_), None) => self.step_new(history)?,
                (Some(new), Some(old)) => match new >= old || steps.is_multiple_of(TURN.into()) {
                    true => self.step_new(history)?,
                    false => self.step_old(history)?,
                },
            }
            steps += 1;
            if steps.is_multiple_of(TICK) && progress.interrupted() {
                return Err(Error::Interrupted);
            }
        }
    }

    fn node(&self, key: Key) -> &Node {
        &self.nodes[key.2.0 as usize]
    }

    fn key(&self, number: u32) -> Key {
        let node = &self.nodes[number as usize];
        (node.generation, node.date, std::cmp::Reverse(number))
    }

    /// Reads a commit, unless that has been done.
    fn number(
        &mut self,
        history: &mut History<'_>,
        id: &oid,
        flags: u8,
        referrer: Option<&oid>,
    ) -> Result<(u32, bool), Error> {
        if let Some(&number) = self.numbers.get(id) {
            return Ok((number, false));
        }
        let node = match history.commit(id, referrer)? {
            Some(commit) => Node {
                id: id.to_owned(),
                tree: Some(commit.tree),
                parents: Vec::new(),
                unread: commit.parents,
                date: commit.date,
                generation: commit.generation,
                flags,
            },
            None if flags & OLD != 0 => Node {
                id: id.to_owned(),
                tree: None,
                parents: Vec::new(),
                unread: Vec::new(),
                date: 0,
                generation: NO_GENERATION,
                flags,
            },
            None => {
                return Err(Error::Missing {
                    id: id.to_owned(),
                    referrer: referrer.map(ToOwned::to_owned),
                });
            }
        };
        let number = self.nodes.len() as u32;
        self.nodes.push(node);
        self.numbers.insert(id.to_owned(), number);
        Ok((number, true))
    }

    fn reach_new(
        &mut self,
        history: &mut History<'_>,
        id: &oid,
        referrer: Option<&oid>,
    ) -> Result<u32, Error> {
        let (number, first) = self.number(history, id, NEW, referrer)?;
        let mut leads_on = first;
        if let Some(goal) = &mut self.goal {
            goal.reached |= goal.id == id;
            // Within a commit-graph, only a higher generation reaches the goal.
            let generation = self.nodes[number as usize].generation;
            leads_on &= generation == NO_GENERATION || generation > goal.generation;
        }
        if leads_on {
            self.from_wants.push(self.key(number));
        }
        Ok(number)
    }

    fn reach_old(&mut self, history: &mut History<'_>, id: &oid) -> Result<u32, Error> {
        let (number, first) = self.number(history, id, OLD, None)?;
        match first {
            true => self.from_haves.push(self.key(number)),
            false => self.paint(number),
        }
        Ok(number)
    }

    /// The receiver has this commit after all, and so all that was found below it.
    fn paint(&mut self, number: u32) {
        let mut stack = vec![number];
        while let Some(number) = stack.pop() {
            let node = &mut self.nodes[number as usize];
            if node.is_old() {
                continue;
            }
            node.flags |= OLD;
            if node.flags & EXPANDED != 0 {
                self.new -= 1;
                stack.extend_from_slice(&node.parents);
            } else {
                self.from_haves.push(self.key(number));
            }
        }
    }

    fn step_new(&mut self, history: &mut History<'_>) -> Result<(), Error> {
        let Some((_, _, std::cmp::Reverse(number))) = self.from_wants.pop() else {
            return Ok(());
        };
        let node = &mut self.nodes[number as usize];
        node.flags |= EXPANDED;
        let (id, unread) = (node.id, std::mem::take(&mut node.unread));
        self.new += 1;
        self.expanded.push(number);
        let mut parents = Vec::with_capacity(unread.len());
        for parent in &unread {
            parents.push(self.reach_new(history, parent, Some(&id))?);
        }
        self.nodes[number as usize].parents = parents;
        Ok(())
    }

    fn step_old(&mut self, history: &mut History<'_>) -> Result<(), Error> {
        let Some((_, _, std::cmp::Reverse(number))) = self.from_haves.pop() else {
            return Ok(());
        };
        let node = &mut self.nodes[number as usize];
        if node.flags & BELOW != 0 {
            return Ok(());
        }
        let unread = std::mem::take(&mut node.unread);
        let mut parents = Vec::with_capacity(unread.len());
        for parent in &unread {
            parents.push(self.reach_old(history, parent)?);
        }
        self.nodes[number as usize].parents = parents;
        Ok(())
    }

    /// Called when all new commits are found. If all of them descend from one of them, its parents cannot reach any of
    /// them: what is to be pushed onto the receiver's tip needs no look at what lies below that tip.
    fn mark_below(&mut self) {
        let mut lowest = self.expanded.iter().copied().filter(|&number| {
            let node = &self.nodes[number as usize];
            node.is_new()
                && !node
                    .parents
                    .iter()
                    .any(|&parent| self.nodes[parent as usize].is_new())
        });
        let (Some(only), None) = (lowest.next(), lowest.next()) else {
            return;
        };
        let mut stack = self.nodes[only as usize].parents.clone();
        while let Some(number) = stack.pop() {
            let node = &mut self.nodes[number as usize];
            if node.flags & BELOW == 0 {
                node.flags |= BELOW;
                stack.extend_from_slice(&node.parents);
            }
        }
    }
}

/// What a commit that reaches a new one has to be above of.
#[derive(Debug, Clone, Copy)]
struct Floor {
    /// The lowest generation of a new commit.
    generation: u32,
    /// The lowest date of a new commit.
    date: i64,
    /// The same, were no commit older than its parents.
    plausible: i64,
    /// How many commits were new when this was computed.
    new: usize,
}

/// Decides when the search from the haves may end, once the one from the wants has.
#[derive(Debug, Default)]
struct End {
    floor: Option<Floor>,
    /// How many steps were made since the floor was computed.
    age: usize,
    slop: u32,
    doubtful: u32,
}

impl End {
    /// True if neither the old commit at `key`, which is the next, nor any after it can reach a new one.
    fn reached(&mut self, frontier: &mut Frontier, key: Key) -> bool {
        if self.floor.is_none() {
            frontier.mark_below();
        }
        let floor = self.floor(frontier);
        let node = frontier.node(key);
        if node.flags & BELOW != 0 {
            return false;
        }
        if node.generation != NO_GENERATION {
            // A commit reaches only lower generations, and one in the graph only others in the graph.
            return node.generation <= floor.generation;
        }
        if node.date >= floor.plausible {
            self.slop = 0;
            return false;
        }
        if node.date >= floor.date && self.doubtful < DOUBTFUL {
            self.doubtful += 1;
            return false;
        }
        self.slop += 1;
        self.slop > SLOP
    }

    fn floor(&mut self, frontier: &Frontier) -> Floor {
        self.age += 1;
        if let Some(floor) = self.floor
            && (floor.new == frontier.new || self.age < floor.new)
        {
            return floor;
        }
        let mut floor = Floor {
            generation: u32::MAX,
            date: i64::MAX,
            plausible: i64::MAX,
            new: frontier.new,
        };
        for node in frontier.new_commits() {
            floor.generation = floor.generation.min(node.generation);
            floor.date = floor.date.min(node.date);
            // Whatever reaches this commit reaches its parents, too, and was made after them. It is enough to look at
            // commits without new parents, as everything new was made after one of these.
            let parents = || {
                node.parents
                    .iter()
                    .map(|&parent| &frontier.nodes[parent as usize])
            };
            if !parents().any(Node::is_new) {
                let made = parents().map(|parent| parent.date).fold(node.date, i64::max);
                floor.plausible = floor.plausible.min(made);
            }
        }
        self.floor = Some(floor);
        self.age = 0;
        floor
    }
}
