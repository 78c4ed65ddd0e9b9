//! The store and the client states that the existing implementation wrote: read exactly, and continued.

#![allow(clippy::unwrap_used)]

#[path = "support/client.rs"]
mod client;
#[path = "support/world.rs"]
mod world;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ingot_helper::remote::Kind;
use ingot_testdata::checker::check_store;
use ingot_testdata::golden;
use ingot_testdata::repo::{Format, Repo};
use serde_json::Value;

use client::{Client, copy, copy_key, listing};
use world::{Bare, commit, sound, text};

/// A copy of the golden store and its keys.
struct Golden {
    bare: Bare,
    expected: Value,
}

impl Golden {
    fn new() -> Golden {
        let bare = Bare::new();
        copy(&golden("e2ee-v5/dir-store"), &bare.path("store"));
        for name in ["owner", "second"] {
            let from = golden("e2ee-v5/dir-store-keys").join(format!("{name}.key.json"));
            copy_key(&from, &bare.path(&format!("{name}.key.json")));
        }
        let expected = std::fs::read(golden("e2ee-v5/dir-store.expected.json")).unwrap();
        Golden {
            bare,
            expected: serde_json::from_slice(&expected).unwrap(),
        }
    }

    fn store(&self) -> PathBuf {
        self.bare.path("store")
    }

    fn key(&self, name: &str) -> PathBuf {
        self.bare.path(&format!("{name}.key.json"))
    }

    /// Makes the store what it was at an earlier generation, or is now.
    fn rewind(&self, generation: usize) {
        let id = self.expected["generations"][generation]["manifest_id"]
            .as_str()
            .unwrap();
        std::fs::write(self.store().join("HEAD"), format!("{id}\n")).unwrap();
    }

    fn url(&self) -> String {
        format!("e2ee::{}", self.store().display())
    }

    /// Clones with Git.
    #[track_caller]
    fn clone(&self, key: &str, name: &str) -> PathBuf {
        let path = self.bare.path(name);
        let key = format!("e2ee.key={}", self.key(key).display());
        let args = ["-c", &key, "clone", "-q", &self.url(), text(&path)];
        self.bare.git(self.bare.root(), &args).good();
        path
    }

    /// Requires that a clone holds the refs of a generation from 8 on, and that they reach exactly what they should.
    #[track_caller]
    fn exact(&self, clone: &Path) {
        let bare = &self.bare;
        let format = "%(refname) %(objectname)";
        let args = [
            "for-each-ref",
            "--format",
            format,
            "refs/remotes/origin/",
            "refs/tags/",
        ];
        let seen: BTreeSet<String> = bare.git(clone, &args).good().lines().map(str::to_owned).collect();
        let mut refs: BTreeSet<String> = self.expected["refs"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, id)| {
                let name = name.replace("refs/heads/", "refs/remotes/origin/");
                format!("{name} {}", id.as_str().unwrap())
            })
            .collect();
        let main = self.expected["refs"]["refs/heads/main"].as_str().unwrap();
        refs.insert(format!("refs/remotes/origin/HEAD {main}"));
        assert_eq!(seen, refs);

        let objects = self.expected["inner_objects"].as_array().unwrap();
        let objects: Vec<&str> = objects.iter().map(|id| id.as_str().unwrap()).collect();
        assert_eq!(ingot_testdata::git::objects(clone, &["--all"]), objects);

        let seen = bare
            .git(clone, &["-c", "core.quotePath=false", "ls-tree", "-r", "HEAD"])
            .good();
        let tree = self.expected["main_tree"].as_array().unwrap();
        let tree: Vec<&str> = tree.iter().map(|line| line.as_str().unwrap()).collect();
        assert_eq!(seen.lines().collect::<Vec<_>>(), tree);
        assert_eq!(bare.git(clone, &["status", "--porcelain"]).good(), "");
        assert_eq!(
            bare.git(clone, &["symbolic-ref", "HEAD"]).good(),
            self.expected["default_branch"].as_str().unwrap()
        );
        sound(bare, clone);
    }

    fn e2ee_clone(&self, key: &str, name: &str) -> world::Said {
        let args = ["clone", "--key", text(&self.key(key)), &self.url(), name].map(str::to_owned);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        self.bare.e2ee(self.bare.root(), &args)
    }
}

#[test]
fn the_owner_clones_exactly_what_was_stored() {
    let golden = Golden::new();
    golden.exact(&golden.clone("owner", "with-git"));
    golden.e2ee_clone("owner", "without-git").good();
    golden.exact(&golden.bare.path("without-git"));
}

#[test]
fn the_second_device_clones_what_it_could_read_and_is_then_refused() {
    let golden = Golden::new();
    let refused = golden.e2ee_clone("second", "refused");
    assert_eq!(refused.code, Some(12), "{}", refused.err);
    assert_eq!(refused.err.lines().count(), 1, "{}", refused.err);
    assert!(refused.err.contains("reader"), "{}", refused.err);
    assert!(!golden.bare.path("refused").exists());

    golden.rewind(8);
    golden.exact(&golden.clone("second", "with-git"));
    golden.e2ee_clone("second", "without-git").good();
    let clone = golden.bare.path("without-git");
    golden.exact(&clone);

    // The clone is there when access ends.
    golden.rewind(9);
    let before = listing(&clone);
    let said = golden.bare.e2ee(&clone, &["fetch"]);
    assert_eq!(said.code, Some(12), "{}", said.err);
    golden.bare.git(&clone, &["pull"]).bad(&["reader"]);
    commit(&golden.bare, &clone, "too late");
    golden
        .bare
        .git(&clone, &["push", "origin", "main"])
        .bad(&["reader"]);
    golden
        .bare
        .git(&clone, &["reset", "-q", "--hard", "HEAD~1"])
        .good();
    let after = listing(&clone);
    for (path, content) in &before {
        let moved = ["logs", "index", "ORIG_HEAD", "FETCH_HEAD"];
        if !moved.iter().any(|name| path.to_string_lossy().contains(name)) {
            assert_eq!(after.get(path), Some(content), "{}", path.display());
        }
    }
}

