//! The programs of `--server`.

use crate::console::Console;
use crate::failure::Failure;
use plait_live::emulate::Network;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// Time between two looks at a server, and their number.
const STEP: Duration = Duration::from_millis(10);
const LOOKS: u32 = 500;
/// State of a listening socket in `/proc/net/tcp`.
const LISTENS: &str = "0A";

/// Starts a server, and waits until it has opened a socket or a device, or until the time is over.
#[expect(
    clippy::disallowed_methods,
    reason = "nothing reports that a socket of another process listens"
)]
pub(super) fn start(
    network: &Network,
    text: &str,
    variables: &[(&'static str, String)],
    console: Console,
) -> Result<(), Failure> {
    let internal = |error: io::Error| Failure::Internal(error.to_string());
    let before = opened(network).map_err(internal)?;
    let mut child = spawn(network, text, variables).map_err(internal)?;
    for _ in 0..LOOKS {
        if opened(network).map_err(internal)? > before {
            return Ok(());
        }
        if let Some(status) = child.try_wait().map_err(internal)? {
            let remedy = "give a command that keeps running, such as 'python3 -m http.server 80'";
            let text = text.escape_debug();
            return Err(Failure::Peer(format!(
                "--server: `{text}`: it ended before it was ready: {status}\n  {remedy}"
            )));
        }
        thread::sleep(STEP);
    }
    let text = text.escape_debug();
    console.remark(1, &format!("plait: --server: `{text}`: it has opened no socket in 5 s"));
    Ok(())
}

fn spawn(network: &Network, text: &str, variables: &[(&'static str, String)]) -> io::Result<Child> {
    // Stdout belongs to the command.
    let output = io::stderr().as_fd().try_clone_to_owned()?;
    let mut command = Command::new("sh");
    command.args(["-c", text]).stdin(Stdio::null()).stdout(output);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    network.server.spawn(&mut command)
}

/// Returns the number of listening TCP sockets, UDP sockets and devices at the server's side.
fn opened(network: &Network) -> io::Result<usize> {
    network.server.within(|| {
        let lines = |file: &str| -> io::Result<Vec<String>> {
            let text = fs::read_to_string(format!("/proc/thread-self/net/{file}"));
            let text = match text {
                Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
                text => text?,
            };
            Ok(text.lines().skip(1).map(str::to_owned).collect())
        };
        let mut count = lines("dev")?.len();
        for file in ["tcp", "tcp6", "udp", "udp6"] {
            let open = |line: &&String| {
                file.starts_with("udp") || line.split_whitespace().nth(3) == Some(LISTENS)
            };
            count += lines(file)?.iter().filter(open).count();
        }
        Ok(count)
    })?
}
