//! The measures of one run.

use super::{Distribution, MEASURES, PlaybackMeasures, Value};
use plait_base::Span;
use serde::Serialize;

/// The most delays of messages that one run keeps.
pub const MAX_POOLED_DELAYS: usize = 4_096;

/// What was measured of one path, at the sender of the data.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize)]
pub struct PathMeasures {
    /// First-transmission payload bytes on this path over those on all paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_share: Option<f64>,
    /// Payload bytes sent on this path, copies and retransmissions included.
    pub sent_bytes: u64,
    /// Mean of the RTT samples in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_ms: Option<f64>,
    /// Least RTT sample in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_min_ms: Option<f64>,
    /// Largest RTT sample in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_max_ms: Option<f64>,
    /// Part of the time in which a chunk was under way that this path had nothing in flight while
    /// another had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_share: Option<f64>,
}

/// The measures of one run. What its workload does not have is absent, never zero; definitions are
/// in [`MEASURES`].
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Measures {
    /// Everything that was to be sent was readable at the end of the run (`bulk`: the run lasted as
    /// long as it should).
    pub complete: bool,
    /// From the first SYN to the last byte readable in order, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_ms: Option<f64>,
    /// In-order application bytes over the interval, in Mbit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goodput_mbps: Option<f64>,
    /// From a message being due to its last byte readable in order, over the messages, in
    /// milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_delay_ms: Option<Distribution>,
    /// The delays of the messages in ascending order, to pool them with those of other runs. Of more
    /// than [`MAX_POOLED_DELAYS`] so many at even ranks, the first and the last among them.
    #[serde(skip)]
    pub message_delays: Vec<Span>,
    /// Standard deviation of the delays of messages, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_delay_sd_ms: Option<f64>,
    /// From a segment's arrival to its data being in order, over the segments, in
    /// milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ooo_delay_ms: Option<Distribution>,
    /// Copies of data sent before on another subflow, over all payload bytes sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reinjected_share: Option<f64>,
    /// Bytes sent again on the subflow that carried them, over all payload bytes sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmitted_share: Option<f64>,
    /// Time the sender was held back by the receive window, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rwnd_blocked_ms: Option<f64>,
    /// Time the sender was held back by its send buffer, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sndbuf_blocked_ms: Option<f64>,
    /// Times that an idle period lowered a congestion window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_resets: Option<u64>,
    /// From an object's request to its last byte, over the objects, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_time_ms: Option<Distribution>,
    /// From the first SYN to the end of a page's last activity, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_load_ms: Option<f64>,
    /// Of a client that asks again and again.
    #[serde(flatten)]
    pub playback: Option<PlaybackMeasures>,
    /// By path, in the order of the scenario.
    pub paths: Vec<PathMeasures>,
}

/// Returns at most [`MAX_POOLED_DELAYS`] of the sorted `delays`, at even ranks from the first to the
/// last.
pub(super) fn pooled(mut delays: Vec<Span>) -> Vec<Span> {
    let Some(last) = delays.len().checked_sub(1) else { return delays };
    if delays.len() > MAX_POOLED_DELAYS {
        for place in 0..MAX_POOLED_DELAYS {
            delays[place] = delays[place * last / (MAX_POOLED_DELAYS - 1)];
        }
        delays.truncate(MAX_POOLED_DELAYS);
    }
    delays.shrink_to_fit();
    delays
}

impl Measures {
    /// The measure called `name` in [`MEASURES`], of the whole run. `None` where the run does not
    /// have it, where it is one of each path, or where there is none of that name.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<f64> {
        match MEASURES.iter().find(|entry| entry.name == name)?.value {
            Value::Run(of) => of(self),
            Value::Path(_) => None,
        }
    }

    /// Hands every measure that is there to `push`: its name and the bits of its value, in the
    /// order of [`MEASURES`], those of paths in the order of the paths. The path number goes ahead
    /// of a path's value, so that an absent one shifts nothing.
    pub fn hash_into(&self, push: &mut impl FnMut(&str, u64)) {
        push("complete", u64::from(self.complete));
        for entry in MEASURES {
            match entry.value {
                Value::Run(of) => {
                    if let Some(value) = of(self) {
                        push(entry.name, value.to_bits());
                    }
                }
                Value::Path(of) => {
                    for (number, path) in self.paths.iter().enumerate() {
                        if let Some(value) = of(path) {
                            push("path", number as u64);
                            push(entry.name, value.to_bits());
                        }
                    }
                }
            }
        }
    }
}

