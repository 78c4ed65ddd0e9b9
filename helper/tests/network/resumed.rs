//! Large pushes that are interrupted go on where they were, and only if they are still what is wanted.

use std::sync::Arc;

use ingot_engine::durable;
use ingot_engine::repository::Settings;
use ingot_engine::transport::{Address, Direction, Options, Remote, Silently};
use ingot_helper::storage::Storage as _;
use ingot_helper::storage::carrier::{Carrier, NetworkPlace, UPLOADS};
use ingot_testdata::git;
use ingot_testdata::serve::cut::{Cut, Wire};
use ingot_testdata::serve::daemon::Daemon;
use ingot_testdata::serve::ssh::write_program;

use super::places::{BRANCH, Served, Way};
use super::world::{commit, sound};

/// Bytes that nobody can compress, as many MiB.
fn noise(mib: usize) -> Vec<u8> {
    let mut state = 1u64;
    (0..(mib << 20) / 8)
        .flat_map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state ^ state >> 31).to_le_bytes()
        })
        .collect()
}

/// Branches with parts of pushes that are not complete.
fn uploads(served: &Served) -> Vec<String> {
    let listed = git::git(
        &served.world.store,
        &[
            "for-each-ref",
            "--format=%(refname)",
            UPLOADS.trim_end_matches('/'),
        ],
    );
    listed.lines().map(str::to_owned).collect()
}

/// Lets the server take the first group of a large push and no more.
fn full_after_the_first_group(served: &Served) {
    let hook = served.world.store.join("hooks/update");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    // Moving a branch is refused; making and deleting one is not.
    let body = format!(
        "#!/bin/sh\ncase $1-$2-$3 in {UPLOADS}*-*[1-9a-f]*-*[1-9a-f]*) echo 'no room left' >&2; exit 1;; esac\n"
    );
    write_program(&hook, &body);
}

fn free_again(served: &Served) {
    std::fs::remove_file(served.world.store.join("hooks/update")).unwrap();
}

/// The store behind a URL, as doctors look at it.
fn carrier(served: &Served) -> Carrier {
    let settings = Settings::load().unwrap();
    let url = served.url.strip_prefix("e2ee::git+").unwrap();
    let remote = |direction| {
        let address = Address::resolve(url.into(), &settings.config(), direction).unwrap();
        let options = Options::read(&settings.config(), &address).unwrap();
        Remote::new(address, options, Arc::new(Silently))
    };
    Carrier::network(NetworkPlace {
        fetch: remote(Direction::Fetch),
        push: remote(Direction::Push),
        cache: served.world.path("home/.cache/git-remote-e2ee/carrier"),
        fs: durable::real(),
    })
    .unwrap()
}

#[test]
fn only_the_rest_is_sent_after_a_connection_was_cut() {
    let mut served = Served::new(Way::Daemon);
    let source = served.source();
    source.write("noise", noise(140));
    source.commit("large");
    let daemon = Daemon::start(served.world.root());
    let wire = Wire::start(daemon.port(), Cut::Never);
    served.url = format!("e2ee::git+git://127.0.0.1:{}/carrier.git", wire.port());
    let (served, world) = (&served, &served.world);
    source.git(&["remote", "set-url", "vault", &served.url]);
    let push = |cut: Cut| {
        wire.cut_next(cut);
        let before = wire.requests();
        let said = world.git(source.path(), &["push", "-q", "vault", "main"]);
        (said, (wire.requests() - before) >> 20)
    };
    // The first group has 64 MiB, what follows has more than 70.
    let (said, sent) = push(Cut::Requests(70 << 20));
    assert!(!said.ok && sent > 130, "{sent} MiB\n{}", said.err);
    assert_eq!(world.generation(), 0);
    let branch = uploads(served).pop().expect("a branch with the first group");
    let commits = git::git(&world.store, &["rev-list", "--count", &branch]);
    assert_eq!(commits, "1");

    let found = carrier(served).leftovers().unwrap();
    assert!(
        found.len() == 1 && found[0].name == branch && found[0].resumable,
        "{found:?}"
    );

    // Cut again at once: nothing gets lost by that.
    let (said, _) = push(Cut::Requests(1 << 20));
    assert!(!said.ok, "{}", said.err);
    let (said, sent) = push(Cut::Never);
    said.good();
    assert!((70..85).contains(&sent), "{sent} MiB");
    assert_eq!(world.generation(), 1);
    // It is the pack that was sealed first.
    let stored = git::git(
        &world.store,
        &["ls-tree", "-r", "--name-only", BRANCH, "e2ee/objects"],
    );
    let id = branch.strip_prefix(UPLOADS).unwrap();
    assert!(stored.contains(&format!("/{id}")), "{id} is not in {stored}");
    assert_eq!(uploads(served), [""; 0]);
    served.sound();
    let clone = served.clone("clone");
    assert!(std::fs::read(clone.join("noise")).unwrap() == noise(140));
    sound(world, &clone);
    commit(world, source.path(), "more");
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    served.sound();
}

