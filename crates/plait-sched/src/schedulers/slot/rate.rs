//! The rate at which a path delivers, from runs of acknowledgements that the link spaced.

use plait_base::{Span, Time};

/// Steps that are kept, and so the longest run.
pub(super) const MAX_STEPS: usize = 16;
/// Segments that a run covers at least.
const MIN_RUN_SEGMENTS: u64 = 4;
/// Steps of a run whose segments waited in a queue.
const MIN_QUEUED_STEPS: usize = 4;
/// Least length of an interval of the maximum.
const MIN_INTERVAL: Span = Span::from_millis(300);
/// Length of an interval in smoothed RTTs.
const INTERVAL_RTTS: u64 = 5;

/// Least time between the ends of two steps in round trips. Hosts and links pass acknowledgements on in
/// bursts, so a shorter time says little about the rate of the path.
const GRAINS_PER_RTT: u64 = 16;
/// Longest such time.
const MAX_GRAIN: Span = Span::from_micros(500);
/// Time for which a receiver holds the acknowledgement of a lone segment back, as in Linux.
pub(super) const MAX_HELD_BACK: Span = Span::from_millis(40);
/// A sample above this many times the rate needs a second one.
const FAR: u64 = 2;

/// Acknowledgements that delivered data.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Step {
    pub(super) at: Time,
    /// When the newest delivered segment was sent.
    pub(super) sent: Time,
    pub(super) bytes: u64,
    /// Whether that segment waited in a queue of the path.
    pub(super) queued: bool,
}

impl Step {
    /// Adds an acknowledgement.
    fn extend(&mut self, newer: Step) {
        let bytes = self.bytes + newer.bytes;
        *self = Step { bytes, queued: self.queued && newer.queued, ..newer };
    }
}

/// Where the rate of a path comes from.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum RateSource {
    /// It was never known.
    #[default]
    None,
    /// An earlier connection, until there is a sample.
    Earlier,
    /// Samples.
    Own,
}

impl RateSource {
    /// Returns true if the rate was ever known.
    pub(super) fn is_known(self) -> bool {
        self != RateSource::None
    }
}

/// The estimate of one path.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct RateFilter {
    pub(super) steps: [Step; MAX_STEPS],
    /// Number of steps in use; the newest is last.
    pub(super) used: usize,
    /// Largest sample of this interval, in bytes a second.
    pub(super) now: u64,
    /// Largest sample of the interval before, in bytes a second.
    pub(super) before: u64,
    /// Start of this interval.
    pub(super) began: Time,
    pub(super) source: RateSource,
    pub(super) round: Round,
    /// A sample far above the rate, which waits for a second one; zero if there is none.
    pub(super) doubted: u64,
    /// When it was taken.
    pub(super) doubted_at: Time,
}

/// The acknowledgements of about a round trip.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Round {
    pub(super) began: Time,
    pub(super) bytes: u64,
    /// Whether all of its segments waited in a queue of the path.
    pub(super) queued: bool,
}

/// A sample of the rate.
struct Sample {
    /// Bytes a second.
    rate: u64,
    /// When its run began.
    from: Time,
}

impl RateFilter {
    /// Returns bytes a second; zero before the first sample.
    pub(super) fn rate(&self) -> u64 {
        self.now.max(self.before)
    }

    /// Takes in an acknowledgement on a path with this segment size and smoothed RTT.
    pub(super) fn on_acked(&mut self, step: Step, mss: u64, srtt: Span) {
        let grain = Self::grain(srtt);
        match &mut self.steps[..self.used] {
            // A step ends no sooner than `grain` after the one before it, unless a pause follows.
            [.., before, last]
                if last.at.since(before.at) < grain && step.at.since(last.at) < grain =>
            {
                last.extend(step);
            }
            _ => self.push(step),
        }
        if self.source == RateSource::Earlier {
            self.doubt_earlier();
        }
        self.turn(step.at, srtt);
        if let Some(sample) = self.sample(mss, grain) {
            if self.source == RateSource::Earlier {
                (self.now, self.before) = (0, 0);
            }
            self.now = self.now.max(self.confirmed(&sample, step.at));
            self.source = RateSource::Own;
        }
    }

