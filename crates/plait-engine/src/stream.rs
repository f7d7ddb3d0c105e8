//! The socket of a program, as a relay uses it.

use std::io::{self, Read, Write};
use std::time::Duration;

/// A byte stream to and from a program. Reads and writes do not block: they fail with
/// [`io::ErrorKind::WouldBlock`].
pub trait Stream: Read + Write {
    /// Ends the data to the program. A stream that is closed without this call is reset, so that the program does not
    /// take a part of the data for the whole.
    ///
    /// # Errors
    /// Returns [`io::ErrorKind::NotConnected`] if the program is gone.
    fn end(&mut self) -> io::Result<()>;

    /// Returns and clears the error that the stream failed with, if there is one.
    ///
    /// # Errors
    /// Returns an error if the state of the stream cannot be read.
    fn failure(&mut self) -> io::Result<Option<io::Error>>;

    /// Enables keep-alives, which check whether the program still runs. The first one is sent after
    /// `time`.
    fn ask_after(&self, time: Duration);
}
