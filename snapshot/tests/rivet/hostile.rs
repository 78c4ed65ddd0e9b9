//! Restoring into a folder that somebody else writes to.

use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::home::Home;

fn captured() -> Home {
    let home = Home::new();
    for number in 0..40 {
        home.write(&format!("t/a/b/{number}"), format!("content {number}"));
    }
    home.write("outside/0", "untouched");
    home.rivet(&["snapshot"]).good();
    home
}

#[test]
fn links_planted_where_files_and_folders_go_are_not_followed() {
    let home = captured();
    std::fs::remove_dir_all(home.path("t/a/b")).unwrap();
    symlink(home.path("outside"), home.path("t/a/b")).unwrap();
    let said = home.rivet(&["restore"]).ends(1);
    assert!(said.contains("conflict t/a/b: is no folder here"), "{said}");
    assert_eq!(home.read("outside/0"), "untouched");
    assert_eq!(std::fs::read_dir(home.path("outside")).unwrap().count(), 1);

    // A link where a file goes is replaced itself.
    std::fs::remove_file(home.path("t/a/b")).unwrap();
    std::fs::create_dir(home.path("t/a/b")).unwrap();
    symlink(home.path("outside/0"), home.path("t/a/b/0")).unwrap();
    symlink(home.path("outside/new"), home.path("t/a/b/1")).unwrap();
    home.rivet(&["restore"]).good();
    assert_eq!(home.read("t/a/b/0"), "content 0");
    assert_eq!(home.read("outside/0"), "untouched");
    assert!(!home.path("outside/new").exists());
    assert!(
        !std::fs::symlink_metadata(home.path("t/a/b/0"))
            .unwrap()
            .is_symlink()
    );
    home.rivet(&["undo"]).good();
    assert!(
        std::fs::symlink_metadata(home.path("t/a/b/0"))
            .unwrap()
            .is_symlink()
    );
    assert_eq!(home.read("outside/0"), "untouched");
}

#[test]
fn links_planted_while_it_goes_on_are_not_followed() {
    let home = captured();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // The folder is there, then a link to the outside, and so on.
            let (folder, aside) = (home.path("t/a/b"), home.path("aside"));
            while !stop.load(Ordering::Relaxed) {
                if std::fs::rename(&folder, &aside).is_ok() {
                    let _ = symlink(home.path("outside"), &folder);
                    std::thread::yield_now();
                    let _ = std::fs::remove_file(&folder);
                    let _ = std::fs::rename(&aside, &folder);
                }
            }
        });
        for round in 0..25 {
            for number in 0..40 {
                let _ = std::fs::write(home.path(format!("t/a/b/{number}")), format!("round {round}"));
                let _ = std::fs::write(home.path(format!("aside/{number}")), format!("round {round}"));
            }
            // The writes above may go through the link themselves.
            for entry in std::fs::read_dir(home.path("outside")).unwrap() {
                std::fs::remove_file(entry.unwrap().path()).unwrap();
            }
            std::fs::write(home.path("outside/0"), "untouched").unwrap();
            let ran = home.rivet(&["restore"]);
            assert!([0, 1].contains(&ran.code), "{}{}", ran.out, ran.err);
            assert_eq!(home.read("outside/0"), "untouched", "round {round}");
            assert_eq!(
                std::fs::read_dir(home.path("outside")).unwrap().count(),
                1,
                "round {round}"
            );
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_capture_does_not_follow_links_that_are_planted_meanwhile() {
    let home = captured();
    home.write("outside/9", "must never be stored");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (folder, aside) = (home.path("t/a/b"), home.path("aside"));
            while !stop.load(Ordering::Relaxed) {
                if std::fs::rename(&folder, &aside).is_ok() {
                    let _ = symlink(home.path("outside"), &folder);
                    std::thread::yield_now();
                    let _ = std::fs::remove_file(&folder);
                    let _ = std::fs::rename(&aside, &folder);
                }
            }
        });
        for _ in 0..25 {
            let ran = home.rivet(&["snapshot", "--rehash"]);
            assert!([0, 3].contains(&ran.code), "{}{}", ran.out, ran.err);
        }
        stop.store(true, Ordering::Relaxed);
    });
    let all = home.git(&["rev-list", "--objects", "--all"]);
    for line in all.lines() {
        let id = line.split(' ').next().unwrap();
        if home.git(&["cat-file", "-t", id]) == "blob" {
            assert_ne!(
                home.git(&["cat-file", "-p", id]),
                "must never be stored",
                "{line}"
            );
        }
    }
    home.sound();
}

#[test]
fn names_that_differ_in_case_alone_are_kept_apart_or_told() {
    use ingot_snapshot::restore::plan::{Obstacle, Question, plan};
    let home = Home::new();
    home.write("t/Readme", "1");
    home.write("t/README", "2");
    home.write("t/readme/inside", "3");
    home.rivet(&["snapshot"]).good();
    let archive = ingot_snapshot::archive::Archive::open(&home.repository(), "desk").unwrap();
    let tip = archive.tip().unwrap().unwrap();
    let manifest = archive.reader().unwrap().manifest(&tip).unwrap();
    let target = tempfile::tempdir().unwrap();
    let root = ingot_snapshot::rooted::Root::open(target.path()).unwrap();
    let question = |ignores_case| Question {
        manifest: &manifest,
        paths: &[],
        saved: None,
        present: None,
        ignores_case,
    };
    let apart = plan(&question(Some(false)), Some(&root)).unwrap();
    assert!(apart.conflicts.is_empty());
    let told = plan(&question(Some(true)), Some(&root)).unwrap();
    let conflicts: Vec<_> = told
        .conflicts
        .iter()
        .map(|conflict| {
            (
                String::from_utf8_lossy(&conflict.path).into_owned(),
                conflict.obstacle,
            )
        })
        .collect();
    assert_eq!(
        conflicts,
        [
            ("t/Readme".to_owned(), Obstacle::SameName),
            ("t/readme".to_owned(), Obstacle::SameName)
        ]
    );
    // Found out by itself, which on the file systems of tests says no.
    let found = plan(&question(None), Some(&root)).unwrap();
    assert_eq!(std::fs::read_dir(target.path()).unwrap().count(), 0);
    assert!(found.conflicts.len() <= 2);
}
