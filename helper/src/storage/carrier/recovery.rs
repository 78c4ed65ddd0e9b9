//! A carrier remembers every head it had: the branch is a history. Recovery reads it along first parents.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use gix::object::Kind as ObjectKind;
use gix_hash::ObjectId;
use ingot_engine::pack::create::Content;
use ingot_engine::store::{Cache, Store};
use sha2::{Digest as _, Sha256};

use super::super::{Error, HEAD_LIMIT, Heads, Kind, MANIFEST_LIMIT, MOST_COMMITS, RawHead, Recovery};
use super::edit::Edit;
use super::outer::{Outcome, Purpose};
use super::snapshot::Snapshot;
use super::{Shared, layout, parts};
use crate::protocol::ContentId;

/// The branch at one moment, with all of its history at hand.
pub(super) struct Observed {
    shared: Arc<Shared>,
    tip: Arc<Snapshot>,
    head: Option<RawHead>,
    /// Commits along first parents, the tip first, and whether there are more.
    commits: (Vec<ObjectId>, bool),
    found: Mutex<HashMap<(Kind, ContentId), Found>>,
}

/// A thing whose content was found right.
#[derive(Clone)]
struct Found {
    /// The tree with its parts.
    listing: ObjectId,
    parts: Vec<ObjectId>,
    size: u64,
}

impl Observed {
    pub fn new(shared: &Arc<Shared>) -> Result<Observed, Error> {
        shared.forget_pending();
        let tip = Arc::new(shared.outer.look_back()?);
        let commits = match tip.tip() {
            None => (Vec::new(), false),
            Some(at) => first_parents(&tip, at.commit)?,
        };
        Ok(Observed {
            shared: Arc::clone(shared),
            head: tip.head().ok().flatten(),
            tip,
            commits,
            found: Mutex::default(),
        })
    }

    fn at(&self, commit: ObjectId) -> Result<Snapshot, Error> {
        Snapshot::open(self.tip.name(), Arc::clone(self.tip.store()), Some(commit))
    }

