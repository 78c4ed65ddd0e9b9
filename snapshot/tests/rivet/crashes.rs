//! A capture that is cut off at any write, and one whose disk fails.

use std::path::Path;
use std::sync::Arc;

use ingot_engine::durable::Fs;
use ingot_engine::durable::testing::{Fault, Faulty, Recording};
use ingot_engine::pack::inflate::Level;
use ingot_engine::progress::Silent;
use ingot_snapshot::archive::{Archive, Files};
use ingot_snapshot::capture::{Captured, Error, Options, Source, capture};
use ingot_snapshot::rooted::Root;
use ingot_snapshot::rules::Rules;
use ingot_snapshot::secrets::AllowList;
use ingot_snapshot::tracked::Tracked;
use ingot_snapshot::verify;

fn run(repository: &Path, home: &Path, fs: Arc<dyn Fs>) -> Result<Captured, Error> {
    let root = Root::open(home).unwrap();
    let tracked = Tracked::new(["."]).unwrap();
    let rules = Rules::new([]).unwrap();
    let source = Source {
        root: &root,
        tracked: &tracked,
        rules: &rules,
        allow: &AllowList::default(),
        max_file_size: u64::MAX,
        cross_mounts: false,
        skip_caches: true,
        own: Vec::new(),
    };
    let options = Options {
        rehash: false,
        store: true,
        list: false,
        message: None,
        packages: None,
        level: Level::BEST_SPEED,
        fs,
        progress: &Silent,
    };
    capture(&Files::of(repository), repository, "desk", &source, &options)
}

fn quick(root: &Path) -> Arc<dyn Fs> {
    Arc::new(Recording::new(root).unwrap())
}

/// Everything that the newest snapshot promises is there; its content.
fn newest(repository: &Path) -> Option<Vec<u8>> {
    let archive = Archive::open(repository, "desk").unwrap();
    let tip = archive.tip().unwrap()?;
    let mut reader = archive.reader().unwrap();
    let history = reader.history(tip).unwrap();
    let verified = verify::verify(&mut reader, &history, &Silent).unwrap().unwrap();
    assert_eq!(verified.faults, []);
    Some(reader.manifest(&tip).unwrap().encode())
}

#[test]
fn every_power_cut_leaves_the_old_snapshot_or_the_new_one() {
    let temp = tempfile::tempdir().unwrap();
    let (repository, home) = (temp.path().join("r.git"), temp.path().join("home"));
    std::fs::create_dir_all(home.join("sub")).unwrap();
    Archive::init(&repository, "desk", gix_hash::Kind::Sha1).unwrap();
    std::fs::write(home.join("a"), "one").unwrap();
    run(&repository, &home, quick(&repository)).unwrap();
    let old = newest(&repository);
    std::fs::write(home.join("a"), "two, which differs").unwrap();
    std::fs::write(home.join("sub/b"), "new").unwrap();
    let recording = Arc::new(Recording::new(&repository).unwrap());
    let done = run(&repository, &home, Arc::clone(&recording) as Arc<dyn Fs>).unwrap();
    recording.mark("reported");
    assert!(done.snapshot.is_some());
    let new = newest(&repository);
    assert_ne!(old, new);
    let calls = recording.calls();
    // Pack, index and reference, and the folders that they are in.
    assert!(calls.file_syncs <= 4 && calls.folder_syncs <= 4, "{calls:?}");
    let mut seen = (0, 0);
    let states = recording.each_crash(|crash| {
        let found = newest(crash.root());
        assert!(found == old || found == new, "{crash}");
        assert!(found == new || !crash.reached("reported"), "{crash}");
        match found == new {
            true => seen.1 += 1,
            false => seen.0 += 1,
        }
        // A lock that a dead process left is Git's to judge; everything else the next run repairs.
        if !crash.root().join("refs/heads/desk.lock").exists() {
            run(crash.root(), &home, quick(crash.root())).unwrap();
            assert_eq!(newest(crash.root()), new, "{crash}");
        }
    });
    assert!(states > 10 && seen.0 > 0 && seen.1 > 0, "{states} {seen:?}");
}

#[test]
fn every_failing_call_is_reported_and_the_next_run_repairs() {
    for fault in Fault::ALL {
        for at in 1.. {
            let temp = tempfile::tempdir().unwrap();
            let (repository, home) = (temp.path().join("r.git"), temp.path().join("home"));
            std::fs::create_dir(&home).unwrap();
            Archive::init(&repository, "desk", gix_hash::Kind::Sha1).unwrap();
            std::fs::write(home.join("a"), "one").unwrap();
            let faulty = Arc::new(Faulty::new(quick(&repository), fault, at, false));
            let result = run(&repository, &home, Arc::clone(&faulty) as Arc<dyn Fs>);
            let found = newest(&repository);
            if !faulty.failed() {
                result.unwrap();
                break;
            }
            if result.is_ok() {
                assert!(found.is_some(), "{fault:?} at {at}");
            }
            run(&repository, &home, quick(&repository)).unwrap();
            assert!(newest(&repository).is_some(), "{fault:?} at {at}");
            assert!(at < 100, "the loop ends");
        }
    }
}
