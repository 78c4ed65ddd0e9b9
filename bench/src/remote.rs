//! Rows of the encrypted remote: first push, fresh fetch, one-line push and fetch, beside plain Git and, where it is
//! installed, another pair of `git-e2ee` and `git-remote-e2ee`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::gcrypt::Keyring;
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
    /// git-remote-gcrypt with the keys of a GnuPG home, and where it stores.
    Gcrypt(Keyring, Storage),
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
            Tool::Gcrypt(..) => "gcrypt",
        }
    }

    /// How many one-line pushes are made at most: a tool that sends everything anew is not waited for so often.
    fn patience(&self) -> usize {
        match self {
            Tool::Gcrypt(..) => 2,
            _ => usize::MAX,
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
            Tool::Gcrypt(_, Storage::Directory) => {
                fs::create_dir(&scene.remote).map_err(|source| Error::Start {
                    program: scene.remote.display().to_string(),
                    source,
                })?;
            }
            Tool::Gcrypt(_, Storage::Carrier) => {
                workload::quietly(&room, &["init", "-q", "--bare", "remote"])?;
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
            Tool::Gcrypt(_, Storage::Directory) => format!("gcrypt::{}", self.remote.display()),
            Tool::Gcrypt(_, Storage::Carrier) => {
                format!("gcrypt::file://{}#main", self.remote.display())
            }
        }
    }

    /// The push of `main`.
    fn push(&self, repo: &Path, remote: &str) -> Command {
        match self.tool {
            // It warns and waits for nothing without.
            Tool::Gcrypt(..) => self.git(repo, &["push", "-q", "--force", remote, "main"]),
            _ => self.git(repo, &["push", "-q", remote, "main"]),
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
        if let Tool::Gcrypt(keyring, _) = self.tool {
            command.env("GNUPGHOME", keyring.home());
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
            let cost = measure::watched(&mut scene.push(&scene.source, "store"))?;
            report.add_watched("first push", scene.tool.name(), cost);
        }
        for scene in &scenes {
            settle();
            let cost = measure::watched(&mut scene.git(&scene.follower, &["fetch", "-q", "store"]))?;
            report.add_watched("fresh fetch", scene.tool.name(), cost);
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
            let patient = || scenes.iter().filter(|scene| step < scene.tool.patience());
            for scene in patient() {
                workload::one_line_commit(&scene.source, &format!("{round}-{step}"))?;
            }
            for scene in patient() {
                let cost = measure::run(&mut scene.push(&scene.source, "store"))?;
                report.add("one-line push", scene.tool.name(), cost);
            }
            for scene in patient() {
                let cost = measure::run(&mut scene.git(&scene.follower, &["fetch", "-q", "store"]))?;
                report.add("one-line fetch", scene.tool.name(), cost);
            }
        }
        for (scene, before) in scenes.iter().zip(before) {
            let grown = workload::bytes_in(&scene.remote)?.saturating_sub(before);
            report.size(
                "remote per one-line push",
                scene.tool.name(),
                grown / tiny.min(scene.tool.patience()).max(1) as u64,
            );
        }
        for scene in &scenes {
            after_a_clone(scene, round, report)?;
        }
        for (row, shape) in [
            ("10 MiB file push", Shape::Large),
            ("one byte of it, push", Shape::OneByte),
            ("1,000 files push", Shape::Many),
        ] {
            for scene in &scenes {
                workload::files_commit(&scene.source, shape, round as u64)?;
            }
            for scene in &scenes {
                settle();
                let cost = measure::run(&mut scene.push(&scene.source, "store"))?;
                report.add(row, scene.tool.name(), cost);
            }
        }
        for scene in &scenes {
            care(scene, report)?;
        }
    }
    Ok(())
}

/// Checks the store, and lets a second device in, where the tool knows such a thing.
fn care(scene: &Scene<'_>, report: &mut Report) -> Result<(), Error> {
    let name = scene.tool.name();
    settle();
    match scene.tool {
        Tool::Plain => {
            let cost = measure::run(workload::git(&scene.remote).args(["fsck", "--connectivity-only"]))?;
            report.add("verify", name, cost);
        }
        Tool::Encrypted(_, folder, storage) => {
            let command = |name: &str| {
                let mut command = Command::new(folder.join("git-e2ee"));
                command.arg(name);
                command
            };
            let at = |mut command: Command| {
                match storage {
                    Storage::Directory => command.arg("--storage").arg(&scene.remote),
                    Storage::Carrier => command
                        .arg("--remote")
                        .arg(format!("git+file://{}", scene.remote.display())),
                };
                command.arg("--key").arg(&scene.key);
                command
            };
            if *storage == Storage::Directory {
                report.add("verify", name, measure::run(&mut at(command("verify")))?);
            }
            let (key, public) = (
                scene.key.with_file_name("second.json"),
                scene.key.with_file_name("second.pub.json"),
            );
            let root = repository_root(&scene.key)?;
            measure::run(
                command("keygen")
                    .args(["--repository-root", &root, "--output"])
                    .arg(&key),
            )?;
            measure::run(
                command("device-export")
                    .arg("--key")
                    .arg(&key)
                    .arg("--output")
                    .arg(&public),
            )?;
            settle();
            let cost = measure::run(at(command("device-add")).arg("--device").arg(&public))?;
            report.add("add a device", name, cost);
        }
        Tool::Gcrypt(..) => {}
    }
    Ok(())
}

/// The root that a key file names.
fn repository_root(key: &Path) -> Result<String, Error> {
    let failed = |message: String| Error::Failed {
        program: key.display().to_string(),
        stderr: message,
    };
    let text = fs::read(key).map_err(|err| failed(err.to_string()))?;
    let json: serde_json::Value = serde_json::from_slice(&text).map_err(|err| failed(err.to_string()))?;
    match json["repository_root"].as_str() {
        Some(root) => Ok(root.to_owned()),
        None => Err(failed("it names no repository root".into())),
    }
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
        let cost = measure::run(&mut scene.push(&clone, "origin"))?;
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
            let cost = measure::run(&mut scene.push(&scene.source, "store"))?;
            report.add("first push", name, cost);
            for step in 0..tiny {
                workload::one_line_commit(&scene.source, &format!("{round}-{step}"))?;
                let cost = measure::run(&mut scene.push(&scene.source, "store"))?;
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
