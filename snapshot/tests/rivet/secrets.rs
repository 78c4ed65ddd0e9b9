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

fn with_packages(home: &Home, more: &str) {
    home.configure(more);
    let config = home
        .read(".config/rivet/config.toml")
        .replace("packages = false", "packages = true");
    std::fs::write(home.path(".config/rivet/config.toml"), config).unwrap();
}

#[test]
fn the_list_of_packages_is_scanned_too() {
    let home = Home::new();
    with_packages(&home, "");
    home.write("t/x", "x");
    let token = format!("ghp_{}", "a8Kz0Qm3Xv7Lr2Tn5Wb9Yc4Jd6Hf1Gs0Pe8u");
    // A branch is part of where a package came from, and somebody took a token for one.
    let installs = format!(
        "{{\"installs\":{{\"tool 1.0.0 (git+https://example.org/tool?branch={token}#0123)\":{{}}}}}}"
    );
    home.write(".cargo/.crates2.json", installs);
    let ran = home.rivet(&["snapshot"]);
    assert_eq!(ran.code, 14, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("(installed packages):"), "{}", ran.out);
    assert!(
        ran.out.contains("packages = false") && !ran.out.contains(&token),
        "{}",
        ran.out
    );
    assert!(home.git(&["for-each-ref"]).is_empty());
    let mut open = vec![home.repository()];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(
                std::fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let found = bytes
            .windows(token.len())
            .any(|window| window == token.as_bytes());
        assert!(!found, "{}", path.display());
    }
    assert!(home.rivet(&["status"]).good().contains("(installed packages):"));
    // What is remembered of the list does not clear it.
    tick();
    home.rivet(&["snapshot"]).ends(14);
    home.rivet(&["snapshot"]).ends(14);
    let json = home.json(&["snapshot"]);
    let fingerprint = json["offenders"][0]["findings"][0]["fingerprint"]
        .as_str()
        .unwrap();
    with_packages(&home, &format!("[secrets]\nallow = [\"{fingerprint}\"]"));
    home.rivet(&["snapshot"]).good();
    assert!(home.git(&["show", "desk:packages.json"]).contains(&token));
    with_packages(&home, "");
    home.rivet(&["snapshot"]).ends(14);
}

#[test]
fn credentials_in_where_packages_came_from_are_not_kept() {
    let home = Home::new();
    with_packages(&home, "");
    home.write("t/x", "x");
    // Put together here, so that no scanner takes them for real ones.
    let password = ["k9x7", "Vq2m", "Lr8t"].concat();
    let clone = format!("[remote \"origin\"]\n\turl = https://me:{password}@git.example.org/plugin.git\n");
    home.write(".vim/plugged/plugin/.git/config", clone);
    let installs = format!(
        "{{\"installs\":{{\"tool 1.0.0 (git+https://{password}@git.example.org/tool#0123)\":{{}}}}}}"
    );
    home.write(".cargo/.crates2.json", installs);
    home.rivet(&["snapshot"]).good();
    let list = home.git(&["show", "desk:packages.json"]);
    assert!(list.contains("https://git.example.org/plugin.git") && list.contains("git.example.org/tool"));
    assert!(!list.contains(&password), "{list}");
}
