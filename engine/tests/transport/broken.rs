//! Connections that break at every place, and servers that lie.

use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bstr::ByteSlice as _;
use gix_hash::ObjectId;
use ingot_engine::repository::Repository;
use ingot_engine::transport::{
    Address, Command, Environment, Error, Fetch, Haves, Messages, Options, Push, PushError, Remote, Report,
    Status,
};
use ingot_testdata::repo::Format;
use ingot_testdata::serve::cut::{Cut, Wire};
use ingot_testdata::serve::ssh::Ssh;

use crate::http::{fetch_all, site};
use crate::support::{Client, Host, id, refs_of};

fn served() -> (Host, std::path::PathBuf, String) {
    let host = Host::new();
    let (_, source) = site();
    let bare = host.copy("x.git", &source, Format::Sha1);
    let main = source.git(&["rev-parse", "main"]);
    (host, bare, main)
}

/// Limits that meet every stage of a conversation of so many bytes.
fn places(whole: u64) -> impl Iterator<Item = u64> {
    let step = (whole / 14).max(1);
    (1..6).chain((6..whole).step_by(usize::try_from(step).unwrap()))
}

#[test]
fn a_fetch_that_is_cut_anywhere_fails_and_says_so() {
    let (host, _, _) = served();
    for (port, scheme) in [(host.daemon().port(), "git"), (host.http().port(), "http")] {
        for version in ["0", "2"] {
            let client = Client::new(Format::Sha1);
            client.config("protocol.version", version);
            let wire = Wire::start(port, Cut::Never);
            fetch_all(&client, &format!("{scheme}://127.0.0.1:{}/x.git", wire.port())).unwrap();
            let (requests, answers) = (wire.requests(), wire.answers());
            let cuts = places(answers - 4)
                .map(Cut::Answers)
                .chain(places(requests - 4).map(Cut::Requests));
            for cut in cuts {
                let wire = Wire::start(port, cut);
                let url = format!("{scheme}://127.0.0.1:{}/x.git", wire.port());
                let error = match fetch_all(&client, &url) {
                    Err(error) => error,
                    // Between two requests, a cut is no more than a reason to connect again.
                    Ok(_) if scheme == "http" => continue,
                    // Servers say more or less of their progress.
                    Ok(_) if matches!(cut, Cut::Answers(most) if wire.answers() <= most) => continue,
                    Ok(_) => panic!("{scheme} {version} {cut:?}: nothing was missed"),
                };
                assert!(
                    matches!(
                        error,
                        Error::Lost { .. } | Error::Connect { .. } | Error::NotGit { .. }
                    ),
                    "{scheme} {version} {cut:?}: {error}"
                );
                assert!(error.is_transient(), "{scheme} {version} {cut:?}: {error}");
                assert!(error.to_string().contains(&url), "{error}");
            }
        }
    }
}

fn try_push(client: &Client, url: &str, name: &str, tip: &str) -> Result<Report, Error> {
    let pack = client.pack(tip);
    let to = client.remote(url).receive_pack()?;
    let push = Push {
        commands: vec![Command::create(format!("refs/heads/{name}"), id(tip))],
        ..Push::default()
    };
    let result: Result<_, PushError<Infallible>> = to.push(push, |out| {
        let _ = out.write_all(&pack);
        Ok(())
    });
    result.map_err(|error| match error {
        PushError::Remote(error) => error,
        PushError::Pack(never) => match never {},
    })
}

#[test]
fn a_push_that_is_cut_anywhere_is_never_told_wrong() {
    let (host, bare, _) = served();
    let client = Client::new(Format::Sha1);
    client.repo.write("file", "x".repeat(3000));
    let tip = client.repo.commit("one");
    let mut unknown = 0;
    for (port, scheme) in [(host.daemon().port(), "git"), (host.http().port(), "http")] {
        let wire = Wire::start(port, Cut::Never);
        let url = format!("{scheme}://127.0.0.1:{}/x.git", wire.port());
        try_push(&client, &url, &format!("{scheme}-whole"), &tip).unwrap();
        let (requests, answers) = (wire.requests(), wire.answers());
        let cuts = places(answers - 1)
            .chain(answers.saturating_sub(60)..answers)
            .map(Cut::Answers)
            .chain(
                places(requests - 1)
                    .chain(requests.saturating_sub(8)..=requests)
                    .map(Cut::Requests),
            )
            .chain([Cut::Silence(requests), Cut::Silence(requests - 1)]);
        for (number, cut) in cuts.enumerate() {
            let wire = Wire::start(port, cut);
            let url = format!("{scheme}://127.0.0.1:{}/x.git", wire.port());
            let name = format!("{scheme}-{number}");
            let result = try_push(&client, &url, &name, &tip);
            let taken = || refs_of(&bare).contains_key(&format!("refs/heads/{name}"));
            match result {
                Ok(report) => {
                    let done = matches!(report.refs[0].status, Status::Done { .. });
                    assert!(done && taken(), "{scheme} {cut:?}: {report:?}");
                }
                Err(error) if error.is_outcome_unknown() => unknown += 1,
                Err(error) => {
                    assert!(error.is_transient(), "{scheme} {cut:?}: {error}");
                    // It may take the server a moment.
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    assert!(!taken(), "{scheme} {cut:?}: {error}");
                }
            }
        }
    }
    assert!(unknown > 4, "{unknown}");
}

