//! The socket of a program, as a relay sees it.

use std::io::{self, Read, Write};
use std::time::Duration;

/// A stream of bytes to a program and from it. Reading and writing do not wait: what has to wait fails
/// with [`io::ErrorKind::WouldBlock`].
pub trait Stream: Read + Write {
    /// Ends the data to the program.
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