    /// Takes in an acknowledgement as part of a round trip. If all segments of a round trip waited in a queue, the
    /// path was always busy, so its rate is not far above the data of that time.
    pub(super) fn on_round(&mut self, step: Step, mss: u64, srtt: Span) {
        let length = step.at.since(self.round.began);
        self.round.bytes = self.round.bytes.saturating_add(step.bytes);
        self.round.queued &= step.queued;
        if length < srtt || (self.round.queued && self.round.bytes < MIN_RUN_SEGMENTS * mss) {
            return;
        }
        if self.round.queued && self.source == RateSource::Own {
            let rate = self.round.bytes.saturating_mul(1_000_000_000) / length.as_nanos().max(1);
            if self.rate() > rate.saturating_add(rate / 4) {
                (self.now, self.before, self.doubted) = (rate, rate, 0);
            }
        }
        self.round = Round { began: step.at, bytes: 0, queued: step.queued };
    }

    /// Returns the rate by a sample that was taken now.
    ///
    /// Jitter lets acknowledgements arrive in bunches. So a sample far above the rate counts only if a later
    /// run, which shares no step with the first one, gives such a sample too.
    fn confirmed(&mut self, sample: &Sample, now: Time) -> u64 {
        let rate = self.rate();
        if rate == 0 || sample.rate <= rate.saturating_mul(FAR) {
            return sample.rate;
        }
        if self.doubted == 0 {
            (self.doubted, self.doubted_at) = (sample.rate, now);
        } else if sample.from >= self.doubted_at {
            return sample.rate.min(core::mem::take(&mut self.doubted));
        }
        rate
    }

    /// Begins with the rate that an earlier connection has measured. The first sample replaces it.
    pub(super) fn recall(&mut self, now: Time, rate: u64) {
        (self.now, self.before, self.began) = (rate, 0, now);
        self.source = RateSource::Earlier;
    }

    /// Takes over the bandwidth that the controller of the subflow has found. It paces, so the link sets the
    /// pace of no run.
    pub(super) fn follow(&mut self, now: Time, bandwidth: u64) {
        (self.now, self.before, self.began) = (bandwidth, 0, now);
        self.source = RateSource::Own;
    }

    /// Drops a remembered rate if the last step was far faster. That is no sample, but such a rate
    /// would keep data off the path.
    #[cold]
    fn doubt_earlier(&mut self) {
        let [.., before, last] = &self.steps[..self.used] else { return };
        let span = last.at.since(before.at).as_nanos().max(1);
        if last.bytes.saturating_mul(1_000_000_000) / span > self.rate().saturating_mul(2) {
            (self.now, self.before, self.source) = (0, 0, RateSource::None);
        }
    }

    fn grain(srtt: Span) -> Span {
        srtt.over(GRAINS_PER_RTT).min(MAX_GRAIN)
    }

    fn push(&mut self, step: Step) {
        if self.used == MAX_STEPS {
            self.steps.copy_within(1.., 0);
            self.used -= 1;
        }
        self.steps[self.used] = step;
        self.used += 1;
    }

    /// Forgets the run: one of its segments was sent more than once.
    pub(super) fn break_run(&mut self) {
        self.used = 0;
        self.round.queued = false;
    }

    /// Begins a new interval if the present one is over.
    fn turn(&mut self, at: Time, srtt: Span) {
        let length = srtt.times(INTERVAL_RTTS).max(MIN_INTERVAL);
        let age = at.since(self.began);
        if age >= length {
            self.before = if age >= length.times(2) { 0 } else { self.now };
            (self.now, self.began, self.doubted) = (0, at, 0);
        }
    }

    /// Returns the rate of the longest run whose pace the link set: it left at least twice as fast as it
    /// was acknowledged, or all its segments waited in a queue.
    fn sample(&self, mss: u64, grain: Span) -> Option<Sample> {
        let (last, earlier) = self.steps[..self.used].split_last()?;
        let mut run = RunSoFar { bytes: last.bytes, steps: 1, queued: last.queued };
        // The receiver acknowledges pairs, so it may have held the acknowledgement of a lone segment back.
        if last.bytes < 2 * mss && earlier.last().is_some_and(|it| it.bytes > mss) {
            return None;
        }
        let mut longest = None;
        for first in earlier.iter().rev() {
            let acked = last.at.since(first.at).as_nanos();
            let sent = last.sent.since(first.sent).as_nanos();
            let queued = run.queued && run.steps >= MIN_QUEUED_STEPS;
            if acked > 0
                && acked >= grain.as_nanos()
                && run.bytes >= MIN_RUN_SEGMENTS * mss
                && (queued || sent.saturating_mul(2) <= acked)
            {
                let rate = run.bytes.saturating_mul(1_000_000_000) / acked;
                longest = Some(Sample { rate, from: first.at });
            }
            run.bytes += first.bytes;
            run.steps += 1;
            run.queued &= first.queued;
        }
        longest
    }
}

