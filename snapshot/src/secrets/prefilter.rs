//! Finds every place where a literal of some rule may stand, in one pass.
//!
//! Each literal is represented by three bytes of it at an even and three at an odd place, the rarest there are, so that
//! it is enough to look at every second position of the file. The triples are entered into a table of 64 KiB, folded
//! to lower case; a position costs one multiplication and one load, and does not depend on the position before, so a
//! processor works on several at a time. An automaton (Aho-Corasick) has such a dependency at every byte; vectorised
//! searchers take 64 patterns at most and know no case folding.

/// Slots of the table: as many as a hash of 16 bits tells apart.
const SLOTS: usize = 1 << 16;
/// Sets the bit that tells capitals from small letters.
const FOLD: u32 = 0x2020_2020;
/// What may follow a literal of three bytes. Upper case is folded.
const FOLLOWERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789_-.:%~+/$=@";
/// Bytes of text and configuration, the frequent ones first. What is missing is rarer than all of them.
const FREQUENT: &[u8] = b" etaoinsrlhdcumpfgby-_\"./=,:'0kv1w2x()3458679;jq>z<";
/// Triples that are more frequent in prose, code and configuration than their bytes alone would tell, the frequent ones
/// first. Only those that stand in some literal matter. A slip here costs time, never a finding.
const FREQUENT_TRIPLES: &str = concat!(
    "---theioningtioterentandatecomin resatiallodestrbleassverpropreessablistcti pacodtesith",
    "linherestonegittraarelascaldatptiretinesteendortpatillackcesivetatsecaseignndeagenonans",
    "cortabataeraattencmankeyimpathnodecoredworssethominensailoveountreappfigmailic.colloeat",
    "ffeharttpntihttlowaccodudiscuror_desordpenitysigellccenewatcken://credecuffidenerprioke",
    "opewiluctchintreseichon_nsiiceliaialer_nintok_segenrelauts: earuntsenshaet_achhinantot_",
    "nfooffregorieshgin_patrytai_prgeretale_denclos_sst_astorgedemaptpsficloaps:egicens:/ve_",
    "limflate_wasilineslaronapplropppomakcouepapaslagnseditralrapapies:aleooktittia_lip:/_to",
    "tp:ws_gismacnt_urlrivtacglo.pa\"reom/lieutherolsohorng_ifyryplactifffiyptcry-lillsin_thu",
    "scase_scocimnvawra",
);

/// Three bytes that stand for a literal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Gram {
    /// Their hash, then themselves, folded: the order in which they are kept.
    hash: u32,
    key: u32,
    /// Which literal.
    pub literal: u16,
    /// Where in the literal they are.
    pub offset: u16,
}

/// The table over all literals.
pub(super) struct Prefilter {
    /// For each slot a set of eight checks, empty for most.
    slots: Box<[u8; SLOTS]>,
    /// Sorted.
    grams: Vec<Gram>,
}

