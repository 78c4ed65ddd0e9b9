//! Decides for each reference of a push whether it may move. Nothing is written here.
//!
//! Git leaves most of this to the helper: it sends `push a:b` without `+` even when it does not know what is in the
//! store, and believes whatever the helper answers.

use std::collections::BTreeMap;

use bstr::{BStr, BString, ByteSlice as _};
use gix::object::Kind;
use gix_hash::ObjectId;

use super::refnames;
use super::rejection::Rejection;

/// References by full name.
pub type Refs = BTreeMap<String, ObjectId>;

/// What a reference shall become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// This object.
    Object(ObjectId),
    /// Nothing: the reference goes.
    Nothing,
    /// A revision that could not be resolved here.
    Unresolved(String),
}

/// One reference that the user wants to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Full name in the store, as it was given.
    pub name: BString,
    /// What it shall become.
    pub target: Target,
    /// The user gives up what is there.
    pub force: bool,
    /// What has to be there (`Some(None)`: nothing). It permits updates that are not fast-forward.
    pub lease: Option<Option<ObjectId>>,
}

/// What becomes of a [`Change`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It is to be published.
    Move {
        /// The name as text.
        name: String,
        /// The value before.
        old: Option<ObjectId>,
        /// The value after, `None` for a deletion.
        new: Option<ObjectId>,
        /// History is given up.
        forced: bool,
    },
    /// Nothing is to be done.
    UpToDate,
    /// It is refused.
    Rejected(Rejection),
}

/// What is known about local objects.
pub trait History {
    /// Why the local repository could not be read.
    type Error;
    /// The kind of an object, `None` where it is absent.
    fn kind(&self, id: ObjectId) -> Result<Option<Kind>, Self::Error>;
    /// What a chain of annotated tags leads to; the object itself when it is no tag; `None` where part is absent.
    fn peel(&self, id: ObjectId) -> Result<Option<(ObjectId, Kind)>, Self::Error>;
    /// Whether `ancestor` is reachable from `descendant`; both are commits that exist.
    fn is_ancestor(&self, ancestor: ObjectId, descendant: ObjectId) -> Result<bool, Self::Error>;
}

/// Decides about `changes`, in their order. `current` is what the store has now, `listed` what the user was shown: a
/// reference that moved in between is refused even by force, since nobody has seen what would be given up. With
/// `atomic`, one refusal refuses all.
pub fn decide<H: History>(
    changes: &[Change],
    current: &Refs,
    listed: &Refs,
    atomic: bool,
    history: &H,
) -> Result<Vec<Decision>, H::Error> {
    let mut decisions = changes
        .iter()
        .map(|change| one(change, current, listed, history))
        .collect::<Result<Vec<_>, _>>()?;
    refuse_conflicts(&mut decisions, current);
    if atomic
        && decisions
            .iter()
            .any(|decision| matches!(decision, Decision::Rejected(_)))
    {
        for decision in &mut decisions {
            if !matches!(decision, Decision::Rejected(_)) {
                *decision = Decision::Rejected(Rejection::Atomic);
            }
        }
    }
    Ok(decisions)
}

/// `current` with everything that `decisions` move.
pub fn apply(decisions: &[Decision], current: &Refs) -> Refs {
    let mut refs = current.clone();
    for decision in decisions {
        if let Decision::Move { name, new, .. } = decision {
            match new {
                Some(id) => refs.insert(name.clone(), *id),
                None => refs.remove(name),
            };
        }
    }
    refs
}

