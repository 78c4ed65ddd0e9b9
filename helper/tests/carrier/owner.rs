//! What the owner of the repository around the ciphertext allows, and the programs that ask for it.

use ingot_testdata::checker::check_store;
use ingot_testdata::git;
use ingot_testdata::repo::Format;

use super::BRANCH;
use super::shape::script;
use super::world::{World, commit, text};

#[test]
fn a_branch_that_is_checked_out_is_not_moved() {
    let world = World::carrier(Format::Sha1);
    let source = world.source("vault", Format::Sha1);
    let tip = git::git(&world.store, &["rev-parse", BRANCH]);
    let linked = world.path("linked");
    let branch = BRANCH.strip_prefix("refs/heads/").unwrap();
    world
        .git(&world.store, &["worktree", "add", "-q", text(&linked), branch])
        .good();
    let push = ["push", "vault", "main"];
    world
        .git(source.path(), &push)
        .bad(&["checked out", "receive.denyCurrentBranch"]);
    git::git(
        &world.store,
        &["config", "receive.denyCurrentBranch", "updateInstead"],
    );
    world.git(source.path(), &push).bad(&["updateInstead"]);
    assert_eq!(git::git(&world.store, &["rev-parse", BRANCH]), tip);
    git::git(&world.store, &["config", "receive.denyCurrentBranch", "ignore"]);
    world.git(source.path(), &push).good();
    assert_ne!(git::git(&world.store, &["rev-parse", BRANCH]), tip);
}

#[test]
fn hidden_branches_and_large_packs_are_refused() {
    let world = World::carrier(Format::Sha1);
    let source = world.source("vault", Format::Sha1);
    let push = ["push", "vault", "main"];
    let set = |name: &str, value: &str| git::git(&world.store, &["config", "--replace-all", name, value]);
    set("receive.hideRefs", "refs/heads");
    world.git(source.path(), &push).bad(&["hidden ref"]);
    set("receive.hideRefs", "refs/heads/git-remote");
    set("receive.maxInputSize", "1k");
    world
        .git(source.path(), &push)
        .bad(&["receive.maxInputSize is 1024"]);
    let left = std::fs::read_dir(world.store.join("objects"))
        .unwrap()
        .filter(|entry| {
            let name = entry.as_ref().unwrap().file_name();
            name.to_string_lossy().starts_with("tmp_")
        })
        .count();
    assert_eq!(left, 0);
    set("receive.maxInputSize", "1m");
    world.git(source.path(), &push).good();
}

#[test]
fn hooks_are_asked_and_told() {
    let world = World::carrier(Format::Sha1);
    let source = world.source("vault", Format::Sha1);
    let hooks = world.store.join("hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    let log = world.path("log");
    let say = |name: &str, more: &str| {
        // In quarantine the new commit can be read already.
        let body = format!(
            "read line\necho {name} $* $line >> '{}'\ngit cat-file -t \"${{3:-${{line#* }}}}\" >/dev/null 2>&1\n\
             echo \"{name} says hello\"\n{more}",
            log.display()
        );
        script(&hooks.join(name), &body);
    };
    say("pre-receive", "test -n \"$GIT_QUARANTINE_PATH\" || exit 1");
    say("update", "git cat-file -e \"$3^{commit}\" || exit 1");
    say("post-receive", "");
    say("post-update", "exit 7");
    let old = git::git(&world.store, &["rev-parse", BRANCH]);
    let said = world.git(source.path(), &["push", "vault", "main"]);
    assert!(said.ok, "{}", said.err);
    for name in ["pre-receive", "update", "post-receive", "post-update"] {
        assert!(
            said.err.contains(&format!("remote: {name} says hello")),
            "{}",
            said.err
        );
    }
    assert!(
        said.err.contains("warning: post-update hook declined"),
        "{}",
        said.err
    );
    let new = git::git(&world.store, &["rev-parse", BRANCH]);
    assert_eq!(
        std::fs::read_to_string(&log).unwrap(),
        format!(
            "pre-receive {old} {new} {BRANCH}\nupdate {BRANCH} {old} {new}\npost-receive {old} {new} {BRANCH}\n\
             post-update {BRANCH}\n"
        )
    );

    for name in ["pre-receive", "update"] {
        let path = hooks.join(name);
        let before = std::fs::read(&path).unwrap();
        script(&path, "echo no pushes on Sundays >&2; exit 1");
        commit(&world, source.path(), name);
        let said = world
            .git(source.path(), &["push", "vault", "main"])
            .bad(&["remote: no pushes on Sundays", &format!("{name} hook declined")]);
        assert!(!said.err.contains("post-receive says"), "{}", said.err);
        assert_eq!(git::git(&world.store, &["rev-parse", BRANCH]), new);
        std::fs::write(&path, before).unwrap();
    }
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    check_store(&world.store, &world.key, &["--carrier", "--clean"]).unwrap();
}

#[test]
fn a_lock_that_somebody_forgot_is_named() {
    let world = World::carrier(Format::Sha1);
    let source = world.source("vault", Format::Sha1);
    let lock = world.store.join(format!("{BRANCH}.lock"));
    std::fs::write(&lock, "").unwrap();
    let said = world.e2ee(source.path(), &["push", "vault", "main"]);
    assert_eq!(said.code, Some(11), "{}", said.err);
    assert!(said.err.contains("git-remote-e2ee.lock"), "{}", said.err);
    std::fs::remove_file(&lock).unwrap();
    world.e2ee(source.path(), &["push", "vault", "main"]).good();
}

#[test]
fn a_repository_of_somebody_else_is_left_alone() {
    // As root, which tests may run as, another owner can be made.
    let world = World::carrier(Format::Sha1);
    let changed = world.shell(world.root(), "chown -R 65534 carrier.git 2>/dev/null");
    if !changed.ok {
        return;
    }
    let url = world.url();
    let said = world.e2ee(world.root(), &["ls-remote", "--key", text(&world.key), &url]);
    assert!(!said.ok && said.err.contains("safe.directory"), "{}", said.err);
}
