//! A set of numbers below a bound, one bit each.

/// A set of numbers from 0 to a bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bits {
    words: Vec<u64>,
    bound: u32,
}

impl Bits {
    /// The empty set of numbers below `bound`; takes an eighth of a byte for each.
    pub fn new(bound: u32) -> Bits {
        Bits {
            words: vec![0; bound.div_ceil(64) as usize],
            bound,
        }
    }

    /// What all members are below.
    pub fn bound(&self) -> u32 {
        self.bound
    }

    /// True if `bit` is a member. False for numbers beyond the bound.
    pub fn contains(&self, bit: u32) -> bool {
        self.words
            .get(bit as usize / 64)
            .is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }

    /// Makes `bit` a member and returns whether it was none before. Panics beyond the bound.
    pub fn insert(&mut self, bit: u32) -> bool {
        assert!(
            bit < self.bound,
            "{bit} is beyond the set's bound of {}",
            self.bound
        );
        let (word, mask) = (&mut self.words[bit as usize / 64], 1 << (bit % 64));
        let fresh = *word & mask == 0;
        *word |= mask;
        fresh
    }

    /// The number of members.
    pub fn count(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Adds the members of `other`, which has the same bound.
    pub fn union(&mut self, other: &Bits) {
        self.with(other, |word, other| word | other);
    }

    /// Removes the members of `other`, which has the same bound.
    pub fn subtract(&mut self, other: &Bits) {
        self.with(other, |word, other| word & !other);
    }

    /// Keeps only the members of `other`, which has the same bound.
    pub fn intersect(&mut self, other: &Bits) {
        self.with(other, |word, other| word & other);
    }

    fn with(&mut self, other: &Bits, combine: impl Fn(u64, u64) -> u64) {
        assert_eq!(self.bound, other.bound, "sets of different things");
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word = combine(*word, *other);
        }
    }

    /// The members in rising order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().enumerate().flat_map(|(index, &word)| {
            let mut word = word;
            std::iter::from_fn(move || {
                if word == 0 {
                    return None;
                }
                let bit = word.trailing_zeros();
                word &= word - 1;
                Some(index as u32 * 64 + bit)
            })
        })
    }

    /// The members as words, the lowest bit of the first being number 0. Bits at and beyond the bound are 0.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The words, for decoders that check the bound themselves.
    pub(super) fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(members: &[u32]) -> Bits {
        let mut bits = Bits::new(200);
        for &member in members {
            assert!(bits.insert(member));
        }
        bits
    }

    #[test]
    fn members_come_back_in_order() {
        let mut bits = set(&[199, 0, 63, 64, 130]);
        assert!(!bits.insert(64));
        assert_eq!(bits.iter().collect::<Vec<_>>(), [0, 63, 64, 130, 199]);
        assert_eq!(bits.count(), 5);
        assert!(bits.contains(63) && !bits.contains(62) && !bits.contains(100_000));
    }

    #[test]
    fn set_operations() {
        let (a, b) = (set(&[1, 70, 150]), set(&[70, 151]));
        let with = |operation: fn(&mut Bits, &Bits)| {
            let mut result = a.clone();
            operation(&mut result, &b);
            result
        };
        assert_eq!(with(Bits::union), set(&[1, 70, 150, 151]));
        assert_eq!(with(Bits::subtract), set(&[1, 150]));
        assert_eq!(with(Bits::intersect), set(&[70]));
    }
}
