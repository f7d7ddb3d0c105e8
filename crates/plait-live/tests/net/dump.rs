//! Captures by tcpdump.

use super::run;
use plait_capture::CaptureExplanation;
use plait_live::Namespace;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// Returns whether this machine has tcpdump. If not, says so.
pub fn is_known() -> bool {
    let known = Command::new("tcpdump").arg("--version").output().is_ok();
    if !known {
        println!("skipped: captures of kernels: no tcpdump (Debian package tcpdump)");
    }
    known
}

/// A tcpdump.
pub struct Dump {
    child: Child,
    file: PathBuf,
}

impl Dump {
    /// Starts one for all devices of a namespace.
    pub fn start(space: &Namespace, file: &Path) -> io::Result<Dump> {
        let mut child = space.within(|| {
            Command::new("tcpdump")
                .args(["-i", "any", "-U", "-s", "160", "-B", "65536", "-w"])
                .arg(file)
                .arg("tcp")
                .stderr(Stdio::piped())
                .spawn()
        })??;
        let mut told = BufReader::new(child.stderr.take().unwrap()).lines();
        let ended = || io::Error::other("tcpdump ended");
        while !told.next().ok_or_else(ended)??.contains("listening") {}
        thread::spawn(move || told.for_each(drop));
        Ok(Dump { child, file: file.to_owned() })
    }

    /// Ends it, and returns its file.
    pub fn end(mut self) -> io::Result<PathBuf> {
        // Tcpdump reads packets from a buffer of the kernel, which it empties at least once a second.
        thread::sleep(Duration::from_millis(1_200));
        run(&format!("kill -INT {}", self.child.id()));
        self.child.wait()?;
        Ok(std::mem::take(&mut self.file))
    }
}

impl Drop for Dump {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Explains a capture.
pub fn explain(file: &Path) -> io::Result<CaptureExplanation> {
    let explained = plait_capture::explain(&[file.to_owned()], String::new(), &mut |_| true);
    explained.map_err(|(_, broken)| io::Error::other(broken.problem))
}
