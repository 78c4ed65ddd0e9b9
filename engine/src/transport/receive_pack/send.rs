//! Sends a push and hears what became of it.

use std::io::{self, Read, Write};
use std::sync::Arc;

use super::request::Request;
use super::{Command, Push, PushError, Report};
use crate::transport::channel::{Channel, Duplex, close_writer};
use crate::transport::http;
use crate::transport::pkt_line::Reader;
use crate::transport::side_band::Demultiplexed;
use crate::transport::{Error, Messages};

const STAGE: &str = "sending the pack";

/// What is needed to understand the answer.
struct Expectation<'a> {
    request: &'a Request,
    commands: &'a [Command],
    messages: &'a Arc<dyn Messages>,
    remote: &'a str,
}

pub(super) fn send<E>(
    mut reader: Reader<Channel>,
    request: &Request,
    push: Push,
    messages: &Arc<dyn Messages>,
    remote: &str,
    pack: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<Report, PushError<E>> {
    let expectation = Expectation {
        request,
        commands: &push.commands,
        messages,
        remote,
    };
    match reader.get_mut() {
        Channel::Duplex(duplex) => over_duplex(duplex, &expectation, pack),
        Channel::Http(service) => over_http(service, &expectation, pack),
    }
}

/// A writer that remembers whether it was the way there that failed, and not the maker of the pack.
struct Sink<'a> {
    to: &'a mut dyn Write,
    failed: Option<io::Error>,
}

impl Sink<'_> {
    fn note(&mut self, error: io::Error) -> io::Error {
        let told = io::Error::from(error.kind());
        self.failed.get_or_insert(error);
        told
    }
}

impl Write for Sink<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match self.to.write(data) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(self.note(error)),
            other => other,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        // Sent when it is complete.
        Ok(())
    }
}

/// How far the sending came.
enum Sent<E> {
    /// All of it is on its way.
    All,
    /// The maker of the pack gave up.
    Pack(E),
    /// The way there broke before the end.
    Broken(io::Error),
    /// It broke when everything had been handed over, and may have arrived.
    Unsure(io::Error),
}

fn write_all<E>(
    to: &mut dyn Write,
    request: &Request,
    pack: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Sent<E> {
    if let Err(error) = to.write_all(&request.head) {
        return Sent::Broken(error);
    }
    if request.has_pack {
        let mut sink = Sink { to, failed: None };
        match (pack(&mut sink), sink.failed.take()) {
            (_, Some(error)) => return Sent::Broken(error),
            (Err(error), None) => return Sent::Pack(error),
            (Ok(()), None) => {}
        }
    }
    match to.flush() {
        Ok(()) => Sent::All,
        Err(error) => Sent::Unsure(error),
    }
}

/// Reads while it writes: a server that reports its progress may not read on before it is heard.
fn over_duplex<E>(
    duplex: &mut Duplex,
    expectation: &Expectation<'_>,
    pack: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<Report, PushError<E>> {
    let Duplex {
        reader,
        writer,
        control,
        ..
    } = duplex;
    let (sent, heard) = std::thread::scope(|scope| {
        let listener = scope.spawn(|| hear(reader, expectation));
        let sent = write_all(writer, expectation.request, pack);
        let give_up = match &sent {
            Sent::All => false,
            Sent::Pack(_) => true,
            Sent::Broken(_) | Sent::Unsure(_) => expectation.messages.interrupted(),
        };
        if give_up {
            // What the program was started by, or has started, may hold on to the other end of the pipe.
            close_writer(writer);
            control.abort();
        }
        (sent, listener.join())
    });
    let heard = heard.unwrap_or_else(|_| {
        Err(Error::OutcomeUnknown {
            remote: expectation.remote.to_owned(),
            message: "what it said could not be handled".to_owned(),
        })
    });
    match sent {
        Sent::Pack(error) => Err(PushError::Pack(error)),
        Sent::All => heard.map_err(|error| unknown(error, duplex).into()),
        Sent::Unsure(error) => match heard {
            Ok(report) => Ok(report),
            Err(Error::Lost { .. }) => {
                let error = duplex.lost(STAGE, error);
                Err(unknown(error, duplex).into())
            }
            Err(heard) => Err(unknown(heard, duplex).into()),
        },
        Sent::Broken(error) => match heard {
            // It knew enough to decide, and said so.
            Ok(report) if expectation.request.reported => Ok(report),
            Err(refused @ (Error::Refused { .. } | Error::NotFound { .. })) => Err(refused.into()),
            _ => Err(duplex.lost(STAGE, error).into()),
        },
    }
}

/// After everything was sent, whatever is not a report leaves it open.
fn unknown(error: Error, duplex: &mut Duplex) -> Error {
    let error = match error {
        Error::Lost { .. } => duplex.lost("waiting for the report", io::ErrorKind::UnexpectedEof.into()),
        error => error,
    };
    unsettled(error, &duplex.remote)
}

fn unsettled(error: Error, remote: &str) -> Error {
    let message = match error {
        error @ Error::OutcomeUnknown { .. } => return error,
        Error::Lost { message, .. } => message,
        Error::Refused { message, .. } => format!("the server said '{message}'"),
        error => error.to_string(),
    };
    Error::OutcomeUnknown {
        remote: remote.to_owned(),
        message,
    }
}

/// Reads the answer: a report, in side bands if that was agreed on.
fn hear<R: Read>(from: &mut R, expectation: &Expectation<'_>) -> Result<Report, Error> {
    let Expectation {
        request,
        commands,
        messages,
        remote,
    } = *expectation;
    let mut frames = Reader::new(from);
    let lost = |error| Error::lost(remote, "waiting for the report", error);
    if !request.banded {
        return match request.reported {
            true => Report::read(&mut frames, commands, request.format, remote),
            false => io::copy(&mut frames.get_mut().take(1 << 20), &mut io::sink())
                .map(|_| Report::none(commands))
                .map_err(lost),
        };
    }
    let mut bands = Demultiplexed::new(&mut frames, messages, remote);
    let report = match request.reported {
        true => Report::read(&mut Reader::new(&mut bands), commands, request.format, remote)?,
        false => Report::none(commands),
    };
    // Messages of hooks that run afterwards. The outcome is known; that the connection is lost now changes nothing.
    let mut rest = [0; 4096];
    loop {
        match bands.read(&mut rest) {
            Ok(0) => return Ok(report),
            Ok(_) => {}
            Err(_) if request.reported => return Ok(report),
            Err(error) => return Err(lost(error)),
        }
    }
}

fn over_http<E>(
    service: &mut http::Service,
    expectation: &Expectation<'_>,
    pack: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<Report, PushError<E>> {
    let remote = expectation.remote;
    let mut upload = service.begin_upload()?;
    match write_all(&mut upload, expectation.request, pack) {
        Sent::All => {}
        Sent::Pack(error) => return Err(PushError::Pack(error)),
        Sent::Broken(error) | Sent::Unsure(error) => return Err(Error::lost(remote, STAGE, error).into()),
    }
    service.finish_upload(upload)?;
    let report = hear(service, expectation).map_err(|error| unsettled(error, remote));
    service.drain();
    Ok(report?)
}
