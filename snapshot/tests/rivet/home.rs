//! A home folder of its own for each test, and the program in it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ingot_testdata::git;
use serde_json::Value;

pub struct Home {
    pub temp: tempfile::TempDir,
}

/// What the program said and how it ended.
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    #[track_caller]
    pub fn good(self) -> String {
        assert_eq!(self.code, 0, "{}{}", self.out, self.err);
        self.out
    }

    #[track_caller]
    pub fn ends(self, code: i32) -> String {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        self.out + &self.err
    }
}

pub fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

impl Home {
    /// A home with a configuration that tracks `t`, and an empty repository.
    pub fn new() -> Home {
        Home::with("sha1")
    }

    pub fn with(format: &'static str) -> Home {
        let home = Home::bare();
        home.rivet(&["init", "--machine", "desk", "--object-format", format])
            .good();
        home.configure("");
        std::fs::create_dir(home.path("t")).unwrap();
        home
    }

    /// A home with nothing in it.
    pub fn bare() -> Home {
        Home {
            temp: tempfile::tempdir().unwrap(),
        }
    }

    /// Writes the configuration anew: `t` is tracked, packages are not, and `more`.
    pub fn configure(&self, more: &str) {
        let track = if more.contains("track =") {
            ""
        } else {
            "track = [\"t\"]\n"
        };
        let text = format!("machine = \"desk\"\npackages = false\n{track}{more}\n");
        std::fs::write(self.path(".config/rivet/config.toml"), text).unwrap();
    }

    pub fn root(&self) -> &Path {
        self.temp.path()
    }

    pub fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.root().join(relative)
    }

    pub fn write(&self, relative: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(relative);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    pub fn read(&self, relative: &str) -> String {
        String::from_utf8(std::fs::read(self.path(relative)).unwrap()).unwrap()
    }

    pub fn command(&self) -> Command {
        let mut command = git::isolated(Command::new(env!("CARGO_BIN_EXE_rivet")), self.root());
        command.env("HOME", self.root());
        for name in [
            "XDG_CONFIG_HOME",
            "XDG_DATA_HOME",
            "XDG_STATE_HOME",
            "XDG_CACHE_HOME",
        ] {
            command.env_remove(name);
        }
        command.env("TZ", "UTC");
        command
    }

    pub fn rivet(&self, args: &[&str]) -> Ran {
        ran(self.command().args(args).output().unwrap())
    }

    pub fn json(&self, args: &[&str]) -> Value {
        let ran = self.rivet(&[&["--json"], args].concat());
        serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{}{}", ran.out, ran.err))
    }

    pub fn repository(&self) -> PathBuf {
        self.path(".local/share/rivet/snapshots.git")
    }

    #[track_caller]
    pub fn git(&self, args: &[&str]) -> String {
        git::git(&self.repository(), args)
    }

    /// Git finds nothing wrong.
    #[track_caller]
    pub fn sound(&self) {
        let said = git::run(
            &self.repository(),
            &["fsck", "--strict", "--full", "--no-dangling"],
        );
        let text =
            String::from_utf8_lossy(&said.stdout).into_owned() + &String::from_utf8_lossy(&said.stderr);
        // A machine without a snapshot of its own is no fault.
        let fault = |line: &&str| !line.starts_with("notice: HEAD points to an unborn branch");
        assert!(
            said.status.success() && text.lines().filter(fault).all(str::is_empty),
            "{text}"
        );
    }

    /// The entries of the newest snapshot by path, as `show` lists them.
    pub fn entries(&self) -> std::collections::BTreeMap<String, Value> {
        let json = self.json(&["show"]);
        let entries = json["entries"].as_array().unwrap();
        entries
            .iter()
            .map(|entry| {
                let path = entry["path"].as_str().map(str::to_owned);
                (
                    path.unwrap_or_else(|| entry["path"]["hex"].to_string()),
                    entry.clone(),
                )
            })
            .collect()
    }

    /// What was skipped, as `path: reason`.
    pub fn skipped(json: &Value) -> Vec<String> {
        let rows = json["skipped"].as_array().unwrap().iter();
        rows.map(|row| {
            format!(
                "{}: {}",
                row["path"].as_str().unwrap_or("?"),
                row["reason"].as_str().unwrap()
            )
        })
        .collect()
    }

    /// Files of the newest snapshot by Git's reading.
    pub fn blob(&self, path: &str) -> Vec<u8> {
        let spec = format!("desk:files/{path}");
        git::run(&self.repository(), &["cat-file", "blob", &spec]).stdout
    }

    /// Sets the time of a file's last change to some while ago, so that it is clearly older than the next capture.
    pub fn age(&self, relative: &str) {
        let file = std::fs::File::options()
            .write(true)
            .open(self.path(relative))
            .unwrap();
        let then = std::time::UNIX_EPOCH + std::time::Duration::new(1_600_000_000, 123);
        file.set_modified(then).unwrap();
    }
}

/// Captured times of change are only clearly older than a capture after a tick of the clock.
pub fn tick() {
    std::thread::sleep(std::time::Duration::from_millis(60));
}
