//! Values that a subflow takes from the path memory, and leaves there.

use crate::context::Context;
use crate::path_memory::{Learner, PathSample};
use crate::tcp::sender::Sender;
use crate::tcp::state::State;
use crate::tcp::subflow::Subflow;
use plait_sched::{CaState, Notice};

/// A subflow and the entry of its path in the path memory.
pub(crate) struct Remembered<'a>(pub(crate) &'a Subflow);

impl Remembered<'_> {
    /// Gives `subflow` the remembered values of its path when data may be sent, as `tcp_init_metrics` of
    /// Linux does: the slow start threshold, if the memory gives it and none is configured. The initial
    /// window stays. The RTT counts only if the handshake gave none.
    pub(super) fn begin(subflow: &mut Subflow, ctx: &mut Context<'_>) {
        let (now, conn) = (ctx.now, ctx.conn());
        let (path, server) = (subflow.address.path(), subflow.address.server());
        let Some((memory, key)) = ctx.memory_of(path, server) else { return };
        if subflow.origin.initiator {
            memory.on_opened(now, conn, subflow.id, subflow.rx.taken_in());
        }
        let Some(known) = memory.recall(now, key) else { return };
        if let Some(threshold) = memory.first_threshold(&known) {
            subflow.sender.cc.recall(threshold);
        }
        if let (None, Some(srtt)) = (subflow.sender.rtt.srtt(), known.srtt) {
            subflow.sender.rtt.expect(srtt, known.rttvar);
        }
    }

    /// Returns the notice to the scheduler, if a rate is remembered.
    pub(crate) fn notice(&self, ctx: &mut Context<'_>) -> Option<Notice> {
        let known = ctx.recall(self.0.address.path(), self.0.address.server())?;
        let (subflow, rate, min_rtt) = (self.0.id, known.rate?, known.min_rtt?);
        Some(Notice::Remembered { subflow, rate, min_rtt })
    }

    /// Leaves the values of the subflow in the path memory, if there is one. `over` is true if the
    /// subflow ends now.
    pub(crate) fn leave(&self, ctx: &mut Context<'_>, over: bool) {
        let (now, conn) = (ctx.now, ctx.conn());
        let (path, server) = (self.0.address.path(), self.0.address.server());
        let Some((memory, key)) = ctx.memory_of(path, server) else { return };
        let (subflow, received) = (self.0.id, self.0.rx.taken_in());
        memory.learn(now, key, Learner { conn, subflow, received, over }, self.sample());
    }

    /// Leaves the values of a subflow that becomes a remnant, if the peer's FIN has not arrived. Otherwise
    /// the FIN has made it leave them.
    pub(crate) fn leave_at_wait(&self, ctx: &mut Context<'_>) {
        if self.0.state() == State::FinWait2 && self.0.status().joined() {
            self.leave(ctx, true);
        }
    }

    fn sample(&self) -> PathSample {
        let Sender { cc, rtt, .. } = &self.0.sender;
        let mss = u64::from(cc.flow(None, true).mss.max(1));
        let carried = self.0.carried();
        let counters = carried.counters;
        let (rate, filled) = self.0.sender.largest_delivery_rate();
        PathSample {
            rate,
            filled,
            received: None,
            min_rtt: rtt.min(),
            srtt: rtt.srtt(),
            rttvar: rtt.rttvar(),
            silent: rtt.backoff() > 0,
            segments: carried.sent.div_ceil(mss),
            lost: counters.retransmissions.saturating_sub(counters.spurious),
            cwnd: cc.cwnd(),
            ssthresh: cc.ssthresh(),
            open: self.0.sender.ca() == CaState::Open,
        }
    }
}
