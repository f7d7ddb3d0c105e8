//! What must hold after every event (`--check` and every test that drives a connection).

use super::Connection;
use crate::tcp::state::State;
use alloc::format;
use alloc::string::String;
use plait_base::SubflowSet;

impl Connection {
    /// The first invariant that does not hold, in words.
    pub(crate) fn violation(&self) -> Option<String> {
        self.unacknowledged_data_is_carried()
            .or_else(|| self.books_agree())
            .or_else(|| self.windows_are_respected())
            .or_else(|| self.delivery_is_in_order())
    }

    /// Every byte is delivered at its place, and nothing is told that was not delivered. (That each
    /// is delivered once follows: delivery only moves on.)
    fn delivery_is_in_order(&self) -> Option<String> {
        self.recv.misplaced().map(|run| format!("wrong bytes delivered at {run:?}"))
    }

    /// Every byte sent and not DATA_ACKed is with a subflow that is not closed, or queued for
    /// reinjection.
    fn unacknowledged_data_is_carried(&self) -> Option<String> {
        let open: SubflowSet =
            self.subflows.iter().filter(|s| s.state != State::Closed).map(|s| s.id).collect();
        if self.failed || open.is_empty() {
            return None;
        }
        for sent in self.queue.sent() {
            let carried = SubflowSet(sent.carried.0 & open.0);
            if carried.is_empty() && !self.queue.reinjections().covers(sent.range) {
                return Some(format!("data {:?} is with no subflow and not queued", sent.range));
            }
        }
        None
    }

    fn books_agree(&self) -> Option<String> {
        for subflow in &self.subflows {
            let inflight: u64 = subflow
                .tx
                .iter()
                .filter(|sent| sent.whereabouts == crate::tcp::send::Whereabouts::InFlight)
                .map(|sent| u64::from(sent.len))
                .sum();
            if inflight != subflow.tx.inflight() {
                let told = subflow.tx.inflight();
                return Some(format!("subflow {}: {inflight} in flight, {told} told", subflow.id));
            }
        }
        let sent: u64 = self.queue.sent().map(|sent| sent.range.len()).sum();
        let assigned: u64 = self.subflows.iter().map(|s| self.queue.assigned(s.id)).sum();
        let all = sent + self.queue.unsent() + assigned;
        (all != self.queue.occupied()).then(|| {
            format!("{all} bytes sent, unsent or assigned, {} in the buffer", self.queue.occupied())
        })
    }

    fn windows_are_respected(&self) -> Option<String> {
        if self.queue.nxt() > self.window.end() && self.queue.nxt() > 0 {
            let (nxt, end) = (self.queue.nxt(), self.window.end());
            return Some(format!("data sent up to {nxt}, the window ends at {end}"));
        }
        if self.queue.occupied() > self.spec.config.sndbuf {
            return Some(format!("{} bytes in the send buffer", self.queue.occupied()));
        }
        let held = self.recv.readable() + self.recv.out_of_order();
        (held > self.spec.config.rcvbuf).then(|| format!("{held} bytes in the receive buffer"))
    }
}
