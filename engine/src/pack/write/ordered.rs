//! Work that many threads do and one consumer takes in order.

use std::collections::HashMap;
use std::panic::resume_unwind;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crossbeam_channel::{Receiver, unbounded};

use super::Error;

/// Jobs numbered `0..count`, handed out in order while the memory that they take allows it.
///
/// A job is handed out only after all before it, so the one that the consumer waits for always has its memory.
struct Gate<'a> {
    state: Mutex<State>,
    changed: Condvar,
    count: usize,
    budget: u64,
    cost: &'a (dyn Fn(usize) -> u64 + Sync),
}

struct State {
    next: usize,
    used: u64,
    stopped: bool,
}

impl Gate<'_> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next job, as soon as there is room for it.
    fn job(&self) -> Option<usize> {
        let mut state = self.state();
        loop {
            if state.stopped || state.next == self.count {
                return None;
            }
            let cost = (self.cost)(state.next);
            // A job above the budget runs when it is alone.
            if state.used == 0 || state.used.saturating_add(cost) <= self.budget {
                state.used = state.used.saturating_add(cost);
                state.next += 1;
                return Some(state.next - 1);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The consumer is done with a job.
    fn release(&self, job: usize) {
        let cost = (self.cost)(job);
        let mut state = self.state();
        state.used = state.used.saturating_sub(cost);
        self.changed.notify_all();
    }

    fn stop(&self) {
        self.state().stopped = true;
        self.changed.notify_all();
    }
}

/// The results of the jobs, in their order.
pub(super) struct Results<'a, T> {
    gate: &'a Gate<'a>,
    receiver: Receiver<(usize, Result<T, Error>)>,
    early: HashMap<usize, Result<T, Error>>,
    next: usize,
}

impl<T> Results<'_, T> {
    /// Waits for the result of the next job and hands it to `take`. Its memory counts as used until then.
    pub(super) fn take<R>(&mut self, take: impl FnOnce(T) -> Result<R, Error>) -> Result<R, Error> {
        let job = self.next;
        self.next += 1;
        let result = loop {
            if let Some(result) = self.early.remove(&job) {
                break result;
            }
            match self.receiver.recv() {
                Ok((number, result)) => drop(self.early.insert(number, result)),
                // All threads are gone without this result: one of them panicked, which joining it will tell.
                Err(_) => return Err(Error::Interrupted),
            }
        };
        let taken = take(result?);
        self.gate.release(job);
        taken
    }
}

/// Runs `count` jobs on `threads` threads while `consume` takes their results in order.
///
/// `cost` is the memory of a job in bytes, from its start until its result is taken; jobs run at the same time as long
/// as they take no more than `budget` together. Each thread makes itself a state with `start`.
pub(super) fn in_order<S, T: Send, R>(
    count: usize,
    threads: usize,
    budget: u64,
    cost: &(dyn Fn(usize) -> u64 + Sync),
    start: impl Fn() -> S + Sync,
    job: impl Fn(&mut S, usize) -> Result<T, Error> + Sync,
    consume: impl FnOnce(&mut Results<'_, T>) -> Result<R, Error>,
) -> Result<R, Error> {
    let gate = Gate {
        state: Mutex::new(State {
            next: 0,
            used: 0,
            stopped: false,
        }),
        changed: Condvar::new(),
        count,
        budget,
        cost,
    };
    let (sender, receiver) = unbounded();
    thread::scope(|scope| {
        let mut workers = Vec::new();
        for number in 0..threads.min(count).max(1) {
            let sender = sender.clone();
            let (gate, start, job) = (&gate, &start, &job);
            let work = move || {
                let mut state = start();
                while let Some(number) = gate.job() {
                    let result = job(&mut state, number);
                    if result.is_err() {
                        gate.stop();
                    }
                    if sender.send((number, result)).is_err() {
                        break;
                    }
                }
            };
            match thread::Builder::new().spawn_scoped(scope, work) {
                Ok(worker) => workers.push(worker),
                // Fewer threads do it too, none at all does not.
                Err(error) if number == 0 => return Err(Error::Thread(error)),
                Err(_) => break,
            }
        }
        drop(sender);
        let mut results = Results {
            gate: &gate,
            receiver,
            early: HashMap::new(),
            next: 0,
        };
        let result = consume(&mut results);
        gate.stop();
        for worker in workers {
            worker.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
        result
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn results_come_in_order_and_memory_is_bounded() {
        let (used, peak) = (AtomicU64::new(0), AtomicU64::new(0));
        let cost = |job: usize| (job as u64 * 7) % 40;
        in_order(
            500,
            4,
            100,
            &cost,
            || (),
            |(), job| {
                let now = used.fetch_add(cost(job), Ordering::SeqCst) + cost(job);
                peak.fetch_max(now, Ordering::SeqCst);
                Ok(job)
            },
            |results| {
                for expected in 0..500 {
                    results.take(|job| {
                        assert_eq!(job, expected);
                        used.fetch_sub(cost(job), Ordering::SeqCst);
                        Ok(())
                    })?;
                }
                Ok(())
            },
        )
        .expect("no job fails");
        assert!(peak.into_inner() <= 100);
    }

    #[test]
    fn a_failing_job_ends_the_work() {
        let result = in_order(
            1_000,
            3,
            10,
            &|_| 1,
            || (),
            |(), job| match job {
                17 => Err(Error::Interrupted),
                _ => Ok(()),
            },
            |results| (0..1_000).try_for_each(|_| results.take(Ok)),
        );
        assert!(matches!(result, Err(Error::Interrupted)));
    }

    #[test]
    fn a_consumer_that_gives_up_is_not_kept_waiting() {
        let result = in_order(
            1_000,
            2,
            1,
            &|_| 1,
            || (),
            |(), _| Ok(()),
            |_| Err::<(), _>(Error::TooMany(0)),
        );
        assert!(matches!(result, Err(Error::TooMany(0))));
    }
}