impl Prefilter {
    /// Makes the table. Literals shorter than three bytes cannot be found and are left out.
    pub fn new<'a>(literals: impl Iterator<Item = &'a [u8]>) -> Prefilter {
        let common = Commonness::new();
        let mut grams = Vec::new();
        for (literal, text) in (0u16..).zip(literals) {
            let folded: Vec<u8> = text.iter().map(|byte| byte | 0x20).collect();
            for odd in [false, true] {
                match (rarest(&common, &folded, odd), folded.as_slice()) {
                    (Some((offset, three)), _) => grams.push(gram(three, literal, offset)),
                    // Nothing is at an odd place of three bytes but the last two and what follows.
                    (None, &[_, b, c]) => {
                        grams.extend(FOLLOWERS.iter().map(|next| gram([b, c, next | 0x20], literal, 1)))
                    }
                    (None, _) => {}
                }
            }
        }
        grams.sort_unstable();
        grams.dedup();
        let mut slots: Box<[u8; SLOTS]> = Box::new([0; SLOTS]);
        for gram in &grams {
            let (slot, check) = place(gram.hash);
            slots[usize::from(slot)] |= check;
        }
        Prefilter { slots, grams }
    }

    /// The first even position in `from..end` whose three bytes may belong to a literal. `from` is even.
    pub fn next(&self, text: &[u8], from: usize, end: usize) -> Option<usize> {
        let end = end.min(text.len().saturating_sub(2));
        let mut at = from;
        // Eight positions at a time, out of three words that are loaded whole; the last position needs bytes 14 to 16.
        while at + 16 <= end
            && let Some(bytes) = text[at..].first_chunk::<20>()
        {
            let (first, second, third) = (word(bytes, 0), word(bytes, 6), word(bytes, 12));
            let any = self.slot(first)
                | self.slot(first >> 16)
                | self.slot(first >> 32)
                | self.slot(second)
                | self.slot(second >> 16)
                | self.slot(second >> 32)
                | self.slot(third)
                | self.slot(third >> 16);
            if any != 0
                && let Some(place) = self.which([first, second, third])
            {
                return Some(at + place);
            }
            at += 16;
        }
        (at..end)
            .step_by(2)
            .find(|&at| key(text, at).is_some_and(|key| self.fits(key)))
    }

    /// The first of eight positions that passes its check, too; most do not.
    #[inline(never)]
    fn which(&self, [first, second, third]: [u64; 3]) -> Option<usize> {
        let keys = [
            first,
            first >> 16,
            first >> 32,
            second,
            second >> 16,
            second >> 32,
            third,
            third >> 16,
        ];
        keys.iter()
            .position(|key| self.fits(*key as u32))
            .map(|position| 2 * position)
    }

    #[inline]
    fn slot(&self, key: u64) -> u8 {
        self.slots[usize::from(place(hash(key as u32)).0)]
    }

    #[inline]
    fn fits(&self, key: u32) -> bool {
        let (slot, check) = place(hash(key));
        self.slots[usize::from(slot)] & check != 0
    }

    /// The literals that are represented by the three bytes at `at`.
    pub fn grams(&self, text: &[u8], at: usize) -> &[Gram] {
        let Some(key) = key(text, at) else { return &[] };
        let wanted = (hash(key), key);
        let from = self.grams.partition_point(|gram| (gram.hash, gram.key) < wanted);
        let count = self.grams[from..]
            .iter()
            .take_while(|gram| gram.key == key)
            .count();
        &self.grams[from..from + count]
    }
}

fn gram([a, b, c]: [u8; 3], literal: u16, offset: u16) -> Gram {
    let key = u32::from_le_bytes([a, b, c, 0]);
    Gram {
        hash: hash(key),
        key,
        literal,
        offset,
    }
}

/// A hash of the three low bytes: the factor has no low byte, so the fourth is multiplied out of the word. Of some
/// thousand factors this one lets the frequent triples of prose, code and configuration share the fewest slots with
/// those of literals.
#[inline]
fn hash(word: u32) -> u32 {
    word.wrapping_mul(0x2d3f_1100)
}

/// The slot of a hash, and the bit that is set in it.
#[inline]
fn place(hash: u32) -> (u16, u8) {
    ((hash >> 16) as u16, 1 << (hash >> 13 & 7))
}

/// Eight folded bytes of a block, little-endian.
#[inline]
fn word(block: &[u8; 20], at: usize) -> u64 {
    let bytes = block[at..].first_chunk::<8>();
    u64::from_le_bytes(*bytes.unwrap_or(&[0; 8])) | u64::from(FOLD) << 32 | u64::from(FOLD)
}

fn key(text: &[u8], at: usize) -> Option<u32> {
    let &[a, b, c] = text.get(at..)?.first_chunk::<3>()?;
    Some(u32::from_le_bytes([a, b, c, 0]) | FOLD & 0xff_ffff)
}

/// How common pieces of text are.
struct Commonness {
    /// By byte.
    bytes: [usize; 256],
    /// By the keys of the frequent triples, sorted.
    triples: Vec<(u32, usize)>,
}

