//! What can go wrong between here and a server.

use std::io;

use crate::repository;

/// Why a remote could not be asked, or its answer not be used. Every text is one line, names the remote without its
/// password, and says what to do where something can be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is none that Git would understand.
    #[error("'{address}' is not an address of a Git repository: {message}")]
    Address {
        /// The address, without its password.
        address: String,
        /// What is wrong with it.
        message: String,
    },
    /// The remote is a folder, which is opened and not connected to.
    #[error("'{remote}' is a local path: open it as a folder")]
    Local {
        /// The remote.
        remote: String,
    },
    /// Configuration that cannot be used.
    #[error(transparent)]
    Config(#[from] repository::Error),
    /// A configured value that means nothing.
    #[error("{name} cannot be used: {message}")]
    Setting {
        /// The configuration key or environment variable.
        name: String,
        /// What is wrong with its value.
        message: String,
    },
    /// Configuration forbids the protocol.
    #[error("the protocol '{protocol}' of {remote} is not allowed; see protocol.{protocol}.allow")]
    NotAllowed {
        /// The remote.
        remote: String,
        /// The protocol.
        protocol: &'static str,
    },
    /// A program that the user configured cannot be started.
    #[error("cannot start '{program}' for {remote}: {source}; {hint}")]
    Program {
        /// The remote.
        remote: String,
        /// The program, as configured.
        program: String,
        /// Why not.
        source: io::Error,
        /// What to look at.
        hint: &'static str,
    },
    /// No connection came about.
    #[error("cannot connect to {remote}: {message}")]
    Connect {
        /// The remote.
        remote: String,
        /// Why not, and what to look at.
        message: String,
    },
    /// The connection ended before an answer was complete. Nothing was changed at the remote.
    #[error("the connection to {remote} was lost while {stage}: {message}; try again")]
    Lost {
        /// The remote.
        remote: String,
        /// What was being done.
        stage: &'static str,
        /// What happened.
        message: String,
    },
    /// What came is not Git's protocol.
    #[error("{remote} does not answer in Git's protocol: {message}; check the address")]
    NotGit {
        /// The remote.
        remote: String,
        /// What came instead.
        message: String,
    },
    /// The server knows no such repository, or hides it.
    #[error("{remote} was not found: {message}; check the address and your access to it")]
    NotFound {
        /// The remote.
        remote: String,
        /// The server's words.
        message: String,
    },
    /// The server says no.
    #[error("{remote} refused: {message}")]
    Refused {
        /// The remote.
        remote: String,
        /// The server's words.
        message: String,
    },
    /// The server has trouble of its own.
    #[error("{remote} is not able to answer: {message}; try again later")]
    Unavailable {
        /// The remote.
        remote: String,
        /// The server's words.
        message: String,
    },
    /// No credentials, or none that the server accepts.
    #[error("authentication failed for {remote}: {message}")]
    Authentication {
        /// The remote.
        remote: String,
        /// What was missing or refused, and what to do.
        message: String,
    },
    /// No secure connection came about.
    #[error("no secure connection to {remote}: {message}")]
    Tls {
        /// The remote.
        remote: String,
        /// Why not, and what to look at.
        message: String,
    },
    /// The server sends more than is accepted.
    #[error("{remote} sends too much: {what} (accepted: {limit}); it cannot be used")]
    TooLarge {
        /// The remote.
        remote: String,
        /// What is too large.
        what: &'static str,
        /// How much of it is accepted.
        limit: u64,
    },
    /// The server uses an object format that is not known.
    #[error("{remote} uses the object format '{format}', which is not supported")]
    ObjectFormat {
        /// The remote.
        remote: String,
        /// The server's word.
        format: String,
    },
    /// The server does not offer what was asked for.
    #[error("{remote} does not support {what}")]
    Unsupported {
        /// The remote.
        remote: String,
        /// What was asked for.
        what: &'static str,
    },
    /// The request makes no sense.
    #[error("invalid request to {remote}: {message}")]
    Request {
        /// The remote.
        remote: String,
        /// What is wrong.
        message: String,
    },
    /// The user wants to stop.
    #[error("interrupted")]
    Interrupted,
    /// The connection was lost after everything was sent: whether the server took the push is not known.
    #[error(
        "the connection to {remote} was lost after the push was sent: {message}; whether it was accepted is not known, read the references again"
    )]
    OutcomeUnknown {
        /// The remote.
        remote: String,
        /// What happened.
        message: String,
    },
}

impl Error {
    /// Whether a push may or may not have been accepted.
    pub fn is_outcome_unknown(&self) -> bool {
        matches!(self, Error::OutcomeUnknown { .. })
    }

    /// Whether the same may succeed when it is tried again.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Error::Connect { .. } | Error::Lost { .. } | Error::Unavailable { .. }
        )
    }

    /// Takes the error of this module out of one that a stream had to wrap.
    pub fn from_io(error: io::Error) -> Result<Error, io::Error> {
        error.downcast::<Error>()
    }

    /// For streams, whose errors have a type of their own.
    pub(super) fn into_io(self) -> io::Error {
        io::Error::other(self)
    }

    /// What a failed read or write means: the wrapped error, or a lost connection.
    pub(super) fn lost(remote: &str, stage: &'static str, error: io::Error) -> Error {
        Error::from_io(error).unwrap_or_else(|error| Error::Lost {
            remote: remote.to_owned(),
            stage,
            message: cause(&error),
        })
    }
}

/// A failure in words that say more than those of the system.
pub(super) fn cause(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "it ended in the middle".to_owned(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => {
            "the other side closed it".to_owned()
        }
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => "it timed out".to_owned(),
        _ => printable(error.to_string().as_bytes()),
    }
}

/// A server's words on one line: without control characters, and not more than a paragraph.
pub(super) fn printable(text: &[u8]) -> String {
    const MOST: usize = 1000;
    let text = String::from_utf8_lossy(&text[..text.len().min(4 * MOST)]);
    let mut out = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        if word.is_empty() {
            continue;
        }
        if out.len() + word.len() > MOST {
            out.push_str(" ...");
            break;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_server_fit_on_a_line() {
        assert_eq!(printable(b" a\n\x1b[31mb\r\n  c\xff "), "a [31mb c\u{fffd}");
        assert!(printable(&b"word ".repeat(100_000)).len() < 1100);
    }

    #[test]
    fn errors_survive_streams() {
        let error = Error::Refused {
            remote: "r".into(),
            message: "no".into(),
        };
        assert!(matches!(
            Error::from_io(error.into_io()),
            Ok(Error::Refused { .. })
        ));
        assert!(Error::from_io(io::ErrorKind::BrokenPipe.into()).is_err());
        assert!(matches!(
            Error::lost("r", "reading", io::ErrorKind::BrokenPipe.into()),
            Error::Lost { .. }
        ));
    }
}
