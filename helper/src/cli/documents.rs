//! Completion scripts and manual pages, made from the command line's own definition.

use std::path::Path;

use clap::CommandFactory as _;

use super::args::{Cli, Completions, Man};
use super::exit::Failure;
use super::report::Report;

/// The completion script of `git-e2ee` for a shell.
pub fn completions(args: &Completions) -> Result<Report, Failure> {
    Ok(completions_of(Cli::command(), args.shell))
}

/// One manual page for `git-e2ee` and one for each of its commands.
pub fn man(args: &Man) -> Result<Report, Failure> {
    man_of(Cli::command(), &args.directory)
}

/// The completion script of a program for a shell.
pub fn completions_of(mut command: clap::Command, shell: clap_complete::Shell) -> Report {
    let mut script = Vec::new();
    let name = command.get_name().to_owned();
    clap_complete::generate(shell, &mut command, name, &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    let json = serde_json::json!({"command": "completions", "shell": shell.to_string(), "script": script});
    Report::data(script, json)
}

/// One manual page for a program and one for each of its commands, and theirs.
pub fn man_of(mut root: clap::Command, directory: &Path) -> Result<Report, Failure> {
    let mut written = Vec::new();
    root.build();
    let name = root.get_name().to_owned();
    write_pages(&root, &name, directory, &mut written)?;
    let text = written
        .iter()
        .fold(String::new(), |text, path| text + path + "\n");
    Ok(Report::done(
        text,
        serde_json::json!({"command": "man", "files": written}),
    ))
}

fn write_pages(
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
    let inner = command
        .get_subcommands()
        .filter(|inner| inner.get_name() != "help");
    for inner in inner {
        write_pages(inner, &format!("{name}-{}", inner.get_name()), directory, written)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn every_shell_completes_every_command() {
        for shell in [
            clap_complete::Shell::Bash,
            clap_complete::Shell::Zsh,
            clap_complete::Shell::Fish,
        ] {
            let report = completions(&Completions { shell }).unwrap();
            for command in ["keygen", "ls-remote", "verify", "--force-with-lease"] {
                let word = if shell == clap_complete::Shell::Fish {
                    command.trim_start_matches('-')
                } else {
                    command
                };
                assert!(report.text.contains(word), "{shell}: {command}");
            }
        }
    }

    #[test]
    fn a_page_for_every_command() {
        let folder = tempfile::tempdir().unwrap();
        let report = man(&Man {
            directory: folder.path().to_owned(),
        })
        .unwrap();
        let pages = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(pages, Cli::command().get_subcommands().count() + 1);
        assert_eq!(report.text.lines().count(), pages);
        let page = std::fs::read_to_string(folder.path().join("git-e2ee-push.1")).unwrap();
        assert!(page.contains("force\\-with\\-lease") && page.contains("Examples"));
        let missing = Man {
            directory: folder.path().join("absent"),
        };
        assert!(man(&missing).unwrap_err().message.contains("absent"));
    }
}
