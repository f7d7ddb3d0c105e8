//! The estimate of one path: when a segment would arrive there.

use super::loss::LossShare;
use super::memory::Lane;
use super::paths::Work;
use super::rate::{MAX_HELD_BACK, RateSource};
use crate::SubflowView;
use plait_base::{Span, SubflowSet, Time};

/// Time beyond twice the RTT variation after which an acknowledgement counts as overdue.
const OVERDUE: Span = Span::from_millis(10);
/// Time by which a copy must arrive sooner than the first transmission.
pub(super) const SOONER: Span = Span::from_millis(1);
/// Time for which a host gathers segments and acknowledgements (Linux lets 1 ms of a flow wait in its devices).
const HOST: Span = Span::from_millis(1);
/// Segments that a path without a rate must have delivered before it carries new data.
const TRIED_SEGMENTS: u64 = 10;
/// Doublings of a window beyond which it counts as unlimited.
const MAX_DOUBLINGS: u64 = 20;

/// The parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Whether the data in flight is limited to that which the rate needs.
    pub(super) cap: bool,
    /// Percent of the bandwidth-delay product that the main path may hold.
    pub(super) main_percent: u64,
    /// Percent of the bandwidth-delay product that each other path may hold.
    pub(super) side_percent: u64,
    /// Whether windows in slow start are expected to double in each round trip.
    pub(super) growth: bool,
    /// Whether the RTT variation delays the arrival on paths other than the main one.
    pub(super) doubt: bool,
    /// Percent of the expected delay by losses that a path other than the main one must save.
    pub(super) risk_percent: u64,
    /// Whether a path other than the main one carries only copies until its rate is known.
    pub(super) probe: bool,
    /// Time of a path's rate for which one decision holds.
    pub(super) burst: Span,
    /// Whether data sent at once after a pause waits for itself.
    pub(super) backlog: bool,
    /// Whether the send window limits the rates that decide which path is the main one.
    pub(super) within: bool,
    /// Whether a longer path gets no new data that would take more room than it is worth, while data waits for room.
    pub(super) hold: bool,
    pub(super) copying: Copying,
    pub(super) learning: Learning,
}

/// The parameters of copies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copying {
    /// Whether late data is copied, and data that another path delivers sooner.
    pub(super) copies: bool,
    /// Time beyond the variation after which data counts as late.
    pub(super) late: Span,
    /// Whether late data is not copied if its own path repairs it in time.
    pub(super) patient: bool,
    /// Whether data counts as late sooner if nothing new can be sent.
    pub(super) eager: bool,
    /// Whether each path with room copies the first data that it has not carried, if all the data at hand is sent.
    pub(super) hedge: bool,
    /// Whether data behind a loss is expected with the repair.
    pub(super) repair: bool,
    /// Bytes of copies in advance in a minute that need not have shown a use.
    pub(super) spare: u64,
    /// The same while the send buffer is full.
    pub(super) full: u64,
}

/// The parameters of learning.
#[derive(Clone, Copy, Debug)]
pub(super) struct Learning {
    /// Whether data that its subflow counts as lost is late.
    pub(super) lost: bool,
    /// Whether data that its subflow has passed on needs no copy.
    pub(super) passed: bool,
    /// Whether segments that waited in a queue show the rate.
    pub(super) queued: bool,
    /// Whether the data of a busy round trip limits the rate.
    pub(super) round: bool,
    /// Whether the receiver may have held the acknowledgement of a lone segment back.
    pub(super) held: bool,
    /// Whether losses that are repaired together count once.
    pub(super) once: bool,
}

/// Facts that the estimates of all paths share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment<'a> {
    pub(super) now: Time,
    /// Length of a full segment.
    pub(super) mss: u64,
    /// Whether data sent at once after a pause waits for itself.
    pub(super) backlog: bool,
    /// The subflows that may take data.
    pub(super) candidates: SubflowSet,
    pub(super) subflows: &'a [SubflowView],
}

