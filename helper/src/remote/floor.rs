//! The floor that an invitation set: what every store that is opened with a key has to show, also where nothing else is
//! remembered of it.

use std::path::{Path, PathBuf};

use ingot_engine::durable::{self, Fs};

use super::{Error, View};
use crate::protocol::ContentId;
use crate::protocol::invitation::{self, Invitation};
use crate::state::{self, Observed, State};

/// No invitation comes near this size.
const MAX_BYTES: u64 = 16 * 1024;

/// An invitation in the file beside the key that it came with.
#[derive(Debug, Clone)]
pub struct Floor {
    path: PathBuf,
    invitation: Invitation,
}

impl Floor {
    /// Where the invitation that came with a key is.
    pub fn path_for(key_file: &Path) -> PathBuf {
        let mut name = key_file.as_os_str().to_owned();
        name.push(".invitation.json");
        PathBuf::from(name)
    }

    /// The invitation that came with a key, if one did.
    pub fn load(key_file: &Path) -> Result<Option<Floor>, Error> {
        let path = Self::path_for(key_file);
        let text = match std::fs::metadata(&path) {
            Ok(meta) if meta.len() > MAX_BYTES => Err(std::io::Error::other("it is too large")),
            Ok(_) => std::fs::read_to_string(&path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => Err(error),
        };
        let text = text.map_err(|error| durable::Error::new("read the invitation", &path, error))?;
        let invitation = Invitation::parse(&text)?;
        Ok(Some(Floor { path, invitation }))
    }

    /// Keeps an invitation beside a key. One that was there already stays if its floor is higher; one of another
    /// repository is not replaced.
    pub fn save(fs: &dyn Fs, key_file: &Path, invitation: &Invitation) -> Result<Floor, Error> {
        let path = Self::path_for(key_file);
        if let Some(before) = Self::load(key_file)? {
            if before.invitation.repository_root != invitation.repository_root {
                return Err(Error::OtherInvitation { path });
            }
            if before.invitation.minimum_manifest_generation > invitation.minimum_manifest_generation {
                return Ok(before);
            }
        }
        durable::write_atomic(fs, &path, &invitation.to_json(), 0o600)?;
        Ok(Floor {
            path,
            invitation: invitation.clone(),
        })
    }

    /// The invitation.
    pub fn invitation(&self) -> &Invitation {
        &self.invitation
    }

    /// What the invitation lets this device know of the store.
    pub(super) fn state(&self) -> State {
        State::new(&Observed {
            repository_root: self.invitation.repository_root,
            head_id: self.invitation.minimum_manifest_id,
            generation: self.invitation.minimum_manifest_generation,
            policy_generation: self.invitation.minimum_policy_generation,
            id_at: &|_| None,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Requires that a store shows at least what the invitation names, and that an administrator signed that.
    pub(super) fn check(&self, view: &View) -> Result<(), Error> {
        let checked = self.state().check(&view.observed(&|number| view.id_at(number)));
        checked.map_err(|alarm| state::Error::Alarm {
            path: self.path.clone(),
            alarm,
        })?;
        // What was verified on a chain stays so on all that continue it.
        let known = view.chain().since();
        if known.is_some_and(|known| known.proven() == Some(&self.id())) {
            return Ok(());
        }
        let verified: Result<(), invitation::Error> = self.invitation.verify(view.chain());
        Ok(verified?)
    }

    /// The name of the invitation: the SHA-256 of its record.
    pub(super) fn id(&self) -> ContentId {
        ContentId::of(&self.invitation.to_json())
    }
}
