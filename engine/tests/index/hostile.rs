//! Packs that are damaged or lie.

use gix_object::Kind;
use gix_pack::data::entry::Header;
use ingot_engine::pack::index::{Error, Limits, Options};
use ingot_testdata::git;
use ingot_testdata::repo::{Format, Repo};

use crate::agreement::noise;
use crate::forge::{self, Forge, delta, delta_header, id, reseal};
use crate::{Judge, kind, ours, ours_with};

fn small_pack(format: Format) -> Vec<u8> {
    let repo = Repo::scripted("history", format);
    git::with_input(
        repo.path(),
        &[
            "pack-objects",
            "--stdout",
            "-q",
            "--all",
            "--revs",
            "--delta-base-offset",
        ],
        b"",
    )
}

#[test]
fn cut_off_anywhere() {
    for format in Format::BOTH {
        let pack = small_pack(format);
        for length in
            (0..pack.len()).filter(|length| *length < 400 || length % 61 == 0 || length + 80 > pack.len())
        {
            let result = ours(format, &pack[..length], 1 + length % 3);
            assert!(
                matches!(result, Err(Error::Truncated { .. })),
                "cut to {length}: {result:?}"
            );
        }
    }
}

#[test]
fn something_behind_the_end() {
    let mut pack = small_pack(Format::Sha1);
    let length = pack.len() as u64;
    pack.push(0);
    let result = ours(Format::Sha1, &pack, 1);
    assert!(matches!(result, Err(Error::TrailingBytes { offset }) if offset == length));
}

#[test]
fn wrong_headers_and_counts() {
    let format = Format::Sha1;
    let pack = small_pack(format);
    let with = |place: usize, bytes: &[u8]| {
        let mut pack = pack.clone();
        pack[place..place + bytes.len()].copy_from_slice(bytes);
        ours(format, &reseal(format, pack), 2)
    };
    assert!(matches!(with(0, b"PACL"), Err(Error::NotAPack)));
    assert!(matches!(with(4, &4u32.to_be_bytes()), Err(Error::Version(4))));
    assert!(matches!(with(4, &1u32.to_be_bytes()), Err(Error::Version(1))));
    let count = u32::from_be_bytes(*pack[8..].first_chunk().unwrap());
    assert!(with(8, &(count + 1).to_be_bytes()).is_err());
    assert!(with(8, &(count - 1).to_be_bytes()).is_err());
    assert!(with(8, &0u32.to_be_bytes()).is_err());
    // A count for which there cannot be memory.
    assert!(matches!(
        with(8, &(u32::MAX - 8).to_be_bytes()),
        Err(Error::Truncated { .. } | Error::EntryHeader { .. })
    ));
    assert!(matches!(
        with(8, &u32::MAX.to_be_bytes()),
        Err(Error::Limit { .. })
    ));
    let mut other = pack.clone();
    let last = other.len() - 1;
    other[last] ^= 1;
    assert!(matches!(ours(format, &other, 1), Err(Error::Checksum { .. })));
}

/// Whatever bits change: either it is an error, or Git makes the same of it.
#[test]
fn flipped_bits() {
    for format in Format::BOTH {
        let pack = small_pack(format);
        let judge = Judge::new(format);
        let end = pack.len() - kind(format).len_in_bytes();
        let mut accepted = 0;
        for at in (12..end).step_by(23).chain([4, 5, 6, 7, 8, 9, 10, 11]) {
            let mut damaged = pack.clone();
            damaged[at] ^= 1 << (at % 8);
            assert!(
                ours(format, &damaged, 1).is_err(),
                "the checksum hides a change at {at}"
            );
            let damaged = reseal(format, damaged);
            if let Ok((_, files)) = ours(format, &damaged, 1 + at % 3) {
                accepted += 1;
                assert!(judge.index(&damaged).as_ref() == Ok(&files), "flipped at {at}");
            }
        }
        // Bits that zlib ignores, and kinds of objects that change into another.
        assert!(accepted < 40, "{accepted} damaged packs were accepted");
    }
}

