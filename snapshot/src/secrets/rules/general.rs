//! Assignments to names that speak of secrets. The last rules: whatever has a form of its own was named before.

use super::super::judge;
use super::super::rule::Rule;
use super::set;

pub(super) const RULES: &[Rule] = &[
    Rule::named(
        "password-assignment",
        "password assigned to a name",
        &[
            "password", "passwd", "passphrase", "passwort", "_pass", "-pass", ".pass", "\"pass", "'pass", " pass", "\tpass",
            "\npass", "epass", "lpass", "ppass", "_pwd", "pwd=",
        ],
        concat!(
            r#"(?:[a-z"'_.\s-]?pass(?:word|wd|phrase|wort)?|_?pwd)(?:[_-]?(?:value|string|text|plain|prod|dev|live|[0-9]))?"#,
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
    Rule::named(
        "password-option",
        "password or token on a command line",
        &["--password", "--passwd", "--token", "--api-key", "--secret", "--pass"],
        r#"--(?:pass(?:word|wd)?|token|api-key|secret)[ \t]{1,4}["']?([^\s"'`<>,;\\$|&()-][^\s"'`<>,;\\$|&()]{7,})"#,
    )
    .open()
    .entropy(2.9)
    .accept(judge::chosen),
];
