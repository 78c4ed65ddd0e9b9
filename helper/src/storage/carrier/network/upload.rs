//! A push to a server.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bstr::BStr;
use gix::object::Kind;
use gix_hash::ObjectId;
use ingot_engine::import::Import;
use ingot_engine::pack::create::{self, Completed, Content, Creator};
use ingot_engine::progress::Unit;
use ingot_engine::transport::{Command, Push, PushError, ReceivePack, Report, Status};
use tempfile::TempDir;

use super::super::super::Error;
use super::super::layout::{BRANCH, UPLOADS};
use super::super::outer::{Outcome, Purpose, Sealed, Upload};
use super::super::snapshot::Snapshot;
use super::group::{self, Group};
use super::unfinished::Unfinished;
use super::{Shared, failed, hosts, session};
use crate::counted::Counted;
use crate::protocol::ContentId;

/// New objects, first in files: their number comes before them. Few parts are sent in one request with everything else;
/// many in groups, each in a request of its own, see [`group`].
pub(super) struct NetworkUpload {
    shared: Arc<Shared>,
    format: gix_hash::Kind,
    /// What is sent with the last request.
    pack: Option<Creator>,
    built: Option<Completed>,
    /// Bytes of parts in it.
    filled: u64,
    /// What is sent before, and the parts in there.
    groups: Vec<Group>,
    parts: Vec<ObjectId>,
    /// The branch that keeps groups on the server. None while it is not known what they are parts of.
    branch: Option<String>,
    /// Where the groups are if they are kept.
    unfinished: Option<Unfinished>,
    /// They were kept by an earlier process.
    resumed: bool,
    /// What is kept in the cache.
    kept: Option<(Import, Creator)>,
    spool: TempDir,
}

/// The branch for a large pack.
pub(super) fn branch_for(pack: &ContentId) -> String {
    format!("{UPLOADS}{}", &pack.to_hex()[..16])
}

/// How groups came to the server.
enum Ahead {
    /// All of them are there. The connection is a new one.
    There(Box<ReceivePack>),
    /// The server takes no other branches: everything has to go in one request.
    Together(Box<ReceivePack>),
    /// The same as without groups.
    Ended(Outcome),
}

/// What a request came to.
enum Answer {
    Report(Report),
    Unknown(Error),
}

impl NetworkUpload {
    pub fn begin(shared: &Arc<Shared>, snapshot: &Snapshot) -> Result<NetworkUpload, Error> {
        let format = snapshot.format();
        let spool = shared.cache.spool()?;
        let (_, store) = shared.cache.open(format, &[])?;
        let import = shared.cache.import(&store)?;
        let kept = import.builder();
        let mut upload = NetworkUpload {
            shared: Arc::clone(shared),
            format,
            pack: None,
            built: None,
            filled: 0,
            groups: Vec::new(),
            parts: Vec::new(),
            branch: None,
            unfinished: None,
            resumed: false,
            kept: Some((import, kept)),
            spool,
        };
        upload.pack = Some(upload.builder());
        Ok(upload)
    }

    /// Goes on with what an earlier push has kept.
    pub fn resume(
        shared: &Arc<Shared>,
        snapshot: &Snapshot,
        unfinished: Unfinished,
    ) -> Result<NetworkUpload, Error> {
        let mut upload = NetworkUpload::begin(shared, snapshot)?;
        upload.groups = unfinished.groups.clone();
        upload.branch = Some(branch_for(&unfinished.sealed.pack));
        upload.unfinished = Some(unfinished);
        upload.resumed = true;
        Ok(upload)
    }

    fn builder(&self) -> Creator {
        let options = create::Options {
            fs: Arc::clone(&self.shared.place.fs),
            ..create::Options::default()
        };
        Creator::in_folder(self.spool.path(), self.format, &options)
    }

    fn end_group(&mut self) -> Result<(), Error> {
        let Some(pack) = self.pack.take() else {
            return Ok(());
        };
        let before = self.groups.last().map(|group| group.commit);
        let group = Group::end(pack, &self.parts, before).map_err(Error::Write)?;
        self.groups.push(group);
        self.filled = 0;
        self.pack = Some(self.builder());
        Ok(())
    }

