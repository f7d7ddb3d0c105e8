//! `plait run --events`: the file, its schema and docs/events.md agree. The lines are in order and consistent
//! with one another.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

const PLAIT: &str = env!("CARGO_BIN_EXE_plait");
const DOCS: &str = include_str!("../../../docs/events.md");

/// Runs that together contain every event and value.
const RUNS: &[(&str, &str)] = &[
    (
        "hard",
        "--path a:rtt=20ms,rate=8mbit,loss=1%,down=300ms..900ms --path b:rtt=90ms,rate=4mbit,queue=20pkt \
         --workload download:600kB --schedulers ecf+rp --rcvbuf 96KiB",
    ),
    (
        "stream",
        "--path wifi-home --path lte:profile=lte-att,loss_up=1%,duplicate=1%,corrupt=1%,reorder=1%:9ms \
         --workload stream:30kB@50ms,for=2s --schedulers redundant",
    ),
    ("burst", "--path a:rtt=10ms --path b:rtt=100ms --workload burst:15seg --ideal"),
    ("upload", "--path wifi-cafe --path 3g-sprint --workload upload:300kB --schedulers blest"),
    ("plain", "--path wifi-home --workload bulk:1s"),
    (
        "penalty",
        "--path a:rtt=10ms,rate=8mbit --path b:rtt=200ms,rate=2mbit,queue=400pkt \
         --workload download:500kB --schedulers roundrobin+rp --rcvbuf 64KiB",
    ),
    (
        "stripped",
        "--path a:rtt=10ms,rate=8mbit,strip=all@200ms --path b:rtt=10ms,rate=8mbit,strip=syn \
         --workload download:1MB --check",
    ),
    // 260 kbit/s over a rate of 200: the picture freezes now and then.
    ("played", "--path a:rtt=40ms,rate=0.2mbit --workload video:paper,start=5s,for=40s"),
    ("page", "--path a:rtt=40ms,rate=8mbit --workload web:google"),
    ("broken", "--path a:rtt=10ms,rate=8mbit,down=200ms.. --workload download:1MB"),
    ("narrow", "--path a:rtt=10ms,rate=8mbit,mtu=1500@0s/1280@200ms --workload download:1MB"),
];
/// Events and values that no run contains: no scheduler of `plait list` lowers a limit, and only the apps of
/// `plait swarm` read real bytes.
const UNHEARD: &[&str] = &["capped", "garbled"];

/// Returns the header and the events of a run.
fn events(name: &str, args: &str) -> (Value, Vec<Value>) {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("events");
    fs::create_dir_all(&dir).unwrap();
    // Tests run in parallel and request the same runs.
    static FILES: AtomicUsize = AtomicUsize::new(0);
    let file = dir.join(format!("{name}-{}.jsonl", FILES.fetch_add(1, Ordering::Relaxed)));
    let output = Command::new(PLAIT)
        .arg("run")
        .args(args.split_whitespace())
        .arg("--events")
        .arg(&file)
        .output()
        .unwrap();
    let wanted = if name == "broken" { 4 } else { 0 };
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(wanted), "{name}: {said}");
    let text = fs::read_to_string(file).unwrap();
    let mut lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    (lines.next().unwrap(), lines.collect())
}

