//! Stalls with their causes and costs, the most expensive first.

use crate::cause::Cause;
use crate::connection::Connection;
use crate::limits::{Label, PathLimits, Period, Stall};
use crate::subflow::{Mark, Subflow, Vantage};
use std::collections::BTreeMap;

/// Reports have at most this many incidents of a connection.
const MAX_INCIDENTS: usize = 200;
/// A join is late after this many RTTs of its handshake, and at least [`LATE_JOIN_NS`].
const LATE_JOIN_RTTS: i64 = 4;
const LATE_JOIN_NS: i64 = 100_000_000;
/// A stall with a smaller cost is none, in nanoseconds.
const MIN_COST_NS: f64 = 500_000.0;
/// A receive window of fewer bandwidth-delay products is too small (RFC 8684 appendix B.1 recommends two).
const ENOUGH_WINDOW: f64 = 2.0;
/// First losses of a slow start that overran a queue. It sends at twice the rate of the link, so the queue drops
/// every second packet of an RTT. Random losses are a smaller part of a window.
const OVERSHOOT_LOSSES: u64 = 4;
/// Such losses are at least this part of the window: one in this many.
const OVERSHOOT_PART: u64 = 4;
/// A full send buffer keeps this part of the largest amount of unacknowledged data. A capture at the receiver lacks
/// the data that waits in the queues of the links.
const BUFFER_PART: f64 = 0.8;
const BUFFER_PART_AT_RECEIVER: f64 = 0.6;
/// In the mean of a stall, a full send buffer keeps this part. A program that writes at its own pace keeps less. A
/// capture at the receiver does not show the difference.
const MEAN_BUFFER_PART: f64 = 0.6;
/// A window that is full is used to at least three quarters: senders avoid small segments (RFC 9293 section 3.8.6).
const FULL_WINDOW: (i64, i64) = (3, 4);

/// A stall with its cause.
#[derive(Clone, Debug)]
pub(crate) struct Incident {
    pub(crate) cause: Cause,
    /// The path that is the cause; none if it is the connection.
    pub(crate) path: Option<usize>,
    pub(crate) from_ns: i64,
    pub(crate) to_ns: i64,
    /// Time that the transfer lost, in nanoseconds; none if it cannot be known.
    pub(crate) cost_ns: Option<f64>,
    pub(crate) packets: (Mark, Mark),
}

/// Rate and RTT of a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capacity {
    /// Rate of the link in payload bits per second; zero if unknown.
    pub(crate) rate_bps: f64,
    /// True if packets waited for each other. Otherwise the link has at least this rate.
    pub(crate) is_known: bool,
    /// Smallest RTT in nanoseconds.
    pub(crate) rtt_ns: i64,
}

impl Capacity {
    /// A path without its acknowledgements in the capture has this.
    const UNKNOWN: Capacity = Capacity { rate_bps: 0.0, is_known: false, rtt_ns: 0 };
}

/// Returns the rate and the RTT of a path, for the data of `side`. `is_dry` is true if the program of the sender had
/// written no more for most of the time.
pub(crate) fn capacity(
    flow: &Subflow,
    limits: Option<&PathLimits>,
    side: usize,
    is_dry: bool,
) -> Capacity {
    let half = &flow.halves[side];
    let at_sender = flow.vantage(side) == Vantage::Sender;
    let (first, second) = match at_sender {
        true => (half.samples.deliveries.rate(), half.samples.arrivals.rate()),
        false => (half.samples.arrivals.rate(), half.samples.deliveries.rate()),
    };
    let span = (flow.last.at_ns - flow.first.at_ns).max(1) as f64;
    let mean = half.counts.fresh_bytes as f64 * 8e9 / span;
    let queued = limits.and_then(PathLimits::queued_rate);
    let rate = match half.counts.fresh_bytes {
        0 => 0.0,
        _ => queued.or(first).or(second).unwrap_or(mean),
    };
    let known = limits.map_or(0, PathLimits::min_rtt);
    let rtt_ns = if known > 0 { known } else { flow.handshake_rtt().unwrap_or(0) };
    // Where the capture does not show when data was sent, only a sender with enough data fills the link.
    let fills = !at_sender && !is_dry;
    let is_known = queued.is_some() || half.samples.deliveries.shows_queue() || fills;
    Capacity { rate_bps: rate, is_known, rtt_ns }
}

