//! The list of measures.

use super::{Measures, PathMeasures};
use crate::Workload;

/// The direction in which a measure is better.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Better {
    /// Higher values are better.
    Higher,
    /// Lower values are better.
    Lower,
    /// The measure describes behaviour and does not rate it.
    Neither,
}

/// The function that reads a measure from [`Measures`].
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// One value for the run.
    Run(fn(&Measures) -> Option<f64>),
    /// One value for each path.
    Path(fn(&PathMeasures) -> Option<f64>),
}

/// One measure of the list.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Name; it ends in the unit, except for shares and counts.
    pub name: &'static str,
    /// Unit as reports print it; empty for shares and counts.
    pub unit: &'static str,
    /// Definition.
    pub definition: &'static str,
    /// The direction in which the measure is better.
    pub better: Better,
    /// Names of the workloads that have this measure.
    pub workloads: &'static [&'static str],
    /// True if the value is a function of other fields of [`Measures`]. Such a value cannot distinguish
    /// two runs. Digests leave it out, so a new derived measure changes no digest.
    pub derived: bool,
    /// How the value is read.
    pub value: Value,
}

impl Entry {
    /// Returns whether a run of `workload` has this measure.
    #[must_use]
    pub fn applies_to(&self, workload: &Workload) -> bool {
        self.workloads.contains(&workload.name())
    }

    /// Returns the name without its unit: `completion` for `completion_ms`.
    #[must_use]
    pub fn stem(&self) -> &'static str {
        without_unit(self.name, self.unit)
    }
}

/// Returns the name of a measure without its unit. If `unit` is empty, the name ends in none and is
/// returned unchanged.
#[must_use]
pub fn without_unit<'a>(name: &'a str, unit: &str) -> &'a str {
    match name.rsplit_once('_') {
        Some((stem, _)) if !unit.is_empty() => stem,
        _ => name,
    }
}

const ALL: &[&str] =
    &["download", "upload", "bulk", "burst", "stream", "blocks", "video", "maps", "web"];
const MESSAGES: &[&str] = &["burst", "stream", "blocks", "video", "maps"];
const VIDEO: &[&str] = &["video"];
const ASKING: &[&str] = &["video", "maps"];
const PAGES: &[&str] = &["web"];

