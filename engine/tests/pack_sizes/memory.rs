//! Large objects on their way into a pack and out of it, under a hard limit of the system's.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::io::{BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};

use gix_hash::ObjectId;
use gix_object::Kind;
use ingot_engine::pack::index;
use ingot_engine::pack::inflate::{Deflater, Level};
use ingot_engine::pack::write::{Options, Summary, plan};
use ingot_engine::progress::Silent;
use ingot_engine::store::Store;
use ingot_engine::walk;

#[path = "../support/limited.rs"]
mod limited;

/// What is taken beside the budget of the work: stacks of two threads with 2 MiB each, two windows of 1.1 MiB for each
/// thread, states of compressors and hashes, buffers between threads, the index files.
const BESIDE: u64 = 16 << 20;

/// Writes a loose blob, byte by byte from `content`.
fn loose(objects: &Path, size: u64, content: &mut dyn std::io::Read) -> ObjectId {
    let mut hasher = gix_hash::hasher(gix_hash::Kind::Sha1);
    let header = gix_object::encode::loose_header(Kind::Blob, size);
    let path = objects.join("tmp_obj");
    let mut file = BufWriter::new(File::create(&path).unwrap());
    let mut source = Hashed {
        hasher: &mut hasher,
        inner: (&header[..]).chain(content.take(size)),
    };
    let mut source = BufReader::with_capacity(1 << 16, &mut source);
    Deflater::new(Level::BEST_SPEED)
        .stream(&mut source, &mut |piece| file.write_all(piece))
        .unwrap();
    file.flush().unwrap();
    let id = hasher.try_finalize().unwrap();
    let hex = id.to_string();
    let folder = objects.join(&hex[..2]);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::rename(path, folder.join(&hex[2..])).unwrap();
    id
}

struct Hashed<'a, R> {
    hasher: &'a mut gix_hash::Hasher,
    inner: R,
}

impl<R: std::io::Read> std::io::Read for Hashed<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(out)?;
        self.hasher.update(&out[..read]);
        Ok(read)
    }
}

/// Packs all loose objects of a folder into a file and indexes that.
fn pack_and_index(objects: &Path, options: &Options, memory: u64) -> Summary {
    let store = Store::open(objects, gix_hash::Kind::Sha1).unwrap();
    let wants: Vec<ObjectId> = store.loose().map(Result::unwrap).collect();
    let request = walk::Request {
        wants: &wants,
        threads: 2,
        ..walk::Request::default()
    };
    let found = walk::enumerate(&store, &request, &Silent).unwrap();
    let path = objects.join("new.pack");
    let mut out = BufWriter::new(File::create(&path).unwrap());
    let summary = plan(&store, &found, options, &Silent)
        .unwrap()
        .stream(&mut out, &Silent)
        .unwrap();
    drop(out);
    let options = index::Options {
        threads: 2,
        memory,
        existing: Some(&store),
        ..index::Options::new(gix_hash::Kind::Sha1)
    };
    let folder = tempfile::tempdir_in(objects).unwrap();
    let mut source = File::open(&path).unwrap();
    let indexed = index::index(&mut source, folder.path(), &options, &Silent).unwrap();
    assert_eq!(indexed.id, summary.checksum);
    summary
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let objects = temp.path().join("objects");
    std::fs::create_dir(&objects).unwrap();
    (temp, objects)
}

#[test]
fn a_blob_of_one_gibibyte() {
    let (_temp, objects) = folder();
    loose(&objects, 1 << 30, &mut std::io::repeat(b'x'));
    limited::run("memory::limited_blob", &objects);
}

#[test]
#[ignore = "run by a_blob_of_one_gibibyte, with little memory"]
fn limited_blob() {
    let options = Options {
        threads: 2,
        memory: 8 << 20,
        ..Options::default()
    };
    let _peak = limited::hold(options.memory + BESIDE);
    let summary = pack_and_index(&limited::input(), &options, 1 << 20);
    assert_eq!(summary.objects, 1);
}

/// An append-only file in many versions.
const VERSIONS: usize = 40;
const VERSION: usize = 2 << 20;

#[test]
fn many_versions_of_a_large_file() {
    let (_temp, objects) = folder();
    let mut state = 1u64;
    let mut log: Vec<u8> = Vec::new();
    for number in 0..VERSIONS {
        while log.len() < VERSION + number * 1_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            log.extend_from_slice(&(state >> 8).to_le_bytes()[..7]);
        }
        loose(&objects, log.len() as u64, &mut &log[..]);
    }
    limited::run("memory::limited_versions", &objects);
}

#[test]
#[ignore = "run by many_versions_of_a_large_file, with little memory"]
fn limited_versions() {
    let options = Options {
        threads: 2,
        memory: 12 << 20,
        ..Options::default()
    };
    // Half of what all versions take.
    let _peak = limited::hold(options.memory + BESIDE + (12 << 20));
    let summary = pack_and_index(&limited::input(), &options, 2 << 20);
    assert_eq!(summary.objects as usize, VERSIONS);
    // They became deltas all the same, except the first of each 32 MiB, as these have no path that would tell more.
    assert!(summary.bytes < 4 * VERSION as u64, "{}", summary.bytes);
}
