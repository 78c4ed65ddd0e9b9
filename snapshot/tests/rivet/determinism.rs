//! The same files give the same snapshot, whatever the number of threads.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::home::Home;

/// Files and links by path, in folders of few names so that trees are deep.
fn trees() -> impl Strategy<Value = BTreeMap<String, Vec<u8>>> {
    let name = prop::sample::select(vec!["a", "b", "a-b", "a.b", "ab", "Z", "0", "%x", ".git", "ü"]);
    let path = prop::collection::vec(name, 1..4).prop_map(|names| names.join("/"));
    prop::collection::btree_map(path, prop::collection::vec(any::<u8>(), 0..300), 1..40)
}

fn lay_out(home: &Home, tree: &BTreeMap<String, Vec<u8>>) {
    for (path, bytes) in tree {
        let path = home.path("t").join(path);
        // Where a file has the name of a folder, the first one wins.
        if std::fs::create_dir_all(path.parent().unwrap()).is_ok() && !path.is_dir() {
            let _ = std::fs::write(&path, bytes);
            let beside = |what: &str| format!("{}{what}", path.display());
            match bytes.first().map(|first| first % 4) {
                Some(0) => drop(std::fs::hard_link(&path, beside("-hard"))),
                Some(1) => drop(std::fs::hard_link(&path, home.path("t").join("-first"))),
                Some(2) => drop(std::os::unix::fs::symlink("nowhere", beside("-soft"))),
                _ => {}
            }
        }
    }
    let mut open = vec![home.path("t")];
    let then = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_600_000_000);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_symlink() {
                let at = rustix::fs::Timespec {
                    tv_sec: 1_600_000_000,
                    tv_nsec: 0,
                };
                let times = rustix::fs::Timestamps {
                    last_access: at,
                    last_modification: at,
                };
                let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
                rustix::fs::utimensat(rustix::fs::CWD, &path, &times, flags).unwrap();
                continue;
            }
            if path.is_dir() {
                open.push(path.clone());
            }
            std::fs::File::open(&path).unwrap().set_modified(then).unwrap();
        }
        std::fs::File::open(&folder).unwrap().set_modified(then).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn the_tree_of_a_snapshot_depends_on_the_files_alone(tree in trees()) {
        let mut seen: Option<String> = None;
        for threads in ["1", "2", "7"] {
            let home = Home::new();
            lay_out(&home, &tree);
            for _ in 0..2 {
                let ran = home.command().env("RAYON_NUM_THREADS", threads).arg("snapshot").output().unwrap();
                prop_assert!(ran.status.success());
            }
            let found = home.git(&["rev-parse", "desk^{tree}"]);
            prop_assert_eq!(home.git(&["rev-list", "--count", "desk"]), "1");
            prop_assert_eq!(seen.get_or_insert(found.clone()), &found);
            home.sound();
        }
    }
}

#[test]
fn the_first_offender_is_the_same_for_any_number_of_threads() {
    let home = Home::new();
    for number in 0..400 {
        home.write(&format!("t/{number:03}"), format!("harmless {number}\n"));
    }
    let key = crate::secrets::private_key();
    for number in [399, 17, 250, 18] {
        home.write(&format!("t/{number:03}"), &key);
    }
    let mut seen = None;
    for threads in ["1", "2", "5"] {
        let run = home
            .command()
            .env("RAYON_NUM_THREADS", threads)
            .args(["snapshot", "--json"])
            .output()
            .unwrap();
        assert_eq!(run.status.code(), Some(14));
        let json: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
        assert_eq!(json["offenders"][0]["path"], "t/017");
        assert_eq!(json["offenders"].as_array().unwrap().len(), 4);
        assert_eq!(seen.get_or_insert(run.stdout.clone()), &run.stdout);
    }
}