/// Returns the standard output of a run.
fn run(args: &str) -> String {
    let output = Command::new(PLAIT).arg("run").args(args.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Fields of an event with the allowed words of each; empty if the field is no enumeration.
type Fields = BTreeMap<String, BTreeSet<String>>;

/// Returns the words that a part of the schema allows.
fn words(part: &Value, defs: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    found.extend(part["enum"].as_array().into_iter().flatten().filter_map(text));
    found.extend(text(&part["const"]));
    if let Some(name) = part["$ref"].as_str() {
        found.extend(words(&defs[name.rsplit('/').next().unwrap()], defs));
    }
    for key in ["anyOf", "oneOf"] {
        let parts = part[key].as_array().into_iter().flatten();
        found.extend(parts.flat_map(|part| words(part, defs)));
    }
    found
}

/// Returns the fields of a part of the schema.
fn fields(part: &Value, defs: &Value) -> Fields {
    let mut found = Fields::new();
    if let Some(name) = part["$ref"].as_str() {
        found.extend(fields(&defs[name.rsplit('/').next().unwrap()], defs));
    }
    let own = part["properties"].as_object().into_iter().flatten();
    found.extend(own.map(|(name, of)| (name.clone(), words(of, defs))));
    let parts = part["allOf"].as_array().into_iter().flatten();
    found.extend(parts.flat_map(|part| fields(part, defs)));
    found
}

/// Returns the fields of each event beyond the common ones, from the schema.
fn schema() -> BTreeMap<String, Fields> {
    let output = Command::new(PLAIT).args(["schema", "events"]).output().unwrap();
    let schema: Value = serde_json::from_slice(&output.stdout).unwrap();
    let defs = &schema["$defs"];
    let mut events = BTreeMap::new();
    for variant in defs["Happening"]["oneOf"].as_array().unwrap() {
        let mut fields = fields(variant, defs);
        let name = fields.remove("event").unwrap().into_iter().next().unwrap();
        events.insert(name, fields);
    }
    events
}

/// Returns the words in backquotes of a text.
fn quoted(text: &str) -> BTreeSet<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Returns the part of the page under a heading.
fn section(heading: &str) -> &'static str {
    DOCS.split(&format!("## {heading}\n")).nth(1).unwrap().split("\n## ").next().unwrap()
}

#[test]
fn the_page_of_the_events_and_the_code_name_the_same_things() {
    let segments = section("Segments").split("All three carry the segment:").nth(1).unwrap();
    let segments = quoted(segments);
    let reasons: BTreeSet<String> = section("Reasons")
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .filter(|word| *word != "reason")
        .map(str::to_owned)
        .collect();
    let schema = schema();
    let mut told = BTreeSet::new();
    let tables = ["The core", "The app", "Segments"].map(section);
    for row in tables.iter().flat_map(|text| text.lines()).filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let name = cells[1].trim_matches('`');
        let code = schema.get(name).unwrap_or_else(|| panic!("no event {name} in the code"));
        let (mut names, mut said) = (quoted(cells[2]), quoted(cells[3]));
        let all: BTreeSet<String> = code.keys().cloned().collect();
        if name.starts_with("segment-") {
            names.extend(all.intersection(&segments).cloned());
            said.extend(segments.iter().cloned());
        }
        assert_eq!(names, all, "fields of {name}");
        // The page lists each allowed word of a field, and no other.
        for (field, words) in code {
            let place = if field == "reason" { &reasons } else { &said };
            let missing: Vec<_> = words.difference(place).collect();
            assert!(missing.is_empty(), "{name}.{field} may be {missing:?}, which is not told");
        }
        let known: BTreeSet<&String> = code.values().flatten().chain(&all).collect();
        let common = ["null", "host"];
        let strange = said.difference(&segments).filter(|word| !common.contains(&word.as_str()));
        let strange: Vec<_> = strange.filter(|word| !known.contains(word)).collect();
        assert!(strange.is_empty(), "{name} never says {strange:?}");
        assert!(told.insert(name.to_owned()), "{name} is told twice");
    }
    assert_eq!(told, schema.keys().cloned().collect(), "every event of the code is told");
    assert_eq!(reasons, schema["decision"]["reason"]);
    let all: BTreeSet<String> = schema["segment-sent"].keys().cloned().collect();
    assert!(all.is_subset(&segments), "{:?}", all.difference(&segments));
    // The names of fields contain their unit.
    let plain = ["subflow", "dsn", "old_dsn", "new_dsn", "message", "seq", "ack", "window"];
    for (name, fields) in &schema {
        for field in fields.keys().filter(|field| !plain.contains(&field.as_str())) {
            let time = ["rto", "rtt", "srtt", "waited", "due", "at", "time", "delay"];
            let stem = field.split('_').next().unwrap();
            assert!(!time.contains(&stem) || field.ends_with("_ns"), "{name}.{field}");
            let size = ["len", "cwnd", "inflight", "ssthresh", "payload", "acked"];
            assert!(!size.contains(&stem) || field.ends_with("_bytes"), "{name}.{field}");
        }
    }
}

