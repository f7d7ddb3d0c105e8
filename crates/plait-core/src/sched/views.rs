//! The scheduler's views of the subflows. Only views that changed are updated.

use crate::data::dss::KEYS_OVER_DSS;
use crate::data::level::DataLevel;
use crate::paths::Paths;
use crate::sched::{SchedulerInputs, Scheduling};
use crate::tcp::subflow::Subflow;
use alloc::vec::Vec;
use plait_base::{SubflowSet, Time};
use plait_sched::{LatestView, Needs, PriceView, SubflowView};

/// The views of the subflows that carry data.
#[derive(Debug)]
pub(super) struct Views {
    pub(super) list: Vec<SubflowView>,
    /// Views in `list` that are out of date.
    pub(super) stale: Stale,
    common: Common,
    /// Subflows have changed since the last call of the scheduler by more than sending.
    pub(super) unseen: bool,
}

/// Values that the views of all subflows share.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Common {
    /// Payload bytes of a full segment.
    segment_size: u32,
    /// The connection sends plain TCP.
    plain: bool,
}

/// Views that are out of date.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stale {
    /// All views, and perhaps the list itself.
    pub(super) all: bool,
    /// Views of subflows that processed an acknowledgement.
    pub(super) acked: SubflowSet,
    /// Views of subflows that sent.
    pub(super) sent: SubflowSet,
}

/// A subflow and its price. Only the rest of a quota and the subflows that share it change.
#[derive(Clone, Copy)]
struct Viewed<'a> {
    subflow: &'a Subflow,
    price: PriceView,
}

impl Viewed<'_> {
    /// Sets every field of a view. Each is written at once: a view that is built first has more fields
    /// than the processor has registers, so each field would be written twice.
    #[inline(always)]
    fn fill(self, seen: SchedulerInputs<'_>, needs: Needs, full: u32, view: &mut SubflowView) {
        let (subflow, sender) = (self.subflow, self.subflow.sender());
        let SubflowView {
            id,
            open,
            joined,
            backup,
            price,
            pf,
            ca,
            mss,
            cwnd,
            cap,
            ssthresh,
            inflight,
            outstanding,
            queued,
            srtt,
            rttvar,
            last_rtt,
            min_rtt,
            rtt_at,
            rto,
            tsq_blocked,
            rec_cwnd,
            pacing_rate,
            timeouts,
            latest: LatestView { delivery_rate, last_send },
        } = view;
        *id = subflow.id();
        *open = subflow.state().sends_data();
        *joined = subflow.status().joined();
        *backup = subflow.status().is_backup();
        *price = self.price;
        *pf = subflow.status().pf();
        *ca = seen.data.ca(sender.ca());
        *mss = full;
        *cwnd = sender.uncapped_cwnd();
        *cap = sender.limits.cap();
        *ssthresh = sender.cc.ssthresh();
        *inflight = sender.tx.inflight();
        *outstanding = sender.tx.outstanding();
        *queued = seen.data.queue().assigned(subflow.id());
        *srtt = sender.rtt.srtt();
        *rttvar = sender.rtt.rttvar();
        *last_rtt = sender.rtt.latest();
        *min_rtt = sender.rtt.min();
        *rtt_at = sender.rtt.sampled_at();
        *rto = sender.rtt.rto();
        *tsq_blocked = seen.paths.held_back(subflow);
        *rec_cwnd = sender.limits.rec_cwnd();
        *pacing_rate = match sender.rtt.srtt() {
            _ if !needs.pacing_rate => 0,
            Some(_) => sender.pacing_rate(),
            // RFC 6298 section 2.1 assumes one second if the RTT is unknown.
            None => sender.cwnd(),
        };
        *timeouts = if subflow.status().pf() { sender.rtt.backoff() } else { 0 };
        *delivery_rate = sender.delivery_rate();
        *last_send = sender.last_send();
    }
}

/// Updates a view in place.
#[inline(never)]
fn renew(seen: SchedulerInputs<'_>, needs: Needs, view: &mut SubflowView, mss: u32) {
    let of = Viewed { subflow: seen.paths.subflow(view.id), price: view.price };
    of.fill(seen, needs, mss, view);
}

impl Stale {
    const NOTHING: Stale = Stale { all: false, acked: SubflowSet::EMPTY, sent: SubflowSet::EMPTY };
    pub(super) const ALL: Stale = Stale { all: true, ..Stale::NOTHING };
}

impl Views {
    pub(super) fn new() -> Views {
        Views { list: Vec::new(), stale: Stale::ALL, common: Common::default(), unseen: true }
    }

    /// Returns the payload bytes of a full segment when the views were built.
    pub(super) const fn segment_size(&self) -> u64 {
        self.common.segment_size as u64
    }
}

impl Scheduling {
    /// Returns the payload bytes of the next full segment. It is shorter than usual if the peer's
    /// largest window is smaller, or if the window has stayed nearly closed for long (RFC 9293
    /// section 3.8.6.2.1).
    pub(super) fn next_segment_size(&self, seen: SchedulerInputs<'_>) -> u64 {
        let mss = seen.paths.mss()
            - if seen.data.keys_ride_along(seen.paths.client) { KEYS_OVER_DSS } else { 0 };
        let mss = mss.min(seen.data.window().largest()).max(1);
        let left = seen.data.window().end().saturating_sub(seen.data.queue().nxt());
        if self.small_segments && left > 0 { mss.min(left) } else { mss }
    }

