//! References of the local repository, as commands ask for them and change them.

use bstr::{BStr, BString};
use gix_hash::ObjectId;
use ingot_engine::refs;
use ingot_engine::repository::Repository;

use super::refspec::Local;

/// The full name of the branch that HEAD names, even before its first commit.
pub fn current_branch(repository: &Repository) -> Option<BString> {
    let name = repository.gix().head_name().ok().flatten()?;
    Some(name.as_bstr().to_owned())
}

/// References for the expansion of refspecs.
pub struct LocalRefs<'a>(pub &'a Repository);

impl Local for LocalRefs<'_> {
    fn head(&self) -> Option<BString> {
        current_branch(self.0)
    }

    fn resolve(&self, revision: &BStr) -> Option<ObjectId> {
        refs::resolve(self.0, revision).ok().map(|resolved| resolved.id)
    }

    fn full_name(&self, name: &BStr) -> Option<BString> {
        let name = refs::resolve(self.0, name).ok()?.name?;
        Some(name.as_bstr().to_owned())
    }

    fn list(&self, prefix: &str) -> Vec<(BString, ObjectId)> {
        let found = refs::list(self.0, prefix).unwrap_or_default();
        // A symbolic reference is a name for another one, which is listed itself.
        let direct = found.into_iter().filter(|reference| reference.symbolic.is_none());
        direct
            .map(|reference| (reference.name.as_bstr().to_owned(), reference.id))
            .collect()
    }
}

/// The value of one reference by full name.
pub fn value(repository: &Repository, name: &BStr) -> Option<ObjectId> {
    let mut found = repository.gix().try_find_reference(name).ok().flatten()?;
    (found.name().as_bstr() == name)
        .then(|| found.follow_to_object().ok().map(|id| id.detach()))
        .flatten()
}

/// Branches that some work tree of the repository has checked out, by full name.
pub fn checked_out(repository: &Repository) -> Vec<BString> {
    let gix = repository.gix();
    let mut names = Vec::new();
    if repository.work_dir().is_some() {
        names.extend(current_branch(repository));
    }
    for worktree in gix.worktrees().unwrap_or_default() {
        if let Ok(worktree) = worktree.into_repo_with_possibly_inaccessible_worktree()
            && let Ok(Some(name)) = worktree.head_name()
        {
            names.push(name.as_bstr().to_owned());
        }
    }
    if let Ok(main) = gix.main_repo()
        && main.workdir().is_some()
        && let Ok(Some(name)) = main.head_name()
    {
        names.push(name.as_bstr().to_owned());
    }
    names
}
