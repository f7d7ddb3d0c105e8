//! The paths of a connection: its subflows, further ones to open, and the addresses of both ends.

mod acceptability;
mod acks;
mod addresses;
pub(crate) mod admission;
mod challenges;
pub(crate) mod control;
pub(crate) mod early_join;
pub(crate) mod ending;
pub(crate) mod fallback;
pub(crate) mod fast_path;
pub(crate) mod handshake;
mod joins;
pub(crate) mod opening;
mod priority;
mod probing;
pub(crate) mod receiving;
mod redial;
pub(crate) mod remnant;
pub(crate) mod removal;
mod segments;
mod sizing;
mod slots;
mod superpackets;
pub(crate) mod timeouts;
mod views;
mod windows;
mod writing;

use crate::paths::addresses::Addresses;
use crate::paths::admission::Allowance;
use crate::paths::challenges::Challenges;
use crate::paths::joins::Joins;
use crate::spec::ConnectionSpec;
use crate::stats::Totals;
use crate::tcp::subflow::Subflow;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use plait_base::{SubflowId, Time};
use plait_cc::{Flow, Flows};

/// Fills the unused entries of flows.
const NO_FLOW: Flow = Flow {
    cwnd: 0,
    ssthresh: None,
    srtt: None,
    mss: 0,
    in_recovery: false,
    live: false,
    loss_interval: 0,
};

/// The subflows of a connection, and the state for opening further ones.
pub(crate) struct Paths {
    /// Specification of the connection: its settings, and the addresses of both ends.
    pub(crate) spec: Arc<ConnectionSpec>,
    /// This end dialled.
    pub(crate) client: bool,
    subflows: Vec<Subflow>,
    /// Totals of subflows whose slot has been reused.
    replaced: Option<Box<Totals>>,
    joins: Joins,
    addresses: Addresses,
    /// Payload bytes of a full segment: limited by our MTU, the peer's MSS and the paths.
    mss: u32,
    /// Payload bytes of the peer's full segments. An end that has not fallen back yet sends no
    /// more.
    ack_unit: u32,
    /// Challenge ACKs that may still be sent.
    challenges: Challenges,
    /// Allowance for the peer's further joins.
    admission: Allowance,
    /// How often the first handshake was restarted on another path.
    dials: u8,
    /// A path delivers smaller packets only than the handshake suggested.
    narrowed: bool,
    /// Consecutive handshakes that succeeded while no data was delivered.
    unheard: u8,
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

    /// Returns the subflow for a signal that was repeated `repeats` times without an answer. Live
    /// subflows take turns, in order of smoothed RTT. Otherwise, an end that sends no data would
    /// never detect a silent path.
    pub(crate) fn signal_path(&self, repeats: u32) -> Option<usize> {
        let live = |index: &usize| self.subflows[*index].is_reachable();
        let key = |index: &usize| {
            let subflow = &self.subflows[*index];
            let status = subflow.status;
            (status.pf(), subflow.is_backup(), subflow.sender.rtt.srtt(), *index)
        };
        let all = || (0..self.subflows.len()).filter(live);
        if repeats == 0 {
            return all().min_by_key(key);
        }
        let turn = repeats as usize % all().count().max(1);
        all().find(|index| all().filter(|other| key(other) < key(index)).count() == turn)
    }

    /// Returns the live subflow with the least smoothed RTT, for a signal that uses no window.
    pub(crate) fn best_for_signal(&self) -> Option<usize> {
        self.signal_path(0)
    }

    /// Calls `f` with the subflow at `index` and read-only views of all flows, its own included.
    pub(crate) fn with_flows<R>(
        &mut self,
        index: usize,
        f: impl FnOnce(&mut Subflow, Flows<'_>) -> R,
    ) -> R {
        let subflow = &mut self.subflows[index];
        if !subflow.sender.cc.couples() {
            // A single controller reads only the RTT of its own entry.
            let own = [Flow { srtt: subflow.sender.rtt.srtt(), ..NO_FLOW }];
            return f(subflow, Flows { all: &own, own: 0 });
        }
        let mut all = [NO_FLOW; SubflowId::MAX];
        for (flow, subflow) in all.iter_mut().zip(&self.subflows) {
            *flow = subflow.flow();
        }
        let flows = Flows { all: &all[..self.subflows.len()], own: index };
        f(&mut self.subflows[index], flows)
    }

    /// Frees memory of subflows that have nothing in flight and have sent nothing since `before`.
    pub(crate) fn give_back(&mut self, before: Time) {
        self.subflows.shrink_to_fit();
        for subflow in &mut self.subflows {
            // The effect of a retransmission is visible at most one timeout later.
            if subflow.sender.last_send + subflow.sender.rtt.rto() < before {
                subflow.forget_recovery();
            }
            subflow.timers.give_back();
            subflow.sender.tx.give_back();
            subflow.rx.give_back();
            subflow.sender.host_queue.take_if(|queue| queue.bytes() == 0);
        }
    }
}
