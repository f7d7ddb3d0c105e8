//! Segments that a device cuts into full ones (TSO): new data that a subflow was granted at once.
//!
//! Each full segment has its own place in the ring, so windows and recovery know nothing of
//! superpackets. Only the mapping is one for all, and so is its checksum, since the device copies the
//! options; it is told again beside whatever of it is sent again, for Linux refuses a narrower one
//! within it.

use super::segments::Transmit;
use super::timeouts::Awaited;
use super::{Connection, Context};
use crate::event::{Carry, Event};
use crate::tcp::mappings::SuperpacketMapping;
use crate::tcp::subflow::MappedRange;
use plait_base::{DataRange, Dsn, Ssn, SubflowId, SubflowRange};
use plait_wire::{Flags, Mapping, Segment};

impl Connection {
    /// Whether more may go with `first`, which is new data for the subflow at `index`.
    #[inline(always)]
    pub(super) fn may_grow(&mut self, index: usize, first: DataRange) -> bool {
        self.spec.config.superpacket > 0 && self.is_plain_data(index, first)
    }

    /// Whether it goes with a mapping of its own, or without any, and no other option beside it.
    fn is_plain_data(&mut self, index: usize, first: DataRange) -> bool {
        let full = first.len() == self.scheduling.segment_size() && first.start > Dsn::ZERO;
        let config = &self.spec.config;
        let counted = config.tsq || config.pacing.is_some();
        full && !counted && !self.has_ack_option(index) && !self.tells_infinite(index)
    }

    /// Sends `first` and as much of what follows as the subflow has been granted.
    #[inline(never)]
    pub(super) fn send_superpacket(
        &mut self,
        ctx: &mut Context<'_>,
        index: usize,
        first: DataRange,
    ) -> Transmit {
        let id = SubflowId(index as u8);
        let cut = first.len();
        let most =
            u64::from(self.spec.config.superpacket).min(self.queue.in_one_piece(first.start));
        let seq = self.note_sent(ctx, index, first);
        if !self.timers.is_set(Awaited::Retransmission) {
            self.timers.arm_retransmission(ctx.now, self.longest_rto());
        }
        let mut data = first;
        while data.len() + cut <= most
            && self.queue.first_unsent(cut) == Some(DataRange::with_len(data.end, cut))
            && self.take_granted_to(ctx, id)
            && let Some(next) = self.queue.take_new(0, cut, id)
        {
            self.note_sent(ctx, index, next);
            data.end = next.end;
        }
        let payload = self.queue.payload(data);
        let mapping = (!self.sends_plain()).then_some(data);
        let segment = self.build_segment(ctx, index, seq, Flags::PSH, payload, mapping);
        let subflow = &mut self.subflows[index];
        if data.len() > cut
            && let Some(told) = segment.options.dss.and_then(|dss| dss.mapping)
        {
            let seq = SubflowRange::with_len(seq, data.len());
            let mapping = SuperpacketMapping {
                mapped: MappedRange { seq, dsn: data.start },
                checksum: told.checksum,
            };
            subflow.mappings.get_or_insert_default().push(mapping);
        }
        Transmit { path: subflow.address.path(), segment, report: None, cut: cut as u16 }
    }

    /// A full segment goes out for the first time. Gives its sequence number.
    fn note_sent(&mut self, ctx: &mut Context<'_>, index: usize, data: DataRange) -> Ssn {
        let (subflow, mss) = (SubflowId(index as u8), self.mss());
        ctx.emit(Event::DataSent { subflow, data, carry: Carry::New });
        self.scheduling.on_sent(subflow);
        self.subflows[index].on_sent(ctx.now, data.start, data.len() as u32, false, mss)
    }

    /// Where what starts at `seq` was part of a superpacket, its mapping is told again.
    pub(super) fn repeat_superpacket_mapping(&self, index: usize, seq: Ssn, segment: &mut Segment) {
        if let Some(SuperpacketMapping { mapped, checksum }) =
            self.subflows[index].mappings.as_ref().and_then(|it| it.find(seq))
            && let Some(dss) = &mut segment.options.dss
            && let Some(mapping) = dss.mapping.filter(|mapping| mapping.len > 0)
        {
            dss.mapping = Some(Mapping {
                dsn: self.keys.own.wire(mapped.dsn) & 0xffff_ffff,
                ssn: mapped.seq.start.low(),
                len: mapped.seq.len() as u16,
                checksum,
                ..mapping
            });
        }
    }
}
