//! The results as one page that needs nothing else: no script, no font, no picture from elsewhere. Charts are SVG,
//! colours follow the reader's light or dark setting, and it fits a phone.

mod chart;

use std::fmt::Write as _;

use crate::report::Report;
use crate::tables::{Results, Section};
use chart::Bar;

/// Text as HTML shows it.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// The page.
pub fn html(results: &Results) -> String {
    let mut body = String::new();
    for section in &results.sections {
        body += &part(section);
    }
    let links: String = results
        .sections
        .iter()
        .map(|section| format!("<a href=\"#{}\">{}</a> ", section.id, escaped(section.title)))
        .collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>Ingot beside other tools</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>Ingot beside other tools</h1>\n<p>{}.</p>\n<nav>{links}</nav>\n\
         {}{body}</body>\n</html>\n",
        escaped(&results.source),
        surroundings(results),
    )
}

/// What the run was made on.
fn surroundings(results: &Results) -> String {
    let environment = &results.environment;
    let mut facts: Vec<(String, String)> = vec![("Threads".into(), environment.cores.to_string())];
    let mut fact = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            facts.push((name.to_owned(), value));
        }
    };
    fact("Processor", environment.processor.clone());
    fact("Memory", environment.memory_mib.map(|mib| format!("{mib} MiB")));
    fact("System", environment.system.clone());
    fact("File system", environment.file_system.clone());
    fact("Page cache", Some(environment.page_cache.to_owned()));
    for (tool, version) in &environment.versions {
        fact(tool, Some(version.clone()));
    }
    if !environment.missing.is_empty() {
        fact(
            "Not installed, so not measured",
            Some(environment.missing.join(", ")),
        );
    }
    let rows: String = facts
        .iter()
        .map(|(name, value)| format!("<tr><th>{}</th><td>{}</td></tr>", escaped(name), escaped(value)))
        .collect();
    format!(
        "<details><summary>Machine and versions</summary><div class=\"wide\"><table>{rows}</table></div></details>\n"
    )
}

fn part(section: &Section) -> String {
    let report = &section.report;
    let mut text = format!(
        "<section id=\"{}\">\n<h2>{}</h2>\n<p>{}</p>\n<div class=\"grid\">\n",
        section.id,
        escaped(section.title),
        escaped(section.note),
    );
    for (row, tools) in report.rows() {
        let walls: Vec<Bar> = tools
            .iter()
            .filter_map(|(tool, runs)| {
                let value = runs.median(|cost| cost.wall)?;
                Some(Bar {
                    tool,
                    value,
                    label: seconds(value),
                })
            })
            .collect();
        let memory: Vec<Bar> = tools
            .iter()
            .filter_map(|(tool, runs)| {
                let value = runs.median(|cost| cost.together as f64)? / 1024.0;
                Some(Bar {
                    tool,
                    value,
                    label: format!("{value:.0} MiB"),
                })
            })
            .collect();
        let _ = writeln!(
            text,
            "<figure><figcaption>{}</figcaption>{}<p class=\"small\">peak memory</p>{}</figure>",
            escaped(row),
            chart::bars(&format!("{row}: seconds"), &walls),
            chart::bars(&format!("{row}: memory"), &memory),
        );
    }
    for (row, tools) in report.sizes() {
        let bytes: Vec<Bar> = tools
            .iter()
            .map(|(tool, &bytes)| Bar {
                tool,
                value: bytes as f64,
                label: bytes_in_words(bytes),
            })
            .collect();
        let _ = writeln!(
            text,
            "<figure><figcaption>{}</figcaption>{}</figure>",
            escaped(row),
            chart::bars(&format!("{row}: bytes"), &bytes),
        );
    }
    text += &lines(report);
    text += "</div>\n";
    text += &figures(section);
    text += "</section>\n";
    text
}

