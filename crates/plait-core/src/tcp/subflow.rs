//! One subflow: the parts of a TCP connection, and their updates when a segment is sent.

use crate::config::Config;
use crate::context::Context;
use crate::data::dss::MappedRange;
use crate::data::verifier::Verifier;
use crate::stats::{Carried, SubflowCounters};
use crate::tcp::address::Address;
use crate::tcp::clock::{StampClock, before};
use crate::tcp::handshake::{Handshake, Negotiated, Origin, SynState};
use crate::tcp::loss::{Phase, probe_timeout};
use crate::tcp::mappings::{Mappings, SuperpacketMapping};
use crate::tcp::pending::{ControlSegment, Pending};
use crate::tcp::recv::{AckDue, Receiver};
use crate::tcp::remembered::Remembered;
use crate::tcp::sender::Sender;
use crate::tcp::state::{State, Step};
use crate::tcp::status::SubflowStatus;
use crate::tcp::timer::{FREQUENT_TIMERS, Timer, Timers};
use alloc::boxed::Box;
use plait_base::{Dsn, RecvRange, RecvSpace, RecvSsn, SendRange, SendSsn, SubflowId, Time};
use plait_cc::Algorithm;
use plait_wire::{JoinSynAck, MAX_OPTION_BYTES, Options, Segment, WireSeq};

/// The numbers of a peer's segment, counted from the SYN of each end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    pub(crate) seq: RecvSsn,
    pub(crate) ack: SendSsn,
}

impl Numbers {
    /// Returns the numbers of a peer's segment on `subflow`.
    pub(crate) fn of(subflow: &Subflow, segment: &Segment) -> Numbers {
        Numbers {
            seq: subflow.negotiated.irs.read(WireSeq(segment.seq), subflow.rx.nxt()),
            ack: subflow.negotiated.iss.read(WireSeq(segment.ack), subflow.sender.tx.una()),
        }
    }
}

/// A subflow that is about to be created.
pub(crate) struct NewSubflow {
    pub(crate) id: SubflowId,
    pub(crate) address: Address,
    pub(crate) state: State,
    pub(crate) syn: SynState,
    /// The threshold of slow start that the path is known to have.
    pub(crate) ssthresh: Option<u64>,
    pub(crate) algorithm: Box<dyn Algorithm>,
}

/// One TCP subflow.
#[derive(Debug)]
pub(crate) struct Subflow {
    pub(super) id: SubflowId,
    pub(super) address: Address,
    pub(super) state: State,
    pub(super) origin: Origin,
    pub(super) negotiated: Negotiated,
    /// Set until data may be sent on it and our HMAC of a join is acknowledged.
    pub(super) handshake: Option<Box<Handshake>>,
    pub(super) status: SubflowStatus,
    pub(super) sender: Sender,
    pub(super) rx: Receiver,
    pub(super) clock: StampClock,
    pub(super) timers: Timers<Timer, FREQUENT_TIMERS>,
    pub(super) pending: Pending,
    pub(super) counters: SubflowCounters,
    /// Set when a mapping covers more than its segment.
    pub(super) mappings: Option<Box<Mappings>>,
    /// The data that waits for its checksum, if checksums are in use.
    pub(super) verifier: Option<Box<Verifier>>,
}

impl Subflow {
    pub(crate) fn new(new: NewSubflow, config: &Config) -> Subflow {
        let NewSubflow { id, address, state, syn, ssthresh, algorithm } = new;
        let mut sender = Sender::new(config, ssthresh, algorithm, syn.negotiated.iss);
        if syn.origin.join {
            sender.limit_bursts();
        }
        Subflow {
            id,
            address,
            state,
            origin: syn.origin,
            negotiated: syn.negotiated,
            handshake: Some(Box::new(syn.handshake)),
            status: SubflowStatus::default(),
            sender,
            rx: Receiver::new(
                if config.delayed_ack { Config::QUICK_ACKS } else { u32::MAX },
                config.most_held(),
            ),
            clock: StampClock::new(config.start_offsets().timestamp),
            timers: Timers::new(),
            pending: Pending::default(),
            counters: SubflowCounters::default(),
            mappings: None,
            verifier: None,
        }
    }

    #[inline]
    pub(crate) const fn id(&self) -> SubflowId {
        self.id
    }

