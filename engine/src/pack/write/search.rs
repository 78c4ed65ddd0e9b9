//! Finds deltas for the objects that have to be encoded.
//!
//! Objects are sorted so that likely relatives stand together: by kind, then by the path they were found at, then by
//! size from large to small, as removing costs a delta nothing. A window slides over them, and each object is compared
//! with those in the window.
//!
//! The sorted list is cut into segments where the path changes, and every segment is searched alone: so the outcome
//! is the same whatever number of threads work on them.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::body::{Body, Compressor};
use super::item::{Item, Objects, Role};
use super::window::{Target, Window};
use super::{Error, Options};
use crate::progress::Progress;
use crate::store::Cache;

/// Smaller objects gain nothing from a delta.
pub(super) const SMALLEST: u64 = 50;
/// A segment ends after so many bytes where quite another sort of objects begins...
const SEGMENT: u64 = 4 << 20;
/// ... and after so many, or so many objects, at any change of path.
const LONG_SEGMENT: u64 = 32 << 20;
const SEGMENT_OBJECTS: usize = 16_384;

/// How the memory budget is divided. No part depends on the number of threads, as the outcome must not.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    /// The largest object that is compared with others. Base, index and target of one comparison take three times that,
    /// which the wide window has room for.
    pub(super) largest: u64,
    /// The window of a search among objects of any size; such searches run one at a time.
    wide: usize,
    /// The window of one of several searches at the same time, and the largest object in it.
    narrow: usize,
    small: u64,
    /// Cached delta bases of one reading thread.
    pub(super) cache: usize,
    /// Compressed results that are kept until they are written.
    kept: u64,
    /// How many searches fit side by side.
    lanes: usize,
}

impl Budget {
    pub(super) fn new(memory: u64) -> Budget {
        let part = |divisor: u64| usize::try_from(memory / divisor).unwrap_or(usize::MAX);
        Budget {
            largest: memory / 4,
            wide: part(4).saturating_mul(3),
            narrow: part(8),
            small: memory / 8 / 4,
            cache: part(32),
            kept: memory / 4,
            lanes: 4,
        }
    }
}

/// A run of the sorted list that is searched alone.
struct Segment {
    range: Range<usize>,
    /// True if it holds objects that do not fit a narrow window.
    wide: bool,
}

/// What the search decided for one object.
struct Decision {
    item: u32,
    base: Option<u32>,
    kept: Option<Body>,
}

/// Decides for every item whether it is encoded whole or as a delta, and keeps compressed results as far as the
/// budget allows.
pub(super) fn search(
    objects: Objects<'_>,
    items: &mut [Item],
    options: &Options,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let budget = Budget::new(options.memory);
    let order = sorted(items, budget.largest);
    let segments = cut(items, &order, budget.small);
    let search = Search {
        objects,
        items,
        order: &order,
        options,
        budget,
        kept: AtomicU64::new(0),
        progress,
        stop: AtomicBool::new(false),
    };
    let (wide, narrow): (Vec<&Segment>, Vec<&Segment>) = segments.iter().partition(|segment| segment.wide);
    let mut decisions = search.run(&wide, 1)?;
    decisions.extend(search.run(&narrow, options.threads.min(budget.lanes))?);
    for decision in decisions {
        let item = &mut items[decision.item as usize];
        item.base = decision.base;
        item.kept = decision.kept;
    }
    for item in items.iter_mut().filter(|item| item.whole && item.base.is_none()) {
        item.role = Role::Copied;
    }
    Ok(())
}

/// How many objects the search compares with others.
pub(super) fn targets(items: &[Item], options: &Options) -> u64 {
    let sizes = SMALLEST..=Budget::new(options.memory).largest;
    let targets = items
        .iter()
        .filter(|item| item.role == Role::Encoded && sizes.contains(&item.size));
    targets.count() as u64
}

/// The numbers of the items that take part, likely relatives together.
fn sorted(items: &[Item], largest: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0u32..)
        .zip(items)
        .filter(|(_, item)| (SMALLEST..=largest).contains(&item.size))
        .map(|(number, _)| number)
        .collect();
    order.sort_unstable_by_key(|&number| {
        let item = &items[number as usize];
        // At a path, what is whole in any case comes first, so that even the largest of the others finds a base. Root
        // folders have no path, but the receiver's are few.
        let fixed = item.role == Role::Receiver || (item.name_hash != 0 && item.role != Role::Encoded);
        let size = if fixed { item.size } else { u64::MAX - item.size };
        (item.kind, item.name_hash, !fixed, size, number)
    });
    order
}

