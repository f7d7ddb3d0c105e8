//! `plait get HOST:PORT`: copies standard input to a connection and its answer to standard output. Each
//! direction ends separately.

use super::summary::Ended;
use crate::console::Console;
use crate::failure::Failure;
use plait_live::http::{self, Broken};
use std::io::{self, BufReader, ErrorKind, IsTerminal, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::thread;

/// Bytes of standard input read at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// A conversation whose answer has ended. Standard input may still be open.
pub(super) struct Conversation {
    /// Result of writing the answer.
    answer: Result<(), Broken>,
    /// Receives the byte count of standard input at its end, or the read error.
    input: Receiver<io::Result<u64>>,
}

/// Sends standard input to `stream` on its own thread. Copies the answer to the writer from `open`, which may
/// be standard output, until the answer ends. If standard input cannot be read, it writes to `stopper`, which
/// ends the connection.
///
/// # Errors
///
/// If the process has no file descriptor left.
pub(super) fn converse(
    stream: &UnixStream,
    mut stopper: UnixStream,
    (open, to_stdout): (impl FnOnce() -> io::Result<Box<dyn Write>>, bool),
    console: Console,
) -> io::Result<Conversation> {
    let mut writer = stream.try_clone()?;
    let (ended, input) = mpsc::channel();
    thread::spawn(move || {
        let Some(outcome) = feed(&mut io::stdin().lock(), &mut writer) else { return };
        let failed = outcome.is_err();
        // The main thread may have ended already.
        let _ = ended.send(outcome);
        if failed {
            let _ = stopper.write_all(&[0]);
        } else {
            let _ = writer.shutdown(Shutdown::Write);
        }
    });
    let answer = open().map_err(Broken::Sink).and_then(|mut out| {
        http::copy(&mut BufReader::new(stream), &mut out, u64::MAX)?;
        out.flush().map_err(Broken::Sink)
    });
    if answer.is_ok() && to_stdout {
        // The reader of the answer gets its end now, as with a half-closed socket.
        plait_live::close_stdout()?;
    }
    if answer.is_ok() && io::stdin().is_terminal() {
        console.remark(1, "the answer has ended; end standard input with Ctrl-D");
    }
    Ok(Conversation { answer, input })
}

/// Copies `input` to `writer` until it ends. Returns the byte count or the read error, or `None` if the
/// connection ended first.
fn feed(input: &mut impl Read, writer: &mut impl Write) -> Option<io::Result<u64>> {
    let (mut piece, mut total) = (vec![0; PIECE_BYTES], 0);
    loop {
        match input.read(&mut piece) {
            Ok(0) => return Some(Ok(total)),
            Ok(count) => {
                writer.write_all(&piece[..count]).ok()?;
                total += count as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Some(Err(error)),
        }
    }
}

impl Conversation {
    /// Returns true if the connection must continue until standard input ends.
    pub(super) fn goes_on(&self) -> bool {
        self.answer.is_ok()
    }

    /// Returns the result of the conversation after the connection has ended. On success, the peer has
    /// acknowledged all of standard input, and the complete answer has been written.
    pub(super) fn judge(
        self,
        authority: &str,
        ended: &Ended,
        output: Option<&Path>,
    ) -> Result<(), Failure> {
        let input = self.input.try_recv().ok();
        if let Some(Err(error)) = &input {
            let problem = plait_lab::unreadable(error);
            return Err(Failure::Usage(format!("stdin: {problem}; the connection was reset")));
        }
        let total = input.and_then(Result::ok);
        let acked = ended.sent;
        let delivered = total == Some(acked);
        let progress = match total {
            _ if delivered => None,
            Some(total) => Some(format!("{acked} of {total} bytes of stdin were acknowledged")),
            None => Some(format!("stdin had not ended; {acked} bytes of it were acknowledged")),
        };
        let failed = |words: &[Option<&str>]| {
            let words: Vec<&str> = words.iter().flatten().copied().collect();
            Err(Failure::Peer(format!("{authority}: {}", words.join("; "))))
        };
        match self.answer {
            // A closed pipe (`| head`) is no error if all of stdin was delivered.
            Err(Broken::Sink(error)) if error.kind() == ErrorKind::BrokenPipe => match delivered {
                true => Ok(()),
                false => failed(&[Some("stdout is closed"), progress.as_deref()]),
            },
            Err(Broken::Sink(error)) => Err(match output {
                Some(file) => Failure::unwritable("--output", file, &error),
                None => Failure::stdout(&error),
            }),
            // Copying returns no other error.
            Ok(()) | Err(_) => {
                let problem = ended.problem.as_deref();
                match problem {
                    None if delivered => Ok(()),
                    _ => {
                        let left = output.filter(|file| problem.is_some() && file.is_file());
                        let left = left.map(|file| format!("`{}` is incomplete", file.display()));
                        failed(&[problem, progress.as_deref(), left.as_deref()])
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(sent: u64, problem: Option<&str>) -> Ended {
        Ended { sent, problem: problem.map(str::to_owned), ..Ended::default() }
    }

    fn judged(
        answer: Result<(), Broken>,
        input: Option<io::Result<u64>>,
        ended: &Ended,
    ) -> Result<(), Failure> {
        let (sender, receiver) = mpsc::channel();
        if let Some(outcome) = input {
            sender.send(outcome).unwrap();
        }
        Conversation { answer, input: receiver }.judge("a:1", ended, None)
    }

    #[test]
    fn only_an_acknowledged_input_and_a_complete_answer_are_success() {
        assert!(judged(Ok(()), Some(Ok(7)), &ended(7, None)).is_ok());
        for (input, sent, problem, words) in [
            (Some(Ok(7)), 6, None, "a:1: 6 of 7 bytes of stdin were acknowledged"),
            (None, 6, None, "a:1: stdin had not ended; 6 bytes of it were acknowledged"),
            (Some(Ok(7)), 7, Some("reset"), "a:1: reset"),
            (None, 2, Some("reset"), "a:1: reset; stdin had not ended; 2 bytes"),
        ] {
            let failure = judged(Ok(()), input, &ended(sent, problem)).unwrap_err();
            assert_eq!(failure.code(), 4);
            assert!(failure.to_string().starts_with(words), "{failure}");
        }
    }

    #[test]
    fn a_closed_stdout_ends_quietly_once_the_input_is_acknowledged() {
        let broken = || Err(Broken::Sink(ErrorKind::BrokenPipe.into()));
        assert!(judged(broken(), Some(Ok(7)), &ended(7, Some("stopped"))).is_ok());
        let failure = judged(broken(), Some(Ok(7)), &ended(3, Some("stopped"))).unwrap_err();
        assert_eq!(failure.code(), 4);
        assert_eq!(
            failure.to_string(),
            "a:1: stdout is closed; 3 of 7 bytes of stdin were acknowledged"
        );
    }

    #[test]
    fn an_input_that_cannot_be_read_is_told() {
        let input = Some(Err(ErrorKind::IsADirectory.into()));
        let failure = judged(Ok(()), input, &ended(0, Some("stopped"))).unwrap_err();
        assert_eq!(failure.code(), 2);
        assert!(failure.to_string().starts_with("stdin: "), "{failure}");
    }
}
