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
mod receiving;
mod redial;
pub(crate) mod remnant;
pub(crate) mod removal;
mod segments;
mod sizing;
pub(crate) mod slots;
mod superpackets;
pub(crate) mod timeouts;
mod views;
mod windows;
pub(crate) mod writing;

use crate::data::fastclose::{Cause, FastClose};
use crate::notices::Notices;
use crate::paths::addresses::Addresses;
use crate::paths::admission::Allowance;
use crate::paths::challenges::Challenges;
use crate::paths::joins::{EarlyAnswer, Joins};
pub(crate) use crate::paths::redial::DialCause;
use crate::paths::redial::Redial;
use crate::paths::sizing::SegmentSizes;
use crate::paths::slots::Slots;
use crate::spec::ConnectionSpec;
use crate::tcp::address::Address;
use crate::tcp::handshake::SynState;
use crate::tcp::state::State;
use crate::tcp::subflow::{NewSubflow, Subflow};
use alloc::sync::Arc;
use alloc::vec::Vec;
use plait_base::{SubflowId, Time};

/// The subflows of a connection, and the state for opening further ones.
pub(crate) struct Paths {
    /// Specification of the connection: its settings, and the addresses of both ends.
    pub(crate) spec: Arc<ConnectionSpec>,
    /// This end dialled.
    pub(crate) client: bool,
    /// TSQ, pacing or subflow windows can hold subflows back.
    holds_back: bool,
    subflows: Slots,
    joins: Joins,
    addresses: Addresses,
    sizes: SegmentSizes,
    /// Challenge ACKs that may still be sent.
    challenges: Challenges,
    /// Allowance for the peer's further joins.
    admission: Allowance,
    redial: Redial,
    /// Set when the user has aborted the connection, until the peer confirms it.
    fast_close: Option<FastClose>,
}

impl Paths {
    pub(crate) fn new(spec: Arc<ConnectionSpec>, client: bool) -> Paths {
        Paths {
            sizes: SegmentSizes::new(&spec.config),
            holds_back: spec.config.holds_back(),
            spec,
            client,
            subflows: Slots::default(),
            joins: Joins::default(),
            addresses: Addresses::default(),
            challenges: Challenges::default(),
            admission: Allowance::default(),
            redial: Redial::default(),
            fast_close: None,
        }
    }

    /// Returns true if a signal about addresses or priorities is queued.
    #[inline(always)]
    pub(crate) fn has_signals(&self) -> bool {
        self.addresses.has_signals()
    }

    /// Takes the answers to simultaneous joins that arrived before the peer's key.
    pub(crate) fn take_early_answers(&mut self) -> Vec<EarlyAnswer> {
        self.joins.take_answers()
    }

    /// Returns the subflows by slot, closed ones included.
    #[inline(always)]
    pub(crate) fn subflows(&self) -> &Slots {
        &self.subflows
    }

    /// Returns the subflow in a used slot.
    #[inline(always)]
    pub(crate) fn subflow(&self, id: SubflowId) -> &Subflow {
        &self.subflows[id]
    }

    /// Puts a new subflow in the slot `id`.
    pub(crate) fn add_subflow(
        &mut self,
        notices: &mut Notices,
        id: SubflowId,
        address: Address,
        state: State,
        syn: SynState,
    ) {
        notices.tell_endpoint();
        let subflow = self.spec.new_subflow(self.sizes, id, address, state, syn);
        self.holds_back |= self.subflows.add(subflow);
    }

    /// Sets the reason in the RST of the subflow `id`.
    pub(crate) fn set_reset_cause(&mut self, id: SubflowId, cause: Cause) {
        self.subflows[id].set_reset_cause(cause);
    }

    /// Returns the port at which the connection's server listens.
    pub(crate) fn service_port(&self) -> Option<u16> {
        let address = self.subflows.first()?.address();
        Some(if self.client { address.remote_port } else { address.local_port })
    }

    /// Frees memory of subflows that have nothing in flight and have sent nothing since `before`.
    pub(crate) fn give_back(&mut self, before: Time) {
        self.subflows.shrink_to_fit();
        self.subflows.iter_mut().for_each(|subflow| subflow.give_back(before));
    }
}

impl ConnectionSpec {
    /// Returns a new subflow.
    fn new_subflow(
        &self,
        sizes: SegmentSizes,
        id: SubflowId,
        address: Address,
        state: State,
        syn: SynState,
    ) -> Subflow {
        let algorithm = (self.controller)(address.path());
        let ssthresh = self.path(address.path()).and_then(|known| known.ssthresh);
        let new = NewSubflow { id, address, state, syn, ssthresh, algorithm };
        let mut subflow = Subflow::new(new, &self.config);
        if let Some(size) = sizes.lowered() {
            subflow.window().resize(size);
        }
        subflow
    }
}
