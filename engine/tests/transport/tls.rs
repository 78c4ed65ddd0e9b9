//! https.

use std::cell::RefCell;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use ingot_engine::transport::Error;
use ingot_testdata::golden;
use ingot_testdata::repo::Format;
use ingot_testdata::serve::http::{Reply, Request, Server};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use crate::http::{fetch_all, push_new, site};
use crate::support::Client;

fn file(name: &str) -> PathBuf {
    golden("tls").join(name)
}

fn certificates(path: &Path) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_file_iter(path)
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

fn config(versions: &[&'static rustls::SupportedProtocolVersion], client: bool) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls_graviola::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .unwrap();
    let builder = match client {
        false => builder.with_no_client_auth(),
        true => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(certificates(&file("ca.pem")));
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let config = builder.with_single_cert(certificates(&file("server.pem")), key);
    Arc::new(config.unwrap())
}

/// One end of a secure connection, to read from and to write to.
#[derive(Clone)]
struct End(Rc<RefCell<StreamOwned<ServerConnection, TcpStream>>>);

impl Read for End {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().read(buffer)
    }
}

impl Write for End {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().write(data)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.borrow_mut().flush()
    }
}

/// Puts TLS in front of a server; returns the port.
fn secured(server: Server, config: Arc<ServerConfig>) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = Arc::new(server);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (server, config) = (Arc::clone(&server), Arc::clone(&config));
            std::thread::spawn(move || {
                let session = ServerConnection::new(config).unwrap();
                let end = End(Rc::new(RefCell::new(StreamOwned::new(session, stream))));
                let mut writer = end.clone();
                // A client that does not like the certificate is gone by now.
                let _ = server.serve(&mut BufReader::new(end), &mut writer);
                let mut stream = writer.0.borrow_mut();
                stream.conn.send_close_notify();
                let _ = stream.flush();
                let _ = stream.sock.shutdown(Shutdown::Write);
            });
        }
    });
    port
}

fn both() -> [&'static rustls::SupportedProtocolVersion; 2] {
    [&rustls::version::TLS13, &rustls::version::TLS12]
}

fn trusting() -> Client {
    let client = Client::new(Format::Sha1);
    client.config("http.sslCAInfo", file("ca.pem").to_str().unwrap());
    client
}

#[test]
fn secure_connections_carry_everything() {
    let (root, _) = site();
    for (number, version) in both().into_iter().enumerate() {
        let port = secured(Server::start(root.path()), config(&[version], false));
        let url = format!("https://127.0.0.1:{port}/x.git");
        let client = trusting();
        fetch_all(&client, &url).unwrap();
        let mut numbers = ingot_testdata::random::Numbers::new(5);
        let noise: Vec<u8> = (0..400_000).flat_map(|_| numbers.draw().to_le_bytes()).collect();
        client.repo.write("noise", noise);
        push_new(&client, &url, &format!("large{number}")).unwrap();
        fetch_all(&trusting(), &url).unwrap();
    }
}

#[test]
fn certificates_are_checked() {
    let (root, _) = site();
    let port = secured(Server::start(root.path()), config(&both(), false));
    let url = format!("https://127.0.0.1:{port}/x.git");
    let error = fetch_all(&Client::new(Format::Sha1), &url).unwrap_err();
    assert!(matches!(error, Error::Tls { .. }), "{error}");
    assert!(
        error.to_string().contains("UnknownIssuer") && error.to_string().contains("sslCAInfo"),
        "{error}"
    );
    // The right authority, and another name.
    let error = fetch_all(&trusting(), &format!("https://localhost:{port}/x.git")).unwrap_err();
    assert!(
        matches!(&error, Error::Tls { message, .. } if message.contains("NotValidForName")),
        "{error}"
    );

    let careless = Client::new(Format::Sha1);
    careless.config(&format!("http.https://127.0.0.1:{port}/.sslVerify"), "false");
    fetch_all(&careless, &url).unwrap();
    let warnings = careless.heard.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("not checked"), "{warnings:?}");

    let missing = Client::new(Format::Sha1);
    missing.config("http.sslCAInfo", "/no/such/file");
    let error = fetch_all(&missing, &url).unwrap_err();
    assert!(error.to_string().contains("/no/such/file"), "{error}");
    let pinned = trusting();
    pinned.config("http.pinnedPubkey", "sha256//x");
    let error = fetch_all(&pinned, &url).unwrap_err();
    assert!(matches!(error, Error::Setting { .. }), "{error}");
}

#[test]
fn clients_can_show_a_certificate() {
    let (root, _) = site();
    let port = secured(Server::start(root.path()), config(&both(), true));
    let url = format!("https://127.0.0.1:{port}/x.git");
    let error = fetch_all(&trusting(), &url).unwrap_err();
    assert!(matches!(error, Error::Tls { .. } | Error::Lost { .. }), "{error}");
    let client = trusting();
    client.config("http.sslCert", file("client.pem").to_str().unwrap());
    client.config("http.sslKey", file("client.key").to_str().unwrap());
    fetch_all(&client, &url).unwrap();
}

#[test]
fn secure_connections_go_through_proxies() {
    let (root, _) = site();
    let port = secured(Server::start(root.path()), config(&both(), false));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let proxy = listener.local_addr().unwrap().port();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&heard);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(stream.try_clone().unwrap());
            let mut head = String::new();
            while lines.read_line(&mut head).unwrap() > 2 {}
            let allowed = head.contains("Proxy-Authorization: Basic ");
            noted.lock().unwrap().push(head);
            if !allowed {
                (&stream)
                    .write_all(b"HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n")
                    .unwrap();
                continue;
            }
            (&stream)
                .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
                .unwrap();
            let to = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
            for (mut from, mut to) in [
                (stream.try_clone().unwrap(), to.try_clone().unwrap()),
                (to, stream),
            ] {
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Write);
                });
            }
        }
    });
    let client = trusting();
    client.config("http.proxy", &format!("http://alice@127.0.0.1:{proxy}"));
    client.config("credential.helper", "!echo password=word; :");
    fetch_all(&client, &format!("https://127.0.0.1:{port}/x.git")).unwrap();
    let heard = heard.lock().unwrap();
    assert_eq!(heard.len(), 2, "{heard:?}");
    assert!(heard[1].starts_with(&format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n")));
}

#[test]
fn a_redirection_to_an_insecure_place_is_not_followed() {
    let (root, _) = site();
    let plain = Server::start(root.path());
    let to = plain.url("x.git/info/refs?service=git-upload-pack");
    let server = Server::with(root.path(), move |_: &Request| {
        Reply::Status(301, vec![format!("Location: {to}")], String::new())
    });
    let port = secured(server, config(&both(), false));
    let error = fetch_all(&trusting(), &format!("https://127.0.0.1:{port}/x.git")).unwrap_err();
    assert!(
        matches!(&error, Error::Refused { message, .. } if message.contains("not secure")),
        "{error}"
    );
    assert!(plain.requests().is_empty());
}

#[test]
fn a_server_without_tls_is_told_of() {
    let (root, _) = site();
    let server = Server::start(root.path());
    let error = fetch_all(&trusting(), &format!("https://127.0.0.1:{}/x.git", server.port())).unwrap_err();
    assert!(matches!(error, Error::Tls { .. }), "{error}");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(b"220 mail.example ESMTP\r\n");
        }
    });
    let error = fetch_all(&trusting(), &format!("https://127.0.0.1:{port}/x.git")).unwrap_err();
    assert!(matches!(error, Error::Tls { .. }), "{error}");
}
