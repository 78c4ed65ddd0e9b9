//! Decides which stored entries can be copied.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use gix_pack::data::entry::Header;

use super::Error;
use super::received::Received;
use super::search::{Budget, SMALLEST};
use super::select::{Entry, Selected};
use super::{Options, threads};
use crate::progress::Progress;
use crate::store::{self, Position, Reader, Store};
use crate::walk;

/// Entries between two looks at the progress.
const REPORT: u32 = 4_096;
/// Entries of a pack that is worth more than one thread.
const LARGE: u32 = 32_768;
/// Neighbours whose headers one thread reads at a time.
const SHARE: usize = 8_192;
/// Packs with at most so many selected entries had few objects to find deltas in when they were made.
const SMALL_PACK: usize = 4_096;

/// A packed object that is not simply copied: it is stored as a delta against an object that is not sent, or whole
/// although there may be a base for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Orphan {
    pub(super) at: Position,
    /// The longest chain of copied deltas that ends at it.
    pub(super) height: u16,
    /// It is stored whole, and can be copied if no delta is found.
    pub(super) whole: bool,
}

/// Reads the headers of selected entries and finds those that cannot be copied.
pub(super) struct Classifier<'a> {
    store: &'a Store,
    members: &'a walk::Objects,
    /// What the receiver has, if deltas against it are allowed.
    received: Option<Received<'a>>,
    /// The pack with the most selected entries.
    largest: Option<usize>,
    /// Sizes of objects that the delta search deals with.
    sizes: RangeInclusive<u64>,
    reader: Reader,
    orphans: Vec<Orphan>,
    /// Orphans and the deltas that stand on them, by pack and offset: the orphan, and how many deltas above it.
    above: HashMap<(usize, u64), (u32, u16)>,
    /// True if a pack before the current one has selected entries.
    later: bool,
    /// Bytes of the entries that will be copied.
    bytes: u64,
}

