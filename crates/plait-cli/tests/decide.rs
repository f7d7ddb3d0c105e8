//! Runs every decision vector of the existing schedulers through `plait decide`, mapped as in docs/decide.md.
#![allow(clippy::unwrap_used, clippy::panic)]

use serde_json::{Map, Value, json};
use std::io::Write;
use std::process::{Command, Stdio};

const VECTORS: &str = include_str!("../../../tests/vectors/schedulers.json");
const MSS: u64 = 1460;

/// Sends `lines` through one process.
fn decide(lines: &[Value]) -> Vec<Value> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_plait"))
        .arg("decide")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{text}");
    let answers = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> =
        answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), lines.len());
    answers
}

fn ask(question: &Value) -> Value {
    decide(std::slice::from_ref(question)).remove(0)
}

/// Returns `name#index`, inputs and expectation of every vector whose name starts with `family`.
fn vectors(family: &str) -> Vec<(String, Value, Value)> {
    let all: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
    let named = all.into_iter().enumerate().filter_map(|(index, vector)| {
        let name = vector["name"].as_str()?.to_owned();
        let (inputs, expect) = (vector["inputs"].clone(), vector["expect"].clone());
        name.starts_with(family).then(|| (format!("{name}#{index}"), inputs, expect))
    });
    let list: Vec<_> = named.collect();
    assert!(!list.is_empty());
    list
}

/// Maps a vector's subflows to the names of docs/decide.md. `carried` are the ids in a mask.
fn subflows(list: &Value, carried: &Value) -> Vec<Value> {
    let ids: Vec<&Value> = carried.as_array().into_iter().flatten().collect();
    let translate = |subflow: &Value| {
        let mut out = Map::new();
        for (key, value) in subflow.as_object().unwrap() {
            let key = match key.as_str() {
                "srtt" => "srtt_ms",
                "up" => "alive",
                "tsq" => "tsq_blocked",
                key => key,
            };
            out.insert(key.to_owned(), value.clone());
        }
        out.insert("carried".to_owned(), json!(ids.contains(&&subflow["id"])));
        Value::Object(out)
    };
    list.as_array().unwrap().iter().map(translate).collect()
}

fn close(actual: &Value, expected: &Value) -> bool {
    match (actual.as_f64(), expected.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * b.abs().max(1.0),
        _ => actual == expected,
    }
}

/// Returns the subflow, or `WAIT`.
fn place(answer: &Value) -> Value {
    match answer["decision"].as_str() {
        Some("send") => answer["subflow"].clone(),
        Some("wait") => json!("WAIT"),
        _ => panic!("{answer}"),
    }
}

#[test]
fn minrtt_places_new_data_and_reinjections() {
    for (name, inputs, expect) in vectors("lrf/") {
        let (list, mask) = match inputs.get("subs") {
            Some(list) => (list, &inputs["mask"]),
            None => (&inputs, &Value::Null),
        };
        let answer = ask(&json!({"scheduler": "lrf", "subflows": subflows(list, mask)}));
        assert_eq!(place(&answer), expect, "{name}: {answer}");
        let reinjects = answer["decision"] == "send" && !mask.is_null();
        assert_eq!(answer["what"] == "reinject", reinjects, "{name}: {answer}");
    }
}

#[test]
fn round_robin_runs_when_its_state_is_fed_back() {
    for (name, inputs, expect) in vectors("rr/") {
        let mut list = subflows(&inputs["subs"], &Value::Null);
        let mut unsent = inputs["nseg"].as_u64().unwrap();
        let limited = !name.contains("cwnd_limited=false");
        let (mut state, mut log) = (json!({}), Vec::new());
        while unsent > 0 {
            let answer = ask(&json!({
                "scheduler": "roundrobin", "state": state,
                "params": {"num_segments": inputs["num_segments"], "cwnd_limited": limited},
                "connection": {"unsent": unsent}, "subflows": list,
            }));
            log.push(place(&answer));
            if answer["decision"] == "wait" {
                break;
            }
            let id = answer["subflow"].as_u64().unwrap() as usize;
            list[id]["inflight"] = json!(list[id]["inflight"].as_u64().unwrap_or(0) + 1);
            unsent -= 1;
            state = answer["state"].clone();
        }
        assert_eq!(Value::from(log), expect, "{name}");
    }
}