    /// Returns a subflow and its price.
    #[inline(never)]
    fn viewed<'a>(&self, seen: SchedulerInputs<'_>, subflow: &'a Subflow) -> Viewed<'a> {
        let price = PriceView::of(self.prices.cost(subflow.address().path()));
        let (left, sharing) = self.quota(seen, subflow);
        Viewed { subflow, price: PriceView { left, sharing, ..price } }
    }

    /// Returns the payload bytes that the quota of its path leaves to a subflow, and the other subflows
    /// with this quota; `u64::MAX` without a quota. Subflows on one path share what is left in equal parts.
    fn quota(&self, seen: SchedulerInputs<'_>, subflow: &Subflow) -> (u64, SubflowSet) {
        let path = subflow.address().path();
        let Some(left) = self.prices.left(path) else { return (u64::MAX, SubflowSet::EMPTY) };
        let others = seen.paths.subflows().iter().filter(|it| it.id() != subflow.id());
        let sharing = others.filter(|it| self.prices.share_quota(path, it.address().path()));
        let sharing = sharing.map(|it| it.id()).collect();
        let there = || seen.paths.subflows().iter().filter(|it| it.address().path() == path);
        let assigned: u64 = there().map(|it| seen.data.queue().assigned(it.id())).sum();
        let parts = there().filter(|it| it.state().sends_data()).count() as u64;
        (left.saturating_sub(assigned) / parts.max(1), sharing)
    }

    /// Returns the scheduler's view of a subflow.
    fn subflow_view(&self, seen: SchedulerInputs<'_>, of: Viewed<'_>, mss: u32) -> SubflowView {
        let mut view = SubflowView::new(of.subflow.id(), mss, 0);
        of.fill(seen, self.needs, mss, &mut view);
        view
    }

    /// Updates the rest of the quotas, which other connections use as well.
    #[cold]
    #[inline(never)]
    fn renew_quotas(&mut self, seen: SchedulerInputs<'_>) {
        for at in 0..self.views.list.len() {
            let subflow = seen.paths.subflow(self.views.list[at].id);
            let (left, sharing) = self.quota(seen, subflow);
            let price = &mut self.views.list[at].price;
            (price.left, price.sharing) = (left, sharing);
        }
    }

    /// Builds the views of all subflows.
    #[inline(never)]
    fn refresh_all_views(&mut self, data: &DataLevel, paths: &mut Paths, now: Time) {
        let mut views = core::mem::take(&mut self.views.list);
        self.views.unseen = true;
        views.clear();
        views.reserve_exact(paths.subflows().len());
        paths.drain_host_queues(now);
        for id in paths.subflows().ids() {
            let subflow = paths.subflow(id);
            if subflow.status().joined() && subflow.state().synchronised() {
                let mss = self.views.common.segment_size;
                let seen = SchedulerInputs { data, paths };
                views.push(self.subflow_view(seen, self.viewed(seen, subflow), mss));
            }
        }
        self.views.list = views;
    }

    /// Updates the views of the subflows that carry data.
    #[inline(always)]
    pub(super) fn refresh_views(&mut self, data: &DataLevel, paths: &mut Paths, now: Time) {
        let common = Common {
            segment_size: self.next_segment_size(SchedulerInputs { data, paths }) as u32,
            plain: data.sends_plain(),
        };
        let stale = core::mem::replace(&mut self.views.stale, Stale::NOTHING);
        if stale.all || paths.spec.config.tsq || self.views.common != common {
            self.views.common = common;
            return self.refresh_all_views(data, paths, now);
        }
        if !self.prices.is_empty() {
            self.renew_quotas(SchedulerInputs { data, paths });
        }
        if (stale.acked.0 | stale.sent.0) == 0 {
            return;
        }
        self.views.unseen |= !stale.acked.is_empty();
        let Scheduling { views, needs, .. } = self;
        let mut left = SubflowSet(stale.acked.0 | stale.sent.0);
        for view in &mut views.list {
            let id = view.id;
            if !left.contains(id) {
                continue;
            }
            left.remove(id);
            let subflow = paths.subflow(id);
            // A start after an idle time may change all that such a controller sets.
            if stale.acked.contains(id) || subflow.sender().cc.is_rated() {
                renew(SchedulerInputs { data, paths }, *needs, view, common.segment_size);
            } else {
                let held = paths.held_back(subflow);
                view.cwnd = subflow.sender().uncapped_cwnd();
                view.inflight = subflow.sender().tx.inflight();
                view.outstanding = subflow.sender().tx.outstanding();
                view.queued = data.queue().assigned(id);
                view.latest.last_send = subflow.sender().last_send();
                view.tsq_blocked = held;
            }
            if left.is_empty() {
                break;
            }
        }
    }

    /// Returns true if every view equals one that is built now.
    pub(super) fn views_are_fresh(&self, seen: SchedulerInputs<'_>) -> bool {
        let live = seen
            .paths
            .subflows()
            .iter()
            .filter(|s| s.status().joined() && s.state().synchronised());
        let mss = self.next_segment_size(seen) as u32;
        live.map(|s| self.subflow_view(seen, self.viewed(seen, s), mss)).eq(self
            .views
            .list
            .iter()
            .copied())
    }
}
