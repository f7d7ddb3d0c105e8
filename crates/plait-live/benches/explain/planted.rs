//! Transfers with one planted cause each, drawn at random from a seed.
//!
//! The sizes of a cause follow from the links: a window in parts of the bandwidth-delay product, a loss rate that
//! keeps the window of TCP below half of its path. The verdict of `plait explain` has no part in them.

use super::net::Line;
use super::pairs::Chance;
use plait_base::{Span, Time};
use plait_capture::Cause;
use plait_live::emulate::Strip;

/// Payload of a full segment with timestamps and a DSS option, in bytes.
const SEGMENT: f64 = 1_428.0;
/// Bytes of a full packet.
const PACKET: f64 = 1_500.0;

/// A kind of planted cause.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    OvershootFirst,
    OvershootSecond,
    LossFirst,
    LossSecond,
    OutageFirst,
    OutageSecond,
    ReceiveBuffer,
    SlowReader,
    SendBuffer,
    LateData,
    OnePause,
    Messages,
    StrippedAnswer,
    StrippedData,
    PlainServer,
    JoinStripped,
    JoinLimit,
    JoinBlocked,
    LateAnswer,
    LateEndpoint,
}

impl Kind {
    pub const ALL: [Kind; 20] = [
        Kind::OvershootFirst,
        Kind::OvershootSecond,
        Kind::LossFirst,
        Kind::LossSecond,
        Kind::OutageFirst,
        Kind::OutageSecond,
        Kind::ReceiveBuffer,
        Kind::SlowReader,
        Kind::SendBuffer,
        Kind::LateData,
        Kind::OnePause,
        Kind::Messages,
        Kind::StrippedAnswer,
        Kind::StrippedData,
        Kind::PlainServer,
        Kind::JoinStripped,
        Kind::JoinLimit,
        Kind::JoinBlocked,
        Kind::LateAnswer,
        Kind::LateEndpoint,
    ];

    /// Returns what is planted, in words.
    pub fn words(self) -> &'static str {
        match self {
            Kind::OvershootFirst => "slow start without HyStart and SACK, short queue, path 1",
            Kind::OvershootSecond => "slow start without HyStart and SACK, short queue, path 2",
            Kind::LossFirst => "random loss, path 1",
            Kind::LossSecond => "random loss, path 2",
            Kind::OutageFirst => "outage of path 1",
            Kind::OutageSecond => "outage of path 2",
            Kind::ReceiveBuffer => "small SO_RCVBUF",
            Kind::SlowReader => "a reader slower than the paths",
            Kind::SendBuffer => "small SO_SNDBUF",
            Kind::LateData => "the rate of path 2 falls to a tenth or less",
            Kind::OnePause => "a pause of the server's program",
            Kind::Messages => "messages with pauses",
            Kind::StrippedAnswer => "SYN/ACK stripped of its option, path 1",
            Kind::StrippedData => "segments after the SYN stripped of their options, path 1",
            Kind::PlainServer => "a server without MPTCP",
            Kind::JoinStripped => "SYN/ACK stripped of its option, path 2",
            Kind::JoinLimit => "the server's limit of subflows is zero",
            Kind::JoinBlocked => "the server's firewall drops SYNs of path 2",
            Kind::LateAnswer => "the same firewall, for a while",
            Kind::LateEndpoint => "the client's second endpoint is added late",
        }
    }

    /// Returns true if the cause is that of both paths, so that the explanation may name either.
    pub fn is_of_both(self) -> bool {
        matches!(self, Kind::OvershootFirst | Kind::OvershootSecond)
    }

    /// Returns the cause, and the number of the path if the cause is one.
    pub fn cause(self) -> (Cause, Option<usize>) {
        match self {
            Kind::OvershootFirst => (Cause::SlowStartOvershoot, Some(0)),
            Kind::OvershootSecond => (Cause::SlowStartOvershoot, Some(1)),
            Kind::LossFirst => (Cause::Loss, Some(0)),
            Kind::LossSecond => (Cause::Loss, Some(1)),
            Kind::OutageFirst => (Cause::PathSilent, Some(0)),
            Kind::OutageSecond => (Cause::PathSilent, Some(1)),
            Kind::ReceiveBuffer | Kind::SlowReader => (Cause::ReceiveWindow, None),
            Kind::SendBuffer => (Cause::SendBuffer, None),
            Kind::LateData => (Cause::LateOnSlowPath, Some(1)),
            Kind::OnePause | Kind::Messages => (Cause::ApplicationIdle, None),
            Kind::StrippedAnswer | Kind::StrippedData | Kind::PlainServer => {
                (Cause::OptionsRemoved, None)
            }
            Kind::JoinStripped | Kind::JoinLimit | Kind::JoinBlocked => {
                (Cause::JoinRefused, Some(1))
            }
            Kind::LateAnswer | Kind::LateEndpoint => (Cause::JoinLate, Some(1)),
        }
    }
}

