//! Settings of both ends of a connection.

use super::setting::{BLANK, HOSTS, MPTCP, Setting, TCP};
use crate::scenario::kind::{
    Field, SettingKind, count, names, on_off, read_count, read_time, text, time, words,
};
use crate::scenario::{Kernel, MemoryUse, PacingUse, buffers, setters};
use plait_base::Span;
use plait_cc::{HyStart, IdleRestart};
use plait_core::{Config, Dial, JoinTiming, LossDetection, Pacing, Prr, RtoMode};
use plait_sched::Goal;

/// The settings of a connection, in the order of the command line.
pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        name: "subflows",
        group: MPTCP,
        default: "1",
        help: "subflows per path; mesh4: from both paths to both addresses of the server",
        clause: "RFC 8684 sections 3.2 and 3.4.1",
        field: text(
            "1 to 8, at most 8 in all, or mesh4",
            "2",
            |it| vec![it.transport.subflows.to_string()],
            setters::set_subflows,
        ),
        ..BLANK
    },
    Setting {
        name: "join",
        group: MPTCP,
        default: "after-data",
        help: "the start of further subflows. agreed: after the SYN/ACK if both ends are plait and have this value, \
               and data of the client before the fourth ACK; otherwise after the first data",
        clause: "RFC 8684 section 3.2",
        field: words!(JOINS, transport.config.joins.timing),
        ..BLANK
    },
    Setting {
        name: "dial",
        group: MPTCP,
        default: "any",
        help: "the path of the next SYN if the first one is not answered: the next path (any), or \
               the first path again, as in a kernel (primary)",
        clause: "RFC 8305 section 8",
        field: words!(DIALS, transport.config.joins.dial),
        ..BLANK
    },
    Setting {
        name: "dial-delay",
        group: MPTCP,
        default: "250ms",
        help: "how long the first SYN on a path may stay unanswered before the next path is dialled",
        clause: "RFC 8305 section 5",
        field: time!(
            "20ms",
            Span::from_secs(10),
            "too long for a first SYN",
            transport.config.joins.attempt_delay
        ),
        ..BLANK
    },
    Setting {
        name: "goal",
        group: MPTCP,
        default: "aggregate",
        help: "when to use a path with a cost. aggregate: if the cheaper paths do not suffice. \
               interactive: also if data arrives notably sooner there. handover: only if the cheaper \
               paths are down. thrifty: as handover, and never for copies",
        clause: "RFC 9622",
        field: words!(GOALS, transport.goal),
        ..BLANK
    },
    Setting {
        name: "checksum",
        group: MPTCP,
        default: "off",
        help: "DSS checksums, which detect data that was changed on its way",
        clause: "RFC 8684 section 3.3",
        field: on_off!(transport.config.checksum),
        ..BLANK
    },
    Setting {
        name: "ssthresh",
        group: TCP,
        default: "inf",
        help: "initial slow start threshold",
        clause: "RFC 5681 section 3.1",
        field: text(
            "inf, or a size such as 64KiB or 45seg",
            "45seg",
            |it| vec![it.transport.ssthresh.map_or("inf".to_owned(), |size| size.to_string())],
            setters::set_ssthresh,
        ),
        ..BLANK
    },
    Setting {
        name: "earlier",
        group: MPTCP,
        default: "0",
        help: "number of downloads or uploads of the same kind to the same peer before this one; \
               as in Linux, each path keeps a slow start threshold from them",
        clause: "Linux, net/ipv4/tcp_metrics.c",
        field: text(
            "a whole number from 0 to 1000",
            "3",
            |it| vec![it.transport.earlier_transfers.to_string()],
            setters::set_earlier,
        ),
        ..BLANK
    },
    Setting {
        name: "path-memory",
        group: MPTCP,
        default: "off",
        help: "on: both ends remember each path from an earlier connection of the same kind; \
               ssthresh: they also begin with its slow start threshold",
        clause: "RFC 9040 section 6",
        field: words!(MEMORIES, transport.path_memory),
        ..BLANK
    },
    Setting {
        name: "initial-window",
        group: TCP,
        default: "10",
        help: "initial congestion window",
        clause: "RFC 6928",
        field: count!("segments", 1, 1_000, transport.config.window.initial),
        ..BLANK
    },
    Setting {
        name: "slow-start",
        group: TCP,
        default: "rfc3465",
        help: "maximum growth for each ACK: two segments, and one after a timeout (rfc3465); one \
               segment (rfc5681); all acknowledged bytes (linux)",
        clause: "L of RFC 3465",
        field: words!(SLOW_STARTS, transport.config.window.slow_start_limit),
        ..BLANK
    },
    Setting {
        name: "tsq",
        group: HOSTS,
        default: "off",
        help: "TCP small queues: hold data back while enough of it waits at the host's own link",
        clause: "Linux, tcp_small_queue_check",
        field: on_off!(transport.config.tsq),
        ..BLANK
    },
    Setting {
        name: "send-cost",
        group: HOSTS,
        default: "0s",
        help: "time that a host needs for each segment before it can send the next one",
        field: time!("7.5us", Span::from_millis(1), "too long for a segment", transport.send_cost),
        ..BLANK
    },
    Setting {
        name: "pacing",
        group: TCP,
        default: "auto",
        help: "spread the segments of a window over the round trip (on), or only bursts that no \
               acknowledgement clocks (bursts); auto: bursts with slot, and otherwise off",
        clause: "Linux, tcp_update_pacing_rate",
        field: words!(PACINGS, transport.pacing),
        ..BLANK
    },
    Setting {
        name: "hystart",
        group: TCP,
        default: "off",
        help: "end slow start before a loss: by HyStart++ (on), or by CUBIC's HyStart in Linux \
               from 4.0 on (linux), before 4.0 (linux3) or in 6.18 (linux6)",
        clause: "RFC 9406; Linux, net/ipv4/tcp_cubic.c",
        field: words!(HYSTARTS, transport.config.window.hystart),
        ..BLANK
    },
    Setting {
        name: "kernel",
        group: HOSTS,
        default: "none",
        help: "both ends behave like this version of Linux. 6.18: automatic buffers, HyStart, slow \
               start, no probes; rcvbuf is then SO_RCVBUF. Older versions: the settings of a \
               paper's kernel (--save-scenario writes them), which your own settings override",
        field: words!(
            KERNELS,
            transport.kernel,
            "none, 6.18, or the kernel of a paper: 3.5, 3.11, 3.14, 4.1 or 4.4"
        ),
        ..BLANK
    },
    Setting {
        name: "receiver",
        group: HOSTS,
        default: "none",
        help: "the end that receives the data of the workload behaves like this version of Linux: automatic \
               receive buffer, no probes; rcvbuf is then SO_RCVBUF. The other end keeps its settings",
        clause: "Linux, mptcp_rcv_space_adjust",
        field: words!(KERNELS, transport.receiver, "none or 6.18"),
        ..BLANK
    },
    Setting {
        name: "undo",
        group: TCP,
        default: "on",
        help: "undo a reduction of the window if the lost segments prove to be only late",
        clause: "RFC 3522, RFC 3708, RFC 5682",
        field: on_off!(transport.config.recovery.undo),
        ..BLANK
    },
    Setting {
        name: "probes",
        group: MPTCP,
        default: "on",
        help: "probe silent paths every second, so that they are used again soon after an outage",
        field: on_off!(
            Switch,
            it => it.transport.config.joins.probe.is_some(),
            on => on.then_some(Config::PROBE),
            transport.config.joins.probe
        ),
        ..BLANK
    },
    Setting {
        name: "delayed-ack",
        group: TCP,
        default: "on",
        help: "delayed acknowledgements",
        clause: "RFC 9293 section 3.8.6.3",
        field: on_off!(transport.config.delayed_ack),
        ..BLANK
    },
    Setting {
        name: "idle-restart",
        group: TCP,
        default: "linux",
        help: "congestion window after an idle period: halved for each timeout (linux), the initial \
               window (rfc5681) or unchanged (off)",
        clause: "RFC 5681 section 4.1",
        field: words!(IDLE_RESTARTS, transport.config.window.idle_restart),
        ..BLANK
    },
    Setting {
        name: "prr",
        group: TCP,
        default: "rfc9937",
        help: "in fast recovery below the threshold, send one segment more than was delivered: \
               always (rfc6937), or only if nothing new is lost, as in Linux (rfc9937)",
        clause: "RFC 9937, RFC 6937",
        field: words!(PRRS, transport.config.recovery.prr),
        ..BLANK
    },
    Setting {
        name: "loss-detection",
        group: TCP,
        default: "rack",
        help: "loss detection before the timeout. rack: by time, with a tail probe (Linux since \
               4.4). sack-probe: by three SACKed segments, with a tail probe (Linux 3.10 to 4.3). \
               sack: without the probe (earlier)",
        clause: "RFC 8985, RFC 6675",
        field: words!(LOSS_DETECTIONS, transport.config.recovery.loss_detection),
        ..BLANK
    },
    Setting {
        name: "rto",
        group: TCP,
        default: "linux",
        help: "retransmission timeout: SRTT + max(200 ms, 4 RTTVAR) (linux), max(1 s, SRTT + 4 RTTVAR) \
               (rfc) or max(200 ms, SRTT + 4 RTTVAR) (rfc200)",
        clause: "RFC 6298",
        field: words!(RTOS, transport.config.recovery.rto),
        ..BLANK
    },
    Setting {
        name: "mtu",
        group: TCP,
        default: "1500",
        help: "largest IP packet",
        clause: "RFC 9293 section 3.7.1",
        field: count!("bytes", 576, 65_535, transport.config.packets.mtu),
        ..BLANK
    },
    Setting {
        name: "rcvbuf",
        group: TCP,
        default: "auto:6MiB:32MiB",
        help: "receive buffer of the connection. auto: it begins at FIRST (64KiB) and grows with the \
               data read in a round trip, up to MAX (6MiB). A size alone is fixed",
        clause: "RFC 8684 section 3.3.1; Linux, mptcp_rcv_space_adjust",
        field: text(
            "a size such as 6MiB, or auto[:MAX], or auto:FIRST:MAX",
            "auto:1MiB",
            buffers::rcvbuf_text,
            buffers::set_rcvbuf,
        ),
        ..BLANK
    },
    Setting {
        name: "sndbuf",
        group: TCP,
        default: "auto:32MiB",
        help: "send buffer of the connection. auto: it begins at FIRST (4MiB) and grows to twice \
               the congestion windows when a writer waits and they are not full, up to MAX (32MiB). \
               A size alone is fixed",
        clause: "RFC 8684 section 3.3.5; Linux, tcp_sndbuf_expand",
        field: text(
            "a size such as 4MiB, or auto[:MAX], or auto:FIRST:MAX",
            "1MiB",
            buffers::sndbuf_text,
            buffers::set_sndbuf,
        ),
        ..BLANK
    },
];

