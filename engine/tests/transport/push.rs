//! Pushes to Git's own servers.

use std::convert::Infallible;
use std::io::Write;
use std::path::Path;

use ingot_engine::transport::{Command, Error, Push, PushError, Remote, Report, Status};
use ingot_testdata::git;
use ingot_testdata::repo::Format;
use ingot_testdata::serve::ssh::write_program;

use crate::support::{Client, Host, Kind, bstr, id, refs_of};

fn push(remote: &Remote, push: Push, pack: &[u8]) -> Result<Report, PushError<Infallible>> {
    let to = remote.receive_pack().unwrap();
    to.push(push, |out| {
        // Broken connections are found in the answer.
        let _ = out.write_all(pack);
        Ok(())
    })
}

fn commands(commands: Vec<Command>) -> Push {
    Push {
        commands,
        ..Push::default()
    }
}

fn done(report: &Report) -> Vec<bool> {
    assert_eq!(report.unpack, Ok(()));
    let done = |status: &Status| matches!(status, Status::Done { .. });
    report.refs.iter().map(|known| done(&known.status)).collect()
}

fn hook(bare: &Path, name: &str, text: &str) {
    let folder = bare.join("hooks");
    std::fs::create_dir_all(&folder).unwrap();
    write_program(&folder.join(name), &format!("#!/bin/sh\n{text}\n"));
}

#[test]
fn references_are_made_moved_and_deleted() {
    let host = Host::new();
    for format in Format::BOTH {
        for kind in Kind::ALL {
            let name = format!("{kind:?}-{}.git", format.name());
            let bare = host.bare(&name, format);
            let client = Client::new(format);
            let url = host.reach(kind, &name, &client);
            let remote = client.remote(&url);
            client.repo.write("file", "1");
            let first = client.repo.commit("one");
            let report = push(
                &remote,
                commands(vec![Command::create("refs/heads/main", id(&first))]),
                &client.pack(&first),
            )
            .unwrap();
            assert_eq!(done(&report), [true]);
            git::fsck(&bare);

            client.repo.write("file", "2");
            let second = client.repo.commit("two");
            let report = push(
                &remote,
                commands(vec![
                    Command::update("refs/heads/main", id(&first), id(&second)),
                    Command::create("refs/heads/other", id(&first)),
                ]),
                &client.pack(&format!("{second}\n^{first}\n")),
            )
            .unwrap();
            assert_eq!(done(&report), [true, true]);
            let to = remote.receive_pack().unwrap();
            assert_eq!(to.find(bstr("refs/heads/main")), Some(id(&second)));
            assert_eq!(to.refs().len(), 2);
            drop(to);

            // Without a pack.
            let report = remote
                .receive_pack()
                .unwrap()
                .push(
                    commands(vec![Command::delete("refs/heads/other", id(&first))]),
                    |_| -> Result<(), Infallible> { panic!("a deletion needs no pack") },
                )
                .unwrap();
            assert_eq!(done(&report), [true]);
            let refs = refs_of(&bare);
            assert_eq!(refs.get("refs/heads/main"), Some(&second));
            assert!(!refs.contains_key("refs/heads/other"));
            git::fsck(&bare);
        }
    }
}

