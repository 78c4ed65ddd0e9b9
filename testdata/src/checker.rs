//! Runs the independent checker of directory stores, the judge of what is written into them.

use std::path::Path;
use std::process::Command;

/// Checks a directory store with `testdata/check_store.py` as the device of a key file. Returns the checker's JSON
/// summary, or its one line about the rule that is broken. `options` go before the store, for example `--clean`.
#[track_caller]
pub fn check_store(store: &Path, key_file: &Path, options: &[&str]) -> Result<String, String> {
    let output = Command::new("python3")
        .arg(crate::root().join("check_store.py"))
        .args(options)
        .args([store, key_file])
        .output()
        .expect("python3 is installed where tests run");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    match output.status.code() {
        Some(0) => Ok(text(&output.stdout)),
        Some(1) => match text(&output.stderr).strip_prefix("check_store: ") {
            Some(reason) => Err(reason.to_owned()),
            None => panic!("the checker itself failed:\n{}", text(&output.stderr)),
        },
        _ => panic!("the checker did not run:\n{}", text(&output.stderr)),
    }
}
