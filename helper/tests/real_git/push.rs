//! Pushing: what moves, and what Git then says.

use ingot_testdata::repo::Format;

use super::world::{World, commit, sound, text};

/// A push of the fixture history after main and topic are there, and what it leaves of one reference.
struct Case {
    args: &'static [&'static str],
    name: &'static str,
    /// A revision of the source, or nothing when the reference must be gone.
    value: Option<&'static str>,
    says: &'static str,
}

const CASES: &[Case] = &[
    Case {
        args: &["second"],
        name: "refs/heads/second",
        value: Some("second"),
        says: "[new branch]",
    },
    Case {
        args: &["main"],
        name: "refs/heads/main",
        value: Some("main"),
        says: "Everything up-to-date",
    },
    Case {
        args: &["main~1:refs/heads/old"],
        name: "refs/heads/old",
        value: Some("main~1"),
        says: "",
    },
    Case {
        args: &["second:refs/heads/a/b"],
        name: "refs/heads/a/b",
        value: Some("second"),
        says: "[new branch]",
    },
    Case {
        args: &["HEAD:x"],
        name: "refs/heads/x",
        value: Some("main"),
        says: "[new branch]",
    },
    Case {
        args: &["HEAD"],
        name: "refs/heads/main",
        value: Some("main"),
        says: "Everything up-to-date",
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
        says: "[deleted]",
    },
    Case {
        args: &["--delete", "topic"],
        name: "refs/heads/topic",
        value: None,
        says: "[deleted]",
    },
    Case {
        args: &["v1.0"],
        name: "refs/tags/v1.0",
        value: Some("v1.0"),
        says: "[new tag]",
    },
    Case {
        args: &["nested"],
        name: "refs/tags/nested",
        value: Some("nested"),
        says: "[new tag]",
    },
    Case {
        args: &["light"],
        name: "refs/tags/light",
        value: Some("light"),
        says: "[new tag]",
    },
    Case {
        args: &["blob-tag"],
        name: "refs/tags/blob-tag",
        value: Some("blob-tag"),
        says: "[new tag]",
    },
    Case {
        args: &["tree-tag"],
        name: "refs/tags/tree-tag",
        value: Some("tree-tag"),
        says: "[new tag]",
    },
    Case {
        args: &["v1.0:refs/tags/copy"],
        name: "refs/tags/copy",
        value: Some("v1.0"),
        says: "[new tag]",
    },
    Case {
        args: &["--follow-tags", "main"],
        name: "refs/tags/v1.0",
        value: Some("v1.0"),
        says: "[new tag]",
    },
    Case {
        args: &["--tags"],
        name: "refs/tags/nested",
        value: Some("nested"),
        says: "[new tag]",
    },
    Case {
        args: &["--all"],
        name: "refs/heads/second",
        value: Some("second"),
        says: "[new branch]",
    },
    Case {
        args: &["--atomic", "second", "v1.0"],
        name: "refs/heads/second",
        value: Some("second"),
        says: "[new branch]",
    },
    Case {
        args: &["--dry-run", "second"],
        name: "refs/heads/second",
        value: None,
        says: "[new branch]",
    },
    Case {
        args: &["--force-with-lease", "+main:topic"],
        name: "refs/heads/topic",
        value: Some("main"),
        says: "main -> topic",
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
        says: "[new branch]",
    },
];

#[test]
fn each_form_of_a_push() {
    for format in Format::BOTH {
        let start = World::new();
        let source = start.source("vault", format);
        start
            .git(source.path(), &["push", "-q", "vault", "main", "topic"])
            .good();
        let head = std::fs::read(start.store.join("HEAD")).unwrap();
        let state = source.git_dir().join("git-remote-e2ee");
        for case in CASES {
            // The same beginning for each: the head is all that changes in a store.
            std::fs::write(start.store.join("HEAD"), &head).unwrap();
            std::fs::remove_dir_all(&state).ok();
            start
                .git(source.path(), &["fetch", "-q", "--prune", "vault"])
                .good();

            let mut args = vec!["push", "vault"];
            args.extend_from_slice(case.args);
            let said = start.git(source.path(), &args);
            assert!(said.err.contains(case.says), "{:?}: {}", case.args, said.err);
            said.good();
            let expected = case.value.map(|revision| source.git(&["rev-parse", revision]));
            assert_eq!(start.value(case.name), expected, "{:?}", case.args);
        }
    }
}

