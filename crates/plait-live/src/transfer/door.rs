//! The listening socket of a server's end, and the sockets that it accepts.

use super::sockets::accepted;
use crate::poller::Poller;
use plait_engine::Interest;
use socket2::Socket;
use std::io::{self, ErrorKind, Read};

/// A secret by which the server's end recognises its client.
pub type Token = [u8; 16];

/// Token of the listener for the poller. Those of visitors follow.
const LISTENER: u64 = 2;
/// Most accepted sockets that have not sent the secret yet. If there are more, the oldest one is closed.
const MAX_VISITORS: usize = 8;
const READ: Interest = Interest { read: true, write: false };

/// An accepted socket that has not sent the whole secret.
struct Visitor {
    token: u64,
    socket: Socket,
    sent: Vec<u8>,
}

/// A listening socket for one connection.
pub(super) struct Door {
    listener: Socket,
    /// The first bytes of the client. If there is a secret, other connections are closed.
    secret: Option<Token>,
    visitors: Vec<Visitor>,
    next: u64,
    taken: bool,
}

impl Door {
    /// Takes a listening socket that does not block.
    pub(super) fn new(listener: Socket, secret: Option<Token>) -> Door {
        Door { listener, secret, visitors: Vec::new(), next: LISTENER + 1, taken: false }
    }

    /// Lets the poller watch the listener.
    pub(super) fn watch(&self, poller: &Poller) -> io::Result<()> {
        poller.add(&self.listener, LISTENER, true, false)
    }

    /// Handles the readiness of the listener or of a visitor. Returns the socket of the client, once.
    ///
    /// # Errors
    /// If there is no secret, and a second connection is made.
    pub(super) fn on_ready(&mut self, poller: &Poller, token: u64) -> io::Result<Option<Socket>> {
        if token != LISTENER {
            return self.hear(poller, token);
        }
        let socket = match accepted(&self.listener) {
            Ok(socket) => socket,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        };
        match self.secret {
            None if self.taken => Err(io::Error::other("a second connection was made")),
            None => {
                self.taken = true;
                Ok(Some(socket))
            }
            // The connection is closed.
            Some(_) if self.taken => Ok(None),
            Some(_) => {
                if self.visitors.len() >= MAX_VISITORS {
                    self.visitors.remove(0);
                }
                socket.set_nonblocking(true)?;
                let (token, sent) = (self.next, Vec::new());
                poller.add(&socket, token, true, false)?;
                self.next += 1;
                self.visitors.push(Visitor { token, socket, sent });
                self.hear(poller, token)
            }
        }
    }

    /// Reads from a visitor.
    fn hear(&mut self, poller: &Poller, token: u64) -> io::Result<Option<Socket>> {
        let (Some(at), Some(secret)) =
            (self.visitors.iter().position(|it| it.token == token), self.secret)
        else {
            return Ok(None);
        };
        let visitor = &mut self.visitors[at];
        let mut rest = vec![0; secret.len() - visitor.sent.len()];
        match (&visitor.socket).read(&mut rest) {
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                return Ok(None);
            }
            Ok(count) if count > 0 => visitor.sent.extend_from_slice(&rest[..count]),
            _ => visitor.sent = vec![0; secret.len()],
        }
        let known = visitor.sent == secret;
        if !known && secret.starts_with(&visitor.sent) {
            return Ok(None);
        }
        let visitor = self.visitors.remove(at);
        poller.change(&visitor.socket, token, Some(READ), None)?;
        if known && !self.taken {
            self.taken = true;
            self.visitors.clear();
            return Ok(Some(visitor.socket));
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clock;
    use plait_base::Span;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    /// Serves the door until it lets a socket in, or nothing happens.
    fn let_in(door: &mut Door, poller: &Poller) -> Option<Socket> {
        let (clock, mut ready) = (Clock::start(), Vec::new());
        loop {
            let longest = Span::from_millis(300);
            poller.wait(&clock, clock.now() + longest, longest, &mut ready).unwrap();
            if ready.is_empty() {
                return None;
            }
            for it in &ready {
                if let Some(socket) = door.on_ready(poller, it.token).unwrap() {
                    return Some(socket);
                }
            }
        }
    }

    fn opened() -> (std::net::SocketAddr, Door, Poller) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let at = listener.local_addr().unwrap();
        let (door, poller) = (Door::new(listener.into(), Some([9; 16])), Poller::open().unwrap());
        door.watch(&poller).unwrap();
        (at, door, poller)
    }

    #[test]
    fn only_the_client_that_sends_the_secret_gets_in() {
        let (at, mut door, poller) = opened();
        let mut strangers: Vec<TcpStream> =
            (0..3).map(|_| TcpStream::connect(at).unwrap()).collect();
        strangers[0].write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        strangers[1].write_all(&[9; 15]).unwrap();
        assert!(let_in(&mut door, &poller).is_none());
        // The first stranger was closed; the others may still send the secret.
        assert_eq!(door.visitors.len(), 2);
        let mut client = TcpStream::connect(at).unwrap();
        client.write_all(&[[9; 16].as_slice(), b"request"].concat()).unwrap();
        let mut socket = let_in(&mut door, &poller).unwrap();
        let mut request = [0; 7];
        socket.set_nonblocking(false).unwrap();
        socket.read_exact(&mut request).unwrap();
        assert_eq!(&request, b"request");
        assert!(door.visitors.is_empty());
    }

    #[test]
    fn the_number_of_visitors_has_a_limit() {
        let (at, mut door, poller) = opened();
        let strangers: Vec<TcpStream> =
            (0..MAX_VISITORS + 4).map(|_| TcpStream::connect(at).unwrap()).collect();
        assert!(let_in(&mut door, &poller).is_none());
        assert_eq!(door.visitors.len(), MAX_VISITORS);
        drop(strangers);
        assert!(let_in(&mut door, &poller).is_none());
        assert!(door.visitors.is_empty());
    }
}
