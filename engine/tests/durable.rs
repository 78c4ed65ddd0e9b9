//! Durable writes: what every power cut and every failing call leaves behind.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ingot_engine::durable::testing::{Crash, Fault, Faulty, Recording};
use ingot_engine::durable::{Error, Fs, Lock, Published, StagedFile, create_dirs, real, write_atomic};
use tempfile::TempDir;

const OLD: &[u8] = b"the old content";
const NEW: &[u8] = b"what replaces it, and longer";

fn names(root: &Path) -> BTreeSet<String> {
    std::fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

/// Old or new at `name`, and new once the write was reported.
fn sound(crash: &Crash, name: &str, old: Option<&[u8]>) -> bool {
    let found = std::fs::read(crash.root().join(name)).ok();
    found.as_deref() == Some(NEW) || (found.as_deref() == old && !crash.reached("done"))
}

fn recorded(old: Option<&[u8]>, work: impl FnOnce(Arc<dyn Fs>, &Path)) -> (TempDir, Arc<Recording>) {
    let temp = TempDir::new().unwrap();
    if let Some(old) = old {
        std::fs::write(temp.path().join("file"), old).unwrap();
    }
    let fs = Arc::new(Recording::new(temp.path()).unwrap());
    work(Arc::clone(&fs) as Arc<dyn Fs>, temp.path());
    fs.mark("done");
    (temp, fs)
}

/// Runs `work` sound under every crash, and shows that the same without either kind of sync is not.
fn holds(name: &str, old: Option<&[u8]>, work: impl FnOnce(Arc<dyn Fs>, &Path)) {
    let (_temp, fs) = recorded(old, work);
    let states = fs.each_crash(|crash| assert!(sound(crash, name, old), "{crash}"));
    assert!(states > 5, "only {states} states");
    for (files, folders) in [(true, false), (false, true)] {
        let mut broken = 0;
        fs.each_crash_without_syncs(files, folders, |crash| {
            broken += usize::from(!sound(crash, name, old))
        });
        assert!(broken > 0, "nobody notices: files {files}, folders {folders}");
    }
}

#[test]
fn a_replaced_file_is_old_or_new() {
    for old in [None, Some(OLD)] {
        holds("file", old, |fs, root| {
            write_atomic(&*fs, &root.join("file"), NEW, 0o600).unwrap();
        });
    }
}

#[test]
fn a_staged_file_is_absent_or_whole() {
    holds("file", None, |fs, root| {
        let mut staged = StagedFile::create(fs, root, "stage-", 0o644).unwrap();
        for part in NEW.chunks(7) {
            staged.write_all(part).unwrap();
        }
        assert_eq!(staged.written(), NEW.len() as u64);
        assert_eq!(staged.publish_new(&root.join("file")).unwrap(), Published::New);
    });
    holds("file", Some(OLD), |fs, root| {
        let mut staged = StagedFile::create(fs, root, "stage-", 0o644).unwrap();
        staged.write_all(NEW).unwrap();
        staged.publish_replacing(&root.join("file")).unwrap();
    });
}

#[test]
fn a_locked_file_is_old_or_new() {
    holds("file", Some(OLD), |fs, root| {
        let mut lock = Lock::acquire(fs, &root.join("file"), 0o644, Duration::ZERO).unwrap();
        lock.write_all(NEW).unwrap();
        lock.commit().unwrap();
    });
}

#[test]
fn new_folders_survive_with_what_is_in_them() {
    holds("a/b/c/file", None, |fs, root| {
        create_dirs(&*fs, &root.join("a/b/c"), 0o777).unwrap();
        write_atomic(&*fs, &root.join("a/b/c/file"), NEW, 0o644).unwrap();
    });
}

#[test]
fn folders_that_exist_cost_nothing() {
    let (_temp, fs) = recorded(None, |fs, root| {
        create_dirs(&*fs, &root.join("a/b"), 0o777).unwrap();
    });
    let before = fs.calls();
    assert_eq!(before.folder_syncs, 3, "a/b, a and the root");
    create_dirs(&*fs, &_temp.path().join("a/b"), 0o777).unwrap();
    assert_eq!(fs.calls(), before);
    std::os::unix::fs::symlink("a", _temp.path().join("link")).unwrap();
    create_dirs(&ingot_engine::durable::Real, &_temp.path().join("link"), 0o777).unwrap();
    create_dirs(
        &ingot_engine::durable::Real,
        &_temp.path().join("link/x/y"),
        0o777,
    )
    .unwrap();
    assert!(_temp.path().join("a/x/y").is_dir());
    std::fs::write(_temp.path().join("file"), "").unwrap();
    let error = create_dirs(&ingot_engine::durable::Real, &_temp.path().join("file"), 0o777).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotADirectory);
    assert!(create_dirs(&ingot_engine::durable::Real, &_temp.path().join("file/x"), 0o777).is_err());
}

