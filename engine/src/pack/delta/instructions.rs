//! Reads deltas.

use super::Error;

/// A copy of this length is written with no length bytes at all.
const DEFAULT_COPY: u32 = 0x10000;

/// Reads the header of a delta: the size of its base, the size of its result, and the instructions that follow.
pub fn header(delta: &[u8]) -> Result<(u64, u64, &[u8]), Error> {
    let (base, rest) = size(delta)?;
    let (result, rest) = size(rest)?;
    Ok((base, result, rest))
}

/// A little-endian base-128 number and what follows it.
fn size(bytes: &[u8]) -> Result<(u64, &[u8]), Error> {
    let mut value = 0u64;
    for (index, &byte) in bytes.iter().enumerate() {
        let shift = 7 * index as u32;
        let part = u64::from(byte & 0x7f);
        // Zero bits beyond the 64th are harmless padding; one bits are not.
        if part != 0 {
            if shift > 63 || (part << shift) >> shift != part {
                return Err(Error::HeaderOverflow);
            }
            value |= part << shift;
        } else if index > 31 {
            return Err(Error::HeaderOverflow);
        }
        if byte & 0x80 == 0 {
            return Ok((value, &bytes[index + 1..]));
        }
    }
    Err(Error::HeaderTruncated)
}

/// One step of a delta.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instruction<'a> {
    /// Appends `length` bytes of the base from `offset` on. The range is not checked against any base.
    Copy {
        /// Where the range starts in the base.
        offset: u32,
        /// How long it is, at least 1.
        length: u32,
    },
    /// Appends these 1 to 127 bytes.
    Insert(&'a [u8]),
}

/// The steps of a delta, in order. After an error it yields nothing more.
#[derive(Debug, Clone)]
pub struct Instructions<'a> {
    rest: &'a [u8],
}

impl<'a> Instructions<'a> {
    /// Reads from what [`header`] returned as instructions.
    pub fn new(instructions: &'a [u8]) -> Instructions<'a> {
        Instructions { rest: instructions }
    }

    #[inline]
    fn copy(command: u8, mut rest: &'a [u8]) -> Result<(Instruction<'a>, &'a [u8]), Error> {
        let mut number = |bits: u8| {
            let (mut value, mut shift, mut bits) = (0u32, 0, bits);
            while bits != 0 {
                if bits & 1 != 0 {
                    let (&byte, tail) = rest.split_first().ok_or(Error::Truncated)?;
                    value |= u32::from(byte) << shift;
                    rest = tail;
                }
                shift += 8;
                bits >>= 1;
            }
            Ok::<u32, Error>(value)
        };
        let offset = number(command & 0x0f)?;
        let length = match number((command >> 4) & 0x07)? {
            0 => DEFAULT_COPY,
            length => length,
        };
        Ok((Instruction::Copy { offset, length }, rest))
    }
}

impl<'a> Iterator for Instructions<'a> {
    type Item = Result<Instruction<'a>, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (&command, rest) = self.rest.split_first()?;
        let read = match command {
            0 => Err(Error::Reserved),
            1..0x80 => match rest.split_at_checked(usize::from(command)) {
                Some((literal, rest)) => Ok((Instruction::Insert(literal), rest)),
                None => Err(Error::Truncated),
            },
            _ => Instructions::copy(command, rest),
        };
        match read {
            Ok((instruction, rest)) => {
                self.rest = rest;
                Some(Ok(instruction))
            }
            Err(error) => {
                self.rest = &[];
                Some(Err(error))
            }
        }
    }
}

impl std::iter::FusedIterator for Instructions<'_> {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(bytes: &[u8]) -> Vec<Result<Instruction<'_>, Error>> {
        Instructions::new(bytes).collect()
    }

    #[test]
    fn sizes() {
        assert_eq!(header(&[0x05, 0x90, 0x01, 7, 8]).unwrap(), (5, 144, &[7, 8][..]));
        assert_eq!(header(&[0x85, 0x80, 0x00, 0x00]).unwrap(), (5, 0, &[][..]));
        let largest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0];
        assert_eq!(header(&largest).unwrap().0, u64::MAX);
        let mut too_large = largest;
        too_large[9] = 0x02;
        assert_eq!(header(&too_large), Err(Error::HeaderOverflow));
        assert_eq!(header(&[0x80; 100]), Err(Error::HeaderOverflow));
        for cut in [&[][..], &[0x80], &[0x05], &[0x05, 0x80]] {
            assert_eq!(header(cut), Err(Error::HeaderTruncated));
        }
    }

    #[test]
    fn copies_and_inserts() {
        let all = [
            0xff, 1, 2, 3, 4, 5, 6, 7, 0x80, 0x91, 9, 8, 0x84, 1, 2, b'x', b'y',
        ];
        assert_eq!(
            read(&all),
            [
                Ok(Instruction::Copy {
                    offset: 0x0403_0201,
                    length: 0x07_0605
                }),
                Ok(Instruction::Copy {
                    offset: 0,
                    length: 0x10000
                }),
                Ok(Instruction::Copy { offset: 9, length: 8 }),
                Ok(Instruction::Copy {
                    offset: 0x01_0000,
                    length: 0x10000
                }),
                Ok(Instruction::Insert(b"xy")),
            ]
        );
    }

    #[test]
    fn an_error_ends_the_instructions() {
        assert_eq!(
            read(&[1, b'x', 0, 1, b'y']),
            [Ok(Instruction::Insert(b"x")), Err(Error::Reserved)]
        );
        assert_eq!(read(&[3, b'x', b'y']), [Err(Error::Truncated)]);
        assert_eq!(read(&[0xff, 1, 2, 3]), [Err(Error::Truncated)]);
    }
}