const GOALS: &[(&str, Goal)] = Goal::ALL;

/// Uses of the path memory, by name.
const MEMORIES: &[(&str, MemoryUse)] =
    &[("off", MemoryUse::Off), ("on", MemoryUse::On), ("ssthresh", MemoryUse::Ssthresh)];
const PACINGS: &[(&str, PacingUse)] = &[
    ("auto", PacingUse::Auto),
    ("off", PacingUse::Set(None)),
    ("on", PacingUse::Set(Some(Pacing::WINDOW))),
    ("bursts", PacingUse::Set(Some(Pacing::BURSTS))),
];
const JOINS: &[(&str, JoinTiming)] = &[
    ("after-data", JoinTiming::AfterData),
    ("agreed", JoinTiming::Agreed),
    ("after-synack", JoinTiming::AfterSynAck),
    ("simultaneous", JoinTiming::Simultaneous),
];
const HYSTARTS: &[(&str, HyStart)] = &[
    ("off", HyStart::Off),
    ("on", HyStart::PlusPlus),
    ("linux", HyStart::Linux),
    ("linux3", HyStart::Linux3),
    ("linux6", HyStart::Linux6),
];
/// The kernels that the simulator models itself.
pub(in crate::scenario) const KERNELS: &[(&str, Kernel)] =
    &[("none", Kernel::None), ("6.18", Kernel::Linux6_18)];
const SLOW_STARTS: &[(&str, u32)] = &[("rfc3465", 2), ("rfc5681", 1), ("linux", u32::MAX)];
pub(crate) const IDLE_RESTARTS: &[(&str, IdleRestart)] =
    &[("linux", IdleRestart::Linux), ("rfc5681", IdleRestart::Rfc5681), ("off", IdleRestart::Off)];
const DIALS: &[(&str, Dial)] = &[("any", Dial::Any), ("primary", Dial::Primary)];
const LOSS_DETECTIONS: &[(&str, LossDetection)] = &[
    ("rack", LossDetection::Rack),
    ("sack-probe", LossDetection::SackProbe),
    ("sack", LossDetection::Sack),
];
const PRRS: &[(&str, Prr)] = &[("rfc9937", Prr::Rfc9937), ("rfc6937", Prr::Rfc6937)];
pub(crate) const RTOS: &[(&str, RtoMode)] =
    &[("linux", RtoMode::Linux), ("rfc", RtoMode::Rfc), ("rfc200", RtoMode::Rfc200)];
