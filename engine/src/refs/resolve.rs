//! From what people write to objects.

use bstr::{BStr, ByteSlice as _};
use gix_hash::ObjectId;
use gix_object::Kind;
use gix_ref::{FullName, FullNameRef, Target};

use super::{Error, short};
use crate::repository::{Repository, explain};

/// Git follows this many symbolic references.
pub(super) const DEPTH: usize = 5;

/// What a revision means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The object. An annotated tag is not peeled.
    pub id: ObjectId,
    /// The reference that was named, if it was one.
    pub name: Option<FullName>,
    /// Where that reference leads when symbolic references are followed: for `HEAD`, the current branch.
    pub target: Option<FullName>,
}

/// Where `HEAD` is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    /// On a branch, which may have no commit yet.
    Branch {
        /// The full name.
        name: FullName,
        /// Its commit.
        id: Option<ObjectId>,
    },
    /// On no branch.
    Detached(ObjectId),
}

fn unreadable(name: &FullNameRef, error: &gix::Error) -> Error {
    Error::Unreadable {
        name: name.as_bstr().to_owned(),
        message: explain(error),
    }
}

/// Follows symbolic references from `name` to the last name and its object; `None` when the last does not exist.
pub(super) fn follow(
    repository: &Repository,
    name: &FullNameRef,
) -> Result<Option<(FullName, ObjectId)>, Error> {
    let mut at = name.to_owned();
    for _ in 0..=DEPTH {
        let found = repository
            .gix()
            .refs
            .try_find(at.as_ref().as_partial_name())
            .map_err(|error| unreadable(at.as_ref(), &error))?;
        match found.map(|reference| reference.target) {
            None => return Ok(None),
            Some(Target::Object(id)) => return Ok(Some((at, id))),
            Some(Target::Symbolic(next)) => at = next,
        }
    }
    Err(Error::Circular {
        name: name.as_bstr().to_owned(),
    })
}

/// The object that a reference leads to, symbolic references followed; `None` where there is no such reference.
pub fn find(repository: &Repository, name: &FullNameRef) -> Result<Option<ObjectId>, Error> {
    Ok(follow(repository, name)?.map(|(_, id)| id))
}

/// Where `HEAD` of this work tree is.
pub fn head(repository: &Repository) -> Result<Head, Error> {
    let head = super::validate("HEAD")?;
    let found = repository
        .gix()
        .refs
        .try_find(head.as_ref().as_partial_name())
        .map_err(|error| unreadable(head.as_ref(), &error))?;
    match found.map(|reference| reference.target) {
        Some(Target::Object(id)) => Ok(Head::Detached(id)),
        Some(Target::Symbolic(name)) => {
            let id = follow(repository, name.as_ref())?;
            Ok(match id {
                Some((name, id)) => Head::Branch { name, id: Some(id) },
                None => Head::Branch { name, id: None },
            })
        }
        None => Err(Error::Unreadable {
            name: "HEAD".into(),
            message: "there is none".to_owned(),
        }),
    }
}

/// Resolves anything that `git rev-parse` takes for one object: names, full or short, ids, full or short, and suffixes
/// such as `~2`, `^2`, `^{tree}`, `:path`.
pub fn resolve(repository: &Repository, spec: impl AsRef<[u8]>) -> Result<Resolved, Error> {
    let spec = spec.as_ref().as_bstr();
    let unknown = |message: String| Error::Unknown {
        spec: spec.to_owned(),
        message,
    };
    if spec.len() == repository.format().len_in_hex()
        && let Ok(id) = ObjectId::from_hex(spec)
    {
        if !repository.gix().has_object(id) {
            return Err(unknown("no such object".to_owned()));
        }
        return Ok(Resolved {
            id,
            name: None,
            target: None,
        });
    }
    let wanted = if spec == "@" { BStr::new("HEAD") } else { spec };
    // What has an operator in it is not a name; asking for it as one would only cost time.
    if let Ok(partial) = <&gix_ref::PartialNameRef>::try_from(wanted)
        && let Some(reference) = repository
            .gix()
            .refs
            .try_find(partial)
            .map_err(|error| unknown(explain(&error)))?
    {
        let Some((target, id)) = follow(repository, reference.name.as_ref())? else {
            return Err(unknown("it points to a reference that does not exist".to_owned()));
        };
        return Ok(Resolved {
            id,
            name: Some(reference.name),
            target: Some(target),
        });
    }
    let expanded = short::expand(repository, spec)?;
    let id = repository
        .gix()
        .rev_parse_single(expanded.as_ref().map_or(spec, |full| full.as_bstr()))
        .map_err(|error| unknown(explain(&error)))?;
    Ok(Resolved {
        id: id.detach(),
        name: None,
        target: None,
    })
}

/// What is behind annotated tags: `id` itself unless it is one. Returns the object and its kind.
pub fn peel(repository: &Repository, id: ObjectId) -> Result<(ObjectId, Kind), Error> {
    let mut at = id;
    loop {
        let failed = |error: &gix::Error| Error::Object {
            id: at,
            message: explain(error),
        };
        let kind = repository
            .gix()
            .find_header(at)
            .map_err(|error| failed(&error))?
            .kind();
        if kind != Kind::Tag {
            return Ok((at, kind));
        }
        let object = repository.gix().find_object(at).map_err(|error| failed(&error))?;
        // Content addressing rules out circles.
        at = gix_object::TagRefIter::from_bytes(&object.data, repository.format())
            .target_id()
            .map_err(|error| Error::Object {
                id: at,
                message: error.to_string(),
            })?;
    }
}
