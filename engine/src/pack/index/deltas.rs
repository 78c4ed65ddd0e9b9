//! Resolves the deltas that could not be resolved while the stream came in.
//!
//! Deltas form trees, whose roots are resolved already. Each thread walks down one tree at a time, depth first and the
//! smallest subtrees first: an object is then needed no longer when its last and largest subtree is begun, so that a
//! chain of any length needs two objects in memory, and any tree at most one for each halving of its size. What is kept
//! beyond the object at hand is kept within the budget of [`Bases`](super::bases::Bases), and made again from the pack
//! file when it was given up. A thread without work takes open branches from the one that has.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use gix_hash::ObjectId;
use gix_object::Kind;

use super::bases::Base;
use super::batch::Worker;
use super::error::Error;
use super::examine::{Examined, Origin};
use super::table::{BY_ID, Entries, WHOLE, Waiting};
use super::work::Work;

/// How many missing bases an error names.
const NAMED: usize = 8;

/// The deltas of one pack.
struct Forest<'w, 'a> {
    work: &'w Work<'a>,
    entries: &'w Entries,
    /// Unresolved offset deltas, sorted by base.
    children: Vec<Child>,
    /// Unresolved reference deltas, sorted by the id of the base.
    waiting: Vec<Waiting>,
    /// Which of `waiting` somebody resolves: the same base may be in the pack twice.
    claimed: Vec<AtomicBool>,
    /// Resolved entries that have unresolved children.
    roots: Vec<u32>,
    next_root: AtomicUsize,
    shared: Mutex<Shared>,
    changed: Condvar,
    /// How many threads have nothing to do.
    idle: AtomicUsize,
    threads: usize,
}

#[derive(Debug, Clone, Copy)]
struct Child {
    base: u32,
    entry: u32,
    /// The number of entries in its subtree.
    weight: u32,
}

#[derive(Debug, Default)]
struct Shared {
    branches: VecDeque<Branch>,
    done: bool,
}

/// An object with children that are still to be resolved.
#[derive(Debug)]
struct Branch {
    entry: u32,
    kind: Kind,
    /// Present in the branch that its thread works on.
    base: Option<Base>,
    children: Range<usize>,
    waiting: Range<usize>,
    /// True if another thread has other children of the same object.
    divided: bool,
}

impl Branch {
    fn left(&self) -> usize {
        self.children.len() + self.waiting.len()
    }
}

/// Resolves what `work` has noted as postponed.
pub(super) fn resolve(work: &Work<'_>, threads: usize) -> Result<(), Error> {
    let (mut children, mut waiting) = {
        let mut resolved = work.resolved();
        let pending = std::mem::take(&mut resolved.pending);
        let children: Vec<Child> = pending
            .into_iter()
            .map(|(base, entry)| Child {
                base,
                entry,
                weight: 1,
            })
            .collect();
        (children, std::mem::take(&mut resolved.waiting))
    };
    let count = children.len() + waiting.len();
    if count == 0 {
        return Ok(());
    }
    work.progress.begin(
        "Resolving deltas",
        Some(count as u64),
        crate::progress::Unit::Objects,
    );
    weigh(&mut children);
    waiting.sort_unstable();
    let claimed = waiting.iter().map(|_| AtomicBool::new(false)).collect();
    let threads = threads.clamp(1, count);
    let entries = work.entries();
    let mut forest = Forest {
        work,
        entries: &entries,
        children,
        waiting,
        claimed,
        roots: Vec::new(),
        next_root: AtomicUsize::new(0),
        shared: Mutex::default(),
        changed: Condvar::new(),
        idle: AtomicUsize::new(0),
        threads,
    };
    forest.roots = forest.find_roots();
    if threads == 1 {
        Walker::new(&forest).run();
    } else {
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|| Walker::new(&forest).run());
            }
            Walker::new(&forest).run();
        });
    }
    work.outcome()?;
    if work.resolved().count() < entries.len() {
        return Err(forest.missing());
    }
    Ok(())
}

/// Computes the weights of subtrees and sorts by base, the lightest child first.
fn weigh(children: &mut [Child]) {
    // A base lies before its deltas in the file, so going backwards meets every subtree before its root.
    children.sort_unstable_by_key(|child| child.entry);
    for at in (0..children.len()).rev() {
        let Child { base, weight, .. } = children[at];
        if let Ok(parent) = children.binary_search_by_key(&base, |child| child.entry) {
            children[parent].weight += weight;
        }
    }
    children.sort_unstable_by_key(|child| (child.base, child.weight, child.entry));
}

