//! Questions to a controller: the flows, one event, and their conversion.

use super::super::{GREATEST_COUNT, INFINITE_SSTHRESH, MSS, Refusal, span};
use plait_base::{Span, Time};
use plait_cc::{Books, Flow, HyStart, IdleRestart, LossIntervals, Phase, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// Greatest number of flows in a question: as many as a connection has subflows.
const MOST_FLOWS: usize = 8;
/// Greatest number of repetitions of an event.
const MOST_TIMES: u64 = 1_000_000;

/// One question: a controller, the flows of a connection, and an event of one of them.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// A controller as in `--cc`, parameters included.
    pub(super) cc: String,
    /// Its parameters.
    #[serde(default)]
    pub(super) params: Map<String, Value>,
    /// Settings of all flows.
    #[serde(default)]
    pub(super) settings: Common,
    /// The flows of the connection, one to eight.
    pub(super) flows: Vec<Given>,
    /// The event.
    pub(super) event: Event,
}

/// Settings of all flows.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Common {
    /// Payload bytes of a segment.
    pub(super) mss: u32,
    /// Initial window in segments.
    initial_window: u32,
    /// Largest growth of slow start for one ACK, in segments; null is no limit.
    slow_start_limit: Option<u32>,
    /// Window after an idle period: linux, rfc5681 or off.
    idle_restart: Idle,
}

impl Default for Common {
    fn default() -> Common {
        Common {
            mss: MSS,
            initial_window: 10,
            slow_start_limit: Some(2),
            idle_restart: Idle::Linux,
        }
    }
}

/// A value of `--idle-restart`.
#[derive(Deserialize, JsonSchema, Clone, Copy, Debug)]
#[serde(rename_all = "lowercase")]
enum Idle {
    Linux,
    Rfc5681,
    Off,
}

/// Phase of a window.
#[derive(Deserialize, JsonSchema, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Standing")]
enum WindowPhase {
    SlowStart,
    /// Slow start after a timeout.
    Restart,
    Avoidance,
    Recovery,
}

/// One flow. Its window is given in segments or in bytes. If both are given, they must agree.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Given {
    /// Congestion window in segments; 10 if neither field is given.
    cwnd: Option<f64>,
    /// Congestion window in bytes.
    cwnd_bytes: Option<f64>,
    /// Slow start threshold in segments; null is infinite. It is the window if neither field is
    /// given.
    #[serde(default, deserialize_with = "present")]
    ssthresh: Option<Option<f64>>,
    /// Slow start threshold in bytes; null is infinite.
    #[serde(default, deserialize_with = "present")]
    ssthresh_bytes: Option<Option<f64>>,
    /// Smoothed RTT; null before the first sample.
    srtt_ms: Option<f64>,
    /// Payload bytes of a segment; by default `settings.mss`.
    mss: Option<u32>,
    /// slow-start, restart (slow start after a timeout), avoidance or recovery.
    phase: Option<WindowPhase>,
    /// False: the flow is dead, and siblings are not coupled to it.
    #[serde(default = "yes")]
    alive: bool,
    /// Bytes acknowledged since its last loss.
    #[serde(default)]
    since_loss_bytes: u64,
    /// Bytes acknowledged between its last two losses.
    #[serde(default)]
    between_losses_bytes: u64,
    /// State of an earlier answer.
    #[serde(default)]
    pub(super) state: Map<String, Value>,
}

fn yes() -> bool {
    true
}

/// Distinguishes `null` from an absent field.
#[expect(clippy::option_option, reason = "null is infinite; nothing said is the window")]
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<f64>>, D::Error> {
    Option::deserialize(from).map(Some)
}

