//! Runs one command and says what it cost.

use std::fs;
use std::io;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

/// What one run of a command cost.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Cost {
    /// From start to exit, in seconds.
    pub wall: f64,
    /// Peak resident memory of the largest process, in KiB; sampled, so a short-lived peak may be missed.
    pub largest: u64,
    /// Peak of the resident memory of all processes together, in KiB; sampled.
    pub together: u64,
}

/// A command that could not be run or failed; its standard error is part of the message.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program could not be started.
    #[error("could not start {program}: {source}")]
    Start {
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// The program ended with an error.
    #[error("{program} failed: {stderr}")]
    Failed {
        /// The program and its arguments.
        program: String,
        /// What it said.
        stderr: String,
    },
}

/// How often the process tree is looked at.
const SAMPLE: Duration = Duration::from_millis(2);

/// Most moments that a [`Series`] keeps; a longer run is thinned out evenly.
const MOMENTS: usize = 128;

/// Memory over time: seconds since the start, and resident memory of all processes together in KiB.
pub type Series = Vec<(f64, u64)>;

/// Runs `command` to its end.
pub fn run(command: &mut Command) -> Result<Cost, Error> {
    watched(command).map(|(cost, _)| cost)
}

/// Like [`run()`], with the memory over time as well.
pub fn watched(command: &mut Command) -> Result<(Cost, Series), Error> {
    let program = format!("{command:?}");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let begin = Instant::now();
    let child = command.spawn().map_err(|source| Error::Start {
        program: program.clone(),
        source,
    })?;
    let ended = Arc::new(AtomicBool::new(false));
    let sampler = {
        let (ended, root) = (Arc::clone(&ended), child.id());
        thread::spawn(move || sample(root, &ended))
    };
    let output = child.wait_with_output();
    let wall = begin.elapsed().as_secs_f64();
    ended.store(true, Ordering::Relaxed);
    let (largest, series) = sampler.join().unwrap_or_default();
    let output = output.map_err(|source| Error::Start {
        program: program.clone(),
        source,
    })?;
    if !output.status.success() {
        return Err(Error::Failed {
            program,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        });
    }
    let together = series.iter().map(|&(_, sum)| sum).max().unwrap_or(0);
    let cost = Cost {
        wall,
        largest,
        together,
    };
    Ok((cost, thinned(series)))
}

/// At most [`MOMENTS`] of the samples: of each stretch of time, the highest.
fn thinned(series: Series) -> Series {
    let stretch = series.len().div_ceil(MOMENTS).max(1);
    let highest = |moments: &[(f64, u64)]| moments.iter().copied().max_by_key(|&(_, sum)| sum);
    series.chunks(stretch).filter_map(highest).collect()
}

/// Watches a process and its descendants until told to stop; returns the peak of the largest, and the sums over time.
fn sample(root: u32, ended: &AtomicBool) -> (u64, Series) {
    let begin = Instant::now();
    let (mut largest, mut series) = (0, Series::new());
    while !ended.load(Ordering::Relaxed) {
        let mut sum = 0;
        let mut queue = vec![root];
        while let Some(pid) = queue.pop() {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            largest = largest.max(field(&status, "VmHWM:"));
            sum += field(&status, "VmRSS:");
            let tasks = fs::read_dir(format!("/proc/{pid}/task"))
                .into_iter()
                .flatten()
                .flatten();
            for task in tasks {
                let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
                queue.extend(
                    children
                        .split_whitespace()
                        .filter_map(|pid| pid.parse::<u32>().ok()),
                );
            }
        }
        series.push((begin.elapsed().as_secs_f64(), sum));
        thread::sleep(SAMPLE);
    }
    (largest, series)
}

/// A number in KiB from a line of `/proc/<pid>/status`.
fn field(status: &str, name: &str) -> u64 {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}
