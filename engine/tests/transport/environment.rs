//! What configuration and variables say, and which of them wins.

use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ingot_engine::repository::Repository;
use ingot_engine::transport::{
    Address, Direction, Environment, Error, Messages, Options, PackStream, ReceivePack, Remote, UploadPack,
};
use ingot_testdata::repo::Format;
use ingot_testdata::serve::http::{Reply, Request, Server};
use ingot_testdata::serve::ssh::{Ssh, write_program};
use tempfile::TempDir;

use crate::http::{fetch_all, site};
use crate::support::{Client, bstr};

#[test]
fn the_ssh_program_is_chosen_as_git_chooses() {
    let (root, _) = site();
    let url = format!("host.example:{}/x.git", root.path().display());
    let [by_command, by_config, by_program] = [Ssh::new(), Ssh::new(), Ssh::new()];
    let used = |client: &Client| {
        client.remote(&url).upload_pack().unwrap();
        [&by_command, &by_config, &by_program].map(|ssh| ssh.log().matches("arg=host.example").count())
    };
    let mut client = Client::new(Format::Sha1);
    client.variable("GIT_SSH", by_program.program().to_str().unwrap());
    assert_eq!(used(&client), [0, 0, 1]);
    client.config(
        "core.sshCommand",
        &format!("{} -v -x", by_config.program().display()),
    );
    assert_eq!(used(&client), [0, 1, 1]);
    client.variable(
        "GIT_SSH_COMMAND",
        format!("env A=1 '{}'", by_command.program().display()),
    );
    // Its name says nothing, so it is asked whether it is OpenSSH.
    assert_eq!(used(&client), [2, 1, 1]);
    let log = by_command.log();
    assert!(log.contains("arg=-G\n"), "{log}");
    client.config("ssh.variant", "simple");
    used(&client);
    assert!(by_command.log().ends_with(&format!(
        "arg=host.example\narg=git-upload-pack '{}/x.git'\n",
        root.path().display()
    )));
    client.variable("GIT_SSH_VARIANT", "nonsense");
    let error = client.remote(&url).upload_pack().unwrap_err();
    assert!(matches!(error, Error::Setting { .. }), "{error}");
    // With a path of its own, a plain host is not taken for one.
    let error = client
        .try_remote("-oProxyCommand=touch:x")
        .and_then(|remote| remote.upload_pack());
    assert!(matches!(error, Err(Error::Address { .. })), "{error:?}");
}

#[test]
fn askpass_variables_outrank_the_configuration() {
    let (root, _) = site();
    let server = Server::with_password(root.path(), "alice", "word");
    let folder = TempDir::new().unwrap();
    let program = |name: &str, password: &str| {
        let path = folder.path().join(name);
        write_program(
            &path,
            &format!("#!/bin/sh\ncase $1 in Username*) echo alice;; *) echo {password};; esac\n"),
        );
        path.to_str().unwrap().to_owned()
    };
    let (good, bad) = (program("good", "word"), program("bad", "wrong"));
    let mut client = Client::new(Format::Sha1);
    client.variable("SSH_ASKPASS", &good);
    fetch_all(&client, &server.url("x.git")).unwrap();
    client.config("core.askPass", &bad);
    assert!(fetch_all(&client, &server.url("x.git")).is_err());
    client.variable("GIT_ASKPASS", &good);
    fetch_all(&client, &server.url("x.git")).unwrap();
    // An empty one is none.
    client.variable("GIT_ASKPASS", "");
    client.heard.will_answer(&["alice", "word"]);
    fetch_all(&client, &server.url("x.git")).unwrap();
    client.variable("GIT_TERMINAL_PROMPT", "0");
    client.heard.will_answer(&["alice", "word"]);
    let error = fetch_all(&client, &server.url("x.git")).unwrap_err();
    assert!(error.to_string().contains("switched off"), "{error}");
    // One that fails is no answer.
    let mut client = Client::new(Format::Sha1);
    client.variable("GIT_ASKPASS", "false");
    client.heard.will_answer(&["alice", "word"]);
    fetch_all(&client, &server.url("x.git")).unwrap();
    assert_eq!(client.heard.prompts().len(), 2);
}

#[test]
fn proxies_come_from_variables_too() {
    let (root, _) = site();
    let server = Server::start(root.path());
    let proxy = Server::with(root.path(), |_: &Request| {
        Reply::Status(502, Vec::new(), "proxied".into())
    });
    let through = |client: &Client| {
        let before = proxy.requests().len();
        let result = fetch_all(client, &server.url("x.git"));
        let asked = proxy.requests().len() > before;
        assert_eq!(asked, result.is_err());
        asked
    };
    let at = format!("http://127.0.0.1:{}", proxy.port());
    let mut client = Client::new(Format::Sha1);
    // A web server makes it of a header of whoever asks.
    client.variable("HTTP_PROXY", &at);
    client.variable("https_proxy", &at);
    assert!(!through(&client));
    client.variable("all_proxy", &at);
    assert!(through(&client));
    client.variable("no_proxy", "other.example,127.0.0.1");
    assert!(!through(&client));
    client.variable("no_proxy", "");
    assert!(through(&client));
    client.config("http.proxy", "");
    assert!(!through(&client));
    client.config("http.proxy", &at);
    assert!(through(&client));
    client.config("http.proxy", "socks5://127.0.0.1:1");
    let error = fetch_all(&client, &server.url("x.git")).unwrap_err();
    assert!(matches!(error, Error::Setting { .. }), "{error}");
}

