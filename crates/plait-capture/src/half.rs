//! One direction of a subflow: the data of one end and the acknowledgements of the other.

use crate::histogram::Histogram;
use crate::mappings::{Map, MappedTo, Mappings};
use crate::packet::Seen;
use crate::sequence::{Coverage, News, Positions};
use crate::trains::Trains;
use plait_wire::{DataAck, Flags, Mapping, SackBlocks};
use std::collections::VecDeque;

/// Largest number of records of unacknowledged data. Beyond it, the oldest is dropped, without an RTT sample.
const MAX_OUTSTANDING: usize = 65_536;
/// Number of time stamps that are kept.
const MAX_STAMPS: usize = 1_024;
/// Largest shift of a window (RFC 7323 section 2.3).
const MAX_SHIFT: u8 = 14;
/// Least window in bytes for the check of sequence numbers: the largest one without a scale.
const LEAST_WINDOW: i64 = 65_535;
/// The window for this check if the capture shows none, in bytes.
const UNKNOWN_WINDOW: i64 = 1 << 27;
/// A gap that is filled within this part of the RTT is reordering (RFC 8985 uses a quarter, and adapts it).
const REORDERING_PART: i64 = 2;

/// Counts of one direction.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Counts {
    /// Segments with payload.
    pub(crate) segments: u64,
    /// Payload bytes, retransmissions included.
    pub(crate) bytes: u64,
    /// Payload bytes that the capture has for the first time.
    pub(crate) fresh_bytes: u64,
    /// Segments with bytes that the capture has already.
    pub(crate) retransmitted_segments: u64,
    /// Bytes that the capture has already.
    pub(crate) retransmitted_bytes: u64,
    /// Segments that filled a gap late: their first copy was lost before the capture.
    pub(crate) lost_before_segments: u64,
    /// Segments that filled a gap early: the network changed their order.
    pub(crate) reordered_segments: u64,
    /// Acknowledgements that report a second copy (RFC 2883).
    pub(crate) duplicate_reports: u64,
    /// Bytes that were acknowledged and are not in the capture.
    pub(crate) unseen_bytes: u64,
    /// Segments with payload far outside the receive window, which do not count.
    pub(crate) stray_segments: u64,
}

/// Data that is on its way.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    end: i64,
    at_ns: i64,
    /// Sent more than once, so its acknowledgement gives no RTT (Karn's rule).
    again: bool,
}

/// The window scale option of a SYN (RFC 7323 section 2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scale {
    /// The SYN has no such option, so neither end scales its windows.
    Absent,
    Shift(u8),
}

/// A segment with payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// Position of the first byte; the SYN has position zero.
    pub(crate) start: i64,
    /// Position after the last byte.
    pub(crate) end: i64,
    pub(crate) news: News,
    /// None if no mapping covers it.
    pub(crate) mapped: Option<MappedTo>,
    /// True if it fills a gap so late that its first copy was lost before the capture.
    pub(crate) lost_before: bool,
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    /// Position of the next byte that the receiver expects.
    pub(crate) ack: i64,
    /// Bytes that the receiver has, beyond gaps too.
    pub(crate) delivered: i64,
    /// RTT sample in nanoseconds.
    pub(crate) rtt_ns: Option<i64>,
    /// Time from a clock value of this end to its echo, in nanoseconds.
    pub(crate) echo_ns: Option<i64>,
    /// Receive window in bytes; none if its scale is unknown. Zero is zero in every scale.
    pub(crate) window: Option<u64>,
    pub(crate) data_ack: Option<DataAck>,
}

/// How a direction counts.
#[derive(Clone, Default, Debug)]
struct Numbering {
    positions: Option<Positions>,
    /// True if the SYN is in the capture.
    began: bool,
    /// Subflow sequence number at position zero, if the SYN is not in the capture.
    ssn_shift: Option<u32>,
}

/// How far from the earlier data a segment may be.
#[derive(Clone, Copy, Default, Debug)]
struct Reach {
    /// Largest window of the receiver in bytes; none if the capture shows none.
    window: Option<i64>,
    /// The latest segment beyond the reach: the number of its packet, and the position after it.
    beyond: Option<(u64, i64)>,
}