/// The second path at the beginning.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Join {
    AtOnce,
    /// The server accepts no join.
    NoLimit,
    /// The server's firewall drops the SYNs of the second path, for this time if it is given.
    Blocked(Option<Span>),
    /// The client knows its second address after this time.
    Late(Span),
}

/// A transfer with one planted cause.
#[derive(Clone, Debug)]
pub struct Planted {
    pub kind: Kind,
    pub lines: [Line; 2],
    /// Bytes of each part that the server sends, the number of parts, and the pause after each one.
    pub part: u64,
    pub parts: u64,
    pub pause: Span,
    pub cc: &'static str,
    /// Whether the server allows SACK. Without it, a sender repairs one loss in each RTT.
    pub sack: bool,
    pub rcvbuf: Option<u64>,
    pub sndbuf: Option<u64>,
    /// Rate of the client's program in bytes per second, if it is limited.
    pub reader: Option<f64>,
    pub join: Join,
}

impl Planted {
    fn without_cause(kind: Kind, lines: [Line; 2]) -> Planted {
        Planted {
            kind,
            lines,
            part: 0,
            parts: 1,
            pause: Span::ZERO,
            cc: "cubic",
            sack: true,
            rcvbuf: None,
            sndbuf: None,
            reader: None,
            join: Join::AtOnce,
        }
    }
}

/// Returns a link with a rate in Mbit/s, an RTT in ms and a queue in bandwidth-delay products.
fn line(mbit: f64, rtt_ms: f64, products: f64) -> Line {
    let (mbit, rtt_ms) = (mbit.round(), rtt_ms.round());
    let queue = product(mbit, rtt_ms) * products;
    Line::new(mbit as u64, rtt_ms as u64, queue.max(20.0 * PACKET) as u64)
}

/// Returns a bandwidth-delay product in bytes.
fn product(mbit: f64, rtt_ms: f64) -> f64 {
    mbit * 1e6 / 8.0 * rtt_ms / 1e3
}

/// Returns the smallest loss rate in whole percent that keeps a window of TCP, by the formula of Mathis, below half
/// of the bandwidth-delay product.
fn limiting_loss(line: &Line) -> u32 {
    let window = |percent: u32| 1.22 * SEGMENT / (f64::from(percent) / 100.0).sqrt();
    let half = product(line.mbit as f64, line.rtt.as_millis_f64()) / 2.0;
    (1..6).find(|percent| window(*percent) < half).unwrap_or(6)
}

fn millis(value: f64) -> Span {
    Span::from_millis(value as u64)
}

