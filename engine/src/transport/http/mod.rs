//! Smart HTTP (gitprotocol-http(5)), on an HTTP/1.1 client of our own.
//!
//! A push streams a body of unknown length, needs to know how far it came when the connection breaks, may be asked for
//! credentials by any request, and wants to hear what a server says that stops listening in the middle. A small client
//! that is made for that knows more than a general one tells.

mod authentication;
mod body;
mod client;
mod connection;
mod head;
mod location;
mod proxy;
mod settings;
mod tls;
mod upload;

use std::io::{self, Read, Write as _};
use std::sync::Arc;

use gix_zlib::Compression;

use super::channel::Service as Name;
use super::options::Version;
use super::{Address, Error};
use body::Body;
use client::{Ask, Fault, Response};
use location::Location;

pub(super) use client::Client;
pub(super) use upload::Upload;

/// Requests above this size are compressed, as Git does.
const COMPRESS_ABOVE: usize = 1024;
/// Redirections that are followed.
const MOST_REDIRECTIONS: u32 = 20;

/// A service of a server, asked over http. Reading yields the answer to the last request.
pub(super) struct Service {
    client: Arc<Client>,
    name: Name,
    version: Version,
    base: Location,
    answer: Option<Body>,
}

impl Service {
    /// Asks for the greeting, which is the first thing to read.
    pub(super) fn open(
        client: &Arc<Client>,
        address: &Address,
        name: Name,
        version: Version,
    ) -> Result<Service, Error> {
        let base = Location::of(address.url(), &client.remote)?;
        client.set_home(&base);
        let mut service = Service {
            client: Arc::clone(client),
            name,
            version,
            base,
            answer: None,
        };
        let tail = format!(
            "{}service={}",
            match service.base.target.contains('?') {
                true => "/info/refs&",
                false => "/info/refs?",
            },
            name.name()
        );
        let response = service.greeting(&tail)?;
        service.check_type(&response, "advertisement")?;
        service.answer = Some(response.body);
        Ok(service)
    }

    /// Follows redirections, and remembers where they led.
    fn greeting(&mut self, tail: &str) -> Result<Response, Error> {
        let mut at = self.base.join(tail);
        for _ in 0..=MOST_REDIRECTIONS {
            let headers = self.headers(&["Accept: */*".to_owned(), "Pragma: no-cache".to_owned()]);
            let response = self
                .client
                .exchange(Ask {
                    method: "GET",
                    at: &at,
                    headers: &headers,
                    body: None,
                    repeatable: true,
                })
                .map_err(Fault::into_error)?;
            match response.head.status {
                200..=299 => return Ok(response),
                301 | 302 | 303 | 307 | 308 => at = self.redirected(&at, response, tail)?,
                _ => return Err(self.client.status(response)),
            }
        }
        Err(self.not_git("it redirects again and again"))
    }

    fn redirected(&mut self, from: &Location, response: Response, tail: &str) -> Result<Location, Error> {
        let Some(to) = response.head.value("location").map(str::to_owned) else {
            return Err(self.not_git("it redirects to nowhere"));
        };
        let mut body = response.body;
        body.drain();
        let to = from.follow(&to, self.remote())?;
        if !self.client.settings(from)?.follow_redirects {
            return Err(Error::Refused {
                remote: self.remote().to_owned(),
                message: format!("it redirects to {to}, and http.followRedirects is off"),
            });
        }
        if from.tls && !to.tls {
            return Err(Error::Refused {
                remote: self.remote().to_owned(),
                message: format!("it redirects to {to}, which is not secure"),
            });
        }
        let Some(base) = to.base(tail) else {
            return Err(self.not_git(&format!(
                "it redirects to {to}, which is no repository (a page to log in?)"
            )));
        };
        self.client.messages.warning(&format!("redirecting to {base}"));
        self.base = base;
        // Joined anew, so that configuration for the repository there applies.
        Ok(self.base.join(tail))
    }

    pub(super) fn remote(&self) -> &str {
        &self.client.remote
    }

    fn not_git(&self, message: &str) -> Error {
        Error::NotGit {
            remote: self.remote().to_owned(),
            message: message.to_owned(),
        }
    }

    fn headers(&self, more: &[String]) -> Vec<String> {
        let mut headers = more.to_vec();
        if let Some(parameter) = self.version.parameter() {
            headers.push(format!("Git-Protocol: {parameter}"));
        }
        headers
    }

    fn request_headers(&self) -> Vec<String> {
        self.headers(&[
            format!("Content-Type: application/x-{}-request", self.name.name()),
            format!("Accept: application/x-{}-result", self.name.name()),
        ])
    }

    fn request_place(&self) -> Location {
        self.base.join(&format!("/{}", self.name.name()))
    }

