//! Samples of the delivery rate for controllers that set a pacing rate (draft-ietf-ccwg-bbr section 4.1).
//! Each sending of a segment has a record until the segment is acknowledged or sent again.

use crate::tcp::send::{Departure, Sent, SentState, TxRing};
use alloc::collections::VecDeque;
use plait_base::{SendSsn, Span, Time, reserve_ahead};

/// A shorter time without data to send is not noticed. The clock of a live host advances between an
/// acknowledgement and the sending that it permits.
const UNNOTICED: Span = Span::from_millis(1);

/// The state when a segment was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    seq: SendSsn,
    departure: Departure,
    /// Totals of delivered and lost bytes.
    pub(crate) delivered: u64,
    lost: u64,
    delivered_at: Time,
    /// When the segment was sent that had been delivered last.
    first_sent: Time,
    /// Bytes in flight, this segment included.
    pub(crate) inflight: u64,
    pub(crate) app_limited: bool,
    /// It was marked as lost.
    is_lost: bool,
}

/// A sample of the delivery rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// The state when the sampled segment was sent.
    pub(crate) sent: Record,
    /// Bytes per second; 0 if it cannot be known.
    pub(crate) rate: u64,
    /// Bytes lost since.
    pub(crate) lost: u64,
}

/// A segment that was marked as lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss {
    pub(crate) len: u64,
    pub(crate) sent: Record,
    /// Bytes lost since it was sent, itself included.
    pub(crate) lost: u64,
    /// It does not follow the segment lost before it.
    pub(crate) apart: bool,
}

/// The records of a subflow, and its totals.
#[derive(Debug)]
pub(crate) struct RateSamples {
    /// In the order of sending.
    records: VecDeque<Record>,
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    lost: u64,
    lost_to: SendSsn,
    /// The total of delivered bytes at which the path has no more gap from a sender without data; 0 if there
    /// is none.
    app_limited: u64,
    /// Since then window and pacing have let a segment be sent; [`Time::NEVER`] if they do not.
    free_since: Time,
}

impl RateSamples {
    pub(crate) fn new() -> RateSamples {
        RateSamples {
            records: VecDeque::new(),
            delivered: 0,
            delivered_at: Time::ZERO,
            first_sent: Time::ZERO,
            lost: 0,
            lost_to: SendSsn::ZERO,
            app_limited: 0,
            free_since: Time::NEVER,
        }
    }

