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
