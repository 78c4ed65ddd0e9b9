//! What a damaged place could be set back to.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::{Error, Remote, View};
use super::restored::Restored;
use super::{Candidate, Class, Report};
use crate::protocol::chain::{self, Known};
use crate::protocol::{Chain, ContentId};
use crate::storage::{self, Heads, MOST_COMMITS, Recovery, Storage as _};

/// What is read at most of manifests that nobody has vouched for yet. Opening one costs an operation, and two for each of
/// its envelopes.
const MOST_HEADS: usize = 256;
const MOST_BYTES: u64 = 64 << 20;
const MOST_OPERATIONS: u64 = 1_000_000;

/// Manifests above the floor, each read once, within bounds.
struct Budget<'a> {
    restored: &'a Restored<'a>,
    read: RefCell<BTreeMap<ContentId, Vec<u8>>>,
    bytes: RefCell<u64>,
    operations: RefCell<u64>,
}

impl Budget<'_> {
    fn manifest(&self, id: &ContentId) -> Result<Vec<u8>, storage::Error> {
        if let Some(bytes) = self.read.borrow().get(id) {
            return Ok(bytes.clone());
        }
        let bytes = self.restored.manifest(id)?;
        *self.bytes.borrow_mut() += bytes.len() as u64;
        *self.operations.borrow_mut() += 1 + 2 * chain::envelopes(id, &bytes) as u64;
        if self.exhausted() {
            return Err(storage::Error::Refused {
                store: self.restored.describe(),
                reason: "its history holds more than recovery looks at".to_owned(),
            });
        }
        self.read.borrow_mut().insert(*id, bytes.clone());
        Ok(bytes)
    }

    fn exhausted(&self) -> bool {
        *self.bytes.borrow() > MOST_BYTES || *self.operations.borrow() > MOST_OPERATIONS
    }
}

/// A candidate with its chain.
pub(super) struct Base {
    pub view: View,
}

impl Remote<'_> {
    /// Fills in candidates, replays and conflicts, and returns the views of the candidates, oldest first.
    ///
    /// `floor` is the view of the pinned head, as far as it is left.
    pub(super) fn candidates(
        &self,
        left: &dyn Recovery,
        floor: View,
        report: &mut Report,
    ) -> Result<Vec<Base>, Error> {
        let Some(heads) = left.heads()? else {
            report.candidates.push(candidate(&floor, None));
            report.warnings.push(
                "a folder remembers no older heads: generations after the continuity floor that this clone has not \
                 seen would be lost"
                    .to_owned(),
            );
            return Ok(vec![Base { view: floor }]);
        };
        self.among(left, &heads, floor, report)
    }

    fn among(
        &self,
        left: &dyn Recovery,
        heads: &Heads,
        floor: View,
        report: &mut Report,
    ) -> Result<Vec<Base>, Error> {
        // Each id once, with the oldest commit that had it: that is the one that published it.
        let ids: Vec<(ContentId, &str)> = heads
            .heads
            .iter()
            .filter_map(|(head, outer)| Some((head.id()?, outer.as_str())))
            .collect();
        let Some(at) = ids.iter().rposition(|(id, _)| id == floor.head()) else {
            let why = if heads.more {
                format!("is not among the heads of the newest {MOST_COMMITS} outer commits")
            } else {
                "was never a head in the outer history: the branch was replaced".to_owned()
            };
            report.class = match report.class {
                Class::Invalid => Class::Discontinuous,
                class => class,
            };
            report.refused = Some(format!("the continuity floor {} {why}", floor.head()));
            return Ok(Vec::new());
        };
        if heads.more {
            let warning = format!("only the newest {MOST_COMMITS} outer commits were looked at");
            report.warnings.push(warning);
        }
        let restored = Restored {
            place: self.storage,
            left,
        };
        let budget = Budget {
            restored: &restored,
            read: RefCell::default(),
            bytes: RefCell::new(0),
            operations: RefCell::new(0),
        };
        let known = Arc::new(Known::of(
            floor.chain(),
            self.floor.as_ref().map(|floor| floor.id()),
        ));
        let mut bases = vec![Base { view: floor }];
        let mut outer = vec![ids[at].1.to_owned()];
        let mut looked_at: Vec<ContentId> = vec![*bases[0].view.head()];
        for (id, commit) in ids[..at].iter().rev() {
            if self.progress.interrupted() {
                return Err(Error::Interrupted);
            }
            if looked_at.contains(id) {
                continue;
            }
            looked_at.push(*id);
            if looked_at.len() > MOST_HEADS {
                report.refused = Some(format!("the outer history has more than {MOST_HEADS} heads"));
                return Ok(Vec::new());
            }
            let floor = &bases[0].view;
            if floor.chain().generations().iter().any(|one| one.id() == id) {
                report.replays.push(*id);
                continue;
            }
            let onto = Chain::read_onto(|id| budget.manifest(id), id, self.key, &known, None);
            match onto.map_err(Error::from) {
                Ok(Some(chain)) => match View::of(chain) {
                    Ok(view) => {
                        bases.push(Base { view });
                        outer.push((*commit).to_owned());
                    }
                    Err(error) => report.warnings.push(format!("{id} is no candidate: {error}")),
                },
                Ok(None) => {
                    // It opens, and goes another way: a fork if it is genuine.
                    let whole = Chain::read(|id| budget.manifest(id), id, self.key).map_err(Error::from);
                    self.elsewhere(id, whole.map(drop), report);
                }
                Err(error) => self.elsewhere(id, Err(error), report),
            }
            if budget.exhausted() {
                report.refused =
                    Some("the outer history holds more manifests than recovery looks at".to_owned());
                return Ok(Vec::new());
            }
        }
        self.line_up(bases, &outer, report)
    }

    /// A head that does not continue the floor.
    fn elsewhere(&self, id: &ContentId, read: Result<(), Error>, report: &mut Report) {
        match read {
            Ok(()) => report.conflicts.push(format!(
                "{id} is genuine, and continues another history than the floor"
            )),
            Err(error) => match Class::of(&error) {
                Class::Invalid => report.warnings.push(format!("{id} is no candidate: {error}")),
                // It may be a publication that others rely on.
                class => report
                    .conflicts
                    .push(format!("{id} is {} to this device: {error}", class.as_str())),
            },
        }
    }

    /// Orders candidates; two that do not continue each other are a conflict.
    fn line_up(&self, bases: Vec<Base>, outer: &[String], report: &mut Report) -> Result<Vec<Base>, Error> {
        let mut bases: Vec<(Base, &String)> = bases.into_iter().zip(outer).collect();
        bases.sort_by_key(|(base, _)| base.view.generation());
        if let Some((newest, _)) = bases.last() {
            for (base, _) in &bases {
                let view = &base.view;
                if newest.view.id_at(view.generation()).as_ref() != Some(view.head()) {
                    report.conflicts.push(format!(
                        "{} and {} are two histories after the floor",
                        view.head(),
                        newest.view.head()
                    ));
                }
            }
        }
        for (base, commit) in &bases {
            report
                .candidates
                .push(candidate(&base.view, Some((*commit).clone())));
        }
        Ok(bases.into_iter().map(|(base, _)| base).collect())
    }
}

fn candidate(view: &View, outer: Option<String>) -> Candidate {
    Candidate {
        id: *view.head(),
        generation: view.generation(),
        outer,
        signer: *view.chain().head().signer(),
    }
}
