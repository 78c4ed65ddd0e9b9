//! Passwords in URLs and headers.

use super::super::judge;
use super::super::rule::{Candidate, Rule};

pub(super) const RULES: &[Rule] = &[
    // Databases, queues, mail and HTTP alike: whatever the scheme, a password between colon and @ is one.
    Rule::named(
        "url-password",
        "password in a URL",
        &["://"],
        r#"://[^\s/:@"'`<>()\[\]{}\\,;]*:([^\s/@"'`<>()\\]{3,})@"#,
    )
    .reach(400)
    .needs(b'@')
    .open()
    .entropy(1.0)
    .accept(judge::in_url),
    Rule::named(
        "url-token",
        "token in place of a user in a URL",
        &["http://", "https://"],
        r"https?://([a-z0-9_-]{20,})(?::x-oauth-basic)?@",
    )
    .needs(b'@')
    .reach(300)
    .open()
    .entropy(3.3)
    .accept(judge::token_in_url),
    Rule::named(
        "authorization-header",
        "credentials in an Authorization header",
        &["authorization"],
        r#"authorization(?:\\?["'\]]){0,2}[ \t]{0,8}[:=,][ \t]{0,8}(?:\\?["'`]){0,2}(?:bearer|token|basic|bot|apikey)[ \t]{1,4}([a-z0-9_+/=.~-]{16,})"#,
    )
    .reach(1200)
    .entropy(3.0)
    .accept(header),
    Rule::named(
        "netrc-login",
        "login with password, as in .netrc",
        &["machine"],
        r"machine\s{1,8}\S+\s{1,40}login\s{1,8}\S+\s{1,40}password\s{1,8}(\S{4,})",
    )
    .reach(800)
    .entropy(1.5)
    .accept(netrc),
    Rule::named(
        "curl-user",
        "user and password for curl",
        &["curl "],
        r#"curl [^\r\n|;]*(?:-u|--user)[ =]{1,4}["']?[^\s:"'$]+:([^\s"'$]{4,})"#,
    )
    .needs(b':')
    .reach(700)
    .entropy(1.5)
    .accept(judge::no_common_password),
    // `{"alg"`, `{"typ"`, `{"kid"`, `{"enc"`, `{"cty"`, `{"x5t"` and others begin so in base64.
    Rule::token(
        "jwt",
        "JSON Web Token",
        &["eyJh", "eyJ0", "eyJr", "eyJl", "eyJj", "eyJq", "eyJ4", "eyJ2", "eyJ1", "eyJp", "eyJz"],
        r"eyJ[A-Za-z0-9]{12,}\.eyJ[A-Za-z0-9_-]{12,}\.[A-Za-z0-9_-]{16,}",
    )
    .reach(4900)
    .open()
    .entropy(3.8)
    .accept(token_of_nobody),
];

fn header(candidate: &Candidate<'_>) -> bool {
    candidate.secret.iter().any(u8::is_ascii_digit) && judge::unlike_words(candidate)
}

fn netrc(candidate: &Candidate<'_>) -> bool {
    !candidate.secret.iter().any(|byte| b"$\"'{<".contains(byte)) && judge::no_common_password(candidate)
}

/// The example of jwt.io and of every manual: subject 1234567890.
fn token_of_nobody(candidate: &Candidate<'_>) -> bool {
    let specimen: &[u8] = b".eyJzdWIiOiIxMjM0NTY3ODkw";
    !candidate
        .secret
        .windows(specimen.len())
        .any(|window| window == specimen)
}