#[test]
fn conversations_may_come_in_crumbs() {
    let (host, bare, _) = served();
    for (port, scheme) in [(host.daemon().port(), "git"), (host.http().port(), "http")] {
        for piece in [1, 3] {
            let wire = Wire::start(port, Cut::Pieces(piece));
            let url = format!("{scheme}://127.0.0.1:{}/x.git", wire.port());
            for version in ["0", "2"] {
                let client = Client::new(Format::Sha1);
                client.config("protocol.version", version);
                fetch_all(&client, &url).unwrap();
            }
            let client = Client::new(Format::Sha1);
            let tip = client.repo.commit("one");
            let name = format!("{scheme}-{piece}");
            let report = try_push(&client, &url, &name, &tip).unwrap();
            assert!(matches!(report.refs[0].status, Status::Done { .. }));
            assert_eq!(refs_of(&bare)[&format!("refs/heads/{name}")], tip);
        }
    }
}

#[test]
fn an_ssh_connection_that_is_cut_is_never_told_wrong() {
    let (host, bare, _) = served();
    let client = Client::new(Format::Sha1);
    let tip = client.repo.commit("one");
    let url = format!("host.example:{}", bare.display());
    let mut seen = [0; 3];
    for limit in [0, 3, 100, 200, 240, 280, 320, 360, 400, 5000] {
        // What head(1) does, but at once.
        let pass = format!(
            "python3 -c 'import os\nleft = {limit}\nwhile left:\n  data = os.read(0, left)\n  if not data: break\n  os.write(1, data)\n  left -= len(data)\n'"
        );
        let answers = Ssh::with(&format!("sh -c \"$*\" | {{ {pass}; kill -9 $$; }}"));
        let requests = Ssh::with(&format!("{pass} | sh -c \"$*\""));
        for (way, ssh) in [("answers", &answers), ("requests", &requests)] {
            let program = ssh.program();
            client
                .repo
                .git(&["config", "core.sshCommand", program.to_str().unwrap()]);
            let name = format!("{way}-{limit}");
            let result = try_push(&client, &url, &name, &tip);
            let taken = || refs_of(&bare).contains_key(&format!("refs/heads/{name}"));
            match result {
                Ok(report) => {
                    let done = matches!(report.refs[0].status, Status::Done { .. });
                    assert_eq!(done, taken(), "{name}: {report:?}");
                    seen[0] += 1;
                }
                Err(error) if error.is_outcome_unknown() => seen[1] += 1,
                Err(error) => {
                    assert!(error.is_transient(), "{name}: {error}");
                    assert!(!taken(), "{name}: {error}");
                    seen[2] += 1;
                }
            }
        }
    }
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
    drop(host);
}

/// A server that says the same to everybody, whatever it hears.
fn liar(answer: impl Fn(&mut dyn Write) -> std::io::Result<()> + Send + 'static) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        // One connection, or two where the client tries again.
        for stream in listener.incoming().take(2).flatten() {
            let mut hears = stream.try_clone().unwrap();
            std::thread::spawn(move || std::io::copy(&mut hears, &mut std::io::sink()));
            let _ = answer(&mut &stream);
            let _ = stream.shutdown(std::net::Shutdown::Write);
        }
    });
    format!("git://127.0.0.1:{port}/x.git")
}

fn line(text: &[u8]) -> Vec<u8> {
    [format!("{:04x}", text.len() + 4).as_bytes(), text].concat()
}

const ID: &str = "0123456789012345678901234567890123456789";

#[test]
fn lists_without_end_are_refused() {
    let client = Client::new(Format::Sha1);
    let url = liar(|out| {
        out.write_all(&line(format!("{ID} HEAD\0side-band-64k\n").as_bytes()))?;
        let many = line(format!("{ID} refs/heads/x\n").as_bytes()).repeat(10_000);
        loop {
            out.write_all(&many)?;
        }
    });
    let error = client.remote(&url).upload_pack().unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");

    let url = liar(|out| {
        out.write_all(&line(b"version 2\n"))?;
        loop {
            out.write_all(&line(b"capability\n").repeat(1000))?;
        }
    });
    let error = client.remote(&url).upload_pack().unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");

    // Version 2 references.
    let url = liar(|out| {
        out.write_all(&line(b"version 2\n"))?;
        out.write_all(&line(b"ls-refs\n"))?;
        out.write_all(b"0000")?;
        let many = line(&[format!("{ID} refs/heads/").as_bytes(), &[b'x'; 60_000]].concat());
        loop {
            out.write_all(&many)?;
        }
    });
    let error = client.remote(&url).upload_pack().unwrap().refs(&[]).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
}

