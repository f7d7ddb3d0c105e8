//! HyStart as Linux's CUBIC has it (S. Ha, I. Rhee: Taming the elephants: New TCP slow start, Computer
//! Networks 55, 2011): by the length of a train of acknowledgements, or by the RTT.

use super::{Growth, Span, Time};
use crate::Ack;

/// Segments of the least window that is judged.
const LOW_WINDOW: u64 = 16;
/// Acknowledgements so far apart, at most, are of one train.
const GAP: Span = Span::from_millis(2);
/// Bounds of the RTT increase that counts.
const MIN_THRESHOLD: Span = Span::from_millis(4);
const MAX_THRESHOLD: Span = Span::from_millis(16);
/// Samples whose least is the RTT of a round.
const SAMPLES: u32 = 8;
/// Samples so soon after congestion avoidance began are none.
const SETTLING: Span = Span::from_secs(1);

/// What differs between versions of Linux.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    /// The increase that counts is this part of the least RTT.
    divisor: u64,
    /// Since Linux 5.6 gaps are measured in microseconds, before in whole milliseconds; and the first
    /// acknowledgement of a round belongs to it.
    fine: bool,
}

impl Rule {
    pub(super) const LINUX_3: Rule = Rule { divisor: 16, fine: false };
    pub(super) const LINUX_4: Rule = Rule { divisor: 8, fine: false };
    pub(super) const LINUX_6: Rule = Rule { divisor: 8, fine: true };
}

/// A train may last this much longer than the least RTT says, if times are fine: the most that
/// `hystart_ack_delay` allows for acknowledgements that a receiver joins.
const ACK_DELAY: Span = Span::from_millis(1);

/// State of one slow start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Train {
    rule: Rule,
    /// The next acknowledgement begins a round.
    round_is_over: bool,
    /// Slow start was ended; the rule speaks again after a timeout.
    found: bool,
    least: Span,
    round_start: Time,
    last_ack: Time,
    round_least: Span,
    samples: u32,
    /// Since when the window has been in congestion avoidance without a loss.
    avoidance: Option<Time>,
}

impl Train {
    pub(super) const fn new(rule: Rule) -> Train {
        Train {
            rule,
            round_is_over: false,
            found: false,
            least: Span::MAX,
            round_start: Time::ZERO,
            last_ack: Time::ZERO,
            round_least: Span::MAX,
            samples: 0,
            avoidance: None,
        }
    }

    /// Takes in an acknowledgement in slow start. A round's first one still belongs to the round
    /// before.
    pub(super) fn on_ack(&mut self, ack: &Ack, segments: u64) -> Growth {
        if self.found {
            return Growth::Full;
        }
        if self.round_is_over {
            self.begin_round(ack.now);
        }
        let settling = self.avoidance.is_some_and(|since| ack.now.since(since) < SETTLING);
        if let Some(rtt) = ack.rtt.filter(|_| !settling) {
            self.least = self.least.min(rtt);
            self.found = segments >= LOW_WINDOW && self.judge(ack.now, rtt);
        }
        if self.rule.fine {
            // Its round is that of the data which the last acknowledgement of a round releases.
            self.round_is_over = ack.round;
        } else if ack.round && ack.cwnd_limited {
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
        *self = Train::new(self.rule);
        self.begin_round(now);
    }

    fn begin_round(&mut self, now: Time) {
        (self.round_start, self.last_ack) = (now, now);
        (self.round_least, self.samples) = (Span::MAX, 0);
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
    /// Whether an acknowledgement at `now` belongs to the train of the last one.
    fn continues(&self, now: Time) -> bool {
        if self.rule.fine {
            return now.since(self.last_ack) <= GAP;
        }
        let gap = millis(now).saturating_sub(millis(self.last_ack));
        Span::from_millis(gap) <= GAP
    }
}

/// A time on a clock of whole milliseconds.
fn millis(time: Time) -> u64 {
    time.since(Time::ZERO).as_nanos() / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A subflow whose acknowledgements come one after another.
    struct Flow {
        train: Train,
        now: Time,
    }

    impl Flow {
        fn new(divisor: u64) -> Flow {
            let rule = if divisor == 16 { Rule::LINUX_3 } else { Rule::LINUX_4 };
            Flow { train: Train::new(rule), now: Time::ZERO + Span::from_secs(5) }
        }

        /// An acknowledgement `after` milliseconds, with an RTT in milliseconds.
        fn ack(&mut self, after: u64, rtt: u64, round: bool, segments: u64) -> Growth {
            self.now += Span::from_millis(after);
            let rtt = Span::from_millis(rtt);
            let ack = Ack {
                now: self.now,
                bytes: 1,
                rtt: Some(rtt),
                srtt: rtt,
                min_rtt: rtt,
                cwnd_limited: true,
                round,
            };
            self.train.on_ack(&ack, segments)
        }

        /// A round of `count` acknowledgements that come `gap` apart: which of them ended slow start.
        fn round(&mut self, count: usize, gap: u64, rtt: u64) -> Option<usize> {
            (0..count).find(|it| {
                let after = if *it == 0 { 50 } else { gap };
                self.ack(after, rtt, *it == 0, 16) == Growth::End
            })
        }
    }

    /// Two milliseconds apart they are a train, and it ends slow start when it has lasted for more
    /// than half of the least RTT; three apart they are none.
    #[test]
    fn a_train_of_half_an_rtt_ends_slow_start() {
        for divisor in [8, 16] {
            assert_eq!(Flow::new(divisor).round(30, 2, 20), Some(6));
            assert_eq!(Flow::new(divisor).round(30, 2, 40), Some(11));
            assert_eq!(Flow::new(divisor).round(30, 3, 20), None);
        }
        // A gap ends the train, and what comes after it is none.
        let mut flow = Flow::new(8);
        assert_eq!(flow.round(4, 2, 20), None);
        assert_eq!(flow.ack(3, 20, false, 16), Growth::Full);
        assert_eq!(flow.ack(1, 20, false, 16), Growth::Full);
        assert_eq!(flow.ack(2, 20, false, 16), Growth::Full);
        // The next round has its own.
        assert_eq!(flow.round(30, 2, 20), Some(6));
    }

    /// More than an eighth (a sixteenth before 4.0) of the least RTT, from 4 to 16 ms, by the least
    /// of eight samples of a round; the ninth tells.
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
            // The first of a round belongs to the one before.
            assert_eq!(after(grown), Some(9), "{least} ms and {grown}");
        }
        // One fast sample among the eight is the least.
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

    /// It ends one slow start only, until a timeout; and a second long nothing is judged after
    /// congestion avoidance has begun.
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
}
