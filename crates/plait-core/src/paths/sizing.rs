//! How long a segment may be: what the handshake leaves (`handshake.rs`), and less where a path lets
//! no more through, be it that it vanishes (RFC 4821 section 7.7, RFC 8899 sections 4.3 and 5) or
//! that a router says so (RFC 1191, RFC 8201).
//!
//! The size is one for the connection, so that what was sent on one path fits every other, and it
//! stays: a search upwards would cost segments, and 1,200 bytes in place of 1,500 cost 1.5 %.

use crate::config::Config;
use crate::conn::context::Context;
use crate::data::level::DataLevel;
use crate::event::{Event, SizeCause};
use crate::paths::Paths;
use crate::sched::views::KEYS_OVER_DSS;
use crate::tcp::pmtu_black_hole::Verdict;
use plait_base::{Dsn, Time};

/// Timeouts in a row from which on a path is asked with short segments.
const SHORT_SEGMENTS_AFTER_TIMEOUTS: u32 = 2;

/// MP_CAPABLE with data takes so much more than a DSS.
const KEYS_BYTES: u64 = KEYS_OVER_DSS;

impl Paths {
    /// What our MTU and the peer's MSS, which counts no options (RFC 6691), leave for data on the
    /// subflow at `index`. Plain TCP has no DSS to leave room for, and no other subflow, and counts its
    /// window in such segments; else the least of all subflows counts.
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

    /// The longest IP packet, in bytes, that the size of segments allows.
    pub(crate) fn most_packet(&self, data: &DataLevel) -> u32 {
        let most = self.mss() + 40 + data.data_options(&self.spec.config);
        u32::try_from(most).unwrap_or(u32::MAX).min(self.spec.config.packets.mtu)
    }

    /// The size that is left where the present one does not pass; `None` where it is the least.
    pub(crate) fn size_below(&self, data: &DataLevel) -> Option<u64> {
        let steps = [Config::BASE_PACKET, Config::LEAST_PACKET]
            .map(|it| data.payload_within(&self.spec.config, it));
        steps.into_iter().find(|size| *size < self.mss())
    }

    /// The subflow at `index` has just had a timeout. From the second in a row on, the segment at its
    /// left edge goes out in pieces: one that passes everywhere, and others that pass nearly
    /// everywhere. Together they are as long as the one.
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
        let small = least.saturating_sub(KEYS_BYTES).max(1) as u32;
        self.subflows[index].sender.tx.cut_first(small, base.min(self.mss));
        self.subflows[index].probe_black_hole(now);
    }

    /// A handshake has passed, and nothing of the first data has, which carries our keys: the
    /// connection begins again. The second time that long segments are lost between short ones they
    /// are taken to be too long: returns the size that is left.
    #[cold]
    pub(crate) fn size_after_lost_start(&mut self, data: &DataLevel) -> Option<u64> {
        self.unheard = self.unheard.saturating_add(1);
        let allowed = self.spec.config.recovery.black_holes
            && data.queue.nxt() > Dsn::ZERO
            && self.unheard > 1;
        self.size_below(data).filter(|_| allowed)
    }

    /// Segments of at most `longest` payload bytes were delivered that were sent since the path of
    /// the subflow at `index` may be a black hole. Returns the size that is left if it is one.
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

    /// From here on segments have at most `size` payload bytes, and what is under way is cut to that,
    /// should it have to be sent again. It is no sign of congestion (RFC 8899 section 3): windows keep
    /// their bytes. The path of the subflow at `index` lets no more through.
    pub(crate) fn lower_size(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        index: usize,
        size: u64,
        cause: SizeCause,
    ) {
        match cause {
            SizeCause::TooBig => ctx.sizes.lowered_as_told += 1,
            SizeCause::BlackHole => ctx.sizes.lowered_by_hole += 1,
        }
        self.mss = size as u32;
        self.narrowed = true;
        for subflow in &mut self.subflows {
            subflow.sender.tx.cut_to(size as u32);
            subflow.sender.cc.resize(size as u32);
            subflow.reset_black_hole();
        }
        data.queue.cut_to(size);
        data.queue.unassign_all();
        let subflow = self.subflows[index].id;
        ctx.emit(Event::SegmentSize { subflow, bytes: size, cause });
    }

    /// A router says that the segment at `seq` of the wire did not fit its next hop, which takes `mtu`
    /// bytes. `None` if it is not to be believed: nothing in flight begins or goes on there (S10), or no link
    /// has such an MTU. Otherwise returns the size that is left, if it is smaller than the present one.
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
        // Later segments met the same hop. They go again at once: nothing was congested.
        subflow.sender.tx.mark_long_lost(seq, size as u32);
        Some(Some(size))
    }
}
