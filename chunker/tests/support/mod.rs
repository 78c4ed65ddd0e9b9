//! What the tests of this crate share.
#![allow(dead_code, clippy::unwrap_used, missing_docs)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ingot_testdata::git;
use ingot_testdata::random::Numbers;
use ingot_testdata::repo::{Format, Repo};

/// Bytes that look random, the same for the same seed.
pub fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut numbers = Numbers::new(seed);
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend_from_slice(&numbers.draw().to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// Lines of words, the same for the same seed.
pub fn text(seed: u64, length: usize) -> Vec<u8> {
    let mut numbers = Numbers::new(seed);
    let words = [
        "ingot", "chunk", "border", "gear", "list", "pointer", "blob", "tree", "commit", "pack",
    ];
    let mut bytes = Vec::with_capacity(length + 16);
    while bytes.len() < length {
        bytes.extend_from_slice(numbers.pick(&words).as_bytes());
        bytes.push(if numbers.once_in(9) { b'\n' } else { b' ' });
    }
    bytes.truncate(length);
    bytes
}

pub fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_git-chunk"))
}

/// The PATH with the program under test in front.
pub fn path() -> std::ffi::OsString {
    let mut folders = vec![program().parent().unwrap().to_owned()];
    folders.extend(std::env::split_paths(
        &std::env::var_os("PATH").unwrap_or_default(),
    ));
    std::env::join_paths(folders).unwrap()
}

/// Real Git that finds the program under test.
pub fn git_run(dir: &Path, args: &[&str]) -> Output {
    git::command(dir).env("PATH", path()).args(args).output().unwrap()
}

#[track_caller]
pub fn git_ok(dir: &Path, args: &[&str]) -> String {
    let output = git_run(dir, args);
    assert!(
        output.status.success(),
        "git {args:?} failed\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// The program itself. No Git is on its PATH.
pub fn chunk_run(dir: &Path, args: &[&str]) -> Output {
    git::isolated(Command::new(program()), dir)
        .env("PATH", "/nonexistent")
        .args(args)
        .output()
        .unwrap()
}

#[track_caller]
pub fn chunk(dir: &Path, args: &[&str]) -> String {
    let output = chunk_run(dir, args);
    assert!(
        output.status.success(),
        "git-chunk {args:?} failed with {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
pub fn json(dir: &Path, args: &[&str]) -> serde_json::Value {
    let mut all = vec!["--json"];
    all.extend_from_slice(args);
    serde_json::from_str(&chunk(dir, &all)).unwrap()
}

/// A repository that is set up for chunked `*.bin` files.
pub fn ready(format: Format) -> Repo {
    let repo = Repo::empty(format);
    chunk(repo.path(), &["install"]);
    chunk(repo.path(), &["-q", "track", "*.bin"]);
    repo
}

/// Asserts that Git finds a clean work tree and a sound repository.
#[track_caller]
pub fn clean(dir: &Path) {
    assert_eq!(git_ok(dir, &["status", "--porcelain"]), "");
    git::fsck(dir);
}

/// The chunk packs of a repository.
pub fn kept_packs(git_dir: &Path) -> Vec<PathBuf> {
    let mut packs: Vec<PathBuf> = std::fs::read_dir(git_dir.join("objects/pack"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "keep"))
        .map(|path| path.with_extension("pack"))
        .collect();
    packs.sort();
    packs
}
