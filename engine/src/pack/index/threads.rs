//! Shares the work on a stream between threads: the calling one reads it, and works too when the others are behind.

use crossbeam_channel::{Receiver, Sender, TrySendError};

use super::batch::{Batch, Worker};
use super::error::Error;
use super::input::Input;
use super::receive::{self, Received};
use super::work::Work;

/// Batches that wait for a thread. Few, so that bases are seldom in one that another thread has yet to resolve.
const QUEUE: usize = 2;

/// A batch with more bytes is resolved by the reading thread itself, so that large objects do not queue up.
const LARGEST_QUEUED: usize = 4 * 1024 * 1024;

/// Receives a whole pack, resolving on `threads` threads what can be resolved meanwhile.
pub(super) fn run(work: &Work<'_>, threads: usize, input: Input<'_>) -> Result<Received, Error> {
    let received = std::thread::scope(|scope| {
        let mut helpers: Option<(Sender<Batch>, Receiver<Batch>)> = None;
        let mut worker = Worker::new(work);
        let received = receive::receive(input, work, |batch, more| {
            if more && threads > 1 && helpers.is_none() {
                // Only now, because most packs fit into one batch and are done before a thread would have started.
                let (sender, receiver) = crossbeam_channel::bounded(QUEUE.max(threads));
                for _ in 1..threads {
                    let receiver = receiver.clone();
                    scope.spawn(move || work_off(work, &mut Worker::new(work), &receiver));
                }
                helpers = Some((sender, receiver));
            }
            let is_small = batch.bytes <= LARGEST_QUEUED;
            let mut left = Some(batch);
            if let Some((sender, receiver)) = &helpers
                && is_small
            {
                while let Some(batch) = left.take() {
                    if let Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) =
                        sender.try_send(batch)
                    {
                        left = Some(batch);
                        // The others are behind. Taking the oldest batch keeps the order of the stream.
                        if let Ok(oldest) = receiver.try_recv() {
                            worker.resolve(work, oldest)?;
                        }
                    }
                }
            }
            if let Some(batch) = left {
                worker.resolve(work, batch)?;
            }
            match work.stopped() {
                true => Err(Error::Interrupted),
                false => Ok(()),
            }
        });
        if let Some((sender, receiver)) = helpers {
            drop(sender);
            match received {
                Ok(_) => work_off(work, &mut worker, &receiver),
                Err(_) => while receiver.try_recv().is_ok() {},
            }
        } else if received.is_ok()
            && let Err(error) = worker.finish(work)
        {
            work.fail(error);
        }
        received
    });
    // The first failure is the one that counts; it made the others stop.
    work.outcome()?;
    received
}

/// Resolves batches until there are no more.
fn work_off(work: &Work<'_>, worker: &mut Worker<'_>, receiver: &Receiver<Batch>) {
    for batch in receiver {
        if work.stopped() {
            continue;
        }
        if let Err(error) = worker.resolve(work, batch) {
            work.fail(error);
        }
    }
    if !work.stopped()
        && let Err(error) = worker.finish(work)
    {
        work.fail(error);
    }
}
