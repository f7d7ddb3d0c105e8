//! Extra measures that some figures need and ordinary runs do not collect. They need every event, so they are
//! collected only if an experiment names one.

mod delays;
mod series;

use self::delays::{Delivery, Messages, Objects};
use self::series::{Fetches, Gaps};
use crate::report::COMPETING;
use plait_app::measure::Histogram;
use plait_app::{AppEvent, MEASURES, Role};
use plait_base::{PathId, SubflowId, Time};
use plait_core::{Config, Detail, Event};
use plait_sim::{Direction, Hop, Watch, Who};
use plait_wire::Segment;
use std::collections::BTreeMap;

/// Fewest segments that a DATA_ACK covers to count as a jump.
const JUMP: u64 = 10;

/// A measure that only experiments have.
pub(super) struct Extra {
    pub(super) name: &'static str,
    /// Unit, empty for shares.
    pub(super) unit: &'static str,
    /// Length in seconds of the part of the time that a value is for; 0 if it is for the whole run.
    pub(super) part_s: u64,
}

impl Extra {
    const fn whole(name: &'static str, unit: &'static str) -> Extra {
        Extra { name, unit, part_s: 0 }
    }

    const fn by_parts(name: &'static str, unit: &'static str, part_s: u64) -> Extra {
        Extra { name, unit, part_s }
    }
}

/// Measures of a run.
pub(super) const OF_RUNS: &[Extra] = &[
    // Share of the bytes that DATA_ACKs of ten segments or more cover.
    Extra::whole("data_ack_jump_share", ""),
    // For a sender that always writes: from the entry of a byte into the send buffer until it is readable in
    // order, mean over the bytes.
    Extra::whole("delivery_delay_ms", "ms"),
    // 40th percentile of ooo_delay_ms over the segments.
    Extra::whole("ooo_delay_p40_ms", "ms"),
    // 80th percentile of ooo_delay_ms over the segments.
    Extra::whole("ooo_delay_p80_ms", "ms"),
    // 90th percentile of object_time_ms over the objects.
    Extra::whole("object_time_p90_ms", "ms"),
    // 99th percentile of object_time_ms over the objects.
    Extra::whole("object_time_p99_ms", "ms"),
    // Largest message_delay_ms over the messages that are due after data arrived on every path.
    Extra::whole("message_delay_settled_max_ms", "ms"),
];
/// Measures of each path at the sender.
pub(super) const OF_PATHS: &[Extra] = &[
    // Congestion window in segments, mean over the acknowledgements.
    Extra::whole("cwnd_mean_seg", "segments"),
    // Window that is not in flight when an acknowledgement arrives, mean, in segments.
    Extra::whole("cwnd_free_seg", "segments"),
    // 2nd percentile of the RTT samples.
    Extra::whole("rtt_p2_ms", "ms"),
    // 15th percentile of the RTT samples.
    Extra::whole("rtt_p15_ms", "ms"),
    // 85th percentile of the RTT samples.
    Extra::whole("rtt_p85_ms", "ms"),
    // 90th percentile of the RTT samples.
    Extra::whole("rtt_p90_ms", "ms"),
    // Segments with data that the path dropped, over those sent.
    Extra::whole("dropped_share", ""),
];
/// Measures of a part of the time. The last part of the full name is the start of the part.
pub(super) const OF_TIMES: &[Extra] = &[
    // Gap of a scheduler that has one (STMS), mean over the decisions, in segments.
    Extra::by_parts("gap_seg", "segments", 1),
    // The largest such gap.
    Extra::by_parts("gap_max_seg", "segments", 1),
    // Bytes that a player read, over the time in which a requested chunk was incomplete.
    Extra::by_parts("fetch_mbps", "Mbit/s", 20),
];
/// The percentiles of RTTs, in the order of [`OF_PATHS`].
const RTTS: [u64; 4] = [2, 15, 85, 90];

fn extras() -> impl Iterator<Item = &'static Extra> {
    OF_RUNS.iter().chain(OF_PATHS).chain(OF_TIMES)
}

/// Returns true if the name is an extra measure.
pub(super) fn is_extra(name: &str) -> bool {
    let base = name.split('.').next().unwrap_or(name);
    extras().any(|known| known.name == base)
}

/// Returns the unit of a measure that an experiment may name, without the path or the part of the time behind it.
/// It is empty for shares and counts, and for unknown names.
#[must_use]
pub fn unit_of_measure(name: &str) -> &'static str {
    let known = MEASURES.iter().map(|entry| (entry.name, entry.unit));
    let extra = extras().map(|known| (known.name, known.unit));
    let mut all = known.chain(extra).chain([(COMPETING, "Mbit/s")]);
    all.find(|known| known.0 == name).map_or("", |known| known.1)
}

/// Returns the workloads whose runs have this measure; `None` if all have it.
pub(super) fn workloads(name: &str) -> Option<&'static [&'static str]> {
    match name {
        "object_time_p90_ms" | "object_time_p99_ms" => Some(&["web"]),
        "message_delay_settled_max_ms" => Some(&["stream", "blocks"]),
        "fetch_mbps" => Some(&["video"]),
        _ => None,
    }
}

