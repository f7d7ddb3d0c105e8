//! Numbers that some figures need and that are no measures of every run: they want every event, so
//! they are collected only where an experiment names them.

use plait_app::{AppEvent, Host};
use plait_base::{SubflowId, Time};
use plait_core::{Detail, Event};
use plait_sim::{Watch, Who};
use std::collections::BTreeMap;

/// Segments that a DATA_ACK covers at least to count as a jump.
const JUMP: u64 = 10;

/// Of a run: name, what it is.
pub(super) const OF_RUNS: &[(&str, &str)] = &[(
    "data_ack_jump_share",
    "bytes that were covered by DATA_ACKs of ten segments and more, over all",
)];
/// Of each path at the sender.
pub(super) const OF_PATHS: &[(&str, &str)] = &[
    ("cwnd_mean_seg", "congestion window in segments, mean over the acknowledgements"),
    (
        "cwnd_free_seg",
        "what of the window is not in flight when an acknowledgement comes, mean, in segments",
    ),
];

/// Whether a kept name is one of these.
pub(super) fn is_extra(name: &str) -> bool {
    let base = name.split('.').next().unwrap_or(name);
    OF_RUNS.iter().chain(OF_PATHS).any(|known| known.0 == base)
}

/// Collects them from the events of the sender.
pub(super) struct Collector {
    sender: Host,
    segment: u64,
    route: [Option<usize>; SubflowId::MAX],
    paths: Vec<Windows>,
    jumped: u64,
    covered: u64,
}

#[derive(Clone, Copy, Default)]
struct Windows {
    acks: u64,
    window: u128,
    free: u128,
}

impl Collector {
    /// A collector of a connection whose data `sender` sends in segments of so many bytes.
    pub(super) fn new(sender: Host, segment: u64, paths: usize) -> Collector {
        Collector {
            sender,
            segment: segment.max(1),
            route: [None; SubflowId::MAX],
            paths: vec![Windows::default(); paths],
            jumped: 0,
            covered: 0,
        }
    }

    /// What was collected, by name; `names` are those of the paths.
    pub(super) fn finish<'a>(
        &self,
        names: impl IntoIterator<Item = &'a str>,
    ) -> BTreeMap<String, f64> {
        let mut values = BTreeMap::new();
        if self.covered > 0 {
            let share = self.jumped as f64 / self.covered as f64;
            values.insert(OF_RUNS[0].0.to_owned(), share);
        }
        for (name, windows) in names.into_iter().zip(&self.paths) {
            if windows.acks > 0 {
                let mean = |sum: u128| sum as f64 / windows.acks as f64 / self.segment as f64;
                values.insert(format!("{}.{name}", OF_PATHS[0].0), mean(windows.window));
                values.insert(format!("{}.{name}", OF_PATHS[1].0), mean(windows.free));
            }
        }
        values
    }
}

impl Watch for Collector {
    fn detail(&self) -> Detail {
        Detail::Everything
    }

    fn on_core(&mut self, _: Time, who: Who, event: &Event) {
        if who.host != self.sender {
            return;
        }
        match *event {
            Event::SubflowUp { subflow, path, .. } => {
                if let Some(route) = self.route.get_mut(subflow.index()) {
                    *route = Some(path.index());
                }
            }
            Event::Acked { subflow, cwnd, inflight, .. } => {
                let path = self.route.get(subflow.index()).copied().flatten();
                if let Some(windows) = path.and_then(|path| self.paths.get_mut(path)) {
                    windows.acks += 1;
                    windows.window += u128::from(cwnd);
                    windows.free += u128::from(cwnd.saturating_sub(inflight));
                }
            }
            Event::DataAcked { old, new } => {
                let bytes = new.saturating_sub(old);
                self.covered += bytes;
                if bytes >= JUMP * self.segment {
                    self.jumped += bytes;
                }
            }
            _ => {}
        }
    }

    fn on_app(&mut self, _: Time, _: Who, _: &AppEvent) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use plait_base::Span;

    #[test]
    fn jumps_are_weighed_by_their_bytes_and_windows_by_acknowledgements() {
        let mut collector = Collector::new(Host::Server, 1000, 1);
        let who = Who { pair: 0, connection: 0, host: Host::Server };
        let acked = |cwnd, inflight| Event::Acked {
            subflow: SubflowId(0),
            bytes: 1,
            rtt: None,
            srtt: Span::ZERO,
            cwnd,
            inflight,
        };
        collector.route[0] = Some(0);
        for event in [
            acked(10_000, 10_000),
            acked(20_000, 14_000),
            Event::DataAcked { old: 0, new: 9_999 },
            Event::DataAcked { old: 9_999, new: 39_996 },
        ] {
            collector.on_core(Time::ZERO, who, &event);
        }
        let values = collector.finish(["wifi"]);
        assert_eq!(values["data_ack_jump_share"], 0.75);
        assert_eq!(values["cwnd_mean_seg.wifi"], 15.0);
        assert_eq!(values["cwnd_free_seg.wifi"], 3.0);
    }
}
