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

    /// The current phase is complete.
    fn end(&self) {}

    /// True when the user wants the work to end. Long loops ask regularly and give up with their module's
    /// `Interrupted` error, leaving nothing visible behind.
    fn interrupted(&self) -> bool {
        false
    }
}

/// Shows nothing and never interrupts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {}