/// The incidents of the data of one side.
pub(crate) struct Found {
    pub(crate) incidents: Vec<Incident>,
    pub(crate) capacities: Vec<Capacity>,
    /// Number of all incidents, and the cost of each cause and path in nanoseconds.
    pub(crate) count: usize,
    pub(crate) by_cause: BTreeMap<(Cause, Option<usize>), (f64, usize)>,
}

/// Returns the incidents of the data of `side`.
pub(crate) fn find(connection: &Connection, side: usize) -> Found {
    let limits = &connection.limits[side];
    let flows = connection.subflows.iter().enumerate();
    let is_dry = limits.messages().is_some();
    let of = |(at, flow)| match connection.is_answered(at, side) {
        true => capacity(flow, limits.paths.get(at), side, is_dry),
        false => Capacity::UNKNOWN,
    };
    let capacities: Vec<Capacity> = flows.map(of).collect();
    let used = |it: &&Capacity| it.rate_bps > 0.0;
    let total: f64 = capacities.iter().map(|it| it.rate_bps).sum();
    let longest = capacities.iter().filter(|it| it.rate_bps > 0.0).map(|it| it.rtt_ns).max();
    let (buffer_part, mean_buffer_part) = match connection.subflows[0].vantage(side) {
        Vantage::Receiver => (BUFFER_PART_AT_RECEIVER, 0.0),
        _ => (BUFFER_PART, MEAN_BUFFER_PART),
    };
    let judge = Judge {
        connection,
        side,
        total,
        need_bytes: total / 8e9 * longest.unwrap_or(0) as f64,
        idle: time_of(&limits.log.stalls, Label::Idle),
        short: time_of(&limits.log.stalls, Label::Short),
        starved: starved(&limits.log.stalls, connection.subflows.len()),
        is_dry,
        is_stream: is_dry && capacities.iter().filter(used).all(|it| !it.is_known),
        ceiling: limits.log.stalls.iter().map(|it| it.whole.unacked).max().unwrap_or(0),
        buffer_part,
        mean_buffer_part,
    };
    let mut all = match connection.only_from() {
        Some(_) => Vec::new(),
        None => structural(connection, side),
    };
    all.extend(limits.log.stalls.iter().filter_map(|stall| judge.incident(stall, &capacities)));
    let mut all = joined(all);
    let mut by_cause: BTreeMap<(Cause, Option<usize>), (f64, usize)> = BTreeMap::new();
    for incident in &all {
        let sum = by_cause.entry((incident.cause, incident.path)).or_default();
        sum.0 += incident.cost_ns.unwrap_or(0.0);
        sum.1 += 1;
    }
    let key = |it: &Incident| it.cost_ns.unwrap_or(f64::INFINITY);
    all.sort_by(|a, b| key(b).total_cmp(&key(a)).then(a.from_ns.cmp(&b.from_ns)));
    let count = all.len();
    all.truncate(MAX_INCIDENTS);
    Found { incidents: all, capacities, count, by_cause }
}

/// Joins incidents of one cause and path that overlap. Several labels may have the same cause, so their stalls overlap.
/// Each stall has time of its own, so the costs add up.
fn joined(mut all: Vec<Incident>) -> Vec<Incident> {
    all.sort_by_key(|it| (it.cause, it.path, it.from_ns));
    let mut joined: Vec<Incident> = Vec::new();
    for incident in all {
        match (joined.last_mut(), incident.cost_ns) {
            (
                Some(Incident { cause, path, to_ns, cost_ns: Some(sum), packets, .. }),
                Some(cost),
            ) if (*cause, *path) == (incident.cause, incident.path)
                && incident.from_ns < *to_ns =>
            {
                *sum += cost;
                if incident.to_ns > *to_ns {
                    (*to_ns, packets.1) = (incident.to_ns, incident.packets.1);
                }
            }
            _ => joined.push(incident),
        }
    }
    joined
}

fn time_of(stalls: &[Stall], label: Label) -> i64 {
    let of = stalls.iter().filter(|stall| stall.whole.label == label);
    of.flat_map(|stall| stall.shares.iter()).map(|(_, share)| share.time).sum()
}

/// Returns the time of each path in which it had room.
fn starved(stalls: &[Stall], paths: usize) -> Vec<i64> {
    let mut times = vec![0_i64; paths];
    for stall in stalls.iter().filter(|it| matches!(it.whole.label, Label::Short | Label::Unused)) {
        for (path, share) in stall.shares.iter() {
            times[path] = times[path].saturating_add(share.time);
        }
    }
    times
}

