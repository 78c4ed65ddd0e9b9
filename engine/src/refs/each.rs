//! Changing references each for itself.

use super::Error;
use super::edit::{Applied, Change, Edit};
use super::transaction::{Options, Transaction};
use crate::repository::Repository;

/// Makes all changes that can be made, and says for each, in the order of `edits`, what became of it: one that is in
/// the way of another, locked or not as expected does not hold up the others. Deletions come first, so that a name can
/// take the place of a folder of names, or the other way round, as soon as what was there is gone.
///
/// Fails as a whole only when a write fails; the error then says what was changed before. While another process holds
/// `packed-refs`, deletions are refused.
pub fn apply_each(
    repository: &Repository,
    edits: Vec<Edit>,
    options: &Options,
) -> Result<Vec<Result<Applied, Error>>, Error> {
    let mut results = Vec::with_capacity(edits.len());
    let numbered = edits.into_iter().enumerate();
    let (deletions, others): (Vec<_>, Vec<_>) = numbered.partition(|(_, edit)| edit.change == Change::Delete);
    for edits in [deletions, others] {
        let mut refuse = |at, error| {
            results.push((at, Err(error)));
            Ok(())
        };
        let mut transaction = Transaction::begin(repository, edits, options, &mut refuse)?;
        let order = std::mem::take(&mut transaction.order);
        let applied = transaction.commit()?;
        results.extend(order.into_iter().zip(applied.into_iter().map(Ok)));
    }
    results.sort_by_key(|(at, _)| *at);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}
