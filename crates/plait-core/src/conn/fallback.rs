//! Back to plain TCP (RFC 8684 section 3.7), at each point where that is possible: in the handshake,
//! on first data without options, where mappings vanish later, and where a checksum is wrong.
//!
//! Each direction falls back on its own. On the only subflow that ever was, sequence numbers and
//! DSNs run in step, so the infinite mapping says what is known anyway: the byte with subflow
//! sequence number n has DSN n - 1. Once another subflow was used that no longer holds; then a
//! subflow that cannot be trusted is reset instead.

use super::timeouts::Awaited;
use super::{Connection, Context, Mode};
use crate::event::Event;
use crate::tcp::pending::{Cause, ControlSegment};
use crate::tcp::state::State;
use plait_base::{Dsn, Ssn, SubflowId, SubflowRange};
use plait_wire::{Flags, Mapping, Payload, ResetReason, Segment};

/// Acknowledgements without a DSS, one after the other, that tell that options are taken off.
const BARE_ACKS: u8 = 3;
/// Segments in order without a mapping, one after the other, that cost a subflow its trust.
const MAX_UNMAPPED_SEGMENTS: u8 = 3;
/// Timeouts of the connection without a DSS after which a subflow is given up, where no fallback is
/// possible.
const MAX_TIMEOUTS_WITHOUT_DSS: u32 = 3;
/// How often MP_FAIL is told again before the subflow is reset.
const FAIL_RETRIES: u8 = 3;

/// Why a connection that offered or spoke Multipath TCP speaks plain TCP.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FallbackCause {
    /// SYNs with MP_CAPABLE stayed unanswered, of this connection or of one before it.
    Silence,
    /// The peer's SYN had no MP_CAPABLE.
    Syn,
    /// The peer's SYN/ACK had none.
    SynAck,
    /// The third ACK had none.
    ThirdAck,
    /// The first data, or the first acknowledgement of ours, had no MPTCP option.
    FirstData,
    /// Mappings or DATA_ACKs vanished later.
    Mappings,
    /// A checksum was wrong, here or at the peer.
    Checksum,
}

/// How data from the peer is understood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Receiving {
    Mapped,
    /// The checksum of the mapping with this DSN was wrong. What came since is held; MP_FAIL was
    /// told, and again so often.
    Failing {
        dsn: Dsn,
        retries: u8,
    },
    Plain,
}

/// How data to the peer is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sending {
    Mapped,
    /// Without mappings, but segments still tell the infinite one, until this sequence number is
    /// acknowledged.
    Telling {
        until: Ssn,
    },
    Plain,
}

/// The DSN of the byte with subflow sequence number `seq`, where both run in step: the SYN has 0 and the first
/// byte 1. `None` for the SYN.
pub(super) fn dsn_in_step(seq: Ssn) -> Option<Dsn> {
    seq.checked_sub(Ssn::FIRST).map(Dsn::new)
}

/// The subflow sequence number of the byte with `dsn`, where both run in step.
pub(super) fn ssn_in_step(dsn: Dsn) -> Ssn {
    Ssn::FIRST + dsn.get()
}

/// How far a connection has fallen back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fallback {
    cause: Option<FallbackCause>,
    /// Another subflow than the first was used, or the peer may have used it.
    pub(super) others_used: bool,
    /// This end could send on another.
    pub(super) others_joined: bool,
    receiving: Receiving,
    sending: Sending,
    /// Where our infinite mapping starts: at the last byte that was DATA_ACKed.
    from: Dsn,
    /// Acknowledgements without a DSS since the last one with.
    bare: u8,
    /// Our SYN was answered: whether only the one without MP_CAPABLE was.
    verdict: Option<bool>,
}

impl Fallback {
    pub(super) const fn new() -> Fallback {
        Fallback {
            cause: None,
            others_used: false,
            others_joined: false,
            receiving: Receiving::Mapped,
            sending: Sending::Mapped,
            from: Dsn::ZERO,
            bare: 0,
            verdict: None,
        }
    }

