//! A segment from the peer: what kind it is, and who takes in which part of it.

use super::{Connection, Context, Mode};
use crate::tcp::state::State;
use crate::tcp::timer::Timer;
use plait_wire::{Flags, Mptcp, ResetReason, Segment};

impl Connection {
    /// Takes in a segment for the subflow at `index`.
    #[inline(always)]
    pub(crate) fn handle(&mut self, ctx: &mut Context<'_>, index: usize, segment: &Segment) {
        if !self.try_fast_path(ctx, index, segment) {
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
            _ => segment.seq == subflow.shake.peer_wire(subflow.rx.nxt()),
        };
        if acceptable && self.never_known_to_peer(index) {
            self.redial_here(ctx, index);
        } else if acceptable && self.is_fast_close(segment.options.mptcp.as_deref()) {
            self.kill_subflow(ctx, index, false);
            self.on_fast_close(ctx);
        } else if acceptable && self.is_forgotten(index, segment) {
            self.on_no_subflow_timeout(ctx);
        } else if acceptable {
            let meddled = Mptcp::Reset { reason: ResetReason::Middlebox, transient: false };
            if segment.options.mptcp.as_deref().is_some_and(|it| it.all().contains(&meddled)) {
                self.joins.bar(self.subflows[index].address.path());
            }
            self.kill_subflow(ctx, index, false);
        } else if subflow.state.synchronised() {
            // A challenge for what lies in the window; the rest is dropped in silence.
            let ahead = segment.seq.wrapping_sub(subflow.shake.peer_wire(subflow.rx.nxt()));
            let inside = u64::from(ahead) < self.recv.window();
            if inside {
                self.challenge(ctx, index);
            }
        }
    }

    fn on_synchronised(&mut self, ctx: &mut Context<'_>, index: usize, segment: &Segment) {
        let subflow = &mut self.subflows[index];
        let seq = subflow.shake.peer_seq(segment.seq, subflow.rx.nxt());
        let ack = subflow.shake.own_seq(segment.ack, subflow.tx.una());
        if !self.is_acceptable(ctx, index, segment, seq, ack) {
            return;
        }
        let subflow = &mut self.subflows[index];
        let revived = core::mem::take(&mut subflow.status.pf);
        if core::mem::take(&mut subflow.pending.unanswered) > 0 {
            self.on_sign_of_life(ctx.now);
        }
        let subflow = &mut self.subflows[index];
        let proven =
            !subflow.status.joined && subflow.shake.initiator && subflow.state.synchronised();
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
            Mptcp::JoinAck(_) => subflow.pending.ack |= !subflow.shake.initiator,
            Mptcp::Prio { backup } if subflow.status.peer_backup != *backup => {
                subflow.status.peer_backup = *backup;
                self.notify_subflows(ctx);
            }
            Mptcp::RemoveAddr(ids) => self.on_remove_addr(ctx, ids),
            Mptcp::AddAddr(add) => self.on_add_addr(ctx, index, add),
            Mptcp::Fail(dsn) => self.on_mp_fail(ctx, index, self.keys.own.read(*dsn)),
            Mptcp::FastClose(_) if self.is_fast_close(Some(option)) => self.on_fast_close(ctx),
            Mptcp::Several(options) => {
                options.iter().for_each(|option| self.on_mptcp_option(ctx, index, option));
            }
            _ => {}
        }
    }
}
