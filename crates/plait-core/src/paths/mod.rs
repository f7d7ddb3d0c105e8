//! The paths of a connection: its subflows, those that are to be opened, and the addresses of both ends.

pub(crate) mod acceptability;
pub(crate) mod acks;
pub(crate) mod addresses;
pub(crate) mod admission;
pub(crate) mod challenges;
pub(crate) mod control;
pub(crate) mod early_join;
pub(crate) mod fallback;
pub(crate) mod fast_path;
pub(crate) mod handshake;
pub(crate) mod joins;
pub(crate) mod opening;
pub(crate) mod priority;
pub(crate) mod probing;
pub(crate) mod receiving;
pub(crate) mod redial;
pub(crate) mod removal;
pub(crate) mod segments;
pub(crate) mod sizing;
pub(crate) mod superpackets;

use crate::config::Config;
use crate::conn::context::Context;
use crate::conn::liveness::is_reachable;
use crate::conn::timers::{
    CONNECTION_RTO, ConnectionTimers, DATA_RETRIES, FIN_TIME, SYN_ACK_RETRIES, SYN_RETRIES,
};
use crate::conn::{ConnectionSpec, ConnectionState, Notices};
use crate::data::closing::TIME_WAIT;
use crate::data::fallback::{Mode, dsn_in_step, ssn_in_step};
use crate::data::fastclose::FastClose;
use crate::data::level::DataLevel;
use crate::data::memory_limit::MemoryLimit;
use crate::data::memory_usage::MemoryUsage;
use crate::endpoint::Remnant;
use crate::event::{Event, WindowCause};
use crate::paths::addresses::Addresses;
use crate::paths::admission::Allowance;
use crate::paths::challenges::Challenges;
use crate::paths::joins::Joins;
use crate::planted::{Planted, planted};
use crate::segments::Transmit;
use crate::stats::{ConnectionStats, Progress, SubflowStats, Totals};
use crate::tcp::acceptability::{Place, place};
use crate::tcp::ack_processing::AckEffects;
use crate::tcp::clock::before;
use crate::tcp::host_queue;
use crate::tcp::pending::{ControlSegment, Pending};
use crate::tcp::state::{State, Step};
use crate::tcp::subflow::{Address, Handshake, Subflow};
use crate::tcp::timer::Timer;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use plait_base::{DataRange, Dsn, Span, Ssn, SubflowId, SubflowRange, SubflowSet, Time};
use plait_cc::{Flow, Flows};
use plait_sched::SentRange;
use plait_wire::{Dss, Flags, Mptcp, ResetReason, Segment};

/// Fills the places of flows that are not there.
const NO_FLOW: Flow = Flow {
    cwnd: 0,
    ssthresh: None,
    srtt: None,
    mss: 0,
    in_recovery: false,
    live: false,
    loss_interval: 0,
};

/// What a reset means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ResetMeans {
    Nothing,
    /// It may be forged: the peer is asked.
    Challenge,
    /// The peer's user knows nothing of the connection: it begins again.
    Redial,
    /// The peer ends the connection.
    FastClose,
    /// The peer does not know the connection any more.
    Forgotten,
    /// The subflow is gone.
    Gone,
}

/// What a subflow was before it was closed.
pub(crate) struct ClosedSubflow {
    pub(crate) was_joined: bool,
    /// Observers know that it is down.
    pub(crate) was_down: bool,
}

/// The subflows of a connection, and what further ones are opened from.
pub(crate) struct Paths {
    /// What the connection is made from: its settings, and the addresses of both ends.
    pub(crate) spec: Arc<ConnectionSpec>,
    /// This end dialled.
    pub(crate) client: bool,
    pub(crate) subflows: Vec<Subflow>,
    /// Totals of subflows whose slot has been reused.
    pub(crate) replaced: Option<Box<Totals>>,
    pub(crate) joins: Joins,
    pub(crate) addresses: Addresses,
    /// Payload bytes of a full segment: what our MTU, the peers' MSS and the paths leave.
    pub(crate) mss: u32,
    /// Payload bytes of the peer's full segments: an end that has not fallen back yet fills no more.
    pub(crate) ack_unit: u32,
    /// Challenge ACKs that may still be sent.
    pub(crate) challenges: Challenges,
    /// The peer's joins that may still be taken.
    pub(crate) admission: Allowance,
    /// How often the first handshake was begun again on another path.
    pub(crate) dials: u8,
    /// A path let less through than the handshake said.
    pub(crate) narrowed: bool,
    /// Consecutive handshakes that succeeded while no data was delivered.
    pub(crate) unheard: u8,
}

impl Paths {
    pub(crate) fn new(spec: Arc<ConnectionSpec>, client: bool) -> Paths {
        let mss = spec.config.segment_payload() as u32;
        Paths {
            spec,
            client,
            subflows: Vec::new(),
            replaced: None,
            joins: Joins::default(),
            addresses: Addresses::default(),
            mss,
            ack_unit: mss,
            challenges: Challenges::default(),
            admission: Allowance::default(),
            dials: 0,
            narrowed: false,
            unheard: 0,
        }
    }

    /// A slot for a subflow: that of a closed one, or a new one.
    pub(crate) fn free_slot(&self) -> Option<SubflowId> {
        let free = |s: &Subflow| s.state == State::Closed && !s.pending.has(ControlSegment::Rst);
        let index = self.subflows.iter().position(free).unwrap_or(self.subflows.len());
        (index < SubflowId::MAX).then_some(SubflowId(index as u8))
    }

