//! The commands of `rivet`.
//!
//! The library proper neither prints nor parses arguments; this module does both.

pub mod app;
pub mod args;
mod capture;
mod doctor;
mod failure;
mod packages;
mod restore;
mod secrets;
mod setup;
mod show;
mod store;
mod transfer;
mod watch;

use std::ffi::OsString;

use clap::{CommandFactory as _, Parser as _};
use ingot_helper::cli::exit::{Code, Failure};
use ingot_helper::cli::interrupt::Interrupt;
use ingot_helper::cli::report::Report;
use ingot_helper::cli::{documents, usage};

use app::App;
use args::{Cli, Command};

const PROGRAM: &str = "rivet";

/// Runs `rivet` with its arguments, its own name first, and returns how it ends.
pub fn main(args: impl IntoIterator<Item = OsString>) -> Code {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) if !error.use_stderr() => {
            // Help and version were asked for; that they could not be shown is nothing to report.
            let _ = error.print();
            return Code::Done;
        }
        Err(error) => return Failure::usage(usage(&error, PROGRAM)).report(PROGRAM),
    };
    let Cli { global, command } = cli;
    ingot_helper::cli::trace::start(global.trace_json);
    let (json, quiet) = (global.json, global.quiet);
    let result = match App::new(global, Interrupt::watch()) {
        Ok(app) => run(&app, command), // what is left of a progress bar goes with it
        Err(failure) => Err(failure),
    };
    match result {
        Ok(report) => match report.write(json, quiet, std::io::stdout().lock()) {
            Ok(()) => report.code,
            // Everything was done; only nobody is left to hear it.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => report.code,
            Err(error) => Failure::from(error).report(PROGRAM),
        },
        Err(failure) => failure.report(PROGRAM),
    }
}

fn run(app: &App, command: Command) -> Result<Report, Failure> {
    match command {
        Command::Init(args) => setup::init(app, &args),
        Command::Track(args) => setup::track(app, &args),
        Command::Untrack(args) => setup::untrack(app, &args),
        Command::Tracked => setup::tracked(app),
        Command::Snapshot(args) => capture::snapshot(app, &args),
        Command::Status(args) => capture::status(app, &args),
        Command::List(args) => show::list(app, &args),
        Command::Show(args) => show::show(app, &args),
        Command::Diff(args) => show::diff(app, &args),
        Command::Restore(args) => restore::restore(app, args),
        Command::Undo => restore::undo(app),
        Command::Verify(args) => store::verify(app, &args),
        Command::Prune(args) => store::prune(app, &args),
        Command::Packages(args) => packages::packages(app, &args),
        Command::Secrets(args) => secrets::secrets(app, &args),
        Command::Push(args) => transfer::push(app, &args),
        Command::Pull(args) => transfer::pull(app, &args),
        Command::Watch(args) => watch::watch(app, &args),
        Command::Doctor => doctor::doctor(app),
        Command::Completions(args) => Ok(documents::completions_of(Cli::command(), args.shell)),
        Command::Man(args) => documents::man_of(Cli::command(), &args.directory),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_an_example_or_no_arguments() {
        for command in Cli::command().get_subcommands() {
            let has_arguments = command
                .get_arguments()
                .any(|argument| !argument.is_global_set() && argument.get_id() != "help");
            let help = command
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(
                !has_arguments || help.contains("Example"),
                "{}",
                command.get_name()
            );
        }
    }
}
