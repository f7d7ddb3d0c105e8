//! The Multipath TCP connection: a composition root. It owns the parts and routes between them.
//! Only this module, `ingress`, `fast_path`, `egress`, `timeouts` and `invariants` have `impl
//! Connection`. They carry out decisions of the parts (`data`, `paths`, `sched`).

pub(crate) mod audit;
mod egress;
mod fast_path;
mod ingress;
mod invariants;
mod rounds;
mod timeouts;

use crate::context::Context;
use crate::data::fastclose::Cause;
use crate::data::level::DataLevel;
use crate::data::receiving::Reading;
use crate::error::Error;
use crate::event::{Event, FallbackCause};
use crate::notices::Notices;
use crate::parts::Parts;
use crate::paths::fallback::{Fallback, FallbackStep};
use crate::paths::handshake::Opening;
use crate::paths::remnant::WaitingSubflow;
use crate::paths::{DialCause, Paths};
use crate::sched::Scheduling;
use crate::segments::Transmit;
use crate::spec::{ConnectionSpec, ConnectionState};
use crate::stats::ConnectionStats;
use crate::tcp::address::Address;
use crate::tcp::state::State;
use crate::tcp::subflow::Subflow;
use crate::timers::{ConnectionTimer, ConnectionTimers};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;
use plait_base::{PathId, SubflowId, SubflowSet, Time};
use plait_sched::Scheduler;
use plait_wire::{Key, Mptcp, ResetReason, Segment, WireSeq};
use rounds::Rounds;

pub(crate) struct Connection {
    data: DataLevel,
    paths: Paths,
    scheduling: Scheduling,
    timers: ConnectionTimers,
    /// Kinds of segments that the next round of sending looks for.
    rounds: Rounds,
    notices: Notices,
}

impl Connection {
    /// Returns its data level.
    pub(crate) const fn data(&self) -> &DataLevel {
        &self.data
    }

    /// Returns its subflows and addresses.
    pub(crate) const fn paths(&self) -> &Paths {
        &self.paths
    }

