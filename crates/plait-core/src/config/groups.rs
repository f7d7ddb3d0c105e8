//! The groups of the settings of a connection, and the choices in them.

use super::Config;
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
    /// [`WindowRules::ssthresh`].
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

/// Sizes of packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketSizes {
    /// Largest IP packet in bytes.
    pub mtu: u32,
    /// MSS of a peer that tells none: 536, or 1,220 over IPv6 (RFC 9293 section 3.7.1).
    pub unsaid_mss: u16,
    /// Most payload bytes of a segment that the driver's device cuts into full ones (TSO); 0 where it
    /// cuts none.
    pub superpacket: u32,
}

/// Buffers, and what is advertised of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BufferSizes {
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
    pub kernel: Option<KernelBuffers>,
    /// Send nothing beyond the window that the peer told on a subflow: stock kernels refuse it, beside
    /// what is beyond the shared one (RFC 8684 section 3.3.4). Between plait's own ends the shared
    /// window says it all.
    pub subflow_windows: bool,
}

/// How the congestion window begins, grows and is reduced, and how it goes out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowRules {
    /// Initial congestion window in segments (RFC 6928).
    pub initial: u32,
    /// Initial slow start threshold in bytes; `None` is infinite.
    pub ssthresh: Option<u64>,
    /// L of RFC 3465.
    pub slow_start_limit: u32,
    /// What ends slow start before a loss.
    pub hystart: HyStart,
    /// Window after an idle time.
    pub idle_restart: IdleRestart,
    /// What a window is reduced from after a loss.
    pub reduce_from: ReduceFrom,
    /// Spread the segments of a window over the round trip; `None` for not.
    pub pacing: Option<Pacing>,
}

/// How losses are recognised and mended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecoveryRules {
    /// Retransmission timeout.
    pub rto: RtoMode,
    /// What fast recovery lets out below the threshold.
    pub prr: Prr,
    /// How a lost segment is recognised before its timeout.
    pub loss_detection: LossDetection,
    /// Take a reduction of the window back when what counted as lost proves to have been late
    /// (D-SACK, Eifel detection, F-RTO).
    pub undo: bool,
    /// Find out by timeouts that a path lets short packets through and long ones not, and send shorter
    /// ones (RFC 4821 section 7.7, RFC 8899 section 4.3).
    pub black_holes: bool,
}

/// Which paths are dialled, joined and probed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JoinRules {
    /// When further subflows start.
    pub timing: JoinTiming,
    /// Subflows that a client opens between each pair of addresses.
    pub per_pair: u8,
    /// Take no further subflows to the address and port of the first one, and tell the peer so
    /// (flag C of RFC 8684 section 3.1): those that are announced may be joined.
    pub deny: bool,
    /// How many further addresses of the peer are accepted (ADD_ADDR).
    pub peer_addresses: u8,
    /// How often a silent path is probed with one segment, for Multipath TCP; `None` for never.
    pub probe: Option<Span>,
    /// Where the first SYN goes when nobody answers it.
    pub dial: Dial,
}

/// How long a connection waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeouts {
    /// How long a connection whose last subflow is gone waits for another one before it fails; zero
    /// for not at all. Plain TCP fails at once.
    pub close: Span,
    /// How long a subflow waits in FIN-WAIT-2 for the peer's FIN once both directions of the data have
    /// ended. The subflow is then closed without a reset.
    pub fin: Span,
    /// How long data may wait while the peer takes nothing, before the connection is aborted: it neither
    /// acknowledges data nor opens its window (the user timeout of RFC 9293 sections 3.8.3 and 3.10.1;
    /// RFC 5482 is its option, which is not sent). An eighth of it later at most. `None` for ever: a
    /// peer that answers the probes of its closed window may keep it closed (RFC 9293 section 3.8.6.1)
    /// unless the user says otherwise (RFC 6429 section 3).
    pub user: Option<Span>,
    /// How long nothing may come of the peer, on any subflow and with nothing of ours under way, before
    /// it is asked for a sign of life (the keep-alive of RFC 9293 section 3.8.4); an eighth of it later
    /// at most. [`Config::KEEP_ALIVES`] probes go out on each subflow, [`Config::KEEP_ALIVE_INTERVAL`]
    /// apart, or this time where that is less. Where all stay unanswered the connection is aborted. A
    /// subflow that leaves as many in a row unanswered while another one answers is reset. `None` for
    /// never.
    pub keep_alive: Option<Span>,
}

/// When a client speaks plain TCP because paths swallow MP_CAPABLE (RFC 8684 section 3.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FallbackRules {
    /// SYNs with MP_CAPABLE that stay unanswered on a path before one goes out without (RFC 8684
    /// section 3.7; Linux: 3); 0 for never.
    pub plain_after: u8,
    /// How long an endpoint then offers no MP_CAPABLE, doubled each time (Linux: an hour).
    pub plain_for: Span,
}

impl Default for PacketSizes {
    fn default() -> PacketSizes {
        PacketSizes { mtu: 1500, unsaid_mss: Config::UNSAID_MSS_V4, superpacket: 0 }
    }
}

impl Default for BufferSizes {
    fn default() -> BufferSizes {
        BufferSizes {
            rcvbuf: 6 << 20,
            rcvbuf_first: None,
            sndbuf: 4 << 20,
            kernel: None,
            subflow_windows: false,
        }
    }
}

impl Default for WindowRules {
    fn default() -> WindowRules {
        WindowRules {
            initial: 10,
            ssthresh: None,
            slow_start_limit: 2,
            hystart: HyStart::Off,
            idle_restart: IdleRestart::default(),
            reduce_from: ReduceFrom::default(),
            pacing: None,
        }
    }
}

impl Default for RecoveryRules {
    fn default() -> RecoveryRules {
        RecoveryRules {
            rto: RtoMode::default(),
            prr: Prr::default(),
            loss_detection: LossDetection::default(),
            undo: true,
            black_holes: true,
        }
    }
}

impl Default for JoinRules {
    fn default() -> JoinRules {
        JoinRules {
            timing: JoinTiming::default(),
            per_pair: 1,
            deny: false,
            peer_addresses: Config::PEER_ADDRESSES,
            probe: Some(Config::PROBE),
            dial: Dial::default(),
        }
    }
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            close: Config::CLOSE_TIMEOUT,
            fin: Config::FIN_TIMEOUT,
            user: None,
            keep_alive: None,
        }
    }
}

impl Default for FallbackRules {
    fn default() -> FallbackRules {
        FallbackRules { plain_after: 3, plain_for: Span::from_secs(3_600) }
    }
}
