//! Events of a subflow's acknowledgements and windows.

use crate::context::Context;
use crate::event::{Event, WindowCause};
use crate::tcp::ack_processing::AckEffects;
use crate::tcp::subflow::Subflow;

impl AckEffects {
    /// Emits the events of an acknowledgement.
    pub(crate) fn report(&self, ctx: &mut Context<'_>, subflow: &Subflow) {
        let (id, cwnd) = (subflow.id, subflow.sender.cwnd());
        ctx.emit(Event::Acked {
            subflow: id,
            bytes: self.delivered,
            rtt: self.rtt,
            srtt: subflow.sender.rtt.srtt().unwrap_or_default(),
            cwnd,
            inflight: subflow.sender.tx.inflight(),
        });
        let cause = match self {
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
            let ssthresh = subflow.sender.cc.ssthresh();
            ctx.emit(Event::Window { subflow: id, cwnd, ssthresh, cause });
            if self.tail_repaired {
                let cause = WindowCause::Recovered;
                ctx.emit(Event::Window { subflow: id, cwnd, ssthresh, cause });
            }
        }
    }
}

/// Emits an event with the congestion window of a subflow.
pub(crate) fn report_window(ctx: &mut Context<'_>, subflow: &Subflow, cause: WindowCause) {
    let (cwnd, ssthresh) = (subflow.sender.cwnd(), subflow.sender.cc.ssthresh());
    ctx.emit(Event::Window { subflow: subflow.id, cwnd, ssthresh, cause });
}
