//! Notifies systemd of the state of a service (sd_notify(3)). Has no effect if systemd did not start it.

use crate::asker::Asker;
use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::thread;
use std::time::Duration;

/// The server listens.
pub const READY: &str = "READY=1";
/// The server is about to end.
pub const STOPPING: &str = "STOPPING=1";
/// The server has answered a request for its state.
const ALIVE: &str = "WATCHDOG=1";

/// Sends a state to systemd. Errors are ignored, because the service does not depend on it.
pub fn tell(state: &str) {
    if let Some(socket) = env::var_os("NOTIFY_SOCKET") {
        let _ = send(&socket, state);
    }
}

/// Resets the watchdog of systemd (`WatchdogSec=`) twice in each period until the server no longer answers.
/// Has no effect without a watchdog.
#[expect(clippy::disallowed_methods, reason = "the watchdog is one of real time")]
pub fn watch(asker: Asker) {
    let period = watchdog(env::var("WATCHDOG_USEC").ok(), env::var("WATCHDOG_PID").ok());
    if let Some(period) = period {
        thread::spawn(move || {
            while asker.ask().is_some() {
                tell(ALIVE);
                thread::sleep(period / 2);
            }
        });
    }
}

/// Returns the period of the watchdog of this process, if it has one.
fn watchdog(micros: Option<String>, process: Option<String>) -> Option<Duration> {
    let is_other = |of: String| of.parse() != Ok(std::process::id());
    if process.is_some_and(is_other) {
        return None;
    }
    micros?.parse().ok().filter(|micros| *micros > 0).map(Duration::from_micros)
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
    fn a_watchdog_is_that_of_this_process() {
        let own = std::process::id();
        let of = |micros: &str, process: Option<u32>| {
            watchdog(Some(micros.to_owned()), process.map(|it| it.to_string()))
        };
        let period = Some(Duration::from_secs(30));
        assert_eq!(of("30000000", Some(own)), period);
        assert_eq!(of("30000000", None), period);
        assert_eq!(of("30000000", Some(own + 1)), None);
        assert_eq!(of("0", None), None);
        assert_eq!(of("soon", None), None);
        assert_eq!(watchdog(None, None), None);
    }

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
