//! Checks every part of a chunked file.

use gix_hash::ObjectId;
use gix_object::Kind;

use super::pieces::{Piece, Pieces, Source};
use super::{Error, Pointer};
use crate::progress::Progress;
use crate::store::{Cache, Store};

/// Something wrong with a chunked file.
#[derive(Debug)]
pub struct Fault {
    /// The list, chunk or delta; `None` if every part is right and the whole is not.
    pub id: Option<ObjectId>,
    /// Where in the file, as far as that is known.
    pub offset: Option<u64>,
    /// What is wrong.
    pub error: Error,
}

impl Fault {
    /// The error alone.
    pub fn into_error(self) -> Error {
        self.error
    }
}

/// Reads every list and every chunk of a file, compares ids and lengths, and hashes the whole. Returns all that is wrong,
/// in the order of the file; a list that cannot be read ends the search.
pub fn verify(store: &Store, pointer: &Pointer, progress: &dyn Progress) -> Result<Vec<Fault>, Error> {
    let mut faults = Vec::new();
    let mut hasher = blake3::Hasher::new();
    let mut cache = Cache::new(0);
    let (mut bytes, mut scratch) = (Vec::new(), Vec::new());
    let zeros = vec![0; 1 << 16];
    for piece in Pieces::new(store, pointer) {
        if progress.interrupted() {
            return Err(Error::Interrupted);
        }
        let piece = match piece {
            Ok(piece) => piece,
            Err(error) => {
                faults.push(Fault {
                    id: id_of(&error),
                    offset: None,
                    error,
                });
                return Ok(faults);
            }
        };
        if piece.source == Source::Zeros {
            let mut rest = piece.length;
            while rest > 0 {
                let step = usize::try_from(rest).unwrap_or(usize::MAX).min(zeros.len());
                hasher.update(&zeros[..step]);
                rest -= step as u64;
            }
            continue;
        }
        match read_verified(store, &piece, &mut cache, &mut bytes, &mut scratch) {
            Ok(()) => {
                hasher.update(&bytes);
            }
            Err(error) => faults.push(Fault {
                id: id_of(&error),
                offset: Some(piece.offset),
                error,
            }),
        }
        progress.advance(1);
    }
    if faults.is_empty() && hasher.finalize() != pointer.blake3 {
        faults.push(Fault {
            id: None,
            offset: None,
            error: Error::Whole {
                size: pointer.size,
                expected: pointer.blake3,
            },
        });
    }
    Ok(faults)
}

fn read_verified(
    store: &Store,
    piece: &Piece,
    cache: &mut Cache,
    out: &mut Vec<u8>,
    scratch: &mut Vec<u8>,
) -> Result<(), Error> {
    let ids = match piece.source {
        Source::Chunk(id) => [Some(id), None],
        Source::Delta { delta, base } => [Some(delta), Some(base)],
        Source::Zeros => [None, None],
    };
    for id in ids.into_iter().flatten() {
        let damaged = |error: crate::store::Error| piece.damaged(id, error.to_string());
        match store.read_verified(&id, cache, scratch).map_err(damaged)? {
            Some(Kind::Blob) => {}
            Some(kind) => return Err(piece.damaged(id, format!("it is a {kind}"))),
            None => return Err(Error::Missing { id, list: false }),
        }
    }
    match piece.source {
        Source::Chunk(id) => {
            std::mem::swap(out, scratch);
            match out.len() as u64 == piece.length {
                true => Ok(()),
                false => Err(piece.damaged(
                    id,
                    format!("it has {} bytes where its list says {}", out.len(), piece.length),
                )),
            }
        }
        _ => piece.read(store, cache, out),
    }
}

fn id_of(error: &Error) -> Option<ObjectId> {
    match error {
        Error::Missing { id, .. }
        | Error::NoList { id, .. }
        | Error::List { id, .. }
        | Error::Chunk { id, .. } => Some(*id),
        _ => None,
    }
}
