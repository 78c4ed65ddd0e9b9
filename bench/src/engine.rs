//! Rows of the engine alone: enumerating, packing and indexing a whole repository, beside the Git program for each.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::measure::{self, Error};
use crate::report::Report;
use crate::workload;

/// Measures all rows `rounds` times on the repository `origin`; `own` is the program that has the probes.
pub fn run(own: &Path, origin: &Path, rounds: usize, report: &mut Report) -> Result<(), Error> {
    let pack = largest_pack(origin)?;
    let at = origin.to_string_lossy().into_owned();
    let failed = |source| Error::Start {
        program: "a temporary folder".into(),
        source,
    };
    let room = TempDir::new().map_err(failed)?;
    let indexed = workload::with_bitmap(origin, room.path())?;
    let indexed = indexed.to_string_lossy().into_owned();
    for _ in 0..rounds {
        let probe = |step: &str| {
            let mut command = Command::new(own);
            command.args(["probe", step]);
            command
        };
        let walk = measure::run(workload::git(origin).args(["rev-list", "--objects", "HEAD"]))?;
        report.add("enumerate", "git", walk);
        report.add("enumerate", "ingot", measure::run(probe("enumerate").arg(&at))?);
        report.add("enumerate with a bitmap", "git", walk);
        let cost = measure::run(probe("enumerate").arg(&indexed))?;
        report.add("enumerate with a bitmap", "ingot", cost);
        let mut git = Command::new("sh");
        git.current_dir(origin).args([
            "-c",
            "git rev-parse HEAD | git pack-objects -q --revs --stdout --delta-base-offset",
        ]);
        report.add("pack", "git", measure::run(&mut git)?);
        report.add("pack", "ingot", measure::run(probe("pack").arg(&at))?);
        let room = TempDir::new().map_err(failed)?;
        rustix::fs::sync();
        let mut git = workload::git(room.path());
        git.arg("index-pack")
            .arg("-o")
            .arg(room.path().join("git.idx"))
            .arg(&pack);
        report.add("index", "git", measure::run(&mut git)?);
        rustix::fs::sync();
        report.add(
            "index",
            "ingot",
            measure::run(probe("index").arg(&pack).arg(room.path()))?,
        );
    }
    Ok(())
}

fn largest_pack(origin: &Path) -> Result<PathBuf, Error> {
    let folder = PathBuf::from(workload::text(
        origin,
        &["rev-parse", "--git-path", "objects/pack"],
    )?);
    let folder = origin.join(folder);
    let failed = |source| Error::Start {
        program: folder.display().to_string(),
        source,
    };
    let mut packs = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.path().extension().is_some_and(|end| end == "pack") {
            packs.push((entry.metadata().map_err(failed)?.len(), entry.path()));
        }
    }
    let none = || Error::Failed {
        program: folder.display().to_string(),
        stderr: "there is no pack here".into(),
    };
    packs.into_iter().max().map(|(_, path)| path).ok_or_else(none)
}
