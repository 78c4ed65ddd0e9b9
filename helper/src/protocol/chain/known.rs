//! What a client keeps of a chain that it verified, so that it need not read all of it again.
//!
//! # What may be believed of it
//!
//! It is local data, kept beside the pinned head and believed exactly as far: whoever can write one can write the other,
//! or take both away, and then the client begins anew and reads the whole chain. It is used only together with a pin of
//! the same generation or a later one, and only on a chain that holds the kept manifest: the walk from the head goes down
//! to it link by link, and each link is the SHA-256 of all bytes of the manifest below. From the name of one manifest
//! follow all bytes down to generation 0, so what was verified then is what would be read now.
//!
//! Of the kept manifest itself nothing is kept but its name. It is read and opened each time, with the key that the
//! manifest above holds, or the own envelope: references, number of packs and the name of the policy come from there.
//! The policy's text is checked against that name. What remains to be believed are the names of the manifests below, by
//! which older pins are compared, and the names of the packs that they brought, by which a pack that comes a second time
//! is noticed; of the latter, the number is checked.
//!
//! No key is in it, and no reference. Where anything in it does not fit, the whole chain is read in its place, so that it
//! can make a command faster and never decides what a command reports: an older head, another one at the same place, and
//! every wrong transition above the pin meet the same checks as without it. What is noticed later is *loss* below the pin,
//! which harms nobody who has passed it; `verify`, `log`, `audit` and `doctor` read everything.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::super::ids::{ContentId, RepositoryRoot};
use super::super::pack_stream;
use super::Chain;

/// The first bytes of the written form; the last digit is its version.
const MAGIC: &[u8; 8] = b"INGOTCH1";
/// Bytes before the lists: see [`Known::encode`].
const FIXED: usize = 8 + 32 + 5 * 8 + 1 + 1 + 32;
const CHECKSUM: usize = 32;
const NONE: u64 = u64::MAX;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub(super) root: RepositoryRoot,
    /// Element n is generation n; never empty.
    pub(super) manifests: Vec<ContentId>,
    /// All packs, sorted.
    pub(super) packs: Vec<ContentId>,
    /// Their bytes as they are stored.
    pub(super) stored_bytes: u64,
    /// The newest generation that brought a pack.
    pub(super) newest_pack: Option<u64>,
    pub(super) format: Option<gix_hash::Kind>,
    /// The invitation that was verified on the chain.
    proven: Option<ContentId>,
    /// The policy in force, as a manifest introduces it.
    pub(super) policy: Vec<u8>,
}

impl Known {
    /// What is to be kept of `chain`, on which the invitation `proven` was verified.
    pub fn of(chain: &Chain, proven: Option<ContentId>) -> Known {
        let mut known = match &chain.since {
            Some(since) => Known::clone(since),
            None => Known {
                root: chain.root,
                manifests: Vec::new(),
                packs: Vec::new(),
                stored_bytes: 0,
                newest_pack: None,
                format: None,
                proven: None,
                policy: Vec::new(),
            },
        };
        let kept = known.manifests.len() as u64;
        for generation in chain.generations.iter().filter(|one| one.number >= kept) {
            known.manifests.push(generation.id);
            for pack in &generation.new_packs {
                known.packs.push(pack.id);
                let stored = pack_stream::stored_size(pack.plaintext_size);
                known.stored_bytes = known
                    .stored_bytes
                    .saturating_add(stored.unwrap_or(pack.plaintext_size));
                known.newest_pack = Some(generation.number);
            }
        }
        known.packs.sort_unstable();
        known.format = chain.format();
        known.proven = proven;
        known.policy = chain.policy().object().to_vec();
        known
    }

    /// The newest manifest that it is about.
    pub fn head(&self) -> &ContentId {
        self.manifests.last().expect("there is at least generation 0")
    }

    /// Its generation.
    pub fn generation(&self) -> u64 {
        self.manifests.len() as u64 - 1
    }

