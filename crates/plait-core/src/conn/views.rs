//! What a scheduler sees of the subflows, kept up to date with as little work as may be.

use super::{Connection, Context, Mode};
use crate::event::Event;
use crate::tcp::loss::Phase;
use crate::tcp::subflow::Subflow;
use alloc::vec::Vec;
use plait_base::{Dsn, SubflowSet, Time};
use plait_sched::{CaState, SubflowView};

/// MP_CAPABLE with data takes 24 bytes, a DSS 20 (RFC 8684 sections 3.1 and 3.3).
pub(super) const KEYS_OVER_DSS: u64 = 4;

/// The views of the subflows that carry data.
#[derive(Debug)]
pub(super) struct Views {
    pub(super) list: Vec<SubflowView>,
    /// Which of them no longer tell the truth.
    pub(super) stale: Stale,
    common: Common,
    /// More has changed since the scheduler was last asked than what subflows change by sending.
    pub(super) unseen: bool,
}

/// What the views of all subflows have in common.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Common {
    /// Payload bytes of a full segment.
    segment_size: u32,
    /// Plain TCP is spoken.
    plain: bool,
}

/// Views that are out of date.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stale {
    /// All of them, and perhaps the list of them.
    pub(super) all: bool,
    /// Those of subflows that took in an acknowledgement.
    pub(super) acked: SubflowSet,
    /// Those of subflows that sent.
    pub(super) sent: SubflowSet,
}

impl Stale {
    const NOTHING: Stale = Stale { all: false, acked: SubflowSet::EMPTY, sent: SubflowSet::EMPTY };
    pub(super) const ALL: Stale = Stale { all: true, ..Stale::NOTHING };
}

impl Views {
    pub(super) fn new() -> Views {
        Views { list: Vec::new(), stale: Stale::ALL, common: Common::default(), unseen: true }
    }

    /// Payload bytes of a full segment when the views were made.
    pub(super) const fn segment_size(&self) -> u64 {
        self.common.segment_size as u64
    }
}

impl Connection {
    /// State of a subflow's loss recovery, as a scheduler sees it.
    pub(super) fn ca(&self, subflow: &Subflow) -> CaState {
        match subflow.phase.ca() {
            // Plain TCP has no other subflow to leave the rest to: after a timeout it goes on as
            // its window allows (RFC 5681 section 3.1).
            CaState::Loss if self.sends_plain() => CaState::Recovery,
            ca => ca,
        }
    }

    #[inline(always)]
    fn subflow_view(&self, subflow: &Subflow, mss: u32) -> SubflowView {
        SubflowView {
            id: subflow.id,
            open: subflow.state.sends_data(),
            joined: subflow.status.joined,
            backup: subflow.is_backup(),
            pf: subflow.status.pf,
            ca: self.ca(subflow),
            mss,
            cwnd: subflow.uncapped_cwnd(),
            cap: subflow.status.cap,
            ssthresh: subflow.cc.ssthresh(),
            inflight: subflow.tx.inflight(),
            outstanding: subflow.tx.outstanding(),
            queued: self.queue.assigned(subflow.id),
            srtt: subflow.rtt.srtt(),
            rttvar: subflow.rtt.rttvar(),
            last_rtt: subflow.rtt.latest(),
            min_rtt: subflow.rtt.min(),
            rtt_at: subflow.rtt.sampled_at(),
            rto: subflow.rtt.rto(),
            tsq_blocked: self.held_back(subflow),
            rec_cwnd: subflow.status.rec_cwnd,
            pacing_rate: match subflow.rtt.srtt() {
                _ if !self.scheduling.needs.pacing_rate => 0,
                Some(_) => subflow.pacing_rate(),
                // RFC 6298 section 2.1 takes an unknown RTT for a second.
                None => subflow.cwnd(),
            },
            delivery_rate: subflow.delivery.bytes_per_second(),
            timeouts: if subflow.status.pf { subflow.rtt.backoff() } else { 0 },
            last_send: subflow.last_send,
        }
    }

    /// Makes a view anew where it stands: made elsewhere, all of it would be copied.
    #[inline(never)]
    fn renew(&self, view: &mut SubflowView, mss: u32) {
        *view = self.subflow_view(&self.subflows[view.id.index()], mss);
    }

    /// Payload bytes of the next full segment: less than usual where the peer's whole window is
    /// smaller, or where it has stayed nearly closed for long (RFC 9293 section 3.8.6.2.1).
    pub(super) fn segment_size(&self) -> u64 {
        let mss = self.mss() - if self.keys_ride_along() { KEYS_OVER_DSS } else { 0 };
        let mss = mss.min(self.window.largest()).max(1);
        let left = self.window.end().saturating_sub(self.queue.nxt());
        if self.scheduling.small_segments && left > 0 { mss.min(left) } else { mss }
    }

    /// Whether the next new segment is the first one of a client whose peer may not have the keys.
    fn keys_ride_along(&self) -> bool {
        let told = self.joins.peer_dss_seen || self.queue.nxt() > Dsn::ZERO;
        self.client && self.mode == Mode::Multipath && !told
    }

    /// Whether small queues, pacing or windows of their own make subflows wait.
    pub(super) fn holds_back(&self) -> bool {
        let config = &self.spec.config;
        config.tsq || config.pacing.is_some() || config.subflow_windows
    }

