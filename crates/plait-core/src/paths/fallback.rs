//! Fallback decisions for a subflow (RFC 8684 section 3.7): data without a mapping,
//! acknowledgements without a DSS, an infinite mapping, or a wrong checksum.
//!
//! These functions only decide. The connection acts on the decision, because other subflows, the
//! scheduler and timers are affected.

use crate::data::agreement::{
    BARE_ACKS, FAIL_RETRIES, FailRetry, MAX_TIMEOUTS_WITHOUT_DSS, Receiving, Sending, dsn_in_step,
};
use crate::data::fastclose::Cause;
use crate::data::level::DataLevel;
use crate::event::FallbackCause;
use crate::notices::Notices;
use crate::parts::Parts;
use crate::paths::Paths;
use crate::tcp::pending::ControlSegment;
use crate::tcp::state::State;
use crate::tcp::subflow::{Numbers, Subflow};
use crate::timers::ConnectionTimer;
use plait_base::{Dsn, RecvRange, RecvSsn, SendSsn, SubflowId};
use plait_wire::{Dss, Flags, Mapping, ResetReason, Segment};

/// A decision.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fallback {
    /// Nothing.
    Stay,
    /// Reset the subflow.
    Reset(Cause),
    /// Fall back on this subflow.
    Step(FallbackStep),
}

/// Changes by a step of the fallback that the scheduler uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FallbackEffects {
    /// The segment size has changed.
    pub(crate) resized: bool,
    /// Our data has no mappings from now on.
    pub(crate) sends: bool,
}

/// A step of the fallback to plain TCP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FallbackStep {
    pub(crate) cause: FallbackCause,
    /// The mapping with this DSN had a wrong checksum: send MP_FAIL.
    pub(crate) fail: Option<Dsn>,
    /// The peer's data needs no mappings any more.
    pub(crate) receive: bool,
    /// Neither end has sent a mapping: the connection is plain TCP at once.
    pub(crate) whole: bool,
    /// Sets or clears the pending infinite mapping on an acknowledgement; `None` leaves it.
    pub(crate) tell: Option<bool>,
    /// Our data has no mappings any more.
    pub(crate) send: bool,
}

impl FallbackStep {
    const fn new(cause: FallbackCause) -> FallbackStep {
        FallbackStep { cause, fail: None, receive: false, whole: false, tell: None, send: false }
    }

    /// Returns the step after which our data has no mappings.
    const fn sending(cause: FallbackCause) -> FallbackStep {
        FallbackStep { send: true, ..FallbackStep::new(cause) }
    }
}

/// A subflow and the data level, for a decision about a fallback.
pub(crate) struct Evidence<'a> {
    subflow: &'a Subflow,
    data: &'a mut DataLevel,
    /// The connection has had other subflows.
    several: bool,
}

