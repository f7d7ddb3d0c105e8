//! The JSON form of a question. `situation` converts it to the view of a scheduler.

use super::Refusal;
use crate::words::Word;
use plait_sched::{CaState, Decorator, Entry, Listed, Param};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fmt::Write;

/// Default payload bytes of a segment, as in the vectors.
pub(super) const MSS: u32 = 1460;
/// In the vectors, a threshold of at least this many segments is infinite.
pub(super) const INFINITE_SSTHRESH: f64 = 1e9;

/// One question: a scheduler, its saved state, and its inputs.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// A scheduler as in `--schedulers`, decorators included. `plait decide --scheduler` gives one to the
    /// questions without this key.
    #[serde(default)]
    scheduler: Option<String>,
    /// Its parameters. The name of a decorator's parameter has a prefix, as in `rp.mode`.
    #[serde(default)]
    pub(super) params: Map<String, Value>,
    /// State of an earlier answer.
    #[serde(default)]
    pub(super) state: Map<String, Value>,
    /// A DATA_ACK that the scheduler handles before it decides.
    #[serde(default)]
    pub(super) event: Option<Happening>,
    /// The connection.
    #[serde(default)]
    pub(super) connection: Connection,
    /// The live subflows, ids ascending.
    pub(super) subflows: Vec<Subflow>,
    /// Prices of subflows; the others are free.
    #[serde(default)]
    pub(super) prices: Vec<Price>,
}

/// The price of a subflow.
#[derive(Deserialize, JsonSchema, Clone, Copy, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Price {
    /// The subflow.
    pub(super) subflow: u8,
    /// Price of a byte, relative to other subflows; 0 is free.
    #[serde(default)]
    pub(super) cost: u32,
    /// Payload bytes that the quota of the path leaves to the subflow, beside its assigned data; null
    /// is no quota.
    #[serde(default)]
    pub(super) quota_left_bytes: Option<u64>,
}

/// A DATA_ACK that moved the left edge. `connection` is the state after it.
#[derive(Deserialize, JsonSchema, Clone, Copy, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Happening {
    /// Segments that it acknowledges, at least one.
    pub(super) data_ack: u64,
    /// The subflow that first carried the segment at the previous left edge.
    pub(super) edge: u8,
    /// True: that segment was sent more than once.
    #[serde(default)]
    pub(super) again: bool,
}

/// The connection; counts are in segments.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Connection {
    /// Segments that are not assigned to a subflow; the last may be a fraction.
    pub(super) unsent: f64,
    /// Payload bytes of a segment.
    pub(super) mss: u32,
    /// Send window in bytes, counted from the DATA_ACK; null is no limit.
    pub(super) send_window: Option<u64>,
    /// First segment that is not DATA_ACKed.
    pub(super) snd_una: u64,
    /// Segments sent and not DATA_ACKed; by default the sum of `inflight`.
    pub(super) outstanding: Option<u64>,
    /// Data sent and not DATA_ACKed, in order, as an alternative to `outstanding`.
    pub(super) sent: Vec<Sent>,
    /// Data assigned and not sent, in order, as an alternative to `queued`.
    pub(super) assigned: Vec<Assigned>,
    /// True: the first sent segment waits for reinjection.
    pub(super) reinject: Option<bool>,
    /// True: the application has more data than the send buffer can hold.
    pub(super) app_blocked: bool,
    /// Free bytes of the send buffer; null is no limit.
    pub(super) sndbuf_free: Option<u64>,
    /// Size of the send buffer in bytes; null is no limit.
    pub(super) sndbuf: Option<u64>,
    /// The current time.
    pub(super) now_ms: f64,
    /// Start of the connection.
    pub(super) start_ms: f64,
    /// True: `tsq_blocked` makes a subflow busy.
    pub(super) tsq: bool,
}

