//! Push: one generation, however many references it moves.

use std::thread;
use std::time::Duration;

use gix_hash::ObjectId;
use ingot_engine::pack::write;

use super::decide::{self, Change, Decision, Refs};
use super::told::Sealing;
use super::{Error, Local, Remote, View};
use crate::counted::Counted;
use crate::protocol::pack_stream::Sealer;
use crate::protocol::publication::Writer;
use crate::protocol::{Chain, ContentId};
use crate::state::{Continuity, State};
use crate::storage;

/// How often a push begins anew after somebody else published in between.
const ATTEMPTS: u32 = 6;

/// How to push.
#[derive(Debug, Clone, Default)]
pub struct PushOptions {
    /// All references or none.
    pub atomic: bool,
    /// Decides, and changes nothing.
    pub dry_run: bool,
    /// What the user was shown before; `None`: what the store has when the push begins.
    pub listed: Option<Refs>,
}

/// What was written to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Git objects; 0 where the store had them all, and where a push went on that had been interrupted.
    pub objects: u64,
    /// Bytes of ciphertext, the manifest included.
    pub bytes: u64,
    /// Lists and chunks of chunked files that were to be sent and are not here.
    pub absent_chunks: u64,
}

/// What a push did.
#[derive(Debug)]
pub struct Pushed {
    /// What became of each change, in their order. Final: what is `Move` here has moved (unless this was a dry run).
    pub decisions: Vec<Decision>,
    /// What was written; `None` where no generation was published.
    pub sent: Option<Sent>,
    /// The store afterwards.
    pub view: View,
}

