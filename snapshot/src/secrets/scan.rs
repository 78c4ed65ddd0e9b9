//! The scan of one file: bytes come in pieces, findings go out at the end.

use memchr::memchr_iter;

use super::allow::{COMMENT, Comment};
use super::engine::{Engine, Use};
use super::finding::{self, Finding};
use super::rule::Rule;
use super::{AllowList, encoding::Encoding};

/// Bytes that are looked at together. Together with what is kept before and after them, all that a scan holds.
const BLOCK: usize = 64 * 1024;
/// Findings of one file that are kept. One is enough to block it.
const MAX_FINDINGS: usize = 100;
/// Matches on one line that are kept until its end is known.
const MAX_PENDING: usize = 1000;

/// How much work a scan did, for measuring: a fast one runs few patterns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Effort {
    /// Bytes that were scanned.
    pub bytes: u64,
    /// Places where the prefilter stopped.
    pub stops: u64,
    /// Literals that stood there.
    pub literals: u64,
    /// Patterns that ran.
    pub patterns: u64,
}

/// A match that is a finding unless its line allows it.
struct Pending {
    rule: &'static Rule,
    /// The rule's place in the table: the earlier one wins where two match the same bytes.
    rank: usize,
    line: u64,
    /// Positions in the file.
    start: u64,
    end: u64,
    redacted: String,
    fingerprint: String,
}

/// The scan of one file. See [`Scanner::file`](super::Scanner::file).
pub struct FileScan<'s> {
    engine: &'static Engine,
    allow: &'s AllowList,
    path: Vec<u8>,
    encoding: Encoding,
    /// What was fed and is still needed: up to [`Engine::behind`] bytes before `at`, and what follows.
    buffer: Vec<u8>,
    /// Position of `buffer[0]` in the file.
    base: u64,
    /// Where in the buffer the prefilter goes on.
    at: usize,
    /// Lines that begin before `counted`, and the place in the buffer up to which they were counted.
    line: u64,
    counted: usize,
    pending: Vec<Pending>,
    comments: Vec<Comment>,
    /// End of the last match that was kept.
    kept_until: u64,
    findings: Vec<Finding>,
    effort: Effort,
}