#[test]
fn refusals_come_back_in_the_words_of_the_server() {
    let host = Host::new();
    for kind in Kind::ALL {
        let name = format!("{kind:?}.git");
        let bare = host.bare(&name, Format::Sha1);
        let client = Client::new(Format::Sha1);
        let url = host.reach(kind, &name, &client);
        let remote = client.remote(&url);
        client.repo.write("file", "1");
        let first = client.repo.commit("one");
        client.repo.write("file", "2");
        let second = client.repo.commit("two");
        let to_main =
            |old: &str, new: &str| commands(vec![Command::update("refs/heads/main", id(old), id(new))]);
        push(
            &remote,
            commands(vec![Command::create("refs/heads/main", id(&second))]),
            &client.pack(&second),
        )
        .unwrap();

        // The old value is not what the server has.
        let report = push(&remote, to_main(&first, &second), &client.pack("")).unwrap();
        assert!(
            matches!(&report.refs[0].status, Status::Rejected(_)),
            "{kind:?} {report:?}"
        );
        // Not forward.
        git::git(&bare, &["config", "receive.denyNonFastForwards", "true"]);
        let report = push(&remote, to_main(&second, &first), &client.pack("")).unwrap();
        assert_eq!(report.refs[0].status, Status::Rejected("non-fast-forward".into()));
        // A deletion.
        git::git(&bare, &["config", "receive.denyDeletes", "true"]);
        let delete = commands(vec![Command::delete("refs/heads/main", id(&second))]);
        let report = push(&remote, delete, b"").unwrap();
        assert_eq!(
            report.refs[0].status,
            Status::Rejected("deletion prohibited".into())
        );

        // A hook that speaks; one of two references.
        hook(
            &bare,
            "update",
            "echo checking $1; echo broken >&2; test $1 != refs/heads/bad",
        );
        let two = vec![
            Command::create("refs/heads/good", id(&second)),
            Command::create("refs/heads/bad", id(&second)),
        ];
        let report = push(&remote, commands(two.clone()), &client.pack("")).unwrap();
        assert!(matches!(report.refs[0].status, Status::Done { .. }));
        assert_eq!(report.refs[1].status, Status::Rejected("hook declined".into()));
        let heard = client.heard.remote();
        assert!(
            heard.contains("checking refs/heads/good") && heard.contains("broken"),
            "{heard}"
        );

        // All or nothing.
        let mut two = two;
        two[0].name = "refs/heads/good2".into();
        let atomic = Push {
            atomic: true,
            ..commands(two)
        };
        let report = push(&remote, atomic, &client.pack("")).unwrap();
        assert!(
            report
                .refs
                .iter()
                .all(|known| matches!(known.status, Status::Rejected(_)))
        );
        assert!(!refs_of(&bare).contains_key("refs/heads/good2"));

        // Before anything is unpacked for good.
        hook(
            &bare,
            "pre-receive",
            "echo \"option ${GIT_PUSH_OPTION_0}\"; echo protected >&2; exit 1",
        );
        client.repo.write("file", "3");
        let third = client.repo.commit("three");
        let with_option = Push {
            options: vec!["ci.skip=1".into()],
            ..to_main(&second, &third)
        };
        let report = push(
            &remote,
            with_option,
            &client.pack(&format!("{third}\n^{second}\n")),
        )
        .unwrap();
        assert_eq!(
            report.refs[0].status,
            Status::Rejected("pre-receive hook declined".into())
        );
        let heard = client.heard.remote();
        assert!(
            heard.contains("option ci.skip=1") && heard.contains("protected"),
            "{heard}"
        );
        assert_eq!(refs_of(&bare)["refs/heads/main"], second);
    }
}

#[test]
fn a_bad_pack_is_not_taken() {
    let host = Host::new();
    for kind in Kind::ALL {
        let name = format!("{kind:?}.git");
        let bare = host.bare(&name, Format::Sha1);
        let client = Client::new(Format::Sha1);
        let remote = client.remote(&host.reach(kind, &name, &client));
        client.repo.write("file", "1");
        let first = client.repo.commit("one");
        let create = || commands(vec![Command::create("refs/heads/main", id(&first))]);
        let mut pack = client.pack(&first);
        let last = pack.len() - 1;
        pack[last] ^= 1;
        let report = push(&remote, create(), &pack).unwrap();
        assert!(report.unpack.is_err(), "{kind:?}");
        assert!(matches!(report.refs[0].status, Status::Rejected(_)));

        // One that ends in the middle, because it could not be made to the end.
        pack[last] ^= 1;
        let half = &pack[..pack.len() / 2];
        let to = remote.receive_pack().unwrap();
        let error = to
            .push(create(), |out| {
                out.write_all(half).unwrap();
                Err("out of ideas")
            })
            .unwrap_err();
        assert!(
            matches!(error, PushError::Pack("out of ideas")),
            "{kind:?} {error:?}"
        );
        // An incomplete one has no tip.
        client.repo.write("file", "2");
        let second = client.repo.commit("two");
        let lonely = client.pack(&format!("{second}\n^{first}\n"));
        let thin = commands(vec![Command::create("refs/heads/main", id(&second))]);
        let report = push(&remote, thin, &lonely).unwrap();
        assert!(matches!(report.refs[0].status, Status::Rejected(_)), "{report:?}");
        assert_eq!(refs_of(&bare).len(), 0, "{kind:?}");
        // The next one is none the worse for it.
        assert_eq!(done(&push(&remote, create(), &pack).unwrap()), [true]);
        git::fsck(&bare);
    }
}

