//! Lines over a TCP connection.

use super::message::MAX_LINE_BYTES;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A connection that carries lines.
#[derive(Debug)]
pub(super) struct Channel {
    reader: BufReader<TcpStream>,
}

impl Channel {
    /// Wraps a connection. A read that takes longer than `timeout` fails.
    pub(super) fn new(stream: TcpStream, timeout: Duration) -> io::Result<Channel> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        // Multipath TCP sockets of old kernels have no such option.
        let _ = stream.set_nodelay(true);
        Ok(Channel { reader: BufReader::new(stream) })
    }

    /// Changes the longest time of a read.
    pub(super) fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.reader.get_ref().set_read_timeout(Some(timeout))
    }

    pub(super) fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.reader.get_mut().write_all(&line)
    }

    /// Returns the next message; `None` at the end of the connection.
    pub(super) fn receive<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let mut line = Vec::new();
        let mut limited = (&mut self.reader).take(MAX_LINE_BYTES as u64);
        limited.read_until(b'\n', &mut line)?;
        match line.last() {
            None => Ok(None),
            Some(b'\n') => Ok(Some(serde_json::from_slice(&line)?)),
            Some(_) => Err(io::Error::new(ErrorKind::InvalidData, "a line is cut or too long")),
        }
    }
}
