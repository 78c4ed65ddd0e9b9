//! All rules, ready to run: one prefilter over their literals, each pattern compiled when it first runs.

use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use regex::bytes::{Regex, RegexBuilder};

use super::allow::COMMENT;
use super::judge;
use super::prefilter::Prefilter;
use super::rule::{Candidate, Rule, Start};
use super::rules;

/// What a literal stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// The comment that allows findings.
    Comment,
    /// A rule, by its place in the table.
    Rule(usize),
}

/// A literal that the prefilter found.
struct Literal {
    text: &'static [u8],
    exact: bool,
    used: Use,
}

/// A rule with its pattern.
pub(super) struct Compiled {
    pub rule: &'static Rule,
    pattern: OnceLock<Regex>,
}

/// Where a rule found something, as positions in the buffer.
pub(super) struct Found {
    pub matched: Range<usize>,
    pub secret: Range<usize>,
}

/// All rules. One for the process: making it costs some microseconds, the patterns more.
pub(super) struct Engine {
    pub prefilter: Prefilter,
    pub rules: Vec<Compiled>,
    literals: Vec<Literal>,
    behind: usize,
    reach: usize,
}

impl Engine {
    /// The engine over the built-in rules.
    pub fn shared() -> &'static Engine {
        static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::new(rules::all()));
        &ENGINE
    }

    fn new(rules: impl Iterator<Item = &'static Rule>) -> Engine {
        let mut literals = vec![Literal {
            text: COMMENT.as_bytes(),
            exact: true,
            used: Use::Comment,
        }];
        let rules: Vec<Compiled> = rules
            .enumerate()
            .map(|(rank, rule)| {
                literals.extend(rule.literals.iter().map(|text| Literal {
                    text: text.as_bytes(),
                    exact: rule.exact,
                    used: Use::Rule(rank),
                }));
                Compiled {
                    rule,
                    pattern: OnceLock::new(),
                }
            })
            .collect();
        let longest = literals
            .iter()
            .map(|literal| literal.text.len())
            .max()
            .unwrap_or_default();
        Engine {
            prefilter: Prefilter::new(literals.iter().map(|literal| literal.text)),
            // The prefilter may stop at the end of a literal, and the rule looks back from its beginning.
            behind: longest
                + rules
                    .iter()
                    .map(|compiled| compiled.rule.behind())
                    .max()
                    .unwrap_or_default(),
            reach: rules
                .iter()
                .map(|compiled| compiled.rule.reach)
                .max()
                .unwrap_or_default()
                + longest,
            literals,
            rules,
        }
    }

    /// Bytes before a stop of the prefilter that rules may look at.
    pub fn behind(&self) -> usize {
        self.behind
    }

    /// Bytes after a stop of the prefilter that rules may look at.
    pub fn reach(&self) -> usize {
        self.reach
    }

    /// What the literal stands for, and its length, if it really stands at `start`.
    pub fn confirm(&self, text: &[u8], start: usize, literal: u16) -> Option<(Use, usize)> {
        let literal = self.literals.get(usize::from(literal))?;
        let there = text.get(start..)?.get(..literal.text.len())?;
        let same = there == literal.text || !literal.exact && there.eq_ignore_ascii_case(literal.text);
        same.then_some((literal.used, literal.text.len()))
    }
}

impl Compiled {
    /// Cheap look at what stands before and after the literal.
    pub fn may_match(&self, text: &[u8], start: usize, literal: usize) -> bool {
        let rule = self.rule;
        let begins = rule.start != Start::AtLiteral || !rule.left || !word_before(text, start);
        let follows = || {
            let next = text[start + literal..].iter().take(rule.follow);
            next.len() == rule.follow
                && next
                    .into_iter()
                    .all(|byte| word(*byte) || b"-./+=%".contains(byte))
        };
        let holds = |byte| memchr::memchr(byte, &text[start..text.len().min(start + rule.reach)]).is_some();
        begins && follows() && rule.needs.is_none_or(holds)
    }

    /// Runs the pattern around the literal at `start`. What it looks at depends on the file alone, not on how much of
    /// it is in the buffer.
    pub fn run(&self, text: &[u8], start: usize) -> Option<Found> {
        let rule = self.rule;
        let end = text.len().min(start + rule.reach);
        let from = match rule.start {
            Start::AtLiteral => start,
            Start::Before(bytes) => start.saturating_sub(bytes),
        };
        let window = &text[from..end];
        let pattern = self.pattern();
        let mut next = 0;
        // Most windows hold no match, and to learn that costs less than to ask for groups.
        let captures = loop {
            let whole = pattern.find_at(window, next)?.range();
            // Before the literal there may be a match that has nothing to do with it.
            if from + whole.start <= start && start < from + whole.end {
                break pattern.captures_at(window, whole.start)?;
            }
            if from + whole.start > start {
                return None;
            }
            next = whole.end.max(next + 1);
        };
        let matched = captures.get(0)?.range();
        let secret = captures.get(1).or(captures.get(0))?.range();
        let rest = &window[matched.end..];
        let candidate = Candidate {
            secret: &window[secret.clone()],
            matched: &window[matched.clone()],
            rest,
            quoted: secret.start > 0 && b"\"'`".contains(&window[secret.start - 1]),
        };
        let shift = |range: Range<usize>| from + range.start..from + range.end;
        let whole = !(rule.left && word_before(text, from + matched.start)
            || rule.right && rest.first().is_some_and(|next| word(*next)));
        (whole && judge::entropy(candidate.secret) >= rule.entropy && (rule.accept)(&candidate)).then(|| {
            Found {
                matched: shift(matched),
                secret: shift(secret),
            }
        })
    }

    fn pattern(&self) -> &Regex {
        self.pattern
            .get_or_init(|| compile(self.rule).expect("a test compiles the pattern of every rule"))
    }
}

/// Compiles the pattern of a rule.
pub(super) fn compile(rule: &Rule) -> Result<Regex, regex::Error> {
    let anchored = match rule.start {
        Start::AtLiteral => format!(r"\A(?:{})", rule.pattern),
        Start::Before(_) => rule.pattern.to_owned(),
    };
    RegexBuilder::new(&anchored)
        .unicode(false)
        .case_insensitive(!rule.exact)
        .build()
}

/// Whether a word goes on before `position`. The letter of an escape such as `\n` is none.
fn word_before(text: &[u8], position: usize) -> bool {
    match text[..position] {
        [.., b'\\', b'n' | b'r' | b't'] => false,
        [.., last] => word(last),
        [] => false,
    }
}

fn word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
