//! Opening a pack stream while it is being read.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};
use sha2::{Digest as _, Sha256};

use super::{
    ContentId, Error, HEADER, PackKey, SEGMENT, SPARE_BUFFERS, Segments, TAG, is_header, stored_size,
};
use crate::protocol::manifest::PackDescriptor;

/// Gives the Git pack inside a sealed stream by [`Read`] or [`BufRead`].
///
/// Only authenticated bytes come out. The last segment comes out only after the whole stream was hashed and its id
/// found right, with nothing behind it; so a pack of one segment is verified before its first byte is seen. After an
/// error every further read fails too.
///
/// Packs of several segments are read ahead by one thread and decrypted by others. Memory is one segment for each
/// worker and a few more. The threads end by themselves when this value is dropped.
pub struct Opener<R> {
    route: Route<R>,
    current: Vec<u8>,
    position: usize,
    /// Segments handed out so far.
    given: u32,
    segments: u32,
}

enum Route<R> {
    Inline(Input<R>, Segments),
    Pipeline {
        id: ContentId,
        ready: Receiver<Ready>,
        free: Sender<Vec<u8>>,
        early: BTreeMap<u32, io::Result<Vec<u8>>>,
    },
    /// After an error.
    Closed(ContentId),
}

/// A decrypted segment, or why there is none.
struct Ready {
    number: u32,
    content: io::Result<Vec<u8>>,
}

struct Ciphertext {
    number: u32,
    last: bool,
    bytes: Vec<u8>,
}

impl<R: Read + Send + 'static> Opener<R> {
    /// Reads the header and begins. `threads` is the number of decrypting threads for packs of several segments;
    /// with 0 or 1 the caller's thread does everything.
    pub fn new(mut inner: R, key: &PackKey, pack: &PackDescriptor, threads: usize) -> io::Result<Self> {
        let id = pack.id;
        let expected = match stored_size(pack.plaintext_size) {
            Some(size) => size,
            None if pack.plaintext_size == 0 => return Err(Error::Empty.into()),
            None => {
                return Err(Error::TooLarge {
                    size: pack.plaintext_size,
                }
                .into());
            }
        };
        let mut header = [0; HEADER];
        let seen = read_up_to(&mut inner, &mut header)? as u64;
        if seen < HEADER as u64 {
            return Err(Error::Truncated { id, expected, seen }.into());
        }
        if !is_header(&header) {
            return Err(Error::Header { id }.into());
        }
        let segments = pack.plaintext_size.div_ceil(SEGMENT as u64);
        let segments = u32::try_from(segments).map_err(|_| Error::TooLarge {
            size: pack.plaintext_size,
        })?;
        let cipher = key.segments(&header);
        let hash = Sha256::new_with_prefix(header);
        let input = Input {
            inner,
            hash: Some(hash),
            id,
            expected,
            seen,
            number: 0,
            segments,
        };
        let route = if segments > 1 && threads > 1 {
            start_pipeline(input, cipher, threads)?
        } else {
            Route::Inline(input, cipher)
        };
        Ok(Self {
            route,
            current: Vec::new(),
            position: 0,
            given: 0,
            segments,
        })
    }

    fn close(&mut self) {
        if let Route::Inline(Input { id, .. }, _) | Route::Pipeline { id, .. } = &self.route {
            self.route = Route::Closed(*id);
        }
    }

    /// The next segment, decrypted. `None` at the end.
    fn next_segment(&mut self) -> io::Result<Option<Vec<u8>>> {
        let used = std::mem::take(&mut self.current);
        self.position = 0;
        if self.given == self.segments {
            return Ok(None);
        }
        let content = match &mut self.route {
            Route::Inline(input, cipher) => input
                .next(used)
                .and_then(|segment| decrypt(cipher, input.id, segment)),
            Route::Pipeline {
                ready, free, early, ..
            } => {
                if used.capacity() > 0 {
                    // Fails when all has been read already, and the buffer is not needed any more.
                    let _ = free.send(used);
                }
                receive(ready, early, self.given)
            }
            Route::Closed(id) => Err(io::Error::other(format!("reading pack {id} failed before"))),
        };
        if content.is_ok() {
            self.given += 1;
        }
        content.map(Some)
    }
}

impl<R: Read + Send + 'static> BufRead for Opener<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.position == self.current.len() {
            match self.next_segment() {
                Ok(segment) => self.current = segment.unwrap_or_default(),
                Err(error) => {
                    self.close();
                    return Err(error);
                }
            }
        }
        Ok(&self.current[self.position..])
    }

    fn consume(&mut self, amount: usize) {
        self.position = self.position.saturating_add(amount).min(self.current.len());
    }
}

impl<R: Read + Send + 'static> Read for Opener<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        let available = self.fill_buf()?;
        let taken = available.len().min(out.len());
        out[..taken].copy_from_slice(&available[..taken]);
        self.consume(taken);
        Ok(taken)
    }
}

