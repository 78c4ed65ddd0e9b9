//! Stores damaged in each way: what `recover` says, what it refuses, and that everybody can go on afterwards.

use std::path::{Path, PathBuf};

use data_encoding::BASE64;
use ingot_helper::protocol::ContentId;
use ingot_testdata::checker::check_store;
use ingot_testdata::repo::{Format, Repo};
use serde_json::Value;

use super::client::copy;
use super::world::{Said, World, commit, text};

/// What whoever keeps the storage does to it.
type Damage<'a> = &'a dyn Fn(&Scene);

struct Scene {
    world: World,
    source: Repo,
    /// A clone that has seen the first push.
    behind: PathBuf,
    /// Manifests by generation.
    ids: Vec<String>,
    is_carrier: bool,
}

impl Scene {
    /// Generation 0, and three pushes. The source has seen all of them.
    fn new(is_carrier: bool) -> Scene {
        let world = match is_carrier {
            true => World::carrier(Format::Sha1),
            false => World::new(),
        };
        let source = world.source("vault", Format::Sha1);
        world.e2ee(source.path(), &["push", "vault", "main"]).good();
        let behind = world.clone("behind", &[]);
        let mut scene = Scene {
            world,
            source,
            behind,
            ids: Vec::new(),
            is_carrier,
        };
        scene.push("two");
        scene.push("three");
        let log = scene
            .world
            .e2ee(scene.source.path(), &["log", "--json", "vault"])
            .good();
        let log: Value = serde_json::from_str(&log).unwrap();
        let mut ids: Vec<String> = log["generations"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["manifest"].as_str().unwrap().to_owned())
            .collect();
        ids.reverse();
        scene.ids = ids;
        scene
    }

    fn push(&self, message: &str) {
        commit(&self.world, self.source.path(), message);
        self.world
            .e2ee(self.source.path(), &["push", "vault", "main"])
            .good();
    }

    /// Changes the files of the store as whoever keeps it can.
    #[track_caller]
    fn tamper(&self, change: impl FnOnce(&Path)) {
        if !self.is_carrier {
            return change(&self.world.store);
        }
        let room = tempfile::tempdir_in(self.world.root()).unwrap();
        let shell = |line: &str| self.world.shell(room.path(), line).good();
        shell(&format!(
            "git clone -q --no-hardlinks -b git-remote-e2ee {} room",
            text(&self.world.store)
        ));
        change(&room.path().join("room/e2ee"));
        shell(
            "cd room && git add -A && git commit -q --allow-empty -m storage && git push -q origin HEAD:git-remote-e2ee",
        );
    }

    fn set_head(&self, head: &str) {
        self.tamper(|root| std::fs::write(root.join("HEAD"), head).unwrap());
    }

    fn recover(&self, clone: &Path, more: &[&str]) -> (Option<i32>, Value) {
        let mut args = vec!["recover", "--json"];
        args.extend_from_slice(more);
        let said = self.world.e2ee(clone, &args);
        let report = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{}", said.err));
        (said.code, report)
    }

    /// The store is as good as new: for the checker, for a verification, for a new clone, and for both old ones.
    #[track_caller]
    fn is_well(&self, clones: &[&Path]) {
        let world = &self.world;
        // The damage was not done by a writer of the format, and may still lie around in a folder.
        let options: &[&str] = if self.is_carrier {
            &["--shared-carrier"]
        } else {
            &[]
        };
        if !self.is_carrier {
            remove_junk(&world.store.join("manifests"));
        }
        check_store(&world.store, &world.key, options).unwrap_or_else(|reason| panic!("{reason}"));
        for clone in clones {
            world.e2ee(clone, &["verify", "--full"]).good();
            world.e2ee(clone, &["fetch"]).good();
            world.git(clone, &["fetch"]).good();
        }
        let fresh = tempfile::tempdir_in(world.root()).unwrap();
        let clone = world.clone(text(&fresh.path().join("clone")), &[]);
        world.git(&clone, &["fsck", "--strict"]).good();
        commit(world, &clone, "goes on");
        world.git(&clone, &["push", "-q", "origin", "main"]).good();
        for clone in clones {
            world.e2ee(clone, &["fetch"]).good();
        }
    }
}

/// The file with the (first part of a) thing.
fn file(root: &Path, kind: &str, id: &str) -> PathBuf {
    let path = root.join(kind).join(&id[..2]).join(id);
    if path.is_dir() {
        path.join("00000000")
    } else {
        path
    }
}

/// Removes manifests that are not what their names say.
fn remove_junk(manifests: &Path) {
    for shelf in std::fs::read_dir(manifests).unwrap() {
        for entry in std::fs::read_dir(shelf.unwrap().path()).unwrap() {
            let path = entry.unwrap().path();
            let id = ContentId::of(&std::fs::read(&path).unwrap()).to_hex();
            if path.file_name().unwrap() != id.as_str() {
                std::fs::remove_file(path).unwrap();
            }
        }
    }
}

