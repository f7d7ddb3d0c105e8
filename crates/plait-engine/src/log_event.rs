use crate::limits::Shortage;
use crate::request::Destination;
use plait_base::{ConnId, PathId, Span};
use plait_core::{ConnectionStats, FallbackCause, Overflows, SubflowStats, UniqueBytes};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// An event for logs. `Display` writes a line of `key=value`.
#[derive(Clone, PartialEq, Debug)]
pub enum LogEvent {
    /// A client has connected.
    Accepted {
        /// The connection.
        conn: ConnId,
        /// The client's address.
        from: Option<IpAddr>,
        /// The connection uses Multipath TCP.
        multipath: bool,
        /// The dialled port.
        port: u16,
        /// Index of the rule ([`crate::Choice`]) that applied to the client, if one did.
        rule: Option<usize>,
    },
    /// A client has named the destination of a connection.
    Asked {
        /// The connection.
        conn: ConnId,
        /// The program behind the client.
        by: SocketAddr,
        /// The destination.
        to: Destination,
    },
    /// The device was set down or up. Its routes are gone, and this process may no longer set
    /// routes.
    Device {
        /// Its name.
        device: String,
        /// Addresses with routes to the device.
        routed: Vec<IpAddr>,
        /// The device is up.
        up: bool,
    },
    /// A dialled connection was not established. An event for its end follows.
    Unreached {
        /// The connection.
        conn: ConnId,
        /// The other end.
        to: SocketAddr,
        /// The other end refused it. If false, it did not answer.
        refused: bool,
    },
    /// Connections were refused since the last such event.
    TurnedAway {
        /// Number of connections.
        count: u64,
        /// The shortage, if it still exists.
        shortage: Option<Shortage>,
    },
    /// Tables of the endpoint were full or segments were malformed since the last such event.
    Overflowed(Overflows),
    /// A connection has ended.
    Ended {
        /// The connection.
        conn: ConnId,
        /// Bytes received from the peer and written to the socket.
        received: u64,
        /// Bytes acknowledged by the peer.
        sent: u64,
        /// Bytes read from this end's socket but not acknowledged by the peer.
        unacked: u64,
        /// Time from its first packet to its end.
        age: Span,
        /// Traffic of each path. The path of the first subflow comes first.
        paths: Vec<PathTraffic>,
        /// What the paths have carried beyond the data.
        extra: ExtraBytes,
        /// The connection used Multipath TCP until its end.
        multipath: bool,
        /// Why it did not, if Multipath TCP was offered.
        fallback: Option<FallbackCause>,
        /// The problem that ended it; `None` if both ends closed it in order.
        problem: Option<String>,
    },
}

/// Traffic of one path of a connection that has ended.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PathTraffic {
    /// The client's address on the path.
    pub address: Option<IpAddr>,
    /// Payload bytes that this end sent on it, without retransmissions.
    pub sent: u64,
    /// Payload bytes that arrived on it.
    pub received: u64,
    /// Segments retransmitted on it.
    pub retransmissions: u64,
    /// Smoothed round-trip time, if one was measured.
    pub rtt: Option<Span>,
}

/// Payload bytes that the paths of a connection have carried beyond its data: copies, and data of failed
/// paths. TCP retransmissions on a path are not counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ExtraBytes {
    /// Bytes that this end sent on a path after another path had carried them.
    pub sent: u64,
    /// Bytes that arrived beyond the data that arrived in order.
    pub received: u64,
}

impl ExtraBytes {
    /// Returns the bytes of `paths` beyond the data of the connection.
    pub(crate) fn of(stats: Option<&ConnectionStats>, paths: &[PathTraffic]) -> ExtraBytes {
        let unique = stats.map_or(UniqueBytes::default(), |stats| stats.unique);
        let beyond = |once: u64, of: fn(&PathTraffic) -> u64| {
            paths.iter().map(of).sum::<u64>().saturating_sub(once)
        };
        ExtraBytes {
            sent: beyond(unique.sent, |path| path.sent),
            received: beyond(unique.arrived, |path| path.received),
        }
    }
}

