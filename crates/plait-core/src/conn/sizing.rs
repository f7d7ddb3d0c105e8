//! How long a segment may be: what the handshake leaves (`handshake.rs`), and less where a path lets
//! no more through, be it that it vanishes (RFC 4821 section 7.7, RFC 8899 sections 4.3 and 5) or
//! that a router says so (RFC 1191, RFC 8201).
//!
//! The size is one for the connection, so that what was sent on one path fits every other, and it
//! stays: a search upwards would cost segments, and 1,200 bytes in place of 1,500 cost 1.5 %.

use super::{Connection, Context};
use crate::config::Config;
use crate::event::{Event, SizeCause};
use crate::tcp::pmtu_black_hole::Verdict;
use plait_base::{Dsn, Time};

/// Timeouts in a row from which on a path is asked with short segments.
const SHORT_SEGMENTS_AFTER_TIMEOUTS: u32 = 2;

/// MP_CAPABLE with data takes so much more than a DSS.
const KEYS_BYTES: u64 = super::views::KEYS_OVER_DSS;

impl Connection {
    /// Bytes of options on a data segment in steady state.
    fn data_options(&self) -> u64 {
        if self.plain() { Config::PLAIN_OPTIONS } else { self.spec.config.option_bytes() }
    }

    /// Payload of a segment in an IP packet of `bytes`.
    fn payload_within(&self, bytes: u32) -> u64 {
        u64::from(bytes).saturating_sub(40 + self.data_options()).max(1)
    }

    /// The longest IP packet, in bytes, that the size of segments allows.
    pub(super) fn most_packet(&self) -> u32 {
        let most = self.mss() + 40 + self.data_options();
        u32::try_from(most).unwrap_or(u32::MAX).min(self.spec.config.mtu)
    }

    /// The size that is left where the present one does not pass; `None` where it is the least.
    fn size_below(&self) -> Option<u64> {
        let steps = [Config::BASE_PACKET, Config::LEAST_PACKET].map(|it| self.payload_within(it));
        steps.into_iter().find(|size| *size < self.mss())
    }

    /// The subflow at `index` has just had a timeout. From the second in a row on, the segment at its
    /// left edge goes out in pieces: one that passes everywhere, and others that pass nearly
    /// everywhere. Together they are as long as the one.
    pub(super) fn probe_smaller_size(&mut self, now: Time, index: usize) {
        let subflow = &self.subflows[index];
        let due = subflow.rtt.backoff() >= SHORT_SEGMENTS_AFTER_TIMEOUTS
            || subflow.black_hole().is_likely();
        let least = self.payload_within(Config::LEAST_PACKET);
        let long = |len: u32| u64::from(len) > least;
        let is_long = subflow.tx.first().is_some_and(|head| !head.fin && long(head.len));
        let allowed = self.spec.config.black_holes && self.size_below().is_some();
        if !due || !is_long || !allowed {
            return;
        }
        let base = self.payload_within(Config::BASE_PACKET) as u32;
        let small = least.saturating_sub(KEYS_BYTES).max(1) as u32;
        self.subflows[index].tx.cut_first(small, base.min(self.mss));
        self.subflows[index].probe_black_hole(now);
    }

    /// A handshake has passed, and nothing of the first data has, which carries our keys: the
    /// connection begins again. The second time that long segments are lost between short ones they
    /// are taken to be too long.
    #[cold]
    pub(super) fn on_first_data_lost(&mut self, ctx: &mut Context<'_>, index: usize) {
        self.unheard = self.unheard.saturating_add(1);
        let allowed = self.spec.config.black_holes && self.queue.nxt() > Dsn::ZERO;
        if let Some(size) = self.size_below().filter(|_| allowed && self.unheard > 1) {
            self.lower_size(ctx, index, size, SizeCause::BlackHole);
        }
    }

    /// Segments of at most `longest` payload bytes were delivered that were sent since the path of
    /// the subflow at `index` may be a black hole.
    #[cold]
    pub(super) fn on_size_delivered(&mut self, ctx: &mut Context<'_>, index: usize, longest: u32) {
        let Some(below) = self.size_below() else { return };
        let Some(detector) = self.subflows[index].black_hole_mut() else { return };
        let Verdict::BlackHole(passed) = detector.on_delivered(longest, below as u32) else {
            return;
        };
        let least = self.payload_within(Config::LEAST_PACKET);
        let size = if u64::from(passed) > least { below } else { least.min(below) };
        self.lower_size(ctx, index, size, SizeCause::BlackHole);
    }

    /// A router says that the segment at `seq` of the wire did not fit its next hop, which takes `mtu`
    /// bytes. False where it is not to be believed: nothing in flight begins or goes on there (S10),
    /// or no link has such an MTU.
    #[cold]
    pub(crate) fn on_too_big(
        &mut self,
        ctx: &mut Context<'_>,
        index: usize,
        seq: u32,
        mtu: u32,
    ) -> bool {
        let subflow = &self.subflows[index];
        let (una, nxt) = (subflow.tx.una(), subflow.tx.nxt());
        let seq = subflow.shake.own_seq(seq, una);
        let under_way = subflow.state.synchronised() && (una..nxt).contains(&seq);
        if !under_way || mtu < Config::LEAST_MTU {
            return false;
        }
        let size = self.payload_within(mtu.max(Config::LEAST_PACKET));
        if size < self.mss() {
            // What followed it met the same hop. It goes again at once: nothing was congested.
            self.subflows[index].tx.mark_long_lost(seq, size as u32);
            self.lower_size(ctx, index, size, SizeCause::TooBig);
        }
        true
    }

    /// From here on segments have at most `size` payload bytes, and what is under way is cut to that,
    /// should it have to be sent again. It is no sign of congestion (RFC 8899 section 3): windows keep
    /// their bytes.
    pub(super) fn lower_size(
        &mut self,
        ctx: &mut Context<'_>,
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
        for at in 0..self.subflows.len() {
            let subflow = &mut self.subflows[at];
            subflow.tx.cut_to(size as u32);
            subflow.cc.resize(size as u32);
            subflow.reset_black_hole();
        }
        self.queue.cut_to(size);
        self.queue.unassign_all();
        self.scheduling.wake();
        let subflow = self.subflows[index].id;
        ctx.emit(Event::SegmentSize { subflow, bytes: size, cause });
    }
}
