//! `plait explain CAPTURE`: captures of runs with one planted cause each, and the counts of tshark.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use crate::decoder::{has_tshark, tshark};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PLAIT: &str = env!("CARGO_BIN_EXE_plait");

pub(crate) fn plait(args: &[&str]) -> Output {
    Command::new(PLAIT).args(args).output().unwrap()
}

fn file(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("captured");
    fs::create_dir_all(&dir).unwrap();
    dir.join(format!("{name}.pcapng"))
}

/// Makes a run and returns its capture.
fn captured(name: &str, run: &str) -> PathBuf {
    capture_of(run, file(name))
}

/// Makes a run, and returns its capture, which is the file `pcap`.
pub(crate) fn capture_of(run: &str, pcap: PathBuf) -> PathBuf {
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
    (
        "handover",
        "--path wifi:rate=10mbit,rtt=20ms,down=8s.. --path lte:rate=10mbit,rtt=50ms,backup --workload download:12MB --scheduler linux",
        "path-silent",
        Some("wifi"),
    ),
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

/// Makes a run, and returns its capture, qlog and file of events.
fn logged(name: &str, run: &str) -> [PathBuf; 3] {
    let files = ["pcapng", "sqlog", "jsonl"].map(|form| file(name).with_extension(form));
    let flags = ["--pcap", "--qlog", "--events"];
    let flags = flags.iter().zip(&files).flat_map(|(flag, file)| [*flag, file.to_str().unwrap()]);
    let words: Vec<&str> = ["run"].into_iter().chain(run.split_whitespace()).chain(flags).collect();
    let output = plait(&words);
    assert!(output.status.success(), "{run}: {}", String::from_utf8_lossy(&output.stderr));
    files
}

/// Returns the causes and the incidents of a connection without the numbers of packets.
fn causes(connection: &Value) -> String {
    let mut incidents = connection["incidents"].clone();
    for incident in incidents.as_array_mut().unwrap() {
        incident.as_object_mut().unwrap().retain(|key, _| key != "first" && key != "last");
    }
    format!("{:#}\n{incidents:#}", connection["lost_time"])
}

/// A qlog and a file of events have the state of the sender too. They name the planted cause, and agree to the last
/// incident. Flags describe the same run.
#[test]
fn the_logs_of_a_run_name_the_planted_cause() {
    for (name, run, cause, path) in PLANTED {
        let run = run.replacen("W", WIFI, 1).replacen(" L", &format!(" {LTE}"), 1);
        let [_, qlog, events] = logged(&format!("log-{name}"), &run);
        let (by_qlog, by_events) = (explained(&qlog), explained(&events));
        assert_eq!(by_qlog["schema"], "plait.explain-capture/1");
        assert_eq!(by_events["schema"], "plait.explain/1");
        let (qlog, events) = (&by_qlog["connections"][0], &by_events["transfer"]);
        let expected = (Value::from(*cause), path.map_or(Value::Null, Value::from));
        for connection in [qlog, events] {
            let main = &connection["lost_time"][0];
            assert_eq!(
                (main["cause"].clone(), main["path"].clone()),
                expected,
                "{name}: {connection:#}"
            );
            assert_eq!(connection["sender_known"], true, "{name}");
        }
        assert_eq!(causes(qlog), causes(events), "{name}");
        assert_eq!(by_qlog["sentence"], by_events["sentence"], "{name}");
        let words: Vec<&str> = ["explain"].into_iter().chain(run.split_whitespace()).collect();
        let output = plait(&[&words[..], &["--json"]].concat());
        let by_flags: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(causes(&by_flags["transfer"]), causes(events), "{name}");
    }
}

/// The state of the sender decides where packets leave it open. In a capture, the pauses between the messages look like
/// an unused path in part.
#[test]
fn a_log_is_certain_where_a_capture_guesses() {
    let run = format!("{WIFI} {LTE} --workload stream:100kB@1s,for=5s");
    let [pcap, qlog, _] = logged("certain", &run);
    let names = |file: &Path| -> Vec<String> {
        let document = explained(file);
        let causes = document["connections"][0]["lost_time"].as_array().unwrap().clone();
        causes.iter().map(|it| it["cause"].as_str().unwrap().to_owned()).collect()
    };
    assert!(names(&pcap).contains(&"path-unused".to_owned()), "{:?}", names(&pcap));
    assert!(!names(&qlog).contains(&"path-unused".to_owned()), "{:?}", names(&qlog));
    // A scheduler that holds data back leaves a path unused, and both see it.
    let run = "--path wifi:rate=20mbit,rtt=22ms --path lte:rate=20mbit,rtt=30ms,backup --workload download:4MB";
    let [_, qlog, _] = logged("backup", run);
    assert!(!names(&qlog).contains(&"application-idle".to_owned()), "{:?}", names(&qlog));
}

/// The incident of an outage has the lines of its first and last packet, in either log.
#[test]
fn the_incidents_of_a_log_have_their_lines() {
    let [_, qlog, events] =
        logged("log-lines", &format!("{WIFI},down=1s..3s {LTE} --workload download:8MB"));
    for (file, key, scale) in [(&qlog, "time", 1.0), (&events, "t_ns", 1e-6)] {
        let text = fs::read_to_string(file).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let document = explained(file);
        let connection =
            if file == &qlog { &document["connections"][0] } else { &document["transfer"] };
        let silent = &connection["incidents"][0];
        assert_eq!((&silent["cause"], &silent["path"]), (&"path-silent".into(), &"wifi".into()));
        let at = |end: &str| {
            let line = silent[end]["packet"].as_u64().unwrap() as usize;
            let record: Value =
                serde_json::from_str(lines[line - 1].trim_start_matches('\u{1e}')).unwrap();
            record[key].as_f64().unwrap() * scale
        };
        let length = silent["to_ms"].as_f64().unwrap() - silent["from_ms"].as_f64().unwrap();
        assert!((at("last") - at("first") - length).abs() < 0.1, "{silent}");
        let output = plait(&["explain", file.to_str().unwrap()]);
        let text = String::from_utf8(output.stdout).unwrap();
        let (first, last) = (&silent["first"]["packet"], &silent["last"]["packet"]);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(&format!(", lines {first} to {last}")), "{text}");
        assert!(words.starts_with("The transfer of 8.00 MB took "), "{text}");
        // The waits follow in the explanation of the events alone.
        assert_eq!(text.contains("\n   blocking  bytes "), file == &events, "{text}");
    }
}