impl Reach {
    /// Returns true if a segment from `start` up to `end` has a damaged number. `acked` and `next` are the ends of the
    /// acknowledged data and of all data before it.
    ///
    /// Packets may be missing in the capture, so two windows are allowed. Beyond them, a second packet that continues
    /// the first one shows that both are right.
    fn is_stray(
        &mut self,
        number: u64,
        (start, end): (i64, i64),
        (acked, next): (i64, i64),
    ) -> bool {
        let window = self.window.map_or(UNKNOWN_WINDOW, |window| window.max(LEAST_WINDOW));
        if start - next <= 2 * window {
            // A late copy may be far behind.
            return acked - start > 2 * UNKNOWN_WINDOW;
        }
        let continues = |(packet, at): (u64, i64)| packet != number && at == start && end > start;
        if self.beyond.is_some_and(continues) {
            self.beyond = None;
            return false;
        }
        self.beyond = Some((number, end));
        true
    }
}

/// Times and rates of a direction.
#[derive(Clone, Default, Debug)]
pub(crate) struct Samples {
    /// Time from data to its acknowledgement, in nanoseconds.
    pub(crate) ack_times: Histogram,
    /// Time from this end's clock value to its echo, in nanoseconds.
    pub(crate) echo_times: Histogram,
    /// Rate at which the capture has its data.
    pub(crate) arrivals: Trains,
    /// Rate at which the other end reports it.
    pub(crate) deliveries: Trains,
}

/// One direction of a subflow.
#[derive(Clone, Default, Debug)]
pub(crate) struct Half {
    numbering: Numbering,
    reach: Reach,
    /// Scale of this end's windows, as its SYN offers it; none if the capture does not show it.
    pub(crate) scale: Option<Scale>,
    pub(crate) mss: Option<u16>,
    pub(crate) seen: Coverage,
    /// Position of the next byte that the receiver expects.
    pub(crate) acked: i64,
    /// Data that the receiver reported: by cumulative and by selective acknowledgements.
    reported: Coverage,
    /// Bytes of it.
    delivered: i64,
    outstanding: VecDeque<Outstanding>,
    mappings: Mappings,
    /// Clock values that this end sent first, and when.
    stamps: VecDeque<(u32, i64)>,
    pub(crate) counts: Counts,
    pub(crate) samples: Samples,
    /// Position of the FIN.
    fin: Option<i64>,
    /// Largest payload of a segment of at most an MSS, in bytes.
    pub(crate) max_payload: u32,
}

impl Half {
    /// Takes a segment of this end. Returns its data.
    pub(crate) fn on_sent(&mut self, seen: &Seen, rtt_ns: Option<i64>) -> Option<Sent> {
        let segment = &seen.segment;
        if let Some(clock) = segment.options.timestamps
            && self.stamps.back().is_none_or(|(last, _)| clock.value.wrapping_sub(*last) as i32 > 0)
        {
            if self.stamps.len() >= MAX_STAMPS {
                self.stamps.pop_front();
            }
            self.stamps.push_back((clock.value, seen.at_ns));
        }
        let syn = segment.flags.has(Flags::SYN);
        if syn {
            let offered = segment.options.window_scale;
            let offered = offered.map(|shift| Scale::Shift(shift.min(MAX_SHIFT)));
            self.scale = offered.or((!seen.cut).then_some(Scale::Absent)).or(self.scale);
            self.mss = segment.options.mss;
            if !self.numbering.began {
                self.numbering.positions = Some(Positions::new(segment.seq));
                self.numbering.began = true;
                self.seen.begin(1);
            }
        }
        let positions =
            self.numbering.positions.get_or_insert(Positions::new(segment.seq.wrapping_sub(1)));
        let start = positions.of(segment.seq) + i64::from(syn);
        let end = start + i64::from(seen.payload);
        self.seen.begin(start);
        let ends = (self.acked, self.seen.next());
        if self.reach.is_stray(seen.number, (start, end), ends) {
            self.counts.stray_segments += u64::from(seen.payload > 0);
            return None;
        }
        positions.follow(segment.seq);
        let mapping = segment.options.dss.and_then(|dss| dss.mapping);
        if let Some(mapping) = mapping.filter(|mapping| mapping.len > 0) {
            self.keep(mapping, start);
        }
        if seen.payload <= u32::from(self.mss.unwrap_or(1_460)) {
            self.max_payload = self.max_payload.max(seen.payload);
        }
        if segment.flags.has(Flags::FIN) {
            self.fin = Some(end);
        }
        // A keep-alive repeats at most the last byte.
        if seen.payload == 0 || (seen.payload == 1 && end == self.seen.next() && end <= self.acked)
        {
            return None;
        }
        let news = self.seen.add(start, end, seen.at_ns);
        let reordering = rtt_ns.unwrap_or(0) / REORDERING_PART;
        let lost_before = news.filled > 0 && news.gap_age > reordering.max(1_000_000);
        self.count(seen.payload, news, lost_before);
        self.remember(start, end, news, seen.at_ns);
        self.samples.arrivals.add(seen.at_ns, news.fresh + news.filled, None);
        Some(Sent { start, end, news, mapped: self.mapped(start), lost_before })
    }

