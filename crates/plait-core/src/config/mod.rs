//! Settings of a connection.

mod groups;

pub use groups::{
    BufferSizes, Dial, FallbackRules, JoinRules, JoinTiming, KernelBuffers, KernelRules,
    LossDetection, Pacing, PacketSizes, PathConfig, Prr, RecoveryRules, ReduceFrom, RtoMode,
    StartOffsets, Timeouts, WindowRules,
};

use plait_base::Span;
use plait_cc::HyStart;

/// Settings of a connection. Both ends have their own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Speak Multipath TCP; otherwise plain TCP on the first path.
    pub multipath: bool,
    /// Ask for DSS checksums; they are used in both directions where either end asks (RFC 8684
    /// section 3.1).
    pub checksum: bool,
    /// Sizes of packets.
    pub packets: PacketSizes,
    /// Buffers, and what is advertised of them.
    pub buffers: BufferSizes,
    /// How the congestion window begins, grows and is reduced, and how it goes out.
    pub window: WindowRules,
    /// How losses are recognised and mended.
    pub recovery: RecoveryRules,
    /// Which paths are dialled, joined and probed.
    pub joins: JoinRules,
    /// How long a connection waits.
    pub timeouts: Timeouts,
    /// When a client speaks plain TCP because paths swallow MP_CAPABLE (RFC 8684 section 3.7).
    pub fallback: FallbackRules,
    /// What else is done as a stock kernel does it. All but
    /// [`KernelRules::keep_data`] need [`BufferSizes::kernel`].
    pub kernel_rules: KernelRules,
    /// Delay acknowledgements: every second full segment or after [`Config::ACK_DELAY`].
    pub delayed_ack: bool,
    /// Hold data back while the host's own queue has enough of it (TCP small queues); the world
    /// tells when segments leave the host.
    pub tsq: bool,
    /// Where numbers that wrap begin.
    pub offsets: StartOffsets,
}

impl Config {
    /// Longest delay of an acknowledgement (Linux's lower bound; RFC 9293 allows 500 ms).
    pub const ACK_DELAY: Span = Span::from_millis(40);
    /// Segments at the start of a subflow that are acknowledged one by one ("quick ACKs").
    pub const QUICK_ACKS: u32 = 16;

    /// Further addresses of a peer: with more than this many no connection has room for subflows.
    pub const PEER_ADDRESSES: u8 = 4;
    /// Linux 6.18: `net.mptcp.close_timeout`.
    pub const CLOSE_TIMEOUT: Span = Span::from_secs(60);
    /// Linux 6.18: `net.ipv4.tcp_fin_timeout`.
    pub const FIN_TIMEOUT: Span = Span::from_secs(60);
    /// [`PacketSizes::unsaid_mss`] of peers by IPv4.
    pub const UNSAID_MSS_V4: u16 = 536;
    /// The same of peers by IPv6.
    pub const UNSAID_MSS_V6: u16 = 1_220;
    /// How often an address is told again until the peer has echoed it (Linux 6.18:
    /// `net.mptcp.add_addr_timeout`).
    pub const ADD_ADDR_PERIOD: Span = Span::from_secs(120);

    /// What an IP packet carries beside the longest headers.
    pub const SUPERPACKET: u32 = 0xffff - 40 - 60;

    /// IP packet in bytes that passes nearly everywhere (BASE_PLPMTU of RFC 8899 section 5.1.2), counted
    /// with the headers of IPv4.
    pub const BASE_PACKET: u32 = 1_200;
    /// IP packet in bytes that every host takes (RFC 791); smaller ones are not tried.
    pub const LEAST_PACKET: u32 = 576;

    /// Least MTU that a router is believed to have (Linux: min_pmtu); one below that of
    /// [`Config::LEAST_PACKET`] counts as that.
    pub(crate) const LEAST_MTU: u32 = 552;

    /// Bytes of options on a data segment of plain TCP: timestamps and their padding.
    pub(crate) const PLAIN_OPTIONS: u64 = 12;