#[test]
fn what_is_already_there_stays_and_is_synced() {
    let (temp, fs) = recorded(Some(OLD), |fs, root| {
        let mut staged = StagedFile::create(fs, root, "stage-", 0o644).unwrap();
        staged.write_all(NEW).unwrap();
        assert_eq!(
            staged.publish_new(&root.join("file")).unwrap(),
            Published::AlreadyThere
        );
    });
    assert_eq!(std::fs::read(temp.path().join("file")).unwrap(), OLD);
    assert_eq!(names(temp.path()), BTreeSet::from(["file".to_owned()]));
    assert_eq!(fs.calls().folder_syncs, 1);
}

#[test]
fn what_is_dropped_disappears() {
    let (temp, _) = recorded(None, |fs, root| {
        let mut staged = StagedFile::create(Arc::clone(&fs), root, "stage-", 0o644).unwrap();
        staged.write_all(NEW).unwrap();
        drop(staged);
        drop(Lock::acquire(fs, &root.join("file"), 0o644, Duration::ZERO).unwrap());
    });
    assert!(names(temp.path()).is_empty());
}

#[test]
fn a_lock_excludes_and_names_itself() {
    let temp = TempDir::new().unwrap();
    let target = temp.path().join("config");
    let held = Lock::acquire(real(), &target, 0o644, Duration::ZERO).unwrap();
    let error = Lock::acquire(real(), &target, 0o644, Duration::from_millis(5)).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
    assert!(error.path().ends_with("config.lock"));
    drop(held);
    Lock::acquire(real(), &target, 0o644, Duration::ZERO).unwrap();
}

fn every_failure(old: Option<&[u8]>, work: impl Fn(Arc<dyn Fs>, &Path) -> Result<(), Error>) {
    for fault in Fault::ALL {
        for stays in [false, true] {
            for at in 1.. {
                let temp = TempDir::new().unwrap();
                if let Some(old) = old {
                    std::fs::write(temp.path().join("file"), old).unwrap();
                }
                let fs = Arc::new(Faulty::new(real(), fault, at, stays));
                let result = work(Arc::clone(&fs) as Arc<dyn Fs>, temp.path());
                if !fs.failed() {
                    result.unwrap();
                    assert!(at > 3, "only {at} calls");
                    break;
                }
                let found = std::fs::read(temp.path().join("file")).ok();
                assert!(
                    found.as_deref() == old || found.as_deref() == Some(NEW),
                    "{fault:?} at {at}: {found:?}"
                );
                if result.is_ok() {
                    assert_eq!(found.as_deref(), Some(NEW), "{fault:?} at {at} was hidden");
                }
                if !stays && result.is_err() {
                    let left = names(temp.path());
                    assert!(
                        left.iter().all(|name| name == "file"),
                        "{fault:?} at {at} left {left:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn any_failing_call_leaves_old_or_new_and_no_litter() {
    every_failure(Some(OLD), |fs, root| {
        write_atomic(&*fs, &root.join("file"), NEW, 0o600)
    });
    every_failure(None, |fs, root| {
        let mut staged = StagedFile::create(fs, root, "stage-", 0o644)?;
        staged
            .write_all(NEW)
            .map_err(|error| Error::new("write", staged.path(), error))?;
        staged.publish_new(&root.join("file")).map(drop)
    });
    every_failure(Some(OLD), |fs, root| {
        let mut lock = Lock::acquire(fs, &root.join("file"), 0o644, Duration::ZERO)?;
        lock.write_all(NEW)
            .map_err(|error| Error::new("write", lock.path(), error))?;
        lock.commit()
    });
}

#[test]
fn errors_say_what_and_where() {
    let error = write_atomic(&*real(), Path::new("/nowhere/at/all"), b"", 0o600).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("cannot create /nowhere/at/.all.tmp-"), "{text}");
    assert!(text.contains("No such file"), "{text}");
}

#[test]
#[cfg(unix)]
fn modes_are_kept() {
    use std::os::unix::fs::PermissionsExt as _;
    let temp = TempDir::new().unwrap();
    let path = temp.path().join("key");
    std::fs::write(&path, OLD).unwrap();
    write_atomic(&*real(), &path, NEW, 0o600).unwrap();
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    create_dirs(&*real(), &temp.path().join("keys/deep"), 0o700).unwrap();
    assert_eq!(
        std::fs::metadata(temp.path().join("keys"))
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o700
    );
}
