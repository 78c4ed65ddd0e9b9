//! A stand-in for ssh that runs the command here.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A program called `ssh` that takes OpenSSH's options, and notes what it was started with.
#[derive(Debug)]
pub struct Ssh {
    folder: TempDir,
}

impl Ssh {
    /// Writes it.
    pub fn new() -> Ssh {
        Ssh::with("exec sh -c \"$*\"")
    }

    /// One that does something else with the command in `$*`.
    pub fn with(action: &str) -> Ssh {
        let folder = TempDir::new().unwrap();
        let script = format!(
            r#"#!/bin/sh
{{ echo "protocol=$GIT_PROTOCOL"; echo "dir=$GIT_DIR"; printf 'arg=%s\n' "$@"; }} >>"$0.log"
while :; do
  case $1 in
    -o|-p) shift 2 ;;
    -*) shift ;;
    *) break ;;
  esac
done
shift
{action}
"#
        );
        let path = folder.path().join("ssh");
        write_program(&path, &script);
        Ssh { folder }
    }

    /// The program.
    pub fn program(&self) -> PathBuf {
        self.folder.path().join("ssh")
    }

    /// What it was started with, a line for each argument.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("ssh.log")).unwrap_or_default()
    }
}

impl Default for Ssh {
    fn default() -> Ssh {
        Ssh::new()
    }
}

/// Writes a script that can be run.
pub fn write_program(path: &Path, text: &str) {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut file = fs::OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o755)
        .open(path)
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
}