/// Rows over time: each push in turn, and memory during the long runs.
fn lines(report: &Report) -> String {
    let mut text = String::new();
    for (row, tools) in report.rows() {
        let most = tools.values().map(|runs| runs.walls().len()).max().unwrap_or(0);
        if most < 5 {
            continue;
        }
        let series: Vec<(&str, Vec<(f64, f64)>)> = tools
            .iter()
            .map(|(tool, runs)| {
                let points = runs.walls().into_iter().enumerate();
                (
                    tool.as_str(),
                    points
                        .map(|(at, wall)| (at as f64 + 1.0, wall * 1000.0))
                        .collect(),
                )
            })
            .collect();
        let _ = writeln!(
            text,
            "<figure><figcaption>{}, one after the other</figcaption>{}</figure>",
            escaped(row),
            chart::lines(&format!("{row} over time"), "run", "ms", &series),
        );
    }
    for (row, tools) in report.series() {
        let series: Vec<(&str, Vec<(f64, f64)>)> = tools
            .iter()
            .map(|(tool, moments)| {
                let points = moments
                    .iter()
                    .map(|&(at, kibibytes)| (at, kibibytes as f64 / 1024.0));
                (tool.as_str(), points.collect())
            })
            .collect();
        let _ = writeln!(
            text,
            "<figure><figcaption>{}: memory over time</figcaption>{}</figure>",
            escaped(row),
            chart::lines(&format!("{row}: memory over time"), "s", "MiB", &series),
        );
    }
    text
}

/// The numbers behind the charts.
fn figures(section: &Section) -> String {
    let mut rows = String::new();
    for (row, tools) in section.report.rows() {
        let base = tools
            .get(section.base)
            .and_then(|runs| runs.median(|cost| cost.wall));
        for (tool, runs) in tools {
            let Some(wall) = runs.median(|cost| cost.wall) else {
                continue;
            };
            let (low, high) = runs.range();
            let mib = |kibibytes: Option<f64>| {
                kibibytes.map_or(String::new(), |value| format!("{:.1}", value / 1024.0))
            };
            let _ = writeln!(
                rows,
                "<tr data-row=\"{row}\" data-tool=\"{tool}\"><th>{row}</th><td>{tool}</td><td data-median=\"{wall}\">{}</td>\
                 <td>{}–{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
                seconds(wall),
                seconds(low),
                seconds(high),
                base.map_or(String::new(), |base| format!("{:.2}", wall / base)),
                mib(runs.median(|cost| cost.largest as f64)),
                mib(runs.median(|cost| cost.together as f64)),
                row = escaped(row),
                tool = escaped(tool),
            );
        }
    }
    for (row, tools) in section.report.sizes() {
        let base = tools.get(section.base).copied().filter(|&bytes| bytes > 0);
        for (tool, bytes) in tools {
            let _ = writeln!(
                rows,
                "<tr data-row=\"{row}\" data-tool=\"{tool}\"><th>{row}</th><td>{tool}</td><td data-bytes=\"{bytes}\">{}</td>\
                 <td></td><td>{}</td><td></td><td></td></tr>",
                bytes_in_words(*bytes),
                base.map_or(String::new(), |base| format!(
                    "{:.2}",
                    *bytes as f64 / base as f64
                )),
                row = escaped(row),
                tool = escaped(tool),
            );
        }
    }
    format!(
        "<details><summary>All figures</summary><div class=\"wide\"><table><thead><tr><th>row</th><th>tool</th>\
         <th>median</th><th>min–max</th><th>ratio to {}</th><th>largest process, MiB</th><th>all processes, MiB</th>\
         </tr></thead><tbody>\n{rows}</tbody></table></div></details>\n",
        escaped(section.base),
    )
}

/// A time as people read it.
fn seconds(value: f64) -> String {
    match value {
        _ if value < 0.1 => format!("{:.1} ms", value * 1000.0),
        _ if value < 1.0 => format!("{:.0} ms", value * 1000.0),
        _ => format!("{value:.2} s"),
    }
}

fn bytes_in_words(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

const STYLE: &str = include_str!("style.css");
