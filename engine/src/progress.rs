//! How long work tells its caller where it stands, and learns that it should stop.
//!
//! The engine never prints. A caller that wants to show progress implements [`Progress`]; one that does not passes
//! [`Silent`]. Calls may come from several threads at once.

/// What the numbers of a phase count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Git objects.
    Objects,
    /// Bytes of the stream that the phase handles.
    Bytes,
    /// Files of a work tree.
    Files,
}

/// Receives the state of long work. Every method has a default that ignores the call.
pub trait Progress: Send + Sync {
    /// A phase starts, replacing the one before it. `total` is given where it is known beforehand.
    fn begin(&self, _phase: &'static str, _total: Option<u64>, _unit: Unit) {}

    /// `amount` more of the current phase is done.
    fn advance(&self, _amount: u64) {}

    /// `bytes` more went through the current phase, which counts something else.
    fn transferred(&self, _bytes: u64) {}

    /// The current phase is complete.
    fn end(&self) {}

    /// True when the user wants the work to end. Long loops ask regularly and give up with their module's
    /// `Interrupted` error, leaving nothing visible behind.
    fn interrupted(&self) -> bool {
        false
    }
}

impl<P: Progress + ?Sized> Progress for std::sync::Arc<P> {
    fn begin(&self, phase: &'static str, total: Option<u64>, unit: Unit) {
        (**self).begin(phase, total, unit);
    }

    fn advance(&self, amount: u64) {
        (**self).advance(amount);
    }

    fn transferred(&self, bytes: u64) {
        (**self).transferred(bytes);
    }

    fn end(&self) {
        (**self).end();
    }

    fn interrupted(&self) -> bool {
        (**self).interrupted()
    }
}

/// Shows nothing and never interrupts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {}
