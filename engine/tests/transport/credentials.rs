//! User names and passwords: from the address, helpers, askpass programs and people.

use std::path::PathBuf;

use ingot_engine::transport::Error;
use ingot_testdata::repo::Format;
use ingot_testdata::serve::http::{Reply, Request, Server, base64};
use ingot_testdata::serve::ssh::write_program;
use tempfile::TempDir;

use crate::http::{fetch_all, push_new, site};
use crate::support::Client;

/// A helper that notes what it is told, and answers `get` with `answer`.
struct Helper {
    folder: TempDir,
}

impl Helper {
    fn new(answer: &str) -> Helper {
        let folder = TempDir::new().unwrap();
        write_program(
            &folder.path().join("helper"),
            &format!(
                "#!/bin/sh\n{{ echo \"[$1]\"; cat; }} >>\"$0.log\"\nif test \"$1\" = get; then\ncat <<'END'\n{answer}\nEND\nfi\n"
            ),
        );
        Helper { folder }
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("helper")
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("helper.log")).unwrap_or_default()
    }
}

fn protected() -> (TempDir, Server) {
    let (root, _) = site();
    let server = Server::with_password(root.path(), "alice", "s3:cret/+ word");
    (root, server)
}

fn authority(server: &Server) -> String {
    format!("127.0.0.1:{}", server.port())
}

