//! The inputs of a decision, as the file of `--events` has them.

use crate::decide::named;
use plait_base::{Span, Time};
use plait_core::Event;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// The state of a live subflow at a decision.
#[derive(Serialize, JsonSchema, Debug)]
pub(crate) struct Considered {
    /// The subflow.
    pub(crate) subflow: u8,
    /// Smoothed RTT; null before the first sample.
    pub(crate) srtt_ns: Option<u64>,
    /// Congestion window, or the limit of a cap if it is lower.
    pub(crate) cwnd_bytes: u64,
    /// Bytes sent and not acknowledged.
    pub(crate) inflight_bytes: u64,
    /// Free bytes of the window.
    pub(crate) free_bytes: u64,
    /// Estimated arrival of the data at hand; null without an RTT sample.
    pub(crate) arrival_ns: Option<u64>,
}

/// Data that a decision assigned ahead of sending.
#[derive(Serialize, JsonSchema, Debug)]
pub(crate) struct Assigned {
    /// The subflow.
    pub(crate) subflow: u8,
    /// First byte.
    pub(crate) dsn: u64,
    /// Length.
    pub(crate) len_bytes: u64,
}

/// The inputs of the next decision, from the events before it.
#[derive(Default)]
pub(super) struct Weighed {
    pub(super) subflows: Vec<Considered>,
    pub(super) numbers: Map<String, Value>,
    pub(super) assigned: Vec<Assigned>,
}

impl Weighed {
    /// Stores an event if it is an input of the next decision; returns true if it is.
    pub(super) fn collect(&mut self, event: &Event) -> bool {
        match *event {
            Event::Considered { subflow, srtt, cwnd, inflight, room, arrival } => {
                self.subflows.push(Considered {
                    subflow: subflow.0,
                    srtt_ns: srtt.map(Span::as_nanos),
                    cwnd_bytes: cwnd,
                    inflight_bytes: inflight,
                    free_bytes: room,
                    arrival_ns: (arrival < Time::NEVER).then(|| arrival.as_nanos()),
                });
            }
            Event::Weighed(ref number) => {
                let (name, value) = named(number);
                self.numbers.insert(name, value);
            }
            Event::Assigned { subflow, data } => {
                let (dsn, len_bytes) = (data.start.get(), data.len());
                self.assigned.push(Assigned { subflow: subflow.0, dsn, len_bytes });
            }
            _ => return false,
        }
        true
    }
}