impl Commonness {
    fn new() -> Commonness {
        let mut bytes = [0; 256];
        for (rank, byte) in FREQUENT.iter().enumerate() {
            let entry = &mut bytes[usize::from(byte | 0x20)];
            *entry = (FREQUENT.len() - rank).max(*entry);
        }
        let triples = FREQUENT_TRIPLES.as_bytes().chunks_exact(3);
        let count = triples.len();
        let mut triples: Vec<(u32, usize)> = triples
            .enumerate()
            // More than any sum of three bytes.
            .filter_map(|(rank, triple)| Some((key(triple, 0)?, 1000 + count - rank)))
            .collect();
        triples.sort_unstable();
        Commonness { bytes, triples }
    }

    fn of(&self, triple: &[u8]) -> usize {
        let known =
            key(triple, 0).and_then(|key| self.triples.binary_search_by_key(&key, |(known, _)| *known).ok());
        match known {
            Some(place) => self.triples[place].1,
            None => triple.iter().map(|byte| self.bytes[usize::from(*byte)]).sum(),
        }
    }
}

/// The three bytes at an odd or even place of a literal that are least frequent in text, and where they are.
fn rarest(common: &Commonness, folded: &[u8], odd: bool) -> Option<(u16, [u8; 3])> {
    folded
        .windows(3)
        .zip(0u16..)
        .filter(|(_, offset)| (offset % 2 == 1) == odd)
        .min_by_key(|(window, _)| common.of(window))
        .and_then(|(window, offset)| Some((offset, *window.first_chunk::<3>()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(literals: &[&str], text: &str) -> Vec<(usize, u16)> {
        let filter = Prefilter::new(literals.iter().map(|literal| literal.as_bytes()));
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(hit) = filter.next(text.as_bytes(), at, text.len()) {
            assert_eq!(hit % 2, 0);
            for gram in filter.grams(text.as_bytes(), hit) {
                found.push((hit - usize::from(gram.offset), gram.literal));
            }
            at = hit + 2;
        }
        found
    }

    #[test]
    fn every_literal_is_found_once_at_every_alignment_and_in_any_case() {
        for pad in 0..40 {
            let text = format!("{}PassWord{}", "-".repeat(pad), " ".repeat(40 - pad));
            assert_eq!(found(&["password", "token"], &text), [(pad, 0)], "{text}");
            let text = format!("{}gHp_", "-".repeat(pad));
            assert_eq!(found(&["ghp_"], &text), [(pad, 0)], "{text}");
        }
    }

    #[test]
    fn three_bytes_need_a_follower_at_odd_places() {
        assert_eq!(found(&["://"], "http://user"), [(4, 0)]);
        assert_eq!(found(&["://"], "https://user"), [(5, 0)]);
        assert_eq!(found(&["://"], "https://\nuser"), []);
        assert_eq!(found(&["://"], "https://"), []);
    }

    #[test]
    fn the_end_is_respected() {
        let filter = Prefilter::new([b"abcd".as_slice()].into_iter());
        assert_eq!(filter.next(b"....abcd", 0, 4), None);
        assert_eq!(filter.next(b"....abcd", 0, 5), Some(4));
        assert_eq!(filter.next(b"....ab", 0, 6), None);
        assert_eq!(filter.next(b"", 0, 0), None);
    }

    #[test]
    fn the_rarest_part_stands_for_a_literal() {
        let rarest = |literal: &[u8], odd| rarest(&Commonness::new(), literal, odd);
        assert_eq!(rarest(b"eexyzqe", false), Some((2, *b"xyz")));
        assert_eq!(rarest(b"eexyzqe", true), Some((3, *b"yzq")));
        assert_eq!(rarest(b"abc", true), None);
        assert_eq!(rarest(b"ab", false), None);
        // Rare bytes, but a frequent triple.
        assert_eq!(rarest(b"://zzz", false), Some((2, *b"/zz")));
    }

    #[test]
    fn a_hash_knows_three_bytes_only() {
        let of = |four: &[u8; 4]| hash(u32::from_le_bytes(*four) | FOLD);
        assert_eq!(of(b"abcd"), of(b"ABCZ"));
        assert_ne!(of(b"abcd"), of(b"abdd"));
    }
}
