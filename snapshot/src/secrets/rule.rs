//! What a rule of the secret scan is made of.

/// How often a secret of this kind may be judged by its looks.
pub(super) type Accept = fn(&Candidate<'_>) -> bool;

/// A match of a rule's pattern, before it is called a secret.
pub(super) struct Candidate<'a> {
    /// The bytes that would be secret: group 1 of the pattern, or the whole match.
    pub secret: &'a [u8],
    /// Everything that the pattern matched.
    pub matched: &'a [u8],
    /// What follows the match inside the rule's window.
    pub rest: &'a [u8],
    /// Whether the secret stands directly behind a quote.
    pub quoted: bool,
}

impl Candidate<'_> {
    /// What the pattern matched before the secret: name, operator, quotes.
    pub fn name(&self) -> &[u8] {
        let end = self.matched.len().saturating_sub(self.secret.len());
        &self.matched[..end]
    }

    /// Whether the value stands directly behind an equals sign.
    pub fn glued(&self) -> bool {
        self.name().last() == Some(&b'=')
    }

    /// Whether name and value are members of a list.
    pub fn listed(&self) -> bool {
        self.name().iter().rev().find(|byte| !b" \t\"'`\\".contains(byte)) == Some(&b',')
    }
}

/// Where the pattern starts, seen from the literal that was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Start {
    /// The match begins with the literal.
    AtLiteral,
    /// The match begins at most this many bytes before the literal.
    Before(usize),
}

/// One kind of secret. The tables in [`rules`](super::rules) are made of these.
#[derive(Clone, Copy)]
pub(super) struct Rule {
    /// Stable name, part of every fingerprint.
    pub name: &'static str,
    /// What it finds, in a few words.
    pub what: &'static str,
    /// One of these stands in every match; nothing else of the rule runs before one is found. At least 3 bytes each.
    pub literals: &'static [&'static str],
    /// Whether the case of the literals counts.
    pub exact: bool,
    /// Where the pattern starts.
    pub start: Start,
    /// Bytes after the start of the literal that the pattern may look at.
    pub reach: usize,
    /// Letters, digits and signs of tokens that follow the literal at least: asked before the pattern runs.
    pub follow: usize,
    /// A byte that every match holds after the literal: asked before the pattern runs.
    pub needs: Option<u8>,
    /// Bytes pattern of the crate `regex`, without Unicode. Group 1, where there is one, is the secret.
    pub pattern: &'static str,
    /// A letter, digit or underscore directly before the match refuses it.
    pub left: bool,
    /// The same after the match.
    pub right: bool,
    /// Bits per byte that the secret has at least.
    pub entropy: f32,
    /// Whether the rule is exact enough for binary files.
    pub binary: bool,
    /// The last word.
    pub accept: Accept,
}

impl Rule {
    /// A token with a fixed beginning: the literal. Such rules run on binary files too.
    pub const fn token(
        name: &'static str,
        what: &'static str,
        literals: &'static [&'static str],
        pattern: &'static str,
    ) -> Rule {
        Rule {
            name,
            what,
            literals,
            exact: true,
            start: Start::AtLiteral,
            reach: 512,
            follow: 8,
            needs: None,
            pattern,
            left: true,
            right: true,
            entropy: 3.0,
            binary: true,
            accept: super::judge::no_specimen,
        }
    }

    /// A value assigned to a name that gives it away. Case does not count, binary files are left out.
    pub const fn named(
        name: &'static str,
        what: &'static str,
        literals: &'static [&'static str],
        pattern: &'static str,
    ) -> Rule {
        Rule {
            exact: false,
            follow: 0,
            binary: false,
            left: false,
            ..Rule::token(name, what, literals, pattern)
        }
    }

    /// Sets where the pattern starts.
    pub const fn before(mut self, bytes: usize) -> Rule {
        self.start = Start::Before(bytes);
        self
    }

    /// Sets how many bytes of a token follow the literal.
    pub const fn follow(mut self, bytes: usize) -> Rule {
        self.follow = bytes;
        self
    }

    /// Sets a byte that every match holds.
    pub const fn needs(mut self, byte: u8) -> Rule {
        self.needs = Some(byte);
        self
    }

    /// Sets how far the pattern looks.
    pub const fn reach(mut self, bytes: usize) -> Rule {
        self.reach = bytes;
        self
    }

    /// Sets the entropy that a secret has at least.
    pub const fn entropy(mut self, bits: f32) -> Rule {
        self.entropy = bits;
        self
    }

    /// Lets the match begin and end inside a word.
    pub const fn anywhere(mut self) -> Rule {
        self.left = false;
        self.right = false;
        self
    }

    /// Lets the match begin inside a word.
    pub const fn inside(mut self) -> Rule {
        self.left = false;
        self
    }

    /// Lets the match end inside a word.
    pub const fn open(mut self) -> Rule {
        self.right = false;
        self
    }

    /// Sets the last word.
    pub const fn accept(mut self, accept: Accept) -> Rule {
        self.accept = accept;
        self
    }

    /// Bytes before the literal that the rule looks at: its start, and two for what stands before that.
    pub fn behind(&self) -> usize {
        match self.start {
            Start::AtLiteral => 2,
            Start::Before(bytes) => bytes + 2,
        }
    }
}
