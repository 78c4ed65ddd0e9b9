//! Deltas: reading, applying and making them.
//!
//! A delta says how to make an object from another one, its base: the size of both as little-endian base-128 numbers,
//! then instructions that copy a range of the base or insert literal bytes (gitformat-pack(5), "Deltified
//! representation").

pub mod apply;
pub mod encode;
pub mod instructions;

pub use apply::apply;
pub use instructions::{Instruction, Instructions, header};

/// Why bytes are not a delta, or not one for this base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The delta ends within its sizes.
    #[error("the delta ends within its header")]
    HeaderTruncated,
    /// A size has more than 64 bits.
    #[error("the delta's header holds a size of more than 64 bits")]
    HeaderOverflow,
    /// The delta ends within an instruction.
    #[error("the delta ends within an instruction")]
    Truncated,
    /// The instruction byte 0, which Git reserves.
    #[error("the delta holds an instruction that Git reserves")]
    Reserved,
    /// The delta was made for another base.
    #[error("the delta is for a base of {expected} bytes, its base has {actual}")]
    BaseSize {
        /// What the delta says.
        expected: u64,
        /// What the base has.
        actual: u64,
    },
    /// A copy instruction reaches past the base.
    #[error("the delta copies bytes {offset}+{length} of a base of {base} bytes")]
    CopyOutside {
        /// Where the copied range starts.
        offset: u64,
        /// Its length.
        length: u64,
        /// The size of the base.
        base: u64,
    },
    /// The instructions make an object of another size than the header says.
    #[error("the delta promises {expected} bytes and makes {}", if *.longer { "more" } else { "fewer" })]
    ResultSize {
        /// What the header says.
        expected: u64,
        /// True if the instructions make more.
        longer: bool,
    },
    /// The operating system has not that much memory.
    #[error("not enough memory for the {0} bytes that a delta makes")]
    Memory(u64),
}
