//! The socket of a program.

use plait_engine::Stream;
use socket2::{Socket, TcpKeepalive};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Number of unanswered keep-alives after which a program counts as gone, and their longest interval.
const UNANSWERED: u32 = 9;
const BETWEEN: Duration = Duration::from_secs(15);

/// A socket that does not block.
#[derive(Debug)]
pub(crate) struct Program(pub(crate) Socket);

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Read for Program {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Program {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Stream for Program {
    fn end(&mut self) -> io::Result<()> {
        self.0.shutdown(Shutdown::Write)
    }

    fn failure(&mut self) -> io::Result<Option<io::Error>> {
        self.0.take_error()
    }

    fn ask_after(&self, time: Duration) {
        let asked = TcpKeepalive::new().with_time(time).with_interval(time.min(BETWEEN));
        // Other sockets than TCP do not need keep-alives: they report every end.
        let _ = self.0.set_tcp_keepalive(&asked.with_retries(UNANSWERED));
    }
}