#[test]
fn what_does_not_fit_any_more_is_thrown_away() {
    let served = Served::new(Way::Http);
    let world = &served.world;
    let source = served.source();
    source.write("noise", noise(70));
    source.commit("large");
    let push = || world.git(source.path(), &["push", "vault", "main"]);
    let interrupted = || {
        full_after_the_first_group(&served);
        push().bad(&["remote: no room left", "refuses the push"]);
        free_again(&served);
        uploads(&served).pop().expect("the first group")
    };
    let kept = || served.cache().join("unfinished");
    let first = interrupted();
    assert!(kept().join("note.json").exists());
    let found = carrier(&served).leftovers().unwrap();
    assert!(found.len() == 1 && found[0].resumable, "{found:?}");

    // The branch is another one now.
    commit(world, source.path(), "later");
    let second = interrupted();
    assert_ne!(first, second, "it was sealed anew");
    assert_eq!(uploads(&served), std::slice::from_ref(&second));

    // What was kept has changed on the disk.
    let group = kept().join("group-1.pack");
    let mut bytes = std::fs::read(&group).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::remove_file(&group).unwrap();
    std::fs::write(&group, bytes).unwrap();
    interrupted();
    let third = uploads(&served).into_iter().find(|branch| *branch != second);
    let third = third.expect("it was sealed anew");
    // Nobody knows of the second any more; whoever looks finds it, and can remove it.
    assert_eq!(carrier(&served).leftovers().unwrap().len(), 2);
    let doctor = |args: &[&str]| {
        world
            .e2ee(source.path(), &[&["doctor", "vault"], args].concat())
            .out
    };
    let said = doctor(&[]);
    assert!(
        said.contains("2 branches of interrupted pushes") && said.contains(&second),
        "{said}"
    );
    let said = doctor(&["--remove-stale"]);
    assert!(
        said.contains("removed 1 branches of interrupted pushes"),
        "{said}"
    );
    assert_eq!(uploads(&served), std::slice::from_ref(&third));

    // Somebody else moved the head.
    let other = served.source();
    let elsewhere = "GIT_REMOTE_E2EE_CACHE_DIR=../elsewhere git push -q vault main:other";
    world.shell(other.path(), elsewhere).good();
    push().good();
    assert_eq!(world.names(), ["refs/heads/main", "refs/heads/other"]);
    assert_eq!(uploads(&served), [""; 0]);
    served.sound();
}

#[test]
fn a_server_that_takes_no_other_branch_gets_everything_at_once() {
    let served = Served::new(Way::Http);
    let world = &served.world;
    let source = served.source();
    source.write("noise", noise(70));
    source.commit("large");
    let hook = world.store.join("hooks/update");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    write_program(&hook, &format!("#!/bin/sh\ntest \"$1\" = {BRANCH}\n"));
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    assert_eq!(world.generation(), 1);
    assert_eq!(uploads(&served), [""; 0]);
    served.sound();
    let clone = served.clone("clone");
    assert!(std::fs::read(clone.join("noise")).unwrap() == noise(70));
}
