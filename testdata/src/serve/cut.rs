//! A way to a server that breaks.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Where the way breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// It does not.
    Never,
    /// It does not either, but whatever is said comes in pieces of this many bytes.
    Pieces(usize),
    /// When the server has said this many bytes.
    Answers(u64),
    /// When the client has said this many bytes.
    Requests(u64),
    /// When the client has said this many bytes, the server hears all of them and may act, but nothing of what it says
    /// comes back after that.
    Silence(u64),
}

/// Hands bytes on between clients and a server on another port.
#[derive(Debug)]
pub struct Wire {
    port: u16,
    stop: Arc<AtomicBool>,
    cut: Arc<Mutex<Cut>>,
    requests: Arc<AtomicU64>,
    answers: Arc<AtomicU64>,
}

impl Wire {
    /// Makes one to `server`. The counts go on over all connections; each is cut at its own limit.
    pub fn start(server: u16, cut: Cut) -> Wire {
        let listener = super::listener();
        let wire = Wire {
            port: listener.local_addr().unwrap().port(),
            stop: Arc::default(),
            cut: Arc::new(Mutex::new(cut)),
            requests: Arc::default(),
            answers: Arc::default(),
        };
        let (stop, requests, answers) = (
            Arc::clone(&wire.stop),
            Arc::clone(&wire.requests),
            Arc::clone(&wire.answers),
        );
        let cut = Arc::clone(&wire.cut);
        std::thread::spawn(move || accept(&listener, server, &cut, &stop, &requests, &answers));
        wire
    }

    /// Breaks connections that are made from now on in another place.
    pub fn cut_next(&self, cut: Cut) {
        *self.cut.lock().unwrap() = cut;
    }

    /// The port for clients.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Bytes that clients said so far.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }

    /// Bytes that the server said so far.
    pub fn answers(&self) -> u64 {
        self.answers.load(Ordering::SeqCst)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

fn accept(
    listener: &TcpListener,
    server: u16,
    cut: &Mutex<Cut>,
    stop: &AtomicBool,
    requests: &Arc<AtomicU64>,
    answers: &Arc<AtomicU64>,
) {
    for client in listener.incoming() {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        let (Ok(client), Ok(server)) = (client, TcpStream::connect((Ipv4Addr::LOCALHOST, server))) else {
            continue;
        };
        let cut = *cut.lock().unwrap();
        let silent = Arc::new(AtomicBool::new(false));
        let _ = client.set_nodelay(true).and(server.set_nodelay(true));
        for up in [true, false] {
            let (from, to) = match up {
                true => (client.try_clone().unwrap(), server.try_clone().unwrap()),
                false => (server.try_clone().unwrap(), client.try_clone().unwrap()),
            };
            let counter = Arc::clone(if up { requests } else { answers });
            let silent = Arc::clone(&silent);
            std::thread::spawn(move || copy(from, to, up, cut, &counter, &silent));
        }
    }
}

fn copy(
    mut from: TcpStream,
    mut to: TcpStream,
    up: bool,
    cut: Cut,
    counter: &AtomicU64,
    silent: &AtomicBool,
) {
    let mut buffer = [0; 16 * 1024];
    let mut left = match (cut, up) {
        (Cut::Answers(limit), false) | (Cut::Requests(limit), true) | (Cut::Silence(limit), true) => limit,
        _ => u64::MAX,
    };
    while let Ok(read) = from.read(&mut buffer) {
        if read == 0 {
            break;
        }
        counter.fetch_add(read as u64, Ordering::SeqCst);
        if !up && silent.load(Ordering::SeqCst) {
            continue;
        }
        let passed = usize::try_from(left.min(read as u64)).unwrap();
        left -= passed as u64;
        let passes = match (left, cut) {
            (0, Cut::Silence(_)) => {
                silent.store(true, Ordering::SeqCst);
                left = u64::MAX;
                read
            }
            _ => passed,
        };
        let piece = match cut {
            Cut::Pieces(piece) => piece,
            _ => buffer.len(),
        };
        let sent = buffer[..passes]
            .chunks(piece)
            .try_for_each(|piece| to.write_all(piece));
        if sent.is_err() || left == 0 {
            break;
        }
    }
    // With `Silence`, the end of what the server says is the end of the connection.
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
