//! Starting the programs that people configure: ssh, askpass, credential helpers.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use bstr::{BStr, ByteSlice as _};

/// Characters for which Git hands a command to the shell.
const SHELL: &[u8] = b"|&;<>()$`\\\"' \t\n*?[#~=%";

/// A command line of the configuration, to which arguments may be added. As in Git, one without special characters is a
/// program that is started directly, anything else goes to the shell, with the arguments behind it.
pub(super) fn shell(line: &BStr) -> Option<Prepared> {
    let line_os = gix::path::from_bstr(line).ok()?.into_owned().into_os_string();
    Some(if line.find_byteset(SHELL).is_some() {
        Prepared::shell(line_os)
    } else {
        Prepared::direct(line_os)
    })
}

/// A program with arguments still to come.
#[derive(Debug)]
pub(super) struct Prepared {
    program: OsString,
    /// The script that the shell runs in front of the arguments.
    script: Option<OsString>,
    arguments: Vec<OsString>,
}

impl Prepared {
    pub(super) fn direct(program: OsString) -> Prepared {
        Prepared {
            program,
            script: None,
            arguments: Vec::new(),
        }
    }

    pub(super) fn shell(line: OsString) -> Prepared {
        Prepared {
            program: "sh".into(),
            script: Some(line),
            arguments: Vec::new(),
        }
    }

    pub(super) fn arg(&mut self, argument: impl AsRef<OsStr>) -> &mut Prepared {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// The command, with the shell around it where it is wanted.
    pub(super) fn command(self) -> Command {
        let mut command = Command::new(&self.program);
        if let Some(script) = self.script {
            command.arg("-c");
            if self.arguments.is_empty() {
                command.arg(script);
            } else {
                let mut line = script.clone();
                line.push(" \"$@\"");
                // The shell's `$0` is the script, as in Git.
                command.arg(line).arg(script);
            }
        }
        command.args(self.arguments);
        command
    }
}

/// A program by name: on PATH, or where Git keeps its own, which is on PATH only for programs that Git starts.
pub(super) fn find(name: &str) -> Option<PathBuf> {
    let on_path = |name: &str| -> Option<PathBuf> {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path)
            .filter(|folder| !folder.as_os_str().is_empty())
            .find_map(|folder| runnable(&folder, name))
    };
    if let Some(found) = on_path(name) {
        return Some(found);
    }
    if let Some(folder) = std::env::var_os("GIT_EXEC_PATH")
        && let Some(found) = runnable(Path::new(&folder), name)
    {
        return Some(found);
    }
    // Beside an installed Git, which is looked at but not asked.
    let git = on_path("git")?;
    let prefix = git.canonicalize().ok()?.parent()?.parent()?.to_owned();
    ["libexec/git-core", "lib/git-core"]
        .iter()
        .find_map(|folder| runnable(&prefix.join(folder), name))
}

fn runnable(folder: &Path, name: &str) -> Option<PathBuf> {
    let mut names = vec![name.to_owned()];
    if cfg!(windows) {
        names.push(format!("{name}.exe"));
    }
    names
        .into_iter()
        .map(|name| folder.join(name))
        .find(|path| is_program(path))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

#[cfg(test)]
#[cfg(unix)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn output(prepared: Prepared) -> String {
        let output = prepared.command().output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn the_shell_runs_what_needs_it() {
        let mut plain = shell("printf".into()).unwrap();
        plain.arg("%s,").arg("a b").arg("$HOME");
        assert_eq!(output(plain), "a b,$HOME,");
        let mut scripted = shell("printf '<%s>' 1".into()).unwrap();
        scripted.arg("a b").arg("$HOME");
        assert_eq!(output(scripted), "<1><a b><$HOME>");
        assert_eq!(output(shell("echo $((1 + 1))".into()).unwrap()), "2\n");
    }

    #[test]
    fn programs_are_found_by_name() {
        assert!(find("sh").is_some());
        assert!(find("no-such-program-anywhere").is_none());
    }
}