    #[inline]
    pub(crate) const fn address(&self) -> Address {
        self.address
    }

    #[inline]
    pub(crate) const fn state(&self) -> State {
        self.state
    }

    pub(crate) const fn origin(&self) -> Origin {
        self.origin
    }

    pub(crate) const fn clock(&self) -> StampClock {
        self.clock
    }

    #[inline]
    pub(crate) const fn negotiated(&self) -> &Negotiated {
        &self.negotiated
    }

    #[inline(always)]
    pub(crate) const fn status(&self) -> SubflowStatus {
        self.status
    }

    #[inline(always)]
    pub(crate) const fn sender(&self) -> &Sender {
        &self.sender
    }

    #[inline(always)]
    pub(crate) const fn rx(&self) -> &Receiver {
        &self.rx
    }

    #[inline(always)]
    pub(crate) const fn timers(&self) -> &Timers<Timer, FREQUENT_TIMERS> {
        &self.timers
    }

    #[inline(always)]
    pub(crate) const fn pending(&self) -> &Pending {
        &self.pending
    }

    /// Returns the state of its handshake, until that is complete.
    pub(crate) fn handshake(&self) -> Option<&Handshake> {
        self.handshake.as_deref()
    }

    /// Notes the peer's random number and address identifier in its answer to our join.
    pub(crate) fn note_join_answer(&mut self, answer: &JoinSynAck) {
        self.origin.peer_id = answer.address_id;
        if let Some(it) = &mut self.handshake {
            it.peer_nonce = answer.nonce;
        }
    }

    /// Notes the peer's timestamp, to be echoed.
    #[inline(always)]
    pub(crate) const fn note_timestamp(&mut self, value: u32) {
        self.negotiated.ts_recent = value;
    }

    /// Uses the window shift `scale`, unless the peer's SYN has none. Returns true if it is used.
    pub(crate) fn offer_scale(&mut self, scale: u8) -> bool {
        let scaled = self.handshake().is_none_or(|it| it.scale);
        self.negotiated.own_scale = if scaled { scale } else { 0 };
        scaled
    }

    /// Completes the handshake: takes its RTT, and stops its timer.
    pub(crate) fn establish(&mut self, now: Time) {
        self.step(Step::Established);
        self.sender.tx.syn_acked();
        self.timers.clear(Timer::Rto);
        let retries = self.handshake_retries();
        let sent_at = self.handshake().map(|it| it.sent_at).filter(|at| *at != Time::NEVER);
        if let Some(sent_at) = sent_at.filter(|_| retries == 0) {
            self.sender.rtt.sample(now, now.since(sent_at));
        }
        self.sender.rtt.start_data(retries > 0);
    }

    /// Returns how often the SYN, SYN/ACK or third ACK was retransmitted.
    pub(crate) fn handshake_retries(&self) -> u8 {
        self.handshake().map_or(0, |it| it.retries)
    }

    /// Counts a retransmission in the handshake. Returns the number so far.
    pub(crate) fn count_handshake_retry(&mut self) -> u8 {
        if let Some(it) = &mut self.handshake {
            it.retries = it.retries.saturating_add(1);
        }
        self.handshake_retries()
    }

    /// Takes back a repetition of its SYN that was not sent.
    pub(crate) fn withhold_syn(&mut self) {
        if self.pending.take(ControlSegment::Syn)
            && let Some(it) = &mut self.handshake
        {
            it.retries = it.retries.saturating_sub(1);
        }
    }

    /// Notes the options of the peer's SYN.
    pub(crate) fn take_syn(&mut self, config: &Config, syn: &Segment) {
        self.negotiated.take_syn(config, syn);
        if let Some(it) = &mut self.handshake {
            it.scale = syn.options.window_scale.is_some();
        }
    }

    /// Allows data on it. Its handshake is complete unless our HMAC of a join is unacknowledged.
    pub(crate) fn join(&mut self, ctx: &mut Context<'_>) {
        Remembered::begin(self, ctx);
        if self.awaits_fourth_ack() {
            self.status.set_joined(false);
        } else {
            self.end_handshake();
        }
    }

    /// Completes its handshake.
    pub(super) fn end_handshake(&mut self) {
        self.status.set_joined(true);
        self.handshake = None;
    }