#[test]
fn the_address_may_have_them() {
    let (_root, server) = protected();
    let client = Client::new(Format::Sha1);
    let url = format!("http://alice:s3%3Acret%2F%2B%20word@{}/x.git", authority(&server));
    fetch_all(&client, &url).unwrap();
    push_new(&client, &url, "new").unwrap();
    let requests = server.requests();
    assert_eq!(
        requests[0].header("authorization"),
        None,
        "not before it is asked for"
    );
    assert!(
        requests[1..4]
            .iter()
            .all(|request| request.header("authorization").is_some())
    );

    let url = format!("http://alice:wr0ng@{}/x.git", authority(&server));
    let error = fetch_all(&client, &url).unwrap_err();
    assert!(matches!(error, Error::Authentication { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("alice@") && text.contains("who are you?"), "{text}");
    assert!(!text.contains("wr0ng"), "{text}");
}

#[test]
fn helpers_are_asked_and_told_the_outcome() {
    let (_root, server) = protected();
    let client = Client::new(Format::Sha1);
    let silent = Helper::new("");
    let good =
        Helper::new("username=alice\npassword=s3:cret/+ word\npassword_expiry_utc=99999999999\nunknown=1");
    let late = Helper::new("username=bob\npassword=never asked");
    client.config("credential.helper", "!echo username=forgotten; exit 1 #");
    client.config("credential.helper", "");
    for helper in [&silent, &good, &late] {
        client.config("credential.helper", helper.program().to_str().unwrap());
    }
    fetch_all(&client, &server.url("x.git")).unwrap();
    let host = authority(&server);
    let question = format!(
        "[get]\nprotocol=http\nhost={host}\ncapability[]=authtype\nwwwauth[]=Basic realm=\"tests\"\n"
    );
    let stored = format!("[store]\nprotocol=http\nhost={host}\nusername=alice\npassword=s3:cret/+ word\n");
    assert!(silent.log().starts_with(&question), "{}", silent.log());
    assert!(silent.log().contains(&stored), "{}", silent.log());
    assert!(
        good.log()
            .ends_with(&format!("{stored}password_expiry_utc=99999999999\n")),
        "{}",
        good.log()
    );
    assert!(!late.log().contains("[get]"));
    assert_eq!(good.log().matches("[get]").count(), 1);
    assert_eq!(good.log().matches("[store]").count(), 1);
}

#[test]
fn a_refused_password_is_erased() {
    let (_root, server) = protected();
    let client = Client::new(Format::Sha1);
    let bad = Helper::new("username=alice\npassword=old");
    client.config("credential.helper", bad.program().to_str().unwrap());
    let error = fetch_all(&client, &server.url("x.git")).unwrap_err();
    assert!(matches!(error, Error::Authentication { .. }), "{error}");
    assert!(!error.to_string().contains("old"), "{error}");
    let erased = format!(
        "[erase]\nprotocol=http\nhost={}\nusername=alice\npassword=old\n",
        authority(&server)
    );
    assert!(bad.log().ends_with(&erased), "{}", bad.log());
    assert!(!bad.log().contains("[store]"));
}

#[test]
fn helpers_hear_of_paths_and_users_where_they_should() {
    let (_root, server) = protected();
    let client = Client::new(Format::Sha1);
    let host = authority(&server);
    let helper = Helper::new("password=s3:cret/+ word");
    client.config(
        &format!("credential.http://{host}.helper"),
        &format!("!{} ", helper.program().display()),
    );
    client.config(&format!("credential.http://{host}.username"), "alice");
    client.config("credential.useHttpPath", "true");
    client.config("credential.http://other.example.helper", "!false");
    fetch_all(&client, &server.url("x.git")).unwrap();
    let question = format!("[get]\nprotocol=http\nhost={host}\npath=x.git\nusername=alice\n");
    assert!(helper.log().starts_with(&question), "{}", helper.log());
}

#[test]
fn a_helper_by_name_is_found_and_one_that_is_missing_is_told_of() {
    let (_root, server) = protected();
    let client = Client::new(Format::Sha1);
    // Git's own, which lies beside its other programs.
    let store = client.repo.path().join("credentials");
    std::fs::write(
        &store,
        format!(
            "http://alice:s3%3acret%2f%2b%20word@{}\n",
            authority(&server).replace(':', "%3a")
        ),
    )
    .unwrap();
    client.config("credential.helper", "no-such-helper");
    client.config(
        "credential.helper",
        &format!("store --file '{}'", store.display()),
    );
    fetch_all(&client, &server.url("x.git")).unwrap();
    assert!(
        client
            .heard
            .warnings()
            .iter()
            .any(|warning| warning.contains("git-credential-no-such-helper"))
    );
}

#[test]
fn a_helper_may_bring_the_whole_header_or_stop_everything() {
    let (root, _) = site();
    let server = Server::with(root.path(), |request: &Request| {
        match request.header("authorization") {
            Some("Bearer a.token") => Reply::Backend,
            _ => Reply::Status(
                401,
                vec!["WWW-Authenticate: Bearer realm=\"x\"".into()],
                String::new(),
            ),
        }
    });
    let client = Client::new(Format::Sha1);
    let helper = Helper::new("authtype=Bearer\ncredential=a.token");
    client.config("credential.helper", helper.program().to_str().unwrap());
    fetch_all(&client, &server.url("x.git")).unwrap();
    assert!(
        helper.log().contains("authtype=Bearer\ncredential=a.token\n"),
        "{}",
        helper.log()
    );

    let client = Client::new(Format::Sha1);
    client.heard.will_answer(&["alice", "word"]);
    let error = fetch_all(&client, &server.url("x.git")).unwrap_err();
    assert!(error.to_string().contains("asks for Bearer"), "{error}");

    let client = Client::new(Format::Sha1);
    client.config("credential.helper", "!echo quit=1; :");
    client.heard.will_answer(&["alice", "word"]);
    let error = fetch_all(&client, &server.url("x.git")).unwrap_err();
    assert!(error.to_string().contains("told to stop"), "{error}");
    assert!(client.heard.prompts().is_empty());
}

#[test]
fn an_endless_helper_is_ended() {
    let (_root, server) = protected();
    let client = Client::new(Format::Sha1);
    client.config("credential.helper", "!yes username=alice; :");
    let error = fetch_all(&client, &server.url("x.git")).unwrap_err();
    assert!(matches!(error, Error::Authentication { .. }), "{error}");
    assert!(client.heard.warnings()[0].contains("longer than"));
}

#[test]
fn askpass_programs_are_asked_before_people() {
    let (_root, server) = protected();
    let client = Client::new(Format::Sha1);
    let folder = TempDir::new().unwrap();
    let program = folder.path().join("ask pass");
    write_program(
        &program,
        "#!/bin/sh\necho \"$1\" >>\"$0.log\"\ncase $1 in Username*) echo alice;; *) printf 's3:cret/+ word\\nmore';; esac\n",
    );
    client.config("core.askPass", program.to_str().unwrap());
    let stored = Helper::new("");
    client.config("credential.helper", stored.program().to_str().unwrap());
    fetch_all(&client, &server.url("x.git")).unwrap();
    let host = authority(&server);
    let log = std::fs::read_to_string(folder.path().join("ask pass.log")).unwrap();
    assert_eq!(
        log,
        format!("Username for 'http://{host}': \nPassword for 'http://alice@{host}': \n")
    );
    assert!(client.heard.prompts().is_empty());
    assert!(stored.log().contains("[store]"), "what was typed may be kept");
}

#[test]
fn people_are_asked_last() {
    let (_root, server) = protected();
    let client = Client::new(Format::Sha1);
    client.heard.will_answer(&["alice", "s3:cret/+ word"]);
    let host = authority(&server);
    fetch_all(&client, &server.url("x.git")).unwrap();
    assert_eq!(
        client.heard.prompts(),
        [
            (format!("Username for 'http://{host}': "), false),
            (format!("Password for 'http://alice@{host}': "), true),
        ]
    );
    let silent = Client::new(Format::Sha1);
    silent.config("credential.interactive", "false");
    let error = fetch_all(&silent, &server.url("x.git")).unwrap_err();
    assert!(matches!(error, Error::Authentication { .. }), "{error}");
    assert!(error.to_string().contains("credential.helper"), "{error}");
    assert!(silent.heard.prompts().is_empty());
}

#[test]
fn a_large_push_asks_before_it_sends() {
    // References are for everybody, pushes are not.
    let (root, _) = site();
    let expected = format!("Basic {}", base64(b"alice:word"));
    let server = Server::with(root.path(), move |request: &Request| {
        let allowed = request.method == "GET" || request.header("authorization") == Some(&expected);
        match allowed {
            true => Reply::Backend,
            false => Reply::Status(
                401,
                vec!["WWW-Authenticate: Basic realm=\"x\"".into()],
                String::new(),
            ),
        }
    });
    let client = Client::new(Format::Sha1);
    let mut numbers = ingot_testdata::random::Numbers::new(3);
    let noise: Vec<u8> = (0..400_000).flat_map(|_| numbers.draw().to_le_bytes()).collect();
    client.repo.write("noise", noise);
    client.heard.will_answer(&["alice", "word"]);
    push_new(&client, &server.url("x.git"), "large").unwrap();
    let posts: Vec<(usize, bool)> = server
        .requests()
        .iter()
        .filter(|request| request.method == "POST")
        .map(|request| {
            (
                request.body.len().min(1000),
                request.header("authorization").is_some(),
            )
        })
        .collect();
    assert_eq!(posts, [(4, false), (4, true), (1000, true)]);
}

#[test]
fn netrc_is_tried_before_helpers() {
    let (_root, server) = protected();
    let home = TempDir::new().unwrap();
    let netrc = home.path().join(".netrc");
    let mut client = Client::new(Format::Sha1);
    client.variable("HOME", home.path().to_str().unwrap());
    std::fs::write(
        &netrc,
        "machine other.example login x password y\nmachine 127.0.0.1 login alice password \"s3:cret/+ word\"\n",
    )
    .unwrap();
    let helper = Helper::new("username=alice\npassword=s3:cret/+ word");
    client.config("credential.helper", helper.program().to_str().unwrap());
    fetch_all(&client, &server.url("x.git")).unwrap();
    assert_eq!(helper.log(), "", "there was nothing to ask and nothing to store");
    // What it says may be old.
    std::fs::write(&netrc, "machine 127.0.0.1 login alice password old\n").unwrap();
    fetch_all(&client, &server.url("x.git")).unwrap();
    assert!(helper.log().contains("[store]"), "{}", helper.log());
    assert!(!helper.log().contains("[erase]"), "{}", helper.log());
}
