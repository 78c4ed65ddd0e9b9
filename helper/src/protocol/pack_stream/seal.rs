//! Sealing a pack while it is being written.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crossbeam_channel::{Receiver, Sender, bounded};
use sha2::{Digest as _, Sha256};

use super::{
    ContentId, Error, HEADER, MAX_SEGMENTS, PackKey, SEGMENT, SPARE_BUFFERS, SealedPack, Segments, TAG,
    header,
};
use crate::protocol::crypto;

/// Takes a Git pack by [`Write`] and writes the sealed stream to `W`.
///
/// Beyond the first segment, worker threads seal and one more hashes and writes, so `W` moves to that thread.
/// Memory is one segment for each worker and a few more. Dropping it without [`Sealer::finish`] waits for the
/// threads, so that `W` is gone afterwards.
pub struct Sealer<W: Write + Send + 'static> {
    segments: Arc<Segments>,
    buffer: Vec<u8>,
    /// Number of the segment in `buffer`.
    number: u32,
    plaintext_size: u64,
    threads: usize,
    route: Route<W>,
}

enum Route<W> {
    /// Everything in the caller's thread.
    Inline(Output<W>),
    Pipeline(Pipeline<W>),
    /// After an error.
    Closed,
}

/// Where sealed bytes end: hashed and written.
struct Output<W> {
    inner: W,
    hash: Sha256,
    stored_size: u64,
}

impl<W: Write> Output<W> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.inner.write_all(bytes)?;
        self.stored_size += bytes.len() as u64;
        Ok(())
    }
}

struct Segment {
    number: u32,
    last: bool,
    bytes: Vec<u8>,
}

impl<W: Write + Send + 'static> Sealer<W> {
    /// Begins a stream and writes its header. `threads` is the number of sealing threads for packs that need more
    /// than one segment; with 0 or 1 the caller's thread does everything.
    pub fn new(mut inner: W, key: &PackKey, threads: usize) -> io::Result<Self> {
        let header = header(&*crypto::random().map_err(io::Error::other)?);
        inner.write_all(&header)?;
        let hash = Sha256::new_with_prefix(header);
        Ok(Self {
            segments: Arc::new(key.segments(&header)),
            buffer: new_buffer(),
            number: 0,
            plaintext_size: 0,
            threads,
            route: Route::Inline(Output {
                inner,
                hash,
                stored_size: HEADER as u64,
            }),
        })
    }

    /// Seals what is left and completes the stream. Gives back `W`, to which everything has been written.
    pub fn finish(mut self) -> io::Result<(SealedPack, W)> {
        if self.plaintext_size == 0 {
            return Err(Error::Empty.into());
        }
        self.dispatch(true)?;
        let output = match std::mem::replace(&mut self.route, Route::Closed) {
            Route::Inline(output) => output,
            Route::Pipeline(pipeline) => pipeline.join()?,
            Route::Closed => return Err(closed()),
        };
        let id = ContentId::from_bytes(output.hash.finalize().into());
        let (plaintext_size, stored_size) = (self.plaintext_size, output.stored_size);
        Ok((
            SealedPack {
                id,
                plaintext_size,
                stored_size,
            },
            output.inner,
        ))
    }

    /// Sends the buffer on its way and takes an empty one.
    fn dispatch(&mut self, last: bool) -> io::Result<()> {
        if !last && self.threads > 1 && matches!(self.route, Route::Inline(_)) {
            self.start_pipeline()?;
        }
        let result = match &mut self.route {
            Route::Inline(output) => {
                self.segments.seal(self.number, last, &mut self.buffer);
                let written = output.put(&self.buffer);
                self.buffer.clear();
                written
            }
            Route::Pipeline(pipeline) => {
                let bytes = std::mem::take(&mut self.buffer);
                match pipeline.exchange(
                    Segment {
                        number: self.number,
                        last,
                        bytes,
                    },
                    last,
                ) {
                    Some(buffer) => {
                        self.buffer = buffer;
                        Ok(())
                    }
                    None => Err(closed()),
                }
            }
            Route::Closed => return Err(closed()),
        };
        if let Err(error) = result {
            // The writing thread knows better why it stopped.
            return Err(match std::mem::replace(&mut self.route, Route::Closed) {
                Route::Pipeline(pipeline) => pipeline.join().err().unwrap_or(error),
                _ => error,
            });
        }
        if !last {
            self.number += 1;
        }
        Ok(())
    }

    fn start_pipeline(&mut self) -> io::Result<()> {
        if let Route::Inline(output) = std::mem::replace(&mut self.route, Route::Closed) {
            self.route = Route::Pipeline(Pipeline::start(output, &self.segments, self.threads)?);
        }
        Ok(())
    }
}

