//! The parts of a pack as one stream.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use gix_hash::ObjectId;
use ingot_engine::store::{Cache, Store};

use super::super::Error;

/// What fits into this is read at once; what does not is read by a thread, in pieces.
const SMALL: u64 = 1 << 20;
/// Pieces that may wait for the reader.
const PIECES: usize = 8;

/// Opens a stream of `parts`, which `store` has and which together have `size` bytes. `name` is the carrier's. Failures of
/// the stream hold an [`Error`].
pub(super) fn open(
    name: &str,
    store: Arc<Store>,
    parts: Vec<ObjectId>,
    size: u64,
) -> Result<Box<dyn Read + Send>, Error> {
    if size <= SMALL {
        let mut bytes = Vec::new();
        for part in &parts {
            stream(name, &store, part, &mut bytes)?;
        }
        return Ok(Box::new(io::Cursor::new(bytes)));
    }
    let (send, pieces) = sync_channel(PIECES);
    let owner = name.to_owned();
    std::thread::Builder::new()
        .name("carrier-reader".to_owned())
        .spawn(move || {
            let mut out = Pieces(&send);
            let mut parts = parts.iter();
            if let Err(error) = parts.try_for_each(|part| stream(&owner, &store, part, &mut out)) {
                // Nobody hears it when the reader is gone, which is then the cause as well.
                let _ = send.send(Err(io::Error::other(error)));
            }
        })
        .map_err(|error| Error::from_io(name, "start a thread for", Path::new(name), error))?;
    Ok(Box::new(Parts {
        pieces,
        piece: Vec::new(),
        at: 0,
    }))
}

fn stream(name: &str, store: &Store, part: &ObjectId, out: &mut dyn Write) -> Result<(), Error> {
    match store.stream(part, &mut Cache::new(0), out) {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err(Error::Corrupt {
            path: PathBuf::from(name),
            problem: format!("has lost its object {part}"),
        }),
        Err(source) => Err(Error::Objects {
            store: name.to_owned(),
            source: Box::new(source),
        }),
    }
}

/// Hands pieces to another thread.
struct Pieces<'a>(&'a SyncSender<io::Result<Vec<u8>>>);

impl Write for Pieces<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.send(Ok(bytes.to_vec())) {
            Ok(()) => Ok(bytes.len()),
            Err(_) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The reading end.
struct Parts {
    pieces: Receiver<io::Result<Vec<u8>>>,
    piece: Vec<u8>,
    at: usize,
}

impl Read for Parts {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at == self.piece.len() {
            match self.pieces.recv() {
                Ok(piece) => (self.piece, self.at) = (piece?, 0),
                Err(_) => return Ok(0),
            }
        }
        let count = out.len().min(self.piece.len() - self.at);
        out[..count].copy_from_slice(&self.piece[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}