/// Returns true if `text` is the start of a part of `seconds` seconds: `40s`.
pub(super) fn begins_part(text: &str, seconds: u64) -> bool {
    let number = text.strip_suffix('s').filter(|it| *it == "0" || !it.starts_with('0'));
    number.and_then(|it| it.parse::<u64>().ok()).is_some_and(|it| it.is_multiple_of(seconds))
}

/// Collects the extra measures from the events of a run.
pub(super) struct Collector {
    sender: Role,
    segment: u64,
    route: [Option<usize>; SubflowId::MAX],
    paths: Vec<OfPath>,
    jumped: u64,
    covered: u64,
    delivery: Delivery,
    out_of_order: Histogram,
    objects: Objects,
    messages: Messages,
    gaps: Gaps,
    fetches: Fetches,
}

#[derive(Clone, Default)]
struct OfPath {
    acks: u64,
    window: u128,
    free: u128,
    rtt: Histogram,
    sent: u64,
    arrived: u64,
    dropped: u64,
}

impl Collector {
    /// Returns a collector for a connection with these settings; `sender` sends the data over `paths` paths.
    pub(super) fn new(sender: Role, config: &Config, paths: usize) -> Collector {
        Collector {
            sender,
            segment: config.segment_payload().max(1),
            route: [None; SubflowId::MAX],
            paths: vec![OfPath::default(); paths],
            jumped: 0,
            covered: 0,
            delivery: Delivery::new(config.buffers.initial_sndbuf()),
            out_of_order: Histogram::default(),
            objects: Objects::default(),
            messages: Messages::default(),
            gaps: Gaps::default(),
            fetches: Fetches::new(OF_TIMES[2].part_s),
        }
    }

    /// Returns the measures by name; `names` are the names of the paths.
    pub(super) fn finish<'a>(
        &mut self,
        names: impl IntoIterator<Item = &'a str>,
    ) -> BTreeMap<String, f64> {
        let mut values = BTreeMap::new();
        let jumps = (self.covered > 0).then(|| self.jumped as f64 / self.covered as f64);
        let [p90, p99] = [90, 99].map(|percent| self.objects.percentile(percent));
        let [p40, p80] = [40, 80].map(|percent| self.out_of_order.percentile_ms(percent));
        let settled = self.messages.longest_ms();
        let of_run = [jumps, self.delivery.mean_ms(), p40, p80, p90, p99, settled];
        for (extra, value) in OF_RUNS.iter().zip(of_run) {
            values.extend(value.map(|value| (extra.name.to_owned(), value)));
        }
        for (name, path) in names.into_iter().zip(&self.paths) {
            for (extra, value) in OF_PATHS.iter().zip(path.values(self.segment)) {
                values.extend(value.map(|value| (format!("{}.{name}", extra.name), value)));
            }
        }
        let mut part = |measure: usize, second: u64, value: f64| {
            values.insert(format!("{}.{second}s", OF_TIMES[measure].name), value);
        };
        for (second, mean, most) in self.gaps.by_second() {
            part(0, second, mean);
            part(1, second, most);
        }
        self.fetches.by_part().for_each(|(second, rate)| part(2, second, rate));
        values
    }

    fn path(&mut self, subflow: SubflowId) -> Option<&mut OfPath> {
        let path = self.route.get(subflow.index()).copied().flatten();
        path.and_then(|path| self.paths.get_mut(path))
    }

    fn on_sender(&mut self, now: Time, event: &Event) {
        match *event {
            Event::SubflowUp { subflow, path, .. } => {
                if let Some(route) = self.route.get_mut(subflow.index()) {
                    *route = Some(path.index());
                }
            }
            Event::Acked { subflow, cwnd, inflight, rtt, .. } => {
                if let Some(path) = self.path(subflow) {
                    path.acks += 1;
                    path.window += u128::from(cwnd);
                    path.free += u128::from(cwnd.saturating_sub(inflight));
                    rtt.into_iter().for_each(|rtt| path.rtt.record(rtt));
                }
            }
            Event::DataAcked { old, new } => {
                let bytes = new.saturating_sub(old);
                self.covered += bytes;
                if bytes >= JUMP * self.segment {
                    self.jumped += bytes;
                }
                self.delivery.on_data_acked(now, new);
            }
            Event::Weighed(number) if number.name == "gap" => self.gaps.note(now, number.value),
            _ => {}
        }
    }
}

impl OfPath {
    /// Returns the values in the order of [`OF_PATHS`].
    fn values(&self, segment: u64) -> [Option<f64>; 7] {
        let mean =
            |sum: u128| (self.acks > 0).then(|| sum as f64 / self.acks as f64 / segment as f64);
        let [p2, p15, p85, p90] = RTTS.map(|percent| self.rtt.percentile_ms(percent));
        let dropped = (self.sent > 0).then(|| self.dropped as f64 / self.sent as f64);
        [mean(self.window), mean(self.free), p2, p15, p85, p90, dropped]
    }
}