impl Default for Connection {
    fn default() -> Connection {
        Connection {
            unsent: 1.0,
            mss: MSS,
            send_window: None,
            snd_una: 0,
            outstanding: None,
            sent: Vec::new(),
            assigned: Vec::new(),
            reinject: None,
            app_blocked: false,
            sndbuf_free: None,
            sndbuf: None,
            now_ms: 0.0,
            start_ms: 0.0,
            tsq: true,
        }
    }
}

/// Sent data, in segments.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Sent {
    /// Its first segment.
    pub(super) dsn: u64,
    /// Number of segments.
    #[serde(default = "one")]
    pub(super) len: u64,
    /// The subflows that carried it, the first carrier first.
    pub(super) carried: Vec<u8>,
}

/// Data that is assigned to a subflow and not sent, in segments.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Assigned {
    /// Its first segment.
    pub(super) dsn: u64,
    /// Number of segments.
    #[serde(default = "one")]
    pub(super) len: u64,
    /// The subflow.
    pub(super) subflow: u8,
}

fn one() -> u64 {
    1
}

/// One subflow; counts are in segments, times in milliseconds.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Subflow {
    /// Id from 0 to 7.
    pub(super) id: u8,
    /// Smoothed RTT; null before the first sample.
    #[serde(default)]
    pub(super) srtt_ms: Option<f64>,
    /// RTT variation.
    #[serde(default)]
    pub(super) rttvar_ms: f64,
    /// Latest RTT sample; by default `srtt_ms`.
    #[serde(default)]
    pub(super) last_rtt_ms: Option<f64>,
    /// Smallest RTT sample; by default `srtt_ms`.
    #[serde(default)]
    pub(super) min_rtt_ms: Option<f64>,
    /// Time of the latest RTT sample; by default the current time.
    #[serde(default)]
    pub(super) last_rtt_at_ms: Option<f64>,
    /// Retransmission timeout.
    #[serde(default)]
    pub(super) rto_ms: Option<f64>,
    /// Congestion window.
    #[serde(default = "ten")]
    pub(super) cwnd: f64,
    /// Upper limit of the segments in flight, regardless of the window; null is no limit.
    #[serde(default)]
    pub(super) cap: Option<f64>,
    /// Slow start threshold; null is infinite.
    #[serde(default)]
    pub(super) ssthresh: Option<f64>,
    /// Segments sent and not acknowledged.
    #[serde(default)]
    pub(super) inflight: f64,
    /// Segments sent and not cumulatively acknowledged; by default `inflight`.
    #[serde(default)]
    pub(super) outstanding: Option<f64>,
    /// Segments assigned and not sent.
    #[serde(default)]
    pub(super) queued: f64,
    /// Window recorded before the last idle reset.
    #[serde(default)]
    pub(super) rec_cwnd: f64,
    /// True: a backup subflow.
    #[serde(default)]
    pub(super) backup: bool,
    /// False: it cannot carry data.
    #[serde(default = "yes")]
    pub(super) alive: bool,
    /// False: its joining handshake is not complete.
    #[serde(default = "yes")]
    pub(super) joined: bool,
    /// True: potentially failed.
    #[serde(default)]
    pub(super) pf: bool,
    /// State of loss recovery: open, disorder, recovery or loss.
    #[serde(default)]
    pub(super) ca: Option<Word<CaState>>,
    /// True: TCP small queues block it.
    #[serde(default)]
    pub(super) tsq_blocked: bool,
    /// True: it has carried the segment of the decision before.
    #[serde(default)]
    pub(super) carried: bool,
    /// Pacing rate.
    #[serde(default)]
    pub(super) pacing_rate_bps: u64,
    /// Delivery rate.
    #[serde(default)]
    pub(super) delivery_rate_bps: u64,
    /// Consecutive timeouts since the last received segment.
    #[serde(default)]
    pub(super) timeouts: u32,
    /// Time of its last data transmission.
    #[serde(default)]
    pub(super) last_send_ms: f64,
}

