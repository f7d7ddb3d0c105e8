//! Segments of a subflow that may be too long for its path.

use crate::config::Config;
use crate::data::dss::KEYS_OVER_DSS;
use crate::data::level::DataLevel;
use crate::tcp::pmtu_black_hole::Verdict;
use crate::tcp::sender::Sender;
use crate::tcp::subflow::Subflow;
use plait_base::{SendSsn, Time};

/// Consecutive timeouts after which a path is tested with short segments.
const SHORT_SEGMENTS_AFTER_TIMEOUTS: u32 = 2;

/// The segments of a subflow, of which its path may drop the long ones.
pub(crate) struct SegmentSize<'a>(&'a mut Sender);

impl Subflow {
    /// Returns its segments, to shorten them.
    pub(crate) fn segment_size(&mut self) -> SegmentSize<'_> {
        SegmentSize(&mut self.sender)
    }
}

impl SegmentSize<'_> {
    /// Handles a timeout. From the second consecutive one on, the segment at the left edge is sent
    /// in pieces. One piece passes on every path, the others on nearly every path. Together they are
    /// as long as the original. Full segments have `size` payload bytes.
    pub(crate) fn probe_smaller(
        &mut self,
        data: &DataLevel,
        config: &Config,
        size: u32,
        now: Time,
    ) {
        let due = self.0.rtt.backoff() >= SHORT_SEGMENTS_AFTER_TIMEOUTS
            || self.0.black_hole().is_likely();
        let least = data.payload_within(config, Config::LEAST_PACKET);
        let long = |len: u32| u64::from(len) > least;
        let is_long = self.0.tx.first().is_some_and(|head| !head.fin && long(head.len));
        if !due || !is_long {
            return;
        }
        let base = data.payload_within(config, Config::BASE_PACKET) as u32;
        let small = least.saturating_sub(KEYS_OVER_DSS).max(1) as u32;
        self.0.tx.cut_first(small, base.min(size));
        self.0.probe_black_hole(now);
    }

    /// Notes delivered segments of at most `longest` payload bytes. If its path delivers only
    /// segments up to a size, returns that size; `below` is the next smaller size of segments.
    pub(crate) fn passes_only(&mut self, longest: u32, below: u32) -> Option<u32> {
        match self.0.black_hole_mut()?.on_delivered(longest, below) {
            Verdict::BlackHole(passed) => Some(passed),
            _ => None,
        }
    }

    /// Counts segments longer than `size` from `seq` on as lost, without congestion.
    pub(crate) fn lose_long(&mut self, seq: SendSsn, size: u32) {
        self.0.tx.mark_long_lost(seq, size);
    }

    /// Cuts unacknowledged segments to `size` payload bytes, because a path drops longer ones.
    pub(crate) fn cut_to(&mut self, size: u32) {
        self.0.tx.cut_to(size);
        self.0.cc.resize(size);
        self.0.reset_black_hole();
    }
}
