//! Rows of results, as a table for people and as JSON for programs.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::measure::{Cost, Series};

/// All runs of one tool on one row.
#[derive(Debug, Default, Clone, Serialize)]
pub struct Runs {
    costs: Vec<Cost>,
}

impl Runs {
    /// Seconds of each run, in the order in which they were made.
    pub fn walls(&self) -> Vec<f64> {
        self.costs.iter().map(|cost| cost.wall).collect()
    }

    /// The shortest and the longest run, in seconds.
    pub fn range(&self) -> (f64, f64) {
        let walls = self.walls();
        (
            walls.iter().copied().fold(f64::INFINITY, f64::min),
            walls.iter().copied().fold(0.0, f64::max),
        )
    }

    /// The median of what `pick` takes from each run.
    pub fn median(&self, pick: impl Fn(&Cost) -> f64) -> Option<f64> {
        let mut values: Vec<f64> = self.costs.iter().map(pick).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    }
}

/// What was measured: rows in the order in which they were first met, tools by name.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    rows: Vec<(String, BTreeMap<String, Runs>)>,
    /// In bytes; of several runs, the last.
    sizes: Vec<(String, BTreeMap<String, u64>)>,
    /// Memory over time; of several runs, the last.
    series: Vec<(String, BTreeMap<String, Series>)>,
}

/// What belongs to `row`, made when it is new.
fn entry<'a, T: Default>(rows: &'a mut Vec<(String, T)>, row: &str) -> &'a mut T {
    let found = rows.iter().position(|(name, _)| name == row);
    let at = found.unwrap_or_else(|| {
        rows.push((row.to_owned(), T::default()));
        rows.len() - 1
    });
    &mut rows[at].1
}

impl Report {
    /// Adds one run.
    pub fn add(&mut self, row: &str, tool: &str, cost: Cost) {
        let runs = entry(&mut self.rows, row).entry(tool.to_owned());
        runs.or_default().costs.push(cost);
    }

    /// Adds one run with its memory over time.
    pub fn add_watched(&mut self, row: &str, tool: &str, (cost, series): (Cost, Series)) {
        self.add(row, tool, cost);
        entry(&mut self.series, row).insert(tool.to_owned(), series);
    }

    /// Notes how many bytes something takes.
    pub fn size(&mut self, row: &str, tool: &str, bytes: u64) {
        entry(&mut self.sizes, row).insert(tool.to_owned(), bytes);
    }

    /// Rows with the runs of each tool, by name.
    pub fn rows(&self) -> &[(String, BTreeMap<String, Runs>)] {
        &self.rows
    }

    /// Rows of sizes in bytes.
    pub fn sizes(&self) -> &[(String, BTreeMap<String, u64>)] {
        &self.sizes
    }

    /// Memory over time of those rows that keep it.
    pub fn series(&self) -> &[(String, BTreeMap<String, Series>)] {
        &self.series
    }

    /// A table with the ratio of every tool to `base`.
    pub fn table(&self, base: &str) -> String {
        let mut text = format!(
            "{:<34} {:<10} {:>10} {:>18} {:>7} {:>10} {:>10}\n",
            "row", "tool", "median s", "min-max s", "ratio", "MiB", "MiB tree"
        );
        for (row, tools) in &self.rows {
            let reference = tools.get(base).and_then(|runs| runs.median(|cost| cost.wall));
            for (tool, runs) in tools {
                let Some(wall) = runs.median(|cost| cost.wall) else {
                    continue;
                };
                let (low, high) = runs.range();
                let ratio = reference.map_or("-".to_owned(), |base| format!("{:.2}", wall / base));
                let mib = |pick: fn(&Cost) -> f64| runs.median(pick).unwrap_or(0.0) / 1024.0;
                text += &format!(
                    "{row:<34} {tool:<10} {wall:>10.3} {:>18} {ratio:>7} {:>10.1} {:>10.1}\n",
                    format!("{low:.3}-{high:.3}"),
                    mib(|cost| cost.largest as f64),
                    mib(|cost| cost.together as f64),
                );
            }
        }
        for (row, tools) in &self.sizes {
            let reference = tools.get(base).copied().filter(|&bytes| bytes > 0);
            for (tool, &bytes) in tools {
                let ratio = reference.map_or("-".to_owned(), |base| {
                    format!("{:.2}", bytes as f64 / base as f64)
                });
                text += &format!("{row:<34} {tool:<10} {bytes:>16} bytes {:>14} {ratio:>7}\n", "");
            }
        }
        text
    }
}