impl Forest<'_, '_> {
    /// Finds what to begin with. Members of a family follow each other, so that what one is made from is at hand for the
    /// next.
    fn find_roots(&self) -> Vec<u32> {
        let resolved = self.work.resolved();
        let mut roots: Vec<u32> = Vec::new();
        for child in &self.children {
            if roots.last() != Some(&child.base) && resolved.kind(child.base).is_some() {
                roots.push(child.base);
            }
        }
        if !self.waiting.is_empty() {
            for entry in 0..self.entries.len() as u32 {
                if resolved.kind(entry).is_some() && !self.waiting_for(resolved.id(entry)).is_empty() {
                    roots.push(entry);
                }
            }
            roots.sort_unstable();
            roots.dedup();
        }
        drop(resolved);
        let families = self.families();
        roots.sort_unstable_by_key(|root| (families[*root as usize], *root));
        roots
    }

    /// For each entry the whole one that it is made from, or some other entry that stands for its family.
    fn families(&self) -> Vec<u32> {
        let mut families: Vec<u32> = Vec::with_capacity(self.entries.len());
        for (entry, base) in self.entries.bases.iter().enumerate() {
            let base = base.load(Ordering::Relaxed);
            // Bases of reference deltas may come later; their number will do.
            let family = match base {
                WHOLE | BY_ID => entry as u32,
                base => families.get(base as usize).copied().unwrap_or(base),
            };
            families.push(family);
        }
        families
    }

    fn children_of(&self, entry: u32) -> Range<usize> {
        let start = self.children.partition_point(|child| child.base < entry);
        let count = self.children[start..].partition_point(|child| child.base == entry);
        start..start + count
    }

    fn waiting_for(&self, id: &gix_hash::oid) -> Range<usize> {
        let start = self.waiting.partition_point(|waiting| *waiting.base < *id);
        let count = self.waiting[start..].partition_point(|waiting| *waiting.base == *id);
        start..start + count
    }

    fn branch(&self, entry: u32, kind: Kind, id: &gix_hash::oid, base: Option<Base>) -> Option<Branch> {
        let branch = Branch {
            entry,
            kind,
            base,
            children: self.children_of(entry),
            waiting: self.waiting_for(id),
            divided: false,
        };
        (branch.left() > 0).then_some(branch)
    }

    /// The next root that nobody has taken.
    fn root(&self) -> Option<Branch> {
        loop {
            let &entry = self.roots.get(self.next_root.fetch_add(1, Ordering::Relaxed))?;
            let (kind, id) = {
                let resolved = self.work.resolved();
                (resolved.kind(entry)?, resolved.id(entry).to_owned())
            };
            if let Some(branch) = self.branch(entry, kind, &id, None) {
                return Some(branch);
            }
        }
    }

