//! The measures of one run.

use super::{Distribution, Entry, MEASURES, PlaybackMeasures, Value};
use plait_base::Span;
use serde::Serialize;

/// Maximum number of message delays that one run keeps. Longer lists are reduced to this many.
pub const MAX_POOLED_DELAYS: usize = 4_096;

/// The measures of one path, taken at the sender of the data.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize)]
pub struct PathMeasures {
    /// First-transmission payload bytes on this path, divided by the total over all paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_share: Option<f64>,
    /// Payload bytes sent on this path, including copies and retransmissions, divided by the total over all
    /// paths. It follows from `sent_bytes`, and is no part of the digest of a run.
    #[serde(skip)]
    pub path_sent_share: Option<f64>,
    /// Payload bytes sent on this path, including copies and retransmissions.
    pub sent_bytes: u64,
    /// Payload bytes of copies and reinjections sent on this path.
    #[serde(skip)]
    pub extra_bytes: u64,
    /// Mean of the RTT samples in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_ms: Option<f64>,
    /// Minimum RTT sample in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_min_ms: Option<f64>,
    /// Maximum RTT sample in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_max_ms: Option<f64>,
    /// Share of the time with a pending chunk during which this path had nothing in flight while
    /// another path had data in flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_share: Option<f64>,
}

/// The measures of one run. A measure that does not apply to the workload is absent, never zero.
/// [`MEASURES`] has the definitions.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Measures {
    /// All data were readable at the end of the run. For `bulk`, the run lasted its full duration;
    /// a page was loaded; a workload with a deadline reached it.
    pub complete: bool,
    /// Time from the first SYN to the last byte readable in order, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_ms: Option<f64>,
    /// Application bytes read in order, divided by the interval, in Mbit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goodput_mbps: Option<f64>,
    /// Time from the due time of a message to its last byte readable in order, in milliseconds,
    /// over the messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_delay_ms: Option<Distribution>,
    /// The delays of the messages in ascending order, for pooling with other runs. If there are
    /// more than [`MAX_POOLED_DELAYS`], only that many are kept, at evenly spaced ranks from the
    /// first to the last.
    #[serde(skip)]
    pub message_delays: Vec<Span>,
    /// Standard deviation of the message delays, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_delay_sd_ms: Option<f64>,
    /// Time from the arrival of a segment until its data are in order, in milliseconds, over the
    /// segments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ooo_delay_ms: Option<Distribution>,
    /// Bytes of data sent before on another subflow, divided by all payload bytes sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reinjected_share: Option<f64>,
    /// Bytes sent again on the same subflow, divided by all payload bytes sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmitted_share: Option<f64>,
    /// Time that the receive window blocked the sender, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rwnd_blocked_ms: Option<f64>,
    /// Time that the full send buffer blocked the sender, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sndbuf_blocked_ms: Option<f64>,
    /// Number of times that an idle period reduced a congestion window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_resets: Option<u64>,
    /// Time from the request for an object to its last byte, in milliseconds, over the objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_time_ms: Option<Distribution>,
    /// Time from the first SYN to the end of the last activity of the page, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_load_ms: Option<f64>,
    /// Measures of a client that sends repeated requests.
    #[serde(flatten)]
    pub playback: Option<PlaybackMeasures>,
    /// Measures of each path, in the order of the scenario.
    pub paths: Vec<PathMeasures>,
}

/// Returns at most [`MAX_POOLED_DELAYS`] of the sorted `delays`, at evenly spaced ranks from the
/// first to the last.
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
    /// Returns the measure of the run called `name` in [`MEASURES`]. Returns `None` if the run does
    /// not have it, if it is a measure of each path, or if the name is unknown.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<f64> {
        match MEASURES.iter().find(|entry| entry.name == name)?.value {
            Value::Run(of) => of(self),
            Value::Path(_) => None,
        }
    }

    /// Calls `push` with the name and the bits of each measure that is present and not derived, in
    /// the order of [`MEASURES`]. Values of paths follow the order of the paths, each preceded by its
    /// path number, so that an absent value does not shift the others.
    pub fn hash_into(&self, push: &mut impl FnMut(&str, u64)) {
        self.hash_entries(MEASURES, push);
    }

    fn hash_entries(&self, entries: &[Entry], push: &mut impl FnMut(&str, u64)) {
        push("complete", u64::from(self.complete));
        for entry in entries.iter().filter(|entry| !entry.derived) {
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

/// Returns the gain of several paths over the best of them (CSWS 2014): 0 is the best path alone, 1
/// is the sum of all, -1 is no data delivered.
///
/// `references` are the rates of the single paths, in the unit of `goodput`: capacities for variant
/// T, the goodput of single-path TCP for variant E. Let C be the references. If the goodput g is at
/// least max C, the gain is `(g - max C) / (sum C - max C)`, otherwise `(g - max C) / max C`. The
/// second form is also used if the other paths add nothing.
///
/// Returns `None` if no reference is above zero, or if their sum is not finite.
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

    #[test]
    fn a_derived_measure_is_in_no_hash() {
        let measures = Measures { completion_ms: Some(1.5), ..Measures::default() };
        let names = |entries: &[Entry]| {
            let mut names = Vec::new();
            measures.hash_entries(entries, &mut |name, _| names.push(name.to_owned()));
            names
        };
        let known = *MEASURES.iter().find(|entry| entry.name == "completion_ms").unwrap();
        let derived = Entry { name: "completion_s", derived: true, ..known };
        assert_eq!(names(&[derived, known]), ["complete", "completion_ms"]);
    }
}
