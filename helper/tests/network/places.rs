//! A carrier, the servers that it is reached through, and what clients keep of it.

use std::path::{Path, PathBuf};

use ingot_testdata::checker::check_store;
use ingot_testdata::git;
use ingot_testdata::repo::Format;
use ingot_testdata::serve::daemon::Daemon;
use ingot_testdata::serve::http::Server;
use ingot_testdata::serve::ssh::Ssh;

use super::world::{World, text};

/// The branch with the ciphertext.
pub const BRANCH: &str = "refs/heads/git-remote-e2ee";

/// A carrier that a server serves.
pub struct Served {
    pub world: World,
    pub url: String,
    _server: Server_,
}

/// Keeps what serves alive.
enum Server_ {
    Daemon(#[allow(dead_code)] Daemon),
    Http(#[allow(dead_code)] Server),
    Ssh(#[allow(dead_code)] Ssh),
}

/// How a carrier is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Daemon,
    Http,
    HttpPassword,
    Ssh,
    SshShort,
}

impl Way {
    pub const ALL: [Way; 5] = [Way::Daemon, Way::Http, Way::HttpPassword, Way::Ssh, Way::SshShort];
}

impl Served {
    /// Serves a new carrier.
    pub fn new(way: Way) -> Served {
        let world = World::carrier(Format::Sha1);
        std::fs::create_dir_all(world.path("home")).unwrap();
        git::git(&world.store, &["config", "http.receivepack", "true"]);
        let (url, server) = match way {
            Way::Daemon => {
                let daemon = Daemon::start(world.root());
                (daemon.url("carrier.git"), Server_::Daemon(daemon))
            }
            Way::Http => {
                let server = Server::start(world.root());
                (server.url("carrier.git"), Server_::Http(server))
            }
            Way::HttpPassword => {
                let server = Server::with_password(world.root(), "alice", "open sesame");
                let url = server.url("carrier.git");
                (
                    url.replace("http://", "http://alice:open%20sesame@"),
                    Server_::Http(server),
                )
            }
            Way::Ssh | Way::SshShort => {
                let ssh = Ssh::new();
                let program = text(&ssh.program()).to_owned();
                let config = world.path("home/.gitconfig");
                git::git(
                    world.root(),
                    &["config", "-f", text(&config), "core.sshCommand", &program],
                );
                let url = match way {
                    Way::Ssh => format!("ssh://alice@host.example{}", world.store.display()),
                    _ => format!("alice@host.example:{}", world.store.display()),
                };
                (url, Server_::Ssh(ssh))
            }
        };
        Served {
            world,
            url: format!("e2ee::git+{url}"),
            _server: server,
        }
    }

    /// Lets the server leave out what is not wanted, or not.
    pub fn filter(&self, allowed: bool) {
        let value = if allowed { "true" } else { "false" };
        git::git(&self.world.store, &["config", "uploadpack.allowFilter", value]);
    }

    /// A repository of the fixture history with the carrier as remote `vault`.
    pub fn source(&self) -> ingot_testdata::repo::Repo {
        let source = ingot_testdata::repo::Repo::scripted("history", Format::Sha1);
        self.world.add_remote(source.path(), "vault", &self.url);
        source
    }

    /// Clones without Git.
    #[track_caller]
    pub fn clone(&self, name: &str) -> PathBuf {
        let path = self.world.path(name);
        let args = ["clone", "--key", text(&self.world.key), &self.url, text(&path)];
        let said = self.world.e2ee(self.world.root(), &args);
        assert_eq!(said.err, "", "{}", said.err);
        said.good();
        path
    }

    /// The one cache of the world's user.
    pub fn cache(&self) -> PathBuf {
        let caches = self.world.path("home/.cache/git-remote-e2ee/carrier");
        let mut found: Vec<PathBuf> = std::fs::read_dir(caches)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir())
            .collect();
        assert_eq!(found.len(), 1);
        found.remove(0)
    }

    /// Requires that the carrier is right, and that no part of a pack was kept.
    #[track_caller]
    pub fn sound(&self) {
        check_store(&self.world.store, &self.world.key, &["--carrier", "--clean"]).unwrap();
        let parts = git::git(&self.world.store, &["ls-tree", "-r", BRANCH, "e2ee/objects"]);
        let kept = objects_in(&self.cache().join("objects"), self.world.root());
        assert!(!kept.is_empty());
        for line in parts.lines() {
            let blob = line.split_whitespace().nth(2).unwrap();
            assert!(!kept.contains(blob), "part {blob} is kept");
        }
        for entry in std::fs::read_dir(self.cache()).unwrap() {
            let name = entry.unwrap().file_name();
            assert!(name == "objects" || name == "tip", "{name:?} is left");
        }
    }
}

/// The ids of everything in an object folder.
pub fn objects_in(objects: &Path, scratch: &Path) -> String {
    let probe = scratch.join("probe.git");
    if !probe.exists() {
        git::git(scratch, &["init", "-q", "--bare", text(&probe)]);
    }
    std::fs::write(
        probe.join("objects/info/alternates"),
        format!("{}\n", objects.display()),
    )
    .unwrap();
    git::git(
        &probe,
        &["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"],
    )
}