    /// The base of a child of `branch`, or `None` when all are taken.
    fn next_child(&self, branch: &mut Branch) -> Option<u32> {
        if let Some(at) = branch.children.next() {
            return Some(self.children[at].entry);
        }
        for at in branch.waiting.by_ref() {
            if !self.claimed[at].swap(true, Ordering::Relaxed) {
                let entry = self.waiting[at].entry;
                self.entries.bases[entry as usize].store(branch.entry, Ordering::Release);
                return Some(entry);
            }
        }
        None
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for another thread to give something away. `None` when everything is done.
    fn wait(&self) -> Option<Branch> {
        let mut shared = self.shared();
        if let Some(branch) = shared.branches.pop_front() {
            return Some(branch);
        }
        let idle = self.idle.fetch_add(1, Ordering::SeqCst) + 1;
        if idle == self.threads {
            // Nobody is left who could give anything.
            shared.done = true;
            self.changed.notify_all();
        }
        loop {
            if shared.done {
                return None;
            }
            if let Some(branch) = shared.branches.pop_front() {
                self.idle.fetch_sub(1, Ordering::SeqCst);
                return Some(branch);
            }
            shared = self.changed.wait(shared).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Makes all threads stop waiting.
    fn stop(&self) {
        self.shared().done = true;
        self.changed.notify_all();
    }

    /// Says which bases the unresolved deltas lack.
    fn missing(&self) -> Error {
        let resolved = self.work.resolved();
        let mut missing: Vec<ObjectId> = self
            .waiting
            .iter()
            .filter(|waiting| resolved.kind(waiting.entry).is_none())
            .map(|waiting| waiting.base)
            .collect();
        missing.dedup();
        missing.truncate(NAMED);
        Error::MissingBases {
            count: self.entries.len() - resolved.count(),
            missing,
        }
    }
}

/// One thread's walk.
struct Walker<'f, 'w, 'a> {
    forest: &'f Forest<'w, 'a>,
    worker: Worker<'w>,
    stack: Vec<Branch>,
}

impl<'f, 'w, 'a> Walker<'f, 'w, 'a> {
    fn new(forest: &'f Forest<'w, 'a>) -> Walker<'f, 'w, 'a> {
        Walker {
            forest,
            worker: Worker::new(forest.work),
            stack: Vec::new(),
        }
    }

    fn run(mut self) {
        let forest = self.forest;
        while let Some(branch) = forest.root().or_else(|| forest.wait()) {
            self.stack.push(branch);
            while !self.stack.is_empty() {
                if forest.work.stopped() {
                    return forest.stop();
                }
                if let Err(error) = self.step() {
                    forest.work.fail(error);
                    return forest.stop();
                }
            }
        }
    }

    /// Resolves the next child of the topmost branch.
    fn step(&mut self) -> Result<(), Error> {
        let forest = self.forest;
        self.share();
        let Some(mut branch) = self.stack.pop() else {
            return Ok(());
        };
        let Some(child) = forest.next_child(&mut branch) else {
            if !branch.divided {
                forest.work.bases.remove(branch.entry);
            }
            return Ok(());
        };
        let Worker { examiner, maker, .. } = &mut self.worker;
        let work = forest.work;
        let base = match branch.base.take() {
            Some(base) => base,
            None => maker
                .base(work, branch.entry, u64::MAX)?
                .expect("everything is in the file, and the bases of what is resolved are known"),
        };
        if branch.left() == 0 && !branch.divided {
            work.bases.remove(branch.entry);
        }
        let range = forest.entries.range(child);
        let offset = range.start;
        let bytes = maker
            .apply(work, &base.bytes, range, u64::MAX)?
            .expect("no size exceeds the largest");
        let origin = Origin::Delta {
            base: &base,
            delta: maker.last_delta(),
        };
        let kind = branch.kind;
        let Examined { id, starts } = examiner.object(kind, &bytes, origin, offset)?;
        work.resolved().add(child, kind, &id);
        work.progress.advance(1);
        let bytes = Arc::new(bytes);
        let below = forest.branch(child, kind, &id, Some(Base { kind, bytes, starts }));
        if branch.left() > 0 {
            if below.is_some() {
                // The child's subtree comes first; until then, the base stays only if there is room.
                forest.work.bases.insert(branch.entry, base);
            } else {
                branch.base = Some(base);
            }
            self.stack.push(branch);
        }
        self.stack.extend(below);
        Ok(())
    }

    /// Gives children of the lowest open branch away when another thread has nothing to do.
    fn share(&mut self) {
        let forest = self.forest;
        if forest.idle.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut shared = forest.shared();
        // One gift at a time is enough.
        if !shared.branches.is_empty() {
            return;
        }
        let top = self.stack.len().saturating_sub(1);
        let open = self
            .stack
            .iter_mut()
            .enumerate()
            .find(|(at, branch)| branch.left() > usize::from(*at == top));
        if let Some((at, branch)) = open {
            shared.branches.push_back(branch.split(at < top));
            forest.changed.notify_one();
        }
    }
}

impl Branch {
    /// Takes half of the children away, or all of them.
    fn split(&mut self, all: bool) -> Branch {
        let keep = if all { 0 } else { self.left() - self.left() / 2 };
        let keep_children = keep.min(self.children.len());
        let keep_waiting = keep - keep_children;
        let children = self.children.start + keep_children..self.children.end;
        let waiting = self.waiting.start + keep_waiting..self.waiting.end;
        self.children.end = children.start;
        self.waiting.end = waiting.start;
        self.divided = true;
        Branch {
            entry: self.entry,
            kind: self.kind,
            base: self.base.clone(),
            children,
            waiting,
            divided: true,
        }
    }
}
