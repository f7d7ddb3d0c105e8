//! Groups of the settings of a connection, and their choices.

use super::Config;
use plait_base::{PathId, Span};
use plait_cc::{HyStart, IdleRestart};
use plait_wire::{WireDsn, WireSeq};

/// When a client starts its further subflows.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum JoinTiming {
    /// After the first DSS of the peer (RFC 8684 section 3.2).
    #[default]
    AfterData,
    /// Right after the SYN/ACK, if both ends agree to it in their SYNs ([`Options::early_joins`]), and
    /// otherwise after the first DSS of the peer.
    ///
    /// With the agreement, the client may send data on a join right after its third ACK, if the peer has
    /// acknowledged data by a DATA_ACK. Otherwise data waits for the fourth ACK (RFC 8684 section 3.2).
    ///
    /// [`Options::early_joins`]: plait_wire::Options::early_joins
    Agreed,
    /// Right after the SYN/ACK, without asking the peer. Stock kernels refuse a join that arrives before the
    /// third ACK.
    AfterSynAck,
    /// Together with the first SYN. Works only when both ends are plait: in RFC 8684, the token
    /// needs the peer's key. The answer to such a join cannot be authenticated.
    #[cfg(feature = "laboratory")]
    Simultaneous,
}

impl JoinTiming {
    /// Returns true if the client waits until the peer accepts joins.
    pub(crate) const fn asks_peer(self) -> bool {
        matches!(self, JoinTiming::AfterData | JoinTiming::Agreed)
    }

    /// Returns true for joins together with the first SYN, which only simulations have.
    pub(crate) const fn is_simultaneous(self) -> bool {
        #[cfg(feature = "laboratory")]
        let simultaneous = matches!(self, JoinTiming::Simultaneous);
        #[cfg(not(feature = "laboratory"))]
        let simultaneous = false;
        simultaneous
    }
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

/// How much fast recovery may send when fewer bytes than ssthresh are in flight (PRR's reduction
/// bound).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Prr {
    /// If an ACK advances the left edge and reports no new loss, one segment more than was
    /// delivered. Otherwise, as much as was delivered (RFC 9937, and Linux since 4.3).
    #[default]
    Rfc9937,
    /// One segment more than was delivered on every ACK (RFC 6937 section 3). If a full queue keeps
    /// dropping retransmissions, this rule keeps filling the queue.
    Rfc6937,
}

/// How a loss is detected before the retransmission timeout.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum LossDetection {
    /// By time, with a tail loss probe: RACK-TLP (RFC 8985), and Linux since 4.4.
    #[default]
    Rack,
    /// By three segments above it that were selectively acknowledged (RFC 6675 section 4,
    /// DupThresh), with a tail loss probe (RFC 8985 section 7): Linux 3.10 to 4.3. A lost
    /// retransmission is repeated only after the timeout.
    SackProbe,
    /// As `SackProbe`, without a tail loss probe: Linux before 3.10.
    Sack,
}

/// Which path the next SYN of a connection uses when the first SYN is not answered.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Dial {
    /// The next path in turn. If paths are probed, the attempt starts after
    /// [`JoinRules::attempt_delay`].
    #[default]
    Any,
    /// The same path, as on a host whose routing table chose it. A path memory does not choose
    /// another one.
    Primary,
}

/// The value that a window is reduced from after a loss.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ReduceFrom {
    /// The congestion window, as in Linux. Cwnd validation limits growth to the used window, so an
    /// unfilled window has not grown.
    #[default]
    Window,
    /// The bytes outstanding (RFC 5681 section 3.1, RFC 9438 section 4.6). After the loss of a
    /// tail, few bytes are outstanding, and the window falls far.
    Flight,
}

/// Pacing rate, in percent of one window per round trip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pacing {
    /// When the window is below half of ssthresh.
    pub start_percent: u32,
    /// When the window is half of ssthresh or more.
    pub percent: u32,
    /// Segments that leave at once at most, and those that a new subflow sends without pacing.
    pub burst: u32,
    /// The same limit after the first loss of a subflow, and for a subflow that joins. A limit above `burst` has
    /// no effect. A long burst may have caused the loss, and the queue of a new path is unknown.
    pub small_burst: u32,
    /// Whether segments that acknowledgements clock out are not held: one for each that was delivered, or two in slow
    /// start. At most a burst leaves at once, or the data of 1 ms if that is more. So pacing spreads only the burst
    /// after a stall, which may overrun a queue.
    pub ack_clocked: bool,
}

