//! Large objects under a hard limit of the system's.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::io::{BufReader, BufWriter, Read as _, Write as _};

use gix_object::Kind;
use gix_pack::data::entry::Header;
use ingot_engine::pack::index::{Options, index};
use ingot_engine::pack::inflate::{Deflater, Level};
use ingot_engine::progress::Silent;
use ingot_testdata::repo::Format;

use crate::agreement::noise;
use crate::forge::{Forge, copy, delta_header};

#[path = "../support/limited.rs"]
mod limited;

/// What is taken beside kept bases and objects in work: the stack of the second thread (2 MiB), the window on the stream,
/// a window on the file and the state of inflation for each thread, batches between the threads.
const BESIDE: u64 = 12 << 20;

/// Indexes the pack at the path that was handed over; the number of its objects.
fn limited_index(memory: u64) -> u32 {
    let options = Options {
        threads: 2,
        memory,
        ..Options::new(gix_hash::Kind::Sha1)
    };
    let folder = tempfile::tempdir().unwrap();
    let mut source = File::open(limited::input()).unwrap();
    index(&mut source, folder.path(), &options, &Silent)
        .unwrap()
        .objects
}

#[test]
fn a_blob_of_one_gibibyte() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("pack");
    let size = 1 << 30;
    let mut hasher = gix_hash::hasher(gix_hash::Kind::Sha1);
    let mut file = BufWriter::new(File::create(&path).unwrap());
    let mut put = |piece: &[u8]| {
        hasher.update(piece);
        file.write_all(piece)
    };
    let mut head = b"PACK\0\0\0\x02\0\0\0\x01".to_vec();
    Header::Blob.write_to(size, &mut head).unwrap();
    put(&head).unwrap();
    let mut zeros = BufReader::with_capacity(1 << 16, std::io::repeat(0).take(size));
    Deflater::new(Level::BEST_SPEED)
        .stream(&mut zeros, &mut put)
        .unwrap();
    file.write_all(hasher.try_finalize().unwrap().as_bytes()).unwrap();
    drop(file);
    limited::run("memory::limited_blob", &path);
}

#[test]
#[ignore = "run by a_blob_of_one_gibibyte, with little memory"]
fn limited_blob() {
    let _peak = limited::hold(BESIDE);
    assert_eq!(limited_index(1 << 20), 1);
}

const VERSIONS: usize = 100;
const VERSION: usize = 16 << 20;
const MANY: usize = 1000;
const LOG: usize = 512 << 10;

/// Writes a pack with so many versions of a file, each longer than the one before by a line of 100 bytes, the first of
/// which has `length`. The newest is stored whole, as Git does it, and each is the base of an older one.
fn versions(path: &std::path::Path, count: usize, length: usize) {
    let mut file = noise(length + count * 100, 1);
    let mut forge = Forge::new(Format::Sha1);
    let mut offset = forge.whole(Kind::Blob, &file);
    for _ in 0..count {
        let base = file.len();
        file.truncate(base - 100);
        let mut delta = delta_header(base as u64, file.len() as u64);
        for at in (0..file.len()).step_by(0xff_ffff) {
            copy(at as u32, (file.len() - at).min(0xff_ffff) as u32, &mut delta);
        }
        offset = forge.delta_to_offset(offset, &delta);
    }
    std::fs::write(path, forge.finish()).unwrap();
}

#[test]
fn many_versions_of_a_large_file() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("pack");
    versions(&path, VERSIONS, VERSION);
    limited::run("memory::limited_versions", &path);
}

#[test]
#[ignore = "run by many_versions_of_a_large_file, with little memory"]
fn limited_versions() {
    // Of the 101 versions, two at a time: a base, and what is made of it.
    let _peak = limited::hold(BESIDE + 2 * (VERSION as u64 + (1 << 20)));
    assert_eq!(limited_index(1 << 20) as usize, VERSIONS + 1);
}

#[test]
fn a_thousand_versions_of_a_log() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("pack");
    versions(&path, MANY, LOG);
    limited::run("memory::limited_log", &path);
}

#[test]
#[ignore = "run by a_thousand_versions_of_a_log, with little memory"]
fn limited_log() {
    // The chain has a thousand links and makes half a gibibyte.
    let _peak = limited::hold(BESIDE + 2 * (LOG as u64 + (1 << 20)));
    assert_eq!(limited_index(1 << 20) as usize, MANY + 1);
}
