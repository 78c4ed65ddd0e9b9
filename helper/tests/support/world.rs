//! A key, a store, and Git with the helper on its path.

#![allow(dead_code)] // each test program uses a part of it

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ingot_testdata::git::isolated;
use ingot_testdata::repo::{Format, Repo};
use tempfile::TempDir;

/// A temporary folder, home included, and the programs that run in it.
pub struct Bare {
    temp: TempDir,
}

/// The same with a key and an empty store for it.
pub struct World {
    bare: Bare,
    pub store: PathBuf,
    pub key: PathBuf,
}

impl std::ops::Deref for World {
    type Target = Bare;

    fn deref(&self) -> &Bare {
        &self.bare
    }
}

/// What a program said.
pub struct Said {
    pub ok: bool,
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Said {
    /// What a program that has ended said.
    pub fn of(output: &Output) -> Said {
        Said {
            ok: output.status.success(),
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).trim_end().to_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Standard output of a success.
    #[track_caller]
    pub fn good(self) -> String {
        assert!(self.ok, "failed\n{}\n{}", self.out, self.err);
        self.out
    }

    /// A failure that says all of this on standard error.
    #[track_caller]
    pub fn bad(self, texts: &[&str]) -> Said {
        assert!(!self.ok, "succeeded\n{}\n{}", self.out, self.err);
        for text in texts {
            assert!(self.err.contains(text), "no {text:?} in\n{}", self.err);
        }
        self
    }
}

impl Bare {
    pub fn new() -> Bare {
        Bare {
            temp: TempDir::new().unwrap(),
        }
    }

    pub fn root(&self) -> &Path {
        self.temp.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    /// Any program, ready to be started.
    pub fn command(&self, program: impl AsRef<OsStr>, dir: &Path) -> Command {
        let mut command = isolated(Command::new(program), dir);
        let helper = Path::new(env!("CARGO_BIN_EXE_git-remote-e2ee"))
            .parent()
            .unwrap()
            .to_owned();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::iter::once(helper).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(paths).unwrap());
        command.env("HOME", self.path("home")).env("LC_ALL", "C");
        // What a test writes there is meant.
        let settings = self.path("home/.gitconfig");
        if settings.exists() {
            command.env("GIT_CONFIG_GLOBAL", settings);
        }
        for variable in [
            "XDG_CONFIG_HOME",
            "XDG_DATA_HOME",
            "XDG_STATE_HOME",
            "XDG_CACHE_HOME",
        ] {
            command.env_remove(variable);
        }
        command
    }

    /// Runs Git.
    pub fn git(&self, dir: &Path, args: &[&str]) -> Said {
        Said::of(&self.command("git", dir).args(args).output().unwrap())
    }

    /// Runs a line of shell.
    pub fn shell(&self, dir: &Path, line: &str) -> Said {
        Said::of(&self.command("bash", dir).args(["-c", line]).output().unwrap())
    }

    /// Runs `git-e2ee`.
    pub fn e2ee(&self, dir: &Path, args: &[&str]) -> Said {
        self.e2ee_with(dir, args, &[])
    }

    /// `git-e2ee`, ready to be started.
    pub fn program(&self, dir: &Path, args: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_git-e2ee"), dir);
        command.args(args);
        command
    }

    /// Python, in the environment that Git has in tests.
    pub fn python(&self, dir: &Path) -> Command {
        self.command("python3", dir)
    }

    /// Runs `git-e2ee` with more in its environment.
    pub fn e2ee_with(&self, dir: &Path, args: &[&str], environment: &[(&str, &str)]) -> Said {
        let mut command = self.program(dir, args);
        Said::of(&command.envs(environment.iter().copied()).output().unwrap())
    }

    /// Runs the helper as Git would, with `input` on its standard input.
    pub fn helper_with(&self, dir: &Path, args: &[&str], environment: &[(&str, &str)], input: &str) -> Said {
        use std::io::Write as _;
        use std::process::Stdio;

        let mut command = self.command(env!("CARGO_BIN_EXE_git-remote-e2ee"), dir);
        command.args(args).envs(environment.iter().copied());
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        Said::of(&child.wait_with_output().unwrap())
    }
}

impl World {
    /// An empty store with a key.
    #[track_caller]
    pub fn new() -> World {
        World::at("store")
    }

    /// The same with a store of this name.
    #[track_caller]
    pub fn at(store: &str) -> World {
        let bare = Bare::new();
        let world = World {
            store: bare.path(store),
            key: bare.path("alice.key.json"),
            bare,
        };
        world
            .e2ee(world.root(), &["keygen", "--output", text(&world.key)])
            .good();
        world.new_store(&world.store);
        world
    }

    /// The same with a carrier of that object format.
    #[track_caller]
    pub fn carrier(format: Format) -> World {
        let bare = Bare::new();
        let world = World {
            store: bare.path("carrier.git"),
            key: bare.path("alice.key.json"),
            bare,
        };
        let format = [
            "init",
            "-q",
            "--bare",
            "--object-format",
            format.name(),
            text(&world.store),
        ];
        world.git(world.root(), &format).good();
        world
            .e2ee(world.root(), &["keygen", "--output", text(&world.key)])
            .good();
        let init = [
            "carrier-init",
            "--remote",
            text(&world.store),
            "--key",
            text(&world.key),
        ];
        world.e2ee(world.root(), &init).good();
        world
    }

    /// Another empty store for another key; one key founds one repository.
    #[track_caller]
    pub fn new_store(&self, path: &Path) {
        self.e2ee(
            self.root(),
            &["init", "--storage", text(path), "--key", text(&self.key)],
        )
        .good();
    }

    fn is_carrier(&self) -> bool {
        self.store.extension().is_some_and(|end| end == "git")
    }

    pub fn url(&self) -> String {
        let kind = if self.is_carrier() { "git+" } else { "" };
        format!("e2ee::{kind}{}", self.store.display())
    }

    /// Runs Git with the key on its command line, for what has no remote configured.
    pub fn git_with_key(&self, dir: &Path, args: &[&str]) -> Said {
        let key = format!("e2ee.key={}", self.key.display());
        let mut all = vec!["-c", key.as_str()];
        all.extend_from_slice(args);
        self.git(dir, &all)
    }

    /// A repository of the fixture history with the store as remote `name`.
    #[track_caller]
    pub fn source(&self, name: &str, format: Format) -> Repo {
        let repo = Repo::scripted("history", format);
        self.add_remote(repo.path(), name, &self.url());
        repo
    }

    #[track_caller]
    pub fn add_remote(&self, dir: &Path, name: &str, url: &str) {
        self.git(dir, &["remote", "add", name, url]).good();
        self.git(
            dir,
            &["config", &format!("remote.{name}.e2ee-key"), text(&self.key)],
        )
        .good();
    }

    /// Clones the store into a folder of the world.
    #[track_caller]
    pub fn clone(&self, name: &str, options: &[&str]) -> PathBuf {
        let path = self.path(name);
        let mut args = vec!["clone", "-q"];
        args.extend_from_slice(options);
        let url = self.url();
        args.extend([url.as_str(), text(&path)]);
        self.git_with_key(self.root(), &args).good();
        path
    }

    /// References of the store as Git lists them, `name id` each.
    #[track_caller]
    pub fn refs(&self) -> Vec<String> {
        let url = self.url();
        let listed = self
            .git_with_key(self.root(), &["ls-remote", "--refs", &url])
            .good();
        listed
            .lines()
            .map(|line| line.split_once('\t').unwrap())
            .map(|(id, name)| format!("{name} {id}"))
            .collect()
    }

    /// The value of one reference of the store.
    #[track_caller]
    pub fn value(&self, name: &str) -> Option<String> {
        let prefix = format!("{name} ");
        self.refs()
            .iter()
            .find_map(|line| line.strip_prefix(&prefix).map(str::to_owned))
    }

    /// Names of the references of the store.
    #[track_caller]
    pub fn names(&self) -> Vec<String> {
        self.refs()
            .iter()
            .map(|line| line.split(' ').next().unwrap().to_owned())
            .collect()
    }

    /// The number of the store's newest generation.
    #[track_caller]
    pub fn generation(&self) -> u64 {
        let url = self.url();
        let args = ["verify", "--json", "--key", text(&self.key), &url];
        let report = self.e2ee(self.root(), &args).good();
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        report["generation"].as_u64().unwrap()
    }
}

pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A commit with one file changed.
#[track_caller]
pub fn commit(world: &Bare, dir: &Path, message: &str) -> String {
    std::fs::write(dir.join("change.txt"), message).unwrap();
    world.git(dir, &["add", "change.txt"]).good();
    world.git(dir, &["commit", "-q", "-m", message]).good();
    world.git(dir, &["rev-parse", "HEAD"]).good()
}

/// Everything that Git can find wrong with a repository.
#[track_caller]
pub fn sound(world: &Bare, dir: &Path) {
    world
        .git(dir, &["fsck", "--full", "--strict", "--no-progress"])
        .good();
    assert_eq!(
        world
            .git(dir, &["count-objects", "-v"])
            .good()
            .lines()
            .find(|line| line.starts_with("garbage:")),
        Some("garbage: 0")
    );
    let locks: Vec<_> = std::fs::read_dir(objects(world, dir).join("pack"))
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter(|name| name.ends_with(".keep") || name.ends_with(".lock"))
        .collect();
    assert!(locks.is_empty(), "left behind: {locks:?}");
}

fn objects(world: &Bare, dir: &Path) -> PathBuf {
    dir.join(world.git(dir, &["rev-parse", "--git-path", "objects"]).good())
}
