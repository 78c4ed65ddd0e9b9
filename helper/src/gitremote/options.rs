//! What Git sets with `option` lines, and how each is answered.

use std::collections::BTreeMap;

use bstr::{BStr, BString, ByteSlice};
use gix_hash::ObjectId;

/// The value that a reference must still have when it is changed (`--force-with-lease`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lease {
    /// The reference must not exist.
    Absent,
    /// It must point at this object.
    At(ObjectId),
}

/// Which object format Git wants to hear about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectFormat {
    /// Whichever the store has.
    Any,
    /// This one, or none.
    Only(gix_hash::Kind),
}

/// The options of one conversation. They stay set until Git sets them anew, except the leases, which belong to the
/// next push batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Whether to show progress, where Git has said so.
    pub progress: Option<bool>,
    /// 0 is quiet, 1 the default, more with each `-v`.
    pub verbosity: u32,
    /// Decide a push without publishing it.
    pub dry_run: bool,
    /// All references of a push or none.
    pub atomic: bool,
    /// Annotated tags that point at what is fetched are wanted too. They are brought in any case.
    pub follow_tags: bool,
    /// The repository is being cloned: references are Git's to write.
    pub cloning: bool,
    /// Say `connectivity-ok` when a fetch proved that nothing is missing.
    pub check_connectivity: bool,
    /// Begin listings with the object format.
    pub object_format: Option<ObjectFormat>,
    /// Leases by full reference name.
    pub leases: BTreeMap<BString, Lease>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            progress: None,
            verbosity: 1,
            dry_run: false,
            atomic: false,
            follow_tags: false,
            cloning: false,
            check_connectivity: false,
            object_format: None,
            leases: BTreeMap::new(),
        }
    }
}

/// The answer to an option line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Set.
    Ok,
    /// This helper does not know it. Git stops for the options that must not be ignored (`push-option`, `pushcert`,
    /// `force-if-includes`) and goes on without those that may be (`depth`, `filter`, `family` and the like).
    Unsupported,
    /// Known, but the value is wrong.
    Error(String),
}

impl Options {
    /// Sets one option to a value as Git wrote it, quoted or not.
    pub fn set(&mut self, name: &BStr, value: &BStr) -> Answer {
        let Some(value) = super::quote::undo(value) else {
            return Answer::Error(format!("the value of option {name} is not properly quoted"));
        };
        let result = match name.as_bytes() {
            b"progress" => boolean(&value).map(|value| self.progress = Some(value)),
            b"verbosity" => number(&value).map(|value| self.verbosity = value),
            b"dry-run" => boolean(&value).map(|value| self.dry_run = value),
            b"atomic" => boolean(&value).map(|value| self.atomic = value),
            b"followtags" => boolean(&value).map(|value| self.follow_tags = value),
            b"cloning" => boolean(&value).map(|value| self.cloning = value),
            b"check-connectivity" => boolean(&value).map(|value| self.check_connectivity = value),
            b"object-format" => object_format(&value).map(|value| self.object_format = value),
            b"cas" => lease(&value).map(|(name, lease)| {
                self.leases.insert(name, lease);
            }),
            _ => return Answer::Unsupported,
        };
        match result {
            Some(()) => Answer::Ok,
            None => {
                let value = super::quote::if_needed(value.as_bstr());
                Answer::Error(format!("option {name} cannot be {value}"))
            }
        }
    }
}

fn boolean(value: &BString) -> Option<bool> {
    match value.as_slice() {
        // No value at all sets it, as in Git's configuration.
        b"true" | b"yes" | b"1" | b"" => Some(true),
        b"false" | b"no" | b"0" => Some(false),
        _ => None,
    }
}

fn number(value: &BString) -> Option<u32> {
    value.to_str().ok()?.parse().ok()
}

