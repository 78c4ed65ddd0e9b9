//! TCP connections that notice when the user wants to stop, and when nothing comes any more.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Error, Messages};

/// How long one address of a host may take to answer.
const CONNECT: Duration = Duration::from_secs(30);
/// How long a read or write waits before it looks whether the user wants to stop.
const TICK: Duration = Duration::from_millis(250);

/// A speed below which a transfer is given up (`http.lowSpeedLimit`, `http.lowSpeedTime`).
#[derive(Debug, Clone, Copy)]
pub(super) struct LowSpeed {
    /// Bytes a second.
    pub limit: u64,
    pub time: Duration,
}

/// One end of a connection.
pub(super) struct Socket {
    stream: TcpStream,
    messages: Arc<dyn Messages>,
    low_speed: Option<LowSpeed>,
    /// Time spent waiting, and bytes that came or went in it.
    waited: Duration,
    moved: u64,
}

impl Socket {
    /// Connects to the first address of `host` that answers. `host` may be a name or an address, without brackets.
    pub(super) fn connect(
        host: &str,
        port: u16,
        remote: &str,
        messages: &Arc<dyn Messages>,
    ) -> Result<Socket, Error> {
        let failed = |message: String| Error::Connect {
            remote: remote.to_owned(),
            message,
        };
        let addresses = (host, port).to_socket_addrs().map_err(|error| {
            failed(format!(
                "the host '{host}' is not known ({error}); check the address and the network"
            ))
        })?;
        let mut last = None;
        for address in addresses {
            if messages.interrupted() {
                return Err(Error::Interrupted);
            }
            match TcpStream::connect_timeout(&address, CONNECT) {
                Ok(stream) => {
                    return Socket::new(stream, messages).map_err(|error| failed(error.to_string()));
                }
                Err(error) => last = Some((address, error)),
            }
        }
        Err(failed(match last {
            Some((address, error)) => format!("{address}: {error}; check the address and the network"),
            None => format!("the host '{host}' has no address"),
        }))
    }

    fn new(stream: TcpStream, messages: &Arc<dyn Messages>) -> io::Result<Socket> {
        stream.set_read_timeout(Some(TICK))?;
        stream.set_write_timeout(Some(TICK))?;
        stream.set_nodelay(true)?;
        // A peer that vanished without a word is noticed in the end.
        #[cfg(unix)]
        rustix::net::sockopt::set_socket_keepalive(&stream, true)?;
        Ok(Socket {
            stream,
            messages: Arc::clone(messages),
            low_speed: None,
            waited: Duration::ZERO,
            moved: 0,
        })
    }

    /// Another handle to the same connection.
    pub(super) fn another(&self) -> io::Result<Socket> {
        Ok(Socket {
            stream: self.stream.try_clone()?,
            messages: Arc::clone(&self.messages),
            low_speed: self.low_speed,
            waited: Duration::ZERO,
            moved: 0,
        })
    }

    pub(super) fn set_low_speed(&mut self, low_speed: Option<LowSpeed>) {
        self.low_speed = low_speed;
    }

    /// Ends the connection in both directions, for all handles.
    pub(super) fn close(&self) {
        // It may be closed already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Whether the other side has closed it, or has sent what nobody asked for.
    pub(super) fn is_stale(&self) -> bool {
        if self.stream.set_nonblocking(true).is_err() {
            return true;
        }
        let quiet = match self.stream.peek(&mut [0]) {
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
            Ok(_) => false,
        };
        self.stream.set_nonblocking(false).is_err() || !quiet
    }

    /// Repeats `work` until it does something.
    fn wait(&mut self, mut work: impl FnMut(&mut TcpStream) -> io::Result<usize>) -> io::Result<usize> {
        loop {
            let started = Instant::now();
            let result = work(&mut self.stream);
            if let Some(low) = self.low_speed {
                self.waited += started.elapsed();
                self.moved += result.as_ref().map_or(0, |moved| *moved as u64);
                if self.waited >= low.time {
                    if self.moved < low.limit.saturating_mul(low.time.as_secs().max(1)) {
                        return Err(io::Error::new(
                            io::ErrorKind::TimedOut,
                            "it is slower than http.lowSpeedLimit",
                        ));
                    }
                    self.waited = Duration::ZERO;
                    self.moved = 0;
                }
            }
            match result {
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
                    ) =>
                {
                    if self.messages.interrupted() {
                        return Err(Error::Interrupted.into_io());
                    }
                }
                other => return other,
            }
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait(|stream| stream.read(buffer))
    }
}

impl Write for Socket {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.wait(|stream| stream.write(data))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
