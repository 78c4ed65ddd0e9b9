//! Recovery of a store whose head is wrong: what is left, and what could be put in place of the head. Nothing else runs
//! this, and it changes the store only when it is told to publish.
//!
//! What is published is an ordinary generation after one that this clone knows to be genuine, with its refs and its policy
//! and no packs. So every client reads it, and one that has seen more raises its alarm as it should.

mod candidates;
mod classify;
mod restored;

use std::path::Path;
use std::sync::Arc;

pub use classify::Class;

use super::{Error, Remote, Seen, View};
use crate::protocol::publication::Writer;
use crate::protocol::{ContentId, DeviceId};
use crate::state::{AdminPin, Continuity, Rejected, State};
use crate::storage::{RawHead, Recovery};
use candidates::Base;
use classify::Examined;
use restored::Restored;

/// What is to be done.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Put a new generation in place of the head.
    pub publish: bool,
    /// Continue this candidate instead of the newest.
    pub base: Option<ContentId>,
    /// Give up candidates that are newer.
    pub discard_newer: bool,
    /// Give up what may have been published after what this clone has seen.
    pub accept_stale_floor: bool,
}

/// A genuine head that the store could go on from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The manifest.
    pub id: ContentId,
    /// Its generation.
    pub generation: u64,
    /// The outer commit that published it; `None` in a folder.
    pub outer: Option<String>,
    /// Who signed it.
    pub signer: DeviceId,
}

/// What was found, and what was done.
#[derive(Debug)]
pub struct Report {
    /// What the head is.
    pub class: Class,
    /// Why.
    pub reason: String,
    /// The manifest that the head names.
    pub head: Option<ContentId>,
    /// Who signed it, if its whole history verifies.
    pub verified_signer: Option<DeviceId>,
    /// Who claims to have signed it, otherwise.
    pub claimed_signer: Option<DeviceId>,
    /// The newest head that this clone has seen, and its generation.
    pub floor: Option<(ContentId, u64)>,
    /// What the store could go on from, oldest first.
    pub candidates: Vec<Candidate>,
    /// Older heads that were put up again after the floor.
    pub replays: Vec<ContentId>,
    /// What forbids a recovery, each in words.
    pub conflicts: Vec<String>,
    /// What to think about before one.
    pub warnings: Vec<String>,
    /// What a recovery would continue.
    pub default_base: Option<ContentId>,
    /// Why nothing was, or would be, published.
    pub refused: Option<String>,
    /// What was published, and its generation.
    pub published: Option<(ContentId, u64)>,
}

