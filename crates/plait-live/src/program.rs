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

/// A socket that does not block. If it is closed before the end of its data, also by the kernel after a crash of this
/// process, its other end gets a RST.
#[derive(Debug)]
pub(crate) struct Program(Socket);

impl Program {
    pub(crate) fn new(socket: Socket) -> Program {
        // Sockets without connections have no RST. They ignore this, or refuse it.
        let _ = socket.set_linger(Some(Duration::ZERO));
        Program(socket)
    }
}

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
        self.0.shutdown(Shutdown::Write)?;
        // The kernel delivers the rest of the data and the FIN after the close.
        self.0.set_linger(None)
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    /// Returns a program's end of a connection, and ours.
    fn pair() -> (TcpStream, Program) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let program = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (program, Program::new(listener.accept().unwrap().0.into()))
    }

    #[test]
    fn a_part_of_the_data_has_no_regular_end() {
        let (mut program, mut ours) = pair();
        ours.write_all(b"part").unwrap();
        let mut read = [0; 4];
        program.read_exact(&mut read).unwrap();
        drop(ours);
        let error = program.read(&mut read).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }

    #[test]
    fn the_whole_data_is_delivered_after_the_close() {
        let (mut program, mut ours) = pair();
        let all = vec![7; 1 << 20];
        let mut written = 0;
        let _ = ours.0.set_nonblocking(true);
        while let Ok(count) = ours.write(&all[written..]) {
            written += count;
            if count == 0 {
                break;
            }
        }
        ours.end().unwrap();
        drop(ours);
        let mut read = Vec::new();
        program.read_to_end(&mut read).unwrap();
        assert_eq!(read.len(), written);
        assert!(written > 4_096, "{written}");
    }
}
