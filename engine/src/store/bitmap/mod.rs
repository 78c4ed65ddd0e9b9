//! Reachability bitmaps: which objects a commit reaches, computed when the pack was written.
//!
//! A `.bitmap` file numbers the objects of one pack, or of all packs of a multi-pack-index, and has for some commits
//! the set of everything they reach. That set is complete: Git writes bitmaps only where nothing outside is reached.
//! Like every such file it is an optimisation: a damaged one is passed over.

mod bits;
mod ewah;
mod multi;

use std::path::{Path, PathBuf};

use gix_hash::oid;
use gix_object::Kind;

pub use bits::Bits;
use ewah::{Combine, Ewah};
use multi::MultiPack;

use super::{Position, Store};
use crate::mapped::Mapped;
use crate::notice;
use crate::pack::write::digest::ends_with_checksum;

const MAGIC: &[u8] = b"BITM";
/// Everything reachable is inside. Git has no bitmaps without.
const FULL: u16 = 0x1;
/// Hashes of the names that objects had in trees.
const NAME_HASHES: u16 = 0x4;
/// A table of where each commit's set is, which reading all of them once makes unnecessary.
const LOOKUP_TABLE: u16 = 0x10;
/// Sets of many commits at once, which are not used here.
const PSEUDO_MERGES: u16 = 0x20;

/// What was opened, or a word about why it cannot be used.
fn used(bitmap: Result<Bitmap, Damaged>, path: &Path) -> Option<Bitmap> {
    bitmap.inspect_err(|error| passed_over(path, error)).ok()
}

/// Says that a bitmap is not used.
pub(crate) fn passed_over(path: &Path, error: &Damaged) {
    notice::passed_over(path, &format!("{}: {error}", path.display()));
}

