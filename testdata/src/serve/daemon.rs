//! `git daemon`.

use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::git;

/// A daemon that serves what lies below a folder, for fetches and pushes.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    port: u16,
}

impl Daemon {
    /// Starts one and waits until it answers.
    pub fn start(root: &Path) -> Daemon {
        // Between looking for a free port and using it, somebody else may take it.
        for _ in 0..20 {
            let port = super::listener().local_addr().unwrap().port();
            // Started by `git`, it would outlive it.
            let program = Path::new(&git::git(root, &["--exec-path"])).join("git-daemon");
            let mut child = git::isolated(Command::new(program), root)
                .args([
                    "--reuseaddr",
                    "--listen=127.0.0.1",
                    "--export-all",
                    "--enable=receive-pack",
                ])
                .arg("--informative-errors")
                .arg(format!("--port={port}"))
                .arg(format!("--base-path={}", root.display()))
                .arg(root)
                .stdin(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            for _ in 0..500 {
                if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
                    return Daemon { child, port };
                }
                if child.try_wait().unwrap().is_some() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        panic!("git daemon does not start");
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of a repository below the folder.
    pub fn url(&self, path: &str) -> String {
        format!("git://127.0.0.1:{}/{path}", self.port)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
