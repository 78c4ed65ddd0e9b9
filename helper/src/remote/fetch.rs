//! Fetch: import the packs that are new, prove that everything is there, and only then remember it.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use gix::object::Kind as ObjectKind;
use gix_hash::ObjectId;
use ingot_engine::import::{self, Connectivity, Import, Limits, PublishedPack};
use ingot_engine::pack::index;

use super::told::Opening;
use super::{Error, Local, Remote, View, joined, refnames};
use crate::counted::Counted;
use crate::protocol::ContentId;
use crate::protocol::manifest::PackDescriptor;
use crate::protocol::pack_stream::Opener;
use crate::state::Continuity;

/// How to fetch.
#[derive(Debug, Clone, Copy, Default)]
pub struct FetchOptions {
    /// Leave a `.keep` file beside each new pack, so that a collection running at the same time spares it until the
    /// caller has moved references.
    pub keep: bool,
}

/// What a fetch brought.
#[derive(Debug)]
pub struct Fetched {
    /// The `.keep` files of new packs, if they were asked for.
    pub keep: Vec<PathBuf>,
    /// Packs taken from the store.
    pub packs: usize,
    /// Objects in them.
    pub objects: u64,
    /// Bytes of them as they are stored.
    pub bytes: u64,
    /// The store that was fetched from. All its references are complete in the repository.
    pub view: View,
}

impl Fetched {
    /// The repository has everything of the store already.
    fn nothing(view: View) -> Fetched {
        Fetched {
            keep: Vec::new(),
            packs: 0,
            objects: 0,
            bytes: 0,
            view,
        }
    }
}

