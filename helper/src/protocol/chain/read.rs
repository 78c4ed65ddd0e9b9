//! First pass: from the head to generation 0, or to a manifest that is known.

use std::sync::Arc;

use super::super::crypto::GenerationKey;
use super::super::ids::ContentId;
use super::super::keys::DeviceKey;
use super::super::manifest::{Opened, Unopened};
use super::super::refs::{self, RefChange, RefMap};
use super::rules::{self, Tip};
use super::{Chain, Error, Generation, Known, ReadError, Rule};

/// What the first pass may hold of a chain. A storage that knows a device's public key can invent manifests that
/// open; this bounds what they cost. An ordinary generation takes about 1 KiB.
const MAX_RETAINED_BYTES: usize = 256 * 1024 * 1024;

/// A manifest as the first pass leaves it: opened, with the refs reduced to what changed.
pub(super) struct Unverified {
    pub opened: Opened,
    pub ref_changes: Vec<RefChange>,
}

impl Chain {
    /// Reads and verifies the chain that ends in `head`. `fetch` gives the stored bytes of a manifest; they are not
    /// believed.
    pub fn read<E: std::error::Error + 'static>(
        fetch: impl FnMut(&ContentId) -> Result<Vec<u8>, E>,
        head: &ContentId,
        key: &DeviceKey,
    ) -> Result<Self, ReadError<E>> {
        Self::read_since(fetch, head, key, None)
    }

    /// The same for a client that verified a part of the chain before: the generation and the name of the newest manifest
    /// that it did. What is left out, and why that is sound, is said at `verify` below.
    pub fn read_since<E: std::error::Error + 'static>(
        fetch: impl FnMut(&ContentId) -> Result<Vec<u8>, E>,
        head: &ContentId,
        key: &DeviceKey,
        verified: Option<(u64, ContentId)>,
    ) -> Result<Self, ReadError<E>> {
        let walked = walk(fetch, head, key, MAX_RETAINED_BYTES, None)?;
        Ok(verify(walked.above, walked.refs, verified)?)
    }

    /// The same without what `known` tells: the manifests from the head down to the one that `known` ends with are read,
    /// and no others. `None` where the chain does not hold that manifest, or `known` does not fit to it; then nothing
    /// follows but that the whole chain has to be read.
    pub fn read_onto<E: std::error::Error + 'static>(
        fetch: impl FnMut(&ContentId) -> Result<Vec<u8>, E>,
        head: &ContentId,
        key: &DeviceKey,
        known: &Arc<Known>,
        verified: Option<(u64, ContentId)>,
    ) -> Result<Option<Self>, ReadError<E>> {
        let walked = walk(fetch, head, key, MAX_RETAINED_BYTES, Some(known))?;
        let Some((tip, base)) = walked.base.and_then(|base| Tip::at(base, known)) else {
            return Ok(None);
        };
        let chain = follow(tip, vec![base], walked.above, walked.refs, verified)?;
        Ok(Some(chain))
    }
}

impl Chain {
    /// Verifies one more manifest, of which the key is known, on top of a chain (or as the first).
    pub(crate) fn extend(parent: Option<&Self>, bytes: &[u8], key: &GenerationKey) -> Result<Self, Error> {
        let id = ContentId::of(bytes);
        let opened = Unopened::parse(&id, bytes).and_then(|unopened| unopened.open(key.clone()));
        let mut opened = opened.map_err(open_error(id))?;
        let broken = |generation, rule| Error::rule(id, generation, rule);
        if let (Some(chain), Some((_, linked))) = (parent, &opened.parent)
            && !linked.matches(&chain.head().key().commitment())
        {
            // The next reader would find no way down to the parent.
            return Err(broken(opened.header.generation, Rule::LinkKey));
        }
        let refs = std::mem::take(&mut opened.refs);
        let empty = RefMap::new();
        let ref_changes = refs::changes(parent.map_or(&empty, Self::refs), &refs);
        let root = opened.header.repository_root;
        let mut tip = parent.map(Tip::of).unwrap_or_default();
        let (generation, claim) = tip.follow(keep(opened, ref_changes))?;
        rules::authenticate(&[claim])?;
        let mut generations = parent.map_or_else(Vec::new, |chain| chain.generations.clone());
        generations.push(generation);
        Ok(Self {
            root,
            generations,
            since: parent.and_then(|chain| chain.since.clone()),
            refs,
            pack_ids: tip.into_parts().2,
        })
    }
}

fn open_error(id: ContentId) -> impl Fn(super::super::manifest::Error) -> Error {
    move |source| Error::Manifest {
        id,
        source: Box::new(source),
    }
}

/// What the first pass found.
pub(super) struct Walked {
    /// The manifest that was known already, where the walk came upon it.
    pub base: Option<Opened>,
    /// The manifests above it, or all, oldest first.
    pub above: Vec<Unverified>,
    /// The refs of the head.
    pub refs: RefMap,
}