/// All measures. Reports, `--expect`, digests and help read this list. Add new measures at the end,
/// because digests depend on the order of those that are not derived.
pub const MEASURES: &[Entry] = &[
    Entry {
        name: "completion_ms",
        unit: "ms",
        definition: "from the client's first SYN to the last byte readable, in order, at the receiver",
        better: Better::Lower,
        workloads: &["download", "upload"],
        derived: false,
        value: Value::Run(|run| run.completion_ms),
    },
    Entry {
        name: "goodput_mbps",
        unit: "Mbit/s",
        definition: "application bytes read in order over the interval: download and upload SIZE \
                     over the completion time; bulk the bytes read within DURATION; stream from the \
                     first message due to the last byte readable",
        better: Better::Higher,
        workloads: &["download", "upload", "bulk", "stream", "blocks"],
        derived: false,
        value: Value::Run(|run| run.goodput_mbps),
    },
    Entry {
        name: "message_delay_ms",
        unit: "ms",
        definition: "from the time at which a message is due (burst: its first byte written; video and \
                     maps: its request made) to its last byte readable, in order, at the receiver; mean over \
                     the messages",
        better: Better::Lower,
        workloads: MESSAGES,
        derived: false,
        value: Value::Run(|run| run.message_delay_ms.map(|delay| delay.mean)),
    },
    Entry {
        name: "message_delay_median_ms",
        unit: "ms",
        definition: "median of message_delay_ms over the messages of a run",
        better: Better::Lower,
        workloads: MESSAGES,
        derived: false,
        value: Value::Run(|run| run.message_delay_ms.map(|delay| delay.median)),
    },
    Entry {
        name: "message_delay_p95_ms",
        unit: "ms",
        definition: "95th percentile of message_delay_ms over the messages of a run",
        better: Better::Lower,
        workloads: MESSAGES,
        derived: false,
        value: Value::Run(|run| run.message_delay_ms.map(|delay| delay.p95)),
    },
    Entry {
        name: "message_delay_max_ms",
        unit: "ms",
        definition: "largest message_delay_ms over the messages of a run",
        better: Better::Lower,
        workloads: MESSAGES,
        derived: false,
        value: Value::Run(|run| run.message_delay_ms.map(|delay| delay.max)),
    },
    Entry {
        name: "ooo_delay_ms",
        unit: "ms",
        definition: "from a segment's arrival at the receiver to its data being in order; mean over \
                     the segments, those that arrive in order included with zero",
        better: Better::Lower,
        workloads: ALL,
        derived: false,
        value: Value::Run(|run| run.ooo_delay_ms.map(|delay| delay.mean)),
    },
    Entry {
        name: "ooo_delay_p95_ms",
        unit: "ms",
        definition: "95th percentile of ooo_delay_ms over the segments of a run (within 0.8 %)",
        better: Better::Lower,
        workloads: ALL,
        derived: false,
        value: Value::Run(|run| run.ooo_delay_ms.map(|delay| delay.p95)),
    },
    Entry {
        name: "ooo_delay_max_ms",
        unit: "ms",
        definition: "largest ooo_delay_ms over the segments of a run",
        better: Better::Lower,
        workloads: ALL,
        derived: false,
        value: Value::Run(|run| run.ooo_delay_ms.map(|delay| delay.max)),
    },
    Entry {
        name: "path_share",
        unit: "",
        definition: "first-transmission payload bytes on a path over those on all paths; copies do not \
                     count (path_sent_share has them)",
        better: Better::Neither,
        workloads: ALL,
        derived: false,
        value: Value::Path(|path| path.path_share),
    },
    Entry {
        name: "path_sent_share",
        unit: "",
        definition: "payload bytes sent on a path, copies and retransmissions included, over those on all \
                     paths; the column of the paths in the table of a comparison",
        better: Better::Neither,
        workloads: ALL,
        derived: false,
        value: Value::Path(|path| path.path_sent_share),
    },
    Entry {
        name: "reinjected_share",
        unit: "",
        definition: "payload bytes sent that had been sent before on another subflow (reinjections, \
                     opportunistic retransmissions, redundant copies) over all payload bytes sent",
        better: Better::Lower,
        workloads: ALL,
        derived: false,
        value: Value::Run(|run| run.reinjected_share),
    },
    Entry {
        name: "retransmitted_share",
        unit: "",
        definition: "payload bytes sent again on the subflow that carried them (retransmissions and \
                     probes for a lost tail) over all payload bytes sent",
        better: Better::Lower,
        workloads: ALL,
        derived: false,
        value: Value::Run(|run| run.retransmitted_share),
    },
    Entry {
        name: "rtt_ms",
        unit: "ms",
        definition: "RTT samples of the sender on a path, mean",
        better: Better::Lower,
        workloads: ALL,
        derived: false,
        value: Value::Path(|path| path.rtt_ms),
    },
    Entry {
        name: "rtt_min_ms",
        unit: "ms",
        definition: "RTT samples of the sender on a path, smallest",
        better: Better::Lower,
        workloads: ALL,
        derived: false,
        value: Value::Path(|path| path.rtt_min_ms),
    },
    Entry {
        name: "rtt_max_ms",
        unit: "ms",
        definition: "RTT samples of the sender on a path, largest",
        better: Better::Lower,
        workloads: ALL,
        derived: false,
        value: Value::Path(|path| path.rtt_max_ms),
    },
    Entry {
        name: "rwnd_blocked_ms",
        unit: "ms",
        definition: "time for which the sender had data and a subflow with room, but no receive window",
        better: Better::Lower,
        workloads: ALL,
        derived: false,
        value: Value::Run(|run| run.rwnd_blocked_ms),
    },
    Entry {
        name: "sndbuf_blocked_ms",
        unit: "ms",
        definition: "time for which a subflow had room, but the send buffer was full of data sent and not \
                     DATA_ACKed, with more to write",
        better: Better::Lower,
        workloads: ALL,
        derived: false,
        value: Value::Run(|run| run.sndbuf_blocked_ms),
    },
    Entry {
        name: "idle_resets",
        unit: "",
        definition: "number of times that an idle period lowered a subflow's congestion window, by any amount, \
                     after the subflow's first data that is measured",
        better: Better::Lower,
        workloads: ALL,
        derived: false,
        value: Value::Run(|run| run.idle_resets.map(|count| count as f64)),
    },
    Entry {
        name: "message_delay_p99_ms",
        unit: "ms",
        definition: "99th percentile of message_delay_ms over the messages of a run",
        better: Better::Lower,
        workloads: MESSAGES,
        derived: false,
        value: Value::Run(|run| run.message_delay_ms.map(|delay| delay.p99)),
    },
    Entry {
        name: "bit_rate_mbps",
        unit: "Mbit/s",
        definition: "mean bit rate of the complete chunks, weighted by their playing time",
        better: Better::Higher,
        workloads: VIDEO,
        derived: false,
        value: Value::Run(|run| run.playback?.bit_rate_mbps),
    },
    Entry {
        name: "bit_rate_ratio",
        unit: "",
        definition: "bit_rate_mbps over the ideal one: the sum of the paths' mean rates, or the \
                     clip's highest bit rate if that is less",
        better: Better::Higher,
        workloads: VIDEO,
        derived: false,
        value: Value::Run(|run| run.playback?.bit_rate_ratio),
    },
    Entry {
        name: "rebuffer_s",
        unit: "s",
        definition: "time for which the picture stood still after its start because nothing was buffered",
        better: Better::Lower,
        workloads: VIDEO,
        derived: false,
        value: Value::Run(|run| run.playback?.rebuffer_s),
    },
    Entry {
        name: "startup_ms",
        unit: "ms",
        definition: "from the client's first SYN to the first picture",
        better: Better::Lower,
        workloads: VIDEO,
        derived: false,
        value: Value::Run(|run| run.playback?.startup_ms),
    },
    Entry {
        name: "iw_resets",
        unit: "",
        definition: "idle periods of a subflow after which the idle rule lowered its congestion \
                     window; idle_resets counts each step of such a period",
        better: Better::Lower,
        workloads: ASKING,
        derived: false,
        value: Value::Run(|run| run.playback?.iw_resets.map(|count| count as f64)),
    },
    Entry {
        name: "last_packet_gap_ms",
        unit: "ms",
        definition: "time from the last packet of a chunk on the second path to its last packet on the \
                     first; median over the chunks of which both paths carried a part",
        better: Better::Neither,
        workloads: VIDEO,
        derived: false,
        value: Value::Run(|run| run.playback?.last_packet_gap_ms),
    },
    Entry {
        name: "idle_share",
        unit: "",
        definition: "share of the time from the request of a chunk to its end in which a path had \
                     no data in flight and another path had some",
        better: Better::Lower,
        workloads: VIDEO,
        derived: false,
        value: Value::Path(|path| path.idle_share),
    },
    Entry {
        name: "page_load_ms",
        unit: "ms",
        definition: "from the client's first SYN to the end of the page's last activity",
        better: Better::Lower,
        workloads: PAGES,
        derived: false,
        value: Value::Run(|run| run.page_load_ms),
    },
    Entry {
        name: "object_time_ms",
        unit: "ms",
        definition: "from an object's request being sent to its last byte read; mean over the objects",
        better: Better::Lower,
        workloads: PAGES,
        derived: false,
        value: Value::Run(|run| run.object_time_ms.map(|time| time.mean)),
    },
    Entry {
        name: "object_time_median_ms",
        unit: "ms",
        definition: "median of object_time_ms over the objects of a run",
        better: Better::Lower,
        workloads: PAGES,
        derived: false,
        value: Value::Run(|run| run.object_time_ms.map(|time| time.median)),
    },
    Entry {
        name: "object_time_p95_ms",
        unit: "ms",
        definition: "95th percentile of object_time_ms over the objects of a run",
        better: Better::Lower,
        workloads: PAGES,
        derived: false,
        value: Value::Run(|run| run.object_time_ms.map(|time| time.p95)),
    },
    Entry {
        name: "ooo_delay_median_ms",
        unit: "ms",
        definition: "median of ooo_delay_ms over the segments of a run (within 0.8 %)",
        better: Better::Lower,
        workloads: ASKING,
        derived: false,
        value: Value::Run(|run| run.playback.and(run.ooo_delay_ms).map(|delay| delay.median)),
    },
    Entry {
        name: "ooo_delay_p99_ms",
        unit: "ms",
        definition: "99th percentile of ooo_delay_ms over the segments of a run (within 0.8 %)",
        better: Better::Lower,
        workloads: ASKING,
        derived: false,
        value: Value::Run(|run| run.playback.and(run.ooo_delay_ms).map(|delay| delay.p99)),
    },
    Entry {
        name: "message_delay_sd_ms",
        unit: "ms",
        definition: "standard deviation of message_delay_ms over the messages of a run",
        better: Better::Lower,
        workloads: &["blocks", "video", "maps"],
        derived: false,
        value: Value::Run(|run| run.message_delay_sd_ms),
    },
];

