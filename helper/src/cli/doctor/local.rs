//! What is kept on this machine, and its clock.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ingot_engine::progress::Unit;
use ingot_engine::transport::Direction;

use super::super::app::Found;
use super::super::place;
use super::super::progress::amount;
use super::{Failure, Finding};
use crate::config::{StorageUrl, shell_word};
use crate::protocol::chain::Known;
use crate::state::{Owner, known_file, load, state_file};
use crate::storage::carrier::{cache_folder, cache_root};

/// Clocks that differ by less than this are right.
const TOLERANCE: Duration = Duration::from_secs(5 * 60);
/// No clock is right that shows a time before this program was written: the first day of 2026.
const EARLIEST: u64 = 1_767_225_600;

/// What this clone knows of the chain: missing or damaged, it is made anew by whatever reads the chain next.
pub(super) fn known(found: &Found, url: &StorageUrl, remove: bool) -> Option<Finding> {
    let (repository, remote) = (found.repository.as_ref()?, found.remote.as_ref()?);
    let owner = Owner::Remote(&remote.name);
    let state = state_file(repository.git_dir(), owner, &url.to_string());
    let path = known_file(&state);
    let bytes = std::fs::read(&path).ok()?;
    let size = amount(bytes.len() as u64, Unit::Bytes);
    let pinned = load(&state).ok().flatten();
    let known = Known::decode(&bytes);
    let problem = match (&known, &pinned) {
        (None, _) => "is damaged",
        (Some(known), Some(pinned)) if known.generation() <= pinned.generation => {
            let text = format!("known up to generation {}, {size}", known.generation());
            return Some(Finding::good("known chain", text));
        }
        (Some(_), _) => "does not go with the pin",
    };
    let text = format!("{} {problem}; it is not used", path.display());
    if !remove {
        let next =
            "the next command that reads the chain makes it anew; git-e2ee doctor --remove-stale removes it";
        return Some(Finding::note("known chain", text, next));
    }
    Some(match std::fs::remove_file(&path) {
        Ok(()) => Finding::good("known chain", format!("removed {}", path.display())),
        Err(error) => {
            let failure = Failure::failed(format!("cannot remove {}: {error}", path.display()));
            Finding::trouble("known chain", &failure)
        }
    })
}

/// What is kept of a carrier on a server.
pub(super) fn cache(found: &Found, url: &StorageUrl) -> Option<Finding> {
    let StorageUrl::RemoteCarrier(url) = url else {
        return None;
    };
    let root = match cache_root() {
        Ok(root) => root,
        Err(error) => {
            return Some(Finding::trouble(
                "cache",
                &crate::remote::Error::from(error).into(),
            ));
        }
    };
    let address = place::address(url, found.repository.as_ref(), Direction::Fetch).ok()?;
    let folder = cache_folder(&root, &address.redacted().to_string());
    if !folder.exists() {
        return Some(Finding::good(
            "cache",
            format!("nothing is kept yet in {}", root.display()),
        ));
    }
    let probe = tempfile::Builder::new().prefix("spool-").tempdir_in(&folder);
    if let Err(error) = probe {
        let failure = Failure::failed(format!("nothing can be kept in {}: {error}", folder.display()))
            .next("free some room, or mend the permissions; without it, everything is fetched each time");
        return Some(Finding::trouble("cache", &failure));
    }
    let size = amount(bytes_below(&folder), Unit::Bytes);
    let tip = std::fs::read_to_string(folder.join("tip"));
    let whole = tip.is_ok_and(|tip| tip.trim().parse::<gix_hash::ObjectId>().is_ok());
    let text = format!("{size} in {}", folder.display());
    if whole {
        return Some(Finding::good("cache", text));
    }
    let next = format!(
        "the next command fetches what is missing; rm -r {} is safe",
        shell_word(&folder.display().to_string())
    );
    Some(Finding::note("cache", format!("{text}, not complete"), next))
}

fn bytes_below(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| {
        let path: PathBuf = entry.path();
        match entry.metadata() {
            Ok(meta) if meta.is_dir() => bytes_below(&path),
            Ok(meta) => meta.len(),
            Err(_) => 0,
        }
    });
    sizes.fold(0, u64::saturating_add)
}

/// Whether the clock can be right, given when the store says that it was changed last.
pub(super) fn clock(last_moved: Option<SystemTime>) -> Finding {
    judge(SystemTime::now(), last_moved)
}

fn judge(now: SystemTime, last_moved: Option<SystemTime>) -> Finding {
    let next = "set the clock (of this machine, or of the one with the store); nothing of the store depends on it, but \
                the age of stale files and the times that git-e2ee log shows do";
    if now < UNIX_EPOCH + Duration::from_secs(EARLIEST) {
        return Finding::note("clock", "this machine's clock is years behind", next);
    }
    match last_moved.and_then(|moved| moved.duration_since(now).ok()) {
        Some(ahead) if ahead > TOLERANCE => {
            let minutes = ahead.as_secs() / 60;
            let text =
                format!("the store was changed {minutes} minutes in the future, by this machine's clock");
            Finding::note("clock", text, next)
        }
        _ => Finding::good("clock", "plausible"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_cannot_be_right_are_noticed() {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let now = EARLIEST + 1_000_000;
        for (now, moved, state) in [
            (now, None, "ok"),
            (now, Some(now - 500_000), "ok"),
            (now, Some(now + 299), "ok"),
            (now, Some(now + 600), "note"),
            (1_000, None, "note"),
        ] {
            assert_eq!(judge(at(now), moved.map(at)).state(), state, "{now} {moved:?}");
        }
    }
}
