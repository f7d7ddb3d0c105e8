//! The slots of subflows: open ones, free ones, and lookup by address.

use crate::data::fastclose::Cause;
use crate::notices::Notices;
use crate::paths::Paths;
use crate::tcp::address::Address;
use crate::tcp::pending::{ControlSegment, Pending};
use crate::tcp::state::{State, Step};
use crate::tcp::subflow::{Handshake, Subflow};
use crate::tcp::timer::Timer;
use alloc::vec::Vec;
use plait_base::{PathId, SubflowId, SubflowSet};
use plait_wire::Segment;

impl Paths {
    /// Returns true if a signal about addresses or priorities is queued.
    #[inline(always)]
    pub(crate) fn has_signals(&self) -> bool {
        self.addresses.has_signals()
    }

    /// Takes the answers to simultaneous joins that arrived before the peer's key, by subflow.
    pub(crate) fn take_early_answers(&mut self) -> Vec<(usize, Segment)> {
        self.joins.early_answers.take()
    }

    /// Returns all subflows by slot, closed ones included.
    #[inline(always)]
    pub(crate) fn all(&self) -> &[Subflow] {
        &self.subflows
    }

    /// Returns the number of slots.
    pub(crate) fn count(&self) -> usize {
        self.subflows.len()
    }

    /// Returns the subflow in a used slot.
    #[inline(always)]
    pub(crate) fn subflow(&self, index: usize) -> &Subflow {
        &self.subflows[index]
    }

    /// Returns a slot for a subflow: a closed subflow's slot, or a new one.
    pub(crate) fn free_slot(&self) -> Option<SubflowId> {
        let free = |s: &Subflow| s.state == State::Closed && !s.pending.has(ControlSegment::Rst);
        let index = self.subflows.iter().position(free).unwrap_or(self.subflows.len());
        (index < SubflowId::MAX).then_some(SubflowId(index as u8))
    }

    /// Returns the index of the subflow with `address`; it is usually `likely`.
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

    /// Returns the subflows that are not closed, and their addresses.
    pub(crate) fn open_subflows(&self) -> impl Iterator<Item = (SubflowId, Address)> + '_ {
        self.subflows.iter().filter(|s| s.state != State::Closed).map(|s| (s.id, s.address))
    }

    /// Returns the paths of closed subflows that statistics still include and that the peer may use
    /// again.
    pub(crate) fn closed_paths(&self) -> impl Iterator<Item = PathId> + '_ {
        self.subflows.iter().filter(|s| s.state == State::Closed).map(|s| s.address.path())
    }

    /// Returns the addresses of the subflows that are not closed.
    pub(crate) fn open_addresses(&self) -> impl Iterator<Item = Address> + '_ {
        self.open_subflows().map(|(_, address)| address)
    }

    /// Returns true if a slot for a subflow is available.
    pub(crate) fn has_room(&self) -> bool {
        let free = |s: &Subflow| s.state == State::Closed && !s.pending.has(ControlSegment::Rst);
        self.subflows.len() < SubflowId::MAX || self.subflows.iter().any(free)
    }

    /// Returns true if a subflow has completed its handshake and is not closed.
    pub(crate) fn has_subflow(&self) -> bool {
        self.subflows.iter().any(|s| s.state.synchronised())
    }

    /// Puts a new subflow in the slot `id`.
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
            subflow.sender.cc.resize(self.mss);
        }
        notices.tell_endpoint();
        match self.subflows.get_mut(id.index()) {
            Some(slot) => {
                let totals = self.replaced.get_or_insert_default();
                totals.add_subflow(slot.shake.join, &slot.carried());
                *slot = subflow;
            }
            None => {
                self.subflows.reserve_exact(1);
                self.subflows.push(subflow);
            }
        }
    }

    /// Closes the subflow at `index` at once, with a RST if `tell_peer` is set. Returns `None` if
    /// it was closed.
    pub(crate) fn close(&mut self, index: usize, tell_peer: bool) -> Option<ClosedSubflow> {
        let subflow = &mut self.subflows[index];
        if subflow.state == State::Closed {
            return None;
        }
        let closed = ClosedSubflow {
            was_joined: subflow.status.joined(),
            was_down: subflow.state == State::TimeWait,
        };
        subflow.pending = Pending::default();
        subflow.pending.set(ControlSegment::Rst, tell_peer);
        subflow.step(Step::Aborted);
        subflow.status.set_joined(false);
        Some(closed)
    }

    /// Sets the reason in the RST of the subflow at `index`.
    pub(crate) fn set_reset_cause(&mut self, index: usize, cause: Cause) {
        self.subflows[index].pending.set_cause(cause);
    }

    /// Returns the subflows that may carry data and are not silent.
    pub(crate) fn live(&self) -> SubflowSet {
        let live = |s: &&Subflow| s.state.synchronised() && s.status.joined() && !s.status.pf();
        self.subflows.iter().filter(live).map(|s| s.id).collect()
    }

    /// Returns the subflows that are trusted with their data: open ones, except silent ones while
    /// another is live.
    pub(crate) fn carriers(&self) -> SubflowSet {
        let spoken = |s: &&Subflow| !s.status.pf() || self.live().is_empty();
        let open = self.subflows.iter().filter(|s| s.state != State::Closed);
        open.filter(spoken).map(|s| s.id).collect()
    }

    /// Returns the port at which the connection's server listens.
    pub(crate) fn service_port(&self) -> Option<u16> {
        let address = self.subflows.first()?.address;
        Some(if self.client { address.remote_port } else { address.local_port })
    }

    /// Returns true if every subflow has ended; `gone` decides about its state.
    pub(crate) fn all_gone(&self, gone: impl Fn(State) -> bool) -> bool {
        self.subflows.iter().all(|s| gone(s.state) && !s.pending.has(ControlSegment::Rst))
    }

    /// Returns true if every subflow is closed or only waits for its peer, and has nothing to send
    /// but an acknowledgement.
    pub(crate) fn all_wait(&self) -> bool {
        let waits = |s: &Subflow| match s.state {
            State::Closed | State::TimeWait => true,
            State::FinWait2 => s.timers.is_set(Timer::TimeWait),
            _ => false,
        };
        self.subflows.iter().all(|s| waits(s) && !s.pending.urgent())
    }
}

/// State of a subflow before it was closed.
pub(crate) struct ClosedSubflow {
    pub(crate) was_joined: bool,
    /// The event that it is down was already emitted.
    pub(crate) was_down: bool,
}