#[test]
fn rp_penalises_and_retransmits() {
    for (name, inputs, expect) in vectors("rp/") {
        let last_pen = format!("last_pen.{}_ms", inputs["s"]);
        let answer = ask(&json!({
            "scheduler": "minrtt+rp", "state": {last_pen: inputs["last_pen"]},
            "connection": {"unsent": 20, "send_window": MSS, "now_ms": inputs["now"]},
            "subflows": subflows(&inputs["subs"], &inputs["head_mask"]),
        }));
        let opportunistic = answer["what"] == "opportunistic";
        assert_eq!(json!(opportunistic), expect["retransmit"], "{name}: {answer}");
        match &expect["penalised"] {
            Value::Null => assert_eq!(answer["effects"], json!([]), "{name}"),
            wanted => {
                let effect = &answer["effects"][0];
                assert_eq!(
                    (&effect["effect"], &effect["subflow"]),
                    (&json!("penalise"), &wanted["id"])
                );
                assert_eq!(effect["cwnd"], wanted["cwnd"], "{name}");
                let infinite = json!(1_000_000_000);
                let ssthresh =
                    if effect["ssthresh"].is_null() { &infinite } else { &effect["ssthresh"] };
                assert_eq!(*ssthresh, wanted["ssthresh"], "{name}");
            }
        }
    }
}

#[test]
fn bm_caps_what_a_subflow_has_in_flight() {
    for (name, inputs, expect) in vectors("bm/") {
        let answer = ask(&json!({
            "scheduler": "minrtt+bm", "params": {"bm.lambda": inputs["lam"]},
            "state": {"bm_min_srtt.0_ms": inputs["srtt_min"]},
            "connection": {"unsent": 1000},
            "subflows": [{"id": 0, "srtt_ms": inputs["srtt"], "cwnd": inputs["cwnd"]}],
        }));
        let numbers = &answer["numbers"];
        assert!(close(&numbers["limit_segments.0"], &expect["limit_raw"]), "{name}: {answer}");
        assert!(close(&numbers["cap_segments.0"], &expect["effective"]), "{name}: {answer}");
        let cap = json!({"effect": "cap", "subflow": 0, "limit": expect["effective"]});
        let below = expect["effective"].as_f64() < inputs["cwnd"].as_f64();
        let wanted = if below { json!([cap]) } else { json!([]) };
        assert_eq!(answer["effects"], wanted, "{name}: {answer}");
    }
}

#[test]
fn stms_calculates_the_gap() {
    for (name, inputs, expect) in vectors("stms/gapC") {
        let answer = ask(&json!({
            "scheduler": "stms-c", "connection": {"unsent": 1000},
            "subflows": [
                {"id": 0, "srtt_ms": inputs["srtt_f"], "cwnd": inputs["cwnd_f"], "inflight": inputs["cwnd_f"]},
                {"id": 1, "srtt_ms": inputs["srtt_s"]},
            ],
        }));
        assert!(close(&answer["offset"], &expect["gap_int"]), "{name}: {answer}");
        assert!(close(&answer["state"]["gap.1"], &expect["gap_int"]), "{name}: {answer}");
        let calculated = answer["numbers"]["calculated.1"].as_f64().unwrap();
        let rounded = json!((calculated * 1e4).round() / 1e4);
        assert!(close(&rounded, &expect["gap"]), "{name}: {answer}");
    }
}

#[test]
fn stms_picks_what_lies_a_gap_ahead() {
    for (name, inputs, expect) in vectors("stms/pick") {
        let text = inputs["unsent"].as_str().unwrap();
        let (first, last) = (text.split("..").next().unwrap(), text.rsplit("..").next().unwrap());
        let (first, last): (u64, u64) = (first.parse().unwrap(), last.parse().unwrap());
        // A hole is data sent ahead of its turn.
        let ahead: Vec<u64> = text
            .split(',')
            .skip(1)
            .map(|run| run.split("..").next().unwrap().parse().unwrap())
            .collect();
        let sent: Vec<Value> =
            ahead.iter().map(|next| json!({"dsn": next - 1, "carried": [1]})).collect();
        let full = |usable: bool| if usable { 0 } else { 10 };
        let window = inputs.get("win_end").map(|end| (end.as_u64().unwrap() - first) * MSS);
        for scheduler in ["stms-a", "stms-c"] {
            let answer = ask(&json!({
                "scheduler": scheduler, "state": {"gap.1": inputs["gap"]},
                "connection": {
                    "unsent": last + 1 - first - ahead.len() as u64, "snd_una": first,
                    "outstanding": 0, "sent": sent, "send_window": window,
                },
                "subflows": [
                    {"id": 0, "srtt_ms": 20, "inflight": full(inputs["fast_ok"] == json!(true))},
                    {"id": 1, "srtt_ms": 200, "inflight": full(inputs["slow_ok"] != json!(false))},
                ],
            }));
            let lane = |id: &Value| if *id == json!(0) { "FAST" } else { "SLOW" };
            let picked = match answer["decision"].as_str() {
                Some("send") => {
                    // An offset counts unsent segments.
                    let mut dsn = first + answer["offset"].as_u64().unwrap();
                    dsn += ahead.iter().filter(|next| **next <= dsn + 1).count() as u64;
                    json!([lane(&answer["subflow"]), dsn])
                }
                _ => place(&answer),
            };
            assert_eq!(picked, expect, "{name}: {answer}");
        }
    }
}

