//! Completion scripts and manual pages, made from the command line's own definition.

use std::path::Path;

use clap::CommandFactory as _;
use ingot_helper::cli::exit::Failure;
use ingot_helper::cli::report::Report;

use super::PROGRAM;
use super::args::{Cli, Completions, Man};

/// The completion script for a shell.
pub fn completions(args: &Completions) -> Result<Report, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), PROGRAM, &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    let json =
        serde_json::json!({"command": "completions", "shell": args.shell.to_string(), "script": script});
    Ok(Report::data(script, json))
}

/// One manual page for the program and one for each command.
pub fn man(args: &Man) -> Result<Report, Failure> {
    let mut written = Vec::new();
    let mut root = Cli::command();
    root.build();
    write_page(&root, PROGRAM, &args.directory, &mut written)?;
    for command in root
        .get_subcommands()
        .filter(|command| command.get_name() != "help")
    {
        let name = format!("{PROGRAM}-{}", command.get_name());
        write_page(command, &name, &args.directory, &mut written)?;
    }
    let text = written
        .iter()
        .fold(String::new(), |text, path| text + path + "\n");
    Ok(Report::done(
        text,
        serde_json::json!({"command": "man", "files": written}),
    ))
}

fn write_page(
    command: &clap::Command,
    name: &str,
    directory: &Path,
    written: &mut Vec<String>,
) -> Result<(), Failure> {
    let path = directory.join(format!("{name}.1"));
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    std::fs::write(&path, page)
        .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))?;
    written.push(path.display().to_string());
    Ok(())
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
