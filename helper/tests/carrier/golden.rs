//! The carrier that the existing implementation wrote: read exactly, and continued.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ingot_helper::remote::Kind;
use ingot_testdata::checker::check_store;
use ingot_testdata::git;
use ingot_testdata::repo::{Format, Repo};
use serde_json::Value;

use super::BRANCH;
use super::client::{Client, copy, copy_key};
use super::world::{Bare, commit, sound, text};

/// A copy of the golden carrier and its keys.
struct Golden {
    bare: Bare,
    expected: Value,
}

impl Golden {
    fn new() -> Golden {
        let bare = Bare::new();
        copy(
            &ingot_testdata::golden("e2ee-v5/carrier.git"),
            &bare.path("carrier.git"),
        );
        std::fs::create_dir_all(bare.path("carrier.git/refs/tags")).unwrap();
        for name in ["owner", "second"] {
            let from = ingot_testdata::golden("e2ee-v5/carrier-keys").join(format!("{name}.key.json"));
            copy_key(&from, &bare.path(&format!("{name}.key.json")));
        }
        let expected = std::fs::read(ingot_testdata::golden("e2ee-v5/carrier.expected.json")).unwrap();
        Golden {
            bare,
            expected: serde_json::from_slice(&expected).unwrap(),
        }
    }

    fn store(&self) -> PathBuf {
        self.bare.path("carrier.git")
    }

    fn key(&self, name: &str) -> PathBuf {
        self.bare.path(&format!("{name}.key.json"))
    }

    fn url(&self) -> String {
        format!("e2ee::git+{}", self.store().display())
    }

    /// Makes the carrier what it was at an earlier generation, or is now.
    fn rewind(&self, generation: usize) {
        let commits = self.expected["outer_commits"].as_array().unwrap();
        let id = commits[commits.len() - 1 - generation]["commit"]
            .as_str()
            .unwrap();
        git::git(&self.store(), &["update-ref", BRANCH, id]);
    }

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
        let refs: BTreeSet<String> = self.expected["refs"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, id)| {
                let name = name.replace("refs/heads/", "refs/remotes/origin/");
                format!("{name} {}", id.as_str().unwrap())
            })
            .collect();
        let listed = [
            "for-each-ref",
            "--format",
            "%(refname) %(objectname)",
            "--exclude=refs/remotes/origin/HEAD",
            "refs/remotes/origin/",
            "refs/tags/",
        ];
        let seen: BTreeSet<String> = git::git(clone, &listed).lines().map(str::to_owned).collect();
        assert_eq!(seen, refs);
        let objects = self.expected["inner_objects"].as_array().unwrap();
        let objects: Vec<&str> = objects.iter().map(|id| id.as_str().unwrap()).collect();
        assert_eq!(git::objects(clone, &["--all"]), objects);
        let tree = self.expected["main_tree"].as_array().unwrap();
        let tree: Vec<&str> = tree.iter().map(|line| line.as_str().unwrap()).collect();
        let seen = git::git(clone, &["-c", "core.quotePath=false", "ls-tree", "-r", "HEAD"]);
        assert_eq!(seen.lines().collect::<Vec<_>>(), tree);
        assert_eq!(git::git(clone, &["status", "--porcelain"]), "");
        sound(&self.bare, clone);
    }
}

#[test]
fn the_owner_clones_exactly_what_was_stored() {
    let golden = Golden::new();
    golden.exact(&golden.clone("owner", "with-git"));
    let bare = &golden.bare;
    let url = format!("git+file://{}", golden.store().display());
    let key = golden.key("owner");
    bare.e2ee(bare.root(), &["clone", "--key", text(&key), &url, "without-git"])
        .good();
    golden.exact(&bare.path("without-git"));
}

#[test]
fn the_second_device_reads_what_it_could_and_is_then_refused() {
    let golden = Golden::new();
    let bare = &golden.bare;
    let key = golden.key("second");
    let refused = bare.e2ee(
        bare.root(),
        &["clone", "--key", text(&key), &golden.url(), "refused"],
    );
    assert_eq!(refused.code, Some(12), "{}", refused.err);
    assert!(!bare.path("refused").exists());
    golden.rewind(8);
    golden.exact(&golden.clone("second", "clone"));
}

#[test]
fn every_generation_is_read_as_it_was() {
    let golden = Golden::new();
    let generations = golden.expected["generations"].as_array().unwrap();
    for (generation, expected) in generations.iter().enumerate() {
        golden.rewind(generation);
        let repo = Repo::empty(Format::Sha1);
        let owner = Client::new(repo.path(), &golden.store(), &golden.key("owner"));
        let view = owner.list().unwrap();
        assert_eq!(view.generation(), generation as u64);
        assert_eq!(view.head().to_string(), expected["manifest_id"].as_str().unwrap());
        let refs: serde_json::Map<String, Value> = view
            .refs()
            .iter()
            .map(|(name, id)| (name.clone(), Value::from(id.to_string())))
            .collect();
        assert_eq!(Value::from(refs), expected["refs"], "generation {generation}");
        owner.fetch().unwrap();
        for id in view.refs().values() {
            repo.git(&["rev-list", "--objects", &id.to_string()]);
        }
        let stranger = Repo::empty(Format::Sha1);
        let second = Client::new(stranger.path(), &golden.store(), &golden.key("second"));
        match second.list() {
            Ok(_) => assert!((6..=8).contains(&generation)),
            Err(error) => assert_eq!(error.kind(), Kind::Key, "{error}"),
        }
    }
}

#[test]
fn the_carrier_is_continued_in_its_own_format() {
    let golden = Golden::new();
    let bare = &golden.bare;
    let before = git::git(&golden.store(), &["rev-parse", BRANCH]);
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
    let after = git::git(&golden.store(), &["rev-parse", &format!("{BRANCH}~3")]);
    assert_eq!(before, after, "one commit for each publication");
    let summary = check_store(&golden.store(), &golden.key("owner"), &["--carrier", "--clean"]).unwrap();
    let summary: Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["generation"], 12);
    let again = golden.clone("owner", "again");
    assert_eq!(
        git::git(&again, &["rev-parse", "HEAD", "v2.0", "origin/topic"]),
        git::git(&clone, &["rev-parse", "HEAD", "v2.0", "HEAD"])
    );
    // What the clone has seen, it does not forget.
    golden.rewind(9);
    bare.git(&clone, &["fetch"]).bad(&["rolled back"]);
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
        let from = ingot_testdata::golden("e2ee-v5/carrier-keys").join(format!("client-state.{sample}.json"));
        std::fs::copy(from, folder.join("state.json")).unwrap();
        bare.git(&clone, &["fetch", "-q"]).good();
        let mine = commit(bare, &clone, "continued");
        bare.git(&clone, &["push", "-q"]).good();
        let state: Value =
            serde_json::from_slice(&std::fs::read(folder.join("state.json")).unwrap()).unwrap();
        assert_eq!(state["generation"], 10);
        assert_eq!(state["verified_refs"]["refs/heads/main"], mine.as_str());
        golden.rewind(9);
        bare.git(&clone, &["fetch"]).bad(&["rolled back"]);
    }
}
