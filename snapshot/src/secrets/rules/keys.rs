//! Private keys.

use super::super::judge;
use super::super::rule::{Candidate, Rule};
use super::{set, tail};

pub(super) const RULES: &[Rule] = &[
    Rule::token(
        "private-key",
        "private key block (PEM, OpenSSH, PGP)",
        &["-----BEGIN "],
        // Escaped line ends, quotes, comment signs and PEM headers may stand between the first line and the key.
        r#"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----((?:[^-A-Za-z0-9]|[\r\n]{1,2}[^\r\n]{0,10}[A-Z][A-Za-z-]{2,20}: [^\r\n]{0,80}|\\[nrt]|\\u000[ad]){1,60}[A-Za-z0-9+/=]{24}(?:[A-Za-z0-9+/=\s"'\\,#*])*)"#,
    )
    .follow(0)
    .reach(2048)
    .anywhere()
    .accept(key_body),
    Rule::token(
        "private-key-base64",
        "private key block, encoded once more",
        &["LS0tLS1CRUdJTi"],
        r"LS0tLS1CRUdJTi[A-Za-z0-9+/]{60,}",
    )
    .reach(400)
    .anywhere()
    .accept(encoded_key),
    Rule::token(
        "putty-private-key",
        "PuTTY private key",
        &["Private-Lines: "],
        r"Private-Lines: [0-9]{1,3}\r?\n([A-Za-z0-9+/=\r\n]{32,})",
    )
    .follow(0)
    .reach(2048)
    .anywhere(),
    Rule::token(
        "age-identity",
        "age identity",
        &["AGE-SECRET-KEY-", "age-secret-key-"],
        r"(?:AGE-SECRET-KEY-(?:PQ-)?1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58,}|age-secret-key-(?:pq-)?1[qpzry9x8gf2tvdw0s3jn54khce6mua7l]{58,})",
    )
    .anywhere(),
    Rule::named(
        "device-key",
        "device key of an encrypted remote",
        &["signing_private_key", "wrapping_private_key"],
        concat!(r"(?:signing|wrapping)_private_key", set!(), r"([a-z0-9+/]{43}=)"),
    ),
    Rule::named(
        "wireguard-key",
        "WireGuard private or preshared key",
        &["PrivateKey", "PresharedKey", "private-key", "preshared-key"],
        concat!(r"(?:private|preshared)-?key", set!(), r"([a-z0-9+/]{42}[aeimqucgkoswy048]=)"),
    )
    .entropy(3.5),
    Rule::named(
        "kubernetes-client-key",
        "client key of a Kubernetes configuration",
        &["client-key-data"],
        concat!(r"client-key-data", set!(), r"([a-z0-9+/]{100,}={0,2})"),
    )
    .reach(2048),
    Rule::named(
        "jwk-private",
        "private part of a JSON Web Key",
        &["\"d\":\"", "\"d\": \""],
        r#""d": ?"([a-z0-9_-]{43,})""#,
    )
    .entropy(4.0),
    Rule::named(
        "otp-secret",
        "one-time password seed",
        &["otpauth://"],
        concat!(r"otpauth://[^\s]+[?&]secret=", r"([a-z2-7]{16,})"),
    )
    .entropy(2.5),
    Rule::named(
        "ansible-password",
        "password for su or sudo in an inventory",
        &["ansible_"],
        concat!(r"ansible_(?:ssh_|sudo_|su_|become_)?pass(?:word)?", tail!(), set!(), r#"([^\s"'`<>,;\\]{6,})"#),
    )
    .entropy(2.0)
    .accept(judge::chosen),
];

/// A key has a body that chance made; an example in a manual has dots or one letter.
fn key_body(candidate: &Candidate<'_>) -> bool {
    let run = longest_run(candidate.secret);
    run.len() >= 24 && judge::entropy(run) >= 3.2 && !judge::monotonous(&run[..run.len().min(40)])
}

/// The longest piece of base64 in a key block: a line of it.
fn longest_run(block: &[u8]) -> &[u8] {
    block
        .split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'+' && *byte != b'/')
        .max_by_key(|run| run.len())
        .unwrap_or_default()
}

/// Whether the encoded bytes say what they are.
fn encoded_key(candidate: &Candidate<'_>) -> bool {
    let head = &candidate.secret[..60.min(candidate.secret.len() / 4 * 4)];
    let decoded = data_encoding::BASE64.decode(head).unwrap_or_default();
    let says = |word: &[u8]| decoded.windows(word.len()).any(|window| window == word);
    says(b"PRIVATE KEY")
}
