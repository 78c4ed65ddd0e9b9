//! The set of objects that a walk found.

use gix_hash::{ObjectId, oid};
use gix_object::Kind;

use crate::store::{Position, Store};

const WORD: usize = u64::BITS as usize;
/// How many words of the bitmap share one count.
const STRIDE: usize = 8;

/// How many objects there are of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Commits.
    pub commits: u64,
    /// Trees.
    pub trees: u64,
    /// Blobs.
    pub blobs: u64,
    /// Annotated tags.
    pub tags: u64,
}

impl Counts {
    fn add(&mut self, kind: Kind) {
        match kind {
            Kind::Commit => self.commits += 1,
            Kind::Tree => self.trees += 1,
            Kind::Blob => self.blobs += 1,
            Kind::Tag => self.tags += 1,
        }
    }
}

/// Where the store has an object of the set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<'a> {
    /// In a pack; the canonical position, see [`Store::find`].
    Packed(Position),
    /// In a file of its own.
    Loose(&'a oid),
}

/// An object of the set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object<'a> {
    /// Its number in the set: packed objects by position, then loose ones by id, counted from 0.
    pub number: u32,
    /// Where it is.
    pub place: Place<'a>,
    /// What the references to it say that it is. The walk has read commits, trees and tags; that a blob is one is only
    /// known once somebody reads it.
    pub kind: Kind,
    /// The hash of a path that it was found at; see [`super::name_hash`].
    pub name_hash: u32,
}

/// The set of objects that a walk found. Positions in it belong to the store that was walked.
///
/// Takes 5 bytes for every packed object in it, one bit for every packed object of the store, and some 40 bytes for a
/// loose one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Objects {
    /// One bit for each position of the store.
    words: Vec<u64>,
    /// How many bits are set before each stride of words.
    ranks: Vec<u32>,
    packed: u32,
    /// Sorted.
    loose: Vec<ObjectId>,
    /// By number, as the rest.
    kinds: Vec<Kind>,
    name_hashes: Vec<u32>,
    /// Sorted by number; only where known.
    predecessors: Vec<(u32, ObjectId)>,
    counts: Counts,
    absent_chunks: u64,
}

/// An object on its way into the set.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fact {
    pub(super) kind: Kind,
    pub(super) name_hash: u32,
}

/// Objects that are added to a set.
#[derive(Debug, Default)]
pub(super) struct More {
    pub(super) packed: Vec<(Position, Fact)>,
    pub(super) loose: Vec<(ObjectId, Fact)>,
    /// Objects of these two with earlier versions that the receiver has.
    pub(super) predecessors: Vec<(ObjectId, ObjectId)>,
    /// How many more there should be.
    pub(super) absent: u64,
}

/// Two ascending sequences as one.
fn merged<K: Ord, V>(
    one: impl Iterator<Item = (K, V)>,
    two: impl Iterator<Item = (K, V)>,
) -> impl Iterator<Item = (K, V)> {
    let (mut one, mut two) = (one.peekable(), two.peekable());
    std::iter::from_fn(move || match (one.peek(), two.peek()) {
        (Some((a, _)), Some((b, _))) if b < a => two.next(),
        (Some(_), _) => one.next(),
        (None, _) => two.next(),
    })
}

impl Objects {
    /// Makes the set from packed objects in ascending order of positions and loose objects in ascending order of ids.
    pub(super) fn new(
        store: &Store,
        packed: impl Iterator<Item = (Position, Fact)>,
        loose: impl Iterator<Item = (ObjectId, Fact)>,
    ) -> Objects {
        let mut set = Objects {
            words: vec![0; (store.packed_len() as usize).div_ceil(WORD)],
            ranks: Vec::new(),
            packed: 0,
            loose: Vec::new(),
            kinds: Vec::new(),
            name_hashes: Vec::new(),
            predecessors: Vec::new(),
            counts: Counts::default(),
            absent_chunks: 0,
        };
        for (Position(at), fact) in packed {
            set.words[at as usize / WORD] |= 1 << (at as usize % WORD);
            set.push(fact);
        }
        set.packed = set.kinds.len() as u32;
        let mut before = 0;
        for words in set.words.chunks(STRIDE) {
            set.ranks.push(before);
            before += words.iter().map(|word| word.count_ones()).sum::<u32>();
        }
        for (id, fact) in loose {
            set.loose.push(id);
            set.push(fact);
        }
        debug_assert_eq!(before, set.packed, "positions are unique");
        debug_assert!(set.loose.is_sorted(), "loose ids are sorted");
        set.kinds.shrink_to_fit();
        set.name_hashes.shrink_to_fit();
        set
    }

