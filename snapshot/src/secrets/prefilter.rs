//! Finds every place where a literal of some rule may stand, in one pass.
//!
//! Each literal is represented by its rarest four bytes. All of them are entered, folded to lower case, into a bit
//! table of 8 KiB, and every position of the text asks the table once: one multiplication and one load, without a
//! dependency from one position to the next, so that a processor works on several positions at a time. An automaton
//! (Aho-Corasick) has such a dependency at every byte and is about three times slower here; vectorised searchers take
//! 64 patterns at most and know no case folding.

/// One bit for each hash of four bytes.
const BITS: usize = 1 << 16;
/// Sets the bit that tells capitals from small letters, in every byte of a word.
const FOLD: u64 = 0x2020_2020_2020_2020;
/// What may follow a literal of three bytes. Upper case is folded.
const FOLLOWERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789_-.:%~+/$";
/// Bytes of text and configuration, the frequent ones first. What is missing is rarer than all of them.
const FREQUENT: &[u8] = b" etaoinsrlhdcumpfgby-_\"./=,:'0kv1w2x()3458679;jq>z<";

/// One representative of a literal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Gram {
    /// The four folded bytes, little-endian.
    key: u32,
    /// Which literal.
    pub literal: u16,
    /// Where in the literal the four bytes are.
    pub offset: u16,
}

/// The table over all literals.
pub(super) struct Prefilter {
    bits: Box<[u64; BITS / 64]>,
    /// Sorted by key.
    grams: Vec<Gram>,
}

impl Prefilter {
    /// Makes the table. Literals shorter than three bytes cannot be found and are left out.
    pub fn new<'a>(literals: impl Iterator<Item = &'a [u8]>) -> Prefilter {
        let mut grams = Vec::new();
        for (literal, text) in (0u16..).zip(literals) {
            let folded: Vec<u8> = text.iter().map(|byte| byte | 0x20).collect();
            if let &[a, b, c] = folded.as_slice() {
                grams.extend(FOLLOWERS.iter().map(|&next| Gram {
                    key: u32::from_le_bytes([a, b, c, next | 0x20]),
                    literal,
                    offset: 0,
                }));
            } else if let Some((offset, four)) = rarest(&folded) {
                grams.push(Gram {
                    key: u32::from_le_bytes(four),
                    literal,
                    offset,
                });
            }
        }
        grams.sort_unstable();
        grams.dedup();
        let mut bits = Box::new([0; BITS / 64]);
        for gram in &grams {
            let (word, bit) = place(gram.key);
            bits[word] |= 1 << bit;
        }
        Prefilter { bits, grams }
    }

    /// The first position in `from..end` whose four bytes may belong to a literal.
    pub fn next(&self, text: &[u8], from: usize, end: usize) -> Option<usize> {
        let end = end.min(text.len().saturating_sub(3));
        let mut at = from;
        // Eight positions at a time; the last of them needs bytes 7 to 10.
        while at + 8 <= end
            && let Some(bytes) = text[at..].first_chunk::<12>()
        {
            let low = u64::from_le_bytes([
                bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7],
            ]) | FOLD;
            let high = u64::from_le_bytes([
                bytes[4], bytes[5], bytes[6], bytes[7], bytes[8], bytes[9], bytes[10], bytes[11],
            ]) | FOLD;
            let hits = self.ask(low as u32)
                | self.ask((low >> 8) as u32) << 1
                | self.ask((low >> 16) as u32) << 2
                | self.ask((low >> 24) as u32) << 3
                | self.ask(high as u32) << 4
                | self.ask((high >> 8) as u32) << 5
                | self.ask((high >> 16) as u32) << 6
                | self.ask((high >> 24) as u32) << 7;
            if hits != 0 {
                return Some(at + hits.trailing_zeros() as usize);
            }
            at += 8;
        }
        while at < end {
            if self.ask(key(text, at)?) != 0 {
                return Some(at);
            }
            at += 1;
        }
        None
    }

    /// The literals whose representative stands at `at`.
    pub fn grams(&self, text: &[u8], at: usize) -> &[Gram] {
        let Some(key) = key(text, at) else { return &[] };
        let from = self.grams.partition_point(|gram| gram.key < key);
        let count = self.grams[from..]
            .iter()
            .take_while(|gram| gram.key == key)
            .count();
        &self.grams[from..from + count]
    }

    #[inline]
    fn ask(&self, key: u32) -> u32 {
        let (word, bit) = place(key);
        (self.bits[word] >> bit) as u32 & 1
    }
}

#[inline]
fn place(key: u32) -> (usize, u32) {
    let hash = (key.wrapping_mul(0x9e37_79b1) >> 16) as u16;
    (usize::from(hash >> 6), u32::from(hash & 63))
}

fn key(text: &[u8], at: usize) -> Option<u32> {
    let four = text.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*four) | FOLD as u32)
}

/// The four bytes of a literal that are least frequent in text, and where they are.
fn rarest(folded: &[u8]) -> Option<(u16, [u8; 4])> {
    let commonness = |byte: &u8| {
        let rank = FREQUENT.iter().position(|frequent| frequent | 0x20 == *byte);
        FREQUENT.len() - rank.unwrap_or(FREQUENT.len())
    };
    folded
        .windows(4)
        .zip(0u16..)
        .min_by_key(|(window, _)| window.iter().map(commonness).sum::<usize>())
        .and_then(|(window, offset)| Some((offset, *window.first_chunk::<4>()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(literals: &[&str], text: &str) -> Vec<(usize, u16)> {
        let filter = Prefilter::new(literals.iter().map(|literal| literal.as_bytes()));
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(hit) = filter.next(text.as_bytes(), at, text.len()) {
            for gram in filter.grams(text.as_bytes(), hit) {
                found.push((hit - usize::from(gram.offset), gram.literal));
            }
            at = hit + 1;
        }
        found
    }

    #[test]
    fn every_literal_is_found_at_every_alignment_and_in_any_case() {
        for pad in 0..24 {
            let text = format!("{}PassWord{}", "-".repeat(pad), " ".repeat(24 - pad));
            assert_eq!(found(&["password", "token"], &text), [(pad, 0)], "{text}");
        }
    }

    #[test]
    fn three_bytes_need_a_follower() {
        assert_eq!(found(&["://"], "http://user"), [(4, 0)]);
        assert_eq!(found(&["://"], "http:// user"), []);
        assert_eq!(found(&["://"], "http://"), []);
    }

    #[test]
    fn the_end_is_respected() {
        let filter = Prefilter::new([b"abcd".as_slice()].into_iter());
        assert_eq!(filter.next(b"...abcd", 0, 3), None);
        assert_eq!(filter.next(b"...abcd", 0, 4), Some(3));
        assert_eq!(filter.next(b"...abc", 0, 6), None);
        assert_eq!(filter.next(b"", 0, 0), None);
    }

    #[test]
    fn the_rarest_part_stands_for_a_literal() {
        assert_eq!(rarest(b"eeeexyzq"), Some((4, *b"xyzq")));
        assert_eq!(rarest(b"abc"), None);
    }
}
