//! Packs made by chance.

use gix_object::Kind;
use ingot_testdata::repo::Format;
use proptest::prelude::*;

use crate::forge::{Forge, delta};
use crate::{Judge, ours};

#[derive(Debug, Clone)]
enum Step {
    Whole(Vec<u8>),
    /// A change to an earlier blob, as a delta to it.
    Change {
        base: prop::sample::Index,
        at: prop::sample::Index,
        insert: Vec<u8>,
        by_id: bool,
    },
    /// The same, but written before its base is.
    Before {
        base: Vec<u8>,
        insert: Vec<u8>,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = |most| prop::collection::vec(any::<u8>(), 0..most);
    prop_oneof![
        1 => bytes(600).prop_map(Step::Whole),
        4 => (any::<prop::sample::Index>(), any::<prop::sample::Index>(), bytes(40), any::<bool>())
            .prop_map(|(base, at, insert, by_id)| Step::Change { base, at, insert, by_id }),
        1 => (bytes(300), bytes(300)).prop_map(|(base, insert)| Step::Before { base, insert }),
    ]
}

fn build(format: Format, steps: &[Step]) -> Vec<u8> {
    let mut forge = Forge::new(format);
    let mut blobs: Vec<(Vec<u8>, u64)> = Vec::new();
    // Git's order of doubles is not defined, so there are none.
    let mut seen = std::collections::HashSet::new();
    for step in steps {
        match step {
            Step::Whole(bytes) => {
                if seen.insert(bytes.clone()) {
                    let offset = forge.whole(Kind::Blob, bytes);
                    blobs.push((bytes.clone(), offset));
                }
            }
            Step::Change {
                base,
                at,
                insert,
                by_id,
            } => {
                if blobs.is_empty() {
                    continue;
                }
                let (base, offset) = base.get(&blobs).clone();
                let mut target = base.clone();
                let at = at.index(target.len() + 1);
                target.splice(at..at, insert.iter().copied());
                if seen.insert(target.clone()) {
                    let delta = delta(&base, &target);
                    let id = forge.id(Kind::Blob, &base);
                    let offset = match by_id {
                        true => forge.delta_to_id(id, &delta),
                        false => forge.delta_to_offset(offset, &delta),
                    };
                    blobs.push((target, offset));
                }
            }
            Step::Before { base, insert } => {
                let target = [&base[..], insert].concat();
                if seen.contains(base) || seen.contains(&target) || target == *base {
                    continue;
                }
                let id = forge.id(Kind::Blob, base);
                let offset = forge.delta_to_id(id, &delta(base, &target));
                seen.insert(target.clone());
                blobs.push((target, offset));
                let offset = forge.whole(Kind::Blob, base);
                seen.insert(base.clone());
                blobs.push((base.clone(), offset));
            }
        }
    }
    forge.finish()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_index_is_gits(steps in prop::collection::vec(step(), 0..80), sha256 in any::<bool>(), threads in 1usize..4) {
        let format = if sha256 { Format::Sha256 } else { Format::Sha1 };
        let pack = build(format, &steps);
        let expected = Judge::new(format).index(&pack).unwrap();
        let (_, files) = ours(format, &pack, threads).unwrap();
        prop_assert!(files == expected);
    }
}
