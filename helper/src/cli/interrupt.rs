//! The user's wish to stop.

use std::sync::atomic::{AtomicBool, Ordering};

use std::sync::{Arc, OnceLock};

use signal_hook::consts::signal::{SIGINT, SIGTERM};

static WATCHED: OnceLock<Interrupt> = OnceLock::new();

/// Set by the first interrupt; shared by everything that runs long.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Watches for interrupt and termination. The first one asks the work to end; the second ends the process at
    /// once. Without support from the system both keep their usual effect.
    pub fn watch() -> Interrupt {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // The order counts: the flag must still be unset when the first signal meets the shutdown.
            let at_once = signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&flag));
            if at_once.is_ok() {
                let _ = signal_hook::flag::register(signal, Arc::clone(&flag));
            }
        }
        let interrupt = Interrupt(flag);
        // Only the first watch of a process is ever asked for from afar.
        let _ = WATCHED.set(interrupt.clone());
        interrupt
    }

    /// What this process watches, for those who are too far from its beginning to be handed it.
    pub fn of_process() -> Option<&'static Interrupt> {
        WATCHED.get()
    }

    /// Whether to stop.
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
