//! What a service tells the systemd that started it (sd_notify(3)); of no effect elsewhere.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The server listens, or is about to end.
pub(super) const READY: &str = "READY=1";
pub(super) const STOPPING: &str = "STOPPING=1";

/// Tells of a state. A service runs on whether or not it is heard.
pub(super) fn tell(state: &str) {
    if let Some(socket) = env::var_os("NOTIFY_SOCKET") {
        let _ = send(&socket, state);
    }
}

fn send(socket: &OsStr, state: &str) -> io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_socket_hear_it() {
        let name = format!("plait-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let path = env::temp_dir().join(&name);
        let hears =
            [UnixDatagram::bind_addr(&address).unwrap(), UnixDatagram::bind(&path).unwrap()];
        send(OsStr::new(&format!("@{name}")), READY).unwrap();
        send(path.as_os_str(), READY).unwrap();
        for socket in hears {
            let mut said = [0; 32];
            let len = socket.recv(&mut said).unwrap();
            assert_eq!(&said[..len], b"READY=1");
        }
        std::fs::remove_file(path).unwrap();
    }
}
