//! What a segment from the peer does.

use super::{Connection, Context, Mode};
use crate::event::{Detail, Event, WindowCause};
use crate::planted::{Planted, planted};
use crate::tcp::acked::{Acked, Heard};
use crate::tcp::owes::Cause;
use crate::tcp::state::{State, Step};
use crate::tcp::subflow::Told;
use crate::tcp::timer::Timer;
use plait_base::{ByteRange, Time, unwrap32};
use plait_sched::Notice;
use plait_wire::{Dss, Flags, Mapping, Mptcp, Payload, ResetReason, Segment};

/// The longest TIME-WAIT (RFC 9293 section 3.6.1: twice the maximum segment lifetime; as long as
/// Linux has it).
const TIME_WAIT: plait_base::Span = plait_base::Span::from_secs(60);

/// Keeps what few connections do off the way of all the others.
#[cold]
#[inline(never)]
fn aside<R>(f: impl FnOnce() -> R) -> R {
    f()
}

impl Connection {
    /// Takes in a segment for the subflow at `index`.
    #[inline(always)]
    pub(crate) fn handle(&mut self, ctx: &mut Context<'_>, index: usize, segment: &Segment) {
        if !self.handle_expected(ctx, index, segment) {
            self.handle_any(ctx, index, segment);
        }
    }

    /// Takes in a segment that may be anything.
    #[inline(never)]
    fn handle_any(&mut self, ctx: &mut Context<'_>, index: usize, segment: &Segment) {
        if segment.flags.has(Flags::RST) {
            return self.on_reset(ctx, index, segment);
        }
        if self.closing.fast.is_some() {
            return self.on_segment_after_fast_close(ctx, index, segment);
        }
        let state = self.subflows[index].state;
        match state {
            State::Closed => return,
            State::SynSent => return self.on_syn_sent(ctx, index, segment),
            State::SynReceived if !self.on_syn_received(ctx, index, segment) => return,
            _ => {}
        }
        if segment.flags.has(Flags::SYN) {
            // A repeated SYN/ACK, for our ACK was lost; or an attack (RFC 5961 section 4).
            return self.challenge(ctx, index);
        }
        if !segment.flags.has(Flags::ACK) {
            return;
        }
        self.on_synchronised(ctx, index, segment);
    }

    #[cold]
    fn on_reset(&mut self, ctx: &mut Context<'_>, index: usize, segment: &Segment) {
        let subflow = &self.subflows[index];
        let acceptable = match subflow.state {
            State::SynSent => {
                segment.flags.has(Flags::ACK) && segment.ack == subflow.shake.iss.wrapping_add(1)
            }
            // RFC 5961 section 3.2: only the exact sequence number resets.
            _ => segment.seq == subflow.shake.irs.wrapping_add(subflow.rx.nxt() as u32),
        };
        if acceptable && self.never_known_to_peer(index) {
            self.restart_here(ctx, index);
        } else if acceptable && self.is_fast_close(segment.options.mptcp.as_deref()) {
            self.kill_subflow(ctx, index, false);
            self.on_fast_close(ctx);
        } else if acceptable && self.is_forgotten(index, segment) {
            self.give_up_waiting(ctx);
        } else if acceptable {
            let meddled = Mptcp::Reset { reason: ResetReason::Middlebox, transient: false };
            if segment.options.mptcp.as_deref().is_some_and(|it| it.all().contains(&meddled)) {
                self.joins.bar(self.subflows[index].address.path);
            }
            self.kill_subflow(ctx, index, false);
        } else if subflow.state.synchronised() {
            // A challenge for what lies in the window; the rest is dropped in silence.
            let ahead =
                segment.seq.wrapping_sub(subflow.shake.irs.wrapping_add(subflow.rx.nxt() as u32));
            let inside = u64::from(ahead) < self.recv.window();
            if inside {
                self.challenge(ctx, index);
            }
        }
    }