    /// Returns the subflows, and the parts that change with them.
    fn split<'a>(&'a mut self, ctx: &'a mut Context<'_>) -> (&'a mut Paths, Parts<'a>) {
        let Connection { data, paths, timers, notices, .. } = self;
        (paths, Parts { ctx: ctx.again(), data, timers, notices })
    }

    /// Replaces the scheduler. `None` creates a new one by the connection's factory.
    pub(crate) fn set_scheduler(&mut self, scheduler: Option<Box<dyn Scheduler>>) {
        let fresh = || (self.paths.spec.scheduler)();
        self.scheduling.replace(scheduler.unwrap_or_else(fresh));
    }

    /// Resets every window to its initial value; thresholds stay.
    #[cfg(feature = "laboratory")]
    pub(crate) fn reset_windows(&mut self, ctx: &mut Context<'_>) {
        self.paths.reset_windows(ctx);
        self.scheduling.on_subflows_changed();
    }

    /// Returns the option of the reset if a join at `address` must be refused.
    pub(crate) fn refuses_join(&mut self, now: Time, address: Address) -> Option<Mptcp> {
        self.paths.refuses_join(now, address)
    }

    /// Handles a SYN for a subflow in TIME-WAIT ([`Paths::reuse_time_wait`]).
    pub(crate) fn reuse_time_wait(&mut self, address: Address, syn: &Segment) -> Option<WireSeq> {
        self.paths.reuse_time_wait(&mut self.notices, address, syn)
    }

    /// Notes that a segment of `len` payload bytes leaves the host at `departs`.
    pub(crate) fn on_departure(&mut self, now: Time, id: SubflowId, len: u32, departs: Time) {
        self.paths.on_departure(now, id, len, departs);
    }

    /// Sets the segment size from the handshake of the subflow `id`.
    fn size_segments(&mut self, id: SubflowId) {
        self.paths.size_segments(&self.data, id);
        self.scheduling.on_subflows_changed();
    }

    /// Returns the remnants of the waiting subflows ([`Paths::remnants`]).
    pub(crate) fn remnants(&mut self, ctx: &mut Context<'_>) -> Vec<WaitingSubflow> {
        self.paths.remnants(ctx, &mut self.data)
    }

    /// Returns its news for the user and its changes for the endpoint.
    pub(crate) const fn notices(&mut self) -> &mut Notices {
        &mut self.notices
    }

    /// Notes that the endpoint found MP_CAPABLE to be dropped.
    pub(crate) fn remember_silence(&mut self, ctx: &mut Context<'_>) {
        self.data.note_fallback(ctx, &mut self.notices, FallbackCause::Silence);
    }

    /// Returns whether MP_CAPABLE was found to be dropped, if that was detected since the last
    /// call.
    pub(crate) fn take_verdict(&mut self) -> Option<bool> {
        self.data.take_verdict()
    }

    /// Carries out a decision about a fallback on the subflow `id`.
    fn apply_fallback(&mut self, ctx: &mut Context<'_>, id: SubflowId, decision: Fallback) {
        match decision {
            Fallback::Stay => {}
            Fallback::Reset(cause) => self.reset_subflow(ctx, id, cause),
            Fallback::Step(step) => self.fall_back(ctx, id, step),
        }
    }

    /// Returns the SYN/ACK of a connection that has just been opened, and notes it as sent.
    pub(crate) fn take_syn_ack(&mut self, now: Time) -> Transmit {
        self.paths.take_syn_ack(&mut self.data, now)
    }

    /// Closes the subflows of a set, in their order.
    fn kill_subflows(&mut self, ctx: &mut Context<'_>, ending: SubflowSet, tell_peer: bool) {
        for subflow in ending.iter() {
            self.kill_subflow(ctx, subflow, tell_peer);
        }
    }

    /// Closes a subflow. Other subflows get its data.
    fn kill_subflow(&mut self, ctx: &mut Context<'_>, id: SubflowId, tell_peer: bool) {
        let (paths, mut parts) = self.split(ctx);
        let Some(closed) = paths.close(&mut parts, id, tell_peer) else { return };
        self.reinject_outstanding(id);
        self.paths.abandon(&mut self.data, id);
        if closed.was_joined {
            if !closed.was_down {
                ctx.emit(Event::SubflowDown { subflow: id });
            }
            self.notify_subflows(ctx, None);
        }
        let (paths, mut parts) = self.split(ctx);
        paths.on_gone(&mut parts);
    }

    /// Queues the unacknowledged data of a subflow for reinjection, as far as the scheduler needs it.
    fn reinject_outstanding(&mut self, id: SubflowId) {
        if !self.data.falls_back() {
            let carriers = self.scheduling.trusted_with_copies(&self.paths, id);
            let outstanding = self.paths.subflow(id).sender().tx.iter();
            self.data.reinject(outstanding.map(|sent| sent.data()), carriers);
            self.scheduling.wake();
        }
    }

    /// Resets a subflow, with the reason in the RST.
    fn reset_subflow(&mut self, ctx: &mut Context<'_>, id: SubflowId, cause: Cause) {
        if self.paths.subflow(id).state() != State::Closed {
            self.kill_subflow(ctx, id, true);
            self.paths.set_reset_cause(id, cause);
        }
    }

    /// Resets the subflows of a set, in their order.
    fn reset_subflows(&mut self, ctx: &mut Context<'_>, set: SubflowSet, reason: ResetReason) {
        for subflow in set.iter() {
            self.reset_subflow(ctx, subflow, Cause::Reason(reason));
        }
    }

    /// Notes that the subflow `id` may carry data from now on.
    fn subflow_up(&mut self, ctx: &mut Context<'_>, id: SubflowId) {
        if self.timers.awaits_subflow() {
            // Outstanding data is sent there.
            self.timers.clear(ConnectionTimer::NoSubflow);
            self.data.signal_fin_again();
        }
        let Connection { data, paths, timers, .. } = self;
        timers.arm_keep_alive(&paths.spec.config, paths.subflows().heard(), ctx.now);
        paths.on_up(ctx, data, id);
        // Data of silent subflows can be sent here now.
        for other in self.paths.subflows().ids() {
            if other != id && self.paths.subflow(other).status().pf() {
                self.reinject_outstanding(other);
            }
        }
        self.notify_subflows(ctx, Some(id));
        self.notices.tell_user();
    }

    /// Handles a change of the set of live subflows, and perhaps a new subflow. Data was assigned
    /// for the old set.
    fn notify_subflows(&mut self, ctx: &mut Context<'_>, began: Option<SubflowId>) {
        let Connection { data, paths, scheduling, .. } = self;
        paths.unassign_stranded(data);
        scheduling.on_set_changed(ctx, data, paths, began);
    }

    /// Starts the joins that are due.
    fn start_joins(&mut self, ctx: &mut Context<'_>) {
        let alone = self.timers.awaits_subflow();
        let (paths, mut parts) = self.split(ctx);
        paths.start_joins(&mut parts, alone);
    }

    /// Sets whether the subflows of `path` are backups ([`Paths::set_backup`]).
    pub(crate) fn set_backup(
        &mut self,
        ctx: &mut Context<'_>,
        path: PathId,
        backup: bool,
    ) -> Result<(), Error> {
        if self.paths.set_backup(&self.data, path, backup)? {
            self.notify_subflows(ctx, None);
        }
        Ok(())
    }

    /// Handles the loss of this client's address on `path`. Its data is reinjected, and REMOVE_ADDR
    /// is sent on another subflow. Nothing is sent on the path itself.
    pub(crate) fn lose_address(&mut self, ctx: &mut Context<'_>, path: PathId) {
        if !self.paths.forget_path(&self.data, path) {
            return;
        }
        let dialling = self.paths.subflows().dials_on(&self.data, path);
        let (paths, mut parts) = self.split(ctx);
        let moved = dialling && paths.dial_elsewhere(&mut parts, DialCause::AddressLost);
        paths.drop_waiting_dials(parts.notices, |waiting| waiting == path);
        if moved {
            return;
        }
        let ending = self.paths.stranded(path, dialling);
        self.kill_subflows(ctx, ending, false);
        self.paths.tell_lost(&self.data, path);
        if self.timers.awaits_subflow() {
            self.start_joins(ctx);
        }
    }

    /// Handles the return of the client's address on `path`: its subflows are opened again.
    pub(crate) fn regain_address(&mut self, ctx: &mut Context<'_>, path: PathId) {
        if self.paths.regain(&self.data, path) {
            self.start_joins(ctx);
        }
    }

    /// Ends this end's data.
    pub(crate) fn finish(&mut self, now: Time) {
        self.data.on_finish();
        self.timers.arm_user_timeout(&self.paths.spec.config, &self.data, now);
        self.scheduling.on_finish();
    }

    /// Releases the connection: this end finishes, and received data is discarded. Returns false if
    /// it was already released.
    pub(crate) fn release(&mut self, ctx: &mut Context<'_>) -> bool {
        let first = !self.data.is_released();
        if first {
            self.data.on_release();
            self.notices.tell_endpoint();
            self.finish(ctx.now);
            self.timers.on_released(ctx, &self.paths.spec.config, &self.data);
        }
        first
    }

    /// Discards received data that the application will not read.
    pub(crate) fn discard(&mut self) {
        if self.data.reassembly().readable() > 0 {
            self.read(None, Reading::Skip(u64::MAX));
            self.rounds.set_quiet(false);
        }
        self.notices.forget_news();
    }

    /// Ends the connection at once: no more is sent, delivered or acknowledged.
    pub(crate) fn abort(&mut self, ctx: &mut Context<'_>) {
        if self.paths.is_fast_closing() {
            return;
        }
        self.data.on_abort();
        self.timers = ConnectionTimers::new();
        let known = self.data.is_key_known(self.paths.client);
        let chosen = self.paths.subflows().best_for_signal().filter(|_| known);
        for id in self.paths.subflows().ids().filter(|id| Some(*id) != chosen) {
            let cause = if known { Cause::Reason(ResetReason::Unspecified) } else { Cause::Close };
            self.reset_subflow(ctx, id, cause);
        }
        if let Some(id) = chosen {
            self.paths.begin_fast_close(ctx.now, id);
        }
    }

    /// Ends the connection without waiting for the peer to confirm it: every subflow is reset.
    pub(crate) fn cut_off(&mut self, ctx: &mut Context<'_>) {
        self.data.on_abort();
        self.paths.forget_fast_close();
        self.timers = ConnectionTimers::new();
        for id in self.paths.subflows().ids() {
            if self.paths.subflow(id).state() == State::TimeWait {
                self.kill_subflow(ctx, id, false);
            }
            self.reset_subflow(ctx, id, Cause::Close);
        }
    }

    /// Returns true if the connection is released and has only subflows in TIME-WAIT or FIN-WAIT-2.
    /// It must have no pending segment other than an acknowledgement.
    pub(crate) fn only_waits(&self) -> bool {
        self.data.is_released()
            && self.data.closing().settled()
            && !self.data.closing().failed()
            && !self.timers.awaits_subflow()
            && self.paths.subflows().all_wait()
    }

    /// Returns true if both ends have closed every subflow; TIME-WAIT counts as closed.
    pub(crate) fn is_over(&self) -> bool {
        // A last DATA_ACK may have to be repeated; that is like TIME-WAIT.
        let waits = self.timers.awaits_subflow() && !self.data.closing().done();
        self.paths.subflows().all_gone(|state| matches!(state, State::Closed | State::TimeWait))
            && !waits
    }

    /// Returns true if every subflow is closed, TIME-WAIT included, and the connection does not
    /// wait for another one.
    pub(crate) fn is_gone(&self) -> bool {
        !self.timers.awaits_subflow()
            && self.paths.subflows().all_gone(|state| state == State::Closed)
    }

    /// Frees memory if nothing is in flight and nothing was sent since `before`: empty buffers, and
    /// views that are rebuilt on demand. The behaviour does not change.
    pub(crate) fn shrink_idle(&mut self, before: Time) {
        if self.data.queue().is_drained() && self.paths.subflows().rest_since(before) {
            self.data.give_back();
            self.scheduling.give_back();
            self.timers.give_back();
            self.paths.give_back(before);
        }
    }

    /// Returns a connection with its first subflow.
    pub(crate) fn open(
        spec: Arc<ConnectionSpec>,
        key: Key,
        opening: &Opening<'_>,
        ctx: &mut Context<'_>,
    ) -> Connection {
        let mut conn = Connection {
            data: DataLevel::new(&spec.config, key),
            scheduling: Scheduling::new((spec.scheduler)(), ctx.now, ctx.prices(&spec.paths)),
            paths: Paths::new(spec, matches!(opening, Opening::Active { .. })),
            timers: ConnectionTimers::new(),
            rounds: Rounds::default(),
            notices: Notices::new(),
        };
        let (paths, mut parts) = conn.split(ctx);
        paths.open(&mut parts, opening);
        conn.start_joins(ctx);
        conn
    }

    #[cold]
    fn fall_back(&mut self, ctx: &mut Context<'_>, id: SubflowId, step: FallbackStep) {
        self.data.note_fallback(ctx, &mut self.notices, step.cause);
        self.paths.forget_others();
        self.timers.clear(ConnectionTimer::Address);
        // No other subflow may exist (R54).
        for other in self.paths.subflows().ids().filter(|other| *other != id) {
            self.reset_subflow(ctx, other, Cause::Reason(ResetReason::Unspecified));
        }
        let (paths, mut parts) = self.split(ctx);
        let effects = paths.fall_back(&mut parts, id, step);
        if effects.resized {
            self.scheduling.on_subflows_changed();
        }
        if effects.sends {
            self.scheduling.wake();
        }
    }

    /// Returns the state and counters.
    pub(crate) fn stats(&self) -> ConnectionStats {
        let flags = [self.timers.awaits_subflow(), self.is_over()];
        self.paths.stats(&self.data, self.state(), flags)
    }

    /// Returns the state as the user sees it.
    pub(crate) fn state(&self) -> ConnectionState {
        let has_first = |s: &Subflow| s.state().synchronised() && !s.origin().join;
        self.data.state(|| self.paths.subflows().iter().any(has_first))
    }

    /// Announces an address of this end to the client ([`Paths::announce`]).
    pub(crate) fn announce(
        &mut self,
        ctx: &mut Context<'_>,
        address: IpAddr,
        port: Option<u16>,
    ) -> Result<(), Error> {
        let (paths, mut parts) = self.split(ctx);
        paths.announce(&mut parts, address, port)
    }

    /// Withdraws an announced address of this server ([`Paths::withdraw`]).
    pub(crate) fn withdraw(&mut self, ctx: &mut Context<'_>, address: IpAddr) -> Result<(), Error> {
        let ending = self.paths.withdraw(ctx, address)?;
        self.kill_subflows(ctx, ending, false);
        self.paths.set_address_timer(&mut self.timers);
        Ok(())
    }
}
