//! What must hold between what was seen before and what is shown now.

use super::State;
use crate::protocol::{ContentId, RepositoryRoot};

/// A freshly authenticated history, as far as a pin needs it.
#[derive(Clone, Copy)]
pub struct Observed<'a> {
    /// The repository.
    pub repository_root: RepositoryRoot,
    /// The newest manifest.
    pub head_id: ContentId,
    /// Its generation.
    pub generation: u64,
    /// The generation of the policy in force there.
    pub policy_generation: u64,
    /// The manifest at an earlier generation of the same history, or at the head's; `None` where the history holds none.
    pub id_at: &'a dyn Fn(u64) -> Option<ContentId>,
}

impl std::fmt::Debug for Observed<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observed")
            .field("repository_root", &self.repository_root)
            .field("head_id", &self.head_id)
            .field("generation", &self.generation)
            .field("policy_generation", &self.policy_generation)
            .finish_non_exhaustive()
    }
}

/// A store shows something that contradicts what it showed before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Alarm {
    /// Another repository.
    #[error("remote repository root changed: expected {expected}, found {seen}")]
    RootChanged {
        /// The pinned root.
        expected: RepositoryRoot,
        /// What the store shows.
        seen: RepositoryRoot,
    },
    /// An older policy, in which a revoked device may still be active.
    #[error(
        "remote policy rolled back from generation {expected} to {seen}: expected manifest {} (generation {}) or one \
         that continues it, found manifest {} (generation {})",
        .pinned.0, .pinned.1, .found.0, .found.1
    )]
    PolicyRolledBack {
        /// The pinned policy generation.
        expected: u64,
        /// What the store shows.
        seen: u64,
        /// The pinned head and its generation.
        pinned: Box<(ContentId, u64)>,
        /// The head that the store shows, and its generation.
        found: Box<(ContentId, u64)>,
    },
    /// An older head.
    #[error(
        "remote manifest rolled back from generation {expected} to {seen}: expected manifest {expected_id} or one that \
         continues it, found manifest {seen_id}"
    )]
    RolledBack {
        /// The pinned generation.
        expected: u64,
        /// What the store shows.
        seen: u64,
        /// The pinned head.
        expected_id: ContentId,
        /// The head that the store shows.
        seen_id: ContentId,
    },
    /// A history that goes past the pinned generation without the pinned head.
    #[error(
        "remote manifest history forked from the locally pinned head: generation {generation} was {expected}, now it \
         is {}", .seen.map_or_else(|| "missing".to_owned(), |id| id.to_string())
    )]
    Forked {
        /// The pinned generation.
        generation: u64,
        /// The pinned head.
        expected: ContentId,
        /// What the history holds in its place.
        seen: Option<ContentId>,
    },
    /// Two policies for one head. Local state was tampered with, or belongs to something else.
    #[error("policy generation of the pinned head {head_id} was {expected}, now it is {seen}")]
    PolicyDiffers {
        /// The head.
        head_id: ContentId,
        /// The pinned policy generation.
        expected: u64,
        /// The other one.
        seen: u64,
    },
}

impl State {
    /// Requires that an authenticated history continues the one that this state was made from.
    pub fn check(&self, observed: &Observed<'_>) -> Result<(), Alarm> {
        if observed.repository_root != self.repository_root {
            return Err(Alarm::RootChanged {
                expected: self.repository_root,
                seen: observed.repository_root,
            });
        }
        if observed.policy_generation < self.policy_generation {
            return Err(Alarm::PolicyRolledBack {
                expected: self.policy_generation,
                seen: observed.policy_generation,
                pinned: Box::new((self.head_id, self.generation)),
                found: Box::new((observed.head_id, observed.generation)),
            });
        }
        if observed.generation < self.generation {
            return Err(Alarm::RolledBack {
                expected: self.generation,
                seen: observed.generation,
                expected_id: self.head_id,
                seen_id: observed.head_id,
            });
        }
        let seen = (observed.id_at)(self.generation);
        if seen != Some(self.head_id) {
            return Err(Alarm::Forked {
                generation: self.generation,
                expected: self.head_id,
                seen,
            });
        }
        Ok(())
    }