impl<'a> Classifier<'a> {
    pub(super) fn new(
        store: &'a Store,
        members: &'a walk::Objects,
        packs: &[Selected],
        options: &Options,
    ) -> Classifier<'a> {
        Classifier {
            store,
            members,
            received: Received::of(store, members, options),
            largest: packs
                .iter()
                .max_by_key(|selected| selected.count)
                .map(|selected| selected.pack),
            sizes: SMALLEST..=Budget::new(options.memory).largest,
            reader: Reader::new(),
            orphans: Vec::new(),
            above: HashMap::new(),
            later: false,
            bytes: 0,
        }
    }

    /// Orphans, in the order of the packs, and the bytes of all other entries.
    pub(super) fn finish(self) -> (Vec<Orphan>, u64) {
        (self.orphans, self.bytes)
    }

    /// Looks at the entries of one pack; packs come in the order of the store.
    pub(super) fn pack(
        &mut self,
        selected: &Selected,
        threads: usize,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        if let Some(bytes) = self.all_copied(selected, LARGE, threads, progress)? {
            self.bytes += bytes;
            self.later = true;
            return Ok(());
        }
        let mut spans = Spans::default();
        let (store, members) = (self.store, self.members);
        let mut seen = 0u32;
        selected.each(
            store,
            |at| members.contains_packed(at),
            |entry| {
                seen += 1;
                if seen.is_multiple_of(REPORT) && progress.interrupted() {
                    return Err(Error::Interrupted);
                }
                spans.add(entry.offset, entry.end);
                let header = self.reader.entry(&store.packs()[selected.pack], entry.offset)?;
                let key = (selected.pack, entry.offset);
                let whole = header.header.is_base();
                let copied = match whole {
                    true => !self.may_have_base(selected, &entry, &header),
                    false => match self.base(selected.pack, &entry, &header, &spans)? {
                        Some(base) => {
                            self.stack(key, base);
                            true
                        }
                        None => false,
                    },
                };
                if copied {
                    self.bytes += entry.end.saturating_sub(entry.offset);
                } else {
                    self.above.insert(key, (self.orphans.len() as u32, 0));
                    self.orphans.push(Orphan {
                        at: entry.at,
                        height: 0,
                        whole,
                    });
                }
                Ok(())
            },
        )?;
        self.later = true;
        Ok(())
    }

    /// The bytes of the selected entries of a large pack if it is plain that all can be copied: each is whole, or a delta
    /// against another of them that lies before it. That is the rule for the pack of a clone, and can be told on all
    /// threads at once. `None` if there may be others, or the pack has fewer entries than `large`; they are looked at in
    /// their order then.
    fn all_copied(
        &self,
        selected: &Selected,
        large: u32,
        threads: usize,
        progress: &dyn Progress,
    ) -> Result<Option<u64>, Error> {
        let (store, members) = (self.store, self.members);
        let pack = &store.packs()[selected.pack];
        if threads < 2 || pack.len() < large || !selected.is_dense() || self.received.is_some() {
            return Ok(None);
        }
        let (mut spans, mut bytes) = (Spans::default(), 0u64);
        let mut offsets = Vec::new();
        let member = |at| members.contains_packed(at);
        selected.each(store, member, |entry| {
            spans.add(entry.offset, entry.end);
            bytes += entry.end.saturating_sub(entry.offset);
            offsets.push(entry.offset);
            Ok::<(), Error>(())
        })?;
        let shares: Vec<&[u64]> = offsets.chunks(SHARE).collect();
        let (next, found) = (AtomicUsize::new(0), AtomicBool::new(false));
        let work = || {
            let mut reader = Reader::new();
            while let Some(share) = shares.get(next.fetch_add(1, Ordering::Relaxed)) {
                if progress.interrupted() {
                    return Err(Error::Interrupted);
                }
                for &offset in *share {
                    let header = reader.entry(pack, offset)?;
                    let plain = header.header.is_base()
                        || match header.header {
                            Header::OfsDelta { base_distance } => header
                                .checked_base_pack_offset(base_distance)
                                .is_some_and(|base| spans.contains(base)),
                            _ => false,
                        };
                    if !plain {
                        found.store(true, Ordering::Relaxed);
                    }
                }
                if found.load(Ordering::Relaxed) {
                    break;
                }
            }
            Ok(())
        };
        threads::on_all(threads.min(shares.len()), work)?;
        Ok((!found.into_inner()).then_some(bytes))
    }

    /// True if it is worth looking for a base for an entry that is stored whole: the receiver has an earlier version of
    /// it, or it comes from one of several packs that were made at different times, each of which has a whole version.
    fn may_have_base(&mut self, selected: &Selected, entry: &Entry, header: &gix_pack::data::Entry) -> bool {
        if !matches!(header.header, Header::Tree | Header::Blob)
            || !self.sizes.contains(&header.decompressed_size)
        {
            return false;
        }
        let apart = self.largest != Some(selected.pack) && selected.count <= SMALL_PACK;
        apart
            || self.received.as_mut().is_some_and(|received| {
                let number = self.members.number_of_packed(entry.at);
                number.and_then(|number| received.version(number)).is_some()
            })
    }

    /// Notes a copied delta that stands on an orphan.
    fn stack(&mut self, key: (usize, u64), base: (usize, u64)) {
        if let Some(&(orphan, below)) = self.above.get(&base) {
            let height = below.saturating_add(1);
            self.above.insert(key, (orphan, height));
            let orphan = &mut self.orphans[orphan as usize];
            orphan.height = orphan.height.max(height);
        }
    }

    /// Pack and offset of the entry that serves as the base of a delta, if the delta can be copied: its base is in the
    /// set, and comes before it, or is whole.
    fn base(
        &mut self,
        pack: usize,
        entry: &Entry,
        header: &gix_pack::data::Entry,
        spans: &Spans,
    ) -> Result<Option<(usize, u64)>, store::Error> {
        let data = &self.store.packs()[pack];
        let canonical = match header.header {
            Header::OfsDelta { base_distance } => {
                let Some(offset) = header.checked_base_pack_offset(base_distance) else {
                    return Ok(None); // reading it tells what is wrong
                };
                if spans.contains(offset) {
                    return Ok(Some((pack, offset)));
                }
                // If it is sent all the same, then from a pack before this one.
                if !self.later {
                    return Ok(None);
                }
                data.local_at(offset)
                    .and_then(|local| self.store.find(data.id(local)))
            }
            Header::RefDelta { base_id } => self.store.find(&base_id),
            _ => None,
        };
        let Some(canonical) = canonical.filter(|&at| self.members.contains_packed(at)) else {
            return Ok(None);
        };
        let home = self.store.pack_number(canonical);
        let (holder, local) = self.store.pack_of(canonical);
        let offset = holder.offset(local);
        let usable = home < pack
            || (home == pack && offset < entry.offset)
            // Git completes packs with bases at their end. Only whole ones cannot lead back here.
            || (home == pack && offset > entry.offset && self.reader.entry(holder, offset)?.header.is_base());
        Ok(usable.then_some((home, offset)))
    }
}

