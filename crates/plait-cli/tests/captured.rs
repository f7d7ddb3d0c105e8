//! `plait explain CAPTURE`: captures of runs with one planted cause each, and the counts of tshark.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use crate::decoder::{has_tshark, tshark};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PLAIT: &str = env!("CARGO_BIN_EXE_plait");

fn plait(args: &[&str]) -> Output {
    Command::new(PLAIT).args(args).output().unwrap()
}

fn file(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("captured");
    fs::create_dir_all(&dir).unwrap();
    dir.join(format!("{name}.pcapng"))
}

/// Makes a run and returns its capture.
fn captured(name: &str, run: &str) -> PathBuf {
    let pcap = file(name);
    let words = run.split_whitespace().chain(["--pcap", pcap.to_str().unwrap()]);
    let output = plait(&["run"].into_iter().chain(words).collect::<Vec<_>>());
    assert!(output.status.success(), "{run}: {}", String::from_utf8_lossy(&output.stderr));
    pcap
}

fn explained(pcap: &Path) -> Value {
    let output = plait(&["explain", pcap.to_str().unwrap(), "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

const WIFI: &str = "--path wifi:rate=20mbit,rtt=22ms,queue=60kB";
const LTE: &str = "--path lte:rate=10mbit,rtt=60ms,queue=300kB";

/// Runs with one planted cause: name, run, cause, and the path that is to blame.
const PLANTED: &[(&str, &str, &str, Option<&str>)] = &[
    ("outage", "W,down=1s..3s L --workload download:8MB", "path-silent", Some("wifi")),
    ("outage-of-slow", "W L,down=1s..3s --workload download:8MB", "path-silent", Some("lte")),
    ("upload-outage", "W,down=1s..3s L --workload upload:8MB", "path-silent", Some("wifi")),
    ("rcvbuf", "W L --workload download:8MB --rcvbuf 64KiB", "receive-window", None),
    ("rcvbuf-upload", "W L --workload upload:6MB --rcvbuf 48KiB", "receive-window", None),
    ("sndbuf", "W L --workload download:8MB --sndbuf 48KiB", "send-buffer", None),
    (
        "late",
        "W --path lte:rate=1mbit,rtt=300ms,queue=600ms --workload download:4MB --scheduler roundrobin",
        "late-on-slow-path",
        Some("lte"),
    ),
    ("loss", "W,loss=3% L --workload download:6MB", "loss", Some("wifi")),
    ("loss-of-slow", "W L,loss=3% --workload download:6MB", "loss", Some("lte")),
    ("idle", "W L --workload stream:100kB@1s,for=5s", "application-idle", None),
    ("no-options", "W,strip=synack L --workload download:4MB", "options-removed", None),
    ("no-join", "W L,strip=synack --workload download:4MB", "join-refused", Some("lte")),
];

#[test]
fn the_first_cause_is_the_planted_one() {
    for (name, run, cause, path) in PLANTED {
        let run = run.replacen("W", WIFI, 1).replacen(" L", &format!(" {LTE}"), 1);
        let pcap = captured(name, &run);
        let document = explained(&pcap);
        let connection = &document["connections"][0];
        let main = &connection["lost_time"][0];
        let expected = (Value::from(*cause), path.map_or(Value::Null, Value::from));
        assert_eq!(
            (main["cause"].clone(), main["path"].clone()),
            expected,
            "{name}: {connection:#}"
        );
        // The first sentence names the cause, and the first incident has it.
        let text = plait(&["explain", pcap.to_str().unwrap()]);
        let text = String::from_utf8(text.stdout).unwrap();
        let first: String =
            text.lines().take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        assert_eq!(first, document["sentence"].as_str().unwrap(), "{name}");
        assert!(path.is_none_or(|path| first.contains(path)), "{name}: {first}");
        assert_eq!(connection["incidents"][0]["cause"], main["cause"], "{name}");
    }
}

/// The outage lasts 2 s on a path with two thirds of the rate, and both ends of it are found.
#[test]
fn one_outage_is_one_incident() {
    let pcap = captured("one-outage", &format!("{WIFI},down=1s..3s {LTE} --workload download:8MB"));
    let document = explained(&pcap);
    let incidents = document["connections"][0]["incidents"].as_array().unwrap();
    let silent: Vec<&Value> = incidents.iter().filter(|it| it["cause"] == "path-silent").collect();
    let [silent] = silent[..] else { panic!("{silent:?}") };
    let at = |key: &str| silent[key].as_f64().unwrap();
    // The handshake and the request took 44 ms; the last acknowledgement is up to an RTT older than the outage.
    assert!((920.0..960.0 + 60.0).contains(&at("from_ms")), "{silent}");
    assert!((2_940.0..3_500.0).contains(&at("to_ms")), "{silent}");
    assert!((1_250.0..1_700.0).contains(&at("cost_ms")), "{silent}");
    // The packets of the incident are those of these times.
    if has_tshark() {
        let (first, last) = (&silent["first"]["packet"], &silent["last"]["packet"]);
        let filter = format!("frame.number == {first} || frame.number == {last}");
        let times = tshark(&pcap, &filter, &["frame.time_relative"]);
        let times: Vec<f64> =
            times.iter().map(|line| line[0].parse::<f64>().unwrap() * 1e3).collect();
        let length = at("to_ms") - at("from_ms");
        assert!((times[1] - times[0] - length).abs() < 0.1, "{times:?}, {silent}");
    }
}

#[test]
fn tshark_counts_the_same() {
    if !has_tshark() {
        return;
    }
    for (name, run) in [
        ("count", format!("{WIFI} {LTE} --workload download:4MB")),
        ("count-loss", format!("{WIFI},loss=2% {LTE},loss=1% --workload download:4MB")),
        ("count-redundant", format!("{WIFI} {LTE} --workload download:1MB --scheduler redundant")),
    ] {
        let pcap = captured(name, &run);
        let document = explained(&pcap);
        let packets = tshark(&pcap, "frame", &["frame.number"]).len() as u64;
        assert_eq!(document["files"][0]["packets"], packets, "{name}");
        let sum = |filter: &str| {
            let lines = tshark(&pcap, filter, &["tcp.len"]);
            lines.iter().map(|line| line[0].parse::<u64>().unwrap()).sum::<u64>()
        };
        let connection = &document["connections"][0];
        let data = &connection["data"];
        assert_eq!(data["on_several_paths_bytes"], sum("mptcp.reinjection_of"), "{name}");
        let paths = connection["paths"].as_array().unwrap();
        let total =
            |key: &str| paths.iter().map(|it| it["traffic"][key].as_u64().unwrap()).sum::<u64>();
        assert_eq!(total("bytes"), sum("tcp.srcport == 443"), "{name}");
        let again = "tcp.srcport == 443 && (tcp.analysis.retransmission || \
                     tcp.analysis.fast_retransmission || tcp.analysis.spurious_retransmission || \
                     tcp.analysis.out_of_order)";
        assert_eq!(total("retransmitted_bytes"), sum(again), "{name}");
        let token = tshark(&pcap, "mptcp.expected_token", &["mptcp.expected_token"]);
        let token: u64 = token[0][0].split(',').next().unwrap().parse().unwrap();
        assert_eq!(connection["token"], format!("{token:08x}"), "{name}");
    }
}

#[test]
fn the_document_of_a_capture_has_the_fields_of_its_schema() {
    let document =
        explained(&captured("schema", &format!("{WIFI} {LTE} --workload download:500kB")));
    assert_eq!(document["schema"], "plait.explain-capture/1");
    let schema: Value =
        serde_json::from_slice(&plait(&["schema", "explain-capture"]).stdout).unwrap();
    let has = |object: &Value, named: &Value| {
        let properties = named["properties"].as_object().unwrap();
        let keys: Vec<&String> = object.as_object().unwrap().keys().collect();
        assert_eq!(keys, properties.keys().collect::<Vec<_>>());
        keys.len()
    };
    has(&document, &schema);
    let connection = &document["connections"][0];
    has(connection, &schema["$defs"]["ConnectionReport"]);
    has(&connection["paths"][0]["traffic"], &schema["$defs"]["TrafficReport"]);
    has(&connection["incidents"][0], &schema["$defs"]["IncidentReport"]);
}

#[test]
fn a_cut_capture_is_explained_up_to_its_end_and_is_an_error() {
    let whole = captured("cut", &format!("{WIFI} {LTE} --workload download:500kB"));
    let bytes = fs::read(&whole).unwrap();
    let cut = file("cut-short");
    fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let output = plait(&["explain", cut.to_str().unwrap()]);
    let (text, error) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(
        text.contains("It was read up to packet ") && text.starts_with("The transfer of "),
        "{text}"
    );
    let packet = text.split("It was read up to packet ").nth(1).unwrap().split(':').next().unwrap();
    assert!(
        error.contains(&format!("cut-short.pcapng: packet {packet}: the file ends")),
        "{error}"
    );
}

/// The replay of a run of minrtt over its own fitted links takes as long as the run, to 5 %.
#[test]
fn the_fitted_links_replay_the_transfer() {
    let run = format!("{WIFI} {LTE} --workload download:8MB --scheduler minrtt");
    let pcap = captured("fit", &run);
    let ask =
        |args: &[&str]| plait(&[&["explain", pcap.to_str().unwrap(), "--what-if"], args].concat());
    let output = ask(&["ecf", "--scheduler", "minrtt", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let fitted = document["connections"][0]["fit"]["paths"].as_array().unwrap();
    for (path, (mbit, rtt)) in fitted.iter().zip([(20.0, 22.0), (10.0, 60.0)]) {
        let of = |key: &str| path[key].as_f64().unwrap();
        assert!((of("rate_mbps") / mbit - 1.0).abs() < 0.02, "{path}");
        assert!((of("rtt_ms") / rtt - 1.0).abs() < 0.02, "{path}");
        assert_eq!(path["loss_percent"], 0.0, "{path}");
    }
    // Both queues overflowed: 60 kB and 300 kB.
    for (path, kb) in fitted.iter().zip([60.0, 300.0]) {
        assert_eq!(path["queue_overflowed"], true, "{path}");
        let queue = path["queue_bytes"].as_f64().unwrap() / 1e3;
        assert!((queue / kb - 1.0).abs() < 0.1, "{path}");
    }
    let prediction = &document["what_if"];
    assert!(prediction["error_percent"].as_f64().unwrap().abs() < 5.0, "{prediction:#}");
    let rows: Vec<&str> = prediction["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["scheduler"].as_str().unwrap())
        .collect();
    assert_eq!(rows, ["minrtt", "ecf", "tcp:wifi", "tcp:lte"]);
    let text = String::from_utf8(ask(&["ecf", "--runs", "2"]).stdout).unwrap();
    assert!(text.contains("runs over the fitted links (medians); linux differs by "), "{text}");
    let wrong = String::from_utf8(ask(&["ecff"]).stderr).unwrap();
    assert!(wrong.contains("--what-if") && wrong.contains("did you mean `ecf`?"), "{wrong}");
}

#[test]
fn a_capture_is_a_test() {
    let pcap = captured("regress", &format!("{WIFI} {LTE} --workload download:2MB"));
    let regress = |args: &[&str]| {
        let output = plait(&[&["regress", pcap.to_str().unwrap(), "--runs", "3"], args].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        (output.status.code().unwrap(), text, String::from_utf8(output.stderr).unwrap())
    };
    let holds = ["--schedulers", "minrtt,ecf", "--expect", "ecf.completion_ms.median < 1500"];
    let (code, text, error) = regress(&holds);
    assert_eq!(code, 0, "{error}");
    assert_eq!(regress(&holds).1, text, "the same seed gives the same report");
    let (code, _, error) = regress(&["--expect", "minrtt.completion_ms.median < 100"]);
    assert_eq!((code, error.contains("minrtt.completion_ms.median")), (1, true), "{error}");
    assert!(regress(&[]).2.contains("--expect: nothing is expected"));
    let path = regress(&["--path", "wifi-home", "--expect", "ecf.completion_ms.median < 100"]);
    assert_eq!((path.0, path.2.contains("the capture has it already")), (2, true), "{}", path.2);
}

#[test]
fn what_does_not_fit_a_capture_is_refused() {
    let pcap = captured("refused", &format!("{WIFI} {LTE} --workload download:100kB"));
    let pcap = pcap.to_str().unwrap();
    let refused = |args: &[&str]| {
        let output = plait(&[&["explain"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(
        refused(&[pcap, "--seed", "2"])
            .contains("refused.pcapng: a capture takes no flags of a run")
    );
    assert!(refused(&[pcap, "/nowhere.pcap"]).contains("/nowhere.pcap: it cannot be opened"));
    let text = file("text");
    fs::write(&text, "no capture").unwrap();
    let text = text.to_str().unwrap();
    assert!(refused(&[pcap, text]).contains("it is no capture\n  allowed: a pcap or pcapng file"));
    assert!(refused(&[text, text]).contains("a second file that is no capture"));
    for file in [text, "/nowhere.pcap"] {
        let output = plait(&["regress", file, "--expect", "ecf.completion_ms.median < 1"]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.code() == Some(2) && error.contains(&format!("{file}: it")),
            "{error}"
        );
    }
    assert!(refused(&["--what-if", "ecf"]).contains("--what-if: it needs a capture"));
}
