//! The reasons for scheduling data, in words, for the comments of captures.

use super::weighed::{Considered, Weighed};
use plait_base::SubflowId;
use plait_core::{Carry, Event};
use std::fmt::Write as _;

/// The latest decisions of a connection's sender.
#[derive(Default)]
pub(super) struct Reasons {
    /// The inputs of the next decision.
    weighed: Weighed,
    /// For each subflow, the decision that assigned it its current data.
    decisions: [String; SubflowId::MAX],
}

impl Reasons {
    /// Processes an event. For an event about sent data, it returns the number of bytes and the
    /// reason.
    pub(super) fn hear(&mut self, event: &Event) -> Option<(u64, String)> {
        if self.weighed.collect(event) {
            return None;
        }
        match *event {
            Event::Decision { number, chosen, reason, .. } => {
                let weighed = std::mem::take(&mut self.weighed);
                let text = decision(number, reason.as_str(), &weighed);
                let assigned = weighed.assigned.iter().map(|it| SubflowId(it.subflow));
                for subflow in assigned.chain(chosen) {
                    if let Some(known) = self.decisions.get_mut(subflow.index()) {
                        known.clone_from(&text);
                    }
                }
                None
            }
            Event::DataSent { subflow, data, carry } => {
                let mut why = carry_word(carry).to_owned();
                let _ = write!(why, " {}..{} on subflow {subflow}", data.start, data.end);
                let decided = !matches!(carry, Carry::Retransmission | Carry::TailProbe);
                let known = self.decisions.get(subflow.index());
                if let Some(text) = known.filter(|text| decided && !text.is_empty()) {
                    let _ = write!(why, "; {text}");
                }
                Some((data.len(), why))
            }
            _ => None,
        }
    }
}

/// Returns the reason of a decision and its inputs.
fn decision(number: u64, reason: &str, weighed: &Weighed) -> String {
    let mut text = format!("decision {number}: {reason}");
    for Considered { subflow, srtt_ns, cwnd_bytes, inflight_bytes, .. } in &weighed.subflows {
        let srtt = srtt_ns.map_or("no RTT".to_owned(), |ns| format!("srtt {} us", ns / 1_000));
        let _ = write!(
            text,
            "; subflow {subflow}: {srtt}, cwnd {cwnd_bytes}, in flight {inflight_bytes}"
        );
    }
    for (name, value) in &weighed.numbers {
        let _ = write!(text, "; {name} = {value}");
    }
    text
}

fn carry_word(carry: Carry) -> &'static str {
    match carry {
        Carry::New => "new data",
        Carry::Retransmission => "retransmission",
        Carry::Reinjection => "reinjection",
        Carry::Redundant => "redundant copy",
        Carry::Opportunistic => "opportunistic retransmission",
        Carry::TailProbe => "tail probe",
    }
}