/// The newest steps of a run.
struct RunSoFar {
    bytes: u64,
    steps: usize,
    queued: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    const SRTT: Span = Span::from_millis(20);

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn acked(filter: &mut RateFilter, at: Time, sent: Time, queued: bool) {
        filter.on_acked(Step { at, sent, bytes: 1_000, queued }, 1_000, SRTT);
    }

    /// A window of ten segments leaves at once, and its acknowledgements arrive each 2 ms.
    fn window(filter: &mut RateFilter, start: u64) {
        for segment in 0..10 {
            acked(filter, at(start + 20 + 2 * segment), at(start), false);
        }
    }

    /// A rate of 1 MB/s is known, and then segments of 1 kB are acknowledged each `spacing` ms.
    fn rate_after_a_round(spacing: u64, queued: bool) -> u64 {
        let mut filter =
            RateFilter { now: 1_000_000, source: RateSource::Own, ..Default::default() };
        filter.round.began = at(1_000);
        filter.round.queued = true;
        for step in 1..=20 / spacing {
            let step = Step { at: at(1_000 + spacing * step), sent: at(900), bytes: 1_000, queued };
            filter.on_round(step, 1_000, SRTT);
        }
        filter.rate()
    }

    #[test]
    fn a_round_trip_in_a_queue_limits_the_rate() {
        assert_eq!(rate_after_a_round(2, true), 500_000);
        // The sender may have set the pace.
        assert_eq!(rate_after_a_round(2, false), 1_000_000);
        // A rate that is slightly higher is none by chance.
        assert_eq!(rate_after_a_round(1, true), 1_000_000);
        // Four segments at least are needed.
        assert_eq!(rate_after_a_round(10, true), 1_000_000);
    }

    #[test]
    fn a_round_trip_with_a_loss_does_not_limit_the_rate() {
        let mut filter =
            RateFilter { now: 1_000_000, source: RateSource::Own, ..Default::default() };
        filter.round = Round { began: at(1_000), bytes: 0, queued: true };
        filter.break_run();
        for step in 1..=10 {
            let step = Step { at: at(1_000 + 2 * step), sent: at(900), bytes: 1_000, queued: true };
            filter.on_round(step, 1_000, SRTT);
        }
        assert_eq!(filter.rate(), 1_000_000);
    }

    #[test]
    fn acknowledgements_that_the_link_spaced_give_its_rate() {
        let mut filter = RateFilter::default();
        window(&mut filter, 1_000);
        assert_eq!(filter.rate(), 500_000);
        // The run of two windows left in 100 ms and was acknowledged in 118: the sender set its pace.
        window(&mut filter, 1_100);
        assert_eq!(filter.rate(), 500_000);
    }

    /// The receiver acknowledges pairs, and holds the acknowledgement of the last segment back for 40 ms.
    #[test]
    fn a_lone_segment_after_pairs_shows_no_rate() {
        for spacing in [240, 600] {
            let mut filter = RateFilter::default();
            let micros = |it: u64| Time::ZERO + Span::from_micros(it);
            for start in [1_000_000, 1_100_000, 1_200_000] {
                for (after, bytes) in [
                    (0, 2_000),
                    (spacing, 2_000),
                    (2 * spacing, 2_000),
                    (2 * spacing + 40_100, 1_000),
                ] {
                    let at = micros(start + 20_000 + after);
                    let step = Step { at, sent: micros(start), bytes, queued: false };
                    filter.on_acked(step, 1_000, SRTT);
                }
            }
            // Three pairs show a rate only if they come over 0.5 ms or more.
            let known = if spacing == 240 { 0 } else { 4_000 * 1_000_000 / 1_200 };
            assert_eq!(filter.rate(), known, "{spacing} us");
        }
    }

    /// On a fast path, a host passes the acknowledgements of 0.2 ms on at once.
    #[test]
    fn acknowledgements_in_bursts_do_not_raise_the_rate() {
        let mut filter = RateFilter::default();
        let micros = |it: u64| Time::ZERO + Span::from_micros(it);
        for segment in 0..2_000_u64 {
            // The link needs 10 us for a segment: 100 MB/s.
            let passed_on = (10 * segment).next_multiple_of(200);
            acked(&mut filter, micros(1_020_000 + passed_on), micros(1_000_000), false);
        }
        let rate = filter.rate();
        assert!((95_000_000..125_000_000).contains(&rate), "{rate}");
    }

