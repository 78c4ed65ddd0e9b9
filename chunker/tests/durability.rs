//! Crashes, failing disks, changing files, and files that are changed in place.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use ingot_chunker::store::{Source, Writer};
use ingot_chunker::worktree::{self, Journal, Target};
use ingot_chunker::{Error, care};
use ingot_engine::chunked::Pointer;
use ingot_engine::durable::testing::{Fault, Faulty, Recording};
use ingot_engine::durable::{self, Fs};
use ingot_engine::progress::{Progress, Silent};
use ingot_engine::repository::Repository;
use ingot_engine::store::Store;
use ingot_testdata::git;
use ingot_testdata::repo::{Format, Repo};
use support::*;

const KIND: gix_hash::Kind = gix_hash::Kind::Sha1;

fn add(objects: &Path, fs: Arc<dyn Fs>, content: &[u8]) -> Result<Pointer, Error> {
    let store = Store::open(objects, KIND)?;
    let mut writer = Writer::with_fs(objects, &store, fs);
    let mut stream = content;
    let added = writer.add(Source::stream(&mut stream), None, &Silent)?;
    writer.finish()?;
    Ok(added.pointer)
}

fn is_whole(objects: &Path, pointer: &Pointer) -> bool {
    let store = Store::open(objects, KIND).unwrap();
    care::complete(&store, pointer).is_ok()
        && ingot_engine::chunked::verify(&store, pointer, &Silent)
            .unwrap()
            .is_empty()
}

/// Once the pointer is handed out, its chunks survive a power cut at any moment; before, the repository is as it was.
#[test]
fn a_power_cut_loses_nothing_that_was_promised() {
    // One pack that is written at once, and one that is not.
    for size in [300_000, 18 << 20] {
        let repo = Repo::empty(Format::Sha1);
        let first = add(&repo.objects(), durable::real(), &noise(1, 200_000)).unwrap();
        let content = noise(2, size);
        let recording = Arc::new(Recording::new(&repo.objects()).unwrap());
        let pointer = add(&repo.objects(), Arc::clone(&recording) as Arc<dyn Fs>, &content).unwrap();
        recording.mark("answered");
        let calls = recording.calls();
        assert!(calls.file_syncs <= 3 && calls.folder_syncs <= 1, "{calls:?}");
        let mut states = 0;
        recording.each_crash(|crash| {
            states += 1;
            // Large states take long to verify, and differ little.
            if size > 1 << 20 && states % 7 != 0 && !crash.reached("answered") {
                return;
            }
            assert!(is_whole(crash.root(), &first), "{crash}");
            assert!(
                !crash.reached("answered") || is_whole(crash.root(), &pointer),
                "{crash}"
            );
        });
        assert!(states > 3);
    }
}

#[test]
fn every_call_may_fail() {
    let repo = Repo::empty(Format::Sha1);
    let first = add(&repo.objects(), durable::real(), &noise(1, 200_000)).unwrap();
    for fault in [Fault::Full, Fault::Short] {
        for at in 1.. {
            let faulty = Arc::new(Faulty::new(durable::real(), fault, at, true));
            let result = add(
                &repo.objects(),
                Arc::clone(&faulty) as Arc<dyn Fs>,
                &noise(100 + at, 150_000),
            );
            assert!(is_whole(&repo.objects(), &first));
            if !faulty.failed() {
                assert!(is_whole(&repo.objects(), &result.unwrap()));
                break;
            }
            if let Ok(pointer) = &result {
                assert!(is_whole(&repo.objects(), pointer), "call {at}");
            }
        }
    }
    git::fsck(repo.path());
}

#[test]
fn a_file_that_changes_while_it_is_read_is_refused() {
    struct Changer(std::path::PathBuf, std::sync::atomic::AtomicBool);
    impl Progress for Changer {
        fn advance(&self, _amount: u64) {
            if !self.1.swap(true, std::sync::atomic::Ordering::SeqCst) {
                use std::io::Write as _;
                let mut file = fs::OpenOptions::new().append(true).open(&self.0).unwrap();
                file.write_all(b"more").unwrap();
            }
        }
    }
    let repo = Repo::empty(Format::Sha1);
    let path = repo.path().join("file");
    fs::write(&path, noise(1, 20 << 20)).unwrap();
    let repository = Repository::open(repo.path()).unwrap();
    let store = repository.store().unwrap();
    let mut writer = Writer::new(&repository, &store);
    let changer = Changer(path.clone(), false.into());
    let error = writer
        .add(Source::open(&path).unwrap(), None, &changer)
        .unwrap_err();
    assert!(matches!(error, Error::Changed { .. }), "{error}");

    // Also while it is compared with the version before, which is the same up to then.
    struct Overwriter(std::path::PathBuf, std::sync::atomic::AtomicBool);
    impl Progress for Overwriter {
        fn advance(&self, _amount: u64) {}
        fn interrupted(&self) -> bool {
            if !self.1.swap(true, std::sync::atomic::Ordering::SeqCst) {
                use std::os::unix::fs::FileExt as _;
                let file = fs::OpenOptions::new().write(true).open(&self.0).unwrap();
                file.write_all_at(b"changed", 10).unwrap();
                // Whatever the clock's steps are.
                let later = std::time::SystemTime::now() + std::time::Duration::from_secs(10);
                file.set_modified(later).unwrap();
            }
            false
        }
    }
    let content = noise(3, 6 << 20);
    let before = add(&repo.objects(), durable::real(), &content).unwrap();
    let store = repository.store().unwrap();
    for content in [content.clone(), [b"in front".as_slice(), &content].concat()] {
        fs::write(&path, &content).unwrap();
        let mut writer = Writer::new(&repository, &store);
        let overwriter = Overwriter(path.clone(), false.into());
        let error = writer
            .add(Source::open(&path).unwrap(), Some(&before), &overwriter)
            .unwrap_err();
        assert!(matches!(error, Error::Changed { .. }), "{error}");
    }
}