#[test]
fn deltas_without_a_base() {
    for format in Format::BOTH {
        let (base, target) = (noise(500, 1), noise(500, 2));
        let missing = id(format, Kind::Blob, &base);
        let mut forge = Forge::new(format);
        forge.whole(Kind::Blob, b"something else");
        forge.delta_to_id(missing, &delta(&base, &target));
        forge.delta_to_id(id(format, Kind::Blob, &target), &delta(&target, &base[..100]));
        match ours(format, &forge.finish(), 2) {
            Err(Error::MissingBases {
                count: 2,
                missing: named,
            }) => assert!(named.contains(&missing)),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn deltas_that_depend_on_each_other() {
    let format = Format::Sha1;
    // An id that belongs to nothing stands for a circle: each delta waits for what the other would be.
    let (a, b) = (noise(300, 1), noise(300, 2));
    let mut forge = Forge::new(format);
    forge.delta_to_id(id(format, Kind::Blob, &b), &delta(&b, &a));
    forge.delta_to_id(id(format, Kind::Blob, &a), &delta(&a, &b));
    forge.delta_to_id(id(format, Kind::Blob, &a), &delta(&a, &b));
    let pack = forge.finish();
    assert!(Judge::new(format).index(&pack).is_err());
    for threads in [1, 2] {
        assert!(matches!(
            ours(format, &pack, threads),
            Err(Error::MissingBases { count: 3, .. })
        ));
    }
    // With one of them there as a whole, too, it is none.
    let mut forge = Forge::new(format);
    forge.delta_to_id(id(format, Kind::Blob, &b), &delta(&b, &a));
    forge.delta_to_id(id(format, Kind::Blob, &a), &delta(&a, &b));
    forge.whole(Kind::Blob, &a);
    let pack = forge.finish();
    assert_eq!(ours(format, &pack, 2).unwrap().0.objects, 3);
}

#[test]
fn offsets_where_no_entry_starts() {
    let format = Format::Sha1;
    for distance in [0, 1, 5, 100, 1 << 40, u64::MAX] {
        let mut forge = Forge::new(format);
        forge.whole(Kind::Blob, b"base");
        let header = Header::OfsDelta {
            base_distance: distance,
        };
        let delta = delta(b"base", b"bass");
        forge.entry(header, delta.len() as u64, &delta);
        let result = ours(format, &forge.finish(), 1);
        assert!(
            matches!(result, Err(Error::BaseOffset { .. } | Error::EntryHeader { .. })),
            "{distance}: {result:?}"
        );
    }
}

#[test]
fn sizes_that_are_not_true() {
    let format = Format::Sha1;
    let content = noise(3000, 1);
    for claimed in [0, 2999, 3001, 70_000, 10_000_000, 1 << 29, 1 << 62] {
        for header in [Header::Blob, Header::Commit, Header::Tree] {
            let mut forge = Forge::new(format);
            forge.entry(header, claimed, &content);
            assert!(ours(format, &forge.finish(), 1).is_err());
        }
    }
    let base = noise(1000, 2);
    for (base_size, result_size) in [
        (999, 1000),
        (1000, 999),
        (1000, 1001),
        (1000, 1 << 29),
        (1000, 1 << 62),
    ] {
        let mut forge = Forge::new(format);
        let offset = forge.whole(Kind::Blob, &base);
        let mut delta = delta_header(base_size, result_size);
        forge::copy(0, 1000, &mut delta);
        forge.delta_to_offset(offset, &delta);
        let result = ours(format, &forge.finish(), 1);
        assert!(
            matches!(result, Err(Error::Delta { .. } | Error::Limit { .. })),
            "{result:?}"
        );
    }
}

#[test]
fn bombs() {
    let format = Format::Sha1;
    let limits = Limits {
        held_bytes: 1 << 20,
        object_bytes: 8 << 20,
        ..Limits::default()
    };
    let options = Options {
        limits,
        ..Options::new(kind(format))
    };
    let refused = |pack: Vec<u8>| {
        let result = ours_with(&pack, &options);
        assert!(matches!(result, Err(Error::Limit { .. })), "{result:?}");
    };
    let zeros = vec![0; 20 << 20];
    let mut forge = Forge::new(format);
    forge.whole(Kind::Blob, &zeros);
    refused(forge.finish());
    let mut forge = Forge::new(format);
    forge.whole(Kind::Tree, &zeros[..2 << 20]);
    refused(forge.finish());
    // Five bytes of delta for each megabyte.
    let mut forge = Forge::new(format);
    let offset = forge.whole(Kind::Blob, &zeros[..1 << 20]);
    let mut delta = delta_header(1 << 20, 5 << 20);
    for _ in 0..5 {
        forge::copy(0, 1 << 20, &mut delta);
    }
    forge.delta_to_offset(offset, &delta);
    refused(forge.finish());
    // One that says that it is small.
    let mut forge = Forge::new(format);
    forge.entry(Header::Blob, 100, &zeros);
    assert!(matches!(
        ours_with(&forge.finish(), &options),
        Err(Error::EntrySize { .. })
    ));
    let mut forge = Forge::new(format);
    forge.entry(Header::Blob, 2 << 20, &zeros);
    assert!(matches!(
        ours_with(&forge.finish(), &options),
        Err(Error::EntrySize { .. })
    ));

    let few = Options {
        limits: Limits {
            objects: 3,
            pack_bytes: 1000,
            ..Limits::default()
        },
        ..Options::new(kind(format))
    };
    let mut forge = Forge::new(format);
    for number in 0..4u8 {
        forge.whole(Kind::Blob, &[number]);
    }
    assert!(matches!(
        ours_with(&forge.finish(), &few),
        Err(Error::Limit { limit: 3, .. })
    ));
    let mut forge = Forge::new(format);
    forge.whole(Kind::Blob, &noise(2000, 1));
    assert!(matches!(
        ours_with(&forge.finish(), &few),
        Err(Error::Limit { limit: 1000, .. })
    ));
}

/// A stream that fails, or that comes a byte at a time.
#[test]
fn slow_and_broken_streams() {
    struct Slow<'a>(&'a [u8], bool);
    impl std::io::Read for Slow<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else {
                return match self.1 {
                    true => Err(std::io::ErrorKind::ConnectionReset.into()),
                    false => Ok(0),
                };
            };
            out[0] = *first;
            self.0 = rest;
            Ok(1)
        }
    }
    let pack = small_pack(Format::Sha1);
    let options = Options::new(gix_hash::Kind::Sha1);
    let folder = tempfile::tempdir().unwrap();
    let progress = ingot_engine::progress::Silent;
    let mut slow = Slow(&pack, false);
    let indexed = ingot_engine::pack::index::index(&mut slow, folder.path(), &options, &progress).unwrap();
    assert_eq!(std::fs::read(indexed.pack).unwrap(), pack);
    let folder = tempfile::tempdir().unwrap();
    let mut broken = Slow(&pack[..pack.len() / 2], true);
    let result = ingot_engine::pack::index::index(&mut broken, folder.path(), &options, &progress);
    assert!(matches!(result, Err(Error::Read { .. })), "{result:?}");
}
