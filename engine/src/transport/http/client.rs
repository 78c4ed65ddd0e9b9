//! Requests, with what has to happen around them: connecting, authentication, and what a status means.

use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, MutexGuard};

use rustls::ClientConfig;
use zeroize::Zeroizing;

use super::authentication::{Attempt, authorization};
use super::body::Body;
use super::connection::{Connection, Idle, NoConnection, Route, dial};
use super::head::{Failure, Head};
use super::location::Location;
use super::settings::Settings;
use super::tls;
use crate::transport::credential::Credential;
use crate::transport::error::{cause, printable};
use crate::transport::options::Options;
use crate::transport::per_url::Place;
use crate::transport::{Error, Messages};

/// What a redirection does not take along.
const SECRET_HEADERS: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "private-token"];
/// How much of an answer that is none is read for a message.
const MESSAGE: u64 = 16 * 1024;

/// Makes requests for one remote. Remembers what worked.
pub(in crate::transport) struct Client {
    pub(super) remote: String,
    options: Options,
    pub(super) messages: Arc<dyn Messages>,
    pub(super) idle: Idle,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What applies to places that were asked.
    settings: Vec<(Place, Arc<Settings>)>,
    tls: Vec<(Place, Arc<ClientConfig>)>,
    /// Credentials that servers accepted, with their origins.
    accepted: Option<(Origin, Credential)>,
    proxy_accepted: Option<Credential>,
    warned: bool,
    /// Where the address leads.
    home: Option<Origin>,
}

/// Whether it is secure, the host, and the port.
type Origin = (bool, String, u16);

/// A request.
#[derive(Clone, Copy)]
pub(super) struct Ask<'a> {
    pub method: &'static str,
    pub at: &'a Location,
    /// Whole lines without line ends.
    pub headers: &'a [String],
    pub body: Option<&'a [u8]>,
    /// Whether it may be sent again when an old connection turns out to be closed.
    pub repeatable: bool,
}

/// An answer.
pub(super) struct Response {
    pub head: Head,
    pub body: Body,
}

/// What became of a request.
pub(super) enum Fault {
    /// It did not reach the server whole.
    Unsent(Error),
    /// It did, or may have, but there is no answer.
    Unanswered(Error),
}

impl Fault {
    pub(super) fn into_error(self) -> Error {
        match self {
            Fault::Unsent(error) | Fault::Unanswered(error) => error,
        }
    }
}

impl Client {
    pub(in crate::transport) fn new(remote: String, options: Options, messages: Arc<dyn Messages>) -> Client {
        Client {
            remote,
            options,
            messages,
            idle: Idle::default(),
            state: Mutex::default(),
        }
    }

