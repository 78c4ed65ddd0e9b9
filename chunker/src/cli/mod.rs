//! The commands of `git-chunk`.
//!
//! The library proper neither prints nor parses arguments; this module does both.

pub mod args;
mod care;
mod daily;
mod documents;
mod plumbing;
mod setup;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bstr::{BStr, ByteSlice as _};
use clap::Parser as _;
use ingot_engine::repository::Repository;
use ingot_engine::transport::Messages;
use ingot_helper::cli::exit::{Code, Failure};
use ingot_helper::cli::interrupt::Interrupt;
use ingot_helper::cli::messages::Shown;
use ingot_helper::cli::progress::{Display, Mode};
use ingot_helper::cli::report::Report;

use crate::Error;
use args::{Cli, Command};

const PROGRAM: &str = "git-chunk";

/// One run of the program.
pub(crate) struct App {
    /// Where the user stands.
    pub here: PathBuf,
    /// Shows progress.
    pub display: Display,
}

impl App {
    /// Shows what servers say, and asks for passwords on the terminal.
    pub fn messages(&self) -> Arc<dyn Messages> {
        Arc::new(Shown::default())
    }

    /// The repository around the user.
    pub fn repository(&self, directory: bool) -> Result<Repository, Failure> {
        let found = match directory {
            true => Repository::discover(&self.here),
            false => Repository::from_env(),
        };
        found.map_err(Failure::from)
    }
}

/// Runs `git-chunk` with its arguments, its own name first, and returns how it ends.
pub fn main(args: impl IntoIterator<Item = OsString>) -> Code {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) if !error.use_stderr() => {
            // Help and version were asked for; that they could not be shown is nothing to report.
            let _ = error.print();
            return Code::Done;
        }
        Err(error) => return Failure::usage(usage(&error)).report(PROGRAM),
    };
    let Cli { global, command } = cli;
    ingot_helper::cli::trace::start(global.trace_json);
    let here = match std::env::current_dir() {
        Ok(here) => here,
        Err(error) => return Failure::from(error).report(PROGRAM),
    };
    let mode = Mode::choose(global.progress.then_some(true), global.quiet);
    let app = App {
        here: match &global.directory {
            Some(directory) => here.join(directory),
            None => here,
        },
        display: Display::new(mode, Interrupt::watch()),
    };
    let result = run(&app, global.directory.is_some(), command);
    drop(app); // what is left of a progress bar goes before anything is printed
    let report = match result {
        Ok(report) => report,
        Err(failure) => return failure.report(PROGRAM),
    };
    match report.write(global.json, global.quiet, std::io::stdout().lock()) {
        Ok(()) => report.code,
        // Everything was done; only nobody is left to hear it.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => report.code,
        Err(error) => Failure::from(error).report(PROGRAM),
    }
}

fn run(app: &App, directory: bool, command: Command) -> Result<Report, Failure> {
    let repository = || app.repository(directory);
    match command {
        Command::Install(args) => setup::install(&mut repository()?, &args),
        Command::Track(args) => setup::track(&repository()?, &args),
        Command::Init(args) => setup::init(app, &args),
        Command::Add(args) => daily::add(app, &repository()?, &args),
        Command::Commit(args) => daily::commit(app, &repository()?, &args),
        Command::Checkout(args) => daily::checkout(app, &repository()?, args),
        Command::Switch(args) => daily::switch(app, &repository()?, args),
        Command::Restore(args) => daily::restore(app, &repository()?, &args),
        Command::Status(args) => daily::status(&repository()?, &args),
        Command::Log(args) => daily::log(&repository()?, &args),
        Command::Diff(args) => daily::diff(&repository()?, &args),
        Command::Fetch(args) => care::fetch(app, &repository()?, &args),
        Command::Push(args) => care::push(app, &repository()?, &args),
        Command::Gc(args) => care::gc(app, &repository()?, &args),
        Command::Prune(args) => care::prune(app, &repository()?, &args),
        Command::Fsck(args) => care::fsck(app, &repository()?, &args),
        Command::Stats(args) => care::stats(app, &repository()?, &args),
        Command::Migrate(args) => care::migrate(app, &repository()?, &args),
        Command::FilterProcess => plumbing::filter_process(app, &repository()?),
        Command::Textconv(args) => plumbing::textconv(app, &args),
        Command::MergeDriver(args) => plumbing::merge_driver(&args),
        Command::Completions(args) => documents::completions(&args),
        Command::Man(args) => documents::man(&args),
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let code = match &error {
            Error::Locked { .. } | Error::Busy { .. } => Code::Locked,
            Error::Interrupted
            | Error::Chunked(ingot_engine::chunked::Error::Interrupted)
            | Error::Walk(ingot_engine::walk::Error::Interrupted) => Code::Interrupted,
            error if error.is_damage() => Code::Integrity,
            _ => Code::Failed,
        };
        let next = match code {
            Code::Interrupted => Some("the same command again finishes the job".to_owned()),
            Code::Integrity => Some("see everything that is damaged with: git chunk fsck".to_owned()),
            _ => None,
        };
        Failure {
            code,
            next,
            ..Failure::of(&error)
        }
    }
}

/// What clap has to say, on one line.
fn usage(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let mut parts: Vec<String> = text
        .split("\n\n")
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|paragraph| {
            !paragraph.is_empty()
                && !paragraph.starts_with("Usage:")
                && !paragraph.starts_with("For more information")
        })
        .map(|paragraph| {
            paragraph
                .trim_start_matches("error: ")
                .trim_start_matches("tip: ")
                .to_owned()
        })
        .collect();
    parts.push(format!("see: {PROGRAM} --help"));
    parts.join("; ")
}

/// A path as it is shown to people: quoted as Git does where it holds what would confuse a terminal.
pub(crate) fn shown(path: &BStr) -> String {
    let plain = path
        .bytes()
        .all(|byte| (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\');
    if plain {
        return path.to_string();
    }
    let mut text = String::from("\"");
    for byte in path.bytes() {
        match byte {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            b'\n' => text.push_str("\\n"),
            b'\t' => text.push_str("\\t"),
            0x20..=0x7e => text.push(byte as char),
            byte => text.push_str(&format!("\\{byte:03o}")),
        }
    }
    text.push('"');
    text
}

/// A number of bytes for people.
pub(crate) fn bytes(count: u64) -> String {
    ingot_helper::cli::progress::amount(count, ingot_engine::progress::Unit::Bytes)
}

/// Where a path given on the command line is.
pub(crate) fn from_here(app: &App, path: &Path) -> PathBuf {
    app.here.join(path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn usage_errors_are_one_line() {
        for line in ["add", "frobnicate", "gc --grace x", "checkout -b"] {
            let error = Cli::try_parse_from(std::iter::once(PROGRAM).chain(line.split(' '))).unwrap_err();
            let text = usage(&error);
            assert!(!text.contains('\n') && text.ends_with("--help"), "{text}");
        }
    }

    #[test]
    fn paths_are_quoted_as_git_quotes_them() {
        assert_eq!(shown(b"a/b c".as_bstr()), "a/b c");
        assert_eq!(shown("ä\"\n".into()), "\"\\303\\244\\\"\\n\"");
    }
}
