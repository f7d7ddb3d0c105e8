//! Tshark as an independent decoder of captures.
#![allow(unreachable_pub, dead_code, clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// Returns true if tshark is installed. Otherwise the summary reports that the test was skipped.
pub fn has_tshark() -> bool {
    let known =
        Command::new("tshark").arg("--version").output().is_ok_and(|it| it.status.success());
    if !known {
        // Written past the capture of the test's output, so that `make test` finds it.
        let why = "no tshark (Debian package tshark) to read the captures of `--pcap` with";
        let _ = writeln!(std::io::stdout(), "\nskipped: {why}");
    }
    known
}

/// Returns the fields of every packet that matches `filter`. Repeated fields are joined by commas.
pub fn tshark(file: &Path, filter: &str, fields: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).args(["-Y", filter, "-T", "fields"]);
    for option in [
        "mptcp.analyze_mappings:TRUE",
        "mptcp.intersubflows_retransmission:TRUE",
        "mptcp.relative_sequence_numbers:FALSE",
        "tcp.relative_sequence_numbers:FALSE",
        "tcp.check_checksum:TRUE",
        "ip.check_checksum:TRUE",
        "tcp.desegment_tcp_streams:FALSE",
    ] {
        command.args(["-o", option]);
    }
    // The payload is a pattern, not the usual protocol of these ports.
    command.args(["-d", "tcp.port==443,data", "-d", "tcp.port==80,data"]);
    fields.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |line: &str| line.split('\t').map(str::to_owned).collect();
    text.lines().map(line).collect()
}

/// Checks that no packet is malformed or has a wrong checksum, and that no protocol reports an error.
pub fn finds_nothing_wrong(pcap: &Path, name: &str) {
    let wrong = "_ws.malformed || ip.checksum.status == \"Bad\" || tcp.checksum.status == \"Bad\" || \
                 _ws.expert.severity == \"Error\"";
    // Linux writes 0xffff if a sum is zero. That is valid too, but tshark expects zero.
    let wrong = format!("({wrong}) && tcp.checksum != 0xffff");
    let found = tshark(pcap, &wrong, &["frame.number", "_ws.expert.message"]);
    assert!(found.is_empty(), "{name}: {found:?}");
}

/// Checks that all packets belong to one connection with joins, and that all its data is mapped. Returns the
/// number of joins.
pub fn understands(pcap: &Path, name: &str) -> usize {
    // From the second packet on, every packet with an option belongs to the connection. The first one contains
    // no key yet.
    let signs = "tcp.options.mptcp.subtype && frame.number > 1";
    let streams = tshark(pcap, signs, &["mptcp.stream"]);
    assert!(streams.iter().all(|stream| stream[0] == "0"), "{name}");
    // All data is mapped. The mapping of data on MP_CAPABLE is implicit, and tshark does not follow it.
    let unmapped = "tcp.len > 0 && !(tcp.options.mptcp.subtype == 0) && \
                    (!mptcp.related_mapping || mptcp.dss.missing_mapping)";
    let unmapped = tshark(pcap, unmapped, &["frame.number"]);
    assert!(unmapped.is_empty(), "{name}: {unmapped:?}");
    // Joins contain the token that tshark computes from the server's key.
    let keyed = "tcp.flags.syn == 1 && tcp.flags.ack == 1 && tcp.options.mptcp.sendkey";
    let token = tshark(pcap, keyed, &["mptcp.expected_token"]);
    let join = "tcp.options.mptcp.subtype == 1 && tcp.flags.syn == 1 && tcp.flags.ack == 0";
    let joins = tshark(pcap, join, &["tcp.options.mptcp.recvtok", "tcp.stream"]);
    assert!(!joins.is_empty(), "{name}: nobody joins");
    assert!(joins.iter().all(|join| join[0] == token[0][0]), "{name}: {joins:?}, {token:?}");
    // A join whose answer is late is retransmitted.
    let subflows: BTreeSet<&String> = joins.iter().map(|join| &join[1]).collect();
    subflows.len()
}
