//! A store on a branch of an ordinary Git repository, the carrier.
//!
//! | Path on branch `git-remote-e2ee` | Content |
//! | --- | --- |
//! | `.gitattributes` | `e2ee/** -delta` |
//! | `e2ee/HEAD` | id of the newest manifest and a newline |
//! | `e2ee/manifests/<first two digits>/<id>/<part>` | manifests |
//! | `e2ee/objects/<first two digits>/<id>/<part>` | sealed packs |
//!
//! Parts are numbered by eight digits and have 32 MiB, the last one at least a byte. Whatever else is on the branch, and
//! all other branches, belong to somebody else and stay as they are.
//!
//! One publication is one commit: packs, manifest and head become visible together when the branch moves, which is the
//! comparing and swapping. Until then they are objects that nobody sees. Where the repository is, and how it is talked
//! to, is the matter of an [`Outer`].

mod edit;
mod hooks;
mod kept;
mod layout;
mod local;
mod network;
mod outer;
mod parts;
mod policy;
mod snapshot;
mod staged;

use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gix::object::Kind as ObjectKind;
use ingot_engine::durable::Fs;
use ingot_engine::pack::create::Content;
use ingot_engine::transport::Messages;

pub use layout::{BRANCH, MOST_PARTS, PART};
pub use network::{Place as NetworkPlace, cache_root, identity_of as network_identity};
pub use outer::{Outcome, Outer, Purpose, Upload};
pub use snapshot::{Snapshot, Tip};

use super::{Error, Kind, MANIFEST_LIMIT, RawHead, StagedObject, Storage};
use crate::protocol::ContentId;
use edit::Edit;
use staged::{Pending, Staged};

/// How often the same commit is offered again when no answer came and the branch is where it was.
const OFFERS: u32 = 3;

/// A store in a carrier.
#[derive(Clone)]
pub struct Carrier {
    shared: Arc<Shared>,
}

/// What the store and its half-written packs share.
struct Shared {
    outer: Box<dyn Outer>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The branch as it was when the head was last read.
    snapshot: Option<Arc<Snapshot>>,
    /// What will be published with the next head.
    pending: Option<Pending>,
}

impl std::fmt::Debug for Carrier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Carrier")
            .field("outer", &self.shared.outer.describe())
            .finish_non_exhaustive()
    }
}

impl Carrier {
    /// The store in the repository at `path` on this machine, which is written to through `fs`. What its
    /// hooks say goes to `messages`.
    pub fn local(path: &Path, fs: Arc<dyn Fs>, messages: Arc<dyn Messages>) -> Result<Carrier, Error> {
        Ok(Carrier::new(Box::new(local::Local::new(path, fs, messages)?)))
    }

    /// The store in a repository on a server.
    pub fn network(place: NetworkPlace) -> Result<Carrier, Error> {
        Ok(Carrier::new(Box::new(network::Network::new(place)?)))
    }

