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
