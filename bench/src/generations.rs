//! How the costs of an encrypted remote grow with its generations and with its readers.
//!
//! Long chains are made in this process, push by push, as a client makes them: each has a commit of one line, a pack and a
//! generation. What is measured afterwards are the programs, as Git starts them.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use ingot_engine::durable;
use ingot_engine::progress::Silent;
use ingot_engine::repository::Repository;
use ingot_engine::transport::Silently;
use ingot_helper::flock::Patience;
use ingot_helper::protocol::policy::Change as MemberChange;
use ingot_helper::protocol::{DeviceKey, Role, key_file};
use ingot_helper::remote::decide::{Change, Target};
use ingot_helper::remote::{self, Local, Memory, PushOptions, Remote, Seen};
use ingot_helper::storage;
use ingot_helper::storage::carrier::Carrier;
use ingot_helper::storage::directory::Directory;
use tempfile::TempDir;

use crate::measure::{self, Error as Failed};
use crate::remote::Storage;
use crate::report::Report;
use crate::workload;

type Error = Box<dyn std::error::Error>;

/// A store with a repository that pushes to it and one that follows.
struct Scene {
    name: String,
    source: PathBuf,
    follower: PathBuf,
    store: PathBuf,
    key: PathBuf,
    storage: Storage,
    binaries: PathBuf,
}

impl Scene {
    /// An empty store, and a source with `commits` commits of one line.
    fn new(
        name: String,
        room: &Path,
        storage: Storage,
        binaries: &Path,
        commits: usize,
    ) -> Result<Scene, Error> {
        let room = room.join(&name);
        fs::create_dir(&room)?;
        let scene = Scene {
            name,
            source: room.join("source"),
            follower: room.join("follower"),
            store: room.join("store"),
            key: room.join("key.json"),
            storage,
            binaries: binaries.to_owned(),
        };
        for repo in ["source", "follower"] {
            workload::quietly(&room, &["init", "-q", repo])?;
        }
        if storage == Storage::Carrier {
            workload::quietly(&room, &["init", "-q", "--bare", "store"])?;
        }
        history(&scene.source, commits)?;
        key_file::create(&scene.key, &DeviceKey::generate(None)?)?;
        let key = key_file::read(&scene.key)?;
        let patience = Patience::silent(Duration::from_secs(20));
        remote::init(&*scene.open()?, &key, &scene.key, durable::real(), patience)?;
        let url = match storage {
            Storage::Directory => format!("e2ee::{}", scene.store.display()),
            Storage::Carrier => format!("e2ee::git+{}", scene.store.display()),
        };
        for repo in [&scene.source, &scene.follower] {
            workload::quietly(repo, &["remote", "add", "store", &url])?;
            let setting = ["config", "remote.store.e2ee-key", &scene.key.to_string_lossy()];
            workload::quietly(repo, &setting)?;
        }
        Ok(scene)
    }

    fn open(&self) -> Result<Box<dyn storage::Storage>, storage::Error> {
        Ok(match self.storage {
            Storage::Directory => Box::new(Directory::new(&self.store, durable::real())?),
            Storage::Carrier => Box::new(Carrier::local(&self.store, durable::real(), Arc::new(Silently))?),
        })
    }

    /// Does something with the remote as the source's Git would.
    fn remote<T>(
        &self,
        act: impl FnOnce(&Remote<'_>, &Local<'_>) -> Result<T, remote::Error>,
    ) -> Result<T, Error> {
        let storage = self.open()?;
        let key = key_file::read(&self.key)?;
        let git_dir = self.source.join(".git");
        let repository = Repository::open(&git_dir)?;
        let local = Local::open(&repository)?;
        let remote = Remote {
            storage: &*storage,
            key: &key,
            memory: Some(Memory {
                git_dir: git_dir.clone(),
                common_dir: git_dir,
                name: Some(b"store".to_vec()),
                stores: vec![storage.identity()],
            }),
            floor: None,
            fs: durable::real(),
            patience: Patience::silent(Duration::from_secs(20)),
            progress: &Silent,
            threads: 1,
            seen: &Seen::default(),
        };
        Ok(act(&remote, &local)?)
    }

    /// Publishes the commits of the source's `main`, one generation each.
    fn grow(&self) -> Result<(), Error> {
        let commits = workload::text(&self.source, &["rev-list", "--reverse", "main"])?;
        self.remote(|remote, local| {
            for commit in commits.lines() {
                let Ok(id) = gix_hash::ObjectId::from_hex(commit.as_bytes()) else {
                    continue;
                };
                let change = Change {
                    name: "refs/heads/main".into(),
                    target: Target::Object(id),
                    force: false,
                    lease: None,
                };
                remote.push(local, &[change], &PushOptions::default())?;
            }
            Ok(())
        })
    }