impl<'s> FileScan<'s> {
    pub(super) fn new(engine: &'static Engine, allow: &'s AllowList, path: &[u8]) -> FileScan<'s> {
        FileScan {
            engine,
            allow,
            path: path.to_vec(),
            encoding: Encoding::default(),
            buffer: Vec::new(),
            base: 0,
            at: 0,
            line: 1,
            counted: 0,
            pending: Vec::new(),
            comments: Vec::new(),
            kept_until: 0,
            findings: Vec::new(),
            effort: Effort::default(),
        }
    }

    /// Takes the next bytes of the file. How they are cut changes nothing.
    pub fn feed(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(BLOCK) {
            self.effort.bytes += piece.len() as u64;
            self.encoding.append(piece, &mut self.buffer);
            if self.encoding.is_decided() && self.buffer.len() >= self.at + BLOCK {
                self.advance(self.buffer.len().saturating_sub(self.engine.reach()) / 2 * 2);
                self.forget();
            }
        }
    }

    /// Ends the file. Its findings, by line; the first hundred of them.
    pub fn finish(self) -> Vec<Finding> {
        self.finish_with_effort().0
    }

    /// Ends the file, and tells how much work it was.
    pub fn finish_with_effort(mut self) -> (Vec<Finding>, Effort) {
        self.encoding.decide(&mut self.buffer);
        self.advance(self.buffer.len());
        self.settle(u64::MAX);
        (self.findings, self.effort)
    }

    /// Looks at every second position before `end`. Positions in the buffer are even where they are even in the file, so
    /// that it makes no difference how the file was cut.
    fn advance(&mut self, end: usize) {
        let binary = self.encoding.is_binary();
        while let Some(stop) = self.engine.prefilter.next(&self.buffer, self.at, end) {
            self.at = stop + 2;
            self.effort.stops += 1;
            for gram in self.engine.prefilter.grams(&self.buffer, stop) {
                let Some(start) = stop.checked_sub(usize::from(gram.offset)) else {
                    continue;
                };
                match self.engine.confirm(&self.buffer, start, gram.literal) {
                    None => {}
                    Some((Use::Comment, _)) => {
                        self.effort.literals += 1;
                        let line = self.line_of(start);
                        self.settle(line);
                        let end = self.buffer.len().min(start + COMMENT.len() + 200);
                        self.comments.push(Comment::read(&self.buffer[start..end], line));
                    }
                    Some((Use::Rule(rank), length)) => {
                        self.effort.literals += 1;
                        if !binary || self.engine.rules[rank].rule.binary {
                            self.examine(start, length, rank);
                        }
                    }
                }
            }
        }
        self.at = self.at.max(end.next_multiple_of(2));
    }

    /// Runs a rule whose literal of `length` bytes stands at `start` of the buffer.
    fn examine(&mut self, start: usize, length: usize, rank: usize) {
        let compiled = &self.engine.rules[rank];
        if !compiled.may_match(&self.buffer, start, length) {
            return;
        }
        self.effort.patterns += 1;
        let Some(found) = compiled.run(&self.buffer, start) else {
            return;
        };
        let secret = &self.buffer[found.secret.clone()];
        let fingerprint = finding::fingerprint(compiled.rule.name, secret);
        if self.allow.contains(&fingerprint) {
            return;
        }
        let redacted = finding::redact(compiled.rule, &self.buffer[found.matched.clone()], secret);
        // A literal may begin with the end of the line before it.
        let line = self.line_of(start + usize::from(self.buffer[start] == b'\n'));
        self.settle(line);
        if self.pending.len() < MAX_PENDING && self.findings.len() < MAX_FINDINGS {
            self.pending.push(Pending {
                rule: compiled.rule,
                rank,
                line,
                start: self.base + found.secret.start as u64,
                end: self.base + found.secret.end as u64,
                redacted,
                fingerprint,
            });
        }
    }

    /// The line of a position in the buffer, and never less than that of an earlier call.
    fn line_of(&mut self, position: usize) -> u64 {
        if let Some(new) = self.buffer.get(self.counted..position) {
            self.line += memchr_iter(b'\n', new).count() as u64;
            self.counted = position;
        }
        self.line
    }

    /// Decides about the matches on lines before `line`, whose comments have all been seen.
    fn settle(&mut self, line: u64) {
        if self.pending.first().is_some_and(|first| first.line < line) {
            let mut settled: Vec<Pending> = Vec::new();
            let mut waiting = Vec::new();
            for pending in self.pending.drain(..) {
                if pending.line < line {
                    settled.push(pending)
                } else {
                    waiting.push(pending)
                }
            }
            self.pending = waiting;
            settled.sort_by_key(|pending| (pending.line, pending.rank, pending.start));
            self.publish(settled);
        }
        self.comments.retain(|comment| comment.line >= line);
    }

    /// Turns the matches of finished lines into findings: the first rule of the table that matches a byte has it.
    fn publish(&mut self, settled: Vec<Pending>) {
        let mut kept: Vec<Pending> = Vec::new();
        for pending in settled {
            let allowed = self
                .comments
                .iter()
                .any(|comment| comment.line == pending.line && comment.covers(pending.rule));
            let taken = pending.start < self.kept_until
                || kept
                    .iter()
                    .any(|other| pending.start < other.end && other.start < pending.end);
            if !allowed && !taken {
                kept.push(pending);
            }
        }
        kept.sort_by_key(|pending| (pending.line, pending.start, pending.rank));
        for pending in kept {
            self.kept_until = self.kept_until.max(pending.end);
            if self.findings.len() < MAX_FINDINGS {
                let comment = (!self.encoding.is_binary()).then_some(pending.line);
                self.findings.push(Finding {
                    rule: pending.rule.name,
                    what: pending.rule.what,
                    line: pending.line,
                    redacted: pending.redacted,
                    how_to_allow: finding::how_to_allow(&self.path, comment, &pending.fingerprint),
                    fingerprint: pending.fingerprint,
                });
            }
        }
    }

    /// Drops what no rule looks back to.
    fn forget(&mut self) {
        let gone = self.at.saturating_sub(self.engine.behind()) / 2 * 2;
        if gone > 0 {
            self.line_of(gone);
            self.counted = self.counted.saturating_sub(gone);
            self.buffer.drain(..gone);
            self.base += gone as u64;
            self.at -= gone;
        }
    }
}
