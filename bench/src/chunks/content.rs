//! What is put into repositories.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use super::failed;
use crate::measure::Error;
use crate::workload::{self, Noise};

/// Commits between the two archives, on the first-parent line: about as many as lie between two releases.
const DISTANCE: &str = "HEAD~200";

/// Two versions of a repository's sources as uncompressed archives, the earlier one first.
pub(super) fn archives(sources: &Path) -> Result<[Vec<u8>; 2], Error> {
    Ok([archive(sources, DISTANCE)?, archive(sources, "HEAD")?])
}

fn archive(sources: &Path, revision: &str) -> Result<Vec<u8>, Error> {
    let mut command = workload::git(sources);
    command.args(["archive", "--format=tar", revision]);
    let program = format!("{command:?}");
    let output = command.output().map_err(failed(sources))?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(Error::Failed {
            program,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }),
    }
}

/// A file that does not compress, on the disk.
pub(super) fn write_noise(path: &Path, mebibytes: usize, noise: &mut Noise) -> Result<(), Error> {
    let mut file = fs::File::create(path).map_err(failed(path))?;
    for _ in 0..mebibytes {
        file.write_all(&bytes(1 << 20, noise)).map_err(failed(path))?;
    }
    file.sync_all().map_err(failed(path))
}

/// Bytes that do not compress.
pub(super) fn bytes(count: usize, noise: &mut Noise) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(count + 8);
    while bytes.len() < count {
        bytes.extend_from_slice(&noise.next().to_le_bytes());
    }
    bytes.truncate(count);
    bytes
}
