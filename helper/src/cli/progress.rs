//! Progress on standard error: a bar on a terminal, a line per finished phase where the user insists.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use ingot_engine::progress::{Progress, Unit};

use super::interrupt::Interrupt;

/// Work that ends before this shows nothing, unless `GIT_PROGRESS_DELAY` has another number of seconds.
const DELAY: Duration = Duration::from_millis(700);
/// Time between two drawings: 15 a second.
const PERIOD: Duration = Duration::from_millis(67);

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Not at all.
    Off,
    /// A bar that is redrawn, and gone at the end.
    Bar,
    /// One line for each phase, when it ends.
    Lines,
}

impl Mode {
    /// `wanted` is `Some` where the user, or Git for them, has decided; otherwise a terminal decides. Quiet outranks
    /// both.
    pub fn choose(wanted: Option<bool>, quiet: bool) -> Mode {
        Mode::decide(wanted, quiet, std::io::stderr().is_terminal())
    }

    fn decide(wanted: Option<bool>, quiet: bool, terminal: bool) -> Mode {
        match (quiet, wanted, terminal) {
            (true, _, _) | (_, Some(false), _) | (_, None, false) => Mode::Off,
            (_, _, true) => Mode::Bar,
            (_, Some(true), false) => Mode::Lines,
        }
    }
}

/// Shows the progress of one command.
#[derive(Debug)]
pub struct Display {
    mode: Mutex<Mode>,
    interrupt: Interrupt,
    started: Instant,
    /// Milliseconds after `started` before which nothing is drawn.
    delay: u64,
    done: AtomicU64,
    /// Bytes that went through a phase which counts something else.
    bytes: AtomicU64,
    /// Milliseconds after `started` before which nothing is drawn; far away while nothing may be.
    next_draw: AtomicU64,
    phase: Mutex<Option<Phase>>,
}

#[derive(Debug)]
struct Phase {
    name: &'static str,
    total: Option<u64>,
    unit: Unit,
    begun: Instant,
    bar: Option<ProgressBar>,
}

impl Display {
    /// Nothing is shown before the first phase has lasted a moment.
    pub fn new(mode: Mode, interrupt: Interrupt) -> Display {
        Display {
            mode: Mutex::new(mode),
            interrupt,
            started: Instant::now(),
            delay: delay(std::env::var("GIT_PROGRESS_DELAY").ok().as_deref()),
            done: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            next_draw: AtomicU64::new(u64::MAX),
            phase: Mutex::new(None),
        }
    }

    /// Changes how the following phases are shown: Git tells only in the middle of a conversation.
    pub fn set_mode(&self, mode: Mode) {
        *lock(&self.mode) = mode;
    }

    fn elapsed(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn close(&self, phase: Option<Phase>) {
        self.next_draw.store(u64::MAX, Ordering::Relaxed);
        let Some(phase) = phase else { return };
        if let Some(bar) = &phase.bar {
            bar.finish_and_clear();
        }
        if *lock(&self.mode) == Mode::Lines {
            let done = amount(self.done.load(Ordering::Relaxed), phase.unit);
            let through = match self.bytes.load(Ordering::Relaxed) {
                0 => String::new(),
                bytes => format!(", {}", HumanBytes(bytes)),
            };
            // Nobody is to fail because progress could not be told.
            let _ = writeln!(std::io::stderr(), "{}: {done}{through}", phase.name);
        }
    }

    fn draw_if_due(&self, done: u64) {
        let next = self.next_draw.load(Ordering::Relaxed);
        if next != u64::MAX && self.elapsed() >= next {
            self.draw(done);
        }
    }

    fn draw(&self, done: u64) {
        // Whoever holds it draws, or changes the phase.
        let Ok(mut guard) = self.phase.try_lock() else {
            return;
        };
        let Some(phase) = guard.as_mut() else { return };
        let bar = phase
            .bar
            .get_or_insert_with(|| new_bar(phase.name, phase.total, phase.unit));
        let bytes = self.bytes.load(Ordering::Relaxed);
        if bytes > 0 && phase.unit != Unit::Bytes {
            let rate = bytes as f64 / phase.begun.elapsed().as_secs_f64().max(0.001);
            bar.set_prefix(format!("{} {}/s", HumanBytes(bytes), HumanBytes(rate as u64)));
        }
        bar.set_position(done);
        let next = self.elapsed().saturating_add(PERIOD.as_millis() as u64);
        self.next_draw.store(next, Ordering::Relaxed);
    }
}

impl Progress for Display {
    fn begin(&self, name: &'static str, total: Option<u64>, unit: Unit) {
        let mut guard = lock(&self.phase);
        self.close(guard.take());
        self.done.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
        let mode = *lock(&self.mode);
        if mode == Mode::Off {
            return;
        }
        *guard = Some(Phase {
            name,
            total,
            unit,
            begun: Instant::now(),
            bar: None,
        });
        if mode == Mode::Bar {
            let earliest = self.elapsed().max(self.delay);
            self.next_draw.store(earliest, Ordering::Relaxed);
        }
    }

