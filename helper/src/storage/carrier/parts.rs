//! The parts of a pack as one stream.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use gix_hash::ObjectId;
use ingot_engine::store::{Cache, Store};

/// What fits into this is read at once; what does not is read by a thread, in pieces.
const SMALL: u64 = 1 << 20;
/// Pieces that may wait for the reader.
const PIECES: usize = 8;

/// Opens a stream of `parts`, which `store` has and which together have `size` bytes.
pub(super) fn open(store: Arc<Store>, parts: Vec<ObjectId>, size: u64) -> io::Result<Box<dyn Read + Send>> {
    if size <= SMALL {
        let mut bytes = Vec::new();
        for part in &parts {
            stream(&store, part, &mut bytes)?;
        }
        return Ok(Box::new(io::Cursor::new(bytes)));
    }
    let (send, pieces) = sync_channel(PIECES);
    std::thread::Builder::new()
        .name("carrier-reader".to_owned())
        .spawn(move || {
            let mut out = Pieces(&send);
            let mut parts = parts.iter();
            if let Err(error) = parts.try_for_each(|part| stream(&store, part, &mut out)) {
                // Nobody hears it when the reader is gone, which is then the cause as well.
                let _ = send.send(Err(error));
            }
        })?;
    Ok(Box::new(Parts {
        pieces,
        piece: Vec::new(),
        at: 0,
    }))
}

fn stream(store: &Store, part: &ObjectId, out: &mut dyn Write) -> io::Result<()> {
    match store.stream(part, &mut Cache::new(0), out) {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err(io::Error::other(format!(
            "the carrier has lost its object {part}"
        ))),
        Err(error) => Err(io::Error::other(error)),
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
