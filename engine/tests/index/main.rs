//! Packs made by Git, by chance and by malice, indexed here and by Git.

#![allow(clippy::unwrap_used)] // in tests, failing is the point

mod agreement;
mod forge;
mod hostile;
mod memory;
mod random;
mod references;

use std::path::{Path, PathBuf};

use ingot_engine::pack::index::{Error, Indexed, Options, index};
use ingot_engine::progress::Silent;
use ingot_testdata::git;
use ingot_testdata::repo::Format;
use tempfile::TempDir;

fn kind(format: Format) -> gix_hash::Kind {
    match format {
        Format::Sha1 => gix_hash::Kind::Sha1,
        Format::Sha256 => gix_hash::Kind::Sha256,
    }
}

/// The bytes of the files beside an indexed pack.
#[derive(Debug, PartialEq, Eq)]
struct Files {
    pack: Vec<u8>,
    idx: Vec<u8>,
    rev: Vec<u8>,
}

impl Files {
    fn beside(pack: &Path) -> Files {
        Files {
            pack: std::fs::read(pack).unwrap(),
            idx: std::fs::read(pack.with_extension("idx")).unwrap(),
            rev: std::fs::read(pack.with_extension("rev")).unwrap(),
        }
    }
}

/// What this engine makes of a pack.
fn ours_with(pack: &[u8], options: &Options<'_>) -> Result<(Indexed, Files), Error> {
    let folder = TempDir::new().unwrap();
    let mut source = pack;
    let indexed = index(&mut source, folder.path(), options, &Silent)?;
    let files = Files::beside(&indexed.pack);
    assert_eq!(indexed.bytes, pack.len() as u64);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
    Ok((indexed, files))
}

fn ours(format: Format, pack: &[u8], threads: usize) -> Result<(Indexed, Files), Error> {
    ours_with(
        pack,
        &Options {
            threads,
            ..Options::new(kind(format))
        },
    )
}

/// What Git makes of a pack, or its complaint.
struct Judge {
    repo: TempDir,
    format: Format,
}

impl Judge {
    fn new(format: Format) -> Judge {
        let repo = TempDir::new().unwrap();
        git::git(
            repo.path(),
            &["init", "-q", "--bare", "--object-format", format.name()],
        );
        Judge { repo, format }
    }

    fn pack_path(&self) -> PathBuf {
        self.repo.path().join("judged.pack")
    }

    fn index(&self, pack: &[u8]) -> Result<Files, String> {
        let path = self.pack_path();
        for extension in ["pack", "idx", "rev"] {
            let _ = std::fs::remove_file(path.with_extension(extension));
        }
        std::fs::write(&path, pack).unwrap();
        let format = format!("--object-format={}", self.format.name());
        let output = git::run(
            self.repo.path(),
            &["index-pack", &format, "--rev-index", path.to_str().unwrap()],
        );
        match output.status.success() {
            true => Ok(Files::beside(&path)),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }
}

/// Asserts that Git accepts the pack and that the files here are the same, with any number of threads.
#[track_caller]
fn assert_agreement(format: Format, pack: &[u8]) -> Indexed {
    let expected = Judge::new(format).index(pack).unwrap();
    let mut first = None;
    for threads in [1, 2, 4] {
        let (mut indexed, files) = ours(format, pack, threads).unwrap();
        assert!(files == expected, "files differ with {threads} threads");
        indexed.pack = PathBuf::new();
        let first = first.get_or_insert_with(|| indexed.clone());
        assert_eq!(*first, indexed);
    }
    first.unwrap()
}