/// Opens the manifests from the head down. Where something is known, the walk ends at that generation, whatever it meets
/// there.
pub(super) fn walk<E: std::error::Error + 'static>(
    mut fetch: impl FnMut(&ContentId) -> Result<Vec<u8>, E>,
    head: &ContentId,
    key: &DeviceKey,
    limit: usize,
    known: Option<&Known>,
) -> Result<Walked, ReadError<E>> {
    let mut fetch = |id: &ContentId| {
        let bytes = fetch(id).map_err(|source| ReadError::Storage { id: *id, source })?;
        Unopened::parse(id, &bytes).map_err(|source| ReadError::Chain(open_error(*id)(source)))
    };
    let unopened = fetch(head)?;
    let generation_key = unopened.own_key(key).map_err(open_error(*head))?;
    let mut current = unopened.open(generation_key).map_err(open_error(*head))?;
    let head_refs = current.refs.clone();
    let (root, mut retained) = (current.header.repository_root, 0usize);
    let mut newest_first = Vec::new();
    // Generations count down by one to 0, so the walk ends, and no manifest can come twice.
    loop {
        if let Some(known) = known
            && current.header.generation <= known.generation()
        {
            newest_first.reverse();
            return Ok(Walked {
                base: (current.id == *known.head()).then_some(current),
                above: newest_first,
                refs: head_refs,
            });
        }
        let Some((parent_id, parent_key)) = current.parent.take() else {
            break;
        };
        let parent = fetch(&parent_id)?;
        let broken = |rule| Error::rule(parent_id, parent.header.generation, rule);
        if parent.header.repository_root != root {
            let seen = parent.header.repository_root;
            return Err(broken(Rule::Root { seen, expected: root }).into());
        }
        if parent.header.generation.checked_add(1) != Some(current.header.generation) {
            let (seen, expected) = (parent.header.generation, current.header.generation - 1);
            return Err(broken(Rule::Generation { seen, expected }).into());
        }
        let parent = parent.open(parent_key).map_err(open_error(parent_id))?;
        let ref_changes = refs::changes(&parent.refs, &current.refs);
        let child = keep(std::mem::replace(&mut current, parent), ref_changes);
        retained = retained.saturating_add(child.footprint());
        if retained > limit {
            return Err(Error::TooLarge {
                generation: current.header.generation,
                limit,
            }
            .into());
        }
        newest_first.push(child);
    }
    let ref_changes = refs::changes(&RefMap::new(), &current.refs);
    newest_first.push(keep(current, ref_changes));
    newest_first.reverse();
    Ok(Walked {
        base: None,
        above: newest_first,
        refs: head_refs,
    })
}

pub(super) fn keep(mut opened: Opened, ref_changes: Vec<RefChange>) -> Unverified {
    opened.refs = RefMap::new();
    Unverified { opened, ref_changes }
}

impl Unverified {
    /// Roughly the memory it holds.
    fn footprint(&self) -> usize {
        let opened = &self.opened;
        let changes = self.ref_changes.iter().map(|change| {
            let value = |value: &Option<String>| value.as_ref().map_or(0, String::len);
            size_of::<RefChange>() + change.name.len() + value(&change.before) + value(&change.after)
        });
        size_of::<Self>()
            + opened.header.generation_key_envelopes.len() * 160
            + opened.new_packs.len() * 160
            + opened
                .introduced_policy
                .as_ref()
                .map_or(0, |policy| policy.len() * 2)
            + changes.sum::<usize>()
    }
}

/// Second pass: the verified chain out of all its opened manifests, oldest first.
///
/// `verified` is a manifest whose whole chain this client verified before. If this chain holds it, the claims of it and of
/// those below it (signatures, and an envelope sealed again for every reader: by far the most work) are not proved a second
/// time. That is sound:
///
/// - A manifest's name is the SHA-256 of its bytes, which hold its claim in full: envelopes, signature, audit. Each header
///   names the manifest before it, and that name was compared with the hash of what was read in its place. So from one name
///   follow all bytes down to generation 0: the bytes that were verified then are those that were read now.
/// - A claim depends on nothing else: the policies and keys that it is judged by come out of the same bytes.
/// - Whoever could write a false name into the client's state could as well take the state away, or the key.
///
/// All else is checked for every generation, as without a pin. Where the chain does not hold the manifest, everything is
/// proved, and the caller finds the contradiction.
pub(super) fn verify(
    unverified: Vec<Unverified>,
    refs: RefMap,
    verified: Option<(u64, ContentId)>,
) -> Result<Chain, Error> {
    follow(Tip::default(), Vec::new(), unverified, refs, verified)
}

/// The same for manifests that follow a part of the chain that ends in `tip` and of which `generations` are held.
fn follow(
    mut tip: Tip,
    mut generations: Vec<Generation>,
    unverified: Vec<Unverified>,
    refs: RefMap,
    verified: Option<(u64, ContentId)>,
) -> Result<Chain, Error> {
    let is_pinned = |opened: &Opened| verified == Some((opened.header.generation, opened.id));
    let first_unproved = unverified
        .iter()
        .find(|next| is_pinned(&next.opened))
        .map_or(0, |pinned| pinned.opened.header.generation.saturating_add(1));
    let mut claims = Vec::with_capacity(unverified.len());
    generations.reserve(unverified.len());
    for next in unverified {
        let (generation, claim) = tip.follow(next)?;
        if generation.number() >= first_unproved {
            claims.push(claim);
        }
        generations.push(generation);
    }
    // What is left is independent of order, and by far the most work.
    rules::authenticate(&claims)?;
    let (root, since, pack_ids) = tip.into_parts();
    Ok(Chain {
        root: root.expect("a walk gives at least one manifest"),
        generations,
        since,
        refs,
        pack_ids,
    })
}
