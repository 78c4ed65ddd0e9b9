//! The commands with carrier URLs in all their forms.

use ingot_testdata::checker::check_store;
use ingot_testdata::git;
use ingot_testdata::repo::{Format, Repo};

use super::BRANCH;
use super::world::{Bare, World, commit, sound, text};

#[test]
fn a_carrier_is_begun_where_nothing_is_and_where_a_repository_is() {
    let bare = Bare::new();
    let init = |remote: &str, key: &str| {
        bare.e2ee(bare.root(), &["keygen", "-q", "--output", key]).good();
        bare.e2ee(bare.root(), &["carrier-init", "--remote", remote, "--key", key])
    };
    let id = init("new/carrier.git", "1.json").good();
    assert_eq!(id.len(), 64);
    let carrier = bare.path("new/carrier.git");
    check_store(&carrier, &bare.path("1.json"), &["--carrier", "--clean"]).unwrap();
    assert_eq!(git::git(&carrier, &["rev-parse", "--is-bare-repository"]), "true");

    // Again, for the same and for another key.
    bare.e2ee(
        bare.root(),
        &["carrier-init", "--remote", "new/carrier.git", "--key", "1.json"],
    )
    .bad(&["already initialized"]);
    init("new/carrier.git", "2.json").bad(&["already initialized"]);

    // A repository with work in it, by each way to write its place.
    let repo = Repo::empty(Format::Sha256);
    repo.write("file", "theirs");
    let theirs = repo.commit("theirs");
    for (number, remote) in [
        text(repo.path()).to_owned(),
        format!("e2ee::git+file://{}", repo.git_dir().display()),
        format!("git+{}", repo.path().display()),
    ]
    .iter()
    .enumerate()
    {
        init(remote, &format!("work-{number}.json")).good();
        assert_eq!(repo.git(&["rev-parse", "HEAD"]), theirs);
        assert_eq!(repo.git(&["status", "--porcelain"]), "");
        check_store(
            repo.path(),
            &bare.path(&format!("work-{number}.json")),
            &["--carrier", "--clean"],
        )
        .unwrap();
        repo.git(&["update-ref", "-d", BRANCH]);
    }

    std::fs::create_dir(bare.path("full")).unwrap();
    std::fs::write(bare.path("full/x"), "").unwrap();
    let said = init("full", "3.json").bad(&["no Git repository"]);
    assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    init("", "4.json").bad(&["empty"]);
}

#[test]
fn every_command_takes_a_carrier() {
    for format in Format::BOTH {
        let world = World::carrier(Format::Sha1);
        let source = world.source("vault", format);
        let url = world.url();
        let at = |args: &[&str]| {
            let mut all = args.to_vec();
            all.extend(["--key", text(&world.key), &url]);
            world.e2ee(source.path(), &all).good()
        };
        world
            .e2ee(source.path(), &["push", "vault", "main", "v1.0"])
            .good();
        world.git(source.path(), &["push", "-q", "vault", "topic"]).good();
        assert_eq!(world.generation(), 2);
        assert!(at(&["ls-remote"]).contains("refs/heads/topic"));
        assert!(at(&["status"]).contains("generation 2"));
        assert!(at(&["verify", "--full"]).contains("verified generation 2"));
        let clone = world.path("clone");
        let args = ["clone", "--key", text(&world.key), &url, text(&clone)];
        world.e2ee(world.root(), &args).good();
        assert_eq!(git::git(&clone, &["remote", "get-url", "origin"]), url);
        sound(&world, &clone);
        let id = commit(&world, source.path(), "next");
        world.git(source.path(), &["push", "-q", "vault", "main"]).good();
        world.e2ee(&clone, &["fetch"]).good();
        assert_eq!(git::git(&clone, &["rev-parse", "origin/main"]), id);
        let again = world.clone("with-git", &[]);
        world.git(&again, &["pull", "-q"]).good();
        assert_eq!(git::git(&again, &["rev-parse", "HEAD"]), id);
        sound(&world, &again);
        world
            .git(source.path(), &["push", "-q", "vault", ":topic"])
            .good();
        world
            .git(source.path(), &["push", "vault", "v1.0:refs/tags/v1.0", "topic"])
            .good();
        check_store(&world.store, &world.key, &["--carrier", "--clean"]).unwrap();
    }
}

#[test]
fn the_default_name_of_a_clone_is_that_of_the_carrier() {
    let world = World::carrier(Format::Sha1);
    let source = world.source("vault", Format::Sha1);
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    world
        .e2ee(
            world.root(),
            &["clone", "--key", text(&world.key), "git+carrier.git"],
        )
        .good();
    assert!(world.path("carrier/.git").is_dir());
}

#[test]
fn what_is_no_carrier_says_so() {
    let world = World::carrier(Format::Sha1);
    let source = world.source("vault", Format::Sha1);
    let list = |url: &str| world.e2ee(world.root(), &["ls-remote", "--key", text(&world.key), url]);
    let said = list("e2ee::git+/absent/carrier.git").bad(&["/absent/carrier.git"]);
    assert!(!std::path::Path::new("/absent").exists());
    assert_eq!(said.code, Some(1));
    // A repository without the branch.
    let said =
        list(&format!("e2ee::git+{}", source.path().display())).bad(&["not initialized", "carrier-init"]);
    assert_eq!(said.code, Some(10));
    list("e2ee::https://example.org/x").bad(&["e2ee::git+https://"]);
    // A branch of that name with something else on it is nobody's store yet, one that lost its head is somebody's.
    source.git(&["branch", "git-remote-e2ee", "main"]);
    let said = list(&format!("e2ee::git+{}", source.path().display())).bad(&["not initialized"]);
    assert_eq!(said.code, Some(10));
    source.git(&["checkout", "-q", "git-remote-e2ee"]);
    source.write("e2ee/manifests/x", "x");
    source.commit("x");
    let said = list(&format!("e2ee::git+{}", source.path().display())).bad(&["lost its HEAD"]);
    assert_eq!(said.code, Some(13));
}

#[test]
fn two_clients_pushing_in_a_loop_lose_nothing() {
    let world = World::carrier(Format::Sha1);
    let source = world.source("vault", Format::Sha1);
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    let clones = ["a", "b", "c"].map(|name| (name, world.clone(name, &[])));
    std::thread::scope(|scope| {
        for (name, clone) in &clones {
            let world = &world;
            scope.spawn(move || {
                for number in 0..6 {
                    commit(world, clone, &format!("{name} {number}"));
                    let branch = format!("HEAD:refs/heads/{name}-{number}");
                    // Nobody else touches that branch. Whoever is always the last is told so in the end.
                    while !world.git(clone, &["push", "-q", "origin", &branch]).ok {}
                }
            });
        }
    });
    assert_eq!(world.names().len(), 19);
    for (name, clone) in &clones {
        let id = git::git(clone, &["rev-parse", "HEAD"]);
        assert_eq!(world.value(&format!("refs/heads/{name}-5")), Some(id));
    }
    check_store(&world.store, &world.key, &["--carrier", "--clean"]).unwrap();
}
