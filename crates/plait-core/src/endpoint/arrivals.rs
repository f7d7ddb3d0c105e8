//! Segments that belong to no connection yet: SYNs, early joins, and strays.

use crate::JoinTiming;
use crate::endpoint::cookies::Client;
use crate::endpoint::{EarlyJoins, Endpoint, HeldJoin, MAX_EARLY_JOINS, MAX_HELD_JOINS};
use crate::paths::admission::{DENIED, LIMIT_REACHED};
use crate::paths::early_join::EarlyJoin;
use crate::paths::handshake::{Opening, SynRequest, syn_request};
use crate::segments::Transmit;
use crate::spec::ConnectionState;
use crate::stats::Counters;
use crate::tcp::address::Address;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use plait_base::{ConnId, ServerAddress, Span, Time};
use plait_wire::{Flags, Mptcp, Options, Payload, ResetReason, Segment, WireSeq};

/// Largest number of half-open connections. Further SYNs are answered without state.
const MAX_HALF_OPEN: usize = 4_096;
/// Joins accepted per second, over all connections.
const JOINS_PER_SECOND: u64 = 1_000;
/// A SYN is retransmitted after one second (RFC 6298 section 2.1), less the delay variation of the
/// network.
const SOONEST_REPEAT: Span = Span::from_millis(500);
/// A join that is refused, but not for good.
const TRY_AGAIN: Mptcp = Mptcp::Reset { reason: ResetReason::Mptcp, transient: true };
/// A join that is refused for good.
const REFUSED: Mptcp = Mptcp::Reset { reason: ResetReason::Mptcp, transient: false };

impl EarlyJoins {
    /// Keeps a join until the third ACK of its connection, or until the connection ends. If there are too many, the
    /// oldest one is dropped. Returns false if the join is a repetition: the third ACK has not arrived within a whole
    /// timeout. The client then needs a reset, so that it dials on this path.
    fn hold(&mut self, join: HeldJoin, counters: &mut Counters) -> bool {
        let same = |it: &HeldJoin| it.is_same(&join);
        if let Some(at) = self.held.iter().position(same) {
            let duplicated = join.since < self.held[at].since + SOONEST_REPEAT;
            if !duplicated {
                self.held.remove(at);
            }
            return duplicated;
        }
        if self.held.len() >= MAX_HELD_JOINS {
            self.held.pop_front();
            counters.on_join_replaced();
        }
        self.held.push_back(join);
        true
    }

    /// Takes the joins of a connection.
    fn take_held(&mut self, conn: ConnId) -> VecDeque<HeldJoin> {
        let all = core::mem::take(&mut self.held).into_iter();
        let (mine, others) = all.partition(|join| join.conn == conn);
        self.held = others;
        mine
    }
}

impl HeldJoin {
    /// Returns true if both SYNs are for the same subflow.
    fn is_same(&self, other: &HeldJoin) -> bool {
        let ports = |it: &HeldJoin| (it.syn.src_port, it.syn.dst_port);
        (self.conn, self.path, ports(self)) == (other.conn, other.path, ports(other))
    }
}

impl Endpoint {
    /// Processes a SYN. `after` is the last sequence number of the address's previous connection,
    /// if it is known.
    #[cold]
    pub(super) fn on_syn(
        &mut self,
        now: Time,
        client: Client,
        address: Address,
        syn: &Segment,
        after: Option<WireSeq>,
    ) {
        if syn.flags.has(Flags::FIN) {
            // No TCP opens and closes a connection in one segment; Linux drops it as well.
            self.shared.counters.on_syn_with_fin();
            return;
        }
        match syn_request(syn) {
            SynRequest::Join(token) => {
                let known = self
                    .shared
                    .tokens
                    .get(&token)
                    .copied()
                    .or_else(|| self.by_peer_token(address, token));
                if let Some(id) = known.filter(|id| self.accepts_joins(*id)) {
                    self.shared.name_client(address.path(), client.source());
                    self.on_join(now, id, address, syn);
                } else if known.is_none() && self.denies_early_join(address) {
                    self.reset(address, syn, Some(DENIED));
                } else if known.is_none() && self.joins_simultaneously(address) {
                    self.answer_early_join(now, address, syn);
                } else if let Some(id) = known.filter(|id| self.awaits_third_ack(*id)) {
                    self.shared.name_client(address.path(), client.source());
                    let join =
                        HeldJoin { conn: id, path: address.path(), syn: syn.clone(), since: now };
                    if !self.early.hold(join, &mut self.shared.counters) {
                        self.reset(address, syn, Some(TRY_AGAIN));
                    }
                } else {
                    self.reset(address, syn, Some(REFUSED));
                }
            }
            _ => match self.listeners.get(&address.local_port) {
                Some(_) if self.full => {
                    self.shared.counters.on_turned_away();
                    self.reset(address, syn, None);
                }
                Some(spec) => {
                    let spec = Arc::clone(spec);
                    if self.connections.untold() >= MAX_HALF_OPEN {
                        self.answer_without_state(now, client, &spec, address, syn);
                    } else {
                        self.shared.name_client(address.path(), client.source());
                        self.open(now, spec, &Opening::Passive { address, syn, after });
                    }
                }
                None => self.reset(address, syn, None),
            },
        }
    }