#[test]
fn stms_a_learns_from_data_acks() {
    for (name, inputs, expect) in vectors("stms/A") {
        let mut state = json!({"gap.1": inputs["gap0"]});
        let mut log = Vec::new();
        for event in inputs["events"].as_array().unwrap() {
            let edge = u8::from(event[2] == json!("slow"));
            let answer = ask(&json!({
                "scheduler": "stms-a", "state": state,
                "event": {"data_ack": event[1], "edge": edge},
                "connection": {"now_ms": event[0]},
                "subflows": [
                    {"id": 0, "srtt_ms": 20, "inflight": 10}, {"id": 1, "srtt_ms": 200, "inflight": 10},
                ],
            }));
            state = answer["state"].clone();
            let ewma = state["ewma.1"].as_f64().unwrap_or(0.0);
            log.push(json!([event[0], (ewma * 1e3).round() / 1e3, state["gap.1"]]));
        }
        for (line, wanted) in log.iter().zip(expect.as_array().unwrap()) {
            let same = (0..3).all(|at| close(&line[at], &wanted[at]));
            assert!(same, "{name}: {line}, expected {wanted}");
        }
    }
}

#[test]
fn linux_gives_bursts_to_where_they_linger_least() {
    for (name, inputs, expect) in vectors("up/") {
        let list = inputs["subs"].as_array().unwrap();
        let mut state = Map::new();
        let subflow = |value: &Value| {
            let id = &value["id"];
            let avg = value["avg_pace"].as_u64().unwrap();
            state.insert(format!("avg_pace.{id}"), json!(avg));
            json!({
                "id": id, "srtt_ms": 10, "backup": value["backup"] == json!(true),
                "outstanding": value["wmem"].as_f64().unwrap() / MSS as f64,
                "pacing_rate_bps": value["pace"].as_u64().unwrap() * 8,
            })
        };
        let subflows: Vec<Value> = list.iter().map(subflow).collect();
        let answer = ask(&json!({
            "scheduler": "linux", "params": {"sndbuf": list[0]["sndbuf"]}, "state": state,
            "connection": {"unsent": 1000, "send_window": inputs["wnd_left"]},
            "subflows": subflows,
        }));
        if expect == json!("WAIT") {
            assert_eq!(
                (&answer["decision"], &answer["reason"]),
                (&json!("wait"), &json!("send-memory"))
            );
            continue;
        }
        let id = &expect["id"];
        assert_eq!((&answer["decision"], &answer["subflow"]), (&json!("assign"), id), "{name}");
        let number = |key: &str, id: &str| answer["numbers"][format!("{key}.{id}")].as_f64();
        for (id, wanted) in expect["linger_us"].as_object().unwrap() {
            assert!(close(&json!(number("linger_us", id)), wanted), "{name}: {answer}");
        }
        let chosen = id.to_string();
        assert!(
            close(&json!(number("burst_bytes", &chosen)), &expect["burst"]),
            "{name}: {answer}"
        );
        let avg = number("avg_pace", &chosen).unwrap();
        assert!(close(&json!(avg), &expect["new_avg_pace"]), "{name}: {answer}");
        let state = answer["state"][format!("avg_pace.{chosen}")].as_f64().unwrap();
        assert!(close(&json!(state), &expect["new_avg_pace"]), "{name}: {answer}");
    }
}