    pub(super) fn options(&self) -> &Options {
        &self.options
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What a panicking thread left is no more than forgotten credentials.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn settings(&self, at: &Location) -> Result<Arc<Settings>, Error> {
        let known = self
            .state()
            .settings
            .iter()
            .find(|(place, _)| place == at.place())
            .map(|(_, settings)| Arc::clone(settings));
        if let Some(settings) = known {
            return Ok(settings);
        }
        let settings = Arc::new(Settings::read(&self.options, at)?);
        self.state()
            .settings
            .push((at.place().clone(), Arc::clone(&settings)));
        Ok(settings)
    }

    fn tls(&self, at: &Location, settings: &Settings) -> Result<Arc<ClientConfig>, Error> {
        let mut state = self.state();
        if !settings.verify && !state.warned {
            state.warned = true;
            self.messages.warning(&format!(
                "the identity of {} is not checked, because http.sslVerify is off",
                at.authority()
            ));
        }
        if let Some((_, config)) = state.tls.iter().find(|(place, _)| place == at.place()) {
            return Ok(Arc::clone(config));
        }
        let config = tls::config(settings, &self.remote)?;
        state.tls.push((at.place().clone(), Arc::clone(&config)));
        Ok(config)
    }

    /// Says where the address leads: what is secret in `http.extraHeader` is not sent anywhere else.
    pub(super) fn set_home(&self, at: &Location) {
        self.state().home.get_or_insert_with(|| owned(at.origin()));
    }

    fn is_home(&self, at: &Location) -> bool {
        let state = self.state();
        state.home.as_ref().is_none_or(|home| *home == owned(at.origin()))
    }

    fn accepted(&self, at: &Location) -> Option<Credential> {
        let state = self.state();
        let (origin, credential) = state.accepted.as_ref()?;
        (*origin == owned(at.origin())).then(|| credential.clone())
    }

    /// Whether the server is known to accept what it will be shown.
    pub(super) fn is_authenticated(&self, at: &Location) -> bool {
        self.accepted(at).is_some()
    }

    /// Sends a request until the server accepts or refuses the credentials.
    pub(super) fn exchange(&self, ask: Ask<'_>) -> Result<Response, Fault> {
        let mut attempt = Attempt::new(ask.at.realm(), self.accepted(ask.at));
        let mut proxy = None;
        loop {
            let response = self.send(ask, attempt.credential.as_ref(), &mut proxy)?;
            match response.head.status {
                401 => {
                    let challenges: Vec<String> = response
                        .head
                        .values("www-authenticate")
                        .map(str::to_owned)
                        .collect();
                    let said = words(response);
                    attempt.next(&challenges, &said, self).map_err(Fault::Unsent)?;
                }
                407 => {
                    let challenges: Vec<String> = response
                        .head
                        .values("proxy-authenticate")
                        .map(str::to_owned)
                        .collect();
                    let said = words(response);
                    self.proxy_attempt(&mut proxy, ask.at)
                        .and_then(|attempt| attempt.next(&challenges, &said, self))
                        .map_err(Fault::Unsent)?;
                }
                status => {
                    if let Some(attempt) = proxy {
                        self.state().proxy_accepted = attempt.accepted(self);
                    }
                    if status < 400
                        && let Some(credential) = attempt.accepted(self)
                    {
                        self.state().accepted = Some((owned(ask.at.origin()), credential));
                    }
                    return Ok(response);
                }
            }
        }
    }

    fn proxy_attempt<'a>(
        &self,
        proxy: &'a mut Option<Attempt>,
        at: &Location,
    ) -> Result<&'a mut Attempt, Error> {
        let settings = self.settings(at)?;
        let Some(configured) = &settings.proxy else {
            return Err(Error::NotGit {
                remote: self.remote.clone(),
                message: "it asks for authentication at a proxy, and there is none".to_owned(),
            });
        };
        let remembered = self.state().proxy_accepted.clone();
        Ok(proxy.get_or_insert_with(|| Attempt::new(configured.realm(), remembered)))
    }

    /// Sends a request once: twice if the connection that waited for it turns out to be closed.
    fn send(
        &self,
        ask: Ask<'_>,
        credential: Option<&Credential>,
        proxy: &mut Option<Attempt>,
    ) -> Result<Response, Fault> {
        let settings = self.settings(ask.at).map_err(Fault::Unsent)?;
        let mut fresh = false;
        loop {
            let (mut connection, waited) = self
                .connect(ask.at, &settings, proxy, fresh)
                .map_err(Fault::Unsent)?;
            let mut message = self.head(ask, &settings, &connection, credential, proxy.as_ref());
            match ask.body {
                Some(body) => {
                    message.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
                }
                None => message.push_str("\r\n"),
            }
            let message = Zeroizing::new(message);
            let stream = connection.stream.get_mut();
            let sent = stream
                .write_all(message.as_bytes())
                .and_then(|()| stream.write_all(ask.body.unwrap_or_default()))
                .and_then(|()| stream.flush());
            let again = waited && ask.repeatable;
            match (sent, Head::read(&mut connection.stream)) {
                (_, Ok(head)) => return self.response(connection, head).map_err(Fault::Unanswered),
                (_, Err(Failure::Nothing(_))) if again && !fresh => fresh = true,
                (Err(error), Err(_)) => {
                    return Err(Fault::Unsent(Error::lost(
                        &self.remote,
                        "sending a request",
                        error,
                    )));
                }
                (Ok(()), Err(failure)) => return Err(Fault::Unanswered(self.failure(failure))),
            }
        }
    }

    /// What it means that there is no head.
    pub(super) fn failure(&self, failure: Failure) -> Error {
        match failure {
            Failure::Nothing(error) | Failure::Read(error) => {
                Error::lost(&self.remote, "waiting for an answer", error)
            }
            Failure::Invalid(message) => Error::NotGit {
                remote: self.remote.clone(),
                message: format!("it sends {}", printable(message.as_bytes())),
            },
        }
    }

    pub(super) fn response(&self, connection: Connection, head: Head) -> Result<Response, Error> {
        let framing = head.framing().map_err(|message| Error::NotGit {
            remote: self.remote.clone(),
            message: format!("it sends {}", printable(message.as_bytes())),
        })?;
        let idle = head.keeps_connection().then(|| self.idle.clone());
        Ok(Response {
            head,
            body: Body::new(connection, framing, idle),
        })
    }

    /// The connection that waits, or a new one. Whether it had waited comes with it.
    fn connect(
        &self,
        at: &Location,
        settings: &Settings,
        proxy: &mut Option<Attempt>,
        fresh: bool,
    ) -> Result<(Connection, bool), Error> {
        if let Some(connection) = self.idle.take(&Route::to(at, settings))
            && !fresh
        {
            return Ok((connection, true));
        }
        loop {
            if proxy.is_none() && settings.proxy.is_some() && self.state().proxy_accepted.is_some() {
                self.proxy_attempt(proxy, at)?;
            }
            let authorization = proxy
                .as_ref()
                .and_then(|attempt| attempt.credential.as_ref())
                .map(authorization);
            let dialed = dial(
                at,
                settings,
                || self.tls(at, settings),
                authorization.as_ref().map(|text| text.as_str()),
                &self.messages,
                &self.remote,
            );
            match dialed {
                Ok(connection) => return Ok((connection, false)),
                Err(NoConnection::Other(error)) => return Err(error),
                Err(NoConnection::ProxyAuthentication(challenges)) => {
                    self.proxy_attempt(proxy, at)?.next(&challenges, "", self)?;
                }
            }
        }
    }

    /// The head of a request, but for the length of the body and the line that ends it.
    fn head(
        &self,
        ask: Ask<'_>,
        settings: &Settings,
        connection: &Connection,
        credential: Option<&Credential>,
        proxy: Option<&Attempt>,
    ) -> String {
        let at = ask.at;
        let target = match connection.through_proxy {
            true => format!("{}://{}{}", at.scheme(), at.authority(), at.target),
            false => at.target.clone(),
        };
        let mut head = format!(
            "{} {target} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {}\r\nAccept-Encoding: identity\r\n",
            ask.method,
            at.authority(),
            settings.user_agent
        );
        let mut line = |line: &str| {
            head.push_str(line);
            head.push_str("\r\n");
        };
        for header in ask.headers {
            line(header);
        }
        let named = |name: &str| {
            settings.extra_headers.iter().any(|header| {
                header
                    .split(':')
                    .next()
                    .is_some_and(|known| known.trim().eq_ignore_ascii_case(name))
            })
        };
        if let Some(credential) = credential
            && !named("authorization")
        {
            line(&format!("Authorization: {}", authorization(credential).as_str()));
        }
        if let (true, Some(credential)) = (
            connection.through_proxy,
            proxy.and_then(|proxy| proxy.credential.as_ref()),
        ) {
            line(&format!(
                "Proxy-Authorization: {}",
                authorization(credential).as_str()
            ));
        }
        let home = self.is_home(at);
        for header in &settings.extra_headers {
            let name = header.split(':').next().unwrap_or_default().trim();
            if home
                || !SECRET_HEADERS
                    .iter()
                    .any(|secret| name.eq_ignore_ascii_case(secret))
            {
                line(header);
            }
        }
        head
    }

    /// Begins a request whose length is not known.
    pub(super) fn begin_chunked(&self, at: &Location, headers: &[String]) -> Result<Connection, Error> {
        let settings = self.settings(at)?;
        let mut proxy = None;
        let (mut connection, _) = self.connect(at, &settings, &mut proxy, false)?;
        let ask = Ask {
            method: "POST",
            at,
            headers,
            body: None,
            repeatable: false,
        };
        let credential = self.accepted(at);
        let mut head =
            Zeroizing::new(self.head(ask, &settings, &connection, credential.as_ref(), proxy.as_ref()));
        head.push_str("Transfer-Encoding: chunked\r\n\r\n");
        connection
            .stream
            .get_mut()
            .write_all(head.as_bytes())
            .map_err(|error| Error::lost(&self.remote, "sending a request", error))?;
        Ok(connection)
    }

    /// What a status that is no success means.
    pub(super) fn status(&self, response: Response) -> Error {
        let (status, reason) = (response.head.status, response.head.reason.clone());
        let said = words(response);
        if !said.is_empty() {
            self.messages.remote(said.as_bytes());
            if !said.ends_with('\n') {
                self.messages.remote(b"\n");
            }
        }
        let said = printable(said.as_bytes());
        let remote = self.remote.clone();
        let mut message = format!("HTTP status {status}");
        for words in [printable(reason.as_bytes()), said] {
            if !words.is_empty() {
                message.push_str(": ");
                message.push_str(&words);
            }
        }
        match status {
            404 | 410 => Error::NotFound { remote, message },
            411 => Error::Refused {
                remote,
                message: format!("{message}; raise http.postBuffer above the size of the push"),
            },
            413 => Error::Refused {
                remote,
                message: format!("{message}; the push is larger than the server takes at once"),
            },
            429 | 500..=599 => Error::Unavailable { remote, message },
            _ => Error::Refused { remote, message },
        }
    }
}

/// The server's words, if they are made for people that read lines.
fn words(response: Response) -> String {
    let is_text = response.head.media_type() == "text/plain";
    let text = response.body.start(MESSAGE);
    match is_text {
        true => String::from_utf8_lossy(&text).into_owned(),
        false => String::new(),
    }
}

fn owned((tls, host, port): (bool, &str, u16)) -> Origin {
    (tls, host.to_owned(), port)
}

/// For errors of writing, which carry what the server had to say if it said it.
pub(super) fn write_error(error: Error) -> io::Error {
    error.into_io()
}

/// A lost connection in the middle of a body.
pub(super) fn lost_body(remote: &str, error: io::Error) -> Error {
    match Error::from_io(error) {
        Ok(error) => error,
        Err(error) => Error::Lost {
            remote: remote.to_owned(),
            stage: "sending the pack",
            message: cause(&error),
        },
    }
}
