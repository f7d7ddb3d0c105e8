//! Compares each outgoing segment with the earlier ones of its connection (`--check` only). It uses
//! the segments alone, not the internal state.

use crate::conn::Connection;
use crate::data::agreement::{Mode, dsn_in_step};
use crate::data::keys::FirstDsn;
use crate::segments::Transmit;
use crate::tcp::address::Address;
use crate::tcp::subflow::Subflow;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use plait_base::{DataRange, Dsn, RecvRange, RecvSsn};
use plait_wire::{Flags, Mptcp, Segment, WireSeq};

/// The values that one connection has sent so far.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    /// The peer's first DSN. A different one means a new connection.
    about: Option<FirstDsn>,
    plain: bool,
    /// The DATA_ACK (plain TCP: the acknowledgement), counted from the first byte of data.
    acked: Dsn,
    /// The right edge of the window.
    edge: Dsn,
    /// By subflow, first sequence number and initial one: the DSN that it was mapped to.
    mapped: BTreeMap<(Address, u32, u32), u32>,
    /// Data of the segment that is being processed.
    coming: Option<ArrivedData>,
    /// Data that arrived out of subflow order.
    arrived: Vec<ArrivedData>,
}

/// Data that arrived on a subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ArrivedData {
    address: Address,
    /// Its sequence numbers on the subflow.
    range: RecvRange,
    data: DataRange,
}

impl Audit {
    /// Checks an outgoing segment. Returns a description of the violation, if any.
    pub(crate) fn on_sent(&mut self, conn: &Connection, sent: &Transmit) -> Option<String> {
        let segment = &*sent.segment;
        if !segment.options.fits() {
            return Some(String::from("the options of a segment exceed 40 bytes"));
        }
        if segment.flags.has(Flags::SYN) || segment.flags.has(Flags::RST) {
            return None;
        }
        let address = |s: &&Subflow| {
            s.address().path() == sent.path
                && s.address().local_port == segment.src_port
                && s.address().remote_port == segment.dst_port
                && s.address().server() == segment.server
        };
        let subflow = conn.paths.subflows().iter().find(address)?;
        let about = (conn.data.keys().theirs, conn.data.plain());
        if (self.about, self.plain) != (Some(about.0), about.1) {
            *self = Audit { about: Some(about.0), plain: about.1, ..Audit::default() };
        }
        let acked = match conn.data.mode() {
            Mode::Multipath => {
                let told = segment.options.dss.and_then(|dss| dss.data_ack)?.value;
                conn.data.keys().theirs.read_low(told, self.acked)
            }
            _ => {
                let first = subflow.negotiated().irs.after_syn();
                Dsn::from_low(WireSeq(segment.ack).since(first), self.acked)
            }
        };
        let scale = subflow.negotiated().own_scale;
        let edge = acked + (u64::from(segment.window) << scale);
        if acked < self.acked {
            return Some(format!("DATA_ACK went back from {} to {acked}", self.acked));
        }
        // The scale may round the edge down (RFC 7323 section 2.4), and a field at its maximum
        // proves nothing.
        if edge + (1 << scale) <= self.edge && segment.window != u16::MAX {
            return Some(format!("the window's right edge went from {} to {edge}", self.edge));
        }
        (self.acked, self.edge) = (acked, self.edge.max(edge));
        self.mapping(subflow.address(), subflow.negotiated().iss.syn(), segment)
    }

    /// Notes the data of a segment before it is processed.
    pub(crate) fn before(&mut self, conn: &Connection, address: Address, segment: &Segment) {
        self.coming = None;
        let Some(subflow) = place(conn, address) else { return };
        let len = u64::from(segment.payload.len());
        let seq = subflow.negotiated().irs.read(WireSeq(segment.seq), subflow.rx().nxt());
        let Some(dsn) = meant(conn, subflow, segment, seq) else { return };
        let Some((end, data_end)) = seq.checked_add(len).zip(dsn.checked_add(len)) else { return };
        // A byte with the sequence number of the SYN is no data.
        let early = RecvSsn::FIRST.saturating_sub(seq).min(len);
        let range = RecvRange::new(seq + early, end);
        if !range.is_empty() && !subflow.rx().has(range) {
            let data = DataRange::new(dsn + early, data_end);
            self.coming = Some(ArrivedData { address, range, data });
        }
    }

    /// Checks the state after the segment was processed. Data acknowledged on a subflow must be
    /// held: delivered, or waiting for data before it.
    pub(crate) fn after(&mut self, conn: &Connection) -> Option<String> {
        // With checksums, data may wait for the rest of its mapping.
        if !conn.data.speaks_multipath()
            || conn.data.receives_plain()
            || conn.data.agreed().checksums()
        {
            self.arrived.clear();
            return None;
        }
        let taken =
            |it: &ArrivedData| place(conn, it.address).is_some_and(|s| s.rx().has(it.range));
        self.arrived.extend(self.coming.take().filter(taken));
        let mut lost = None;
        self.arrived.retain(|it| {
            let Some(subflow) = place(conn, it.address) else { return false };
            let acknowledged = subflow.rx().nxt() >= it.range.end;
            if acknowledged && !conn.data.reassembly().has(it.data) {
                lost = Some(it.data);
            }
            !acknowledged
        });
        lost.map(|data| format!("data {data:?} was acknowledged by its subflow and is not here"))
    }

    /// Checks that the same sequence numbers always carry the same data.
    fn mapping(&mut self, address: Address, iss: WireSeq, segment: &Segment) -> Option<String> {
        let map = segment.options.dss.and_then(|dss| dss.mapping)?;
        // An infinite mapping starts at an earlier byte.
        if segment.payload.is_empty() || map.len == 0 {
            return None;
        }
        let ssn = WireSeq(segment.seq).since(iss);
        let dsn = map.dsn.low();
        let before = *self.mapped.entry((address, iss.0, ssn)).or_insert(dsn);
        (before != dsn || map.ssn != ssn)
            .then(|| format!("subflow sequence {ssn} was mapped to {before}, now to {dsn}"))
    }
}

/// Returns the DSN that a segment maps the first byte of its payload to; `seq` is its sequence
/// number.
fn meant(conn: &Connection, subflow: &Subflow, segment: &Segment, seq: RecvSsn) -> Option<Dsn> {
    // If MP_CAPABLE marks the first data, a DSS in the same segment is ignored (RFC 8684 section
    // 3.1).
    if let Some(Mptcp::Capable(capable)) = segment.options.mptcp.as_deref()
        && capable.data_len.is_some()
        && !subflow.origin().join
    {
        return dsn_in_step(seq);
    }
    let map = segment.options.dss.and_then(|dss| dss.mapping).filter(|map| !map.long)?;
    let dsn = conn.data.keys().theirs.read_low(map.dsn, conn.data.reassembly().nxt());
    dsn.checked_add(seq.checked_sub(RecvSsn::from_low(map.ssn, seq))?)
}

/// Returns the subflow with an address.
fn place(conn: &Connection, address: Address) -> Option<&Subflow> {
    conn.paths.subflows().iter().find(|s| s.address() == address && s.state().synchronised())
}