    /// Maps the data from position 1 to `len` as the MP_CAPABLE of the first data does.
    pub(crate) fn map_first(&mut self, dsn: u64, len: u16) {
        self.mappings.push(Map { start: 1, len: i64::from(len), dsn, long: true });
    }

    fn keep(&mut self, mapping: Mapping, start: i64) {
        let position = if self.numbering.began {
            start + i64::from(mapping.ssn.wrapping_sub(start as u32) as i32)
        } else {
            let shift =
                *self.numbering.ssn_shift.get_or_insert(mapping.ssn.wrapping_sub(start as u32));
            start + i64::from(mapping.ssn.wrapping_sub(shift).wrapping_sub(start as u32) as i32)
        };
        self.mappings.push(Map {
            start: position,
            len: i64::from(mapping.len),
            dsn: mapping.dsn.0,
            long: mapping.long,
        });
    }

    /// Returns the data sequence number of a position, by the latest mapping that covers it.
    pub(crate) fn mapped(&self, position: i64) -> Option<MappedTo> {
        self.mappings.find(position)
    }

    /// Returns true if `number` is that of this end's SYN; none if the capture lacks the SYN.
    pub(crate) fn is_isn(&self, number: u32) -> Option<bool> {
        let positions = self.numbering.positions.filter(|_| self.numbering.began);
        positions.map(|positions| positions.is_first(number))
    }

    /// Returns true if a part of a segment of this end is not acknowledged.
    pub(crate) fn is_unacked(&self, seen: &Seen) -> bool {
        let Some(positions) = self.numbering.positions else { return true };
        let len = i64::from(seen.payload) + i64::from(seen.segment.flags.has(Flags::SYN));
        positions.of(seen.segment.seq) + len > self.acked
    }

    /// Returns true if an acknowledgement of the other end is the latest one or beyond it.
    pub(crate) fn is_acked_again(&self, ack: u32) -> bool {
        let positions = self.numbering.positions;
        positions.is_none_or(|it| self.without_fin(it.of(ack)) >= self.acked)
    }

    /// Returns the position of an acknowledgement without the sequence number of the FIN.
    fn without_fin(&self, ack: i64) -> i64 {
        self.fin.map_or(ack, |fin| ack.min(fin.max(self.seen.next())))
    }

    /// Returns true if there was a mapping.
    pub(crate) fn was_mapped(&self) -> bool {
        !self.mappings.is_empty()
    }

    fn count(&mut self, payload: u32, news: News, lost_before: bool) {
        let counts = &mut self.counts;
        counts.segments += 1;
        counts.bytes += u64::from(payload);
        counts.fresh_bytes += news.fresh + news.filled;
        counts.retransmitted_bytes += news.again;
        if news.again > 0 {
            counts.retransmitted_segments += 1;
        } else if lost_before {
            counts.lost_before_segments += 1;
        } else if news.filled > 0 {
            counts.reordered_segments += 1;
        }
    }

    fn remember(&mut self, start: i64, end: i64, news: News, at_ns: i64) {
        let again = news.again + news.filled > 0;
        if again {
            let from = self.outstanding.partition_point(|it| it.end <= start);
            let sent_again = self.outstanding.iter_mut().skip(from);
            sent_again.take_while(|it| it.end <= end).for_each(|it| it.again = true);
        }
        if news.fresh > 0 {
            self.outstanding.push_back(Outstanding { end, at_ns, again });
            if self.outstanding.len() > MAX_OUTSTANDING {
                self.outstanding.pop_front();
            }
        }
    }