impl Moment<'_> {
    /// Returns the RTT of a path without a sample: the remembered one, or else the longest of the others.
    #[cold]
    fn first_rtt(&self, remembered: Span) -> Span {
        if remembered > Span::ZERO {
            return remembered;
        }
        let others = self.subflows.iter().filter(|it| self.candidates.contains(it.id));
        others.filter_map(|it| it.min_rtt.or(it.srtt)).max().unwrap_or_default()
    }
}

/// The estimate of one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate<'a> {
    pub(super) view: &'a SubflowView,
    /// Bytes a second; zero if unknown.
    pub(super) rate: u64,
    pub(super) min_rtt: Span,
    /// Bytes a second that the path is expected to carry.
    pub(super) pace: u64,
    queue: Queue,
    /// Time since the path last made progress, if it is longer than its RTT variation allows.
    pub(super) overdue: Span,
    /// Time until a full segment arrives.
    pub(super) arrival: Span,
    /// Length of a full segment.
    segment: u64,
    pub(super) main: bool,
    pub(super) source: RateSource,
    pub(super) losses: LossShare,
    /// Whether its rate is known, or it has delivered enough data without one.
    pub(super) tried: bool,
}

/// The queue of a path.
#[derive(Clone, Copy, Debug)]
struct Queue {
    /// The least wait in it.
    wait: Span,
    /// Time from it to the receiver.
    beyond: Span,
    /// Bytes sent since the path was last empty, if that was within a round trip. Otherwise the data that it holds.
    sent: u64,
    /// Time for which that data has left.
    leaving: Span,
}

impl Queue {
    /// Returns the time until the last of `sent` bytes arrives, counted from the start of the queue, if data leaves
    /// at `rate` bytes a second; zero is unknown.
    #[inline]
    fn arrives_after(&self, sent: u64, rate: u64) -> Span {
        if rate == 0 {
            return self.beyond + self.wait;
        }
        self.beyond + self.wait.max(time_for(sent, rate).minus(self.leaving))
    }
}

/// Returns the bytes that a rate of bytes a second gives in `span`.
pub(super) fn bytes_in(rate: u64, span: Span) -> u64 {
    rate.saturating_mul(span.as_micros()) / 1_000_000
}

/// Returns the rate in bytes a second that delivers `bytes` in `span`.
fn rate_of(bytes: u64, span: Span) -> u64 {
    bytes.saturating_mul(1_000_000) / span.as_micros().max(1)
}

/// Returns the bytes a second that the window of a subflow allows.
fn window_pace(view: &SubflowView, min_rtt: Span) -> u64 {
    rate_of(view.cwnd.min(view.cap), view.srtt.unwrap_or(min_rtt))
}

/// Returns the time that `bytes` take at a rate of bytes a second.
pub(super) fn time_for(bytes: u64, rate: u64) -> Span {
    Span::from_nanos(bytes.saturating_mul(1_000_000_000) / rate.max(1))
}