/// An event of a flow: exactly one of `ack`, `loss`, `timeout`, `recovered` and `idle_ms`, with its
/// details.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Event {
    /// Index of the flow in `flows`.
    #[serde(default)]
    pub(super) flow: usize,
    /// Time of the event.
    #[serde(default)]
    now_ms: f64,
    /// Number of repetitions.
    #[serde(default = "once")]
    pub(super) times: u64,
    /// Newly acknowledged bytes.
    ack: Option<u64>,
    /// For `ack`: its RTT sample.
    rtt_ms: Option<f64>,
    /// For `ack`: true (the default) if the window limits the sender.
    cwnd_limited: Option<bool>,
    /// For `ack`: true if it is the first of a round trip. By default false.
    round: Option<bool>,
    /// True: a loss was detected.
    loss: Option<bool>,
    /// For `loss` and `timeout`: segments in flight; by default the window.
    inflight: Option<f64>,
    /// True: the retransmission timer expired.
    timeout: Option<bool>,
    /// For `timeout`: true if the same segment timed out before.
    again: Option<bool>,
    /// True: recovery is complete, because all lost segments were delivered.
    recovered: Option<bool>,
    /// Time since it last sent data.
    idle_ms: Option<f64>,
    /// For `idle_ms`: the retransmission timeout.
    rto_ms: Option<f64>,
}

fn once() -> u64 {
    1
}

/// An event in the units of the controllers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Happens {
    Ack {
        bytes: u64,
        rtt: Option<Span>,
        cwnd_limited: bool,
        round: bool,
    },
    /// `inflight` is the bytes in flight, if they differ from the window.
    Loss {
        inflight: Option<u64>,
    },
    Timeout {
        inflight: Option<u64>,
        first: bool,
    },
    Recovered,
    Idle {
        idle: Span,
        rto: Span,
    },
}

impl Event {
    pub(super) fn now(&self) -> Result<Time, Refusal> {
        Ok(Time::ZERO + span(self.now_ms, "event.now_ms")?)
    }

    /// Returns the event; a question has exactly one.
    pub(super) fn happens(&self, mss: u32) -> Result<Happens, Refusal> {
        if !(1..=MOST_TIMES).contains(&self.times) {
            let problem = format!(
                "must be from 1 to {MOST_TIMES}, found {}\n  remedy: feed the answer back in for more",
                self.times
            );
            return Err(Refusal::new("event.times", &problem));
        }
        let told = |switch: Option<bool>| switch == Some(true);
        let kinds = [
            ("ack", self.ack.is_some()),
            ("loss", told(self.loss)),
            ("timeout", told(self.timeout)),
            ("recovered", told(self.recovered)),
            ("idle_ms", self.idle_ms.is_some()),
        ];
        let mut given = kinds.iter().filter(|(_, is)| *is).map(|(kind, _)| *kind);
        let (Some(kind), None) = (given.next(), given.next()) else {
            let problem = "one of `ack`, `loss`, `timeout`, `recovered` and `idle_ms` must happen";
            return Err(Refusal::new("event", problem));
        };
        let extras: [(&str, bool, &[&str]); 6] = [
            ("rtt_ms", self.rtt_ms.is_some(), &["ack"]),
            ("cwnd_limited", self.cwnd_limited.is_some(), &["ack"]),
            ("round", self.round.is_some(), &["ack"]),
            ("inflight", self.inflight.is_some(), &["loss", "timeout"]),
            ("again", self.again.is_some(), &["timeout"]),
            ("rto_ms", self.rto_ms.is_some(), &["idle_ms"]),
        ];
        for (extra, is, of) in extras {
            if is && !of.contains(&kind) {
                let problem = format!("belongs to `{}`, not to `{kind}`", of.join("` and `"));
                return Err(Refusal::new(&format!("event.{extra}"), &problem));
            }
        }
        let time = |value: Option<f64>, name: &str| {
            value.map(|ms| span(ms, &format!("event.{name}"))).transpose()
        };
        let inflight = || {
            let bytes = self.inflight.map(|it| size(it * f64::from(mss), "event.inflight"));
            bytes.transpose().map(|bytes| bytes.map(|(whole, _)| whole))
        };
        Ok(match kind {
            "ack" => Happens::Ack {
                bytes: self.ack.unwrap_or_default(),
                rtt: time(self.rtt_ms, "rtt_ms")?,
                cwnd_limited: self.cwnd_limited.unwrap_or(true),
                round: told(self.round),
            },
            "loss" => Happens::Loss { inflight: inflight()? },
            "timeout" => Happens::Timeout { inflight: inflight()?, first: !told(self.again) },
            "recovered" => Happens::Recovered,
            _ => Happens::Idle {
                idle: time(self.idle_ms, "idle_ms")?.unwrap_or_default(),
                rto: time(self.rto_ms, "rto_ms")?
                    .filter(|rto| *rto > Span::ZERO)
                    .ok_or_else(|| Refusal::new("event.rto_ms", "must be given, and above 0"))?,
            },
        })
    }
}

