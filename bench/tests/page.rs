//! The page of results in a real browser: charts that can be seen, figures equal to the JSON, no script, nothing from
//! elsewhere, readable in the dark and on a phone.

#![allow(clippy::unwrap_used)] // a test that stops where it stands

use std::path::{Path, PathBuf};
use std::process::Command;

use ingot_bench::environment::Environment;
use ingot_bench::measure::Cost;
use ingot_bench::report::Report;
use ingot_bench::tables::{Results, Section};
use serde_json::Value;

/// What the browser is asked to find out once the page stands. It runs in a copy of the page, behind its end.
const PROBE: &str = r#"<pre id="probe"></pre><script>
const boxes = selector => [...document.querySelectorAll(selector)].map(one => one.getBoundingClientRect());
const found = {
  charts: boxes('svg').filter(box => box.width > 100 && box.height > 15).length,
  bars: boxes('svg rect.bar').filter(box => box.width > 0.5 && box.height > 5).length,
  longest: [...document.querySelectorAll('svg')].map(svg => {
    const bars = [...svg.querySelectorAll('rect.bar')].map(bar => bar.getBoundingClientRect().width);
    return bars.indexOf(Math.max(...bars));
  }),
  lines: document.querySelectorAll('svg polyline').length,
  paper: getComputedStyle(document.body).backgroundColor,
  ink: getComputedStyle(document.body).color,
  medians: [...document.querySelectorAll('td[data-median]')].map(cell =>
    [cell.parentNode.dataset.row, cell.parentNode.dataset.tool, Number(cell.dataset.median)]),
  bytes: [...document.querySelectorAll('td[data-bytes]')].map(cell =>
    [cell.parentNode.dataset.row, cell.parentNode.dataset.tool, Number(cell.dataset.bytes)]),
  heading: document.querySelector('h2').textContent,
};
document.querySelectorAll('details').forEach(details => details.open = true);
document.documentElement.style.width = '360px';
document.body.style.width = '360px';
found.narrow = Math.max(...boxes('h1, h2, p, figure, svg, .wide').map(box => box.right));
document.getElementById('probe').textContent = JSON.stringify(found);
</script>"#;

fn results() -> Results {
    let cost = |wall: f64, largest: u64| Cost {
        wall,
        largest,
        together: largest + 1000,
    };
    let mut report = Report::default();
    for wall in [21.9, 21.7, 22.4] {
        report.add("first push", "git", cost(wall, 511_000));
    }
    let memory = (0u32..90)
        .map(|at| (f64::from(at) / 60.0, u64::from(at) * 1000))
        .collect();
    report.add_watched("first push", "ingot", (cost(1.484, 88_000), memory));
    for step in 0..6 {
        report.add(
            "one-line push",
            "git",
            cost(0.018 + f64::from(step) / 1000.0, 16_000),
        );
        report.add("one-line push", "ingot", cost(0.012, 11_000));
    }
    report.add("a <row> & \"more\"", "ingot", cost(0.5, 1));
    report.size("remote after the first push", "git", 319_838_708);
    report.size("remote after the first push", "ingot", 306_632_324);
    Results {
        environment: Environment {
            processor: Some(
                "an <odd> & \"long\" name of a processor, longer than a phone is wide @ 2.00GHz".into(),
            ),
            missing: vec!["another tool".into()],
            ..Environment::default()
        },
        source: "a history".into(),
        sections: vec![Section {
            id: "one",
            title: "Encrypted & stored",
            note: "What was done.",
            base: "git",
            report,
        }],
    }
}

/// A browser, from the environment or from PATH.
fn browser() -> Option<PathBuf> {
    if let Some(given) = std::env::var_os("INGOT_BROWSER") {
        return Some(given.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .flat_map(|folder| ["chromium", "chromium-browser", "google-chrome"].map(|name| folder.join(name)))
        .find(|program| program.is_file())
}

/// What the probe finds on the page.
fn look(browser: &Path, page: &Path, more: &[&str]) -> Value {
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ])
        .args(["--disable-dev-shm-usage", "--window-size=1200,900", "--dump-dom"])
        .args(more)
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let begin = dom.find("<pre id=\"probe\">").expect("the page came up") + "<pre id=\"probe\">".len();
    let text = &dom[begin..begin + dom[begin..].find("</pre>").unwrap()];
    let text = text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    serde_json::from_str(&text).unwrap_or_else(|err| panic!("{err}: {text}"))
}

#[test]
fn the_page_shows_what_the_json_says() {
    let room = tempfile::tempdir().unwrap();
    results().write(room.path()).unwrap();
    let page = std::fs::read_to_string(room.path().join("report.html")).unwrap();
    assert!(!page.contains("<script"), "the page needs no script");
    for from_elsewhere in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(from_elsewhere), "{from_elsewhere}");
    }
    let Some(browser) = browser() else {
        eprintln!("no browser is installed: what it would show is not looked at");
        return;
    };
    let probed = room.path().join("probed.html");
    std::fs::write(&probed, page.replace("</body>", &format!("{PROBE}</body>"))).unwrap();
    let found = look(&browser, &probed, &[]);

    // Three rows with time and memory each, one of sizes, one of pushes in turn, one of memory over time.
    assert_eq!(found["charts"], 3 * 2 + 1 + 1 + 1, "{found}");
    assert_eq!(found["bars"], 5 * 2 + 2, "{found}");
    assert_eq!(found["lines"], 2 + 1, "{found}");
    assert_eq!(
        found["longest"][0], 0,
        "git's first push is the longer bar: {found}"
    );
    assert_eq!(found["heading"], "Encrypted & stored");
    assert!(
        found["narrow"].as_f64().unwrap() <= 360.0,
        "nothing is cut off on a phone: {found}"
    );
    assert_eq!(found["paper"], "rgb(255, 255, 255)");

    let json: Value =
        serde_json::from_slice(&std::fs::read(room.path().join("results.json")).unwrap()).unwrap();
    let report = &json["sections"][0]["report"];
    let mut medians = Vec::new();
    for row in report["rows"].as_array().unwrap() {
        for (tool, runs) in row[1].as_object().unwrap() {
            let mut walls: Vec<f64> = runs["costs"]
                .as_array()
                .unwrap()
                .iter()
                .map(|cost| cost["wall"].as_f64().unwrap())
                .collect();
            walls.sort_by(f64::total_cmp);
            medians.push(serde_json::json!([row[0], tool, walls[walls.len() / 2]]));
        }
    }
    assert_eq!(found["medians"], Value::Array(medians));
    let mut bytes = Vec::new();
    for row in report["sizes"].as_array().unwrap() {
        for (tool, size) in row[1].as_object().unwrap() {
            bytes.push(serde_json::json!([row[0], tool, size]));
        }
    }
    assert_eq!(found["bytes"], Value::Array(bytes));

    let dark = look(&browser, &probed, &["--blink-settings=preferredColorScheme=0"]);
    assert_eq!(dark["paper"], "rgb(22, 23, 26)", "{dark}");
    assert_eq!(dark["ink"], "rgb(232, 232, 234)");
}
