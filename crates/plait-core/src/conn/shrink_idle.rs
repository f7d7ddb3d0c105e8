//! Memory that a connection gives back while it rests: rings and lists that are empty then, and views
//! that are made anew when somebody looks. What it does next is the same.

use crate::conn::Connection;
use crate::sched::views::Stale;
use alloc::vec::Vec;
use plait_base::Time;

impl Connection {
    /// Gives memory back where nothing is under way and nothing was sent since `before`.
    pub(crate) fn shrink_idle(&mut self, before: Time) {
        let rests = self.data.queue.is_drained()
            && self.paths.subflows.iter().all(|it| it.is_quiet() && it.last_send < before);
        if !rests {
            return;
        }
        self.data.queue.give_back();
        self.data.recv.give_back();
        self.scheduling.views.list = Vec::new();
        self.scheduling.views.stale = Stale::ALL;
        self.timers.give_back();
        self.paths.subflows.shrink_to_fit();
        for subflow in &mut self.paths.subflows {
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
}