/// Cuts the sorted list where the path changes. Objects without a path may be cut anywhere.
fn cut(items: &[Item], order: &[u32], small: u64) -> Vec<Segment> {
    let item = |at: usize| &items[order[at] as usize];
    let mut segments = Vec::new();
    let (mut start, mut bytes, mut wide) = (0, 0u64, false);
    for at in 0..order.len() {
        bytes += item(at).size;
        wide |= item(at).size > small;
        let next = at + 1;
        let ends = next == order.len() || {
            let (a, b) = (item(at), item(next));
            let long = bytes >= LONG_SEGMENT || next - start >= SEGMENT_OBJECTS;
            let apart = a.name_hash == 0 || (a.kind, a.name_hash) != (b.kind, b.name_hash);
            // The last characters of the path are in the highest bits.
            let strange = a.kind != b.kind || (a.name_hash ^ b.name_hash) >> 24 != 0;
            (long && apart) || (bytes >= SEGMENT && strange)
        };
        if ends {
            segments.push(Segment {
                range: start..next,
                wide,
            });
            (start, bytes, wide) = (next, 0, false);
        }
    }
    segments
}

struct Search<'a> {
    objects: Objects<'a>,
    items: &'a [Item],
    order: &'a [u32],
    options: &'a Options,
    budget: Budget,
    /// Bytes of compressed results that are kept.
    kept: AtomicU64,
    progress: &'a dyn Progress,
    /// Set when one thread failed, so that the others end soon.
    stop: AtomicBool,
}

impl Search<'_> {
    fn run(&self, segments: &[&Segment], threads: usize) -> Result<Vec<Decision>, Error> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut state = State::new(&self.budget, self.options);
            let mut decisions = Vec::new();
            while let Some(segment) = segments.get(next.fetch_add(1, Ordering::Relaxed)) {
                if let Err(error) = self.segment(segment, &mut state, &mut decisions) {
                    self.stop.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
            Ok(decisions)
        };
        let threads = threads.min(segments.len());
        if threads <= 1 {
            return work();
        }
        super::threads::on_all(threads, work).map(|parts| parts.into_iter().flatten().collect())
    }

    fn segment(
        &self,
        segment: &Segment,
        state: &mut State,
        decisions: &mut Vec<Decision>,
    ) -> Result<(), Error> {
        let memory = if segment.wide {
            self.budget.wide
        } else {
            self.budget.narrow
        };
        let mut window = Window::new(self.options.window.max(1), memory);
        // Depths of the chains that end at objects of this segment; a base is always one of them.
        for &number in &self.order[segment.range.clone()] {
            if self.stop.load(Ordering::Relaxed) || self.progress.interrupted() {
                return Err(Error::Interrupted);
            }
            let item = &self.items[number as usize];
            let mut bytes = Vec::new();
            let kind = self.objects.read(item.source, &mut state.cache, &mut bytes)?;
            window.make_room(bytes.len());
            if item.role != Role::Encoded {
                window.push(number, kind, 0, bytes, None);
                continue;
            }
            let max_depth = self.max_depth(item);
            let found = window.best(Target {
                kind,
                bytes: &bytes,
                max_depth,
            });
            let (base, depth) = match &found {
                Some(found) => (Some(found.item), found.depth),
                None => (None, 0),
            };
            let kept = match &found {
                Some(found) => self.keep(&found.delta, &mut state.compressor),
                None if item.whole => None,
                None => self.keep(&bytes, &mut state.compressor),
            };
            decisions.push(Decision {
                item: number,
                base,
                kept,
            });
            self.progress.advance(1);
            // An object at the end of its chain is of no use to others.
            if depth < self.depth() {
                window.push(number, kind, depth, bytes, base);
            }
        }
        Ok(())
    }

    fn depth(&self) -> u32 {
        u32::try_from(self.options.depth).unwrap_or(u32::MAX)
    }

    /// How deep an object may lie, given the copied deltas that stand on it.
    fn max_depth(&self, item: &Item) -> u32 {
        self.depth().saturating_sub(item.height.into())
    }

    /// Compresses what will be written, unless the budget is spent; it is then made again when its turn comes.
    fn keep(&self, content: &[u8], compressor: &mut Compressor) -> Option<Body> {
        let size = content.len() as u64;
        if self.kept.fetch_add(size, Ordering::Relaxed) + size > self.budget.kept {
            self.kept.fetch_sub(size, Ordering::Relaxed);
            return None;
        }
        let body = compressor.body(content);
        // What is kept is mostly much smaller than what was reserved.
        self.kept
            .fetch_sub(size.saturating_sub(body.bytes.len() as u64), Ordering::Relaxed);
        Some(body)
    }
}

/// What one thread works with.
struct State {
    cache: Cache,
    compressor: Compressor,
}

impl State {
    fn new(budget: &Budget, options: &Options) -> State {
        State {
            cache: Cache::new(budget.cache),
            compressor: Compressor::new(options.level),
        }
    }
}