    /// The invitation that was verified on the chain.
    pub fn proven(&self) -> Option<&ContentId> {
        self.proven.as_ref()
    }

    pub(super) fn has_pack(&self, id: &ContentId) -> bool {
        self.packs.binary_search(id).is_ok()
    }

    /// The written form: magic; root; numbers of manifests and packs, bytes of the policy, stored bytes, newest generation
    /// with a pack (`u64`, little-endian); format (0 none, 1 SHA-1, 2 SHA-256); whether an invitation was verified, and
    /// which; manifests; packs; policy; SHA-256 of all that.
    pub fn encode(&self) -> Vec<u8> {
        let ids = self.manifests.len() + self.packs.len();
        let mut out = Vec::with_capacity(FIXED + ids * 32 + self.policy.len() + CHECKSUM);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(self.root.as_bytes());
        for number in [
            self.manifests.len() as u64,
            self.packs.len() as u64,
            self.policy.len() as u64,
            self.stored_bytes,
            self.newest_pack.unwrap_or(NONE),
        ] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.push(match self.format {
            None => 0,
            Some(gix_hash::Kind::Sha1) => 1,
            Some(_) => 2,
        });
        out.push(u8::from(self.proven.is_some()));
        out.extend_from_slice(&self.proven.map_or([0; 32], |id| *id.as_bytes()));
        for id in self.manifests.iter().chain(&self.packs) {
            out.extend_from_slice(id.as_bytes());
        }
        out.extend_from_slice(&self.policy);
        let checksum = Sha256::digest(&out);
        out.extend_from_slice(&checksum);
        out
    }

    /// Reads the written form; `None` if it is anything else, or damaged.
    pub fn decode(bytes: &[u8]) -> Option<Known> {
        let (content, checksum) = bytes.split_at_checked(bytes.len().checked_sub(CHECKSUM)?)?;
        if Sha256::digest(content).as_slice() != checksum {
            return None;
        }
        let (magic, rest) = content.split_first_chunk::<8>()?;
        if magic != MAGIC {
            return None;
        }
        let (root, rest) = rest.split_first_chunk::<32>()?;
        let (numbers, rest) = rest.split_first_chunk::<40>()?;
        let number = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&numbers[at * 8..][..8]);
            u64::from_le_bytes(bytes)
        };
        let (&[format, is_proven], rest) = rest.split_first_chunk::<2>()?;
        let (proven, lists) = rest.split_first_chunk::<32>()?;
        let (manifests, packs, policy) = (number(0), number(1), number(2));
        let lengths = manifests
            .checked_add(packs)?
            .checked_mul(32)?
            .checked_add(policy)?;
        if manifests == 0 || lengths != lists.len() as u64 {
            return None;
        }
        let (manifests, rest) = lists.split_at(usize::try_from(manifests).ok()? * 32);
        let (packs, policy) = rest.split_at(usize::try_from(packs).ok()? * 32);
        let ids = |bytes: &[u8]| -> Vec<ContentId> {
            let (ids, _) = bytes.as_chunks::<32>();
            ids.iter().map(|id| ContentId::from_bytes(*id)).collect()
        };
        let known = Known {
            root: RepositoryRoot::from_bytes(*root),
            manifests: ids(manifests),
            packs: ids(packs),
            stored_bytes: number(3),
            newest_pack: Some(number(4)).filter(|number| *number != NONE),
            format: match format {
                0 => None,
                1 => Some(gix_hash::Kind::Sha1),
                2 => Some(gix_hash::Kind::Sha256),
                _ => return None,
            },
            proven: (is_proven == 1).then(|| ContentId::from_bytes(*proven)),
            policy: policy.to_vec(),
        };
        known.packs.is_sorted().then_some(known)
    }
}

impl Chain {
    /// Whether every generation is held, from the first on, with what it did to the references.
    pub fn is_whole(&self) -> bool {
        self.since.is_none()
    }