#[test]
fn every_line_is_an_event_of_the_schema_in_the_order_of_time() {
    let schema = schema();
    let mut heard = BTreeSet::new();
    for (run, args) in RUNS {
        let (header, lines) = events(run, args);
        assert_eq!(header["schema"], "plait.events/1");
        assert_eq!(header["seed"], 1);
        let command = header["command"].as_str().unwrap();
        assert!(command.starts_with("plait run --path "), "{command}");
        let mut last = 0;
        for line in &lines {
            let now = line["t_ns"].as_u64().unwrap();
            assert!(now >= last, "{run}: {line}");
            last = now;
            assert!(["client", "server"].contains(&line["host"].as_str().unwrap()));
            assert_eq!(line["connection"], 0);
            let name = line["event"].as_str().unwrap();
            let own = ["t_ns", "host", "connection", "event"];
            let said =
                line.as_object().unwrap().iter().filter(|(key, _)| !own.contains(&key.as_str()));
            let fields = &schema[name];
            let mut names = BTreeSet::new();
            for (key, value) in said {
                let words = &fields[key];
                let listed =
                    words.is_empty() || value.is_null() || words.contains(value.as_str().unwrap());
                assert!(listed, "{run}: {line}");
                names.insert(key);
            }
            assert_eq!(names, fields.keys().collect(), "{run}: {line}");
            heard.insert(name.to_owned());
        }
    }
    let unheard: Vec<&String> = schema.keys().filter(|name| !heard.contains(*name)).collect();
    assert_eq!(unheard, UNHEARD, "each kind of event is said by some run");
}

#[test]
fn the_events_add_up() {
    let (_, lines) = events("sums", RUNS[0].1);
    let of = |host: &'static str, event: &'static str| {
        lines.iter().filter(move |line| line["host"] == host && line["event"] == event)
    };
    let count = |event: &str| lines.iter().filter(|line| line["event"] == event).count();
    let under_way = count("segment-sent") - count("segment-dropped") - count("segment-delivered");
    assert!(under_way < 40, "{under_way} segments under way as the run ends");
    let new = of("server", "data-sent").filter(|line| line["carry"] == "new");
    let new: u64 = new.map(|line| line["len_bytes"].as_u64().unwrap()).sum();
    assert_eq!(new, 600_000);
    let payload = |line: &&Value| line["payload_bytes"] != 0;
    assert_eq!(
        of("server", "segment-sent").filter(payload).count(),
        of("server", "data-sent").count()
    );
}

/// State of one host as seen in the events.
#[derive(Default)]
struct Host {
    up: BTreeSet<u64>,
    sent: u64,
    acked: u64,
    readable: u64,
    written: BTreeSet<u64>,
}

#[test]
fn subflows_messages_and_data_are_named_before_they_are_spoken_of() {
    for (run, args) in RUNS {
        let (header, lines) = events(run, args);
        let mut hosts: BTreeMap<String, Host> = BTreeMap::new();
        let mut under_way: BTreeMap<String, u64> = BTreeMap::new();
        // The event is at the requesting host: the sender, or the client of a sender that answers.
        let mut due: BTreeSet<u64> = BTreeSet::new();
        for line in &lines {
            let number = |key: &str| line[key].as_u64().unwrap();
            let members = |key: &str| -> BTreeSet<u64> {
                line[key].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect()
            };
            let host = hosts.entry(line["host"].as_str().unwrap().to_owned()).or_default();
            let name = line["event"].as_str().unwrap();
            if name == "subflow-up" {
                assert!(host.up.insert(number("subflow")), "{run}: up twice: {line}");
            } else if let Some(subflow) = line["subflow"].as_u64() {
                assert!(host.up.contains(&subflow), "{run}: {line}");
            }
            if line.get("path").is_some() {
                assert!(
                    header["paths"].as_array().unwrap().contains(&line["path"]),
                    "{run}: {line}"
                );
            }
            match name {
                "subflow-down" => {
                    host.up.remove(&number("subflow"));
                }
                "data-sent" => {
                    let end = number("dsn") + number("len_bytes");
                    // New data is sent in order. Retransmitted data was sent before.
                    assert_eq!(line["carry"] == "new", number("dsn") == host.sent, "{run}: {line}");
                    host.sent = host.sent.max(end);
                    assert!(end <= host.sent, "{run}: {line}");
                }
                "data-acked" => {
                    assert_eq!(number("old_dsn"), host.acked, "{run}: {line}");
                    host.acked = number("new_dsn");
                    assert!(host.acked <= host.sent + 1, "{run}: DATA_FIN takes one: {line}");
                }
                "data-readable" => {
                    assert_eq!(number("dsn"), host.readable, "{run}: in order, each once: {line}");
                    host.readable += number("len_bytes");
                }
                "decision" => {
                    let (candidates, usable) = (members("candidates"), members("usable"));
                    assert!(usable.is_subset(&candidates), "{run}: {line}");
                    assert!(candidates.is_subset(&host.up), "{run}: {line}");
                    for key in ["chosen", "waits_for"] {
                        let known = line[key].as_u64().is_none_or(|id| host.up.contains(&id));
                        assert!(known, "{run}: {line}");
                    }
                }
                "message-due" => {
                    assert!(due.insert(number("message")), "{run}: {line}");
                    assert!(number("due_ns") <= number("t_ns"), "{run}: {line}");
                }
                "message-written" => {
                    assert!(due.contains(&number("message")), "{run}: {line}");
                    assert!(host.written.insert(number("message")), "{run}: {line}");
                }
                _ => {}
            }
            // A segment is sent before it is delivered or dropped. Only a duplicate arrives twice. A middlebox
            // may remove the options.
            let hop = name.strip_prefix("segment-").filter(|hop| *hop != "size");
            if let Some(hop) = hop {
                let key = [
                    "path",
                    "direction",
                    "src_port",
                    "seq",
                    "ack",
                    "flags",
                    "payload_bytes",
                    "wire_data_ack",
                ]
                .map(|key| line[key].to_string())
                .join(" ");
                if hop == "sent" {
                    *under_way.entry(key).or_default() += 1;
                } else {
                    let stripped = *run == "stripped" && line["wire_data_ack"].is_null();
                    assert!(stripped || under_way.contains_key(&key), "{run}: never sent: {line}");
                }
            }
        }
        let (sent, got) = (&hosts["server"], &hosts["client"]);
        assert!(got.readable <= sent.sent && sent.readable <= got.sent, "{run}");
        assert!(got.readable + sent.readable > 0, "{run}");
    }
}

