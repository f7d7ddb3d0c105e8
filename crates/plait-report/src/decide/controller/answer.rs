//! A controller's answer: the flows after the event, in the form of the question.

use super::super::answer::{number, rounded_number};
use super::question::FlowState;
use plait_cc::{Books, Congestion, Phase};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// One answer.
#[derive(Serialize, JsonSchema, Debug)]
pub struct Answer {
    /// The flow of the event.
    flow: usize,
    /// Change of its window in bytes; negative if it shrank.
    change_bytes: Value,
    /// The numbers of the formula before the event, named as in the description of the controller.
    numbers: Map<String, Value>,
    /// The flows after the event. A later question with these flows continues the run.
    flows: Vec<After>,
}

/// A flow after the event.
#[derive(Serialize, JsonSchema, Debug)]
struct After {
    /// Congestion window in segments, to twelve digits.
    cwnd: Value,
    /// Congestion window in bytes, exactly.
    cwnd_bytes: Value,
    /// Slow start threshold in segments; null is infinite.
    ssthresh: Option<Value>,
    /// Slow start threshold in bytes; null is infinite.
    ssthresh_bytes: Option<Value>,
    /// Smoothed RTT; null before the first sample.
    srtt_ms: Option<Value>,
    /// Payload bytes of a segment.
    mss: u32,
    /// slow-start, restart (slow start after a timeout), avoidance or recovery.
    phase: &'static str,
    /// False: the flow is dead, and siblings are not coupled to it.
    alive: bool,
    /// Bytes acknowledged since its last loss.
    since_loss_bytes: u64,
    /// Bytes acknowledged between its last two losses.
    between_losses_bytes: u64,
    /// Saved state of the controller for it.
    state: Map<String, Value>,
}

impl Answer {
    pub(super) fn new(
        known: &[FlowState],
        windows: &[Congestion],
        own: usize,
        before: &Books,
        numbers: Map<String, Value>,
    ) -> Answer {
        let after = windows[own].books();
        // Subtracted separately, so that large whole numbers do not cost digits of the fraction.
        let whole = after.cwnd as f64 - before.cwnd as f64;
        let change = whole + (after.fraction - before.fraction);
        let flows = known.iter().zip(windows).map(|(known, window)| After::new(known, window));
        Answer { flow: own, change_bytes: rounded_number(change), numbers, flows: flows.collect() }
    }
}

impl After {
    fn new(known: &FlowState, window: &Congestion) -> After {
        let books = window.books();
        let mut state = Map::new();
        window.algorithm().save_state(&mut |name, value| {
            state.insert(name.to_owned(), number(value));
        });
        let cwnd = books.cwnd as f64 + books.fraction;
        let segments = |bytes: f64| rounded_number(bytes / f64::from(known.settings.mss));
        After {
            cwnd: segments(cwnd),
            cwnd_bytes: number(cwnd),
            ssthresh: books.ssthresh.map(|bytes| segments(bytes as f64)),
            ssthresh_bytes: books.ssthresh.map(|bytes| number(bytes as f64)),
            srtt_ms: known.srtt.map(|srtt| number(srtt.as_millis_f64())),
            mss: known.settings.mss,
            phase: match books.phase {
                Phase::SlowStart { after_timeout: true } => "restart",
                Phase::Recovery => "recovery",
                // A window that something else reduced can be below its threshold again.
                _ if window.in_slow_start() => "slow-start",
                Phase::SlowStart { .. } | Phase::Avoidance => "avoidance",
            },
            alive: known.alive,
            since_loss_bytes: books.intervals.since_last,
            between_losses_bytes: books.intervals.between_last_two,
            state,
        }
    }
}
