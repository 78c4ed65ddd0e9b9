//! A conversation with one service of a server, whatever carries it.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::process::Child;
use std::time::{Duration, Instant};

use super::http;
use super::socket::Socket;
use super::{Error, options::Version};

/// Bytes that are read or written at once.
pub(super) const BUFFER: usize = 64 * 1024;

/// A service of a Git server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    UploadPack,
    ReceivePack,
}

impl Service {
    /// The name by which servers know it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Service::UploadPack => "git-upload-pack",
            Service::ReceivePack => "git-receive-pack",
        }
    }
}

/// What carries the conversation. Reading yields the answer to what was asked last, first of all the greeting.
pub(super) enum Channel {
    /// Both ways at once, and the server remembers what was said.
    Duplex(Duplex),
    /// Request and response, and the server forgets in between.
    Http(Box<http::Service>),
}

impl Channel {
    /// Whether everything has to be said again in each request.
    pub(super) fn is_stateless(&self) -> bool {
        matches!(self, Channel::Http(_))
    }

    /// Sends a whole request.
    pub(super) fn ask(&mut self, request: &[u8]) -> Result<(), Error> {
        match self {
            Channel::Duplex(duplex) => duplex
                .writer
                .write_all(request)
                .and_then(|()| duplex.writer.flush())
                .map_err(|error| duplex.lost("sending a request", error)),
            Channel::Http(service) => service.ask(request),
        }
    }

    /// What a failed read means.
    pub(super) fn lost(&mut self, stage: &'static str, error: io::Error) -> Error {
        match self {
            Channel::Duplex(duplex) => duplex.lost(stage, error),
            Channel::Http(service) => Error::lost(service.remote(), stage, error),
        }
    }
}

impl Read for Channel {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Channel::Duplex(duplex) => duplex.reader.read(buffer),
            Channel::Http(service) => service.read(buffer),
        }
    }
}

/// What can be ended from this side.
pub(super) enum Control {
    Socket(Socket),
    Program { child: Child, name: String },
}

/// A connection that both sides may write to at any time.
pub(super) struct Duplex {
    pub remote: String,
    pub reader: BufReader<Box<dyn Read + Send>>,
    pub writer: BufWriter<Box<dyn Write + Send>>,
    pub control: Control,
}

impl Duplex {
    pub(super) fn new(
        remote: &str,
        reader: Box<dyn Read + Send>,
        writer: Box<dyn Write + Send>,
        control: Control,
    ) -> Duplex {
        Duplex {
            remote: remote.to_owned(),
            reader: BufReader::with_capacity(BUFFER, reader),
            writer: BufWriter::with_capacity(BUFFER, writer),
            control,
        }
    }

    /// What a failed read or write means; a program that has ended says more than its closed pipe.
    pub(super) fn lost(&mut self, stage: &'static str, error: io::Error) -> Error {
        match Error::lost(&self.remote, stage, error) {
            Error::Lost {
                remote,
                stage,
                message,
            } => match self.control.ended() {
                Some(ended) => Error::Lost {
                    remote,
                    stage,
                    message: format!("{message} ({ended})"),
                },
                None => Error::Lost {
                    remote,
                    stage,
                    message,
                },
            },
            other => other,
        }
    }
}

impl Control {
    /// Ends the connection at once.
    pub(super) fn abort(&mut self) {
        match self {
            Control::Socket(socket) => socket.close(),
            Control::Program { child, .. } => {
                // It may have ended already.
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }

    /// How the program ended, if it did without having succeeded.
    pub(super) fn ended(&mut self) -> Option<String> {
        let Control::Program { child, name } = self else {
            return None;
        };
        let status = wait(child, Duration::from_secs(2))?;
        match status.success() {
            true => None,
            false => Some(format!(
                "'{name}' ended with {status}; it may have said why above"
            )),
        }
    }
}

/// Waits, but not for ever.
fn wait(child: &mut Child, longest: Duration) -> Option<std::process::ExitStatus> {
    let started = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if started.elapsed() < longest => std::thread::sleep(pause),
            _ => return None,
        }
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// Says no more, not even what is still held back.
pub(super) fn close_writer(writer: &mut BufWriter<Box<dyn Write + Send>>) {
    let nothing: Box<dyn Write + Send> = Box::new(io::sink());
    let (pipe, _unsent) = std::mem::replace(writer, BufWriter::with_capacity(0, nothing)).into_parts();
    drop(pipe);
}

impl Drop for Duplex {
    fn drop(&mut self) {
        // Both ends of the pipes have to be closed before a program can be expected to end.
        close_writer(&mut self.writer);
        let empty: Box<dyn Read + Send> = Box::new(io::empty());
        drop(std::mem::replace(
            &mut self.reader,
            BufReader::with_capacity(0, empty),
        ));
        match &mut self.control {
            Control::Socket(socket) => socket.close(),
            Control::Program { child, .. } => {
                if wait(child, Duration::from_secs(5)).is_none() {
                    self.control.abort();
                }
            }
        }
    }
}

/// What a service is told before it begins, for `git://` and ssh.
pub(super) fn version_for(service: Service, version: Version) -> Version {
    match service {
        Service::UploadPack => version,
        // It knows no commands; servers would have to ignore the wish.
        Service::ReceivePack => Version::V0,
    }
}
