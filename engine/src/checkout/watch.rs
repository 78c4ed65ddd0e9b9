//! Carries gix's counters to the progress of the caller, and the caller's wish to stop to gix.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::progress::Progress;

/// How often is looked.
const INTERVAL: Duration = Duration::from_millis(40);

/// Counts what gix has done.
#[derive(Debug, Default)]
pub(super) struct Counter(Arc<AtomicUsize>);

impl gix::Count for Counter {
    fn set(&self, step: usize) {
        self.0.store(step, Ordering::Relaxed);
    }

    fn step(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn inc_by(&self, step: usize) {
        self.0.fetch_add(step, Ordering::Relaxed);
    }

    fn counter(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.0)
    }
}

/// Runs `work` while another thread reports what `counter` shows, and sets `stop` when the caller interrupts.
pub(super) fn during<T>(
    progress: &dyn Progress,
    counter: &Counter,
    stop: &AtomicBool,
    work: impl FnOnce() -> T,
) -> T {
    let done = AtomicBool::new(false);
    let mut reported = 0;
    std::thread::scope(|scope| {
        let reporter = scope.spawn(|| {
            loop {
                let finished = done.load(Ordering::Acquire);
                let now = gix::Count::step(counter) as u64;
                progress.advance(now.saturating_sub(reported));
                reported = reported.max(now);
                if progress.interrupted() {
                    stop.store(true, Ordering::Relaxed);
                }
                if finished {
                    return;
                }
                std::thread::park_timeout(INTERVAL);
            }
        });
        let _finish = Finish(&done, reporter.thread());
        work()
    })
}

/// Ends the reporter, whatever becomes of the work.
struct Finish<'f>(&'f AtomicBool, &'f std::thread::Thread);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
        self.1.unpark();
    }
}
