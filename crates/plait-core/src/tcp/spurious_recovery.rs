//! Detection of spurious window reductions, when segments were late instead of lost.
//!
//! There are three kinds of evidence:
//!
//! * D-SACK (RFC 3708): every retransmission was reported as a duplicate.
//! * Eifel detection (RFC 3522): the first ACK after a retransmission echoes the original's timestamp.
//! * F-RTO (RFC 5682 section 3.1): after a timeout, originals are acknowledged while new data is sent.
//!
//! F-RTO delays retransmissions for a round trip. It is used for peers without timestamps, because
//! their first acknowledgement proves nothing. It is also limited to plain TCP, because one of
//! several subflows gets no new data while it recovers from a timeout.

use crate::stats::SubflowCounters;
use crate::tcp::clock::before;
use alloc::boxed::Box;
use plait_base::{SendRange, SendRangeSet, SendSsn, Time};

/// State of F-RTO.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Frto {
    Off,
    /// Waiting for the first acknowledgement after the timeout.
    First,
    /// The first one advanced the left edge: new data is sent, and its acknowledgement decides.
    Second,
}

/// One reduction of the window and its retransmissions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Episode {
    timeout: bool,
    began: Time,
    /// Right edge when it began.
    point: SendSsn,
    /// Our clock at the first retransmission.
    first_stamp: Option<u32>,
    /// Right edge of the retransmissions.
    highest: SendSsn,
    /// Timestamps have proved that a retransmission was needed.
    needed: bool,
    /// A duplicate was reported that this end did not send. The network duplicates packets, so
    /// counting proves nothing (RFC 3708 section 3).
    spoiled: bool,
    frto: Frto,
}

/// The evidence in an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckEvidence {
    /// Left edge after it.
    pub(crate) una: SendSsn,
    /// It moved the left edge.
    pub(crate) advanced: bool,
    /// Send time of the latest delivered segment that was sent once.
    pub(crate) original: Option<Time>,
    /// The duplicate that it reports.
    pub(crate) dsack: Option<SendRange>,
    /// Our timestamp that it echoes.
    pub(crate) echo: Option<u32>,
    /// Some lost segments have not been retransmitted.
    pub(crate) lost_waiting: bool,
}

/// Capacity in ranges that is nearly always enough for one episode.
const ROOM: usize = 64;

/// Retransmitted ranges.
#[derive(Debug, Default)]
struct RetransmittedRanges {
    episode: Option<Episode>,
    /// The last segment retransmitted outside recovery, as a probe.
    probe: Option<SendRange>,
    /// Retransmitted in this episode, and not reported as duplicates.
    once: SendRangeSet,
    /// Retransmitted more than once in this episode, and not reported as duplicates.
    again: SendRangeSet,
    /// Retransmitted in the previous episode.
    earlier: SendRangeSet,
}

#[derive(Debug, Default)]
pub(crate) struct SpuriousRecovery {
    /// Allocated at the first retransmission.
    resent: Option<Box<RetransmittedRanges>>,
}

impl SpuriousRecovery {
    /// Handles a reduction of the window. `episode` is `None` if it may not be undone.
    pub(crate) fn begin(&mut self, episode: Option<Episode>) {
        let resent = self.resent.get_or_insert_default();
        let RetransmittedRanges { once, again, earlier, .. } = &mut **resent;
        core::mem::swap(earlier, once);
        once.clear();
        again.clear();
        // The first episode reserves capacity for later ones.
        for set in [once, again, earlier] {
            set.reserve(ROOM);
        }
        resent.episode = episode;
    }

    /// Ends F-RTO when the timer expires again (RFC 5682 section 3.1 step 1).
    pub(crate) fn on_repeated_timeout(&mut self) {
        self.give_up_frto();
    }

    /// Notes a retransmission of `range` at `stamp` of our clock; `probe` is true if no loss caused
    /// it.
    pub(crate) fn on_retransmitted(&mut self, range: SendRange, stamp: u32, probe: bool) {
        let resent = self.resent.get_or_insert_default();
        if probe {
            resent.probe = Some(range);
            return;
        }
        let Some(episode) = &mut resent.episode else { return };
        episode.first_stamp = episode.first_stamp.or(Some(stamp));
        episode.highest = episode.highest.max(range.end);
        if resent.once.insert(range) < range.len() {
            resent.again.insert(range);
        }
    }

    /// Returns true if retransmissions wait for the outcome of F-RTO.
    pub(crate) fn holds_retransmissions(&self) -> bool {
        let episode = self.resent.as_ref().and_then(|resent| resent.episode.as_ref());
        episode.is_some_and(|episode| episode.frto == Frto::Second)
    }

    /// Frees the memory when no retransmission can be reported any more.
    pub(crate) fn give_back(&mut self) {
        self.resent = None;
    }

    /// Ends F-RTO if there is no new data.
    pub(crate) fn give_up_frto(&mut self) {
        if let Some(episode) = self.resent.as_mut().and_then(|resent| resent.episode.as_mut()) {
            episode.frto = Frto::Off;
        }
    }