/// Returns the faults of MPTCP itself.
fn structural(connection: &Connection, side: usize) -> Vec<Incident> {
    let mut found = Vec::new();
    let finished = connection.limits[side].finished;
    let mut add = |cause, path, from: Mark, to: Mark| {
        let (from_ns, to_ns) = (from.at_ns, finished.max(to.at_ns));
        found.push(Incident { cause, path, from_ns, to_ns, cost_ns: None, packets: (from, to) });
    };
    for (index, flow) in connection.subflows.iter().enumerate() {
        let (agreed, syn) = (flow.agreed, flow.handshake.syn);
        let Some(syn) = syn.filter(|_| agreed.asked) else { continue };
        if agreed.join {
            let refused = match (flow.handshake.syn_ack, flow.reset) {
                (Some(answer), _) if !agreed.answered => {
                    Some(answer).filter(|_| agreed.answer_is_whole)
                }
                (Some(_), _) if agreed.fell_back => Some(flow.last),
                (Some(_), Some(reset)) if !agreed.confirmed && flow.cut_packets == 0 => {
                    Some(reset.mark)
                }
                (Some(_), Some(reset)) if reset.side != flow.opener && !agreed.accepted => {
                    Some(reset.mark)
                }
                (None, Some(reset)) => Some(reset.mark),
                (None, None) if flow.handshake.syns > 1 => Some(flow.last),
                _ => None,
            };
            if let Some(to) = refused.filter(|_| !connection.has_joined_like(flow)) {
                add(Cause::JoinRefused, Some(index), syn, to);
            }
        } else if let Some(answer) = flow.handshake.syn_ack
            && ((!agreed.answered && agreed.answer_is_whole) || agreed.fell_back)
        {
            add(Cause::OptionsRemoved, None, syn, answer);
        }
    }
    found
}

/// Finds the causes of the stalls of one direction.
struct Judge<'a> {
    connection: &'a Connection,
    side: usize,
    /// Rate of all paths in bits per second.
    total: f64,
    /// Rate of all paths times the longest RTT.
    need_bytes: f64,
    /// Time of all paths with nothing outstanding, and with too little.
    idle: i64,
    short: i64,
    /// Time of each path in which it had room.
    starved: Vec<i64>,
    /// True if the program had written no more for most of the time.
    is_dry: bool,
    /// True if also no link was full.
    is_stream: bool,
    /// Largest amount of unacknowledged data.
    ceiling: i64,
    /// Part of that which a full send buffer keeps unacknowledged.
    buffer_part: f64,
    /// The same in the mean of a stall.
    mean_buffer_part: f64,
}

