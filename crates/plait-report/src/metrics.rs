//! The state of a server in the text format of Prometheus (version 0.0.4).

use plait_core::{Carried, Sizes, TimedOut};
use plait_engine::{Opened, Overview, Shortage};
use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

/// The names of schedulers, by port and by the index of a rule.
#[derive(Clone, Default, Debug)]
pub struct Schedulers {
    /// By port.
    pub ports: BTreeMap<u16, String>,
    /// By the index of a rule.
    pub rules: Vec<String>,
}

impl Schedulers {
    /// Returns the scheduler of connections to a port, with the matching rule if there is one.
    #[must_use]
    pub fn of(&self, port: u16, rule: Option<usize>) -> &str {
        let of_rule = rule.and_then(|place| self.rules.get(place));
        of_rule.or_else(|| self.ports.get(&port)).map_or("", String::as_str)
    }
}

/// Text to which families of samples are appended.
#[derive(Default)]
struct Exposition(String);

impl Exposition {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (at, (label, text)) in labels.iter().enumerate() {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let before = if at == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{before}{label}=\"{text}\"");
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.0, "{end} {value}");
    }
}

/// Returns all metrics. Every series exists from the start, so that rates can be computed. The
/// exceptions are series of causes and of kinds of connections that have not occurred yet.
#[must_use]
pub fn render(overview: &Overview, schedulers: &Schedulers) -> String {
    let mut out = Exposition::default();
    let name = "plait_build_info";
    out.family(name, "gauge", "Version and commit of plait; always 1.");
    let build = [("version", env!("CARGO_PKG_VERSION")), ("commit", crate::COMMIT)];
    out.sample(name, &build, 1);
    connections(&mut out, overview, schedulers);
    limits(&mut out, overview);
    subflows(&mut out, overview);
    let counters = &overview.counters;
    let name = "plait_packets_total";
    out.family(name, "counter", "IP packets of the device.");
    out.sample(name, &[("direction", "received")], counters.packets_in);
    out.sample(name, &[("direction", "sent")], counters.packets_out);
    let name = "plait_packets_refused_total";
    let help = "Packets without a segment for plait: damaged, of another protocol, or for another address.";
    out.family(name, "counter", help);
    out.sample(name, &[], counters.refused);
    let name = "plait_packets_dropped_total";
    out.family(name, "counter", "Packets of plait that the kernel did not accept.");
    out.sample(name, &[], counters.dropped);
    out.0
}

fn connections(out: &mut Exposition, overview: &Overview, schedulers: &Schedulers) {
    let word = |multipath| if multipath { "true" } else { "false" };
    let name = "plait_connections";
    out.family(name, "gauge", "Connections that are being relayed.");
    for multipath in [true, false] {
        let count = overview.connections.iter().filter(|it| it.stats.multipath == multipath);
        out.sample(name, &[("multipath", word(multipath))], count.count());
    }
    let name = "plait_connections_accepted_total";
    let help = "Connections that clients opened, by scheduler and by use of Multipath TCP.";
    out.family(name, "counter", help);
    let mut accepted: BTreeMap<(u16, &str, bool), u64> = BTreeMap::new();
    for (Opened { port, rule, multipath }, count) in &overview.tally.accepted {
        // Several rules may have the same scheduler.
        *accepted.entry((*port, schedulers.of(*port, *rule), *multipath)).or_default() += count;
    }
    for ((port, scheduler, multipath), count) in accepted {
        let port = port.to_string();
        let labels =
            [("port", port.as_str()), ("scheduler", scheduler), ("multipath", word(multipath))];
        out.sample(name, &labels, count);
    }
    let name = "plait_connections_failed_total";
    out.family(name, "counter", "Connections that did not end in order.");
    out.sample(name, &[], overview.tally.failed);
    let name = "plait_connections_timed_out_total";
    let help = "Connections ended by the user timeout, by unanswered keep-alives, or because the quotas of all paths are used up.";
    out.family(name, "counter", help);
    let causes = [
        (TimedOut::User, "user"),
        (TimedOut::KeepAlive, "keep-alive"),
        (TimedOut::Quota, "over-quota"),
    ];
    for (by, timeout) in causes {
        let count = overview.tally.timed_out.get(&by).copied().unwrap_or_default();
        out.sample(name, &[("timeout", timeout)], count);
    }
    let name = "plait_fallbacks_total";
    out.family(name, "counter", "Connections that fell back to plain TCP, by cause.");
    for (cause, count) in &overview.tally.fallbacks {
        out.sample(name, &[("cause", cause.name())], count);
    }
}

/// Writes the memory of connections, including ended ones, and its limits.
fn limits(out: &mut Exposition, overview: &Overview) {
    let (holdings, limits) = (&overview.memory_report, &overview.limits);
    let mut gauge = |name: &str, help: &str, value: u64| {
        out.family(name, "gauge", help);
        out.sample(name, &[], value);
    };
    let help = "Connections whose handshake is not complete.";
    gauge("plait_connections_half_open", help, holdings.half_open as u64);
    let help = "Connections that are no longer relayed, until the client has acknowledged their end \
                and ended its side.";
    gauge("plait_connections_closing", help, holdings.closing as u64);
    let help = "Subflows of ended connections that wait for late segments (TIME-WAIT).";
    gauge("plait_connections_time_wait", help, holdings.time_wait as u64);
    let help = "Maximum number of connections.";
    gauge("plait_connections_limit", help, limits.connections as u64);
    let help = "Known addresses of clients: those in use, and some recent ones.";
    gauge("plait_client_addresses", help, overview.paths as u64);
    let help = "Memory of connections: data of both directions, and its buffers.";
    gauge("plait_memory_bytes", help, overview.memory);
    gauge("plait_memory_limit_bytes", "Maximum memory of connections.", limits.memory);
    let name = "plait_connections_refused_total";
    out.family(name, "counter", "Refused connections, by the limit that was reached.");
    for shortage in Shortage::ALL {
        let count = overview.tally.refused.get(&shortage).copied().unwrap_or_default();
        out.sample(name, &[("shortage", shortage.name())], count);
    }
    let name = "plait_overflows_total";
    let help =
        "Events at a full table: SYN cookies, evicted joins and connections, and SYNs with FIN.";
    out.family(name, "counter", help);
    for (what, count) in overview.overflows.counts() {
        out.sample(name, &[("what", what)], count);
    }
}

