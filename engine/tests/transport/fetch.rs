//! References and packs from Git's own servers.

use ingot_engine::transport::{Error, Fetch, Haves};
use ingot_testdata::git;
use ingot_testdata::repo::{Format, Repo};

use crate::support::{Client, Host, Kind, bstr, id, receive, refs_map, refs_of};

/// Some commits, an annotated tag, two branches.
fn history(format: Format) -> Repo {
    let repo = Repo::empty(format);
    for number in 0..40 {
        repo.write(
            &format!("dir{}/file", number % 7),
            format!("{number}\n").repeat(200),
        );
        repo.commit(&format!("commit {number}"));
    }
    repo.git(&["tag", "-a", "-m", "one", "v1"]);
    repo.git(&["branch", "side", "HEAD~5"]);
    repo
}

#[test]
fn whole_repositories_and_what_is_new_come_over_every_connection() {
    let host = Host::new();
    for format in Format::BOTH {
        let source = history(format);
        let name = format!("{}.git", format.name());
        let bare = host.copy(&name, &source, format);
        for kind in Kind::ALL {
            let versions: &[&str] = match (format, kind) {
                (Format::Sha1, Kind::Git) => &["0", "1", "2"],
                (Format::Sha1, _) => &["0", "2"],
                (Format::Sha256, _) => &["2"],
            };
            for version in versions {
                let client = Client::new(format);
                client.config("protocol.version", version);
                let url = host.reach(kind, &name, &client);
                let remote = client.remote(&url);
                let mut from = remote.upload_pack().unwrap();
                let refs = from.refs(&[]).unwrap();
                assert_eq!(refs_map(&refs), refs_of(&bare), "{kind:?} {version}");
                let tag = refs.iter().find(|known| known.name == "refs/tags/v1").unwrap();
                let peeled = source.git(&["rev-parse", "v1^{commit}"]);
                assert_eq!(tag.peeled.unwrap().to_string(), peeled);
                let head = refs.iter().find(|known| known.name == "HEAD").unwrap();
                assert_eq!(head.symref_target.as_ref().unwrap(), "refs/heads/main");

                // First half of the history, then the rest in every way to say what is here.
                let old = source.git(&["rev-parse", "main~20"]);
                source.git(&["push", "-q", bare.to_str().unwrap(), "main~20:refs/heads/old"]);
                let mut from = remote.upload_pack().unwrap();
                client.fetch(&mut from, Fetch::new(vec![id(&old)]));
                client.repo.git(&["update-ref", "refs/heads/old", &old]);
                let main = source.git(&["rev-parse", "main"]);
                let whole = client.repo.git(&["rev-list", "--all"]).lines().count();
                assert_eq!(whole, 20);

                let known = Fetch {
                    haves: Haves::Known(vec![id(&old)]),
                    thin: true,
                    ..Fetch::new(vec![id(&main)])
                };
                let first = client.fetch(&mut from, known);
                // Newest first, among them many that the server has never seen.
                for number in 0..300 {
                    client.repo.write("own", number.to_string());
                    if number % 100 == 0 {
                        client.repo.commit("own");
                    }
                }
                let ids = client.repo.git(&["rev-list", "HEAD", "refs/heads/old"]);
                let ids: Vec<_> = ids.lines().map(id).collect();
                let mut candidates = ids.into_iter();
                let request = Fetch {
                    haves: Haves::Candidates(&mut candidates),
                    thin: true,
                    include_tag: true,
                    ..Fetch::new(vec![id(&main)])
                };
                let second = client.fetch(&mut from, request);
                assert!(
                    second < first + 500,
                    "{kind:?} {version}: {second} bytes after negotiation, {first} without"
                );
                client.repo.git(&["update-ref", "refs/heads/main2", &main]);
                git::fsck(client.repo.path());
            }
        }
    }
}

#[test]
fn prefixes_limit_what_is_told() {
    let host = Host::new();
    let source = history(Format::Sha1);
    host.copy("x.git", &source, Format::Sha1);
    for version in ["0", "2"] {
        let client = Client::new(Format::Sha1);
        client.config("protocol.version", version);
        let mut from = client.remote(&host.daemon().url("x.git")).upload_pack().unwrap();
        let refs = from.refs(&[bstr("refs/heads/s"), bstr("refs/tags/")]).unwrap();
        let names: Vec<_> = refs.iter().map(|known| known.name.to_string()).collect();
        assert_eq!(names, ["refs/heads/side", "refs/tags/v1"]);
        assert!(from.refs(&[bstr("refs/none/")]).unwrap().is_empty());
    }
}

#[test]
fn blobs_can_be_left_out_and_fetched_alone() {
    let host = Host::new();
    let source = history(Format::Sha1);
    let bare = host.copy("x.git", &source, Format::Sha1);
    let main = source.git(&["rev-parse", "main"]);
    let blob = source.git(&["rev-parse", "main:dir1/file"]);
    for (version, allowed) in [("0", true), ("2", true), ("2", false)] {
        let value = if allowed { "true" } else { "false" };
        git::git(&bare, &["config", "uploadpack.allowFilter", value]);
        git::git(&bare, &["config", "uploadpack.allowAnySHA1InWant", value]);
        for kind in Kind::ALL {
            let client = Client::new(Format::Sha1);
            client.config("protocol.version", version);
            let url = host.reach(kind, "x.git", &client);
            let mut from = client.remote(&url).upload_pack().unwrap();
            assert_eq!(from.offers_filter(), allowed);
            assert!(from.offers_any_want() || !allowed);
            let request = Fetch {
                filter: Some("blob:none"),
                ..Fetch::new(vec![id(&main)])
            };
            client.fetch(&mut from, request);
            let has_blob = git::run(client.repo.path(), &["cat-file", "-e", &blob])
                .status
                .success();
            assert_eq!(has_blob, !allowed, "{kind:?} {version}");
            if allowed {
                client.fetch(&mut from, Fetch::new(vec![id(&blob)]));
                client.repo.git(&["cat-file", "-e", &blob]);
            }
        }
    }
}