impl Remote<'_> {
    /// Examines the store, and publishes where `options` say so and nothing forbids it.
    pub fn recover(&self, key_file: &Path, options: &Options) -> Result<Report, Error> {
        let mut pin = match AdminPin::path_for(key_file).exists() {
            true => Some(AdminPin::open(Arc::clone(&self.fs), key_file, self.patience)?),
            false => None,
        };
        let mut memory = self.remember()?;
        let before = self.storage.head();
        let mut report = Report::of(self.examine(&mut memory, pin.as_ref())?);
        let newest = memory.as_ref().and_then(Continuity::newest).cloned();
        report.floor = newest.as_ref().map(|state| (state.head_id, state.generation));
        if report.class == Class::Valid {
            report.refused = Some("the head is valid, there is nothing to recover".to_owned());
            return Ok(report);
        }
        let left = match self.storage.recovery() {
            Ok(left) => left,
            Err(error) => {
                report.refused = Some(error.to_string());
                return Ok(report);
            }
        };
        // What is published below replaces the head that is there now: that must be the one that was examined.
        if before.is_ok_and(|before| before.as_ref() != left.observed()) {
            let why = "the head of the store has changed meanwhile: look at it again";
            report.refused = Some(why.to_owned());
            return Ok(report);
        }
        self.note(&report, &*left, memory.as_ref())?;
        let Some(state) = newest else {
            let why = "nothing is remembered of this store here: run it in a clone that has fetched from it";
            report.refused = Some(why.to_owned());
            return Ok(report);
        };
        let bases = match self.floor_view(&*left, &state, memory.as_ref(), pin.as_ref()) {
            Ok(view) => self.candidates(&*left, view, &mut report)?,
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(error) => {
                let why = format!("the continuity floor {} cannot be read: {error}", state.head_id);
                report.refused = Some(why);
                Vec::new()
            }
        };
        report.default_base = bases.last().map(|base| *base.view.head());
        let base = report.choose(&bases, options);
        let (Some(base), true) = (base, options.publish) else {
            return Ok(report);
        };
        match self.publish_after(&*left, base) {
            Ok(after) => {
                report.published = Some((*after.head(), after.generation()));
                self.seen.forget();
                if let Some(pin) = &mut pin {
                    pin.record(&after.observed(&|number| after.id_at(number)))?;
                }
                if let Some(memory) = &mut memory {
                    self.remember_recovered(memory, base, &after)?;
                }
            }
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(error) => report.refused = Some(error.to_string()),
        }
        Ok(report)
    }

    /// The pinned head and everything below it, from wherever in the place it is left.
    fn floor_view(
        &self,
        left: &dyn Recovery,
        state: &State,
        memory: Option<&Continuity>,
        pin: Option<&AdminPin>,
    ) -> Result<View, Error> {
        let restored = Restored {
            place: self.storage,
            left,
        };
        let verified = Some((state.generation, state.head_id));
        let view = View::read_since(&restored, &state.head_id, self.key, verified)?;
        let id_at = |number| view.id_at(number);
        let observed = view.observed(&id_at);
        // Two pins that contradict each other are no floor.
        if let Some(own) = memory.and_then(Continuity::state) {
            own.check(&observed).map_err(|alarm| crate::state::Error::Alarm {
                path: memory.map(|memory| memory.path().to_owned()).unwrap_or_default(),
                alarm,
            })?;
        }
        if let Some(pin) = pin {
            pin.check(&observed)?;
        }
        if let Some(floor) = &self.floor {
            floor.check(&view)?;
        }
        Ok(view)
    }

    /// Publishes the generation after `base`, once everything that it needs was read, hashed and rebuilt.
    fn publish_after(&self, left: &dyn Recovery, base: &Base) -> Result<View, Error> {
        let restored = Restored {
            place: self.storage,
            left,
        };
        let seen = Seen::default();
        let remote = Remote {
            storage: &restored,
            memory: None,
            floor: None,
            fs: Arc::clone(&self.fs),
            seen: &seen,
            ..*self
        };
        // A candidate above the floor was read from there on only.
        let view = remote.read(base.view.head(), None, None, super::Extent::Whole)?;
        let writer = Writer::begin(view.chain(), self.key)?;
        let packs: Vec<_> = view.chain().packs().collect();
        remote.rebuild(&view, &packs)?;
        if self.progress.interrupted() {
            return Err(Error::Interrupted);
        }
        let publication = writer.publish(view.chain().refs())?;
        let manifests: Vec<ContentId> = view.chain().generations().iter().map(|one| *one.id()).collect();
        let packs: Vec<ContentId> = packs.iter().map(|pack| pack.id).collect();
        left.publish(publication.bytes(), &manifests, &packs)?;
        View::of(publication.into_chain())
    }

    /// Moves the memory to what was published. No objects came with it.
    fn remember_recovered(&self, memory: &mut Continuity, base: &Base, after: &View) -> Result<(), Error> {
        memory.check(&after.observed(&|number| after.id_at(number)))?;
        let mut state = State::new(&after.observed(&|_| None));
        if let Some(old) = memory.state() {
            state.verified_refs = old.verified_refs.clone();
            state.imported_generation = old.imported_generation.map(|imported| {
                let whole = imported == base.view.generation();
                if whole { after.generation() } else { imported }
            });
        }
        self.record(memory, state, after)
    }

    /// Notes a head that is provably wrong.
    fn note(&self, report: &Report, left: &dyn Recovery, memory: Option<&Continuity>) -> Result<(), Error> {
        let (Class::Invalid, Some(memory)) = (report.class, memory) else {
            return Ok(());
        };
        let bytes = || left.observed().map(|head: &RawHead| ContentId::of(head.bytes()));
        if let Some(head_id) = report.head.or_else(bytes) {
            memory.reject(Rejected {
                head_id,
                classification: report.class.as_str().to_owned(),
                reason: report.reason.clone(),
            })?;
        }
        Ok(())
    }
}

impl Report {
    fn of(examined: Examined) -> Report {
        Report {
            class: examined.class,
            reason: examined.reason,
            head: examined.head,
            verified_signer: examined.verified_signer,
            claimed_signer: examined.claimed_signer,
            floor: None,
            candidates: Vec::new(),
            replays: Vec::new(),
            conflicts: Vec::new(),
            warnings: Vec::new(),
            default_base: None,
            refused: None,
            published: None,
        }
    }

    /// The base of a recovery; `None`, with the reason, where there may be none.
    fn choose<'b>(&mut self, bases: &'b [Base], options: &Options) -> Option<&'b Base> {
        if self.refused.is_some() {
            return None;
        }
        let chosen = self.chosen(bases, options);
        chosen.map_err(|why| self.refused = Some(why)).ok()
    }

    fn chosen<'b>(&self, bases: &'b [Base], options: &Options) -> Result<&'b Base, String> {
        match self.class {
            Class::Invalid => {}
            Class::Discontinuous => {
                return Err(
                    "a genuine history that contradicts what was seen here is not overwritten: compare with \
                            the other devices"
                        .to_owned(),
                );
            }
            Class::Unverifiable => {
                return Err("another device may be able to open this head: ask an administrator".to_owned());
            }
            Class::Unsupported => return Err("a newer program may know this head: update first".to_owned()),
            Class::Unavailable | Class::Valid => {
                return Err(
                    "what is missing may come back: restore it from a copy of the storage".to_owned(),
                );
            }
        }
        if let Some(conflict) = self.conflicts.first() {
            return Err(format!("the history forks: {conflict}"));
        }
        let newest = bases.last().ok_or("there is no candidate")?;
        let base = match options.base {
            None => newest,
            Some(id) => bases
                .iter()
                .find(|base| *base.view.head() == id)
                .ok_or_else(|| format!("{id} is no candidate"))?,
        };
        if base.view.head() != newest.view.head() && !options.discard_newer {
            let discarded = newest.view.generation() - base.view.generation();
            return Err(format!(
                "{discarded} newer generations would be given up: add --discard-newer if that is meant"
            ));
        }
        let in_folder = self.candidates.first().is_some_and(|one| one.outer.is_none());
        if in_folder && !options.accept_stale_floor {
            return Err(
                "whatever was published after the continuity floor would be given up: add \
                        --accept-stale-floor if nobody has seen more than this clone"
                    .to_owned(),
            );
        }
        Ok(base)
    }
}
