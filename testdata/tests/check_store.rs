//! The checker of stores is itself checked: against golden stores and forged ones.

use std::process::Command;

#[test]
fn the_checker_accepts_what_is_right_and_refuses_what_is_wrong() {
    let output = Command::new("python3")
        .arg(ingot_testdata::root().join("check_store_test.py"))
        .output()
        .expect("python3 is installed where tests run");
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
