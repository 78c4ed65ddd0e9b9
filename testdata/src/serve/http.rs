//! A small HTTP server in front of `git http-backend`, whose answers a test may replace.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::git;

/// A request.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// `GET` or `POST`, or `CONNECT` of a proxy.
    pub method: String,
    /// Path and query, as they came.
    pub target: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// Not there yet when the answer is decided on.
    pub body: Vec<u8>,
    /// Which connection it came over.
    pub connection: usize,
}

impl Request {
    /// The first value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

/// An answer.
#[derive(Debug, Clone)]
pub enum Reply {
    /// What `git http-backend` says, with its length in front.
    Backend,
    /// The same in chunks.
    Chunked,
    /// The same as part of an older protocol: the end of the connection is its end.
    ToTheEnd,
    /// Status, header lines and body, after the request was read.
    Status(u16, Vec<String>, String),
    /// The same before the body of the request is read. Then the connection ends.
    Early(u16, String),
    /// Bytes, and then the end of the connection.
    Raw(Vec<u8>),
    /// The request is handed on whole, and the connection ends without an answer.
    Forget,
}

type Policy = Arc<dyn Fn(&Request) -> Reply + Send + Sync>;

/// A server on a port of its own.
pub struct Server {
    port: u16,
    stop: Arc<AtomicBool>,
    site: Site,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("port", &self.port).finish()
    }
}

impl Server {
    /// Serves what lies below a folder, answered by Git alone.
    pub fn start(root: &Path) -> Server {
        Server::with(root, |_| Reply::Backend)
    }

    /// The same, where `policy` decides on each answer.
    pub fn with(root: &Path, policy: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Server {
        let listener = super::listener();
        let site = Site {
            root: root.to_owned(),
            policy: Arc::new(policy),
            requests: Arc::default(),
        };
        let server = Server {
            port: listener.local_addr().unwrap().port(),
            stop: Arc::default(),
            site: site.clone(),
        };
        let stop = Arc::clone(&server.stop);
        std::thread::spawn(move || site.accept(&listener, &stop));
        server
    }

    /// Asks for this user name and password.
    pub fn with_password(root: &Path, user: &str, password: &str) -> Server {
        let expected = format!("Basic {}", base64(format!("{user}:{password}").as_bytes()));
        Server::with(root, move |request| match request.header("authorization") {
            Some(given) if given == expected => Reply::Backend,
            _ => Reply::Status(
                401,
                vec!["WWW-Authenticate: Basic realm=\"tests\"".into()],
                "who are you?\n".into(),
            ),
        })
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of a repository below the folder.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.site.requests.lock().unwrap().clone()
    }

    /// Serves one more connection, which came some other way.
    pub fn serve(&self, reader: &mut impl BufRead, writer: &mut impl Write) -> std::io::Result<()> {
        serve_stream(&self.site, reader, writer, usize::MAX)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

/// Standard base64 with padding.
pub fn base64(data: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in data.chunks(3) {
        let bits = group
            .iter()
            .fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - group.len()));
        for place in 0..4 {
            match place <= group.len() {
                true => out.push(DIGITS[(bits >> (18 - 6 * place) & 63) as usize] as char),
                false => out.push('='),
            }
        }
    }
    out
}

#[derive(Clone)]
struct Site {
    root: PathBuf,
    policy: Policy,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Site {
    fn accept(self, listener: &TcpListener, stop: &AtomicBool) {
        let connections = AtomicUsize::new(0);
        for stream in listener.incoming() {
            if stop.load(Ordering::SeqCst) {
                return;
            }
            let Ok(stream) = stream else { continue };
            let site = self.clone();
            let connection = connections.fetch_add(1, Ordering::SeqCst);
            std::thread::spawn(move || {
                // A client that goes away ends it.
                let _ = site.serve(stream.try_clone().unwrap(), connection);
                let _ = stream.shutdown(Shutdown::Both);
            });
        }
    }

    fn serve(&self, stream: TcpStream, connection: usize) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        serve_stream(self, &mut reader, &mut &stream, connection)
    }
}

/// Serves requests until the client is gone, or an answer ends the connection.
fn serve_stream(
    site: &Site,
    reader: &mut impl BufRead,
    writer: &mut impl Write,
    connection: usize,
) -> std::io::Result<()> {
    while let Some(mut request) = head(reader)? {
        request.connection = connection;
        let reply = (site.policy)(&request);
        if let Reply::Early(status, text) = &reply {
            site.requests.lock().unwrap().push(request);
            write!(
                writer,
                "HTTP/1.1 {status} Early\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
                text.len()
            )?;
            writer.flush()?;
            // What the client still sends is read, so that the answer is not lost with a reset of the connection.
            let _ = std::io::copy(&mut reader.take(64 << 20), &mut std::io::sink());
            return Ok(());
        }
        request.body = body(&request, reader)?;
        site.requests.lock().unwrap().push(request.clone());
        if !answer(site, &request, reply, writer)? {
            return Ok(());
        }
    }
    Ok(())
}

/// Whether the connection goes on.
fn answer(site: &Site, request: &Request, reply: Reply, writer: &mut impl Write) -> std::io::Result<bool> {
    let (chunked, to_the_end) = (matches!(reply, Reply::Chunked), matches!(reply, Reply::ToTheEnd));
    match reply {
        Reply::Early(..) => unreachable!("answered before"),
        Reply::Raw(bytes) => {
            writer.write_all(&bytes)?;
            writer.flush()?;
            return Ok(false);
        }
        Reply::Forget => {
            backend(&site.root, request);
            return Ok(false);
        }
        Reply::Status(status, headers, text) => {
            write!(writer, "HTTP/1.1 {status} Whatever\r\n")?;
            for header in headers.iter().filter(|header| !header.is_empty()) {
                write!(writer, "{header}\r\n")?;
            }
            if !headers.iter().any(|header| header.starts_with("Content-Type")) {
                write!(writer, "Content-Type: text/plain\r\n")?;
            }
            write!(writer, "Content-Length: {}\r\n\r\n{text}", text.len())?;
        }
        Reply::Backend | Reply::Chunked | Reply::ToTheEnd => {
            let (status, headers, content) = backend(&site.root, request);
            let version = if to_the_end { "1.0" } else { "1.1" };
            write!(writer, "HTTP/{version} {status}\r\n")?;
            for header in headers {
                write!(writer, "{header}\r\n")?;
            }
            if chunked {
                write!(writer, "Transfer-Encoding: chunked\r\n\r\n")?;
                for chunk in content.chunks(1000) {
                    write!(writer, "{:x};ignored=1\r\n", chunk.len())?;
                    writer.write_all(chunk)?;
                    write!(writer, "\r\n")?;
                }
                write!(writer, "0\r\nTrailer: ignored\r\n\r\n")?;
            } else {
                if !to_the_end {
                    write!(writer, "Content-Length: {}\r\n", content.len())?;
                }
                write!(writer, "\r\n")?;
                writer.write_all(&content)?;
            }
        }
    }
    writer.flush()?;
    Ok(!to_the_end)
}

fn head(reader: &mut impl BufRead) -> std::io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let mut request = Request {
        method: words.next().unwrap_or_default().to_owned(),
        target: words.next().unwrap_or_default().to_owned(),
        ..Request::default()
    };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            return Ok(Some(request));
        };
        request
            .headers
            .push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

