//! Instructions that hot loops take, counted by valgrind: the same binary on the same input takes the same number,
//! whatever else the machine does. Compared with a baseline in the repository; more than 5 % above it is a warning,
//! never a failure, as compilers and Git versions move the counts too.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::measure::Error;
use crate::synthetic::{self, Size};
use crate::workload;

/// Instructions by row.
pub type Counts = BTreeMap<String, u64>;

/// From how many hundredths above the baseline on a row is named.
const TOLERATED: u64 = 5;

/// Counts all rows. `own` is the program that has the probes; it works on one processor, so that no thread waits in a
/// loop that is counted.
pub fn count(own: &Path, room: &Path) -> Result<Counts, Error> {
    let history = synthetic::make(Size::Small, &room.join("history.git"))?;
    let pack = only_pack(&history)?;
    let into = room.join("indexed");
    std::fs::create_dir_all(&into).map_err(failed(&into))?;
    let history = history.into_os_string();
    let rows: [(&str, Vec<&std::ffi::OsStr>); 5] = [
        ("enumerate", vec!["enumerate".as_ref(), &history]),
        ("pack", vec!["pack".as_ref(), &history]),
        ("index", vec!["index".as_ref(), pack.as_ref(), into.as_ref()]),
        ("connect", vec!["connect".as_ref(), &history]),
        ("seal", vec!["seal".as_ref(), pack.as_ref()]),
    ];
    let mut counts = Counts::new();
    for (row, arguments) in rows {
        let mut command = Command::new("taskset");
        command
            .args([
                "-c",
                "0",
                "valgrind",
                "--tool=callgrind",
                "--callgrind-out-file=/dev/null",
            ])
            .arg(own)
            .arg("probe")
            .args(arguments);
        let program = format!("{command:?}");
        let output = command.output().map_err(failed(Path::new("valgrind")))?;
        let said = String::from_utf8_lossy(&output.stderr);
        match collected(&said) {
            Some(count) if output.status.success() => drop(counts.insert(row.to_owned(), count)),
            _ => {
                return Err(Error::Failed {
                    program,
                    stderr: said.into_owned(),
                });
            }
        }
    }
    Ok(counts)
}

/// The number in valgrind's line `Collected : N`.
fn collected(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// A table beside the baseline, and whether a row is above what is tolerated.
pub fn compare(counts: &Counts, baseline: &Counts) -> (String, bool) {
    let mut text = format!(
        "{:<12} {:>16} {:>16} {:>8}\n",
        "row", "instructions", "baseline", "change"
    );
    let mut above = false;
    for (row, &count) in counts {
        let Some(&before) = baseline.get(row).filter(|&&before| before > 0) else {
            text += &format!("{row:<12} {count:>16} {:>16} {:>8}\n", "-", "new");
            continue;
        };
        let change = (count as f64 / before as f64 - 1.0) * 100.0;
        let warned = count > before + before * TOLERATED / 100;
        above |= warned;
        let mark = if warned { "  warning: more than before" } else { "" };
        text += &format!("{row:<12} {count:>16} {before:>16} {change:>+7.1}%{mark}\n");
    }
    (text, above)
}

fn only_pack(history: &Path) -> Result<PathBuf, Error> {
    let folder = workload::text(history, &["rev-parse", "--git-path", "objects/pack"])?;
    let folder = history.join(folder);
    for entry in std::fs::read_dir(&folder).map_err(failed(&folder))? {
        let path = entry.map_err(failed(&folder))?.path();
        if path.extension().is_some_and(|end| end == "pack") {
            return Ok(path);
        }
    }
    Err(Error::Failed {
        program: folder.display().to_string(),
        stderr: "there is no pack here".into(),
    })
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> Error {
    let program = path.display().to_string();
    move |source| Error::Start {
        program: program.clone(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_a_twentieth_above_the_baseline_is_told() {
        let counts = |number| Counts::from([("pack".to_owned(), number)]);
        assert!(!compare(&counts(1049), &counts(1000)).1);
        let (text, above) = compare(&counts(1051), &counts(1000));
        assert!(above && text.contains("+5.1%  warning"), "{text}");
        assert!(!compare(&counts(500), &counts(1000)).1);
        assert!(!compare(&counts(500), &Counts::new()).1, "a new row");
    }

    #[test]
    fn the_count_is_read_from_what_valgrind_says() {
        assert_eq!(collected("==1== \n==1== Collected : 123456\n"), Some(123_456));
        assert_eq!(collected("valgrind: no such program"), None);
    }
}