fn object_format(value: &BString) -> Option<Option<ObjectFormat>> {
    match value.as_slice() {
        b"true" | b"" => Some(Some(ObjectFormat::Any)),
        b"false" => Some(None),
        b"sha1" => Some(Some(ObjectFormat::Only(gix_hash::Kind::Sha1))),
        b"sha256" => Some(Some(ObjectFormat::Only(gix_hash::Kind::Sha256))),
        _ => None,
    }
}

/// `<reference>:<id>`, the id all zero where the reference must not exist.
fn lease(value: &BString) -> Option<(BString, Lease)> {
    let (name, id) = value.rsplit_once_str(b":")?;
    let id = ObjectId::from_hex(id).ok()?;
    let lease = if id.is_null() {
        Lease::Absent
    } else {
        Lease::At(id)
    };
    (!name.is_empty()).then(|| (name.into(), lease))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn set(options: &mut Options, name: &str, value: &str) -> Answer {
        options.set(name.into(), value.into())
    }

    #[test]
    fn every_supported_option() {
        let mut options = Options::default();
        for (name, value) in [
            ("progress", "false"),
            ("verbosity", "3"),
            ("dry-run", "true"),
            ("atomic", "true"),
            ("followtags", "true"),
            ("cloning", "yes"),
            ("check-connectivity", "true"),
            ("object-format", "true"),
        ] {
            assert_eq!(set(&mut options, name, value), Answer::Ok, "{name}");
        }
        let expected = Options {
            progress: Some(false),
            verbosity: 3,
            dry_run: true,
            atomic: true,
            follow_tags: true,
            cloning: true,
            check_connectivity: true,
            object_format: Some(ObjectFormat::Any),
            leases: BTreeMap::new(),
        };
        assert_eq!(options, expected);
        assert_eq!(set(&mut options, "object-format", "sha256"), Answer::Ok);
        assert_eq!(
            options.object_format,
            Some(ObjectFormat::Only(gix_hash::Kind::Sha256))
        );
    }

    #[test]
    fn options_that_git_must_decide_about() {
        for name in [
            "depth",
            "deepen-since",
            "deepen-not",
            "deepen-relative",
            "filter",
            "update-shallow",
            "refetch",
            "from-promisor",
            "family",
            "push-option",
            "pushcert",
            "force-if-includes",
            "servpath",
            "anything",
        ] {
            let mut options = Options::default();
            assert_eq!(set(&mut options, name, "true"), Answer::Unsupported, "{name}");
            assert_eq!(options, Options::default());
        }
    }

    #[test]
    fn leases() {
        let mut options = Options::default();
        let id = "ab".repeat(20);
        assert_eq!(
            set(&mut options, "cas", &format!("refs/heads/main:{id}")),
            Answer::Ok
        );
        assert_eq!(
            set(&mut options, "cas", &format!("refs/tags/x:{}", "0".repeat(64))),
            Answer::Ok
        );
        let quoted = format!(r#""refs/heads/gr\303\274n:{id}""#);
        assert_eq!(set(&mut options, "cas", &quoted), Answer::Ok);
        let at = Lease::At(ObjectId::from_hex(id.as_bytes()).unwrap());
        assert_eq!(options.leases[BStr::new("refs/heads/main")], at);
        assert_eq!(options.leases[BStr::new("refs/tags/x")], Lease::Absent);
        assert_eq!(options.leases[BStr::new("refs/heads/grün")], at);
    }

    #[test]
    fn wrong_values_change_nothing() {
        for (name, value) in [
            ("progress", "maybe"),
            ("verbosity", "-1"),
            ("verbosity", "99999999999"),
            ("object-format", "md5"),
            ("cas", "refs/heads/main"),
            ("cas", ":abcd"),
            ("cas", "\"open"),
            ("dry-run", "line\nfeed"),
        ] {
            let mut options = Options::default();
            let Answer::Error(text) = set(&mut options, name, value) else {
                panic!("{name} {value}")
            };
            assert!(!text.contains('\n'));
            assert_eq!(options, Options::default());
        }
    }
}