    /// Processes an acknowledgement. If it proves the current episode spurious, returns whether a
    /// timeout had caused it.
    pub(crate) fn on_ack(
        &mut self,
        evidence: &AckEvidence,
        counters: &mut SubflowCounters,
    ) -> Option<bool> {
        let resent = self.resent.as_deref_mut()?;
        let all_reported = evidence.dsack.is_some_and(|range| resent.on_dsack(range, counters));
        let episode = resent.episode.as_mut()?;
        let by_reports = all_reported && (episode.timeout || !evidence.lost_waiting);
        if by_reports || episode.echoes_original(evidence) || episode.shows_original(evidence) {
            let timeout = episode.timeout;
            resent.episode = None;
            counters.undone += 1;
            return Some(timeout);
        }
        None
    }
}

impl RetransmittedRanges {
    /// Returns true if this was the last retransmission to be reported as a duplicate.
    fn on_dsack(&mut self, range: SendRange, counters: &mut SubflowCounters) -> bool {
        if self.probe.is_some_and(|probe| probe.covers(range)) {
            self.probe = None;
            counters.spurious += 1;
            return false;
        }
        let RetransmittedRanges { once, again, earlier, .. } = self;
        let from = if again.covers(range) { &mut *again } else { &mut *once };
        if !from.covers(range) {
            if earlier.covers(range) {
                earlier.remove(range);
                counters.spurious += 1;
                return false;
            }
            if let Some(episode) = &mut self.episode {
                episode.spoiled = true;
            }
            return false;
        }
        from.remove(range);
        counters.spurious += 1;
        let spoiled = self.episode.is_none_or(|episode| episode.spoiled);
        !spoiled && once.is_empty() && again.is_empty()
    }
}

impl Episode {
    /// Creates the episode of a reduction at `now`, when the right edge is `point`. `timeout` is true
    /// if a timeout caused it, and `frto` if F-RTO may delay retransmissions.
    pub(crate) fn new(now: Time, timeout: bool, point: SendSsn, frto: bool) -> Episode {
        Episode {
            timeout,
            began: now,
            point,
            first_stamp: None,
            highest: SendSsn::ZERO,
            needed: false,
            spoiled: false,
            frto: if frto { Frto::First } else { Frto::Off },
        }
    }

    /// Returns true by Eifel detection: the left edge passed all retransmissions, and the echoed
    /// timestamp is older than the first of them.
    fn echoes_original(&mut self, evidence: &AckEvidence) -> bool {
        if !evidence.advanced || self.needed {
            return false;
        }
        let Some((echo, first)) = evidence.echo.zip(self.first_stamp) else { return false };
        self.needed = !before(echo, first);
        !self.needed && evidence.una >= self.highest
    }