impl Judge<'_> {
    fn incident(&self, stall: &Stall, capacities: &[Capacity]) -> Option<Incident> {
        let whole = &stall.whole;
        if whole.blamed.is_some_and(|path| !self.connection.is_answered(path, self.side)) {
            return None;
        }
        let cause = self.cause(stall)?;
        let lost = stall.shares.iter().map(|(path, share)| {
            let rate = capacities.get(path).map_or(0.0, |it| it.rate_bps);
            // Links without a known rate may have carried the data in any time.
            let is_free = cause == Cause::ApplicationIdle && self.is_stream;
            let bytes = if is_free { 0 } else { share.bytes };
            (share.time as f64 * rate - bytes as f64 * 8e9).max(0.0)
        });
        let cost = if self.total > 0.0 { lost.sum::<f64>() / self.total } else { 0.0 };
        (cost > MIN_COST_NS).then_some(Incident {
            cause,
            path: whole.blamed.filter(|_| !cause.is_of_connection()),
            from_ns: whole.from,
            to_ns: whole.to,
            cost_ns: Some(cost),
            packets: whole.packets,
        })
    }

    /// Returns the cause of a stall; none if the link was the limit.
    fn cause(&self, stall: &Stall) -> Option<Cause> {
        let whole = &stall.whole;
        Some(match whole.label {
            Label::Link => return None,
            Label::Ramp => Cause::StartUp,
            Label::FirstRecovery | Label::AfterFirst => match self.overran(whole.blamed) {
                true => Cause::SlowStartOvershoot,
                false => Cause::Loss,
            },
            Label::Recovery | Label::AfterLoss => Cause::Loss,
            Label::Silent => Cause::PathSilent,
            Label::Reset => Cause::PathReset,
            Label::Window => Cause::ReceiveWindow,
            Label::Behind { window: true, .. }
                if (whole.window as f64) < self.need_bytes * ENOUGH_WINDOW =>
            {
                Cause::ReceiveWindow
            }
            Label::Short | Label::Unused | Label::Behind { window: false, .. }
                if self.is_window(whole) =>
            {
                Cause::ReceiveWindow
            }
            Label::Behind { buffer: true, .. } if self.is_buffer_small() => Cause::SendBuffer,
            Label::Behind { window: false, .. } if self.is_send_buffer(stall) => Cause::SendBuffer,
            Label::Behind { .. } | Label::Tail => Cause::LateOnSlowPath,
            Label::Idle => Cause::ApplicationIdle,
            Label::Short if self.is_send_buffer(stall) && self.short > self.idle => {
                Cause::SendBuffer
            }
            Label::Short => Cause::ApplicationIdle,
            Label::Unused if self.is_send_buffer(stall) && self.all_starve(stall) => {
                Cause::SendBuffer
            }
            Label::Unused | Label::Declined => Cause::PathUnused,
            Label::BufferFull => Cause::SendBuffer,
            Label::NothingToSend => Cause::ApplicationIdle,
            Label::BeforeJoin if self.is_replacement(whole.blamed) => return None,
            Label::BeforeJoin => match self.is_late(stall) {
                true => Cause::JoinLate,
                false => Cause::StartUp,
            },
        })
    }

    /// Returns true if a stall keeps the most unacknowledged data that the sender ever has, and this is too little for
    /// the paths. If a log has the state of the sender, the amount shows nothing more.
    fn is_send_buffer(&self, stall: &Stall) -> bool {
        let known = self.connection.limits[self.side].knows_sender();
        let ceiling = self.ceiling as f64;
        !known
            && !self.is_dry
            && stall.whole.unacked as f64 >= self.buffer_part * ceiling
            && stall.mean_unacked() >= self.mean_buffer_part * ceiling
            && self.is_buffer_small()
    }

    /// Returns true if the largest amount of unacknowledged data is too little for the paths.
    fn is_buffer_small(&self) -> bool {
        (self.ceiling as f64) < self.need_bytes * ENOUGH_WINDOW
    }

    /// Returns true if the receive window was nearly full and is too small for the paths.
    fn is_window(&self, whole: &Period) -> bool {
        let (part, of) = FULL_WINDOW;
        whole.unacked.saturating_mul(of) >= whole.window.saturating_mul(part)
            && (whole.window as f64) < self.need_bytes * ENOUGH_WINDOW
    }

    /// Returns true if another path had room for a tenth of the time of the stalled one. A full send buffer leaves
    /// all paths with room at times. A scheduler that leaves a path unused fills the others.
    fn all_starve(&self, stall: &Stall) -> bool {
        let Some(own) = stall.whole.blamed else { return false };
        let others = self.starved.iter().enumerate().filter(|(path, _)| *path != own);
        others.map(|(_, time)| time.saturating_mul(10)).max() >= self.starved.get(own).copied()
    }

    /// Returns true if an earlier subflow had the same addresses.
    fn is_replacement(&self, path: Option<usize>) -> bool {
        let flows = &self.connection.subflows;
        let Some((path, own)) = path.and_then(|path| Some((path, flows.get(path)?))) else {
            return false;
        };
        let hosts = |flow: &Subflow| flow.ends.map(|end| end.ip());
        flows.iter().take(path).any(|earlier| hosts(earlier) == hosts(own))
    }

    fn overran(&self, path: Option<usize>) -> bool {
        let Some(path) = path.and_then(|path| self.connection.limits[self.side].paths.get(path))
        else {
            return false;
        };
        let first = path.first_losses();
        first.at_once >= OVERSHOOT_LOSSES && first.in_all * OVERSHOOT_PART >= first.windows
    }

    fn is_late(&self, stall: &Stall) -> bool {
        let waited = stall.whole.to - stall.whole.from;
        let flows = &self.connection.subflows;
        let flow = stall.whole.blamed.and_then(|path| flows.get(path));
        // A join begins after the handshake of the first subflow.
        let rtts = [flow, flows.first()].map(|flow| flow.and_then(Subflow::handshake_rtt));
        let rtt = rtts.into_iter().flatten().max().unwrap_or(0);
        waited > (rtt * LATE_JOIN_RTTS).max(LATE_JOIN_NS)
    }
}
