//! What is particular to http: redirections, proxies, headers, compression, statuses.

use std::collections::BTreeSet;
use std::convert::Infallible;

use ingot_engine::transport::{Command, Error, Fetch, Haves, Push, PushError};
use ingot_testdata::git;
use ingot_testdata::repo::{Format, Repo};
use ingot_testdata::serve::http::{Reply, Request, Server};
use tempfile::TempDir;

use crate::support::{Client, id, receive};

/// A folder with one bare repository, `x.git`, and what it was made from.
pub fn site() -> (TempDir, Repo) {
    let repo = Repo::empty(Format::Sha1);
    for number in 0..20 {
        repo.write("file", format!("{number}\n").repeat(100));
        repo.commit("more");
    }
    let root = TempDir::new().unwrap();
    git::git(root.path(), &["init", "-q", "--bare", "x.git"]);
    let path = root.path().join("x.git");
    repo.git(&["push", "-q", "--mirror", path.to_str().unwrap()]);
    (root, repo)
}

/// References and a whole pack.
pub fn fetch_all(client: &Client, url: &str) -> Result<usize, Error> {
    let remote = client.try_remote(url)?;
    let mut from = remote.upload_pack()?;
    let refs = from.refs(&[])?;
    let wants = refs.iter().map(|known| known.id).collect();
    let mut stream = from.fetch(Fetch::new(wants))?;
    let mut pack = Vec::new();
    std::io::Read::read_to_end(&mut stream, &mut pack).map_err(crate::support::inner)?;
    stream.finish()?;
    client.index(&pack);
    Ok(pack.len())
}

/// One commit more on a new branch.
pub fn push_new(client: &Client, url: &str, name: &str) -> Result<(), PushError<Infallible>> {
    client.repo.write("own", name);
    let tip = client.repo.commit("own");
    let pack = client.pack(&tip);
    let to = client.try_remote(url)?.receive_pack()?;
    let push = Push {
        commands: vec![Command::create(format!("refs/heads/{name}"), id(&tip))],
        ..Push::default()
    };
    let report = to.push(push, |out| {
        let _ = out.write_all(&pack);
        Ok(())
    })?;
    assert!(matches!(
        report.refs[0].status,
        ingot_engine::transport::Status::Done { .. }
    ));
    Ok(())
}

fn refused(result: Result<(), PushError<Infallible>>) -> Error {
    match result.unwrap_err() {
        PushError::Remote(error) => error,
        PushError::Pack(never) => match never {},
    }
}

#[test]
fn answers_may_come_in_any_form_and_connections_are_used_again() {
    let (root, _) = site();
    for (reply, connections) in [(Reply::Backend, 1), (Reply::Chunked, 1), (Reply::ToTheEnd, 3)] {
        for version in ["0", "2"] {
            let reply = reply.clone();
            let server = Server::with(root.path(), move |_| reply.clone());
            let client = Client::new(Format::Sha1);
            client.config("protocol.version", version);
            fetch_all(&client, &server.url("x.git")).unwrap();
            let used: BTreeSet<usize> = server
                .requests()
                .iter()
                .map(|request| request.connection)
                .collect();
            let requests = if version == "0" { 2 } else { 3 };
            assert_eq!(server.requests().len(), requests);
            assert_eq!(used.len(), connections.min(requests), "version {version}");
        }
    }
}

#[test]
fn requests_say_what_git_would_say() {
    let (root, repo) = site();
    let server = Server::start(root.path());
    let client = Client::new(Format::Sha1);
    client.config("http.extraHeader", "X-Everywhere: 1");
    client.config("http.http://other.example/.extraHeader", "X-Elsewhere: 1");
    client.config(&format!("http.{}.extraHeader", server.url("")), "X-Here: 1");
    client.config(&format!("http.{}.userAgent", server.url("x.git")), "an agent");
    client.config("http.userAgent", "another agent");
    let mut from = client.remote(&server.url("x.git")).upload_pack().unwrap();
    // Enough of them to be worth compressing.
    let haves = repo.git(&["rev-list", "main~1"]);
    let main = repo.git(&["rev-parse", "main"]);
    let request = Fetch {
        haves: Haves::Known(haves.lines().map(id).collect()),
        ..Fetch::new(vec![id(&main)])
    };
    let pack = receive(from.fetch(request).unwrap());
    assert!(pack.len() < 1000, "{} bytes for one commit", pack.len());
    let requests = server.requests();
    for request in &requests {
        assert_eq!(request.header("user-agent"), Some("an agent"));
        assert_eq!(request.header("git-protocol"), Some("version=2"));
        assert_eq!(request.header("x-everywhere"), Some("1"));
        assert_eq!(request.header("x-here"), Some("1"));
        assert_eq!(request.header("x-elsewhere"), None);
    }
    assert_eq!(requests[0].target, "/x.git/info/refs?service=git-upload-pack");
    let post = &requests[1];
    assert_eq!(
        post.header("content-type"),
        Some("application/x-git-upload-pack-request")
    );
    assert_eq!(
        post.header("accept"),
        Some("application/x-git-upload-pack-result")
    );
    assert_eq!(post.header("content-encoding"), Some("gzip"));
    assert!(post.body.starts_with(b"\x1f\x8b"));
}

