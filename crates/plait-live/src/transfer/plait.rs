//! plait as one end of a connection, in a thread of its own.

use crate::{Client, DialSettings, HostState, Namespace, Origin, ServeSettings, Server};
use plait_base::Span;
use plait_core::ConnectionSpec;
use socket2::{Domain, Socket, Type};
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};

/// Time for connections to end after the run.
const DRAIN: Span = Span::from_millis(500);
const DEVICE: &str = "plait%d";

/// A running server or client of plait. It ends when this value is dropped.
pub(super) struct Running {
    stopper: UnixStream,
    thread: Option<JoinHandle<io::Result<()>>>,
    host: HostState,
}

impl Running {
    /// Starts a server at `listen` in front of the service at `to`, in this namespace or in that of the calling
    /// thread.
    pub(super) fn server(
        space: Option<&Namespace>,
        listen: SocketAddr,
        to: SocketAddr,
        spec: ConnectionSpec,
    ) -> io::Result<Running> {
        let settings = ServeSettings::new(listen, to, DEVICE, spec);
        let mut server = within(space, || Server::open(settings))??;
        server.drain_for(DRAIN);
        let stopper = server.stopper()?;
        let own = std::iter::once(listen.ip());
        let host = HostState::look(server.device(), server.short_queue(), own);
        let thread = start(space, move || server.run(|_| ()))?;
        Ok(Running { stopper, thread: Some(thread), host })
    }

    /// Starts a client that dials `to` from these origins, in this namespace or in that of the calling thread.
    /// Returns the socket of the app.
    pub(super) fn client(
        space: Option<&Namespace>,
        from: Vec<Origin>,
        to: SocketAddr,
        spec: ConnectionSpec,
    ) -> io::Result<(Socket, Running)> {
        let own: Vec<IpAddr> = from.iter().map(|origin| origin.address).collect();
        let settings = DialSettings { from, device: DEVICE.to_owned(), spec };
        let mut client = within(space, || Client::open(settings))??;
        let host = HostState::look(client.device(), client.short_queue(), own.into_iter());
        let (ours, theirs) = Socket::pair(Domain::UNIX, Type::STREAM, None)?;
        client.connect(to, theirs, None)?;
        let stopper = client.stopper()?;
        let thread = start(space, move || client.run(|_| ()))?;
        Ok((ours, Running { stopper, thread: Some(thread), host }))
    }

    /// Fails if a setting of the host keeps packets from plait.
    pub(super) fn check_host(&self) -> io::Result<()> {
        self.host.obstacle().map_or(Ok(()), |obstacle| Err(io::Error::other(obstacle)))
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

/// Runs `f` in this namespace, or in that of the calling thread.
fn within<T: Send>(space: Option<&Namespace>, f: impl FnOnce() -> T + Send) -> io::Result<T> {
    match space {
        Some(space) => space.within(f),
        None => Ok(f()),
    }
}

/// Runs `f` on a new thread in this namespace, or in that of the calling thread.
fn start(
    space: Option<&Namespace>,
    f: impl FnOnce() -> io::Result<()> + Send + 'static,
) -> io::Result<JoinHandle<io::Result<()>>> {
    let space = space.map(Namespace::try_clone).transpose()?;
    Ok(thread::spawn(move || {
        space.map_or(Ok(()), |space| space.enter())?;
        f()
    }))
}
