//! Makes deltas: a target expressed as copies from a base and inserted bytes.
//!
//! The base is cut into blocks of [`WINDOW`] bytes, and a hash table remembers where each block stands. The target is
//! then read byte by byte: where the next [`WINDOW`] bytes hash to a known block, the match is compared for real and
//! grown in both directions, and the longest one becomes a copy instruction. Everything between copies is inserted.
//!
//! The output is the delta format of Git's packs (see `gitformat-pack`): two sizes, then instructions. Any index
//! serves any number of targets, and costs at most [`MAX_BLOCKS`] table entries however long the base is. The
//! time for a target is linear in its length, whatever base and target hold: equal blocks in a row are indexed once,
//! and no more than `MAX_CANDIDATES` places are looked at for one position.

/// Bytes that must be equal before a match is considered, and the length of an indexed block.
pub const WINDOW: usize = 16;

/// The most blocks that one index remembers. Longer bases are sampled more thinly.
pub const MAX_BLOCKS: usize = 1 << 20;

/// The most places of the base that are compared for one position of the target.
const MAX_CANDIDATES: usize = 48;

/// How many positions after a first match are tried for a longer one. Blocks start every [`WINDOW`] bytes.
const LOOK_AHEAD: usize = WINDOW;

/// A match this long is taken without looking for a longer one.
const LONG_MATCH: usize = 4096;

/// The longest stretch that one copy instruction carries.
const MAX_COPY: usize = 0xff_ffff;

/// The longest stretch that one insert instruction carries.
const MAX_INSERT: usize = 0x7f;

/// Ends a chain of blocks.
const NONE: u32 = u32::MAX;

/// A base prepared for making deltas against it.
///
/// `B` is whatever holds the bytes: a borrowed slice for a single use, a vector for a base that a window keeps.
#[derive(Debug, Clone)]
pub struct Index<B> {
    base: B,
    /// Distance between indexed blocks, in bytes.
    step: usize,
    /// The first block of each chain; its length is a power of two.
    heads: Vec<u32>,
    blocks: Vec<Block>,
    shift: u32,
}

#[derive(Debug, Clone, Copy)]
struct Block {
    next: u32,
    /// Where the block starts, in steps, in the low [`AT_BITS`]; above them some bits of its hash, which tell blocks
    /// of one chain apart, so that most misses never touch the base.
    check_and_at: u32,
}

/// Enough to number [`MAX_BLOCKS`] blocks.
const AT_BITS: u32 = MAX_BLOCKS.trailing_zeros();
const AT_MASK: u32 = (1 << AT_BITS) - 1;

/// A stretch of the target that the base holds too.
#[derive(Debug, Clone, Copy)]
struct Match {
    base: usize,
    target: usize,
    len: usize,
}

impl<B: AsRef<[u8]>> Index<B> {
    /// Indexes `base`. Bytes past the first 4 GiB are not used, as copy instructions cannot name them.
    pub fn new(base: B) -> Index<B> {
        let bytes = addressable(base.as_ref());
        let step = step_for(bytes.len());
        let count = if bytes.len() < WINDOW {
            0
        } else {
            (bytes.len() - WINDOW) / step + 1
        };
        let bits = count.next_power_of_two().trailing_zeros().max(4);
        let shift = 64 - bits;
        let mut heads = vec![NONE; 1 << bits];
        let mut blocks = Vec::with_capacity(count);
        // From the end to the start, so that a chain lists the earliest place first and a row of equal blocks is
        // represented by its first one, from which a match can grow furthest.
        let mut previous = None;
        for at in (0..count).rev() {
            let hash = hash_at(bytes, at * step);
            if previous == Some(hash) {
                if let Some(Block { check_and_at, .. }) = blocks.last_mut() {
                    *check_and_at = check(hash) | at as u32;
                }
                continue;
            }
            previous = Some(hash);
            let head = &mut heads[(hash >> shift) as usize];
            let next = std::mem::replace(head, blocks.len() as u32);
            blocks.push(Block {
                next,
                check_and_at: check(hash) | at as u32,
            });
        }
        Index {
            base,
            step,
            heads,
            blocks,
            shift,
        }
    }

    /// The indexed base.
    pub fn base(&self) -> &[u8] {
        self.base.as_ref()
    }

