//! Servers that refuse, lie, or are gone before they have answered; and other clients.

use ingot_testdata::checker::check_store;
use ingot_testdata::git;
use ingot_testdata::serve::cut::{Cut, Wire};
use ingot_testdata::serve::daemon::Daemon;
use ingot_testdata::serve::http::{Reply, Server};
use ingot_testdata::serve::ssh::write_program;

use super::places::{BRANCH, Served, Way};
use super::world::{commit, text};

#[test]
fn a_refusal_is_shown_in_the_servers_words() {
    for way in [Way::Daemon, Way::Http, Way::Ssh] {
        let served = Served::new(way);
        let world = &served.world;
        let source = served.source();
        let hook = world.store.join("hooks/pre-receive");
        std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
        write_program(
            &hook,
            "#!/bin/sh\necho 'quota of this project is used up' >&2\nexit 1\n",
        );
        let before = git::git(&world.store, &["rev-parse", BRANCH]);
        world.git(source.path(), &["push", "vault", "main"]).bad(&[
            "remote: quota of this project is used up",
            "pre-receive hook declined",
        ]);
        assert_eq!(git::git(&world.store, &["rev-parse", BRANCH]), before);
        std::fs::remove_file(&hook).unwrap();
        git::git(&world.store, &["config", "receive.maxInputSize", "1k"]);
        world
            .git(source.path(), &["push", "vault", "main"])
            .bad(&["git-remote-e2ee: "]);
        git::git(&world.store, &["config", "receive.maxInputSize", "0"]);
        world.git(source.path(), &["push", "-q", "vault", "main"]).good();
        served.sound();
    }
}

#[test]
fn clients_pushing_in_a_loop_lose_nothing() {
    let served = Served::new(Way::Daemon);
    let world = &served.world;
    let source = served.source();
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    let clones = ["a", "b"].map(|name| (name, served.clone(name)));
    std::thread::scope(|scope| {
        for (name, clone) in &clones {
            scope.spawn(move || {
                for number in 0..5 {
                    commit(world, clone, &format!("{name} {number}"));
                    let branch = format!("HEAD:refs/heads/{name}-{number}");
                    while !world.git(clone, &["push", "-q", "origin", &branch]).ok {}
                }
            });
        }
    });
    assert_eq!(world.names().len(), 11);
    for (name, clone) in &clones {
        let id = git::git(clone, &["rev-parse", "HEAD"]);
        assert_eq!(world.value(&format!("refs/heads/{name}-4")), Some(id));
    }
    served.sound();
}

#[test]
fn the_same_branch_is_fetch_first() {
    let served = Served::new(Way::Daemon);
    let world = &served.world;
    let source = served.source();
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    let clone = served.clone("clone");
    commit(world, &clone, "theirs");
    world.git(&clone, &["push", "-q", "origin", "HEAD:main"]).good();
    commit(world, source.path(), "mine");
    world
        .git(source.path(), &["push", "vault", "main"])
        .bad(&["fetch first"]);
}

/// Pushes through a wire that is cut, then without, and requires that what was said is what was so.
fn cut(cut: Cut) {
    let served = Served::new(Way::Daemon);
    let world = &served.world;
    let daemon = Daemon::start(world.root());
    let source = served.source();
    let wire = Wire::start(daemon.port(), cut);
    let url = format!("e2ee::git+git://127.0.0.1:{}/carrier.git", wire.port());
    source.git(&["remote", "set-url", "vault", &url]);
    let said = world.git(source.path(), &["push", "vault", "main"]);
    let there = world.value("refs/heads/main").is_some();
    let unsure = said.err.contains("is not known");
    assert!(
        said.ok == there || unsure,
        "{cut:?}: said {}, and it is {there}\n{}",
        said.ok,
        said.err
    );
    assert!(!said.err.contains("panicked"), "{}", said.err);
    // The same again, on a good line.
    source.git(&["remote", "set-url", "vault", &served.url]);
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    assert_eq!(world.generation(), 1);
    check_store(&world.store, &world.key, &["--carrier", "--clean"]).unwrap();
}

#[test]
fn connections_that_are_cut_at_every_stage() {
    // The requests before the push have a hundred bytes or so each; the push has some thousands.
    let places = [0u64, 60, 200, 400, 900, 2000, 4000, 6000];
    std::thread::scope(|scope| {
        for kind in [Cut::Answers, Cut::Requests] {
            for half in places.chunks(4) {
                scope.spawn(move || half.iter().for_each(|at| cut(kind(*at))));
            }
        }
        // Silent from the middle of the push on: a server that is not heard before is waited for, as Git waits.
        scope.spawn(|| [900, 2000, 4000].iter().for_each(|at| cut(Cut::Silence(*at))));
    });
}

#[test]
fn an_answer_that_got_lost_is_no_failure() {
    let served = Served::new(Way::Http);
    let world = &served.world;
    let source = served.source();
    // The server takes the push, and the connection ends before it has said so.
    let server = Server::with(world.root(), |request| {
        match request.method == "POST" && request.target.contains("git-receive-pack") {
            true => Reply::Forget,
            false => Reply::Backend,
        }
    });
    let url = format!("e2ee::git+{}", server.url("carrier.git"));
    source.git(&["remote", "set-url", "vault", &url]);
    world.git(source.path(), &["push", "vault", "main"]).good();
    assert_eq!(world.generation(), 1);
    commit(world, source.path(), "more");
    world.git(source.path(), &["push", "vault", "main"]).good();
    assert_eq!(world.generation(), 2);
    check_store(&world.store, &world.key, &["--carrier", "--clean"]).unwrap();
}

#[test]
fn what_is_no_git_server_says_so() {
    let served = Served::new(Way::Daemon);
    let world = &served.world;
    let list = |url: &str| world.e2ee(world.root(), &["ls-remote", "--key", text(&world.key), url]);
    for reply in [
        Reply::Raw(b"garbage".to_vec()),
        Reply::Raw(Vec::new()),
        Reply::Status(404, Vec::new(), "no such thing".into()),
        Reply::Status(200, Vec::new(), "<html>hello</html>".into()),
        Reply::Status(500, Vec::new(), "oh".into()),
    ] {
        let answer = reply.clone();
        let server = Server::with(world.root(), move |_| answer.clone());
        let said = list(&format!("e2ee::git+{}", server.url("carrier.git")));
        assert!(!said.ok, "{reply:?}");
        assert_eq!(said.err.lines().count(), 1, "{reply:?}: {}", said.err);
    }
    let said = list("e2ee::git+git://127.0.0.1:1/x");
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    let said = list("e2ee::git+gopher://127.0.0.1/x");
    assert!(!said.ok && said.err.lines().count() == 1, "{}", said.err);
}