#[test]
fn requests_that_make_no_sense_are_not_sent() {
    let host = Host::new();
    let bare = host.bare("x.git", Format::Sha1);
    let client = Client::new(Format::Sha1);
    let remote = client.remote(&host.daemon().url("x.git"));
    let one = id(&"1".repeat(40));
    let null = one.kind().null();
    let request_error = |push_: Push| match push(&remote, push_, b"").unwrap_err() {
        PushError::Remote(error) => error,
        PushError::Pack(never) => match never {},
    };
    for bad in [
        vec![],
        vec![Command::create("refs/heads/a b", one)],
        vec![Command::create("refs/heads/a\n", one)],
        vec![Command::update("refs/heads/a", null, null)],
        vec![
            Command::create("refs/heads/a", one),
            Command::delete("refs/heads/a", one),
        ],
    ] {
        let error = request_error(commands(bad));
        assert!(matches!(error, Error::Request { .. }), "{error}");
    }
    let sha256 = id(&"1".repeat(64));
    let error = request_error(commands(vec![Command::create("refs/heads/a", sha256)]));
    assert!(matches!(error, Error::ObjectFormat { .. }), "{error}");

    git::git(&bare, &["config", "receive.advertiseAtomic", "false"]);
    git::git(&bare, &["config", "receive.advertisePushOptions", "false"]);
    let create = commands(vec![Command::create("refs/heads/a", one)]);
    let error = request_error(Push {
        atomic: true,
        ..create.clone()
    });
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    let error = request_error(Push {
        options: vec!["x".into()],
        ..create
    });
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
}

#[test]
fn a_server_that_takes_no_pushes_says_so() {
    let host = Host::new();
    let bare = host.bare("x.git", Format::Sha1);
    git::git(&bare, &["config", "daemon.receivepack", "false"]);
    git::git(&bare, &["config", "http.receivepack", "false"]);
    for kind in [Kind::Git, Kind::Http] {
        let client = Client::new(Format::Sha1);
        let url = host.reach(kind, "x.git", &client);
        client.remote(&url).upload_pack().unwrap();
        let error = client.remote(&url).receive_pack().unwrap_err();
        assert!(matches!(error, Error::Refused { .. }), "{kind:?}: {error}");
    }
}

#[test]
fn objects_that_the_server_borrows_are_told() {
    let host = Host::new();
    let source = host.bare("source.git", Format::Sha1);
    let client = Client::new(Format::Sha1);
    let tip = client.repo.commit("one");
    client
        .repo
        .git(&["push", "-q", source.to_str().unwrap(), "HEAD:refs/heads/main"]);
    let fork = host.bare("fork.git", Format::Sha1);
    std::fs::write(
        fork.join("objects/info/alternates"),
        format!("{}\n", source.join("objects").display()),
    )
    .unwrap();
    for kind in Kind::ALL {
        let url = host.reach(kind, "fork.git", &client);
        let to = client.remote(&url).receive_pack().unwrap();
        assert_eq!(to.refs(), []);
        assert_eq!(to.haves(), [id(&tip)], "{kind:?}");
    }
}

#[test]
fn large_packs_stream() {
    let host = Host::new();
    for kind in Kind::ALL {
        let name = format!("{kind:?}.git");
        let bare = host.bare(&name, Format::Sha1);
        let client = Client::new(Format::Sha1);
        let remote = client.remote(&host.reach(kind, &name, &client));
        let mut numbers = ingot_testdata::random::Numbers::new(1);
        for file in 0..3 {
            let noise: Vec<u8> = (0..250_000).flat_map(|_| numbers.draw().to_le_bytes()).collect();
            client.repo.write(&format!("noise{file}"), noise);
        }
        let tip = client.repo.commit("noise");
        let pack = client.pack(&tip);
        assert!(pack.len() > 5 << 20);
        let to = remote.receive_pack().unwrap();
        let create = commands(vec![Command::create("refs/heads/main", id(&tip))]);
        let report = to
            .push(create, |out: &mut dyn Write| -> std::io::Result<()> {
                // Pieces of odd sizes.
                for piece in pack.chunks(70_001) {
                    out.write_all(piece)?;
                }
                Ok(())
            })
            .unwrap();
        assert_eq!(done(&report), [true]);
        git::fsck(&bare);
        // And back.
        let other = Client::new(Format::Sha1);
        let url = host.reach(kind, &name, &other);
        let mut from = other.remote(&url).upload_pack().unwrap();
        other.fetch(&mut from, ingot_engine::transport::Fetch::new(vec![id(&tip)]));
        other.repo.git(&["update-ref", "refs/heads/main", &tip]);
        git::fsck(other.repo.path());
    }
    let posts: Vec<_> = host
        .http()
        .requests()
        .into_iter()
        .filter(|request| request.target.ends_with("git-receive-pack") && request.method == "POST")
        .collect();
    assert_eq!(posts.len(), 2, "a probe, and the push");
    assert_eq!(posts[0].body, b"0000");
    assert_eq!(posts[1].header("transfer-encoding"), Some("chunked"));
}
