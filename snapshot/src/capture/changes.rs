//! What differs between two lists of entries.

use std::cmp::Ordering;

use crate::manifest::{self, EntryRef, KindRef};

/// How an entry differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// It was not there before.
    Added,
    /// Its content, or where it leads.
    Modified,
    /// A file became a link, or the like.
    KindChanged,
    /// Its permissions alone.
    ModeChanged,
    /// The time of its last change alone, or what other names the same file has.
    Touched,
    /// It is not there any more.
    Removed,
}

impl What {
    /// For JSON.
    pub fn word(self) -> &'static str {
        match self {
            What::Added => "added",
            What::Modified => "modified",
            What::KindChanged => "kind-changed",
            What::ModeChanged => "mode-changed",
            What::Touched => "touched",
            What::Removed => "removed",
        }
    }

    /// For lists.
    pub fn letter(self) -> char {
        match self {
            What::Added => 'A',
            What::Modified => 'M',
            What::KindChanged => 'T',
            What::ModeChanged => 'm',
            What::Touched => 't',
            What::Removed => 'D',
        }
    }
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Relative to the root.
    pub path: Vec<u8>,
    /// How it differs.
    pub what: What,
    /// Whether it is a folder.
    pub is_folder: bool,
}

/// How many entries differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// New ones.
    pub added: u64,
    /// Others with new content or of a new kind.
    pub modified: u64,
    /// Others with new permissions or times.
    pub touched: u64,
    /// Those that are gone.
    pub removed: u64,
    /// The rest.
    pub unchanged: u64,
}

impl Counts {
    /// Nothing differs.
    pub fn all_unchanged(unchanged: u64) -> Counts {
        Counts {
            unchanged,
            ..Counts::default()
        }
    }

    /// Whether anything differs.
    pub fn any(&self) -> bool {
        self.added + self.modified + self.touched + self.removed > 0
    }

    fn count(&mut self, what: What) {
        *match what {
            What::Added => &mut self.added,
            What::Modified | What::KindChanged => &mut self.modified,
            What::ModeChanged | What::Touched => &mut self.touched,
            What::Removed => &mut self.removed,
        } += 1;
    }
}

/// Compares two lists in path order; tells every difference to `each`. The times of folders do not count.
pub fn compare<'a>(
    old: impl IntoIterator<Item = EntryRef<'a>>,
    new: impl IntoIterator<Item = EntryRef<'a>>,
    each: &mut dyn FnMut(What, Option<EntryRef<'a>>, Option<EntryRef<'a>>),
) -> Counts {
    let mut counts = Counts::default();
    let (mut old, mut new) = (old.into_iter().peekable(), new.into_iter().peekable());
    loop {
        let place = match (old.peek(), new.peek()) {
            (None, None) => return counts,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(old), Some(new)) => manifest::order(old.path, new.path),
        };
        let (before, after) = match place {
            Ordering::Less => (old.next(), None),
            Ordering::Greater => (None, new.next()),
            Ordering::Equal => (old.next(), new.next()),
        };
        let what = match (&before, &after) {
            (Some(_), None) => Some(What::Removed),
            (None, _) => Some(What::Added),
            (Some(before), Some(after)) => differ(before, after),
        };
        match what {
            Some(what) => {
                counts.count(what);
                each(what, before, after);
            }
            None => counts.unchanged += 1,
        }
    }
}

fn differ(old: &EntryRef<'_>, new: &EntryRef<'_>) -> Option<What> {
    let same = match (&old.kind, &new.kind) {
        (KindRef::Folder, KindRef::Folder) => true,
        (KindRef::File(old), KindRef::File(new)) => old.size == new.size && old.blake3 == new.blake3,
        (KindRef::Link { target: old, .. }, KindRef::Link { target: new, .. }) => old == new,
        _ => return Some(What::KindChanged),
    };
    if !same {
        return Some(What::Modified);
    }
    if old.mode != new.mode {
        return Some(What::ModeChanged);
    }
    let touched = old.mtime != new.mtime || old.hard_link != new.hard_link;
    (touched && new.kind != KindRef::Folder).then_some(What::Touched)
}
