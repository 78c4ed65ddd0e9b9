//! Connections to http servers, straight or through a proxy.

use std::io::{self, BufReader, Read, Write};
use std::sync::{Arc, Mutex};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::head::{Failure, Head};
use super::location::Location;
use super::settings::Settings;
use crate::transport::channel::BUFFER;
use crate::transport::error::{cause, printable};
use crate::transport::socket::Socket;
use crate::transport::{Error, Messages};

/// A stream of bytes to a server.
pub(super) enum Stream {
    Plain(Socket),
    Tls(Box<StreamOwned<ClientConnection, Socket>>),
}

impl Stream {
    fn socket(&self) -> &Socket {
        match self {
            Stream::Plain(socket) => socket,
            Stream::Tls(stream) => &stream.sock,
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.read(buffer),
            Stream::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.write(data),
            Stream::Tls(stream) => stream.write(data),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(socket) => socket.flush(),
            Stream::Tls(stream) => stream.flush(),
        }
    }
}

/// Where a connection leads: one to the same place may be used again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Route {
    tls: bool,
    host: String,
    port: u16,
    proxy: Option<String>,
}

impl Route {
    pub(super) fn to(at: &Location, settings: &Settings) -> Route {
        Route {
            tls: at.tls,
            host: at.host.clone(),
            port: at.port,
            proxy: settings.proxy.as_ref().map(ToString::to_string),
        }
    }
}

/// A connection that is ready for a request, or in the middle of one.
pub(super) struct Connection {
    pub stream: BufReader<Stream>,
    route: Route,
    /// Requests name the whole URL, because a proxy reads them.
    pub through_proxy: bool,
}

/// The connection that waits for the next request.
#[derive(Clone, Default)]
pub(super) struct Idle(Arc<Mutex<Option<Connection>>>);

impl Idle {
    pub(super) fn put(&self, connection: Connection) {
        if let Ok(mut idle) = self.0.lock() {
            *idle = Some(connection);
        }
    }

    /// The waiting connection, if it leads there and is still open.
    pub(super) fn take(&self, route: &Route) -> Option<Connection> {
        let connection = self.0.lock().ok()?.take()?;
        let usable = connection.route == *route
            && connection.stream.buffer().is_empty()
            && !connection.stream.get_ref().socket().is_stale();
        usable.then_some(connection)
    }
}

/// Why no connection came about.
pub(super) enum NoConnection {
    /// The proxy wants to know who asks: the values of its `Proxy-Authenticate`.
    ProxyAuthentication(Vec<String>),
    Other(Error),
}

impl From<Error> for NoConnection {
    fn from(error: Error) -> NoConnection {
        NoConnection::Other(error)
    }
}

/// Connects, through the proxy if there is one. `authorization` is for the proxy; `tls` gives what secure connections
/// are made with.
pub(super) fn dial(
    at: &Location,
    settings: &Settings,
    tls: impl FnOnce() -> Result<Arc<ClientConfig>, Error>,
    authorization: Option<&str>,
    messages: &Arc<dyn Messages>,
    remote: &str,
) -> Result<Connection, NoConnection> {
    let mut socket = match &settings.proxy {
        Some(proxy) => {
            let name = format!("{remote} through the proxy {proxy}");
            Socket::connect(&proxy.host, proxy.port, &name, messages)?
        }
        None => Socket::connect(&at.host, at.port, remote, messages)?,
    };
    socket.set_low_speed(settings.low_speed);
    let route = Route::to(at, settings);
    if !at.tls {
        return Ok(Connection {
            stream: BufReader::with_capacity(BUFFER, Stream::Plain(socket)),
            route,
            through_proxy: settings.proxy.is_some(),
        });
    }
    if settings.proxy.is_some() {
        socket = tunnel(socket, at, settings, authorization, remote)?;
    }
    let stream = secure(socket, at, tls()?, remote)?;
    Ok(Connection {
        stream: BufReader::with_capacity(BUFFER, Stream::Tls(Box::new(stream))),
        route,
        through_proxy: false,
    })
}

/// Has the proxy connect to the server.
fn tunnel(
    mut socket: Socket,
    at: &Location,
    settings: &Settings,
    authorization: Option<&str>,
    remote: &str,
) -> Result<Socket, NoConnection> {
    let host = match at.host.contains(':') {
        true => format!("[{}]:{}", at.host, at.port),
        false => format!("{}:{}", at.host, at.port),
    };
    let mut request = format!(
        "CONNECT {host} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {}\r\n",
        settings.user_agent
    );
    if let Some(authorization) = authorization {
        request.push_str(&format!("Proxy-Authorization: {authorization}\r\n"));
    }
    request.push_str("\r\n");
    let failed = |message: String| Error::Connect {
        remote: remote.to_owned(),
        message: format!("the proxy {message}; see http.proxy"),
    };
    let lost = |error: io::Error| match Error::from_io(error) {
        Ok(error) => error,
        Err(error) => failed(format!("did not answer: {}", cause(&error))),
    };
    socket.write_all(request.as_bytes()).map_err(lost)?;
    // The server speaks only after it is spoken to, so that no byte of it can be lost in this buffer.
    let mut stream = BufReader::with_capacity(BUFFER, socket);
    let head = Head::read(&mut stream).map_err(|failure| match failure {
        Failure::Nothing(error) | Failure::Read(error) => lost(error),
        Failure::Invalid(message) => failed(format!("sent {}", printable(message.as_bytes()))),
    })?;
    match head.status {
        200..300 if stream.buffer().is_empty() => Ok(stream.into_inner()),
        407 => Err(NoConnection::ProxyAuthentication(
            head.values("proxy-authenticate").map(str::to_owned).collect(),
        )),
        status => Err(failed(format!("refused: {status} {}", printable(head.reason.as_bytes()))).into()),
    }
}

fn secure(
    mut socket: Socket,
    at: &Location,
    config: Arc<ClientConfig>,
    remote: &str,
) -> Result<StreamOwned<ClientConnection, Socket>, Error> {
    let failed = |message: String| Error::Tls {
        remote: remote.to_owned(),
        message,
    };
    let name = ServerName::try_from(at.host.clone())
        .map_err(|_| failed(format!("'{}' cannot be the name in a certificate", at.host)))?;
    let mut session = ClientConnection::new(config, name).map_err(|error| failed(error.to_string()))?;
    while session.is_handshaking() {
        match session.complete_io(&mut socket) {
            Ok(_) => {}
            Err(error) => {
                let error = match Error::from_io(error) {
                    Ok(error) => return Err(error),
                    Err(error) => error,
                };
                let inner = error
                    .get_ref()
                    .and_then(|inner| inner.downcast_ref::<rustls::Error>());
                return Err(failed(match inner {
                    Some(rustls::Error::InvalidCertificate(reason)) => format!(
                        "the certificate of the server is not accepted: {reason:?}; see http.sslCAInfo"
                    ),
                    Some(rustls::Error::InvalidMessage(_)) => {
                        "the server does not speak TLS on this port; check the address".to_owned()
                    }
                    Some(other) => other.to_string(),
                    None => format!("the connection was lost: {}", cause(&error)),
                }));
            }
        }
    }
    Ok(StreamOwned::new(session, socket))
}