    /// This state after `newer` was learned. Nothing moves back: an older generation changes nothing, packs are united,
    /// and what contradicts this state is an alarm. `newer` must come from a history that passed [`State::check`].
    pub fn merge(&self, newer: State) -> Result<State, Alarm> {
        if newer.repository_root != self.repository_root {
            return Err(Alarm::RootChanged {
                expected: self.repository_root,
                seen: newer.repository_root,
            });
        }
        if newer.generation < self.generation {
            return Ok(self.clone());
        }
        if newer.policy_generation < self.policy_generation {
            return Err(Alarm::PolicyRolledBack {
                expected: self.policy_generation,
                seen: newer.policy_generation,
                pinned: Box::new((self.head_id, self.generation)),
                found: Box::new((newer.head_id, newer.generation)),
            });
        }
        if newer.generation == self.generation {
            if newer.head_id != self.head_id {
                return Err(Alarm::Forked {
                    generation: self.generation,
                    expected: self.head_id,
                    seen: Some(newer.head_id),
                });
            }
            if newer.policy_generation != self.policy_generation {
                return Err(Alarm::PolicyDiffers {
                    head_id: self.head_id,
                    expected: self.policy_generation,
                    seen: newer.policy_generation,
                });
            }
        }
        Ok(State {
            packs: &self.packs | &newer.packs,
            imported_generation: self.imported_generation.max(newer.imported_generation),
            ..newer
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u8) -> ContentId {
        ContentId::from_bytes([n; 32])
    }

    fn observed<'a>(
        generation: u64,
        policy: u64,
        id_at: &'a dyn Fn(u64) -> Option<ContentId>,
    ) -> Observed<'a> {
        Observed {
            repository_root: RepositoryRoot::from_bytes([7; 32]),
            head_id: id_at(generation).expect("the head is part of its history"),
            generation,
            policy_generation: policy,
            id_at,
        }
    }

    fn straight(generation: u64) -> Option<ContentId> {
        u8::try_from(generation).ok().map(id)
    }

    #[test]
    fn the_history_must_go_on_from_the_pin() {
        let pin = State::new(&observed(5, 2, &straight));
        pin.check(&observed(5, 2, &straight)).expect("the same");
        pin.check(&observed(9, 3, &straight)).expect("more");
        assert_eq!(
            pin.check(&observed(4, 2, &straight)),
            Err(Alarm::RolledBack {
                expected: 5,
                seen: 4,
                expected_id: id(5),
                seen_id: id(4)
            })
        );
        assert_eq!(
            pin.check(&observed(9, 1, &straight)),
            Err(Alarm::PolicyRolledBack {
                expected: 2,
                seen: 1,
                pinned: Box::new((id(5), 5)),
                found: Box::new((id(9), 9))
            })
        );
        let fork = |generation| Some(if generation == 5 { id(99) } else { id(1) });
        assert_eq!(
            pin.check(&observed(9, 2, &fork)),
            Err(Alarm::Forked {
                generation: 5,
                expected: id(5),
                seen: Some(id(99))
            })
        );
        let short = |generation| (generation > 6).then_some(id(1));
        assert_eq!(
            pin.check(&observed(9, 2, &short)),
            Err(Alarm::Forked {
                generation: 5,
                expected: id(5),
                seen: None
            })
        );
        let other = RepositoryRoot::from_bytes([8; 32]);
        assert_eq!(
            pin.check(&Observed {
                repository_root: other,
                ..observed(9, 3, &straight)
            }),
            Err(Alarm::RootChanged {
                expected: pin.repository_root,
                seen: other
            })
        );
    }

    #[test]
    fn merging_never_moves_back() {
        let old = State {
            packs: [id(1)].into(),
            imported_generation: Some(3),
            ..State::new(&observed(5, 2, &straight))
        };
        let newer = State {
            packs: [id(2)].into(),
            ..State::new(&observed(6, 2, &straight))
        };
        let merged = old.merge(newer.clone()).expect("newer");
        assert_eq!(merged.packs, [id(1), id(2)].into());
        assert_eq!(
            (merged.generation, merged.head_id, merged.imported_generation),
            (6, id(6), Some(3))
        );
        assert_eq!(
            newer.merge(old.clone()).as_ref(),
            Ok(&newer),
            "an older generation changes nothing"
        );
        assert!(matches!(
            old.merge(State {
                head_id: id(9),
                ..old.clone()
            }),
            Err(Alarm::Forked { generation: 5, .. })
        ));
        assert!(matches!(
            old.merge(State {
                policy_generation: 3,
                ..old.clone()
            }),
            Err(Alarm::PolicyDiffers {
                expected: 2,
                seen: 3,
                ..
            })
        ));
        assert!(matches!(
            old.merge(State {
                policy_generation: 1,
                ..newer
            }),
            Err(Alarm::PolicyRolledBack {
                expected: 2,
                seen: 1,
                ..
            })
        ));
    }
}