    /// Accepts a join, or refuses it if it exceeds the limits.
    fn on_join(&mut self, now: Time, id: ConnId, address: Address, syn: &Segment) {
        let refusal = self.with(now, id, |conn, _| conn.refuses_join(now, address)).flatten();
        let refusal =
            refusal.or_else(|| (!self.joins.take(now, JOINS_PER_SECOND)).then_some(LIMIT_REACHED));
        if let Some(option) = refusal {
            return self.reset(address, syn, Some(option));
        }
        self.with(now, id, |conn, ctx| conn.accept_join(ctx, address, syn));
    }

    /// Returns true if a join that arrives with its connection's SYN is for an address that refuses joins.
    fn denies_early_join(&self, address: Address) -> bool {
        let spec = self.listeners.get(&address.local_port);
        address.server() == ServerAddress::default()
            && spec.is_some_and(|spec| {
                spec.config.joins.timing.is_simultaneous() && spec.config.joins.deny
            })
    }

    fn accepts_joins(&self, id: ConnId) -> bool {
        self.connection(id).is_some_and(|conn| conn.data().accepts_joins())
    }

    /// Returns true if a join to the connection may arrive before its third ACK.
    fn awaits_third_ack(&self, id: ConnId) -> bool {
        self.connection(id).is_some_and(|conn| {
            let paths = conn.paths();
            let early = paths.spec.config.joins.timing != JoinTiming::AfterData;
            early && !paths.client && conn.state() == ConnectionState::Connecting
        })
    }

    /// Returns the connection that a simultaneous join names by the token of its client.
    fn by_peer_token(&self, address: Address, token: u32) -> Option<ConnId> {
        if !self.joins_simultaneously(address) {
            return None;
        }
        let mut all = self.connections.iter();
        all.find(|(_, conn)| conn.data().keys().peer_token() == Some(token)).map(|(id, _)| id)
    }

    fn joins_simultaneously(&self, address: Address) -> bool {
        let spec = self.listeners.get(&address.local_port);
        spec.is_some_and(|spec| spec.config.joins.timing.is_simultaneous())
            && self.early.answered.len() < MAX_EARLY_JOINS
    }

    /// Answers a join whose connection does not exist yet.
    fn answer_early_join(&mut self, now: Time, address: Address, syn: &Segment) {
        let Some(spec) = self.listeners.get(&address.local_port).cloned() else { return };
        let early = self.with_context(now, |ctx| EarlyJoin::new(&spec, address, syn, ctx));
        if let Some(early) = early {
            self.answers.push_back(early.syn_ack(&spec, now));
            self.early.answered.push(early);
        }
    }

    pub(super) fn take_up_early_joins(&mut self, now: Time, id: ConnId) {
        let token = self.connection(id).and_then(|conn| conn.data().keys().peer_token());
        let (mine, others): (Vec<_>, Vec<_>) = core::mem::take(&mut self.early.answered)
            .into_iter()
            .partition(|early| Some(early.token) == token);
        self.early.answered = others;
        for early in mine {
            self.with(now, id, |conn, ctx| conn.adopt(ctx, early));
        }
        for HeldJoin { path, syn, .. } in self.early.take_held(id) {
            let address = Address::of_arrival(path, &syn);
            match self.accepts_joins(id) {
                true => self.on_join(now, id, address, &syn),
                false => self.reset(address, &syn, Some(REFUSED)),
            }
        }
    }

    /// Answers a segment of an unknown connection.
    #[cold]
    pub(super) fn reset(&mut self, address: Address, segment: &Segment, mptcp: Option<Mptcp>) {
        self.answers.push_back(reset_of(address, segment, mptcp));
    }
}

/// Returns the answer to a segment of an unknown connection (RFC 9293 section 3.10.7.1).
fn reset_of(address: Address, segment: &Segment, mptcp: Option<Mptcp>) -> Transmit {
    let acked = segment.flags.has(Flags::ACK);
    let reset = Segment {
        src_port: address.local_port,
        dst_port: address.remote_port,
        seq: if acked { segment.ack } else { 0 },
        ack: if acked { 0 } else { segment.seq.wrapping_add(segment.seq_len()) },
        flags: if acked { Flags::RST } else { Flags::RST.with(Flags::ACK) },
        server: address.server(),
        window: 0,
        options: Options { mptcp: mptcp.map(Box::new), ..Options::default() },
        payload: Payload::Empty,
    };
    Transmit { path: address.path(), segment: Box::new(reset), report: None, cut: 0 }
}
