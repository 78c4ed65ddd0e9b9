//! The same work on several threads.

use std::panic::resume_unwind;
use std::thread;

use super::Error;

/// Runs `work` on `count` threads, the calling one among them, and returns what each made, or the first error.
pub(super) fn on_all<T: Send>(
    count: usize,
    work: impl Fn() -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    thread::scope(|scope| {
        let mut others = Vec::with_capacity(count.saturating_sub(1));
        for _ in 1..count {
            // With fewer threads than wished the work gets done too.
            let Ok(handle) = thread::Builder::new().spawn_scoped(scope, &work) else {
                break;
            };
            others.push(handle);
        }
        let mut results = vec![work()];
        for other in others {
            results.push(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        // A thread that stopped because another one failed says that it was interrupted: the cause comes first.
        if let Some(at) = results
            .iter()
            .position(|result| matches!(result, Err(error) if !matches!(error, Error::Interrupted)))
        {
            return Err(results
                .swap_remove(at)
                .err()
                .expect("the position is that of an error"));
        }
        results.into_iter().collect()
    })
}
