use crate::limits::Shortage;
use plait_base::ConnId;
use plait_core::FallbackCause;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// What happens, for logs: `Display` gives a line of `key=value`.
#[derive(Clone, PartialEq, Debug)]
pub enum Happening {
    /// A client has connected.
    Accepted {
        /// The connection.
        conn: ConnId,
        /// The client's address.
        from: Option<IpAddr>,
        /// Multipath TCP is spoken.
        multipath: bool,
        /// The port that was dialled.
        port: u16,
        /// The place of the rule ([`crate::Choice`]) that was for the client, if one was.
        rule: Option<usize>,
    },
    /// The device was set down, or up again. Its routes have gone, and this process may set none any more.
    Device {
        /// Its name.
        device: String,
        /// What had routes there.
        routed: Vec<IpAddr>,
        /// It is up.
        up: bool,
    },
    /// A connection that was dialled has not come about; its end is told too.
    Unreached {
        /// The connection.
        conn: ConnId,
        /// The other end.
        to: SocketAddr,
        /// The other end has refused it; otherwise it has not answered.
        refused: bool,
    },
    /// Connections were refused, since this was last told of.
    TurnedAway {
        /// How many.
        count: u64,
        /// What is short, if it still is.
        shortage: Option<Shortage>,
    },
    /// A connection has ended.
    Ended {
        /// The connection.
        conn: ConnId,
        /// Bytes that came from the peer and were handed on.
        received: u64,
        /// Bytes for the peer that were taken.
        sent: u64,
        /// Multipath TCP was spoken to the end.
        multipath: bool,
        /// Why not, where it was offered.
        fallback: Option<FallbackCause>,
        /// Why it did not end in order, if so.
        problem: Option<String>,
    },
}

impl fmt::Display for Happening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Happening::Accepted { conn, from, multipath, port, .. } => {
                write!(f, "event=accepted conn={}", conn.0)?;
                if let Some(from) = from {
                    write!(f, " from={from}")?;
                }
                write!(f, " port={port} multipath={multipath}")
            }
            Happening::Device { device, routed, up } => write_device(f, device, routed, *up),
            Happening::Unreached { conn, to, refused } => {
                write!(f, "event=unreached conn={} to={to} refused={refused}", conn.0)
            }
            Happening::TurnedAway { count, shortage } => {
                write!(f, "event=turned-away count={count}")?;
                shortage.map_or(Ok(()), |it| write!(f, " shortage={}", it.name()))
            }
            Happening::Ended { conn, received, sent, multipath, fallback, problem } => {
                write!(f, "event=ended conn={} received_bytes={received}", conn.0)?;
                write!(f, " sent_bytes={sent} multipath={multipath}")?;
                if let Some(cause) = fallback {
                    write!(f, " fallback={cause:?}")?;
                }
                match problem {
                    Some(problem) => write!(f, " problem={problem:?}"),
                    None => Ok(()),
                }
            }
        }
    }
}

fn write_device(
    f: &mut fmt::Formatter<'_>,
    device: &str,
    routed: &[IpAddr],
    up: bool,
) -> fmt::Result {
    let set_up = if up { String::new() } else { format!("ip link set {device} up; ") };
    let routes = routed.iter().map(|address| format!("ip route replace {address} dev {device}"));
    let routes = routes.collect::<Vec<_>>().join("; ");
    let event = if up { "device-up" } else { "device-down" };
    write!(f, "event={event} device={device} problem=\"no packets come: its routes are gone\"")?;
    write!(f, " remedy=\"{set_up}{routes}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_down_comes_with_its_remedy() {
        let routed = vec![[10, 77, 0, 1].into(), IpAddr::from([0xfd77, 0, 0, 0, 0, 0, 0, 1])];
        let told = |up| {
            let device = "plait0".to_owned();
            Happening::Device { device, routed: routed.clone(), up }.to_string()
        };
        let routes = "ip route replace 10.77.0.1 dev plait0; ip route replace fd77::1 dev plait0";
        let problem = "problem=\"no packets come: its routes are gone\"";
        assert_eq!(
            told(false),
            format!(
                "event=device-down device=plait0 {problem} remedy=\"ip link set plait0 up; {routes}\""
            )
        );
        assert_eq!(
            told(true),
            format!("event=device-up device=plait0 {problem} remedy=\"{routes}\"")
        );
    }
}
