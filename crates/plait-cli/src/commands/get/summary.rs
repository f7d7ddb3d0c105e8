//! The traffic of a connection by path, one line a path.

use crate::render;
use plait_base::Span;
use plait_live::{Happening, Origin, PathTraffic};

/// How a connection has ended.
#[derive(Clone, Default, Debug)]
pub(super) struct Ended {
    /// Bytes that the peer has acknowledged.
    pub(super) sent: u64,
    /// Time since the first packet.
    pub(super) age: Span,
    /// Traffic by path.
    pub(super) paths: Vec<PathTraffic>,
    /// Why it did not end in order, if so.
    pub(super) problem: Option<String>,
}

impl Ended {
    /// From the event that tells of it; `None` for any other event.
    pub(super) fn of(happening: &Happening) -> Option<Ended> {
        let Happening::Ended { sent, age, paths, problem, .. } = happening else { return None };
        let (paths, problem) = (paths.clone(), problem.clone());
        Some(Ended { sent: *sent, age: *age, paths, problem })
    }

    /// One line a path: its name, bytes of payload both ways, their share of all bytes, their mean rate
    /// over the time of the connection, and the RTT. `from` gives the names.
    pub(super) fn lines(&self, from: &[Origin]) -> Vec<String> {
        let bytes = |path: &PathTraffic| path.sent + path.received;
        let all: u64 = self.paths.iter().map(bytes).sum();
        let line = |path: &PathTraffic| {
            let own = from.iter().find(|origin| Some(origin.address) == path.address);
            let name = match own {
                Some(Origin { device: Some(device), .. }) => device.clone(),
                Some(Origin { address, .. }) => address.to_string(),
                None => "unknown".to_owned(),
            };
            let share = 100.0 * bytes(path) as f64 / all.max(1) as f64;
            let bits_per_ns = bytes(path) as f64 * 8.0 / self.age.as_nanos().max(1) as f64;
            let mut line = format!(
                "{name}: sent {}, received {}, {share:.1} % of all bytes, {:.2} Mbit/s",
                render::bytes(path.sent),
                render::bytes(path.received),
                bits_per_ns * 1e3,
            );
            if let Some(rtt) = path.rtt {
                line.push_str(&format!(", RTT {:.1} ms", rtt.as_nanos() as f64 / 1e6));
            }
            line
        };
        self.paths.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

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
        let ended = Ended { age: Span::from_secs(2), paths, ..Ended::default() };
        let origin = |last, device: Option<&str>| Origin {
            address: IpAddr::from([10, 0, 0, last]),
            device: device.map(str::to_owned),
        };
        // 3 MB of 4 MB in 2 s are 75 % and 12 Mbit/s.
        assert_eq!(
            ended.lines(&[origin(1, Some("wlan0")), origin(2, None)]),
            [
                "wlan0: sent 1.00 kB, received 3.00 MB, 75.0 % of all bytes, 12.00 Mbit/s, RTT 20.3 ms",
                "10.0.0.2: sent 0 B, received 1.00 MB, 25.0 % of all bytes, 4.00 Mbit/s",
            ]
        );
    }
}
