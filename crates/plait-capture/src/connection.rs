//! A connection: its subflows, keys, and the data of both directions.

use crate::data_level::DataLevel;
use crate::half::{Acked, Half, Sent};
use crate::held::Held;
use crate::limits::{AckEvent, DataEvent, Limits};
use crate::packet::Seen;
use crate::subflow::{Mark, Subflow, Vantage};
use crate::watch::Watched;
use plait_wire::{Flags, Key, MpCapable, Mptcp};

/// The MSS if the capture does not show it, in bytes.
const USUAL_MSS: u16 = 1_460;
/// Smallest piece of a joined segment in bytes, if a damaged SYN has a smaller MSS.
const LEAST_PIECE: u32 = 500;

/// A connection, over one subflow or several.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) subflows: Vec<Subflow>,
    /// Keys of both sides.
    pub(crate) keys: [Option<Key>; 2],
    /// Token of an MP_JOIN whose connection began before the capture.
    pub(crate) unknown_token: Option<u32>,
    /// Data of each side.
    pub(crate) data: [DataLevel; 2],
    pub(crate) limits: [Limits; 2],
    /// Segments with payload that no mapping covers, on a connection of MPTCP.
    pub(crate) unmapped_segments: u64,
    /// First packet after which the connection has no mappings any more.
    pub(crate) fallback: Option<Mark>,
    /// True if a side has sent a DATA_FIN.
    data_fin: [bool; 2],
    /// First ADD_ADDR, and the number of announced addresses.
    pub(crate) announced: u32,
    /// What is passed on of one side.
    pub(crate) watched: Option<Box<Watched>>,
    /// True if unused memory was returned after the latest packet.
    is_shrunk: bool,
}

impl Connection {
    pub(crate) fn new() -> Connection {
        Connection {
            subflows: Vec::new(),
            keys: [None; 2],
            unknown_token: None,
            data: Default::default(),
            limits: Default::default(),
            unmapped_segments: 0,
            fallback: None,
            data_fin: [false; 2],
            announced: 0,
            watched: None,
            is_shrunk: false,
        }
    }

    /// Returns true if MPTCP is in use.
    pub(crate) fn is_multipath(&self) -> bool {
        self.unknown_token.is_some() || self.subflows.iter().any(Subflow::is_multipath)
    }

    /// Takes a segment of the subflow `index`. Returns the keys that it shows for the first time, with their sides.
    ///
    /// A host that leaves the segmentation to its network card captures several segments as one.
    pub(crate) fn on_segment(&mut self, index: usize, seen: &Seen) -> Vec<(usize, Key)> {
        self.is_shrunk = false;
        let flow = &self.subflows[index];
        let mss = flow.halves[1 - flow.side(seen)].mss.filter(|mss| *mss > 0).unwrap_or(USUAL_MSS);
        if seen.payload <= u32::from(mss) || seen.segment.flags.has(Flags::SYN) {
            return self.on_single(index, seen);
        }
        let most =
            u32::from(mss).saturating_sub(seen.segment.options.header_len()).max(LEAST_PIECE);
        let mut keys = Vec::new();
        let mut start = 0;
        while start < seen.payload {
            let mut piece = seen.clone();
            piece.segment.seq = seen.segment.seq.wrapping_add(start);
            piece.payload = most.min(seen.payload - start);
            start += piece.payload;
            if start < seen.payload {
                piece.segment.flags = Flags(seen.segment.flags.0 & !Flags::FIN.0);
            }
            // The mapping covers all pieces.
            if piece.segment.seq != seen.segment.seq {
                (piece.segment.options.mptcp, piece.segment.options.dss) = (None, None);
            }
            keys.extend(self.on_single(index, &piece));
        }
        keys
    }

