//! A good store of several generations, clones that saw some of it, and what an attempt to use a bad one must not do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ingot_engine::durable;
use ingot_helper::protocol::pack_stream::Sealer;
use ingot_helper::protocol::publication::Writer;
use ingot_helper::protocol::refs::RefMap;
use ingot_helper::protocol::{Chain, ContentId, key_file};
use ingot_helper::remote::{Error, Kind};
use ingot_helper::storage::Storage as _;
use ingot_helper::storage::directory::Directory;
use ingot_testdata::git;
use ingot_testdata::repo::{Format, Repo};
use tempfile::TempDir;

use super::client::{Client, copy, listing, new_key};

/// A store and those who use it.
pub struct Good {
    temp: TempDir,
    pub source: Repo,
    /// A clone that saw nothing.
    pub fresh: Repo,
    /// A clone that saw generation 2.
    pub behind: Repo,
    /// A clone that saw everything.
    pub current: Repo,
    /// Manifests by generation, and what was there when each was the newest.
    pub manifests: Vec<ContentId>,
    /// All packs, with the generation that brought them.
    pub packs: Vec<(ContentId, u64)>,
}

impl Good {
    pub fn new() -> Good {
        let temp = TempDir::new().unwrap();
        let key = temp.path().join("owner.key.json");
        new_key(&key);
        let source = Repo::scripted("history", Format::Sha1);
        let mut good = Good {
            fresh: Repo::empty(Format::Sha1),
            behind: Repo::empty(Format::Sha1),
            current: Repo::empty(Format::Sha1),
            temp,
            source,
            manifests: Vec::new(),
            packs: Vec::new(),
        };
        let writer = good.client(&good.source, "store");
        writer.init().unwrap();
        writer.push(&[writer.change("heads/main", "main~3")]).unwrap();
        copy(&good.path("store"), &good.path("store-at-1"));
        writer.push(&[writer.change("heads/main", "main~1")]).unwrap();
        good.arrive(&good.behind);
        // More than one segment.
        let noise: Vec<u8> = (0..3_u32 << 18)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        good.source.write("noise", noise);
        good.source.commit("noise");
        good.source.git(&["checkout", "-q", "-b", "other"]);
        good.source.write("other", "other\n");
        good.source.commit("other");
        good.source.git(&["checkout", "-q", "main"]);
        writer
            .push(&[
                writer.change("heads/main", "main"),
                writer.change("tags/v1.0", "v1.0"),
            ])
            .unwrap();
        writer.push(&[writer.change("heads/other", "other")]).unwrap();
        good.arrive(&good.current);

        let chain = good.chain(&good.path("store"));
        good.manifests = chain.generations().iter().map(|one| *one.id()).collect();
        good.packs = chain.packs().map(|pack| (pack.id, pack.generation)).collect();
        assert_eq!((good.manifests.len(), good.packs.len()), (5, 4));
        good
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    pub fn key(&self) -> PathBuf {
        self.path("owner.key.json")
    }

    /// A clone with the store of this name.
    pub fn client(&self, repo: &Repo, store: &str) -> Client {
        Client::new(repo.path(), &self.path(store), &self.key())
    }

    /// Makes a clone know what the store has now.
    fn arrive(&self, repo: &Repo) {
        let client = self.client(repo, "store");
        let fetched = client.fetch().unwrap();
        for (name, id) in fetched.view.refs() {
            git::git(repo.path(), &["update-ref", name, &id.to_string()]);
        }
        for keep in fetched.keep {
            std::fs::remove_file(keep).unwrap();
        }
    }

    /// The key, which every test has, opens the store as it is.
    pub fn chain(&self, store: &Path) -> Chain {
        let storage = Directory::new(store, durable::real()).unwrap();
        let head = storage.head().unwrap().unwrap().id().unwrap();
        Chain::read(
            |id| storage.manifest(id),
            &head,
            &key_file::read(&self.key()).unwrap(),
        )
        .unwrap()
    }

    /// Continues a store with a generation that is properly sealed and signed, whatever its packs hold.
    pub fn publish(&self, store: &Path, refs: &[(&str, &str)], packs: &[&[u8]]) {
        let storage = Directory::new(store, durable::real()).unwrap();
        let chain = self.chain(store);
        let key = key_file::read(&self.key()).unwrap();
        let mut writer = Writer::begin(&chain, &key).unwrap();
        for pack in packs {
            let staged = storage.stage_object().unwrap();
            let mut sealer = Sealer::new(staged, &writer.pack_key(), 2).unwrap();
            std::io::Write::write_all(&mut sealer, pack).unwrap();
            let (sealed, staged) = sealer.finish().unwrap();
            staged.finish(&sealed.id).unwrap();
            writer.add_pack(&sealed);
        }
        let mut all: RefMap = chain.refs().clone();
        for (name, id) in refs {
            all.insert((*name).to_owned(), (*id).to_owned());
        }
        let publication = writer.publish(&all).unwrap();
        storage.put_manifest(publication.bytes()).unwrap();
        storage
            .swap_head(Some(chain.head().id()), publication.id())
            .unwrap();
    }

    /// A copy of the store, or of another, to be damaged.
    pub fn spoil(&self, from: &str) -> Spoilt {
        let folder = TempDir::new_in(self.temp.path()).unwrap();
        let store = folder.path().join("store");
        copy(&self.path(from), &store);
        Spoilt {
            _folder: folder,
            store,
        }
    }
}

/// A store that somebody tampered with.
pub struct Spoilt {
    _folder: TempDir,
    pub store: PathBuf,
}

impl Spoilt {
    pub fn manifest(&self, id: &ContentId) -> PathBuf {
        thing(&self.store.join("manifests"), id)
    }