    /// Where a thing is whole: in the tip, or else in the newest commit that has it as it should be.
    fn find(&self, kind: Kind, id: &ContentId) -> Result<(Found, Arc<Store>), Error> {
        let known = || self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known().get(&(kind, *id)).cloned();
        if let Some(found) = before {
            let store = self.shared.outer.bring(&self.tip, &found.parts)?;
            return Ok((found, store));
        }
        let mut trouble = None;
        let mut tried = Vec::new();
        for commit in &self.commits.0 {
            let snapshot = self.at(*commit)?;
            let listing = match snapshot.listing(kind, id) {
                Ok(Some(listing)) if !tried.contains(&listing) => listing,
                Ok(_) => continue,
                Err(error) => {
                    trouble.get_or_insert(error);
                    continue;
                }
            };
            tried.push(listing);
            match self.try_one(&snapshot, listing, kind, id) {
                Ok((found, store)) => {
                    known().insert((kind, *id), found.clone());
                    return Ok((found, store));
                }
                Err(error) if error.is_about_content() => {
                    trouble.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        Err(trouble.unwrap_or_else(|| self.shared.absent(&self.tip, kind, id)))
    }

    fn try_one(
        &self,
        snapshot: &Snapshot,
        listing: ObjectId,
        kind: Kind,
        id: &ContentId,
    ) -> Result<(Found, Arc<Store>), Error> {
        let path = snapshot.path_of(kind, id);
        let parts = snapshot
            .parts(kind, id)?
            .ok_or_else(|| self.shared.absent(snapshot, kind, id))?;
        let store = self.shared.outer.bring(snapshot, &parts)?;
        let size = snapshot.stored_size(&store, kind, id, &parts)?;
        if kind == Kind::Manifest && size > MANIFEST_LIMIT {
            return Err(snapshot.corrupt(&path, format!("is larger than {MANIFEST_LIMIT} bytes")));
        }
        let found = Found { listing, parts, size };
        let mut stream = self.open(&found, &store)?;
        let mut hash = Sha256::new();
        let mut block = vec![0; 256 << 10];
        loop {
            match stream.read(&mut block) {
                Ok(0) => break,
                Ok(count) => hash.update(&block[..count]),
                Err(error) => return Err(self.unreadable(error, &path)),
            }
        }
        if ContentId::from_bytes(hash.finalize().into()) != *id {
            return Err(snapshot.corrupt(&path, "does not have the content that its name says"));
        }
        Ok((found, store))
    }

    fn open(&self, found: &Found, store: &Arc<Store>) -> Result<Box<dyn Read + Send>, Error> {
        parts::open(
            &self.shared.outer.describe(),
            Arc::clone(store),
            found.parts.clone(),
            found.size,
        )
    }

    fn unreadable(&self, error: std::io::Error, path: &str) -> Error {
        match Error::from_stream(error) {
            Ok(error) => error,
            Err(error) => Error::from_io(&self.shared.outer.describe(), "read", Path::new(path), error),
        }
    }
}

/// Commits from `commit` along first parents, at most [`MOST_COMMITS`], and whether there are more. No writer of this
/// format makes merges, so what one of them brought in cannot be told.
fn first_parents(tip: &Snapshot, commit: ObjectId) -> Result<(Vec<ObjectId>, bool), Error> {
    let mut commits = Vec::new();
    let mut next = Some(commit);
    while let Some(commit) = next {
        if commits.len() == MOST_COMMITS {
            return Ok((commits, true));
        }
        let parents = tip.parents(commit)?;
        if parents.len() > 1 {
            return Err(tip.corrupt(
                layout::BRANCH,
                format!("has a merge in its history ({commit}), which no writer makes"),
            ));
        }
        commits.push(commit);
        next = parents.first().copied();
    }
    Ok((commits, false))
}

impl Recovery for Observed {
    fn observed(&self) -> Option<&RawHead> {
        self.head.as_ref()
    }

    fn heads(&self) -> Result<Option<Heads>, Error> {
        let mut blobs: Vec<(ObjectId, ObjectId)> = Vec::new();
        for commit in &self.commits.0 {
            // What is no head of a store in an older commit is nothing to go back to.
            if let Ok(Some(blob)) = self.at(*commit).and_then(|snapshot| snapshot.head_blob()) {
                blobs.push((blob, *commit));
            }
        }
        let mut wanted: Vec<ObjectId> = blobs.iter().map(|(blob, _)| *blob).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let store = self.shared.outer.bring(&self.tip, &wanted)?;
        let mut heads = Vec::new();
        let (mut bytes, mut cache) = (Vec::new(), Cache::new(0));
        for (blob, commit) in blobs {
            let header = store.header(&blob).map_err(|error| self.tip.unreadable(error))?;
            if !matches!(header, Some((ObjectKind::Blob, size)) if size <= HEAD_LIMIT) {
                continue;
            }
            let read = store.read(&blob, &mut cache, &mut bytes);
            if read.map_err(|error| self.tip.unreadable(error))?.is_some() {
                heads.push((RawHead::new(bytes.clone()), commit.to_string()));
            }
        }
        Ok(Some(Heads {
            heads,
            more: self.commits.1,
        }))
    }

    fn manifest(&self, id: &ContentId) -> Result<Vec<u8>, Error> {
        let (found, store) = self.find(Kind::Manifest, id)?;
        let mut bytes = Vec::new();
        self.open(&found, &store)?
            .read_to_end(&mut bytes)
            .map_err(|error| self.unreadable(error, &self.tip.path_of(Kind::Manifest, id)))?;
        Ok(bytes)
    }

    fn open_pack(&self, id: &ContentId) -> Result<Box<dyn Read + Send>, Error> {
        let (found, store) = self.find(Kind::Pack, id)?;
        self.open(&found, &store)
    }

    fn publish(
        &self,
        manifest: &[u8],
        manifests: &[ContentId],
        packs: &[ContentId],
    ) -> Result<ContentId, Error> {
        let id = ContentId::of(manifest);
        let lost = || Error::HeadChanged {
            expected: self.head.as_ref().and_then(RawHead::id),
            actual: None,
        };
        let mut edit = Edit::anew();
        let kept = manifests.iter().map(|id| (Kind::Manifest, id));
        for (kind, id) in kept.chain(packs.iter().map(|id| (Kind::Pack, id))) {
            edit.keep(kind, id, self.find(kind, id)?.0.listing);
        }
        let mut upload = self.shared.outer.begin(&self.tip)?;
        let mut file = |bytes: &[u8]| upload.add(ObjectKind::Blob, bytes, Content::Compressible);
        edit.add(Kind::Manifest, &id, vec![file(manifest)?]);
        edit.set_head(file(RawHead::from(&id).bytes())?);
        edit.set_attributes(file(layout::ATTRIBUTES_TEXT)?);
        let tree = edit.write(&self.tip, &mut *upload)?;
        let old = self.tip.tip().map(|tip| tip.commit);
        let text = layout::commit(tree, old);
        let commit = upload.add(ObjectKind::Commit, &text, Content::Compressible)?;
        let outcome = upload.publish(old, commit);
        self.shared.state().snapshot = None;
        match outcome? {
            Outcome::Moved => Ok(id),
            Outcome::LostRace => Err(lost()),
            Outcome::Unknown(unknown) => {
                let now = self.shared.look(Purpose::Read)?;
                if now.tip().map(|tip| tip.commit) == Some(commit) || now.has(Kind::Manifest, &id)? {
                    return Ok(id);
                }
                Err(if now.tip().map(|tip| tip.commit) == old {
                    unknown
                } else {
                    lost()
                })
            }
        }
    }
}