    /// Bytes of memory that the index holds beside its base.
    pub fn table_bytes(&self) -> usize {
        self.heads.capacity() * size_of::<u32>() + self.blocks.capacity() * size_of::<Block>()
    }

    /// Gives the base back.
    pub fn into_base(self) -> B {
        self.base
    }

    /// The delta that makes `target` of the base, or `None` when it would take more than `max_size` bytes, and when
    /// base or target do not fit the format.
    ///
    /// The work stops as soon as the limit is certain to be exceeded.
    pub fn delta(&self, target: &[u8], max_size: usize) -> Option<Vec<u8>> {
        let mut out = Output::new(self.base.as_ref().len(), target.len(), max_size);
        let base = addressable(self.base.as_ref());
        let mut pending = 0; // start of the bytes that no instruction covers yet
        let mut at = 0;
        while at + WINDOW <= target.len() {
            let Some(mut found) = self.longest_match(base, target, pending, at) else {
                at += 1;
                // A later match may still grow backwards over pending bytes, but hardly over more than a step.
                if out.bytes.len() + (at - pending).saturating_sub(self.step + WINDOW) > max_size {
                    return None;
                }
                continue;
            };
            // The first match is the one whose block happens to come first; one that starts a little later may be
            // much longer.
            for later in at + 1..=at + LOOK_AHEAD {
                if found.len >= LONG_MATCH
                    || later >= found.target + found.len
                    || later + WINDOW > target.len()
                {
                    break;
                }
                if let Some(other) = self.longest_match(base, target, pending, later)
                    && other.len > found.len
                {
                    found = other;
                }
            }
            out.insert(&target[pending..found.target])?;
            out.copy(found.base, found.len)?;
            at = found.target + found.len;
            pending = at;
        }
        out.insert(&target[pending..])?;
        Some(out.bytes)
    }

    /// The longest stretch of the base that is equal to the target around `at`; it may start before `at`, but not
    /// before `from`.
    #[inline]
    fn longest_match(&self, base: &[u8], target: &[u8], from: usize, at: usize) -> Option<Match> {
        let hash = hash_at(target, at);
        let mut next = self.heads[(hash >> self.shift) as usize];
        if next == NONE {
            return None;
        }
        let mut best: Option<Match> = None;
        for _ in 0..MAX_CANDIDATES {
            let Some(block) = self.blocks.get(next as usize) else {
                break;
            };
            next = block.next;
            if block.check_and_at & !AT_MASK != check(hash) {
                continue;
            }
            let start = (block.check_and_at & AT_MASK) as usize * self.step;
            let forward = common_prefix(&base[start..], &target[at..]);
            if forward < WINDOW {
                continue;
            }
            let back = common_suffix(&base[..start], &target[from..at]);
            let len = forward + back;
            if best.is_none_or(|best| len > best.len) {
                best = Some(Match {
                    base: start - back,
                    target: at - back,
                    len,
                });
                if len >= LONG_MATCH {
                    break;
                }
            }
        }
        best
    }
}

/// The delta that makes `target` of `base`; see [`Index::delta`].
pub fn delta(base: &[u8], target: &[u8], max_size: usize) -> Option<Vec<u8>> {
    Index::new(base).delta(target, max_size)
}

/// The part of a base that the 32-bit offsets of copy instructions reach.
fn addressable(base: &[u8]) -> &[u8] {
    &base[..base.len().min(u32::MAX as usize)]
}

/// The bits of a hash that a block remembers, in their place.
#[inline]
fn check(hash: u64) -> u32 {
    (hash as u32) & !AT_MASK
}

/// Distance between indexed blocks for a base of `len` bytes.
fn step_for(len: usize) -> usize {
    WINDOW.max(len.div_ceil(MAX_BLOCKS))
}

/// Mixes the `WINDOW` bytes at `at` into 64 bits. Two loads and one wide multiplication need no state from the byte
/// before, so the processor works on several positions at once, which a rolling sum would not allow.
#[inline]
fn hash_at(bytes: &[u8], at: usize) -> u64 {
    const LOW: u64 = 0x9e37_79b9_7f4a_7c15;
    const HIGH: u64 = 0xc2b2_ae3d_27d4_eb4f;
    let window: &[u8; WINDOW] = bytes[at..at + WINDOW]
        .try_into()
        .expect("the slice has the length of a window");
    let (low, high) = window.split_at(8);
    let low = u64::from_le_bytes(low.try_into().expect("half a window"));
    let high = u64::from_le_bytes(high.try_into().expect("half a window"));
    let product = u128::from(low ^ LOW) * u128::from(high ^ HIGH);
    (product as u64 ^ (product >> 64) as u64).wrapping_mul(LOW)
}

