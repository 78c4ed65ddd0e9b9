//! Rows of snapshots: many small files in two directories, captured for the first time and again, beside copying them,
//! committing them with Git, hashing them, and beside backup programs where they are installed; and one huge file.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use tempfile::TempDir;

use crate::measure::{self, Cost, Error};
use crate::report::Report;
use crate::workload::{self, Noise};

/// Programs that are measured where they are installed.
const PEERS: [&str; 3] = ["restic", "borg", "b3sum"];

/// Those of them that are not installed.
pub fn missing() -> Vec<&'static str> {
    PEERS.into_iter().filter(|peer| !is_installed(peer)).collect()
}

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

/// A home folder, and places beside it for everything else.
struct Room {
    temp: TempDir,
    binary: PathBuf,
}

impl Room {
    fn new(binary: &Path) -> Result<Room, Error> {
        Ok(Room {
            temp: TempDir::new().map_err(failed(Path::new("a temporary folder")))?,
            binary: binary.to_owned(),
        })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    fn home(&self) -> PathBuf {
        self.at("home")
    }

    fn rivet(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .args(args)
            .current_dir(self.home())
            .env("HOME", self.home());
        for (name, folder) in [
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_DATA_HOME", "data"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_CACHE_HOME", "cache"),
        ] {
            command.env(name, self.at(folder));
        }
        command
    }

    /// A repository of snapshots that tracks `paths`.
    fn init(&self, paths: &[&str]) -> Result<(), Error> {
        measure::run(&mut self.rivet(&["init", "--machine", "bench"]))?;
        measure::run(&mut self.rivet(&[&["track"], paths].concat()))?;
        Ok(())
    }

    fn restic(&self, args: &[&str]) -> Command {
        let mut command = Command::new("restic");
        command
            .arg("--repo")
            .arg(self.at("restic"))
            .args(args)
            .env("RESTIC_PASSWORD", "bench")
            .env("XDG_CACHE_HOME", self.at("restic-cache"));
        command
    }

    fn borg(&self, args: &[&str]) -> Command {
        let mut command = Command::new("borg");
        command
            .args(args)
            .current_dir(self.temp.path())
            .env("BORG_PASSPHRASE", "bench")
            .env("BORG_BASE_DIR", self.at("borg-base"));
        command
    }
}

/// Measures all rows `rounds` times with `files` files. `binary` is `rivet`.
pub fn run(binary: &Path, files: usize, rounds: usize, report: &mut Report) -> Result<(), Error> {
    for round in 0..rounds {
        let room = Room::new(binary)?;
        plant(&room.home(), files, round)?;
        let copy = room.at("copy");
        report.add("cold", "cp", settled(&mut cp(&room.home(), &copy))?);
        workload::quietly(&copy, &["init", "-q"])?;
        let mut commit = workload::git(&copy);
        commit.args(["-c", "alias.all=!git add -A && git commit -q -m all", "all"]);
        report.add("cold", "git", settled(&mut commit)?);

        room.init(&["one", "two"])?;
        report.add("cold", "ingot", settled(&mut room.rivet(&["snapshot"]))?);

        // Older than the records of them, so that nothing is read again for fear of a change in the same moment.
        std::thread::sleep(std::time::Duration::from_millis(1100));
        workload::quietly(&copy, &["status"])?;
        measure::run(&mut room.rivet(&["snapshot"]))?;
        let status = measure::run(workload::git(&copy).arg("status"))?;
        report.add("unchanged", "git", status);
        report.add(
            "unchanged",
            "ingot",
            measure::run(&mut room.rivet(&["snapshot"]))?,
        );
        let hashing = measure::run(&mut hash(&room.home())?)?;
        report.add(HASHED, "git+b3sum", one_after_the_other(status, hashing));
        report.add(
            HASHED,
            "ingot",
            measure::run(&mut room.rivet(&["snapshot", "--rehash"]))?,
        );
        let mut single = room.rivet(&["snapshot", "--rehash"]);
        single.env("RAYON_NUM_THREADS", "1");
        report.add("the same on one thread", "ingot", measure::run(&mut single)?);
        backups(&room, report)?;
    }
    Ok(())
}

const HASHED: &str = "unchanged, every byte hashed";

/// Backup programs, as they are installed.
fn backups(room: &Room, report: &mut Report) -> Result<(), Error> {
    let home = room.home().to_string_lossy().into_owned();
    if is_installed("restic") {
        measure::run(&mut room.restic(&["init"]))?;
        report.add("cold", "restic", settled(&mut room.restic(&["backup", &home]))?);
        let again = measure::run(&mut room.restic(&["backup", &home]))?;
        report.add("unchanged", "restic", again);
    }
    if is_installed("borg") {
        measure::run(&mut room.borg(&["init", "-e", "repokey", "borg"]))?;
        report.add(
            "cold",
            "borg",
            settled(&mut room.borg(&["create", "borg::a", &home]))?,
        );
        let again = measure::run(&mut room.borg(&["create", "borg::b", &home]))?;
        report.add("unchanged", "borg", again);
    }
    Ok(())
}

