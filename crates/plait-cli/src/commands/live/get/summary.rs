//! Traffic of a connection, one line a path.

use plait_base::Span;
use plait_core::Quota;
use plait_live::{ExtraBytes, LogEvent, Origin, PathTraffic};
use plait_report::render;
use schemars::JsonSchema;
use serde::Serialize;
use std::net::IpAddr;

/// Output of `plait get --json`.
#[derive(Serialize, JsonSchema, Debug)]
#[schemars(title = "Document")]
pub(crate) struct GetDocument {
    /// Always `plait.get/1`.
    schema: &'static str,
    /// The target as given.
    target: String,
    /// True if the connection used Multipath TCP until its end.
    multipath: bool,
    /// Time from the first packet to the end, in milliseconds.
    duration_ms: f64,
    /// Bytes that the server has acknowledged.
    sent_bytes: u64,
    /// Received bytes, with the head of an HTTP response.
    received_bytes: u64,
    /// Payload bytes that this end sent on a path after another path had carried them: copies, and data of a
    /// path that failed. TCP retransmissions on a path are not counted.
    extra_sent_bytes: u64,
    /// Payload bytes received beyond the data: those of copies, and of data of a path that failed.
    extra_received_bytes: u64,
    /// The paths. The connection began on the first. Paths with a quota that it has not used come last.
    paths: Vec<Path>,
}

/// The traffic of a path.
#[derive(Serialize, JsonSchema, Debug)]
struct Path {
    /// The device of `--from`; its address if no device is given.
    name: String,
    /// The local address of its packets.
    address: Option<IpAddr>,
    /// Payload bytes sent on it, without retransmissions.
    sent_bytes: u64,
    /// Payload bytes received on it.
    received_bytes: u64,
    /// Share in the payload bytes of all paths, sent and received, with extra bytes; from 0 to 1.
    share: f64,
    /// Payload bits per second in both directions, over the duration of the connection.
    rate_bps: u64,
    /// Smoothed round-trip time; absent if none was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt_us: Option<f64>,
    /// Retransmitted segments.
    retransmissions: u64,
    /// Payload bytes that the quota of the path leaves; absent without a quota.
    #[serde(skip_serializing_if = "Option::is_none")]
    quota_left_bytes: Option<u64>,
    /// Payload bytes sent beyond the quota of the path, because all other paths were down or none had joined yet;
    /// absent without a quota.
    #[serde(skip_serializing_if = "Option::is_none")]
    quota_over_bytes: Option<u64>,
}

/// How a connection ended.
#[derive(Clone, Default, Debug)]
pub(super) struct Ended {
    /// Bytes that the peer has acknowledged.
    pub(super) sent: u64,
    /// Bytes delivered to the reader.
    pub(super) received: u64,
    /// True if the connection used Multipath TCP until its end.
    pub(super) multipath: bool,
    /// Time since the first packet.
    pub(super) age: Span,
    /// Traffic by path.
    pub(super) paths: Vec<PathTraffic>,
    /// What the paths have carried beyond the data.
    pub(super) extra: ExtraBytes,
    /// Error that ended the connection, if any.
    pub(super) problem: Option<String>,
}

impl Ended {
    /// Builds the value from the event of an end; `None` for any other event.
    pub(super) fn of(happening: &LogEvent) -> Option<Ended> {
        match happening.clone() {
            LogEvent::Ended { sent, received, multipath, age, paths, extra, problem, .. } => {
                Some(Ended { sent, received, multipath, age, paths, extra, problem })
            }
            _ => None,
        }
    }

    /// Returns the document of `--json`. `from` gives the names of paths.
    pub(super) fn document(&self, target: &str, from: &[Origin]) -> GetDocument {
        GetDocument {
            schema: "plait.get/1",
            target: target.to_owned(),
            multipath: self.multipath,
            duration_ms: self.age.as_nanos() as f64 / 1e6,
            sent_bytes: self.sent,
            received_bytes: self.received,
            extra_sent_bytes: self.extra.sent,
            extra_received_bytes: self.extra.received,
            paths: self.paths(from),
        }
    }

    /// Returns the lines of all paths, and one about extra bytes if there may be any.
    pub(super) fn lines(&self, from: &[Origin]) -> Vec<String> {
        let mut lines = self.lines_of_paths(from);
        if self.paths.len() > 1 {
            let ExtraBytes { sent, received } = self.extra;
            let [sent, received] = [sent, received].map(render::bytes);
            lines.push(format!(
                "extra: sent {sent}, received {received} (copies, and data that a second path repeated)"
            ));
        }
        lines
    }

