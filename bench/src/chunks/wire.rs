//! What a small edit of a big file costs on its way to somebody who has the version before.

use std::os::unix::fs::FileExt as _;
use std::path::Path;

use gix_hash::ObjectId;
use ingot_engine::pack::write;
use ingot_engine::progress::Silent;
use ingot_engine::repository::Repository;
use ingot_engine::walk::{self, Request};

use super::content::write_noise;
use super::failed;
use super::tool::{COMMIT, Tool};
use crate::measure::Error;
use crate::report::Report;
use crate::workload::{self, Noise};

/// Overwrites sixteen bytes of a file of so many MiB and notes the bytes of a push: for Git those of a thin pack; for
/// this project those of the pack that an encrypted remote gets, which is complete in itself; for mkit what a remote in a
/// folder grows by.
pub(super) fn small_edit(
    tool: &Tool,
    repo: &Path,
    mebibytes: usize,
    report: &mut Report,
) -> Result<(), Error> {
    tool.init(repo)?;
    let file = repo.join("file.bin");
    write_noise(&file, mebibytes, &mut Noise::new(mebibytes as u64))?;
    tool.run(repo, COMMIT)?;
    let remote = repo.with_extension("remote");
    let before = match tool {
        Tool::Mkit(_) => {
            super::make_folder(&remote)?;
            let url = format!("mkit+file://{}", remote.display());
            tool.run(
                repo,
                &format!("$T remote add there {url} && $T push there >/dev/null"),
            )?;
            workload::bytes_in(&remote)?
        }
        _ => 0,
    };
    let opened = std::fs::File::options().write(true).open(&file);
    opened
        .and_then(|file| file.write_all_at(b"sixteen new byte", 1_000_000))
        .map_err(failed(&file))?;
    tool.run(repo, COMMIT)?;
    let bytes = match tool {
        Tool::Git => {
            let script =
                "printf 'HEAD\\n^HEAD~1\\n' | git pack-objects -q --revs --thin --stdout | wc -c >size";
            tool.run(repo, script)?;
            let text = std::fs::read_to_string(repo.join("size")).map_err(failed(repo))?;
            text.trim().parse().unwrap_or(0)
        }
        Tool::Chunk(_) => pack(repo)?,
        Tool::Mkit(_) => {
            tool.run(repo, "$T push there >/dev/null")?;
            workload::bytes_in(&remote)?.saturating_sub(before)
        }
    };
    report.size(
        &format!("16 bytes in {mebibytes} MiB, on the wire"),
        tool.name(),
        bytes,
    );
    Ok(())
}

/// Bytes of the pack with what the last commit has and the one before has not.
fn pack(repo: &Path) -> Result<u64, Error> {
    let broken = |error: &dyn std::fmt::Display| Error::Failed {
        program: format!("the engine in {}", repo.display()),
        stderr: error.to_string(),
    };
    let commit = |name: &str| {
        let text = workload::text(repo, &["rev-parse", name])?;
        ObjectId::from_hex(text.as_bytes()).map_err(|error| broken(&error))
    };
    let (wants, haves) = ([commit("HEAD")?], [commit("HEAD~1")?]);
    let repository = Repository::open(repo).map_err(|error| broken(&error))?;
    let store = repository.store().map_err(|error| broken(&error))?;
    let request = Request {
        wants: &wants,
        haves: &haves,
        ..Request::default()
    };
    let objects = walk::enumerate(&store, &request, &Silent).map_err(|error| broken(&error))?;
    let plan =
        write::plan(&store, &objects, &write::Options::default(), &Silent).map_err(|error| broken(&error))?;
    let summary = plan
        .stream(&mut std::io::sink(), &Silent)
        .map_err(|error| broken(&error))?;
    Ok(summary.bytes)
}