    /// For a signal that has had no answer `repeats` times: each live subflow has its turn, the one
    /// with the least smoothed RTT first. An end that sends no data would never learn that a path is
    /// silent.
    pub(crate) fn signal_path(&self, repeats: u32) -> Option<usize> {
        let live = |index: &usize| {
            let subflow = &self.subflows[*index];
            subflow.state.synchronised()
                && subflow.state != State::TimeWait
                && subflow.status.joined
        };
        let key = |index: &usize| {
            let subflow = &self.subflows[*index];
            let status = subflow.status;
            (status.pf, subflow.is_backup(), subflow.rtt.srtt(), *index)
        };
        let all = || (0..self.subflows.len()).filter(live);
        if repeats == 0 {
            return all().min_by_key(key);
        }
        let turn = repeats as usize % all().count().max(1);
        all().find(|index| all().filter(|other| key(other) < key(index)).count() == turn)
    }

    /// The live subflow with the least smoothed RTT, for a signal that takes no window.
    pub(crate) fn best_for_signal(&self) -> Option<usize> {
        self.signal_path(0)
    }

    /// What the peer has sent, what it has acknowledged and the time by its clock, on all subflows. A
    /// segment that changes none of these passes unnoticed, and a probe goes out too early.
    pub(crate) fn heard(&self) -> u64 {
        let of = |s: &Subflow| s.rx.nxt().get() + s.tx.una().get() + u64::from(s.shake.ts_recent);
        self.subflows.iter().map(of).fold(0, u64::wrapping_add)
    }

    pub(crate) fn subflow_stats(&self) -> Vec<SubflowStats> {
        let stats = |s: &Subflow| SubflowStats {
            subflow: s.id,
            path: s.address.path(),
            server: s.address.server(),
            up: s.status.joined && s.state.synchronised(),
            joined: s.shake.join,
            carried: s.carried(),
            potentially_failed: s.status.pf,
            cwnd: s.cwnd(),
            ssthresh: s.cc.ssthresh(),
            inflight: s.tx.inflight(),
            srtt: s.rtt.srtt(),
            rto: s.rtt.rto(),
            retransmissions: s.spurious_recovery.counters.retransmissions,
            spurious: s.spurious_recovery.counters.spurious,
            undone: s.spurious_recovery.counters.undone,
        };
        self.subflows.iter().map(stats).collect()
    }

