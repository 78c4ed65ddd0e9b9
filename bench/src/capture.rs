//! Rows of snapshots: 2,000 files of 1 KiB in two directories, captured for the first time and again, beside copying
//! them and committing them with Git, and beside restic where it is installed.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::measure::{self, Error};
use crate::report::Report;
use crate::workload::{self, Noise};

/// Measures all rows `rounds` times with `files` files. `binary` is `rivet`.
pub fn run(binary: &Path, files: usize, rounds: usize, report: &mut Report) -> Result<(), Error> {
    let has_restic = Command::new("restic").arg("version").output().is_ok();
    for round in 0..rounds {
        let room = TempDir::new().map_err(failed(Path::new("a temporary folder")))?;
        let home = room.path().join("home");
        plant(&home, files, round)?;
        let rivet = |args: &[&str]| {
            let mut command = Command::new(binary);
            command
                .args(args)
                .current_dir(&home)
                .env("HOME", &home)
                .env("XDG_CONFIG_HOME", room.path().join("config"))
                .env("XDG_DATA_HOME", room.path().join("data"))
                .env("XDG_STATE_HOME", room.path().join("state"))
                .env("XDG_CACHE_HOME", room.path().join("cache"));
            command
        };

        let copy = room.path().join("copy");
        let mut cp = Command::new("cp");
        cp.arg("-a").arg(&home).arg(&copy);
        report.add("cold", "cp", settled(&mut cp)?);
        workload::quietly(&copy, &["init", "-q"])?;
        let mut commit = workload::git(&copy);
        commit.args(["-c", "alias.all=!git add -A && git commit -q -m all", "all"]);
        report.add("cold", "git", settled(&mut commit)?);

        measure::run(&mut rivet(&["init", "--machine", "bench"]))?;
        measure::run(&mut rivet(&["track", "one", "two"]))?;
        report.add("cold", "ingot", settled(&mut rivet(&["snapshot"]))?);

        // Older than the records of them, so that nothing is read again for fear of a change in the same moment.
        std::thread::sleep(std::time::Duration::from_millis(1100));
        workload::quietly(&copy, &["status"])?;
        measure::run(&mut rivet(&["snapshot"]))?;
        report.add(
            "unchanged",
            "git",
            measure::run(workload::git(&copy).arg("status"))?,
        );
        report.add("unchanged", "ingot", measure::run(&mut rivet(&["snapshot"]))?);
        report.add(
            "unchanged, every byte hashed",
            "ingot",
            measure::run(&mut rivet(&["snapshot", "--rehash"]))?,
        );
        let mut single = rivet(&["snapshot", "--rehash"]);
        single.env("RAYON_NUM_THREADS", "1");
        report.add(
            "unchanged, hashed on one thread",
            "ingot",
            measure::run(&mut single)?,
        );

        if has_restic {
            let restic = |args: &[&str]| {
                let mut command = Command::new("restic");
                command
                    .arg("--repo")
                    .arg(room.path().join("restic"))
                    .args(args)
                    .env("RESTIC_PASSWORD", "bench")
                    .env("XDG_CACHE_HOME", room.path().join("restic-cache"));
                command
            };
            measure::run(&mut restic(&["init"]))?;
            let place = home.to_string_lossy().into_owned();
            report.add("cold", "restic", settled(&mut restic(&["backup", &place]))?);
            report.add(
                "unchanged",
                "restic",
                measure::run(&mut restic(&["backup", &place]))?,
            );
        }
    }
    Ok(())
}

/// Files of about 1 KiB of text in the folders `one` and `two`.
fn plant(home: &Path, files: usize, round: usize) -> Result<(), Error> {
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

fn settled(command: &mut Command) -> Result<measure::Cost, Error> {
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