impl Pacing {
    /// Spreads the segments of a window over the round trip, as Linux does.
    pub const WINDOW: Pacing =
        Pacing { start_percent: 200, percent: 120, burst: 10, small_burst: 10, ack_clocked: false };
    /// Spreads only bursts that no acknowledgement clocks, at the rates of Linux. A burst that ends within two windows
    /// has the rate of the start. The small burst is Max.Burst of SCTP (RFC 9260 section 16).
    pub const BURSTS: Pacing =
        Pacing { start_percent: 200, percent: 120, burst: 20, small_burst: 4, ack_clocked: true };

    /// Returns the pacing that a scheduler asks for.
    #[must_use]
    pub fn asked_by(scheduler: &plait_sched::Spec) -> Option<Pacing> {
        scheduler.entry().spreads_bursts.then_some(Pacing::BURSTS)
    }
}

impl Default for Pacing {
    fn default() -> Pacing {
        Pacing::WINDOW
    }
}

/// Buffers that both ends size as Linux does, in bytes of memory instead of payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelBuffers {
    /// Initial receive buffer (`net.ipv4.tcp_rmem`, second number).
    pub first_rcvbuf: u64,
    /// Largest receive buffer (third number). Equal to the initial one if the application has set
    /// it.
    pub most_rcvbuf: u64,
    /// Largest send buffer of a subflow (`net.ipv4.tcp_wmem`, third number).
    pub most_sndbuf: u64,
}

impl KernelBuffers {
    /// The defaults of Linux 6.18.
    pub const LINUX_6_18: KernelBuffers =
        KernelBuffers { first_rcvbuf: 131_072, most_rcvbuf: 32 << 20, most_sndbuf: 4 << 20 };
}

/// Rules of the Linux kernel for handshakes, the data level and the congestion window that plait's own
/// ends do not follow. The rules are independent of each other.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct KernelRules {
    /// Data stays on the subflow that it was assigned to. Neither a timeout nor a change of the
    /// candidates moves it (Linux: `mptcp_sendmsg_frag`, net/mptcp/protocol.c).
    pub keep_data: bool,
    /// A timer of the connection, derived from the timers of its subflows, retransmits the first
    /// data without a DATA_ACK on an idle subflow (`__mptcp_retrans`, net/mptcp/protocol.c).
    pub data_timer: bool,
    /// A window that was not filled for one RTO is reduced halfway to the used window
    /// (`tcp_cwnd_application_limited`, net/ipv4/tcp_output.c).
    pub reduce_unused: bool,
    /// A short last segment of a subflow waits while an earlier short segment is not acknowledged.
    /// This is Nagle's algorithm in Minshall's form (`tcp_nagle_check`, net/ipv4/tcp_output.c).
    pub nagle: bool,
    /// Timeouts of a SYN that do not double the next one, and add to its retransmissions
    /// (`net.ipv4.tcp_syn_linear_timeouts`). Zero doubles each one, as RFC 6298 section 5.5 requires.
    pub linear_syn_timeouts: u8,
}

impl KernelRules {
    /// The rules of Linux 6.18.
    pub const LINUX_6_18: KernelRules = KernelRules {
        keep_data: true,
        data_timer: true,
        reduce_unused: true,
        nagle: true,
        linear_syn_timeouts: 4,
    };
}

/// A path that a client may use. Paths are in order of preference; the connection starts on the
/// first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathConfig {
    /// The path.
    pub path: PathId,
    /// Request that the peer uses the path only when no other path works.
    pub backup: bool,
    /// Slow start threshold in bytes that this end remembers for the path; replaces
    /// [`WindowRules::ssthresh`].
    pub ssthresh: Option<u64>,
    /// Price of a byte on the path, relative to other paths; 0 is free. Schedulers read it, and
    /// the peer does not know it.
    pub cost: u32,
    /// Payload bytes that the connections of this endpoint may send on the path, TCP
    /// retransmissions excluded. Schedulers keep to it.
    pub quota: Option<u64>,
}