    fn check_type(&self, response: &Response, kind: &str) -> Result<(), Error> {
        let wanted = format!("application/x-{}-{kind}", self.name.name());
        let found = response.head.media_type();
        if found == wanted {
            return Ok(());
        }
        Err(self.not_git(&match found.as_str() {
            "text/html" | "application/xhtml+xml" => "it sends a web page".to_owned(),
            "text/plain" => "it has no smart HTTP service, only files at most".to_owned(),
            "" => format!("its answer has no type, {wanted} is wanted"),
            other => format!(
                "its answer is of the type '{}', {wanted} is wanted",
                super::error::printable(other.as_bytes())
            ),
        }))
    }

    /// Sends a request; its answer is what is read from now on.
    pub(super) fn ask(&mut self, request: &[u8]) -> Result<(), Error> {
        if let Some(mut body) = self.answer.take() {
            body.drain();
        }
        let mut headers = self.request_headers();
        let compressed;
        let mut body = request;
        if request.len() > COMPRESS_ABOVE {
            compressed = gzip(request).map_err(|error| Error::Request {
                remote: self.remote().to_owned(),
                message: error.to_string(),
            })?;
            if compressed.len() < request.len() {
                body = &compressed;
                headers.push("Content-Encoding: gzip".to_owned());
            }
        }
        let at = self.request_place();
        let response = self
            .client
            .exchange(Ask {
                method: "POST",
                at: &at,
                headers: &headers,
                body: Some(body),
                repeatable: true,
            })
            .map_err(Fault::into_error)?;
        self.take(response)
    }

    fn take(&mut self, response: Response) -> Result<(), Error> {
        match response.head.status {
            200..300 => {}
            300..400 => {
                return Err(self.not_git("it redirects in the middle of a conversation"));
            }
            _ => return Err(self.client.status(response)),
        }
        self.check_type(&response, "result")?;
        self.answer = Some(response.body);
        Ok(())
    }

    /// Begins a request whose body is written piece by piece.
    pub(super) fn begin_upload(&mut self) -> Result<Upload, Error> {
        if let Some(mut body) = self.answer.take() {
            body.drain();
        }
        Upload::new(&self.client, self.request_place(), self.request_headers())
    }

    /// Ends it; its answer is what is read from now on. The server may have acted on it whatever the error is, but for
    /// one of [`Fault::Unsent`], and a refusal by status.
    pub(super) fn finish_upload(&mut self, upload: Upload) -> Result<(), Error> {
        let unknown = |error: Error| Error::OutcomeUnknown {
            remote: self.client.remote.clone(),
            message: match error {
                Error::Lost { message, .. } | Error::Unavailable { message, .. } => message,
                other => other.to_string(),
            },
        };
        match upload.finish() {
            Err(Fault::Unsent(error)) => Err(error),
            Err(Fault::Unanswered(error)) => Err(unknown(error)),
            // A gateway may have given up on a server that had not.
            Ok(response) if response.head.status >= 500 => Err(unknown(self.client.status(response))),
            Ok(response) => match self.take(response) {
                Err(error @ Error::NotGit { .. }) => Err(Error::OutcomeUnknown {
                    remote: self.client.remote.clone(),
                    message: error.to_string(),
                }),
                other => other,
            },
        }
    }

    /// Reads what is left of the answer.
    pub(super) fn drain(&mut self) {
        if let Some(body) = &mut self.answer {
            body.drain();
        }
    }
}

impl Read for Service {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.answer {
            Some(body) => body.read(buffer),
            None => Ok(0),
        }
    }
}

/// Reads a head and the lines of chunks from any stream.
#[cfg(test)]
pub(super) fn parse_any(stream: &mut io::BufReader<&[u8]>) {
    if let Ok(head) = head::Head::read(stream) {
        let _ = (head.framing(), head.media_type(), head.keeps_connection());
        body::parse_chunks(stream);
    }
}

/// RFC 1952 around what zlib makes: without its header of two bytes and its checksum of four.
fn gzip(data: &[u8]) -> io::Result<Vec<u8>> {
    let mut zlib = gix_zlib::stream::deflate::Write::new(Vec::new(), Compression::DEFAULT);
    zlib.write_all(data)?;
    zlib.flush()?;
    let zlib = zlib.into_inner();
    let deflated = zlib
        .get(2..zlib.len().saturating_sub(4))
        .ok_or_else(|| io::Error::other("nothing was compressed"))?;
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    out.extend_from_slice(deflated);
    out.extend_from_slice(&crc32fast::hash(data).to_le_bytes());
    // The length is kept modulo 2^32.
    out.extend_from_slice(&(data.len() as u32).to_le_bytes());
    Ok(out)
}
