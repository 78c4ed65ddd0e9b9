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

/// Runs `command` to its end.
pub fn run(command: &mut Command) -> Result<Cost, Error> {
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
    let (largest, together) = sampler.join().unwrap_or((0, 0));
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
    Ok(Cost {
        wall,
        largest,
        together,
    })
}

/// Watches a process and its descendants until told to stop; returns the peaks of the largest and of the sum.
fn sample(root: u32, ended: &AtomicBool) -> (u64, u64) {
    let (mut largest, mut together) = (0, 0);
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
        together = together.max(sum);
        thread::sleep(SAMPLE);
    }
    (largest, together)
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