#[test]
fn a_damaged_qlog_is_explained_up_to_its_damage() {
    let [pcap, qlog, _] = logged("log-damaged", &format!("{WIFI} {LTE} --workload download:100kB"));
    let text = fs::read_to_string(&qlog).unwrap();
    let explain = |text: &str| {
        let file = file("log-changed").with_extension("sqlog");
        fs::write(&file, text).unwrap();
        let output = plait(&["explain", file.to_str().unwrap()]);
        let error = String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap(), error)
    };
    // Records without the byte of the sequential form count too.
    let (code, plain, _) = explain(&text.replace('\u{1e}', ""));
    assert!(code == 0 && plain.starts_with("The transfer of 100.0 kB took "), "{plain}");
    let lines: Vec<&str> = text.lines().collect();
    let packet = lines.iter().rposition(|line| line.contains("packet_sent")).unwrap();
    let changed = |line: &str| {
        let mut lines = lines.clone();
        lines[packet] = line;
        explain(&lines.join("\n"))
    };
    for (line, problem) in [
        ("\u{1e}{\"time\": 1", "its record is damaged"),
        ("\u{1e}{\"time\": 1}", "its record has no `name`"),
        (
            "\u{1e}{\"time\":1,\"name\":\"transport:packet_sent\",\"data\":{\"raw\":{\"length\":40}}}",
            "its packet has no `raw.data`",
        ),
        (
            "{\"time\":1,\"name\":\"transport:packet_sent\",\"data\":{\"raw\":{\"length\":40,\"data\":\"zz\"}}}",
            "its `raw.data` is not hexadecimal",
        ),
        (
            "{\"time\":1,\"name\":\"mptcp:blocked\",\"data\":{\"cause\":\"weather\"}}",
            "`weather` is not a cause that blocks a sender",
        ),
    ] {
        let (code, text, error) = changed(line);
        assert_eq!(code, 2, "{error}");
        assert!(error.contains(&format!("log-changed.sqlog:{}: {problem}", packet + 1)), "{error}");
        assert!(text.contains(&format!("It was read up to line {}: ", packet + 1)), "{text}");
    }
    assert!(explain("\u{1e}{}\n").2.contains("it is not a qlog in sequential form"));
    let both = plait(&["explain", qlog.to_str().unwrap(), pcap.to_str().unwrap()]);
    let error = String::from_utf8(both.stderr).unwrap();
    assert!(both.status.code() == Some(2) && error.contains("a qlog stands alone"), "{error}");
}

