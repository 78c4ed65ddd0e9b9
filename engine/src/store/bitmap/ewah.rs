//! EWAH-compressed bit sets, as Git writes them.
//!
//! A set is a sequence of words. A marker word says how many words of zeroes or ones come next (a run), and how many
//! words follow that are bits as they are (literals); then comes the next marker.

use super::Damaged;

/// The number of bits, the number of words.
const HEADER: usize = 8;
/// Where the last marker is. Only a writer needs it.
const TRAILER: usize = 4;

/// A compressed set within a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ewah<'a> {
    words: &'a [[u8; 8]],
}

/// How to put a word into a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Combine {
    Or,
    Xor,
}

impl<'a> Ewah<'a> {
    /// The set at the start of `bytes`, and what follows it.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<(Ewah<'a>, &'a [u8]), Damaged> {
        let cut = Damaged("a compressed set is cut off");
        let count = bytes.get(4..).and_then(<[u8]>::first_chunk).ok_or(cut)?;
        let length = (u32::from_be_bytes(*count) as usize).checked_mul(8).ok_or(cut)?;
        let (words, rest) = bytes[HEADER..].split_at_checked(length).ok_or(cut)?;
        let rest = rest.get(TRAILER..).ok_or(cut)?;
        Ok((
            Ewah {
                words: words.as_chunks().0,
            },
            rest,
        ))
    }

    /// Puts every word that is not zero into `target`. The set must not have bits beyond `bits`, for which `target` has
    /// the words.
    pub(super) fn combine(self, how: Combine, bits: u32, target: &mut [u64]) -> Result<(), Damaged> {
        let beyond = Damaged("a compressed set has bits beyond the objects");
        let mut at = 0usize;
        let mut put = |at: usize, word: u64| {
            let target = target.get_mut(at).ok_or(beyond)?;
            match how {
                Combine::Or => *target |= word,
                Combine::Xor => *target ^= word,
            }
            // Only the last word can reach beyond, so one check of it at the end of each call would do; this is as cheap.
            match at as u64 * 64 + 64 - u64::from(word.leading_zeros()) > u64::from(bits) && word != 0 {
                true => Err(beyond),
                false => Ok(()),
            }
        };
        let mut words = self.words.iter().map(|word| u64::from_be_bytes(*word));
        while let Some(marker) = words.next() {
            let run = ((marker >> 1) & 0xffff_ffff) as usize;
            if marker & 1 == 1 {
                // A run that does not fit ends at the first word that is not there.
                for _ in 0..run {
                    put(at, u64::MAX)?;
                    at += 1;
                }
            } else {
                at = at.checked_add(run).ok_or(beyond)?;
            }
            for _ in 0..marker >> 33 {
                let word = words
                    .next()
                    .ok_or(Damaged("a compressed set ends within literals"))?;
                match word {
                    0 => {}
                    word => put(at, word)?,
                }
                at += 1;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The bytes of a set with these words.
    fn encoded(words: &[u64]) -> Vec<u8> {
        let mut bytes = 0u32.to_be_bytes().to_vec();
        bytes.extend((words.len() as u32).to_be_bytes());
        for word in words {
            bytes.extend(word.to_be_bytes());
        }
        bytes.extend(0u32.to_be_bytes());
        bytes
    }

    fn decoded(words: &[u64], bits: u32) -> Result<Vec<u64>, Damaged> {
        let bytes = encoded(words);
        let (set, rest) = Ewah::parse(&bytes)?;
        assert!(rest.is_empty());
        let mut target = vec![0; bits.div_ceil(64) as usize];
        set.combine(Combine::Or, bits, &mut target)?;
        Ok(target)
    }

    fn marker(ones: bool, run: u64, literals: u64) -> u64 {
        u64::from(ones) | run << 1 | literals << 33
    }

    #[test]
    fn runs_and_literals() {
        assert_eq!(decoded(&[], 10).unwrap(), [0]);
        let words = [marker(false, 1, 2), 5, 6, marker(true, 2, 1), 7];
        assert_eq!(
            decoded(&words, 500).unwrap(),
            [0, 5, 6, u64::MAX, u64::MAX, 7, 0, 0]
        );
    }

    #[test]
    fn zeroes_beyond_the_end_are_harmless_and_ones_are_not() {
        assert_eq!(decoded(&[marker(false, 0xffff_ffff, 0)], 64).unwrap(), [0]);
        assert!(decoded(&[marker(true, 0xffff_ffff, 0)], 64).is_err());
        assert!(decoded(&[marker(true, 1, 0)], 63).is_err());
        assert_eq!(decoded(&[marker(false, 0, 1), 1 << 62], 63).unwrap(), [1 << 62]);
        assert!(decoded(&[marker(false, 0, 1), 1 << 63], 63).is_err());
        assert!(decoded(&[marker(false, 7, 1), 1], 64).is_err());
    }

    #[test]
    fn what_is_cut_off_is_refused() {
        let bytes = encoded(&[marker(false, 0, 1), 5]);
        for length in 0..bytes.len() {
            assert!(Ewah::parse(&bytes[..length]).is_err());
        }
        assert!(decoded(&[marker(false, 0, 2), 5], 64).is_err());
        assert!(Ewah::parse(&[0xff; 40]).is_err());
    }
}