    fn on_synchronised(&mut self, ctx: &mut Context<'_>, index: usize, segment: &Segment) {
        let subflow = &mut self.subflows[index];
        let seq = unwrap32(segment.seq.wrapping_sub(subflow.shake.irs), subflow.rx.nxt());
        let ack = unwrap32(segment.ack.wrapping_sub(subflow.shake.iss), subflow.tx.una());
        if !self.is_acceptable(ctx, index, segment, seq, ack) {
            return;
        }
        let subflow = &mut self.subflows[index];
        let revived = core::mem::take(&mut subflow.standing.pf);
        let proven =
            !subflow.standing.joined && subflow.shake.initiator && subflow.state.synchronised();
        if proven && subflow.shake.join {
            // The fourth ACK: our HMAC arrived.
            subflow.timers.clear(Timer::Rto);
            self.subflow_up(ctx, index);
        } else if revived {
            self.notify_subflows(ctx);
        }
        if let Some(option) = segment.options.mptcp.as_deref() {
            self.on_mptcp_option(ctx, index, option);
        }
        if self.failed {
            return;
        }
        if let Some(dss) = &segment.options.dss {
            self.on_dss_seen(ctx);
            if let Some(map) = dss.mapping.as_ref().filter(|map| map.len == 0) {
                self.on_infinite_mapping(ctx, index, map);
            }
        } else if self.mode == Mode::Multipath {
            self.on_bare_segment(ctx, index, segment, seq, ack);
        }
        if self.failed {
            return;
        }
        let edge = self.acknowledged_data(segment, ack);
        self.on_acknowledgements(ctx, index, segment, ack, edge);
        self.on_payload(ctx, index, segment, seq);
        if segment.flags.has(Flags::FIN) {
            self.on_fin(ctx, index, seq + u64::from(segment.payload.len()));
        } else if let Some(seq) = self.subflows[index].rx.fin_due() {
            self.on_fin(ctx, index, seq);
        }
    }

    #[cold]
    fn on_mptcp_option(&mut self, ctx: &mut Context<'_>, index: usize, option: &Mptcp) {
        let subflow = &mut self.subflows[index];
        match option {
            // Our fourth ACK was lost: the peer may not send before it has one.
            Mptcp::JoinAck(_) => subflow.owes.ack |= !subflow.shake.initiator,
            Mptcp::Prio { backup } if subflow.standing.peer_backup != *backup => {
                subflow.standing.peer_backup = *backup;
                self.notify_subflows(ctx);
            }
            Mptcp::RemoveAddr(ids) => self.on_remove_addr(ctx, ids),
            Mptcp::AddAddr(add) => self.on_add_addr(ctx, index, add),
            Mptcp::Fail(dsn) => self.on_mp_fail(ctx, index, *dsn),
            Mptcp::FastClose(_) if self.is_fast_close(Some(option)) => self.on_fast_close(ctx),
            Mptcp::Several(options) => {
                options.iter().for_each(|option| self.on_mptcp_option(ctx, index, option));
            }
            _ => {}
        }
    }

    /// Takes in what a segment acknowledges: sequence numbers below `ack`, and data below `edge`
    /// where it tells of any.
    #[inline(always)]
    pub(super) fn on_acknowledgements(
        &mut self,
        ctx: &mut Context<'_>,
        index: usize,
        segment: &Segment,
        ack: u64,
        edge: Option<u64>,
    ) {
        let old = self.queue.una();
        self.on_subflow_ack(ctx, index, segment, ack);
        if let Some(edge) = edge {
            self.on_data_ack(ctx, index, segment, edge);
        }
        let new = self.queue.una();
        if new > old {
            ctx.emit(Event::DataAcked { old, new });
            if self.scheduling.needs.data_acks {
                let edge = self.queue.last_edge();
                self.notify_scheduler(ctx, Notice::DataAck { old, new, edge });
            }
        }
    }

