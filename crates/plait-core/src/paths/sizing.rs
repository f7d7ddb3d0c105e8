//! Segment sizes. The handshake sets the first size (`handshake.rs`). It shrinks if a path drops
//! longer packets (RFC 4821 section 7.7, RFC 8899 sections 4.3 and 5), or a router reports it (RFC
//! 1191, RFC 8201).
//!
//! One size holds for the connection, so that data sent on one path fits every other. It never
//! grows: a search would cost segments, and 1,200 bytes instead of 1,500 cost 1.5 %.

use crate::config::Config;
use crate::context::Context;
use crate::data::level::DataLevel;
use crate::event::{Event, SizeCause};
use crate::paths::Paths;
use crate::tcp::subflow::Subflow;
use plait_base::{Dsn, SubflowId};
use plait_wire::WireSeq;

/// Payload bytes of full segments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentSizes {
    /// Size of ours: limited by our MTU, the peer's MSS and the paths.
    mss: u32,
    /// Size of the peer's. An end that has not fallen back yet sends no more.
    ack_unit: u32,
    /// A path delivers smaller packets only than the handshake suggested.
    narrowed: bool,
}

impl SegmentSizes {
    pub(super) const fn new(config: &Config) -> SegmentSizes {
        let mss = config.segment_payload() as u32;
        SegmentSizes { mss, ack_unit: mss, narrowed: false }
    }

    /// Returns the size of our full segments.
    pub(crate) const fn mss(&self) -> u64 {
        self.mss as u64
    }

    /// Returns the size of the peer's full segments.
    pub(super) const fn ack_unit(&self) -> u64 {
        self.ack_unit as u64
    }

    /// Returns our size if it was lowered after a handshake.
    pub(super) fn lowered(&self) -> Option<u32> {
        self.narrowed.then_some(self.mss)
    }

    /// Sets the sizes from our MTU and the peer's MSS, which excludes options (RFC 6691). Plain TCP
    /// needs no room for a DSS and has no other subflow. Otherwise the smallest size of all subflows is used.
    fn on_handshake(&mut self, config: &Config, plain: bool, peer_mss: u16) {
        let left = |room: u64| {
            let peer = u64::from(peer_mss).saturating_sub(room);
            config.room_for_data(room).min(peer).max(1) as u32
        };
        let usual = left(config.option_bytes());
        self.mss = match plain && !self.narrowed {
            true => left(Config::PLAIN_OPTIONS),
            false => self.mss.min(usual),
        };
        self.ack_unit = self.ack_unit.min(usual);
    }

    /// Returns the next smaller size; `None` if the current one is the smallest.
    fn below(&self, config: &Config, data: &DataLevel) -> Option<u64> {
        let steps = [Config::BASE_PACKET, Config::LEAST_PACKET];
        steps.map(|it| data.payload_within(config, it)).into_iter().find(|size| *size < self.mss())
    }

    /// Returns true if black holes are detected and there is a smaller size.
    pub(super) fn may_shrink(&self, config: &Config, data: &DataLevel) -> bool {
        config.recovery.black_holes && self.below(config, data).is_some()
    }

    /// Lowers our size, because a path drops longer segments.
    fn lower(&mut self, size: u32) {
        (self.mss, self.narrowed) = (size, true);
    }
}

/// The settings and segment sizes of a connection, which all its subflows use.
#[derive(Clone, Copy)]
pub(crate) struct Rules<'a> {
    pub(super) config: &'a Config,
    pub(super) sizes: SegmentSizes,
}

impl Rules<'_> {
    /// Returns the longest IP packet of the current segment size, in bytes.
    pub(super) fn most_packet(&self, data: &DataLevel) -> u32 {
        let most = self.sizes.mss() + 40 + data.data_options(self.config);
        u32::try_from(most).unwrap_or(u32::MAX).min(self.config.packets.mtu)
    }
}

impl Paths {
    /// Returns the payload bytes of a full segment.
    #[inline(always)]
    pub(crate) fn mss(&self) -> u64 {
        self.sizes.mss()
    }