    fn advance(&self, amount: u64) {
        let done = self
            .done
            .fetch_add(amount, Ordering::Relaxed)
            .saturating_add(amount);
        self.draw_if_due(done);
    }

    fn transferred(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.draw_if_due(self.done.load(Ordering::Relaxed));
    }

    fn end(&self) {
        let mut guard = lock(&self.phase);
        self.close(guard.take());
    }

    fn interrupted(&self) -> bool {
        self.interrupt.requested()
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        if let Some(bar) = lock(&self.phase).take().and_then(|phase| phase.bar) {
            bar.finish_and_clear();
        }
    }
}

/// Progress is only shown: a panic elsewhere is no reason for another one here.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Milliseconds of the delay that the user wants, in seconds as Git has it.
fn delay(wanted: Option<&str>) -> u64 {
    let wanted = wanted.and_then(|text| text.trim().parse::<u64>().ok());
    wanted.map_or(DELAY.as_millis() as u64, |seconds| seconds.saturating_mul(1000))
}

fn new_bar(name: &'static str, total: Option<u64>, unit: Unit) -> ProgressBar {
    let template = match (unit, total.is_some()) {
        (Unit::Bytes, true) => "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec}",
        (Unit::Bytes, false) => "{msg} {bytes} {bytes_per_sec}",
        (_, true) => "{msg} {wide_bar} {human_pos}/{human_len} {prefix}",
        (_, false) => "{msg} {human_pos} {prefix}",
    };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let target = ProgressDrawTarget::stderr_with_hz(15);
    ProgressBar::with_draw_target(total, target)
        .with_style(style)
        .with_message(name)
}

/// An amount as people read it.
pub fn amount(amount: u64, unit: Unit) -> String {
    match unit {
        Unit::Bytes => HumanBytes(amount).to_string(),
        Unit::Objects => format!("{} objects", HumanCount(amount)),
        Unit::Files => format!("{} files", HumanCount(amount)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_decides_about_progress() {
        for (wanted, quiet, terminal, mode) in [
            (None, false, true, Mode::Bar),
            (None, false, false, Mode::Off),
            (Some(true), false, true, Mode::Bar),
            (Some(true), false, false, Mode::Lines),
            (Some(false), false, true, Mode::Off),
            (Some(true), true, true, Mode::Off),
            (None, true, true, Mode::Off),
        ] {
            assert_eq!(
                Mode::decide(wanted, quiet, terminal),
                mode,
                "{wanted:?} {quiet} {terminal}"
            );
        }
    }

    #[test]
    fn the_delay_is_gits() {
        for (wanted, milliseconds) in [(None, 700), (Some("0"), 0), (Some("3"), 3000), (Some("x"), 700)] {
            assert_eq!(delay(wanted), milliseconds);
        }
    }

    #[test]
    fn threads_may_report_at_once_and_phases_may_nest_badly() {
        for mode in [Mode::Off, Mode::Bar] {
            let display = Display::new(mode, Interrupt::default());
            display.end();
            display.advance(1);
            display.begin("first", Some(10), Unit::Objects);
            display.begin("second", None, Unit::Bytes);
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| (0..1000).for_each(|_| display.advance(1)));
                }
            });
            assert_eq!(display.done.load(Ordering::Relaxed), 4000);
            display.end();
            display.end();
        }
    }

    #[test]
    fn short_work_draws_nothing() {
        let mut display = Display::new(Mode::Bar, Interrupt::default());
        display.delay = 60_000;
        display.begin("short", Some(2), Unit::Files);
        display.advance(2);
        assert!(
            lock(&display.phase)
                .as_ref()
                .is_some_and(|phase| phase.bar.is_none())
        );
    }
}