impl Evidence<'_> {
    /// Returns true if sequence numbers and DSNs run in step.
    pub(super) fn may_fall_back(&self) -> bool {
        self.data.speaks_multipath() && !self.data.others_possible() && !self.subflow.origin().join
    }

    /// Returns true if they run in step for our own data. A peer that never received our proof of a
    /// join falls back alone, and this end can follow.
    pub(super) fn may_follow(&self) -> bool {
        self.data.speaks_multipath()
            && !self.data.agreed().others_joined()
            && !self.subflow.origin().join
    }

    /// Decides on a segment of an established subflow with an infinite mapping, or without a DSS.
    pub(crate) fn on_mapping(&mut self, segment: &Segment, numbers: Numbers) -> Fallback {
        match &segment.options.dss {
            Some(Dss { mapping: Some(map), .. }) if map.len == 0 => self.on_infinite_mapping(map),
            None if self.data.speaks_multipath() => self.on_bare_segment(segment, numbers),
            _ => Fallback::Stay,
        }
    }

    /// Decides on a segment without a DSS on an established Multipath TCP subflow.
    fn on_bare_segment(&mut self, segment: &Segment, Numbers { seq, ack }: Numbers) -> Fallback {
        if segment.options.mptcp.is_some() {
            return Fallback::Stay;
        }
        let follows = self.data.falls_back() && self.may_follow();
        let stays = !follows && !self.may_fall_back();
        let Evidence { subflow, data, several } = self;
        if stays {
            let news = data.speaks_multipath() && ack > subflow.sender().tx.una();
            if news {
                data.on_bare_ack();
            }
            return Fallback::Stay;
        }
        let end = seq + u64::from(segment.payload.len());
        let fin = segment.flags.has(Flags::FIN);
        if !data.agreed().peer_dss_seen() {
            // First data, or the first acknowledgement of our data: the peer has fallen back.
            let first = end > seq || ack > SendSsn::FIRST || fin;
            let step = FallbackStep {
                receive: true,
                whole: true,
                ..FallbackStep::new(FallbackCause::FirstData)
            };
            return if first { Fallback::Step(step) } else { Fallback::Stay };
        }
        let next = subflow.rx().nxt();
        let unmapped = seq <= next && end > next && !subflow.covers(RecvRange::new(seq, end));
        // A FIN without a DATA_FIN.
        let ends = fin && seq <= next && end <= next && !data.reassembly().finished();
        let step = FallbackStep::sending(FallbackCause::Mappings);
        if unmapped || ends {
            // A peer that has started a join may assume that another subflow was used. A path may
            // deliver acknowledgements while it drops data segments.
            let tell = Some(*several);
            return Fallback::Step(FallbackStep { receive: true, tell, ..step });
        }
        let fin_pending = data.closing().fin_pending();
        let news = ack > subflow.sender().tx.una() || fin_pending && data.queue().is_drained();
        if news && !data.sends_plain() && data.on_bare_ack() >= BARE_ACKS {
            return Fallback::Step(step);
        }
        Fallback::Stay
    }

    /// Returns the end of the data if a peer that fell back alone has sent a FIN without a
    /// DATA_FIN.
    pub(super) fn unsaid_end(&self) -> Option<Dsn> {
        let Evidence { subflow, data, .. } = self;
        let ended = matches!(
            subflow.state(),
            State::CloseWait | State::Closing | State::LastAck | State::TimeWait
        );
        // The FIN and the SYN each have a sequence number.
        let end = dsn_in_step(subflow.rx().nxt().before()).unwrap_or(Dsn::ZERO);
        (ended && !data.reassembly().finished() && data.reassembly().nxt() == end).then_some(end)
    }

    /// Decides on a mapping of length 0 (RFC 8684 sections 3.3.1 and 3.7): the peer sends plain
    /// data from now on.
    fn on_infinite_mapping(&self, map: &Mapping) -> Fallback {
        if self.data.receives_plain() {
            return Fallback::Stay;
        }
        let ssn = RecvSsn::from_low(map.ssn, self.subflow.rx().nxt());
        let in_step = dsn_in_step(ssn) == Some(self.data.mapped_dsn(map));
        let may = self.may_fall_back() || self.may_follow();
        if !may || !in_step {
            return Fallback::Reset(Cause::Reason(ResetReason::Mptcp));
        }
        Fallback::Step(FallbackStep {
            receive: true,
            ..FallbackStep::sending(FallbackCause::Mappings)
        })
    }

    /// Decides on a wrong checksum of the peer's mapping with `dsn`: a middlebox changes the
    /// payload.
    pub(crate) fn on_wrong_checksum(&self, dsn: Dsn) -> Fallback {
        if self.data.agreed().receiving() != Receiving::Mapped {
            return Fallback::Stay;
        }
        if !self.may_fall_back() || self.data.reassembly().nxt() != dsn {
            return Fallback::Reset(Cause::Failed(dsn));
        }
        Fallback::Step(FallbackStep {
            fail: Some(dsn),
            ..FallbackStep::new(FallbackCause::Checksum)
        })
    }
}

/// The decision after a long time without a DATA_ACK.
pub(crate) struct OverdueAck {
    /// The subflow of the acknowledgements without a DSS.
    pub(crate) id: SubflowId,
    pub(crate) decision: Fallback,
}