/// Packets name no connection, so the states of two senders cannot be told apart, and are not used.
#[test]
fn a_qlog_of_several_connections_is_read_like_a_capture() {
    let run = format!("{WIFI} {LTE} --workload download:8MB --sndbuf 48KiB");
    let [pcap, qlog, _] = logged("log-several", &run);
    let text = fs::read_to_string(&qlog).unwrap();
    let name = "\"name\":\"mptcp:blocked\"";
    assert!(text.matches(name).count() > 10);
    let several = file("log-mixed").with_extension("sqlog");
    fs::write(&several, text.replacen(name, &format!("{name},\"group_id\":\"2\""), 1)).unwrap();
    let [captured, whole, mixed] =
        [&pcap, &qlog, &several].map(|file| explained(file)["connections"][0].clone());
    assert_eq!((&whole["sender_known"], &mixed["sender_known"]), (&true.into(), &false.into()));
    let note = mixed["notes"][0].as_str().unwrap();
    assert!(note.starts_with("The log has the states of several senders"), "{note}");
    assert_eq!(whole["notes"], Value::Array(Vec::new()));
    assert_eq!(causes(&mixed), causes(&captured));
    assert_ne!(causes(&whole), causes(&captured));
}

/// A qlog with changed bytes is explained or refused; it never causes a panic.
#[test]
fn changed_bytes_of_a_qlog_do_no_harm() {
    let [_, qlog, _] = logged("log-bytes", &format!("{WIFI} {LTE} --workload download:30kB"));
    let whole = fs::read(&qlog).unwrap();
    let changed = file("log-fuzzed").with_extension("sqlog");
    let mut state = 5_u64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let (mut read, mut refused) = (0, 0);
    for _ in 0..150 {
        let mut bytes = whole.clone();
        for _ in 0..1 + next() % 4 {
            let at = next() % bytes.len();
            // Digits are the values of headers; other bytes damage the record.
            bytes[at] =
                if bytes[at].is_ascii_hexdigit() { b"0f93"[next() % 4] } else { next() as u8 };
        }
        fs::write(&changed, &bytes).unwrap();
        match plait_capture::explain(std::slice::from_ref(&changed), String::new(), &mut |_| true) {
            Ok(_) => read += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(read > 100, "{read} were read, {refused} refused");
}

/// The recorded trace of plait-capture, as the command prints it, and traces that it refuses.
#[test]
fn the_kernel_decides_in_the_report() {
    let recorded = |name: &str| {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../plait-capture/tests/kernel").join(name)
    };
    let (pcap, trace) = (recorded("server.pcap"), recorded("trace.txt"));
    let explain = |trace: &Path, more: &[&str]| {
        let args = ["explain", pcap.to_str().unwrap(), "--kernel-decisions"];
        plait(&[&args[..], &[trace.to_str().unwrap()], more].concat())
    };
    let text = String::from_utf8(explain(&trace, &[]).stdout).unwrap();
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "kernel, p1: asked 110 times, could take it 110, took it 102; pace ",
        "The kernel decided 180 times (",
        "; after 3 decisions no path got data. The clock of the capture is that of the trace plus 1795869234.8089",
        "1 of 293 lines fit no path and are left out.",
    ] {
        assert!(words.contains(part), "{part}: {text}");
    }
    let json = explain(&trace, &["--json"]);
    let document: Value = serde_json::from_slice(&json.stdout).unwrap();
    let kernel = &document["connections"][0]["kernel"];
    assert_eq!(
        (&kernel["decisions"], &kernel["paths"][1]["taken"]),
        (&180.into(), &10.into()),
        "{kernel:#}"
    );
    assert!(document["command"].as_str().unwrap().contains(" --kernel-decisions "));
    let schema: Value =
        serde_json::from_slice(&plait(&["schema", "explain-capture"]).stdout).unwrap();
    let in_incident = &document["connections"][0]["incidents"][0]["kernel"][1];
    for (object, named) in
        [(kernel, "KernelReport"), (&kernel["paths"][0], "KernelPath"), (in_incident, "KernelPath")]
    {
        let properties = schema["$defs"][named]["properties"].as_object().unwrap();
        let keys: Vec<&String> = object.as_object().unwrap().keys().collect();
        assert_eq!(keys, properties.keys().collect::<Vec<_>>(), "{named}");
    }
    let [_, qlog, _] = logged("log-kernel", &format!("{WIFI} {LTE} --workload download:30kB"));
    let args = ["explain", qlog.to_str().unwrap(), "--kernel-decisions", trace.to_str().unwrap()];
    let error = String::from_utf8(plait(&args).stderr).unwrap();
    assert!(error.contains("a qlog has the decisions of plait"), "{error}");
    let refused = |trace: &Path| {
        let output = explain(trace, &[]);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let changed = file("trace").with_extension("txt");
    let whole = fs::read_to_string(&trace).unwrap();
    fs::write(&changed, whole.replacen("pace=", "peace=", 1)).unwrap();
    let first = whole.lines().position(|line| line.contains("get_send: ")).unwrap() + 1;
    let expected = format!("trace.txt:{first}: the field pace is missing");
    assert!(refused(&changed).contains(&expected), "{}", refused(&changed));
    let lines: Vec<&str> = whole.lines().collect();
    fs::write(&changed, lines[..lines.len() / 10].join("\n")).unwrap();
    assert!(refused(&changed).contains("it cannot be aligned with the capture: "));
    fs::write(&changed, "nothing\n").unwrap();
    assert!(refused(&changed).contains("it has no line of the tracepoint"));
    let run = plait(&["explain", "--kernel-decisions", changed.to_str().unwrap()]);
    let error = String::from_utf8(run.stderr).unwrap();
    assert!(
        error.contains("--kernel-decisions: ") && error.contains("it needs a capture"),
        "{error}"
    );
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

/// Returns the bytes of segments whose data another path has carried before, by the mappings that tshark decodes.
fn on_several_paths(pcap: &Path) -> u64 {
    let fields = ["tcp.stream", "tcp.len", "tcp.options.mptcp.rawdataseqno"];
    let mut carriers: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut bytes = 0;
    for line in tshark(pcap, "tcp.srcport == 443 && tcp.len > 0", &fields) {
        let [stream, len, dsn] = &line[..] else { panic!("{line:?}") };
        let before = carriers.entry(dsn.clone()).or_default();
        if before.iter().any(|it| it != stream) {
            bytes += len.parse::<u64>().unwrap();
        }
        before.insert(stream.clone());
    }
    bytes
}

/// The analysis of tshark 4.0 misses copies of data that a subflow carried before data with lower numbers. That happens
/// where a path repairs the losses of the other one.
#[test]
fn tshark_counts_the_same() {
    if !has_tshark() {
        return;
    }
    for (name, run, analysed) in [
        ("count", format!("{WIFI} {LTE} --workload download:4MB"), true),
        ("count-loss", format!("{WIFI},loss=2% {LTE},loss=1% --workload download:4MB"), false),
        (
            "count-redundant",
            format!("{WIFI} {LTE} --workload download:1MB --scheduler redundant"),
            true,
        ),
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
        let copied = on_several_paths(&pcap);
        assert!(copied > 0, "{name}");
        assert_eq!(data["on_several_paths_bytes"], copied, "{name}");
        let found = sum("mptcp.reinjection_of");
        assert!(found == copied || (found < copied && !analysed), "{name}: {found} of {copied}");
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

/// One path has no row of a scheduler, and a damaged capture is not replayed.
#[test]
fn a_capture_that_schedulers_cannot_replay_is_no_test() {
    let pcap = captured("one-path", &format!("{WIFI} --workload download:2MB"));
    let asked = |args: &[&str]| {
        let output = plait(args);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let expect = ["--expect", "ecf.completion_ms.median < 1500", "--runs", "2"];
    let (code, error) = asked(&[&["regress", pcap.to_str().unwrap()], &expect[..]].concat());
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("`ecf`: unknown row (one path has no row of a scheduler)"), "{error}");
    let what_if = ["explain", pcap.to_str().unwrap(), "--what-if", "ecf,slot", "--runs", "1"];
    let (code, remark) = asked(&what_if);
    assert_eq!(code, Some(0), "{remark}");
    assert!(remark.contains("the fit has one path"), "{remark}");
    assert!(remark.contains("no row of linux,ecf,slot"), "{remark}");
    let bytes = fs::read(&pcap).unwrap();
    let cut = file("cut.pcapng");
    fs::write(&cut, &bytes[..bytes.len() - 10]).unwrap();
    let (code, error) = asked(&[&["regress", cut.to_str().unwrap()], &expect[..]].concat());
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("a damaged capture is not replayed; `pcapfix`"), "{error}");
    assert!(!error.contains("explained"), "{error}");
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
    assert!(refused(&[text, text]).contains("a second file, which is not a capture"));
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
