//! Pushing without Git: the same forms, the same refusals.

use ingot_testdata::repo::{Format, Repo};

use super::world::{World, commit, sound, text};

struct Case {
    args: &'static [&'static str],
    name: &'static str,
    value: Option<&'static str>,
    says: &'static str,
}

const CASES: &[Case] = &[
    Case {
        args: &["second"],
        name: "refs/heads/second",
        value: Some("second"),
        says: "* [new branch]",
    },
    Case {
        args: &["main"],
        name: "refs/heads/main",
        value: Some("main"),
        says: "up-to-date",
    },
    Case {
        args: &["main~1:refs/heads/old"],
        name: "refs/heads/old",
        value: Some("main~1"),
        says: "* [new branch]",
    },
    Case {
        args: &["HEAD:x"],
        name: "refs/heads/x",
        value: Some("main"),
        says: "* [new branch]",
    },
    Case {
        args: &["main:topic"],
        name: "refs/heads/topic",
        value: Some("main"),
        says: "main -> topic",
    },
    Case {
        args: &["+second:topic"],
        name: "refs/heads/topic",
        value: Some("second"),
        says: "(forced update)",
    },
    Case {
        args: &["--force", "second:topic"],
        name: "refs/heads/topic",
        value: Some("second"),
        says: "(forced update)",
    },
    Case {
        args: &[":topic"],
        name: "refs/heads/topic",
        value: None,
        says: "- [deleted]",
    },
    Case {
        args: &["--delete", "topic"],
        name: "refs/heads/topic",
        value: None,
        says: "- [deleted]",
    },
    Case {
        args: &["v1.0", "nested", "blob-tag", "tree-tag", "light"],
        name: "refs/tags/nested",
        value: Some("nested"),
        says: "* [new tag]",
    },
    Case {
        args: &["--tags"],
        name: "refs/tags/blob-tag",
        value: Some("blob-tag"),
        says: "* [new tag]",
    },
    Case {
        args: &["--all"],
        name: "refs/heads/second",
        value: Some("second"),
        says: "* [new branch]",
    },
    Case {
        args: &["refs/heads/*:refs/heads/copy/*"],
        name: "refs/heads/copy/main",
        value: Some("main"),
        says: "* [new branch]",
    },
    Case {
        args: &["--dry-run", "second"],
        name: "refs/heads/second",
        value: None,
        says: "* [new branch]",
    },
    Case {
        args: &["--force-with-lease", "second:topic"],
        name: "refs/heads/topic",
        value: Some("second"),
        says: "(forced update)",
    },
    Case {
        args: &["--force-with-lease=topic", "second:topic"],
        name: "refs/heads/topic",
        value: Some("second"),
        says: "(forced update)",
    },
    Case {
        args: &["--force-with-lease=new:", "main:refs/heads/new"],
        name: "refs/heads/new",
        value: Some("main"),
        says: "* [new branch]",
    },
];

#[test]
fn each_form_of_a_push() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world
        .e2ee(source.path(), &["push", "vault", "main", "topic"])
        .good();
    let head = std::fs::read(world.store.join("HEAD")).unwrap();
    for case in CASES {
        std::fs::write(world.store.join("HEAD"), &head).unwrap();
        std::fs::remove_dir_all(source.git_dir().join("git-remote-e2ee")).ok();
        world.e2ee(source.path(), &["fetch", "--prune", "vault"]).good();
        let mut args = vec!["push", "vault"];
        args.extend_from_slice(case.args);
        let said = world.e2ee(source.path(), &args).good();
        assert!(said.contains(case.says), "{:?}: {said}", case.args);
        let expected = case.value.map(|revision| source.git(&["rev-parse", revision]));
        assert_eq!(world.value(case.name), expected, "{:?}", case.args);
    }
}

#[test]
fn the_form_of_the_existing_implementation() {
    let world = World::new();
    let source = Repo::scripted("history", Format::Sha1);
    let args = [
        "push",
        "--storage",
        text(&world.store),
        "--key",
        text(&world.key),
        "--repo",
        text(source.path()),
        "--ref",
        "refs/heads/main",
    ];
    let id = world.e2ee(world.root(), &args).good();
    assert_eq!(
        std::fs::read_to_string(world.store.join("HEAD"))
            .unwrap()
            .trim_end(),
        id
    );
    assert_eq!(
        world.value("refs/heads/main"),
        Some(source.git(&["rev-parse", "main"]))
    );
    let args = [
        "push",
        "--storage",
        text(&world.store),
        "--key",
        text(&world.key),
        "--ref",
        "refs/heads/topic",
        "--force",
    ];
    world.e2ee(source.path(), &args).good();
    assert_eq!(world.names(), ["refs/heads/main", "refs/heads/topic"]);
}

