//! Carriers that are wrong in one way each: refused with one line and an alarm, and nothing of them is used.

use std::path::{Path, PathBuf};

use ingot_testdata::git;
use ingot_testdata::repo::{Format, Repo};
use tempfile::TempDir;

use super::BRANCH;
use super::client::{copy, listing};
use super::world::{World, commit, sound, text};

/// A good carrier of three generations, and a clone that saw the second.
struct Good {
    world: World,
    source: Repo,
    behind: PathBuf,
    copies: TempDir,
    /// Paths of the parts of the packs and manifests, oldest first.
    packs: Vec<String>,
    manifests: Vec<String>,
}

impl Good {
    fn new() -> Good {
        let world = World::carrier(Format::Sha1);
        let source = world.source("vault", Format::Sha1);
        let mut good = Good {
            behind: PathBuf::new(),
            copies: TempDir::new().unwrap(),
            packs: Vec::new(),
            manifests: good_paths(&world.store, "manifests", &[]),
            world,
            source,
        };
        good.push("main~1:refs/heads/main");
        good.behind = good.world.clone("behind", &[]);
        good.push("main");
        good
    }

    fn push(&mut self, what: &str) {
        let said = self.world.git(self.source.path(), &["push", "-q", "vault", what]);
        said.good();
        let store = &self.world.store;
        self.packs.extend(good_paths(store, "objects", &self.packs));
        self.manifests
            .extend(good_paths(store, "manifests", &self.manifests));
    }

    /// A copy with one more commit on the branch, by the commands of `git fast-import`.
    fn changed(&self, name: &str, commands: &str) -> PathBuf {
        let path = self.copies.path().join(format!("{name}.git"));
        copy(&self.world.store, &path);
        let stream = format!(
            "commit {BRANCH}\ncommitter git-remote-e2ee <git-remote-e2ee@invalid> 1 +0000\ndata 0\nfrom {BRANCH}^0\n\
             {commands}\n"
        );
        git::with_input(&path, &["fast-import", "--quiet"], stream.as_bytes());
        path
    }

    /// Requires that nobody uses the carrier at `path`, and that everybody is told why.
    #[track_caller]
    fn refused(&self, path: &Path, reason: &str) {
        let url = format!("e2ee::git+{}", path.display());
        let world = &self.world;
        let key = text(&world.key);
        let clone = world.path("refused");
        for args in [
            vec!["verify", "--key", key, &url],
            vec!["clone", "--key", key, &url, text(&clone)],
        ] {
            let said = world.e2ee(world.root(), &args);
            assert_eq!(said.code, Some(13), "{args:?}: {}", said.err);
            assert_eq!(said.err.lines().count(), 1, "{}", said.err);
            assert!(said.err.contains(reason), "no {reason:?} in {}", said.err);
            assert!(!clone.exists());
        }
        git::git(&self.behind, &["remote", "set-url", "origin", &url]);
        // Git's own file, and the lock on what is remembered of this place, which may be new.
        let counts = |path: &Path| {
            let of_places = path.components().any(|part| part.as_os_str() == ".urls");
            !path.ends_with("FETCH_HEAD") && (!of_places || path.ends_with("state.json"))
        };
        let mut before = listing(&self.behind);
        before.retain(|path, _| counts(path));
        world.git(&self.behind, &["fetch"]).bad(&["git-remote-e2ee: "]);
        let mut after = listing(&self.behind);
        after.retain(|path, _| counts(path));
        assert!(after == before, "something changed");
    }
}

/// Paths of parts that are not `known`.
fn good_paths(store: &Path, kind: &str, known: &[String]) -> Vec<String> {
    let listed = git::git(
        store,
        &["ls-tree", "-r", "--name-only", BRANCH, &format!("e2ee/{kind}")],
    );
    let paths = listed.lines().map(str::to_owned);
    paths.filter(|path| !known.contains(path)).collect()
}

fn blob(store: &Path, path: &str) -> String {
    git::git(store, &["rev-parse", &format!("{BRANCH}:{path}")])
}