    /// Returns the subflow `id`, and the rules for it.
    #[inline(always)]
    pub(super) fn at(&mut self, id: SubflowId) -> (&mut Subflow, Rules<'_>) {
        let rules = Rules { config: &self.spec.config, sizes: self.sizes };
        (&mut self.subflows[id], rules)
    }

    /// Sets the segment sizes from the handshake of the subflow `id`. Its window counts in these segments (RFC 5681
    /// section 2).
    pub(crate) fn size_segments(&mut self, data: &DataLevel, id: SubflowId) {
        let subflow = &mut self.subflows[id];
        self.sizes.on_handshake(&self.spec.config, data.plain(), subflow.negotiated().peer_mss);
        subflow.window().resize(self.sizes.mss);
    }

    /// Handles a handshake that succeeded while the first data, with our keys, was lost: the
    /// connection restarts. When long segments between short ones are lost a second time, they
    /// count as too long: returns the next smaller size.
    #[cold]
    pub(crate) fn size_after_lost_start(&mut self, data: &DataLevel) -> Option<u64> {
        let again = self.redial.count_lost_start();
        let allowed = self.spec.config.recovery.black_holes && data.queue().nxt() > Dsn::ZERO;
        self.sizes.below(&self.spec.config, data).filter(|_| allowed && again)
    }

    /// Handles delivered segments of at most `longest` payload bytes that were sent since a black
    /// hole was suspected. Returns the new size if the path of the subflow `id` is one.
    #[cold]
    pub(crate) fn size_after_delivery(
        &mut self,
        data: &DataLevel,
        id: SubflowId,
        longest: u32,
    ) -> Option<u64> {
        let (subflow, Rules { config, sizes }) = self.at(id);
        let below = sizes.below(config, data)?;
        let passed = subflow.segment_size().passes_only(longest, below as u32)?;
        let least = data.payload_within(config, Config::LEAST_PACKET);
        Some(if u64::from(passed) > least { below } else { least.min(below) })
    }

    /// Handles a router's message that the segment at `seq` of the wire exceeds the next hop's
    /// limit of `mtu` bytes. Returns `None` if it is not accepted: `seq` is not in flight (S10), or
    /// no link has such an MTU. Otherwise returns the new size, if it is smaller than the current
    /// one.
    #[cold]
    pub(crate) fn size_as_told(
        &mut self,
        data: &DataLevel,
        id: SubflowId,
        seq: WireSeq,
        mtu: u32,
    ) -> Option<Option<u64>> {
        let (subflow, rules) = self.at(id);
        let (una, nxt) = (subflow.sender().tx.una(), subflow.sender().tx.nxt());
        let seq = subflow.negotiated().iss.read(seq, una);
        let under_way = subflow.state().synchronised() && (una..nxt).contains(&seq);
        if !under_way || mtu < Config::LEAST_MTU {
            return None;
        }
        let size = data.payload_within(rules.config, mtu.max(Config::LEAST_PACKET));
        if size >= rules.sizes.mss() {
            return Some(None);
        }
        // Later segments met the same limit. They are retransmitted at once, because there was no
        // congestion.
        subflow.segment_size().lose_long(seq, size as u32);
        Some(Some(size))
    }

    /// Limits segments to `size` payload bytes, because the path of the subflow `id` drops
    /// longer ones. Data in flight is split for retransmission. This is no sign of congestion (RFC
    /// 8899 section 3), so windows stay the same in bytes.
    pub(crate) fn lower_size(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        id: SubflowId,
        size: u64,
        cause: SizeCause,
    ) {
        ctx.counters().on_size_lowered(cause);
        self.sizes.lower(size as u32);
        for subflow in self.subflows.iter_mut() {
            subflow.segment_size().cut_to(size as u32);
        }
        data.on_lower_size(size);
        let subflow = self.subflows[id].id();
        ctx.emit(Event::SegmentSize { subflow, bytes: size, cause });
    }
}