#[test]
fn redundant_copies_every_segment() {
    for (name, inputs, expect) in vectors("red/") {
        let queue: Vec<u64> =
            inputs["queue"].as_array().unwrap().iter().map(|dsn| dsn.as_u64().unwrap()).collect();
        let snd_una = inputs["snd_una"].as_u64().unwrap_or(0);
        let mut state = Map::new();
        let mut sent: Vec<(u64, Vec<u64>)> = Vec::new();
        if let Some(ptr) = inputs["ptr"].as_object() {
            state.insert("next".to_owned(), json!(1));
            for (id, last) in ptr {
                let last = last.as_u64().unwrap();
                state.insert(format!("ptr.{id}"), json!((last + 1) * MSS));
                let id: u64 = id.parse().unwrap();
                sent.extend((snd_una..=last).map(|dsn| (dsn, vec![id])));
            }
        }
        let mut state = Value::Object(state);
        let mut inflight = [0_u64; 2];
        let mut log = Vec::new();
        loop {
            let first_unsent = sent.last().map_or(snd_una, |(dsn, _)| dsn + 1);
            let ranges: Vec<Value> =
                sent.iter().map(|(dsn, by)| json!({"dsn": dsn, "carried": by})).collect();
            let flow = |id: usize| json!({"id": id, "srtt_ms": 10, "cwnd": inputs["cwnd"][id], "inflight": inflight[id]});
            let answer = ask(&json!({
                "scheduler": "redundant", "state": state,
                "connection": {
                    "unsent": queue.last().unwrap() + 1 - first_unsent, "snd_una": snd_una,
                    "sent": ranges,
                },
                "subflows": [flow(0), flow(1)],
            }));
            if answer["decision"] != "send" {
                if answer["decision"] == "wait" {
                    log.push(json!("WAIT"));
                }
                break;
            }
            let id = answer["subflow"].as_u64().unwrap();
            let dsn = if answer["what"] == "new" {
                first_unsent
            } else {
                answer["dsn"].as_u64().unwrap()
            };
            match sent.iter_mut().find(|(known, _)| *known == dsn) {
                Some((_, by)) => by.push(id),
                None => sent.push((dsn, vec![id])),
            }
            inflight[id as usize] += 1;
            log.push(json!([id, dsn]));
            state = answer["state"].clone();
        }
        assert_eq!(Value::from(log), expect, "{name}");
    }
}

/// Returns the decision and the numbers of a rule with a full fast subflow 0 and a slow subflow 1.
fn check_pair(name: &str, answer: &Value, expect: &Value, names: &[(&str, &str, f64)]) {
    let wanted = match expect["decision"].as_str() {
        Some("SLOW") => json!(1),
        _ => json!("WAIT"),
    };
    assert_eq!(place(answer), wanted, "{name}: {answer}");
    for (vector, number, scale) in names {
        if let Some(wanted) = expect.get(*vector) {
            let wanted = json!(wanted.as_f64().unwrap() * scale);
            assert!(close(&answer["numbers"][number], &wanted), "{name} {vector}: {answer}");
        }
    }
}

#[test]
fn blest_weighs_the_window_as_the_paper_prints_it() {
    for (name, inputs, expect) in vectors("blest/paper") {
        let lambda = inputs["lam"].as_f64().unwrap() * 1e3;
        let answer = ask(&json!({
            "scheduler": "blest:mode=paper", "state": {"lambda_milli": lambda},
            "connection": {"unsent": 10, "send_window": inputs["sw_b"]},
            "subflows": [
                {"id": 0, "srtt_ms": inputs["srtt_f"], "cwnd": inputs["cwnd_f"], "inflight": inputs["cwnd_f"]},
                {"id": 1, "srtt_ms": inputs["srtt_s"], "cwnd": 1000, "inflight": inputs["inflight_s"]},
            ],
        }));
        let names = [
            ("rtts", "rtts", 1.0),
            ("X", "x_bytes.0", 1.0),
            ("Xlam", "x_lambda_bytes", 1.0),
            ("room", "room_bytes", 1.0),
        ];
        check_pair(&name, &answer, &expect, &names);
    }
}

#[test]
fn blest_weighs_the_window_as_the_kernel_does() {
    for (name, inputs, expect) in vectors("blest/code") {
        let (fast, slow) = (&inputs["fast"], &inputs["slow"]);
        let ms = |value: &Value| value.as_f64().unwrap() / 1e3;
        let answer = ask(&json!({
            "scheduler": "blest",
            "state": {
                "lambda_milli": inputs["lam1000"],
                "min_srtt.0_ms": ms(&fast["min"]), "max_srtt.0_ms": ms(&fast["max"]),
                "min_srtt.1_ms": ms(&slow["min"]), "max_srtt.1_ms": ms(&slow["max"]),
            },
            "connection": {"unsent": 10, "send_window": inputs["sw_b"]},
            "subflows": [
                {"id": 0, "srtt_ms": ms(&fast["min"]), "cwnd": fast["cwnd"], "inflight": fast["cwnd"], "ssthresh": fast["ssthresh"]},
                {"id": 1, "srtt_ms": ms(&slow["srtt"]), "cwnd": slow["cwnd"], "inflight": slow["inflight"]},
            ],
        }));
        let names = [
            ("linger", "linger_ms.1", 1e-3),
            ("n", "rounds.0", 1.0),
            ("packets", "packets.0", 1.0),
            ("fast_bytes", "x_lambda_bytes", 1.0),
            ("room", "room_bytes", 1.0),
        ];
        check_pair(&name, &answer, &expect, &names);
    }
}

