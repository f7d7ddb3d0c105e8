//! The settings of a scenario, one entry each. Flags and their help, scenario files, sweeps,
//! experiments, their schema and the names in errors all read [`SETTINGS`]. To add a setting, add
//! an entry here and use the value. Most fields of the core's configuration need no other change.

use super::kind::{Field, Kind, count, names, on_off, read_count, read_time, time, words};
use super::specs::{controllers, schedulers};
use super::{Kernel, Scenario, setters};
use plait_base::Span;
use plait_cc::{HyStart, IdleRestart};
use plait_core::{Config, Dial, JoinTiming, LossDetection, Pacing, Prr, RtoMode};

/// A setting of a scenario: a flag without its dashes, and a key of a scenario file.
#[derive(Debug)]
pub struct Setting {
    /// Name. A file may also write `_` for `-`.
    pub name: &'static str,
    /// Its group in the help.
    pub group: &'static str,
    /// Default value; empty if there is none.
    pub default: &'static str,
    /// Its effect, in one line.
    pub help: &'static str,
    /// Its source: a standard, paper or kernel file; empty for the laboratory's own settings.
    pub clause: &'static str,
    /// Whether a sweep may vary it. Settings of the comparison as a whole cannot vary.
    pub varies: bool,
    /// Its type with unit and range, and its accessors.
    pub(super) field: Field,
}

const SCENARIO: &str = "Scenario";
const MPTCP: &str = "Multipath TCP";
const TCP: &str = "TCP";
const HOSTS: &str = "Hosts and model";
const RUNS: &str = "Runs";

const fn setting(
    name: &'static str,
    group: &'static str,
    default: &'static str,
    help: &'static str,
    clause: &'static str,
    field: Field,
) -> Setting {
    Setting { name, group, default, help, clause, varies: true, field }
}

impl Setting {
    const fn of_the_comparison(mut self) -> Setting {
        self.varies = false;
        self
    }
}

