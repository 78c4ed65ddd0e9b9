#![allow(clippy::unwrap_used)] // in tests, failing is the point

use std::process::Command;

use super::*;
use crate::durable::testing::{Fault, Faulty, Recording};
use crate::store::{Cache, Store};

const FORMATS: [gix_hash::Kind; 2] = [gix_hash::Kind::Sha1, gix_hash::Kind::Sha256];

fn objects(root: &Path) -> PathBuf {
    let objects = root.join("objects");
    std::fs::create_dir_all(objects.join("pack")).unwrap();
    objects
}

fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 40) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// Small and large objects, one twice, some streamed, in a pack that is larger than the buffer or not.
fn create(root: &Path, format: gix_hash::Kind, options: &Options) -> (Created, Vec<(ObjectId, Vec<u8>)>) {
    let mut creator = Creator::begin(&objects(root), format, options);
    let mut encoder = Encoder::new(format, options.level);
    let mut all = Vec::new();
    for number in 0..50u64 {
        let bytes = noise(number, (number * 97) as usize);
        let object = encoder.encode(Kind::Blob, &bytes);
        assert!(creator.add(&object).unwrap());
        assert!(!creator.add(&object).unwrap());
        all.push((object.id, bytes));
    }
    for (number, size) in [(100, 0), (101, 1), (102, 300_000)] {
        let bytes = noise(number, size);
        if size == 0 {
            continue; // the first small one
        }
        let mut blob = creator.blob(size as u64).unwrap();
        bytes.chunks(70_000).for_each(|piece| blob.write(piece).unwrap());
        all.push((blob.finish().unwrap(), bytes));
    }
    let mut given_up = creator.blob(200_000).unwrap();
    given_up.write(&noise(7, 1000)).unwrap();
    given_up.abandon().unwrap();
    (creator.finish().unwrap().unwrap(), all)
}

#[test]
fn git_and_the_store_read_what_was_created() {
    for format in FORMATS {
        for (buffer, expected) in [(8 << 20, 0), (4096, 53), (4096, 99), (1, 0)] {
            let dir = tempfile::tempdir().unwrap();
            let options = Options {
                buffer,
                expected,
                ..Options::default()
            };
            let (created, all) = create(dir.path(), format, &options);
            assert_eq!(created.objects, 53);
            assert_eq!(created.bytes, std::fs::metadata(&created.pack).unwrap().len());
            let verified = Command::new("git")
                .args(["index-pack", "--strict"])
                .arg(format!("--object-format={format}"))
                .arg("-o")
                .arg(dir.path().join("git.idx"))
                .arg(&created.pack)
                .output()
                .unwrap();
            assert!(verified.status.success(), "{verified:?}");
            assert_eq!(
                std::fs::read(dir.path().join("git.idx")).unwrap(),
                std::fs::read(created.pack.with_extension("idx")).unwrap()
            );
            let store = Store::open(&dir.path().join("objects"), format).unwrap();
            let mut cache = Cache::new(0);
            for (id, bytes) in all {
                let mut out = Vec::new();
                assert_eq!(store.read(&id, &mut cache, &mut out).unwrap(), Some(Kind::Blob));
                assert!(out == bytes);
            }
            assert_eq!(
                std::fs::read_dir(dir.path().join("objects/pack"))
                    .unwrap()
                    .count(),
                2
            );
        }
    }
}

#[test]
fn a_pack_that_was_announced_is_full_at_that_number() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        buffer: 10_000,
        ..Options::default()
    };
    let mut creator = Creator::begin(&objects(dir.path()), gix_hash::Kind::Sha1, &options);
    let mut encoder = Encoder::new(gix_hash::Kind::Sha1, options.level);
    let mut add = |creator: &mut Creator, number: u64| {
        creator
            .add(&encoder.encode(Kind::Blob, &noise(number, 3000)))
            .unwrap();
    };
    add(&mut creator, 1);
    assert!(creator.expect(6));
    for number in 2..6 {
        add(&mut creator, number);
        assert!(!creator.is_full());
    }
    assert!(!creator.expect(9), "the header is on the disk");
    add(&mut creator, 6);
    assert!(creator.is_full());
    let created = creator.finish().unwrap().unwrap();
    let verified = Command::new("git")
        .arg("verify-pack")
        .arg(&created.pack)
        .output()
        .unwrap();
    assert!(verified.status.success(), "{verified:?}");
}