fn one<H: History>(
    change: &Change,
    current: &Refs,
    listed: &Refs,
    history: &H,
) -> Result<Decision, H::Error> {
    let rejected = |rejection| Ok(Decision::Rejected(rejection));
    let name = match check_name(change.name.as_bstr()) {
        Ok(name) => name,
        Err(rejection) => return rejected(rejection),
    };
    let old = current.get(name).copied();
    if change.lease.is_some_and(|lease| lease != old) {
        return rejected(Rejection::StaleInfo);
    }
    if old != listed.get(name).copied() {
        return rejected(Rejection::FetchFirst);
    }
    let moved = |new, forced| {
        Ok(Decision::Move {
            name: name.to_owned(),
            old,
            new,
            forced,
        })
    };
    let new = match &change.target {
        Target::Unresolved(revision) => {
            return rejected(Rejection::Source {
                revision: revision.clone(),
            });
        }
        Target::Nothing if old.is_none() => {
            return rejected(Rejection::Absent {
                name: name.to_owned(),
            });
        }
        Target::Nothing if !change.force && refnames::default_branch(current) == Some(name) => {
            return rejected(Rejection::DefaultBranch {
                name: name.to_owned(),
            });
        }
        Target::Nothing => return moved(None, false),
        Target::Object(id) => *id,
    };
    if old == Some(new) {
        return Ok(Decision::UpToDate);
    }
    if refnames::is_branch(name) {
        // A branch that points at a tag object would be refused by every Git, so the tag is not peeled for the user.
        match history.kind(new)? {
            Some(Kind::Commit) => {}
            Some(kind) => {
                return rejected(Rejection::NotACommit {
                    name: name.to_owned(),
                    id: new,
                    kind,
                });
            }
            None => {
                return rejected(Rejection::Source {
                    revision: new.to_string(),
                });
            }
        }
    } else if history.peel(new)?.is_none() {
        return rejected(Rejection::Source {
            revision: new.to_string(),
        });
    }
    let Some(old) = old else {
        return moved(Some(new), false);
    };
    let allowed = change.force || change.lease.is_some();
    if !refnames::is_branch(name) {
        return if allowed {
            moved(Some(new), true)
        } else {
            rejected(Rejection::AlreadyExists)
        };
    }
    match history.kind(old)? {
        Some(Kind::Commit) if history.is_ancestor(old, new)? => moved(Some(new), false),
        _ if allowed => moved(Some(new), true),
        Some(_) => rejected(Rejection::NonFastForward),
        None => rejected(Rejection::FetchFirst),
    }
}

fn check_name(name: &BStr) -> Result<&str, Rejection> {
    let text = name.to_str().map_err(|_| Rejection::NotText {
        name: refnames::shown(name),
    })?;
    if !refnames::is_branch(text) && !refnames::is_tag(text) {
        return Err(Rejection::Namespace {
            name: refnames::shown(name),
        });
    }
    if !refnames::is_valid(text) {
        return Err(Rejection::Name {
            name: refnames::shown(name),
        });
    }
    Ok(text)
}