    fn push(&mut self, fact: Fact) {
        self.kinds.push(fact.kind);
        self.name_hashes.push(fact.name_hash);
        self.counts.add(fact.kind);
    }

    /// Adds what is known of earlier versions.
    pub(super) fn set_predecessors(&mut self, mut predecessors: Vec<(u32, ObjectId)>) {
        predecessors.sort_unstable();
        predecessors.dedup_by_key(|(number, _)| *number);
        self.predecessors = predecessors;
    }

    /// The set with what chunked files lead to, which no tree names: `more` is not in it yet.
    pub(super) fn with_chunks(self, store: &Store, more: More) -> Objects {
        let More {
            mut packed,
            mut loose,
            predecessors,
            absent,
        } = more;
        packed.sort_unstable_by_key(|(at, _)| *at);
        packed.dedup_by_key(|(at, _)| *at);
        loose.sort_unstable_by_key(|(id, _)| *id);
        loose.dedup_by_key(|(id, _)| *id);
        packed.retain(|(at, _)| !self.contains_packed(*at));
        loose.retain(|(id, _)| self.number_of_loose(id).is_none());
        let fact = |number: u32| Fact {
            kind: self.kind(number),
            name_hash: self.name_hash(number),
        };
        let all_packed = merged(
            self.positions()
                .zip(0u32..)
                .map(|(at, number)| (at, fact(number))),
            packed.into_iter(),
        );
        let all_loose = merged(
            self.loose
                .iter()
                .zip(self.packed..)
                .map(|(id, number)| (*id, fact(number))),
            loose.into_iter(),
        );
        let mut set = Objects::new(store, all_packed, all_loose);
        let old = self.predecessors.iter().filter_map(|(number, base)| {
            let number = match *number < self.packed {
                // A set with predecessors is small, so that counting up to each of them is no matter.
                true => set.number_of_packed(self.positions().nth(*number as usize)?)?,
                false => set.number_of_loose(self.loose.get((*number - self.packed) as usize)?)?,
            };
            Some((number, *base))
        });
        let new = predecessors
            .iter()
            .filter_map(|(id, base)| Some((set.number(store, id)?, *base)));
        let all = old.chain(new).collect();
        set.set_predecessors(all);
        set.absent_chunks = absent;
        set
    }

    /// Adds what the caller knows of earlier versions: pairs of an object of the set and one that the receiver has. The
    /// walk's own knowledge comes first.
    pub fn add_predecessors(&mut self, store: &Store, pairs: Vec<(ObjectId, ObjectId)>) {
        let known = pairs.into_iter().filter_map(|(id, earlier)| {
            let number = self.number(store, &id)?;
            (self.predecessor(number).is_none() && store.contains(&earlier)).then_some((number, earlier))
        });
        let mut all: Vec<(u32, ObjectId)> = known.collect();
        all.append(&mut self.predecessors);
        self.set_predecessors(all);
    }

    /// How many lists and chunks of chunked files in the set are not in the store. Their pointers are complete objects
    /// without them, so this is no error of the walk; whoever promises that files are complete has to look here.
    pub fn absent_chunks(&self) -> u64 {
        self.absent_chunks
    }

