//! Packs that are fine.

use gix_object::Kind;
use ingot_engine::pack::index::{Limits, Options};
use ingot_testdata::git;
use ingot_testdata::repo::{Format, Repo};

use crate::forge::{Forge, delta};
use crate::{Judge, assert_agreement, kind, ours, ours_with};

fn pack(repo: &Repo, options: &[&str]) -> Vec<u8> {
    let mut args = vec!["pack-objects", "--stdout", "-q", "--all", "--revs"];
    args.extend_from_slice(options);
    git::with_input(repo.path(), &args, b"")
}

#[test]
fn packs_of_a_small_history() {
    for format in Format::BOTH {
        let repo = Repo::scripted("history", format);
        for options in [
            &["--delta-base-offset"][..],
            &[],
            &["--window=0"],
            &["--delta-base-offset", "--depth=2", "--window=50"],
        ] {
            let indexed = assert_agreement(format, &pack(&repo, options));
            assert!(indexed.external.is_empty());
        }
    }
}

#[test]
fn git_accepts_the_files() {
    for format in Format::BOTH {
        let repo = Repo::scripted("history", format);
        let other = Repo::empty(format);
        let bytes = pack(&repo, &["--delta-base-offset"]);
        let options = Options::new(kind(format));
        let mut source = &bytes[..];
        let folder = other.objects().join("pack");
        let indexed =
            ingot_engine::pack::index::index(&mut source, &folder, &options, &ingot_engine::progress::Silent)
                .unwrap();
        other.git(&["verify-pack", indexed.pack.to_str().unwrap()]);
        let head = repo.git(&["rev-parse", "HEAD"]);
        other.git(&["update-ref", "HEAD", &head]);
        git::fsck(other.path());
        #[cfg(unix)]
        for extension in ["pack", "idx", "rev"] {
            use std::os::unix::fs::PermissionsExt as _;
            let meta = std::fs::metadata(indexed.pack.with_extension(extension)).unwrap();
            assert_eq!(meta.permissions().mode() & 0o777, 0o444);
        }
    }
}

#[test]
fn an_empty_pack() {
    for format in Format::BOTH {
        let indexed = assert_agreement(format, &Forge::new(format).finish());
        assert_eq!(indexed.objects, 0);
    }
}

#[test]
fn a_pack_of_version_3() {
    let mut forge = Forge::new(Format::Sha1);
    forge.bytes[7] = 3;
    forge.whole(Kind::Blob, b"three");
    assert_agreement(Format::Sha1, &forge.finish());
}

/// Versions of a growing file, so large that they are made after the stream, in chains deeper than Git's.
#[test]
fn deep_chains_of_large_objects_within_a_small_budget() {
    for by_id in [false, true] {
        let format = Format::Sha1;
        let mut forge = Forge::new(format);
        let mut version = noise(2_500_000, 1);
        let mut offset = forge.whole(Kind::Blob, &version);
        for number in 0..30u8 {
            let base = version.clone();
            version.extend_from_slice(&noise(1000, u64::from(number) + 2));
            let delta = delta(&base, &version);
            offset = match by_id {
                true => {
                    let id = forge.id(Kind::Blob, &base);
                    forge.delta_to_id(id, &delta)
                }
                false => forge.delta_to_offset(offset, &delta),
            };
        }
        let bytes = forge.finish();
        let expected = Judge::new(format).index(&bytes).unwrap();
        for memory in [0, 1 << 20, 4 << 20, 1 << 30] {
            for threads in [1, 3] {
                let options = Options {
                    threads,
                    memory,
                    ..Options::new(kind(format))
                };
                assert!(ours_with(&bytes, &options).unwrap().1 == expected);
            }
        }
    }
}