    pub fn pack(&self, id: &ContentId) -> PathBuf {
        thing(&self.store.join("objects"), id)
    }

    pub fn head(&self) -> PathBuf {
        self.store.join("HEAD")
    }

    pub fn set_head(&self, id: &ContentId) {
        std::fs::write(self.head(), format!("{id}\n")).unwrap();
    }

    /// Stores a manifest under the id of its bytes and makes it the newest.
    pub fn add_head(&self, bytes: &[u8]) {
        let id = ContentId::of(bytes);
        let path = self.manifest(&id);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
        self.set_head(&id);
    }
}

fn thing(folder: &Path, id: &ContentId) -> PathBuf {
    let name = id.to_hex();
    folder.join(&name[..2]).join(name)
}

/// What somebody tries with a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Try {
    List,
    Fetch,
    Push,
    Verify,
}

pub const ALL: [Try; 4] = [Try::List, Try::Fetch, Try::Push, Try::Verify];

/// A clone, and what it was when nothing had been tried.
pub struct Watched<'a> {
    name: &'static str,
    repo: &'a Repo,
    before: BTreeMap<PathBuf, String>,
}

impl<'a> Watched<'a> {
    pub fn new(name: &'static str, repo: &'a Repo) -> Watched<'a> {
        Watched {
            name,
            repo,
            before: listing(&repo.git_dir()),
        }
    }

    /// Requires that each of these attempts is refused with one line and one of these kinds, and that the clone and
    /// the store stay as they were.
    #[track_caller]
    pub fn refuses(&self, good: &Good, store: &Path, what: &str, tries: &[Try], kinds: &[Kind]) {
        self.refused(good, store, what, tries, kinds);
    }

    /// The same; returns the kind of the last refusal.
    #[track_caller]
    pub fn refused(&self, good: &Good, store: &Path, what: &str, tries: &[Try], kinds: &[Kind]) -> Kind {
        let inside = shape(store);
        let kind = self.attempts(good, store, what, tries, kinds);
        assert_eq!(inside, shape(store), "{what}: the store changed");
        kind
    }

    /// The same for a store with a file that is too large to be read, which is an alarm.
    #[track_caller]
    pub fn refuses_large(&self, good: &Good, store: &Path, what: &str, tries: &[Try]) {
        let start = std::time::Instant::now();
        self.refuses(good, store, what, tries, &[Kind::Alarm]);
        assert!(start.elapsed().as_secs() < 60, "{what}: read to its end");
    }

    /// The same for a store that is not there, and must not be made.
    #[track_caller]
    pub fn refuses_gone(&self, good: &Good, store: &Path, what: &str, tries: &[Try]) {
        self.attempts(good, store, what, tries, &[Kind::NoStore, Kind::Failed]);
        assert!(!store.exists(), "{what}: something was made");
    }

    #[track_caller]
    fn attempts(&self, good: &Good, store: &Path, what: &str, tries: &[Try], kinds: &[Kind]) -> Kind {
        let client = Client::new(self.repo.path(), store, &good.key());
        let mut last = Kind::Failed;
        for attempt in tries {
            let story = format!("{what}: {attempt:?} by the {} clone", self.name);
            let result: Result<(), Error> = client.remote(|remote, local| match attempt {
                Try::List => remote.list(Some(local)).map(drop),
                Try::Fetch => remote
                    .fetch(local, ingot_helper::remote::FetchOptions { keep: true })
                    .map(drop),
                Try::Push => {
                    let change = ingot_helper::remote::decide::Change {
                        name: "refs/tags/attempt".into(),
                        target: ingot_helper::remote::decide::Target::Nothing,
                        force: true,
                        lease: None,
                    };
                    remote.push(local, &[change], &Default::default()).map(drop)
                }
                Try::Verify => remote.verify(true).map(drop),
            });
            let Err(error) = result else {
                panic!("{story}: accepted");
            };
            clear(&story, &error);
            assert!(
                kinds.contains(&error.kind()),
                "{story}: {:?}: {error}",
                error.kind()
            );
            unchanged(&story, &self.before, &listing(&self.repo.git_dir()));
            last = error.kind();
        }
        last
    }
}

/// Names and lengths in a store; content may be too much to look at.
fn shape(store: &Path) -> BTreeMap<PathBuf, (bool, u64)> {
    let mut shape = BTreeMap::new();
    let mut open = vec![store.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = std::fs::symlink_metadata(&path).unwrap();
            if meta.is_dir() {
                open.push(path.clone());
            }
            shape.insert(path, (meta.is_dir(), if meta.is_dir() { 0 } else { meta.len() }));
        }
    }
    shape
}

/// Requires that an error with its causes is one readable line.
#[track_caller]
pub fn clear(story: &str, error: &dyn std::error::Error) {
    let mut text = error.to_string();
    let mut at = error.source();
    while let Some(cause) = at {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        at = cause.source();
    }
    assert!(
        !text.contains('\n') && text.len() < 1000,
        "{story}: not one clear line: {text}"
    );
    assert!(!text.contains("panic"), "{story}: {text}");
}

/// Requires two listings to be the same and tells where they differ.
#[track_caller]
pub fn unchanged(story: &str, before: &BTreeMap<PathBuf, String>, after: &BTreeMap<PathBuf, String>) {
    if before == after {
        return;
    }
    let gone = before.iter().filter(|(path, _)| !after.contains_key(*path));
    let new = after.iter().filter(|(path, is)| before.get(*path) != Some(is));
    panic!(
        "{story}: something moved\nwas: {:?}\nis: {:?}",
        gone.collect::<Vec<_>>(),
        new.collect::<Vec<_>>()
    );
}
