//! The rules, by where their secrets come from. The order is the order of precedence: where two rules match the same
//! bytes, the earlier one names the finding, so exact rules come before general ones.
//!
//! Patterns and literals are written so that scanning this folder finds nothing.

mod ai;
mod cloud;
mod code_hosts;
mod general;
mod keys;
mod services;
mod urls;

use super::rule::Rule;

/// What stands between a name and its value in configuration, code and markup: quotes, an operator, quotes. A comma is
/// an operator only behind a quoted name, as in a call with name and value.
macro_rules! set {
    () => {
        r#"(?:(?:\\?["'`\]]){1,2}[ \t]{0,20},|(?:\\?["'`\]]){0,2}[ \t]{0,20}(?:=>|:=|[=:>]|["']\s{1,4}value\s{0,2}=|</key>\s{0,40}<string>))[ \t]{0,20}(?:[bru]{1,2}["'])?(?:\\?["'`]){0,3}"#
    };
}
/// The rest of a name behind the word that gives it away.
macro_rules! tail {
    () => {
        r"[a-z0-9_.-]{0,30}"
    };
}
pub(super) use {set, tail};

/// Every rule, in order of precedence.
pub(super) fn all() -> impl Iterator<Item = &'static Rule> {
    [
        keys::RULES,
        code_hosts::RULES,
        cloud::RULES,
        ai::RULES,
        services::RULES,
        urls::RULES,
        general::RULES,
    ]
    .into_iter()
    .flatten()
}
