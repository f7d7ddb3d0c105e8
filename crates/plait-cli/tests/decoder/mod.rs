//! tshark, as an independent decoder of captures.
#![allow(unreachable_pub, dead_code)]

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// Whether there is a tshark; if not, the summary says that the test was skipped.
pub fn has_tshark() -> bool {
    let known =
        Command::new("tshark").arg("--version").output().is_ok_and(|it| it.status.success());
    if !known {
        // Past the capture of the test's output, for `make test` to find.
        let why = "no tshark (Debian package tshark) to read the captures of `--pcap` with";
        let _ = writeln!(std::io::stdout(), "\nskipped: {why}");
    }
    known
}

/// The fields of every packet that `filter` lets through; those that come several times are joined
/// by commas.
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
    // The payload is a pattern and not what usually goes to these ports.
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

/// No packet is malformed or has a wrong checksum, and there is no error of any protocol.
pub fn finds_nothing_wrong(pcap: &Path, name: &str) {
    let wrong = "_ws.malformed || ip.checksum.status == \"Bad\" || tcp.checksum.status == \"Bad\" || \
                 _ws.expert.severity == \"Error\"";
    // Linux writes 0xffff where a sum is zero, which verifies as well; tshark wants the other.
    let wrong = format!("({wrong}) && tcp.checksum != 0xffff");
    let found = tshark(pcap, &wrong, &["frame.number", "_ws.expert.message"]);
    assert!(found.is_empty(), "{name}: {found:?}");
}

/// All packets are of one connection with joins, and all of its data is mapped. Gives the number of
/// its joins.
pub fn understands(pcap: &Path, name: &str) -> usize {
    // Every packet with an option is of the connection, from the second on: the first names no key yet.
    let signs = "tcp.options.mptcp.subtype && frame.number > 1";
    let streams = tshark(pcap, signs, &["mptcp.stream"]);
    assert!(streams.iter().all(|stream| stream[0] == "0"), "{name}");
    // All data is mapped; that on MP_CAPABLE is by implication, which tshark does not follow.
    let unmapped = "tcp.len > 0 && !(tcp.options.mptcp.subtype == 0) && \
                    (!mptcp.related_mapping || mptcp.dss.missing_mapping)";
    let unmapped = tshark(pcap, unmapped, &["frame.number"]);
    assert!(unmapped.is_empty(), "{name}: {unmapped:?}");
    // Joins name the token that tshark computes from the server's key.
    let keyed = "tcp.flags.syn == 1 && tcp.flags.ack == 1 && tcp.options.mptcp.sendkey";
    let token = tshark(pcap, keyed, &["mptcp.expected_token"]);
    let join = "tcp.options.mptcp.subtype == 1 && tcp.flags.syn == 1 && tcp.flags.ack == 0";
    let joins = tshark(pcap, join, &["tcp.options.mptcp.recvtok", "tcp.stream"]);
    assert!(!joins.is_empty(), "{name}: nobody joins");
    assert!(joins.iter().all(|join| join[0] == token[0][0]), "{name}: {joins:?}, {token:?}");
    // One whose answer is late asks again.
    let subflows: BTreeSet<&String> = joins.iter().map(|join| &join[1]).collect();
    subflows.len()
}
