//! Large objects under a hard limit of the system's.

use std::io::{BufReader, Read};
use std::process::Command;

use gix_pack::data::entry::Header;
use ingot_engine::pack::index::{Options, index};
use ingot_engine::pack::inflate::{Deflater, Level};
use ingot_engine::progress::Silent;
use ingot_testdata::repo::Format;

use crate::agreement::noise;
use crate::forge::{Forge, copy, delta_header, seal};

/// Runs the test of this name, which is ignored otherwise, with at most `mebibytes` of memory, mapped files and stacks
/// of threads included.
fn run_limited(name: &str, mebibytes: u32) {
    let limit = mebibytes * 1024;
    let output = Command::new("sh")
        .args(["-c", &format!("ulimit -v {limit} && exec \"$0\" \"$@\"")])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--ignored", "--test-threads=1"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[cfg(unix)]
#[test]
fn a_blob_of_one_gibibyte() {
    run_limited("memory::limited_blob", 300);
}

#[test]
#[ignore = "run by a_blob_of_one_gibibyte, with little memory"]
fn limited_blob() {
    let size = 1 << 30;
    let mut pack = b"PACK\0\0\0\x02\0\0\0\x01".to_vec();
    Header::Blob.write_to(size, &mut pack).unwrap();
    let mut zeros = BufReader::with_capacity(1 << 16, std::io::repeat(0).take(size));
    Deflater::new(Level::BEST_SPEED)
        .stream(&mut zeros, &mut |piece| {
            pack.extend_from_slice(piece);
            Ok(())
        })
        .unwrap();
    let pack = seal(Format::Sha1, pack);
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        threads: 2,
        ..Options::new(gix_hash::Kind::Sha1)
    };
    assert_eq!(
        index(&mut &pack[..], folder.path(), &options, &Silent)
            .unwrap()
            .objects,
        1
    );
    // There would not be room for it.
    assert!(Vec::<u8>::new().try_reserve_exact(size as usize).is_err());
}

#[cfg(unix)]
#[test]
fn many_versions_of_a_large_file() {
    run_limited("memory::limited_versions", 400);
}

#[test]
#[ignore = "run by many_versions_of_a_large_file, with little memory"]
fn limited_versions() {
    const VERSIONS: usize = 100;
    let size = 20 << 20;
    let mut file = noise(size + VERSIONS * 100, 1);
    // The newest version is stored, as Git does it, and each is the base of an older one.
    let mut forge = Forge::new(Format::Sha1);
    let mut offset = forge.whole(gix_object::Kind::Blob, &file);
    for _ in 0..VERSIONS {
        let base = file.len();
        file.truncate(base - 100);
        let mut delta = delta_header(base as u64, file.len() as u64);
        for at in (0..file.len()).step_by(0xff_ffff) {
            copy(at as u32, (file.len() - at).min(0xff_ffff) as u32, &mut delta);
        }
        offset = forge.delta_to_offset(offset, &delta);
    }
    drop(file);
    let pack = forge.finish();
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        threads: 2,
        ..Options::new(gix_hash::Kind::Sha1)
    };
    let indexed = index(&mut &pack[..], folder.path(), &options, &Silent).unwrap();
    assert_eq!(indexed.objects as usize, VERSIONS + 1);
}