/// Every setting except the paths, in the order of the command line. They are read in this order,
/// with two exceptions: links come before the paths, and sweeps come last.
#[rustfmt::skip]
pub const SETTINGS: &[Setting] = &[
    setting("link", SCENARIO, "", "a shared link behind the paths that name it with via=NAME", "",
        Field { kind: Kind::List { values: "NAME:KEY=VALUE,... with the keys of a path, except those of profiles, hosts and middleboxes; without rtt it adds no delay", example: "cell:rtt=0s,rate=9mbit" }, get: |it| it.shared.iter().map(|link| format!("{}:{}", link.name, link.written().join(","))).collect(), set: |_, _, _| Ok(()) }),
    setting("compete", SCENARIO, "", "cross traffic over a path or shared link: N permanent plain TCP flows to clients of their own, or UDP", "",
        Field { kind: Kind::List { values: "CC@PATH_OR_LINK or CC@PATH_OR_LINK*N, such as reno@wifi*2; UDP for CC: poisson:rate=3mbit, or pareto:rate=1mbit,on=500ms,off=500ms,shape=1.5", example: "reno@a*2" }, get: |it| it.compete.iter().map(ToString::to_string).collect(), set: setters::set_competition }),
    setting("workload", SCENARIO, "", "the workload of the connection", "",
        Field { kind: Kind::Text { values: "download:SIZE, upload:SIZE, bulk:DURATION, burst:SIZE, stream:SIZE@INTERVAL,for=DURATION, blocks:SIZE@RATE|inf,for=DURATION, video:NAME_OR_FILE, maps:DURATION or web:NAME_OR_FILE; plait list workloads describes each", example: "upload:1MB" }, get: |it| vec![it.workload.to_string()], set: setters::set_workload }),
    setting("schedulers", SCENARIO, "all", "the schedulers to compare", "",
        Field { kind: Kind::Text { values: "all, or a list such as minrtt,ecf:beta=0.5,blest+rp; all may stand in a list", example: "minrtt,ecf:beta=0.5" }, get: setters::scheduler_texts, set: |it, given, _| { it.schedulers = schedulers(given)?; Ok(()) } }).of_the_comparison(),
    setting("cc", SCENARIO, "cubic", "congestion controllers", "",
        Field { kind: Kind::Text { values: "a list such as cubic,lia", example: "lia,olia" }, get: |it| vec![it.ccs.iter().map(plait_cc::Spec::name).collect::<Vec<_>>().join(",")], set: |it, given, _| { it.ccs = controllers(given)?; Ok(()) } }).of_the_comparison(),
    setting("runs", RUNS, "30", "runs of each row; one if nothing is random", "", count!("", 1, 1_000_000, budget.runs)).of_the_comparison(),
    setting("seed", RUNS, "1", "seed of the first run", "", count!("", 0, u64::MAX, seed)),
    setting("subflows", MPTCP, "1", "subflows per path; mesh4: from both paths to both addresses of the server", "RFC 8684 sections 3.2 and 3.4.1",
        Field { kind: Kind::Text { values: "1 to 8, at most 8 in all, or mesh4", example: "2" }, get: |it| vec![it.transport.subflows.to_string()], set: setters::set_subflows }),
    setting("join", MPTCP, "after-data", "the start of further subflows", "RFC 8684 section 3.2", words!(JOINS, transport.config.joins.timing)),
    setting("dial", MPTCP, "any", "the path of the next SYN if the first one is not answered: any is the next path, primary the first path again, as in a kernel", "RFC 8305 section 8", words!(DIALS, transport.config.joins.dial)),
    setting("checksum", MPTCP, "off", "DSS checksums, which detect data that was changed on its way", "RFC 8684 section 3.3", on_off!(transport.config.checksum)),
    setting("ssthresh", TCP, "inf", "initial slow start threshold", "RFC 5681 section 3.1",
        Field { kind: Kind::Text { values: "inf, or a size such as 64KiB or 45seg", example: "45seg" }, get: |it| vec![it.transport.ssthresh.map_or("inf".to_owned(), |size| size.to_string())], set: setters::set_ssthresh }),
    setting("earlier", MPTCP, "0", "number of downloads or uploads of the same kind to the same peer before this one; as in Linux, each path keeps a slow start threshold from them", "Linux, net/ipv4/tcp_metrics.c",
        Field { kind: Kind::Text { values: "a whole number from 0 to 1000", example: "3" }, get: |it| vec![it.transport.earlier_transfers.to_string()], set: setters::set_earlier }),
    setting("initial-window", TCP, "10", "initial congestion window", "RFC 6928", count!("segments", 1, 1_000, transport.config.window.initial)),
    setting("slow-start", TCP, "rfc3465", "maximum growth for each ACK: two segments (one after a timeout), one, or all acknowledged bytes", "L of RFC 3465", words!(SLOW_STARTS, transport.config.window.slow_start_limit)),
    setting("tsq", HOSTS, "off", "TCP small queues: hold data back while enough of it waits at the host's own link", "Linux, tcp_small_queue_check", on_off!(transport.config.tsq)),
    setting("send-cost", HOSTS, "0s", "time that a host needs for each segment before it can send the next one", "", time!("7.5us", Span::from_millis(1), "too long for a segment", transport.send_cost)),
    setting("pacing", TCP, "off", "spread the segments of a window over the round trip", "Linux, tcp_update_pacing_rate",
        on_off!(Switch, it => it.transport.config.window.pacing.is_some(), on => on.then(Pacing::default), transport.config.window.pacing)),
    setting("hystart", TCP, "off", "end slow start before a loss: on is HyStart++; linux, linux3 and linux6 are CUBIC in Linux from 4.0 on, before 4.0, and in 6.18", "RFC 9406; Linux, net/ipv4/tcp_cubic.c", words!(HYSTARTS, transport.config.window.hystart)),
    setting("kernel", HOSTS, "none", "both ends behave as this version of Linux. 6.18: automatic buffers, HyStart, slow start, no probes; rcvbuf is then SO_RCVBUF. Older versions: the settings of a paper's kernel (--save-scenario writes them), which your own settings override", "",
        words!(KERNELS, transport.kernel, "none, 6.18, or the kernel of a paper: 3.5, 3.11, 3.14, 4.1 or 4.4")),
    setting("undo", TCP, "on", "undo a reduction of the window if the lost segments prove to be only late", "RFC 3522, RFC 3708, RFC 5682", on_off!(transport.config.recovery.undo)),
    setting("probes", MPTCP, "on", "probe silent paths every second, so that they are used again soon after an outage", "",
        on_off!(Switch, it => it.transport.config.joins.probe.is_some(), on => on.then_some(Config::PROBE), transport.config.joins.probe)),
    setting("delayed-ack", TCP, "on", "delayed acknowledgements", "RFC 9293 section 3.8.6.3", on_off!(transport.config.delayed_ack)),
    setting("idle-restart", TCP, "linux", "congestion window after an idle period", "RFC 5681 section 4.1", words!(IDLE_RESTARTS, transport.config.window.idle_restart)),
    setting("prr", TCP, "rfc9937", "fast recovery below its threshold: sends one segment more than the delivered ones; rfc9937 only if nothing new is lost (as Linux), rfc6937 always", "RFC 9937, RFC 6937", words!(PRRS, transport.config.recovery.prr)),
    setting("loss-detection", TCP, "rack", "loss detection before the timeout: by time with a tail probe (Linux since 4.4), or by three SACKed segments with a tail probe (Linux 3.10 to 4.3) or without (earlier)", "RFC 8985, RFC 6675", words!(LOSS_DETECTIONS, transport.config.recovery.loss_detection)),
    setting("rto", TCP, "linux", "retransmission timeout", "RFC 6298", words!(RTOS, transport.config.recovery.rto)),
    setting("mtu", TCP, "1500", "largest IP packet", "RFC 9293 section 3.7.1", count!("bytes", 576, 65_535, transport.config.packets.mtu)),
    setting("rcvbuf", TCP, "6MiB", "receive buffer of the connection; auto: its window begins at 64 KiB and follows the data read, up to MAX (6MiB)", "RFC 8684 section 3.3.1",
        Field { kind: Kind::Text { values: "a size such as 6MiB, or auto[:MAX]", example: "auto:1MiB" }, get: setters::rcvbuf_text, set: setters::set_rcvbuf }),
    setting("sndbuf", TCP, "4MiB", "send buffer of the connection", "RFC 8684 section 3.3.5",
        Field { kind: Kind::Text { values: "a size such as 4MiB", example: "1MiB" }, get: |it| vec![setters::size_text(it.transport.sndbuf)], set: |it, given, _| { it.transport.sndbuf = setters::window_size(given)?; Ok(()) } }),
    setting("until", RUNS, "", "end of a run that has not finished; ci=2%: add runs until each scheduler's 95 % interval against the best row is within 2 %, up to 1000 runs", "",
        Field { kind: Kind::List { values: "a time, at most 60min of virtual time, or ci=PERCENT", example: "90s" }, get: setters::until_texts, set: setters::set_until }).of_the_comparison(),
    setting("ideal", HOSTS, "off", "the textbook model: no rate limit, no queue, one ACK per segment", "", on_off!(Flag, ideal)),
    setting("exact", RUNS, "off", "no jitter of hosts: a comparison without randomness makes one run", "", on_off!(Flag, timing.exact)),
    setting("host-jitter", RUNS, "auto", "random timing of hosts: the phase of each path, a delay of each packet and the start; auto: 200us if nothing else in the comparison is random", "",
        Field { kind: Kind::Text { values: "auto, or a time such as 200us, at most 10ms", example: "200us" }, get: |it| vec![it.timing.jitter.to_string()], set: setters::set_host_jitter }),
    setting("check", RUNS, "off", "check the invariants after every event", "", on_off!(Flag, check)),
    setting("wire", RUNS, "off", "encode and parse every segment; the result must be identical", "", on_off!(Flag, wire)),
    setting("jobs", RUNS, "", "runs at a time; by default one per core", "",
        Field { kind: Kind::Text { values: "a whole number from 1 to 1024", example: "2" }, get: |it| it.budget.jobs.iter().map(ToString::to_string).collect(), set: setters::set_jobs }).of_the_comparison(),
    setting("vary", RUNS, "", "repeat for each value of a setting; twice for a grid of two settings", "",
        Field { kind: Kind::List { values: "PATH.KEY=FROM..TO:POINTS or PATH.KEY=A,B,C, or a setting for PATH.KEY", example: "mtu=600,1500" }, get: |it| it.vary.iter().map(ToString::to_string).collect(), set: |_, _, _| Ok(()) }).of_the_comparison(),
    setting("expect", RUNS, "", "a statement that must hold", "",
        Field { kind: Kind::List { values: "ROW.MEASURE.STATISTIC OP ROW.MEASURE.STATISTIC or a number", example: "minrtt.completion_ms.mean < 1e9" }, get: |it| it.expect.iter().map(ToString::to_string).collect(), set: setters::set_expectation }).of_the_comparison(),
];

