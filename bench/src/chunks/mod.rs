//! Rows of chunked files: adding, editing and checking out big files and many small ones, beside plain Git and mkit.

mod content;
mod tool;
mod wire;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::measure::Error;
use crate::report::Report;
use crate::workload::{self, Noise};
use content::{bytes, write_noise};
use tool::{COMMIT, Tool};

/// What is measured beside the rows that are always there.
#[derive(Debug, Clone)]
pub struct Rows {
    /// How large the largest file is, in MiB; 0 leaves its rows out.
    pub huge: usize,
    /// A repository of sources; two of its versions as archives are measured, too.
    pub sources: Option<PathBuf>,
    /// The program `mkit`; otherwise the one on the PATH, if there is one.
    pub mkit: Option<PathBuf>,
}

/// Measures all rows `rounds` times. `binary` is `git-chunk`. Returns the peers that are not there.
pub fn run(
    binary: &Path,
    rows: &Rows,
    rounds: usize,
    report: &mut Report,
) -> Result<Vec<&'static str>, Error> {
    let (tools, missing) = tool::find(binary, rows.mkit.clone());
    let archives = match &rows.sources {
        Some(sources) => Some(content::archives(sources)?),
        None => None,
    };
    for round in 0..rounds {
        for number in 0..tools.len() {
            // No tool always comes first.
            let tool = &tools[(number + round) % tools.len()];
            let room = TempDir::new().map_err(failed(Path::new("a temporary folder")))?;
            let folder = room.path();
            hundred_mebibytes(tool, &folder.join("hundred"), round, report)?;
            small_files(tool, folder, round, report)?;
            for mebibytes in [2, 100] {
                wire::small_edit(tool, &folder.join(format!("wire-{mebibytes}")), mebibytes, report)?;
            }
            if let Some(archives) = &archives {
                archive(tool, &folder.join("archive"), archives, report)?;
            }
            if rows.huge > 0 {
                huge(tool, &folder.join("huge"), rows.huge, round, report)?;
            }
        }
    }
    Ok(missing)
}

/// One file of 100 MiB that does not compress, and changes of it.
fn hundred_mebibytes(tool: &Tool, repo: &Path, round: usize, report: &mut Report) -> Result<(), Error> {
    let name = tool.name();
    report.add("init", name, tool.init(repo)?);
    let file = repo.join("file.bin");
    let mut noise = Noise::new(round as u64 + 1);
    write_noise(&file, 100, &mut noise)?;
    let stored = || workload::bytes_in(&tool.store(repo));
    let empty = stored()?;
    report.add("add + commit 100 MiB", name, tool.run(repo, COMMIT)?);
    let first = stored()?;
    report.size("repository after 100 MiB", name, first);
    report.size(
        "of it beside the file",
        name,
        (first - empty).saturating_sub(100 << 20),
    );
    // The first one may have to look at a file that was added in the same instant.
    tool.run(repo, "$T status >/dev/null")?;
    report.add("status", name, tool.run(repo, "$T status >/dev/null")?);

    let mut append = fs::OpenOptions::new()
        .append(true)
        .open(&file)
        .map_err(failed(&file))?;
    append
        .write_all(&bytes(1 << 20, &mut noise))
        .map_err(failed(&file))?;
    drop(append);
    report.add("append 1 MiB, add + commit", name, tool.run(repo, COMMIT)?);
    report.size(
        "growth after 1 MiB appended",
        name,
        stored()?.saturating_sub(first),
    );
    tool.go_back(repo)?;
    report.add("checkout of the version with 1 MiB more", name, tool.go_on(repo)?);

    let mut content = fs::read(&file).map_err(failed(&file))?;
    content.insert(0, b'x');
    fs::write(&file, &content).map_err(failed(&file))?;
    let before = stored()?;
    report.add("insert one byte at the start", name, tool.run(repo, COMMIT)?);
    report.size(
        "growth after one byte inserted",
        name,
        stored()?.saturating_sub(before),
    );

    let now = std::time::SystemTime::now();
    let touched = fs::File::options()
        .write(true)
        .open(&file)
        .and_then(|file| file.set_modified(now));
    touched.map_err(failed(&file))?;
    report.add("touch 100 MiB, add", name, tool.run(repo, "$T add .")?);
    Ok(())
}

fn small_files(tool: &Tool, folder: &Path, round: usize, report: &mut Report) -> Result<(), Error> {
    let name = tool.name();
    for (row, count, size) in [
        ("100 files of 10 KiB", 100, 10_240),
        ("10,000 files of 4 KiB", 10_000, 4096),
    ] {
        let repo = folder.join(format!("small-{count}"));
        tool.init(&repo)?;
        let mut noise = Noise::new(round as u64 + 7);
        for number in 0..count {
            let inner = repo.join(format!("{}", number % 100));
            make_folder(&inner)?;
            let file = inner.join(format!("{number}.dat"));
            fs::write(&file, bytes(size, &mut noise)).map_err(failed(&file))?;
        }
        report.add(&format!("{row}, add + commit"), name, tool.run(&repo, COMMIT)?);
        report.size(
            &format!("repository after {row}"),
            name,
            workload::bytes_in(&tool.store(&repo))?,
        );
        if count == 10_000 {
            tool.run(&repo, "$T status >/dev/null")?;
            let cost = tool.run(&repo, "$T status >/dev/null")?;
            report.add("status in 10,000 files", name, cost);
            fs::write(repo.join("7/7.dat"), "changed").map_err(failed(&repo))?;
            report.add("one-file commit in 10,000 files", name, tool.run(&repo, COMMIT)?);
        }
    }
    Ok(())
}

fn huge(tool: &Tool, repo: &Path, mebibytes: usize, round: usize, report: &mut Report) -> Result<(), Error> {
    let name = tool.name();
    tool.init(repo)?;
    let file = repo.join("huge.bin");
    write_noise(&file, mebibytes, &mut Noise::new(round as u64 + 99))?;
    let cost = tool.run(repo, COMMIT)?;
    report.add(&format!("add + commit {mebibytes} MiB"), name, cost);
    for (state, warm) in [("cold", false), ("warm", true)] {
        fs::remove_file(&file).map_err(failed(&file))?;
        rustix::fs::sync();
        tool::warm(&tool.store(repo), warm)?;
        let cost = tool.restore(repo, "huge.bin")?;
        report.add(&format!("checkout of {mebibytes} MiB, {state}"), name, cost);
    }
    Ok(())
}

/// An archive of sources, which compresses, and that of a later version.
fn archive(tool: &Tool, repo: &Path, archives: &[Vec<u8>; 2], report: &mut Report) -> Result<(), Error> {
    let name = tool.name();
    tool.init(repo)?;
    let file = repo.join("sources.bin");
    let mut stored = workload::bytes_in(&tool.store(repo))?;
    report.size("the first archive itself", name, archives[0].len() as u64);
    for (archive, what) in archives
        .iter()
        .zip(["an archive of sources", "a later version of it"])
    {
        fs::write(&file, archive).map_err(failed(&file))?;
        report.add(&format!("add + commit {what}"), name, tool.run(repo, COMMIT)?);
        let now = workload::bytes_in(&tool.store(repo))?;
        report.size(&format!("growth by {what}"), name, now.saturating_sub(stored));
        stored = now;
    }
    Ok(())
}

fn make_folder(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(failed(path))
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> Error {
    let program = path.display().to_string();
    move |source| Error::Start {
        program: program.clone(),
        source,
    }
}
