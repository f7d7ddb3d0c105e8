//! Ends the processes of namespaces after this process, however it ends.

use crate::Namespace;
use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// The namespaces are its file descriptors 1 and 2, so that `-ef` can compare them with those of processes. Its
/// input ends with this process. It sends TERM once, and KILL after two seconds.
const SCRIPT: &str = "
trap '' HUP INT QUIT TERM
while read -r line; do :; done
round=0
while :; do
    found=
    for process in /proc/[0-9]*; do
        if [ \"$process/ns/net\" -ef /proc/$$/fd/1 ] || [ \"$process/ns/net\" -ef /proc/$$/fd/2 ]; then
            found=\"$found ${process#/proc/}\"
        fi
    done
    [ -n \"$found\" ] || exit 0
    [ $round -ne 0 ] || kill -TERM $found
    [ $round -lt 40 ] || kill -KILL $found
    [ $round -lt 80 ] || exit 1
    round=$((round + 1))
    sleep 0.05
done
";

/// A process that ends all processes of two namespaces when this value is dropped, or when this process ends. A
/// process that has moved to another network namespace is not found.
#[derive(Debug)]
pub struct Cleaner {
    child: Child,
}

impl Cleaner {
    /// Starts the process. It runs in a process group of its own, so Ctrl-C does not reach it.
    ///
    /// # Errors
    /// If the process cannot be started. [`ErrorKind::NotFound`]: there is no program `sh`.
    pub fn start(first: &Namespace, second: &Namespace) -> io::Result<Cleaner> {
        let child = Command::new("sh")
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(first.to_stdio()?)
            .stderr(second.to_stdio()?)
            .process_group(0)
            .spawn()
            .map_err(|error| match error.kind() {
                ErrorKind::NotFound => {
                    io::Error::new(ErrorKind::NotFound, "there is no program `sh`")
                }
                _ => error,
            })?;
        Ok(Cleaner { child })
    }

    /// Begins to end the processes, and does not wait until they have ended.
    pub fn begin(&mut self) {
        drop(self.child.stdin.take());
    }
}

impl Drop for Cleaner {
    fn drop(&mut self) {
        self.begin();
        let _ = self.child.wait();
    }
}