// The swarm draws from these words, too.
pub(crate) const JOINS: &[(&str, JoinTiming)] = &[
    ("after-data", JoinTiming::AfterData),
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
pub(super) const KERNELS: &[(&str, Kernel)] =
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

impl Setting {
    /// Returns the setting of this name, spelled with `-` or `_`.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Setting> {
        let spelled = name.replace('_', "-");
        SETTINGS.iter().find(|setting| setting.name == spelled)
    }

    /// Returns its allowed values: type, unit and range.
    #[must_use]
    pub fn values(&self) -> String {
        self.field.kind.values()
    }

    /// Returns the JSON Schema of its value in an experiment, which may contain `{AXIS}`; `None` if
    /// any text is allowed.
    pub(crate) fn schema(&self) -> Option<serde_json::Value> {
        self.field.kind.schema()
    }

    /// Returns example texts.
    #[must_use]
    pub fn examples(&self) -> Vec<String> {
        self.field.kind.examples()
    }

    /// Returns true if it is a flag without a value. In a file it is `on` or `off`.
    #[must_use]
    pub const fn is_flag(&self) -> bool {
        matches!(self.field.kind, Kind::Flag)
    }

    /// Returns true if it may be given more than once.
    #[must_use]
    pub const fn repeats(&self) -> bool {
        matches!(self.field.kind, Kind::List { .. })
    }

    /// Returns the texts that give a scenario this setting. For a default value there are none,
    /// except for the number of runs and the seed.
    pub(super) fn texts(&self, scenario: &Scenario) -> Vec<String> {
        let mut texts = (self.field.get)(scenario);
        if !["runs", "seed"].contains(&self.name) {
            texts.retain(|text| text != self.default);
        }
        texts
    }
}
