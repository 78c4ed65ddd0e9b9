//! The tools that are measured, each with its own words for the same thing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{failed, make_folder};
use crate::measure::{self, Error};
use crate::workload;

/// A tool that keeps versions of files.
#[derive(Debug, Clone)]
pub(super) enum Tool {
    Git,
    /// `git-chunk`.
    Chunk(PathBuf),
    /// `mkit`.
    Mkit(PathBuf),
}

/// Adds everything and commits it.
pub(super) const COMMIT: &str = "$T add . && $T commit -q -m change";

impl Tool {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Tool::Git => "git",
            Tool::Chunk(_) => "ingot",
            Tool::Mkit(_) => "mkit",
        }
    }

    /// The folder in which it keeps its data.
    pub(super) fn store(&self, repo: &Path) -> PathBuf {
        repo.join(match self {
            Tool::Mkit(_) => ".mkit",
            _ => ".git",
        })
    }

    fn program(&self) -> PathBuf {
        match self {
            Tool::Git => "git".into(),
            Tool::Chunk(binary) | Tool::Mkit(binary) => binary.clone(),
        }
    }

    /// A shell in `repo` where `$T` is the tool. One shell for each row, whichever tool.
    fn shell(&self, repo: &Path, script: &str) -> Command {
        let mut command = workload::git(repo);
        let mut shell = Command::new("sh");
        shell.current_dir(repo).args(["-ec", script]);
        for (key, value) in command.get_envs() {
            if let Some(value) = value {
                shell.env(key, value);
            }
        }
        // Without it, Git's objects would not survive a power cut, and the tools would do different things.
        shell.env("T", self.program()).env("GIT_CONFIG_COUNT", "9");
        shell
            .env("GIT_CONFIG_KEY_8", "core.fsync")
            .env("GIT_CONFIG_VALUE_8", "all");
        command.env_clear();
        shell
    }

    /// Runs a script with nothing waiting for the disk.
    pub(super) fn run(&self, repo: &Path, script: &str) -> Result<measure::Cost, Error> {
        rustix::fs::sync();
        measure::run(&mut self.shell(repo, script))
    }

    /// Makes a repository in `repo`; what the tool needs beside it before it can commit is not measured.
    pub(super) fn init(&self, repo: &Path) -> Result<measure::Cost, Error> {
        make_folder(repo)?;
        let cost = self.run(repo, "$T init >/dev/null")?;
        match self {
            Tool::Git => {}
            Tool::Chunk(_) => drop(self.run(repo, "$T track '*.bin' >/dev/null")?),
            Tool::Mkit(_) => drop(self.run(repo, "$T keygen >/dev/null")?),
        }
        Ok(cost)
    }

    /// Writes a deleted file anew.
    pub(super) fn restore(&self, repo: &Path, file: &str) -> Result<measure::Cost, Error> {
        match self {
            Tool::Mkit(_) => self.run(repo, &format!("$T restore {file} >/dev/null")),
            _ => self.run(repo, &format!("$T checkout -q -- {file}")),
        }
    }

    /// Makes a branch `old` at the first commit and switches to it.
    pub(super) fn go_back(&self, repo: &Path) -> Result<(), Error> {
        match self {
            Tool::Mkit(_) => self.run(
                repo,
                "$T checkout -b old $($T log --oneline | tail -n 1 | cut -d' ' -f1) >/dev/null",
            )?,
            _ => self.run(
                repo,
                "$T checkout -q -b old $($T log --oneline | tail -n 1 | cut -d' ' -f1)",
            )?,
        };
        Ok(())
    }

    /// Switches to the branch with all commits.
    pub(super) fn go_on(&self, repo: &Path) -> Result<measure::Cost, Error> {
        self.run(repo, "$T checkout main >/dev/null 2>&1")
    }
}

/// Whoever is to be measured and where they are; for those that are not there, their names.
pub(super) fn find(chunk: &Path, mkit: Option<PathBuf>) -> (Vec<Tool>, Vec<&'static str>) {
    let mut tools = vec![Tool::Git, Tool::Chunk(chunk.to_owned())];
    match mkit.or_else(|| on_path("mkit")) {
        Some(binary) => {
            tools.push(Tool::Mkit(binary));
            (tools, Vec::new())
        }
        None => (tools, vec!["mkit"]),
    }
}

fn on_path(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(name))
        .find(|file| {
            fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
        })
}

/// Reads everything below a folder, so that it is in the page cache, or takes it out of the cache.
pub(super) fn warm(folder: &Path, warm: bool) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(failed(folder))? {
        let path = entry.map_err(failed(folder))?.path();
        if path.is_dir() {
            self::warm(&path, warm)?;
            continue;
        }
        let mut file = fs::File::open(&path).map_err(failed(&path))?;
        if warm {
            std::io::copy(&mut file, &mut std::io::sink()).map_err(failed(&path))?;
        } else {
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)
                .map_err(|error| failed(&path)(error.into()))?;
        }
    }
    Ok(())
}