    fn on_single(&mut self, index: usize, seen: &Seen) -> Vec<(usize, Key)> {
        let side = self.subflows[index].side(seen);
        self.subflows[index].on_flags(side, seen);
        let keys = self.on_options(index, side, seen);
        let flow = &mut self.subflows[index];
        let is_backup = flow.agreed.backup;
        self.limits.iter_mut().for_each(|it| it.set_backup(index, is_backup));
        let rtt = flow.handshake_rtt();
        let sent = flow.halves[side].on_sent(seen, rtt);
        if let Some(mss) = seen.segment.options.mss {
            self.limits[1 - side].set_mss(i64::from(mss).min(1_460));
        }
        if flow.handshake.third.is_some_and(|third| third.number == seen.number) {
            let joined = flow.agreed.join && !flow.agreed.answered;
            let packets = (flow.handshake.syn.unwrap_or(flow.first), Mark::of(seen));
            for limits in self.limits.iter_mut().filter(|_| !joined) {
                limits.open(index, seen.at_ns, rtt, packets, flow.agreed.backup);
            }
            self.replace_earlier(index);
        }
        if let Some(sent) = sent {
            self.on_data(index, side, seen, &sent);
        }
        if seen.segment.flags.has(Flags::ACK) {
            let flow = &mut self.subflows[index];
            let shift = flow.window_shift(side);
            if let Some(acked) = flow.halves[1 - side].on_acked(seen, shift) {
                let at_receiver = flow.vantage(side) == Vantage::Receiver;
                if let Some(rtt) = acked.echo_ns.filter(|_| at_receiver) {
                    self.limits[side].on_rtt(index, rtt);
                    self.watched(side).into_iter().for_each(|it| it.on_rtt(seen.at_ns, index, rtt));
                }
                self.on_ack(index, 1 - side, seen, &acked);
            }
        }
        if self.subflows[index].reset.is_some_and(|it| it.mark == Mark::of(seen)) {
            self.on_reset(index, seen);
        }
        keys
    }

    /// Takes the first RST of a subflow, or an MP_FASTCLOSE.
    fn on_reset(&mut self, index: usize, seen: &Seen) {
        let complete = [0, 1].map(|side| self.is_complete(side));
        if let Some(reset) = &mut self.subflows[index].reset {
            reset.was_complete = complete;
        }
        for (side, limits) in self.limits.iter_mut().enumerate().filter(|(at, _)| !complete[*at]) {
            limits.reset(index, Mark::of(seen), &self.data[side]);
        }
    }

    /// Returns true if a side has ended its data and the other end has acknowledged all of it.
    fn is_complete(&self, side: usize) -> bool {
        let data = &self.data[side];
        let ended =
            self.data_fin[side] || self.subflows.iter().all(|flow| flow.halves[side].has_ended());
        ended && data.acked >= data.seen.next()
    }

    /// A new subflow replaces the reset subflows of the same hosts.
    fn replace_earlier(&mut self, index: usize) {
        let hosts = |flow: &Subflow| flow.ends.map(|end| end.ip());
        let own = hosts(&self.subflows[index]);
        for (earlier, flow) in self.subflows.iter().enumerate().take(index) {
            if hosts(flow) == own && flow.reset.is_some() {
                self.limits.iter_mut().for_each(|limits| limits.replace(earlier));
            }
        }
    }

    fn on_options(&mut self, index: usize, side: usize, seen: &Seen) -> Vec<(usize, Key)> {
        let mut found = Vec::new();
        let options = seen.segment.options.mptcp.as_deref().map(Mptcp::all).unwrap_or_default();
        for option in options {
            match option {
                Mptcp::Capable(capable) => {
                    for (of, key) in [(side, capable.sender_key), (1 - side, capable.receiver_key)]
                    {
                        let Some(key) = key.filter(|_| self.keys[of].is_none()) else { continue };
                        self.keys[of] = Some(key);
                        self.data[of].begin(key.idsn().plus(1).0);
                        found.push((of, key));
                    }
                    self.map_first(index, side, capable);
                }
                Mptcp::AddAddr(address) if address.hmac.is_some() => self.announced += 1,
                Mptcp::Fail(_) => _ = self.fallback.get_or_insert(Mark::of(seen)),
                _ => {}
            }
        }
        self.data_fin[side] |= seen.segment.options.dss.is_some_and(|dss| dss.data_fin);
        let mapping = seen.segment.options.dss.and_then(|dss| dss.mapping);
        if mapping.is_some_and(|mapping| mapping.len == 0) {
            self.fallback.get_or_insert(Mark::of(seen));
        }
        found
    }

