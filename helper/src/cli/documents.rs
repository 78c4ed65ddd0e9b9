//! Completion scripts and manual pages, made from the command line's own definition.

use std::ffi::OsString;
use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::args::{Cli, Completions, Man};
use super::exit::{Code, Failure};
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

/// The prefix of `PROGRAM --generate PREFIX`, which those ask who make packages of the programs.
pub fn prefix(args: &[OsString]) -> Option<&Path> {
    match args {
        [_, option, prefix] if option == "--generate" => Some(Path::new(prefix)),
        _ => None,
    }
}

/// `git-remote-e2ee`, which has no command line for people, as its manual page describes it.
pub fn remote_helper() -> clap::Command {
    clap::Command::new("git-remote-e2ee")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Lets Git use remotes whose URL begins with e2ee::")
        .long_about(
            "Git starts this program by itself for URLs that begin with e2ee::, in git clone, git fetch, git push and \
             git ls-remote. It has to be on PATH. To set such a remote up, or to use it without Git, see git-e2ee(1).",
        )
}

/// Writes completions for bash, zsh and fish and the manual pages of a program below a prefix, where the packages of
/// systems have them, and says so or why not.
pub fn generate(root: clap::Command, prefix: &Path) -> Code {
    let name = root.get_name().to_owned();
    match generate_below(root, prefix) {
        Ok(report) => report.code,
        Err(failure) => failure.report(&name),
    }
}

fn generate_below(root: clap::Command, prefix: &Path) -> Result<Report, Failure> {
    let folder = |relative: &str| -> Result<std::path::PathBuf, Failure> {
        let path = prefix.join(relative);
        std::fs::create_dir_all(&path)
            .map_err(|error| Failure::failed(format!("cannot make {}: {error}", path.display())))?;
        Ok(path)
    };
    let name = root.get_name().to_owned();
    // A program without options has nothing to complete.
    if root.get_subcommands().next().is_some() {
        for (shell, relative, file) in [
            (Shell::Bash, "share/bash-completion/completions", name.clone()),
            (Shell::Zsh, "share/zsh/vendor-completions", format!("_{name}")),
            (
                Shell::Fish,
                "share/fish/vendor_completions.d",
                format!("{name}.fish"),
            ),
        ] {
            let path = folder(relative)?.join(file);
            std::fs::write(&path, completions_of(root.clone(), shell).text)
                .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))?;
        }
    }
    man_of(root, &folder("share/man/man1")?)
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
    fn everything_below_a_prefix() {
        let folder = tempfile::tempdir().unwrap();
        let prefix = folder.path().join("usr");
        for command in [Cli::command(), remote_helper()] {
            assert_eq!(generate(command, &prefix), Code::Done);
        }
        let share = prefix.join("share");
        for (file, words) in [
            ("bash-completion/completions/git-e2ee", "git-e2ee"),
            ("zsh/vendor-completions/_git-e2ee", "#compdef git-e2ee"),
            ("fish/vendor_completions.d/git-e2ee.fish", "complete -c git-e2ee"),
            ("man/man1/git-e2ee-push.1", "Examples"),
            ("man/man1/git-remote-e2ee.1", "has to be on PATH"),
        ] {
            let text = std::fs::read_to_string(share.join(file)).unwrap();
            assert!(text.contains(words), "{file}");
        }
        assert!(!share.join("bash-completion/completions/git-remote-e2ee").exists());
        let args = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        assert_eq!(prefix_of(&args(&["p", "--generate", "x"])), Some("x".into()));
        for words in [
            &["p"][..],
            &["p", "--generate"],
            &["p", "push", "--generate"],
            &["p", "--generate", "x", "y"],
        ] {
            assert_eq!(prefix_of(&args(words)), None, "{words:?}");
        }
        // Below a file there is no folder.
        std::fs::write(folder.path().join("file"), "").unwrap();
        assert_eq!(
            generate(remote_helper(), &folder.path().join("file")),
            Code::Failed
        );
    }

    fn prefix_of(args: &[OsString]) -> Option<std::path::PathBuf> {
        prefix(args).map(Path::to_owned)
    }

    /// The command, those in it, and theirs.
    fn commands(command: &clap::Command) -> usize {
        1 + command.get_subcommands().map(commands).sum::<usize>()
    }

    #[test]
    fn a_page_for_every_command() {
        let folder = tempfile::tempdir().unwrap();
        let report = man(&Man {
            directory: folder.path().to_owned(),
        })
        .unwrap();
        let pages = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(pages, commands(&Cli::command()));
        assert_eq!(report.text.lines().count(), pages);
        let page = std::fs::read_to_string(folder.path().join("git-e2ee-push.1")).unwrap();
        assert!(page.contains("force\\-with\\-lease") && page.contains("Examples"));
        let missing = Man {
            directory: folder.path().join("absent"),
        };
        assert!(man(&missing).unwrap_err().message.contains("absent"));
    }
}
