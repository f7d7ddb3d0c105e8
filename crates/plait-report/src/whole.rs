//! Files that grow by whole records, so that they can be read during writing.

use std::fs::File;
use std::io::{self, Write};

/// Buffered bytes above which the end of a record flushes the buffer.
const GATHERED: usize = 64 * 1024;

/// Buffers writes until a flush, or until a record ends and the buffer is large.
pub(super) struct WholeRecords<W = File> {
    to: W,
    gathered: Vec<u8>,
}

impl<W: Write> WholeRecords<W> {
    pub(super) fn new(to: W) -> WholeRecords<W> {
        WholeRecords { to, gathered: Vec::new() }
    }

    /// Marks the end of a record. The buffer is flushed if it has at least `GATHERED` bytes.
    pub(super) fn end_record(&mut self) -> io::Result<()> {
        if self.gathered.len() < GATHERED { Ok(()) } else { self.flush() }
    }
}

impl<W: Write> Write for WholeRecords<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.gathered.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let written = self.to.write_all(&self.gathered);
        self.gathered.clear();
        written.and_then(|()| self.to.flush())
    }
}

/// Returns the message for a write error; `None` if a reader closed the pipe, which is no error.
pub(super) fn problem(error: &io::Error) -> Option<String> {
    (error.kind() != io::ErrorKind::BrokenPipe).then(|| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that checks that writes end at ends of records.
    struct Ends(Vec<u8>);

    impl Write for Ends {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            assert_eq!(bytes.last(), Some(&b'\n'));
            self.0.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn no_record_is_written_in_parts() {
        let mut out = WholeRecords::new(Ends(Vec::new()));
        for _ in 0..3_000 {
            // Serialisers also write in small parts.
            out.write_all(&[b'a'; 90]).unwrap();
            out.write_all(b"\n").unwrap();
            out.end_record().unwrap();
        }
        assert!(out.to.0.len() > 3 * GATHERED, "{}", out.to.0.len());
        out.flush().unwrap();
        assert_eq!(out.to.0.len(), 3_000 * 91);
    }
}