#[test]
fn files_are_changed_in_place_where_that_is_safe() {
    let repo = Repo::empty(Format::Sha1);
    let repository = Repository::open(repo.path()).unwrap();
    let old_content = noise(1, 4 << 20);
    let mut new_content = old_content.clone();
    new_content[2_000_000] ^= 1;
    new_content.extend_from_slice(&noise(2, 100_000));
    let old = add(&repo.objects(), durable::real(), &old_content).unwrap();
    let new = add(&repo.objects(), durable::real(), &new_content).unwrap();
    let store = repository.store().unwrap();
    let journal = Journal::of(&repository);
    let path = repo.path().join("file");
    let restore = |pointer: &Pointer, holds: Option<&Pointer>| {
        let target = Target {
            path: &path,
            executable: false,
            holds,
        };
        worktree::restore(&store, pointer, &target, Some(&journal), &Silent)
            .unwrap()
            .1
    };
    assert_eq!(restore(&old, None), 4 << 20);
    let written = restore(&new, Some(&old));
    assert!(written < 600_000, "{written}");
    assert!(fs::read(&path).unwrap() == new_content);
    let written = restore(&old, Some(&new));
    assert!(written < 600_000, "{written}");
    assert!(fs::read(&path).unwrap() == old_content);
    // A file with a second name is not changed under that name.
    let other = repo.path().join("other");
    fs::hard_link(&path, &other).unwrap();
    let written = restore(&new, Some(&old));
    assert!(written < 600_000, "the rest is copied, not made anew: {written}");
    assert!(fs::read(&path).unwrap() == new_content && fs::read(&other).unwrap() == old_content);
    // A file that does not hold what it is believed to hold comes out right nevertheless.
    fs::write(&path, noise(9, old_content.len())).unwrap();
    restore(&new, Some(&old));
    assert!(fs::read(&path).unwrap() == new_content);
    assert!(!repo.git_dir().join("chunk/patching").exists());

    // What an interrupted change leaves is finished by the next command.
    fs::write(&path, &new_content[..1_000_000]).unwrap();
    let mut note = new.to_bytes();
    note.extend_from_slice(b"plain\n");
    note.extend_from_slice(path.as_os_str().as_encoded_bytes());
    fs::write(repo.git_dir().join("chunk/patching"), &note).unwrap();
    let recovered = worktree::recover(&repository, &store).unwrap();
    assert_eq!(recovered.as_deref(), Some(path.as_path()));
    assert!(fs::read(&path).unwrap() == new_content);
    assert!(!repo.git_dir().join("chunk/patching").exists());
    assert_eq!(worktree::recover(&repository, &store).unwrap(), None);
    fs::write(repo.git_dir().join("chunk/patching"), b"nonsense").unwrap();
    assert_eq!(worktree::recover(&repository, &store).unwrap(), None);
}

#[test]
fn damaged_lists_and_pointers_are_named() {
    let repo = ready(Format::Sha1);
    let dir = repo.path();
    repo.write("a.bin", noise(1, 200_000));
    repo.write("b.bin", noise(2, 200_000));
    chunk(dir, &["-q", "add", "-A"]);
    chunk(dir, &["-q", "commit", "-m", "one"]);
    // A pointer to a list that is something else, and one that claims another size.
    let pointer = git_ok(dir, &["cat-file", "blob", "HEAD:a.bin"]) + "\n";
    let other = git_ok(dir, &["rev-parse", "HEAD:.gitattributes"]);
    let list = pointer
        .lines()
        .last()
        .unwrap()
        .strip_prefix("list ")
        .unwrap()
        .to_owned();
    for (text, message) in [
        (pointer.replace(&list, &other), "does not begin as a list"),
        (
            pointer.replace("200000", "200001"),
            "covers 200000 bytes where 200001 belong",
        ),
    ] {
        let id = String::from_utf8(git::with_input(
            dir,
            &["hash-object", "-w", "--stdin"],
            text.as_bytes(),
        ))
        .unwrap();
        git_ok(
            dir,
            &[
                "update-index",
                "--cacheinfo",
                &format!("100644,{},a.bin", id.trim()),
            ],
        );
        let output = chunk_run(dir, &["fsck"]);
        assert_eq!(output.status.code(), Some(13));
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(told.contains(message), "{told}");
        // The walk carries such a history nevertheless, and others are restored.
        fs::remove_file(dir.join("b.bin")).unwrap();
        chunk(dir, &["restore", "b.bin"]);
        fs::remove_file(dir.join("a.bin")).unwrap();
        let output = chunk_run(dir, &["restore", "a.bin"]);
        assert_eq!(output.status.code(), Some(3));
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains("'a.bin' stays a pointer"), "{told}");
        fs::write(dir.join("a.bin"), noise(1, 200_000)).unwrap();
        chunk(dir, &["-q", "add", "a.bin"]);
        clean(dir);
    }
}