    /// The MP_CAPABLE of the first data maps it (RFC 8684 section 3.1).
    fn map_first(&mut self, index: usize, side: usize, capable: &MpCapable) {
        if let (Some(len), Some(key)) = (capable.data_len, self.keys[side]) {
            self.subflows[index].halves[side].map_first(key.idsn().plus(1).0, len);
        }
    }

    fn on_data(&mut self, index: usize, side: usize, seen: &Seen, sent: &Sent) {
        let alone = self.subflows.len() == 1;
        self.subflows[index].agreed.fell_back |= alone && self.lost_mappings(index, side, seen);
        let flow = &self.subflows[index];
        let multipath = flow.is_multipath() || flow.agreed.join;
        let len = sent.end - sent.start;
        let data = &mut self.data[side];
        let placed = match sent.mapped {
            Some(to) => data.on_mapped((to.dsn, to.long), len, index, seen.at_ns),
            // Plain TCP, and the data of a connection that fell back, have the positions of the subflow.
            None if !multipath || (self.fallback.is_some() && self.subflows.len() == 1) => {
                data.begin(0);
                Some(data.on_data(sent.start - 1, sent.end - 1, index, seen.at_ns))
            }
            None => None,
        };
        let Some(placed) = placed else {
            self.unmapped_segments += 1;
            return;
        };
        let at_receiver = flow.vantage(side) == Vantage::Receiver;
        let limits = &mut self.limits[side];
        limits.set_mss(len.min(1_460));
        let event = DataEvent {
            at_ns: seen.at_ns,
            path: index,
            next: flow.halves[side].seen.next(),
            data: (placed.start, placed.end),
            fresh: placed.fresh,
            copy: placed.copy,
            again: sent.news.again > 0,
            missing_since: sent.lost_before.then(|| seen.at_ns - sent.news.gap_age),
            gap_since: flow.halves[side].seen.gap_since(),
            at_receiver,
            packet: Mark::of(seen),
        };
        limits.on_data(&event, data);
        self.watched(side).into_iter().for_each(|it| it.on_data(&event));
    }

    /// Returns true if another join between the same hosts has succeeded.
    pub(crate) fn has_joined_like(&self, flow: &Subflow) -> bool {
        let hosts = |it: &Subflow| it.ends.map(|end| end.ip());
        let mut others = self.subflows.iter().filter(|it| it.agreed.join && it.agreed.accepted);
        others.any(|it| hosts(it) == hosts(flow))
    }

    /// Returns the watched data, if it is that of `side`.
    fn watched(&mut self, side: usize) -> Option<&mut Watched> {
        self.watched.as_deref_mut().filter(|watched| watched.side == side)
    }

    /// Returns true if the first data of a first subflow has no mapping: the connection falls back (RFC 8684 section 3.7).
    fn lost_mappings(&self, index: usize, side: usize, seen: &Seen) -> bool {
        let flow = &self.subflows[index];
        let agreed = flow.agreed.answered && !flow.agreed.join && !seen.cut;
        agreed && flow.handshake.syn.is_some() && !flow.halves[side].was_mapped()
    }

