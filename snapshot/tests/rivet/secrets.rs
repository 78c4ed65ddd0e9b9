//! Secrets block a capture, and nothing of it is stored.

use crate::home::{Home, tick};

/// What begins and ends as a private key does. Put together here, so that this file holds none.
pub fn private_key() -> String {
    let line = "-----";
    let body = "MIIEpAIBAAKCAQEA3Tz2mr7SZiAMfQyuvBjM9OiJjRazXBZ1BjP5CE/Wm/Rr500P\nRK+Lh9x5eJPo5CAZ3/ANBE0sTK0ZsDGMak2m1g73VHqIxFTz0Ta1d+NAjwnLe4nO\nb7/eEJbDPkk05ShhBrJGBKKxb8n104o/5p8HAsZPdzbFMIyNjJzBM2o5y5A13wiL\n";
    format!("{line}BEGIN RSA PRIVATE KEY{line}\n{body}{line}END RSA PRIVATE KEY{line}\n")
}

#[test]
fn a_secret_blocks_and_nothing_is_stored() {
    let home = Home::new();
    home.write("t/good", "good");
    home.rivet(&["snapshot"]).good();
    let tip = home.git(&["rev-parse", "desk"]);
    let objects = || home.git(&["count-objects", "-v"]);
    let before = objects();
    home.write("t/z-good", "also good");
    home.write("t/key", private_key());
    home.write("t/large", vec![b'x'; 20 << 20]);
    let said = home.rivet(&["snapshot"]).ends(14);
    assert!(
        said.contains("t/key:1:") && said.contains("Nothing was stored"),
        "{said}"
    );
    assert!(
        !said.contains("MIIEpAIBAAK"),
        "the secret itself is shown: {said}"
    );
    assert_eq!(home.git(&["rev-parse", "desk"]), tip);
    assert_eq!(objects(), before);
    let status = home.rivet(&["status"]).good();
    assert!(
        status.contains("A t/z-good") && status.contains("block the next snapshot"),
        "{status}"
    );

    // The finding says how to allow it.
    let json = home.json(&["snapshot"]);
    let fingerprint = json["offenders"][0]["findings"][0]["fingerprint"]
        .as_str()
        .unwrap();
    home.configure(&format!("[secrets]\nallow = [\"{fingerprint}\"]"));
    home.rivet(&["snapshot"]).good();
    assert_eq!(home.blob("t/key"), private_key().as_bytes());
    // And it is not remembered as harmless once it is not allowed any more.
    tick();
    home.configure("");
    home.rivet(&["snapshot"]).ends(14);
    home.sound();
}

#[test]
fn paths_of_keys_block_whatever_is_in_them() {
    let home = Home::new();
    home.write("t/.ssh/id_ed25519", "anything");
    let said = home.rivet(&["snapshot"]).ends(14);
    assert!(said.contains(".ssh/id_ed25519"), "{said}");
    home.rivet(&["untrack", "t/.ssh/id_ed25519"]).good();
    home.rivet(&["snapshot"]).good();
}

#[test]
fn the_key_that_opens_the_store_is_never_captured() {
    let home = Home::new();
    home.write("t/x", "x");
    home.rivet(&["snapshot"]).good();
    home.rivet(&["push", "--remote", "store"]).good();
    home.configure("track = [\".config\"]");
    let said = home.rivet(&["snapshot"]).ends(14);
    assert!(said.contains("rivet.key.json"), "{said}");
}

#[test]
fn links_may_say_secrets_too() {
    let home = Home::new();
    let token = format!("ghp_{}", "a8Kz0Qm3Xv7Lr2Tn5Wb9Yc4Jd6Hf1Gs0Pe8u");
    std::os::unix::fs::symlink(format!("https://u:{token}@example.org/x"), home.path("t/link")).unwrap();
    home.rivet(&["snapshot"]).ends(14);
}

#[test]
fn anything_can_be_scanned() {
    let home = Home::bare();
    home.write("free/key", private_key());
    home.write("free/good", "good");
    let said = home.rivet(&["secrets", "scan", "free"]).ends(14);
    assert!(said.contains("key:1:"), "{said}");
    assert!(
        home.rivet(&["secrets", "scan", "free/good"])
            .good()
            .contains("No secret")
    );
    assert!(home.rivet(&["secrets", "rules"]).good().lines().count() > 20);
    home.rivet(&["secrets", "scan", "absent"]).ends(1);
}
