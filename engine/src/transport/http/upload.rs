//! A request whose body is made while it is sent.

use std::io::{self, Write};
use std::sync::Arc;

use super::client::{Ask, Client, Fault, Response, lost_body, write_error};
use super::connection::Connection;
use super::head::Head;
use super::location::Location;
use crate::transport::Error;
use crate::transport::channel::BUFFER;

/// Eight digits and the end of their line.
const ROOM: usize = 10;

/// Held back up to `http.postBuffer`, then sent in chunks.
pub(in crate::transport) struct Upload {
    client: Arc<Client>,
    at: Location,
    headers: Vec<String>,
    /// What is held back: the whole body, or the next chunk; behind room for the length of a chunk, so that it is sent
    /// with one write.
    buffer: Vec<u8>,
    most: usize,
    connection: Option<Connection>,
    /// What went wrong, for those that see only an error of writing.
    failed: bool,
}

impl Upload {
    pub(super) fn new(client: &Arc<Client>, at: Location, headers: Vec<String>) -> Result<Upload, Error> {
        let most = client.settings(&at)?.post_buffer;
        Ok(Upload {
            client: Arc::clone(client),
            at,
            headers,
            buffer: vec![0; ROOM],
            most,
            connection: None,
            failed: false,
        })
    }

    /// Begins to send. What is sent cannot be sent again, so whether the server wants credentials is asked before.
    fn begin(&mut self) -> Result<(), Error> {
        if !self.client.is_authenticated(&self.at) {
            let probe = Ask {
                method: "POST",
                at: &self.at,
                headers: &self.headers,
                body: Some(crate::transport::pkt_line::FLUSH),
                repeatable: true,
            };
            let mut response = self.client.exchange(probe).map_err(Fault::into_error)?;
            match response.head.status {
                200..300 => response.body.drain(),
                _ => return Err(self.client.status(response)),
            }
        }
        self.connection = Some(self.client.begin_chunked(&self.at, &self.headers)?);
        self.send()
    }

    /// Sends what is held back as one chunk.
    fn send(&mut self) -> Result<(), Error> {
        let Some(connection) = &mut self.connection else {
            return Ok(());
        };
        let length = self.buffer.len() - ROOM;
        if length == 0 {
            return Ok(());
        }
        self.buffer[..ROOM].copy_from_slice(format!("{length:08x}\r\n").as_bytes());
        self.buffer.extend_from_slice(b"\r\n");
        let sent = connection.stream.get_mut().write_all(&self.buffer);
        self.buffer.truncate(ROOM);
        sent.map_err(|error| self.cut(error))
    }

    /// The server does not listen any more: it may have said why.
    fn cut(&mut self, error: io::Error) -> Error {
        let error = lost_body(&self.client.remote, error);
        if matches!(error, Error::Interrupted) {
            return error;
        }
        let Some(mut connection) = self.connection.take() else {
            return error;
        };
        match Head::read(&mut connection.stream) {
            Ok(head) if head.status >= 400 => match self.client.response(connection, head) {
                Ok(response) => self.client.status(response),
                Err(_) => error,
            },
            _ => error,
        }
    }

    /// Sends the end, and waits for the answer.
    pub(super) fn finish(mut self) -> Result<Response, Fault> {
        if self.failed {
            return Err(Fault::Unsent(Error::Request {
                remote: self.client.remote.clone(),
                message: "a request that could not be sent was ended".to_owned(),
            }));
        }
        if self.connection.is_none() {
            return self.client.exchange(Ask {
                method: "POST",
                at: &self.at,
                headers: &self.headers,
                body: Some(&self.buffer[ROOM..]),
                repeatable: false,
            });
        }
        // From here on, the server may have everything.
        self.send().map_err(Fault::Unanswered)?;
        let client = Arc::clone(&self.client);
        let Some(mut connection) = self.connection.take() else {
            return Err(Fault::Unanswered(Error::Request {
                remote: client.remote.clone(),
                message: "no connection".to_owned(),
            }));
        };
        let stream = connection.stream.get_mut();
        let ended = stream.write_all(b"0\r\n\r\n").and_then(|()| stream.flush());
        match (ended, Head::read(&mut connection.stream)) {
            (_, Ok(head)) => client.response(connection, head).map_err(Fault::Unanswered),
            (Err(error), Err(_)) => Err(Fault::Unanswered(lost_body(&client.remote, error))),
            (Ok(()), Err(failure)) => Err(Fault::Unanswered(client.failure(failure))),
        }
    }
}

impl Write for Upload {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let most = match self.connection {
            Some(_) => BUFFER,
            None => self.most,
        };
        if self.buffer.len() - ROOM + data.len() > most {
            let sent = match self.connection {
                Some(_) => self.send(),
                None => self.begin(),
            };
            if let Err(error) = sent {
                self.failed = true;
                return Err(write_error(error));
            }
        }
        let data = &data[..data.len().min(4 * BUFFER)];
        self.buffer.extend_from_slice(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