    /// A window whose acknowledgements arrive each 0.5 ms.
    fn bunch(filter: &mut RateFilter, start: u64) {
        for segment in 0..10 {
            let passed_on = at(start + 20) + Span::from_micros(500 * segment);
            acked(filter, passed_on, at(start), false);
        }
    }

    #[test]
    fn a_rate_more_than_doubles_once_a_second_run_shows_it() {
        let mut filter = RateFilter::default();
        window(&mut filter, 1_000);
        bunch(&mut filter, 1_100);
        assert_eq!(filter.rate(), 500_000);
        bunch(&mut filter, 1_160);
        assert_eq!(filter.rate(), 2_000_000);
    }

    #[test]
    fn a_doubted_sample_is_forgotten_after_an_interval() {
        let mut filter = RateFilter::default();
        window(&mut filter, 1_000);
        bunch(&mut filter, 1_100);
        window(&mut filter, 1_300);
        bunch(&mut filter, 1_400);
        assert_eq!(filter.rate(), 500_000);
    }

    /// Each 20 ms a pair leaves and then a lone segment. The receiver holds its acknowledgement back.
    #[test]
    fn an_acknowledgement_that_was_held_back_gives_no_sample() {
        let step = |at, sent, bytes| Step { at, sent, bytes, queued: false };
        // A later one may have waited on the link, too, but how long is unknown.
        for last in [1_062, 1_070] {
            let mut filter = RateFilter::default();
            filter.on_acked(step(at(1_020), at(1_000), 2_000), 1_000, SRTT);
            filter.on_acked(step(at(1_021), at(1_001), 2_000), 1_000, SRTT);
            filter.on_acked(step(at(1_022), at(1_002), 2_000), 1_000, SRTT);
            filter.on_acked(step(at(last), at(1_002), 1_000), 1_000, SRTT);
            assert_eq!(filter.rate(), 0, "{last} ms");
        }
    }

    /// 30 segments leave each 10 ms and are acknowledged 20 ms later.
    fn paced(queued: bool) -> u64 {
        let mut filter = RateFilter::default();
        for segment in 0..30 {
            let sent = at(1_000 + 10 * segment);
            acked(&mut filter, sent + SRTT, sent, queued);
        }
        filter.rate()
    }

    #[test]
    fn a_sender_that_is_slower_than_the_link_gives_no_sample() {
        assert_eq!(paced(false), 0);
    }

    #[test]
    fn segments_that_waited_in_a_queue_give_the_rate() {
        assert_eq!(paced(true), 100_000);
    }

    #[test]
    fn the_first_sample_replaces_a_remembered_rate() {
        for earlier in [250_000, 5_000_000] {
            let mut filter = RateFilter::default();
            assert!(!filter.source.is_known());
            filter.recall(at(1_000), earlier);
            assert!(filter.source.is_known());
            // A lone segment is no sample.
            acked(&mut filter, at(1_020), at(1_000), false);
            assert_eq!(filter.rate(), earlier);
            window(&mut filter, 1_020);
            assert_eq!((filter.rate(), filter.source), (500_000, RateSource::Own));
        }
    }

    #[test]
    fn a_remembered_rate_that_is_far_too_low_is_dropped_by_two_acknowledgements() {
        let mut filter = RateFilter::default();
        filter.recall(at(1_000), 50_000);
        acked(&mut filter, at(1_020), at(1_000), false);
        assert_eq!(filter.rate(), 50_000);
        // 1,000 bytes in 10 ms are twice the rate, which is not far.
        acked(&mut filter, at(1_030), at(1_000), false);
        assert_eq!(filter.rate(), 50_000);
        acked(&mut filter, at(1_039), at(1_000), false);
        assert_eq!((filter.rate(), filter.source), (0, RateSource::None));
    }

    #[test]
    fn a_remembered_rate_is_forgotten_without_samples() {
        let mut filter = RateFilter::default();
        filter.recall(at(1_000), 70_000);
        acked(&mut filter, at(1_350), at(1_330), false);
        assert_eq!(filter.rate(), 70_000);
        acked(&mut filter, at(1_700), at(1_680), false);
        assert_eq!(filter.rate(), 0);
    }

    #[test]
    fn a_sample_is_forgotten_after_two_intervals() {
        let mut filter = RateFilter::default();
        window(&mut filter, 1_000);
        acked(&mut filter, at(1_350), at(1_330), false);
        assert_eq!(filter.rate(), 500_000);
        acked(&mut filter, at(1_700), at(1_680), false);
        assert_eq!(filter.rate(), 0);
    }
}