#[test]
fn protocols_can_be_forbidden() {
    let mut client = Client::new(Format::Sha1);
    client.variable("GIT_ALLOW_PROTOCOL", "https:ssh");
    assert!(client.try_remote("https://host.example/x").is_ok());
    let error = client.try_remote("http://host.example/x").unwrap_err();
    assert!(matches!(error, Error::NotAllowed { .. }), "{error}");
    let mut client = Client::new(Format::Sha1);
    client.config("protocol.allow", "user");
    client.config("protocol.git.allow", "always");
    client.variable("GIT_PROTOCOL_FROM_USER", "0");
    assert!(client.try_remote("https://host.example/x").is_err());
    assert!(client.try_remote("git://host.example/x").is_ok());
    client.config("protocol.git.allow", "perhaps");
    let error = client.try_remote("git://host.example/x").unwrap_err();
    assert!(matches!(error, Error::Setting { .. }), "{error}");
}

#[test]
fn addresses_are_rewritten() {
    let client = Client::new(Format::Sha1);
    for (key, value) in [
        ("url.https://host.example/.insteadOf", "h:"),
        ("url.https://other.example/team/.insteadOf", "h:team/"),
        ("url.ssh://git@host.example/.pushInsteadOf", "h:"),
        (
            "url.ssh://git@host.example/.pushInsteadOf",
            "https://host.example/",
        ),
    ] {
        client.config(key, value);
    }
    let repository = Repository::open(client.repo.path()).unwrap();
    let config = repository.config();
    let resolve = |text: &str, direction| {
        Address::resolve(bstr(text), &config, direction)
            .unwrap()
            .to_string()
    };
    assert_eq!(resolve("h:a/b", Direction::Fetch), "https://host.example/a/b");
    assert_eq!(
        resolve("h:team/b", Direction::Fetch),
        "https://other.example/team/b"
    );
    assert_eq!(resolve("h:a/b", Direction::Push), "ssh://git@host.example/a/b");
    assert_eq!(
        resolve("https://host.example/x", Direction::Push),
        "ssh://git@host.example/x"
    );
    assert_eq!(
        resolve("https://host.example/x", Direction::Fetch),
        "https://host.example/x"
    );
}

/// Wants to stop after a while.
#[derive(Default)]
struct Impatient(AtomicUsize);

impl Messages for Impatient {
    fn interrupted(&self) -> bool {
        self.0.fetch_add(1, Ordering::SeqCst) > 3
    }
}

/// A server that accepts, and then says nothing.
fn silent() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let streams: Vec<TcpStream> = listener.incoming().take(10).flatten().collect();
        drop(streams);
    });
    port
}

#[test]
fn silence_can_be_interrupted() {
    let port = silent();
    let client = Client::new(Format::Sha1);
    let repository = Repository::open(client.repo.path()).unwrap();
    for scheme in ["git", "http", "https"] {
        let address = Address::parse(bstr(&format!("{scheme}://127.0.0.1:{port}/x.git"))).unwrap();
        let options = Options::read_with(&repository.config(), &address, Environment::default()).unwrap();
        let remote = Remote::new(address, options, Arc::new(Impatient::default()));
        let error = remote.upload_pack().unwrap_err();
        assert!(matches!(error, Error::Interrupted), "{scheme}: {error}");
    }
}

#[test]
fn slowness_has_a_limit_if_one_is_set() {
    let port = silent();
    let client = Client::new(Format::Sha1);
    client.config("http.lowSpeedLimit", "1k");
    client.config("http.lowSpeedTime", "1");
    let started = Instant::now();
    let error = fetch_all(&client, &format!("http://127.0.0.1:{port}/x.git")).unwrap_err();
    assert!(
        error.is_transient() && error.to_string().contains("timed out"),
        "{error}"
    );
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn conversations_can_move_between_threads() {
    fn sendable<T: Send>() {}
    fn shareable<T: Send + Sync>() {}
    sendable::<UploadPack>();
    sendable::<ReceivePack>();
    sendable::<PackStream<'_>>();
    shareable::<Remote>();
    shareable::<Options>();
    shareable::<Error>();
    // What is shown of them is nothing secret.
    let address = Address::parse(bstr("https://alice:s3cret@host.example/x")).unwrap();
    let client = Client::new(Format::Sha1);
    let repository = Repository::open(client.repo.path()).unwrap();
    let environment: Environment = [("http_proxy".into(), "http://a:s3cret@h".into())]
        .into_iter()
        .collect();
    let options = Options::read_with(&repository.config(), &address, environment.clone()).unwrap();
    let remote = Remote::new(address.clone(), options.clone(), client.heard.clone());
    let shown = format!("{address:?} {address} {options:?} {environment:?} {remote:?}");
    assert!(!shown.contains("s3cret"), "{shown}");
    std::io::sink().write_all(shown.as_bytes()).unwrap();
}
