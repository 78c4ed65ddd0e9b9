//! Code hosts and package registries.

use super::super::judge;
use super::super::rule::{Candidate, Rule};
use super::{set, tail};

pub(super) const RULES: &[Rule] = &[
    Rule::token(
        "github-token",
        "GitHub token",
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"],
        r"gh[pousr]_([A-Za-z0-9]{36,})",
    ),
    Rule::token(
        "github-fine-grained-token",
        "GitHub fine-grained token",
        &["github_pat_"],
        r"github_pat_([A-Za-z0-9]{22}_[A-Za-z0-9]{59})",
    )
    .inside(),
    Rule::token(
        "gitlab-token",
        "GitLab token",
        &[
            "glpat-", "gldt-", "glrt-", "glrtr-", "glptt-", "glft-", "glsoat-", "glimt-", "glagent-",
            "gloas-", "glffct-", "glcbt-", "glwt-",
        ],
        r"gl(?:pat|dt|rtr?|ptt|ft|soat|imt|agent|oas|ffct|cbt|wt)-([A-Za-z0-9_=.-]{20,})",
    ),
    Rule::token(
        "gitlab-runner-registration",
        "GitLab runner registration token",
        &["GR1348941"],
        r"GR1348941([A-Za-z0-9_-]{20})",
    ),
    Rule::token(
        "bitbucket-token",
        "Bitbucket or Atlassian token",
        &["ATATT3", "ATCTT3", "ATBB"],
        r"(?:AT[AC]TT3([A-Za-z0-9_=-]{100,})|ATBB([A-Za-z0-9]{32}))",
    ),
    Rule::token(
        "npm-token",
        "npm access token",
        &["npm_"],
        r"npm_([A-Za-z0-9]{36})",
    ),
    Rule::named(
        "npmrc-auth",
        "registry credentials of npm",
        &["_authToken", ":_password", "_auth=", "_auth ="],
        r#"(?:_authToken|:_password|_auth)[ \t]{0,4}=[ \t]{0,4}["']?([a-z0-9_+/=.-]{8,})"#,
    )
    .entropy(2.8)
    .accept(npmrc),
    Rule::token(
        "pypi-token",
        "PyPI token",
        &["pypi-AgEIcHlwaS5vcmc", "pypi-AgENdGVzdC5weXBpLm9yZw"],
        r"pypi-(?:AgEIcHlwaS5vcmc|AgENdGVzdC5weXBpLm9yZw)([A-Za-z0-9_-]{50,})",
    )
    .anywhere(),
    Rule::token(
        "crates-io-token",
        "crates.io token",
        &["cio"],
        r"cio([A-Za-z0-9]{32})",
    )
    .entropy(3.5),
    Rule::token(
        "rubygems-token",
        "RubyGems token",
        &["rubygems_"],
        r"rubygems_([a-f0-9]{48})",
    ),
    Rule::token("nuget-key", "NuGet key", &["oy2"], r"oy2([a-z0-9]{43})").entropy(3.5),
    Rule::token(
        "docker-hub-token",
        "Docker Hub token",
        &["dckr_pat_", "dckr_oat_"],
        r"dckr_[po]at_([A-Za-z0-9_-]{27,64})",
    ),
    Rule::named(
        "docker-auth",
        "registry credentials of Docker or Podman",
        &["\"auth\"", "\"identitytoken\"", "\"registrytoken\""],
        r#""(?:auth|identitytoken|registrytoken)"\s{0,8}:\s{0,8}"([a-z0-9+/=._-]{12,})""#,
    )
    .reach(1200)
    .accept(docker),
    Rule::token(
        "artifactory-token",
        "Artifactory token",
        &["AKCp", "cmVmdGtuOj"],
        r"(?:AKCp([A-Za-z0-9]{69})|cmVmdGtuOj([A-Za-z0-9]{50,64}))",
    ),
    Rule::token(
        "sourcegraph-token",
        "Sourcegraph token",
        &["sgp_"],
        r"sgp_((?:[a-fA-F0-9]{16}_|local_)?[a-fA-F0-9]{40})",
    ),
    Rule::token(
        "circleci-token",
        "CircleCI token",
        &["CCIPAT_"],
        r"CCIPAT_([A-Za-z0-9]{22}_[a-f0-9]{40})",
    ),
    Rule::token(
        "buildkite-token",
        "Buildkite token",
        &["bkua_"],
        r"bkua_([a-z0-9]{40})",
    ),
    Rule::named(
        "build-service-token",
        "token of a build service",
        &["codecov", "coveralls", "travis"],
        concat!(
            r"(?:codecov|coveralls|travis)[_.-]?(?:repo|api|access|upload)?[_.-]?token",
            tail!(),
            set!(),
            r"([a-z0-9_-]{20,40}|[0-9a-f-]{36})"
        ),
    )
    .accept(digits),
];

/// A Docker `auth` is `user:password` in base64; the other fields are tokens.
fn docker(candidate: &Candidate<'_>) -> bool {
    match candidate.matched[1..].get(..4) {
        Some(name) if name.eq_ignore_ascii_case(b"auth") => login(candidate.secret),
        _ => judge::no_specimen(candidate),
    }
}

/// `_auth` alone is `user:password` in base64, too. Programs have variables of this name.
fn npmrc(candidate: &Candidate<'_>) -> bool {
    let name = candidate.name();
    let token = name.starts_with(b":") || name.len() > 6 && name[..6].eq_ignore_ascii_case(b"_autht");
    (token || login(candidate.secret)) && judge::no_specimen(candidate)
}

/// Whether the value is a name and a password in base64.
fn login(value: &[u8]) -> bool {
    let decoded = data_encoding::BASE64.decode(value).unwrap_or_default();
    let password = decoded
        .iter()
        .position(|byte| *byte == b':')
        .map(|colon| &decoded[colon + 1..]);
    password.is_some_and(|password| password.len() >= 4 && !judge::stands_in(password))
}

fn digits(candidate: &Candidate<'_>) -> bool {
    candidate.secret.iter().any(u8::is_ascii_digit) && !judge::stands_in(candidate.secret)
}
