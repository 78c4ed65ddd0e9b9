//! One clone of a store, driven through the library.

#![allow(dead_code)] // each test program uses a part of it

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ingot_engine::durable::{self, Fs};
use ingot_engine::progress::Silent;
use ingot_engine::repository::Repository;
use ingot_engine::transport::Silently;
use ingot_helper::flock::Patience;
use ingot_helper::protocol::{DeviceKey, key_file};
use ingot_helper::remote::decide::{Change, Target};
use ingot_helper::remote::{
    Error, FetchOptions, Fetched, Floor, Founded, Local, Memory, PushOptions, Pushed, Remote, Seen, View,
    init,
};
use ingot_helper::storage::Storage;
use ingot_helper::storage::carrier::Carrier;
use ingot_helper::storage::directory::Directory;
use ingot_testdata::git;

/// A repository, the store that is its remote `vault`, a key, and where the three are.
pub struct Client {
    /// The top of the repository.
    pub repository: PathBuf,
    /// Where what was seen of the store is remembered; the Git folder, unless a test looks at it alone.
    pub memory: PathBuf,
    pub store: PathBuf,
    pub key: PathBuf,
    /// How the store and the memory are written.
    pub fs: Arc<dyn Fs>,
}

impl Client {
    pub fn new(repository: &Path, store: &Path, key: &Path) -> Client {
        Client {
            repository: repository.to_owned(),
            memory: git_dir(repository),
            store: store.to_owned(),
            key: key.to_owned(),
            fs: durable::real(),
        }
    }

    pub fn with_fs(mut self, fs: Arc<dyn Fs>) -> Client {
        self.fs = fs;
        self
    }

    pub fn directory(&self) -> Directory {
        Directory::new(&self.store, Arc::clone(&self.fs)).expect("a path")
    }

    /// The store: a carrier where its name ends in `.git`, a directory otherwise.
    pub fn storage(&self) -> Box<dyn Storage> {
        if self.store.extension().is_some_and(|end| end == "git") {
            let carrier = Carrier::local(&self.store, Arc::clone(&self.fs), Arc::new(Silently));
            return Box::new(carrier.expect("a path"));
        }
        Box::new(self.directory())
    }

    fn key(&self) -> DeviceKey {
        key_file::read(&self.key).expect("a key file")
    }

    /// Does something with the remote.
    pub fn remote<T>(&self, act: impl FnOnce(&Remote<'_>, &Local<'_>) -> T) -> T {
        self.remote_on(&*self.storage(), act)
    }

    /// The same with other storage in place of the directory.
    pub fn remote_on<T>(&self, storage: &dyn Storage, act: impl FnOnce(&Remote<'_>, &Local<'_>) -> T) -> T {
        let key = self.key();
        let repository = Repository::open(&git_dir(&self.repository)).expect("a repository");
        let local = Local::open(&repository).expect("readable objects");
        let remote = Remote {
            storage,
            key: &key,
            memory: Some(Memory {
                git_dir: self.memory.clone(),
                common_dir: self.memory.clone(),
                name: Some(b"vault".to_vec()),
                stores: vec![storage.identity()],
            }),
            floor: Floor::load(&self.key).expect("an invitation"),
            fs: Arc::clone(&self.fs),
            patience: Patience::silent(Duration::from_secs(20)),
            progress: &Silent,
            threads: 2,
            seen: &Seen::default(),
        };
        act(&remote, &local)
    }

    pub fn init(&self) -> Result<Founded, Error> {
        let patience = Patience::silent(Duration::from_secs(20));
        init(
            &*self.storage(),
            &self.key(),
            &self.key,
            Arc::clone(&self.fs),
            patience,
        )
    }

    pub fn list(&self) -> Result<View, Error> {
        self.remote(|remote, local| remote.list(Some(local)))
    }

    pub fn fetch(&self) -> Result<Fetched, Error> {
        self.remote(|remote, local| remote.fetch(local, FetchOptions { keep: true }))
    }

    pub fn push(&self, changes: &[Change]) -> Result<Pushed, Error> {
        self.remote(|remote, local| remote.push(local, changes, &PushOptions::default()))
    }

    /// The object that a revision names here.
    #[track_caller]
    pub fn id(&self, revision: &str) -> gix_hash::ObjectId {
        let id = git::git(&self.repository, &["rev-parse", revision]);
        id.parse().expect("Git prints ids")
    }

    /// A push of the branch or tag of this name, `name` being what comes after `refs/`.
    #[track_caller]
    pub fn change(&self, name: &str, revision: &str) -> Change {
        Change {
            name: format!("refs/{name}").into(),
            target: Target::Object(self.id(revision)),
            force: false,
            lease: None,
        }
    }
}

/// A new key in a file.
#[track_caller]
pub fn new_key(path: &Path) {
    let key = DeviceKey::generate(None).expect("random bytes");
    key_file::create(path, &key).expect("a new file");
}

/// The Git folder of a work tree, or the bare repository itself.
pub fn git_dir(repository: &Path) -> PathBuf {
    match repository.join(".git") {
        inner if inner.is_dir() => inner,
        _ => repository.to_owned(),
    }
}

/// Copies a folder with everything in it, so that the copy can be written to.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::write(&target, std::fs::read(entry.path()).unwrap()).unwrap();
        }
    }
}

/// Copies a key file so that programs accept it.
pub fn copy_key(from: &Path, to: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(to, std::fs::read(from).unwrap()).unwrap();
    std::fs::set_permissions(to, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// Everything below a folder: files with their content, folders and links. The locks of the memory, and the folders
/// that only they need, do not count.
pub fn listing(folder: &Path) -> BTreeMap<PathBuf, String> {
    fn walk(folder: &Path, top: &Path, all: &mut BTreeMap<PathBuf, String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(top).unwrap().to_owned();
            let meta = std::fs::symlink_metadata(&path).unwrap();
            if meta.is_symlink() {
                let target = std::fs::read_link(&path).unwrap();
                all.insert(name, format!("link to {}", target.display()));
            } else if meta.is_dir() {
                if !name.starts_with("git-remote-e2ee") {
                    all.insert(name, "folder".to_owned());
                }
                walk(&path, top, all);
            } else if !name.ends_with("state.json.lock") {
                let bytes = std::fs::read(&path).unwrap();
                let id = ingot_helper::protocol::ContentId::of(&bytes);
                all.insert(name, format!("{} bytes, {id}", bytes.len()));
            }
        }
    }
    let mut all = BTreeMap::new();
    walk(folder, folder, &mut all);
    all
}
