//! What is wrong with a head.

use super::super::{Error, Remote, View};
use crate::protocol::{ContentId, DeviceId, chain, pack_stream};
use crate::state::{AdminPin, Continuity};
use crate::storage;

/// What a head is, and with it, whether another may be put in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Everything is in order.
    Valid,
    /// It is provably wrong, so that no client will ever accept it.
    Invalid,
    /// This device cannot open it: another may be able to.
    Unverifiable,
    /// It is of a format of another time: a newer program may know it.
    Unsupported,
    /// Something cannot be read: it may come back.
    Unavailable,
    /// It is genuine, and does not continue what was seen before, or belongs to something else.
    Discontinuous,
}

impl Class {
    /// Its name, on the terminal and for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Class::Valid => "valid",
            Class::Invalid => "invalid",
            Class::Unverifiable => "unverifiable",
            Class::Unsupported => "unsupported",
            Class::Unavailable => "unavailable",
            Class::Discontinuous => "discontinuous",
        }
    }

    /// What an error says of a head that could not be read because of it.
    pub(super) fn of(error: &Error) -> Class {
        match error {
            Error::Chain(error) => match error.kind() {
                chain::Kind::Integrity => Class::Invalid,
                chain::Kind::Unsupported => Class::Unsupported,
                chain::Kind::WrongKey if error.is_foreign() => Class::Discontinuous,
                chain::Kind::WrongKey => Class::Unverifiable,
            },
            Error::NotReader { .. } | Error::Revoked { .. } => Class::Unverifiable,
            Error::State(_) | Error::Invitation(_) => Class::Discontinuous,
            Error::Storage(error) => of_storage(error),
            Error::Stream { source, .. } if pack_stream::Error::within(source).is_some() => Class::Invalid,
            Error::Stream { source, .. } => {
                storage::Error::within(source).map_or(Class::Unavailable, of_storage)
            }
            Error::HeadUnreadable { .. }
            | Error::Refs(_)
            | Error::RefConflict { .. }
            | Error::Pack { .. }
            | Error::ForeignPack { .. }
            | Error::Missing { .. }
            | Error::BranchKind { .. } => Class::Invalid,
            _ => Class::Unavailable,
        }
    }
}

fn of_storage(error: &storage::Error) -> Class {
    match error {
        storage::Error::Corrupt { .. } => Class::Invalid,
        storage::Error::Objects { source, .. } => match **source {
            ingot_engine::store::Error::Io { .. } => Class::Unavailable,
            _ => Class::Invalid,
        },
        _ => Class::Unavailable,
    }
}

/// What was found out about a head.
pub(super) struct Examined {
    pub class: Class,
    pub reason: String,
    pub head: Option<ContentId>,
    pub verified_signer: Option<DeviceId>,
    pub claimed_signer: Option<DeviceId>,
}

impl Remote<'_> {
    /// Reads everything that the head leads to, and compares it with everything that is remembered.
    pub(super) fn examine(
        &self,
        memory: &mut Option<Continuity>,
        pin: Option<&AdminPin>,
    ) -> Result<Examined, Error> {
        self.seen.forget();
        let mut examined = Examined {
            class: Class::Valid,
            reason: String::new(),
            head: None,
            verified_signer: None,
            claimed_signer: None,
        };
        match self.examine_into(&mut examined, memory, pin) {
            Ok(()) => examined.reason = "its history, its packs and what was seen before agree".to_owned(),
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(error) => {
                examined.class = Class::of(&error);
                examined.reason = error.to_string();
            }
        }
        if let (Some(head), None) = (&examined.head, examined.verified_signer) {
            let bytes = self.storage.manifest(head).ok();
            examined.claimed_signer = bytes.and_then(|bytes| chain::claimed_signer(head, &bytes, self.key));
        }
        Ok(examined)
    }

    fn examine_into(
        &self,
        examined: &mut Examined,
        memory: &mut Option<Continuity>,
        pin: Option<&AdminPin>,
    ) -> Result<(), Error> {
        let head = View::head_of(self.storage)?;
        examined.head = Some(head);
        let view = View::read(self.storage, &head, self.key)?;
        examined.verified_signer = Some(*view.chain().head().signer());
        let view = self.accept(view, memory)?;
        if let Some(pin) = pin {
            pin.check(&view.observed(&|number| view.id_at(number)))?;
        }
        let packs: Vec<_> = view.chain().packs().collect();
        self.open_all(&view, &packs)?;
        Ok(())
    }
}
