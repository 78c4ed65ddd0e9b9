//! Finds out in which one place a file differs from the version before, without cutting it anew.
//!
//! A few chunks of the earlier version are compared with the file to guess where the difference begins and ends. Whether
//! the guess is right is decided by BLAKE3: what surrounds the difference, with what stood there before in its place, has
//! to be the earlier version as a whole. Then every chunk outside of it is known to be what it was, wherever it stands now.

use ingot_engine::chunked::{self, Piece, Pieces, Pointer};
use ingot_engine::progress::Progress;
use ingot_engine::store::{Cache, Store};

use super::source::Source;
use crate::{Error, cut};

/// Larger files are cut anew: the chunks of the earlier version are in memory.
const MOST: u64 = 16 << 30;
/// So much of the earlier version may be in another place of it or gone.
const MOST_GONE: u64 = 32 << 20;
/// So much may stand between what both have.
const MOST_BETWEEN: u64 = 64 << 20;
/// Bytes that are hashed together while the next ones are read.
const STEP: usize = 2 << 20;
/// So much of a piece is compared to guess.
const LOOK: u64 = 64 * 1024;

/// What the file and its earlier version have in common.
pub(super) struct Guide {
    pieces: Vec<Piece>,
    /// So many pieces stand where they stood.
    head: usize,
    /// The pieces from this one on stand at the end, moved by `shift`.
    tail: usize,
    shift: i64,
    /// Has the bytes of the head.
    pub(super) hasher: blake3::Hasher,
    /// The BLAKE3 of the file, known if there is a tail.
    pub(super) blake3: Option<blake3::Hash>,
}

/// What was found out.
pub(super) enum Found {
    /// The file is the earlier version.
    Same,
    /// It differs in one place.
    Alike(Box<Guide>),
}

/// Compares a file of `size` bytes with the version before, every part of which is here. `None` if they have too little in
/// common, or differ in several places.
pub(super) fn find(
    store: &Store,
    source: &mut Source<'_>,
    before: &Pointer,
    size: u64,
    progress: &dyn Progress,
) -> Result<Option<Found>, Error> {
    if before.size == 0 || before.size.max(size) > MOST {
        return Ok(None);
    }
    let pieces = Pieces::new(store, before).collect::<Result<Vec<_>, _>>();
    let Ok(mut pieces) = pieces else {
        return Ok(None);
    };
    let shift = size as i64 - before.size as i64;
    let mut guess = Guess {
        store,
        source: &mut *source,
        cache: Cache::new(0),
        stored: Vec::new(),
        here: Vec::new(),
    };
    let mut head = guess.head(&pieces, size)?;
    let mut tail = pieces.len();
    if head == pieces.len() && shift != 0 {
        // The last chunk may have ended only because the file did. Of zeros, what is less than a whole chunk.
        let last = &mut pieces[head - 1];
        let whole = last.length / cut::zero_length() as u64 * cut::zero_length() as u64;
        if last.source == chunked::Source::Zeros && whole > 0 && whole < last.length {
            let rest = Piece {
                offset: last.offset + whole,
                length: last.length - whole,
                ..*last
            };
            last.length = whole;
            pieces.push(rest);
            tail = pieces.len();
        } else if last.source != chunked::Source::Zeros || whole == 0 {
            head -= 1;
        }
    } else if head < pieces.len() {
        let end = pieces[..head].last().map_or(0, Piece::end);
        tail = guess.tail(&pieces, head, end, shift)?;
    }
    let end = |pieces: &[Piece]| pieces.last().map_or(0, Piece::end);
    let (head_end, gone_end) = (end(&pieces[..head]), end(&pieces[..tail]));
    let between_end = match tail < pieces.len() {
        true => gone_end.saturating_add_signed(shift),
        false => size,
    };
    let gone = gone_end - head_end;
    if gone > MOST_GONE
        || before.size - gone < before.size / 2
        || (tail < pieces.len() && between_end - head_end > MOST_BETWEEN)
    {
        return Ok(None);
    }

    let mut both = blake3::Hasher::new();
    if !feed(source, 0..head_end, &mut [&mut both], progress)? {
        return Ok(None);
    }
    let (mut old, mut new) = (both.clone(), both.clone());
    let mut bytes = Vec::new();
    for piece in &pieces[head..tail] {
        if piece.source == chunked::Source::Zeros && piece.length > MOST_GONE
            || piece.read(store, &mut Cache::new(0), &mut bytes).is_err()
        {
            return Ok(None);
        }
        old.update(&bytes);
    }
    if tail < pieces.len()
        && !(feed(source, head_end..between_end, &mut [&mut new], progress)?
            && feed(source, between_end..size, &mut [&mut old, &mut new], progress)?)
    {
        return Ok(None);
    }
    if old.finalize() != before.blake3 {
        return Ok(None);
    }
    if head == pieces.len() && shift == 0 {
        return Ok(Some(Found::Same));
    }
    Ok(Some(Found::Alike(Box::new(Guide {
        blake3: (tail < pieces.len()).then(|| new.finalize()),
        hasher: both,
        pieces,
        head,
        tail,
        shift,
    }))))
}

