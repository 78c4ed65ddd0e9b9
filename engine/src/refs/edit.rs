//! What a transaction is asked to do, and what it answers.

use bstr::BString;
use gix_hash::ObjectId;
use gix_ref::FullName;

/// What becomes of a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It holds this object.
    Set(ObjectId),
    /// It becomes symbolic, or stays so, and points to this reference.
    Point(FullName),
    /// It goes, and its log with it.
    Delete,
}

/// What must be there for the change to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Whatever is there.
    Any,
    /// No reference of that name.
    Absent,
    /// This object, after following symbolic references.
    Is(ObjectId),
}

/// One change to one reference.
#[derive(Debug, Clone)]
pub struct Edit {
    pub(super) name: FullName,
    pub(super) change: Change,
    pub(super) expected: Expected,
    pub(super) follow: bool,
    pub(super) message: BString,
}

impl Edit {
    fn new(name: FullName, change: Change) -> Edit {
        Edit {
            name,
            change,
            expected: Expected::Any,
            follow: true,
            message: BString::default(),
        }
    }

    /// Sets a reference, and where it is symbolic, the one that it leads to.
    pub fn set(name: FullName, id: ObjectId) -> Edit {
        Edit::new(name, Change::Set(id))
    }

    /// Makes a reference symbolic.
    pub fn point(name: FullName, target: FullName) -> Edit {
        Edit::new(name, Change::Point(target))
    }

    /// Deletes a reference; a symbolic one itself, not what it leads to.
    pub fn delete(name: FullName) -> Edit {
        Edit::new(name, Change::Delete)
    }

    /// Makes the change depend on what is there.
    pub fn expecting(mut self, expected: Expected) -> Edit {
        self.expected = expected;
        self
    }

    /// Sets the text of the log entry.
    pub fn because(mut self, message: impl Into<BString>) -> Edit {
        self.message = message.into();
        self
    }

    /// Sets the reference itself even where it is symbolic: this is how `HEAD` leaves its branch.
    pub fn detached(mut self) -> Edit {
        self.follow = false;
        self
    }
}

/// A change that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The reference, after following symbolic ones.
    pub name: FullName,
    /// What it led to before.
    pub old: Option<ObjectId>,
}
