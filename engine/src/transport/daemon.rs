//! `git://` (gitprotocol-pack(5), "Git Transport").

use std::sync::Arc;

use bstr::ByteSlice as _;

use super::channel::{Control, Duplex, Service, version_for};
use super::options::{Options, setting};
use super::socket::Socket;
use super::{Address, Error, Messages};

const PORT: u16 = 9418;

/// Connects and says what is wanted; the greeting comes next.
pub(super) fn connect(
    address: &Address,
    service: Service,
    options: &Options,
    messages: &Arc<dyn Messages>,
) -> Result<Duplex, Error> {
    let remote = address.to_string();
    if options.config().string("core.gitProxy").is_some() {
        return Err(setting(
            "core.gitProxy",
            "proxy programs for git:// are not supported; use https or ssh",
        ));
    }
    let url = address.url();
    let host = url.host.as_deref().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let mut socket = Socket::connect(bare, url.port.unwrap_or(PORT), &remote, messages)?;

    let mut request = format!("{} ", service.name()).into_bytes();
    request.extend_from_slice(&url.path);
    request.extend_from_slice(b"\0host=");
    match options.environment().text("GIT_OVERRIDE_VIRTUAL_HOST") {
        Some(host) => request.extend_from_slice(host.replace('\0', "").as_bytes()),
        None if bare.contains(':') => request.extend_from_slice(format!("[{bare}]").as_bytes()),
        None => request.extend_from_slice(bare.as_bytes()),
    }
    if let Some(port) = url.port {
        request.extend_from_slice(format!(":{port}").as_bytes());
    }
    request.push(0);
    if let Some(parameter) = version_for(service, options.version()).parameter() {
        request.push(0);
        request.extend_from_slice(parameter.as_bytes());
        request.push(0);
    }
    let mut line = Vec::new();
    super::pkt_line::data(&mut line, &request).map_err(|_| Error::Address {
        address: remote.clone(),
        message: format!("its path of {} bytes is too long", url.path.as_bytes().len()),
    })?;
    std::io::Write::write_all(&mut socket, &line)
        .map_err(|error| Error::lost(&remote, "sending a request", error))?;
    let another = || {
        socket.another().map_err(|error| Error::Connect {
            remote: remote.clone(),
            message: error.to_string(),
        })
    };
    let (reader, writer) = (another()?, another()?);
    Ok(Duplex::new(
        &remote,
        Box::new(reader),
        Box::new(writer),
        Control::Socket(socket),
    ))
}