/// Refuses new names that are a folder of another name, or lie below one, in what the push would leave.
fn refuse_conflicts(decisions: &mut [Decision], current: &Refs) {
    let mut result = apply(decisions, current);
    for decision in decisions {
        let Decision::Move {
            name,
            old: None,
            new: Some(_),
            ..
        } = decision
        else {
            continue;
        };
        if let Some(other) = refnames::conflict(name, &result) {
            let rejection = Rejection::Conflict {
                name: name.clone(),
                other: other.to_owned(),
            };
            result.remove(name);
            *decision = Decision::Rejected(rejection);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commits are `1..=9`, each the child of the one before, with `20` on a line of its own; `30` is a tag of 1.
    struct Line;

    fn id(n: u8) -> ObjectId {
        let mut bytes = [0; 20];
        bytes[19] = n;
        ObjectId::from(bytes)
    }

    impl History for Line {
        type Error = std::convert::Infallible;

        fn kind(&self, at: ObjectId) -> Result<Option<Kind>, Self::Error> {
            Ok(match at.as_slice()[19] {
                1..=9 | 20 => Some(Kind::Commit),
                30 => Some(Kind::Tag),
                _ => None,
            })
        }

        fn peel(&self, at: ObjectId) -> Result<Option<(ObjectId, Kind)>, Self::Error> {
            let to = if at == id(30) { id(1) } else { at };
            Ok(self.kind(to)?.map(|kind| (to, kind)))
        }

        fn is_ancestor(&self, ancestor: ObjectId, descendant: ObjectId) -> Result<bool, Self::Error> {
            Ok(descendant != id(20) && ancestor <= descendant)
        }
    }

    fn change(name: &str, target: u8) -> Change {
        let target = if target == 0 {
            Target::Nothing
        } else {
            Target::Object(id(target))
        };
        Change {
            name: name.into(),
            target,
            force: false,
            lease: None,
        }
    }

    fn refs(of: &[(&str, u8)]) -> Refs {
        of.iter().map(|(name, n)| ((*name).to_owned(), id(*n))).collect()
    }

    fn decide_one(change: Change, current: &[(&str, u8)]) -> Decision {
        let current = refs(current);
        decide(&[change], &current, &current, false, &Line)
            .expect("cannot fail")
            .remove(0)
    }

    fn moved(name: &str, old: u8, new: u8, forced: bool) -> Decision {
        let value = |n| (n != 0).then(|| id(n));
        Decision::Move {
            name: name.into(),
            old: value(old),
            new: value(new),
            forced,
        }
    }

    #[test]
    fn a_branch_moves_forward_and_only_forward() {
        let main = "refs/heads/main";
        assert_eq!(decide_one(change(main, 3), &[]), moved(main, 0, 3, false));
        assert_eq!(
            decide_one(change(main, 3), &[(main, 2)]),
            moved(main, 2, 3, false)
        );
        assert_eq!(decide_one(change(main, 3), &[(main, 3)]), Decision::UpToDate);
        let refused = |target, old| decide_one(change(main, target), &[(main, old)]);
        assert_eq!(refused(2, 3), Decision::Rejected(Rejection::NonFastForward));
        assert_eq!(refused(20, 3), Decision::Rejected(Rejection::NonFastForward));
        assert_eq!(refused(3, 99), Decision::Rejected(Rejection::FetchFirst));
        assert!(matches!(
            refused(30, 3),
            Decision::Rejected(Rejection::NotACommit { .. })
        ));
    }

    #[test]
    fn force_gives_up_what_is_there_even_unseen() {
        let main = "refs/heads/main";
        for (old, new, forced) in [(3, 2, true), (99, 2, true), (2, 3, false)] {
            let forceful = Change {
                force: true,
                ..change(main, new)
            };
            assert_eq!(
                decide_one(forceful, &[(main, old)]),
                moved(main, old, new, forced)
            );
        }
    }

    #[test]
    fn a_lease_has_to_match_and_then_acts_as_force() {
        let main = "refs/heads/main";
        let leased = |lease: u8, new| Change {
            lease: Some((lease != 0).then(|| id(lease))),
            ..change(main, new)
        };
        assert_eq!(decide_one(leased(3, 2), &[(main, 3)]), moved(main, 3, 2, true));
        assert_eq!(
            decide_one(leased(2, 4), &[(main, 3)]),
            Decision::Rejected(Rejection::StaleInfo)
        );
        assert_eq!(
            decide_one(leased(0, 4), &[(main, 3)]),
            Decision::Rejected(Rejection::StaleInfo)
        );
        assert_eq!(decide_one(leased(0, 4), &[]), moved(main, 0, 4, false));
    }

    #[test]
    fn tags_do_not_move_without_force() {
        let tag = "refs/tags/v1";
        assert_eq!(decide_one(change(tag, 30), &[]), moved(tag, 0, 30, false));
        assert_eq!(
            decide_one(change(tag, 4), &[(tag, 3)]),
            Decision::Rejected(Rejection::AlreadyExists)
        );
        assert_eq!(
            decide_one(
                Change {
                    force: true,
                    ..change(tag, 4)
                },
                &[(tag, 3)]
            ),
            moved(tag, 3, 4, true)
        );
    }

    #[test]
    fn deletions_need_something_to_delete_and_spare_the_default_branch() {
        let (main, topic) = ("refs/heads/main", "refs/heads/topic");
        assert_eq!(
            decide_one(change(topic, 0), &[(main, 1), (topic, 2)]),
            moved(topic, 2, 0, false)
        );
        assert!(matches!(
            decide_one(change(topic, 0), &[]),
            Decision::Rejected(Rejection::Absent { .. })
        ));
        let refused = decide_one(change(main, 0), &[(main, 1), (topic, 2)]);
        assert!(matches!(
            refused,
            Decision::Rejected(Rejection::DefaultBranch { .. })
        ));
        let forced = Change {
            force: true,
            ..change(main, 0)
        };
        assert_eq!(
            decide_one(forced, &[(main, 1), (topic, 2)]),
            moved(main, 1, 0, false)
        );
    }

    #[test]
    fn names_that_the_format_or_git_cannot_carry_are_refused_alone() {
        let current = Refs::new();
        let changes = [
            change("refs/remotes/origin/main", 1),
            change("refs/heads/../../escape", 1),
            change("refs/heads/good", 1),
            Change {
                name: b"refs/heads/\xff".as_slice().into(),
                ..change("x", 1)
            },
            change("refs/heads/x.lock", 1),
        ];
        let decisions = decide(&changes, &current, &current, false, &Line).expect("cannot fail");
        assert!(matches!(
            &decisions[0],
            Decision::Rejected(Rejection::Namespace { .. })
        ));
        assert!(matches!(
            &decisions[1],
            Decision::Rejected(Rejection::Name { .. })
        ));
        assert_eq!(decisions[2], moved("refs/heads/good", 0, 1, false));
        assert!(matches!(
            &decisions[3],
            Decision::Rejected(Rejection::NotText { .. })
        ));
        assert!(matches!(
            &decisions[4],
            Decision::Rejected(Rejection::Name { .. })
        ));
    }

    #[test]
    fn a_name_beside_a_folder_of_that_name_is_refused() {
        let current = refs(&[("refs/heads/a", 1)]);
        let two = [change("refs/heads/a/b", 2), change("refs/heads/c", 2)];
        let decisions = decide(&two, &current, &current, false, &Line).expect("cannot fail");
        assert!(
            matches!(&decisions[0], Decision::Rejected(Rejection::Conflict { other, .. }) if other == "refs/heads/a")
        );
        assert_eq!(decisions[1], moved("refs/heads/c", 0, 2, false));

        let replaced = [
            Change {
                force: true,
                ..change("refs/heads/a", 0)
            },
            change("refs/heads/a/b", 2),
        ];
        let decisions = decide(&replaced, &current, &current, false, &Line).expect("cannot fail");
        assert_eq!(decisions[1], moved("refs/heads/a/b", 0, 2, false));

        let both = [change("refs/heads/n/m", 2), change("refs/heads/n", 2)];
        let decisions = decide(&both, &Refs::new(), &Refs::new(), false, &Line).expect("cannot fail");
        let refused = decisions
            .iter()
            .filter(|decision| matches!(decision, Decision::Rejected(_)))
            .count();
        assert_eq!(refused, 1, "{decisions:?}");
    }

    #[test]
    fn an_atomic_push_is_all_or_nothing_and_what_moved_meanwhile_is_not_given_up() {
        let current = refs(&[("refs/heads/main", 5)]);
        let both = [change("refs/heads/main", 4), change("refs/heads/new", 1)];
        let decisions = decide(&both, &current, &current, true, &Line).expect("cannot fail");
        assert_eq!(decisions[0], Decision::Rejected(Rejection::NonFastForward));
        assert_eq!(decisions[1], Decision::Rejected(Rejection::Atomic));

        let listed = refs(&[("refs/heads/main", 4)]);
        let forced = [Change {
            force: true,
            ..change("refs/heads/main", 3)
        }];
        let decisions = decide(&forced, &current, &listed, false, &Line).expect("cannot fail");
        assert_eq!(decisions[0], Decision::Rejected(Rejection::FetchFirst));
    }
}