    /// Acknowledgement of the subflow's own sequence space.
    fn on_subflow_ack(&mut self, ctx: &mut Context<'_>, index: usize, segment: &Segment, ack: u64) {
        let subflow = &mut self.subflows[index];
        if self.spec.config.subflow_windows {
            let window = u64::from(segment.window) << subflow.shake.peer_scale;
            let held = subflow.exceeds_window(self.mss);
            subflow.standing.edge = subflow.standing.edge.max(ack.saturating_add(window));
            if held {
                self.scheduling.on_released(subflow.id);
            }
        }
        let una = subflow.tx.una();
        let blocks = segment.options.sack.as_slice();
        if ack <= una && blocks.is_empty() {
            if subflow.rack.tail.is_open() && segment.payload.is_empty() {
                self.subflows[index].rack.tail.on_duplicate(ack);
            }
            return;
        }
        let stamps = segment.options.timestamps.filter(|_| subflow.shake.offer.timestamps);
        let echo = stamps.map(|stamps| stamps.echo);
        if blocks.is_empty() {
            return self.on_heard(ctx, index, &Heard { ack, blocks: &[], dsack: None, echo });
        }
        let mut ranges = [ByteRange::default(); 4];
        let iss = subflow.shake.iss;
        for (range, (left, right)) in ranges.iter_mut().zip(blocks) {
            *range = ByteRange::new(
                unwrap32(left.wrapping_sub(iss), una),
                unwrap32(right.wrapping_sub(iss), una),
            );
        }
        let ranges = &ranges[..blocks.len()];
        // RFC 2883 section 4: a first block below the acknowledgement, or inside the second.
        let dsack = ranges.first().copied().filter(|first| {
            first.end <= ack || ranges.get(1).is_some_and(|second| second.covers(*first))
        });
        self.on_heard(ctx, index, &Heard { ack: ack.max(una), blocks: ranges, dsack, echo });
    }

    #[inline(never)]
    fn on_heard(&mut self, ctx: &mut Context<'_>, index: usize, heard: &Heard<'_>) {
        let (mss, mut acked) = (self.mss, Acked::default());
        self.with_flows(index, |subflow, flows| {
            subflow.on_ack(ctx.now, heard, flows, mss, &mut acked);
        });
        self.after_ack(ctx, index, &acked);
    }

    fn after_ack(&mut self, ctx: &mut Context<'_>, index: usize, acked: &Acked) {
        let subflow = &mut self.subflows[index];
        let (id, cwnd) = (subflow.id, subflow.cwnd());
        ctx.log.emit(Event::Acked {
            subflow: id,
            bytes: acked.delivered,
            rtt: acked.rtt,
            srtt: subflow.rtt.srtt().unwrap_or_default(),
            cwnd,
            inflight: subflow.tx.inflight(),
        });
        let cause = match acked {
            Acked { undone: Some(_), entered_recovery: false, .. } => Some(WindowCause::Undone),
            Acked { entered_recovery: true, .. } | Acked { tail_repaired: true, .. } => {
                Some(WindowCause::Loss)
            }
            Acked { left_recovery: true, .. } => Some(WindowCause::Recovered),
            _ => None,
        };
        if let Some(cause) = cause {
            let ssthresh = subflow.cc.ssthresh();
            ctx.log.emit(Event::Window { subflow: id, cwnd, ssthresh, cause });
            if acked.tail_repaired {
                let cause = WindowCause::Recovered;
                ctx.log.emit(Event::Window { subflow: id, cwnd, ssthresh, cause });
            }
        }
        if acked.undone == Some(true) {
            self.withdraw_reinjections(index);
        }
        self.continue_frto(index);
        let subflow = &mut self.subflows[index];
        if let Some(mappings) = &mut subflow.mappings {
            mappings.on_acked(subflow.tx.una());
        }
        // Somebody may wait for the connection to fall quiet.
        self.news |= subflow.is_quiet() && self.queue.is_drained();
        if acked.fin_acked {
            self.changed = true;
            subflow.step(Step::FinAcked);
            if subflow.state == State::TimeWait {
                subflow.timers.clear_all();
                subflow.timers.set(Timer::TimeWait, ctx.now + TIME_WAIT);
            }
            if self.sends_plain() {
                self.on_fin_acked();
            }
            // Our FIN came after the DATA_FINs, beside our DATA_ACK.
            self.closing.settle();
            self.scheduling.wake();
        }
        self.scheduling.on_acked(id);
    }

    /// The DSN up to which a segment acknowledges data, if it does.
    fn acknowledged_data(&self, segment: &Segment, ack: u64) -> Option<u64> {
        match self.mode {
            // Plain TCP: sequence numbers and DSNs run in step; the FIN has no DSN.
            // An acknowledgement from before our first byte says nothing.
            _ if self.sends_plain() => Some(ack.checked_sub(1)?.min(self.queue.nxt())),
            Mode::Multipath | Mode::Plain => {
                let data_ack = segment.options.dss.as_ref()?.data_ack?;
                Some(if data_ack.long {
                    data_ack.value.wrapping_sub(self.keys.first_dsn)
                } else {
                    let low = (data_ack.value as u32).wrapping_sub(self.keys.first_dsn as u32);
                    unwrap32(low, self.queue.una())
                })
            }
            Mode::Offered => None,
        }
    }