fn greeting() -> Vec<u8> {
    [
        line(b"version 2\n"),
        line(b"ls-refs\n"),
        line(b"fetch=filter\n"),
        b"0000".to_vec(),
    ]
    .concat()
}

fn fetch_from(client: &Client, url: &str, haves: Haves<'_>) -> Result<Vec<u8>, Error> {
    let mut from = client.remote(url).upload_pack()?;
    let want = ObjectId::from_hex(ID.as_bytes()).unwrap();
    let mut stream = from.fetch(Fetch {
        haves,
        ..Fetch::new(vec![want])
    })?;
    let mut pack = Vec::new();
    stream.read_to_end(&mut pack).map_err(crate::support::inner)?;
    stream.finish()?;
    Ok(pack)
}

#[test]
fn messages_without_end_are_refused() {
    let client = Client::new(Format::Sha1);
    let url = liar(|out| {
        out.write_all(&greeting())?;
        out.write_all(&line(b"packfile\n"))?;
        let many = line(&[&b"\x02"[..], &[b'.'; 60_000]].concat());
        loop {
            out.write_all(&many)?;
        }
    });
    let error = fetch_from(&client, &url, Haves::Known(Vec::new())).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
}

#[test]
fn answers_to_what_nobody_asked_are_refused() {
    let client = Client::new(Format::Sha1);
    for (answer, words) in [
        (line(b"wanted-refs\n"), "lost"),
        (line(b"surprise\n"), "unknown section"),
        (b"0000".to_vec(), "no pack"),
        (b"0001".to_vec(), "no pack"),
        (line(b"ERR upload-pack: no\n"), "refused: upload-pack: no"),
        (
            [line(b"packfile\n"), line(b"\x01PACK"), line(b"\x03disk full\n")].concat(),
            "refused: disk full",
        ),
        (
            [line(b"packfile\n"), line(b"\x07PACK")].concat(),
            "unknown band 7",
        ),
        (
            [line(b"packfile\n"), line(b"\x01PACK"), b"0001".to_vec()].concat(),
            "ends within",
        ),
        ([line(b"packfile\n"), line(b"\x01PACK")].concat(), "lost"),
    ] {
        let told = answer.clone();
        let url = liar(move |out| {
            out.write_all(&greeting())?;
            out.write_all(&told)
        });
        let error = fetch_from(&client, &url, Haves::Known(Vec::new())).unwrap_err();
        assert!(error.to_string().contains(words), "{answer:?}: {error}");
    }
    // Acknowledgements of what nobody has.
    for answer in [
        format!("ACK {}\n", "9".repeat(40)),
        "ACK 12\n".to_owned(),
        "whatever\n".to_owned(),
    ] {
        let url = liar(move |out| {
            out.write_all(&greeting())?;
            out.write_all(&line(b"acknowledgments\n"))?;
            out.write_all(&line(answer.as_bytes()))?;
            out.write_all(b"0000")
        });
        let mut candidates = std::iter::once(id(ID));
        let error = fetch_from(&client, &url, Haves::Candidates(&mut candidates)).unwrap_err();
        assert!(matches!(error, Error::NotGit { .. }), "{error}");
    }
    // Pages and other protocols, and ids of another hash.
    for greeting in [
        b"<!DOCTYPE html><html>".to_vec(),
        b"SSH-2.0-OpenSSH_9.2p1\r\n".to_vec(),
        b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
        [line(format!("{ID}{ID} HEAD\0\n").as_bytes()), b"0000".to_vec()].concat(),
        [
            line(format!("{ID} HEAD\0object-format=sha256\n").as_bytes()),
            b"0000".to_vec(),
        ]
        .concat(),
        line(format!("{ID} HEAD\n").as_bytes()),
        b"0003".to_vec(),
    ] {
        let url = liar(move |out| out.write_all(&greeting));
        let error = client.remote(&url).upload_pack().unwrap_err();
        assert!(matches!(error, Error::NotGit { .. }), "{error}");
        let error = client.remote(&url).receive_pack().unwrap_err();
        assert!(matches!(error, Error::NotGit { .. }), "{error}");
    }
    let url = liar(|out| out.write_all(&line(format!("{ID} HEAD\0object-format=md5\n").as_bytes())));
    let error = client.remote(&url).upload_pack().unwrap_err();
    assert!(matches!(error, Error::ObjectFormat { .. }), "{error}");
}