    /// Keep-alives that a peer may leave unanswered (Linux 6.18: `net.ipv4.tcp_keepalive_probes`).
    pub const KEEP_ALIVES: u8 = 9;
    /// Time between them, at most (Linux 6.18: `net.ipv4.tcp_keepalive_intvl`).
    pub const KEEP_ALIVE_INTERVAL: Span = Span::from_secs(75);

    /// Interval of probes: a path that has healed is found within it and a round trip.
    pub const PROBE: Span = Span::from_secs(1);

    /// How long the first SYN of a connection waits for an answer before another path is tried, where
    /// there is one and paths are probed (RFC 8305 section 8: the delay between attempts).
    pub const CONNECTION_ATTEMPT_DELAY: Span = Span::from_millis(250);

    /// The same with some settings changed.
    #[must_use]
    pub fn with(mut self, set: impl FnOnce(&mut Config)) -> Config {
        set(&mut self);
        self
    }

    /// L of RFC 3465. HyStart++ has its own: 8, and none where segments are paced (RFC 9406
    /// section 4.2).
    pub(crate) fn slow_start_limit(&self) -> u32 {
        match (self.window.hystart, self.window.pacing) {
            (HyStart::PlusPlus, Some(_)) => u32::MAX,
            (HyStart::PlusPlus, None) => self.window.slow_start_limit.max(8),
            _ => self.window.slow_start_limit,
        }
    }

    /// Segments out of order that are kept at most, on a subflow and in the data: enough for a
    /// buffer full of segments of 256 bytes.
    pub(crate) fn most_held(&self) -> u32 {
        u32::try_from(self.buffers.rcvbuf / 256).unwrap_or(u32::MAX).saturating_add(4_096)
    }

    /// Payload bytes of a full segment in steady state: what is left of the MTU after 40 bytes of
    /// headers, 12 of timestamps and, with Multipath TCP, a DSS padded to 20 (4-byte DSN and
    /// DATA_ACK: 18 bytes, 20 with a checksum).
    #[must_use]
    pub const fn segment_payload(&self) -> u64 {
        self.room_for_data(self.option_bytes())
    }

    /// What the MTU leaves beside headers and `options` bytes of options.
    pub(crate) const fn room_for_data(&self, options: u64) -> u64 {
        (self.packets.mtu as u64).saturating_sub(40 + options)
    }

    /// Bytes of options on a data segment in steady state.
    #[must_use]
    pub const fn option_bytes(&self) -> u64 {
        match (self.multipath, self.buffers.kernel.is_some()) {
            (false, _) => Config::PLAIN_OPTIONS,
            (true, false) => Config::PLAIN_OPTIONS + 20,
            // A DSS with 64 bits of both numbers.
            (true, true) => Config::PLAIN_OPTIONS + 28,
        }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            multipath: true,
            checksum: false,
            packets: PacketSizes::default(),
            buffers: BufferSizes::default(),
            window: WindowRules::default(),
            recovery: RecoveryRules::default(),
            joins: JoinRules::default(),
            timeouts: Timeouts::default(),
            fallback: FallbackRules::default(),
            kernel_rules: KernelRules::default(),
            delayed_ack: true,
            tsq: false,
            offsets: StartOffsets::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9406 section 4.2: L is 8, and infinite where segments are paced.
    #[test]
    fn hystart_has_its_own_limit() {
        let of = |hystart, pacing| {
            Config::default().with(|it| {
                it.window.hystart = hystart;
                it.window.pacing = pacing;
            })
        };
        let paced = Some(Pacing::default());
        for (hystart, limit, limit_paced) in [
            (HyStart::Off, 2, 2),
            (HyStart::PlusPlus, 8, u32::MAX),
            (HyStart::Linux, 2, 2),
            (HyStart::Linux3, 2, 2),
        ] {
            assert_eq!(of(hystart, None).slow_start_limit(), limit, "{hystart:?}");
            assert_eq!(of(hystart, paced).slow_start_limit(), limit_paced, "{hystart:?}");
        }
    }
}
