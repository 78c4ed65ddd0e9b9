//! The seeds of the fuzz targets, and every crash that fuzzing found, as ordinary tests.

#[path = "../../testdata/fuzz/bodies/snapshot.rs"]
mod bodies;

/// Runs `body` on every file of a target's corpus, whole, and cut and flipped in about as many places as `cuts`.
fn replay(target: &str, cuts: usize, body: fn(&[u8])) {
    let folder = ingot_testdata::root().join("fuzz/corpus").join(target);
    let mut seeds = 0;
    for entry in std::fs::read_dir(&folder).expect("every target has a corpus") {
        let data = std::fs::read(entry.expect("a readable folder").path()).expect("a readable seed");
        body(&data);
        // Seeds are good or bad in one place; cut and flipped ones are bad in many.
        for cut in (0..data.len()).step_by((data.len() / cuts).max(1)) {
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
fn secret_scan() {
    replay("secret_scan", 40, bodies::secret_scan);
}

#[test]
fn package_database() {
    replay("package_database", 10, bodies::package_database);
}