fn body(request: &Request, reader: &mut impl BufRead) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if request.header("transfer-encoding") == Some("chunked") {
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let size = u64::from_str_radix(line.trim(), 16)
                .map_err(|_| std::io::Error::other(format!("bad chunk {line:?}")))?;
            reader.by_ref().take(size).read_to_end(&mut body)?;
            let mut end = String::new();
            reader.read_line(&mut end)?;
            if end != "\r\n" {
                return Err(std::io::Error::other("bad end of a chunk"));
            }
            if size == 0 {
                return Ok(body);
            }
        }
    }
    if let Some(length) = request.header("content-length") {
        let length = length.parse().unwrap();
        reader.take(length).read_to_end(&mut body)?;
        if (body.len() as u64) < length {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(body)
}

/// Status line, header lines and body of what Git's own CGI program says.
fn backend(root: &Path, request: &Request) -> (String, Vec<String>, Vec<u8>) {
    let (path, query) = request
        .target
        .split_once('?')
        .unwrap_or((request.target.as_str(), ""));
    let mut command = git::isolated(Command::new("git"), root);
    command
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", &request.method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("REMOTE_USER", "alice")
        .env("REMOTE_ADDR", "127.0.0.1")
        .env("CONTENT_TYPE", request.header("content-type").unwrap_or_default());
    if let Some(coding) = request.header("content-encoding") {
        command.env("HTTP_CONTENT_ENCODING", coding);
    }
    if let Some(protocol) = request.header("git-protocol") {
        command.env("GIT_PROTOCOL", protocol);
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let body = request.body.clone();
    let feeder = std::thread::spawn(move || {
        // It may know its answer before it has read everything.
        let _ = stdin.write_all(&body);
    });
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    let text = output.stdout;
    let end = text
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .unwrap_or(text.len());
    let mut status = "200 OK".to_owned();
    let mut headers = Vec::new();
    for line in String::from_utf8_lossy(&text[..end]).split("\r\n") {
        match line.strip_prefix("Status: ") {
            Some(line) => status = line.to_owned(),
            None => headers.push(line.to_owned()),
        }
    }
    (status, headers, text.get(end + 4..).unwrap_or_default().to_vec())
}
