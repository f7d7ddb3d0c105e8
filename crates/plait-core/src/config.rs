//! Settings of a connection.

use plait_base::{PathId, Span};
use plait_cc::{HyStart, IdleRestart};

/// When a client starts its further subflows (`spec`: table of section 5 of the scheduler notes).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum JoinTiming {
    /// After the first DSS of the peer (RFC 8684 section 3.2).
    #[default]
    AfterData,
    /// Right after the SYN/ACK.
    AfterSynAck,
    /// Together with the first SYN. Between plait's own ends only: RFC 8684 cannot do it, for the
    /// token needs the peer's key.
    Simultaneous,
}

/// Floor of the retransmission timeout.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum RtoMode {
    /// SRTT + max(200 ms, 4 RTTVAR), as Linux does.
    #[default]
    Linux,
    /// max(1 s, SRTT + 4 RTTVAR): RFC 6298 section 2.
    Rfc,
    /// max(200 ms, SRTT + 4 RTTVAR).
    Rfc200,
}

/// What fast recovery lets out while less is in flight than the threshold (PRR's reduction bound).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Prr {
    /// A segment more than was delivered where an acknowledgement moves the left edge and tells of no
    /// new loss, else as much as it delivered: RFC 9937, and Linux since 4.3.
    #[default]
    Rfc9937,
    /// That segment more on every acknowledgement: RFC 6937 section 3. Where a full queue goes on losing
    /// what is sent again, that goes on filling it.
    Rfc6937,
}

/// How a lost segment is recognised before its timeout.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum LossDetection {
    /// By time, and a probe for a lost tail: RACK-TLP (RFC 8985), and Linux since 4.4.
    #[default]
    Rack,
    /// By three segments above it that were selectively acknowledged (RFC 6675 section 4, DupThresh),
    /// and a probe for a lost tail (RFC 8985 section 7): Linux 3.10 to 4.3. A lost retransmission
    /// waits for the timeout.
    SackProbe,
    /// The same without a probe: Linux before 3.10.
    Sack,
}

/// Where the first SYN of a connection goes when nobody answers it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Dial {
    /// To the next path (after [`Config::CONNECTION_ATTEMPT_DELAY`] where paths are probed), and round again.
    #[default]
    Any,
    /// To the same path, as from a host whose routes have chosen it.
    Primary,
}

/// What a window is reduced from after a loss.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ReduceFrom {
    /// The congestion window, as Linux does. Growth is held to what was used (cwnd validation), so
    /// a window that was not filled cannot have grown.
    #[default]
    Window,
    /// The bytes outstanding, as RFC 5681 section 3.1 and RFC 9438 section 4.6 say: after the loss
    /// of a tail little is, and the window falls far.
    Flight,
}

/// Pacing: how fast a window goes out, in percent of a window each round trip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pacing {
    /// While the window is below half the threshold.
    pub start_percent: u32,
    /// After.
    pub percent: u32,
    /// Segments at the start of a subflow that go at once: an initial window, as with Linux.
    pub burst: u32,
}

impl Default for Pacing {
    fn default() -> Pacing {
        Pacing { start_percent: 200, percent: 120, burst: 10 }
    }
}

/// Buffers that both ends size as Linux does, in bytes of memory instead of payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelBuffers {
    /// Receive buffer at first (`net.ipv4.tcp_rmem`, second number).
    pub first_rcvbuf: u64,
    /// Receive buffer at most (third number); the same as the first if the application has set it.
    pub most_rcvbuf: u64,
    /// Send buffer of a subflow at most (`net.ipv4.tcp_wmem`, third number).
    pub most_sndbuf: u64,
}

impl KernelBuffers {
    /// The defaults of Linux 6.18.
    pub const LINUX_6_18: KernelBuffers =
        KernelBuffers { first_rcvbuf: 131_072, most_rcvbuf: 32 << 20, most_sndbuf: 4 << 20 };
}

/// Rules of a stock kernel's data level and congestion window that plait's own ends do not follow. Each
/// one stands for itself.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct KernelRules {
    /// Data stays with the subflow that it was given to: neither a timeout nor a change of the candidates
    /// moves it to another one (Linux, `mptcp_sendmsg_frag` of net/mptcp/protocol.c hands it over for good).
    pub keep_data: bool,
    /// A timer of the connection, which follows those of its subflows, sends the first data without a
    /// DATA_ACK again on an idle subflow (`__mptcp_retrans`, net/mptcp/protocol.c).
    pub data_timer: bool,
    /// A window that was not used up for a timeout falls half the way to what was used
    /// (`tcp_cwnd_application_limited`, net/ipv4/tcp_output.c).
    pub reduce_unused: bool,
    /// The end of what a subflow has to send waits while it is short and an earlier short segment is not
    /// acknowledged: Nagle's algorithm in Minshall's form (`tcp_nagle_check`, net/ipv4/tcp_output.c).
    pub nagle: bool,
}

