//! Rules for every segment that an endpoint emits, and the conversion between relative numbers of a
//! script and numbers on the wire.

use crate::harness::{PORT, Peer, SERVER, Script, carries_first_data, line};
use crate::segment::{ACK, Seg};
use plait_base::{Dsn, ServerAddress};
use plait_wire::{
    DataAck, Dss, Flags, Key, Mapping, MpCapable, Mptcp, Options, Payload, Segment, Sum,
    Timestamps, WireDsn,
};

impl Script {
    pub(crate) fn audit(&mut self, seg: &Seg, segment: &Segment) {
        let mut wrong = Vec::new();
        if segment.options.header_len() > 40 || !segment.options.fits() {
            wrong.push(format!("{} bytes of options", segment.options.raw_len()));
        }
        if segment.ip_len() > self.config.packets.mtu {
            wrong.push(format!("a packet of {} bytes", segment.ip_len()));
        }
        if self.wrong_checksum(seg, segment) {
            wrong.push("a checksum that is wrong, missing or not agreed upon (R12, R34)".into());
        }
        let syn = segment.flags.has(Flags::SYN);
        if syn != segment.options.mss.is_some() || !syn && segment.options.window_scale.is_some() {
            wrong.push("MSS or window scale belong on a SYN (R62, R64)".into());
        }
        let peer = self.peers.entry(seg.path).or_default();
        let reset = segment.flags.has(Flags::RST);
        if !reset && segment.options.timestamps.is_some() == peer.no_stamps {
            wrong.push("timestamps belong on all segments or none (R65)".into());
        }
        if !reset && !syn {
            if seg.ack < peer.last_ack {
                wrong.push(format!("ACK {} after {}", seg.ack, peer.last_ack));
            }
            peer.last_ack = seg.ack;
        }
        if let Some(dack) = seg.dack.filter(|_| !reset && !syn) {
            let whole = self
                .sent
                .first()
                .filter(|first| first.start == Dsn::ZERO)
                .map_or(0, |it| it.end.get());
            let most = whole + u64::from(self.data_fin == Some(whole));
            if dack > most {
                wrong.push(format!("DATA_ACK {dack}, but only {most} was sent (R36)"));
            }
            if dack < self.dack {
                wrong.push(format!("DATA_ACK {dack} after {} (R36)", self.dack));
            }
            self.dack = self.dack.max(dack);
            let scale = self.peers[&seg.path].own_shift(segment);
            let edge = dack + (u64::from(seg.win) << scale);
            // Rounding to the scale may move the edge back by less than one unit (RFC 7323 section
            // 2.4).
            if edge + (1 << scale) <= self.edge {
                wrong.push(format!("right edge {edge} after {} (R37)", self.edge));
            }
            self.edge = self.edge.max(edge);
        }
        if !wrong.is_empty() {
            self.fail(&format!("audit of {}: {}", line(seg), wrong.join("; ")));
        }
    }

    // Conversion between relative numbers and numbers on the wire.

    pub(crate) fn to_wire(&self, seg: &Seg) -> Segment {
        let peer = &self.peers[&seg.path];
        let payload = self.payload(seg);
        let sum = |dsn: u64, ssn: u32, len: u16| {
            let mut sum = Sum::of_mapping(self.key.idsn().plus(1).plus(dsn), ssn, len);
            sum.add_payload(&payload);
            let told = if len == 0 { 0 } else { sum.checksum() };
            self.sums.then_some(told)
        };
        let dss = (seg.dack.is_some() || seg.map.is_some()).then(|| {
            let first = self.key.idsn().0.wrapping_add(1);
            let remote = self.remote_key.map_or(0, |key| key.idsn().0.wrapping_add(1));
            let cut = |value: u64| if seg.long { value } else { value & 0xffff_ffff };
            Dss {
                data_ack: seg.dack.map(|dack| DataAck {
                    value: WireDsn(cut(remote.wrapping_add(dack))),
                    long: seg.long,
                }),
                mapping: seg.map.map(|(dsn, ssn, len)| Mapping {
                    dsn: WireDsn(cut(first.wrapping_add(dsn))),
                    long: seg.long,
                    ssn,
                    len,
                    checksum: sum(dsn, ssn, len),
                }),
                data_fin: seg.data_fin,
            }
        });
        let mut options = Options {
            mss: seg.mss,
            window_scale: seg.scale,
            sack_permitted: seg.sack_permitted,
            early_joins: seg.early_joins,
            timestamps: seg.stamps.map(|(value, echo)| Timestamps { value, echo }),
            dss,
            mptcp: seg.mptcp.clone().map(Box::new),
            ..Options::default()
        };
        for (left, right) in &seg.sack {
            options.sack.push(peer.irs.wrapping_add(*left), peer.irs.wrapping_add(*right));
        }
        if let Some(Mptcp::Capable(MpCapable { data_len: Some(len), checksum, .. })) =
            options.mptcp.as_deref_mut()
        {
            *checksum = sum(0, 1, *len);
        }
        let payload = if seg.edited { payload.edited(seg.len / 2) } else { payload };
        Segment {
            src_port: peer.port,
            dst_port: peer.remote_port,
            seq: peer.iss.wrapping_add(seg.seq),
            ack: if seg.flags.has(ACK) { peer.irs.wrapping_add(seg.ack) } else { 0 },
            flags: seg.flags,
            server: ServerAddress((seg.path / SERVER) as u8),
            window: seg.win,
            options,
            payload,
        }
    }