/// How time and memory grow: `files` files once, beside copying them and `git status`.
pub fn scale(binary: &Path, files: usize, report: &mut Report) -> Result<(), Error> {
    let room = Room::new(binary)?;
    plant(&room.home(), files, files)?;
    let (cold, unchanged) = (
        format!("cold, {files} files"),
        format!("unchanged, {files} files"),
    );
    let copy = room.at("copy");
    report.add(&cold, "cp", settled(&mut cp(&room.home(), &copy))?);
    room.init(&["one", "two"])?;
    report.add(&cold, "ingot", settled(&mut room.rivet(&["snapshot"]))?);
    workload::quietly(&copy, &["init", "-q"])?;
    workload::quietly(&copy, &["add", "-A"])?;
    std::thread::sleep(std::time::Duration::from_millis(1100));
    workload::quietly(&copy, &["status"])?;
    measure::run(&mut room.rivet(&["snapshot"]))?;
    report.add(
        &unchanged,
        "git",
        measure::run(workload::git(&copy).arg("status"))?,
    );
    report.add(&unchanged, "ingot", measure::run(&mut room.rivet(&["snapshot"]))?);
    Ok(())
}

/// One file of `gib` GiB that does not compress, captured, beside writing the same bytes to the same disk and waiting
/// until they are there.
pub fn huge(binary: &Path, gib: u64, report: &mut Report) -> Result<(), Error> {
    let room = Room::new(binary)?;
    let folder = room.home().join("huge");
    fs::create_dir_all(&folder).map_err(failed(&folder))?;
    let (cold, unchanged) = (
        format!("cold, one file of {gib} GiB"),
        format!("unchanged, one file of {gib} GiB"),
    );
    rustix::fs::sync();
    report.add(&cold, "write", write(&folder.join("file"), gib << 30)?);
    room.init(&["huge"])?;
    report.add(&cold, "ingot", settled(&mut room.rivet(&["snapshot"]))?);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    report.add(&unchanged, "ingot", measure::run(&mut room.rivet(&["snapshot"]))?);
    Ok(())
}

/// Writes noise from beginning to end and waits until the disk has it. The noise is made before the clock runs.
fn write(path: &Path, bytes: u64) -> Result<Cost, Error> {
    const PIECE: usize = 8 << 20;
    let mut noise = Noise::new(11);
    let mut piece: Vec<u8> = (0..PIECE / 8).flat_map(|_| noise.next().to_le_bytes()).collect();
    let mut file = File::create(path).map_err(failed(path))?;
    let begin = Instant::now();
    let mut left = bytes;
    while left > 0 {
        // No piece is like another.
        for (number, block) in piece.chunks_mut(4096).enumerate() {
            let mark = (left ^ number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            block[..8].copy_from_slice(&mark.to_le_bytes());
        }
        let count = left.min(PIECE as u64) as usize;
        file.write_all(&piece[..count]).map_err(failed(path))?;
        left -= count as u64;
    }
    file.sync_data().map_err(failed(path))?;
    Ok(Cost {
        wall: begin.elapsed().as_secs_f64(),
        largest: 0,
        together: 0,
    })
}

/// `b3sum` of all files, or the same by this program where that is not installed.
fn hash(home: &Path) -> Result<Command, Error> {
    if !is_installed("b3sum") {
        let own = std::env::current_exe().map_err(failed(Path::new("this program")))?;
        let mut command = Command::new(own);
        command.args(["probe", "hash"]).arg(home);
        return Ok(command);
    }
    let mut command = Command::new("b3sum");
    for folder in ["one", "two"] {
        let folder = home.join(folder);
        for entry in fs::read_dir(&folder).map_err(failed(&folder))? {
            command.arg(entry.map_err(failed(&folder))?.path());
        }
    }
    Ok(command)
}

fn one_after_the_other(a: Cost, b: Cost) -> Cost {
    Cost {
        wall: a.wall + b.wall,
        largest: a.largest.max(b.largest),
        together: a.together.max(b.together),
    }
}

fn cp(from: &Path, to: &Path) -> Command {
    let mut command = Command::new("cp");
    command.arg("-a").arg(from).arg(to);
    command
}

/// Files of about 1 KiB of text in the folders `one` and `two`, which are made; another `round` has other content.
pub fn plant(home: &Path, files: usize, round: usize) -> Result<(), Error> {
    let mut noise = Noise::new(round as u64 + 3);
    for folder in ["one", "two"] {
        let folder = home.join(folder);
        fs::create_dir_all(&folder).map_err(failed(&folder))?;
        for number in 0..files / 2 {
            let mut text = String::new();
            while text.len() < 1000 {
                text += &format!("setting.{number}.{} = {}\n", text.len(), noise.next() % 10_000);
            }
            let file = folder.join(format!("file-{number}.conf"));
            fs::write(&file, text).map_err(failed(&file))?;
        }
    }
    Ok(())
}

fn settled(command: &mut Command) -> Result<Cost, Error> {
    rustix::fs::sync();
    measure::run(command)
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> Error {
    let program = path.display().to_string();
    move |source| Error::Start {
        program: program.clone(),
        source,
    }
}
