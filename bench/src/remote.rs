//! Rows of the encrypted remote: first push, fresh fetch, one-line push and fetch, beside plain Git and, where it is
//! installed, another pair of `git-e2ee` and `git-remote-e2ee`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::measure::{self, Error};
use crate::report::Report;
use crate::workload;

/// A tool that can keep a repository at a remote.
#[derive(Debug, Clone)]
pub enum Tool {
    /// Plain Git and a bare repository.
    Plain,
    /// A folder that holds `git-e2ee` and `git-remote-e2ee`, under a name.
    Encrypted(String, PathBuf),
}

impl Tool {
    fn name(&self) -> &str {
        match self {
            Tool::Plain => "git",
            Tool::Encrypted(name, _) => name,
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
            Tool::Encrypted(_, folder) => {
                let binary = folder.join("git-e2ee");
                measure::run(
                    Command::new(&binary)
                        .arg("keygen")
                        .arg("--output")
                        .arg(&scene.key),
                )?;
                let mut init = Command::new(&binary);
                init.arg("init")
                    .arg("--storage")
                    .arg(&scene.remote)
                    .arg("--key")
                    .arg(&scene.key);
                measure::run(&mut init)?;
            }
        }
        let url = match tool {
            Tool::Plain => format!("file://{}", scene.remote.display()),
            Tool::Encrypted(..) => format!("e2ee::{}", scene.remote.display()),
        };
        for repo in [&scene.source, &scene.follower] {
            workload::quietly(repo, &["remote", "add", "store", &url])?;
            workload::quietly(
                repo,
                &["config", "remote.store.e2ee-key", &scene.key.to_string_lossy()],
            )?;
        }
        Ok(scene)
    }

    /// Git in `repo`, able to find the tool's helper.
    fn git(&self, repo: &Path, args: &[&str]) -> Command {
        let mut command = workload::git(repo);
        if let Tool::Encrypted(_, folder) = self.tool {
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
    }
    Ok(())
}

/// Lets the disk finish what earlier runs wrote, so that it is not charged to the next.
fn settle() {
    rustix::fs::sync();
}
