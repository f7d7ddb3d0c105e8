//! Segment sizes. The handshake sets the first size (`handshake.rs`). It shrinks if a path drops
//! longer packets (RFC 4821 section 7.7, RFC 8899 sections 4.3 and 5), or a router reports it (RFC
//! 1191, RFC 8201).
//!
//! One size holds for the connection, so that data sent on one path fits every other. It never
//! grows: a search would cost segments, and 1,200 bytes instead of 1,500 cost 1.5 %.

use crate::config::Config;
use crate::context::Context;
use crate::data::dss::KEYS_OVER_DSS;
use crate::data::level::DataLevel;
use crate::event::{Event, SizeCause};
use crate::paths::Paths;
use crate::tcp::pmtu_black_hole::Verdict;
use plait_base::{Dsn, Time};

/// Consecutive timeouts after which a path is tested with short segments.
const SHORT_SEGMENTS_AFTER_TIMEOUTS: u32 = 2;

impl Paths {
    /// Sets the segment size of the subflow at `index` from our MTU and the peer's MSS, which
    /// excludes options (RFC 6691). Plain TCP needs no room for a DSS, has no other subflow, and
    /// counts its window in such segments. Otherwise the smallest size of all subflows is used.
    pub(crate) fn size_segments(&mut self, data: &DataLevel, index: usize) {
        let _config = &self.spec.config;
        let mss = u64::from(self.subflows[index].shake.offer.mss);
        let left = |room: u64| {
            self.spec.config.room_for_data(room).min(mss.saturating_sub(room)).max(1) as u32
        };
        let usual = left(self.spec.config.option_bytes());
        self.mss = match data.plain() && !self.narrowed {
            true => left(Config::PLAIN_OPTIONS),
            false => self.mss.min(usual),
        };
        self.ack_unit = self.ack_unit.min(usual);
        if data.plain() {
            self.subflows[index].sender.cc.resize(self.mss);
        }
    }

    /// Returns the longest IP packet of the current segment size, in bytes.
    pub(crate) fn most_packet(&self, data: &DataLevel) -> u32 {
        let most = self.mss() + 40 + data.data_options(&self.spec.config);
        u32::try_from(most).unwrap_or(u32::MAX).min(self.spec.config.packets.mtu)
    }

    /// Returns the next smaller size; `None` if the current one is the smallest.
    pub(crate) fn size_below(&self, data: &DataLevel) -> Option<u64> {
        let steps = [Config::BASE_PACKET, Config::LEAST_PACKET]
            .map(|it| data.payload_within(&self.spec.config, it));
        steps.into_iter().find(|size| *size < self.mss())
    }

    /// Handles a timeout of the subflow at `index`. From the second consecutive one on, the segment
    /// at its left edge is sent in pieces. One piece passes on every path, the others on nearly
    /// every path. Together they are as long as the original.
    pub(crate) fn probe_smaller_size(&mut self, data: &DataLevel, now: Time, index: usize) {
        let subflow = &self.subflows[index];
        let due = subflow.sender.rtt.backoff() >= SHORT_SEGMENTS_AFTER_TIMEOUTS
            || subflow.black_hole().is_likely();
        let least = data.payload_within(&self.spec.config, Config::LEAST_PACKET);
        let long = |len: u32| u64::from(len) > least;
        let is_long = subflow.sender.tx.first().is_some_and(|head| !head.fin && long(head.len));
        let allowed = self.spec.config.recovery.black_holes && self.size_below(data).is_some();
        if !due || !is_long || !allowed {
            return;
        }
        let base = data.payload_within(&self.spec.config, Config::BASE_PACKET) as u32;
        let small = least.saturating_sub(KEYS_OVER_DSS).max(1) as u32;
        self.subflows[index].sender.tx.cut_first(small, base.min(self.mss));
        self.subflows[index].probe_black_hole(now);
    }

    /// Handles a handshake that succeeded while the first data, with our keys, was lost: the
    /// connection restarts. When long segments between short ones are lost a second time, they
    /// count as too long: returns the next smaller size.
    #[cold]
    pub(crate) fn size_after_lost_start(&mut self, data: &DataLevel) -> Option<u64> {
        self.unheard = self.unheard.saturating_add(1);
        let allowed = self.spec.config.recovery.black_holes
            && data.queue.nxt() > Dsn::ZERO
            && self.unheard > 1;
        self.size_below(data).filter(|_| allowed)
    }

    /// Handles delivered segments of at most `longest` payload bytes that were sent since a black
    /// hole was suspected. Returns the new size if the path of the subflow at `index` is one.
    #[cold]
    pub(crate) fn size_after_delivery(
        &mut self,
        data: &DataLevel,
        index: usize,
        longest: u32,
    ) -> Option<u64> {
        let below = self.size_below(data)?;
        let detector = self.subflows[index].black_hole_mut()?;
        let Verdict::BlackHole(passed) = detector.on_delivered(longest, below as u32) else {
            return None;
        };
        let least = data.payload_within(&self.spec.config, Config::LEAST_PACKET);
        Some(if u64::from(passed) > least { below } else { least.min(below) })
    }

    /// Limits segments to `size` payload bytes, because the path of the subflow at `index` drops
    /// longer ones. Data in flight is split for retransmission. This is no sign of congestion (RFC
    /// 8899 section 3), so windows stay the same in bytes.
    pub(crate) fn lower_size(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        index: usize,
        size: u64,
        cause: SizeCause,
    ) {
        ctx.count_lowered_size(cause);
        self.mss = size as u32;
        self.narrowed = true;
        for subflow in self.subflows.iter_mut() {
            subflow.sender.tx.cut_to(size as u32);
            subflow.sender.cc.resize(size as u32);
            subflow.reset_black_hole();
        }
        data.queue.cut_to(size);
        data.queue.unassign_all();
        let subflow = self.subflows[index].id;
        ctx.emit(Event::SegmentSize { subflow, bytes: size, cause });
    }

    /// Handles a router's message that the segment at `seq` of the wire exceeds the next hop's
    /// limit of `mtu` bytes. Returns `None` if it is not believed: `seq` is not in flight (S10), or
    /// no link has such an MTU. Otherwise returns the new size, if it is smaller than the current
    /// one.
    #[cold]
    pub(crate) fn size_as_told(
        &mut self,
        data: &DataLevel,
        index: usize,
        seq: u32,
        mtu: u32,
    ) -> Option<Option<u64>> {
        let mss = self.mss();
        let subflow = &mut self.subflows[index];
        let (una, nxt) = (subflow.sender.tx.una(), subflow.sender.tx.nxt());
        let seq = subflow.shake.own_seq(seq, una);
        let under_way = subflow.state.synchronised() && (una..nxt).contains(&seq);
        if !under_way || mtu < Config::LEAST_MTU {
            return None;
        }
        let size = data.payload_within(&self.spec.config, mtu.max(Config::LEAST_PACKET));
        if size >= mss {
            return Some(None);
        }
        // Later segments met the same limit. They are retransmitted at once, because there was no
        // congestion.
        subflow.sender.tx.mark_long_lost(seq, size as u32);
        Some(Some(size))
    }
}