#[test]
fn redirections_are_followed_at_first() {
    let (root, _) = site();
    let target = Server::start(root.path());
    let (to, other) = (target.url("x.git"), target.url("login"));
    let server = Server::with(root.path(), move |request: &Request| {
        let tail = request.target.split_once("/info/").map_or("", |(_, tail)| tail);
        let location = match request.target.split('/').nth(1) {
            Some("moved") => format!("Location: {to}/info/{tail}"),
            Some("near") => format!("Location: /x.git/info/{tail}"),
            Some("login") => format!("Location: {other}"),
            Some("round") => format!("Location: {}", request.target),
            Some("nowhere") => String::new(),
            _ => return Reply::Backend,
        };
        Reply::Status(302, vec![location], String::new())
    });
    let client = Client::new(Format::Sha1);
    client.config("http.extraHeader", "Authorization: Basic YTpi");
    client.config("http.extraHeader", "X-Public: 1");
    fetch_all(&client, &server.url("moved")).unwrap();
    let sent = |server: &Server, name: &str| server.requests()[0].header(name).map(str::to_owned);
    assert!(sent(&server, "authorization").is_some());
    assert_eq!(
        sent(&target, "authorization"),
        None,
        "it is for the place that the address names"
    );
    assert_eq!(sent(&target, "x-public").as_deref(), Some("1"));
    assert!(client.heard.warnings()[0].contains(&target.url("x.git")));
    assert_eq!(
        target.requests().len(),
        3,
        "and what comes after goes straight there"
    );
    fetch_all(&client, &server.url("near")).unwrap();
    push_new(&client, &server.url("moved"), "one").unwrap();
    for (name, words) in [
        ("login", "no repository"),
        ("round", "again and again"),
        ("nowhere", "nowhere"),
    ] {
        let error = fetch_all(&client, &server.url(name)).unwrap_err();
        assert!(
            matches!(&error, Error::NotGit { message, .. } if message.contains(words)),
            "{error}"
        );
    }
    client.config("http.followRedirects", "false");
    let error = fetch_all(&client, &server.url("moved")).unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error}");
}

#[test]
fn proxies_are_asked_and_told_who_asks() {
    let (root, _) = site();
    // A proxy for http is asked with whole URLs; this one is the server at the same time.
    let proxy = Server::with(root.path(), |request: &Request| {
        let expected = format!(
            "Basic {}",
            ingot_testdata::serve::http::base64(b"alice:secret of the proxy")
        );
        match request.header("proxy-authorization") {
            Some(given) if given == expected => Reply::Backend,
            _ => Reply::Status(
                407,
                vec!["Proxy-Authenticate: Basic realm=\"x\"".into()],
                String::new(),
            ),
        }
    });
    let client = Client::new(Format::Sha1);
    client.config(
        "http.proxy",
        &format!(
            "http://alice:secret%20of%20the%20proxy@127.0.0.1:{}",
            proxy.port()
        ),
    );
    let error = fetch_all(&client, "http://nowhere.example/x.git");
    // The backend takes the path out of the whole URL no better than any server does.
    let requests = proxy.requests();
    assert!(
        requests[1]
            .target
            .starts_with("http://nowhere.example/x.git/info/refs?"),
        "{error:?} {requests:?}"
    );
    assert_eq!(requests[0].header("proxy-authorization"), None);
    assert!(requests[1].header("proxy-authorization").is_some());
    assert_eq!(requests[1].header("host"), Some("nowhere.example"));

    // For https, it is asked for a connection.
    let error = fetch_all(&client, "https://nowhere.example/x.git").unwrap_err();
    let asked = proxy.requests().pop().unwrap();
    assert_eq!(
        (asked.method.as_str(), asked.target.as_str()),
        ("CONNECT", "nowhere.example:443")
    );
    assert!(asked.header("proxy-authorization").is_some());
    assert!(error.to_string().contains("proxy"), "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");

    let wrong = Client::new(Format::Sha1);
    wrong.config(
        "http.proxy",
        &format!("http://alice:wrong@127.0.0.1:{}", proxy.port()),
    );
    let error = fetch_all(&wrong, "http://nowhere.example/x.git").unwrap_err();
    assert!(matches!(error, Error::Authentication { .. }), "{error}");
}

