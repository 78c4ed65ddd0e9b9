//! Rows of the encrypted remote: first push, fresh fetch, one-line push and fetch, beside plain Git and, where it is
//! installed, another pair of `git-e2ee` and `git-remote-e2ee`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::halves::By;
use crate::measure::{self, Error};
use crate::report::Report;
use crate::workload::{self, Shape};

/// A tool that can keep a repository at a remote.
#[derive(Debug, Clone)]
pub enum Tool {
    /// Plain Git and a bare repository.
    Plain,
    /// A folder that holds `git-e2ee` and `git-remote-e2ee`, under a name, and where they store.
    Encrypted(String, PathBuf, Storage),
}

/// What kind of place the ciphertext goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// A folder of files.
    Directory,
    /// A branch of a bare repository.
    Carrier,
}

impl Tool {
    fn name(&self) -> &str {
        match self {
            Tool::Plain => "git",
            Tool::Encrypted(name, ..) => name,
        }
    }
}

/// One tool with its remote, its source and a second repository that follows.
struct Scene<'a> {
    tool: &'a Tool,
    source: PathBuf,
    follower: PathBuf,
    remote: PathBuf,
    key: PathBuf,
}

impl<'a> Scene<'a> {
    fn set(tool: &'a Tool, origin: &Path, room: &Path) -> Result<Scene<'a>, Error> {
        let room = room.join(tool.name());
        fs::create_dir(&room).map_err(|source| Error::Start {
            program: room.display().to_string(),
            source,
        })?;
        let scene = Scene {
            tool,
            source: workload::borrowing_clone(origin, room.join("source"))?,
            follower: room.join("follower"),
            remote: room.join("remote"),
            key: room.join("key.json"),
        };
        workload::quietly(&room, &["init", "-q", "follower"])?;
        match tool {
            Tool::Plain => {
                workload::quietly(&room, &["init", "-q", "--bare", "remote"])?;
            }
            Tool::Encrypted(_, folder, storage) => {
                let binary = folder.join("git-e2ee");
                measure::run(
                    Command::new(&binary)
                        .arg("keygen")
                        .arg("--output")
                        .arg(&scene.key),
                )?;
                let mut init = Command::new(&binary);
                match storage {
                    Storage::Directory => init.arg("init").arg("--storage").arg(&scene.remote),
                    Storage::Carrier => {
                        workload::quietly(&room, &["init", "-q", "--bare", "remote"])?;
                        let url = format!("git+file://{}", scene.remote.display());
                        init.arg("carrier-init").arg("--remote").arg(url)
                    }
                };
                measure::run(init.arg("--key").arg(&scene.key))?;
            }
        }
        let url = scene.url();
        for repo in [&scene.source, &scene.follower] {
            workload::quietly(repo, &["remote", "add", "store", &url])?;
            workload::quietly(
                repo,
                &["config", "remote.store.e2ee-key", &scene.key.to_string_lossy()],
            )?;
        }
        Ok(scene)
    }

    fn url(&self) -> String {
        match self.tool {
            Tool::Plain => format!("file://{}", self.remote.display()),
            Tool::Encrypted(_, _, Storage::Directory) => format!("e2ee::{}", self.remote.display()),
            Tool::Encrypted(_, _, Storage::Carrier) => {
                format!("e2ee::git+file://{}", self.remote.display())
            }
        }
    }

    /// Git in `repo`, able to find the tool's helper.
    fn git(&self, repo: &Path, args: &[&str]) -> Command {
        let mut command = workload::git(repo);
        if let Tool::Encrypted(_, folder, _) = self.tool {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let mut folders = vec![folder.clone()];
            folders.extend(std::env::split_paths(&path));
            command.env("PATH", std::env::join_paths(folders).unwrap_or(path));
        }
        command.args(args);
        command
    }
}

/// Measures all rows `rounds` times on the repository `origin`, with `tiny` one-line pushes and fetches in each.
pub fn run(
    tools: &[Tool],
    origin: &Path,
    rounds: usize,
    tiny: usize,
    report: &mut Report,
) -> Result<(), Error> {
    for round in 0..rounds {
        let room = TempDir::new().map_err(|source| Error::Start {
            program: "a temporary folder".into(),
            source,
        })?;
        let scenes = tools
            .iter()
            .map(|tool| Scene::set(tool, origin, room.path()))
            .collect::<Result<Vec<_>, _>>()?;
        for scene in &scenes {
            settle();
            let cost = measure::run(&mut scene.git(&scene.source, &["push", "-q", "store", "main"]))?;
            report.add("first push", scene.tool.name(), cost);
        }
        for scene in &scenes {
            settle();
            let cost = measure::run(&mut scene.git(&scene.follower, &["fetch", "-q", "store"]))?;
            report.add("fresh fetch", scene.tool.name(), cost);
            let (ours, theirs) = ("refs/remotes/store/main", "refs/heads/main");
            let got = workload::text(&scene.follower, &["rev-parse", ours])?;
            assert_eq!(
                got,
                workload::text(&scene.source, &["rev-parse", theirs])?,
                "{} lost data",
                scene.tool.name()
            );
        }
        for scene in &scenes {
            report.size(
                "remote after the first push",
                scene.tool.name(),
                workload::bytes_in(&scene.remote)?,
            );
            report.size(
                "client after the fresh fetch",
                scene.tool.name(),
                workload::bytes_in(&scene.follower)?,
            );
        }
        let before: Vec<u64> = scenes
            .iter()
            .map(|scene| workload::bytes_in(&scene.remote))
            .collect::<Result<_, _>>()?;
        for step in 0..tiny {
            for scene in &scenes {
                workload::one_line_commit(&scene.source, &format!("{round}-{step}"))?;
            }
            for scene in &scenes {
                let cost = measure::run(&mut scene.git(&scene.source, &["push", "-q", "store", "main"]))?;
                report.add("one-line push", scene.tool.name(), cost);
            }
            for scene in &scenes {
                let cost = measure::run(&mut scene.git(&scene.follower, &["fetch", "-q", "store"]))?;
                report.add("one-line fetch", scene.tool.name(), cost);
            }
        }
        for (scene, before) in scenes.iter().zip(before) {
            let grown = workload::bytes_in(&scene.remote)?.saturating_sub(before);
            report.size(
                "remote per one-line push",
                scene.tool.name(),
                grown / tiny.max(1) as u64,
            );
        }
        for scene in &scenes {
            after_a_clone(scene, round, report)?;
        }
        for (row, shape) in [
            ("10 MiB file push", Shape::Large),
            ("1,000 files push", Shape::Many),
        ] {
            for scene in &scenes {
                workload::files_commit(&scene.source, shape, round as u64)?;
            }
            for scene in &scenes {
                settle();
                let cost = measure::run(&mut scene.git(&scene.source, &["push", "-q", "store", "main"]))?;
                report.add(row, scene.tool.name(), cost);
            }
        }
    }
    Ok(())
}

/// Clones anew, and pushes twice from the clone.
fn after_a_clone(scene: &Scene<'_>, round: usize, report: &mut Report) -> Result<(), Error> {
    let clone = scene.remote.with_file_name("clone");
    let key = format!("remote.origin.e2ee-key={}", scene.key.display());
    let url = scene.url();
    let place = clone.to_string_lossy().into_owned();
    settle();
    let folder = clone.parent().unwrap_or(&clone);
    let args = ["clone", "-q", "--no-checkout", "-c", &key, &url, &place];
    let cost = measure::run(&mut scene.git(folder, &args))?;
    report.add("fresh clone", scene.tool.name(), cost);
    for (step, row) in ["first push after a clone", "the next push"]
        .into_iter()
        .enumerate()
    {
        workload::one_line_commit(&clone, &format!("clone-{round}-{step}"))?;
        settle();
        let cost = measure::run(&mut scene.git(&clone, &["push", "-q", "origin", "main"]))?;
        report.add(row, scene.tool.name(), cost);
    }
    // The next rows push from the source, which has to know what was pushed here.
    workload::quietly_as(scene.git(&scene.source, &["fetch", "-q", "store"]))?;
    workload::quietly(
        &scene.source,
        &["update-ref", "refs/heads/main", "refs/remotes/store/main"],
    )
}

/// Measures how the costs of the encrypted remote grow: a repository with the older half of the history of `origin`, and
/// one with all of it. `binaries` is the folder of the two programs.
pub fn growth(
    binaries: &Path,
    origin: &Path,
    by: By,
    rounds: usize,
    tiny: usize,
    report: &mut Report,
) -> Result<(), Error> {
    let room = TempDir::new().map_err(|source| Error::Start {
        program: "a temporary folder".into(),
        source,
    })?;
    let half = by.older(origin, room.path())?;
    let all = workload::copy(origin, "HEAD", &room.path().join("all.git"))?;
    for (name, source) in [("half", &half), ("all", &all)] {
        report.size("repository", name, workload::bytes_in(source)?);
    }
    let tool = Tool::Encrypted("ingot".into(), binaries.to_owned(), Storage::Directory);
    for round in 0..rounds {
        for (name, source) in [("half", &half), ("all", &all)] {
            let room = TempDir::new_in(room.path()).map_err(|source| Error::Start {
                program: "a temporary folder".into(),
                source,
            })?;
            let scene = Scene::set(&tool, source, room.path())?;
            settle();
            let push = ["push", "-q", "store", "main"];
            report.add(
                "first push",
                name,
                measure::run(&mut scene.git(&scene.source, &push))?,
            );
            for step in 0..tiny {
                workload::one_line_commit(&scene.source, &format!("{round}-{step}"))?;
                let cost = measure::run(&mut scene.git(&scene.source, &push))?;
                report.add("one-line push", name, cost);
            }
        }
    }
    Ok(())
}

/// Lets the disk finish what earlier runs wrote, so that it is not charged to the next.
fn settle() {
    rustix::fs::sync();
}
