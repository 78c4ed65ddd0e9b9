//! What the tests share: a client, its remote, and what it heard.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bstr::ByteSlice as _;
use gix_hash::ObjectId;
use ingot_engine::repository::Repository;
use ingot_engine::transport::{
    Address, AdvertisedRef, Direction, Environment, Error, Fetch, Messages, Options, PackStream, Remote,
    UploadPack,
};
use ingot_testdata::git;
use ingot_testdata::repo::{Format, Repo};
use ingot_testdata::serve::daemon::Daemon;
use ingot_testdata::serve::http::Server;
use ingot_testdata::serve::ssh::Ssh;
use tempfile::TempDir;

/// What a remote said.
#[derive(Default)]
pub struct Heard {
    remote: Mutex<Vec<u8>>,
    warnings: Mutex<Vec<String>>,
    prompts: Mutex<Vec<(String, bool)>>,
    answers: Mutex<Vec<String>>,
}

impl Heard {
    pub fn remote(&self) -> String {
        String::from_utf8_lossy(&self.remote.lock().unwrap()).into_owned()
    }

    pub fn warnings(&self) -> Vec<String> {
        self.warnings.lock().unwrap().clone()
    }

    pub fn prompts(&self) -> Vec<(String, bool)> {
        self.prompts.lock().unwrap().clone()
    }

    /// What the user will type.
    pub fn will_answer(&self, answers: &[&str]) {
        *self.answers.lock().unwrap() = answers.iter().rev().map(|text| (*text).to_owned()).collect();
    }
}

impl Messages for Heard {
    fn remote(&self, text: &[u8]) {
        self.remote.lock().unwrap().extend_from_slice(text);
    }

    fn warning(&self, text: &str) {
        self.warnings.lock().unwrap().push(text.to_owned());
    }

    fn ask(&self, prompt: &str, secret: bool) -> Option<String> {
        self.prompts.lock().unwrap().push((prompt.to_owned(), secret));
        self.answers.lock().unwrap().pop()
    }
}

/// What hangs should fail, and soon.
fn watch() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        std::thread::spawn(|| {
            std::thread::sleep(std::time::Duration::from_secs(240));
            eprintln!("the tests of transport hang");
            std::process::exit(101);
        });
    });
}

/// A repository that fetches and pushes.
pub struct Client {
    pub repo: Repo,
    pub heard: Arc<Heard>,
    /// The environment, which has nothing of that of the tests.
    pub variables: Vec<(String, String)>,
}

impl Client {
    pub fn new(format: Format) -> Client {
        Client::of(Repo::empty(format))
    }

    pub fn of(repo: Repo) -> Client {
        watch();
        Client {
            repo,
            heard: Arc::default(),
            variables: Vec::new(),
        }
    }

    pub fn config(&self, key: &str, value: &str) {
        self.repo.git(&["config", "--add", key, value]);
    }

    pub fn variable(&mut self, name: &str, value: impl Into<String>) {
        self.variables.push((name.to_owned(), value.into()));
    }

    pub fn try_remote(&self, url: &str) -> Result<Remote, Error> {
        let repository = Repository::open(self.repo.path()).unwrap();
        let config = repository.config();
        let address = Address::resolve(url.into(), &config, Direction::Fetch)?;
        let environment: Environment = self
            .variables
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        let options = Options::read_with(&config, &address, environment)?.folder(self.repo.path().to_owned());
        Ok(Remote::new(address, options, self.heard.clone()))
    }

    pub fn remote(&self, url: &str) -> Remote {
        self.try_remote(url).unwrap()
    }

    /// Takes a pack in, as Git does.
    pub fn index(&self, pack: &[u8]) {
        let args = ["index-pack", "--stdin", "--fix-thin"];
        git::with_input(self.repo.path(), &args, pack);
    }

    /// Fetches what `wants` reach and `request` does not have; returns the bytes of the pack.
    pub fn fetch(&self, from: &mut UploadPack, request: Fetch<'_>) -> usize {
        let pack = receive(from.fetch(request).unwrap());
        self.index(&pack);
        pack.len()
    }

    /// A pack of what `revisions` reach, thin.
    pub fn pack(&self, revisions: &str) -> Vec<u8> {
        let args = [
            "pack-objects",
            "--stdout",
            "-q",
            "--revs",
            "--thin",
            "--delta-base-offset",
        ];
        git::with_input(self.repo.path(), &args, revisions.as_bytes())
    }
}

/// Reads a pack and what follows it.
pub fn receive(mut stream: PackStream<'_>) -> Vec<u8> {
    let mut pack = Vec::new();
    stream.read_to_end(&mut pack).unwrap();
    stream.finish().unwrap();
    pack
}

pub fn id(hex: &str) -> ObjectId {
    ObjectId::from_hex(hex.as_bytes()).unwrap()
}

/// What Git says that a repository has, `HEAD` included, in the words of a server.
pub fn refs_of(path: &Path) -> BTreeMap<String, String> {
    git::git(path, &["ls-remote", "."])
        .lines()
        .map(|line| line.split_once('\t').unwrap())
        .filter(|(_, name)| !name.ends_with("^{}"))
        .map(|(id, name)| (name.to_owned(), id.to_owned()))
        .collect()
}

pub fn refs_map(refs: &[AdvertisedRef]) -> BTreeMap<String, String> {
    refs.iter()
        .map(|known| (known.name.to_string(), known.id.to_string()))
        .collect()
}

/// How a test reaches its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Git,
    Ssh,
    Http,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Git, Kind::Ssh, Kind::Http];
}

/// A folder with bare repositories, served in every way.
pub struct Host {
    root: TempDir,
    daemon: Daemon,
    http: Server,
    ssh: Ssh,
}

impl Host {
    pub fn new() -> Host {
        let root = TempDir::new().unwrap();
        Host {
            daemon: Daemon::start(root.path()),
            http: Server::start(root.path()),
            ssh: Ssh::new(),
            root,
        }
    }

    pub fn root(&self) -> &Path {
        self.root.path()
    }

    pub fn daemon(&self) -> &Daemon {
        &self.daemon
    }

    pub fn ssh(&self) -> &Ssh {
        &self.ssh
    }

    pub fn http(&self) -> &Server {
        &self.http
    }

    /// An empty bare repository.
    pub fn bare(&self, name: &str, format: Format) -> PathBuf {
        let args = ["init", "-q", "--bare", "--object-format", format.name(), name];
        git::git(self.root(), &args);
        let path = self.root().join(name);
        git::git(&path, &["config", "receive.advertisePushOptions", "true"]);
        git::git(&path, &["config", "uploadpack.allowFilter", "true"]);
        path
    }

    /// A bare repository with what `repo` has.
    pub fn copy(&self, name: &str, repo: &Repo, format: Format) -> PathBuf {
        let path = self.bare(name, format);
        repo.git(&["push", "-q", "--mirror", path.to_str().unwrap()]);
        path
    }

    /// The URL of a repository, and a client that can reach it.
    pub fn reach(&self, kind: Kind, name: &str, client: &Client) -> String {
        match kind {
            Kind::Git => self.daemon.url(name),
            Kind::Http => self.http.url(name),
            Kind::Ssh => {
                client.config("core.sshCommand", self.ssh.program().to_str().unwrap());
                format!("ssh://git@host.example{}/{name}", self.root().display())
            }
        }
    }
}

/// The error inside one of reading.
pub fn inner(error: std::io::Error) -> Error {
    Error::from_io(error).unwrap_or_else(|error| panic!("{error} has no cause of its own"))
}

pub fn bstr(text: &str) -> &bstr::BStr {
    text.as_bytes().as_bstr()
}