    /// Returns the total of delivered bytes.
    pub(crate) const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Notes at `now`, before data is sent with `inflight` bytes in flight, whether the sender had a time
    /// without data. Returns true if data in flight was sent after such a time.
    pub(crate) fn before_send(&mut self, now: Time, inflight: u64) -> bool {
        if self.free_since != Time::NEVER && now.since(self.free_since) > UNNOTICED {
            self.limit(inflight);
        }
        if inflight == 0 {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        self.app_limited != 0
    }

    /// Marks the samples of the data in flight and of the next data as lower bounds.
    pub(crate) fn limit(&mut self, inflight: u64) {
        self.app_limited = (self.delivered + inflight).max(1);
    }

    /// Notes a sent segment; `inflight` includes it.
    pub(crate) fn on_sent(&mut self, seq: SendSsn, departure: Departure, inflight: u64) {
        reserve_ahead(&mut self.records, 256);
        self.records.push_back(Record {
            seq,
            departure,
            delivered: self.delivered,
            lost: self.lost,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            inflight,
            app_limited: self.app_limited != 0,
            is_lost: false,
        });
    }

    /// Notes whether window and pacing let a segment be sent at `now`.
    pub(crate) fn note_room(&mut self, now: Time, room: bool) {
        self.free_since = if room { self.free_since.min(now) } else { Time::NEVER };
    }

    /// Notes that no earlier time counts as one without data.
    pub(crate) fn forget_room(&mut self) {
        self.free_since = Time::NEVER;
    }

    /// Returns the index of the record of a sending. If the segment was cut since, its record covers more.
    fn find(&self, sent: &Sent) -> Option<usize> {
        let wanted = sent.departure();
        let at = self.records.partition_point(|it| it.departure.at < wanted.at);
        let same = self.records.range(at..).take_while(|it| it.departure.at == wanted.at);
        let mut covering =
            same.enumerate().filter(|(_, it)| it.seq <= sent.seq && sent.end() <= it.departure.end);
        covering.next().map(|(offset, _)| at + offset)
    }

    /// Adds `bytes` to the delivered ones.
    pub(crate) fn on_delivered(&mut self, now: Time, bytes: u64) {
        self.delivered += bytes;
        self.delivered_at = now;
        if self.app_limited != 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
    }

    /// Returns the sample of an acknowledgement whose newest delivered segment is `newest`.
    pub(crate) fn sample(&mut self, now: Time, newest: &Sent, min_rtt: Span) -> Option<Sample> {
        let sent = self.records.get(self.find(newest)?).copied()?;
        let sending = newest.sent_at.since(sent.first_sent);
        let interval = sending.max(now.since(sent.delivered_at));
        self.first_sent = newest.sent_at;
        let bytes = self.delivered - sent.delivered;
        // An acknowledgement of an earlier sending would give too high a rate.
        let rate = match interval.as_nanos() {
            nanos if nanos == 0 || interval < min_rtt => 0,
            nanos => u128::from(bytes) * 1_000_000_000 / u128::from(nanos),
        };
        let rate = u64::try_from(rate).unwrap_or(u64::MAX);
        Some(Sample { sent, rate, lost: self.lost - sent.lost })
    }

    /// Returns the next segment of `tx` that was marked as lost since the last call, from `seq` on.
    pub(crate) fn next_loss(&mut self, tx: &TxRing, seq: SendSsn) -> Option<(Loss, SendSsn)> {
        for sent in tx.lost_from(seq) {
            let Some(index) = self.find(sent).filter(|index| !self.records[*index].is_lost) else {
                continue;
            };
            let len = u64::from(sent.len);
            self.lost += len;
            let record = &mut self.records[index];
            record.is_lost = sent.end() == record.departure.end;
            let apart = self.lost_to != sent.seq;
            self.lost_to = sent.end();
            let loss = Loss { len, sent: *record, lost: self.lost - record.lost, apart };
            return Some((loss, sent.end()));
        }
        None
    }

    /// Drops the oldest records of segments that are delivered or were sent again.
    pub(crate) fn drop_old(&mut self, tx: &TxRing) {
        while let Some(oldest) = self.records.front() {
            let sent = tx.at_or_above(oldest.seq).filter(|sent| sent.seq < oldest.departure.end);
            let waits = |sent: &Sent| {
                sent.state != SentState::Sacked && sent.sent_at == oldest.departure.at
            };
            if oldest.departure.end > tx.una() && sent.is_some_and(waits) {
                break;
            }
            self.records.pop_front();
        }
    }

    /// Frees the memory of the records if there are none.
    pub(crate) fn give_back(&mut self, tx: &TxRing) {
        if tx.is_empty() {
            self.records = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use plait_base::Dsn;

    /// Segments of 1,000 bytes.
    struct Flow {
        tx: TxRing,
        samples: RateSamples,
    }

    fn ms(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    impl Flow {
        fn new() -> Flow {
            let mut tx = TxRing::new();
            tx.syn_acked();
            Flow { tx, samples: RateSamples::new() }
        }

        /// Sends the next segment at `at`. Returns true if its sample will be a lower bound.
        fn send(&mut self, at: Time) -> bool {
            let limited = self.samples.before_send(at, self.tx.inflight());
            let seq = self.tx.push(at, Dsn::new(self.tx.nxt().get() - 1), 1_000, false);
            self.note(at, seq);
            limited
        }

        fn note(&mut self, at: Time, seq: SendSsn) {
            let departure = Departure { at, end: seq + 1_000 };
            self.samples.on_sent(seq, departure, self.tx.inflight());
            self.samples.forget_room();
        }

        /// Acknowledges the first `segments` segments at `at`. Returns the rate, and the bytes that
        /// were lost since the sampled segment was sent.
        fn ack(&mut self, at: Time, segments: u64) -> (u64, u64) {
            let mut outcome = crate::tcp::send::AckOutcome::default();
            self.tx.on_ack(SendSsn::new(1 + 1_000 * segments), &[], &mut outcome);
            self.samples.on_delivered(at, outcome.delivered);
            let newest = outcome.newest.expect("something is new");
            let sample = self.samples.sample(at, &newest, Span::from_millis(50));
            self.samples.drop_old(&self.tx);
            let sample = sample.expect("each sending has a record");
            (sample.rate, sample.lost)
        }
    }

    /// The interval is the longer of the times of sending and of acknowledging.
    #[test]
    fn a_rate_is_the_bytes_delivered_since_the_segment_was_sent() {
        let mut flow = Flow::new();
        for at in [0, 10, 20, 70] {
            flow.send(ms(at));
        }
        // 1,000 bytes in 100 ms, then 3,000 in 120 ms, both since the first segment was sent.
        assert_eq!(flow.ack(ms(100), 1), (10_000, 0));
        flow.send(ms(100));
        assert_eq!(flow.ack(ms(120), 3), (25_000, 0));
        // 4,000 bytes in 170 ms.
        assert_eq!(flow.ack(ms(170), 4), (23_529, 0));
        // The last one was sent after 1,000 bytes were delivered at 100 ms: 4,000 in 75 ms, but sending
        // took from 0 to 100 ms.
        assert_eq!(flow.ack(ms(175), 5), (40_000, 0));
        assert!(flow.samples.records.is_empty());
        // An interval below the lowest RTT of 50 ms gives no rate.
        flow.send(ms(200));
        assert_eq!(flow.ack(ms(249), 6), (0, 0));
    }

    /// A time without data limits the samples until the data after it is delivered.
    #[test]
    fn a_gap_marks_the_samples_of_a_round_trip() {
        let mut flow = Flow::new();
        assert!(!flow.send(ms(0)));
        // There is room now, and the next segment follows at once.
        flow.samples.note_room(ms(0), true);
        assert!(!flow.send(ms(0)));
        flow.samples.note_room(ms(0), true);
        // The room lasts for 10 ms; 2,000 bytes are in flight.
        assert!(flow.send(ms(10)));
        flow.ack(ms(100), 2);
        assert!(flow.send(ms(100)));
        flow.ack(ms(110), 3);
        assert!(!flow.send(ms(110)));
        // Room that a segment or pacing takes away again does not count.
        flow.samples.note_room(ms(110), true);
        flow.samples.note_room(ms(111), false);
        assert!(!flow.send(ms(200)));
    }

    #[test]
    fn each_lost_sending_is_counted_once() {
        let mut flow = Flow::new();
        for at in 0..4 {
            flow.send(ms(at));
        }
        assert_eq!(flow.ack(ms(100), 1), (10_000, 0));
        flow.tx.mark_all_lost();
        let mut seen = Vec::new();
        let mut from = SendSsn::ZERO;
        while let Some((loss, next)) = flow.samples.next_loss(&flow.tx, from) {
            seen.push((loss.sent.inflight, loss.lost, loss.apart));
            from = next;
        }
        // The bytes in flight when each was sent, the bytes lost since then, and the single range.
        assert_eq!(seen, [(2_000, 1_000, true), (3_000, 2_000, false), (4_000, 3_000, false)]);
        assert!(flow.samples.next_loss(&flow.tx, SendSsn::ZERO).is_none());
        // The retransmission is another sending.
        let seq = SendSsn::new(1_001);
        flow.samples.before_send(ms(200), flow.tx.inflight());
        flow.tx.retransmit(seq, ms(200));
        flow.note(ms(200), seq);
        flow.tx.mark_all_lost();
        let (loss, _) = flow.samples.next_loss(&flow.tx, SendSsn::ZERO).expect("it is lost again");
        assert_eq!((loss.len, loss.lost, loss.apart), (1_000, 1_000, true));
    }
}
