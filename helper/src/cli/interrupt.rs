//! The user's wish to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use signal_hook::consts::signal::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// A signal that comes within this time of the first says the same once more.
const SAME_WISH: Duration = Duration::from_secs(1);
/// The thread that hears signals does next to nothing.
const STACK: usize = 64 << 10;

static WATCHED: OnceLock<Interrupt> = OnceLock::new();

/// Set by the first interrupt; shared by everything that runs long.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Watches for interrupt and termination. The first one asks the work to end; one that comes a second later or more
    /// ends the process at once. What comes sooner is the same wish: Git hands a signal on that the terminal has sent to
    /// everybody already. Without support from the system both keep their usual effect.
    pub fn watch() -> Interrupt {
        let flag = Arc::new(AtomicBool::new(false));
        if let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) {
            let wish = Arc::clone(&flag);
            let heard = std::thread::Builder::new()
                .name("interrupt".into())
                .stack_size(STACK)
                .spawn(move || {
                    let mut first: Option<Instant> = None;
                    for _ in signals.forever() {
                        wish.store(true, Ordering::Relaxed);
                        if first.get_or_insert_with(Instant::now).elapsed() >= SAME_WISH {
                            signal_hook::low_level::exit(130);
                        }
                    }
                });
            if heard.is_err() {
                // Nobody would hear them.
                for signal in [SIGINT, SIGTERM] {
                    let _ = signal_hook::flag::register_conditional_default(
                        signal,
                        Arc::new(AtomicBool::new(true)),
                    );
                }
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
