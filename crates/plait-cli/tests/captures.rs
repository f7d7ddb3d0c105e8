//! `--pcap` read by tshark, an independent decoder. It sees in every packet the segment that the run reports,
//! finds no malformed packet and no wrong checksum, and understands the connection.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use crate::decoder::{self, has_tshark, tshark};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PLAIT: &str = env!("CARGO_BIN_EXE_plait");

const PATHS: &str = "--path wifi:rate=20mbit,rtt=22ms,queue=60kB,loss=0.5% \
                     --path lte:rate=10mbit,rtt=60ms";

fn file(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("captures");
    fs::create_dir_all(&dir).unwrap();
    dir.join(name)
}

fn plait(args: &str) {
    let output = Command::new(PLAIT).args(args.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "{args}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Returns the events of a kind from all lines of a file.
fn events(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap();
    text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A capture and the events of the same run.
fn captured(name: &str, args: &str) -> (PathBuf, Vec<Value>) {
    let (pcap, log) = (file(&format!("{name}.pcapng")), file(&format!("{name}.jsonl")));
    plait(&format!("run {args} --pcap {} --events {}", pcap.display(), log.display()));
    (pcap, events(&log))
}

const FIELDS: [&str; 14] = [
    "frame.time_epoch",
    "frame.interface_name",
    "ip.len",
    "tcp.srcport",
    "tcp.dstport",
    "tcp.seq_raw",
    "tcp.flags.ack",
    "tcp.ack_raw",
    "tcp.window_size_value",
    "tcp.len",
    "tcp.options.sack_le",
    "tcp.options.sack_re",
    "tcp.options.mptcp.rawdataseqno",
    "tcp.options.mptcp.rawdataack",
];

/// Matches any value that tshark prints.
const ANY: &str = "*";

/// Returns the values that tshark must print in these fields for a segment event.
fn expected(event: &Value) -> Vec<String> {
    let number = |key: &str| event[key].as_u64().unwrap().to_string();
    let t_ns = event["t_ns"].as_u64().unwrap();
    let edges = |at: usize| {
        let blocks = event["sack"].as_array().unwrap().iter();
        blocks.map(|block| block[at].to_string()).collect::<Vec<_>>().join(",")
    };
    let long = |key: &str| {
        let digits = event[key].as_str().map(|hex| hex.trim_start_matches("0x"));
        digits.map_or(String::new(), |hex| u64::from_str_radix(hex, 16).unwrap().to_string())
    };
    let ack = event["ack"].as_u64();
    vec![
        format!("{}.{:09}", t_ns / 1_000_000_000, t_ns % 1_000_000_000),
        event["path"].as_str().unwrap().to_owned(),
        number("ip_bytes"),
        number("src_port"),
        number("dst_port"),
        number("seq"),
        u8::from(ack.is_some()).to_string(),
        ack.unwrap_or(0).to_string(),
        number("window"),
        number("payload_bytes"),
        edges(0),
        edges(1),
        // MP_FAIL has a DSN too, which the event does not contain.
        if event["mptcp"] == "mp-fail" { ANY.to_owned() } else { long("wire_dsn") },
        long("wire_data_ack"),
    ]
}

/// Every packet is the segment that the host of the capture sent or received, field by field, in this order. No
/// packet is malformed or has a wrong checksum, and no protocol reports an error.
fn agrees(name: &str, pcap: &Path, events: &[Value], sender: &str) {
    let seen = tshark(pcap, "tcp", &FIELDS);
    let (sent, arrived) = match sender {
        "server" => ("down", "up"),
        _ => ("up", "down"),
    };
    let captured = events.iter().filter(|it| {
        let event = (it["event"].as_str().unwrap(), it["direction"].as_str().unwrap_or(""));
        event == ("segment-sent", sent) || event == ("segment-delivered", arrived)
    });
    let expected: Vec<Vec<String>> = captured.map(expected).collect();
    assert!(expected.len() > 20, "{name}: {} packets", expected.len());
    for (at, (seen, expected)) in seen.iter().zip(&expected).enumerate() {
        let same = |(seen, expected): (&String, &String)| seen == expected || expected == ANY;
        assert!(
            seen.len() == expected.len() && seen.iter().zip(expected).all(same),
            "{name}, packet {}: {seen:?}, not {expected:?}, of {FIELDS:?}",
            at + 1
        );
    }
    assert_eq!(seen.len(), expected.len(), "{name}");
    decoder::finds_nothing_wrong(pcap, name);
}

/// Runs that together contain every option.
const RUNS: [(&str, &str, &str); 8] = [
    ("two", "--workload download:500kB --schedulers ecf", "server"),
    ("upload", "--workload upload:300kB --schedulers roundrobin --checksum on", "client"),
    ("redundant", "--workload download:100kB --schedulers redundant", "server"),
    ("mesh", "--workload download:200kB --subflows mesh4 --schedulers roundrobin", "server"),
    ("gone", "--path c:rate=8mbit,rtt=30ms,gone=100ms..400ms --workload download:800kB", "server"),
    ("checked", "--workload download:300kB --checksum on --schedulers blest+rp", "server"),
    (
        "edited",
        "--path c:rate=8mbit,rtt=30ms,edit=2% --workload download:300kB --checksum on \
         --schedulers roundrobin",
        "server",
    ),
    ("burst", "--workload burst:15seg --schedulers daps", "server"),
];

/// R1, R5, R6, R7, R20, R28, R30, R43, R46, R49.
#[test]
fn an_independent_decoder_agrees() {
    if !has_tshark() {
        return;
    }
    for (name, args, sender) in RUNS {
        let (pcap, events) = captured(name, &format!("{PATHS} {args}"));
        agrees(name, &pcap, &events, sender);
        decoder::understands(&pcap, name);
        // The comment on each data packet gives the sender's reason.
        let own = if sender == "server" { "tcp.srcport == 443" } else { "tcp.dstport == 443" };
        let data = tshark(&pcap, &format!("tcp.len > 0 && {own}"), &["frame.comment"]);
        let sent = events.iter().filter(|it| it["event"] == "data-sent" && it["host"] == sender);
        let carried: Vec<String> = sent.map(explanation).collect();
        assert_eq!(data.len(), carried.len(), "{name}");
        for (comment, carried) in data.iter().zip(&carried) {
            assert!(comment[0].starts_with(carried), "{name}: {comment:?}, not {carried}");
        }
    }
}

/// Returns the prefix of the comment on the packet of a `data-sent` event.
fn explanation(event: &Value) -> String {
    let word = match event["carry"].as_str().unwrap() {
        "new" => "new data",
        "redundant" => "redundant copy",
        "opportunistic" => "opportunistic retransmission",
        "tail-probe" => "tail probe",
        other => other,
    };
    let dsn = event["dsn"].as_u64().unwrap();
    let end = dsn + event["len_bytes"].as_u64().unwrap();
    let decided = if matches!(word, "retransmission" | "tail probe") { "" } else { "; decision " };
    format!("{word} {dsn}..{end} on subflow {}{decided}", event["subflow"])
}

/// Tshark calls copies on another subflow reinjections, and counts the same number.
#[test]
fn reinjections_are_counted_alike() {
    if !has_tshark() {
        return;
    }
    let (pcap, events) = captured("copies", &format!("{PATHS} {}", RUNS[2].1));
    let copies =
        events.iter().filter(|it| it["event"] == "data-sent" && it["carry"] == "redundant");
    let seen = tshark(&pcap, "mptcp.reinjection_of && tcp.len > 0", &["frame.number"]);
    assert!(seen.len() >= copies.count() && !seen.is_empty(), "{}", seen.len());
}

/// R50, R52: plain TCP, from the start and after the options have vanished.
#[test]
fn plain_tcp_is_seen_as_such() {
    if !has_tshark() {
        return;
    }
    let one = "--path a:rate=10mbit,rtt=20ms,loss=1%";
    let (pcap, events) = captured("single", &format!("{one} --workload download:200kB"));
    agrees("single", &pcap, &events, "server");
    assert!(tshark(&pcap, "tcp.options.mptcp.subtype", &["frame.number"]).is_empty());
    let strip = "--path a:rate=10mbit,rtt=20ms,strip=synack --path b:rate=5mbit,rtt=40ms";
    let (pcap, events) = captured("strip", &format!("{strip} --workload download:200kB"));
    agrees("strip", &pcap, &events, "server");
    let late = "tcp.options.mptcp.subtype == 2";
    assert!(tshark(&pcap, late, &["frame.number"]).is_empty());
}

/// `--qlog`: JSON records with the packets of the capture, and the RTTs and windows of the events.
#[test]
fn qlog_has_the_names_of_quic() {
    let (log, events_file) = (file("quic.sqlog"), file("quic.jsonl"));
    let args = format!("{PATHS} --workload download:200kB --schedulers redundant");
    plait(&format!("run {args} --qlog {} --events {}", log.display(), events_file.display()));
    let text = fs::read_to_string(&log).unwrap();
    assert!(text.starts_with('\u{1e}') && text.ends_with('\n'));
    let mut records = text.split('\u{1e}').skip(1).map(|record| {
        serde_json::from_str::<Value>(record).unwrap_or_else(|error| panic!("{error}: {record}"))
    });
    let head = records.next().unwrap();
    assert_eq!(head["file_schema"], "urn:ietf:params:qlog:file:sequential");
    assert_eq!(head["trace"]["vantage_point"]["type"], "server");
    let records: Vec<Value> = records.collect();
    assert!(records.is_sorted_by_key(|it| it["time"].as_f64().unwrap().to_bits()));
    let events = events(&events_file);
    let own = |it: &&Value| it["host"] == "server";
    let of = |name: &str, key: &str| -> Vec<Value> {
        let of_name = records.iter().filter(|it| it["name"] == name);
        of_name.map(|it| it["data"][key].clone()).filter(|it| !it.is_null()).collect()
    };
    let said = |name: &str, key: &str| -> Vec<Value> {
        let of_name = events.iter().filter(own).filter(|it| it["event"] == name);
        of_name.map(|it| it[key].clone()).collect()
    };
    let in_flight = of("recovery:metrics_updated", "bytes_in_flight");
    assert!(in_flight.len() > 50 && in_flight == said("acked", "inflight_bytes"));
    let sent = of("transport:packet_sent", "path");
    assert!(sent.len() > 100 && sent == said("segment-sent", "path"));
    let received = of("transport:packet_received", "path");
    assert_eq!(received, said("segment-delivered", "path"));
    assert_eq!(of("mptcp:scheduler_decision", "reason"), said("decision", "reason"));
    let again = said("data-sent", "carry").iter().filter(|it| *it == "redundant").count();
    assert!(again > 10 && of("mptcp:reinjection", "dsn").len() >= again);
    let least = of("recovery:metrics_updated", "min_rtt");
    assert!(least.iter().all(|it| it.as_f64().unwrap() >= 22.0));
}

/// The capture of a comparison equals that of its first run. Every capture is reproducible.
#[test]
fn a_capture_is_reproducible() {
    let args = "--path wifi-home --path lte-att --workload download:100kB --schedulers ecf,minrtt";
    let names = ["compared", "once", "again"].map(|name| file(&format!("{name}.pcapng")));
    plait(&format!("compare {args} --runs 2 --pcap {}", names[0].display()));
    for name in &names[1..] {
        let args = args.replace(",minrtt", "");
        plait(&format!("run {args} --pcap {}", name.display()));
    }
    let [compared, once, again] = names.map(|name| fs::read(name).unwrap());
    assert!(once == again);
    // They differ in the command line in their headers.
    assert_eq!(tail(&compared), tail(&once));
}

/// Returns the data after the first block, whose length is in its second word.
fn tail(capture: &[u8]) -> &[u8] {
    let len = u32::from_le_bytes(capture[4..8].try_into().unwrap());
    &capture[len as usize..]
}