impl<W: Write + Send + 'static> Write for Sealer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A full segment waits until it is known whether it is the last.
        if self.buffer.len() == SEGMENT && !bytes.is_empty() {
            if u64::from(self.number) + 1 >= MAX_SEGMENTS {
                return Err(Error::TooLarge {
                    size: self.plaintext_size,
                }
                .into());
            }
            self.dispatch(false)?;
        }
        let taken = bytes.len().min(SEGMENT - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..taken]);
        self.plaintext_size += taken as u64;
        Ok(taken)
    }

    /// Does nothing: a segment is only written when it is full.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn new_buffer() -> Vec<u8> {
    Vec::with_capacity(SEGMENT + TAG)
}

fn closed() -> io::Error {
    io::Error::other("pack stream was closed by an earlier error")
}

/// Caller -> workers -> writing thread -> back to the caller. The number of buffers bounds everything.
struct Pipeline<W> {
    /// `None` once no more segments will come.
    jobs: Option<Sender<Segment>>,
    free: Receiver<Vec<u8>>,
    workers: Vec<JoinHandle<()>>,
    /// `None` once it has been waited for.
    writer: Option<JoinHandle<io::Result<Output<W>>>>,
}

impl<W: Write + Send + 'static> Pipeline<W> {
    fn start(output: Output<W>, segments: &Arc<Segments>, threads: usize) -> io::Result<Self> {
        let buffers = threads + SPARE_BUFFERS;
        let (jobs, job_queue) = bounded::<Segment>(buffers);
        let (sealed, sealed_queue) = bounded::<Segment>(buffers);
        let (give_back, free) = bounded(buffers);
        // The caller holds one buffer already.
        for _ in 1..buffers {
            give_back
                .send(Vec::new())
                .expect("the queue has room for all buffers");
        }
        let writer = thread::Builder::new()
            .name("pack-writer".into())
            .spawn(move || write_in_order(output, &sealed_queue, &give_back))?;
        let mut pipeline = Self {
            jobs: Some(jobs),
            free,
            workers: Vec::new(),
            writer: Some(writer),
        };
        let started = (0..threads).try_for_each(|_| {
            let (queue, sealed, segments) = (job_queue.clone(), sealed.clone(), Arc::clone(segments));
            let work = move || {
                for mut segment in queue {
                    segments.seal(segment.number, segment.last, &mut segment.bytes);
                    if sealed.send(segment).is_err() {
                        return;
                    }
                }
            };
            pipeline
                .workers
                .push(thread::Builder::new().name("pack-sealer".into()).spawn(work)?);
            Ok::<_, io::Error>(())
        });
        // The writing thread ends when all these are gone; a pipeline that did not start waits for it.
        drop((job_queue, sealed));
        started.map(|()| pipeline)
    }

    /// Hands over a segment and waits for a buffer to fill, unless it was the last. `None` if the pipeline broke.
    fn exchange(&self, segment: Segment, last: bool) -> Option<Vec<u8>> {
        self.jobs.as_ref()?.send(segment).ok()?;
        if last {
            return Some(Vec::new());
        }
        let buffer = self.free.recv().ok()?;
        // Buffers are made when first needed, so a short pack does not pay for all of them.
        Some(if buffer.capacity() == 0 {
            new_buffer()
        } else {
            buffer
        })
    }
}

impl<W> Pipeline<W> {
    fn join(mut self) -> io::Result<Output<W>> {
        self.wait().unwrap_or_else(|| Err(closed()))
    }

    fn wait(&mut self) -> Option<io::Result<Output<W>>> {
        self.jobs = None;
        let panicked = self
            .workers
            .drain(..)
            .map(JoinHandle::join)
            .filter(Result::is_err)
            .count();
        let output = self.writer.take()?.join();
        Some(match output {
            Ok(output) if panicked == 0 => output,
            _ => Err(io::Error::other("a sealing thread failed")),
        })
    }
}

impl<W> Drop for Pipeline<W> {
    fn drop(&mut self) {
        drop(self.wait());
    }
}

fn write_in_order<W: Write>(
    mut output: Output<W>,
    sealed: &Receiver<Segment>,
    give_back: &Sender<Vec<u8>>,
) -> io::Result<Output<W>> {
    let mut early = BTreeMap::new();
    let mut next = 0u32;
    for segment in sealed {
        early.insert(segment.number, segment.bytes);
        while let Some(mut bytes) = early.remove(&next) {
            output.put(&bytes)?;
            next = next.wrapping_add(1);
            bytes.clear();
            // Nobody waits for buffers when the stream is complete or given up.
            let _ = give_back.send(bytes);
        }
    }
    Ok(output)
}