impl PathTraffic {
    /// Returns the traffic of a connection by client address, in the order of its subflows.
    /// `client` maps a path to the client's address.
    pub(crate) fn of_subflows(
        subflows: &[SubflowStats],
        client: impl Fn(PathId) -> Option<IpAddr>,
    ) -> Vec<PathTraffic> {
        let mut paths: Vec<PathTraffic> = Vec::new();
        for SubflowStats { path, carried, srtt, .. } in subflows {
            let address = client(*path);
            let at = paths.iter().position(|known| known.address == address);
            let at = at.unwrap_or_else(|| {
                let none =
                    PathTraffic { address, sent: 0, received: 0, retransmissions: 0, rtt: None };
                paths.push(none);
                paths.len() - 1
            });
            let traffic = &mut paths[at];
            traffic.sent += carried.sent;
            traffic.received += carried.received;
            traffic.retransmissions += carried.counters.retransmissions;
            traffic.rtt = traffic.rtt.or(*srtt);
        }
        paths
    }
}

impl fmt::Display for PathTraffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(address) => write!(f, "{address}")?,
            None => f.write_str("unknown")?,
        }
        write!(f, " sent_bytes={} received_bytes={}", self.sent, self.received)?;
        write!(f, " retransmissions={}", self.retransmissions)?;
        match self.rtt {
            Some(rtt) => write!(f, " rtt_ms={:.1}", rtt.as_nanos() as f64 / 1e6),
            None => Ok(()),
        }
    }
}

impl fmt::Display for LogEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogEvent::Accepted { conn, from, multipath, port, .. } => {
                write!(f, "event=accepted conn={}", conn.0)?;
                if let Some(from) = from {
                    write!(f, " from={from}")?;
                }
                write!(f, " port={port} multipath={multipath}")
            }
            LogEvent::Asked { conn, by, to } => {
                write!(f, "event=asked conn={} by={by} to={to}", conn.0)
            }
            LogEvent::Device { device, routed, up } => write_device(f, device, routed, *up),
            LogEvent::Unreached { conn, to, refused } => {
                write!(f, "event=unreached conn={} to={to} refused={refused}", conn.0)
            }
            LogEvent::Overflowed(overflows) => {
                f.write_str("event=overflow")?;
                let mut counts = overflows.counts().into_iter().filter(|(_, count)| *count > 0);
                counts.try_for_each(|(name, count)| write!(f, " {name}={count}"))
            }
            LogEvent::TurnedAway { count, shortage } => {
                write!(f, "event=turned-away count={count}")?;
                shortage.map_or(Ok(()), |it| write!(f, " shortage={}", it.name()))
            }
            LogEvent::Ended {
                conn,
                received,
                sent,
                unacked,
                paths,
                multipath,
                fallback,
                problem,
                ..
            } => {
                write!(f, "event=ended conn={} received_bytes={received}", conn.0)?;
                write!(f, " sent_bytes={sent}")?;
                if *unacked > 0 {
                    write!(f, " unacked_bytes={unacked}")?;
                }
                write!(f, " multipath={multipath}")?;
                if let Some(cause) = fallback {
                    write!(f, " fallback={}", cause.name())?;
                }
                if !paths.is_empty() {
                    let paths: Vec<String> = paths.iter().map(ToString::to_string).collect();
                    write!(f, " paths=\"{}\"", paths.join("; "))?;
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
    write!(f, "event={event} device={device} problem=\"no packets arrive: its routes are gone\"")?;
    write!(f, " remedy=\"{set_up}{routes}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fallback_has_the_word_of_the_events() {
        let ended = |cause| LogEvent::Ended {
            conn: ConnId(1),
            received: 77,
            sent: 9,
            unacked: 0,
            age: Span::ZERO,
            paths: Vec::new(),
            extra: ExtraBytes::default(),
            multipath: false,
            fallback: Some(cause),
            problem: None,
        };
        let start = "event=ended conn=1 received_bytes=77 sent_bytes=9 multipath=false fallback=";
        for (cause, word) in [
            (FallbackCause::Syn, "syn"),
            (FallbackCause::ThirdAck, "ack"),
            (FallbackCause::FirstData, "first-data"),
        ] {
            assert_eq!(ended(cause).to_string(), format!("{start}{word}"));
        }
    }

    #[test]
    fn a_device_that_is_down_comes_with_its_remedy() {
        let routed = vec![[10, 77, 0, 1].into(), IpAddr::from([0xfd77, 0, 0, 0, 0, 0, 0, 1])];
        let told = |up| {
            let device = "plait0".to_owned();
            LogEvent::Device { device, routed: routed.clone(), up }.to_string()
        };
        let routes = "ip route replace 10.77.0.1 dev plait0; ip route replace fd77::1 dev plait0";
        let problem = "problem=\"no packets arrive: its routes are gone\"";
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
