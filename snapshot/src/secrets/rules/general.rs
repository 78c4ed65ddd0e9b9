//! Assignments to names that speak of secrets. The last rules: whatever has a form of its own was named before.

use super::super::judge;
use super::super::rule::{Candidate, Rule};
use super::set;

pub(super) const RULES: &[Rule] = &[
    Rule::named(
        "password-assignment",
        "password assigned to a name",
        &[
            "password", "passwd", "passphrase", "passwort", "_pass", "-pass", ".pass", "\"pass", "'pass", " pass", "\tpass",
            "\npass", "epass", "lpass", "ppass", "_pwd", "psk=", "wpa-psk", "wifi-psk", "pwd=",
        ],
        concat!(
            r#"(?:[a-z"'_.\s-]?pass(?:word|wd|phrase|wort)?|_?pwd|(?:wpa-|wifi-)?psk)(?:[_-]?(?:value|string|text|plain|prod|dev|live|[0-9]))?"#,
            set!(),
            r#"([^\s"'`<>,;\\]{8,})"#
        ),
    )
    .open()
    .entropy(2.7)
    .accept(judge::chosen),
    Rule::named(
        "secret-assignment",
        "key, token or secret assigned to a name",
        &["secret", "token", "api_key", "apikey", "api-key", "access_key", "accesskey", "access-key", "auth_key", "authkey", "private_key", "encryption_key", "signing_key", "master_key", "license_key", "credential", "bearer", "secret_id"],
        concat!(
            r"(?:secret|token|(?:api|access|auth|private|encryption|signing|master|license)[_-]?key|credentials?|bearer)",
            r"(?:[_-]?(?:access|api|key|base64|base|value|string|text|plain|prod|dev|live|hex|[0-9])){0,3}s?",
            set!(),
            r"([a-z0-9_+/=.~:%!@^*-]{16,})"
        ),
    )
    .reach(1100)
    .open()
    .accept(judge::generated),
    // Environment variables say key and mean a secret; in small letters a key is one of a map.
    Rule {
        exact: true,
        ..Rule::named(
            "key-variable",
            "key assigned to an environment variable",
            &["_KEY"],
            r#"[A-Z0-9_]{2,40}_KEY(?:\\?["'\]]){0,2}[ \t]{0,4}[=:][ \t]{0,4}(?:\\?["'`]){0,2}([A-Za-z0-9_+/=.~-]{20,})"#,
        )
    }
    .before(42)
    .reach(700)
    .open()
    .accept(variable),
    // Shells whose variables are set without an operator.
    Rule::named(
        "shell-variable",
        "secret set in fish or csh",
        &["set -", "setenv "],
        r#"set(?:env|(?: -{1,2}[a-z-]{1,10}){1,4}) [a-z0-9_]{0,40}(?:key|token|secret|password|passwd|pass)[ \t]{1,4}["']?([^\s"'`<>;\\$()]{8,})"#,
    )
    .reach(700)
    .open()
    .accept(judge::set_in_shell),
    Rule::named(
        "password-option",
        "password or token on a command line",
        &["--password", "--passwd", "--passphrase", "--token", "--api-key", "--secret", "--pass", "sshpass -p"],
        r#"(?:--(?:pass(?:word|wd|phrase)?|token|api-key|secret)[ \t]{1,4}|sshpass -p[ \t]{0,4})["']?([^\s"'`<>,;\\$|&()-][^\s"'`<>,;\\$|&()]{7,200})"#,
    )
    .open()
    .entropy(2.7)
    .accept(judge::set_in_shell),
];

/// Public keys and keys of caches and tables are no secrets.
fn variable(candidate: &Candidate<'_>) -> bool {
    let public: [&[u8]; 11] = [
        b"PUBLIC",
        b"PUB_",
        b"HOST_",
        b"CACHE",
        b"SORT",
        b"PRIMARY",
        b"FOREIGN",
        b"PARTITION",
        b"HKEY",
        b"REGISTRY",
        b"VERIFY",
    ];
    let name = candidate.name();
    let open = public
        .iter()
        .any(|word| name.windows(word.len()).any(|part| part == *word));
    !open && judge::generated(candidate)
}
