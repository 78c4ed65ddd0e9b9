//! Shares the work on a stream between threads: the calling one reads it, and works too when the others are behind.

use crossbeam_channel::{Receiver, Sender, TrySendError};

use super::batch::{self, Batch};
use super::error::Error;
use super::examine::Examiner;
use super::input::Input;
use super::receive::{self, Received};
use super::work::Work;

/// Batches under way to each thread.
const QUEUE: usize = 2;

/// Receives a whole pack, resolving on `threads` threads what can be resolved meanwhile.
pub(super) fn run(work: &Work<'_>, threads: usize, input: Input<'_>) -> Result<Received, Error> {
    let received = std::thread::scope(|scope| {
        let mut helpers: Option<(Sender<Batch>, Receiver<Batch>)> = None;
        let mut examiner = work.examiner();
        let received = receive::receive(input, work, |batch, more| {
            if more && threads > 1 && helpers.is_none() {
                // Only now, because most packs fit into one batch and are done before a thread would have started.
                let (sender, receiver) = crossbeam_channel::bounded(QUEUE * threads);
                for _ in 1..threads {
                    let receiver = receiver.clone();
                    scope.spawn(move || help(work, &receiver));
                }
                helpers = Some((sender, receiver));
            }
            let left = match &helpers {
                Some((sender, _)) => match sender.try_send(batch) {
                    Ok(()) => None,
                    Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) => Some(batch),
                },
                None => Some(batch),
            };
            if let Some(batch) = left {
                batch::resolve(work, &mut examiner, batch)?;
            }
            match work.stopped() {
                true => Err(Error::Interrupted),
                false => Ok(()),
            }
        });
        if received.is_ok()
            && let Some((sender, receiver)) = helpers
        {
            drop(sender);
            work_off(work, &mut examiner, &receiver);
        }
        received
    });
    // The first failure is the one that counts; it made the others stop.
    work.outcome()?;
    received
}

fn help(work: &Work<'_>, receiver: &Receiver<Batch>) {
    work_off(work, &mut work.examiner(), receiver);
}

/// Resolves batches until there are no more.
fn work_off(work: &Work<'_>, examiner: &mut Examiner<'_>, receiver: &Receiver<Batch>) {
    for batch in receiver {
        if work.stopped() {
            continue;
        }
        if let Err(error) = batch::resolve(work, examiner, batch) {
            work.fail(error);
        }
    }
}