    /// Applies a step of the state machine. A step that is not possible changes nothing.
    pub(crate) fn step(&mut self, step: Step) {
        if let Some(next) = self.state.after(step) {
            self.state = next;
        }
        if self.state == State::Closed {
            self.timers.clear_all();
            self.pending.keep_reset();
        }
    }

    /// Returns its traffic. SYN and FIN have sequence numbers, but are not counted.
    pub(crate) fn carried(&self) -> Carried {
        let before = SendSsn::new(1 + u64::from(self.status.fin_sent()));
        Carried {
            sent: self.sender.tx.nxt().saturating_sub(before),
            received: self.rx.taken_in(),
            counters: self.counters,
        }
    }

    /// Returns the stored mapping of `range`.
    pub(crate) fn mapping_of(&self, range: RecvRange) -> Option<MappedRange<RecvSpace>> {
        self.mappings.as_ref()?.covering(range)
    }

    /// Returns the mapping of the superpacket that contained `seq`.
    pub(crate) fn superpacket_mapping(&self, seq: SendSsn) -> Option<SuperpacketMapping> {
        self.mappings.as_ref()?.find(seq)
    }

    /// Stores the mapping of a superpacket, sent with new data.
    pub(crate) fn remember_mapping(&mut self, mapping: SuperpacketMapping) {
        self.mappings.get_or_insert_default().push(mapping);
    }

    /// Returns true if a stored mapping covers `range`.
    pub(crate) fn covers(&self, range: RecvRange) -> bool {
        let checked = self.verifier.as_ref().is_some_and(|it| it.dsn(range).is_some());
        checked || self.mapping_of(range).is_some()
    }

    /// Notes received data that must be acknowledged.
    #[inline(always)]
    pub(crate) fn note_due(&mut self, now: Time, due: AckDue) {
        match due {
            AckDue::Now => self.pending.add_ack(),
            AckDue::Later if !self.timers.is_set(Timer::Ack) => {
                self.timers.set(Timer::Ack, now + Config::ACK_DELAY);
            }
            AckDue::Later => {}
        }
    }

    /// Notes a new segment with `len` bytes of data (or a FIN).
    pub(crate) fn on_sent(
        &mut self,
        now: Time,
        dsn: Dsn,
        len: u32,
        fin: bool,
        mss: u64,
    ) -> SendSsn {
        let seq = self.sender.tx.push(now, dsn, len, fin);
        self.status.note_sent(fin);
        self.after_send(now, SendRange::with_len(seq, u64::from(len)), mss);
        seq
    }

    /// Notes a retransmission of the segment at `seq`.
    pub(crate) fn on_retransmitted(&mut self, now: Time, seq: SendSsn, len: u32, mss: u64) {
        self.sender.tx.retransmit(seq, now);
        self.counters.retransmissions += 1;
        let probe = !matches!(self.sender.phase, Phase::Recovery { .. } | Phase::Loss { .. });
        let range = SendRange::with_len(seq, u64::from(len));
        self.sender.spurious_recovery.on_retransmitted(range, self.clock.at(now), probe);
        self.after_send(now, range, mss);
    }

    fn after_send(&mut self, now: Time, range: SendRange, mss: u64) {
        self.sender.last_send = now;
        self.sender.cc.on_send();
        if let (Phase::Recovery { .. }, Some(it)) = (&self.sender.phase, &mut self.sender.recovery)
        {
            it.prr.on_sent(range.len());
        }
        if self.sender.pacer.is_some()
            && let Some(release) = self.sender.pace(now, range)
        {
            self.timers.set(Timer::Pace, release);
        }
        let room = self.sender.tx.inflight() + mss <= self.sender.cwnd();
        let capped = self.sender.is_capped();
        self.sender.cwnd_validation.on_sent(
            self.sender.tx.una(),
            self.sender.tx.nxt(),
            self.sender.tx.inflight(),
            room || capped,
        );
        if !self.timers.is_set(Timer::Rto) {
            self.arm_rto(now);
        }
        self.arm_tail_probe(now);
    }

    /// Starts the retransmission timeout.
    #[inline]
    pub(crate) fn arm_rto(&mut self, now: Time) {
        self.timers.set(Timer::Rto, now + self.sender.rtt.rto());
    }

