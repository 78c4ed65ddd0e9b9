//! What became of each reference: a line for people in Git's form, and an entry for programs.

use gix_hash::ObjectId;
use serde_json::{Value, json};

use super::exit::one_line;
use crate::gitremote::backend::Verdict;

/// One reference of a push or a fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where the value came from, as the user would call it; `None` for a deletion.
    pub source: Option<String>,
    /// Full name of the reference that was to change.
    pub name: String,
    /// How it ended.
    pub verdict: Verdict,
}

/// Reasons that Git's own checks give too; everything else comes from "the remote".
const OWN_REASONS: [&str; 7] = [
    "fetch first",
    "non-fast-forward",
    "already exists",
    "stale info",
    "needs force",
    "would clobber existing tag",
    "atomic push failed",
];

/// How the reason of a change begins that the repository did not take.
const HERE: &str = "unable to update local ref";

impl Entry {
    /// Turns it into one that could not be made in the repository, for this reason.
    pub fn fail(&mut self, reason: &dyn std::fmt::Display) {
        self.verdict = Verdict::Refused(format!("{HERE}: {reason}"));
    }

    /// Whether it was refused.
    pub fn refused(&self) -> bool {
        matches!(self.verdict, Verdict::Refused(_))
    }

    /// Whether anything changed.
    pub fn changed(&self) -> bool {
        matches!(self.verdict, Verdict::Changed { .. })
    }

    /// The name of the state, for programs.
    pub fn status(&self) -> &'static str {
        match &self.verdict {
            Verdict::Changed { old: None, .. } => "new",
            Verdict::Changed { new: None, .. } => "deleted",
            Verdict::Changed { forced: true, .. } => "forced",
            Verdict::Changed { .. } => "updated",
            Verdict::UpToDate => "up-to-date",
            Verdict::Refused(_) => "rejected",
        }
    }

    /// An object with `ref`, `status` and, where they are known, `source`, `old`, `new` and `reason`.
    pub fn json(&self) -> Value {
        let mut entry = json!({"ref": self.name, "status": self.status()});
        let mut set = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                entry[name] = value.into();
            }
        };
        set("source", self.source.clone());
        match &self.verdict {
            Verdict::Changed { old, new, .. } => {
                set("old", old.map(|id| id.to_string()));
                set("new", new.map(|id| id.to_string()));
            }
            Verdict::UpToDate => {}
            Verdict::Refused(reason) => set("reason", Some(reason.clone())),
        }
        entry
    }

    /// A line as `git push` and `git fetch` print it, without line feed.
    pub fn line(&self) -> String {
        let (flag, summary, note) = match &self.verdict {
            Verdict::Changed { old: None, .. } => ('*', new_kind(&self.name).to_owned(), None),
            Verdict::Changed { new: None, .. } => ('-', "[deleted]".to_owned(), None),
            Verdict::Changed {
                old: Some(old),
                new: Some(new),
                forced: true,
            } => (
                '+',
                format!("{}...{}", short(old), short(new)),
                Some("forced update"),
            ),
            Verdict::Changed {
                old: Some(old),
                new: Some(new),
                forced: false,
            } => (' ', format!("{}..{}", short(old), short(new)), None),
            Verdict::UpToDate => ('=', "[up to date]".to_owned(), None),
            Verdict::Refused(reason)
                if OWN_REASONS.contains(&reason.as_str()) || reason.starts_with(HERE) =>
            {
                ('!', "[rejected]".to_owned(), Some(reason.as_str()))
            }
            Verdict::Refused(reason) => ('!', "[remote rejected]".to_owned(), Some(reason.as_str())),
        };
        let to = one_line(short_name(&self.name));
        let names = match &self.source {
            Some(source) => format!("{} -> {to}", one_line(short_name(source))),
            None => to,
        };
        let note = note
            .map(|note| format!(" ({})", one_line(note)))
            .unwrap_or_default();
        format!(" {flag} {summary:<17} {names}{note}")
    }
}

fn new_kind(name: &str) -> &'static str {
    if name.starts_with("refs/heads/") || name.starts_with("refs/remotes/") {
        "[new branch]"
    } else if name.starts_with("refs/tags/") {
        "[new tag]"
    } else {
        "[new reference]"
    }
}

/// A name without the part that people leave out.
pub fn short_name(name: &str) -> &str {
    ["refs/heads/", "refs/tags/", "refs/remotes/"]
        .into_iter()
        .find_map(|prefix| name.strip_prefix(prefix))
        .unwrap_or(name)
}

fn short(id: &ObjectId) -> String {
    id.to_hex_with_len(7).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u8) -> ObjectId {
        ObjectId::from([n; 20])
    }

    fn entry(source: Option<&str>, name: &str, verdict: Verdict) -> Entry {
        Entry {
            source: source.map(Into::into),
            name: name.into(),
            verdict,
        }
    }

    fn changed(old: u8, new: u8, forced: bool) -> Verdict {
        let value = |n: u8| (n != 0).then(|| id(n));
        Verdict::Changed {
            old: value(old),
            new: value(new),
            forced,
        }
    }

    #[test]
    fn lines_as_git_prints_them() {
        for (entry, line, status) in [
            (
                entry(Some("main"), "refs/heads/main", changed(0, 1, false)),
                " * [new branch]      main -> main",
                "new",
            ),
            (
                entry(Some("refs/tags/v1"), "refs/tags/v1", changed(0, 1, false)),
                " * [new tag]         v1 -> v1",
                "new",
            ),
            (
                entry(Some("main"), "refs/heads/x", changed(1, 2, false)),
                "   0101010..0202020  main -> x",
                "updated",
            ),
            (
                entry(Some("main"), "refs/heads/x", changed(1, 2, true)),
                " + 0101010...0202020 main -> x (forced update)",
                "forced",
            ),
            (
                entry(None, "refs/heads/x", changed(1, 0, false)),
                " - [deleted]         x",
                "deleted",
            ),
            (
                entry(Some("main"), "refs/heads/x", Verdict::UpToDate),
                " = [up to date]      main -> x",
                "up-to-date",
            ),
            (
                entry(
                    Some("main"),
                    "refs/heads/x",
                    Verdict::Refused("fetch first".into()),
                ),
                " ! [rejected]        main -> x (fetch first)",
                "rejected",
            ),
            (
                entry(Some("main"), "refs/x", Verdict::Refused("odd\nname".into())),
                " ! [remote rejected] main -> refs/x (odd name)",
                "rejected",
            ),
        ] {
            assert_eq!(entry.line(), line);
            assert_eq!(entry.status(), status);
        }
    }

    #[test]
    fn programs_get_whole_values() {
        let json = entry(Some("main"), "refs/heads/x", changed(1, 2, true)).json();
        let expected = json!({
            "ref": "refs/heads/x", "status": "forced", "source": "main",
            "old": "01".repeat(20), "new": "02".repeat(20),
        });
        assert_eq!(json, expected);
        let json = entry(None, "refs/heads/x", Verdict::Refused("no".into())).json();
        assert_eq!(
            json,
            json!({"ref": "refs/heads/x", "status": "rejected", "reason": "no"})
        );
    }
}