    /// Acknowledgement of the data below `edge`, and the window beside it.
    #[inline(always)]
    fn on_data_ack(&mut self, ctx: &mut Context<'_>, index: usize, segment: &Segment, edge: u64) {
        let sent = self.data_fin_edge().unwrap_or(self.queue.nxt());
        if edge > sent {
            return;
        }
        if self.data_fin_edge() == Some(edge) && !self.sends_plain() {
            self.on_fin_acked();
        }
        let freed = self.queue.on_data_ack(edge);
        let window = u64::from(segment.window) << self.subflows[index].shake.peer_scale;
        let opened = self.window.update(edge, window);
        if freed > 0 {
            self.on_data_progress(ctx.now);
            let waited_for = self.scheduling.app_blocked || self.queue.is_drained();
            if waited_for && !planted(Planted::LostWakeUp) {
                self.news = true;
            }
        }
        if freed > 0 || opened {
            self.scheduling.on_data();
        }
    }

    /// The range of data that the payload carries, if it is told.
    fn mapped(&self, index: usize, segment: &Segment, seq: u64) -> Option<u64> {
        match self.mode {
            _ if self.receives_plain() => seq.checked_sub(1),
            Mode::Offered => None,
            Mode::Multipath | Mode::Plain => {
                if let Some(Mptcp::Capable(capable)) = segment.options.mptcp.as_deref()
                    && capable.data_len.is_some()
                    && !self.subflows[index].shake.join
                {
                    return seq.checked_sub(1);
                }
                let range = ByteRange::with_len(seq, u64::from(segment.payload.len()));
                let told = match &segment.options.dss {
                    Some(Dss { mapping: Some(map), data_fin, .. }) => {
                        self.read_mapping(map, *data_fin, seq)?
                    }
                    // A middlebox has cut it from the segment that told the mapping.
                    _ => self.subflows[index].told(range)?,
                };
                if !told.seq.covers(range) {
                    return None;
                }
                told.dsn.checked_add(seq.checked_sub(told.seq.start)?)
            }
        }
    }

    /// A mapping in our own numbers. `seq` is where the segment that tells it starts; a DATA_FIN with
    /// it (`fin`) counts in its length and takes a DSN, but no byte of the subflow (RFC 8684 section
    /// 3.3.3).
    fn read_mapping(&self, map: &Mapping, fin: bool, seq: u64) -> Option<Told> {
        let dsn = self.mapped_dsn(map);
        let start = unwrap32(map.ssn, seq);
        let bytes = u64::from(map.len).checked_sub(u64::from(fin))?;
        let end = start.checked_add(bytes)?;
        Some(Told { seq: ByteRange::new(start, end), dsn })
    }