#[test]
fn trees_that_are_wrong_in_one_way_each() {
    let good = Good::new();
    let store = &good.world.store;
    let [old, new] = [&good.packs[0], &good.packs[1]];
    let manifest = &good.manifests[1];
    let folder = new.strip_suffix("/00000000").unwrap();
    let (old_blob, new_blob) = (blob(store, old), blob(store, new));
    let commit = git::git(store, &["rev-parse", BRANCH]);
    let inline = |mode: &str, path: &str, content: &str| {
        format!("M {mode} inline {path}\ndata {}\n{content}", content.len())
    };
    let many: String = (1..=4096)
        .map(|number| format!("M 100644 {new_blob} {folder}/{number:08}\n"))
        .collect();
    let id = "0123456789abcdef".repeat(4);
    for (name, commands, reason) in [
        ("swapped", format!("M 100644 {old_blob} {new}"), "pack stream"),
        (
            "both-swapped",
            format!("M 100644 {old_blob} {new}\nM 100644 {new_blob} {old}"),
            "pack",
        ),
        ("missing-pack", format!("D {new}"), "is missing from"),
        ("gap", format!("R {new} {folder}/00000001"), "dense sequence"),
        ("odd-name", format!("R {new} {folder}/0"), "dense sequence"),
        (
            "extra-name",
            inline("100644", &format!("{folder}/x"), "x"),
            "dense sequence",
        ),
        (
            "short-part",
            inline("100644", &format!("{folder}/00000001"), "x"),
            "bytes, which no writer makes",
        ),
        ("empty-part", inline("100644", new, ""), "0 bytes"),
        ("longer-part", inline("100644", new, &"x".repeat(100_000)), "pack"),
        ("many-parts", many, "more than 4096 parts"),
        ("link", inline("120000", new, "/etc/passwd"), "is a symbolic link"),
        ("submodule", format!("M 160000 {commit} {new}"), "is a submodule"),
        ("executable", format!("M 100755 {new_blob} {new}"), "mode 100755"),
        (
            "folder-for-part",
            format!("D {new}\n{}", inline("100644", &format!("{new}/x"), "x")),
            "no ordinary file",
        ),
        (
            "no-folder",
            format!("D {new}\nM 100644 {new_blob} {folder}"),
            "is not a folder",
        ),
        (
            "linked-folder",
            format!("D {new}\n{}", inline("120000", folder, "..")),
            "is not a folder",
        ),
        (
            "head-link",
            inline("120000", "e2ee/HEAD", "manifests"),
            "is a symbolic link",
        ),
        (
            "head-submodule",
            format!("M 160000 {commit} e2ee/HEAD"),
            "is a submodule",
        ),
        (
            "head-text",
            inline("100644", "e2ee/HEAD", "main\n"),
            "not the id of a manifest",
        ),
        (
            "head-long",
            inline("100644", "e2ee/HEAD", &"0".repeat(5000)),
            "5000 bytes",
        ),
        (
            "head-unknown",
            inline("100644", "e2ee/HEAD", &id),
            "is missing from",
        ),
        ("head-gone", "D e2ee/HEAD".to_owned(), "lost its HEAD"),
        ("no-manifests", "D e2ee/manifests".to_owned(), "is missing from"),
        (
            "file-for-all",
            format!("D e2ee\nM 100644 {new_blob} e2ee"),
            "is not a folder",
        ),
        (
            "other-manifest",
            inline("100644", manifest, "{}"),
            "content that its name says",
        ),
        (
            "large-manifest",
            inline("100644", manifest, &"x".repeat((16 << 20) + 1)),
            "larger than 16777216 bytes",
        ),
    ] {
        good.refused(&good.changed(name, &commands), reason);
    }
}