    pub(super) const fn cause(&self) -> Option<FallbackCause> {
        self.cause
    }

    /// A DSS came.
    pub(super) const fn on_dss(&mut self) {
        self.bare = 0;
    }
}

impl Connection {
    /// Whether the peer has acknowledged data without a DSS since its last DSS. It may have fallen back.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.fallback.bare > 0
    }

    /// Data to the peer has no mappings any more.
    pub(super) fn sends_plain(&self) -> bool {
        self.mode == Mode::Plain || self.fallback.sending != Sending::Mapped
    }

    /// Data from the peer needs no mappings any more.
    pub(super) fn receives_plain(&self) -> bool {
        self.mode == Mode::Plain || self.fallback.receiving == Receiving::Plain
    }

    /// Plain TCP, or on the way there: no joins, no reasons.
    pub(super) fn falls_back(&self) -> bool {
        self.mode == Mode::Plain || self.fallback.cause.is_some()
    }

    /// Plain TCP before any data.
    pub(super) fn start_plain(&mut self, ctx: &mut Context<'_>, cause: FallbackCause) {
        self.mode = Mode::Plain;
        if self.spec.config.multipath {
            self.note_fallback(ctx, cause);
        }
    }

    /// Our first SYN stays unanswered: after enough of them on each path the next one has no
    /// MP_CAPABLE.
    pub(super) fn weigh_silence(&mut self, ctx: &mut Context<'_>) {
        let paths = self.ways_to_dial();
        let asked = match paths {
            1 => usize::from(self.subflows[0].shake.retries),
            _ => (usize::from(self.dials) + 1) / paths,
        };
        let limit = usize::from(self.spec.config.plain_after);
        if self.mode == Mode::Offered && limit > 0 && asked >= limit {
            self.start_plain(ctx, FallbackCause::Silence);
        }
    }

    /// The endpoint knows that MP_CAPABLE is swallowed.
    pub(crate) fn remember_silence(&mut self, ctx: &mut Context<'_>) {
        self.note_fallback(ctx, FallbackCause::Silence);
    }

    /// Our first SYN was answered.
    pub(super) fn judge(&mut self) {
        if self.spec.config.multipath {
            self.fallback.verdict = Some(self.fallback.cause == Some(FallbackCause::Silence));
            self.changed = true;
        }
    }

    /// Whether MP_CAPABLE was found to be swallowed, or not to be, since this was last asked.
    pub(crate) fn take_verdict(&mut self) -> Option<bool> {
        self.fallback.verdict.take()
    }

    /// The handshake is complete: was there a SYN without MP_CAPABLE?
    pub(super) fn tell_plain_syn(&self, ctx: &mut Context<'_>) {
        if self.fallback.cause == Some(FallbackCause::Syn) {
            ctx.emit(Event::Fallback(FallbackCause::Syn));
        }
    }

    fn note_fallback(&mut self, ctx: &mut Context<'_>, cause: FallbackCause) {
        if self.fallback.cause.is_none() {
            self.fallback.cause = Some(cause);
            (self.news, self.changed) = (true, true);
            // A SYN alone is no connection yet.
            if cause != FallbackCause::Syn {
                ctx.emit(Event::Fallback(cause));
            }
        }
    }

    /// The first step back on the subflow at `index`: no other is to be there (R54).
    fn begin(&mut self, ctx: &mut Context<'_>, index: usize, cause: FallbackCause) {
        self.note_fallback(ctx, cause);
        self.joins.waiting.clear();
        self.addresses.begin(self.addresses.first);
        self.timers.clear(Awaited::Address);
        for other in (0..self.subflows.len()).filter(|other| *other != index) {
            self.reset_subflow(ctx, other, Cause::Reason(ResetReason::Unspecified));
        }
    }

    /// Whether sequence numbers and DSNs run in step on the subflow at `index`.
    fn may_fall_back(&self, index: usize) -> bool {
        self.mode == Mode::Multipath
            && !self.fallback.others_used
            && !self.subflows[index].shake.join
    }

    /// Whether they do so in what this end has sent: a peer that never got our proof of a join falls
    /// back alone, and can be followed.
    fn may_follow(&self, index: usize) -> bool {
        self.mode == Mode::Multipath
            && !self.fallback.others_joined
            && !self.subflows[index].shake.join
    }

    fn send_plain(&mut self, index: usize) {
        if self.fallback.sending == Sending::Mapped {
            self.fallback.from = self.queue.una();
            // A segment sent from now on tells the infinite mapping.
            self.fallback.sending = Sending::Telling { until: self.subflows[index].tx.nxt() + 1 };
            self.scheduling.wake();
            self.settle_fallback(index);
        }
    }

    fn receive_plain(&mut self, ctx: &mut Context<'_>, index: usize) {
        if self.fallback.receiving == Receiving::Plain {
            return;
        }
        self.fallback.receiving = Receiving::Plain;
        self.timers.clear(Awaited::Fail);
        let held = self.subflows[index].verifier.take();
        if let Some(mut verifier) = held {
            let (now, log, recv) = (ctx.now, &mut ctx.log, &mut self.recv);
            let id = SubflowId(index as u8);
            verifier.release(&mut |dsn, payload: Payload, at| {
                recv.insert(now, dsn, &payload, at, id, &mut |run| log.emit(run.event()));
            });
            self.subflows[index].pending.ack = true;
            self.news = true;
            if self.recv.finished() {
                self.on_peer_finished(ctx.now);
            }
        }
        self.settle_fallback(index);
    }

    fn settle_fallback(&mut self, index: usize) {
        if self.sends_plain() && self.receives_plain() {
            (self.mode, self.changed) = (Mode::Plain, true);
            // While segments tell the infinite mapping they have no room for more data.
            if self.fallback.sending == Sending::Plain {
                self.size_segments(index);
            }
        }
    }

    /// A segment of an established subflow has no DSS although Multipath TCP is spoken.
    pub(super) fn on_bare_segment(
        &mut self,
        ctx: &mut Context<'_>,
        index: usize,
        segment: &Segment,
        seq: Ssn,
        ack: Ssn,
    ) {
        if segment.options.mptcp.is_some() {
            return;
        }
        let follows = self.falls_back() && self.may_follow(index);
        if !follows && !self.may_fall_back(index) {
            let news = self.mode == Mode::Multipath && ack > self.subflows[index].tx.una();
            self.fallback.bare = self.fallback.bare.saturating_add(u8::from(news));
            return;
        }
        let end = seq + u64::from(segment.payload.len());
        let fin = segment.flags.has(Flags::FIN);
        if !self.joins.peer_dss_seen {
            // First data, or a first acknowledgement of ours: the peer fell back.
            if end > seq || ack > Ssn::FIRST || fin {
                self.begin(ctx, index, FallbackCause::FirstData);
                self.receive_plain(ctx, index);
                (self.mode, self.changed) = (Mode::Plain, true);
                self.size_segments(index);
            }
            return;
        }
        let subflow = &self.subflows[index];
        let next = subflow.rx.nxt();
        let unmapped = seq <= next && end > next && !subflow.covers(SubflowRange::new(seq, end));
        // An end that no DATA_FIN told.
        let ends = fin && seq <= next && end <= next && !self.recv.finished();
        if unmapped || ends {
            self.begin(ctx, index, FallbackCause::Mappings);
            self.receive_plain(ctx, index);
            // A peer that has begun to join may think that another subflow was used. Acknowledgements
            // may come through where segments with data do not.
            let several = self.subflows.len() > 1;
            self.subflows[index].pending.set(ControlSegment::Infinite, several);
            return self.send_plain(index);
        }
        let fin_pending = self.closing.fin_sent && !self.closing.fin_acked;
        let news = ack > subflow.tx.una() || fin_pending && self.queue.is_drained();
        if news && !self.sends_plain() {
            self.fallback.bare += 1;
            if self.fallback.bare >= BARE_ACKS {
                self.begin(ctx, index, FallbackCause::Mappings);
                self.send_plain(index);
            }
        }
    }

    /// Nothing was DATA_ACKed for long: where acknowledgements came without a DSS, those have to
    /// do.
    pub(super) fn on_data_ack_overdue(&mut self, ctx: &mut Context<'_>) {
        let Some(index) = self.best_for_signal().filter(|_| self.fallback.bare > 0) else { return };
        let long = self.timers.retries() >= MAX_TIMEOUTS_WITHOUT_DSS;
        let may = self.may_fall_back(index) || long && self.may_follow(index);
        if !may && long {
            // No DSS has come on any subflow for long.
            self.joins.bar(self.subflows[index].address.path());
            self.reset_subflow(ctx, index, Cause::Reason(ResetReason::Middlebox));
        } else if may {
            self.begin(ctx, index, FallbackCause::Mappings);
            self.send_plain(index);
            self.follow_end(ctx, index);
            let edge = dsn_in_step(self.subflows[index].tx.una()).unwrap_or(Dsn::ZERO);
            if self.queue.on_data_ack(edge.min(self.queue.nxt())) > 0 {
                self.on_data_progress(ctx.now);
                self.news = true;
            }
        }
    }

    /// A peer that has fallen back alone may have ended already, by a FIN and no DATA_FIN.
    fn follow_end(&mut self, ctx: &mut Context<'_>, index: usize) {
        let subflow = &self.subflows[index];
        let ended = matches!(
            subflow.state,
            State::CloseWait | State::Closing | State::LastAck | State::TimeWait
        );
        // The FIN has a sequence number, and so had the SYN.
        let end = dsn_in_step(subflow.rx.nxt().before()).unwrap_or(Dsn::ZERO);
        if ended && !self.recv.finished() && self.recv.nxt() == end {
            self.receive_plain(ctx, index);
            self.recv.set_fin(end);
            self.on_peer_finished(ctx.now);
        }
    }

    /// Payload came for which no mapping is known, while others may still carry data.
    pub(super) fn on_unmapped(
        &mut self,
        ctx: &mut Context<'_>,
        index: usize,
        segment: &Segment,
        seq: Ssn,
    ) {
        let subflow = &mut self.subflows[index];
        let end = seq + u64::from(segment.payload.len());
        let in_order = seq <= subflow.rx.nxt() && end > subflow.rx.nxt();
        if !in_order || self.mode != Mode::Multipath || subflow.state == State::Closed {
            return;
        }
        subflow.status.unmapped += 1;
        if subflow.status.unmapped >= MAX_UNMAPPED_SEGMENTS {
            let path = subflow.address.path();
            self.joins.bar(path);
            self.reset_subflow(ctx, index, Cause::Reason(ResetReason::Middlebox));
        }
    }

    /// A mapping of length 0 (RFC 8684 sections 3.3.1 and 3.7): the peer sends plain data from now
    /// on.
    pub(super) fn on_infinite_mapping(
        &mut self,
        ctx: &mut Context<'_>,
        index: usize,
        map: &Mapping,
    ) {
        if self.receives_plain() {
            return;
        }
        let ssn = Ssn::from_low(map.ssn, self.subflows[index].rx.nxt());
        let in_step = dsn_in_step(ssn) == Some(self.mapped_dsn(map));
        let may = self.may_fall_back(index) || self.may_follow(index);
        if !may || !in_step {
            return self.reset_subflow(ctx, index, Cause::Reason(ResetReason::Mptcp));
        }
        self.begin(ctx, index, FallbackCause::Mappings);
        self.receive_plain(ctx, index);
        self.send_plain(index);
    }

    /// The checksum of the peer's mapping with `dsn` was wrong: something on the path changes what
    /// it carries.
    pub(super) fn on_wrong_checksum(&mut self, ctx: &mut Context<'_>, index: usize, dsn: Dsn) {
        if self.fallback.receiving != Receiving::Mapped {
            return;
        }
        if !self.may_fall_back(index) || self.recv.nxt() != dsn {
            return self.reset_failed(ctx, index, dsn);
        }
        self.begin(ctx, index, FallbackCause::Checksum);
        self.fallback.receiving = Receiving::Failing { dsn, retries: 0 };
        self.subflows[index].pending.add(ControlSegment::Fail);
        self.timers.set(Awaited::Fail, ctx.now + self.subflows[index].rtt.rto());
    }

    fn reset_failed(&mut self, ctx: &mut Context<'_>, index: usize, dsn: Dsn) {
        self.reset_subflow(ctx, index, Cause::Failed(dsn));
    }

    /// No infinite mapping has come.
    pub(super) fn on_fail_timeout(&mut self, ctx: &mut Context<'_>) {
        let Receiving::Failing { dsn, retries } = &mut self.fallback.receiving else { return };
        let (dsn, again) = (*dsn, *retries < FAIL_RETRIES);
        *retries += 1;
        let wait = 1 << *retries;
        let open = |s: &crate::tcp::subflow::Subflow| s.state != State::Closed;
        let Some(index) = self.subflows.iter().position(open) else { return };
        if again {
            self.subflows[index].pending.add(ControlSegment::Fail);
            self.timers.set(Awaited::Fail, ctx.now + self.subflows[index].rtt.rto().times(wait));
        } else {
            self.reset_failed(ctx, index, dsn);
        }
    }

    /// MP_FAIL: a checksum of ours was wrong at the peer. It is answered with an infinite mapping,
    /// and with MP_FAIL for the other direction.
    pub(super) fn on_mp_fail(&mut self, ctx: &mut Context<'_>, index: usize, dsn: Dsn) {
        let already = self.fallback.sending != Sending::Mapped;
        let possible = self.queue.una() <= dsn && dsn <= self.queue.nxt();
        if !already && (self.mode != Mode::Multipath || !possible) {
            return;
        }
        // A peer that has not seen our proof of a join falls back, where one that has resets.
        if !already && !self.may_follow(index) {
            let nxt = self.recv.nxt();
            return self.reset_failed(ctx, index, nxt);
        }
        let pending = &mut self.subflows[index].pending;
        pending.add(ControlSegment::Infinite);
        // One that has told its own needs no second.
        if self.fallback.receiving == Receiving::Mapped {
            pending.add(ControlSegment::Fail);
        }
        self.begin(ctx, index, FallbackCause::Checksum);
        self.send_plain(index);
    }

    /// The DSN of our MP_FAIL: that of the mapping that failed, or of what is expected.
    pub(super) fn failed_dsn(&self) -> Dsn {
        match self.fallback.receiving {
            Receiving::Failing { dsn, .. } => dsn,
            _ => self.recv.nxt(),
        }
    }

    /// The infinite mapping, which starts at the last DATA_ACKed byte.
    pub(super) fn infinite_mapping(&self) -> Mapping {
        let from = self.fallback.from;
        Mapping {
            dsn: self.keys.own.wire(from) & 0xffff_ffff,
            long: false,
            ssn: ssn_in_step(from).low(),
            len: 0,
            checksum: self.checksums.then_some(0),
        }
    }

    /// Whether data segments still tell the infinite mapping.
    pub(super) fn tells_infinite(&mut self, index: usize) -> bool {
        match self.fallback.sending {
            Sending::Telling { until } if self.subflows[index].tx.una() >= until => {
                self.fallback.sending = Sending::Plain;
                self.settle_fallback(index);
                false
            }
            Sending::Telling { .. } => true,
            _ => false,
        }
    }
}

impl crate::data::reassembly::Readable {
    /// As observers are told of it.
    pub(super) fn event(&self) -> Event {
        Event::DataReadable { data: self.data, waited: self.waited, subflow: self.subflow }
    }
}