#[test]
fn history_can_be_cut_off() {
    let host = Host::new();
    let source = history(Format::Sha1);
    host.copy("x.git", &source, Format::Sha1);
    let main = source.git(&["rev-parse", "main"]);
    for kind in Kind::ALL {
        let client = Client::new(Format::Sha1);
        let url = host.reach(kind, "x.git", &client);
        let mut from = client.remote(&url).upload_pack().unwrap();
        let request = Fetch {
            depth: Some(2),
            ..Fetch::new(vec![id(&main)])
        };
        client.fetch(&mut from, request);
        let oldest = source.git(&["rev-parse", "main~1"]);
        std::fs::write(client.repo.git_dir().join("shallow"), oldest + "\n").unwrap();
        client.repo.git(&["update-ref", "refs/heads/main", &main]);
        assert_eq!(client.repo.git(&["rev-list", "--count", "main"]), "2");
        git::fsck(client.repo.path());
    }
}

#[test]
fn an_empty_repository_has_no_references() {
    let host = Host::new();
    for format in Format::BOTH {
        let name = format!("empty-{}.git", format.name());
        host.bare(&name, format);
        for kind in Kind::ALL {
            for version in ["0", "2"] {
                let client = Client::new(format);
                client.config("protocol.version", version);
                let url = host.reach(kind, &name, &client);
                let mut from = client.remote(&url).upload_pack().unwrap();
                assert_eq!(from.refs(&[]).unwrap(), []);
                // In version 0, an empty repository does not say.
                if version == "2" {
                    assert_eq!(from.object_format().to_string(), format.name());
                }
                let to = client.remote(&url).receive_pack().unwrap();
                assert_eq!(to.refs(), []);
                assert_eq!(to.object_format().to_string(), format.name());
            }
        }
    }
}

#[test]
fn what_is_not_there_is_refused_in_the_words_of_the_server() {
    let host = Host::new();
    let source = history(Format::Sha1);
    host.copy("x.git", &source, Format::Sha1);
    for kind in Kind::ALL {
        let client = Client::new(Format::Sha1);
        let url = host.reach(kind, "none.git", &client);
        let error = client.remote(&url).upload_pack().unwrap_err();
        match kind {
            // The stand-in for ssh has said why, to the user.
            Kind::Ssh => assert!(matches!(error, Error::Connect { .. }), "{error}"),
            _ => assert!(matches!(error, Error::NotFound { .. }), "{error}"),
        }
        assert!(error.to_string().contains("none.git"), "{error}");

        for version in ["0", "2"] {
            client.config("protocol.version", version);
            let url = host.reach(kind, "x.git", &client);
            let mut from = client.remote(&url).upload_pack().unwrap();
            let unknown = id(&"1".repeat(40));
            let result = from.fetch(Fetch::new(vec![unknown])).and_then(|mut stream| {
                std::io::copy(&mut stream, &mut std::io::sink())
                    .map_err(|error| Error::from_io(error).unwrap())
                    .map(drop)
            });
            let error = result.unwrap_err();
            assert!(
                matches!(&error, Error::Refused { message, .. } if message.contains("not our ref")),
                "{kind:?} {version}: {error}"
            );
            // The same object works on.
            assert!(!from.refs(&[]).unwrap().is_empty());
            let main = source.git(&["rev-parse", "main"]);
            receive(from.fetch(Fetch::new(vec![id(&main)])).unwrap());
        }
    }
}

#[test]
fn the_ssh_program_gets_what_git_would_give_it() {
    let host = Host::new();
    let source = history(Format::Sha1);
    host.copy("it's here!.git", &source, Format::Sha1);
    let client = Client::new(Format::Sha1);
    host.reach(Kind::Ssh, "", &client);
    let path = host.root().join("it's here!.git");
    let url = format!("ssh://user@host.example:2022{}", path.display());
    client.remote(&url).upload_pack().unwrap().refs(&[]).unwrap();
    let quoted = format!("{}/it'\\''s here'\\!'.git", host.root().display());
    let log = host.ssh().log();
    assert!(log.contains("protocol=version=2\n"), "{log}");
    let expected = format!(
        "arg=-o\narg=SendEnv=GIT_PROTOCOL\narg=-p\narg=2022\narg=user@host.example\narg=git-upload-pack '{quoted}'\n"
    );
    assert!(log.ends_with(&expected), "{log}");
    // As people write it without a scheme.
    let short = format!("host.example:{}", path.display());
    client.remote(&short).receive_pack().unwrap();
    let log = host.ssh().log();
    assert!(log.contains("arg=host.example\narg=git-receive-pack '"), "{log}");
    assert!(log.contains("protocol=\n"), "pushes know one version: {log}");
}
