//! What is written: commits, parts, and nothing of the plaintext.

use std::path::Path;

use ingot_testdata::checker::check_store;
use ingot_testdata::git;
use ingot_testdata::repo::{Format, Repo};

use super::BRANCH;
use super::world::{World, commit, sound, text};

#[test]
fn commits_are_the_same_whatever_the_users_settings_are() {
    for format in Format::BOTH {
        let world = World::carrier(format);
        let source = world.source("vault", Format::Sha1);
        let home = world.path("home");
        std::fs::create_dir_all(&home).unwrap();
        let hooks = world.path("hooks");
        std::fs::create_dir_all(&hooks).unwrap();
        for hook in ["pre-commit", "commit-msg", "pre-push", "post-commit"] {
            script(&hooks.join(hook), "exit 1");
        }
        let settings = format!(
            "commit.gpgSign=true\nuser.name=Alice Secret\ncore.hooksPath={}\ncore.autocrlf=true\n\
             core.compression=9\ni18n.commitEncoding=latin1",
            hooks.display()
        );
        for setting in settings.lines() {
            let (name, value) = setting.split_once('=').unwrap();
            source.git(&["config", name, value]);
        }
        std::env::set_current_dir(world.root()).unwrap();
        let environment = "TZ=Asia/Tokyo GIT_AUTHOR_NAME='Alice Secret' GIT_AUTHOR_DATE='1 +0900'";
        let line = format!(
            "{environment} git push -q --no-verify vault main && {environment} git push -q --no-verify vault topic v1.0"
        );
        world.shell(source.path(), &line).good();
        check_store(&world.store, &world.key, &["--carrier", "--clean"]).unwrap();
        let log = git::git(
            &world.store,
            &[
                "log",
                "--format=%an %ae %ad %cn %s %P",
                "--date=format:%z",
                BRANCH,
            ],
        );
        assert_eq!(log.lines().count(), 3, "{log}");
        for line in log.lines() {
            let start = "git-remote-e2ee git-remote-e2ee@invalid +0000 git-remote-e2ee git-remote-e2ee storage update";
            assert!(line.starts_with(start), "{line}");
        }
    }
}

/// An executable shell script.
pub fn script(path: &Path, body: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(path, format!("#!/bin/sh\n{body}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn other_branches_and_foreign_files_stay() {
    let world = World::carrier(Format::Sha1);
    let source = world.source("vault", Format::Sha1);
    let other = Repo::empty(Format::Sha1);
    other.write("README.md", "Nothing to see here.\n");
    let theirs = other.commit("readme");
    other.git(&["tag", "v9"]);
    other.git(&["push", "-q", text(&world.store), "main", "v9"]);
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    // Somebody adds files of their own to the branch itself.
    let work = world.path("work");
    let branch = BRANCH.strip_prefix("refs/heads/").unwrap();
    let clone = ["clone", "-q", "-b", branch, text(&world.store), text(&work)];
    world.git(world.root(), &clone).good();
    std::fs::create_dir_all(work.join("docs/e2ee")).unwrap();
    std::fs::write(work.join("docs/e2ee/README"), "hello").unwrap();
    std::fs::write(work.join("e2ee.txt"), "sorted between").unwrap();
    std::fs::write(work.join("z"), "last").unwrap();
    world.git(&work, &["add", "."]).good();
    world.git(&work, &["commit", "-q", "-m", "ours"]).good();
    world.git(&work, &["push", "-q"]).good();

    commit(&world, source.path(), "more");
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    world.git(source.path(), &["fetch", "-q", "vault"]).good();
    let show = |path: &str| git::git(&world.store, &["show", &format!("{BRANCH}:{path}")]);
    assert_eq!(show("docs/e2ee/README"), "hello");
    assert_eq!(show("e2ee.txt"), "sorted between");
    assert_eq!(show("z"), "last");
    assert_eq!(git::git(&world.store, &["rev-parse", "main"]), theirs);
    assert_eq!(git::git(&world.store, &["rev-parse", "v9"]), theirs);
    assert_eq!(
        git::git(&world.store, &["symbolic-ref", "HEAD"]),
        "refs/heads/main"
    );
    check_store(&world.store, &world.key, &["--shared-carrier", "--clean"]).unwrap();
    sound(&world, &world.clone("clone", &[]));
}

#[test]
fn large_packs_are_cut_into_parts() {
    let world = World::carrier(Format::Sha1);
    let source = Repo::empty(Format::Sha1);
    let mut state = 1u64;
    let noise: Vec<u8> = (0..(65 << 20) / 8)
        .flat_map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state ^ state >> 31).to_le_bytes()
        })
        .collect();
    source.write("noise", &noise);
    source.commit("large");
    world.add_remote(source.path(), "vault", &world.url());
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    let listed = git::git(&world.store, &["ls-tree", "-r", "-l", BRANCH, "e2ee/objects"]);
    let sizes: Vec<u64> = listed
        .lines()
        .map(|line| line.split_whitespace().nth(3).unwrap().parse().unwrap())
        .collect();
    assert_eq!(sizes.len(), 3, "{listed}");
    assert_eq!(sizes[..2], [32 << 20, 32 << 20]);
    git::fsck(&world.store);
    let clone = world.clone("clone", &[]);
    assert!(std::fs::read(clone.join("noise")).unwrap() == noise);
    // A server may repack as it likes.
    git::git(
        &world.store,
        &["-c", "core.bigFileThreshold=1g", "repack", "-q", "-a", "-d", "-f"],
    );
    let clone = world.clone("again", &[]);
    assert!(std::fs::read(clone.join("noise")).unwrap() == noise);
}

#[test]
fn nothing_of_the_plaintext_is_in_the_carrier() {
    let world = World::carrier(Format::Sha1);
    let source = world.source("vault", Format::Sha1);
    source.write(
        "geheimnis.txt",
        "the quick brown fox jumps over the lazy dog\n".repeat(50),
    );
    let id = source.commit("eine vertrauliche Nachricht");
    source.git(&["branch", "streng-geheim"]);
    world
        .git(source.path(), &["push", "-q", "vault", "main", "streng-geheim"])
        .good();
    let objects = git::git(
        &world.store,
        &["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"],
    );
    let mut all = Vec::new();
    for object in objects.lines() {
        let kind = git::git(&world.store, &["cat-file", "-t", object]);
        all.extend(git::with_input(&world.store, &["cat-file", &kind, object], b""));
    }
    let mut texts: Vec<Vec<u8>> = [
        "geheim",
        "quick brown",
        "vertraulich",
        "Alice",
        "alice@",
        "refs/heads/main",
        &id,
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .collect();
    texts.push(id.parse::<gix_hash::ObjectId>().unwrap().as_slice().to_vec());
    for text in texts {
        let found = all.windows(text.len()).any(|window| window == text);
        assert!(!found, "{}", String::from_utf8_lossy(&text));
    }
}