#[test]
fn objects_may_be_deltas_against_earlier_ones() {
    use crate::pack::delta::encode::Index;
    for format in FORMATS {
        let dir = tempfile::tempdir().unwrap();
        let options = Options {
            buffer: 64 * 1024,
            ..Options::default()
        };
        let mut creator = Creator::begin(&objects(dir.path()), format, &options);
        let mut encoder = Encoder::new(format, options.level);
        let mut versions = vec![noise(1, 50_000)];
        creator.add(&encoder.encode(Kind::Blob, &versions[0])).unwrap();
        for number in 1..5usize {
            let before = versions[number - 1].clone();
            let mut next = before.clone();
            next[number * 1000] ^= 1;
            let delta = Index::new(&before).delta(&next, 100).unwrap();
            let (id, base) = (encoder.id(Kind::Blob, &next), encoder.id(Kind::Blob, &before));
            let object = encoder.encode_delta(id, Kind::Blob, base, &delta);
            assert!(creator.add(&object).unwrap());
            versions.push(next);
        }
        let stray = encoder.id(Kind::Blob, b"elsewhere");
        let object = encoder.encode_delta(stray, Kind::Blob, stray, b"delta");
        assert!(matches!(creator.add(&object), Err(Error::NoBase { .. })));
        let created = creator.finish().unwrap().unwrap();
        assert!(created.bytes < 60_000, "{}", created.bytes);
        let verified = Command::new("git")
            .args(["index-pack", "--strict"])
            .arg(format!("--object-format={format}"))
            .arg("-o")
            .arg(dir.path().join("git.idx"))
            .arg(&created.pack)
            .output()
            .unwrap();
        assert!(verified.status.success(), "{verified:?}");
        let store = Store::open(&dir.path().join("objects"), format).unwrap();
        for version in versions {
            let mut out = Vec::new();
            let id = encoder.id(Kind::Blob, &version);
            store.read(&id, &mut Cache::new(0), &mut out).unwrap();
            assert!(out == version);
        }
    }
}

#[test]
fn what_is_given_up_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        buffer: 64,
        ..Options::default()
    };
    let mut creator = Creator::begin(&objects(dir.path()), gix_hash::Kind::Sha1, &options);
    let mut encoder = Encoder::new(gix_hash::Kind::Sha1, options.level);
    creator.add(&encoder.encode(Kind::Blob, &noise(1, 1000))).unwrap();
    let pack = dir.path().join("objects/pack");
    assert_eq!(std::fs::read_dir(&pack).unwrap().count(), 1);
    let mut blob = creator.blob(10).unwrap();
    blob.write(b"123456").unwrap();
    assert!(matches!(
        blob.write(b"12345"),
        Err(Error::Length {
            expected: 10,
            actual: 11
        })
    ));
    assert!(matches!(
        blob.finish(),
        Err(Error::Length {
            expected: 10,
            actual: 6
        })
    ));
    assert!(matches!(creator.finish(), Err(Error::Unfinished)));
    assert_eq!(std::fs::read_dir(&pack).unwrap().count(), 0);
    let empty = Creator::begin(&objects(dir.path()), gix_hash::Kind::Sha1, &options);
    assert_eq!(empty.finish().unwrap(), None);
}

/// After every power cut the pack is whole or invisible, and once reported it is there.
#[test]
fn power_cuts_leave_a_whole_pack_or_none() {
    for (buffer, expected) in [(1 << 20, 0), (512, 3)] {
        let dir = tempfile::tempdir().unwrap();
        let folder = objects(dir.path());
        let recording = Arc::new(Recording::new(dir.path()).unwrap());
        let options = Options {
            buffer,
            expected,
            fs: Arc::clone(&recording) as Arc<dyn Fs>,
            ..Options::default()
        };
        let mut creator = Creator::begin(&folder, gix_hash::Kind::Sha1, &options);
        let mut encoder = Encoder::new(gix_hash::Kind::Sha1, options.level);
        let object = encoder.encode(Kind::Blob, &noise(1, 2000));
        creator.add(&object).unwrap();
        creator.add(&encoder.encode(Kind::Blob, b"two")).unwrap();
        creator.finish().unwrap();
        recording.mark("created");
        assert_eq!(recording.calls().file_syncs, 2);
        assert_eq!(recording.calls().folder_syncs, 1);
        let states = recording.each_crash(|crash| {
            let store = Store::open(&crash.root().join("objects"), gix_hash::Kind::Sha1).unwrap();
            let mut out = Vec::new();
            let found = store.read(&object.id, &mut Cache::new(0), &mut out).unwrap();
            assert!(found.is_some() || !crash.reached("created"), "{crash}");
        });
        assert!(states > 10, "{states}");
    }
}

#[test]
fn every_failing_call_is_reported() {
    for fault in Fault::ALL {
        for at in 1.. {
            let dir = tempfile::tempdir().unwrap();
            let folder = objects(dir.path());
            let inner = Arc::new(Recording::new(dir.path()).unwrap());
            let faulty = Arc::new(Faulty::new(inner, fault, at, false));
            let options = Options {
                buffer: 100,
                fs: Arc::clone(&faulty) as Arc<dyn Fs>,
                ..Options::default()
            };
            let mut creator = Creator::begin(&folder, gix_hash::Kind::Sha1, &options);
            let mut encoder = Encoder::new(gix_hash::Kind::Sha1, options.level);
            let added = creator.add(&encoder.encode(Kind::Blob, &noise(1, 500)));
            let result = added.and_then(|_| creator.finish());
            if !faulty.failed() {
                result.unwrap();
                break;
            }
            assert!(result.is_err(), "{fault:?} at {at}");
            assert!(at < 50, "the loop ends");
        }
    }
}