    /// Returns one line a path, and one for each path with a quota that was not used: name, payload bytes in both
    /// directions, share of all bytes, mean rate over the connection, and RTT. `from` gives the names.
    fn lines_of_paths(&self, from: &[Origin]) -> Vec<String> {
        let line = |path: &Path| {
            let mut line = format!(
                "{}: sent {}, received {}, {:.1} % of all bytes, {:.2} Mbit/s",
                path.name,
                render::bytes(path.sent_bytes),
                render::bytes(path.received_bytes),
                100.0 * path.share,
                path.rate_bps as f64 / 1e6,
            );
            if let Some(rtt_us) = path.rtt_us {
                line.push_str(&format!(", RTT {:.1} ms", rtt_us / 1e3));
            }
            if let (Some(left), Some(over)) = (path.quota_left_bytes, path.quota_over_bytes) {
                line.push_str(&format!(", {}", rest_of_quota(left, over)));
            }
            line
        };
        self.paths(from).iter().map(line).collect()
    }

    fn paths(&self, from: &[Origin]) -> Vec<Path> {
        let bytes = |path: &PathTraffic| path.sent + path.received;
        let all: u64 = self.paths.iter().map(bytes).sum();
        let is_missing = |origin: &&Origin| {
            let known = |path: &PathTraffic| path.address == Some(origin.address);
            origin.quota.is_some() && !self.paths.iter().any(known)
        };
        // A path with a quota is listed even if the connection has not used it.
        let unused = from.iter().filter(is_missing).map(|origin| PathTraffic {
            address: Some(origin.address),
            sent: 0,
            received: 0,
            retransmissions: 0,
            rtt: None,
        });
        let path = |path: PathTraffic| {
            let own = from.iter().find(|origin| Some(origin.address) == path.address);
            let name = match own {
                Some(Origin { device: Some(device), .. }) => device.clone(),
                Some(Origin { address, .. }) => address.to_string(),
                None => "unknown".to_owned(),
            };
            let quota = own.and_then(|own| own.quota.as_ref());
            let bits = bytes(&path) as f64 * 8e9;
            Path {
                name,
                address: path.address,
                sent_bytes: path.sent,
                received_bytes: path.received,
                share: bytes(&path) as f64 / all.max(1) as f64,
                rate_bps: (bits / self.age.as_nanos().max(1) as f64).round() as u64,
                rtt_us: path.rtt.map(|rtt| rtt.as_nanos() as f64 / 1e3),
                retransmissions: path.retransmissions,
                quota_left_bytes: quota.map(Quota::left),
                quota_over_bytes: quota.map(Quota::over),
            }
        };
        self.paths.iter().copied().chain(unused).map(path).collect()
    }
}

/// Returns the words for the bytes that a quota leaves, or for those beyond it.
fn rest_of_quota(left: u64, over: u64) -> String {
    match over {
        0 => format!("{} left of the quota", render::bytes(left)),
        _ => format!("{} beyond the quota", render::bytes(over)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    #[test]
    fn bytes_beyond_a_quota_are_told() {
        assert_eq!(rest_of_quota(0, 0), "0 B left of the quota");
        assert_eq!(rest_of_quota(0, 1_340_000), "1.34 MB beyond the quota");
    }

    #[test]
    fn a_path_has_a_line_with_its_share_and_rate() {
        let traffic = |last, sent, received, rtt| PathTraffic {
            address: Some(IpAddr::from([10, 0, 0, last])),
            sent,
            received,
            retransmissions: 0,
            rtt,
        };
        let paths = vec![
            traffic(1, 1_000, 2_999_000, Some(Span::from_micros(20_340))),
            traffic(2, 0, 1_000_000, None),
        ];
        let (age, extra) = (Span::from_secs(2), ExtraBytes { sent: 700, received: 0 });
        let ended = Ended { age, paths, extra, ..Ended::default() };
        let origin = |last, device: Option<&str>| Origin {
            address: IpAddr::from([10, 0, 0, last]),
            device: device.map(str::to_owned),
            cost: 0,
            quota: device.map(|_| Quota::new(2_500_000)),
        };
        // 3 MB of 4 MB in 2 s are 75 % and 12 Mbit/s.
        assert_eq!(
            ended.lines(&[origin(1, Some("wlan0")), origin(2, None)]),
            [
                "wlan0: sent 1.00 kB, received 3.00 MB, 75.0 % of all bytes, 12.00 Mbit/s, RTT 20.3 ms, \
                 2.50 MB left of the quota",
                "10.0.0.2: sent 0 B, received 1.00 MB, 25.0 % of all bytes, 4.00 Mbit/s",
                "extra: sent 700 B, received 0 B (copies, and data that a second path repeated)",
            ]
        );
        // A connection that was refused has used no path.
        assert_eq!(
            Ended::default().lines(&[origin(1, Some("wlan0")), origin(2, None)]),
            ["wlan0: sent 0 B, received 0 B, 0.0 % of all bytes, 0.00 Mbit/s, \
              2.50 MB left of the quota"]
        );
    }
}