    /// Whether `subflow` waits for the host's queue, for its release time or for its window.
    #[inline]
    pub(super) fn held_back(&self, subflow: &Subflow) -> bool {
        subflow.is_paced()
            || self.spec.config.tsq && subflow.tsq_blocked(self.mss())
            || self.spec.config.subflow_windows && subflow.exceeds_window(self.mss())
    }

    /// Brings the views of the subflows that carry data up to date.
    #[inline(always)]
    pub(super) fn refresh_views(&mut self, now: Time) {
        let common = Common { segment_size: self.segment_size() as u32, plain: self.sends_plain() };
        let stale = core::mem::replace(&mut self.scheduling.views.stale, Stale::NOTHING);
        if stale.all || self.spec.config.tsq || self.scheduling.views.common != common {
            self.scheduling.views.common = common;
            return self.refresh_all_views(now);
        }
        if (stale.acked.0 | stale.sent.0) == 0 {
            return;
        }
        self.scheduling.views.unseen |= !stale.acked.is_empty();
        let mut views = core::mem::take(&mut self.scheduling.views.list);
        let mut left = SubflowSet(stale.acked.0 | stale.sent.0);
        for view in &mut views {
            let id = view.id;
            if !left.contains(id) {
                continue;
            }
            left.remove(id);
            if stale.acked.contains(id) {
                self.renew(view, common.segment_size);
            } else {
                let subflow = &self.subflows[id.index()];
                let held = self.held_back(subflow);
                view.cwnd = subflow.uncapped_cwnd();
                view.inflight = subflow.tx.inflight();
                view.outstanding = subflow.tx.outstanding();
                view.queued = self.queue.assigned(id);
                view.last_send = subflow.last_send;
                view.tsq_blocked = held;
            }
            if left.is_empty() {
                break;
            }
        }
        self.scheduling.views.list = views;
    }

    #[inline(never)]
    fn refresh_all_views(&mut self, now: Time) {
        let mut views = core::mem::take(&mut self.scheduling.views.list);
        self.scheduling.views.unseen = true;
        views.clear();
        views.reserve_exact(self.subflows.len());
        for index in 0..self.subflows.len() {
            if self.spec.config.tsq {
                self.subflows[index].drain_host_queue(now);
            }
            let subflow = &self.subflows[index];
            if subflow.status.joined && subflow.state.synchronised() {
                let mss = self.scheduling.views.common.segment_size;
                views.push(self.subflow_view(&self.subflows[index], mss));
            }
        }
        self.scheduling.views.list = views;
    }

    /// Whether every view tells what one made now would.
    pub(super) fn views_are_fresh(&self) -> bool {
        let live = self.subflows.iter().filter(|s| s.status.joined && s.state.synchronised());
        let mss = self.segment_size() as u32;
        live.map(|s| self.subflow_view(s, mss)).eq(self.scheduling.views.list.iter().copied())
    }

    /// Windows of subflows that have been idle are brought down before the scheduler looks at them
    /// (schedulers 4.9).
    #[inline(never)]
    pub(super) fn validate_idle(&mut self, ctx: &mut Context<'_>) {
        let mode = self.spec.config.idle_restart;
        for subflow in &mut self.subflows {
            if !subflow.status.joined || !subflow.is_quiet() || subflow.last_send == Time::ZERO {
                continue;
            }
            let idle = ctx.now.since(subflow.last_send);
            self.scheduling.views.stale.acked.insert(subflow.id);
            if let Some(reset) = subflow.cc.idle(ctx.now, idle, subflow.rtt.base_rto(), mode) {
                let unused_cwnd = self.queue.memory().and_then(|it| it.unused_cwnd(subflow.id));
                if let Some(unused_cwnd) = unused_cwnd {
                    unused_cwnd.restart(ctx.now);
                }
                subflow.status.remember_window(reset.before);
                let (before, after) = (reset.before, reset.after);
                ctx.log.emit(Event::IdleReset { subflow: subflow.id, before, after });
            }
        }
    }

    /// A segment was sent: a window that was not used up for a timeout is reduced, unless the send buffer
    /// is what held the writer back (`tcp_cwnd_validate` of Linux).
    #[cold]
    pub(super) fn validate_window(&mut self, ctx: &mut Context<'_>, index: usize) {
        let waits = self.scheduling.app_blocked;
        let subflow = &mut self.subflows[index];
        let limited = subflow.cwnd_validation.limited(subflow.cc.in_slow_start(), subflow.cwnd());
        let outstanding = subflow.tx.outstanding();
        let rto = subflow.rtt.rto();
        let unused_cwnd = self.queue.memory().and_then(|it| it.unused_cwnd(subflow.id));
        if let Some(used) =
            unused_cwnd.and_then(|it| it.on_sent(ctx.now, outstanding, limited, rto))
            && matches!(subflow.phase, Phase::Open)
            && !waits
            && let Some(reset) = subflow.cc.reduce_unused(used)
        {
            subflow.status.remember_window(reset.before);
            let (before, after) = (reset.before, reset.after);
            ctx.log.emit(Event::IdleReset { subflow: subflow.id, before, after });
            self.scheduling.views.stale.acked.insert(subflow.id);
        }
    }
}
