//! Addresses of the destinations that clients name. Names are resolved on threads of their own.

use crate::argument::not_dialled;
use crate::asker::ASK;
use plait_base::ConnId;
use plait_engine::Destination;
use std::io::Write;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

/// Largest number of names that are resolved at the same time. Further ones fail.
const MAX_LOOKUPS: usize = 256;
/// Stack of a thread that resolves a name, in bytes.
const STACK_BYTES: usize = 256 << 10;

/// The address of a destination, or the reason why there is none.
pub(crate) type Found = (ConnId, Result<SocketAddr, String>);

/// Resolves names. Its threads write to the waker when an answer is there.
#[derive(Debug)]
pub(crate) struct Lookup {
    answers: Sender<Found>,
    answered: Receiver<Found>,
    waker: Arc<UnixStream>,
}

impl Lookup {
    pub(crate) fn new(waker: UnixStream) -> Lookup {
        let (answers, answered) = mpsc::channel();
        Lookup { answers, answered, waker: Arc::new(waker) }
    }

    /// Returns the address if it is known at once. Otherwise a thread resolves the name.
    pub(crate) fn begin(&self, conn: ConnId, to: Destination) -> Option<Found> {
        let (name, port) = match to {
            Destination::Address(address) => return Some((conn, allowed(address))),
            Destination::Name(name, port) => (name, port),
        };
        // Each thread has a handle of the waker.
        if Arc::strong_count(&self.waker) > MAX_LOOKUPS {
            return Some((conn, Err(format!("more than {MAX_LOOKUPS} names are being resolved"))));
        }
        let (answers, waker) = (self.answers.clone(), Arc::clone(&self.waker));
        let resolver = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
            // If the engine has ended, nobody needs the answer.
            let _ = answers.send((conn, resolve(&name, port)));
            let _ = (&*waker).write_all(&[ASK]);
        });
        resolver.err().map(|error| (conn, Err(format!("no thread for its name: {error}"))))
    }

    /// Returns the answers that have arrived.
    pub(crate) fn answers(&self) -> impl Iterator<Item = Found> {
        self.answered.try_iter()
    }
}

/// Returns the first address of a name to which this host may connect.
fn resolve(name: &str, port: u16) -> Result<SocketAddr, String> {
    let shown = name.escape_debug();
    let mut found =
        (name, port).to_socket_addrs().map_err(|error| format!("the name `{shown}`: {error}"))?;
    let first = found.next().ok_or_else(|| format!("the name `{shown}` has no address"))?;
    allowed(first)
}

/// Refuses addresses of this host itself, whose programs trust each other, and addresses that no host has.
fn allowed(to: SocketAddr) -> Result<SocketAddr, String> {
    match not_dialled(to.ip()) {
        None if to.port() > 0 => Ok(to),
        None => Err(format!("the destination {to}: there is no port 0")),
        Some(problem) => Err(format!("the destination {to}: {problem}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_the_server_itself_are_no_destination() {
        let (waker, _woken) = UnixStream::pair().unwrap();
        let lookup = Lookup::new(waker);
        let asked = |text: &str| {
            let to = Destination::Address(text.parse().unwrap());
            lookup.begin(ConnId(7), to).unwrap().1
        };
        assert_eq!(asked("192.0.2.1:80"), Ok("192.0.2.1:80".parse().unwrap()));
        for refused in ["127.0.0.1:22", "[::1]:22", "0.0.0.0:80", "224.0.0.1:80", "192.0.2.1:0"] {
            assert!(asked(refused).unwrap_err().contains(refused));
        }
        // A name of this host is resolved, and refused too.
        assert!(lookup.begin(ConnId(8), Destination::Name("localhost".into(), 22)).is_none());
        let (conn, found) = lookup.answered.recv().unwrap();
        assert_eq!(conn, ConnId(8));
        assert!(found.is_err(), "{found:?}");
    }
}