/// Every decision has its number and its view of each candidate. The next event carries out its choice.
#[test]
fn a_decision_tells_what_weighed_and_is_carried_out() {
    for (run, args) in RUNS {
        let (_, lines) = events(run, args);
        let mut asked = 0;
        for host in ["client", "server"] {
            let own = lines.iter().filter(|line| line["host"] == host);
            let told = ["decision", "data-sent"];
            let own = own.filter(|line| told.contains(&line["event"].as_str().unwrap()));
            let own: Vec<&Value> = own.collect();
            let mut last = 0;
            for (at, line) in own.iter().enumerate().filter(|(_, it)| it["event"] == "decision") {
                let number = line["number"].as_u64().unwrap();
                assert!(number > last, "{run}: {line}");
                last = number;
                let seen: BTreeMap<u64, &Value> = line["subflows"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|it| (it["subflow"].as_u64().unwrap(), it))
                    .collect();
                for id in line["candidates"].as_array().unwrap() {
                    let view = seen[&id.as_u64().unwrap()];
                    let held =
                        ["inflight_bytes", "free_bytes"].map(|key| view[key].as_u64().unwrap());
                    // No data is assigned ahead in these runs.
                    let cwnd = view["cwnd_bytes"].as_u64().unwrap();
                    assert_eq!(cwnd.saturating_sub(held[0]), held[1], "{run}: {line}");
                    let (now, srtt) = (line["t_ns"].as_u64().unwrap(), view["srtt_ns"].as_u64());
                    let soonest = srtt.map(|srtt| now + srtt / 2);
                    let arrival = view["arrival_ns"].as_u64();
                    let room = held[1] >= line["len_bytes"].as_u64().unwrap();
                    assert!(
                        if room { arrival == soonest } else { arrival > soonest },
                        "{run}: {line}"
                    );
                }
                if line["chosen"].is_u64() && line["dsn"].is_u64() {
                    let sent = own[at + 1];
                    let same = [("subflow", "chosen"), ("dsn", "dsn"), ("len_bytes", "len_bytes")];
                    for (told, decided) in same {
                        assert_eq!(sent[told], line[decided], "{run}: {line} {sent}");
                    }
                }
            }
            asked += last;
        }
        assert!(asked > 0, "{run}");
    }
}

