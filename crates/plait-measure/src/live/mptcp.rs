//! Whether options of Multipath TCP arrive: a connection of this kernel, and the kernel's counters of handshakes.

use super::channel::Channel;
use super::message::{MAX_LINE_BYTES, Request};
use super::socket::From;
use socket2::Protocol;
use std::net::SocketAddr;
use std::time::Duration;

/// Counters of the handshakes of this namespace: SYNs with MP_CAPABLE, and SYN/ACKs that have it.
const COUNTERS: [&str; 2] = ["MPCapableSYNTX", "MPCapableSYNACKRX"];
/// Attempts, if other connections of the host disturb.
const MAX_ATTEMPTS: u32 = 3;

/// Returns whether the options arrive; the error says why that is unknown.
pub(super) fn survive(from: &From, to: SocketAddr) -> Result<bool, String> {
    for _ in 0..MAX_ATTEMPTS {
        let before = counters().ok_or("this kernel has no Multipath TCP")?;
        let refused = |error: std::io::Error| format!("no Multipath TCP connection: {error}");
        let stream = from.connect(to, Protocol::MPTCP).map_err(refused)?;
        if let Ok(mut channel) = Channel::new(stream, Duration::from_secs(2), MAX_LINE_BYTES) {
            let _ = channel.send(&Request::Options);
        }
        let after = counters().ok_or("this kernel has no Multipath TCP")?;
        // Another connection at the same time makes both answers possible.
        match (after[0].wrapping_sub(before[0]), after[1].wrapping_sub(before[1])) {
            (1, 1) => return Ok(true),
            (1, 0) => return Ok(false),
            _ => {}
        }
    }
    Err("other Multipath TCP connections of this host began at the same time".to_owned())
}

/// Returns the counters of the namespace of the calling thread.
fn counters() -> Option<[u64; 2]> {
    let text = std::fs::read_to_string("/proc/thread-self/net/netstat").ok()?;
    values(&text)
}

/// Reads the counters: a line of names is followed by a line of values.
fn values(text: &str) -> Option<[u64; 2]> {
    let mut lines = text.lines().filter(|line| line.starts_with("MPTcpExt:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let of = |name: &str| {
        let at = names.split_whitespace().position(|it| it == name)?;
        values.split_whitespace().nth(at)?.parse().ok()
    };
    Some([of(COUNTERS[0])?, of(COUNTERS[1])?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_their_names() {
        let text = "TcpExt: A B\nTcpExt: 1 2\nMPTcpExt: MPCapableSYNRX MPCapableSYNTX MPCapableSYNACKRX\n\
                    MPTcpExt: 3 4 5\n";
        assert_eq!(values(text), Some([4, 5]));
        assert_eq!(values("TcpExt: A\nTcpExt: 1\n"), None);
    }
}