/// What several paths gain over the best of them (CSWS 2014): 0 is the best path alone, 1 the sum
/// of all, -1 nothing delivered.
///
/// `references` are the rates of the single paths in the unit of `goodput`: capacities for variant
/// T, the goodput of single-path TCP for variant E. With C the references, at least the best:
/// `(g - max C) / (sum C - max C)`, otherwise `(g - max C) / max C`. Where no second path adds
/// anything the second form serves on both sides. `None` where no reference is above zero.
#[must_use]
pub fn aggregation_benefit(goodput: f64, references: &[f64]) -> Option<f64> {
    let best = references.iter().copied().fold(0.0, f64::max);
    let sum: f64 = references.iter().sum();
    if best <= 0.0 || !sum.is_finite() {
        return None;
    }
    let others = sum - best;
    let scale = if goodput >= best && others > 0.0 { others } else { best };
    Some((goodput - best) / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aggregation_benefit_is_linear_on_both_sides() {
        // Claim csws-u4.
        let benefit = |goodput| aggregation_benefit(goodput, &[25.0, 5.0]).unwrap();
        assert_eq!(benefit(0.0), -1.0);
        assert_eq!(benefit(12.5), -0.5);
        assert_eq!(benefit(25.0), 0.0);
        assert_eq!(benefit(27.5), 0.5);
        assert_eq!(benefit(30.0), 1.0);
        assert_eq!(benefit(32.5), 1.5);
    }

    #[test]
    fn many_delays_are_thinned_at_even_ranks() {
        let millis = |count: u64| (0..count).map(Span::from_millis).collect::<Vec<Span>>();
        assert_eq!(pooled(millis(3)), millis(3));
        assert_eq!(pooled(Vec::new()), []);
        let thin = pooled(millis(40_951));
        assert_eq!(thin.len(), MAX_POOLED_DELAYS);
        // 40,950 ranks in 4,095 steps of ten.
        assert_eq!((thin[0], thin[1]), (Span::ZERO, Span::from_millis(10)));
        assert_eq!(thin.last(), Some(&Span::from_millis(40_950)));
    }

    #[test]
    fn aggregation_benefit_of_one_path_or_none() {
        assert_eq!(aggregation_benefit(12.0, &[10.0]), Some(0.2));
        assert_eq!(aggregation_benefit(5.0, &[10.0]), Some(-0.5));
        assert_eq!(aggregation_benefit(5.0, &[]), None);
        assert_eq!(aggregation_benefit(5.0, &[0.0]), None);
    }

    #[test]
    fn absent_measures_are_absent_from_the_text_and_from_the_hash() {
        let mut measures = Measures {
            completion_ms: Some(1.5),
            paths: vec![PathMeasures { path_share: Some(1.0), ..PathMeasures::default() }],
            ..Measures::default()
        };
        let text = serde_json::to_string(&measures).unwrap();
        assert_eq!(
            text,
            r#"{"complete":false,"completion_ms":1.5,"paths":[{"path_share":1.0,"sent_bytes":0}]}"#
        );
        let list = |measures: &Measures| {
            let mut list = Vec::new();
            measures.hash_into(&mut |name, bits| list.push((name.to_owned(), bits)));
            list
        };
        let first = list(&measures);
        let expected = [
            ("complete", 0),
            ("completion_ms", 1.5f64.to_bits()),
            ("path", 0),
            ("path_share", 1f64.to_bits()),
        ];
        assert_eq!(first, expected.map(|(name, bits)| (name.to_owned(), bits)));
        measures.idle_resets = Some(0);
        assert_eq!(list(&measures).len(), first.len() + 1);
        assert_eq!(measures.value("completion_ms"), Some(1.5));
        assert_eq!(measures.value("goodput_mbps"), None);
        assert_eq!(measures.value("path_share"), None);
        assert_eq!(measures.value("no_such"), None);
    }
}