    /// What was known before, of a chain that is not whole.
    pub fn since(&self) -> Option<&Arc<Known>> {
        self.since.as_ref()
    }

    /// The first generation that is held.
    pub fn first_held(&self) -> u64 {
        self.generations.first().map_or(0, |first| first.number)
    }

    /// The manifest of a generation, held or not.
    pub fn manifest_at(&self, number: u64) -> Option<ContentId> {
        if let Some(held) = self.generation(number) {
            return Some(held.id);
        }
        let known = self.since.as_ref()?;
        known.manifests.get(usize::try_from(number).ok()?).copied()
    }

    /// The newest generation that brought a pack.
    pub fn newest_pack(&self) -> Option<u64> {
        let held = self.packs().next_back().map(|pack| pack.generation);
        held.or_else(|| self.since.as_ref()?.newest_pack)
    }

    /// Bytes of all packs as they are stored, as far as their descriptors tell.
    pub fn stored_bytes(&self) -> u64 {
        let (known, from) = match &self.since {
            Some(known) => (known.stored_bytes, known.generation().saturating_add(1)),
            None => (0, 0),
        };
        self.packs()
            .filter(|pack| pack.generation >= from)
            .map(|pack| pack_stream::stored_size(pack.plaintext_size).unwrap_or(pack.plaintext_size))
            .fold(known, u64::saturating_add)
    }

    /// The object format of what is stored: that of the references, or of those that were there last. `None` while there
    /// never were any, or where a value is no object id.
    pub fn format(&self) -> Option<gix_hash::Kind> {
        let changes = || {
            let newest_first = self.generations.iter().rev();
            newest_first.flat_map(|generation| &generation.ref_changes)
        };
        let value =
            self.refs.values().next().map(String::as_str).or_else(|| {
                changes().find_map(|change| change.before.as_deref().or(change.after.as_deref()))
            });
        match value {
            Some(value) => gix_hash::ObjectId::from_hex(value.as_bytes())
                .ok()
                .map(|id| id.kind()),
            None => self.since.as_ref()?.format,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Known {
        let id = |n: u8| ContentId::from_bytes([n; 32]);
        Known {
            root: RepositoryRoot::from_bytes([7; 32]),
            manifests: vec![id(9), id(3), id(5)],
            packs: vec![id(1), id(2)],
            stored_bytes: 1234,
            newest_pack: Some(2),
            format: Some(gix_hash::Kind::Sha256),
            proven: Some(id(4)),
            policy: b"policy".to_vec(),
        }
    }

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let all = known();
        let few = Known {
            packs: Vec::new(),
            newest_pack: None,
            format: None,
            proven: None,
            ..known()
        };
        for known in [all, few] {
            let bytes = known.encode();
            assert_eq!(Known::decode(&bytes).as_ref(), Some(&known));
            for length in 0..bytes.len() {
                assert_eq!(Known::decode(&bytes[..length]), None);
            }
            for at in 0..bytes.len() {
                let mut damaged = bytes.clone();
                damaged[at] ^= 0x10;
                assert_eq!(Known::decode(&damaged), None, "byte {at}");
            }
        }
    }

    /// Sizes that lie are refused before anything is made by them, even under a right checksum.
    #[test]
    fn lying_sizes_are_refused() {
        let good = known().encode();
        let content = good.len() - CHECKSUM;
        for field in 0..3 {
            for lie in [0, 1, 1 << 32, 1 << 59, u64::MAX] {
                let mut bytes = good[..content].to_vec();
                bytes[40 + field * 8..][..8].copy_from_slice(&u64::to_le_bytes(lie));
                let checksum = Sha256::digest(&bytes);
                bytes.extend_from_slice(&checksum);
                assert_eq!(Known::decode(&bytes), None, "field {field}, {lie}");
            }
        }
    }
}
