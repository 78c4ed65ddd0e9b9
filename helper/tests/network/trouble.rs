//! Servers that refuse, lie, or are gone before they have answered; and other clients.

use std::sync::Mutex;

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

/// A server on which somebody else pushes a branch between what a client is told and the next that it asks for.
fn moved_in_between(asks: &'static str, branch: &str) -> (Served, Server) {
    let served = Served::new(Way::Http);
    let world = &served.world;
    let other = served.source();
    other.git(&["remote", "set-url", "vault", &world.url()]);
    let refspec = format!("topic:{branch}");
    let program = Mutex::new(world.program(other.path(), &["push", "--quiet", "vault", &refspec]));
    let other = Mutex::new(Some(other));
    let server = Server::with(world.root(), move |request| {
        if request.method == "POST" && request.target.contains(asks) {
            // Once, and then the other's repository goes.
            if let Some(_other) = other.lock().unwrap().take() {
                assert!(program.lock().unwrap().status().unwrap().success());
            }
        }
        Reply::Backend
    });
    (served, server)
}

#[test]
fn the_branch_moves_between_two_rounds_of_a_push() {
    let (served, server) = moved_in_between("git-receive-pack", "other");
    let world = &served.world;
    let source = served.source();
    let url = format!("e2ee::git+{}", server.url("carrier.git"));
    source.git(&["remote", "set-url", "vault", &url]);
    // Nothing that is pushed was touched: it goes on by itself.
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    assert_eq!(world.names(), ["refs/heads/main", "refs/heads/other"]);
    assert_eq!(world.generation(), 2);
    check_store(&world.store, &world.key, &["--carrier", "--clean"]).unwrap();

    let (served, server) = moved_in_between("git-receive-pack", "main");
    let world = &served.world;
    let source = served.source();
    let url = format!("e2ee::git+{}", server.url("carrier.git"));
    source.git(&["remote", "set-url", "vault", &url]);
    world
        .git(source.path(), &["push", "vault", "main"])
        .bad(&["fetch first"]);
    assert_eq!(world.generation(), 1);
    check_store(&world.store, &world.key, &["--carrier", "--clean"]).unwrap();
}

#[test]
fn the_branch_moves_between_two_rounds_of_a_fetch() {
    for version in ["0", "2"] {
        let (served, server) = moved_in_between("git-upload-pack", "other");
        let world = &served.world;
        let source = served.source();
        source.git(&["remote", "set-url", "vault", &world.url()]);
        world.git(source.path(), &["push", "-q", "vault", "main"]).good();
        let config = world.path("home/.gitconfig");
        let set = ["config", "-f", text(&config), "protocol.version", version];
        git::git(world.root(), &set);
        let url = format!("e2ee::git+{}", server.url("carrier.git"));
        let clone = world.path("clone");
        let args = ["clone", "--key", text(&world.key), &url, text(&clone)];
        world.e2ee(world.root(), &args).good();
        super::world::sound(world, &clone);
        world.e2ee(&clone, &["fetch"]).good();
        let names = world.e2ee(&clone, &["ls-remote"]).good();
        assert!(names.contains("refs/heads/other"), "{version}: {names}");
    }
}

#[test]
fn packs_that_claim_what_is_not_there() {
    let served = Served::new(Way::Http);
    let world = &served.world;
    let source = served.source();
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    // One object of 1 TiB; two thousand million of them; a length that goes on for ever.
    let mut blob = b"PACK\0\0\0\x02\0\0\0\x01".to_vec();
    blob.extend([0xb0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40, 0x78, 0x9c, 1, 0, 0]);
    let many = b"PACK\0\0\0\x02\x7f\xff\xff\xff".to_vec();
    let mut endless = b"PACK\0\0\0\x02\0\0\0\x01".to_vec();
    endless.extend([0xff; 64]);
    for pack in [blob, many, endless] {
        let mut body = b"000dpackfile\n".to_vec();
        body.extend(format!("{:04x}\x01", pack.len() + 5).into_bytes());
        body.extend(&pack);
        body.extend(b"0000");
        let mut answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-result\r\nContent-Length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        answer.extend(body);
        let fetches = std::sync::atomic::AtomicUsize::new(0);
        let server = Server::with(world.root(), move |request| {
            let asks = request.method == "POST" && request.target.contains("git-upload-pack");
            // The first question is for references.
            match asks && fetches.fetch_add(1, std::sync::atomic::Ordering::SeqCst) > 0 {
                true => Reply::Raw(answer.clone()),
                false => Reply::Backend,
            }
        });
        let url = format!("e2ee::git+{}", server.url("carrier.git"));
        let clone = world.path("clone");
        let line = format!(
            "ulimit -v 1000000; git-e2ee clone --key '{}' '{url}' '{}'",
            world.key.display(),
            clone.display()
        );
        let said = world.shell(world.root(), &line);
        assert!(!said.ok && !clone.exists(), "{}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
        assert!(!said.err.contains("panicked"), "{}", said.err);
        let left = std::fs::read_dir(world.path("home/.cache/git-remote-e2ee/carrier")).unwrap();
        for cache in left
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir())
        {
            let entries = std::fs::read_dir(cache).unwrap();
            let spools = entries.filter(|entry| {
                let name = entry.as_ref().unwrap().file_name();
                name.to_string_lossy().starts_with("spool-")
            });
            assert_eq!(spools.count(), 0);
        }
    }
}

#[test]
fn parts_that_come_as_deltas_are_read() {
    let served = Served::new(Way::Daemon);
    let world = &served.world;
    let store = &world.store;
    let source = served.source();
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    // A file of somebody else on the branch resembles a part, which the server then keeps as what differs.
    let parts = git::git(store, &["ls-tree", "-r", "--object-only", BRANCH, "e2ee/objects"]);
    let part = parts.lines().next().unwrap();
    let mut larger = git::with_input(store, &["cat-file", "blob", part], b"");
    larger.extend_from_slice(b"and some more");
    let id = git::with_input(store, &["hash-object", "-w", "--stdin"], &larger);
    let stream = format!(
        "commit {BRANCH}\ncommitter a <a@example.org> 1 +0000\ndata 0\nfrom {BRANCH}^0\nM 100644 {} notes\n\n",
        String::from_utf8(id).unwrap().trim()
    );
    git::with_input(store, &["fast-import", "--quiet"], stream.as_bytes());
    git::git(
        store,
        &["repack", "-q", "-a", "-d", "-f", "--window=50", "--depth=50"],
    );
    let bases = git::with_input(
        store,
        &["cat-file", "--batch-check=%(deltabase)"],
        format!("{part}\n").as_bytes(),
    );
    assert!(!bases.starts_with(b"0000"), "not a delta");
    for (number, filter) in [false, true].into_iter().enumerate() {
        served.filter(filter);
        let _ = std::fs::remove_dir_all(world.path("home/.cache"));
        let clone = served.clone(&format!("clone-{number}"));
        super::world::sound(world, &clone);
        commit(world, &clone, &format!("more {number}"));
        world.git(&clone, &["push", "-q", "origin", "HEAD:main"]).good();
    }
    check_store(store, &world.key, &["--shared-carrier", "--clean"]).unwrap();
}
