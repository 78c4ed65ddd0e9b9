//! Cloning: complete, sound, and with the right branch checked out.

use ingot_testdata::repo::Format;

use super::world::{World, sound, text};

#[test]
fn a_clone_has_everything_that_was_pushed() {
    for format in Format::BOTH {
        let world = World::new();
        let source = world.source("vault", format);
        world.git(source.path(), &["push", "-q", "--all", "vault"]).good();
        world
            .git(source.path(), &["push", "-q", "--tags", "vault"])
            .good();
        assert_eq!(world.generation(), 2, "one generation for each push");

        let clone = world.clone("clone", &[]);
        sound(&world, &clone);
        let expected = world
            .git(
                source.path(),
                &[
                    "for-each-ref",
                    "--format=%(refname:lstrip=2) %(objectname)",
                    "refs/heads",
                ],
            )
            .good();
        let cloned = world
            .git(
                &clone,
                &[
                    "for-each-ref",
                    "--format=%(refname:lstrip=3) %(objectname)",
                    "refs/remotes/origin",
                ],
            )
            .good();
        let cloned: Vec<_> = cloned.lines().filter(|line| !line.starts_with("HEAD ")).collect();
        assert_eq!(cloned, expected.lines().collect::<Vec<_>>());
        let tags = [
            "for-each-ref",
            "--format=%(refname) %(objectname) %(*objectname)",
            "refs/tags",
        ];
        assert_eq!(
            world.git(&clone, &tags).good(),
            world.git(source.path(), &tags).good()
        );
        assert_eq!(
            world.git(&clone, &["rev-parse", "HEAD^{tree}"]).good(),
            source.git(&["rev-parse", "HEAD^{tree}"])
        );
        assert_eq!(world.git(&clone, &["status", "--porcelain"]).good(), "");
        assert_eq!(
            world.git(&clone, &["rev-parse", "--show-object-format"]).good(),
            format.name()
        );
        assert_eq!(
            ingot_testdata::git::objects(&clone, &["--all"]),
            ingot_testdata::git::objects(source.path(), &["--branches", "--tags"])
        );
    }
}

#[test]
fn the_key_given_for_a_clone_is_kept_for_its_remote() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    let clone = world.clone("clone", &["-o", "up"]);
    assert_eq!(
        world
            .git(&clone, &["config", "--local", "remote.up.e2ee-key"])
            .good(),
        text(&world.key)
    );
    world.git(&clone, &["fetch"]).good();
}

#[test]
fn the_branch_that_is_checked_out() {
    for (branches, head) in [
        (&["main", "master", "other"][..], Some("main")),
        (&["master", "other"], Some("master")),
        (&["trunk"], Some("trunk")),
        (&["one", "two"], None),
    ] {
        let world = World::new();
        let source = world.source("vault", Format::Sha1);
        for branch in branches {
            world
                .git(
                    source.path(),
                    &["push", "-q", "vault", &format!("main:refs/heads/{branch}")],
                )
                .good();
        }
        let listed = world
            .git(source.path(), &["ls-remote", "--symref", "vault", "HEAD"])
            .good();
        let symref = listed
            .lines()
            .find_map(|line| line.strip_prefix("ref: refs/heads/"));
        assert_eq!(
            symref,
            head.map(|head| format!("{head}\tHEAD")).as_deref(),
            "{branches:?}"
        );
        if let Some(head) = head {
            let clone = world.clone("clone", &[]);
            assert_eq!(
                world.git(&clone, &["symbolic-ref", "--short", "HEAD"]).good(),
                head
            );
        }
    }
}

#[test]
fn an_empty_store_clones_to_an_empty_repository() {
    let world = World::new();
    let said = world.git_with_key(world.root(), &["clone", &world.url(), "empty"]);
    assert!(said.err.contains("empty repository"), "{}", said.err);
    said.good();
}

#[test]
fn bare_and_mirror_clones() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world
        .git(source.path(), &["push", "-q", "vault", "main", "topic", "v1.0"])
        .good();
    for (name, option) in [("bare.git", "--bare"), ("mirror.git", "--mirror")] {
        let clone = world.clone(name, &[option]);
        sound(&world, &clone);
        let refs = world
            .git(&clone, &["for-each-ref", "--format=%(refname) %(objectname)"])
            .good();
        assert_eq!(refs.lines().collect::<Vec<_>>(), world.refs());
    }
    let mirror = world.path("mirror.git");
    world
        .git(source.path(), &["push", "-q", "vault", ":topic", "main:new"])
        .good();
    world.git(&mirror, &["fetch", "-q", "--prune"]).good();
    let refs = world
        .git(&mirror, &["for-each-ref", "--format=%(refname) %(objectname)"])
        .good();
    assert_eq!(refs.lines().collect::<Vec<_>>(), world.refs());
}

#[test]
fn options_that_the_format_cannot_follow_give_a_complete_clone() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    for (name, options) in [
        ("depth", &["--depth", "1"][..]),
        ("filter", &["--filter=blob:none"]),
    ] {
        let clone = world.clone(name, options);
        sound(&world, &clone);
        assert_eq!(
            world.git(&clone, &["rev-list", "--count", "HEAD"]).good(),
            source.git(&["rev-list", "--count", "main"])
        );
    }
}

#[test]
fn one_branch_and_one_tag() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world
        .git(source.path(), &["push", "-q", "vault", "main", "topic", "v1.0"])
        .good();
    let topic = world.clone("topic", &["--branch", "topic", "--single-branch"]);
    assert_eq!(
        world.git(&topic, &["rev-parse", "HEAD"]).good(),
        source.git(&["rev-parse", "topic"])
    );
    let tag = world.clone("tag", &["--branch", "v1.0"]);
    assert_eq!(
        world.git(&tag, &["rev-parse", "HEAD"]).good(),
        source.git(&["rev-parse", "v1.0^{commit}"])
    );
}

#[test]
fn a_failed_clone_leaves_no_folder() {
    let world = World::new();
    std::fs::remove_file(world.store.join("HEAD")).unwrap();
    world
        .git_with_key(world.root(), &["clone", &world.url(), "clone"])
        .bad(&["git-remote-e2ee: "]);
    assert!(!world.path("clone").exists());
}