fn ten() -> f64 {
    10.0
}

fn yes() -> bool {
    true
}

impl Question {
    /// Gives the question this scheduler, if it names none.
    pub(super) fn complete(&mut self, usual: Option<&str>) -> Result<(), Refusal> {
        self.scheduler = self.scheduler.take().or_else(|| usual.map(str::to_owned));
        let missing = "missing field `scheduler`\n  such as \"scheduler\":\"ecf\"";
        self.scheduler.as_ref().map(drop).ok_or_else(|| Refusal::new("", missing))
    }

    /// Returns the scheduler as in `--schedulers`; empty if there is none.
    pub(super) fn scheduler(&self) -> &str {
        self.scheduler.as_deref().unwrap_or_default()
    }

    /// Returns the scheduler with its parameters in the grammar of `--schedulers`.
    pub(super) fn spec(&self) -> Result<String, Refusal> {
        let mut parts: Vec<String> = self.scheduler().split('+').map(str::to_owned).collect();
        for (key, value) in &self.params {
            let place = format!("params.{key}");
            let text = param_text(value)
                .ok_or_else(|| Refusal::new(&place, "expected a number, a word, true or false"))?;
            let (owner, name) =
                key.split_once('.').map_or((None, key.as_str()), |(o, n)| (Some(o), n));
            let of = |part: &String| part.split(':').next().unwrap_or("").trim().to_owned();
            self.belongs_to_decorator(key, &place)?;
            let part = match owner {
                None => parts.first_mut(),
                Some(owner) => parts.iter_mut().skip(1).find(|part| of(part) == owner),
            };
            let Some(part) = part else {
                return Err(Refusal::new(&place, "the scheduler has no such decorator"));
            };
            let joint = if part.contains(':') { ',' } else { ':' };
            write!(part, "{joint}{name}={text}")
                .map_err(|e| Refusal::new(&place, &e.to_string()))?;
        }
        Ok(parts.join("+"))
    }

    /// Returns an error if a parameter belongs to a decorator of the question but lacks its prefix:
    /// `mode` or `rp:mode` instead of `rp.mode`.
    fn belongs_to_decorator(&self, key: &str, place: &str) -> Result<(), Refusal> {
        if key.contains('.') {
            return Ok(());
        }
        let mut parts =
            self.scheduler().split('+').map(|part| part.split(':').next().unwrap_or(""));
        let has = |known: &[Param], name: &str| known.iter().any(|param| param.name == name);
        let base = parts.next().map(str::trim).unwrap_or_default();
        if Entry::find(base).is_none_or(|entry| has(entry.about.params, key)) {
            return Ok(());
        }
        for decorator in parts.filter_map(|part| Decorator::find(part.trim())) {
            let name =
                key.strip_prefix(decorator.about.name).and_then(|rest| rest.strip_prefix(':'));
            if has(decorator.about.params, name.unwrap_or(key)) {
                let spelt = format!("{}.{}", decorator.about.name, name.unwrap_or(key));
                let problem = format!(
                    "`{base}` has no such parameter; did you mean `{spelt}`, that of the decorator?"
                );
                return Err(Refusal::new(place, &problem));
            }
        }
        Ok(())
    }

    /// Returns the state's names and values; switches count as 0 and 1.
    pub(super) fn state(&self) -> impl Iterator<Item = (&str, Result<f64, &'static str>)> {
        self.state.iter().map(|(name, value)| {
            let number = match value {
                Value::Bool(on) => Some(f64::from(u8::from(*on))),
                value => value.as_f64(),
            };
            (name.as_str(), number.ok_or("expected a number, true or false"))
        })
    }
}

/// Returns the value of a parameter in the grammar of the command line.
pub(super) fn param_text(value: &Value) -> Option<String> {
    match value {
        Value::Bool(on) => Some(if *on { "on" } else { "off" }.to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(word) => Some(word.clone()),
        _ => None,
    }
}