impl Watch for Collector {
    fn detail(&self) -> Detail {
        Detail::Everything
    }

    fn on_core(&mut self, now: Time, who: Who, event: &Event) {
        if who.host == self.sender {
            return self.on_sender(now, event);
        }
        if let Event::DataReadable { data, waited, .. } = *event {
            self.out_of_order.record(waited);
            self.delivery.on_readable(now, data);
        }
    }

    fn on_app(&mut self, now: Time, who: Who, event: &AppEvent) {
        self.objects.on_app(now, who.connection, event);
        if who.host != self.sender {
            self.fetches.on_app(now, event);
        }
        if who.host != self.sender || matches!(event, AppEvent::MessageDue { .. }) {
            self.messages.on_app(now, event);
        }
    }

    fn on_segment(&mut self, _: Time, hop: Hop, path: PathId, way: Direction, segment: &Segment) {
        let from = if way == Direction::Down { Role::Server } else { Role::Client };
        if from != self.sender || segment.payload.is_empty() {
            return;
        }
        if let Some(path) = self.paths.get_mut(path.index()) {
            match hop {
                Hop::Sent => path.sent += 1,
                Hop::Dropped(_) => path.dropped += 1,
                Hop::Delivered => {
                    path.arrived += 1;
                    if path.arrived == 1 && self.paths.iter().all(|path| path.arrived > 0) {
                        self.messages.settle();
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plait_base::{DataRange, Dsn, Span};

    fn who(host: Role) -> Who {
        Who { pair: 0, connection: 0, host }
    }

    fn collector(sndbuf: u64) -> Collector {
        let config = Config::default().with(|it| it.buffers.sndbuf = sndbuf);
        let mut collector = Collector::new(Role::Server, &config, 1);
        collector.segment = 1_000;
        collector.route[0] = Some(0);
        collector
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn jumps_are_weighed_by_their_bytes_and_windows_by_acknowledgements() {
        let mut collector = collector(1);
        let acked = |cwnd, inflight| Event::Acked {
            subflow: SubflowId(0),
            bytes: 1,
            rtt: Some(Span::from_millis(cwnd / 1_000)),
            srtt: Span::ZERO,
            cwnd,
            inflight,
        };
        for event in [
            acked(10_000, 10_000),
            acked(20_000, 14_000),
            Event::DataAcked { old: Dsn::ZERO, new: Dsn::new(9_999) },
            Event::DataAcked { old: Dsn::new(9_999), new: Dsn::new(39_996) },
        ] {
            collector.on_core(Time::ZERO, who(Role::Server), &event);
        }
        let values = collector.finish(["wifi"]);
        assert_eq!(values["data_ack_jump_share"], 0.75);
        assert_eq!(values["cwnd_mean_seg.wifi"], 15.0);
        assert_eq!(values["cwnd_free_seg.wifi"], 3.0);
        assert!((values["rtt_p2_ms.wifi"] - 10.0).abs() < 0.1);
        assert!((values["rtt_p90_ms.wifi"] - 20.0).abs() < 0.2);
    }

    /// A send buffer of 1000 bytes: the first 1000 bytes are there from the start, and acknowledged bytes are
    /// replaced at once.
    #[test]
    fn delivery_counts_from_the_place_in_the_send_buffer() {
        let mut collector = collector(1_000);
        let readable = |start, end, waited| Event::DataReadable {
            data: DataRange::new(start, end),
            waited: Span::from_millis(waited),
            subflow: SubflowId(0),
        };
        collector.on_core(at(50), who(Role::Client), &readable(Dsn::ZERO, Dsn::new(1_000), 0));
        collector.on_core(
            at(60),
            who(Role::Server),
            &Event::DataAcked { old: Dsn::ZERO, new: Dsn::new(1_000) },
        );
        collector.on_core(
            at(150),
            who(Role::Client),
            &readable(Dsn::new(1_000), Dsn::new(2_000), 30),
        );
        let values = collector.finish(["wifi"]);
        // The delays are 50 ms and 90 ms.
        assert!((values["delivery_delay_ms"] - 70.0).abs() < 1e-9);
        assert_eq!(values["ooo_delay_p40_ms"], 0.0);
        assert!((values["ooo_delay_p80_ms"] - 30.0).abs() < 0.3);
    }

    #[test]
    fn parts_of_the_time_begin_where_they_can() {
        assert!(begins_part("0s", 20) && begins_part("40s", 20) && begins_part("7s", 1));
        for wrong in ["", "s", "7", "30s", "040s", "-20s", "40ms"] {
            assert!(!begins_part(wrong, 20), "{wrong}");
        }
        assert!(is_extra("gap_seg.7s") && is_extra("rtt_p2_ms.wifi") && !is_extra("rtt_ms.wifi"));
    }
}