    /// The pack that the next object belongs to.
    fn pack_for(&mut self, is_part: bool) -> Result<&mut Creator, Error> {
        let full = self.filled >= group::room(self.groups.len());
        // After the last part, what is left of them is a group, too, if there are others.
        let over = !is_part && !self.groups.is_empty() && self.filled > 0;
        if is_part && full || over {
            self.end_group()?;
        }
        let late = self.refused("objects come too late for the push");
        self.pack.as_mut().ok_or(late)
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

    fn connect(&self) -> Result<ReceivePack, Error> {
        let waiting = self.shared.session().take_receive_pack();
        let receive = match waiting {
            Some(receive) => receive,
            None => self.shared.place.push.receive_pack().map_err(failed)?,
        };
        match receive.object_format() == self.format {
            true => Ok(receive),
            false => Err(self.refused("its object format has changed")),
        }
    }

    /// Asks the server for one thing, with the pack that `send` writes.
    fn ask(
        &self,
        receive: ReceivePack,
        command: Command,
        send: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<Answer, Error> {
        let push = Push {
            commands: vec![command],
            quiet: true,
            ..Push::default()
        };
        let progress = self.shared.progress();
        let counted = |out: &mut dyn Write| send(&mut Counted::new(out, |bytes| progress.advance(bytes)));
        match receive.push(push, counted) {
            Ok(report) => Ok(Answer::Report(report)),
            Err(PushError::Pack(error)) => {
                let path = self.spool.path();
                Err(Error::from_io(&self.shared.name, "send", path, error))
            }
            Err(PushError::Remote(error)) if error.is_outcome_unknown() || error.is_transient() => {
                Ok(Answer::Unknown(failed(error)))
            }
            Err(PushError::Remote(error)) => Err(failed(error)),
        }
    }

    /// Sends the groups that the server does not have yet. Each time anew, the server says what it has.
    fn send_ahead(&self, branch: &str, old: Option<ObjectId>, rest: u64) -> Result<Ahead, Error> {
        let mut told = false;
        let mut before = None;
        loop {
            let receive = self.connect()?;
            if receive.find(BStr::new(BRANCH)) != old {
                return Ok(Ahead::Ended(Outcome::LostRace));
            }
            let at = receive.find(BStr::new(branch));
            let done = match at {
                None => 0,
                Some(at) => match self.groups.iter().position(|group| group.commit == at) {
                    Some(number) => number + 1,
                    // Nobody else has reason to make a branch of this name. It is left alone.
                    None => return Ok(Ahead::Together(Box::new(receive))),
                },
            };
            if !told {
                let left = self.groups[done..].iter().map(|group| group.bytes);
                self.begin_upload(left.fold(rest, u64::saturating_add));
                told = true;
            }
            let Some(next) = self.groups.get(done) else {
                return Ok(Ahead::There(Box::new(receive)));
            };
            // Each round brings one group more, or it would never end.
            if before.is_some_and(|before| done <= before) {
                return Err(self.refused(format!("it said that {branch} was moved, and it was not")));
            }
            before = Some(done);
            let command = match at {
                Some(at) => Command::update(branch, at, next.commit),
                None => Command::create(branch, next.commit),
            };
            let report = match self.ask(receive, command, |out| group::send(&next.path, out))? {
                Answer::Report(report) => report,
                Answer::Unknown(error) => return Ok(Ahead::Ended(Outcome::Unknown(error))),
            };
            if let Err(reason) = &report.unpack {
                return Err(self.refused(format!("the pack was not taken: {reason}")));
            }
            match report.refs.first().map(|one| &one.status) {
                Some(Status::Rejected(_)) if done == 0 => {
                    return Ok(Ahead::Together(Box::new(self.connect()?)));
                }
                Some(Status::Rejected(reason)) => return Err(self.refused(reason.to_string())),
                // What became of it is seen when the server is asked anew.
                Some(Status::Done { .. } | Status::Unreported) | None => {}
            }
        }
    }

    fn begin_upload(&self, bytes: u64) {
        let phase = match self.resumed {
            true => "Uploading the rest",
            false => "Uploading",
        };
        self.shared.progress().begin(phase, Some(bytes), Unit::Bytes);
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

    fn try_to_publish(&mut self, old: Option<ObjectId>, new: ObjectId) -> Result<Outcome, Error> {
        if let Some(pack) = self.pack.take() {
            self.built = Some(pack.complete().map_err(written)?);
        }
        let Some(built) = self.built.clone() else {
            return Err(self.refused("there is nothing to push"));
        };
        let total = self
            .groups
            .iter()
            .fold(built.bytes, |sum, group| sum + group.bytes);
        let host = self.shared.place.push.address().host().unwrap_or_default();
        if let (Some(warning), false) = (hosts::warning(host, total), self.resumed) {
            self.shared.place.push.messages().warning(&warning);
        }
        let (receive, together) = match self.branch.clone().filter(|_| !self.groups.is_empty()) {
            Some(branch) => match self.send_ahead(&branch, old, built.bytes)? {
                Ahead::There(receive) => (*receive, false),
                Ahead::Together(receive) => (*receive, true),
                Ahead::Ended(outcome) => return Ok(outcome),
            },
            None => (self.connect()?, true),
        };
        if receive.find(BStr::new(BRANCH)) != old {
            return Ok(Outcome::LostRace);
        }
        let mut packs: Vec<(PathBuf, u32, u64)> = Vec::new();
        if together {
            self.begin_upload(total);
            packs.extend(
                self.groups
                    .iter()
                    .map(|group| (group.path.clone(), group.objects, group.bytes)),
            );
        }
        packs.push((built.path.clone(), built.objects, built.bytes));
        let command = match old {
            Some(old) => Command::update(BRANCH, old, new),
            None => Command::create(BRANCH, new),
        };
        let send = |out: &mut dyn Write| match &packs[..] {
            [(path, ..)] => group::send(path, out),
            packs => {
                let packs: Vec<_> = packs
                    .iter()
                    .map(|(path, count, bytes)| (path.as_path(), *count, *bytes))
                    .collect();
                group::send_joined(&packs, self.format, out)
            }
        };
        match self.ask(receive, command, send)? {
            Answer::Report(report) => self.outcome(&report, old, new),
            Answer::Unknown(error) => Ok(Outcome::Unknown(error)),
        }
    }

    /// Nothing needs the groups any more.
    fn tidy_up(&mut self) {
        if let Some(unfinished) = self.unfinished.take() {
            unfinished.remove();
        }
        if let Some(branch) = self.branch.take() {
            self.shared.remove_upload(&branch);
        }
    }
}

impl Upload for NetworkUpload {
    fn add(&mut self, kind: Kind, bytes: &[u8], content: Content) -> Result<ObjectId, Error> {
        if let (Content::Compressible, Some((_, kept))) = (content, &mut self.kept) {
            kept.add_whole(kind, bytes, content).map_err(written)?;
        }
        let is_part = content == Content::Random;
        let id = self
            .pack_for(is_part)?
            .add_whole(kind, bytes, content)
            .map_err(written)?;
        if is_part {
            self.filled += bytes.len() as u64;
            self.parts.push(id);
        }
        Ok(id)
    }

    fn add_part(&mut self, size: u64, source: &mut dyn Read) -> Result<ObjectId, Error> {
        let id = self.pack_for(true)?.add_stream(size, source).map_err(written)?;
        self.filled += size;
        self.parts.push(id);
        Ok(id)
    }

    fn folder(&self) -> &Path {
        self.spool.path()
    }

    fn keep(&mut self, sealed: Sealed) -> Result<(), Error> {
        if self.groups.is_empty() || self.unfinished.is_some() {
            return Ok(());
        }
        self.branch = Some(branch_for(&sealed.pack));
        let folder = self.shared.cache.folder();
        let groups = self.groups.clone();
        if let Some(kept) = Unfinished::keep(&*self.shared.place.fs, folder, sealed, groups)? {
            self.groups.clone_from(&kept.groups);
            self.unfinished = Some(kept);
        }
        Ok(())
    }

    fn publish(&mut self, old: Option<ObjectId>, new: ObjectId) -> Result<Outcome, Error> {
        let result = self.try_to_publish(old, new);
        self.shared.progress().end();
        match &result {
            // The head is another now, or what went on with an earlier push led nowhere: it would again.
            Ok(Outcome::Moved | Outcome::LostRace) => self.tidy_up(),
            Err(Error::Refused { .. }) if self.resumed => self.tidy_up(),
            _ => {}
        }
        result
    }
}

fn written(error: create::Error) -> Error {
    Error::Write(error.into())
}