#[test]
fn blest_steps_lambda_once_a_slow_round_trip() {
    for (name, inputs, expect) in vectors("blest/lambda") {
        let mut state = json!({"lambda_milli": inputs["start"]});
        let mut log = Vec::new();
        for (round, blocked) in inputs["blocked_flags"].as_array().unwrap().iter().enumerate() {
            state["blocked"] = blocked.clone();
            let answer = ask(&json!({
                "scheduler": "blest", "state": state,
                "connection": {"now_ms": 40 * (round + 1)},
                "subflows": [{"id": 0, "srtt_ms": 10, "inflight": 10}, {"id": 1, "srtt_ms": 40}],
            }));
            state = answer["state"].clone();
            log.push(state["lambda_milli"].clone());
        }
        assert_eq!(Value::from(log), expect, "{name}");
    }
}

#[test]
fn ecf_weighs_the_finish_times() {
    for (name, inputs, expect) in vectors("ecf/") {
        if name.starts_with("ecf/rec_snd_cwnd") {
            continue; // The record is kept by the transport, not by a decision.
        }
        let floor = inputs["floor1"].as_bool().unwrap_or(true);
        let m = inputs["kvar"].as_u64().unwrap_or(1);
        let answer = ask(&json!({
            "scheduler": "ecf", "state": {"waiting": inputs["waiting"]},
            "params": {"floor": floor, "m": m},
            "connection": {"unsent": inputs["k"]},
            "subflows": [
                {"id": 0, "srtt_ms": inputs["rtt_f"], "rttvar_ms": inputs["var_f"], "cwnd": inputs["cwnd_f"], "inflight": inputs["cwnd_f"]},
                {"id": 1, "srtt_ms": inputs["rtt_s"], "rttvar_ms": inputs["var_s"], "cwnd": inputs["cwnd_s"]},
            ],
        }));
        let names = [
            ("lhs", "lhs_ms.0", 1.0),
            ("rhs", "rhs_ms.1", 1.0),
            ("lhs2", "lhs2_ms.1", 1.0),
            ("rhs2", "rhs2_ms.0", 1.0),
        ];
        check_pair(&name, &answer, &expect, &names);
        assert!(close(&answer["state"]["waiting"], &expect["waiting"]), "{name}: {answer}");
    }
}

/// Families of vectors of schedulers and decorators, by the prefix of their names.
const FAMILIES: [(&str, &str); 14] = [
    ("lrf/", "minrtt"),
    ("rr/", "roundrobin"),
    ("rp/", "+rp"),
    ("bm/", "+bm"),
    ("red/", "redundant"),
    ("daps/", "daps"),
    ("otias/", "otias"),
    ("blest/", "blest"),
    ("ecf/", "ecf"),
    ("sttf/", "sttf"),
    ("stms/gapC", "stms-c"),
    ("stms/pick", "stms-c"),
    ("stms/A", "stms-a"),
    ("up/", "linux"),
];

/// Vectors that cannot be expressed as a question; docs/decide.md gives the reasons.
const NO_QUESTION: [&str; 2] = ["ecf/rec_snd_cwnd", "stms/buffers"];

