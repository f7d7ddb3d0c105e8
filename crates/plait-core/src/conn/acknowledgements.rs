//! What a segment acknowledges: sequence numbers of its subflow, and data of the connection.

use super::fallback::dsn_in_step;
use super::{Connection, Context, Mode};
use crate::event::{Event, WindowCause};
use crate::planted::{Planted, planted};
use crate::tcp::ack_processing::{AckEffects, AckInfo};
use crate::tcp::state::Step;
use plait_base::{Dsn, Ssn, SubflowRange};
use plait_sched::Notice;
use plait_wire::Segment;

impl Connection {
    /// Takes in what a segment acknowledges: sequence numbers below `ack`, and data below `edge`
    /// where it tells of any.
    #[inline(always)]
    pub(super) fn on_acknowledgements(
        &mut self,
        ctx: &mut Context<'_>,
        index: usize,
        segment: &Segment,
        ack: Ssn,
        edge: Option<Dsn>,
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
    fn on_subflow_ack(&mut self, ctx: &mut Context<'_>, index: usize, segment: &Segment, ack: Ssn) {
        let subflow = &mut self.subflows[index];
        if self.spec.config.subflow_windows {
            let window = u64::from(segment.window) << subflow.shake.peer_scale;
            let held = subflow.exceeds_window(u64::from(self.mss));
            subflow.status.edge = subflow.status.edge.max(ack.saturating_add(window));
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
            return self.process_ack(ctx, index, &AckInfo { ack, blocks: &[], dsack: None, echo });
        }
        let mut ranges = [SubflowRange::default(); 4];
        let shake = &subflow.shake;
        for (range, (left, right)) in ranges.iter_mut().zip(blocks) {
            *range = SubflowRange::new(shake.own_seq(*left, una), shake.own_seq(*right, una));
        }
        let ranges = &ranges[..blocks.len()];
        // RFC 2883 section 4: a first block below the acknowledgement, or inside the second.
        let dsack = ranges.first().copied().filter(|first| {
            first.end <= ack || ranges.get(1).is_some_and(|second| second.covers(*first))
        });
        self.process_ack(ctx, index, &AckInfo { ack: ack.max(una), blocks: ranges, dsack, echo });
    }

    #[inline(never)]
    fn process_ack(&mut self, ctx: &mut Context<'_>, index: usize, info: &AckInfo<'_>) {
        let (mss, mut effects) = (self.mss(), AckEffects::default());
        self.with_flows(index, |subflow, flows| {
            subflow.on_ack(ctx.now, info, flows, mss, &mut effects);
        });
        self.after_ack(ctx, index, &effects);
    }

    fn after_ack(&mut self, ctx: &mut Context<'_>, index: usize, effects: &AckEffects) {
        let subflow = &mut self.subflows[index];
        let (id, cwnd) = (subflow.id, subflow.cwnd());
        ctx.log.emit(Event::Acked {
            subflow: id,
            bytes: effects.delivered,
            rtt: effects.rtt,
            srtt: subflow.rtt.srtt().unwrap_or_default(),
            cwnd,
            inflight: subflow.tx.inflight(),
        });
        let cause = match effects {
            AckEffects { undone: Some(_), entered_recovery: false, .. } => {
                Some(WindowCause::Undone)
            }
            AckEffects { entered_recovery: true, .. } | AckEffects { tail_repaired: true, .. } => {
                Some(WindowCause::Loss)
            }
            AckEffects { left_recovery: true, .. } => Some(WindowCause::Recovered),
            _ => None,
        };
        if let Some(cause) = cause {
            let ssthresh = subflow.cc.ssthresh();
            ctx.log.emit(Event::Window { subflow: id, cwnd, ssthresh, cause });
            if effects.tail_repaired {
                let cause = WindowCause::Recovered;
                ctx.log.emit(Event::Window { subflow: id, cwnd, ssthresh, cause });
            }
        }
        if effects.undone == Some(true) {
            self.subflows[index].reset_black_hole();
            self.withdraw_reinjections(index);
        }
        if effects.longest > 0 {
            self.on_size_delivered(ctx, index, effects.longest);
        }
        self.continue_frto(index);
        let subflow = &mut self.subflows[index];
        if let Some(mappings) = &mut subflow.mappings {
            mappings.on_acked(subflow.tx.una());
        }
        // Somebody may wait for the connection to fall quiet.
        self.news |= subflow.is_quiet() && self.queue.is_drained();
        if effects.fin_acked {
            self.changed = true;
            self.on_leave(ctx, index, Step::FinAcked);
            if self.sends_plain() {
                self.on_fin_acked(ctx.now);
            }
            self.arm_fin_wait(ctx.now);
            // Our FIN came after the DATA_FINs, beside our DATA_ACK.
            self.closing.settle();
            self.arm_release(ctx);
            self.scheduling.wake();
        }
        self.scheduling.on_acked(id);
        if self.queue.counts_memory() {
            self.expand_send_memory(index);
        }
    }

    /// A writer waits and the window of a subflow is not full: the subflow gets more send memory
    /// (`tcp_should_expand_sndbuf` of Linux). In congestion avoidance it is never full for long, because
    /// Linux waits for room for two segments (`tcp_tso_should_defer`).
    #[cold]
    fn expand_send_memory(&mut self, index: usize) {
        let subflow = &self.subflows[index];
        let (id, cwnd, mss) = (subflow.id, subflow.cwnd(), u64::from(self.mss));
        let planned = subflow.tx.inflight() + self.queue.assigned(id);
        let avoidance = !subflow.cc.in_slow_start();
        if let Some(memory) = self.queue.memory().filter(|memory| memory.waits())
            && (avoidance || planned + mss <= cwnd)
        {
            memory.expand(id, cwnd / mss.max(1));
            self.news = true;
        }
    }

    /// The DSN up to which a segment acknowledges data, if it does.
    pub(super) fn acknowledged_data(&self, segment: &Segment, ack: Ssn) -> Option<Dsn> {
        match self.mode {
            // Plain TCP: sequence numbers and DSNs run in step; the FIN has no DSN.
            // An acknowledgement from before our first byte says nothing.
            _ if self.sends_plain() => Some(dsn_in_step(ack)?.min(self.queue.nxt())),
            Mode::Multipath | Mode::Plain => {
                let data_ack = segment.options.dss.as_ref()?.data_ack?;
                Some(if data_ack.long {
                    self.keys.own.read(data_ack.value)
                } else {
                    self.keys.own.read_low(data_ack.value as u32, self.queue.una())
                })
            }
            Mode::Offered => None,
        }
    }

    /// Acknowledgement of the data below `edge`, and the window beside it.
    #[inline(always)]
    fn on_data_ack(&mut self, ctx: &mut Context<'_>, index: usize, segment: &Segment, edge: Dsn) {
        let sent = self.data_fin_edge().unwrap_or(self.queue.nxt());
        if edge > sent {
            return;
        }
        if self.data_fin_edge() == Some(edge) && !self.sends_plain() {
            self.on_fin_acked(ctx.now);
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
}