/// A flow in the units of the controllers.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowState {
    pub(super) settings: Settings,
    pub(super) books: Books,
    pub(super) srtt: Option<Span>,
    pub(super) alive: bool,
}

impl FlowState {
    /// Returns the flow as its siblings see it.
    pub(super) fn flow(&self) -> Flow {
        Flow {
            cwnd: self.books.cwnd,
            ssthresh: self.books.ssthresh,
            srtt: self.srtt,
            mss: self.settings.mss,
            in_recovery: self.books.phase == Phase::Recovery,
            live: self.alive,
            loss_interval: self.books.intervals.longer(),
        }
    }
}

impl Question {
    pub(super) fn idle_restart(&self) -> IdleRestart {
        match self.settings.idle_restart {
            Idle::Linux => IdleRestart::Linux,
            Idle::Rfc5681 => IdleRestart::Rfc5681,
            Idle::Off => IdleRestart::Off,
        }
    }

    pub(super) fn known(&self) -> Result<Vec<FlowState>, Refusal> {
        if !(1..=MOST_FLOWS).contains(&self.flows.len()) {
            return Err(Refusal::new("flows", "there must be one to eight"));
        }
        if self.event.flow >= self.flows.len() {
            return Err(Refusal::new("event.flow", "there is no such flow; they count from 0"));
        }
        if self.settings.mss == 0 {
            return Err(Refusal::new("settings.mss", "must be at least 1"));
        }
        if self.settings.initial_window == 0 {
            return Err(Refusal::new("settings.initial_window", "must be at least 1"));
        }
        if self.settings.slow_start_limit == Some(0) {
            return Err(Refusal::new("settings.slow_start_limit", "must be at least 1, or null"));
        }
        self.flows.iter().enumerate().map(|(nth, flow)| flow.known(&self.settings, nth)).collect()
    }
}

impl Given {
    fn known(&self, common: &Common, nth: usize) -> Result<FlowState, Refusal> {
        let place = |name: &str| format!("flows[{nth}].{name}");
        let mss = self.mss.unwrap_or(common.mss);
        if mss == 0 {
            return Err(Refusal::new(&place("mss"), "must be at least 1"));
        }
        let bytes = |segments: f64| segments * f64::from(mss);
        let (cwnd, fraction) = match (self.cwnd, self.cwnd_bytes) {
            (Some(segments), Some(given)) => {
                agree(&place("cwnd"), (segments, mss), given)?;
                size(given, &place("cwnd_bytes"))?
            }
            (_, Some(given)) => size(given, &place("cwnd_bytes"))?,
            (segments, None) => size(bytes(segments.unwrap_or(10.0)), &place("cwnd"))?,
        };
        let infinite = |segments: &f64| *segments >= INFINITE_SSTHRESH;
        let ssthresh = match (self.ssthresh, self.ssthresh_bytes) {
            (None, None) => Some(cwnd),
            (Some(Some(segments)), Some(Some(given))) => {
                agree(&place("ssthresh"), (segments, mss), given)?;
                Some(size(given, &place("ssthresh_bytes"))?.0)
            }
            (Some(one), Some(other)) if one.is_some() != other.is_some() => {
                let problem = "it and `ssthresh_bytes` must both be null (infinite), or neither";
                return Err(Refusal::new(&place("ssthresh"), problem));
            }
            (Some(segments), _) => {
                let segments = segments.filter(|it| !infinite(it));
                segments.map(|it| size(bytes(it), &place("ssthresh"))).transpose()?.map(|it| it.0)
            }
            (_, Some(given)) => {
                given.map(|it| size(it, &place("ssthresh_bytes"))).transpose()?.map(|it| it.0)
            }
        };
        let below = ssthresh.is_none_or(|ssthresh| cwnd < ssthresh);
        self.agrees_with_phase(cwnd, ssthresh, &place("phase"))?;
        let phase = match self.phase {
            Some(WindowPhase::SlowStart) => Phase::SlowStart { after_timeout: false },
            Some(WindowPhase::Restart) => Phase::SlowStart { after_timeout: true },
            Some(WindowPhase::Avoidance) => Phase::Avoidance,
            Some(WindowPhase::Recovery) => Phase::Recovery,
            None if below => Phase::SlowStart { after_timeout: false },
            None => Phase::Avoidance,
        };
        let Given { since_loss_bytes, between_losses_bytes, .. } = *self;
        for (name, bytes) in
            [("since_loss_bytes", since_loss_bytes), ("between_losses_bytes", between_losses_bytes)]
        {
            size(bytes as f64, &place(name))?;
        }
        let intervals =
            LossIntervals { since_last: since_loss_bytes, between_last_two: between_losses_bytes };
        let srtt = self.srtt_ms.map(|ms| span(ms, &place("srtt_ms"))).transpose()?;
        let settings = Settings {
            mss,
            initial_window: common.initial_window,
            ssthresh: None,
            slow_start_limit: common.slow_start_limit.unwrap_or(u32::MAX),
            hystart: HyStart::Off,
        };
        let books = Books { cwnd, fraction, ssthresh, phase, intervals };
        Ok(FlowState { settings, books, srtt, alive: self.alive })
    }
}

