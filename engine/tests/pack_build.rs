//! Packs that are put together object by object: Git reads them, and an import takes them.

#![allow(clippy::unwrap_used)]

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use gix_object::Kind;
use ingot_engine::durable;
use ingot_engine::durable::testing::{Fault, Faulty, Recording};
use ingot_engine::import::{Import, Options};
use ingot_engine::pack::create::{self, Content, Creator, id_of};
use ingot_testdata::git;
use ingot_testdata::repo::{Format, Repo};

fn kind_of(format: Format) -> gix_hash::Kind {
    match format {
        Format::Sha1 => gix_hash::Kind::Sha1,
        Format::Sha256 => gix_hash::Kind::Sha256,
    }
}

/// Bytes that do not compress.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 7u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 40) as u8
    };
    (0..length).map(|_| next()).collect()
}

fn builds(repo: &Repo, format: Format, blobs: &[Vec<u8>]) {
    let kind = kind_of(format);
    let mut import = Import::begin(&repo.objects(), kind, Options::default()).unwrap();
    let mut builder = import.builder();
    let mut ids = Vec::new();
    for (number, blob) in blobs.iter().enumerate() {
        let content = if number % 2 == 0 {
            Content::Random
        } else {
            Content::Compressible
        };
        let id = builder.add_whole(Kind::Blob, blob, content).unwrap();
        assert_eq!(id, id_of(kind, Kind::Blob, blob));
        assert_eq!(builder.add_whole(Kind::Blob, blob, content).unwrap(), id, "twice");
        ids.push(id);
    }
    let mut blobs = blobs.to_vec();
    for length in [0, 1, 100_000, 2_500_000] {
        let blob = noise(length + 3);
        ids.push(builder.add_stream(blob.len() as u64, &mut &blob[..]).unwrap());
        blobs.push(blob);
    }
    let tree = builder.add_whole(Kind::Tree, b"", Content::Compressible).unwrap();
    let text = format!("tree {tree}\nauthor a <a> 1 +0000\ncommitter a <a> 1 +0000\n\nx\n");
    let commit = builder
        .add_whole(Kind::Commit, text.as_bytes(), Content::Compressible)
        .unwrap();
    let received = import.adopt(builder).unwrap();
    let mut different = ids.clone();
    different.sort();
    different.dedup();
    assert_eq!(received.objects as usize, different.len() + 2);
    import.sync().unwrap();
    let published = import.publish(false).unwrap();
    assert_eq!(published[0].pack.metadata().unwrap().len(), received.bytes);
    repo.git(&["verify-pack", published[0].idx.to_str().unwrap()]);
    repo.git(&["update-ref", "refs/heads/main", &commit.to_string()]);
    for (id, blob) in ids.iter().zip(&blobs) {
        let read = git::with_input(repo.path(), &["cat-file", "blob", &id.to_string()], b"");
        assert!(read == *blob, "{id}");
    }
    git::fsck(repo.path());
    // Git makes the same index and the same reverse index.
    for extension in ["idx", "rev"] {
        let ours = std::fs::read(published[0].pack.with_extension(extension)).unwrap();
        let again = repo.path().join(format!("again.{extension}"));
        let pack = published[0].pack.to_str().unwrap();
        let idx = repo.path().join("again.idx");
        repo.git(&["index-pack", "--rev-index", "-o", idx.to_str().unwrap(), pack]);
        assert!(ours == std::fs::read(&again).unwrap(), "{extension}");
        let _ = std::fs::remove_file(idx);
        let _ = std::fs::remove_file(repo.path().join("again.rev"));
    }
}

#[test]
fn git_reads_what_is_built() {
    for format in Format::BOTH {
        let small = vec![noise(10), vec![], b"text ".repeat(1000), noise(70_000)];
        builds(&Repo::empty(format), format, &small);
        // More than is put together in memory, so that the number of entries is filled in afterwards.
        let large = vec![noise(3 << 20), b"text ".repeat(400_000), noise(1), noise(1 << 20)];
        builds(&Repo::empty(format), format, &large);
    }
}