#[test]
fn refusals_and_their_code() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world
        .e2ee(source.path(), &["push", "vault", "main", "topic", "v1.0"])
        .good();
    let clone = world.clone("clone", &[]);
    commit(&world, &clone, "theirs");
    world.git(&clone, &["push", "-q"]).good();
    commit(&world, source.path(), "mine");
    let before = world.refs();
    for (args, reason) in [
        (&["main"][..], "(fetch first)"),
        (&["second:topic"], "(non-fast-forward)"),
        (&["light:refs/tags/v1.0"], "(already exists)"),
        (&["--force-with-lease=topic:", "main:topic"], "(stale info)"),
        (&["--atomic", "second", "main"], "(atomic push failed)"),
        (&["main:refs/notes/x"], "unsupported ref namespace"),
    ] {
        let mut all = vec!["push", "vault"];
        all.extend_from_slice(args);
        let said = world.e2ee(source.path(), &all);
        assert_eq!(said.code, Some(1), "{args:?}");
        assert!(said.out.contains(reason), "{args:?}: {}", said.out);
        assert_eq!(world.refs(), before, "{args:?}");
    }
    for args in [
        &["push", "vault", "nothing"][..],
        &["push", "vault", "a:b:"],
        &["push", "--delete", "vault"],
    ] {
        assert!(
            matches!(
                world.e2ee(source.path(), args).bad(&["git-e2ee: "]).code,
                Some(1 | 2)
            ),
            "{args:?}"
        );
    }
}

#[test]
fn a_mirror_deletes_what_is_not_here() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world
        .e2ee(source.path(), &["push", "vault", "main:extra", "main:topic"])
        .good();
    source.git(&["update-ref", "refs/remotes/vault/main", "main"]);
    world.e2ee(source.path(), &["push", "--mirror", "vault"]).good();
    let refs = source.git(&[
        "for-each-ref",
        "--format=%(refname) %(objectname)",
        "refs/heads",
        "refs/tags",
    ]);
    assert_eq!(world.refs(), refs.lines().collect::<Vec<_>>());
    assert_eq!(world.generation(), 2);
    sound(&world, &world.clone("clone", &["--mirror"]));
}

#[test]
fn json_tells_what_became_of_each_reference() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world
        .e2ee(source.path(), &["push", "-q", "vault", "main", "v1.0"])
        .good();
    let said = world.e2ee(
        source.path(),
        &[
            "push",
            "--json",
            "vault",
            "main",
            "second",
            "light:refs/tags/v1.0",
        ],
    );
    assert_eq!(said.code, Some(1));
    let report: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(report["command"], "push");
    let stores = report["stores"].as_array().unwrap();
    assert_eq!(stores.len(), 1);
    assert_eq!(stores[0]["generation"], 2);
    assert_eq!(stores[0]["url"], world.url());
    let status: Vec<_> = stores[0]["refs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["ref"].as_str().unwrap(), entry["status"].as_str().unwrap()))
        .collect();
    assert_eq!(
        status,
        [
            ("refs/heads/main", "up-to-date"),
            ("refs/heads/second", "new"),
            ("refs/tags/v1.0", "rejected")
        ]
    );
    assert_eq!(stores[0]["refs"][1]["new"], source.git(&["rev-parse", "second"]));
}

#[test]
fn which_remote_a_push_without_words_means() {
    let world = World::new();
    let source = world.source("only", Format::Sha1);
    source.git(&["remote", "add", "origin", "https://example.org/x"]);
    world.e2ee(source.path(), &["push"]).good();
    assert_eq!(world.names(), ["refs/heads/main"]);
    world.add_remote(source.path(), "another", &world.url());
    world.e2ee(source.path(), &["push"]).bad(&["another", "only"]);
    source.git(&["config", "branch.main.remote", "only"]);
    world.e2ee(source.path(), &["push"]).good();
    world.e2ee(source.path(), &["push", "origin"]).bad(&["origin"]);
}

#[test]
fn incomplete_history_is_refused() {
    let world = World::new();
    let source = Repo::scripted("history", Format::Sha1);
    let shallow = world.path("shallow");
    let url = format!("file://{}", source.path().display());
    world
        .git(
            world.root(),
            &["clone", "-q", "--depth", "2", &url, text(&shallow)],
        )
        .good();
    world.add_remote(&shallow, "vault", &world.url());
    world
        .e2ee(&shallow, &["push", "vault"])
        .bad(&["shallow", "git fetch --unshallow"]);
    assert!(world.refs().is_empty());
}

#[test]
fn tracking_branches_follow_each_for_itself() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    source.git(&["branch", "a"]);
    world.e2ee(source.path(), &["push", "vault", "main", "a"]).good();
    source.git(&["branch", "-D", "a"]);
    source.git(&["branch", "a/b"]);
    let said = world.e2ee(source.path(), &["push", "vault", ":a", "a/b"]);
    assert!(said.ok && !said.err.contains("warning"), "{}", said.err);
    let tracked = source.git(&["for-each-ref", "--format=%(refname)", "refs/remotes/vault"]);
    assert_eq!(tracked, "refs/remotes/vault/a/b\nrefs/remotes/vault/main");

    let lock = source.git_dir().join("refs/remotes/vault/main.lock");
    std::fs::write(&lock, "").unwrap();
    let id = commit(&world, source.path(), "more");
    let said = world.e2ee(source.path(), &["push", "vault", "main", "main:other"]);
    assert!(said.ok && said.err.contains("main.lock"), "{}", said.err);
    assert_eq!(source.git(&["rev-parse", "vault/other"]), id);
    assert_ne!(source.git(&["rev-parse", "vault/main"]), id);
    std::fs::remove_file(lock).unwrap();
    world.e2ee(source.path(), &["fetch", "vault"]).good();
    assert_eq!(source.git(&["rev-parse", "vault/main"]), id);
}
