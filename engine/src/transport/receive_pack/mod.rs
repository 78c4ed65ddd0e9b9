//! Pushes (gitprotocol-pack(5), "Pushing Data To a Server").

mod report;
mod request;
mod send;

use std::fmt;
use std::io::Write;

use bstr::{BStr, BString};
use gix_hash::ObjectId;

pub use report::{RefReport, Report, Status};

use super::advertisement::{self, AdvertisedRef, Advertisement};
use super::channel::{Channel, Service};
use super::pkt_line::{self, Reader};
use super::{Error, Remote};

/// The service that takes pushes. Each connection serves one push.
pub struct ReceivePack {
    remote: Remote,
    /// Taken by the push.
    reader: Option<Reader<Channel>>,
    advertisement: Advertisement,
    offers: Offers,
}

/// What a server can do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offers {
    /// Take all commands or none.
    pub atomic: bool,
    /// Delete references.
    pub delete_refs: bool,
    /// Hand options on to its hooks.
    pub push_options: bool,
    /// Keep quiet about progress.
    pub quiet: bool,
    /// Take deltas that name their base by its distance.
    pub ofs_delta: bool,
    /// Say what became of each reference.
    pub report_status: bool,
}

/// What should happen to one reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Its full name.
    pub name: BString,
    /// What it is now, as the server has to find it; the null id if it is absent.
    pub old: ObjectId,
    /// What it should be; the null id to delete it.
    pub new: ObjectId,
}

impl Command {
    /// Makes a reference that must not exist yet.
    pub fn create(name: impl Into<BString>, new: ObjectId) -> Command {
        Command {
            name: name.into(),
            old: new.kind().null(),
            new,
        }
    }

    /// Moves a reference. Whether it may go anywhere but forward is the server's affair.
    pub fn update(name: impl Into<BString>, old: ObjectId, new: ObjectId) -> Command {
        Command {
            name: name.into(),
            old,
            new,
        }
    }

    /// Removes a reference.
    pub fn delete(name: impl Into<BString>, old: ObjectId) -> Command {
        Command {
            name: name.into(),
            new: old.kind().null(),
            old,
        }
    }
}

/// What to push.
#[derive(Debug, Clone, Default)]
pub struct Push {
    /// What should happen, to each reference once. Not empty.
    pub commands: Vec<Command>,
    /// All or nothing.
    pub atomic: bool,
    /// Without messages about progress, where the server can keep quiet.
    pub quiet: bool,
    /// For the hooks of the server (git-push(1), "--push-option").
    pub options: Vec<BString>,
}

/// Why a push came to nothing, or to an unknown end.
#[derive(Debug, thiserror::Error)]
pub enum PushError<E> {
    /// The pack could not be made. Nothing was published.
    #[error("{0}")]
    Pack(E),
    /// The server, or the way there.
    #[error(transparent)]
    Remote(#[from] Error),
}

/// Reads a report about one reference.
#[cfg(test)]
pub(super) fn read_report<R: std::io::Read>(reader: &mut Reader<R>, id: ObjectId) -> Result<Report, Error> {
    let commands = [Command::create("refs/heads/a", id)];
    Report::read(reader, &commands, id.kind(), "there")
}

impl fmt::Debug for ReceivePack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceivePack")
            .field("remote", &self.remote)
            .field("offers", &self.offers)
            .finish_non_exhaustive()
    }
}

impl ReceivePack {
    pub(super) fn connect(remote: &Remote) -> Result<ReceivePack, Error> {
        let mut reader = Reader::new(remote.open(Service::ReceivePack)?);
        let advertisement = advertisement::read(&mut reader, &remote.name(), Service::ReceivePack)?;
        if let Channel::Http(service) = reader.get_mut() {
            service.drain();
        }
        let has = |name: &str| advertisement.capabilities.has(name);
        let offers = Offers {
            atomic: has("atomic"),
            delete_refs: has("delete-refs"),
            push_options: has("push-options"),
            quiet: has("quiet"),
            ofs_delta: has("ofs-delta"),
            report_status: has("report-status") || has("report-status-v2"),
        };
        Ok(ReceivePack {
            remote: remote.clone(),
            reader: Some(reader),
            advertisement,
            offers,
        })
    }

    /// The hash that names objects there.
    pub fn object_format(&self) -> gix_hash::Kind {
        self.advertisement.format
    }

    /// What the server has, as it was when the connection was made.
    pub fn refs(&self) -> &[AdvertisedRef] {
        &self.advertisement.refs
    }

    /// What a reference points to.
    pub fn find(&self, name: &BStr) -> Option<ObjectId> {
        let found = self.refs().iter().find(|known| known.name == name);
        found.map(|known| known.id)
    }

    /// Objects that the server has besides, from other repositories of its own.
    pub fn haves(&self) -> &[ObjectId] {
        &self.advertisement.haves
    }

    /// What the server can do.
    pub fn offers(&self) -> Offers {
        self.offers
    }

    /// Sends commands and, unless all of them delete, the pack that `pack` writes. If `pack` fails, nothing is
    /// published, unless it fails after it has written the whole pack.
    ///
    /// [`Error::OutcomeUnknown`] means that everything was sent, and that the connection was lost before the server said
    /// what became of it.
    pub fn push<E>(
        mut self,
        push: Push,
        pack: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> Result<Report, PushError<E>> {
        let remote = self.remote.name();
        let request = request::Request::new(&push, &self, &remote)?;
        let Some(reader) = self.reader.take() else {
            return Err(PushError::Remote(Error::Request {
                remote,
                message: "the connection was used before".to_owned(),
            }));
        };
        send::send(reader, &request, push, self.remote.messages(), &remote, pack)
    }
}

impl Drop for ReceivePack {
    fn drop(&mut self) {
        // Otherwise the server complains of a client that hung up.
        if let Some(reader) = &mut self.reader
            && let Channel::Duplex(_) = reader.get_mut()
        {
            let _ = reader.get_mut().ask(pkt_line::FLUSH);
        }
    }
}
