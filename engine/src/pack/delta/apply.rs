//! Applies deltas.

use super::{Error, Instruction, Instructions, header};

/// Makes the object that `delta` describes from `base`; it replaces the content of `out`.
///
/// Memory is taken as the instructions need it, never more than the header promises. The header's promise itself is not
/// limited here: where deltas come from outside, compare what [`header`] says with the limit first.
pub fn apply(base: &[u8], delta: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    let (base_size, result_size, instructions) = header(delta)?;
    if base_size != base.len() as u64 {
        return Err(Error::BaseSize {
            expected: base_size,
            actual: base.len() as u64,
        });
    }
    let whole = usize::try_from(result_size).map_err(|_| Error::Memory(result_size))?;
    out.clear();
    // Most results are no longer than what they are made of. Longer ones take the rest once they prove it.
    let likely = whole.min(base.len().saturating_add(instructions.len()));
    reserve(out, likely, result_size)?;
    for instruction in Instructions::new(instructions) {
        let bytes = match instruction? {
            Instruction::Insert(bytes) => bytes,
            Instruction::Copy { offset, length } => range(base, offset, length)?,
        };
        let room = whole - out.len();
        if bytes.len() > room {
            return Err(Error::ResultSize {
                expected: result_size,
                longer: true,
            });
        }
        if bytes.len() > out.capacity() - out.len() {
            reserve(out, room, result_size)?;
        }
        out.extend_from_slice(bytes);
    }
    match out.len() == whole {
        true => Ok(()),
        false => Err(Error::ResultSize {
            expected: result_size,
            longer: false,
        }),
    }
}

fn range(base: &[u8], offset: u32, length: u32) -> Result<&[u8], Error> {
    let outside = Error::CopyOutside {
        offset: offset.into(),
        length: length.into(),
        base: base.len() as u64,
    };
    base.get(offset as usize..)
        .and_then(|rest| rest.get(..length as usize))
        .ok_or(outside)
}

fn reserve(out: &mut Vec<u8>, more: usize, result_size: u64) -> Result<(), Error> {
    out.try_reserve_exact(more)
        .map_err(|_| Error::Memory(result_size))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn size(mut value: u64, out: &mut Vec<u8>) {
        while value >= 0x80 {
            out.push(value as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
    }

    /// A delta of these instructions with any sizes.
    fn delta(base: u64, result: u64, instructions: &[Instruction<'_>]) -> Vec<u8> {
        let mut out = Vec::new();
        size(base, &mut out);
        size(result, &mut out);
        for instruction in instructions {
            match *instruction {
                Instruction::Insert(bytes) => {
                    out.push(bytes.len() as u8);
                    out.extend_from_slice(bytes);
                }
                Instruction::Copy { offset, length } => {
                    out.push(0xff);
                    out.extend(offset.to_le_bytes());
                    out.extend_from_slice(&length.to_le_bytes()[..3]);
                }
            }
        }
        out
    }

    const COPY: Instruction<'_> = Instruction::Copy { offset: 2, length: 3 };

    #[test]
    fn copies_and_inserts() {
        let mut out = b"what was there".to_vec();
        let delta = delta(6, 8, &[COPY, Instruction::Insert(b"xy"), COPY]);
        apply(b"abcdef", &delta, &mut out).unwrap();
        assert_eq!(out, b"cdexycde");
        apply(b"", &[0, 0], &mut out).unwrap();
        assert_eq!(out, b"");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut out = Vec::new();
        let mut check = |base: &[u8], delta: &[u8]| apply(base, delta, &mut out).unwrap_err();
        assert_eq!(
            check(b"abcde", &delta(6, 3, &[COPY])),
            Error::BaseSize {
                expected: 6,
                actual: 5
            }
        );
        assert!(matches!(
            check(b"abcd", &delta(4, 3, &[COPY])),
            Error::CopyOutside { .. }
        ));
        let far = Instruction::Copy {
            offset: u32::MAX,
            length: 0xff_ffff,
        };
        assert!(matches!(
            check(b"abcd", &delta(4, 3, &[far])),
            Error::CopyOutside { .. }
        ));
        for (promised, longer) in [(2, true), (4, false), (1 << 40, false), (0, true)] {
            assert_eq!(
                check(b"abcdef", &delta(6, promised, &[COPY])),
                Error::ResultSize {
                    expected: promised,
                    longer
                }
            );
        }
    }

    #[test]
    fn results_longer_than_base_and_delta() {
        let mut out = Vec::new();
        apply(b"abcdef", &delta(6, 3000, &[COPY; 1000]), &mut out).unwrap();
        assert_eq!(out, b"cde".repeat(1000));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_result_or_an_error(base in proptest::collection::vec(any::<u8>(), 0..300), bytes: Vec<u8>) {
            let mut out = Vec::new();
            let mut with_sizes = Vec::new();
            size(base.len() as u64, &mut with_sizes);
            size(base.len() as u64, &mut with_sizes);
            with_sizes.extend_from_slice(&bytes);
            let _ = apply(&base, &bytes, &mut out);
            let _ = apply(&base, &with_sizes, &mut out);
        }

        #[test]
        fn applies_as_a_plain_reading_says(
            base in proptest::collection::vec(any::<u8>(), 1..500),
            steps in proptest::collection::vec((any::<bool>(), 0usize..500, 1usize..128), 0..40),
        ) {
            let literal = [7u8; 127];
            let (mut instructions, mut expected) = (Vec::new(), Vec::new());
            for (copy, offset, length) in steps {
                if copy {
                    let offset = offset % base.len();
                    let length = length.min(base.len() - offset);
                    expected.extend_from_slice(&base[offset..offset + length]);
                    instructions.push(Instruction::Copy { offset: offset as u32, length: length as u32 });
                } else {
                    let bytes = &literal[..length.min(127)];
                    expected.extend_from_slice(bytes);
                    instructions.push(Instruction::Insert(bytes));
                }
            }
            let bytes = delta(base.len() as u64, expected.len() as u64, &instructions);
            let mut out = Vec::new();
            apply(&base, &bytes, &mut out).unwrap();
            prop_assert_eq!(out, expected);
        }
    }
}
