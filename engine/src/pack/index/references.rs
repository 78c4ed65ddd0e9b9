//! The ids that the objects of a pack refer to, kept compactly until all ids of the pack are known.

use std::sync::{Mutex, PoisonError};

use gix_hash::oid;
use gix_object::Kind;

use super::table;

/// Bytes per record: an id, and the code of the kind that it is said to have (0: any).
const SHORT: usize = 20 + 1;
const LONG: usize = 32 + 1;

/// Records are sorted into the set in batches of at least this many.
const BATCH: usize = 32 * 1024;

/// All references, without repetition. Shared by the threads, each of which has a [`Collector`].
#[derive(Debug)]
pub(super) struct References(Records);

#[derive(Debug)]
enum Records {
    Short(Mutex<Set<SHORT>>),
    Long(Mutex<Set<LONG>>),
}

#[derive(Debug)]
struct Set<const N: usize> {
    sorted: Vec<[u8; N]>,
    fresh: Vec<[u8; N]>,
}

impl<const N: usize> Set<N> {
    fn new() -> Mutex<Set<N>> {
        Mutex::new(Set {
            sorted: Vec::new(),
            fresh: Vec::new(),
        })
    }

    fn add(&mut self, records: &[[u8; N]]) {
        self.fresh.extend_from_slice(records);
        if self.fresh.len() >= BATCH.max(self.sorted.len() / 2) {
            self.merge();
        }
    }

    fn merge(&mut self) {
        self.sorted.append(&mut self.fresh);
        self.sorted.sort_unstable();
        self.sorted.dedup();
    }
}

impl References {
    pub(super) fn new(format: gix_hash::Kind) -> References {
        References(match format.len_in_bytes() {
            20 => Records::Short(Set::new()),
            _ => Records::Long(Set::new()),
        })
    }

    /// Calls back for each reference, sorted by id: the id and the kind that it is said to have.
    pub(super) fn for_each<E>(
        self,
        mut callback: impl FnMut(&oid, Option<Kind>) -> Result<(), E>,
    ) -> Result<(), E> {
        fn visit<const N: usize, E>(
            set: Mutex<Set<N>>,
            callback: &mut impl FnMut(&oid, Option<Kind>) -> Result<(), E>,
        ) -> Result<(), E> {
            let mut set = set.into_inner().unwrap_or_else(PoisonError::into_inner);
            set.merge();
            for record in &set.sorted {
                callback(
                    oid::from_bytes_unchecked(&record[..N - 1]),
                    table::kind(record[N - 1]),
                )?;
            }
            Ok(())
        }
        match self.0 {
            Records::Short(set) => visit(set, &mut callback),
            Records::Long(set) => visit(set, &mut callback),
        }
    }
}

/// One thread's way into [`References`]: drops repetitions that are close to each other, and gathers the rest.
#[derive(Debug)]
pub(super) struct Collector<'a> {
    all: &'a References,
    gathered: Gathered,
}

#[derive(Debug)]
enum Gathered {
    Short(Recent<SHORT>),
    Long(Recent<LONG>),
}

#[derive(Debug)]
struct Recent<const N: usize> {
    /// The last record that fell into each slot, by the first bytes of its id.
    seen: Vec<[u8; N]>,
    records: Vec<[u8; N]>,
}

const SLOTS: usize = 8192;
const GATHERED: usize = 8192;

impl<const N: usize> Recent<N> {
    fn new() -> Recent<N> {
        Recent {
            seen: Vec::new(),
            records: Vec::new(),
        }
    }

    /// True when it is time to hand the records on.
    fn add(&mut self, id: &[u8], code: u8) -> bool {
        if self.seen.is_empty() {
            self.seen.resize(SLOTS, [0; N]);
        }
        let slot = &mut self.seen[usize::from(u16::from_le_bytes([id[0], id[1]])) % SLOTS];
        if slot[..N - 1] == *id && slot[N - 1] == code {
            return false;
        }
        slot[..N - 1].copy_from_slice(id);
        slot[N - 1] = code;
        self.records.push(*slot);
        self.records.len() >= GATHERED
    }
}

impl<'a> Collector<'a> {
    pub(super) fn new(all: &'a References) -> Collector<'a> {
        Collector {
            gathered: match all.0 {
                Records::Short(_) => Gathered::Short(Recent::new()),
                Records::Long(_) => Gathered::Long(Recent::new()),
            },
            all,
        }
    }

    /// Notes a reference to `id`, which is said to be of `kind`.
    pub(super) fn add(&mut self, id: &oid, kind: Option<Kind>) {
        let code = kind.map_or(0, table::code);
        let full = match &mut self.gathered {
            Gathered::Short(recent) => recent.add(id.as_bytes(), code),
            Gathered::Long(recent) => recent.add(id.as_bytes(), code),
        };
        if full {
            self.flush();
        }
    }

    /// Hands on what was gathered.
    pub(super) fn flush(&mut self) {
        match (&mut self.gathered, &self.all.0) {
            (Gathered::Short(recent), Records::Short(set)) => {
                set.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .add(&recent.records);
                recent.records.clear();
            }
            (Gathered::Long(recent), Records::Long(set)) => {
                set.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .add(&recent.records);
                recent.records.clear();
            }
            _ => unreachable!("made for the same format"),
        }
    }
}

impl Drop for Collector<'_> {
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // in tests, failing is the point
mod tests {
    use std::collections::BTreeSet;

    use gix_hash::ObjectId;

    use super::*;

    #[test]
    fn every_reference_comes_back_once_and_sorted() {
        for format in [gix_hash::Kind::Sha1, gix_hash::Kind::Sha256] {
            let all = References::new(format);
            let mut expected = BTreeSet::new();
            std::thread::scope(|scope| {
                for thread in 0..3u32 {
                    let all = &all;
                    scope.spawn(move || {
                        let mut collector = Collector::new(all);
                        for number in 0..60_000u32 {
                            let (id, kind) = reference(format, thread, number);
                            collector.add(&id, kind);
                            collector.add(&id, kind);
                        }
                    });
                    expected.extend((0..60_000).map(|number| reference(format, thread, number)));
                }
            });
            let mut actual = Vec::new();
            all.for_each(|id, kind| {
                actual.push((id.to_owned(), kind));
                Ok::<_, ()>(())
            })
            .unwrap();
            assert!(actual.iter().eq(expected.iter()));
        }
    }

    fn reference(format: gix_hash::Kind, thread: u32, number: u32) -> (ObjectId, Option<Kind>) {
        let number = number % 50_000 + thread * 20_000;
        let mut id = ObjectId::null(format);
        id.as_mut_slice()[..4].copy_from_slice(&number.wrapping_mul(0x9E37_79B1).to_be_bytes());
        let kinds = [None, Some(Kind::Tree), Some(Kind::Blob)];
        (id, kinds[number as usize % 3])
    }
}
