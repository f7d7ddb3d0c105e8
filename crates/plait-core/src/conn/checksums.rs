//! DSS checksums (RFC 8684 sections 3.1 and 3.3.1): agreed upon, written and verified, and what
//! follows where one is wrong (section 3.7).

use super::{Connection, Context};
use crate::data::verifier::{Checked, Noted, Verifier};
use crate::tcp::pending::Cause;
use alloc::boxed::Box;
use plait_base::{DataRange, Dsn, Ssn, SubflowRange};
use plait_wire::{Dss, Mapping, MpCapable, Mptcp, Payload, ResetReason, Segment, Sum};

impl Connection {
    /// The peer's SYN or SYN/ACK may ask for checksums too: either end's wish is both ends'.
    pub(super) fn agree_on_checksums(&mut self, syn: &Segment) {
        if let Some(Mptcp::Capable(capable)) = syn.options.mptcp.as_deref() {
            self.checksums |= capable.checksum_required;
        }
    }

    /// The checksum of our mapping of `data`, whose first byte has `seq`, where they are in use.
    pub(super) fn checksum(&self, data: DataRange, seq: Ssn, payload: &Payload) -> Option<u16> {
        self.checksums.then(|| self.sum(data, seq, payload))
    }

    #[inline(never)]
    fn sum(&self, data: DataRange, seq: Ssn, payload: &Payload) -> u16 {
        let dsn = self.keys.own.wire(data.start);
        let mut sum = Sum::of_mapping(dsn, seq.low(), data.len() as u16);
        sum.add_payload(payload);
        sum.checksum()
    }

    /// The checksum of our DATA_FIN alone: of the pseudo header only.
    pub(super) fn fin_checksum(&self) -> Option<u16> {
        let dsn = self.keys.own.wire(self.queue.written());
        self.checksums.then(|| Sum::of_mapping(dsn, 0, 1).checksum())
    }

    /// The DSN, as this end counts, that a mapping tells.
    pub(super) fn mapped_dsn(&self, map: &Mapping) -> Dsn {
        if map.long {
            self.keys.theirs.read(map.dsn)
        } else {
            self.keys.theirs.read_low(map.dsn as u32, self.recv.nxt())
        }
    }

    /// Whether a peer's DATA_FIN without data is what was sent.
    pub(super) fn fin_is_right(&self, dsn: Dsn, map: &Mapping) -> bool {
        let wire_dsn = self.keys.theirs.wire(dsn);
        let right = |told| Sum::of_mapping(wire_dsn, map.ssn, map.len).matches(told);
        !self.checksums || map.len != 1 || map.checksum.is_some_and(right)
    }

    /// The mapping that a segment tells, with its checksum.
    fn checked(&self, segment: &Segment, seq: Ssn) -> Option<Checked> {
        let (ssn, dsn, len, checksum, fin) = match segment.options.mptcp.as_deref() {
            Some(Mptcp::Capable(MpCapable { data_len: Some(len), checksum, .. })) => {
                (Ssn::FIRST, Dsn::ZERO, *len, (*checksum)?, false)
            }
            _ => {
                let Dss { mapping, data_fin, .. } = segment.options.dss?;
                let map = mapping?;
                (
                    Ssn::from_low(map.ssn, seq),
                    self.mapped_dsn(&map),
                    map.len,
                    map.checksum?,
                    data_fin,
                )
            }
        };
        // A DATA_FIN takes a DSN and no byte.
        let bytes = u64::from(len.checked_sub(u16::from(fin))?);
        let wire_dsn = self.keys.theirs.wire(dsn);
        dsn.checked_add(bytes)?;
        let seq = SubflowRange::new(ssn, ssn.checked_add(bytes)?);
        Some(Checked { seq, dsn, wire_dsn, len, checksum })
    }

    /// Where checksums are in use: the DSN of the payload by a mapping that has one. What has none
    /// is not taken.
    pub(super) fn checked_dsn(
        &mut self,
        ctx: &mut Context<'_>,
        index: usize,
        segment: &Segment,
        seq: Ssn,
    ) -> Option<Dsn> {
        let range = SubflowRange::with_len(seq, u64::from(segment.payload.len()));
        let told = self.checked(segment, seq);
        let subflow = &mut self.subflows[index];
        if subflow.rx.has(range) {
            // A repetition: what it is worth was decided before.
            return told.and_then(|told| told.dsn.checked_add(seq.checked_sub(told.seq.start)?));
        }
        let next = subflow.rx.nxt();
        let verifier = subflow.verifier.get_or_insert_with(|| Box::new(Verifier::new(next)));
        if let Some(told) = told
            && verifier.note(told) == Noted::Conflict
        {
            self.reset_subflow(ctx, index, Cause::Reason(ResetReason::Mptcp));
            return None;
        }
        verifier.dsn(range)
    }

    /// Data was taken in: is a checksum wrong?
    pub(super) fn on_verified(&mut self, ctx: &mut Context<'_>, index: usize) {
        let verifier = self.subflows[index].verifier.as_ref();
        if let Some(dsn) = verifier.and_then(|verifier| verifier.failed()) {
            self.on_wrong_checksum(ctx, index, dsn);
        }
    }
}