    fn on_payload(&mut self, ctx: &mut Context<'_>, index: usize, segment: &Segment, seq: u64) {
        if let Some(dss) = &segment.options.dss
            && dss.data_fin
            && !self.receives_plain()
        {
            self.on_data_fin(index, dss);
        }
        let len = u64::from(segment.payload.len());
        if len == 0 {
            // A probe of our window repeats an old sequence number.
            let subflow = &mut self.subflows[index];
            subflow.owes.ack |= seq < subflow.rx.nxt() && !segment.flags.has(Flags::FIN);
            return;
        }
        if !self.subflows[index].state.takes_data() {
            // Beyond the peer's FIN (RFC 9293 section 3.10.7.4: the text is ignored).
            self.subflows[index].owes.ack = true;
            return;
        }
        if let Some(Dss { mapping: Some(map), data_fin, .. }) = &segment.options.dss
            && u64::from(map.len) > len
            && let Some(told) = self.read_mapping(map, *data_fin, seq)
            && !self.subflows[index].remember(told)
        {
            return self.reset_subflow(ctx, index, Cause::Reason(ResetReason::Mptcp));
        }
        let dsn = if self.checksums && !self.receives_plain() {
            self.checked_dsn(ctx, index, segment, seq)
        } else {
            self.mapped(index, segment, seq)
        };
        let Some(dsn) = dsn else { return self.on_unmapped(ctx, index, segment, seq) };
        // Below the first byte or beyond the last number: no place in the data.
        let Some(end) = dsn.checked_add(len) else { return };
        let data = ByteRange::new(dsn, end);
        let range = ByteRange::with_len(seq, len);
        let beside = seq < self.subflows[index].rx.nxt() || self.subflows[index].rx.has_hole();
        if beside && !self.receives_plain() && self.subflows[index].rx.contradicts(range, dsn) {
            return self.reset_subflow(ctx, index, Cause::Reason(ResetReason::Mptcp));
        }
        // What does not fit the window is discarded at both levels, so that it comes again.
        let crowded = self.recv.is_crowded() && data.start > self.recv.nxt();
        if crowded || !self.recv.fits(data) {
            self.subflows[index].owes.ack = true;
            return;
        }
        let mss = self.mss();
        let (now, log) = (ctx.now, &mut ctx.log);
        let (subflow, recv) = (&mut self.subflows[index], &mut self.recv);
        subflow.standing.unmapped = 0;
        let id = subflow.id;
        // No measure reads of it.
        let told = log.detail == Detail::Everything && !subflow.rx.has(range);
        let before = recv.nxt();
        let mut duplicate = 0;
        let mut deliver = |dsn: u64, payload: Payload, at: Time| {
            duplicate += u64::from(payload.len());
            duplicate -= recv.insert(now, dsn, &payload, at, id, &mut |run| {
                log.emit(run.event());
            });
        };
        let payload = segment.payload.clone();
        let due = match &mut subflow.verifier {
            None => subflow.rx.accept(now, seq, dsn, payload, mss, &mut deliver),
            Some(verifier) => aside(|| {
                subflow.rx.accept(now, seq, dsn, payload, mss, |dsn, payload, at| {
                    verifier.take((dsn, payload, at), &mut deliver);
                })
            }),
        };
        subflow.note_due(now, due);
        if told {
            ctx.emit(Event::DataArrived { subflow: id, data, duplicate });
        }
        if self.checksums {
            self.on_verified(ctx, index);
        }
        self.after_data(now, index, before);
    }

    /// Data was taken in, and it may be more than `before` that can be read.
    #[inline(always)]
    pub(super) fn after_data(&mut self, now: Time, index: usize, before: u64) {
        if self.recv.nxt() > before {
            self.news = true;
            if self.recv.is_tuned(now) {
                let longest = self.subflows.iter().filter_map(|it| it.rtt.srtt()).max();
                self.recv.retune(now, longest.unwrap_or_default(), self.mss);
            }
            if self.recv.finished() {
                // The last bytes before a DATA_FIN that came ahead of them.
                self.on_peer_finished();
                self.subflows[index].owes.ack = true;
            }
        }
    }

    /// The peer's data ends; acted upon when everything below is here (RFC 8684 section 3.3.3).
    #[cold]
    fn on_data_fin(&mut self, index: usize, dss: &Dss) {
        let Some(map) = dss.mapping else { return };
        let first = unwrap32(
            (map.dsn as u32).wrapping_sub(self.keys.peer_first_dsn as u32),
            self.recv.nxt(),
        );
        self.subflows[index].owes.ack = true;
        // An end before what is here or beyond the window is none, and must not keep the true one
        // out (numbers before the first byte wrap to the end of the space).
        let Some(end) = first.checked_add(u64::from(map.len).saturating_sub(1)) else { return };
        let right = self.fin_is_right(first, &map);
        if !right || end < self.recv.nxt() || end > self.recv.right_edge() {
            return;
        }
        self.recv.set_fin(end);
        if self.recv.finished() {
            self.on_peer_finished();
        }
    }

    #[cold]
    fn on_fin(&mut self, ctx: &mut Context<'_>, index: usize, seq: u64) {
        let plain = self.receives_plain();
        let subflow = &mut self.subflows[index];
        subflow.owes.ack = true;
        if !subflow.rx.take_fin(seq) {
            return;
        }
        subflow.step(Step::FinReceived);
        if subflow.state == State::TimeWait {
            subflow.timers.clear_all();
            subflow.timers.set(Timer::TimeWait, ctx.now + TIME_WAIT);
        }
        if plain {
            self.recv.set_fin(seq - 1);
            self.on_peer_finished();
        }
    }
}