    /// Returns unused memory.
    pub(crate) fn shrink(&mut self) {
        self.outstanding.shrink_to_fit();
        self.mappings.shrink();
        self.stamps.shrink_to_fit();
    }

    /// Returns true if a FIN was seen.
    pub(crate) const fn has_ended(&self) -> bool {
        self.fin.is_some()
    }

    /// Takes an acknowledgement of the other end, whose windows have the shift `scale`; none if it is unknown.
    pub(crate) fn on_acked(&mut self, seen: &Seen, scale: Option<u8>) -> Option<Acked> {
        let segment = &seen.segment;
        let positions = self.numbering.positions?;
        let clock = segment.options.timestamps;
        let echo_ns = clock.and_then(|clock| self.on_echo(clock.echo, seen.at_ns));
        let ack = positions.of(segment.ack);
        // An acknowledgement far beyond all data belongs to an earlier connection of these ports.
        if ack > self.seen.next() + (1 << 30) {
            return None;
        }
        let mut news = self.sacked(&segment.options.sack, ack);
        let ack = self.without_fin(ack);
        self.counts.unseen_bytes += self.unseen(ack);
        let mut rtt_ns = None;
        if ack > self.acked {
            self.reported.begin(1);
            let added = self.reported.add(self.acked.max(1), ack, seen.at_ns);
            news += added.fresh + added.filled;
            self.acked = ack;
            rtt_ns = self.release(seen.at_ns);
        }
        let sent_ns = rtt_ns.map(|rtt| seen.at_ns - rtt);
        self.samples.deliveries.add(seen.at_ns, news, sent_ns);
        self.delivered += news as i64;
        let is_exact = segment.flags.has(Flags::SYN) || segment.window == 0;
        let shift = if is_exact { Some(0) } else { scale };
        let window = shift.map(|shift| u64::from(segment.window) << shift);
        // Without a scale, an exact window may be a small part of the others.
        let known = window.filter(|_| scale.is_some()).map(|window| window as i64);
        self.reach.window = self.reach.window.max(known);
        Some(Acked {
            ack: self.acked,
            delivered: self.delivered,
            rtt_ns,
            echo_ns,
            window,
            data_ack: segment.options.dss.and_then(|dss| dss.data_ack),
        })
    }

    /// Returns the number of bytes below `ack` that the capture does not have.
    fn unseen(&mut self, ack: i64) -> u64 {
        if ack <= self.acked { 0 } else { self.seen.acknowledge(ack) }
    }

    /// Removes acknowledged data from the records. Returns an RTT sample.
    fn release(&mut self, at_ns: i64) -> Option<i64> {
        let (mut last, mut again) = (None, false);
        while let Some(first) = self.outstanding.front().copied() {
            if first.end > self.acked {
                break;
            }
            self.outstanding.pop_front();
            again |= first.again;
            last = Some(at_ns - first.at_ns);
        }
        let sample = last.filter(|sample| !again && *sample > 0)?;
        self.samples.ack_times.add(sample as f64);
        Some(sample)
    }

    /// Returns the bytes beyond `ack` that SACK blocks report for the first time, and counts duplicates.
    fn sacked(&mut self, blocks: &SackBlocks, ack: i64) -> u64 {
        let Some(positions) = &self.numbering.positions else { return 0 };
        let mut sum = 0;
        for (nth, (left, right)) in blocks.as_slice().iter().enumerate() {
            let (left, right) = (positions.of(*left), positions.of(*right));
            if nth == 0 && left < ack {
                self.counts.duplicate_reports += 1;
            } else if left >= ack && right > left && right <= self.seen.next() {
                self.reported.begin(self.acked.max(1));
                let added = self.reported.add(left, right, 0);
                sum += added.fresh + added.filled;
            }
        }
        sum
    }

    /// Takes the echo of a clock value of this end. Returns the time since the value was sent first.
    fn on_echo(&mut self, echo: u32, at_ns: i64) -> Option<i64> {
        while let Some((value, sent)) = self.stamps.front().copied() {
            match echo.wrapping_sub(value) as i32 {
                ..0 => return None,
                0 => {
                    self.stamps.pop_front();
                    self.samples.echo_times.add((at_ns - sent) as f64);
                    return Some(at_ns - sent);
                }
                _ => drop(self.stamps.pop_front()),
            }
        }
        None
    }
}