#[test]
fn a_raw_object_id() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    let id = source.git(&["rev-parse", "main~2"]);
    world
        .git(source.path(), &["push", "vault", &format!("{id}:refs/heads/raw")])
        .good();
    assert_eq!(world.value("refs/heads/raw"), Some(id));
}

#[test]
fn one_push_is_one_generation() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world
        .git(
            source.path(),
            &["push", "vault", "main", "topic", "second", "v1.0", "nested"],
        )
        .good();
    assert_eq!(world.generation(), 1);
    world
        .git(
            source.path(),
            &["push", "vault", ":topic", "+second:main", "light"],
        )
        .good();
    assert_eq!(world.generation(), 2);
    world
        .git(source.path(), &["push", "--dry-run", "vault", "main:new"])
        .good();
    world.git(source.path(), &["push", "vault", "light"]).good();
    assert_eq!(world.generation(), 2);
}

#[test]
fn remote_tracking_branches_follow_a_push() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world
        .git(source.path(), &["push", "-q", "-u", "vault", "main", "topic"])
        .good();
    assert_eq!(
        source.git(&["rev-parse", "vault/main"]),
        source.git(&["rev-parse", "main"])
    );
    world
        .git(source.path(), &["push", "-q", "vault", ":topic"])
        .good();
    assert!(
        !world
            .git(source.path(), &["rev-parse", "-q", "--verify", "vault/topic"])
            .ok
    );
    assert_eq!(
        world.git(source.path(), &["rev-parse", "@{upstream}"]).good(),
        source.git(&["rev-parse", "main"])
    );
}

#[test]
fn a_mirror_has_the_same_branches_and_tags() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    let bare = world.path("bare.git");
    world
        .git(
            world.root(),
            &["clone", "-q", "--mirror", text(source.path()), text(&bare)],
        )
        .good();
    // Without remote-tracking branches, which a mirror would push too.
    world
        .git(&bare, &["remote", "add", "--mirror=push", "vault", &world.url()])
        .good();
    world
        .git(&bare, &["config", "remote.vault.e2ee-key", text(&world.key)])
        .good();
    world.git(&bare, &["push", "-q", "--mirror", "vault"]).good();
    let refs = |dir| {
        world
            .git(dir, &["for-each-ref", "--format=%(refname) %(objectname)"])
            .good()
    };
    assert_eq!(world.refs(), refs(&bare).lines().collect::<Vec<_>>());

    world.git(&bare, &["update-ref", "-d", "refs/heads/topic"]).good();
    world
        .git(&bare, &["update-ref", "refs/heads/main", "refs/heads/main~3"])
        .good();
    world
        .git(&bare, &["update-ref", "refs/heads/extra", "refs/heads/second"])
        .good();
    world.git(&bare, &["push", "-q", "--mirror", "vault"]).good();
    assert_eq!(world.refs(), refs(&bare).lines().collect::<Vec<_>>());
    assert_eq!(world.generation(), 2);
}

#[test]
fn packs_hold_what_another_clone_needs() {
    for format in Format::BOTH {
        let world = World::new();
        let source = world.source("vault", format);
        for push in [
            "main~4:refs/heads/main",
            "main~2:main",
            "main",
            "second",
            "topic",
            "v1.0",
            "nested",
            "blob-tag",
            "tree-tag",
        ] {
            world.git(source.path(), &["push", "-q", "vault", push]).good();
        }
        sound(&world, &world.clone("clone", &[]));
    }
}

#[test]
fn pushing_what_was_just_fetched_and_merged() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    let clone = world.clone("clone", &[]);
    let id = commit(&world, &clone, "from the clone");
    world.git(&clone, &["push", "-q"]).good();
    world
        .git(source.path(), &["pull", "-q", "--ff-only", "vault", "main"])
        .good();
    assert_eq!(source.git(&["rev-parse", "HEAD"]), id);
    sound(&world, source.path());
}

#[test]
fn forcing_over_a_tip_that_is_not_here_leaves_a_complete_store() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world
        .git(source.path(), &["push", "-q", "vault", "main~3:refs/heads/main"])
        .good();
    let clone = world.clone("clone", &[]);
    commit(&world, &clone, "unseen");
    world.git(&clone, &["push", "-q"]).good();
    source.git(&["update-ref", "-d", "refs/remotes/vault/main"]);
    world
        .git(source.path(), &["push", "-q", "--force", "vault", "main"])
        .good();
    assert_eq!(
        world.value("refs/heads/main"),
        Some(source.git(&["rev-parse", "main"]))
    );
    sound(&world, &world.clone("again", &[]));
}