/// Compares arrivals with the forecast of their decision: both have the number of the decision.
#[test]
fn regret_is_told_of_what_was_decided_and_arrived() {
    let (mut told, mut worse) = (0, 0);
    for (run, args) in RUNS {
        let (_, lines) = events(run, args);
        let mut decisions: BTreeMap<(String, u64), &Value> = BTreeMap::new();
        let mut before: &Value = &Value::Null;
        for line in &lines {
            let host = line["host"].as_str().unwrap().to_owned();
            if line["event"] == "decision" {
                decisions.insert((host, line["number"].as_u64().unwrap()), line);
            } else if line["event"] == "regret" {
                let key = (host, line["number"].as_u64().unwrap());
                let decided = decisions.remove(&key).unwrap_or_else(|| panic!("{run}: {line}"));
                assert_eq!(before["event"], "data-arrived", "{run}: {line}");
                let same = [("dsn", "dsn"), ("len_bytes", "len_bytes"), ("subflow", "chosen")];
                assert!(same.iter().all(|(own, of)| line[own] == decided[of]), "{run}: {line}");
                let number = |key: &str| line[key].as_i64().unwrap();
                let arrivals = decided["subflows"].as_array().unwrap().iter().filter(|it| {
                    decided["candidates"].as_array().unwrap().contains(&it["subflow"])
                });
                let arrivals: Vec<(&Value, i64)> = arrivals
                    .filter_map(|it| Some((&it["subflow"], it["arrival_ns"].as_i64()?)))
                    .collect();
                let chosen = arrivals.iter().find(|(id, _)| **id == decided["chosen"]).unwrap().1;
                let least = arrivals.iter().map(|(_, at)| *at).min().unwrap();
                assert_eq!((number("foretold_ns"), number("earliest_ns")), (chosen, least));
                assert_eq!(number("error_ns"), number("t_ns") - chosen, "{run}: {line}");
                assert_eq!(number("regret_ns"), number("t_ns") - least, "{run}: {line}");
                told += 1;
                worse += usize::from(number("regret_ns") > number("error_ns"));
            }
            before = line;
        }
    }
    assert!(told > 1_000 && worse > 50, "{told} {worse}");
}

/// Decisions include the scheduler's numbers and its assignments.
#[test]
fn a_decision_tells_the_numbers_of_its_scheduler_and_its_plan() {
    let line = "--path a:rtt=10ms --path b:rtt=100ms --workload burst:15seg --ideal";
    let decisions = |name: &str| {
        let (_, lines) = events(name, &format!("{line} --schedulers {name}"));
        lines.into_iter().filter(|it| it["event"] == "decision").collect::<Vec<Value>>()
    };
    let waits = decisions("ecf");
    let wait = waits.iter().find(|it| it["reason"] == "fast-finishes-sooner").unwrap();
    let names: Vec<&String> = wait["numbers"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["k_bytes", "delta_ms", "lhs_ms.0", "rhs_ms.1", "lhs2_ms.1", "rhs2_ms.0"]);
    assert!(wait["numbers"]["lhs_ms.0"].as_f64() < wait["numbers"]["rhs_ms.1"].as_f64());
    let ahead = decisions("otias");
    let plan = ahead.iter().find(|it| it["assigned"][0]["len_bytes"].is_u64()).unwrap();
    assert_eq!(plan["assigned"][0]["subflow"], plan["chosen"]);
    assert_eq!(plan["assigned"][0]["dsn"], plan["dsn"]);
}

/// The files describe only the connection. The document also includes the competing flows.
#[test]
fn competing_flows_are_in_the_document_and_not_in_the_files() {
    let line = "--path wifi-home --path lte-att --workload download:2MB";
    let line = format!("{line} --compete reno@wifi-home*2 --compete cubic@lte-att --check");
    let (_, list) = events("compete", &line);
    let new = |event: &&Value| {
        event["event"] == "data-sent" && event["carry"] == "new" && event["host"] == "server"
    };
    let sent: u64 = list.iter().filter(new).filter_map(|it| it["len_bytes"].as_u64()).sum();
    assert_eq!(sent, 2_000_000);
    let segments = list.iter().filter(|event| event["event"] == "segment-sent");
    assert!(segments.clone().count() > 1_400);
    assert!(segments.into_iter().all(|event| event["path"].is_string()));
    let document: Value = serde_json::from_str(&run(&format!("{line} --json"))).unwrap();
    let competing = &document["competing_mbps"];
    assert_eq!(competing["reno@wifi-home*2"].as_array().unwrap().len(), 2);
    assert!(competing["cubic@lte-att"][0].as_f64().unwrap() > 1.0, "{competing}");
    assert_eq!(document["paths"].as_array().unwrap().len(), 2);
    let text = run(&line);
    assert!(text.contains("competing flows: reno@wifi-home*2 "), "{text}");
    let line: Vec<&str> = text.split_whitespace().filter(|word| *word != "\\").collect();
    let again = "--compete 'reno@wifi-home*2' --compete cubic@lte-att";
    assert!(line.join(" ").contains(again), "{text}");
}
