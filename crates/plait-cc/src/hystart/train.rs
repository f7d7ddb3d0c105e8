//! HyStart of CUBIC in Linux, by the length of a train of acknowledgements or by the RTT (S. Ha, I.
//! Rhee: Taming the elephants: New TCP slow start, Computer Networks 55, 2011).

use super::{Growth, Span, Time};
use crate::Ack;

/// Smallest window, in segments, to which the rule applies.
const LOW_WINDOW: u64 = 16;
/// Largest gap between acknowledgements of one train.
const GAP: Span = Span::from_millis(2);
/// Bounds of the RTT increase that ends slow start.
const MIN_THRESHOLD: Span = Span::from_millis(4);
const MAX_THRESHOLD: Span = Span::from_millis(16);
/// Samples of a round before its RTT is compared.
const SAMPLES: u32 = 8;
/// Time without samples after congestion avoidance began.
const SETTLING: Span = Span::from_secs(1);

/// The differences between versions of Linux.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    /// The RTT must increase by this fraction of the lowest RTT.
    divisor: u64,
    /// Since Linux 5.6 gaps are measured in microseconds, before that in whole milliseconds. Since
    /// then the first acknowledgement of a round also belongs to that round.
    fine: bool,
}

impl Rule {
    pub(super) const LINUX_3: Rule = Rule { divisor: 16, fine: false };
    pub(super) const LINUX_4: Rule = Rule { divisor: 8, fine: false };
    pub(super) const LINUX_6: Rule = Rule { divisor: 8, fine: true };
}

/// Added to the lowest RTT in the limit of a train, if times are fine. It is the most that
/// `hystart_ack_delay` allows for acknowledgements that a receiver combines.
const ACK_DELAY: Span = Span::from_millis(1);

/// State of one slow start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Train {
    rule: Rule,
    /// The first acknowledgement beyond this number of bytes begins a round.
    round_end: u64,
    /// Bytes sent at the last acknowledgement.
    sent: u64,
    /// Slow start has ended. The rule applies again after a timeout.
    found: bool,
    least: Span,
    round_start: Time,
    last_ack: Time,
    round_least: Span,
    samples: u32,
    /// Start of congestion avoidance, if no loss has followed.
    avoidance: Option<Time>,
}

impl Train {
    pub(super) const fn new(rule: Rule) -> Train {
        Train {
            rule,
            round_end: 0,
            sent: 0,
            found: false,
            least: Span::MAX,
            round_start: Time::ZERO,
            last_ack: Time::ZERO,
            round_least: Span::MAX,
            samples: 0,
            avoidance: None,
        }
    }

    /// Takes in an acknowledgement in slow start. If times are not fine, the first one of a round
    /// still belongs to the round before.
    pub(super) fn on_ack(&mut self, ack: &Ack, segments: u64) -> Growth {
        if self.found {
            return Growth::Full;
        }
        self.sent = ack.sent;
        // It is the first one of a round. The last one of a round acknowledges just what was sent.
        let begins = ack.acked > self.round_end;
        if begins && self.rule.fine {
            self.begin_round(ack.now);
        }
        let settling = self.avoidance.is_some_and(|since| ack.now.since(since) < SETTLING);
        if let Some(rtt) = ack.rtt.filter(|_| !settling) {
            self.least = self.least.min(rtt);
            self.found = segments >= LOW_WINDOW && self.judge(ack.now, rtt);
        }
        if begins && !self.rule.fine && ack.cwnd_limited {
            self.begin_round(ack.now);
        }
        if self.found { Growth::End } else { Growth::Full }
    }

    pub(super) fn on_avoidance(&mut self, now: Time) {
        self.avoidance.get_or_insert(now);
    }

    pub(super) fn on_loss(&mut self) {
        self.avoidance = None;
    }

    pub(super) fn on_timeout(&mut self, now: Time) {
        *self = Train { sent: self.sent, ..Train::new(self.rule) };
        self.begin_round(now);
    }

