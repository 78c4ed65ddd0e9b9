//! What the programs are built from: no code in C, and nothing that needs a C library, but for the one exception that
//! the documentation names.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Crates that build or find C code.
const BUILDERS: [&str; 8] = [
    "cc",
    "cmake",
    "bindgen",
    "pkg-config",
    "vcpkg",
    "autotools",
    "nasm-rs",
    "cxx-build",
];

/// The one crate that may build C or assembly: its fast paths are optional, and Rust stands in where no compiler is.
const EXCEPTION: &str = "blake3";

/// Names like those of crates that link C libraries, of crates that only declare what the system has anyway.
const PLAIN: [&str; 5] = [
    "linux-raw-sys",
    "windows-sys",
    "core-foundation-sys",
    "js-sys",
    "web-sys",
];

/// Every package that the workspace is built from on the machine at hand, with those that it needs, or what cargo says
/// when it has not got them all. Cargo prints the needs of each once.
fn packages(edges: &str, features: &[&str]) -> Result<BTreeMap<String, BTreeSet<String>>, String> {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--workspace"])
        .args(features)
        .args(["--edges", edges, "--prefix", "depth"])
        .args(["--format", ":{p}", "--manifest-path", manifest])
        .output()
        .unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let mut needs: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut above: Vec<String> = Vec::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let Some((depth, package)) = line.split_once(':') else {
            continue;
        };
        let name = package.split(' ').next().unwrap().to_owned();
        above.truncate(depth.parse().unwrap());
        needs.entry(name.clone()).or_default();
        if let Some(parent) = above.last() {
            needs.get_mut(parent).unwrap().insert(name.clone());
        }
        above.push(name);
    }
    Ok(needs)
}

/// What is wrong with a tree of packages.
fn faults(needs: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut faults = Vec::new();
    for (package, needed) in needs {
        for builder in needed.iter().filter(|name| BUILDERS.contains(&name.as_str())) {
            // A builder may well need another.
            if package != EXCEPTION && !BUILDERS.contains(&package.as_str()) {
                faults.push(format!("{package} is built with {builder}"));
            }
        }
        let binds = package.ends_with("-sys") && !PLAIN.contains(&package.as_str());
        if binds {
            faults.push(format!("{package} links a C library"));
        }
    }
    faults
}

#[test]
fn no_c_is_built_or_linked() {
    let needs = packages("normal,build", &[]).unwrap();
    assert!(needs.contains_key("ingot-helper") && needs.contains_key("gix"));
    assert_eq!(faults(&needs), Vec::<String>::new());
    // What is behind features is downloaded only where somebody has built it.
    match packages("normal,build", &["--all-features"]) {
        Ok(needs) => assert_eq!(faults(&needs), Vec::<String>::new()),
        Err(message) => assert!(message.contains("offline"), "{message}"),
    }
}

#[test]
fn c_would_be_noticed() {
    let tree = |edges: &[(&str, &str)]| {
        let mut needs: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (package, needed) in edges {
            needs.entry((*needed).to_owned()).or_default();
            needs
                .entry((*package).to_owned())
                .or_default()
                .insert((*needed).to_owned());
        }
        needs
    };
    assert_eq!(
        faults(&tree(&[("blake3", "cc"), ("rustix", "linux-raw-sys")])).len(),
        0
    );
    assert_eq!(faults(&tree(&[("zstd", "zstd-sys")])).len(), 1);
    assert_eq!(faults(&tree(&[("ring", "cc"), ("blake3", "cc")])).len(), 1);
}