    /// Returns true by F-RTO (RFC 5682 section 3.1 steps 2 and 3).
    fn shows_original(&mut self, evidence: &AckEvidence) -> bool {
        match self.frto {
            Frto::Off => false,
            Frto::First if !evidence.advanced => false,
            Frto::First if evidence.una >= self.point => {
                self.frto = Frto::Off;
                false
            }
            Frto::First => {
                self.frto = Frto::Second;
                false
            }
            Frto::Second => match evidence.original {
                None => false,
                // Data sent after the timeout arrived before older data: a loss.
                Some(sent_at) if sent_at > self.began => {
                    self.frto = Frto::Off;
                    false
                }
                Some(_) => true,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: AckEvidence = AckEvidence {
        una: SendSsn::new(1),
        advanced: false,
        original: None,
        dsack: None,
        echo: None,
        lost_waiting: false,
    };

    fn segment(index: u64) -> SendRange {
        SendRange::with_len(SendSsn::new(1 + 100 * index), 100)
    }

    fn on_ack(it: &mut SpuriousRecovery, evidence: &AckEvidence) -> Option<bool> {
        it.on_ack(evidence, &mut SubflowCounters::default())
    }

    fn after_two_retransmissions() -> SpuriousRecovery {
        let mut it = SpuriousRecovery::default();
        it.begin(Some(Episode::new(Time::ZERO, false, SendSsn::new(1_001), false)));
        it.on_retransmitted(segment(0), 50, false);
        it.on_retransmitted(segment(2), 51, false);
        it
    }

    #[test]
    fn every_retransmission_must_be_reported() {
        let mut it = after_two_retransmissions();
        let report = |range| AckEvidence { dsack: Some(range), ..NOTHING };
        let mut counters = SubflowCounters::default();
        assert_eq!(it.on_ack(&report(segment(2)), &mut counters), None);
        assert_eq!(it.on_ack(&report(segment(0)), &mut counters), Some(false));
        assert_eq!((counters.spurious, counters.undone), (2, 1));
        assert_eq!(it.on_ack(&report(segment(0)), &mut counters), None);
    }

    #[test]
    fn a_segment_sent_twice_more_is_reported_twice() {
        let mut it = after_two_retransmissions();
        it.on_retransmitted(segment(2), 90, false);
        let report = |range| AckEvidence { dsack: Some(range), ..NOTHING };
        assert_eq!(on_ack(&mut it, &report(segment(2))), None);
        assert_eq!(on_ack(&mut it, &report(segment(0))), None);
        assert_eq!(on_ack(&mut it, &report(segment(2))), Some(false));
    }

    /// RFC 3708 section 3.
    #[test]
    fn duplicates_of_the_networks_own_prove_nothing() {
        let mut it = after_two_retransmissions();
        for index in [5, 0, 2] {
            let evidence = AckEvidence { dsack: Some(segment(index)), ..NOTHING };
            assert_eq!(on_ack(&mut it, &evidence), None);
        }
        // A D-SACK for a probe does not count.
        let mut it = SpuriousRecovery::default();
        it.on_retransmitted(segment(9), 40, true);
        it.begin(Some(Episode::new(Time::ZERO, true, SendSsn::new(1_001), false)));
        it.on_retransmitted(segment(0), 50, false);
        let probe = AckEvidence { dsack: Some(segment(9)), ..NOTHING };
        assert_eq!(on_ack(&mut it, &probe), None);
        let evidence = AckEvidence { dsack: Some(segment(0)), ..NOTHING };
        assert_eq!(on_ack(&mut it, &evidence), Some(true));
    }

    /// RFC 3522 section 3.2.
    #[test]
    fn an_echo_from_before_the_first_retransmission_proves_it_unneeded() {
        for (una, echo, verdict) in
            [(301, 49, Some(false)), (201, 49, None), (301, 50, None), (301, 51, None)]
        {
            let mut it = after_two_retransmissions();
            let evidence =
                AckEvidence { una: SendSsn::new(una), advanced: true, echo: Some(echo), ..NOTHING };
            assert_eq!(on_ack(&mut it, &evidence), verdict, "ACK {una} echoes {echo}");
        }
        // One retransmission was needed: later echoes change nothing.
        let mut it = after_two_retransmissions();
        let needed =
            AckEvidence { una: SendSsn::new(201), advanced: true, echo: Some(50), ..NOTHING };
        assert_eq!(on_ack(&mut it, &needed), None);
        let late =
            AckEvidence { una: SendSsn::new(301), advanced: true, echo: Some(49), ..NOTHING };
        assert_eq!(on_ack(&mut it, &late), None);
    }

    #[test]
    fn the_clock_may_wrap_between_original_and_retransmission() {
        let mut it = SpuriousRecovery::default();
        it.begin(Some(Episode::new(Time::ZERO, true, SendSsn::new(1_001), false)));
        it.on_retransmitted(segment(0), 3, false);
        let evidence =
            AckEvidence { una: SendSsn::new(101), advanced: true, echo: Some(u32::MAX), ..NOTHING };
        assert_eq!(on_ack(&mut it, &evidence), Some(true));
    }

    /// RFC 5682 section 3.1.
    #[test]
    fn frto_waits_for_what_the_second_acknowledgement_brings() {
        let at = |nanos| Time::from_nanos(nanos);
        for (sent_at, verdict) in [(at(90), Some(true)), (at(200), None)] {
            let mut it = SpuriousRecovery::default();
            it.begin(Some(Episode::new(at(100), true, SendSsn::new(1_001), true)));
            it.on_retransmitted(segment(0), 0, false);
            assert!(!it.holds_retransmissions());
            let first = AckEvidence { una: SendSsn::new(101), advanced: true, ..NOTHING };
            assert_eq!(on_ack(&mut it, &first), None);
            assert!(it.holds_retransmissions());
            let second = AckEvidence { original: Some(sent_at), ..first };
            assert_eq!(on_ack(&mut it, &second), verdict);
            assert!(!it.holds_retransmissions());
        }
        // Everything is acknowledged at once: undecidable.
        let mut it = SpuriousRecovery::default();
        it.begin(Some(Episode::new(at(100), true, SendSsn::new(1_001), true)));
        let all = AckEvidence {
            una: SendSsn::new(1_001),
            advanced: true,
            original: Some(at(9)),
            ..NOTHING
        };
        assert_eq!(on_ack(&mut it, &all), None);
        assert!(!it.holds_retransmissions());
    }

    #[test]
    fn switched_off_it_finds_nothing() {
        let mut it = SpuriousRecovery::default();
        it.begin(None);
        it.on_retransmitted(segment(0), 50, false);
        let evidence = AckEvidence {
            dsack: Some(segment(0)),
            echo: Some(1),
            una: SendSsn::new(900),
            advanced: true,
            ..NOTHING
        };
        let mut counters = SubflowCounters::default();
        assert_eq!(it.on_ack(&evidence, &mut counters), None);
        assert_eq!(counters, SubflowCounters::default());
    }
}