impl Remote<'_> {
    /// The store as it is now. Moves the memory's floor when everything listed is here already, since Git does not ask
    /// for a fetch then.
    pub fn list(&self, local: Option<&Local<'_>>) -> Result<View, Error> {
        let (view, mut memory) = self.look()?;
        if let (Some(memory), Some(local)) = (&mut memory, local)
            && self.is_behind(memory, &view)
            && self.is_connected(memory, &view, local)
        {
            self.record(memory, view.state(), &view)?;
        }
        Ok(view)
    }

    /// The same for a caller who will push: the connection to the store may be one for pushes, and stay for them.
    pub fn list_to_push(&self) -> Result<View, Error> {
        Ok(self.look_to_push()?.0)
    }

    /// Brings everything that the references of the store need into the repository.
    pub fn fetch(&self, local: &Local<'_>, options: FetchOptions) -> Result<Fetched, Error> {
        let (mut view, mut memory) = self.look()?;
        if view.refs().is_empty() {
            return Ok(Fetched::nothing(view));
        }
        view.check_format(local.format())?;
        if self.is_connected_or_false(memory.as_ref(), &view, local) {
            if let Some(memory) = &mut memory {
                self.record(memory, view.state(), &view)?;
            }
            return Ok(Fetched::nothing(view));
        }
        let imported = memory
            .as_ref()
            .and_then(|memory| memory.state())
            .and_then(|state| state.imported_generation);
        let frontier = frontier(memory.as_ref(), local);
        if view.packs_after(imported).is_none() {
            view = self.whole(view, &mut memory)?;
        }
        let new = view.packs_after(imported).unwrap_or_default();
        let is_part = (new.len() as u64) < view.chain().pack_count();
        let first = self.import(&view, &new, &frontier, local, options);
        let (brought, published) = match first {
            // What was imported once can be gone again (`git gc --prune`), so all that is remembered is a hint.
            Err(Error::Missing { .. }) if is_part || !frontier.is_empty() => {
                view = self.whole(view, &mut memory)?;
                let all: Vec<&PackDescriptor> = view.chain().packs().collect();
                self.import(&view, &all, &[], local, options)?
            }
            other => other?,
        };
        let keep: Vec<PathBuf> = published.into_iter().filter_map(|pack| pack.keep).collect();
        if let Some(memory) = &mut memory {
            let mut state = view.state();
            state.packs = brought.ids.iter().copied().collect();
            if let Err(error) = self.record(memory, state, &view) {
                // The caller is told of the error, not of these files.
                for keep in keep {
                    let _ = self.fs.unlink(&keep);
                }
                return Err(error);
            }
        }
        Ok(Fetched {
            keep,
            packs: brought.ids.len(),
            objects: brought.objects,
            bytes: brought.bytes,
            view,
        })
    }

    fn import(
        &self,
        view: &View,
        packs: &[&PackDescriptor],
        frontier: &[ObjectId],
        local: &Local<'_>,
        options: FetchOptions,
    ) -> Result<(Brought, Vec<PublishedPack>), Error> {
        let mut import = local.begin_import(self.threads, Arc::clone(&self.fs))?;
        let brought = self.take_packs(view, packs, &mut import, Joining::Small)?;
        let tips: Vec<ObjectId> = view.refs().values().copied().collect();
        self.require_complete(&import, view, &tips, frontier)?;
        let published = import.publish(options.keep)?;
        Ok((brought, published))
    }

    /// A pack of the store, decrypted as it is read.
    pub(super) fn opened(
        &self,
        view: &View,
        pack: &PackDescriptor,
    ) -> Result<Opener<Box<dyn Read + Send>>, Error> {
        let key = view
            .chain()
            .pack_key(pack)
            .ok_or(Error::ForeignPack { id: pack.id })?;
        let stored = self.storage.open_pack(&pack.id)?;
        Opener::new(stored, &key, pack, self.threads).map_err(|source| Error::from_stream(pack.id, source))
    }

    /// Decrypts packs into an import, oldest first.
    pub(super) fn take_packs(
        &self,
        view: &View,
        packs: &[&PackDescriptor],
        import: &mut Import,
        joining: Joining,
    ) -> Result<Brought, Error> {
        let mut brought = Brought::default();
        self.expect(packs);
        let total = super::view::sum(packs.iter().map(|pack| pack.plaintext_size));
        let opening = Opening::new(self.progress, "Decrypting and indexing", total);
        let mut next = packs;
        while !next.is_empty() {
            let count = match joining {
                Joining::Small => joined::together(next).min(next.len()),
                Joining::None => 1,
            };
            let (group, rest) = next.split_at(count.max(1));
            next = rest;
            if group.len() > 1
                && let Some(pack) = self.joined(view, group)?
            {
                match import.add_pack(&mut pack.as_slice(), &Limits::default(), &opening) {
                    Ok(info) => {
                        opening.opened(super::view::sum(group.iter().map(|pack| pack.plaintext_size)));
                        brought.objects += u64::from(info.objects);
                        brought.bytes +=
                            super::view::sum(group.iter().map(|pack| super::view::stored_size(pack)));
                        brought.ids.extend(group.iter().map(|pack| pack.id));
                        continue;
                    }
                    // One by one, what is wrong is told of the one with which it is.
                    Err(import::Error::Pack(index::Error::Interrupted)) => return Err(Error::Interrupted),
                    Err(_) => {}
                }
            }
            self.take_each(view, group, import, &opening, &mut brought)?;
        }
        self.progress.end();
        Ok(brought)
    }

    fn take_each(
        &self,
        view: &View,
        packs: &[&PackDescriptor],
        import: &mut Import,
        opening: &Opening<'_>,
        brought: &mut Brought,
    ) -> Result<(), Error> {
        for pack in packs {
            let stream = self.opened(view, pack)?;
            opening.next(pack.plaintext_size);
            let mut stream = Counted::new(stream, |bytes| opening.opened(bytes));
            let info = import.add_pack(&mut stream, &Limits::default(), opening);
            let info = info.map_err(|source| Error::from_import(pack.id, source))?;
            brought.objects += u64::from(info.objects);
            brought.bytes += super::view::stored_size(pack);
            brought.ids.push(pack.id);
        }
        Ok(())
    }

    /// Tells the store what will be read.
    pub(super) fn expect(&self, packs: &[&PackDescriptor]) {
        let sizes = |pack: &&PackDescriptor| (pack.id, super::view::stored_size(pack));
        let packs: Vec<(ContentId, u64)> = packs.iter().map(sizes).collect();
        self.storage.expect_packs(&packs);
    }

    /// Requires that everything reachable from `tips` is there once the import is published.
    pub(super) fn require_complete(
        &self,
        import: &Import,
        view: &View,
        tips: &[ObjectId],
        frontier: &[ObjectId],
    ) -> Result<(), Error> {
        if let Connectivity::Missing { id, referrer } = import.check(tips, frontier, self.progress)? {
            return Err(Error::Missing { id, referrer });
        }
        let store = import.store()?;
        for (name, id) in view.refs().iter().filter(|(name, _)| refnames::is_branch(name)) {
            match store.header(id)?.map(|(kind, _)| kind) {
                Some(ObjectKind::Commit) => {}
                kind => {
                    return Err(Error::BranchKind {
                        name: name.clone(),
                        id: *id,
                        kind,
                    });
                }
            }
        }
        Ok(())
    }

    fn is_behind(&self, memory: &Continuity, view: &View) -> bool {
        memory.state().is_none_or(|state| {
            state.head_id != *view.head() || state.imported_generation != Some(view.generation())
        })
    }

    fn is_connected(&self, memory: &Continuity, view: &View, local: &Local<'_>) -> bool {
        self.is_connected_or_false(Some(memory), view, local)
    }

    /// Whether the repository has everything already. A repository that cannot be read answers no: the import that
    /// follows will tell why.
    fn is_connected_or_false(&self, memory: Option<&Continuity>, view: &View, local: &Local<'_>) -> bool {
        let tips: Vec<ObjectId> = view.refs().values().copied().collect();
        if view.check_format(local.format()).is_err() || !tips.iter().all(|tip| local.store().contains(tip)) {
            return false;
        }
        let frontier = frontier(memory, local);
        local.is_connected(&tips, &frontier, self.threads, self.progress)
    }
}

/// Whether packs are taken in as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joining {
    /// Each by itself, so that each has to be complete in itself.
    None,
    /// Many small ones as one.
    Small,
}

/// Packs that went into an import.
#[derive(Debug, Default)]
pub(super) struct Brought {
    pub ids: Vec<ContentId>,
    pub objects: u64,
    pub bytes: u64,
}

/// Tips that were complete when last looked at, as far as they are still here.
fn frontier(memory: Option<&Continuity>, local: &Local<'_>) -> Vec<ObjectId> {
    let state = memory.and_then(|memory| memory.state());
    let verified = state.into_iter().flat_map(|state| state.verified_refs.values());
    verified
        .filter(|id| local.store().contains(id))
        .copied()
        .collect()
}