#[test]
fn a_power_cut_leaves_nothing_half() {
    let folder = tempfile::tempdir().unwrap();
    let objects = folder.path().join("objects");
    std::fs::create_dir_all(objects.join("pack")).unwrap();
    let recording = Arc::new(Recording::new(folder.path()).unwrap());
    let options = Options {
        fs: recording.clone(),
        ..Options::default()
    };
    let large = noise((1 << 20) + 5);
    let mut import = Import::begin(&objects, gix_hash::Kind::Sha1, options).unwrap();
    let mut builder = import.builder();
    let id = builder.add_whole(Kind::Blob, &large, Content::Random).unwrap();
    import.adopt(builder).unwrap();
    import.publish(false).unwrap();
    recording.mark("published");
    let states = recording.each_crash(|crash| {
        let store =
            ingot_engine::store::Store::open(&crash.root().join("objects"), gix_hash::Kind::Sha1).unwrap();
        let mut read = Vec::new();
        let mut cache = ingot_engine::store::Cache::new(0);
        match store.read(&id, &mut cache, &mut read).unwrap() {
            Some(_) => assert!(read == large, "{crash}"),
            None => assert!(!crash.reached("published"), "{crash}"),
        }
    });
    assert!(states > 10, "only {states} states");
}

#[test]
fn every_failing_call_is_told() {
    let large = noise((2 << 20) + 5);
    for fault in Fault::ALL {
        for at in 1.. {
            let folder = tempfile::tempdir().unwrap();
            let faulty = Arc::new(Faulty::new(durable::real(), fault, at, false));
            let result = build(folder.path(), faulty.clone(), &large);
            if !faulty.failed() {
                result.unwrap();
                break;
            }
            let error = result.unwrap_err();
            let text = error.to_string();
            assert!(text.contains("x.") || text.contains("tmp_pack_new_"), "{error}");
            assert!(at < 100, "the loop ends");
        }
    }
}

fn build(folder: &Path, fs: Arc<dyn durable::Fs>, blob: &[u8]) -> Result<(), durable::Error> {
    let options = create::Options {
        buffer: 1 << 20,
        fs: Arc::clone(&fs),
        ..create::Options::default()
    };
    let mut builder = Creator::in_folder(folder, gix_hash::Kind::Sha1, &options);
    builder.add_whole(Kind::Blob, blob, Content::Random)?;
    let built = builder.complete()?;
    built.write_index(&*fs, &folder.join("x.idx"), &folder.join("x.rev"))
}

#[test]
fn a_stream_of_another_length_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let blob = noise(1_000);
    for size in [0, 999, 1_001, 1 << 40] {
        let mut builder =
            Creator::in_folder(folder.path(), gix_hash::Kind::Sha1, &create::Options::default());
        let error = builder.add_stream(size, &mut &blob[..]).unwrap_err();
        assert!(matches!(error, create::Error::Length { .. }), "{error}");
        assert!(matches!(builder.complete(), Err(create::Error::Unfinished)));
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[cfg(target_os = "linux")]
#[path = "support/limited.rs"]
mod limited;

/// A part of 512 MiB passes in pieces.
#[cfg(target_os = "linux")]
#[test]
fn large_parts_take_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    limited::run("limited_part", folder.path());
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "run by large_parts_take_little_memory, with little memory"]
fn limited_part() {
    // Blocks on their way to the disk are the most of it.
    let _peak = limited::hold(32 << 20);
    let size = 512 << 20;
    let mut builder = Creator::in_folder(
        &limited::input(),
        gix_hash::Kind::Sha1,
        &create::Options::default(),
    );
    builder
        .add_stream(size, &mut std::io::repeat(7).take(size))
        .unwrap();
    assert!(builder.complete().unwrap().bytes > size);
}