    /// Sets the tail loss probe timer if a probe may help before the timeout (RFC 8985 section
    /// 7.2).
    pub(super) fn arm_tail_probe(&mut self, now: Time) {
        let allowed = matches!(self.sender.phase, Phase::Open)
            && self.sender.tx.sacked_segments() == 0
            && !self.sender.rack.tail.is_open()
            && self.sender.rack.probes_tail()
            && self.sender.rtt.srtt().is_some()
            && !self.sender.tx.is_empty();
        let at = now + probe_timeout(self.sender.rtt.srtt(), self.sender.tx.len());
        // A probe no sooner than the timeout is useless.
        if allowed && at < self.timers.at(Timer::Rto) {
            self.timers.set(Timer::Tail, at);
        } else {
            self.timers.clear(Timer::Tail);
        }
    }

    /// Returns true if a signal or a probe can be sent on it and be answered.
    pub(crate) fn is_reachable(&self) -> bool {
        self.state.synchronised() && self.state != State::TimeWait && self.status.proven()
    }

    /// Returns true if nothing is in flight and nothing is lost.
    pub(crate) fn is_quiet(&self) -> bool {
        self.sender.tx.is_empty()
    }

    /// Adds as many SACK blocks to a segment as its options and `room` bytes of the packet can
    /// hold.
    pub(crate) fn put_sacks(&mut self, options: &mut Options, room: u32) {
        let room = MAX_OPTION_BYTES.min(room).saturating_sub(options.padded_len());
        let (irs, sack) = (self.negotiated.irs, &mut options.sack);
        self.rx.sack_blocks((room.saturating_sub(4) / 8) as usize, |block| {
            sack.push(irs.wire(block.start).0, irs.wire(block.end).0);
        });
    }

    /// Notes a sent segment, which acknowledges everything received.
    #[inline(always)]
    pub(crate) fn note_acknowledged(&mut self) {
        self.rx.on_ack_sent();
        self.pending.drop_ack();
        self.timers.clear(Timer::Ack);
    }

    /// Closes it at once, with a RST if `tell_peer` is set. Returns `None` if it was closed.
    pub(crate) fn close(&mut self, tell_peer: bool) -> Option<ClosedSubflow> {
        if self.state == State::Closed {
            return None;
        }
        let closed = ClosedSubflow {
            was_joined: self.status.joined(),
            was_proven: self.status.proven(),
            was_down: self.state == State::TimeWait,
        };
        self.pending = Pending::default();
        self.pending.set(ControlSegment::Rst, tell_peer);
        self.step(Step::Aborted);
        self.status.end();
        Some(closed)
    }

    /// Frees memory if it has sent nothing since `before` and has nothing in flight.
    pub(crate) fn give_back(&mut self, before: Time) {
        // The effect of a retransmission is visible at most one timeout later. Neither a reduction
        // nor a retransmission can be reported as spurious then.
        if self.sender.last_send + self.sender.rtt.rto() < before {
            self.sender.give_back();
            self.rx.forget_duplicate();
            let black_hole = self.sender.black_hole().is_likely();
            if !black_hole && !matches!(self.sender.phase, Phase::Recovery { .. }) {
                self.sender.recovery = None;
            }
        }
        self.timers.give_back();
        self.sender.tx.give_back();
        self.rx.give_back();
        self.sender.host_queue.take_if(|queue| queue.bytes() == 0);
    }

    /// Frees the address of a subflow in TIME-WAIT for the SYN `syn`, if its timestamp, or without
    /// one its sequence number, is newer than the old connection's (RFC 6191 section 2). Returns the
    /// sequence number after the last used one.
    pub(crate) fn make_way(&mut self, syn: &Segment) -> Option<WireSeq> {
        let expected = self.negotiated.irs.wire(self.rx.nxt());
        let beyond = expected.is_before(WireSeq(syn.seq));
        let stamps = syn.options.timestamps.filter(|_| self.negotiated.timestamps);
        let newer = stamps.map_or(beyond, |stamps| {
            let known = self.negotiated.ts_recent;
            before(known, stamps.value) || known == stamps.value && beyond
        });
        if !newer {
            return None;
        }
        self.step(Step::WaitOver);
        Some(self.negotiated.iss.wire(self.sender.tx.nxt()))
    }
}

/// State of a subflow before it was closed.
pub(crate) struct ClosedSubflow {
    pub(crate) was_joined: bool,
    pub(crate) was_proven: bool,
    /// The event that it is down was already emitted.
    pub(crate) was_down: bool,
}