/// Every version is the base of several, and the budget keeps none.
#[test]
fn bushy_trees_of_deltas_without_any_cache() {
    for format in Format::BOTH {
        let mut forge = Forge::new(format);
        let mut known = vec![(noise(5000, 99), 0u64)];
        known[0].1 = forge.whole(Kind::Blob, &known[0].0);
        for number in 1..400usize {
            let (base, offset) = known[(number * 7 + number / 3) % known.len()].clone();
            let mut target = base.clone();
            let at = (number * 37) % target.len();
            target.splice(at..at, noise(10, number as u64));
            let delta = delta(&base, &target);
            let offset = forge.delta_to_offset(offset, &delta);
            known.push((target, offset));
        }
        let bytes = forge.finish();
        let expected = Judge::new(format).index(&bytes).unwrap();
        for memory in [0, 20_000, 1 << 20] {
            for threads in [1, 4] {
                let options = Options {
                    threads,
                    memory,
                    ..Options::new(kind(format))
                };
                assert!(ours_with(&bytes, &options).unwrap().1 == expected);
            }
        }
    }
}

#[test]
fn bases_that_come_later_and_twice() {
    for format in Format::BOTH {
        let mut forge = Forge::new(format);
        let (a, b, c) = (noise(3000, 1), noise(3100, 2), noise(3200, 3));
        let (id_a, id_b) = (forge.id(Kind::Blob, &a), forge.id(Kind::Blob, &b));
        // c is made from b, b from a, and a comes last.
        forge.delta_to_id(id_b, &delta(&b, &c));
        forge.delta_to_id(id_a, &delta(&a, &b));
        forge.whole(Kind::Blob, &a);
        assert_agreement(format, &forge.finish());

        // Objects that are there twice. In which order Git lists the two is up to the sort of its C library.
        let mut forge = Forge::new(format);
        forge.whole(Kind::Blob, &a);
        let again = forge.whole(Kind::Blob, &a);
        forge.delta_to_offset(again, &delta(&a, &c));
        let bytes = forge.finish();
        let expected = Judge::new(format).index(&bytes).unwrap();
        for threads in [1, 2] {
            let (indexed, files) = ours(format, &bytes, threads).unwrap();
            assert_eq!(indexed.objects, 3);
            assert_eq!(files.idx.len(), expected.idx.len());
            assert_eq!(files.idx[..8 + 1024 + 60], expected.idx[..8 + 1024 + 60]);
        }

        // Git does not bear that a reference delta has a base that is there twice; here, it is made once.
        let mut forge = Forge::new(format);
        forge.delta_to_id(id_a, &delta(&a, &b));
        forge.whole(Kind::Blob, &a);
        forge.whole(Kind::Blob, &a);
        forge.delta_to_id(id_a, &delta(&a, &c));
        let bytes = forge.finish();
        for threads in [1, 2] {
            assert_eq!(ours(format, &bytes, threads).unwrap().0.objects, 4);
        }
    }
}

#[test]
fn large_blobs_are_not_held() {
    for format in Format::BOTH {
        let mut forge = Forge::new(format);
        let large = noise(5_000_000, 5);
        let mut larger = large.clone();
        larger.extend_from_slice(b"and more");
        let offset = forge.whole(Kind::Blob, &large);
        forge.whole(Kind::Blob, &larger);
        let bytes = forge.finish();
        let limited = Options {
            limits: Limits {
                held_bytes: 1 << 20,
                ..Limits::default()
            },
            ..Options::new(kind(format))
        };
        let expected = Judge::new(format).index(&bytes).unwrap();
        assert!(ours_with(&bytes, &limited).unwrap().1 == expected);

        let mut forge = Forge::new(format);
        assert_eq!(forge.whole(Kind::Blob, &large), offset);
        forge.delta_to_offset(offset, &delta(&large, &larger));
        assert!(
            ours_with(&forge.finish(), &limited)
                .unwrap_err()
                .to_string()
                .contains("limit")
        );
    }
}

/// Bytes that do not compress, always the same for a seed.
pub fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    })
    .take(length)
    .collect()
}