impl Remote<'_> {
    /// Pushes `changes` from the repository `local`.
    ///
    /// When another device publishes first, the push starts over by itself as long as the references that it moves are
    /// still where they were; those that are not end as `fetch first`.
    pub fn push(
        &self,
        local: &Local<'_>,
        changes: &[Change],
        options: &PushOptions,
    ) -> Result<Pushed, Error> {
        let (mut view, mut memory) = self.look_to_push()?;
        let listed = options.listed.clone().unwrap_or_else(|| view.refs().clone());
        let mut attempt = 1;
        loop {
            view.check_format(local.format())?;
            let decisions = decide::decide(changes, view.refs(), &listed, options.atomic, local)?;
            let moves = decisions
                .iter()
                .any(|decision| matches!(decision, Decision::Move { .. }));
            if !moves || options.dry_run {
                return Ok(Pushed {
                    decisions,
                    sent: None,
                    view,
                });
            }
            match self.publish(&view, &decisions, local) {
                Ok((chain, sent)) => {
                    let after = View::of(chain)?;
                    self.seen.remember(&after);
                    self.remember_own(&mut memory, &view, &after, local)?;
                    return Ok(Pushed {
                        decisions,
                        sent: Some(sent),
                        view: after,
                    });
                }
                Err(Error::Storage(storage::Error::HeadChanged { .. })) if attempt < ATTEMPTS => {
                    // Whoever was faster is probably not alone; spread the next tries.
                    thread::sleep(Duration::from_millis(
                        u64::from(attempt * attempt) * 20 + jitter(),
                    ));
                    attempt += 1;
                    view = self.view(&mut memory)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Stores what is missing and moves the head.
    fn publish(
        &self,
        view: &View,
        decisions: &[Decision],
        local: &Local<'_>,
    ) -> Result<(Chain, Sent), Error> {
        let refs = decide::apply(decisions, view.refs());
        if let Some(done) = self.go_on(view, &refs)? {
            return Ok(done);
        }
        let mut writer = Writer::begin(view.chain(), self.key)?;
        let mut sent = Sent {
            objects: 0,
            bytes: 0,
            absent_chunks: 0,
        };
        let wants: Vec<ObjectId> = decisions
            .iter()
            .filter_map(|decision| match decision {
                Decision::Move { new, .. } => *new,
                _ => None,
            })
            .collect();
        let haves: Vec<ObjectId> = view.refs().values().copied().collect();
        let objects = local.enumerate(&wants, &haves, self.threads, self.progress)?;
        sent.absent_chunks = objects.absent_chunks();
        if !objects.is_empty() {
            let options = write::Options {
                threads: self.threads,
                ..write::Options::default()
            };
            let plan = write::plan(local.store(), &objects, &options, self.progress)?;
            sent.objects = u64::from(plan.objects());
            if let Some(limit) = self.storage.pack_limit()
                && plan.least_bytes() > limit
            {
                return Err(storage::Error::PackTooLarge { limit }.into());
            }
            let staged = self.storage.stage_object()?;
            let mut sealer = Sealer::new(staged, &writer.pack_key(), self.threads).map_err(Error::Seal)?;
            let mut counted = Counted::new(&mut sealer, |bytes| self.progress.transferred(bytes));
            plan.stream(&mut counted, &Sealing(self.progress))?;
            let (sealed, staged) = sealer.finish().map_err(Error::Seal)?;
            staged.finish(&sealed.id)?;
            sent.bytes += sealed.stored_size;
            writer.add_pack(&sealed);
        }
        if self.progress.interrupted() {
            return Err(Error::Interrupted);
        }
        let text = refs
            .iter()
            .map(|(name, id)| (name.clone(), id.to_string()))
            .collect();
        let publication = writer.publish(&text)?;
        sent.bytes += publication.bytes().len() as u64;
        self.storage.put_manifest(publication.bytes())?;
        self.storage.swap_head(Some(view.head()), publication.id())?;
        Ok((publication.into_chain(), sent))
    }

    /// Goes on with a push that was interrupted, if it was this one: its manifest, read as any reader would, is signed by this
    /// device, follows the head, has one pack, and says of every reference what is to be. The pack was made for these
    /// references on top of this head, so whatever it has is what is needed. Anything else is given up.
    fn go_on(&self, view: &View, refs: &Refs) -> Result<Option<(Chain, Sent)>, Error> {
        let Some(unfinished) = self.storage.unfinished() else {
            return Ok(None);
        };
        let id = ContentId::of(&unfinished.manifest);
        let read = |wanted: &ContentId| match *wanted == id {
            true => Ok(unfinished.manifest.clone()),
            false => self.storage.manifest(wanted),
        };
        let known = (view.generation(), *view.head());
        let fitting = Chain::read_since(read, &id, self.key, Some(known))
            .ok()
            .filter(|chain| {
                let head = chain.head();
                let follows = head.number() == view.generation() + 1
                    && chain.generation(view.generation()).map(|before| before.id()) == Some(view.head());
                let packs: Vec<ContentId> = head.new_packs().iter().map(|pack| pack.id).collect();
                let says = View::of(chain.clone()).is_ok_and(|after| after.refs() == refs);
                follows && says && head.signer() == self.key.id() && packs == [unfinished.pack]
            });
        let Some(chain) = fitting else {
            self.storage.give_up();
            return Ok(None);
        };
        match self.storage.take_up(&unfinished.pack) {
            Err(storage::Error::NothingUnfinished { .. }) => return Ok(None),
            taken => taken?,
        }
        self.storage.swap_head(Some(view.head()), &id)?;
        let stored = super::view::sum(chain.head().new_packs().iter().map(super::view::stored_size));
        let sent = Sent {
            objects: 0,
            bytes: stored + unfinished.manifest.len() as u64,
            // The push that was interrupted has told of them.
            absent_chunks: 0,
        };
        Ok(Some((chain, sent)))
    }

    /// Moves the memory to what was just published. The objects of the new references are all here, so where those of
    /// the parent were known to be complete, those of the new generation are.
    fn remember_own(
        &self,
        memory: &mut Option<Continuity>,
        before: &View,
        after: &View,
        local: &Local<'_>,
    ) -> Result<(), Error> {
        let Some(memory) = memory else { return Ok(()) };
        let mut state = State::new(&after.observed(&|_| None));
        let old = memory.state();
        let verified = old.map(|old| old.verified_refs.clone()).unwrap_or_default();
        let imported = old.and_then(|old| old.imported_generation);
        let packs_up_to_date = before
            .chain()
            .newest_pack()
            .is_none_or(|newest| imported.is_some_and(|imported| imported >= newest));
        if verified == *before.refs() && local.is_complete()? {
            state.verified_refs = after.refs().clone();
            if packs_up_to_date {
                state.imported_generation = Some(after.generation());
            }
        } else {
            state.verified_refs = verified;
        }
        self.record(memory, state, after)
    }
}

/// Up to 63 ms that differ between processes.
fn jitter() -> u64 {
    let mut byte = [0];
    // Without random bytes nothing could have been sealed; the pause is then a little more regular.
    getrandom::fill(&mut byte).ok();
    u64::from(byte[0] % 64)
}
