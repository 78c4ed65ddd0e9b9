//! A push to a server.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use bstr::BStr;
use gix::object::Kind;
use gix_hash::ObjectId;
use ingot_engine::import::Import;
use ingot_engine::pack::create::{self, Completed, Content, Creator};
use ingot_engine::transport::{Command, Push, PushError, Report, Status};
use tempfile::TempDir;

use super::super::super::Error;
use super::super::layout::BRANCH;
use super::super::outer::{Outcome, Purpose, Upload};
use super::super::snapshot::Snapshot;
use super::{Shared, failed, session};

/// What is sent at once.
const BLOCK: usize = 256 << 10;

/// New objects, first in a file: their number comes before them.
pub(super) struct NetworkUpload {
    shared: Arc<Shared>,
    format: gix_hash::Kind,
    /// What is sent.
    pack: Option<Creator>,
    built: Option<Completed>,
    /// What is kept of it.
    kept: Option<(Import, Creator)>,
    spool: TempDir,
}

impl NetworkUpload {
    pub fn begin(shared: &Arc<Shared>, snapshot: &Snapshot) -> Result<NetworkUpload, Error> {
        let format = snapshot.format();
        let spool = shared.cache.spool()?;
        let (_, store) = shared.cache.open(format, &[])?;
        let import = shared.cache.import(&store)?;
        let kept = import.builder();
        let options = create::Options {
            fs: Arc::clone(&shared.place.fs),
            ..create::Options::default()
        };
        Ok(NetworkUpload {
            shared: Arc::clone(shared),
            format,
            pack: Some(Creator::in_folder(spool.path(), format, &options)),
            built: None,
            kept: Some((import, kept)),
            spool,
        })
    }

    /// Keeps what the next push needs. That it could not be kept only makes the next push slower.
    fn remember(&mut self, new: ObjectId) -> Result<(), Error> {
        let Some((mut import, builder)) = self.kept.take() else {
            return Ok(());
        };
        import.adopt(builder).map_err(|source| Error::Import {
            store: self.shared.name.clone(),
            source: Box::new(source),
        })?;
        self.shared.cache.keep(import)?;
        self.shared.cache.set_tip(new)?;
        let (_, store) = self.shared.cache.open(self.format, &[])?;
        session::tidy(
            &self.shared,
            &Snapshot::open(&self.shared.name, store, Some(new))?,
        )
    }

    fn refused(&self, reason: impl Into<String>) -> Error {
        Error::Refused {
            store: self.shared.name.clone(),
            reason: reason.into(),
        }
    }

    /// What a report means for the one branch.
    fn outcome(&mut self, report: &Report, old: Option<ObjectId>, new: ObjectId) -> Result<Outcome, Error> {
        if let Err(reason) = &report.unpack {
            return Err(self.refused(format!("the pack was not taken: {reason}")));
        }
        match report.refs.first().map(|one| &one.status) {
            Some(Status::Done { .. }) => {
                let _ = self.remember(new);
                Ok(Outcome::Moved)
            }
            Some(Status::Rejected(reason)) => {
                // Servers have many words for a branch that is not where it was expected.
                let now = self.shared.session().look(&self.shared, Purpose::Read)?;
                if now.tip().map(|tip| tip.commit) != old {
                    return Ok(Outcome::LostRace);
                }
                Err(self.refused(reason.to_string()))
            }
            Some(Status::Unreported) | None => Ok(Outcome::Unknown(
                self.refused("the server does not say what became of the branch"),
            )),
        }
    }
}

impl Upload for NetworkUpload {
    fn add(&mut self, kind: Kind, bytes: &[u8], content: Content) -> Result<ObjectId, Error> {
        if let (Content::Compressible, Some((_, kept))) = (content, &mut self.kept) {
            kept.add_whole(kind, bytes, content).map_err(written)?;
        }
        match &mut self.pack {
            Some(pack) => pack.add_whole(kind, bytes, content).map_err(written),
            None => Err(self.refused("objects come too late for the push")),
        }
    }

    fn add_part(&mut self, size: u64, source: &mut dyn Read) -> Result<ObjectId, Error> {
        match &mut self.pack {
            Some(pack) => pack.add_stream(size, source).map_err(written),
            None => Err(self.refused("objects come too late for the push")),
        }
    }

    fn folder(&self) -> &Path {
        self.spool.path()
    }

    fn publish(&mut self, old: Option<ObjectId>, new: ObjectId) -> Result<Outcome, Error> {
        if let Some(pack) = self.pack.take() {
            self.built = Some(pack.complete().map_err(written)?);
        }
        let Some(built) = self.built.clone() else {
            return Err(self.refused("there is nothing to push"));
        };
        let waiting = self.shared.session().take_receive_pack();
        let receive = match waiting {
            Some(receive) => receive,
            None => self.shared.place.push.receive_pack().map_err(failed)?,
        };
        if receive.object_format() != self.format {
            return Err(self.refused("its object format has changed"));
        }
        if receive.find(BStr::new(BRANCH)) != old {
            return Ok(Outcome::LostRace);
        }
        let command = match old {
            Some(old) => Command::update(BRANCH, old, new),
            None => Command::create(BRANCH, new),
        };
        let push = Push {
            commands: vec![command],
            quiet: true,
            ..Push::default()
        };
        match receive.push(push, |out| send(&built, out)) {
            Ok(report) => self.outcome(&report, old, new),
            Err(PushError::Pack(error)) => Err(Error::from_io(&self.shared.name, "send", &built.path, error)),
            Err(PushError::Remote(error)) if error.is_outcome_unknown() || error.is_transient() => {
                Ok(Outcome::Unknown(failed(error)))
            }
            Err(PushError::Remote(error)) => Err(failed(error)),
        }
    }
}

fn written(error: create::Error) -> Error {
    Error::Write(error.into())
}

/// Copies the pack to the server.
fn send(built: &Completed, out: &mut dyn Write) -> io::Result<()> {
    let mut file = File::open(&built.path)?;
    let mut block = vec![0; BLOCK];
    loop {
        match file.read(&mut block) {
            Ok(0) => return Ok(()),
            Ok(count) => out.write_all(&block[..count])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