#[test]
fn statuses_are_told_apart() {
    let (root, _) = site();
    let status = |code: u16| {
        move |request: &Request| match request.target.contains("info/refs") {
            true => Reply::Status(code, Vec::new(), "sorry, because of reasons\n".into()),
            false => Reply::Backend,
        }
    };
    for (code, check) in [
        (
            403,
            (|error| matches!(error, Error::Refused { .. })) as fn(&Error) -> bool,
        ),
        (404, |error| matches!(error, Error::NotFound { .. })),
        (429, |error| error.is_transient()),
        (500, |error| error.is_transient()),
        (503, |error| error.is_transient()),
    ] {
        let server = Server::with(root.path(), status(code));
        let client = Client::new(Format::Sha1);
        let error = fetch_all(&client, &server.url("x.git")).unwrap_err();
        assert!(check(&error), "{error}");
        assert!(error.to_string().contains("because of reasons"), "{error}");
        assert_eq!(client.heard.remote(), "sorry, because of reasons\n");
    }
}

#[test]
fn a_push_that_is_refused_in_the_middle_says_why() {
    let (root, _) = site();
    for (code, words) in [
        (413, "larger than the server takes"),
        (411, "postBuffer"),
        (403, "quota"),
    ] {
        let server = Server::with(root.path(), move |request: &Request| {
            match request.header("transfer-encoding") {
                Some(_) => Reply::Early(code, "over quota\n".into()),
                None => Reply::Backend,
            }
        });
        let client = Client::new(Format::Sha1);
        let mut numbers = ingot_testdata::random::Numbers::new(2);
        let noise: Vec<u8> = (0..400_000).flat_map(|_| numbers.draw().to_le_bytes()).collect();
        client.repo.write("noise", noise);
        let error = refused(push_new(&client, &server.url("x.git"), "main2"));
        assert!(matches!(error, Error::Refused { .. }), "{error}");
        assert!(error.to_string().contains(words), "{error}");
        assert!(error.to_string().contains("over quota"), "{error}");
    }
}

#[test]
fn a_gateway_that_gives_up_leaves_it_open() {
    let (root, _) = site();
    for code in [500, 502, 504] {
        let server = Server::with(root.path(), move |request: &Request| {
            match request.method.as_str() {
                "POST" => Reply::Status(code, Vec::new(), "too slow".into()),
                _ => Reply::Backend,
            }
        });
        let client = Client::new(Format::Sha1);
        let error = refused(push_new(&client, &server.url("x.git"), "main2"));
        assert!(error.is_outcome_unknown(), "{error}");
    }
    // It has the push, and does not say so.
    let server = Server::with(root.path(), |request: &Request| match request.method.as_str() {
        "POST" => Reply::Forget,
        _ => Reply::Backend,
    });
    let client = Client::new(Format::Sha1);
    let error = refused(push_new(&client, &server.url("x.git"), "kept"));
    assert!(error.is_outcome_unknown(), "{error}");
    let refs = crate::support::refs_of(&root.path().join("x.git"));
    assert!(refs.contains_key("refs/heads/kept"));
}

#[test]
fn what_is_no_git_server_is_not_taken_for_one() {
    let (root, _) = site();
    let page = "<!DOCTYPE html><html><body>Welcome</body></html>";
    let html = |text: &str| {
        Reply::Status(
            200,
            vec!["Content-Type: text/html; charset=utf-8".into()],
            text.into(),
        )
    };
    let advertisement = |text: &str| {
        Reply::Status(
            200,
            vec!["Content-Type: application/x-git-upload-pack-advertisement".into()],
            text.into(),
        )
    };
    for (reply, words) in [
        (html(page), "web page"),
        (Reply::Status(200, Vec::new(), "0123 refs/heads/main\n".into()), "no smart HTTP"),
        (advertisement(page), "in Git's protocol"),
        (advertisement(""), "ended in the middle"),
        (advertisement("001e# service=git-receive-pack"), "unexpected line"),
        (advertisement("fffe"), "in Git's protocol"),
        (advertisement("zzzz"), "in Git's protocol"),
        (Reply::Raw(b"SSH-2.0-OpenSSH_9\r\n".to_vec()), "begins with 'SSH-2.0"),
        (Reply::Raw(b"".to_vec()), "lost"),
        (Reply::Raw(b"HTTP/1.1 200 OK\r\nContent-".to_vec()), "lost"),
        (Reply::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n".to_vec()), "content length"),
        (
            Reply::Raw([&b"HTTP/1.1 200 OK\r\n"[..], &b"A: b\r\n".repeat(50_000)].concat()),
            "a head of more than",
        ),
        (
            Reply::Raw(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n".to_vec()),
            "content coding",
        ),
        (
            Reply::Raw(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".to_vec(),
            ),
            "without a length",
        ),
        (
            Reply::Raw(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\nContent-Length: 1000\r\n\r\n001e# service=git-upload-pack\n0000".to_vec(),
            ),
            "ended in the middle",
        ),
    ] {
        let told = reply.clone();
        let server = Server::with(root.path(), move |_| told.clone());
        let client = Client::new(Format::Sha1);
        let error = fetch_all(&client, &server.url("x.git")).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(words), "{reply:?}: {text}");
        assert!(text.contains(&server.url("x.git")), "{text}");
        assert!(!text.contains('\n'), "{text}");
    }
}
