//! Changes of local references.

use bstr::{BStr, BString, ByteSlice as _};
use gix_hash::ObjectId;
use ingot_engine::refs::{self, Edit, Error, Expected, Options, Packing, Transaction, validate};
use ingot_engine::repository::Repository;

use super::exit::Failure;

/// One reference to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefEdit {
    /// Full name.
    pub name: BString,
    /// What must be there.
    pub old: Option<ObjectId>,
    /// What shall be there; `None` deletes it.
    pub new: Option<ObjectId>,
    /// For the reflog.
    pub message: BString,
}

impl RefEdit {
    fn into_edit(self) -> Result<Edit, Error> {
        let name = validate(&self.name)?;
        let edit = match self.new {
            Some(id) => Edit::set(name, id),
            None => Edit::delete(name),
        };
        Ok(edit
            .expecting(self.old.map_or(Expected::Absent, Expected::Is))
            .because(self.message))
    }
}

/// Changes all references or none, durably.
pub fn apply(repository: &Repository, edits: Vec<RefEdit>) -> Result<(), Failure> {
    commit(repository, edits, &Options::default())
}

/// The same for the many references of a repository that nobody has used yet.
pub fn apply_packed(repository: &Repository, edits: Vec<RefEdit>) -> Result<(), Failure> {
    commit(
        repository,
        edits,
        &Options {
            packing: Packing::New,
            ..Options::default()
        },
    )
}

/// From so many references on, one file for all of them costs less than one for each.
const MANY: usize = 32;

/// Changes each reference for itself, durably, deletions first. Returns what became of each edit, in their order; fails
/// as a whole when a write fails.
pub fn apply_each(repository: &Repository, edits: Vec<RefEdit>) -> Result<Vec<Result<(), Error>>, Failure> {
    let written = edits.iter().filter(|edit| edit.new.is_some()).count();
    let packing = if written < MANY {
        Packing::None
    } else {
        Packing::All
    };
    let options = Options {
        packing,
        ..Options::default()
    };
    let mut results = Vec::with_capacity(edits.len());
    let mut valid = Vec::with_capacity(edits.len());
    for edit in edits {
        match edit.into_edit() {
            Ok(edit) => {
                valid.push(edit);
                results.push(Ok(()));
            }
            Err(error) => results.push(Err(error)),
        }
    }
    let applied = refs::apply_each(repository, valid, &options)?;
    let tried = results.iter_mut().filter(|result| result.is_ok());
    for (result, applied) in tried.zip(applied) {
        *result = applied.map(drop);
    }
    Ok(results)
}

fn commit(repository: &Repository, edits: Vec<RefEdit>, options: &Options) -> Result<(), Failure> {
    if edits.is_empty() {
        return Ok(());
    }
    let edits = edits
        .into_iter()
        .map(RefEdit::into_edit)
        .collect::<Result<Vec<_>, _>>()?;
    Transaction::prepare(repository, edits, options)?.commit()?;
    Ok(())
}

/// Points a symbolic reference, `HEAD` for one, at a full name.
pub fn set_symbolic(
    repository: &Repository,
    name: &BStr,
    target: &BStr,
    message: &BStr,
) -> Result<(), Failure> {
    let edit = Edit::point(validate(name.as_bytes())?, validate(target.as_bytes())?).because(message);
    refs::apply(repository, vec![edit])?;
    Ok(())
}

/// Points `HEAD` at a commit, away from every branch.
pub fn detach(repository: &Repository, id: ObjectId, message: &BStr) -> Result<(), Failure> {
    let edit = Edit::set(validate("HEAD")?, id).detached().because(message);
    refs::apply(repository, vec![edit])?;
    Ok(())
}