    /// The store in any repository.
    pub fn new(outer: Box<dyn Outer>) -> Carrier {
        Carrier {
            shared: Arc::new(Shared {
                outer,
                state: Mutex::default(),
            }),
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The branch as it is now. Gives up what is pending: it was made for an older one.
    fn look(&self, purpose: Purpose) -> Result<Arc<Snapshot>, Error> {
        self.forget_pending();
        self.state().snapshot = None;
        let snapshot = Arc::new(self.outer.look(purpose)?);
        self.state().snapshot = Some(Arc::clone(&snapshot));
        Ok(snapshot)
    }

    /// The branch as it was when the head was last read.
    fn snapshot(&self) -> Result<Arc<Snapshot>, Error> {
        let known = self.state().snapshot.clone();
        match known {
            Some(snapshot) => Ok(snapshot),
            None => self.look(Purpose::Read),
        }
    }

    /// Does something with what can be read, and once more when that cannot be right and was kept on this machine.
    fn carefully<T>(&self, purpose: Purpose, work: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
        match work() {
            Err(error) if error.is_about_content() && self.outer.distrust() => {
                self.look(purpose)?;
                work()
            }
            result => result,
        }
    }

    fn read_head(&self, purpose: Purpose) -> Result<Option<RawHead>, Error> {
        self.carefully(purpose, || self.look(purpose)?.head())
    }

    fn with_pending<T>(&self, work: impl FnOnce(&mut Pending) -> Result<T, Error>) -> Result<T, Error> {
        let snapshot = self.snapshot()?;
        let mut state = self.state();
        let pending = match &mut state.pending {
            Some(pending) => pending,
            none => none.insert(Pending {
                upload: self.outer.begin(&snapshot)?,
                snapshot,
                things: Vec::new(),
            }),
        };
        work(pending)
    }

    fn forget_pending(&self) {
        let pending = self.state().pending.take();
        drop(pending);
    }

    fn absent(&self, snapshot: &Snapshot, kind: Kind, id: &ContentId) -> Error {
        let store = self.outer.describe();
        match snapshot.tip() {
            None => Error::NotInitialized { store },
            Some(_) => Error::Absent { store, kind, id: *id },
        }
    }

    /// A thing as its parts, with the store that has them and their size.
    fn open(
        &self,
        kind: Kind,
        id: &ContentId,
    ) -> Result<(Arc<ingot_engine::store::Store>, Vec<gix_hash::ObjectId>, u64), Error> {
        let snapshot = self.snapshot()?;
        let Some(parts) = snapshot.parts(kind, id)? else {
            return Err(self.absent(&snapshot, kind, id));
        };
        let store = self.outer.bring(&snapshot, &parts)?;
        let size = snapshot.stored_size(&store, kind, id, &parts)?;
        Ok((store, parts, size))
    }

    fn read_manifest(&self, id: &ContentId) -> Result<Vec<u8>, Error> {
        let (store, parts, size) = self.open(Kind::Manifest, id)?;
        let snapshot = self.snapshot()?;
        let path = snapshot.path_of(Kind::Manifest, id);
        if size > MANIFEST_LIMIT {
            return Err(snapshot.corrupt(&path, format!("is larger than {MANIFEST_LIMIT} bytes")));
        }
        let name = self.outer.describe();
        let mut bytes = Vec::new();
        parts::open(&name, store, parts, size)?
            .read_to_end(&mut bytes)
            .map_err(|error| match Error::from_stream(error) {
                Ok(error) => error,
                Err(error) => Error::from_io(&name, "read", Path::new(&path), error),
            })?;
        if ContentId::of(&bytes) != *id {
            return Err(snapshot.corrupt(&path, "does not have the content that its name says"));
        }
        Ok(bytes)
    }

    /// Makes the commit with everything that is pending and moves the branch to it.
    fn publish(
        &self,
        mut pending: Pending,
        expected: Option<&ContentId>,
        new: &ContentId,
    ) -> Result<(), Error> {
        let snapshot = Arc::clone(&pending.snapshot);
        let actual = self.head_id(&snapshot)?;
        if actual.as_ref() != expected {
            return Err(Error::HeadChanged {
                expected: expected.copied(),
                actual,
            });
        }
        let old = snapshot.tip().map(|tip| tip.commit);
        let commit = match build_commit(&snapshot, &mut pending, new) {
            // What is kept on this machine is made anew, and the caller begins anew.
            Err(error) if error.is_about_content() && self.outer.distrust() => {
                return Err(Error::HeadChanged {
                    expected: expected.copied(),
                    actual,
                });
            }
            commit => commit?,
        };
        for offer in 1.. {
            let unknown = match pending.upload.publish(old, commit)? {
                Outcome::Moved => return Ok(()),
                Outcome::LostRace => {
                    let actual = self.head_id(&*self.look(Purpose::Read)?)?;
                    return Err(Error::HeadChanged {
                        expected: expected.copied(),
                        actual,
                    });
                }
                Outcome::Unknown(error) => error,
            };
            // Nobody knows what became of it but the branch itself. A manifest has one writer: where it is, that writer
            // has published it, whatever came after.
            let now = self.look_again(&unknown)?;
            let tip = now.tip().map(|tip| tip.commit);
            if tip == Some(commit) || now.has(Kind::Manifest, new)? {
                return Ok(());
            }
            if tip != old {
                return Err(Error::HeadChanged {
                    expected: expected.copied(),
                    actual: self.head_id(&now)?,
                });
            }
            if offer == OFFERS {
                return Err(unknown);
            }
            std::thread::sleep(Duration::from_millis(200) * offer * offer);
        }
        unreachable!("the loop ends at its last offer")
    }

    /// Reads the branch after an answer did not come. Where not even that succeeds, nobody can tell.
    fn look_again(&self, unknown: &Error) -> Result<Arc<Snapshot>, Error> {
        let mut attempt = 1;
        loop {
            match self.look(Purpose::Read) {
                Ok(snapshot) => return Ok(snapshot),
                Err(error) if attempt == OFFERS => {
                    return Err(Error::OutcomeUnknown {
                        store: self.outer.describe(),
                        reason: format!("{unknown}; and then: {error}"),
                    });
                }
                Err(_) => std::thread::sleep(Duration::from_millis(300) * attempt * attempt),
            }
            attempt += 1;
        }
    }

    fn head_id(&self, snapshot: &Snapshot) -> Result<Option<ContentId>, Error> {
        let Some(head) = snapshot.head()? else {
            return Ok(None);
        };
        match head.id() {
            Some(id) => Ok(Some(id)),
            None => Err(snapshot.corrupt(
                &format!("{}/{}", layout::FOLDER, layout::HEAD),
                "is not the id of a manifest",
            )),
        }
    }
}

/// Adds head, attributes, trees and commit to the pending objects.
fn build_commit(
    snapshot: &Snapshot,
    pending: &mut Pending,
    head: &ContentId,
) -> Result<gix_hash::ObjectId, Error> {
    let mut edit = Edit::default();
    for (kind, id, parts) in std::mem::take(&mut pending.things) {
        edit.add(kind, &id, parts);
    }
    let head = RawHead::from(head);
    edit.set_head(pending.part(head.bytes(), Content::Compressible)?);
    if !snapshot.has_attributes()? {
        edit.set_attributes(pending.part(layout::ATTRIBUTES_TEXT, Content::Compressible)?);
    }
    let tree = edit.write(snapshot, &mut *pending.upload)?;
    let text = layout::commit(tree, snapshot.tip().map(|tip| tip.commit));
    pending
        .upload
        .add(ObjectKind::Commit, &text, Content::Compressible)
}

impl Storage for Carrier {
    fn describe(&self) -> String {
        self.shared.outer.describe()
    }

    fn identity(&self) -> String {
        self.shared.outer.identity()
    }

    fn head(&self) -> Result<Option<RawHead>, Error> {
        self.shared.read_head(Purpose::Read)
    }

    fn head_for_push(&self) -> Result<Option<RawHead>, Error> {
        self.shared.read_head(Purpose::Push)
    }

    fn manifest(&self, id: &ContentId) -> Result<Vec<u8>, Error> {
        self.shared
            .carefully(Purpose::Read, || self.shared.read_manifest(id))
    }

    fn expect_packs(&self, packs: &[(ContentId, u64)]) {
        let Ok(snapshot) = self.shared.snapshot() else {
            return;
        };
        let parts = |(id, size): &(ContentId, u64)| {
            // What is wrong with it will be told to whoever opens it.
            let parts = snapshot.parts(Kind::Pack, id).ok().flatten()?;
            Some((parts, *size))
        };
        self.shared.outer.expect(packs.iter().filter_map(parts).collect());
    }

    fn pack_size(&self, id: &ContentId) -> Result<u64, Error> {
        Ok(self.shared.open(Kind::Pack, id)?.2)
    }

    fn open_pack(&self, id: &ContentId) -> Result<Box<dyn Read + Send>, Error> {
        let open = || self.shared.open(Kind::Pack, id);
        let (store, parts, size) = self.shared.carefully(Purpose::Read, open)?;
        parts::open(&self.describe(), store, parts, size)
    }

    fn create(&self) -> Result<(), Error> {
        self.shared.outer.create()
    }

    fn stage_object(&self) -> Result<Box<dyn StagedObject>, Error> {
        Ok(Box::new(Staged::begin(&self.shared)?))
    }

    fn put_manifest(&self, bytes: &[u8]) -> Result<ContentId, Error> {
        let size = bytes.len() as u64;
        if size > MANIFEST_LIMIT {
            return Err(Error::ManifestTooLarge {
                size,
                limit: MANIFEST_LIMIT,
            });
        }
        let id = ContentId::of(bytes);
        self.shared.with_pending(|pending| {
            let part = pending.part(bytes, Content::Compressible)?;
            pending.things.push((Kind::Manifest, id, vec![part]));
            Ok(())
        })?;
        Ok(id)
    }

    fn swap_head(&self, expected: Option<&ContentId>, new: &ContentId) -> Result<(), Error> {
        // Nothing changes and nothing waits: the beginning of a repository is made sure of.
        let waits = self.shared.state().pending.is_some();
        if expected == Some(new) && !waits {
            let snapshot = self.shared.look(Purpose::Read)?;
            let actual = self.shared.head_id(&snapshot)?;
            if actual.as_ref() == expected {
                return Ok(());
            }
            return Err(Error::HeadChanged {
                expected: expected.copied(),
                actual,
            });
        }
        self.shared.with_pending(|_| Ok(()))?;
        let Some(pending) = self.shared.state().pending.take() else {
            return Err(Error::HeadChanged {
                expected: expected.copied(),
                actual: None,
            });
        };
        let result = self.shared.publish(pending, expected, new);
        // The branch has moved, by this hand or another.
        self.shared.state().snapshot = None;
        result
    }
}
