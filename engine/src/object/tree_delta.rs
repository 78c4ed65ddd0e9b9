//! Which entries of a tree its delta brings in.
//!
//! Packs store most trees as deltas against another version of the same folder, and most entries are copied from there
//! as they are. A walk that has dealt with the base has dealt with those entries too: only the others can lead
//! anywhere new. Here they are found without reading the copied ones, which makes the cost of a tree follow its
//! change instead of its size.
//!
//! The answer is exact, not a guess at what bytes look like: the chain of entries is followed from the start of the
//! tree, and an entry is left out only if a single copy instruction takes it over as a whole from a place where an
//! entry of the base starts.

use super::links;
use super::tree::{Entry, entry_at};
use crate::pack::delta::{self, Instruction, Instructions};

/// Why a tree or its delta cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The tree is not well-formed.
    #[error(transparent)]
    Tree(#[from] links::Error),
    /// The delta is not well-formed or does not belong to these trees.
    #[error(transparent)]
    Delta(#[from] delta::Error),
    /// The tree is too long for 32-bit places.
    #[error("a tree of {0} bytes is longer than 4 GiB")]
    TooLong(usize),
}

/// Where the entries of a tree start, and where the last one ends: four bytes an entry, sorted. Empty for a tree that
/// has not been read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Starts(Vec<u32>);

impl Starts {
    /// The starts of all entries, without the end of the last.
    pub fn as_slice(&self) -> &[u32] {
        self.0.split_last().map_or(&[], |(_, starts)| starts)
    }

    /// The memory in use, in bytes.
    pub fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<u32>()
    }

    /// Forgets everything but the memory, so that another tree can take the place.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Reads a whole tree: calls `each` for every entry, and notes in `starts` where they start.
pub fn all_entries<'a>(
    tree: &'a [u8],
    id_length: usize,
    starts: &mut Starts,
    mut each: impl FnMut(Entry<'a>),
) -> Result<(), Error> {
    starts.clear();
    short_enough(tree)?;
    // Modes take some six bytes, names about ten.
    starts.0.reserve(tree.len() / (id_length + 16));
    let mut at = 0;
    while at < tree.len() {
        starts.0.push(at as u32);
        let (entry, end) = entry_at(tree, at, id_length)?;
        each(entry);
        at = end;
    }
    starts.0.push(at as u32);
    Ok(())
}

/// Calls `each` for the entries of `result` that are not whole copies of entries of `base`; see the module.
///
/// `result` must be what `delta` makes of `base`. Reads all of `base`; where its starts are known already,
/// [`changed_entries_from`] saves that.
pub fn changed_entries<'a>(
    base: &[u8],
    delta: &[u8],
    result: &'a [u8],
    id_length: usize,
    each: impl FnMut(Entry<'a>),
) -> Result<(), Error> {
    let (mut base_starts, mut starts) = (Starts::default(), Starts::default());
    all_entries(base, id_length, &mut base_starts, |_| ())?;
    changed_entries_from(&base_starts, delta, result, id_length, &mut starts, each)
}

/// [`changed_entries`] for a base whose starts are known; notes the starts of `result` in `starts`.
pub fn changed_entries_from<'a>(
    base: &Starts,
    delta: &[u8],
    result: &'a [u8],
    id_length: usize,
    starts: &mut Starts,
    mut each: impl FnMut(Entry<'a>),
) -> Result<(), Error> {
    starts.clear();
    short_enough(result)?;
    let base = &base.0[..];
    starts.0.reserve(base.len() + 1);
    let (_, _, instructions) = delta::header(delta)?;
    // Where the next entry of the result starts, and where the result of the next instruction does.
    let (mut at, mut written) = (0usize, 0usize);
    for instruction in Instructions::new(instructions) {
        let (source, length) = match instruction? {
            Instruction::Copy { offset, length } => (Some(offset as usize), length as usize),
            Instruction::Insert(bytes) => (None, bytes.len()),
        };
        let end = written.saturating_add(length);
        while at < end.min(result.len()) {
            if let Some(source) = source {
                at = skip_whole(
                    base,
                    source + (at - written),
                    source.saturating_add(length),
                    at,
                    starts,
                );
                if at >= end {
                    break;
                }
            }
            starts.0.push(at as u32);
            let (entry, next) = entry_at(result, at, id_length)?;
            each(entry);
            at = next;
        }
        written = end;
    }
    if written != result.len() {
        return Err(Error::Delta(delta::Error::ResultSize {
            expected: result.len() as u64,
            longer: written > result.len(),
        }));
    }
    starts.0.push(at as u32);
    Ok(())
}

/// Passes over the entries of the base that lie wholly in `from..to` if one of them starts at `from`. They are copied
/// to the result from `at` on; notes their starts there and returns the place behind the last.
#[inline]
fn skip_whole(base: &[u32], from: usize, to: usize, at: usize, starts: &mut Starts) -> usize {
    let first = base.partition_point(|&start| (start as usize) < from);
    if base.get(first).is_none_or(|&start| start as usize != from) {
        return at;
    }
    let copied = &base[first..];
    let whole = copied.partition_point(|&start| start as usize <= to) - 1;
    // Both places fit 32 bits, and so does their distance in wrapping arithmetic.
    let shift = (at as u32).wrapping_sub(from as u32);
    starts
        .0
        .extend(copied[..whole].iter().map(|start| start.wrapping_add(shift)));
    at + (copied[whole] as usize - from)
}

fn short_enough(tree: &[u8]) -> Result<(), Error> {
    match u32::try_from(tree.len()) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::TooLong(tree.len())),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An entry as the tests make it: a short name from a small alphabet, so that names and ids repeat.
    fn entry(id_length: usize) -> impl Strategy<Value = Vec<u8>> {
        let mode = prop_oneof![Just("100644"), Just("40000"), Just("160000"), Just("120000")];
        (mode, "[ab1 ]{1,4}", 0u8..4).prop_map(move |(mode, name, id)| {
            // Ids that look like entries themselves must not confuse anything.
            let id = match id {
                0 => vec![b'1'; id_length],
                1 => vec![0; id_length],
                _ => vec![b'a' + id; id_length],
            };
            [mode.as_bytes(), b" ", name.as_bytes(), b"\0", &id].concat()
        })
    }

    /// An instruction with its provenance: whether bytes are copied, and from where.
    #[derive(Debug, Clone, Copy)]
    enum Step {
        Copy(usize, usize),
        Insert(usize, usize),
    }

    /// Covers `target` with copies of `base` where `choices` allow it, of all lengths, and inserts elsewhere.
    fn cover(base: &[u8], target: &[u8], choices: &[u8]) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut choices = choices.iter().cycle();
        let mut at = 0;
        while at < target.len() {
            let choice = *choices.next().expect("a cycle of at least one") as usize;
            let longest = (0..base.len())
                .map(|from| (common(&base[from..], &target[at..]), from))
                .max()
                .unwrap_or((0, 0));
            if longest.0 > 3 && choice & 7 != 0 {
                let length = if choice & 3 == 0 { longest.0 / 2 } else { longest.0 };
                steps.push(Step::Copy(longest.1, length.max(1)));
                at += length.max(1);
            } else {
                let length = (1 + choice % 40).min(target.len() - at);
                steps.push(Step::Insert(at, length));
                at += length;
            }
        }
        steps
    }

    fn common(a: &[u8], b: &[u8]) -> usize {
        a.iter().zip(b).take_while(|(a, b)| a == b).count()
    }

    fn encode(base: &[u8], target: &[u8], steps: &[Step]) -> Vec<u8> {
        let mut delta = Vec::new();
        for mut size in [base.len(), target.len()] {
            while size >= 0x80 {
                delta.push(size as u8 | 0x80);
                size >>= 7;
            }
            delta.push(size as u8);
        }
        for step in steps {
            match *step {
                Step::Copy(offset, length) => {
                    delta.push(0x80 | 0x0f | 0x30);
                    delta.extend((offset as u32).to_le_bytes());
                    delta.extend((length as u16).to_le_bytes());
                }
                Step::Insert(from, length) => {
                    delta.push(length as u8);
                    delta.extend(&target[from..from + length]);
                }
            }
        }
        delta
    }

    /// For every entry of the target, whether one copy takes it over whole from an entry's start. The slow way.
    fn expected(base: &[u8], target: &[u8], steps: &[Step], id_length: usize) -> (Vec<u32>, Vec<bool>) {
        let mut base_starts = Starts::default();
        all_entries(base, id_length, &mut base_starts, |_| ()).unwrap();
        let mut starts = Starts::default();
        all_entries(target, id_length, &mut starts, |_| ()).unwrap();
        let mut copied = Vec::new();
        for window in starts.0.windows(2) {
            let (from, to) = (window[0] as usize, window[1] as usize);
            let mut at = 0;
            let mut whole = false;
            for step in steps {
                let length = match *step {
                    Step::Copy(_, length) | Step::Insert(_, length) => length,
                };
                if let Step::Copy(offset, _) = *step
                    && at <= from
                    && to <= at + length
                {
                    let source = offset + (from - at);
                    whole = base_starts.as_slice().contains(&(source as u32));
                }
                at += length;
            }
            copied.push(whole);
        }
        (starts.0, copied)
    }

    /// The length of ids, the entries of a base, those of a target, and choices for the encoder.
    type Case = (usize, Vec<Vec<u8>>, Vec<Vec<u8>>, Vec<u8>);

    fn trees(id_length: usize) -> impl Strategy<Value = Case> {
        let base = prop::collection::vec(entry(id_length), 0..12);
        let fresh = prop::collection::vec(entry(id_length), 1..6);
        let edits = prop::collection::vec((0usize..16, 0usize..3), 0..5);
        let choices = prop::collection::vec(any::<u8>(), 1..20);
        (base, fresh, edits, choices).prop_map(move |(base, fresh, edits, choices)| {
            let mut target = base.clone();
            for (nth, (place, edit)) in edits.into_iter().enumerate() {
                let new = fresh[nth % fresh.len()].clone();
                match edit {
                    0 => target.insert(place % (target.len() + 1), new),
                    1 if !target.is_empty() => {
                        target.remove(place % target.len());
                    }
                    _ if !target.is_empty() => {
                        let place = place % target.len();
                        target[place] = new;
                    }
                    _ => {}
                }
            }
            (id_length, base, target, choices)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn exactly_the_entries_that_no_copy_takes_over_whole(
            (id_length, base, target, choices) in prop_oneof![trees(20), trees(32)]
        ) {
            let (base, target) = (base.concat(), target.concat());
            let steps = cover(&base, &target, &choices);
            let delta = encode(&base, &target, &steps);
            let mut made = Vec::new();
            delta::apply(&base, &delta, &mut made).unwrap();
            prop_assert_eq!(&made, &target);

            let (wanted_starts, copied) = expected(&base, &target, &steps, id_length);
            let mut wanted = Vec::new();
            for (index, window) in wanted_starts.windows(2).enumerate() {
                if !copied[index] {
                    wanted.push(entry_at(&target, window[0] as usize, id_length).unwrap().0);
                }
            }
            let mut base_starts = Starts::default();
            all_entries(&base, id_length, &mut base_starts, |_| ()).unwrap();
            let (mut starts, mut found) = (Starts::default(), Vec::new());
            changed_entries_from(&base_starts, &delta, &target, id_length, &mut starts, |entry| found.push(entry)).unwrap();
            prop_assert_eq!(&found, &wanted);
            prop_assert_eq!(starts.0, wanted_starts);

            let mut again = Vec::new();
            changed_entries(&base, &delta, &target, id_length, |entry| again.push(entry)).unwrap();
            prop_assert_eq!(again, wanted);
        }

        #[test]
        fn no_bytes_make_it_panic(
            base in prop::collection::vec(entry(20), 0..6),
            delta in prop::collection::vec(any::<u8>(), 0..60),
            result in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let _ = changed_entries(&base.concat(), &delta, &result, 20, |_| ());
        }

        #[test]
        fn a_damaged_result_is_an_error_or_read_to_its_end(
            (id_length, base, target, choices) in trees(20),
            cut in 1usize..30,
        ) {
            let (base, target) = (base.concat(), target.concat());
            let steps = cover(&base, &target, &choices);
            let delta = encode(&base, &target, &steps);
            let short = &target[..target.len().saturating_sub(cut)];
            if short.len() < target.len() {
                prop_assert!(changed_entries(&base, &delta, short, id_length, |_| ()).is_err());
            }
        }
    }
}
