//! The files that calls read. A pipe is refused: a call reads a file several times, and Ctrl-C cannot end the wait for a writer.

use std::io;
use std::path::Path;

/// Reads a data file by its name.
pub(crate) fn named(file: &str) -> io::Result<String> {
    refuse_pipe(Path::new(file))?;
    plait_app::file::named(file)
}

/// Reads a file of settings.
pub(crate) fn settings(file: impl AsRef<Path>) -> io::Result<String> {
    refuse_pipe(file.as_ref())?;
    plait_app::file::settings(file)
}

#[cfg(unix)]
fn refuse_pipe(file: &Path) -> io::Result<()> {
    use std::os::unix::fs::FileTypeExt;
    let is_pipe = std::fs::metadata(file).is_ok_and(|it| it.file_type().is_fifo());
    let problem = "it is a pipe, and a call reads only files";
    if is_pipe { Err(io::Error::new(io::ErrorKind::InvalidInput, problem)) } else { Ok(()) }
}

#[cfg(not(unix))]
fn refuse_pipe(_: &Path) -> io::Result<()> {
    Ok(())
}