/// Stretches of a pack that are covered by selected entries.
#[derive(Debug, Default)]
struct Spans(Vec<(u64, u64)>);

impl Spans {
    /// Adds an entry; they come in order.
    fn add(&mut self, start: u64, end: u64) {
        match self.0.last_mut() {
            Some((_, last)) if *last == start => *last = end,
            _ => self.0.push((start, end)),
        }
    }

    fn contains(&self, offset: u64) -> bool {
        match self.0.last() {
            Some(&(start, end)) if start <= offset => offset < end,
            _ => {
                let after = self.0.partition_point(|&(start, _)| start <= offset);
                after > 0 && offset < self.0[after - 1].1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use gix_hash::ObjectId;
    use ingot_testdata::git;
    use ingot_testdata::repo::{Format, Repo};

    use super::*;
    use crate::progress::Silent;

    /// What looking at the entries one by one says: the orphans, and the bytes of the rest.
    fn one_by_one(store: &Store, members: &walk::Objects, selected: &Selected) -> (Vec<Position>, u64) {
        let options = Options::default();
        let mut classifier = Classifier::new(store, members, std::slice::from_ref(selected), &options);
        classifier.pack(selected, 1, &Silent).unwrap();
        let (orphans, bytes) = classifier.finish();
        (orphans.iter().map(|orphan| orphan.at).collect(), bytes)
    }

    fn at_once(
        store: &Store,
        members: &walk::Objects,
        selected: &Selected,
        (large, threads): (u32, usize),
    ) -> Option<u64> {
        let options = Options::default();
        let classifier = Classifier::new(store, members, std::slice::from_ref(selected), &options);
        classifier.all_copied(selected, large, threads, &Silent).unwrap()
    }

    fn select(store: &Store, members: &walk::Objects) -> Selected {
        let positions: Vec<Position> = members.positions().collect();
        Selected::new(store, 0, &positions, &mut Reader::new()).unwrap()
    }

    fn members(store: &Store, wants: &[ObjectId]) -> walk::Objects {
        let request = walk::Request {
            wants,
            ..walk::Request::default()
        };
        walk::enumerate(store, &request, &Silent).unwrap()
    }

    #[test]
    fn threads_say_what_one_says() {
        for format in Format::BOTH {
            // More entries than one share, so that several threads have something to do.
            let repo = Repo::empty(format);
            let mut stream = String::new();
            for commit in 0..5 {
                stream.push_str(&format!(
                    "commit refs/heads/main\ncommitter Bob <bob@example.org> {commit} +0000\ndata 1\nx\n"
                ));
                // Later commits change a part of the files, so that trees are deltas of each other.
                for file in (0..2 * SHARE).filter(|file| commit == 0 || file % 200 == commit) {
                    stream.push_str(&format!(
                        "M 100644 inline folder{}/{file}\ndata <<END\n{commit} {file}\nEND\n",
                        file % 50
                    ));
                }
                stream.push('\n');
            }
            git::with_input(repo.path(), &["fast-import", "--quiet"], stream.as_bytes());
            let id = |name: &str| ObjectId::from_hex(repo.git(&["rev-parse", name]).as_bytes()).unwrap();
            let (tip, earlier) = (id("main"), id("main~1"));
            for delta_base_offset in [true, false] {
                let offsets = format!("repack.useDeltaBaseOffset={delta_base_offset}");
                repo.git(&["-c", &offsets, "repack", "-adfq"]);
                let store = Store::open(&repo.objects(), tip.kind()).unwrap();
                assert!(store.packed_len() as usize > 2 * SHARE);

                let all = members(&store, &[tip]);
                let selected = select(&store, &all);
                assert!(selected.is_dense());
                let (orphans, bytes) = one_by_one(&store, &all, &selected);
                assert!(orphans.is_empty());
                let expected = delta_base_offset.then_some(bytes);
                for threads in [2, 4] {
                    assert_eq!(at_once(&store, &all, &selected, (1, threads)), expected);
                }
                assert_eq!(at_once(&store, &all, &selected, (1, 1)), None);
                assert_eq!(
                    at_once(&store, &all, &selected, (store.packed_len() + 1, 4)),
                    None
                );

                // Newer versions serve as bases of those that are left.
                let part = members(&store, &[earlier]);
                let selected = select(&store, &part);
                assert!(selected.is_dense());
                assert!(!one_by_one(&store, &part, &selected).0.is_empty());
                for threads in [2, 4] {
                    assert_eq!(at_once(&store, &part, &selected, (1, threads)), None);
                }
            }
        }
    }
}
