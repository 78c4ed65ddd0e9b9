//! Where things stand in the pack under construction.

use std::collections::HashMap;

use crate::store::{Position, Store};

/// Maps packed objects to offsets in the new pack.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// The runs of each copied pack, by its place in the store.
    packs: HashMap<usize, Runs>,
    /// Objects that stand elsewhere than their neighbours: encoded anew, or moved to the front. Without an offset until
    /// they are written.
    apart: HashMap<Position, Option<u64>>,
}

impl Layout {
    /// Where a packed object starts, if it has been written.
    pub(super) fn offset_of(&self, store: &Store, at: Position) -> Option<u64> {
        if let Some(&offset) = self.apart.get(&at) {
            return offset;
        }
        let runs = self.packs.get(&store.pack_number(at))?;
        let (pack, local) = store.pack_of(at);
        runs.find(pack.offset(local))
    }

    /// Notes that a packed object will stand apart.
    pub(super) fn reserve(&mut self, at: Position) {
        self.apart.insert(at, None);
    }

    /// Notes that a packed object was written apart.
    pub(super) fn place(&mut self, at: Position, offset: u64) {
        self.apart.insert(at, Some(offset));
    }

    /// True if the object stands apart, now or later.
    pub(super) fn is_apart(&self, at: Position) -> bool {
        !self.apart.is_empty() && self.apart.contains_key(&at)
    }

    /// Adds the runs of a pack that has been copied.
    pub(super) fn add_pack(&mut self, pack: usize, runs: Runs) {
        self.packs.insert(pack, runs);
    }
}

/// Stretches of a pack that were copied as they lie.
#[derive(Debug, Default)]
pub(super) struct Runs(Vec<Run>);

#[derive(Debug, Clone, Copy)]
struct Run {
    /// The stretch in the old pack.
    old: u64,
    old_end: u64,
    /// Where it starts in the new one.
    new: u64,
}

impl Runs {
    /// Where the entry that started at `old` stands now.
    pub(super) fn find(&self, old: u64) -> Option<u64> {
        // The base of a delta is most often in the run that is growing.
        let run = match self.0.last() {
            Some(run) if run.old <= old => run,
            _ => &self.0[self.0.partition_point(|run| run.old <= old).checked_sub(1)?],
        };
        (old < run.old_end).then(|| run.new + (old - run.old))
    }

    /// Adds an entry that was copied from `old..old_end` to `new`. Entries come in the order of both packs.
    pub(super) fn add(&mut self, old: u64, old_end: u64, new: u64) {
        match self.0.last_mut() {
            Some(run) if run.old_end == old && run.new + (old - run.old) == new => run.old_end = old_end,
            _ => self.0.push(Run { old, old_end, new }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_a_run() {
        let mut runs = Runs::default();
        runs.add(12, 40, 12);
        runs.add(40, 50, 40);
        runs.add(60, 90, 50); // a gap before
        runs.add(90, 100, 81); // the one before grew by a byte
        assert_eq!(runs.0.len(), 3);
        for (old, new) in [
            (12, Some(12)),
            (40, Some(40)),
            (50, None),
            (60, Some(50)),
            (90, Some(81)),
            (100, None),
            (3, None),
        ] {
            assert_eq!(runs.find(old), new, "{old}");
        }
    }
}