impl PathConfig {
    /// Returns the settings of a regular path that is free.
    #[must_use]
    pub const fn new(path: PathId) -> PathConfig {
        PathConfig { path, backup: false, ssthresh: None, cost: 0, quota: None }
    }
}

/// Initial values of numbers that wrap, for tests that cross the wrap. A live endpoint keeps the
/// defaults, because an attacker can guess known numbers.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(not(feature = "laboratory"), expect(unreachable_pub, reason = "for simulations"))]
pub struct StartOffsets {
    /// Initial sequence number of every subflow, instead of a random one.
    pub isn: Option<WireSeq>,
    /// Initial data sequence number of both directions, instead of the numbers derived from the
    /// keys. Both ends must have the same.
    pub idsn: Option<WireDsn>,
    /// Value of the timestamp clock at time zero.
    pub timestamp: u32,
}

/// Sizes of packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketSizes {
    /// Largest IP packet in bytes.
    pub mtu: u32,
    /// MSS of a peer whose SYN has no MSS option: 536, or 1,220 over IPv6 (RFC 9293 section 3.7.1).
    pub unsaid_mss: u16,
    /// Largest payload in bytes of a segment that the driver's device splits into full segments
    /// (TSO); 0 if it splits none.
    pub superpacket: u32,
}

/// Buffer sizes and advertised windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BufferSizes {
    /// Largest receive buffer in bytes. All of it is advertised unless `rcvbuf_first` is set.
    pub rcvbuf: u64,
    /// Receive buffer at the start, in bytes. It then grows with the bytes that the application
    /// reads per round trip, up to `rcvbuf`. If `None`, or not less than `rcvbuf`, the buffer is
    /// fixed.
    pub rcvbuf_first: Option<u64>,
    /// Largest send buffer in bytes. Holds bytes until they are DATA_ACKed.
    pub sndbuf: u64,
    /// Send buffer at the start, in bytes. If a writer waits for it while the congestion windows
    /// are not full, it grows to twice the data that they carry in the longest RTT of a subflow, up to
    /// `sndbuf`. If `None`, or not less than `sndbuf`, the buffer is fixed.
    pub sndbuf_first: Option<u64>,
    /// Buffers sized as in Linux; replaces the four sizes above. Writers then wait until a third of
    /// the send buffer is free. A reader that has read everything acknowledges a short segment at
    /// once.
    pub kernel: Option<KernelBuffers>,
    /// Send nothing beyond the window that the peer advertised on a subflow. Linux drops such data,
    /// in addition to data beyond the shared window (RFC 8684 section 3.3.4). Between plait's own
    /// ends the shared window is enough.
    pub subflow_windows: bool,
}

/// How the congestion window starts, grows, is reduced and is paced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowRules {
    /// Initial congestion window in segments (RFC 6928).
    pub initial: u32,
    /// Initial slow start threshold in bytes; `None` is infinite.
    pub ssthresh: Option<u64>,
    /// Largest growth of the window for one ACK in slow start, in full segments (L of RFC 3465).
    pub slow_start_limit: u32,
    /// How slow start can end before a loss.
    pub hystart: HyStart,
    /// Window after an idle time.
    pub idle_restart: IdleRestart,
    /// The value that a window is reduced from after a loss.
    pub reduce_from: ReduceFrom,
    /// Pacing of the segments of a window over the round trip; `None` disables it.
    pub pacing: Option<Pacing>,
}

/// How losses are detected and repaired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecoveryRules {
    /// Retransmission timeout.
    pub rto: RtoMode,
    /// How much fast recovery may send below ssthresh.
    pub prr: Prr,
    /// How a loss is detected before the retransmission timeout.
    pub loss_detection: LossDetection,
    /// Undo a reduction of the window when the segments turn out to have been late instead of lost
    /// (D-SACK, Eifel detection, F-RTO).
    pub undo: bool,
    /// If timeouts show that a path delivers short packets and drops long ones, send shorter ones
    /// (RFC 4821 section 7.7, RFC 8899 section 4.3).
    pub black_holes: bool,
}

