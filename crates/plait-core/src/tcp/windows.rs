//! Changes of a subflow's congestion window other than by acknowledgements and losses.

use crate::context::Context;
use crate::data::level::DataLevel;
use crate::event::{Event, WindowCause};
use crate::tcp::subflow::Subflow;
use plait_base::Time;
use plait_cc::{IdleReset, IdleRestart};
use plait_sched::{CaState, Effect};

/// The congestion window of a subflow.
pub(crate) struct Window<'a>(&'a mut Subflow);

impl Subflow {
    /// Returns its congestion window, to change it.
    pub(crate) fn window(&mut self) -> Window<'_> {
        Window(self)
    }
}

impl Window<'_> {
    /// Applies an effect of the scheduler: reduces it, or limits the bytes in flight.
    pub(crate) fn apply(&mut self, ctx: &mut Context<'_>, effect: Effect) {
        match effect {
            Effect::Penalise { cwnd, ssthresh, .. } => {
                self.0.sender.cc.penalise(cwnd, ssthresh);
                let (cwnd, cause) = (self.0.sender.cwnd(), WindowCause::Effect);
                ctx.emit(Event::Window { subflow: self.0.id, cwnd, ssthresh, cause });
            }
            Effect::Cap { bytes, .. } => self.0.sender.limits.set_cap(bytes),
        }
    }

    /// Notes whether the price keeps data off the subflow. Coupled windows then leave this one out.
    pub(crate) fn rest(&mut self, resting: bool) {
        self.0.status.set_resting(resting);
    }

    /// Counts it in segments of `size` bytes from now on.
    pub(crate) fn resize(&mut self, size: u32) {
        self.0.sender.cc.resize(size);
    }

    /// Reduces it if the subflow is idle, as `mode` requires. Returns true if the subflow is idle.
    pub(crate) fn validate_idle(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        mode: IdleRestart,
    ) -> bool {
        let last = self.0.sender.last_send;
        if !self.0.status.joined() || !self.0.is_quiet() || last == Time::ZERO {
            return false;
        }
        let rto = self.0.sender.rtt.base_rto();
        if let Some(reset) = self.0.sender.cc.idle(ctx.now, ctx.now.since(last), rto, mode) {
            data.on_window_reduced(self.0.id, ctx.now);
            self.on_reduced(ctx, reset);
        }
        true
    }

    /// Reduces it if it was not filled for one RTO. Keeps it if the application is `blocked`
    /// by a full send buffer (Linux: `tcp_cwnd_validate`). Returns true if it was reduced.
    #[cold]
    pub(crate) fn validate(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        blocked: bool,
    ) -> bool {
        let sender = &mut self.0.sender;
        let limited = sender.is_cwnd_limited();
        let (outstanding, rto) = (sender.tx.outstanding(), sender.rtt.rto());
        if let Some(used) = data.unused_window(self.0.id, ctx.now, outstanding, limited, rto)
            && sender.ca() == CaState::Open
            && !blocked
            && let Some(reset) = sender.cc.reduce_unused(used)
        {
            self.on_reduced(ctx, reset);
            return true;
        }
        false
    }

    /// Resets it to `initial`; the threshold stays.
    #[cfg(feature = "laboratory")]
    pub(crate) fn reset(&mut self, ctx: &mut Context<'_>, initial: u64) {
        self.0.sender.cc.set_cwnd(initial);
        let (ssthresh, cause) = (self.0.sender.cc.ssthresh(), WindowCause::Set);
        ctx.emit(Event::Window { subflow: self.0.id, cwnd: initial, ssthresh, cause });
    }

    /// Notes a reduction of an idle or unused window, and emits an event.
    fn on_reduced(&mut self, ctx: &mut Context<'_>, IdleReset { before, after }: IdleReset) {
        self.0.sender.limits.remember_window(before);
        ctx.emit(Event::IdleReset { subflow: self.0.id(), before, after });
    }
}
