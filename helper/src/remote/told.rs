//! What the user is told while packs are sealed and opened: the engine's phases in the words of encryption.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ingot_engine::progress::{Progress, Unit};

/// Work on fewer objects than these, within packs that are brought, is over before anybody could read of it.
const NOTEWORTHY: u64 = 10_000;
/// So many bytes of packs at least are one stretch of progress.
const STRETCH: u64 = 4 << 20;

/// A pack on its way out: writing it is encrypting it.
pub(super) struct Sealing<'a>(pub &'a dyn Progress);

impl Progress for Sealing<'_> {
    fn begin(&self, _phase: &'static str, total: Option<u64>, unit: Unit) {
        self.0.begin("Encrypting objects", total, unit);
    }

    fn advance(&self, amount: u64) {
        self.0.advance(amount);
    }

    fn transferred(&self, bytes: u64) {
        self.0.transferred(bytes);
    }

    fn end(&self) {
        self.0.end();
    }

    fn interrupted(&self) -> bool {
        self.0.interrupted()
    }
}

/// Packs on their way in, as bytes of all of them together. What the engine does with each beside reading it is shown where
/// it takes long.
pub(super) struct Opening<'a> {
    progress: &'a dyn Progress,
    phase: &'static str,
    /// Plaintext that is yet to come.
    left: AtomicU64,
    /// The same when it was last said how much that is.
    said: AtomicU64,
    /// The engine's own phase is shown.
    inner: AtomicBool,
}

impl<'a> Opening<'a> {
    /// For packs of `total` bytes of plaintext.
    pub fn new(progress: &'a dyn Progress, phase: &'static str, total: u64) -> Opening<'a> {
        Opening {
            progress,
            phase,
            left: AtomicU64::new(total),
            said: AtomicU64::new(u64::MAX),
            inner: AtomicBool::new(false),
        }
    }

    /// A pack of so many bytes comes next. What it took to bring it here was shown in its place.
    pub fn next(&self, bytes: u64) {
        let left = self.left.load(Ordering::Relaxed);
        let since = self.said.load(Ordering::Relaxed).saturating_sub(left);
        if since >= STRETCH || bytes >= STRETCH {
            self.say(left);
        }
    }

    fn say(&self, left: u64) {
        self.said.store(left, Ordering::Relaxed);
        self.inner.store(false, Ordering::Relaxed);
        self.progress.begin(self.phase, Some(left), Unit::Bytes);
    }

    /// So many bytes were opened.
    pub fn opened(&self, bytes: u64) {
        let left = self.left.load(Ordering::Relaxed).saturating_sub(bytes);
        self.left.store(left, Ordering::Relaxed);
        if !self.inner.load(Ordering::Relaxed) {
            self.progress.advance(bytes);
        }
    }
}

impl Progress for Opening<'_> {
    fn begin(&self, phase: &'static str, total: Option<u64>, unit: Unit) {
        if phase == ingot_engine::pack::index::RECEIVING {
            if self.inner.load(Ordering::Relaxed) {
                self.say(self.left.load(Ordering::Relaxed));
            }
        } else if total.is_some_and(|total| total >= NOTEWORTHY) {
            self.inner.store(true, Ordering::Relaxed);
            self.progress.begin(phase, total, unit);
        }
    }

    fn advance(&self, amount: u64) {
        if self.inner.load(Ordering::Relaxed) {
            self.progress.advance(amount);
        }
    }

    /// The packs are not at their end because one of them is.
    fn end(&self) {}

    fn interrupted(&self) -> bool {
        self.progress.interrupted()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Heard(Mutex<Vec<String>>);

    impl Progress for Heard {
        fn begin(&self, phase: &'static str, total: Option<u64>, unit: Unit) {
            self.0.lock().unwrap().push(format!("{phase} {total:?} {unit:?}"));
        }

        fn advance(&self, amount: u64) {
            self.0.lock().unwrap().push(format!("+{amount}"));
        }
    }

    #[test]
    fn packs_are_one_stretch_that_long_work_interrupts() {
        let heard = Heard::default();
        let opening = Opening::new(&heard, "Decrypting", 300);
        let receiving = ingot_engine::pack::index::RECEIVING;
        for deltas in [5, 20_000, 5] {
            opening.next(100);
            opening.begin(receiving, Some(9), Unit::Objects);
            opening.opened(100);
            // Objects are not what is counted here.
            opening.advance(9);
            opening.begin("Resolving deltas", Some(deltas), Unit::Objects);
            if deltas > NOTEWORTHY {
                opening.advance(deltas);
            }
            opening.end();
        }
        assert_eq!(
            *heard.0.lock().unwrap(),
            [
                "Decrypting Some(300) Bytes",
                "+100",
                "+100",
                "Resolving deltas Some(20000) Objects",
                "+20000",
                "Decrypting Some(100) Bytes",
                "+100"
            ]
        );
    }
}