fn subflows(out: &mut Exposition, overview: &Overview) {
    let name = "plait_subflows";
    out.family(name, "gauge", "Subflows that may carry data; a connection begins with its first.");
    let all = overview.connections.iter().flat_map(|it| &it.stats.subflows);
    let up = all.filter(|subflow| subflow.up);
    let joined = up.clone().filter(|subflow| subflow.joined).count();
    let first = up.count() - joined;
    out.sample(name, &[("subflow", "first")], first);
    out.sample(name, &[("subflow", "joined")], joined);
    let mut each = |name: &str, help: &str, of: fn(&Carried) -> u64| {
        out.family(name, "counter", help);
        out.sample(name, &[("subflow", "first")], of(&overview.totals.first));
        out.sample(name, &[("subflow", "joined")], of(&overview.totals.joined));
    };
    each("plait_sent_bytes_total", "Payload sent on subflows, each byte once.", |it| it.sent);
    each("plait_received_bytes_total", "Payload received on subflows.", |it| it.received);
    let help = "Segments retransmitted on their subflow.";
    each("plait_retransmissions_total", help, |it| it.counters.retransmissions);
    sizes(out, overview.sizes);
}

/// Writes the metrics of packet sizes.
fn sizes(out: &mut Exposition, sizes: Sizes) {
    let name = "plait_too_big_total";
    let help = "ICMP messages (packet too big) about connections. They are believed if the quoted \
                segment was in flight.";
    out.family(name, "counter", help);
    out.sample(name, &[("believed", "true")], sizes.too_big_believed);
    out.sample(name, &[("believed", "false")], sizes.too_big_refused);
    let name = "plait_segments_shortened_total";
    let help = "Changes of a connection to shorter segments, after an ICMP message or the loss of long \
                ones.";
    out.family(name, "counter", help);
    out.sample(name, &[("cause", "too-big")], sizes.lowered_as_told);
    out.sample(name, &[("cause", "black-hole")], sizes.lowered_by_hole);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_clients_has_its_series() {
        let mut overview = Overview::default();
        for (rule, count) in [(None, 3), (Some(0), 4), (Some(1), 5), (Some(2), 6)] {
            let opened = Opened { port: 80, rule, multipath: true };
            overview.tally.accepted.insert(opened, count);
        }
        overview.totals.joined.sent = 17;
        overview.memory_report.closing = 18;
        overview.overflows.cookies_sent = 26;
        overview.tally.refused.insert(Shortage::Memory, 19);
        overview.sizes = Sizes {
            too_big_believed: 22,
            too_big_refused: 23,
            lowered_as_told: 24,
            lowered_by_hole: 25,
        };
        overview.tally.timed_out.insert(TimedOut::User, 20);
        overview.tally.timed_out.insert(TimedOut::KeepAlive, 21);
        let ports = BTreeMap::from([(80, "ecf:beta=\"1\"".to_owned())]);
        let rules = ["otias", "daps", "otias"].map(str::to_owned).to_vec();
        let schedulers = Schedulers { ports, rules };
        let text = render(&overview, &schedulers);
        let lines: Vec<&str> = text.lines().collect();
        for line in [
            "# TYPE plait_connections gauge",
            "plait_connections{multipath=\"true\"} 0",
            "plait_connections_accepted_total{port=\"80\",scheduler=\"ecf:beta=\\\"1\\\"\",multipath=\"true\"} 3",
            "plait_connections_accepted_total{port=\"80\",scheduler=\"otias\",multipath=\"true\"} 10",
            "plait_connections_accepted_total{port=\"80\",scheduler=\"daps\",multipath=\"true\"} 5",
            "plait_connections_failed_total 0",
            "plait_connections_timed_out_total{timeout=\"user\"} 20",
            "plait_connections_timed_out_total{timeout=\"keep-alive\"} 21",
            "plait_connections_timed_out_total{timeout=\"over-quota\"} 0",
            "plait_too_big_total{believed=\"true\"} 22",
            "plait_too_big_total{believed=\"false\"} 23",
            "plait_segments_shortened_total{cause=\"too-big\"} 24",
            "plait_segments_shortened_total{cause=\"black-hole\"} 25",
            "plait_sent_bytes_total{subflow=\"joined\"} 17",
            "plait_connections_closing 18",
            "plait_overflows_total{what=\"cookies_sent\"} 26",
            "plait_overflows_total{what=\"syns_with_fin\"} 0",
            "plait_connections_refused_total{shortage=\"connections\"} 0",
            "plait_connections_refused_total{shortage=\"memory\"} 19",
            "plait_connections_refused_total{shortage=\"addresses\"} 0",
            "plait_sent_bytes_total{subflow=\"first\"} 0",
        ] {
            assert!(lines.contains(&line), "{line}\n{text}");
        }
        // Each family is declared once, and each sample belongs to one.
        let mut family = "";
        for line in lines {
            match line.strip_prefix("# TYPE ") {
                Some(kind) => family = kind.split(' ').next().unwrap_or(""),
                None => assert!(line.starts_with('#') || line.starts_with(family), "{line}"),
            }
        }
    }
}
