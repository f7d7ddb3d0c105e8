//! Settings of a connection.

mod groups;

#[cfg(feature = "laboratory")]
pub use groups::StartOffsets;
#[cfg(not(feature = "laboratory"))]
use groups::StartOffsets;
pub use groups::{
    BufferSizes, Dial, FallbackRules, JoinRules, JoinTiming, KernelBuffers, KernelRules,
    LossDetection, Pacing, PacketSizes, PathConfig, Prr, RecoveryRules, ReduceFrom, RtoMode,
    Timeouts, WindowRules,
};

use plait_base::Span;
use plait_cc::HyStart;

/// Settings of a connection. Both ends have their own.
///
/// # Examples
/// ```
/// use plait_core::{Config, JoinTiming};
///
/// let config = Config::default().with(|it| {
///     it.checksum = true;
///     it.joins.timing = JoinTiming::AfterSynAck;
///     it.packets.mtu = 1400;
/// });
/// // 1400 bytes less 40 of headers, 12 of timestamps and 20 of DSS.
/// assert_eq!(config.segment_payload(), 1328);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Use Multipath TCP; otherwise plain TCP on the first path.
    pub multipath: bool,
    /// Request DSS checksums. Both directions use them if either end requests them (RFC 8684
    /// section 3.1).
    pub checksum: bool,
    /// Sizes of packets.
    pub packets: PacketSizes,
    /// Buffer sizes and advertised windows.
    pub buffers: BufferSizes,
    /// How the congestion window starts, grows, is reduced and is paced.
    pub window: WindowRules,
    /// How losses are detected and repaired.
    pub recovery: RecoveryRules,
    /// Which paths are dialled, joined and probed.
    pub joins: JoinRules,
    /// How long a connection waits.
    pub timeouts: Timeouts,
    /// When a client uses plain TCP because paths drop MP_CAPABLE (RFC 8684 section 3.7).
    pub fallback: FallbackRules,
    /// Further rules of the Linux kernel. All but [`KernelRules::keep_data`] need
    /// [`BufferSizes::kernel`].
    pub kernel_rules: KernelRules,
    /// Delay acknowledgements: every second full segment or after [`Config::ACK_DELAY`].
    pub delayed_ack: bool,
    /// Hold data back when the host's own queue is long enough (TCP small queues). The driver
    /// reports when segments leave the host.
    pub tsq: bool,
    /// Initial values of numbers that wrap.
    #[cfg(feature = "laboratory")]
    pub offsets: StartOffsets,
}

impl Config {
    /// Returns the initial values of numbers that wrap. Only simulations choose them.
    pub(crate) const fn start_offsets(&self) -> StartOffsets {
        #[cfg(feature = "laboratory")]
        let offsets = self.offsets;
        #[cfg(not(feature = "laboratory"))]
        let offsets = StartOffsets { isn: None, idsn: None, timestamp: 0 };
        offsets
    }

    /// Longest delay of an acknowledgement (Linux's lower bound; RFC 9293 allows 500 ms).
    pub const ACK_DELAY: Span = Span::from_millis(40);
    /// Segments at the start of a subflow that are acknowledged individually ("quick ACKs").
    pub const QUICK_ACKS: u32 = 16;

    /// Further addresses of a peer that are accepted. With more, a connection has no slots for
    /// their subflows.
    pub const PEER_ADDRESSES: u8 = 4;
    /// Linux 6.18: `net.mptcp.close_timeout`.
    pub const CLOSE_TIMEOUT: Span = Span::from_secs(60);
    /// Linux 6.18: `net.ipv4.tcp_fin_timeout`.
    pub const FIN_TIMEOUT: Span = Span::from_secs(60);
    /// [`PacketSizes::unsaid_mss`] for IPv4.
    pub const UNSAID_MSS_V4: u16 = 536;
    /// [`PacketSizes::unsaid_mss`] for IPv6.
    pub const UNSAID_MSS_V6: u16 = 1_220;
    /// Interval at which an address is announced again until the peer echoes it (Linux 6.18:
    /// `net.mptcp.add_addr_timeout`).
    pub const ADD_ADDR_PERIOD: Span = Span::from_secs(120);

    /// Bytes of a largest IP packet that remain after the longest headers.
    pub const SUPERPACKET: u32 = 0xffff - 40 - 60;

