//! Mappings and their checksums, for sending and receiving (DSS: RFC 8684 sections 3.3.1 and 3.7).

use crate::config::{Config, JoinTiming};
use crate::data::agreement::{Mode, dsn_in_step};
use crate::data::level::DataLevel;
use crate::data::verifier::ChecksummedMapping;
use plait_base::{ByteRange, DataRange, Dsn, RecvRange, RecvSpace, RecvSsn, SendSsn, SubflowSpace};
use plait_wire::{DataAck, Dss, Mapping, MpCapable, Mptcp, Segment, Sum};

/// Bytes of MP_CAPABLE with data beyond a DSS: 24, and 20 (RFC 8684 sections 3.1 and 3.3).
pub(crate) const KEYS_OVER_DSS: u64 = 4;

/// A range of subflow sequence numbers and its data. A segment with a part of the range carried the
/// mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MappedRange<S: SubflowSpace> {
    pub(crate) seq: ByteRange<S>,
    pub(crate) dsn: Dsn,
}

impl DataLevel {
    /// Reads the peer's SYN or SYN/ACK. Both ends use checksums if either requests them, and early
    /// joins if both offer them.
    pub(crate) fn agree(&mut self, config: &Config, syn: &Segment) {
        let Some(Mptcp::Capable(capable)) = syn.options.mptcp.as_deref() else { return };
        self.agreed.on_checksum_request(capable.checksum_required);
        if syn.options.early_joins && config.joins.timing == JoinTiming::Agreed {
            self.agreed.on_early_joins();
        }
    }

    /// Returns the checksum of our mapping of `data`.
    #[inline(never)]
    pub(crate) fn sum(&self, data: DataRange, seq: SendSsn) -> u16 {
        let dsn = self.keys.own.wire(data.start);
        let mut sum = Sum::of_mapping(dsn, seq.low(), data.len() as u16);
        sum.add_payload(&self.queue.payload(data));
        sum.checksum()
    }

    /// Returns the checksum of our mapping of `data`, whose first byte has `seq`, if checksums are
    /// in use.
    pub(crate) fn checksum(&self, data: DataRange, seq: SendSsn) -> Option<u16> {
        self.agreed.checksums().then(|| self.sum(data, seq))
    }

    /// Returns the checksum of a DATA_FIN without data, which covers the pseudo header only.
    pub(crate) fn fin_checksum(&self) -> Option<u16> {
        let dsn = self.keys.own.wire(self.queue.written());
        self.agreed.checksums().then(|| Sum::of_mapping(dsn, 0, 1).checksum())
    }

    /// Returns the DSN of a mapping in our own numbers.
    pub(crate) fn mapped_dsn(&self, map: &Mapping) -> Dsn {
        self.keys.theirs.read_field(map.dsn, map.long, self.recv.nxt())
    }

    /// Returns true if the checksum of a peer's DATA_FIN without data is correct.
    pub(crate) fn fin_is_right(&self, dsn: Dsn, map: &Mapping) -> bool {
        let wire_dsn = self.keys.theirs.wire(dsn);
        let right = |told| Sum::of_mapping(wire_dsn, map.ssn, map.len).matches(told);
        !self.agreed.checksums() || map.len != 1 || map.checksum.is_some_and(right)
    }

    /// Returns the mapping of a segment, with its checksum.
    pub(crate) fn checked(&self, segment: &Segment, seq: RecvSsn) -> Option<ChecksummedMapping> {
        let (ssn, dsn, len, checksum, fin) = match segment.options.mptcp.as_deref() {
            Some(Mptcp::Capable(MpCapable { data_len: Some(len), checksum, .. })) => {
                (RecvSsn::FIRST, Dsn::ZERO, *len, (*checksum)?, false)
            }
            _ => {
                let Dss { mapping, data_fin, .. } = segment.options.dss?;
                let map = mapping?;
                (
                    RecvSsn::from_low(map.ssn, seq),
                    self.mapped_dsn(&map),
                    map.len,
                    map.checksum?,
                    data_fin,
                )
            }
        };
        // A DATA_FIN uses one DSN and no byte.
        let bytes = u64::from(len.checked_sub(u16::from(fin))?);
        let wire_dsn = self.keys.theirs.wire(dsn);
        dsn.checked_add(bytes)?;
        let seq = RecvRange::new(ssn, ssn.checked_add(bytes)?);
        Some(ChecksummedMapping { seq, dsn, wire_dsn, len, checksum })
    }

    /// Returns a mapping in our own numbers. `seq` is the start of the segment that carries it. A
    /// DATA_FIN in it (`fin`) counts in its length and uses a DSN, but no byte of the subflow (RFC
    /// 8684 section 3.3.3).
    pub(crate) fn read_mapping(
        &self,
        map: &Mapping,
        fin: bool,
        seq: RecvSsn,
    ) -> Option<MappedRange<RecvSpace>> {
        let dsn = self.mapped_dsn(map);
        let start = RecvSsn::from_low(map.ssn, seq);
        let bytes = u64::from(map.len).checked_sub(u64::from(fin))?;
        let end = start.checked_add(bytes)?;
        Some(MappedRange { seq: RecvRange::new(start, end), dsn })
    }

    /// Adds our DATA_FIN to a segment without payload.
    pub(crate) fn tell_data_fin(&self, segment: &mut Segment) {
        let dsn = self.keys.own.wire(self.queue.written());
        let checksum = self.fin_checksum();
        let dss = segment.options.dss.get_or_insert_default();
        // Alone, the DATA_FIN has SSN 0 and length 1 (RFC 8684 section 3.3.3).
        dss.mapping =
            Some(Mapping { dsn: dsn.field(false), long: false, ssn: 0, len: 1, checksum });
        dss.data_fin = true;
        segment.options.mptcp = None;
        segment.options.give_way();
    }

    /// Returns the DSN up to which a segment acknowledges data, if it does.
    pub(crate) fn acknowledged_data(&self, segment: &Segment, ack: SendSsn) -> Option<Dsn> {
        match self.agreed.mode() {
            // In plain TCP, sequence numbers and DSNs run in step; the FIN has no DSN. An
            // acknowledgement below our first byte is ignored.
            _ if self.sends_plain() => Some(dsn_in_step(ack)?.min(self.queue.nxt())),
            Mode::Multipath | Mode::Plain => {
                let data_ack = segment.options.dss.as_ref()?.data_ack?;
                let own = self.keys.own;
                Some(own.read_field(data_ack.value, data_ack.long, self.queue.una()))
            }
            Mode::Offered => None,
        }
    }

    /// Returns true if a segment with this mapping has a DSS.
    #[inline(always)]
    pub(crate) fn tells_dss(&self, mapping: Option<DataRange>) -> bool {
        self.agreed.mode() == Mode::Multipath && !(self.receives_plain() && mapping.is_none())
    }

    /// Returns the DSS of a segment: the DATA_ACK, and the mapping of data from a sequence number
    /// on. `long` numbers have 64 bits.
    #[inline(always)]
    pub(crate) fn dss(
        &self,
        long: bool,
        mapping: Option<(SendSsn, DataRange)>,
        checksum: Option<u16>,
    ) -> Dss {
        let data_ack = self.keys.theirs.wire(self.recv.nxt());
        let data_ack = DataAck { value: data_ack.field(long), long };
        Dss {
            data_ack: (!self.receives_plain()).then_some(data_ack),
            mapping: mapping.map(|(seq, range)| Mapping {
                dsn: self.keys.own.wire(range.start).field(long),
                long,
                ssn: seq.low(),
                len: range.len() as u16,
                checksum,
            }),
            data_fin: false,
        }
    }
}
