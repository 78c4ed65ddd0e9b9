//! The older half of a history, by commits or by bytes.

use std::path::{Path, PathBuf};

use ingot_engine::pack::write;
use ingot_engine::progress::Silent;
use ingot_engine::repository::Repository;
use ingot_engine::walk;

use crate::measure::Error;
use crate::workload;

/// What there is half of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// The commits. Old ones are smaller as a rule.
    Commits,
    /// The bytes of a pack.
    Bytes,
}

impl By {
    /// A repository below `room` with the commit on the first-parent line of HEAD of `origin` that has about half of what
    /// HEAD has, and all that it reaches.
    pub fn older(self, origin: &Path, room: &Path) -> Result<PathBuf, Error> {
        let weigh = |revision: &str| match self {
            By::Commits => commits(origin, revision),
            By::Bytes => packed(origin, revision),
        };
        let line = workload::text(origin, &["rev-list", "--first-parent", "HEAD"])?;
        let line: Vec<&str> = line.lines().collect();
        let newest = line.first().copied().unwrap_or("HEAD");
        let place = half_of(line.len(), weigh(newest)?, |place| weigh(line[place]))?;
        let revision = line.get(place).copied().unwrap_or("HEAD");
        workload::copy(origin, revision, &room.join("half.git"))
    }
}

/// The first of `count` places, weights falling from each to the next, that weighs no more than half of `all`.
fn half_of(count: usize, all: u64, weigh: impl Fn(usize) -> Result<u64, Error>) -> Result<usize, Error> {
    let (mut low, mut high) = (0, count.saturating_sub(1));
    while low < high {
        let middle = (low + high) / 2;
        match weigh(middle)? > all / 2 {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    Ok(low)
}

fn commits(origin: &Path, revision: &str) -> Result<u64, Error> {
    let number = workload::text(origin, &["rev-list", "--count", revision])?;
    Ok(number.parse().unwrap_or(0))
}

/// The length of the pack that a push of `revision` would send.
fn packed(origin: &Path, revision: &str) -> Result<u64, Error> {
    let weigh = || -> Result<u64, Box<dyn std::error::Error>> {
        let repository = Repository::open(origin)?;
        let store = repository.store()?;
        let tip = repository.gix().rev_parse_single(revision)?.detach();
        let request = walk::Request {
            wants: &[tip],
            ..walk::Request::default()
        };
        let objects = walk::enumerate(&store, &request, &Silent)?;
        let plan = write::plan(&store, &objects, &write::Options::default(), &Silent)?;
        Ok(plan.stream(&mut std::io::sink(), &Silent)?.bytes)
    };
    weigh().map_err(|error| Error::Failed {
        program: format!("packing {revision} of {}", origin.display()),
        stderr: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_older_part_has_half_of_the_bytes_or_of_the_commits() {
        let folder = tempfile::tempdir().unwrap();
        let origin = folder.path().join("origin");
        workload::quietly(folder.path(), &["init", "-q", "-b", "main", "origin"]).unwrap();
        let mut noise = workload::Noise::new(3);
        for number in 0..20 {
            // Each commit brings more than the one before it.
            let text: String = (0..number * 20)
                .map(|_| format!("{:x}\n", noise.next()))
                .collect();
            std::fs::write(origin.join(format!("file-{number}")), text).unwrap();
            workload::quietly(&origin, &["add", "."]).unwrap();
            workload::quietly(&origin, &["commit", "-q", "-m", "one"]).unwrap();
        }
        workload::quietly(&origin, &["repack", "-adq"]).unwrap();
        let all = packed(&origin, "HEAD").unwrap();
        let part = |by: By| {
            let room = tempfile::tempdir().unwrap();
            let half = by.older(&origin, room.path()).unwrap();
            (commits(&half, "main").unwrap(), packed(&half, "main").unwrap())
        };
        assert_eq!(part(By::Commits).0, 10);
        let (commits, bytes) = part(By::Bytes);
        assert!((12..=15).contains(&commits), "{commits} commits");
        assert!(bytes > all / 5 * 2 && bytes <= all / 2, "{bytes} of {all} bytes");
    }
}