    /// IP packet in bytes that nearly every path delivers (BASE_PLPMTU of RFC 8899 section 5.1.2),
    /// counted with IPv4 headers.
    pub const BASE_PACKET: u32 = 1_200;
    /// IP packet in bytes that every host accepts (RFC 791). Smaller ones are not tried.
    pub const LEAST_PACKET: u32 = 576;

    /// Smallest MTU that is accepted from a router (Linux: min_pmtu). A value below
    /// [`Config::LEAST_PACKET`] is raised to it.
    pub(crate) const LEAST_MTU: u32 = 552;

    /// Bytes of options on a data segment of plain TCP: timestamps and their padding.
    pub(crate) const PLAIN_OPTIONS: u64 = 12;

    /// Unanswered keep-alive probes before a peer is considered dead (Linux 6.18:
    /// `net.ipv4.tcp_keepalive_probes`).
    pub const KEEP_ALIVES: u8 = 9;
    /// Longest time between them (Linux 6.18: `net.ipv4.tcp_keepalive_intvl`).
    pub const KEEP_ALIVE_INTERVAL: Span = Span::from_secs(75);

    /// Interval of probes. A path that works again is detected within this interval and a round
    /// trip.
    pub const PROBE: Span = Span::from_secs(1);

    /// Default of [`JoinRules::attempt_delay`] (RFC 8305 section 8).
    pub const CONNECTION_ATTEMPT_DELAY: Span = Span::from_millis(250);

    /// Returns the settings with some of them changed.
    #[must_use]
    pub fn with(mut self, set: impl FnOnce(&mut Config)) -> Config {
        set(&mut self);
        self
    }

    /// Returns true if TSQ, pacing or subflow windows can hold subflows back.
    pub(crate) const fn holds_back(&self) -> bool {
        self.tsq || self.window.pacing.is_some() || self.buffers.subflow_windows
    }

    /// Returns L of RFC 3465. HyStart++ uses its own: 8, or no limit when segments are paced (RFC
    /// 9406 section 4.2).
    pub(crate) fn slow_start_limit(&self) -> u32 {
        match (self.window.hystart, self.window.pacing) {
            (HyStart::PlusPlus, Some(it)) if !it.ack_clocked => u32::MAX,
            (HyStart::PlusPlus, _) => self.window.slow_start_limit.max(8),
            _ => self.window.slow_start_limit,
        }
    }

    /// Returns the largest number of out-of-order segments kept on a subflow and at the data level:
    /// enough for a buffer full of segments of 256 bytes.
    pub(crate) fn most_held(&self) -> u32 {
        u32::try_from(self.buffers.rcvbuf / 256).unwrap_or(u32::MAX).saturating_add(4_096)
    }

    /// Returns the payload bytes of a full segment in steady state. These are the MTU less 40 bytes
    /// of headers, 12 of timestamps and, with Multipath TCP, a DSS padded to 20. (The DSS with
    /// 4-byte DSN and DATA_ACK has 18 bytes, 20 with a checksum.)
    #[must_use]
    pub const fn segment_payload(&self) -> u64 {
        self.room_for_data(self.option_bytes())
    }

    /// Returns the MTU less the headers and `options` bytes of options.
    pub(crate) const fn room_for_data(&self, options: u64) -> u64 {
        (self.packets.mtu as u64).saturating_sub(40 + options)
    }

    /// Returns the bytes of options on a data segment in steady state.
    #[must_use]
    pub const fn option_bytes(&self) -> u64 {
        match (self.multipath, self.buffers.kernel.is_some()) {
            (false, _) => Config::PLAIN_OPTIONS,
            (true, false) => Config::PLAIN_OPTIONS + 20,
            // A DSS with a 64-bit DSN and DATA_ACK.
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
            #[cfg(feature = "laboratory")]
            offsets: StartOffsets::default(),
        }
    }
}

/// Bytes of data that a connection may hold when memory is short.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryLimit {
    /// Received data that the application has not read.
    pub unread: u64,
    /// Data to send, if the peer acknowledges nothing.
    pub unsent: u64,
    /// Data to send, if the peer acknowledges it.
    pub max_unsent: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9406 section 4.2: L is 8, and infinite when segments are paced.
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
