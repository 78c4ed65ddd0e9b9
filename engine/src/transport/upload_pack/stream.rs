//! A pack on its way here.

use std::fmt;
use std::io::{self, Read};

use super::UploadPack;
use crate::transport::Error;
use crate::transport::channel::Channel;
use crate::transport::options::Version;
use crate::transport::pkt_line::Reader;
use crate::transport::side_band::{Demultiplexed, lost_while};

const STAGE: &str = "receiving the pack";
/// Bytes after a pack that are read to come to the end of the answer.
const MOST_REST: u64 = 64 * 1024;

/// The bytes of a pack, up to where the server ends it. Messages of the server are handed on while they are read.
///
/// Errors of reading hold an [`Error`], which [`Error::from_io`] takes out.
pub struct PackStream<'a> {
    source: Source<'a>,
    remote: String,
    /// Whether another request may follow on the same connection.
    reusable: bool,
    ready: &'a mut bool,
}

enum Source<'a> {
    Banded(Demultiplexed<'a, Channel>),
    /// To the end of the connection.
    Plain(&'a mut Reader<Channel>),
}

impl fmt::Debug for PackStream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PackStream")
            .field("remote", &self.remote)
            .finish_non_exhaustive()
    }
}

impl<'a> PackStream<'a> {
    pub(super) fn new(upload_pack: &'a mut UploadPack, banded: bool) -> PackStream<'a> {
        let remote = upload_pack.remote.name();
        let reusable =
            upload_pack.advertisement.version == Version::V2 || upload_pack.reader.get_mut().is_stateless();
        PackStream {
            source: match banded {
                true => Source::Banded(Demultiplexed::new(
                    &mut upload_pack.reader,
                    upload_pack.remote.messages(),
                    &remote,
                )),
                false => Source::Plain(&mut upload_pack.reader),
            },
            reusable,
            remote,
            ready: &mut upload_pack.ready,
        }
    }

    /// Reads to the end of the answer, so that the connection can be used again. Fails if the stream was cut, or if much
    /// follows the pack.
    pub fn finish(mut self) -> Result<(), Error> {
        let rest = io::copy(&mut self.by_ref().take(MOST_REST + 1), &mut io::sink())
            .map_err(|error| Error::lost(&self.remote, STAGE, error))?;
        if rest > MOST_REST {
            return Err(Error::NotGit {
                remote: self.remote,
                message: "it sends more after the pack".to_owned(),
            });
        }
        if let Source::Banded(demultiplexed) = &mut self.source
            && demultiplexed.is_ended()
        {
            if let Channel::Http(service) = demultiplexed.channel() {
                service.drain();
            }
            *self.ready = self.reusable;
        }
        Ok(())
    }
}

impl Read for PackStream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.source {
            Source::Banded(demultiplexed) => demultiplexed.read(buffer),
            Source::Plain(reader) => reader.get_mut().read(buffer),
        }
        .map_err(|error| lost_while(&self.remote, STAGE, error))
    }
}