impl Given {
    /// Returns an error if the given phase contradicts the windows. Outside recovery, a flow is in
    /// slow start if and only if its window is below its threshold.
    fn agrees_with_phase(
        &self,
        cwnd: u64,
        ssthresh: Option<u64>,
        place: &str,
    ) -> Result<(), Refusal> {
        let (says, problem) = match (self.phase, ssthresh) {
            (Some(WindowPhase::Avoidance), None) => {
                ("avoidance", "the threshold is infinite, so that the window is in slow start")
            }
            (Some(WindowPhase::Avoidance), Some(ssthresh)) if cwnd < ssthresh => {
                ("avoidance", "the window is below the threshold, so that it is in slow start")
            }
            (Some(WindowPhase::SlowStart), Some(ssthresh)) if cwnd >= ssthresh => {
                ("slow-start", "the window is not below the threshold")
            }
            // After a timeout the threshold may be one segment.
            (Some(WindowPhase::Restart), Some(ssthresh)) if cwnd > ssthresh => {
                ("restart", "the window is above the threshold")
            }
            _ => return Ok(()),
        };
        let remedy = "leave it out, or change `cwnd` or `ssthresh`";
        Err(Refusal::new(place, &format!("cannot be {says}: {problem}\n  remedy: {remedy}")))
    }
}

/// Returns an error if `segments` of `mss` bytes differ from `bytes`, within the precision of an
/// answer.
fn agree(place: &str, (segments, mss): (f64, u32), bytes: f64) -> Result<(), Refusal> {
    let product = segments * f64::from(mss);
    if (product - bytes).abs() <= 1e-3 + bytes.abs() * 1e-11 {
        return Ok(());
    }
    let problem = format!(
        "{segments} segments of {mss} bytes are {product} bytes, and the key with `_bytes` says \
         {bytes}; give one of the two"
    );
    Err(Refusal::new(place, &problem))
}

/// Splits a size into whole bytes and a fraction.
fn size(bytes: f64, place: &str) -> Result<(u64, f64), Refusal> {
    if !(0.0..=GREATEST_COUNT).contains(&bytes) {
        return Err(Refusal::new(place, "must be 0 or more, and below 2^53 bytes"));
    }
    // A tiny fraction is a rounding error of the conversion from segments.
    let near = bytes.round();
    let bytes = if (bytes - near).abs() < 1e-6 { near } else { bytes };
    Ok((bytes.trunc() as u64, bytes.fract()))
}