impl KernelRules {
    /// What Linux 6.18 does.
    pub const LINUX_6_18: KernelRules =
        KernelRules { keep_data: true, data_timer: true, reduce_unused: true, nagle: true };
}

/// A path that a client may use, in the order of preference; the connection starts on the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathConfig {
    /// The path.
    pub path: PathId,
    /// Ask the peer to use it only when no other works.
    pub backup: bool,
    /// Slow start threshold in bytes that this end remembers of it, in place of
    /// [`Config::ssthresh`].
    pub ssthresh: Option<u64>,
}

/// Where numbers that wrap begin. For tests that take a connection across their ends; a live
/// endpoint leaves all as it is, for numbers that are known beforehand can be guessed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct StartOffsets {
    /// Initial sequence number of every subflow, instead of a random one.
    pub isn: Option<u32>,
    /// Initial data sequence number of both directions, instead of those that the keys give. Both
    /// ends must have the same.
    pub idsn: Option<u64>,
    /// What the clock of timestamps shows at time zero.
    pub timestamp: u32,
}

/// Settings of a connection. Both ends have their own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Speak Multipath TCP; otherwise plain TCP on the first path.
    pub multipath: bool,
    /// Ask for DSS checksums; they are used in both directions where either end asks (RFC 8684
    /// section 3.1).
    pub checksum: bool,
    /// SYNs with MP_CAPABLE that stay unanswered on a path before one goes out without (RFC 8684
    /// section 3.7; Linux: 3); 0 for never.
    pub plain_after: u8,
    /// How long an endpoint then offers no MP_CAPABLE, doubled each time (Linux: an hour).
    pub plain_for: Span,
    /// Largest IP packet in bytes.
    pub mtu: u32,
    /// MSS of a peer that tells none: 536, or 1,220 over IPv6 (RFC 9293 section 3.7.1).
    pub unsaid_mss: u16,
    /// Most payload bytes of a segment that the driver's device cuts into full ones (TSO); 0 where it
    /// cuts none.
    pub superpacket: u32,
    /// Receive buffer: all of it is advertised, unless it is tuned.
    pub rcvbuf: u64,
    /// What is advertised of the receive buffer at first, in bytes: it then follows what the application
    /// reads in a round trip. `None` where all is advertised from the start.
    pub rcvbuf_first: Option<u64>,
    /// Send buffer: holds bytes until they are DATA_ACKed.
    pub sndbuf: u64,
    /// Buffers as Linux sizes them, in place of `rcvbuf`, `rcvbuf_first` and `sndbuf`. Writers then wait
    /// for a third of the send buffer, and a reader that has read everything acknowledges a short segment
    /// at once.
    pub kernel_buffers: Option<KernelBuffers>,
    /// What else is done as a stock kernel does it. All but
    /// [`KernelRules::keep_data`] need `kernel_buffers`.
    pub kernel_rules: KernelRules,
    /// Initial congestion window in segments (RFC 6928).
    pub initial_window: u32,
    /// Initial slow start threshold in bytes; `None` is infinite.
    pub ssthresh: Option<u64>,
    /// L of RFC 3465.
    pub slow_start_limit: u32,
    /// What ends slow start before a loss.
    pub hystart: HyStart,
    /// When further subflows start.
    pub join: JoinTiming,
    /// Subflows that a client opens between each pair of addresses.
    pub subflows: u8,
    /// Take no further subflows to the address and port of the first one, and tell the peer so
    /// (flag C of RFC 8684 section 3.1): those that are announced may be joined.
    pub deny_joins: bool,
    /// How long a connection whose last subflow is gone waits for another one before it fails; zero
    /// for not at all. Plain TCP fails at once.
    pub close_timeout: Span,
    /// How long a subflow waits in FIN-WAIT-2 for the peer's FIN once both directions of the data have
    /// ended. The subflow is then closed without a reset.
    pub fin_timeout: Span,
    /// How long data may wait while the peer takes nothing, before the connection is aborted: it neither
    /// acknowledges data nor opens its window (the user timeout of RFC 9293 sections 3.8.3 and 3.10.1;
    /// RFC 5482 is its option, which is not sent). An eighth of it later at most. `None` for ever: a
    /// peer that answers the probes of its closed window may keep it closed (RFC 9293 section 3.8.6.1)
    /// unless the user says otherwise (RFC 6429 section 3).
    pub user_timeout: Option<Span>,
    /// How long nothing may come of the peer, on any subflow and with nothing of ours under way, before
    /// it is asked for a sign of life (the keep-alive of RFC 9293 section 3.8.4); an eighth of it later
    /// at most. [`Config::KEEP_ALIVES`] probes go out on each subflow, [`Config::KEEP_ALIVE_INTERVAL`]
    /// apart, or this time where that is less. Where all stay unanswered the connection is aborted. A
    /// subflow that leaves as many in a row unanswered while another one answers is reset. `None` for
    /// never.
    pub keep_alive: Option<Span>,
    /// How many further addresses of the peer are accepted (ADD_ADDR).
    pub peer_addresses: u8,
    /// Retransmission timeout.
    pub rto: RtoMode,
    /// Window after an idle time.
    pub idle_restart: IdleRestart,
    /// Delay acknowledgements: every second full segment or after [`Config::ACK_DELAY`].
    pub delayed_ack: bool,
    /// Hold data back while the host's own queue has enough of it (TCP small queues); the world
    /// tells when segments leave the host.
    pub tsq: bool,
    /// Spread the segments of a window over the round trip; `None` for not.
    pub pacing: Option<Pacing>,
    /// What a window is reduced from after a loss.
    pub reduce_from: ReduceFrom,
    /// What fast recovery lets out below the threshold.
    pub prr: Prr,
    /// How a lost segment is recognised before its timeout.
    pub loss_detection: LossDetection,
    /// How often a silent path is probed with one segment, for Multipath TCP; `None` for never.
    pub probe: Option<Span>,
    /// Where the first SYN goes when nobody answers it.
    pub dial: Dial,
    /// Take a reduction of the window back when what counted as lost proves to have been late
    /// (D-SACK, Eifel detection, F-RTO).
    pub undo: bool,
    /// Find out by timeouts that a path lets short packets through and long ones not, and send shorter
    /// ones (RFC 4821 section 7.7, RFC 8899 section 4.3).
    pub black_holes: bool,
    /// Send nothing beyond the window that the peer told on a subflow: stock kernels refuse it, beside
    /// what is beyond the shared one (RFC 8684 section 3.3.4). Between plait's own ends the shared
    /// window says it all.
    pub subflow_windows: bool,
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
    /// [`Config::unsaid_mss`] of peers by IPv4.
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

    /// L of RFC 3465. HyStart++ has its own: 8, and none where segments are paced (RFC 9406
    /// section 4.2).
    pub(crate) fn slow_start_limit(&self) -> u32 {
        match (self.hystart, self.pacing) {
            (HyStart::PlusPlus, Some(_)) => u32::MAX,
            (HyStart::PlusPlus, None) => self.slow_start_limit.max(8),
            _ => self.slow_start_limit,
        }
    }

    /// Segments out of order that are kept at most, on a subflow and in the data: enough for a
    /// buffer full of segments of 256 bytes.
    pub(crate) fn most_held(&self) -> u32 {
        u32::try_from(self.rcvbuf / 256).unwrap_or(u32::MAX).saturating_add(4_096)
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
        (self.mtu as u64).saturating_sub(40 + options)
    }

    /// Bytes of options on a data segment in steady state.
    #[must_use]
    pub const fn option_bytes(&self) -> u64 {
        match (self.multipath, self.kernel_buffers.is_some()) {
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
            plain_after: 3,
            plain_for: Span::from_secs(3_600),
            mtu: 1500,
            unsaid_mss: Config::UNSAID_MSS_V4,
            superpacket: 0,
            rcvbuf: 6 << 20,
            rcvbuf_first: None,
            sndbuf: 4 << 20,
            kernel_buffers: None,
            kernel_rules: KernelRules::default(),
            initial_window: 10,
            ssthresh: None,
            slow_start_limit: 2,
            hystart: HyStart::Off,
            join: JoinTiming::default(),
            subflows: 1,
            deny_joins: false,
            close_timeout: Config::CLOSE_TIMEOUT,
            fin_timeout: Config::FIN_TIMEOUT,
            user_timeout: None,
            keep_alive: None,
            peer_addresses: Config::PEER_ADDRESSES,
            rto: RtoMode::default(),
            idle_restart: IdleRestart::default(),
            delayed_ack: true,
            tsq: false,
            pacing: None,
            reduce_from: ReduceFrom::default(),
            prr: Prr::default(),
            loss_detection: LossDetection::default(),
            probe: Some(Config::PROBE),
            dial: Dial::default(),
            undo: true,
            black_holes: true,
            subflow_windows: false,
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
        let of = |hystart, pacing| Config { hystart, pacing, ..Config::default() };
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