impl Guide {
    /// What stands where it stood.
    pub(super) fn head(&self) -> &[Piece] {
        &self.pieces[..self.head]
    }

    /// Where the difference begins.
    pub(super) fn start(&self) -> u64 {
        self.head().last().map_or(0, Piece::end)
    }

    /// The pieces from `place` of the file on, if one of those at the end begins there. A cut there makes all that follow
    /// what they were.
    pub(super) fn rest(&self, place: u64) -> Option<&[Piece]> {
        let before = place.checked_add_signed(self.shift.checked_neg()?)?;
        let tail = &self.pieces[self.tail..];
        let found = tail.binary_search_by_key(&before, |piece| piece.offset).ok()?;
        Some(&tail[found..])
    }
}

/// Reads a range of a file into hashers. False if the file has less.
fn feed(
    source: &mut Source<'_>,
    range: std::ops::Range<u64>,
    hashers: &mut [&mut blake3::Hasher],
    progress: &dyn Progress,
) -> Result<bool, Error> {
    let (mut ready, mut next) = (Vec::new(), Vec::new());
    source.seek(range.start);
    loop {
        if progress.interrupted() {
            return Err(Error::Interrupted);
        }
        let wanted = usize::try_from(range.end.saturating_sub(source.position()))
            .unwrap_or(usize::MAX)
            .min(STEP);
        let hash = || {
            if let [first, second] = &mut *hashers {
                rayon::join(
                    || {
                        first.update_rayon(&ready);
                    },
                    || {
                        second.update_rayon(&ready);
                    },
                );
            } else {
                for hasher in hashers.iter_mut() {
                    hasher.update_rayon(&ready);
                }
            }
        };
        let read = || {
            next.clear();
            source.fill(&mut next, wanted)
        };
        let (read, ()) = rayon::join(read, hash);
        read?;
        if next.len() < wanted {
            return Ok(false);
        }
        if next.is_empty() {
            return Ok(true);
        }
        std::mem::swap(&mut ready, &mut next);
    }
}

/// Looks at single pieces.
struct Guess<'g, 'a> {
    store: &'g Store,
    source: &'g mut Source<'a>,
    cache: Cache,
    stored: Vec<u8>,
    here: Vec<u8>,
}

impl Guess<'_, '_> {
    /// Whether a piece seems to stand at `place`.
    fn is_at(&mut self, piece: &Piece, place: u64) -> Result<bool, Error> {
        let length = piece.length.min(match piece.source {
            chunked::Source::Zeros => LOOK,
            _ => cut::LARGEST as u64,
        }) as usize;
        self.here.clear();
        self.source.seek(place);
        self.source.fill(&mut self.here, length)?;
        if piece.source == chunked::Source::Zeros {
            return Ok(self.here.len() == length && cut::is_zero(&self.here));
        }
        // What cannot be read is not the same; the file is cut anew then.
        let read = piece.read(self.store, &mut self.cache, &mut self.stored);
        Ok(read.is_ok() && self.here == self.stored)
    }

    /// How many pieces stand where they stood, if there is one difference only.
    fn head(&mut self, pieces: &[Piece], size: u64) -> Result<usize, Error> {
        let (mut low, mut high) = (0, pieces.partition_point(|piece| piece.end() <= size));
        // Mostly a file is the same up to there, or from the first piece on another.
        if high > 0 && self.is_at(&pieces[high - 1], pieces[high - 1].offset)? {
            return Ok(high);
        }
        high = high.saturating_sub(1);
        while low < high {
            let middle = (low + high) / 2;
            match self.is_at(&pieces[middle], pieces[middle].offset)? {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Ok(low)
    }

    /// The first of the pieces that stand at the end, moved by `shift`; none of them begins before `end` of the file.
    fn tail(&mut self, pieces: &[Piece], head: usize, end: u64, shift: i64) -> Result<usize, Error> {
        let place = |piece: &Piece| piece.offset.checked_add_signed(shift);
        let fits = |piece: &Piece| place(piece).is_some_and(|place| place >= end);
        let (mut low, mut high) = (head, pieces.len());
        low += pieces[low..].partition_point(|piece| !fits(piece));
        while low < high {
            let middle = (low + high) / 2;
            let at = place(&pieces[middle]).unwrap_or(u64::MAX);
            match self.is_at(&pieces[middle], at)? {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        Ok(low)
    }
}
