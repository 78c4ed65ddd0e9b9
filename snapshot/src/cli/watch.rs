//! `watch`: a snapshot whenever something tracked changes.

use std::io::Write as _;
use std::time::Duration;

use ingot_engine::progress::Progress as _;
use ingot_helper::cli::exit::{Code, Failure, warn};
use ingot_helper::cli::report::Report;
use serde_json::json;

use super::app::App;
use super::args::Watch;
use crate::capture;
use crate::watch::{Event, Timing, Watcher};

/// Captures until it is interrupted, which is how it ends when all is well.
pub fn watch(app: &App, args: &Watch) -> Result<Report, Failure> {
    let seconds = |value: f64, name: &str| {
        Duration::try_from_secs_f64(value)
            .ok()
            .filter(|duration| !duration.is_zero())
            .ok_or_else(|| Failure::usage(format!("--{name} must be a number of seconds above 0")))
    };
    let timing = Timing {
        debounce: seconds(args.debounce, "debounce")?,
        interval: seconds(args.interval, "interval")?,
    };
    let mut watcher = Watcher::new();
    let mut made = 0u64;
    let mut first = true;
    while !app.display.interrupted() {
        // The configuration may change meanwhile.
        let setup = app.setup()?;
        let root = setup.root()?;
        let source = setup.source(&root);
        // What changes from here on is noticed, also while the capture runs.
        watcher.look_at(&root, &capture::look(&source, &app.display)?);
        match super::capture::once(app, &setup, None, false) {
            Ok(report) => {
                let changed = !report.json["snapshot"].is_null();
                made += u64::from(changed);
                if first || changed || report.code != Code::Done {
                    tell(app, &report)?;
                }
            }
            Err(failure) if failure.code == Code::Interrupted => break,
            // The next change is another chance.
            Err(failure) if failure.code == Code::Locked => warn(&failure.to_string()),
            Err(failure) => return Err(failure),
        }
        first = false;
        let interrupted = || app.display.interrupted();
        if watcher.wait(&timing, &source, &interrupted) == Event::Interrupted {
            break;
        }
    }
    let text = format!("Watched; {made} snapshots made\n");
    Ok(Report::done(text, json!({"command": "watch", "snapshots": made})))
}

/// Says what happened at once: this command does not end by itself. One JSON object a line where JSON is wanted.
fn tell(app: &App, report: &Report) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    report.write(app.global.json, app.global.quiet, &mut out)?;
    out.flush()?;
    Ok(())
}