#[test]
fn a_server_that_listens_to_nothing_does_not_hang_the_push() {
    // It fills its side of the connection while the pack is sent, and reads only when it is done.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let caps = format!(
            "{} capabilities^{{}}\0report-status side-band-64k\n",
            "0".repeat(40)
        );
        stream.write_all(&line(caps.as_bytes())).unwrap();
        stream.write_all(b"0000").unwrap();
        let chatter = line(&[&b"\x02"[..], &[b'x'; 60_000], b"\n"].concat());
        for _ in 0..300 {
            stream.write_all(&chatter).unwrap();
        }
        let report = [
            line(b"unpack ok\n"),
            line(b"ok refs/heads/main\n"),
            b"0000".to_vec(),
        ]
        .concat();
        let mut heard = vec![0; 20 << 20];
        stream.read_exact(&mut heard).unwrap();
        stream
            .write_all(&line(&[&b"\x01"[..], &report].concat()))
            .unwrap();
        stream.write_all(b"0000").unwrap();
    });
    let client = Client::new(Format::Sha1);
    let to = client
        .remote(&format!("git://127.0.0.1:{port}/x.git"))
        .receive_pack()
        .unwrap();
    let push = Push {
        commands: vec![Command::create("refs/heads/main", id(ID))],
        ..Push::default()
    };
    let report = to.push(push, |out| out.write_all(&vec![7; 20 << 20])).unwrap();
    assert!(matches!(report.refs[0].status, Status::Done { .. }));
    server.join().unwrap();
    assert_eq!(client.heard.remote().len(), 300 * 60_001);
}

#[test]
fn an_ssh_program_that_fails_is_told_of() {
    let client = Client::new(Format::Sha1);
    for (action, words) in [
        ("exit 255", "exit status: 255"),
        ("echo hello", "in Git's protocol"),
        ("kill -9 $$", "signal: 9"),
    ] {
        let ssh = Ssh::with(action);
        client
            .repo
            .git(&["config", "core.sshCommand", ssh.program().to_str().unwrap()]);
        let error = client.remote("host.example:x.git").upload_pack().unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert!(error.to_string().contains("host.example"), "{error}");
    }
    client
        .repo
        .git(&["config", "core.sshCommand", "/no/such/program"]);
    let error = client.remote("host.example:x.git").upload_pack().unwrap_err();
    assert!(matches!(error, Error::Program { .. }), "{error}");
    let error = client.remote("/srv/x.git").upload_pack().unwrap_err();
    assert!(matches!(error, Error::Local { .. }), "{error}");
    client.config("protocol.ssh.allow", "never");
    let error = client.try_remote("host.example:x.git").unwrap_err();
    assert!(matches!(error, Error::NotAllowed { .. }), "{error}");
}

/// Wants to stop once the flag is up.
#[derive(Default)]
struct Stop(AtomicBool);

impl Messages for Stop {
    fn interrupted(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// A server that lets itself be greeted, and then only listens, or not even that.
fn mute(listens: bool) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let caps = format!("{} capabilities^{{}}\0report-status\n", "0".repeat(40));
        stream.write_all(&line(caps.as_bytes())).unwrap();
        stream.write_all(b"0000").unwrap();
        match listens {
            true => drop(std::io::copy(&mut stream, &mut std::io::sink())),
            false => std::thread::sleep(std::time::Duration::from_secs(60)),
        }
    });
    port
}

#[test]
fn an_interrupted_push_is_told_by_how_far_it_came() {
    let client = Client::new(Format::Sha1);
    let repository = Repository::open(client.repo.path()).unwrap();
    for listens in [true, false] {
        let stop = Arc::new(Stop::default());
        let url = format!("git://127.0.0.1:{}/x.git", mute(listens));
        let address = Address::parse(url.as_bytes().as_bstr()).unwrap();
        let options = Options::read_with(&repository.config(), &address, Environment::default()).unwrap();
        let to = Remote::new(address, options, stop.clone())
            .receive_pack()
            .unwrap();
        let push = Push {
            commands: vec![Command::create("refs/heads/main", id(ID))],
            ..Push::default()
        };
        let result = to.push(push, |out| {
            if !listens {
                stop.0.store(true, Ordering::SeqCst);
                // More than fits on the way.
                return out.write_all(&vec![0; 64 << 20]);
            }
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                std::thread::sleep(std::time::Duration::from_millis(300));
                stop.0.store(true, Ordering::SeqCst);
            });
            out.write_all(&[0; 100])
        });
        match result.unwrap_err() {
            PushError::Remote(error) if listens => assert!(error.is_outcome_unknown(), "{error}"),
            PushError::Remote(error) => assert!(matches!(error, Error::Interrupted), "{error}"),
            PushError::Pack(error) => panic!("{error}"),
        }
    }
}