/// The peer has answered no retransmission of MP_FAIL.
pub(crate) struct UnansweredFail {
    /// The subflow to reset.
    pub(crate) id: SubflowId,
    /// The DSN of the mapping with the wrong checksum.
    pub(crate) dsn: Dsn,
}

impl Paths {
    /// Returns the evidence on the subflow `id`.
    pub(crate) fn evidence<'a>(&'a self, data: &'a mut DataLevel, id: SubflowId) -> Evidence<'a> {
        let subflow = &self.subflows[id];
        Evidence { subflow, data, several: self.subflows.len() > 1 }
    }

    /// Decides after `timeouts` timeouts without a DATA_ACK. If acknowledgements arrived without a
    /// DSS, the connection may use them instead.
    pub(crate) fn on_overdue_ack(
        &mut self,
        data: &mut DataLevel,
        timeouts: u32,
    ) -> Option<OverdueAck> {
        let id = self.subflows.best_for_signal()?;
        let evidence = self.evidence(data, id);
        let agreed = evidence.data.agreed();
        // A peer that ends without ever sending a DSS has fallen back, too.
        let ended = || !agreed.peer_dss_seen() && evidence.unsaid_end().is_some();
        if agreed.bare() == 0 && !ended() {
            return None;
        }
        let long = timeouts >= MAX_TIMEOUTS_WITHOUT_DSS;
        if evidence.may_fall_back() || long && evidence.may_follow() {
            let step = FallbackStep::sending(FallbackCause::Mappings);
            return Some(OverdueAck { id, decision: Fallback::Step(step) });
        }
        if !long {
            return None;
        }
        // No subflow has received a DSS for long.
        self.joins.bar(self.subflows[id].address().path());
        let decision = Fallback::Reset(Cause::Reason(ResetReason::Middlebox));
        Some(OverdueAck { id, decision })
    }

    /// Decides on MP_FAIL: a checksum of ours was wrong at the peer. The answer is an infinite
    /// mapping, and MP_FAIL for the other direction.
    pub(crate) fn on_mp_fail(&mut self, data: &mut DataLevel, id: SubflowId, dsn: Dsn) -> Fallback {
        let already = data.agreed().sending() != Sending::Mapped;
        let possible = data.queue().una() <= dsn && dsn <= data.queue().nxt();
        if !already && (!data.speaks_multipath() || !possible) {
            return Fallback::Stay;
        }
        // A peer without our proof of a join falls back; a peer with it resets.
        if !already && !self.evidence(data, id).may_follow() {
            return Fallback::Reset(Cause::Failed(data.reassembly().nxt()));
        }
        let subflow = &mut self.subflows[id];
        subflow.queue_control(ControlSegment::Infinite);
        // If this end has sent its own MP_FAIL, it sends no second one.
        if data.agreed().receiving() == Receiving::Mapped {
            subflow.queue_control(ControlSegment::Fail);
        }
        Fallback::Step(FallbackStep::sending(FallbackCause::Checksum))
    }

    /// Removes the addresses and joins of further subflows.
    pub(crate) fn forget_others(&mut self) {
        self.joins.drop_if(|_| true);
        self.addresses.begin(self.addresses.first());
    }

    /// Takes a step of the fallback on the only remaining subflow. Returns the changes for the
    /// scheduler.
    pub(crate) fn fall_back(
        &mut self,
        parts: &mut Parts<'_>,
        id: SubflowId,
        step: FallbackStep,
    ) -> FallbackEffects {
        if let Some(dsn) = step.fail {
            parts.data.fail_mapping(dsn);
            let subflow = &mut self.subflows[id];
            subflow.queue_control(ControlSegment::Fail);
            parts.timers.set(ConnectionTimer::Fail, parts.ctx.now + subflow.sender().rtt.rto());
        }
        let mut fallen = FallbackEffects { resized: false, sends: false };
        if step.receive {
            fallen.resized |= self.receive_plain(parts, id);
        }
        if step.whole {
            parts.data.become_plain();
            parts.notices.tell_endpoint();
            self.size_segments(parts.data, id);
            fallen.resized = true;
        }
        let subflow = &mut self.subflows[id];
        if let Some(tell) = step.tell {
            subflow.set_infinite(tell);
        }
        let until = subflow.sender().tx.nxt() + 1;
        if step.send && parts.data.send_plain(until) {
            fallen.resized |= self.settle_fallback(parts.data, parts.notices, id);
            fallen.sends = true;
        }
        fallen
    }

