//! Lines over a TCP connection.

use super::clock::Clock;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A connection that carries messages, each of which is a JSON document in a line.
#[derive(Debug)]
pub struct Channel {
    reader: BufReader<TcpStream>,
    max_line_bytes: usize,
    /// Longest time of a read.
    timeout: Duration,
}

impl Channel {
    /// Wraps a connection whose lines have at most `max_line_bytes`. A message that takes longer than `timeout` fails.
    ///
    /// # Errors
    /// If the connection is closed already.
    pub fn new(stream: TcpStream, timeout: Duration, max_line_bytes: usize) -> io::Result<Channel> {
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(timeout))?;
        // Multipath TCP sockets of old kernels have no such option.
        let _ = stream.set_nodelay(true);
        Ok(Channel { reader: BufReader::new(stream), max_line_bytes, timeout })
    }

    /// Waits until a message begins to arrive, or the connection ends. Returns false if neither happens in time.
    ///
    /// # Errors
    /// If the connection has failed, or if the time is zero.
    pub fn wait(&self, longest: Duration) -> io::Result<bool> {
        if !self.reader.buffer().is_empty() {
            return Ok(true);
        }
        self.reader.get_ref().set_read_timeout(Some(longest))?;
        match self.reader.get_ref().peek(&mut [0]) {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Changes the longest time in which a message has to arrive.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Sends a message.
    ///
    /// # Errors
    /// If the connection is over, or if the peer takes nothing in time.
    pub fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.reader.get_mut().write_all(&line)
    }

    /// Returns the next message; `None` at the end of the connection.
    ///
    /// # Errors
    /// If no message arrives in time, if the line is too long, or if it is no such message.
    pub fn receive<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let (clock, mut line) = (Clock::start(), Vec::new());
        loop {
            // A peer that sends single bytes must not hold the connection for ever.
            let left = self.timeout.saturating_sub(clock.elapsed());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            self.reader.get_ref().set_read_timeout(Some(left))?;
            let bytes = match self.reader.fill_buf() {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let count = end.map_or(bytes.len(), |at| at + 1);
            line.extend_from_slice(&bytes[..count]);
            self.reader.consume(count);
            match (end, count) {
                _ if line.len() > self.max_line_bytes => break,
                (Some(_), _) => return Ok(Some(serde_json::from_slice(&line)?)),
                (None, 0) if line.is_empty() => return Ok(None),
                (None, 0) => break,
                (None, _) => {}
            }
        }
        Err(io::Error::new(ErrorKind::InvalidData, "a line is cut or too long"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// A message that was read ahead is noticed, too.
    #[test]
    fn a_wait_ends_with_a_message_or_with_the_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        let mut channel = Channel::new(stream, Duration::from_secs(5), 99).unwrap();
        let short = Duration::from_millis(10);
        assert!(!channel.wait(short).unwrap());
        peer.write_all(b"1\n2\n").unwrap();
        for expected in [1, 2] {
            assert!(channel.wait(Duration::from_secs(5)).unwrap());
            assert_eq!(channel.receive::<u8>().unwrap(), Some(expected));
        }
        assert!(!channel.wait(short).unwrap());
        drop(peer);
        assert!(channel.wait(Duration::from_secs(5)).unwrap());
        assert_eq!(channel.receive::<u8>().unwrap(), None);
    }

    /// Each byte comes in time, but not the whole line.
    #[test]
    fn a_message_has_to_arrive_as_a_whole_in_time() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        let mut channel = Channel::new(stream, Duration::from_millis(200), 1_000).unwrap();
        let dripping = std::thread::spawn(move || {
            while peer.write_all(b" ").is_ok() {
                crate::live::clock::sleep(Duration::from_millis(20));
            }
        });
        assert!(channel.receive::<u8>().is_err());
        drop(channel);
        dripping.join().unwrap();
    }
}