/// Which paths are dialled, joined and probed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JoinRules {
    /// When further subflows start.
    pub timing: JoinTiming,
    /// Subflows that a client opens between each pair of addresses.
    pub per_pair: u8,
    /// Refuse further subflows to the address and port of the first one, and set flag C of RFC 8684
    /// section 3.1. Announced addresses can still be joined.
    pub deny: bool,
    /// Largest number of further peer addresses that are accepted (ADD_ADDR).
    pub peer_addresses: u8,
    /// Interval at which a silent path is probed with one segment (Multipath TCP only); `None` for
    /// never.
    pub probe: Option<Span>,
    /// Which path the next SYN uses when the first SYN is not answered.
    pub dial: Dial,
    /// How long the first SYN on each path waits before the next path is tried, if paths are probed
    /// and there is another one (RFC 8305 section 5, Connection Attempt Delay).
    pub attempt_delay: Span,
}

/// How long a connection waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeouts {
    /// How long a connection without any subflow waits for a new one before it fails. Zero fails at
    /// once, and so does plain TCP.
    pub close: Span,
    /// How long a subflow stays in FIN-WAIT-2 after both directions of the data have ended. The
    /// subflow is then closed without a reset.
    pub fin: Span,
    /// How long data may wait before the connection is aborted, if the peer neither acknowledges
    /// data nor opens its window. This is the user timeout of RFC 9293 sections 3.8.3 and 3.10.1;
    /// the option of RFC 5482 is not sent. The abort comes at most one eighth of the timeout late.
    ///
    /// If `None`, the connection waits forever. A peer that answers window probes may keep its
    /// window closed (RFC 9293 section 3.8.6.1) unless the user decides otherwise (RFC 6429 section
    /// 3).
    pub user: Option<Span>,
    /// How long a connection may be idle, with no segment from the peer and no data in flight,
    /// before keep-alive probes are sent (RFC 9293 section 3.8.4). They start at most one eighth of
    /// this time late.
    ///
    /// Each subflow sends [`Config::KEEP_ALIVES`] probes, [`Config::KEEP_ALIVE_INTERVAL`] apart, or
    /// this time apart if it is shorter. If none is answered, the connection is aborted. A subflow
    /// that leaves this many consecutive probes unanswered while another one answers is reset.
    /// `None` disables keep-alives.
    pub keep_alive: Option<Span>,
}

/// When a client uses plain TCP because paths drop MP_CAPABLE (RFC 8684 section 3.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FallbackRules {
    /// Unanswered SYNs with MP_CAPABLE on a path before one is sent without it (RFC 8684 section
    /// 3.7; Linux: 3); 0 for never.
    pub plain_after: u8,
    /// How long an endpoint then offers no MP_CAPABLE. Doubled each time (Linux: one hour).
    pub plain_for: Span,
}

impl Default for PacketSizes {
    fn default() -> PacketSizes {
        PacketSizes { mtu: 1500, unsaid_mss: Config::UNSAID_MSS_V4, superpacket: 0 }
    }
}

impl BufferSizes {
    /// Default of the largest buffers, in bytes: `net.ipv4.tcp_rmem` of Linux 6.18, third number.
    /// The send buffer has the same limit, because what the receiver takes has to fit in it.
    pub const LARGEST: u64 = KernelBuffers::LINUX_6_18.most_rcvbuf;

    /// Returns the send buffer at the start.
    #[must_use]
    pub fn initial_sndbuf(&self) -> u64 {
        self.sndbuf_first.map_or(self.sndbuf, |first| first.min(self.sndbuf))
    }
}

impl Default for BufferSizes {
    fn default() -> BufferSizes {
        BufferSizes {
            rcvbuf: BufferSizes::LARGEST,
            rcvbuf_first: Some(6 << 20),
            sndbuf: BufferSizes::LARGEST,
            sndbuf_first: Some(4 << 20),
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
            attempt_delay: Config::CONNECTION_ATTEMPT_DELAY,
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