    fn payload(&self, seg: &Seg) -> Payload {
        match &seg.bytes {
            Some(bytes) => Payload::from_bytes(bytes),
            None if seg.len == 0 => Payload::Empty,
            None => {
                let mapped = |(dsn, ssn, _): (u64, u32, u16)| {
                    dsn.wrapping_add(u64::from(seg.seq.wrapping_sub(ssn)))
                };
                let told = seg.map.filter(|_| !seg.mptcp.as_ref().is_some_and(carries_first_data));
                let offset = told.map_or(u64::from(seg.seq) - 1, mapped);
                Payload::Pattern { offset, len: seg.len }
            }
        }
    }

    /// R12, R34: returns true if a mapping has a wrong checksum, or none, or one although checksums
    /// are not in use.
    fn wrong_checksum(&self, seg: &Seg, segment: &Segment) -> bool {
        let map = segment.options.dss.and_then(|dss| dss.mapping);
        let capable = match segment.options.mptcp.as_deref() {
            Some(Mptcp::Capable(it)) => it.data_len.map(|len| ((0, 1, len), it.checksum)),
            _ => None,
        };
        let told = seg.map.zip(map.map(|map| map.checksum)).or(capable);
        let Some(((dsn, ssn, len), checksum)) = told.filter(|told| told.0.2 > 0) else {
            return false;
        };
        let first = self.remote_key.map_or(0, |key| key.idsn().0.wrapping_add(1));
        let mut sum = Sum::of_mapping(WireDsn(first.wrapping_add(dsn)), ssn, len);
        sum.add_payload(&segment.payload);
        checksum != self.sums.then_some(sum.checksum())
    }

    pub(crate) fn read_wire(&mut self, path: u32, segment: &Segment) -> Seg {
        let options = &segment.options;
        let client = self.client;
        let peer = self.peers.entry(path).or_default();
        if segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::RST) {
            if client && !segment.flags.has(ACK) {
                let iss = 0x0fff_fff0 + (path << 28);
                let remote_port = segment.src_port;
                *peer = Peer { port: PORT, remote_port, iss, nonce: 78, ..Peer::default() };
            }
            (peer.irs, peer.rcv) = (segment.seq, 1);
            peer.remote_scale = options.window_scale.unwrap_or(0);
        }
        match options.mptcp.as_deref() {
            Some(Mptcp::Capable(it)) if it.sender_key.is_some() => self.remote_key = it.sender_key,
            Some(Mptcp::JoinSyn(it)) => peer.remote_nonce = it.nonce,
            Some(Mptcp::JoinSynAck(it)) => peer.remote_nonce = it.nonce,
            _ => {}
        }
        if let Some(stamps) = options.timestamps {
            peer.heard = stamps.value;
        }
        let (iss, irs) = (peer.iss, peer.irs);
        let (own, remote) = (self.key, self.remote_key.unwrap_or(Key(0)));
        let dsn = |key: Key, value: u64, long: bool, near: u64| {
            let first = key.idsn().0.wrapping_add(1);
            let low =
                Dsn::from_low((value as u32).wrapping_sub(first as u32), Dsn::new(near)).get();
            if long { value.wrapping_sub(first) } else { low }
        };
        let map = options.dss.and_then(|dss| dss.mapping);
        Seg {
            path,
            flags: segment.flags,
            seq: segment.seq.wrapping_sub(irs),
            ack: if segment.flags.has(ACK) { segment.ack.wrapping_sub(iss) } else { 0 },
            win: segment.window,
            len: segment.payload.len(),
            bytes: segment.payload.bytes().map(<[u8]>::to_vec),
            stamps: options.timestamps.map(|stamps| (stamps.value, stamps.echo)),
            mss: options.mss,
            scale: options.window_scale,
            sack_permitted: options.sack_permitted,
            early_joins: options.early_joins,
            sack: options
                .sack
                .as_slice()
                .iter()
                .map(|(l, r)| (l.wrapping_sub(iss), r.wrapping_sub(iss)))
                .collect(),
            dack: options
                .dss
                .and_then(|dss| dss.data_ack)
                .map(|ack| dsn(own, ack.value.0, ack.long, self.dack)),
            map: map.map(|map| (dsn(remote, map.dsn.0, map.long, self.data_rcv), map.ssn, map.len)),
            data_fin: options.dss.is_some_and(|dss| dss.data_fin),
            long: map.is_some_and(|map| map.long),
            mptcp: options.mptcp.as_deref().cloned(),
            edited: false,
        }
    }
}