fn flip(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

/// A manifest of a version that does not exist yet, by its id.
fn future(root: &Path, like: &str) -> String {
    let bytes = std::fs::read(file(root, "manifests", like)).unwrap();
    let mut outer: Value = serde_json::from_slice(&bytes).unwrap();
    let header = BASE64
        .decode(outer["header"].as_str().unwrap().as_bytes())
        .unwrap();
    let mut header: Value = serde_json::from_slice(&header).unwrap();
    header["format_version"] = 6.into();
    outer["header"] = BASE64.encode(header.to_string().as_bytes()).into();
    put(
        root,
        outer.to_string().as_bytes(),
        root.join("manifests").join(&like[..2]).join(like).is_dir(),
    )
}

fn put(root: &Path, manifest: &[u8], in_parts: bool) -> String {
    let id = ContentId::of(manifest).to_hex();
    let mut path = root.join("manifests").join(&id[..2]).join(&id);
    if in_parts {
        std::fs::create_dir_all(&path).unwrap();
        path.push("00000000");
    }
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, manifest).unwrap();
    id
}

const ACCEPT: [&str; 2] = ["--publish", "--accept-stale-floor"];

/// Heads that no client will ever accept are replaced, and only those.
#[test]
fn each_kind_of_damage_has_its_class_and_its_way_out() {
    for is_carrier in [false, true] {
        let invalid: [(&str, Damage<'_>); 4] = [
            ("garbage", &|scene| scene.set_head("no head\n")),
            ("empty", &|scene| scene.set_head("")),
            ("flipped manifest", &|scene| {
                scene.push("four");
                scene.tamper(|root| {
                    let head = std::fs::read_to_string(root.join("HEAD")).unwrap();
                    flip(&file(root, "manifests", head.trim()));
                });
            }),
            ("unknown fields", &|scene| {
                scene.tamper(|root| {
                    let id = put(root, b"{\"header\":\"\"}", scene.is_carrier);
                    std::fs::write(root.join("HEAD"), id).unwrap();
                });
            }),
        ];
        for (name, damage) in invalid {
            let scene = Scene::new(is_carrier);
            let behind: &Path = &scene.behind;
            scene.world.e2ee(behind, &["fetch"]).good();
            damage(&scene);
            // Other commands refuse, and say where to go.
            let said = scene.world.e2ee(behind, &["fetch"]).bad(&["git-e2ee recover"]);
            assert_eq!(said.code, Some(13), "{name}: {}", said.err);
            let (code, report) = scene.recover(behind, &[]);
            assert_eq!(
                (code, &report["class"]),
                (Some(13), &"invalid".into()),
                "{name}: {report}"
            );
            assert_eq!(report["published"], Value::Null);
            // The carrier's older commit has the manifest as it was.
            let is_restored = is_carrier && name == "flipped manifest";
            let last = report["candidates"].as_array().unwrap().last().unwrap().clone();
            assert_eq!(report["default_base"], last["manifest"]);
            assert_eq!(
                last["generation"],
                if is_restored { 4 } else { 3 },
                "{name}: {report}"
            );
            assert_eq!(
                last["manifest"] == scene.ids[3].as_str(),
                !is_restored,
                "{name}: {report}"
            );
            let rejected = behind.join(".git/git-remote-e2ee/origin/rejected-heads.json");
            let rejected: Value = serde_json::from_slice(&std::fs::read(rejected).unwrap()).unwrap();
            assert_eq!(rejected["entries"].as_array().unwrap().len(), 1, "{name}");
            if !is_carrier {
                let (code, report) = scene.recover(behind, &["--publish"]);
                assert_eq!(code, Some(13));
                assert!(
                    report["refused"]
                        .as_str()
                        .unwrap()
                        .contains("--accept-stale-floor"),
                    "{report}"
                );
            }
            let more: &[&str] = if is_carrier { &["--publish"] } else { &ACCEPT };
            let (code, report) = scene.recover(behind, more);
            assert_eq!(
                (code, &report["refused"]),
                (Some(0), &Value::Null),
                "{name}: {report}"
            );
            assert_eq!(
                report["published"]["generation"],
                if is_restored { 5 } else { 4 },
                "{name}: {report}"
            );
            let (code, report) = scene.recover(behind, &ACCEPT);
            assert_eq!(
                (code, &report["class"]),
                (Some(0), &"valid".into()),
                "{name}: {report}"
            );
            if name == "flipped manifest" && !is_restored {
                scene.is_well(&[behind]);
                // Who saw what was lost is told.
                let said = scene
                    .world
                    .e2ee(scene.source.path(), &["fetch", "vault"])
                    .bad(&["forked"]);
                assert_eq!(said.code, Some(13));
            } else {
                scene.is_well(&[behind, scene.source.path()]);
            }
        }
    }
}

#[test]
fn what_may_come_back_or_is_genuine_is_left_alone() {
    for is_carrier in [false, true] {
        let cases: [(&str, &str, i32, Damage<'_>); 7] = [
            ("HEAD lost", "unavailable", 10, &|scene| {
                scene.tamper(|root| std::fs::remove_file(root.join("HEAD")).unwrap());
            }),
            ("manifest lost", "unavailable", 10, &|scene| {
                scene.tamper(|root| std::fs::remove_file(file(root, "manifests", &scene.ids[3])).unwrap());
            }),
            ("older manifest lost", "unavailable", 10, &|scene| {
                scene.tamper(|root| std::fs::remove_file(file(root, "manifests", &scene.ids[1])).unwrap());
            }),
            ("packs lost", "unavailable", 10, &|scene| {
                scene.tamper(|root| std::fs::remove_dir_all(root.join("objects")).unwrap());
            }),
            ("rolled back", "discontinuous", 13, &|scene| {
                scene.set_head(&scene.ids[2])
            }),
            ("future", "unsupported", 1, &|scene| {
                scene.tamper(|root| {
                    let id = future(root, &scene.ids[3]);
                    std::fs::write(root.join("HEAD"), id).unwrap();
                });
            }),
            ("another repository", "discontinuous", 13, &|scene| {
                let other = Scene::new(scene.is_carrier);
                let head = other.ids[3].clone();
                let room = tempfile::tempdir().unwrap();
                other.tamper(|root| copy(&root.join("manifests"), room.path()));
                scene.tamper(|root| {
                    copy(room.path(), &root.join("manifests"));
                    std::fs::write(root.join("HEAD"), head).unwrap();
                });
            }),
        ];
        for (name, class, wanted, damage) in cases {
            let scene = Scene::new(is_carrier);
            damage(&scene);
            let before = super::client::listing(&scene.world.store);
            for more in [&[][..], &["--publish"], &ACCEPT] {
                let (code, report) = scene.recover(scene.source.path(), more);
                assert_eq!(
                    (code, &report["class"]),
                    (Some(wanted), &class.into()),
                    "{name}: {report}"
                );
                assert!(
                    report["refused"].is_string() && report["published"].is_null(),
                    "{name}: {report}"
                );
            }
            assert_eq!(super::client::listing(&scene.world.store), before, "{name}");
        }
    }
}

/// A carrier remembers: generations that this clone has not seen, what was put up again, and what was lost from the tip.
#[test]
fn a_carrier_is_searched_along_its_history() {
    let scene = Scene::new(true);
    let world = &scene.world;
    scene.set_head(&scene.ids[0]);
    scene.set_head(&format!("{}\n", scene.ids[2]));
    // Everything but one pack goes from the tip, and the head with it.
    scene.tamper(|root| {
        std::fs::remove_dir_all(root.join("manifests")).unwrap();
        std::fs::write(root.join("HEAD"), "?").unwrap();
        let mut packs = Vec::new();
        for shelf in std::fs::read_dir(root.join("objects")).unwrap() {
            packs.push(shelf.unwrap().path());
        }
        packs.sort();
        for shelf in &packs[1..] {
            std::fs::remove_dir_all(shelf).unwrap();
        }
        std::fs::write(root.join("foreign.txt"), "x").unwrap();
    });
    let behind: &Path = &scene.behind;
    let (_, report) = scene.recover(behind, &[]);
    let listed: Vec<&str> = report["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["manifest"].as_str().unwrap())
        .collect();
    assert_eq!(listed, scene.ids[1..], "{report}");
    assert_eq!(report["replays"], serde_json::json!([scene.ids[0]]), "{report}");
    assert_eq!(report["floor"]["generation"], 1);
    let base = ["--publish", "--base", &scene.ids[2]];
    let (code, report) = scene.recover(behind, &base);
    assert_eq!(code, Some(13));
    assert!(
        report["refused"].as_str().unwrap().contains("--discard-newer"),
        "{report}"
    );
    let strange = "ab".repeat(32);
    let (_, report) = scene.recover(behind, &["--publish", "--base", &strange]);
    assert!(
        report["refused"].as_str().unwrap().contains("no candidate"),
        "{report}"
    );

    // The text says the same.
    let said: Said = world.e2ee(behind, &["recover"]);
    for line in [
        "storage head: invalid (",
        "continuity floor: ",
        "candidate: ",
        "replay: ",
        "default base: ",
    ] {
        assert!(
            said.out.lines().any(|one| one.starts_with(line)),
            "{line}\n{}",
            said.out
        );
    }
    let all = [&base[..], &["--discard-newer"]].concat();
    let (code, report) = scene.recover(behind, &all);
    assert_eq!(
        (code, &report["published"]["generation"]),
        (Some(0), &3.into()),
        "{report}"
    );
    // What is not needed has left the tree.
    let tree = world
        .git(&world.store, &["ls-tree", "-r", "--name-only", "git-remote-e2ee"])
        .good();
    assert!(
        !tree.contains(&scene.ids[3]) && !tree.contains("foreign"),
        "{tree}"
    );
    let said = world
        .e2ee(scene.source.path(), &["fetch", "vault"])
        .bad(&["forked"]);
    assert_eq!(said.code, Some(13));
    scene.is_well(&[behind]);
}

/// Two genuine histories after the floor: no program decides between them.
#[test]
fn forks_are_never_recovered() {
    let scene = Scene::new(true);
    let world = &scene.world;
    let fork = world.path("fork.git");
    copy(&world.store, &fork);
    scene.push("four");
    let url = format!("e2ee::git+{}", fork.display());
    let clone = world.path("forked");
    world
        .git_with_key(world.root(), &["clone", "-q", &url, text(&clone)])
        .good();
    commit(world, &clone, "another four");
    world.git(&clone, &["push", "-q", "origin", "main"]).good();
    // Whoever keeps the carrier shows the other generation for a while, and then breaks the head.
    let room = tempfile::tempdir().unwrap();
    let line = format!("git clone -q -b git-remote-e2ee {} room", text(&fork));
    world.shell(room.path(), &line).good();
    scene.tamper(|root| {
        copy(&room.path().join("room/e2ee"), root);
    });
    let (code, report) = scene.recover(&scene.behind, &ACCEPT);
    assert_eq!(
        (code, &report["class"]),
        (Some(0), &"valid".into()),
        "nothing contradicts its floor: {report}"
    );
    let (code, report) = scene.recover(scene.source.path(), &ACCEPT);
    assert_eq!(
        (code, &report["class"]),
        (Some(13), &"discontinuous".into()),
        "{report}"
    );
    scene.set_head("?");
    for clone in [scene.behind.as_path(), scene.source.path()] {
        let (code, report) = scene.recover(clone, &ACCEPT);
        assert_eq!(
            (code, &report["class"]),
            (Some(13), &"invalid".into()),
            "{report}"
        );
        assert_eq!(report["conflicts"].as_array().unwrap().len(), 1, "{report}");
        assert!(report["refused"].as_str().unwrap().contains("forks"), "{report}");
    }
}

/// Without a memory there is nothing to hold on to, and a pack that is damaged below the floor is found before anything is
/// published.
#[test]
fn what_cannot_be_recovered_is_said() {
    let scene = Scene::new(false);
    let world = &scene.world;
    scene.set_head("?");
    let stranger = world.path("stranger");
    world.git(world.root(), &["init", "-q", text(&stranger)]).good();
    world.add_remote(&stranger, "origin", &world.url());
    let (code, report) = scene.recover(&stranger, &ACCEPT);
    assert_eq!((code, &report["floor"]), (Some(13), &Value::Null), "{report}");
    assert!(
        report["refused"]
            .as_str()
            .unwrap()
            .contains("nothing is remembered"),
        "{report}"
    );

    // A clone without the other's memory, by the folder alone and by a remote's name.
    let by = ["--storage", text(&world.store), "--key", text(&world.key)];
    let (_, report) = scene.recover(&scene.behind, &by);
    assert_eq!(report["floor"]["generation"], 1, "{report}");
    let (_, report) = scene.recover(&scene.behind, &[&by[..], &["--remote-name", "origin"]].concat());
    assert_eq!(report["floor"]["generation"], 1, "{report}");
    world
        .e2ee(
            &scene.behind,
            &["recover", "--remote-name", "nobody", by[0], by[1], by[2], by[3]],
        )
        .bad(&["nobody"]);

    let shelf = std::fs::read_dir(world.store.join("objects")).unwrap();
    for shelf in shelf {
        for pack in std::fs::read_dir(shelf.unwrap().path()).unwrap() {
            flip(&pack.unwrap().path());
        }
    }
    let head = std::fs::read(world.store.join("HEAD")).unwrap();
    let (code, report) = scene.recover(scene.source.path(), &ACCEPT);
    assert_eq!(code, Some(13));
    assert!(report["refused"].as_str().unwrap().contains("pack"), "{report}");
    assert_eq!(std::fs::read(world.store.join("HEAD")).unwrap(), head);
    let said = world.e2ee(scene.source.path(), &["recover", "--base", "x", "--publish"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
}