/// Returns true if a larger value of the measure called `name` is the better one. Returns false for unknown names.
#[must_use]
pub fn is_higher_better(name: &str) -> bool {
    MEASURES.iter().any(|entry| entry.name == name && entry.better == Better::Higher)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_higher_goodput_is_better_and_a_higher_delay_is_not() {
        assert!(is_higher_better("goodput_mbps"));
        assert!(!is_higher_better("completion_ms"));
        // It describes behaviour.
        assert!(!is_higher_better("reinjected_share"));
        assert!(!is_higher_better("goodput"));
    }

    #[test]
    fn a_name_ends_in_its_unit() {
        let mut units = BTreeMap::new();
        for entry in MEASURES.iter().filter(|entry| !entry.unit.is_empty()) {
            let (stem, end) = entry.name.rsplit_once('_').unwrap();
            assert_eq!(entry.stem(), stem);
            assert_eq!(*units.entry(end).or_insert(entry.unit), entry.unit, "{}", entry.name);
        }
        for entry in MEASURES.iter().filter(|entry| entry.unit.is_empty()) {
            assert_eq!(entry.stem(), entry.name);
            assert!(!units.keys().any(|end| entry.name.ends_with(&format!("_{end}"))));
        }
        assert_eq!(units.get("mbps"), Some(&"Mbit/s"));
    }
}
