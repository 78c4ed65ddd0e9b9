//! Examples of every rule: what it must find, and what it must let pass.
//!
//! Secrets are put together when the test runs, from a prefix here and a body made by a generator there, so that no
//! scanner of a code host takes this file for a leak.

mod ai;
mod cloud;
mod code_hosts;
mod general;
mod keys;
mod services;
mod urls;

const HEX: &str = "0123456789abcdef";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const MIXED: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BASE32: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const BECH32: &str = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L";
const DIGITS: &str = "0123456789";

/// Text that looks like chance and is the same every time.
fn noise(alphabet: &str, length: usize) -> String {
    let letters = alphabet.as_bytes();
    let mut state = 0x9e37_79b9_7f4a_7c15 ^ (length as u64) << 32 ^ letters.len() as u64;
    let mut text = String::new();
    for _ in 0..length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        text.push(char::from(letters[(state >> 33) as usize % letters.len()]));
    }
    text
}

/// Base64 text of a length that is a multiple of four.
fn base64(bytes: usize) -> String {
    data_encoding::BASE64.encode(noise(MIXED, bytes).as_bytes())
}

fn uuid() -> String {
    let part = |length| noise(HEX, length);
    format!("{}-{}-{}-{}-{}", part(8), part(4), part(4), part(4), part(12))
}

fn pem(kind: &str, end_of_line: &str, indent: &str) -> String {
    let body: Vec<String> = (0..6)
        .map(|line| format!("{indent}{}", noise(MIXED, 64 - line)))
        .collect();
    let dashes = "-".repeat(5);
    format!(
        "{dashes}BEGIN {kind}{dashes}{end_of_line}{}{end_of_line}{dashes}END {kind}{dashes}",
        body.join(end_of_line)
    )
}

/// What a rule finds and what it lets pass.
pub(super) struct Example {
    pub rule: &'static str,
    pub secrets: Vec<String>,
    pub harmless: Vec<String>,
}

fn example<S: Into<String>, H: Into<String>>(
    rule: &'static str,
    secrets: impl IntoIterator<Item = S>,
    harmless: impl IntoIterator<Item = H>,
) -> Example {
    Example {
        rule,
        secrets: secrets.into_iter().map(Into::into).collect(),
        harmless: harmless.into_iter().map(Into::into).collect(),
    }
}

pub(super) fn all() -> Vec<Example> {
    [
        keys::all(),
        code_hosts::all(),
        cloud::all(),
        ai::all(),
        services::all(),
        urls::all(),
        general::all(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
