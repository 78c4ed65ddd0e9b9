//! Waits for changes of what is tracked.
//!
//! Where the system tells of changes (inotify), folders are watched as the walk found them; everywhere, and for what the
//! system does not tell, such as changes made on another machine of a network folder, there is a look from time to time.

use std::time::{Duration, Instant};

use crate::capture::Source;
use crate::capture::walk::Listing;
use crate::rooted::Root;

/// How long to wait for what.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// Nothing may have changed for so long.
    pub debounce: Duration,
    /// After so long, there is a look in any case.
    pub interval: Duration,
}

/// What ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Something tracked may have changed.
    Changed,
    /// The user wants to stop.
    Interrupted,
}

/// Changes that never end are captured all the same, after this many times the debounce.
const PATIENCE: u32 = 20;
/// Time between two looks at the user's wish to stop.
const STEP: Duration = Duration::from_millis(100);
/// Without word from the system, there is a look at least this often.
const BLIND: Duration = Duration::from_secs(5);

/// Watches.
#[derive(Debug)]
pub struct Watcher {
    #[cfg(target_os = "linux")]
    notes: Option<notes::Notes>,
}

impl Watcher {
    /// Watches nothing yet.
    pub fn new() -> Watcher {
        Watcher {
            #[cfg(target_os = "linux")]
            notes: notes::Notes::new(),
        }
    }

    /// Watches the folders of a walk.
    pub fn look_at(&mut self, root: &Root, listing: &Listing) {
        #[cfg(target_os = "linux")]
        if let Some(notes) = &mut self.notes
            && !notes.look_at(root, listing)
        {
            self.notes = None; // more folders than the system watches
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (root, listing);
    }

    /// Waits until something has changed and then nothing for a while.
    pub fn wait(&mut self, timing: &Timing, source: &Source<'_>, interrupted: &dyn Fn() -> bool) -> Event {
        let start = Instant::now();
        let mut first: Option<Instant> = None;
        let mut last = start;
        loop {
            if interrupted() {
                return Event::Interrupted;
            }
            let now = Instant::now();
            match first {
                Some(first) => {
                    let calm = now.duration_since(last) >= timing.debounce;
                    if calm || now.duration_since(first) >= timing.debounce * PATIENCE {
                        return Event::Changed;
                    }
                }
                None if now.duration_since(start) >= self.interval(timing) => return Event::Changed,
                None => {}
            }
            if self.changed(source, STEP.min(timing.debounce)) {
                last = Instant::now();
                first = first.or(Some(last));
            }
        }
    }

    fn interval(&self, timing: &Timing) -> Duration {
        #[cfg(target_os = "linux")]
        if self.notes.is_some() {
            return timing.interval;
        }
        timing.interval.min(BLIND.max(timing.debounce))
    }

    /// Whether something changed within `step`.
    fn changed(&mut self, source: &Source<'_>, step: Duration) -> bool {
        #[cfg(target_os = "linux")]
        if let Some(notes) = &mut self.notes {
            return notes.changed(source, step);
        }
        let _ = source;
        std::thread::sleep(step);
        false
    }
}

impl Default for Watcher {
    fn default() -> Watcher {
        Watcher::new()
    }
}

#[cfg(target_os = "linux")]
mod notes {
    use std::collections::HashMap;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::fs::FileType;
    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

    use crate::capture::Source;
    use crate::capture::walk::Listing;
    use crate::rooted::Root;
    use crate::tracked::Scope;

    /// inotify, and which folder each watch is for.
    #[derive(Debug)]
    pub(super) struct Notes {
        queue: OwnedFd,
        folders: HashMap<i32, Vec<u8>>,
    }

    impl Notes {
        pub(super) fn new() -> Option<Notes> {
            let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
            Some(Notes {
                queue,
                folders: HashMap::new(),
            })
        }

        /// False if the system cannot watch them all.
        pub(super) fn look_at(&mut self, root: &Root, listing: &Listing) -> bool {
            let flags = WatchFlags::CREATE
                | WatchFlags::CLOSE_WRITE
                | WatchFlags::MODIFY
                | WatchFlags::ATTRIB
                | WatchFlags::DELETE
                | WatchFlags::MOVED_FROM
                | WatchFlags::MOVED_TO
                | WatchFlags::ONLYDIR
                | WatchFlags::DONT_FOLLOW
                | WatchFlags::EXCL_UNLINK;
            let folders = listing
                .items
                .iter()
                .filter(|item| item.stat.file_type() == FileType::Directory)
                .map(|item| listing.path(item));
            for folder in std::iter::once(&b""[..]).chain(folders) {
                let path = root.path().join(crate::show::os(folder));
                match inotify::add_watch(&self.queue, path, flags) {
                    Ok(watch) => drop(self.folders.insert(watch, folder.to_vec())),
                    Err(rustix::io::Errno::NOSPC | rustix::io::Errno::NOMEM) => return false,
                    // It went meanwhile, which its folder tells.
                    Err(_) => {}
                }
            }
            true
        }

        pub(super) fn changed(&mut self, source: &Source<'_>, step: Duration) -> bool {
            let mut waiting = [PollFd::new(&self.queue, PollFlags::IN)];
            let timeout = Timespec {
                tv_sec: step.as_secs() as i64,
                tv_nsec: step.subsec_nanos().into(),
            };
            if !matches!(poll(&mut waiting, Some(&timeout)), Ok(1..)) {
                return false;
            }
            let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
            let mut reader = inotify::Reader::new(&self.queue, &mut buffer);
            let mut changed = false;
            while let Ok(event) = reader.next() {
                if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                    changed = true;
                    continue;
                }
                if event.events().contains(ReadFlags::IGNORED) {
                    self.folders.remove(&event.wd());
                    continue;
                }
                let name = event.file_name().map(|name| name.to_bytes()).unwrap_or_default();
                let is_folder = event.events().contains(ReadFlags::ISDIR);
                if let Some(folder) = self.folders.get(&event.wd()) {
                    changed |= concerns(source, folder, name, is_folder);
                }
            }
            changed
        }
    }

    /// Whether a name in a folder has anything to do with what is tracked.
    fn concerns(source: &Source<'_>, folder: &[u8], name: &[u8], is_folder: bool) -> bool {
        let mut path = folder.to_vec();
        if !path.is_empty() && !name.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name);
        let mut scope = source.tracked.root();
        if !path.is_empty() {
            for name in path.split(|&byte| byte == b'/') {
                match source.tracked.enter(&scope, name) {
                    Some(next) => scope = next,
                    None => return false,
                }
            }
        } else if scope != Scope::All {
            return false;
        }
        !source.rules.leaves_out(&path, is_folder)
    }
}
