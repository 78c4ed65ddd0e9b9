//! What the engine has to say while it works: warnings, which are always shown, and on demand the phases of the work.
//!
//! `INGOT_TRACE=1` prints a line for each phase on standard error when it ends, and so does `GIT_REMOTE_E2EE_TRACE=1`;
//! with a path in place of the 1, lines are appended to that file. `--trace-json` makes them JSON objects.

use std::ffi::OsStr;
use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

use ingot_engine::phase;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::exit;

/// Shows the warnings of the engine from now on, and its phases if the environment or `json` says so. For programs, at
/// their start; a second call changes nothing.
pub fn start(json: bool) {
    let wanted = ["INGOT_TRACE", "GIT_REMOTE_E2EE_TRACE"]
        .iter()
        .filter_map(std::env::var_os)
        .find_map(|value| sink(&value));
    let sink = wanted.or_else(|| json.then_some(Sink::Screen));
    // Whoever set another one before gets the events.
    let _ = tracing::subscriber::set_global_default(Shown { json, sink });
}

/// Where phases are shown.
enum Sink {
    Screen,
    File(Mutex<File>),
}

/// Where a variable's value sends the phases, if anywhere.
fn sink(value: &OsStr) -> Option<Sink> {
    match value.to_str() {
        Some("" | "0" | "false" | "no" | "off") => None,
        Some("1" | "2" | "true" | "yes" | "on") => Some(Sink::Screen),
        _ => match File::options().create(true).append(true).open(value) {
            Ok(file) => Some(Sink::File(Mutex::new(file))),
            Err(error) => {
                let path = value.display();
                exit::warn(&format!(
                    "could not open {path} for what INGOT_TRACE asks for: {error}"
                ));
                None
            }
        },
    }
}

/// Prints what is to be shown.
struct Shown {
    json: bool,
    sink: Option<Sink>,
}

impl Shown {
    fn phase(&self, line: &str) {
        // Work does not fail because nobody hears of it.
        let _ = match &self.sink {
            None => Ok(()),
            Some(Sink::Screen) => writeln!(std::io::stderr(), "{line}"),
            // At once, so that lines of several programs do not mix.
            Some(Sink::File(file)) => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                file.write_all(format!("{line}\n").as_bytes())
            }
        };
    }
}

impl Subscriber for Shown {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let phase = self.sink.is_some() && metadata.target() == phase::TARGET;
        // A question whether anybody listens is neither a span nor an event.
        !metadata.is_span() && (phase || (*metadata.level() <= Level::WARN && ours(metadata)))
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(match self.sink {
            Some(_) => LevelFilter::DEBUG,
            None => LevelFilter::WARN,
        })
    }

    fn event(&self, event: &Event<'_>) {
        let mut said = Said::default();
        event.record(&mut said);
        match event.metadata().target() == phase::TARGET {
            true if self.json => self.phase(&said.json()),
            true => self.phase(&said.text()),
            false => exit::warn(&said.message),
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Other crates have their own ideas of what deserves a warning.
fn ours(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("ingot")
}

/// What an event says.
#[derive(Default)]
struct Said {
    message: String,
    phase: String,
    micros: u64,
    /// Counts under their names.
    counts: Vec<(&'static str, u64)>,
}

impl Said {
    fn text(&self) -> String {
        let mut line = format!("trace: {:<16} {:>10.6} s", self.phase, self.micros as f64 / 1e6);
        for (name, count) in &self.counts {
            let _ = write!(line, "  {count} {name}");
        }
        line
    }

    fn json(&self) -> String {
        let mut object = serde_json::Map::new();
        object.insert("phase".into(), self.phase.as_str().into());
        object.insert("micros".into(), self.micros.into());
        for (name, count) in &self.counts {
            object.insert((*name).into(), (*count).into());
        }
        serde_json::Value::Object(object).to_string()
    }
}

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            let _ = write!(self.message, "{value:?}");
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "phase" {
            value.clone_into(&mut self.phase);
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "micros" => self.micros = value,
            name => self.counts.push((name, value)),
        }
    }
}