    /// Git in `repo`, able to find the helper.
    fn git(&self, repo: &Path, args: &[&str]) -> Command {
        let mut command = workload::git(repo);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut folders = vec![self.binaries.clone()];
        folders.extend(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(folders).unwrap_or(path));
        command.args(args);
        command
    }

    fn first_fetch(&self, report: &mut Report) -> Result<(), Failed> {
        let cost = measure::run(&mut self.git(&self.follower, &["fetch", "-q", "store"]))?;
        report.add("first fetch", &self.name, cost);
        Ok(())
    }

    /// A push, a fetch of what it brought, and a fetch that brings nothing.
    fn round(&self, mark: &str, report: &mut Report) -> Result<(), Failed> {
        workload::one_line_commit(&self.source, mark)?;
        let fetch = ["fetch", "-q", "store"];
        for (row, repo, args) in [
            (
                "one-line push",
                &self.source,
                ["push", "-q", "store", "main"].as_slice(),
            ),
            ("one-line fetch", &self.follower, &fetch),
            ("fetch of nothing", &self.follower, &fetch),
        ] {
            report.add(row, &self.name, measure::run(&mut self.git(repo, args))?);
        }
        Ok(())
    }

    fn fresh_clone(&self, report: &mut Report) -> Result<(), Failed> {
        let clone = self.store.with_file_name("clone");
        let url = workload::text(&self.source, &["remote", "get-url", "store"])?;
        let key = format!("remote.origin.e2ee-key={}", self.key.display());
        let place = clone.to_string_lossy().into_owned();
        let args = ["clone", "-q", "--no-checkout", "-c", &key, &url, &place];
        let cost = measure::run(&mut self.git(self.store.parent().unwrap_or(&clone), &args))?;
        report.add("fresh clone", &self.name, cost);
        Ok(())
    }
}

/// A branch `main` of `commits` commits, each with another line in the one file.
fn history(repo: &Path, commits: usize) -> Result<(), Error> {
    let mut command = workload::git(repo);
    command.args(["fast-import", "--quiet"]).stdin(Stdio::piped());
    let mut child = command.spawn()?;
    let mut input = child.stdin.take().ok_or("no way to Git")?;
    for number in 0..commits {
        let (message, line) = (format!("commit {number}"), format!("line {number}\n"));
        write!(
            input,
            "commit refs/heads/main\ncommitter Alice <alice@example.org> {} +0000\ndata {}\n{message}\n\
             M 100644 inline README.md\ndata {}\n{line}\n",
            1_700_000_000 + number,
            message.len(),
            line.len()
        )?;
    }
    drop(input);
    match child.wait()?.success() {
        true => Ok(()),
        false => Err("git fast-import failed".into()),
    }
}

/// Measures stores of so many generations each, with `rounds` rounds that go around all of them.
pub fn run(
    binaries: &Path,
    storage: Storage,
    counts: &[usize],
    rounds: usize,
    report: &mut Report,
) -> Result<(), Error> {
    let room = TempDir::new()?;
    let mut scenes = Vec::new();
    for count in counts {
        // The beginning is a generation too.
        let commits = count.saturating_sub(1).max(1);
        let name = format!("{count:>6}");
        let scene = Scene::new(name, room.path(), storage, binaries, commits)?;
        scene.grow()?;
        scenes.push(scene);
    }
    measured(&scenes, rounds, report)?;
    for scene in &scenes {
        scene.fresh_clone(report)?;
    }
    Ok(())
}

/// Measures stores in a folder with so many readers each.
pub fn readers(binaries: &Path, counts: &[usize], rounds: usize, report: &mut Report) -> Result<(), Error> {
    let room = TempDir::new()?;
    let mut scenes = Vec::new();
    for count in counts {
        let name = format!("{count:>6}");
        let scene = Scene::new(name, room.path(), Storage::Directory, binaries, 3)?;
        scene.grow()?;
        let root = *key_file::read(&scene.key)?.root();
        let mut changes = Vec::new();
        for _ in 1..*count {
            changes.push(MemberChange::Add {
                device: DeviceKey::generate(Some(root))?.public().clone(),
                role: Role::Read,
            });
        }
        scene.remote(|remote, _| remote.change_members(&scene.key, &changes))?;
        scenes.push(scene);
    }
    measured(&scenes, rounds, report)
}

fn measured(scenes: &[Scene], rounds: usize, report: &mut Report) -> Result<(), Error> {
    for scene in scenes {
        scene.first_fetch(report)?;
    }
    for round in 0..rounds {
        for scene in scenes {
            rustix::fs::sync();
            scene.round(&format!("round {round}"), report)?;
        }
    }
    Ok(())
}