#[test]
fn objects_that_are_missing_or_damaged() {
    let good = Good::new();
    let store = &good.world.store;
    let (pack, manifest) = (&good.packs[1], &good.manifests[1]);
    let fan_out = &pack[..pack.rfind("/objects/").unwrap() + "/objects/xx".len()];
    for (name, revision) in [
        ("commit", BRANCH.to_owned()),
        ("root", format!("{BRANCH}^{{tree}}")),
        ("folder", format!("{BRANCH}:e2ee")),
        ("fan-out", format!("{BRANCH}:{fan_out}")),
        ("part", format!("{BRANCH}:{pack}")),
        ("manifest", format!("{BRANCH}:{manifest}")),
        ("head", format!("{BRANCH}:e2ee/HEAD")),
    ] {
        let id = git::git(store, &["rev-parse", &revision]);
        for damage in ["gone", "garbage", "half"] {
            let path = good.copies.path().join(format!("{name}-{damage}.git"));
            copy(store, &path);
            loosen(&path);
            let object = path.join("objects").join(&id[..2]).join(&id[2..]);
            let bytes = std::fs::read(&object).unwrap();
            std::fs::remove_file(&object).unwrap();
            match damage {
                "gone" => {}
                "garbage" => std::fs::write(&object, b"garbage").unwrap(),
                _ => std::fs::write(&object, &bytes[..bytes.len() / 2]).unwrap(),
            }
            good.refused(&path, "");
        }
    }
}

/// Every object in a file of its own.
fn loosen(store: &Path) {
    let packs = store.join("objects/pack");
    let away = store.join("away");
    std::fs::rename(&packs, &away).unwrap();
    std::fs::create_dir(&packs).unwrap();
    for entry in std::fs::read_dir(&away).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "pack") {
            git::with_input(store, &["unpack-objects", "-q"], &std::fs::read(&path).unwrap());
        }
    }
    std::fs::remove_dir_all(&away).unwrap();
}

#[test]
fn a_tree_with_the_same_name_twice() {
    let good = Good::new();
    let path = good.copies.path().join("twice.git");
    copy(&good.world.store, &path);
    let root = format!("{BRANCH}^{{tree}}");
    let mut tree = git::with_input(&path, &["cat-file", "tree", &root], b"");
    let at = tree.windows(5).position(|window| window == b"e2ee\0").unwrap() - 6;
    let again = tree[at..at + 6 + 5 + 20].to_vec();
    tree.splice(at..at, again);
    let tree = git::with_input(
        &path,
        &["hash-object", "-t", "tree", "--literally", "-w", "--stdin"],
        &tree,
    );
    let tree = String::from_utf8(tree).unwrap();
    let commit = git::git(&path, &["commit-tree", "-p", BRANCH, "-m", "x", tree.trim()]);
    git::git(&path, &["update-ref", BRANCH, &commit]);
    good.refused(&path, "is there twice");
}

#[test]
fn parts_that_are_stored_as_deltas_are_read() {
    let good = Good::new();
    let store = &good.world.store;
    let part = &good.packs[0];
    let mut larger = git::with_input(store, &["cat-file", "blob", &format!("{BRANCH}:{part}")], b"");
    larger.extend_from_slice(b"and some more");
    let id = git::with_input(store, &["hash-object", "-w", "--stdin"], &larger);
    let id = String::from_utf8(id).unwrap();
    let path = good.changed("deltas", &format!("M 100644 {} notes", id.trim()));
    let repack = ["repack", "-q", "-a", "-d", "-f", "--window=50", "--depth=50"];
    git::git(&path, &repack);
    let pack = std::fs::read_dir(path.join("objects/pack"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|end| end == "idx"))
        .unwrap();
    let id = blob(&path, part);
    let listed = git::git(&path, &["verify-pack", "-v", text(&pack)]);
    let line = listed.lines().find(|line| line.starts_with(&id)).unwrap();
    assert_eq!(line.split_whitespace().count(), 7, "stored as a delta: {line}");

    let world = &good.world;
    let url = format!("e2ee::git+{}", path.display());
    let clone = world.path("clone");
    world
        .e2ee(
            world.root(),
            &["clone", "--key", text(&world.key), &url, text(&clone)],
        )
        .good();
    sound(world, &clone);
    commit(world, &clone, "more");
    world.git(&clone, &["push", "-q"]).good();
    world
        .e2ee(
            world.root(),
            &["verify", "--full", "--key", text(&world.key), &url],
        )
        .good();
}
