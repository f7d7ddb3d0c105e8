//! The JSON form of a question. `situation` converts it to the view of a scheduler.

use super::Refusal;
use plait_sched::{Decorator, Entry, Listed, Param};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fmt::Write;

/// Default payload bytes of a segment, as in the vectors.
pub(super) const MSS: u32 = 1460;
/// In the vectors, a threshold of at least this many segments is infinite.
pub(super) const INFINITE_SSTHRESH: f64 = 1e9;

/// One question: a scheduler, its state, and what it would see.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// A scheduler as in `--schedulers`, decorators included.
    pub(super) scheduler: String,
    /// Its parameters; those of a decorator are written `rp.mode`.
    #[serde(default)]
    pub(super) params: Map<String, Value>,
    /// State of an earlier answer.
    #[serde(default)]
    pub(super) state: Map<String, Value>,
    /// What has just happened: the scheduler is told before it is asked.
    #[serde(default)]
    pub(super) event: Option<Happening>,
    /// The connection.
    #[serde(default)]
    pub(super) connection: Connection,
    /// The live subflows, ids ascending.
    pub(super) subflows: Vec<Subflow>,
}

/// A DATA_ACK that moved the left edge; `connection` is what it left behind.
#[derive(Deserialize, JsonSchema, Clone, Copy, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Happening {
    /// Segments that it covers, more than none.
    pub(super) data_ack: u64,
    /// The subflow that first carried the segment at the left edge before it.
    pub(super) edge: u8,
    /// That segment had been sent again.
    #[serde(default)]
    pub(super) again: bool,
}

/// The connection; counts are in segments.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Connection {
    /// Segments that no subflow has been given; the last may be a fraction.
    pub(super) unsent: f64,
    /// Payload bytes of a segment.
    pub(super) mss: u32,
    /// Bytes that the peer takes, counted from the DATA_ACK; null is no limit.
    pub(super) send_window: Option<u64>,
    /// First segment that is not DATA_ACKed.
    pub(super) snd_una: u64,
    /// Segments sent and not DATA_ACKed; the sum of `inflight` where nothing is said.
    pub(super) outstanding: Option<u64>,
    /// What has been sent and not DATA_ACKed, in order, in place of `outstanding`.
    pub(super) sent: Vec<Sent>,
    /// What has been assigned and not sent, in order, in place of `queued`.
    pub(super) assigned: Vec<Assigned>,
    /// The first segment sent waits for reinjection.
    pub(super) reinject: Option<bool>,
    /// The application has more to write than the send buffer takes.
    pub(super) app_blocked: bool,
    /// Free bytes of the send buffer; null is no limit.
    pub(super) sndbuf_free: Option<u64>,
    /// What the send buffer holds in all, in bytes; null is no limit.
    pub(super) sndbuf: Option<u64>,
    /// The time.
    pub(super) now_ms: f64,
    /// When the connection started.
    pub(super) start_ms: f64,
    /// Whether `tsq_blocked` makes a subflow busy.
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

/// Data that has been sent, in segments.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Sent {
    /// Its first segment.
    pub(super) dsn: u64,
    /// How many segments.
    #[serde(default = "one")]
    pub(super) len: u64,
    /// The subflows that have carried it, first carrier first.
    pub(super) carried: Vec<u8>,
}

/// Data that a subflow has been given and has not sent, in segments.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Assigned {
    /// Its first segment.
    pub(super) dsn: u64,
    /// How many segments.
    #[serde(default = "one")]
    pub(super) len: u64,
    /// The subflow.
    pub(super) subflow: u8,
}

fn one() -> u64 {
    1
}

/// Loss recovery of a subflow.
#[derive(Deserialize, JsonSchema, Clone, Copy, Debug)]
#[serde(rename_all = "lowercase")]
pub(super) enum LossState {
    Open,
    Disorder,
    Recovery,
    Loss,
}

/// One subflow; counts are in segments, times in milliseconds.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Subflow {
    /// 0 to 7.
    pub(super) id: u8,
    /// Smoothed RTT; null is no sample yet.
    #[serde(default)]
    pub(super) srtt_ms: Option<f64>,
    /// RTT variation.
    #[serde(default)]
    pub(super) rttvar_ms: f64,
    /// Latest RTT sample; `srtt_ms` where nothing is said.
    #[serde(default)]
    pub(super) last_rtt_ms: Option<f64>,
    /// Least RTT sample; `srtt_ms` where nothing is said.
    #[serde(default)]
    pub(super) min_rtt_ms: Option<f64>,
    /// When the latest RTT sample was taken; now where nothing is said.
    #[serde(default)]
    pub(super) last_rtt_at_ms: Option<f64>,
    /// Retransmission timeout.
    #[serde(default)]
    pub(super) rto_ms: Option<f64>,
    /// Congestion window.
    #[serde(default = "ten")]
    pub(super) cwnd: f64,
    /// Most that a cap lets fly, whatever the window; null is no cap.
    #[serde(default)]
    pub(super) cap: Option<f64>,
    /// Slow start threshold; null is infinite.
    #[serde(default)]
    pub(super) ssthresh: Option<f64>,
    /// Sent and not acknowledged.
    #[serde(default)]
    pub(super) inflight: f64,
    /// Sent and not cumulatively acknowledged; `inflight` where nothing is said.
    #[serde(default)]
    pub(super) outstanding: Option<f64>,
    /// Assigned and not sent.
    #[serde(default)]
    pub(super) queued: f64,
    /// Window recorded before the last idle reset.
    #[serde(default)]
    pub(super) rec_cwnd: f64,
    /// Low priority.
    #[serde(default)]
    pub(super) backup: bool,
    /// False: it cannot carry data at all.
    #[serde(default = "yes")]
    pub(super) alive: bool,
    /// False: the joining handshake is not complete.
    #[serde(default = "yes")]
    pub(super) joined: bool,
    /// Potentially failed.
    #[serde(default)]
    pub(super) pf: bool,
    /// Loss recovery: open, disorder, recovery or loss.
    #[serde(default)]
    pub(super) ca: Option<LossState>,
    /// The host's own queue holds enough of it.
    #[serde(default)]
    pub(super) tsq_blocked: bool,
    /// It has carried the segment at hand (see docs/decide.md).
    #[serde(default)]
    pub(super) carried: bool,
    /// Pacing rate.
    #[serde(default)]
    pub(super) pacing_rate_bps: u64,
    /// Rate of delivery.
    #[serde(default)]
    pub(super) delivery_rate_bps: u64,
    /// Timeouts in a row since anything was received.
    #[serde(default)]
    pub(super) timeouts: u32,
    /// When it last sent data.
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
    /// Returns the scheduler with its parameters in the grammar of `--schedulers`.
    pub(super) fn spec(&self) -> Result<String, Refusal> {
        let mut parts: Vec<String> = self.scheduler.split('+').map(str::to_owned).collect();
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
        let mut parts = self.scheduler.split('+').map(|part| part.split(':').next().unwrap_or(""));
        let has = |known: &[Param], name: &str| known.iter().any(|param| param.name == name);
        let base = parts.next().map(str::trim).unwrap_or_default();
        if Entry::find(base).is_none_or(|entry| has(entry.params, key)) {
            return Ok(());
        }
        for decorator in parts.filter_map(|part| Decorator::find(part.trim())) {
            let name = key.strip_prefix(decorator.name).and_then(|rest| rest.strip_prefix(':'));
            if has(decorator.params, name.unwrap_or(key)) {
                let spelt = format!("{}.{}", decorator.name, name.unwrap_or(key));
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