impl<'a> Estimate<'a> {
    /// Estimates a path.
    #[inline(always)]
    pub(super) fn new(view: &'a SubflowView, lane: &Lane, moment: &Moment<'_>) -> Estimate<'a> {
        let Moment { now, mss, backlog, .. } = *moment;
        let (rate, source, losses) = (lane.rate.rate(), lane.rate.source, lane.losses);
        let own = view.min_rtt.or(view.srtt);
        let min_rtt = own.unwrap_or_else(|| moment.first_rtt(lane.min_rtt));
        let age = now.since(view.rtt_at);
        let mut srtt = view.srtt.unwrap_or(min_rtt);
        let (mut wait, mut overdue) = (Span::ZERO, Span::ZERO);
        if view.inflight == 0 {
            // The queue of an idle path drains.
            srtt = srtt.minus(age);
        } else {
            let held_back = if view.inflight < 2 * mss { MAX_HELD_BACK } else { Span::ZERO };
            let silent = now.since(lane.progress.max(lane.expects));
            overdue = silent.minus(view.rttvar.times(2) + OVERDUE + held_back);
            // A sample from before the path was idle shows a queue that has left.
            if !backlog || view.rtt_at >= lane.started {
                wait = view.last_rtt.unwrap_or_default().minus(min_rtt + lane.held + age);
            }
        }
        let (mut sent, mut leaving) = (view.inflight.saturating_add(view.queued), min_rtt);
        let (mut pace, mut opens) = (rate, Span::ZERO);
        if rate == 0 {
            if view.srtt.is_some() {
                pace = window_pace(view, min_rtt);
            }
            wait = wait.max(srtt.minus(min_rtt));
        } else if backlog && let Some(age) = lane.backlog.age(now, rate, min_rtt) {
            // The segment waits for the data sent since the queue began. The minimum RTT includes the transmission
            // of a segment, unless the path is thin.
            let includes = bytes_in(rate, min_rtt) >= mss;
            (sent, leaving) = (lane.backlog.bytes, age);
            sent = sent.saturating_sub(if includes { mss } else { 0 });
            if view.room() < mss {
                // The first acknowledgement of this data makes room.
                opens = min_rtt.minus(age) + min_rtt.over(2);
            }
        }
        let queue = Queue { wait, beyond: min_rtt.over(2) + overdue, sent, leaving };
        let arrival = queue.arrives_after(sent.saturating_add(mss), rate).max(opens);
        let tried = source.is_known() || lane.proven || losses.acked >= TRIED_SEGMENTS * mss;
        Estimate {
            view,
            rate,
            min_rtt,
            pace,
            queue,
            overdue,
            arrival,
            segment: mss,
            main: false,
            source,
            losses,
            tried,
        }
    }

    /// Returns the time until the last of `len` bytes arrives, all sent now.
    pub(super) fn last_arrives_in(&self, len: u64) -> Span {
        self.arrives_behind(self.held_with(len))
    }

    /// Returns the bytes that the path holds after `len` more.
    pub(super) fn held_with(&self, len: u64) -> u64 {
        self.view.inflight.saturating_add(self.view.queued).saturating_add(len)
    }

    /// Returns the time until a segment of `len` bytes arrives.
    pub(super) fn arrives_in(&self, len: u64) -> Span {
        if len == self.segment { self.arrival } else { self.arrives_behind(self.held_with(len)) }
    }

    /// Returns the time until the last of `held` bytes arrives, if the path holds these.
    pub(super) fn arrives_behind(&self, held: u64) -> Span {
        let sent = held.saturating_add(self.queue.sent).saturating_sub(self.held_with(0));
        self.queue.arrives_after(sent, self.rate)
    }

    /// Returns the bytes that the path delivers before `time` from now on, ahead of other data sent now.
    pub(super) fn delivers(&self, time: Span, mss: u64, growth: bool) -> u64 {
        if time <= self.arrival {
            return 0;
        }
        let left = time.minus(self.arrival);
        let window = self.view.cwnd.min(self.view.cap);
        let srtt = self.view.srtt.unwrap_or_default().as_micros().max(1);
        let thousandths = left.as_micros().saturating_mul(1_000) / srtt;
        let slow_start = self.view.ssthresh.is_none_or(|it| self.view.cwnd < it);
        let factor = match growth && slow_start {
            // 2^x - 1, on a line between whole numbers.
            true => {
                let (whole, part) = (thousandths / 1_000, thousandths % 1_000);
                (1_u64 << whole.min(MAX_DOUBLINGS)) * (1_000 + part) - 1_000
            }
            false => thousandths,
        };
        let free = self.view.room().saturating_add(window.saturating_mul(factor) / 1_000);
        match self.rate {
            0 => free,
            rate => free.min(bytes_in(rate, left).saturating_add(mss)),
        }
    }

    /// Returns the most bytes that the path may hold: those that its rate needs.
    pub(super) fn limit(&self, rules: &Rules, mss: u64) -> u64 {
        // A remembered rate may be far too low. Its path must get enough data for a sample.
        if !rules.cap || self.rate == 0 || self.source != RateSource::Own {
            return u64::MAX;
        }
        let (base, spare, percent) = match self.main {
            true => (10, 4, rules.main_percent),
            false => (4, 3, rules.side_percent),
        };
        // A queue that drains varies the RTT too, and needs no more data for that.
        let varies = self.view.rttvar.min(self.min_rtt.over(2));
        let span = self.min_rtt + varies.times(2);
        let held = bytes_in(self.rate, span).saturating_mul(percent) / 100;
        let spare = (spare * mss).max(bytes_in(self.rate, HOST));
        (base * mss).max(held.saturating_add(spare))
    }

    /// Returns the bytes a second that the path carries if it holds all of the send window of the connection.
    pub(super) fn pace_within(&self, window: u64) -> u64 {
        if bytes_in(self.pace, self.min_rtt) <= window {
            return self.pace;
        }
        rate_of(window, self.min_rtt)
    }

    /// Returns the bytes a second that the window allows.
    fn window_pace(&self) -> u64 {
        window_pace(self.view, self.min_rtt)
    }

    /// Returns true if the time that a segment saves on this path is worth the risk: the delay until a loss
    /// is repaired on `main`, less the time for which the window and the unsent data keep `main` busy.
    ///
    /// If data waits for room, a loss stops all of it. An earlier arrival then saves no time.
    pub(super) fn is_worth(
        &self,
        main: &Estimate<'_>,
        rules: &Rules,
        work: &Work,
        mss: u64,
    ) -> bool {
        let varies = self.view.rttvar.times(4).min(self.min_rtt.times(2));
        let repair = self.min_rtt.over(2) + varies + rules.copying.late + main.min_rtt.over(2);
        let loss_ppm = self.losses.ppm();
        let least = |delay: Span| {
            let delay = delay.as_nanos().saturating_mul(loss_ppm) / 1_000_000;
            delay.saturating_mul(rules.risk_percent) / 100
        };
        let sooner = match work.limited {
            true => 0,
            false => main.arrival.minus(self.arrival).as_nanos(),
        };
        let most = least(repair);
        // Most paths pass here, without a division by a rate.
        if sooner >= most || mss.saturating_mul(1_000_000_000) >= most.saturating_mul(main.pace) {
            return true;
        }
        let pace = main.pace.min(main.window_pace());
        let holds = bytes_in(main.pace, main.min_rtt).min(main.view.cwnd.min(main.view.cap));
        let busy = time_for(work.window.saturating_sub(holds).min(work.unsent), pace);
        time_for(mss, pace).as_nanos().max(sooner) >= least(repair.minus(busy))
    }

    /// Returns true if a connection that may hold `room` bytes carries less with this longer path than with `main`
    /// alone.
    ///
    /// The data on `main` is acknowledged only with the data before it. So each byte takes up room until a segment
    /// sent on this path at the same time has arrived, and its acknowledgement has returned on `main`.
    pub(super) fn holds_up(&self, main: &Estimate<'_>, room: u64) -> bool {
        let held = self.arrival + main.min_rtt.over(2);
        self.min_rtt > main.min_rtt && bytes_in(main.pace.min(main.window_pace()), held) >= room
    }

    /// Returns true if the data in flight shows no queue.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.leaving == self.min_rtt && self.held_with(0) <= bytes_in(self.rate, self.min_rtt)
    }

    /// Returns true if the path holds as much as its rate needs without a queue.
    pub(super) fn is_filled(&self) -> bool {
        self.rate > 0 && self.view.inflight >= bytes_in(self.rate, self.min_rtt)
    }
}