/// How many bytes `a` and `b` share from their start.
#[inline]
fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let mut len = 0;
    for (a, b) in a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0) {
        let differing = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differing != 0 {
            return len + (differing.trailing_zeros() / 8) as usize;
        }
        len += 8;
    }
    len + a[len..].iter().zip(&b[len..]).take_while(|(a, b)| a == b).count()
}

/// How many bytes `a` and `b` share up to their end.
#[inline]
fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    a.iter()
        .rev()
        .zip(b.iter().rev())
        .take_while(|(a, b)| a == b)
        .count()
}

/// A delta under construction that refuses to grow beyond its limit.
struct Output {
    bytes: Vec<u8>,
    max: usize,
}

impl Output {
    fn new(base: usize, target: usize, max: usize) -> Output {
        let mut bytes = Vec::with_capacity(64.min(max));
        push_size(&mut bytes, base as u64);
        push_size(&mut bytes, target as u64);
        Output { bytes, max }
    }

    fn insert(&mut self, bytes: &[u8]) -> Option<()> {
        let needed = bytes.len().checked_add(bytes.len().div_ceil(MAX_INSERT))?;
        self.room(needed)?;
        for piece in bytes.chunks(MAX_INSERT) {
            self.bytes.push(piece.len() as u8);
            self.bytes.extend_from_slice(piece);
        }
        Some(())
    }

    fn copy(&mut self, mut offset: usize, mut len: usize) -> Option<()> {
        while len > 0 {
            let piece = len.min(MAX_COPY);
            let mut instruction = [0u8; 8];
            let mut used = 1;
            let mut code = 0x80;
            for (bit, byte) in (offset as u32).to_le_bytes().into_iter().enumerate() {
                if byte != 0 {
                    code |= 1 << bit;
                    instruction[used] = byte;
                    used += 1;
                }
            }
            // A size without any byte stands for 64 KiB.
            let size = if piece == 0x1_0000 { 0 } else { piece as u32 };
            for (bit, byte) in size.to_le_bytes().into_iter().take(3).enumerate() {
                if byte != 0 {
                    code |= 0x10 << bit;
                    instruction[used] = byte;
                    used += 1;
                }
            }
            instruction[0] = code;
            self.room(used)?;
            self.bytes.extend_from_slice(&instruction[..used]);
            offset += piece;
            len -= piece;
        }
        Some(())
    }

    fn room(&self, more: usize) -> Option<()> {
        (self.bytes.len().checked_add(more)? <= self.max).then_some(())
    }
}

/// Appends a size as the head of a delta spells it: seven bits a byte, the lowest first.
fn push_size(out: &mut Vec<u8>, mut size: u64) {
    while size >= 0x80 {
        out.push(size as u8 | 0x80);
        size >>= 7;
    }
    out.push(size as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The opcode and operand bytes of a single copy.
    fn copied(offset: usize, len: usize) -> Vec<u8> {
        let mut out = Output {
            bytes: Vec::new(),
            max: usize::MAX,
        };
        out.copy(offset, len).expect("no limit");
        out.bytes
    }

    #[test]
    fn copies_leave_zero_bytes_out() {
        assert_eq!(copied(0, 1), [0x90, 1]);
        assert_eq!(copied(0, 0x1_0000), [0x80]);
        assert_eq!(copied(0, 0x1_0001), [0x80 | 0x10 | 0x40, 1, 1]);
        assert_eq!(
            copied(0x1200_0034, 0xff_ffff),
            [0xf9, 0x34, 0x12, 0xff, 0xff, 0xff]
        );
        // 7 + 0xff_ffff = 0x0100_0006
        assert_eq!(copied(7, 0x100_0000), [0xf1, 7, 0xff, 0xff, 0xff, 0x99, 6, 1, 1]);
    }
}
