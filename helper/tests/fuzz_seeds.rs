//! The seeds of the fuzz targets, and every crash that fuzzing found, as ordinary tests.

#[path = "../../testdata/fuzz/bodies/helper.rs"]
mod bodies;

/// Runs `body` on every file of a target's corpus.
fn replay(target: &str, body: fn(&[u8])) {
    let folder = ingot_testdata::root().join("fuzz/corpus").join(target);
    let mut seeds = 0;
    for entry in std::fs::read_dir(&folder).expect("every target has a corpus") {
        let data = std::fs::read(entry.expect("a readable folder").path()).expect("a readable seed");
        body(&data);
        // Seeds are good or bad in one place; cut and flipped ones are bad in many.
        for cut in (0..data.len()).step_by((data.len() / 40).max(1)) {
            body(&data[..cut]);
            let mut flipped = data.clone();
            flipped[cut] ^= 0x81;
            body(&flipped);
        }
        seeds += 1;
    }
    assert!(seeds > 0, "{} holds no seeds", folder.display());
}

#[test]
fn manifest() {
    replay("manifest", bodies::manifest);
}

#[test]
fn policy() {
    replay("policy", bodies::policy);
}

#[test]
fn helper_command() {
    replay("helper_command", bodies::helper_command);
}

#[test]
fn wrapped_key() {
    replay("wrapped_key", bodies::wrapped_key);
}

#[test]
fn recovery_sheet() {
    replay("recovery_sheet", bodies::recovery_sheet);
}