    /// Stops requiring mappings of the peer. Returns true if the segment size may have changed.
    pub(crate) fn receive_plain(&mut self, parts: &mut Parts<'_>, id: SubflowId) -> bool {
        if !parts.data.receive_plain() {
            return false;
        }
        parts.timers.clear(ConnectionTimer::Fail);
        if self.subflows[id].release_unverified(&mut parts.ctx, parts.data) {
            parts.notices.tell_user();
            if parts.data.reassembly().finished() {
                self.on_peer_finished(parts.data, parts.notices, parts.ctx.now);
            }
        }
        self.settle_fallback(parts.data, parts.notices, id)
    }

    /// Completes the fallback when neither direction has mappings. Returns true if the segment size
    /// may have changed.
    pub(crate) fn settle_fallback(
        &mut self,
        data: &mut DataLevel,
        notices: &mut Notices,
        id: SubflowId,
    ) -> bool {
        if !data.sends_plain() || !data.receives_plain() {
            return false;
        }
        data.become_plain();
        notices.tell_endpoint();
        // Segments with the infinite mapping have no room for more data.
        let told = data.agreed().has_told();
        if told {
            self.size_segments(data, id);
        }
        told
    }

    /// Follows a peer that has fallen back alone. Its acknowledgements on the subflow `id`
    /// acknowledge data, and a FIN without a DATA_FIN ends it. Returns true if the segment size may
    /// have changed.
    pub(crate) fn follow_peer(&mut self, parts: &mut Parts<'_>, id: SubflowId) -> bool {
        let mut resized = false;
        if let Some(end) = self.evidence(parts.data, id).unsaid_end() {
            resized = self.receive_plain(parts, id);
            parts.data.on_plain_fin(end);
            self.on_peer_finished(parts.data, parts.notices, parts.ctx.now);
        }
        let edge = dsn_in_step(self.subflows[id].sender().tx.una()).unwrap_or(Dsn::ZERO);
        if parts.data.on_plain_ack(edge) {
            parts
                .timers
                .on_data_progress(parts.data, parts.ctx.now, || self.longest_rto(parts.data));
            parts.notices.tell_user();
        }
        resized
    }

    /// Retransmits MP_FAIL if no infinite mapping has arrived in time. After enough retries,
    /// returns the subflow to reset instead.
    pub(crate) fn repeat_fail(&mut self, parts: &mut Parts<'_>) -> Option<UnansweredFail> {
        let FailRetry { dsn, retries } = parts.data.count_fail_retry()?;
        let id = self.subflows.iter().find(|s| s.state() != State::Closed)?.id();
        if retries > FAIL_RETRIES {
            return Some(UnansweredFail { id, dsn });
        }
        let subflow = &mut self.subflows[id];
        subflow.queue_control(ControlSegment::Fail);
        let wait = subflow.sender().rtt.rto().times(1 << retries);
        parts.timers.set(ConnectionTimer::Fail, parts.ctx.now + wait);
        None
    }

    /// Stops sending the infinite mapping on the subflow `id` if the peer has acknowledged
    /// it. Returns true if the segment size may have changed.
    pub(crate) fn stop_telling(
        &mut self,
        data: &mut DataLevel,
        notices: &mut Notices,
        id: SubflowId,
    ) -> bool {
        data.stops_telling(self.subflows[id].sender().tx.una())
            && self.settle_fallback(data, notices, id)
    }
}