/// The file cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the bitmap is damaged: {0}")]
pub struct Damaged(&'static str);

impl Damaged {
    /// A bit stands for nothing.
    pub(crate) fn order() -> Damaged {
        Damaged("it has a bit for an object that is not there")
    }
}

/// An open bitmap file. Objects have bit numbers here, which [`Bitmap::position`] and [`Bitmap::bit`] translate.
#[derive(Debug)]
pub struct Bitmap {
    map: Mapped,
    format: gix_hash::Kind,
    order: Order,
    count: u32,
    /// Where the sets of commits, trees, blobs and tags start.
    kinds: [usize; 4],
    /// By the number of the commit in the index.
    commits: Vec<Selected>,
    /// The place in `commits` of each set in the order of the file, which is what the differences refer to.
    by_file: Vec<u32>,
    name_hashes: Option<usize>,
}

/// Which objects the bits stand for.
#[derive(Debug)]
enum Order {
    /// Those of a pack in the order of the file. Holds the pack's number in the store.
    Pack(usize),
    /// Those of a multi-pack-index.
    Multi(MultiPack),
}

/// A commit that has a set.
#[derive(Debug, Clone, Copy)]
struct Selected {
    /// Its number in the order of ids.
    commit: u32,
    /// Where its compressed set starts.
    set: usize,
    /// Its place in the order of the file.
    place: u32,
    /// How many places before it the set lies from which this one is the difference; 0 if it stands alone.
    back: u8,
}

impl Store {
    /// The bitmap of the multi-pack-index if there is one, else of the first pack that has one. `None` as well where
    /// such a file cannot be used.
    pub fn bitmap(&self) -> Option<Bitmap> {
        let multi = self.object_dirs().find_map(|folder| {
            let multi = MultiPack::open(folder, self.format())?;
            let path = multi.bitmap_path().to_owned();
            let map = Mapped::open(&path).ok()?;
            used(Bitmap::parse(map, self, Order::Multi(multi)), &path)
        });
        multi.or_else(|| {
            self.packs().iter().enumerate().find_map(|(number, pack)| {
                used(self.pack_bitmap(number)?, &pack.path().with_extension("bitmap"))
            })
        })
    }

    /// The bitmap of one pack. `None` if it has none.
    pub fn pack_bitmap(&self, number: usize) -> Option<Result<Bitmap, Damaged>> {
        let pack = &self.packs()[number];
        let map = Mapped::open(&pack.path().with_extension("bitmap")).ok()?;
        Some(Bitmap::parse(map, self, Order::Pack(number)))
    }
}

impl Bitmap {
    fn parse(map: Mapped, store: &Store, order: Order) -> Result<Bitmap, Damaged> {
        let cut = Damaged("it is cut off");
        let id_length = store.format().len_in_bytes();
        let (count, belongs_to) = match &order {
            Order::Pack(number) => (store.packs()[*number].len(), store.packs()[*number].checksum()),
            Order::Multi(multi) => (multi.len(), multi.checksum()),
        };
        let header = 12 + id_length;
        let mut end = map.len().checked_sub(id_length).ok_or(cut)?;
        if end < header {
            return Err(cut);
        }
        if !map.starts_with(MAGIC) || map[4..6] != 1u16.to_be_bytes() {
            return Err(Damaged("its version is unknown"));
        }
        let flags = u16::from_be_bytes([map[6], map[7]]);
        if flags & FULL == 0 || flags & !(FULL | NAME_HASHES | LOOKUP_TABLE | PSEUDO_MERGES) != 0 {
            return Err(Damaged("it has features that are unknown"));
        }
        if &map[12..header] != belongs_to.as_bytes() {
            return Err(Damaged("it belongs to another pack"));
        }
        let mut name_hashes = None;
        if flags & NAME_HASHES != 0 {
            end = (count as usize)
                .checked_mul(4)
                .and_then(|size| end.checked_sub(size))
                .filter(|&end| end >= header)
                .ok_or(cut)?;
            name_hashes = Some(end);
        }
        // The tables that may follow the sets are not read, so sets that run into them would go unnoticed only if they
        // parse as sets; the checks of each set hold all the same.
        let sets = &map[..end];
        let offset = |rest: &[u8]| sets.len() - rest.len();
        let mut rest = &sets[header..];
        let mut kinds = [0; 4];
        for kind in &mut kinds {
            *kind = offset(rest);
            rest = Ewah::parse(rest)?.1;
        }
        let entries = u32::from_be_bytes([map[8], map[9], map[10], map[11]]);
        // A set takes at least 18 bytes with its header.
        if u64::from(entries) * 18 > rest.len() as u64 {
            return Err(cut);
        }
        let mut commits = Vec::with_capacity(entries as usize);
        for place in 0..entries {
            let (head, set) = rest.split_at_checked(6).ok_or(cut)?;
            let commit = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
            let back = head[4];
            if commit >= count {
                return Err(Damaged("it has a set for a commit that is not there"));
            }
            if u32::from(back) > place {
                return Err(Damaged("a set refers to one before the first"));
            }
            commits.push(Selected {
                commit,
                set: offset(set),
                place,
                back,
            });
            rest = Ewah::parse(set)?.1;
        }
        commits.sort_unstable_by_key(|selected| selected.commit);
        let mut by_file = vec![0; commits.len()];
        for (index, selected) in commits.iter().enumerate() {
            by_file[selected.place as usize] = index as u32;
        }
        Ok(Bitmap {
            order,
            count,
            kinds,
            commits,
            by_file,
            name_hashes,
            format: store.format(),
            map,
        })
    }

    /// Compares the content of the file with the checksum at its end. Reads all of it; worthwhile before a decision that
    /// a flipped bit would spoil, because sets are checked for their form only.
    pub fn verify(&self) -> Result<(), Damaged> {
        match ends_with_checksum(&self.map, self.format) {
            true => Ok(()),
            false => Err(Damaged("its content does not fit its checksum")),
        }
    }

    /// The file, for messages.
    pub fn path(&self, store: &Store) -> PathBuf {
        match &self.order {
            Order::Pack(number) => store.packs()[*number].path().with_extension("bitmap"),
            Order::Multi(multi) => multi.bitmap_path().to_owned(),
        }
    }

    /// The number of objects, which is the bound of all sets.
    pub fn len(&self) -> u32 {
        self.count
    }

    /// True if there are no objects.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The commits that have a set, by their canonical positions.
    pub fn commits<'a>(&'a self, store: &'a Store) -> impl Iterator<Item = Position> + 'a {
        self.commits.iter().filter_map(|selected| {
            let id = match &self.order {
                Order::Pack(number) => store.packs()[*number].id(selected.commit),
                Order::Multi(multi) => multi.id(selected.commit)?,
            };
            store.find(id)
        })
    }

    /// Everything that a commit reaches, itself included, as bits. `None` if the file has no set for it.
    pub fn reachable(&self, store: &Store, commit: &oid) -> Option<Result<Bits, Damaged>> {
        let index = self.find_index(store, commit)?;
        let selected = self
            .commits
            .binary_search_by_key(&index, |selected| selected.commit)
            .ok()?;
        Some(self.expand(self.commits[selected]))
    }

    /// Differences of differences come out right in any order.
    fn expand(&self, mut selected: Selected) -> Result<Bits, Damaged> {
        let mut bits = Bits::new(self.count);
        loop {
            let (set, _) = Ewah::parse(&self.map[selected.set..])?;
            set.combine(Combine::Xor, self.count, bits.words_mut())?;
            if selected.back == 0 {
                return Ok(bits);
            }
            // `back` was compared with the place when the file was opened, so the walk goes down and ends.
            let base = selected.place as usize - usize::from(selected.back);
            selected = self.commits[self.by_file[base] as usize];
        }
    }

    /// All objects of a kind, as bits.
    pub fn kind(&self, kind: Kind) -> Result<Bits, Damaged> {
        let start = match kind {
            Kind::Commit => self.kinds[0],
            Kind::Tree => self.kinds[1],
            Kind::Blob => self.kinds[2],
            Kind::Tag => self.kinds[3],
        };
        let mut bits = Bits::new(self.count);
        let (set, _) = Ewah::parse(&self.map[start..])?;
        set.combine(Combine::Or, self.count, bits.words_mut())?;
        Ok(bits)
    }

    /// The canonical position of the object that a bit stands for. `None` for bits beyond [`Bitmap::len`], and where
    /// the multi-pack-index does not fit the packs.
    pub fn position(&self, store: &Store, bit: u32) -> Option<Position> {
        match &self.order {
            Order::Pack(number) => {
                let local = *store.packs()[*number].by_offset().get(bit as usize)?;
                Some(store.canonical(store.position(*number, local)))
            }
            Order::Multi(multi) => store.find(multi.id(multi.index_of(bit)?)?),
        }
    }

    /// The bit of an object; `None` if the bitmap does not cover it.
    pub fn bit(&self, store: &Store, id: &oid) -> Option<u32> {
        match &self.order {
            Order::Pack(number) => {
                let pack = &store.packs()[*number];
                pack.rank(pack.offset(pack.find(id)?))
            }
            Order::Multi(multi) => multi.bit_of(multi.find(id)?),
        }
    }

    /// The pack that the bits stand for, as its place in [`Store::packs`]; `None` if they stand for several packs.
    pub fn pack(&self) -> Option<usize> {
        match self.order {
            Order::Pack(number) => Some(number),
            Order::Multi(_) => None,
        }
    }

    /// Git's hash of a name that the object had, for the order of a delta search; `None` if the file has none.
    pub fn name_hash(&self, store: &Store, id: &oid) -> Option<u32> {
        let at = self.name_hashes? + 4 * self.find_index(store, id)? as usize;
        Some(u32::from_be_bytes(*self.map.get(at..)?.first_chunk()?))
    }

    /// [`Bitmap::name_hash`] of the object that a bit stands for.
    pub fn name_hash_at(&self, store: &Store, bit: u32) -> Option<u32> {
        let index = match &self.order {
            Order::Pack(number) => *store.packs()[*number].by_offset().get(bit as usize)?,
            Order::Multi(multi) => multi.index_of(bit)?,
        };
        let at = self.name_hashes? + 4 * index as usize;
        Some(u32::from_be_bytes(*self.map.get(at..)?.first_chunk()?))
    }

    /// The number of an object in the order of ids.
    fn find_index(&self, store: &Store, id: &oid) -> Option<u32> {
        match &self.order {
            Order::Pack(number) => store.packs()[*number].find(id),
            Order::Multi(multi) => multi.find(id),
        }
    }
}