    /// How many objects there are.
    pub fn len(&self) -> u32 {
        self.kinds.len() as u32
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// How many of them are packed. These have the numbers below this one.
    pub fn packed_len(&self) -> u32 {
        self.packed
    }

    /// How many there are of each kind.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// True if the set has the object at this position, which must be canonical.
    pub fn contains_packed(&self, at: Position) -> bool {
        let at = at.0 as usize;
        self.words
            .get(at / WORD)
            .is_some_and(|word| word >> (at % WORD) & 1 == 1)
    }

    /// True if the set has this object. `store` is the one that was walked.
    pub fn contains(&self, store: &Store, id: &oid) -> bool {
        self.number(store, id).is_some()
    }

    /// The number of an object by its position, which must be canonical.
    pub fn number_of_packed(&self, at: Position) -> Option<u32> {
        if !self.contains_packed(at) {
            return None;
        }
        let at = at.0 as usize;
        let (word, stride) = (at / WORD, at / WORD / STRIDE);
        let whole: u32 = self.words[stride * STRIDE..word]
            .iter()
            .map(|word| word.count_ones())
            .sum();
        let below = self.words[word] & ((1 << (at % WORD)) - 1);
        Some(self.ranks[stride] + whole + below.count_ones())
    }

    /// The number of an object that the set has as a loose one.
    pub fn number_of_loose(&self, id: &oid) -> Option<u32> {
        let place = self.loose.binary_search_by(|other| other.as_ref().cmp(id)).ok()?;
        Some(self.packed + place as u32)
    }

    /// The number of an object in the set. `store` is the one that was walked.
    pub fn number(&self, store: &Store, id: &oid) -> Option<u32> {
        match store.find(id) {
            Some(at) => self.number_of_packed(at),
            None => self.number_of_loose(id),
        }
    }

    /// All packed objects in ascending order of positions, then all loose ones in ascending order of ids.
    pub fn iter(&self) -> impl Iterator<Item = Object<'_>> {
        let packed = self.positions().map(Place::Packed);
        let loose = self.loose.iter().map(|id| Place::Loose(id));
        packed
            .chain(loose)
            .zip(0..)
            .map(|(place, number)| self.object(number, place))
    }

    fn object<'a>(&self, number: u32, place: Place<'a>) -> Object<'a> {
        Object {
            number,
            place,
            kind: self.kinds[number as usize],
            name_hash: self.name_hashes[number as usize],
        }
    }

    /// The ids of all objects, in the order of [`Objects::iter`]. `store` is the one that was walked.
    pub fn ids<'a>(&'a self, store: &'a Store) -> impl Iterator<Item = &'a oid> {
        self.iter().map(|object| match object.place {
            Place::Packed(at) => store.id(at),
            Place::Loose(id) => id,
        })
    }

    /// The positions of the packed objects, ascending.
    pub fn positions(&self) -> impl Iterator<Item = Position> + '_ {
        self.words.iter().enumerate().flat_map(|(index, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                let bit = rest.trailing_zeros();
                rest &= rest.checked_sub(1)?;
                Some(Position((index * WORD) as u32 + bit))
            })
        })
    }

    /// The ids of the loose objects, ascending. The first has the number [`Objects::packed_len`].
    pub fn loose(&self) -> &[ObjectId] {
        &self.loose
    }

    /// The kind of an object by its number; see [`Object::kind`].
    pub fn kind(&self, number: u32) -> Kind {
        self.kinds[number as usize]
    }

    /// The hash of a path that an object was found at, by its number.
    pub fn name_hash(&self, number: u32) -> u32 {
        self.name_hashes[number as usize]
    }

    /// True if [`Objects::predecessor`] knows any.
    pub fn knows_predecessors(&self) -> bool {
        !self.predecessors.is_empty()
    }

    /// The version before this one at the same path, by its number: an object of the same kind that is in the set too or
    /// that the receiver has. Only walks that look for what is new beyond something know it, and not for every object.
    pub fn predecessor(&self, number: u32) -> Option<&oid> {
        let place = self
            .predecessors
            .binary_search_by_key(&number, |(number, _)| *number)
            .ok()?;
        Some(&self.predecessors[place].1)
    }
}