/// Draws the transfer with this number.
pub fn draw(seed: u64, number: u64) -> Planted {
    let kind = Kind::ALL[number as usize % Kind::ALL.len()];
    let mut chance = Chance::new(seed.wrapping_mul(1_000_003).wrapping_add(number));
    let mut lines = links(&mut chance, kind);
    let rate = lines.iter().map(|line| line.mbit as f64 * 1e6 / 8.0).sum::<f64>();
    let longest = lines.iter().map(|line| line.rtt.as_millis_f64()).fold(0.0, f64::max);
    let whole_product = rate * longest / 1e3;
    let mut seconds = chance.between(2.0, 4.0);
    let mut planted = Planted::without_cause(kind, lines);
    match kind {
        Kind::OvershootFirst | Kind::OvershootSecond => {
            (planted.cc, planted.sack) = ("reno", false);
        }
        Kind::LossFirst | Kind::LossSecond => {
            let line = &mut lines[usize::from(kind == Kind::LossSecond)];
            line.loss = limiting_loss(line);
        }
        Kind::OutageFirst | Kind::OutageSecond => {
            let line = &mut lines[usize::from(kind == Kind::OutageSecond)];
            // The emulator's clock begins about a second before the transfer.
            let from = Time::ZERO + millis(chance.between(2_000.0, 3_000.0));
            line.outage = Some((from, millis(chance.between(1_500.0, 4_000.0))));
            seconds += 3.0;
        }
        Kind::ReceiveBuffer => {
            let part = chance.between(0.2, 0.6);
            planted.rcvbuf = Some((whole_product * part).max(8.0 * SEGMENT) as u64);
        }
        Kind::SendBuffer => {
            let part = chance.between(0.1, 0.3);
            planted.sndbuf = Some((whole_product * part).max(4.0 * SEGMENT) as u64);
        }
        Kind::SlowReader => planted.reader = Some(rate * chance.between(0.2, 0.5)),
        Kind::LateData => {
            let from = Time::ZERO + millis(chance.between(1_800.0, 2_500.0));
            let part = chance.between(10.0, 20.0);
            lines[1].later = Some((from, (lines[1].mbit as f64 * 1_000.0 / part) as u64));
        }
        Kind::OnePause => {
            (planted.parts, planted.pause) = (2, millis(chance.between(1_500.0, 3_000.0)));
        }
        Kind::Messages => {
            planted.parts = 5 + chance.below(6) as u64;
            planted.pause = millis(chance.between(300.0, 1_000.0));
            seconds = 0.15 * planted.parts as f64;
        }
        Kind::StrippedAnswer => lines[0].strip = Strip::SynAck,
        Kind::StrippedData => lines[0].strip = Strip::AfterSyn,
        Kind::PlainServer => {}
        Kind::JoinStripped => lines[1].strip = Strip::SynAck,
        Kind::JoinLimit => planted.join = Join::NoLimit,
        Kind::JoinBlocked => planted.join = Join::Blocked(None),
        Kind::LateAnswer => {
            planted.join = Join::Blocked(Some(millis(chance.between(300.0, 2_500.0))));
            seconds += 2.0;
        }
        Kind::LateEndpoint => {
            planted.join = Join::Late(millis(chance.between(1_000.0, 3_000.0)));
            seconds += 2.0;
        }
    }
    planted.lines = lines;
    planted.part = (rate * seconds / planted.parts as f64) as u64;
    planted
}

/// Draws the links. The path of the cause has at least half of the rate, because a cause on a path that hardly
/// counts does not cost the most.
fn links(chance: &mut Chance, kind: Kind) -> [Line; 2] {
    let mut usual = |low: f64, high: f64| {
        line(chance.between(low, high), chance.between(15.0, 80.0), chance.between(1.0, 3.0))
    };
    let (major, minor) = (usual(10.0, 30.0), usual(4.0, 10.0));
    match (kind, kind.cause().1) {
        (Kind::OvershootFirst | Kind::OvershootSecond, at) => {
            let rtt_ms = chance.between(60.0, 120.0);
            let short = line(chance.between(15.0, 30.0), rtt_ms, chance.between(0.15, 0.4));
            if at == Some(0) { [short, minor] } else { [minor, short] }
        }
        (Kind::LateData, _) => {
            let fast = line(chance.between(12.0, 25.0), chance.between(15.0, 40.0), 2.0);
            let slow = line(chance.between(6.0, 12.0), chance.between(40.0, 80.0), 4.0);
            [fast, slow]
        }
        (_, Some(0)) => [major, minor],
        (_, Some(_)) => [minor, major],
        (_, None) if chance.below(2) == 0 => [major, minor],
        (_, None) => [minor, major],
    }
}