    /// What its subflows have carried, those that are gone included.
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = self.replaced.as_deref().copied().unwrap_or_default();
        self.subflows.iter().for_each(|subflow| totals.add_subflow(subflow));
        totals
    }

    /// Whether there is a slot for a subflow.
    pub(crate) fn has_room(&self) -> bool {
        let free = |s: &Subflow| s.state == State::Closed && !s.pending.has(ControlSegment::Rst);
        self.subflows.len() < SubflowId::MAX || self.subflows.iter().any(free)
    }

    /// Payload bytes of a full segment.
    pub(crate) fn mss(&self) -> u64 {
        u64::from(self.mss)
    }

    /// Index of the subflow that `address` belongs to, `likely` as a rule.
    #[inline(always)]
    pub(crate) fn find(&self, address: Address, likely: u8) -> Option<usize> {
        let is_open = |s: &Subflow| s.state != State::Closed || s.pending.has(ControlSegment::Rst);
        let open = |s: &Subflow| s.address == address && is_open(s);
        let index = usize::from(likely);
        let first = self.subflows.iter().take(index).all(|s| s.address != address);
        if first && self.subflows.get(index).is_some_and(open) {
            return Some(index);
        }
        self.subflows.iter().position(open)
    }

    /// The subflows that are not closed, and their addresses.
    pub(crate) fn open_subflows(&self) -> impl Iterator<Item = (SubflowId, Address)> + '_ {
        self.subflows.iter().filter(|s| s.state != State::Closed).map(|s| (s.id, s.address))
    }

    /// The addresses of the subflows that are not closed.
    pub(crate) fn open_addresses(&self) -> impl Iterator<Item = Address> + '_ {
        self.open_subflows().map(|(_, address)| address)
    }

    pub(crate) fn live(&self) -> SubflowSet {
        let live = |s: &&Subflow| s.state.synchronised() && s.status.joined && !s.status.pf;
        self.subflows.iter().filter(live).map(|s| s.id).collect()
    }

    /// Calls `f` with the subflow at `index` and read-only views of all flows, its own included.
    pub(crate) fn with_flows<R>(
        &mut self,
        index: usize,
        f: impl FnOnce(&mut Subflow, Flows<'_>) -> R,
    ) -> R {
        let subflow = &mut self.subflows[index];
        if !subflow.cc.couples() {
            // Of its own entry a controller reads the RTT alone.
            let own = [Flow { srtt: subflow.rtt.srtt(), ..NO_FLOW }];
            return f(subflow, Flows { all: &own, own: 0 });
        }
        let mut all = [NO_FLOW; SubflowId::MAX];
        for (flow, subflow) in all.iter_mut().zip(&self.subflows) {
            *flow = subflow.flow();
        }
        let flows = Flows { all: &all[..self.subflows.len()], own: index };
        f(&mut self.subflows[index], flows)
    }

    /// The subflows that are trusted with the data they carry: those that are open, without the
    /// silent ones while another lives.
    pub(crate) fn carriers(&self) -> SubflowSet {
        let spoken = |s: &&Subflow| !s.status.pf || self.live().is_empty();
        let open = self.subflows.iter().filter(|s| s.state != State::Closed);
        open.filter(spoken).map(|s| s.id).collect()
    }

    /// Whether a subflow has come through its handshake and is not closed.
    pub(crate) fn has_subflow(&self) -> bool {
        self.subflows.iter().any(|s| s.state.synchronised())
    }

    /// What is to be sent again as a scheduler sees it: where one subflow of a path has fallen silent,
    /// its siblings there have probably as well, and count as having carried it.
    pub(crate) fn beside_silence(&self, mut next: SentRange) -> SentRange {
        if self.subflows.len() > 2 {
            let silent =
                |path| self.subflows.iter().any(|it| it.status.pf && it.address.path() == path);
            for subflow in self.subflows.iter().filter(|it| silent(it.address.path())) {
                next.carried.insert(subflow.id);
            }
        }
        next
    }

    /// A segment that the peer may have to know of is answered, within the limit of challenges
    /// (RFC 5961 section 7).
    pub(crate) fn challenge(&mut self, ctx: &mut Context<'_>, index: usize) {
        let may = self.challenges.take(ctx);
        self.subflows[index].pending.ack |= may;
    }

    /// A segment of `len` payload bytes leaves the host at `departs`.
    pub(crate) fn on_departure(&mut self, now: Time, id: SubflowId, len: u32, departs: Time) {
        let mss = self.mss();
        let Some(subflow) = self.subflows.get_mut(id.index()) else { return };
        let queue = subflow.host_queue.get_or_insert_default();
        queue.push(now, departs, host_queue::truesize(len));
        let next = queue.next_departure();
        if subflow.tsq_blocked(mss) {
            subflow.timers.set(Timer::HostQueue, next);
        }
    }

    pub(crate) fn report_window(&self, ctx: &mut Context<'_>, index: usize, cause: WindowCause) {
        let subflow = &self.subflows[index];
        let (cwnd, ssthresh) = (subflow.cwnd(), subflow.cc.ssthresh());
        ctx.emit(Event::Window { subflow: subflow.id, cwnd, ssthresh, cause });
    }

    /// The port at which the connection's server listens.
    pub(crate) fn service_port(&self) -> Option<u16> {
        let address = self.subflows.first()?.address;
        Some(if self.client { address.remote_port } else { address.local_port })
    }

    /// Whether small queues, pacing or windows of their own make subflows wait.
    pub(crate) fn holds_back(&self) -> bool {
        let _config = &self.spec.config;
        self.spec.config.tsq
            || self.spec.config.pacing.is_some()
            || self.spec.config.subflow_windows
    }

    /// Whether `subflow` waits for the host's queue, for its release time or for its window.
    #[inline]
    pub(crate) fn held_back(&self, subflow: &Subflow) -> bool {
        subflow.is_paced()
            || self.spec.config.tsq && subflow.tsq_blocked(self.mss())
            || self.spec.config.subflow_windows && subflow.exceeds_window(self.mss())
    }

    pub(crate) fn add_subflow(
        &mut self,
        notices: &mut Notices,
        id: SubflowId,
        address: Address,
        state: State,
        shake: Handshake,
    ) {
        let algorithm = (self.spec.controller)(address.path());
        let known = self.spec.paths.iter().find(|known| known.path == address.path());
        let remembered = known.and_then(|known| known.ssthresh);
        let config = &self.spec.config;
        let mut subflow = Subflow::new(id, address, state, shake, config, remembered, algorithm);
        if self.narrowed {
            subflow.cc.resize(self.mss);
        }
        notices.changed = true;
        match self.subflows.get_mut(id.index()) {
            Some(slot) => {
                self.replaced.get_or_insert_default().add_subflow(slot);
                *slot = subflow;
            }
            None => {
                self.subflows.reserve_exact(1);
                self.subflows.push(subflow);
            }
        }
    }

    /// A SYN comes for a subflow in TIME-WAIT. Where it cannot belong to the old conversation, for
    /// its timestamp or else its sequence number is newer, the address is free (RFC 6191 section
    /// 2): tells the sequence number after the last one that was used.
    pub(crate) fn reuse_time_wait(
        &mut self,
        notices: &mut Notices,
        address: Address,
        syn: &Segment,
    ) -> Option<u32> {
        let at_rest = |s: &&mut Subflow| s.address == address && s.state == State::TimeWait;
        let subflow = self.subflows.iter_mut().find(at_rest)?;
        let expected = subflow.shake.peer_wire(subflow.rx.nxt());
        let beyond = syn.seq != expected && before(expected, syn.seq);
        let stamps = syn.options.timestamps.filter(|_| subflow.shake.offer.timestamps);
        let newer = stamps.map_or(beyond, |stamps| {
            let known = subflow.shake.ts_recent;
            before(known, stamps.value) || known == stamps.value && beyond
        });
        if !newer {
            return None;
        }
        subflow.step(Step::WaitOver);
        notices.changed = true;
        Some(subflow.shake.wire(subflow.tx.nxt()))
    }

    /// A FIN has come or was acknowledged on the subflow at `index`.
    pub(crate) fn on_leave(
        &mut self,
        ctx: &mut Context<'_>,
        notices: &mut Notices,
        index: usize,
        step: Step,
    ) {
        notices.changed = true;
        let subflow = &mut self.subflows[index];
        let before = subflow.state;
        subflow.step(step);
        if subflow.state == State::TimeWait {
            subflow.timers.clear_all();
            subflow.timers.set(Timer::TimeWait, ctx.now + TIME_WAIT);
        }
        // Both ends have taken leave on it.
        let gone = |state| matches!(state, State::Closed | State::TimeWait);
        if gone(subflow.state) && !gone(before) && subflow.status.joined {
            ctx.emit(Event::SubflowDown { subflow: subflow.id });
        }
    }

    /// Sets every window to its initial value; thresholds stay.
    pub(crate) fn reset_windows(&mut self, ctx: &mut Context<'_>) {
        let initial = u64::from(self.spec.config.initial_window) * self.mss();
        for subflow in &mut self.subflows {
            subflow.cc.set_cwnd(initial);
            ctx.log.emit(Event::Window {
                subflow: subflow.id,
                cwnd: initial,
                ssthresh: subflow.cc.ssthresh(),
                cause: crate::event::WindowCause::Set,
            });
        }
    }

    /// The host's queue of the subflow at `index` has drained. Returns whether more may be sent now.
    pub(crate) fn on_host_queue_timer(&mut self, now: Time, index: usize) -> bool {
        let mss = self.mss();
        let subflow = &mut self.subflows[index];
        subflow.drain_host_queue(now);
        match &subflow.host_queue {
            Some(queue) if subflow.tsq_blocked(mss) => {
                subflow.timers.set(Timer::HostQueue, queue.next_departure());
                false
            }
            _ => true,
        }
    }

    /// The time for reordering is over on the subflow at `index`: what has not arrived is lost.
    pub(crate) fn on_reorder(&mut self, ctx: &mut Context<'_>, index: usize) {
        let (now, mss) = (ctx.now, self.mss());
        let mut effects = AckEffects::default();
        self.with_flows(index, |subflow, flows| subflow.detect_loss(now, flows, mss, &mut effects));
        if effects.entered_recovery {
            self.report_window(ctx, index, WindowCause::Loss);
        }
    }

    /// Whether `len` sequence numbers from `seq` on may come on the subflow at `index`.
    pub(crate) fn place(&self, data: &DataLevel, index: usize, seq: Ssn, len: u64) -> Place {
        let (nxt, reach) = (self.subflows[index].rx.nxt(), data.reach(&self.spec.config));
        let edge = match data.agreed.mode {
            Mode::Plain => ssn_in_step(data.recv.right_edge()).max(nxt),
            _ => nxt + reach,
        };
        place(seq, len, nxt, edge, reach)
    }

    /// Memory of what has arrived and was not read.
    pub(crate) fn received(&self, data: &DataLevel) -> MemoryUsage {
        self.subflows.iter().fold(data.recv.memory_usage(), |sum, it| sum + it.rx.memory_usage())
    }

    /// Limits how long subflows in FIN-WAIT-2 wait for the peer's FIN once both directions have ended:
    /// the peer has nothing more to send there, and its FIN may be lost for good.
    pub(crate) fn arm_fin_wait(&mut self, data: &DataLevel, now: Time) {
        if !data.closing.done() {
            return;
        }
        let until = now + self.spec.config.fin_timeout;
        for subflow in &mut self.subflows {
            if subflow.state == State::FinWait2 && !subflow.timers.is_set(Timer::TimeWait) {
                subflow.timers.set(Timer::TimeWait, until);
            }
        }
    }

    /// Whether `subflow` is to send its FIN now.
    pub(crate) fn owes_fin(&self, data: &DataLevel, index: usize) -> bool {
        let subflow = &self.subflows[index];
        // A join that is not proven yet has no more than its third ACK to send (RFC 8684 section
        // 3.2); its timer is that of the proof.
        let status = subflow.status;
        if !subflow.state.sends_data() || status.pf || !status.joined {
            return false;
        }
        let early = planted(Planted::FinEarly) && data.closing.fin_sent;
        if data.sends_plain() { data.at_end() } else { early || data.closing.done() }
    }

    /// How large the send buffer may be: what everybody may hold, or twice what the peer has room for
    /// and the subflows carry in a round trip. A peer that does not read has no room, and windows of
    /// subflows to one that does not acknowledge are small.
    pub(crate) fn sendable(&self, data: &DataLevel, limit: MemoryLimit) -> u64 {
        let room = data.window.end().saturating_sub(data.queue.una());
        let windows = self.subflows.iter().filter(|it| it.state.synchronised()).map(|it| it.cwnd());
        let taken = windows.sum::<u64>().min(room).saturating_mul(2);
        limit.unsent.max(taken.min(limit.max_unsent))
    }

    /// Whether data that has arrived at `seq` of a subflow is too much for a connection that may keep
    /// `most`. What others may wait for is taken as long as the reader keeps up: what can be read, and
    /// what fills a hole of its subflow, behind which that may be. Everything else is while all that is
    /// here, with what it lies in, is below twice as much.
    pub(crate) fn exceeds(
        &self,
        data: &DataLevel,
        most: u64,
        index: usize,
        seq: Ssn,
        range: DataRange,
    ) -> bool {
        let rx = &self.subflows[index].rx;
        let next = seq <= rx.nxt() && (range.start <= data.recv.nxt() || rx.has_hole());
        let full = self.received(data).taken() >= most.saturating_mul(2);
        data.recv.is_far(range, most) || full && (!next || data.recv.readable() > 0)
    }

    /// A timeout expired too soon: what the subflow has in flight need not go by another.
    pub(crate) fn withdraw_reinjections(&mut self, data: &mut DataLevel, index: usize) {
        self.subflows[index].reset_black_hole();
        let subflow = &self.subflows[index];
        for sent in subflow.tx.iter().filter(|sent| !sent.fin) {
            data.queue.mark_carried(sent.data(), subflow.id);
        }
    }

    /// While F-RTO holds retransmissions back, new data goes out; where there is none to send,
    /// retransmissions go on (RFC 5682 section 3.1 step 2b).
    pub(crate) fn continue_frto(&mut self, data: &DataLevel, index: usize) {
        let subflow = &mut self.subflows[index];
        if subflow.spurious_recovery.holds_retransmissions() {
            let room = data.window.end() > data.queue.nxt();
            if data.queue.unsent() == 0 || !room {
                subflow.spurious_recovery.give_up_frto();
            }
        }
    }

    /// The range of data that the payload carries, if it is told.
    pub(crate) fn mapped(
        &self,
        data: &DataLevel,
        index: usize,
        segment: &Segment,
        seq: Ssn,
    ) -> Option<Dsn> {
        match data.agreed.mode {
            _ if data.receives_plain() => dsn_in_step(seq),
            Mode::Offered => None,
            Mode::Multipath | Mode::Plain => {
                if let Some(Mptcp::Capable(capable)) = segment.options.mptcp.as_deref()
                    && capable.data_len.is_some()
                    && !self.subflows[index].shake.join
                {
                    return dsn_in_step(seq);
                }
                let range = SubflowRange::with_len(seq, u64::from(segment.payload.len()));
                let mapped = match &segment.options.dss {
                    Some(Dss { mapping: Some(map), data_fin, .. }) => {
                        data.read_mapping(map, *data_fin, seq)?
                    }
                    // A middlebox has cut it from the segment that told the mapping.
                    _ => self.subflows[index].mapping_of(range)?,
                };
                if !mapped.seq.covers(range) {
                    return None;
                }
                mapped.dsn.checked_add(seq.checked_sub(mapped.seq.start)?)
            }
        }
    }

    /// Notes a segment for a buffer that is counted in memory.
    #[inline(always)]
    pub(crate) fn note_memory(
        &mut self,
        data: &mut DataLevel,
        now: Time,
        index: usize,
        segment: &Segment,
    ) {
        let Some(memory) = data.recv.memory() else { return };
        let subflow = &mut self.subflows[index];
        let echo = segment.options.timestamps.map_or(0, |stamps| stamps.echo);
        let age = subflow.clock.at(now).wrapping_sub(echo);
        let len = u64::from(segment.payload.len());
        if memory.on_segment(subflow.id, len, echo, Span::from_millis(u64::from(age))) {
            subflow.rx.acknowledge_soon();
        }
    }

    /// Notes when the last timer of a subflow expires, before data is handed out. Linux sends data again,
    /// on a subflow that is idle, after as long without a DATA_ACK. A subflow has one timer for its tail
    /// probe, its reordering and its timeout (`mptcp_timeout_from_subflow`, `icsk_pending`); one without
    /// progress does not count.
    pub(crate) fn note_data_timeout(&mut self, data: &mut DataLevel, now: Time) {
        let live = |it: &&Subflow| it.state.sends_data() && it.status.joined;
        let mut longest = Span::ZERO;
        for subflow in self.subflows.iter().filter(live) {
            if data.queue.stands_still(subflow.id) {
                continue;
            }
            let timers = [Timer::Tail, Timer::Reorder, Timer::Rto];
            let at = timers.map(|timer| subflow.timers.at(timer)).into_iter().min();
            let left = at.filter(|at| *at != Time::NEVER).map(|at| at.since(now));
            longest = longest.max(left.unwrap_or_default());
        }
        if let Some(memory) = data.queue.memory() {
            memory.note_timeout(longest);
        }
    }

    /// The longest timeout of a live subflow: until then the data may yet be acknowledged.
    pub(crate) fn longest_rto(&self, data: &DataLevel) -> Span {
        if self.spec.config.kernel_rules.data_timer
            && let Some(timeout) = data.queue.data_timeout()
        {
            return timeout;
        }
        let live = self.subflows.iter().filter(|s| s.state.synchronised() && s.status.joined);
        live.map(|s| s.rtt.rto()).max().unwrap_or(CONNECTION_RTO)
    }

    /// The reader has read everything: short segments are acknowledged without delay, if buffers are
    /// counted in memory (`mptcp_cleanup_rbuf` of Linux).
    pub(crate) fn acknowledge_drained(&mut self, data: &mut DataLevel) {
        if data.recv.readable() > 0 || data.recv.out_of_order() > 0 {
            return;
        }
        let Some(memory) = data.recv.memory() else { return };
        for subflow in &mut self.subflows {
            if memory.take_short(subflow.id) {
                subflow.pending.ack |= subflow.timers.is_set(Timer::Ack);
            }
        }
    }

    /// How far the data of both directions has come.
    pub(crate) fn progress(&self, data: &DataLevel) -> Progress {
        let held = self.subflows.iter().filter_map(|it| it.verifier.as_ref()?.held_to());
        Progress {
            acked: data.queue.una(),
            in_step: data.sends_plain(),
            arrived: data.recv.nxt(),
            held: held.fold(data.recv.nxt(), Dsn::max),
        }
    }

    /// From when on the next send finds every congestion window back at its initial value; `None`
    /// while data is under way, [`Time::NEVER`] where idling alone will not bring them there.
    pub(crate) fn initial_window_at(&self, data: &DataLevel) -> Option<Time> {
        let mode = self.spec.config.idle_restart;
        let mut latest = Time::ZERO;
        for subflow in self.subflows.iter().filter(|s| s.status.joined) {
            if !subflow.is_quiet() {
                return None;
            }
            let idle = subflow.cc.idle_until_initial(subflow.rtt.base_rto(), mode);
            latest = latest.max(match idle {
                Some(idle) => subflow.last_send + idle,
                None if subflow.cc.cwnd() == subflow.cc.initial_window() => Time::ZERO,
                None => Time::NEVER,
            });
        }
        data.queue.is_drained().then_some(latest)
    }

    /// What has to be kept of the subflows that wait, each with the acknowledgement that it may still
    /// have to send now.
    pub(crate) fn remnants(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
    ) -> Vec<(Address, Remnant, Option<Transmit>)> {
        let mut remnants = Vec::new();
        for index in 0..self.subflows.len() {
            let Subflow { state, address, clock, .. } = self.subflows[index];
            if state == State::Closed {
                continue;
            }
            let until = self.subflows[index].timers.at(Timer::TimeWait);
            let ack_pending = self.subflows[index].pending.ack;
            let last = self.pure_ack(ctx, data, index);
            let half_closed = state == State::FinWait2;
            let remnant = Remnant::new(&last.segment, clock, half_closed, until);
            remnants.push((address, remnant, Some(last).filter(|_| ack_pending)));
        }
        remnants
    }

    /// A writer waits and the window of a subflow is not full: the subflow gets more send memory
    /// (`tcp_should_expand_sndbuf` of Linux). In congestion avoidance it is never full for long, because
    /// Linux waits for room for two segments (`tcp_tso_should_defer`).
    #[cold]
    pub(crate) fn expand_send_memory(
        &mut self,
        data: &mut DataLevel,
        notices: &mut Notices,
        index: usize,
    ) {
        let subflow = &self.subflows[index];
        let (id, cwnd, mss) = (subflow.id, subflow.cwnd(), u64::from(self.mss));
        let planned = subflow.tx.inflight() + data.queue.assigned(id);
        let avoidance = !subflow.cc.in_slow_start();
        if let Some(memory) = data.queue.memory().filter(|memory| memory.waits())
            && (avoidance || planned + mss <= cwnd)
        {
            memory.expand(id, cwnd / mss.max(1));
            notices.news = true;
        }
    }

    /// A probe goes out on every subflow. Returns those that have left as many unanswered as there are.
    pub(crate) fn ask_for_life(&mut self) -> SubflowSet {
        let mut silent = SubflowSet::EMPTY;
        for subflow in &mut self.subflows {
            // What is under way is a question by itself.
            if !is_reachable(subflow) || !subflow.is_quiet() {
                continue;
            }
            if subflow.pending.unanswered >= Config::KEEP_ALIVES {
                silent.insert(subflow.id);
            } else {
                subflow.pending.unanswered += 1;
                subflow.pending.add(ControlSegment::WindowProbe);
            }
        }
        silent
    }

    /// The subflow at `index` carries MP_FASTCLOSE, and nothing else.
    pub(crate) fn begin_fast_close(&mut self, now: Time, index: usize) -> FastClose {
        let subflow = &mut self.subflows[index];
        subflow.tx.abandon();
        subflow.timers.clear_all();
        subflow.pending = Pending::only(ControlSegment::FastClose);
        // The timeout of data that was never acknowledged may have grown to two minutes. With it, the
        // retransmissions would hold the connection for eight.
        subflow.rtt.clear_backoff();
        subflow.timers.set(Timer::Rto, now + subflow.rtt.rto());
        FastClose { carrier: subflow.id, retries: 0 }
    }

    /// No RST has come within a timeout: MP_FASTCLOSE goes out again.
    pub(crate) fn repeat_fast_close(&mut self, now: Time, index: usize) {
        let subflow = &mut self.subflows[index];
        subflow.rtt.back_off();
        subflow.timers.set(Timer::Rto, now + subflow.rtt.rto());
        subflow.pending.add(ControlSegment::FastClose);
    }

    /// Everything that the subflow at `index` has sent and not seen acknowledged is to be sent again.
    pub(crate) fn reinject_outstanding(&self, data: &mut DataLevel, index: usize) {
        for sent in self.subflows[index].tx.iter() {
            data.queue.queue_reinjection(sent.data());
        }
    }

    /// Ends the subflow at `index` at once, and tells the peer by a RST if `tell_peer` is set. Returns `None`
    /// if it was closed.
    pub(crate) fn close(&mut self, index: usize, tell_peer: bool) -> Option<ClosedSubflow> {
        let subflow = &mut self.subflows[index];
        if subflow.state == State::Closed {
            return None;
        }
        let closed = ClosedSubflow {
            was_joined: subflow.status.joined,
            was_down: subflow.state == State::TimeWait,
        };
        subflow.pending = Pending::default();
        subflow.pending.set(ControlSegment::Rst, tell_peer);
        subflow.step(Step::Aborted);
        subflow.status.joined = false;
        Some(closed)
    }

    /// Room in the send buffer for `len` bytes more, and whether that is too little. Where memory is short,
    /// the send buffer is no larger than `limit` says; if it is counted in memory, the sum of the subflows'
    /// buffers bounds it.
    pub(crate) fn room_to_write(
        &self,
        data: &mut DataLevel,
        limit: Option<MemoryLimit>,
        len: u64,
    ) -> (u64, bool) {
        let occupied = data.queue.occupied();
        if data.queue.counts_memory() {
            let open = self.subflows.iter().filter(|it| it.status.joined && it.state.sends_data());
            let Some(memory) = data.queue.memory() else { return (0, true) };
            let total = memory.total(open.map(|it| it.id));
            let room = memory.room(len, occupied, total);
            return (room, len > room);
        }
        let most = limit.map_or(u64::MAX, |limit| self.sendable(data, limit));
        let room = most.min(self.spec.config.sndbuf).saturating_sub(occupied);
        (len.min(room), len > room)
    }

    /// The reader has taken data: tells the peer of a window that opened well (RFC 9293 section
    /// 3.8.6.2.2).
    pub(crate) fn after_read(&mut self, data: &mut DataLevel, limit: Option<MemoryLimit>) {
        self.acknowledge_drained(data);
        let (told, now) = (data.recv.advertised(), data.window_to_tell(limit));
        let step = (2 * self.mss()).min(self.spec.config.rcvbuf / 2);
        if told < step && now >= told + step {
            for subflow in self.subflows.iter_mut().filter(|s| s.state.synchronised()) {
                subflow.pending.ack = true;
            }
        }
    }

    /// Gives memory back of subflows on which nothing is under way, and nothing was sent since `before`.
    pub(crate) fn give_back(&mut self, before: Time) {
        self.subflows.shrink_to_fit();
        for subflow in &mut self.subflows {
            // What a retransmission was good for is known a timeout after it, if ever.
            if subflow.last_send + subflow.rtt.rto() < before {
                subflow.forget_recovery();
            }
            subflow.timers.give_back();
            subflow.tx.give_back();
            subflow.rx.give_back();
            subflow.host_queue.take_if(|queue| queue.bytes() == 0);
        }
    }

    /// Whether both ends have taken leave on every subflow; TIME-WAIT counts if `gone` says so.
    pub(crate) fn all_gone(&self, gone: impl Fn(State) -> bool) -> bool {
        self.subflows.iter().all(|s| gone(s.state) && !s.pending.has(ControlSegment::Rst))
    }

    /// Whether every subflow is closed or only waits for its peer, and has nothing else to send than an
    /// acknowledgement.
    pub(crate) fn all_wait(&self) -> bool {
        let waits = |s: &Subflow| match s.state {
            State::Closed | State::TimeWait => true,
            State::FinWait2 => s.timers.is_set(Timer::TimeWait),
            _ => false,
        };
        self.subflows.iter().all(|s| waits(s) && !s.pending.urgent())
    }

    /// A timeout of the subflow at `index` whose handshake is complete. Returns whether it is given up.
    pub(crate) fn on_data_timeout(
        &mut self,
        ctx: &mut Context<'_>,
        data: &DataLevel,
        index: usize,
    ) -> bool {
        let (now, frto) = (ctx.now, data.plain());
        let subflow = &self.subflows[index];
        ctx.emit(Event::Timeout { subflow: subflow.id, rto: subflow.rtt.rto() });
        self.with_flows(index, |subflow, flows| subflow.on_timeout(now, flows, frto));
        self.report_window(ctx, index, WindowCause::Timeout);
        self.probe_smaller_size(data, now, index);
        let rtt = &self.subflows[index].rtt;
        match data.closing.done() {
            true => rtt.retransmitted_for() >= FIN_TIME,
            false => rtt.backoff() > DATA_RETRIES,
        }
    }

    /// The third ACK with our HMAC was not answered: it goes out again. Returns whether the subflow is given
    /// up.
    pub(crate) fn repeat_proof(&mut self, now: Time, index: usize) -> bool {
        let subflow = &mut self.subflows[index];
        subflow.rtt.back_off();
        let again = now + subflow.rtt.rto();
        subflow.timers.set(Timer::Rto, again);
        subflow.pending.add(ControlSegment::JoinAck);
        subflow.shake.retries += 1;
        subflow.shake.retries > SYN_RETRIES
    }

    /// A SYN or SYN/ACK was not answered: it goes out again. Returns false if the subflow is given up; `alone`
    /// tells that no other is left.
    pub(crate) fn repeat_syn(&mut self, data: &DataLevel, index: usize, alone: bool) -> bool {
        let rounds = {
            let subflow = &mut self.subflows[index];
            subflow.rtt.back_off();
            subflow.shake.retries = subflow.shake.retries.saturating_add(1);
            if subflow.shake.join && data.closing.done() && !alone {
                // Nothing is left that it could be used for.
                return false;
            }
            self.rounds_dialled()
        };
        let subflow = &mut self.subflows[index];
        let dials = subflow.shake.initiator;
        let patient = subflow.shake.join && dials && self.spec.config.probe.is_some();
        let most = if dials { SYN_RETRIES } else { SYN_ACK_RETRIES };
        if subflow.shake.retries > most && !patient || rounds > usize::from(SYN_RETRIES) {
            return false;
        }
        subflow.pending.add(ControlSegment::Syn);
        true
    }

    /// Whether the subflow at `index` is the first one of a client that still dials. A join may have taken the
    /// place of a first subflow that is gone.
    pub(crate) fn is_dialling(&self, index: usize) -> bool {
        let subflow = &self.subflows[index];
        index == 0 && !subflow.shake.join && subflow.state == State::SynSent && self.client
    }

    /// Whether a subflow has nothing at all to send; notes the progress of the others
    /// (`__mptcp_retrans` of Linux).
    pub(crate) fn any_idle(&self, data: &mut DataLevel) -> bool {
        let mut idle = false;
        for subflow in self.subflows.iter().filter(|it| it.state.sends_data() && it.status.joined) {
            if subflow.tx.is_empty() && data.queue.assigned(subflow.id) == 0 {
                idle = true;
            } else if let Some(memory) = data.queue.memory() {
                memory.note_progress(subflow.id, subflow.rtt.sampled_at());
            }
        }
        idle
    }

    /// The peer's data has ended and all of it is here.
    pub(crate) fn on_peer_finished(
        &mut self,
        data: &mut DataLevel,
        notices: &mut Notices,
        now: Time,
    ) {
        if data.on_peer_finished(notices) {
            self.arm_fin_wait(data, now);
        }
    }

    /// State and counters, as far as subflows and data tell.
    pub(crate) fn stats(&self, data: &DataLevel) -> ConnectionStats {
        ConnectionStats {
            state: ConnectionState::Connecting,
            multipath: data.speaks_multipath(),
            fallback: data.fallback_cause(),
            readable: data.readable(),
            unacked: data.unacked(),
            segment_payload: self.mss(),
            subflows_ready: self.subflows_ready(data),
            initial_window_at: self.initial_window_at(data),
            waits: false,
            timed_out: data.timed_out(),
            over: false,
            subflows: self.subflow_stats(),
        }
    }

    /// The timer of a subflow that concerns it alone has expired.
    pub(crate) fn on_timer(
        &mut self,
        ctx: &mut Context<'_>,
        data: &DataLevel,
        index: usize,
        timer: Timer,
    ) {
        let subflow = &mut self.subflows[index];
        match timer {
            Timer::Tail => subflow.pending.add(ControlSegment::TailProbe),
            Timer::Ack => subflow.pending.ack = true,
            Timer::Reorder => self.on_reorder(ctx, index),
            Timer::Probe => self.on_probe_timer(ctx, data, index),
            Timer::Pace => {
                if let Some(pacer) = &mut subflow.pacer {
                    pacer.release();
                }
            }
            Timer::Rto | Timer::TimeWait | Timer::HostQueue => {}
        }
    }

    /// The peer's window is closed: asks for it, for the time `repeats` again.
    pub(crate) fn probe_window(&mut self, repeats: u32) {
        if let Some(index) = self.signal_path(repeats) {
            self.subflows[index].pending.add(ControlSegment::WindowProbe);
        }
    }

    /// Our FIN on the subflow at `index` was acknowledged.
    #[cold]
    pub(crate) fn on_fin_acked(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        timers: &mut ConnectionTimers,
        notices: &mut Notices,
        index: usize,
    ) {
        self.on_leave(ctx, notices, index, Step::FinAcked);
        if data.sends_plain() {
            data.on_fin_acked(notices);
        }
        self.arm_fin_wait(data, ctx.now);
        // Our FIN came after the DATA_FINs, beside our DATA_ACK.
        data.closing.settle();
        timers.arm_release(ctx, &self.spec.config, data);
    }

    /// The peer's FIN at `seq` of the subflow at `index`. For plain TCP its data ends with it.
    #[cold]
    pub(crate) fn on_fin(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        notices: &mut Notices,
        index: usize,
        seq: Ssn,
    ) {
        let subflow = &mut self.subflows[index];
        subflow.pending.ack = true;
        if !subflow.rx.take_fin(seq) {
            return;
        }
        self.on_leave(ctx, notices, index, Step::FinReceived);
        if data.receives_plain()
            && let Some(end) = dsn_in_step(seq)
        {
            data.recv.set_fin(end);
            self.on_peer_finished(data, notices, ctx.now);
        }
    }

    /// Data was taken in on the subflow at `index`, and it may be more than `before` that can be read.
    #[inline(always)]
    pub(crate) fn after_data(
        &mut self,
        data: &mut DataLevel,
        notices: &mut Notices,
        now: Time,
        (index, before): (usize, Dsn),
    ) {
        if data.recv.nxt() > before {
            notices.news = true;
            self.retune(data, now);
            if data.recv.finished() {
                // The last bytes before a DATA_FIN that came ahead of them.
                self.on_peer_finished(data, notices, now);
                self.subflows[index].pending.ack = true;
            }
        }
    }

    /// What a reset on the subflow at `index` means; `alone` tells that no other is left.
    pub(crate) fn weigh_reset(
        &mut self,
        data: &DataLevel,
        index: usize,
        segment: &Segment,
        alone: bool,
    ) -> ResetMeans {
        let subflow = &self.subflows[index];
        let next = subflow.shake.peer_wire(subflow.rx.nxt());
        let acceptable = match subflow.state {
            State::SynSent => {
                segment.flags.has(Flags::ACK) && segment.ack == subflow.shake.iss.wrapping_add(1)
            }
            // RFC 5961 section 3.2: only the exact sequence number resets.
            _ => segment.seq == next,
        };
        let option = segment.options.mptcp.as_deref();
        if !acceptable {
            // A challenge for what lies in the window; the rest is dropped in silence.
            let ahead = u64::from(segment.seq.wrapping_sub(next));
            let inside = subflow.state.synchronised() && ahead < data.recv.window();
            return if inside { ResetMeans::Challenge } else { ResetMeans::Nothing };
        }
        if self.never_known_to_peer(data, index) {
            return ResetMeans::Redial;
        }
        if data.is_fast_close(option) {
            return ResetMeans::FastClose;
        }
        if alone && self.is_forgotten(index, segment) {
            return ResetMeans::Forgotten;
        }
        let meddled = Mptcp::Reset { reason: ResetReason::Middlebox, transient: false };
        if option.is_some_and(|it| it.all().contains(&meddled)) {
            self.joins.bar(self.subflows[index].address.path());
        }
        ResetMeans::Gone
    }
}
