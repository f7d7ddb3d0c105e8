//! HyStart++ (RFC 9406): slow start ends when the RTT grows, before the queue overflows.

use super::Growth;
use plait_base::Span;

/// Bounds of the RTT increase that ends slow start (RFC 9406 section 4.3).
const MIN_THRESHOLD: Span = Span::from_millis(4);
const MAX_THRESHOLD: Span = Span::from_millis(16);
/// The RTT must increase by this fraction of the last round's RTT.
const DIVISOR: u64 = 8;
/// Samples of a round before its RTT is compared.
const SAMPLES: u32 = 8;
/// Divisor of the growth in conservative slow start.
const GROWTH_DIVISOR: u64 = 4;
/// Rounds of conservative slow start before congestion avoidance.
const ROUNDS: u32 = 5;

/// State of one slow start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plus {
    last_round: Span,
    this_round: Span,
    samples: u32,
    /// Lowest RTT of the round that began conservative slow start, and the rounds since.
    conservative: Option<(Span, u32)>,
}

impl Plus {
    pub(crate) const fn new() -> Plus {
        Plus { last_round: Span::MAX, this_round: Span::MAX, samples: 0, conservative: None }
    }

    /// Takes in an acknowledgement. `round` is true for the first one of a round trip.
    pub(crate) fn on_ack(&mut self, rtt: Option<Span>, round: bool) -> Growth {
        if round && self.begin_round() {
            return Growth::End;
        }
        if let Some(rtt) = rtt {
            self.this_round = self.this_round.min(rtt);
            self.samples += 1;
        }
        if self.samples >= SAMPLES {
            self.judge();
        }
        if self.conservative.is_some() { Growth::Part(GROWTH_DIVISOR) } else { Growth::Full }
    }

    /// Begins a round. Returns true if conservative slow start has lasted long enough.
    fn begin_round(&mut self) -> bool {
        self.last_round = self.this_round;
        self.this_round = Span::MAX;
        self.samples = 0;
        match &mut self.conservative {
            Some((_, rounds)) => {
                *rounds += 1;
                *rounds >= ROUNDS
            }
            None => false,
        }
    }

    fn judge(&mut self) {
        match self.conservative {
            // The RTT has fallen again, so the queue was not the cause.
            Some((baseline, _)) if self.this_round < baseline => self.conservative = None,
            Some(_) => {}
            None if self.last_round == Span::MAX => {}
            None => {
                let threshold = self.last_round.over(DIVISOR).clamp(MIN_THRESHOLD, MAX_THRESHOLD);
                if self.this_round >= self.last_round + threshold {
                    self.conservative = Some((self.this_round, 0));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(hystart: &mut Plus, millis: u64) -> Growth {
        let rtt = Some(Span::from_millis(millis));
        let mut last = hystart.on_ack(rtt, true);
        for _ in 1..SAMPLES {
            if last == Growth::End {
                break;
            }
            last = hystart.on_ack(rtt, false);
        }
        last
    }

    #[test]
    fn a_growing_rtt_slows_the_start_and_ends_it_after_five_rounds() {
        let mut hystart = Plus::new();
        assert_eq!(round(&mut hystart, 40), Growth::Full);
        assert_eq!(round(&mut hystart, 44), Growth::Full);
        // 44 / 8 = 5.5 ms above the last round.
        assert_eq!(round(&mut hystart, 50), Growth::Part(4));
        for _ in 0..4 {
            assert_eq!(round(&mut hystart, 60), Growth::Part(4));
        }
        assert_eq!(round(&mut hystart, 60), Growth::End);
    }

    #[test]
    fn an_rtt_that_comes_down_resumes_slow_start() {
        let mut hystart = Plus::new();
        round(&mut hystart, 40);
        assert_eq!(round(&mut hystart, 46), Growth::Part(4));
        assert_eq!(round(&mut hystart, 41), Growth::Full);
    }

    /// RFC 9406 section 4.2: an eighth of the last round's RTT, from 4 to 16 ms.
    #[test]
    fn the_increase_that_counts_has_bounds() {
        for (before, calm, slow) in [(24, 27, 28), (80, 89, 90), (200, 215, 216)] {
            let mut hystart = Plus::new();
            round(&mut hystart, before);
            assert_eq!(round(&mut hystart, calm), Growth::Full, "{before} ms, then {calm}");
            let mut hystart = Plus::new();
            round(&mut hystart, before);
            assert_eq!(round(&mut hystart, slow), Growth::Part(4), "{before} ms, then {slow}");
        }
    }

    /// RFC 9406 section 4.2: the lowest RTT of a round decides, from the eighth sample on, in slow
    /// start and in conservative slow start.
    #[test]
    fn eight_samples_judge_a_round() {
        let rtt = |millis| Some(Span::from_millis(millis));
        let mut hystart = Plus::new();
        round(&mut hystart, 40);
        for sample in 1..8 {
            assert_eq!(hystart.on_ack(rtt(60), sample == 1), Growth::Full, "sample {sample}");
        }
        assert_eq!(hystart.on_ack(rtt(60), false), Growth::Part(4));
        for sample in 1..8 {
            assert_eq!(hystart.on_ack(rtt(50), sample == 1), Growth::Part(4), "sample {sample}");
        }
        assert_eq!(hystart.on_ack(rtt(90), false), Growth::Full);
        // One fast sample among slow ones is the lowest.
        for sample in 1..=8 {
            let millis = if sample == 3 { 50 } else { 90 };
            assert_eq!(hystart.on_ack(rtt(millis), sample == 1), Growth::Full);
        }
        // An acknowledgement without an RTT sample does not count.
        for sample in 1..=20 {
            assert_eq!(hystart.on_ack(None, sample == 1), Growth::Full);
        }
    }

    #[test]
    fn few_samples_judge_nothing() {
        let mut hystart = Plus::new();
        round(&mut hystart, 40);
        hystart.on_ack(Some(Span::from_millis(90)), true);
        assert_eq!(hystart.on_ack(Some(Span::from_millis(90)), false), Growth::Full);
    }
}