#[test]
fn every_generation_is_read_as_it_was() {
    let golden = Golden::new();
    for (generation, expected) in golden.expected["generations"]
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
    {
        golden.rewind(generation);
        let repo = Repo::empty(Format::Sha1);
        let owner = Client::new(repo.path(), &golden.store(), &golden.key("owner"));
        let view = owner.list().unwrap();
        let refs: serde_json::Map<String, Value> = view
            .refs()
            .iter()
            .map(|(name, id)| (name.clone(), Value::from(id.to_string())))
            .collect();
        assert_eq!(Value::from(refs), expected["refs"], "generation {generation}");
        assert_eq!(view.generation(), generation as u64);
        let fetched = owner.fetch().unwrap();
        assert_eq!(
            fetched.view.chain().pack_count(),
            expected["pack_count"].as_u64().unwrap()
        );
        for id in view.refs().values() {
            repo.git(&["rev-list", "--objects", &id.to_string()]);
        }
        // Who was no reader then cannot list, and leaves no trace.
        let stranger = Repo::empty(Format::Sha1);
        let second = Client::new(stranger.path(), &golden.store(), &golden.key("second"));
        let before = listing(&stranger.git_dir());
        match second.list() {
            Ok(_) => assert!((6..=8).contains(&generation)),
            Err(error) => {
                assert!(!(6..=8).contains(&generation), "generation {generation}: {error}");
                assert_eq!(error.kind(), Kind::Key, "{error}");
                assert_eq!(listing(&stranger.git_dir()), before);
            }
        }
    }
}

/// The members of a state in the order in which they are written, and the state.
fn state(path: &Path) -> (Vec<String>, Value) {
    let text = std::fs::read_to_string(path).unwrap();
    let names = text
        .lines()
        .filter_map(|line| {
            line.strip_prefix("  \"")?
                .split_once('"')
                .map(|(name, _)| name.to_owned())
        })
        .filter(|name| !name.starts_with("refs/"))
        .collect();
    (names, serde_json::from_str(&text).unwrap())
}

#[test]
fn clones_of_the_existing_implementation_go_on_working() {
    for sample in ["fresh-clone", "owner-source"] {
        let golden = Golden::new();
        let bare = &golden.bare;
        let clone = golden.clone("owner", "clone");
        let folder = clone.join(".git/git-remote-e2ee/origin");
        std::fs::remove_dir_all(&folder).unwrap();
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("state.json");
        let from =
            ingot_testdata::golden("e2ee-v5/dir-store-keys").join(format!("client-state.{sample}.json"));
        std::fs::copy(from, &path).unwrap();
        let (names, before) = state(&path);
        assert_eq!(names.first().map(String::as_str), Some("format_version"));

        bare.git(&clone, &["fetch", "-q"]).good();
        assert_eq!(state(&path), (names.clone(), before.clone()), "nothing was new");

        let mine = commit(bare, &clone, "continued");
        bare.git(&clone, &["push", "-q"]).good();
        let (pushed_names, pushed) = state(&path);
        assert_eq!(pushed_names, names);
        assert_eq!(pushed["generation"], 10);
        assert_eq!(pushed["imported_generation"], 10);
        assert_eq!(pushed["verified_refs"]["refs/heads/main"], mine.as_str());
        assert_eq!(pushed["packs"], before["packs"], "own packs were not imported");

        // Somebody else goes on, and the first clone follows.
        let other = golden.clone("owner", "other");
        let theirs = commit(bare, &other, "by another");
        bare.git(&other, &["push", "-q"]).good();
        bare.git(&clone, &["pull", "-q", "--ff-only"]).good();
        assert_eq!(bare.git(&clone, &["rev-parse", "HEAD"]).good(), theirs);
        let (pulled_names, pulled) = state(&path);
        assert_eq!(pulled_names, names);
        assert_eq!(pulled["generation"], 11);
        sound(bare, &clone);

        // The pin still pins.
        golden.rewind(9);
        bare.git(&clone, &["fetch"]).bad(&["rolled back"]);
    }
}

#[test]
fn the_store_is_continued_in_its_own_format() {
    let golden = Golden::new();
    let bare = &golden.bare;
    let clone = golden.clone("owner", "clone");
    commit(bare, &clone, "one");
    bare.git(&clone, &["push", "-q"]).good();
    commit(bare, &clone, "two");
    bare.git(&clone, &["tag", "-a", "-m", "two", "v2.0"]).good();
    bare.git(
        &clone,
        &["push", "-q", "--follow-tags", "origin", "main", "main:topic"],
    )
    .good();
    bare.git(&clone, &["push", "-q", "origin", ":refs/tags/light"])
        .good();
    let summary = check_store(&golden.store(), &golden.key("owner"), &["--clean"]).unwrap();
    let summary: Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["generation"], 12);
    bare.e2ee(&clone, &["verify", "--full", "origin"]).good();
    let again = golden.clone("owner", "again");
    assert_eq!(
        bare.git(&again, &["rev-parse", "HEAD", "v2.0", "origin/topic"])
            .good(),
        bare.git(&clone, &["rev-parse", "HEAD", "v2.0", "HEAD"]).good()
    );
    sound(bare, &again);
}
