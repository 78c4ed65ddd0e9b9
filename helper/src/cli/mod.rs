//! The commands of `git-e2ee`, and `git-remote-e2ee`.
//!
//! The library proper neither prints nor parses arguments; this module does both, for the two programs.

pub mod app;
pub mod args;
pub mod ask;
pub mod clone;
pub mod devices;
pub mod doctor;
pub mod documents;
pub mod exit;
pub mod fetch;
pub mod follow;
pub mod history;
pub mod incoming;
pub mod interrupt;
pub mod join;
pub mod key;
pub mod keys;
pub mod local_refs;
pub mod ls_remote;
pub mod messages;
pub mod place;
pub mod progress;
pub mod push;
pub mod ref_edits;
pub mod refspec;
pub mod remote_helper;
pub mod report;
pub mod setup;
pub mod status;
pub mod summary;
pub mod trace;
pub mod verify;

use std::ffi::OsString;

use clap::Parser as _;

use app::App;
use args::{Cli, Command};
use exit::{Code, Failure};
use interrupt::Interrupt;
use report::Report;

/// Runs `git-e2ee` with its arguments, its own name first, and returns how it ends.
pub fn main(args: impl IntoIterator<Item = OsString>) -> Code {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) if !error.use_stderr() => {
            // Help and version were asked for; that they could not be shown is nothing to report.
            let _ = error.print();
            return Code::Done;
        }
        Err(error) => return Failure::usage(usage(&error, "git-e2ee")).report("git-e2ee"),
    };
    let Cli { global, command } = cli;
    trace::start(global.trace_json);
    let (json, quiet) = (global.json, global.quiet);
    let app = App::new(global, Interrupt::watch());
    let result = run(&app, command);
    drop(app); // what is left of a progress bar goes before anything is printed
    match result {
        Ok(report) => match report.write(json, quiet, std::io::stdout().lock()) {
            Ok(()) => report.code,
            // Everything was done; only nobody is left to hear it.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => report.code,
            Err(error) => Failure::from(error).report("git-e2ee"),
        },
        Err(failure) => failure.report("git-e2ee"),
    }
}

fn run(app: &App, command: Command) -> Result<Report, Failure> {
    match command {
        Command::Keygen(args) => keys::keygen(app, &args),
        Command::Key(args) => key::run(app, &args.command),
        Command::DeviceExport(args) => keys::device_export(app, &args),
        Command::Init(args) => keys::init(app, &args),
        Command::CarrierInit(args) => keys::carrier_init(app, &args),
        Command::Clone(args) => clone::run(app, &args),
        Command::Push(args) => push::run(app, args),
        Command::Fetch(args) => fetch::run(app, args),
        Command::LsRemote(args) => ls_remote::run(app, args),
        Command::Verify(args) => verify::run(app, &args),
        Command::Status(args) => status::run(app, &args),
        Command::DeviceAdd(args) => devices::add(app, &args),
        Command::DeviceList(args) => devices::list(app, &args),
        Command::DeviceRevoke(args) => devices::revoke(app, &args),
        Command::DeviceRotate(args) => devices::rotate(app, &args),
        Command::DeviceRole(args) => devices::role(app, &args),
        Command::DeviceName(args) => devices::name(app, &args),
        Command::Invite(args) => join::invite(app, &args),
        Command::Join(args) => join::join(app, &args),
        Command::Doctor(args) => doctor::run(app, &args),
        Command::Log(args) => history::log(app, &args),
        Command::Audit(args) => history::audit(app, &args),
        Command::Completions(args) => documents::completions(&args),
        Command::Man(args) => documents::man(&args),
    }
}

/// With `--storage` there is no remote to name, so the first word is one more of the rest.
fn words(
    place: &args::Place,
    target: Option<OsString>,
    mut rest: Vec<OsString>,
) -> (Option<OsString>, Vec<OsString>) {
    match target {
        Some(word) if place.storage.is_some() => {
            rest.insert(0, word);
            (None, rest)
        }
        target => (target, rest),
    }
}

/// What clap has to say about a wrong command line of a program, on one line.
pub fn usage(error: &clap::Error, program: &str) -> String {
    let text = error.render().to_string();
    let mut parts: Vec<String> = Vec::new();
    for paragraph in text.split("\n\n") {
        let paragraph = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        if paragraph.starts_with("Usage:") || paragraph.starts_with("For more information") {
            continue;
        }
        let paragraph = paragraph
            .trim_start_matches("error: ")
            .trim_start_matches("tip: ");
        if !paragraph.is_empty() {
            parts.push(paragraph.to_owned());
        }
    }
    parts.push(format!("see: {program} --help"));
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn usage_errors_are_one_line() {
        for line in [
            "keygen",
            "push --frobnicate",
            "frobnicate",
            "completions tcsh",
            "push --forc",
        ] {
            let error = Cli::try_parse_from(std::iter::once("git-e2ee").chain(line.split(' '))).unwrap_err();
            let text = usage(&error, "git-e2ee");
            assert!(
                !text.contains('\n') && !text.contains("error:") && text.ends_with("--help"),
                "{text}"
            );
        }
        let error = Cli::try_parse_from(["git-e2ee", "keygen"]).unwrap_err();
        assert!(
            usage(&error, "git-e2ee").contains("--output <FILE>"),
            "{}",
            usage(&error, "git-e2ee")
        );
    }

    #[test]
    fn with_a_storage_option_every_word_is_a_refspec() {
        let place = args::Place {
            storage: Some("/s".into()),
            ..Default::default()
        };
        let split = words(&place, Some("main".into()), vec!["topic".into()]);
        assert_eq!(split, (None, vec!["main".into(), "topic".into()]));
        let split = words(&args::Place::default(), Some("e2ee".into()), vec!["topic".into()]);
        assert_eq!(split, (Some("e2ee".into()), vec!["topic".into()]));
    }
}
