//! plait as one end of a connection, in a thread of its own.

use crate::emulate::{Line, Network};
use crate::{Client, DialSettings, Origin, ServeSettings, Server};
use plait_base::Span;
use plait_core::ConnectionSpec;
use socket2::{Domain, Socket, Type};
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};

/// Time for connections to end after the run.
const DRAIN: Span = Span::from_millis(500);
const DEVICE: &str = "plait%d";

/// A running server or client of plait. It ends when this value is dropped.
pub(super) struct Running {
    stopper: UnixStream,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Running {
    /// Starts a server at `listen` in front of the service at `to`, at the server's side.
    pub(super) fn server(
        network: &Network,
        listen: SocketAddr,
        to: SocketAddr,
        spec: ConnectionSpec,
    ) -> io::Result<Running> {
        let settings = ServeSettings::new(listen, to, DEVICE, spec);
        let mut server = network.server.within(|| Server::open(settings))??;
        server.drain_for(DRAIN);
        let stopper = server.stopper()?;
        let space = network.server.try_clone()?;
        let thread = thread::spawn(move || {
            space.enter()?;
            server.run(|_| ())
        });
        Ok(Running { stopper, thread: Some(thread) })
    }

    /// Starts a client that dials `to` from an address on each path, at the client's side. Returns the socket of
    /// the app.
    pub(super) fn client(
        network: &Network,
        lines: &[Line],
        to: SocketAddr,
        spec: ConnectionSpec,
    ) -> io::Result<(Socket, Running)> {
        let origin = |(at, line): (usize, &Line)| {
            // The kernel of the client has another address of this network.
            let [a, b, c, _] = Network::client_address(at).octets();
            let address = Ipv4Addr::new(a, b, c, 77).into();
            Origin { address, device: Some(line.name.clone()), cost: 0, quota: None }
        };
        let from = lines.iter().enumerate().map(origin).collect();
        let settings = DialSettings { from, device: DEVICE.to_owned(), spec };
        let mut client = network.client.within(|| Client::open(settings))??;
        let (ours, theirs) = Socket::pair(Domain::UNIX, Type::STREAM, None)?;
        client.connect(to, theirs, None)?;
        let stopper = client.stopper()?;
        let space = network.client.try_clone()?;
        let thread = thread::spawn(move || {
            space.enter()?;
            client.run(|_| ())
        });
        Ok((ours, Running { stopper, thread: Some(thread) }))
    }

    /// Ends it.
    ///
    /// # Errors
    /// If it had already failed.
    pub(super) fn stop(mut self) -> io::Result<()> {
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        // It may have ended already.
        let _ = self.stopper.write_all(&[0]);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(ended)) => ended,
            Some(Err(_)) => Err(io::Error::other("the thread of plait has panicked")),
            None => Ok(()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.end();
    }
}
