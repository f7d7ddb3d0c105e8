use std::fs::OpenOptions;
use std::io;

/// Closes standard output, so that the reader of a pipe sees its end. Later output goes to `/dev/null`.
///
/// # Errors
/// If there is no `/dev/null`, or the process has no file descriptor left.
pub fn close_stdout() -> io::Result<()> {
    let null = OpenOptions::new().write(true).open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdout(&null)?)
}
