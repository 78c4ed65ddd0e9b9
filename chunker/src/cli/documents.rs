//! Completion scripts and manual pages, made from the command line's own definition.

use clap::CommandFactory as _;
use ingot_helper::cli::documents::{completions_of, man_of};
use ingot_helper::cli::exit::Failure;
use ingot_helper::cli::report::Report;

use super::args::{Cli, Completions, Man};

/// The completion script for a shell.
pub fn completions(args: &Completions) -> Result<Report, Failure> {
    Ok(completions_of(Cli::command(), args.shell))
}

/// One manual page for the program and one for each command.
pub fn man(args: &Man) -> Result<Report, Failure> {
    man_of(Cli::command(), &args.directory)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_page_for_every_command() {
        let folder = tempfile::tempdir().unwrap();
        man(&Man {
            directory: folder.path().to_owned(),
        })
        .unwrap();
        let pages = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(pages, Cli::command().get_subcommands().count() + 1);
        let report = completions(&Completions {
            shell: clap_complete::Shell::Bash,
        })
        .unwrap();
        assert!(report.text.contains("filter-process") && report.text.contains("--dry-run"));
    }
}
