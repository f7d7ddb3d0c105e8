//! The socket of a program, as a relay sees it.

use socket2::{Socket, TcpKeepalive};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::time::Duration;

/// Keep-alives to a program that has ended its side: how many may stay unanswered, and at most so long
/// apart.
const UNANSWERED: u32 = 9;
const BETWEEN: Duration = Duration::from_secs(15);

/// A stream of bytes to a program and from it. Reading and writing do not wait: what has to wait fails
/// with [`io::ErrorKind::WouldBlock`].
pub(crate) trait Stream: Read + Write {
    /// Tells the program that it gets no more.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] if the program has gone.
    fn end(&mut self) -> io::Result<()>;

    /// Why the stream has failed, if it has since this was last asked.
    ///
    /// # Errors
    /// The stream cannot be asked.
    fn failure(&mut self) -> io::Result<Option<io::Error>>;

    /// Asks from time to time whether the program is still there, first after this time.
    fn ask_after(&self, time: Duration);
}

impl Stream for Socket {
    fn end(&mut self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }

    fn failure(&mut self) -> io::Result<Option<io::Error>> {
        self.take_error()
    }

    fn ask_after(&self, time: Duration) {
        let asked = TcpKeepalive::new().with_time(time).with_interval(time.min(BETWEEN));
        // Sockets that are not of TCP are told of all ends.
        let _ = self.set_tcp_keepalive(&asked.with_retries(UNANSWERED));
    }
}