    fn begin_round(&mut self, now: Time) {
        (self.round_start, self.last_ack) = (now, now);
        (self.round_least, self.samples, self.round_end) = (Span::MAX, 0, self.sent);
    }

    fn judge(&mut self, now: Time, rtt: Span) -> bool {
        if self.continues(now) {
            self.last_ack = now;
            let slack = if self.rule.fine { ACK_DELAY } else { Span::ZERO };
            if now.since(self.round_start) > (self.least + slack).over(2) {
                return true;
            }
        }
        if self.rule.fine || self.samples < SAMPLES {
            self.round_least = self.round_least.min(rtt);
        }
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        let threshold = self.least.over(self.rule.divisor).clamp(MIN_THRESHOLD, MAX_THRESHOLD);
        self.round_least > self.least + threshold
    }
}

impl Train {
    /// Returns true if an acknowledgement at `now` belongs to the train of the last one.
    fn continues(&self, now: Time) -> bool {
        if self.rule.fine {
            return now.since(self.last_ack) <= GAP;
        }
        let gap = millis(now).saturating_sub(millis(self.last_ack));
        Span::from_millis(gap) <= GAP
    }
}

/// Returns a time in whole milliseconds.
fn millis(time: Time) -> u64 {
    time.since(Time::ZERO).as_nanos() / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A subflow that receives acknowledgements in sequence.
    struct Flow {
        train: Train,
        now: Time,
        acked: u64,
    }

    impl Flow {
        fn new(divisor: u64) -> Flow {
            let rule = if divisor == 16 { Rule::LINUX_3 } else { Rule::LINUX_4 };
            Flow::of(rule)
        }

        fn of(rule: Rule) -> Flow {
            Flow { train: Train::new(rule), now: Time::ZERO + Span::from_secs(5), acked: 0 }
        }

        /// Applies an acknowledgement `after` milliseconds, with an RTT in milliseconds.
        fn ack(&mut self, after: u64, rtt: u64, round: bool, segments: u64) -> Growth {
            self.now += Span::from_millis(after);
            // More than was sent when the round began.
            self.acked += if round { 1_000 } else { 1 };
            let rtt = Span::from_millis(rtt);
            let ack = Ack {
                now: self.now,
                bytes: 1,
                rtt: Some(rtt),
                srtt: rtt,
                min_rtt: rtt,
                cwnd_limited: true,
                round,
                acked: self.acked,
                sent: self.acked + 500,
            };
            self.train.on_ack(&ack, segments)
        }

        /// Applies a round of `count` acknowledgements with gaps of `gap` ms. Returns the index of
        /// the one that ends slow start.
        fn round(&mut self, count: usize, gap: u64, rtt: u64) -> Option<usize> {
            (0..count).find(|it| {
                let after = if *it == 0 { 50 } else { gap };
                self.ack(after, rtt, *it == 0, 16) == Growth::End
            })
        }
    }

    /// Acknowledgements with gaps of 2 ms form a train. It ends slow start when it lasts longer
    /// than half of the lowest RTT. Gaps of 3 ms form no train.
    #[test]
    fn a_train_of_half_an_rtt_ends_slow_start() {
        for divisor in [8, 16] {
            assert_eq!(Flow::new(divisor).round(30, 2, 20), Some(6));
            assert_eq!(Flow::new(divisor).round(30, 2, 40), Some(11));
            assert_eq!(Flow::new(divisor).round(30, 3, 20), None);
        }
        // A gap ends the train, and later acknowledgements do not continue it.
        let mut flow = Flow::new(8);
        assert_eq!(flow.round(4, 2, 20), None);
        assert_eq!(flow.ack(3, 20, false, 16), Growth::Full);
        assert_eq!(flow.ack(1, 20, false, 16), Growth::Full);
        assert_eq!(flow.ack(2, 20, false, 16), Growth::Full);
        // The next round has its own train.
        assert_eq!(flow.round(30, 2, 20), Some(6));
    }

    /// The RTT must exceed the lowest RTT by more than an eighth (a sixteenth before 4.0), bounded
    /// to 4 to 16 ms. The lowest of eight samples of a round counts, and the ninth sample compares
    /// it.
    #[test]
    fn an_rtt_that_has_grown_ends_slow_start() {
        for (divisor, least, calm, grown) in [
            (8, 20, 24, 25),
            (8, 80, 90, 91),
            (8, 400, 416, 417),
            (16, 80, 85, 86),
            (16, 20, 24, 25),
            (16, 400, 416, 417),
        ] {
            let after = |rtt| {
                let mut flow = Flow::new(divisor);
                assert_eq!(flow.round(9, 5, least), None);
                flow.round(12, 5, rtt)
            };
            assert_eq!(after(calm), None, "{least} ms and {calm}");
            // The first acknowledgement of a round belongs to the round before.
            assert_eq!(after(grown), Some(9), "{least} ms and {grown}");
        }
        // One fast sample among the eight is the lowest.
        let mut flow = Flow::new(8);
        flow.round(9, 5, 20);
        flow.ack(50, 40, true, 16);
        flow.ack(5, 20, false, 16);
        assert!((0..20).all(|_| flow.ack(5, 40, false, 16) == Growth::Full));
    }

    #[test]
    fn a_window_below_sixteen_segments_is_not_judged() {
        let mut flow = Flow::new(8);
        for it in 0..30 {
            assert_eq!(flow.ack(2, 20, it == 0, 15), Growth::Full);
        }
        assert_eq!(flow.ack(2, 20, false, 16), Growth::Full, "the train was not followed");
        assert_eq!(flow.round(30, 2, 20), Some(6));
    }

    /// The rule ends one slow start, and applies again only after a timeout. For one second after
    /// congestion avoidance has begun, no sample counts.
    #[test]
    fn a_timeout_begins_anew() {
        let mut flow = Flow::new(8);
        assert_eq!(flow.round(30, 2, 20), Some(6));
        flow.train.on_timeout(flow.now);
        flow.train.on_avoidance(flow.now);
        assert_eq!(flow.round(30, 2, 20), None);
        flow.now += SETTLING;
        assert_eq!(flow.round(30, 2, 20), Some(6));
        flow.train.on_timeout(flow.now);
        flow.train.on_avoidance(flow.now);
        flow.train.on_loss();
        assert_eq!(flow.round(30, 2, 20), Some(6));
    }

    /// Linux 6.18: acknowledgements of ten segments, of twenty, and of forty, with gaps of 1.5 ms. The last one of a round
    /// acknowledges all that was sent, so the next round begins only with the one after it. Its train ends slow start after
    /// half of the RTT of 60 ms and of 1 ms.
    #[test]
    fn a_round_begins_beyond_what_was_sent() {
        let mut train = Train::new(Rule::LINUX_6);
        let (mut acked, mut found) = (0, None);
        for (round, begins_at, count, gap) in
            [(1, 120_000, 10, 1_500), (2, 183_000, 20, 1_500), (3, 246_500, 40, 1_500)]
        {
            for it in 0..count {
                acked += 1;
                let rtt = Span::from_millis(60);
                let ack = Ack {
                    now: Time::ZERO + Span::from_micros(begins_at + it * gap),
                    bytes: 1,
                    rtt: Some(rtt),
                    srtt: rtt,
                    min_rtt: rtt,
                    cwnd_limited: true,
                    round: false,
                    acked,
                    // Each acknowledgement lets two segments follow; the first window has ten.
                    sent: 10 + 2 * (acked - 1),
                };
                if train.on_ack(&ack, 20) == Growth::End {
                    found.get_or_insert((round, it));
                }
            }
        }
        // 21 gaps last 31.5 ms.
        assert_eq!(found, Some((3, 21)));
    }
}