/// If you register a scheduler with vectors in the file, map them here: add a test that uses `in
/// vectors("FAMILY")`, and the rows of docs/decide.md.
#[test]
fn every_vector_of_a_registered_scheduler_is_asked() {
    let output = Command::new(env!("CARGO_BIN_EXE_plait"))
        .args(["list", "schedulers", "--json"])
        .output()
        .unwrap();
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let registered: Vec<&str> = listed["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    let asked: Vec<&str> = include_str!("decide.rs")
        .split("in vectors(\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    let all: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
    let first_of_a_controller =
        all.iter().position(|vector| vector["name"].as_str().unwrap().starts_with("lia/")).unwrap();
    for (index, vector) in all[..first_of_a_controller].iter().enumerate() {
        let name = vector["name"].as_str().unwrap();
        if NO_QUESTION.contains(&name) {
            continue;
        }
        let family = FAMILIES.iter().find(|(family, _)| name.starts_with(family));
        let (_, scheduler) = family.unwrap_or_else(|| panic!("{name}#{index} is nobody's"));
        if registered.contains(scheduler) {
            let mapped = asked.iter().any(|family| name.starts_with(family));
            assert!(mapped, "`{scheduler}` is registered, and {name}#{index} is not asked");
        }
    }
}

/// Returns the subflows of all `unsent` segments, as runs. Each answer is applied as in docs/decide.md, without
/// any acknowledgement in between, and its state is fed back.
fn assign_all(mut question: Value, mut unsent: u64) -> (Vec<(u64, u64)>, Vec<Value>) {
    let (mut runs, mut answers) = (Vec::<(u64, u64)>::new(), Vec::new());
    while unsent > 0 {
        question["connection"]["unsent"] = json!(unsent);
        let answer = ask(&question);
        let id = answer["subflow"].as_u64().unwrap_or_else(|| panic!("{answer}"));
        let counter = match answer["decision"].as_str() {
            Some("send") => "inflight",
            Some("assign") => {
                assert_eq!(answer["plan"].as_array().map(Vec::len), Some(1), "{answer}");
                assert_eq!(answer["plan"][0]["len"], 1, "{answer}");
                "queued"
            }
            _ => panic!("{answer}"),
        };
        let subflow = &mut question["subflows"][id as usize];
        subflow[counter] = json!(subflow[counter].as_u64().unwrap_or(0) + 1);
        question["state"] = answer["state"].clone();
        match runs.last_mut() {
            Some((last, count)) if *last == id => *count += 1,
            _ => runs.push((id, 1)),
        }
        answers.push(answer);
        unsent -= 1;
    }
    (runs, answers)
}

#[test]
fn otias_and_sttf_predict_arrivals() {
    for (name, inputs, expect) in vectors("otias/metric") {
        let path = subflows(&json!([inputs]), &Value::Null).remove(0);
        let mut list = vec![path, json!({"id": 1, "srtt_ms": 100_000})];
        list[0]["id"] = json!(0);
        let answer = ask(&json!({"scheduler": "otias", "subflows": list}));
        assert!(close(&answer["numbers"]["arrival_ms.0"], &expect), "{name}: {answer}");
    }
    for (name, inputs, expect) in vectors("sttf/tt") {
        let [q, free, cwnd] = ["q", "free", "cwnd"].map(|key| inputs[key].as_u64().unwrap());
        let path = json!({
            "id": 0, "srtt_ms": inputs["rtt"], "cwnd": cwnd, "ssthresh": inputs["ssthresh"],
            "inflight": cwnd - free, "queued": q - 1,
        });
        let list = [path, json!({"id": 1, "srtt_ms": 100_000})];
        let answer = ask(&json!({"scheduler": "sttf", "subflows": list}));
        assert!(close(&answer["numbers"]["arrival_ms.0"], &expect), "{name}: {answer}");
    }
}

#[test]
fn otias_and_sttf_assign_bursts() {
    for (name, inputs, expect) in vectors("otias/run") {
        let list = json!([{"id": 0, "srtt_ms": 10}, {"id": 1, "srtt_ms": 100}]);
        let question = json!({"scheduler": "otias", "connection": {}, "subflows": list});
        let (runs, _) = assign_all(question, inputs["n"].as_u64().unwrap());
        assert_eq!(json!(runs), expect["rle"], "{name}");
    }
    for (name, inputs, expect) in vectors("sttf/burst") {
        let path = |id: usize| {
            json!({
                "id": id, "srtt_ms": inputs["rtt"][id], "cwnd": inputs["cwnd"],
                "ssthresh": inputs["ssthresh"],
            })
        };
        let list = [path(0), path(1)];
        let question = json!({"scheduler": "sttf", "connection": {}, "subflows": list});
        let (runs, _) = assign_all(question, inputs["n"].as_u64().unwrap());
        assert_eq!(json!(runs), expect, "{name}");
    }
}

#[test]
fn daps_runs_when_its_state_is_fed_back() {
    for (name, inputs, expect) in vectors("daps/") {
        let list = match inputs.get("flows") {
            Some(flows) => subflows(flows, &Value::Null),
            None => (0..2).map(|id| json!({"id": id, "srtt_ms": inputs["srtt"][id]})).collect(),
        };
        let question = json!({
            "scheduler": "daps", "params": {"round": inputs["round"]}, "connection": {},
            "subflows": list,
        });
        let total = expect["total"].as_u64().unwrap();
        let (_, answers) = assign_all(question, total + 1);
        // Each plan reports its delays and its length when it is made.
        let made: Vec<usize> = (0..answers.len())
            .filter(|at| answers[*at]["numbers"]["plan_ms"].is_number())
            .collect();
        assert_eq!(made, [0, total as usize], "{name}");
        let numbers = &answers[0]["numbers"];
        assert_eq!(numbers["plan_ms"], expect["lcm"], "{name}");
        for id in 0..2 {
            assert_eq!(numbers[format!("delay_ms.{id}")], expect["delays"][id], "{name}");
        }
        let due = |answer: &Value| answer["state"][format!("due.{}_ms", answer["subflow"])].clone();
        let mut runs: Vec<Value> = Vec::new();
        for (at, answer) in answers.iter().take(total as usize).enumerate() {
            let (time, id) = (due(answer), &answer["subflow"]);
            match runs.last_mut() {
                Some(run) if run[0] == time && run[1] == *id => run[3] = json!(at),
                _ => runs.push(json!([time, id, at, at])),
            }
        }
        let of = |id: u64| runs.iter().filter(move |run| run[1] == id);
        for (key, value) in [
            ("schedule", json!(runs)),
            ("first_slow", json!(of(1).next())),
            ("runs_fast", json!(of(0).count())),
            ("runs_slow", json!(of(1).count())),
        ] {
            assert!(expect.get(key).is_none_or(|expected| *expected == value), "{name}: {key}");
        }
    }
}

#[test]
fn what_sttf_assigned_is_assigned_anew_when_an_acknowledgement_frees_a_path() {
    let question = |free: u64, held: u64| {
        json!({
            "scheduler": "sttf",
            "connection": {"unsent": 0, "assigned": [{"dsn": 12, "len": held, "subflow": 1}]},
            "subflows": [{"id": 0, "srtt_ms": 10, "inflight": 10 - free},
                         {"id": 1, "srtt_ms": 100, "inflight": 10}],
        })
    };
    let moved = ask(&question(3, 2));
    assert_eq!(moved["decision"], "assign", "{moved}");
    assert_eq!(moved["plan"], json!([{"subflow": 0, "dsn": 12, "len": 2}]));
    assert_eq!(moved["reason"], "rescheduled");
    assert_eq!(moved["numbers"]["then_segments.0"], 2);
    let kept = ask(&question(3, 1));
    assert_eq!((&kept["decision"], &kept["subflow"]), (&json!("wait"), &json!(1)), "{kept}");
    assert_eq!(kept["reason"], "assigned-busy");
}

#[test]
fn the_price_reads_costs_and_quotas() {
    let question = |goal: &str, cost: u32, left: Value| {
        json!({
            "scheduler": "minrtt+price", "params": {"price.goal": goal},
            "connection": {"unsent": 4},
            "subflows": [{"id": 0, "srtt_ms": 10}, {"id": 1, "srtt_ms": 50}],
            "prices": [{"subflow": 0, "cost": cost, "quota_left_bytes": left}],
        })
    };
    let subflow = |answer: &Value| answer["subflow"].clone();
    assert_eq!(subflow(&ask(&question("aggregate", 0, Value::Null))), 0);
    assert_eq!(subflow(&ask(&question("aggregate", 1, Value::Null))), 1);
    let spent = ask(&question("aggregate", 0, json!(1_459)));
    assert_eq!((subflow(&spent), &spent["numbers"]["rests.0"]), (json!(1), &json!(1)), "{spent}");
    assert_eq!(spent["numbers"]["quota_left.0"], 1_459);
    assert_eq!(subflow(&ask(&question("aggregate", 0, json!(1_460)))), 0);
    // The other subflow is down, and the quota is used up.
    let down = |goal: &str| {
        let mut question = question(goal, 0, json!(0));
        question["subflows"][1]["pf"] = json!(true);
        ask(&question)
    };
    assert_eq!(subflow(&down("handover")), 0);
    let waits = down("thrifty");
    assert_eq!(
        (&waits["decision"], &waits["reason"]),
        (&json!("wait"), &json!("quota")),
        "{waits}"
    );
}

/// Returns the error for an invalid question.
fn refused(args: &[&str], question: &Value) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_plait"))
        .arg("decide")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(format!("{question}\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{question}: {text}");
    text
}

#[test]
fn assigned_data_is_refused_where_it_makes_no_sense() {
    let refuse = |assigned: Value| {
        let question = json!({
            "scheduler": "sttf", "connection": {"assigned": assigned}, "subflows": [{"id": 0}],
        });
        refused(&[], &question)
    };
    let unknown = refuse(json!([{"dsn": 0, "subflow": 3}]));
    assert!(unknown.contains("connection.assigned[0].subflow: there is no subflow 3"), "{unknown}");
    let overlap = json!([{"dsn": 0, "len": 2, "subflow": 0}, {"dsn": 1, "subflow": 0}]);
    let overlap = refuse(overlap);
    assert!(overlap.contains("connection.assigned[1]: ranges"), "{overlap}");
}

#[test]
fn a_state_that_nobody_saved_is_refused() {
    for (scheduler, name, value, remedy) in [
        ("ecf", "waiting", 7.0, "give 1, the value that is kept"),
        ("stms-c", "gap.1", -5.0, "leave it out if there is none"),
        ("redundant", "next", 99.0, "give 0, the value that is kept"),
        ("roundrobin", "last", 99.0, "leave it out"),
        ("roundrobin", "quota.1", 1.5, "give 2, the value"),
        ("roundrobin", "quota.1", -1.0, "leave it out"),
        ("blest", "lambda_milli", -1.0, "give 0, the value"),
        ("blest", "min_srtt.0_ms", -1.0, "leave it out"),
        ("linux", "again", 8.0, "give 0, the value"),
        ("minrtt+rp", "last_pen.0_ms", -2.0, "leave it out"),
    ] {
        let question = json!({
            "scheduler": scheduler, "state": {name: value}, "subflows": [{"id": 0}, {"id": 1}],
        });
        let text = refused(&[], &question);
        let place = format!("stdin:1: state.{name}: cannot be {value}\n  it is: ");
        assert!(text.contains(&place) && text.contains(&format!("remedy: {remedy}")), "{text}");
    }
    // The next question may contain everything that a run saves, zero included.
    for state in [json!({"last": 1, "quota.1": 3, "quota.0": 0}), json!({"last": 0, "quota.7": 1})]
    {
        ask(&json!({"scheduler": "rr", "state": state, "subflows": [{"id": 0}, {"id": 1}]}));
    }
    for (cc, name, value, problem) in [
        ("cubic", "w_max", -2.0, "must be 0 or more"),
        (
            "wvegas",
            "samples",
            1.5,
            "cannot be 1.5\n  it is: samples of this round trip\n  remedy: give 1, the value",
        ),
    ] {
        let flow = json!({"state": {name: value}});
        let text = refused(&["--cc"], &json!({"cc": cc, "flows": [flow], "event": {"ack": 1460}}));
        assert!(text.contains(&format!("flows[0].state.{name}: {problem}")), "{text}");
    }
}

#[test]
fn a_decorators_parameter_is_told_its_spelling() {
    let ask = |scheduler: &str, params: Value| {
        let question = json!({
            "scheduler": scheduler, "params": params, "subflows": [{"id": 0}, {"id": 1}],
        });
        refused(&[], &question)
    };
    for key in ["mode", "rp:mode"] {
        let text = ask("minrtt+rp", json!({key: "retransmit"}));
        let problem =
            format!("params.{key}: `minrtt` has no such parameter; did you mean `rp.mode`");
        assert!(text.contains(&problem), "{text}");
    }
    let text = ask("minrtt:holders=on+rp", json!({}));
    assert!(text.contains("it is a parameter of `+rp`: write `+rp:holders=...`"), "{text}");
    // If the scheduler has a parameter of that name, the key sets it.
    let both = json!({
        "scheduler": "blest+rp", "params": {"mode": "paper", "rp.mode": "retransmit"},
        "subflows": [{"id": 0}, {"id": 1}],
    });
    assert_eq!(decide(&[both]).len(), 1);
}

#[test]
fn controllers_are_asked_what_makes_sense() {
    let ask = |question: Value| refused(&["--cc"], &question);
    let times = |times: u64| {
        let event = json!({"ack": 1460, "times": times});
        ask(json!({"cc": "lia", "flows": [{"cwnd": 20}], "event": event}))
    };
    for count in [0, 1_000_001, 99_999_999_999] {
        let text = times(count);
        let problem = format!("event.times: must be from 1 to 1000000, found {count}\n  remedy: ");
        assert!(text.contains(&problem), "{text}");
    }
    let event = json!({"ack": 1460});
    let text = ask(json!({"cc": "lia", "settings": {"mss": 0}, "flows": [{}], "event": event}));
    assert!(text.contains("stdin:1: settings.mss: must be at least 1"), "{text}");
    let text = ask(json!({"cc": "lia", "flows": [{"mss": 0}], "event": event}));
    assert!(text.contains("stdin:1: flows[0].mss: must be at least 1"), "{text}");
    for (phase, ssthresh, problem) in [
        ("avoidance", json!(null), "the threshold is infinite"),
        ("avoidance", json!(40), "the window is below the threshold"),
        ("slow-start", json!(20), "the window is not below the threshold"),
        ("restart", json!(10), "the window is above the threshold"),
    ] {
        let flow = json!({"cwnd": 20, "ssthresh": ssthresh, "phase": phase});
        let text = ask(json!({"cc": "reno", "flows": [flow], "event": event}));
        let place = format!("flows[0].phase: cannot be {phase}: {problem}");
        assert!(text.contains(&place) && text.contains("remedy: leave it out"), "{text}");
    }
}
