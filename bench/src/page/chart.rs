//! Charts as SVG: bars by tool, and lines over time.

use std::fmt::Write as _;

use super::escaped;

/// One bar.
pub struct Bar<'a> {
    /// Whose it is; also its colour.
    pub tool: &'a str,
    /// Its length.
    pub value: f64,
    /// What is written beside it.
    pub label: String,
}

/// Width of a chart in its own units; pages scale it.
const WIDTH: f64 = 320.0;
/// Where bars begin: names of tools are left of it.
const LEFT: f64 = 52.0;
/// Room for what is written behind a bar.
const RIGHT: f64 = 62.0;
/// Height of a line with one bar.
const LINE: f64 = 20.0;
/// From this ratio of the longest to the shortest on, lengths are logarithms, and the chart says so.
const LOGARITHMIC: f64 = 25.0;

/// The colour of a tool: a variable of the page's style.
fn colour(tool: &str) -> String {
    match tool {
        "ingot" | "git" | "peer" | "gcrypt" | "cp" | "restic" | "borg" | "mkit" => format!("var(--{tool})"),
        _ => "var(--other)".to_owned(),
    }
}

/// Horizontal bars, one for each tool.
pub fn bars(title: &str, bars: &[Bar<'_>]) -> String {
    let positive = bars.iter().map(|bar| bar.value).filter(|&value| value > 0.0);
    let (least, most) = positive.fold((f64::INFINITY, 0.0_f64), |(least, most), value| {
        (least.min(value), most.max(value))
    });
    let logarithmic = most / least > LOGARITHMIC;
    let room = WIDTH - LEFT - RIGHT;
    let length = |value: f64| -> f64 {
        match () {
            () if value <= 0.0 || most <= 0.0 => 0.0,
            // The shortest is drawn as a tenth, so that it can be seen.
            () if logarithmic => room * (0.1 + 0.9 * (value / least).ln() / (most / least).ln()),
            () => room * value / most,
        }
    };
    let height = LINE * bars.len() as f64 + if logarithmic { 12.0 } else { 0.0 };
    let mut svg = head(title, height);
    for (at, bar) in bars.iter().enumerate() {
        let top = LINE * at as f64;
        let _ = write!(
            svg,
            "<text x=\"0\" y=\"{:.0}\">{}</text><rect class=\"bar\" x=\"{LEFT}\" y=\"{:.0}\" width=\"{:.1}\" height=\"12\" \
             rx=\"2\" style=\"fill:{}\"><title>{}: {}</title></rect><text x=\"{:.1}\" y=\"{:.0}\">{}</text>",
            top + 13.0,
            escaped(bar.tool),
            top + 3.0,
            length(bar.value).max(1.0),
            colour(bar.tool),
            escaped(bar.tool),
            escaped(&bar.label),
            LEFT + length(bar.value).max(1.0) + 4.0,
            top + 13.0,
            escaped(&bar.label),
        );
    }
    if logarithmic {
        let _ = write!(
            svg,
            "<text class=\"faint\" x=\"{LEFT}\" y=\"{:.0}\">logarithmic</text>",
            height - 2.0
        );
    }
    svg + "</svg>"
}

/// Lines through points, one for each tool, from zero upwards.
pub fn lines(title: &str, across: &str, up: &str, series: &[(&str, Vec<(f64, f64)>)]) -> String {
    let (left, top, bottom) = (40.0, 8.0, 130.0);
    let points = || series.iter().flat_map(|(_, points)| points.iter().copied());
    let widest = points()
        .map(|(x, _)| x)
        .fold(0.0, f64::max)
        .max(f64::MIN_POSITIVE);
    let highest = points()
        .map(|(_, y)| y)
        .fold(0.0, f64::max)
        .max(f64::MIN_POSITIVE);
    let legend = bottom + 32.0;
    let mut svg = head(title, legend + 6.0);
    let _ = write!(
        svg,
        "<path class=\"axis\" d=\"M{left} {top}V{bottom}H{WIDTH}\"/>\
         <text class=\"faint\" x=\"0\" y=\"{:.0}\">{} {}</text><text class=\"faint\" x=\"0\" y=\"{bottom:.0}\">0</text>\
         <text class=\"faint\" text-anchor=\"end\" x=\"{WIDTH}\" y=\"{:.0}\">{} {}</text>",
        top + 8.0,
        short(highest),
        escaped(up),
        bottom + 13.0,
        short(widest),
        escaped(across),
    );
    for (at, (tool, points)) in series.iter().enumerate() {
        let path: String = points
            .iter()
            .map(|(x, y)| {
                let (x, y) = (
                    left + (WIDTH - left) * x / widest,
                    bottom - (bottom - top) * y / highest,
                );
                format!("{x:.1},{y:.1} ")
            })
            .collect();
        let _ = write!(
            svg,
            "<polyline points=\"{}\" style=\"stroke:{}\"/><rect x=\"{:.0}\" y=\"{:.0}\" width=\"10\" height=\"10\" rx=\"2\" \
             style=\"fill:{}\"/><text x=\"{:.0}\" y=\"{legend:.0}\">{}</text>",
            path.trim_end(),
            colour(tool),
            left + 66.0 * at as f64,
            legend - 9.0,
            colour(tool),
            left + 66.0 * at as f64 + 14.0,
            escaped(tool),
        );
    }
    svg + "</svg>"
}

fn head(title: &str, height: f64) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"{}\">",
        escaped(title)
    )
}

/// A number with as many digits as fit beside an axis.
fn short(value: f64) -> String {
    match value {
        _ if value >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        _ if value >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