    /// Takes an acknowledgement of the data of `side`.
    fn on_ack(&mut self, index: usize, side: usize, seen: &Seen, acked: &Acked) {
        let flow = &self.subflows[index];
        let data = &mut self.data[side];
        let multipath = flow.is_multipath() || flow.agreed.join;
        let top = flow.halves[side].mapped(acked.ack - 1);
        let top = top.and_then(|to| data.position(to.dsn, to.long)).map(|position| position + 1);
        let position = match acked.data_ack {
            Some(ack) => data.position(ack.value.0, ack.long),
            None if multipath => None,
            None => Some(acked.ack - 1),
        };
        let mss = i64::from(flow.halves[side].mss.unwrap_or(1_460));
        data.on_ack(position.unwrap_or(data.acked), acked.window, mss);
        // At the receiver, only its clock values show the RTT.
        let at_receiver = flow.vantage(side) == Vantage::Receiver;
        let rtt_ns = acked.rtt_ns.filter(|_| !at_receiver);
        let rtt_ns = rtt_ns.map(|rtt| rtt + flow.leg(side).unwrap_or(0));
        let event = AckEvent {
            at_ns: seen.at_ns + flow.leg(side).unwrap_or(0).min(2_000_000_000),
            path: index,
            ack: acked.ack,
            delivered: acked.delivered,
            rtt_ns,
            top: top.unwrap_or(if multipath { 0 } else { acked.ack - 1 }),
            data_acked: data.acked,
            edge: data.window.edge,
            is_edge_known: !data.window.is_lacking,
            packet: Mark::of(seen),
        };
        self.limits[side].on_ack(event, data);
        self.watched(side).into_iter().for_each(|it| it.on_ack(&event));
    }

    /// Takes a state of the sender `side`.
    pub(crate) fn on_held(&mut self, side: usize, held: Option<Held>, mark: Mark) {
        self.limits[side].on_held(held, mark, &self.data[side]);
    }

    /// Forgets the states of the senders, which may belong to another connection.
    pub(crate) fn forget_senders(&mut self) {
        self.limits.iter_mut().for_each(Limits::forget_sender);
    }

    /// Returns memory that is not needed after a pause: if the latest packet was before `idle_ns`. `now` is the time of the latest
    /// packet of all connections.
    pub(crate) fn shrink(&mut self, idle_ns: i64, now: i64) {
        let last = self.subflows.iter().map(|flow| flow.last.at_ns).max().unwrap_or(0);
        if last >= idle_ns || self.is_shrunk {
            return;
        }
        self.is_shrunk = true;
        let is_complete = self.is_complete(0) && self.is_complete(1);
        for (limits, data) in self.limits.iter_mut().zip(&mut self.data) {
            if is_complete {
                limits.settle(now, data);
            }
            limits.shrink();
            data.shrink();
        }
        self.subflows.iter_mut().flat_map(|flow| &mut flow.halves).for_each(Half::shrink);
        self.subflows.shrink_to_fit();
    }

    /// Ends the record of both directions.
    pub(crate) fn finish(&mut self) {
        let last = self.subflows.iter().map(|flow| flow.last.at_ns).max().unwrap_or(0);
        for (limits, data) in self.limits.iter_mut().zip(&self.data) {
            limits.finish(last, data);
        }
    }

    /// Returns the side that sent all packets of the capture; none if both sides sent some.
    pub(crate) fn only_from(&self) -> Option<usize> {
        let first = self.subflows.first()?.only_from();
        first.filter(|_| self.subflows.iter().all(|flow| flow.only_from() == first))
    }

    /// Returns true if all packets have the same time, although one was sent after another.
    pub(crate) fn is_timeless(&self) -> bool {
        let Some(first) = self.subflows.first().map(|flow| flow.first.at_ns) else { return false };
        let packets: u64 = self.subflows.iter().flat_map(|flow| flow.packets).sum();
        packets > 2 && self.subflows.iter().all(|flow| flow.last.at_ns == first)
    }

    /// Returns true if the data of `side` on a path has rates and causes: the capture has its acknowledgements, and times.
    pub(crate) fn is_answered(&self, path: usize, side: usize) -> bool {
        let flow = self.subflows.get(path);
        flow.is_some_and(|flow| flow.only_from() != Some(side)) && !self.is_timeless()
    }

    /// Returns true if the connection has the numbers of MPTCP, and its handshake is not in the capture.
    pub(crate) fn lacks_handshake(&self) -> bool {
        self.keys == [None; 2] && self.is_multipath()
    }

    /// Returns the side that sent more data.
    pub(crate) fn main_sender(&self) -> usize {
        let sent = |side: usize| {
            self.subflows.iter().map(|flow| flow.halves[side].counts.fresh_bytes).sum::<u64>()
        };
        usize::from(sent(1) >= sent(0))
    }
}
