//! Segments that belong to no connection yet: SYNs, early joins, and strays.

use crate::JoinTiming;
use crate::conn::Connection;
use crate::endpoint::cookies::Client;
use crate::endpoint::{Endpoint, MAX_EARLY_JOINS};
use crate::paths::admission::{DENIED, LIMIT_REACHED};
use crate::paths::early_join::EarlyJoin;
use crate::paths::handshake::{Opening, SynRequest, syn_request};
use crate::segments::Transmit;
use crate::spec::{ConnectionSpec, ConnectionState};
use crate::tcp::address::Address;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use plait_base::{ConnId, PathId, ServerAddress, Span, Time};
use plait_wire::{Flags, Mptcp, Options, Payload, ResetReason, Segment, WireSeq};

/// Largest number of half-open connections. Further SYNs are answered without state.
const MAX_HALF_OPEN: usize = 4_096;
/// Joins accepted per second, over all connections.
const JOINS_PER_SECOND: u64 = 1_000;
/// A SYN is retransmitted after one second (RFC 6298 section 2.1), less the delay variation of the
/// network.
const SOONEST_REPEAT: Span = Span::from_millis(500);

/// Returns true if both SYNs are for the same subflow.
fn is_same(path: PathId, early: &Segment, address: Address, syn: &Segment) -> bool {
    (path, early.src_port, early.dst_port) == (address.path(), syn.src_port, syn.dst_port)
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
                let accepts = |conn: &mut Connection| conn.data().accepts_joins();
                let ready =
                    known.and_then(|id| accepts(self.connections.find_mut(id)?).then_some(id));
                if let Some(id) = ready {
                    self.on_join(now, id, address, syn);
                } else if known.is_none() && self.denies_early_join(address) {
                    self.reset(address, syn, Some(DENIED));
                } else if known.is_none() && self.joins_simultaneously(address) {
                    self.answer_early_join(now, address, syn);
                } else if self.repeats_early_join_too_soon(now, address, syn) {
                    // The network has duplicated it.
                } else if self.drop_repeated_early_join(address, syn) {
                    let reason = ResetReason::Mptcp;
                    self.reset(address, syn, Some(Mptcp::Reset { reason, transient: true }));
                } else if self.may_hold_early_join(known, address) {
                    self.early.syns.push((address.path(), syn.clone(), now));
                } else {
                    let reason = Mptcp::Reset { reason: ResetReason::Mptcp, transient: false };
                    self.reset(address, syn, Some(reason));
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

    /// Returns true if a join that arrives with its connection's SYN is for an address that refuses
    /// joins.
    fn denies_early_join(&self, address: Address) -> bool {
        let spec = self.listeners.get(&address.local_port);
        address.server() == ServerAddress::default()
            && spec.is_some_and(|spec| {
                spec.config.joins.timing.is_simultaneous() && spec.config.joins.deny
            })
    }

    /// Returns true if a join may arrive before its connection's handshake. It is then kept until
    /// the connection exists.
    fn may_hold_early_join(&self, known: Option<ConnId>, address: Address) -> bool {
        let early = |spec: &Arc<ConnectionSpec>| spec.config.joins.timing != JoinTiming::AfterData;
        let listens = self.listeners.get(&address.local_port).is_some_and(early);
        let half_open = known.is_none_or(|id| {
            self.connection(id).is_some_and(|conn| conn.state() == ConnectionState::Connecting)
        });
        listens && half_open && self.early.syns.len() < MAX_EARLY_JOINS
    }

    /// Returns the connection that a simultaneous join names by the token of its client.
    fn by_peer_token(&self, address: Address, token: u32) -> Option<ConnId> {
        if !self.joins_simultaneously(address) {
            return None;
        }
        let mut all = self.connections.iter();
        all.find(|(_, conn)| conn.data().keys().peer_token() == Some(token)).map(|(id, _)| id)
    }

    /// Drops a kept join that arrives again. Its connection has not arrived within a whole timeout,
    /// so the client gets a reset.
    fn drop_repeated_early_join(&mut self, address: Address, syn: &Segment) -> bool {
        let before = self.early.syns.len();
        self.early.syns.retain(|(path, early, _)| !is_same(*path, early, address, syn));
        self.early.syns.len() < before
    }

    /// Returns true if a kept join arrives again sooner than its client can retransmit it.
    fn repeats_early_join_too_soon(&self, now: Time, address: Address, syn: &Segment) -> bool {
        self.early.syns.iter().any(|(path, early, at)| {
            is_same(*path, early, address, syn) && now < *at + SOONEST_REPEAT
        })
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
        for (path, syn, at) in core::mem::take(&mut self.early.syns) {
            let address = Address::of_arrival(path, &syn);
            let token = match syn_request(&syn) {
                SynRequest::Join(token) => token,
                _ => continue,
            };
            if self.shared.tokens.get(&token) == Some(&id) {
                self.on_join(now, id, address, &syn);
            } else {
                self.early.syns.push((path, syn, at));
            }
        }
    }

    /// Answers a segment of an unknown connection (RFC 9293 section 3.10.7.1).
    #[cold]
    pub(super) fn reset(&mut self, address: Address, segment: &Segment, mptcp: Option<Mptcp>) {
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
        self.answers.push_back(Transmit {
            path: address.path(),
            segment: Box::new(reset),
            report: None,
            cut: 0,
        });
    }
}
