//! Where time goes: the phases of long work, as [`tracing`] events of level DEBUG.
//!
//! A phase tells once, when it ends, how long it took and how much passed through it. Nothing is measured while nobody
//! listens. Names of phases are all the text there is: never a path, a reference or a key.

use std::time::Instant;

/// The target of the events. Their fields: `phase`, `micros`, and where they are known `objects` and `bytes`.
pub const TARGET: &str = "ingot::phase";

/// A phase under way; it ends when this is dropped. Phases may lie within each other and beside each other.
#[derive(Debug)]
#[must_use = "a phase ends when this is dropped"]
pub struct Phase {
    name: &'static str,
    begun: Option<Instant>,
    objects: Option<u64>,
    bytes: Option<u64>,
}

impl Phase {
    /// Begins a phase.
    pub fn begin(name: &'static str) -> Phase {
        let listened = tracing::enabled!(target: "ingot::phase", tracing::Level::DEBUG);
        Phase {
            name,
            begun: listened.then(Instant::now),
            objects: None,
            bytes: None,
        }
    }

    /// How many objects, files or chunks it dealt with.
    pub fn objects(&mut self, count: u64) {
        self.objects = Some(count);
    }

    /// How many bytes passed through it.
    pub fn bytes(&mut self, count: u64) {
        self.bytes = Some(count);
    }
}

impl Drop for Phase {
    fn drop(&mut self) {
        if let Some(begun) = self.begun {
            let micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
            tracing::debug!(
                target: "ingot::phase",
                phase = self.name,
                micros,
                objects = self.objects,
                bytes = self.bytes
            );
        }
    }
}
