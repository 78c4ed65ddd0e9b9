//! Who may read, write and administer: looking at it, and changing it.

use std::path::Path;
use std::sync::Arc;

use super::{Error, Remote, View};
use crate::protocol::policy::Change;
use crate::protocol::publication;
use crate::state::{AdminPin, Continuity, State};
use crate::storage;

/// How often a change of membership begins anew after somebody pushed in between. A push is quick and a change is quicker,
/// so this is reached only where something is wrong.
const ATTEMPTS: u32 = 12;

/// A change of membership.
#[derive(Debug)]
pub struct Changed {
    /// The changes that were needed; empty where all was as wanted, and nothing was published.
    pub changes: Vec<Change>,
    /// The store before.
    pub before: View,
    /// The store now.
    pub after: View,
}

impl Remote<'_> {
    /// The store for a look at its members. Compared with the pin beside `key_file` too, where there is one; a pin that
    /// fell behind, because a change was interrupted after its publication, catches up.
    pub fn members(&self, key_file: &Path) -> Result<View, Error> {
        // The pin is locked before the memory, as by changes: two commands never wait for each other.
        let mut pin = match AdminPin::path_for(key_file).exists() {
            true => Some(AdminPin::open(Arc::clone(&self.fs), key_file, self.patience)?),
            false => None,
        };
        let (view, _memory) = self.look()?;
        if let Some(pin) = &mut pin {
            catch_up(pin, &view)?;
        }
        Ok(view)
    }

    /// Changes the membership: all of `changes` in one generation, or nothing.
    ///
    /// `key_file` is where the key was read, with the pin beside it. When somebody else only pushed in the meantime, the
    /// change is made again on top; when another administrator changed the membership, that has to be looked at by a
    /// person: [`Error::MembershipChanged`].
    pub fn change_members(&self, key_file: &Path, changes: &[Change]) -> Result<Changed, Error> {
        let mut pin = AdminPin::open(Arc::clone(&self.fs), key_file, self.patience)?;
        let (view, mut memory) = self.look_to_change(&mut pin)?;
        let changed = self.publish_members(view, &mut memory, &mut pin, changes)?;
        self.record_members(&changed, &mut memory, &mut pin)?;
        Ok(changed)
    }

    /// The store, compared with the memory and the pin.
    pub(super) fn look_to_change(&self, pin: &mut AdminPin) -> Result<(View, Option<Continuity>), Error> {
        let (view, memory) = self.look_to_push()?;
        catch_up(pin, &view)?;
        Ok((view, memory))
    }

    /// Publishes the change; what is remembered stays as it was.
    pub(super) fn publish_members(
        &self,
        before: View,
        memory: &mut Option<Continuity>,
        pin: &mut AdminPin,
        changes: &[Change],
    ) -> Result<Changed, Error> {
        let looked_at = Arc::clone(before.chain().policy());
        let mut before = before;
        let needed = looked_at.effective(changes);
        if needed.is_empty() && !changes.is_empty() {
            let after = before.clone();
            return Ok(Changed {
                changes: needed,
                before,
                after,
            });
        }
        for _ in 0..ATTEMPTS {
            let publication = publication::transition(before.chain(), self.key, &needed)?;
            if self.progress.interrupted() {
                return Err(Error::Interrupted);
            }
            self.storage.put_manifest(publication.bytes())?;
            match self.storage.swap_head(Some(before.head()), publication.id()) {
                Ok(()) => {
                    let after = View::of(publication.into_chain())?;
                    self.seen.remember(&after);
                    return Ok(Changed {
                        changes: needed,
                        before,
                        after,
                    });
                }
                Err(storage::Error::HeadChanged { .. }) => {
                    before = self.view(memory)?;
                    pin.check(&before.observed(&|number| before.id_at(number)))?;
                    let policy = before.chain().policy();
                    if policy.id() != looked_at.id() {
                        return Err(Error::MembershipChanged {
                            expected: looked_at.generation(),
                            seen: policy.generation(),
                            by: *policy.signer(),
                        });
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::Busy { attempts: ATTEMPTS })
    }

    /// Moves the pin and the memory to what was published. No objects came with it, so what was imported and complete
    /// stays so.
    pub(super) fn record_members(
        &self,
        changed: &Changed,
        memory: &mut Option<Continuity>,
        pin: &mut AdminPin,
    ) -> Result<(), Error> {
        let after = &changed.after;
        pin.record(&after.observed(&|number| after.id_at(number)))?;
        let Some(memory) = memory else { return Ok(()) };
        let mut state = State::new(&after.observed(&|_| None));
        if let Some(old) = memory.state() {
            state.verified_refs = old.verified_refs.clone();
            state.imported_generation = old.imported_generation.map(|imported| {
                let whole = imported == changed.before.generation();
                if whole { after.generation() } else { imported }
            });
        }
        self.record(memory, state, after)
    }
}

/// Checks the pin, and moves it on where it is behind.
fn catch_up(pin: &mut AdminPin, view: &View) -> Result<(), Error> {
    let id_at = |number| view.id_at(number);
    let observed = view.observed(&id_at);
    pin.check(&observed)?;
    if pin
        .state()
        .is_some_and(|state| state.generation < observed.generation)
    {
        pin.record(&observed)?;
    }
    Ok(())
}