/// The stored bytes, segment by segment.
struct Input<R> {
    inner: R,
    /// `None` once the id has been checked.
    hash: Option<Sha256>,
    id: ContentId,
    /// Bytes that the whole stream must have.
    expected: u64,
    seen: u64,
    number: u32,
    segments: u32,
}

impl<R: Read> Input<R> {
    /// Reads the next sealed segment into `buffer`. With the last one, checks that nothing follows and that the
    /// stream has the id it is known by.
    fn next(&mut self, mut buffer: Vec<u8>) -> io::Result<Ciphertext> {
        let last = self.number + 1 == self.segments;
        let length = if last {
            (self.expected - self.seen) as usize
        } else {
            SEGMENT + TAG
        };
        if buffer.capacity() < length {
            buffer = Vec::with_capacity(length);
        }
        buffer.clear();
        // Reads into spare room, which saves filling it first.
        let read = (&mut self.inner).take(length as u64).read_to_end(&mut buffer)?;
        self.seen += read as u64;
        if read < length {
            let (id, expected, seen) = (self.id, self.expected, self.seen);
            return Err(Error::Truncated { id, expected, seen }.into());
        }
        if let Some(hash) = &mut self.hash {
            hash.update(&buffer);
        }
        if last {
            self.check_end()?;
        }
        let number = self.number;
        self.number += 1;
        Ok(Ciphertext {
            number,
            last,
            bytes: buffer,
        })
    }

    fn check_end(&mut self) -> io::Result<()> {
        if read_up_to(&mut self.inner, &mut [0])? > 0 {
            return Err(Error::TrailingData {
                id: self.id,
                expected: self.expected,
            }
            .into());
        }
        if let Some(hash) = self.hash.take() {
            let seen = ContentId::from_bytes(hash.finalize().into());
            if seen != self.id {
                return Err(Error::IdMismatch {
                    expected: self.id,
                    seen,
                }
                .into());
            }
        }
        Ok(())
    }
}

fn decrypt(cipher: &Segments, id: ContentId, mut segment: Ciphertext) -> io::Result<Vec<u8>> {
    match cipher.open(segment.number, segment.last, &mut segment.bytes) {
        Some(()) => Ok(segment.bytes),
        None => Err(Error::Authentication {
            id,
            segment: segment.number,
        }
        .into()),
    }
}

fn receive(
    ready: &Receiver<Ready>,
    early: &mut BTreeMap<u32, io::Result<Vec<u8>>>,
    number: u32,
) -> io::Result<Vec<u8>> {
    loop {
        if let Some(content) = early.remove(&number) {
            return content;
        }
        let next = ready
            .recv()
            .map_err(|_| io::Error::other("a decrypting thread failed"))?;
        early.insert(next.number, next.content);
    }
}

/// Reading thread -> workers -> caller -> back to the reading thread. The number of buffers bounds everything.
fn start_pipeline<R: Read + Send + 'static>(
    mut input: Input<R>,
    cipher: Segments,
    threads: usize,
) -> io::Result<Route<R>> {
    let threads = threads.min(input.segments as usize);
    let buffers = threads + SPARE_BUFFERS;
    let (jobs, job_queue) = bounded::<Ciphertext>(buffers);
    // One more than there are buffers, for an error needs none.
    let (done, ready) = bounded::<Ready>(buffers + 1);
    let (free, free_queue) = bounded::<Vec<u8>>(buffers);
    for _ in 0..buffers {
        free.send(Vec::new()).expect("the queue has room for all buffers");
    }
    let (id, cipher) = (input.id, Arc::new(cipher));
    for _ in 0..threads {
        let (queue, done, cipher) = (job_queue.clone(), done.clone(), Arc::clone(&cipher));
        thread::Builder::new().name("pack-opener".into()).spawn(move || {
            for segment in queue {
                let number = segment.number;
                if done
                    .send(Ready {
                        number,
                        content: decrypt(&cipher, id, segment),
                    })
                    .is_err()
                {
                    return;
                }
            }
        })?;
    }
    thread::Builder::new().name("pack-reader".into()).spawn(move || {
        for number in 0..input.segments {
            let Ok(buffer) = free_queue.recv() else {
                return;
            };
            match input.next(buffer) {
                Ok(segment) => {
                    if jobs.send(segment).is_err() {
                        return;
                    }
                }
                Err(error) => {
                    let _ = done.send(Ready {
                        number,
                        content: Err(error),
                    });
                    return;
                }
            }
        }
    })?;
    Ok(Route::Pipeline {
        id,
        ready,
        free,
        early: BTreeMap::new(),
    })
}

/// Fills `buffer` as far as the input goes.
fn read_up_to(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
