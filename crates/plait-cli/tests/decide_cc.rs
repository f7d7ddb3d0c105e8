//! Runs every vector of the controllers through `plait decide --cc`, mapped as in docs/decide.md: one process,
//! one question after the other.
#![allow(clippy::unwrap_used, clippy::panic)]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const VECTORS: &str = include_str!("../../../tests/vectors/schedulers.json");
const MSS: f64 = 1460.0;

/// A dialogue with one process.
struct Dialogue {
    child: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Dialogue {
    fn new() -> Dialogue {
        let mut child = Command::new(env!("CARGO_BIN_EXE_plait"))
            .args(["decide", "--cc"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Dialogue { questions: child.stdin.take(), answers, child }
    }

    fn ask(&mut self, question: &Value) -> Value {
        writeln!(self.questions.as_mut().unwrap(), "{question}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "no answer to {question}");
        serde_json::from_str(&line).unwrap()
    }

    fn end(mut self) {
        drop(self.questions.take());
        assert!(self.child.wait().unwrap().success());
    }
}

/// Sends questions in turn, each with the flows of the previous answer.
fn run(dialogue: &mut Dialogue, mut question: Value, events: &[Value]) -> Value {
    let mut answer = Value::Null;
    for event in events {
        question["event"] = event.clone();
        answer = dialogue.ask(&question);
        question["flows"] = answer["flows"].clone();
    }
    answer
}

fn near(what: &str, ours: &Value, theirs: &Value, unit: f64) {
    let (Some(ours), Some(theirs)) = (ours.as_f64(), theirs.as_f64()) else {
        panic!("{what}: {ours}, not {theirs}");
    };
    assert!((ours - theirs).abs() <= unit, "{what}: {ours}, not {theirs}");
}

/// `w` in bytes, `r` in seconds, `l` in bytes. Without a threshold the flow is in congestion avoidance.
fn flows(paths: &Value) -> Vec<Value> {
    let flow = |path: &Value| {
        json!({
            "cwnd_bytes": path["w"], "srtt_ms": path["r"].as_f64().unwrap() * 1e3,
            "between_losses_bytes": path["l"].as_u64().unwrap_or(0),
        })
    };
    paths.as_array().unwrap().iter().map(flow).collect()
}

/// Returns the answer of each flow in turn to an acknowledgement of `acked` bytes.
fn each(dialogue: &mut Dialogue, cc: &str, paths: &Value, acked: &Value) -> Vec<Value> {
    let flows = flows(paths);
    let ask = |own| {
        dialogue.ask(&json!({"cc": cc, "flows": flows, "event": {"ack": acked, "flow": own}}))
    };
    (0..flows.len()).map(ask).collect()
}

fn lia(dialogue: &mut Dialogue, name: &str, inputs: &Value, expect: &Value) {
    let answers = each(dialogue, "lia", &inputs["paths"], &inputs["acked"]);
    let reno = each(dialogue, "reno", &inputs["paths"], &inputs["acked"]);
    assert_eq!(answers.len(), expect["inc"].as_array().unwrap().len());
    for (own, answer) in answers.iter().enumerate() {
        near(name, &answer["numbers"]["alpha"], &expect["alpha"], 1e-5);
        near(name, &answer["change_bytes"], &expect["inc"][own], 1e-4);
        near(name, &reno[own]["change_bytes"], &expect["reno"][own], 1e-4);
    }
}

fn olia(dialogue: &mut Dialogue, name: &str, inputs: &Value, expect: &Value) {
    let cc = if name.contains("draft") { "olia:quality=l2/r" } else { "olia" };
    let answers = each(dialogue, cc, inputs, &json!(MSS as u64));
    assert_eq!(answers.len(), expect.as_array().unwrap().len());
    for (own, answer) in answers.iter().enumerate() {
        near(name, &answer["numbers"]["alpha"], &expect[own]["alpha"], 1e-4);
        near(name, &answer["change_bytes"], &expect[own]["inc"], 1e-4);
    }
}

fn balia(dialogue: &mut Dialogue, name: &str, inputs: &Value, expect: &Value) {
    let answers = each(dialogue, "balia", &inputs["paths"], &inputs["acked"]);
    assert_eq!(answers.len(), expect.as_array().unwrap().len());
    for (own, answer) in answers.iter().enumerate() {
        near(name, &answer["numbers"]["alpha"], &expect[own]["alpha"], 1e-4);
        near(name, &answer["change_bytes"], &expect[own]["inc"], 1e-4);
        let loss = json!({
            "cc": "balia", "flows": flows(&inputs["paths"]), "event": {"loss": true, "flow": own},
        });
        let after = dialogue.ask(&loss);
        near(name, &after["flows"][own]["cwnd_bytes"], &expect[own]["loss_to"], 1e-9);
    }
}

/// A loss at `wmax`, repaired at time 0 with `cwnd_epoch`, and an acknowledgement at `t`; or only the loss.
fn cubic(dialogue: &mut Dialogue, name: &str, inputs: &Value, expect: &Value) {
    if inputs.get("wmax").is_none() {
        let question = json!({
            "cc": "cubic",
            "flows": [{
                "cwnd": inputs["cwnd_at_loss"], "srtt_ms": 100,
                "state": {"w_max": inputs["prev_wmax"]},
            }],
        });
        let events = [json!({"loss": true}), json!({"recovered": true}), json!({"ack": 0})];
        let answer = run(dialogue, question, &events);
        let flow = &answer["flows"][0];
        near(name, &flow["state"]["w_max"], &expect["new_wmax"], 1e-4);
        near(name, &answer["numbers"]["alpha"], &expect["alpha"], 1e-4);
        let segments = flow["cwnd_bytes"].as_f64().unwrap() / MSS;
        return near(name, &json!(segments), &expect["cwnd_after"], 1e-9);
    }
    let rtt = inputs["rtt"].as_f64().unwrap() * 1e3;
    let question = json!({"cc": "cubic", "flows": [{"cwnd": inputs["wmax"], "srtt_ms": rtt}]});
    let events = [
        json!({"loss": true}),
        json!({"recovered": true}),
        json!({"ack": 0, "now_ms": inputs["t"].as_f64().unwrap() * 1e3}),
    ];
    let answer = run(dialogue, question, &events);
    near(
        name,
        &json!(answer["flows"][0]["cwnd_bytes"].as_f64().unwrap() / MSS),
        &inputs["cwnd_epoch"],
        1e-9,
    );
    let numbers = &answer["numbers"];
    near(name, &numbers["k_s"], &expect["K"], 1e-4);
    near(name, &numbers["w"], &expect["W_now"], 1e-4);
    near(name, &numbers["target"], &expect["W_next_rtt"], 1e-4);
}

/// Sends rounds of full segments, each acknowledged separately, until the file is complete.
fn slow_start(dialogue: &mut Dialogue, name: &str, inputs: &Value, expect: &Value) {
    let segments = inputs["segs"].as_u64().unwrap();
    let mut question = json!({
        "cc": "reno", "settings": {"mss": 1448}, "flows": [{"cwnd": 10, "ssthresh": 45}],
    });
    let (mut window, mut total, mut rounds) = (10, 0, Vec::new());
    loop {
        total += window;
        rounds.push(json!([window, total]));
        if total >= segments {
            break;
        }
        question["event"] = json!({"ack": 1448, "times": window});
        let answer = dialogue.ask(&question);
        question["flows"] = answer["flows"].clone();
        window = (answer["flows"][0]["cwnd_bytes"].as_f64().unwrap() / 1448.0) as u64;
    }
    if let Some(count) = expect.get("rounds") {
        assert_eq!(json!(rounds.len()), *count, "{name}");
    }
    assert_eq!(Value::from(rounds), *expect.get("trace").unwrap_or(expect), "{name}");
}

fn idle(dialogue: &mut Dialogue, name: &str, inputs: &Value, expect: &Value) {
    let mode = if name.contains("5681") { "rfc5681" } else { "linux" };
    let answer = dialogue.ask(&json!({
        "cc": "reno",
        "settings": {"initial_window": inputs["iw"], "idle_restart": mode},
        "flows": [{"cwnd": inputs["cwnd"], "ssthresh": inputs["ssthresh"]}],
        "event": {"idle_ms": inputs["idle"], "rto_ms": inputs["rto"]},
    }));
    let segments = |key: &str| json!(answer["flows"][0][key].as_f64().unwrap() / MSS);
    near(name, &segments("cwnd_bytes"), &expect["cwnd"], 1e-9);
    let ssthresh = expect.get("ssthresh").unwrap_or(&inputs["ssthresh"]);
    near(name, &segments("ssthresh_bytes"), ssthresh, 1e-9);
}

/// The third RTT sample, beside a sibling of the same RTT whose rate leaves `weight`.
fn wvegas(dialogue: &mut Dialogue, name: &str, inputs: &Value, expect: &Value) {
    let (cwnd, weight) = (inputs["cwnd"].as_f64().unwrap(), inputs["weight"].as_f64().unwrap());
    let rtt = inputs["rtt"].as_f64().unwrap();
    let answer = dialogue.ask(&json!({
        "cc": "wvegas",
        "flows": [
            {"cwnd": cwnd, "srtt_ms": rtt,
             "state": {"base_ms": inputs["base"], "samples": 2, "sum_ms": 2.0 * rtt}},
            {"cwnd": cwnd * (1.0 - weight) / weight, "srtt_ms": rtt},
        ],
        "event": {"ack": 1460, "rtt_ms": rtt, "round": true},
    }));
    let state = &answer["flows"][0]["state"];
    near(name, &state["diff"], &expect["diff"], 1e-3);
    near(name, &state["alpha"], &expect["alpha"], 1e-3);
    let segments = answer["flows"][0]["cwnd_bytes"].as_f64().unwrap() / MSS;
    near(name, &json!(segments), &expect["next"], 1e-3);
}

/// A state with only the least queueing delay drains by it: w * base / (2 rtt) (docs/cc/wvegas.md).
#[test]
fn wvegas_drains_a_queue_that_has_doubled() {
    let mut dialogue = Dialogue::new();
    // Before the drain, diff is 10 segments, above alpha: one segment less.
    for (q, next) in [(10.0, 29.0 * 40.0 / 120.0), (11.0, 29.0), (0.0, 29.0)] {
        let mut state =
            json!({"base_ms": 40, "samples": 2, "sum_ms": 120, "alpha": 6, "weight": 0.6});
        if q > 0.0 {
            state["q_ms"] = json!(q);
        }
        let answer = dialogue.ask(&json!({
            "cc": "wvegas",
            "flows": [{"cwnd": 30, "srtt_ms": 60, "state": state}, {"cwnd": 20, "srtt_ms": 60}],
            "event": {"ack": 1460, "rtt_ms": 60, "round": true},
        }));
        let segments = answer["flows"][0]["cwnd_bytes"].as_f64().unwrap() / MSS;
        near("cwnd", &json!(segments), &json!(next), 1e-3);
    }
    dialogue.end();
}

/// R68, R77.
#[test]
fn every_controller_vector_is_answered() {
    type Check = fn(&mut Dialogue, &str, &Value, &Value);
    let checks: [(&str, Check, usize); 7] = [
        ("lia", lia, 3),
        ("olia", olia, 4),
        ("balia", balia, 3),
        ("cubic", cubic, 4),
        ("ss", slow_start, 2),
        ("idle", idle, 8),
        ("wvegas", wvegas, 2),
    ];
    let vectors: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
    let mut dialogue = Dialogue::new();
    for (family, check, count) in checks {
        let mut asked = 0;
        for (index, vector) in vectors.iter().enumerate() {
            let name = vector["name"].as_str().unwrap();
            if name.split('/').next() == Some(family) {
                let (inputs, expect) = (&vector["inputs"], &vector["expect"]);
                check(&mut dialogue, &format!("{name}#{index}"), inputs, expect);
                asked += 1;
            }
        }
        assert_eq!(asked, count, "{family}");
    }
    dialogue.end();
}

/// A run through the pipe, its flows fed back line by line, equals the run of one long question: the written
/// state is complete.
#[test]
fn flows_that_are_fed_back_continue_the_run() {
    let mut dialogue = Dialogue::new();
    for cc in
        ["cubic", "reno", "lia", "olia", "olia:quality=l2/r", "balia", "wvegas", "fixed:cwnd=9seg"]
    {
        let question = json!({
            "cc": cc,
            "flows": [
                {"cwnd": 20, "ssthresh": 24.5, "srtt_ms": 40, "since_loss_bytes": 5000},
                {"cwnd": 31, "srtt_ms": 25, "between_losses_bytes": 90_000},
            ],
        });
        let ack = |now: u32, times: u32| json!({"ack": 1460, "rtt_ms": 40 + now % 7, "now_ms": now, "times": times});
        let mut one_by_one = Vec::new();
        let mut at_once = Vec::new();
        for now in (0..400).step_by(40) {
            if now == 200 {
                for list in [&mut one_by_one, &mut at_once] {
                    list.push(json!({"loss": true, "now_ms": now}));
                    list.push(json!({"recovered": true, "now_ms": now + 20}));
                }
            }
            one_by_one.extend((0..12).map(|_| ack(now + 30, 1)));
            at_once.push(ack(now + 30, 12));
            for list in [&mut one_by_one, &mut at_once] {
                list.push(json!({"ack": 700, "rtt_ms": 44, "now_ms": now + 31, "round": true}));
            }
        }
        let fed_back = run(&mut dialogue, question.clone(), &one_by_one);
        let whole = run(&mut dialogue, question, &at_once);
        for key in ["cwnd_bytes", "ssthresh_bytes", "since_loss_bytes", "between_losses_bytes"] {
            near(cc, &fed_back["flows"][0][key], &whole["flows"][0][key], 1e-5);
        }
        assert_eq!(fed_back["flows"][0]["phase"], whole["flows"][0]["phase"], "{cc}");
        for flow in fed_back["flows"].as_array().unwrap() {
            for (segments, bytes) in [("cwnd", "cwnd_bytes"), ("ssthresh", "ssthresh_bytes")] {
                let product = flow[segments].as_f64().map(|segments| json!(segments * MSS));
                near(cc, &product.unwrap(), &flow[bytes], 1e-3);
            }
        }
        assert_eq!(fed_back["flows"][1], whole["flows"][1], "{cc}: nobody touched the sibling");
    }
    dialogue.end();
}

/// Every phase in an answer may be fed back in. Absent values are not written as numbers.
#[test]
fn answers_are_questions() {
    let mut dialogue = Dialogue::new();
    for cc in ["reno", "lia", "olia", "balia", "cubic", "wvegas", "fixed:cwnd=30seg"] {
        let question = json!({"cc": cc, "flows": [{"cwnd": 20, "srtt_ms": 20}, {"cwnd": 2}]});
        let ack = json!({"ack": 1460, "times": 30, "rtt_ms": 20, "now_ms": 40, "round": true});
        let timeout = json!({"timeout": true, "now_ms": 50});
        let idle = json!({"idle_ms": 5_000, "rto_ms": 300, "now_ms": 6_000});
        let mut events = vec![ack.clone(), json!({"loss": true}), ack.clone()];
        events.extend([
            json!({"recovered": true}),
            timeout.clone(),
            timeout,
            ack.clone(),
            idle,
            ack,
        ]);
        for event in &mut events.clone() {
            event["flow"] = 1.into();
            events.push(event.clone());
        }
        let answer = run(&mut dialogue, question, &events);
        let numbers = answer["numbers"].as_object().unwrap();
        assert!(numbers.values().all(Value::is_number), "{answer}");
    }
    let question = json!({"cc": "lia", "flows": [{"cwnd": 20}], "event": {"ack": 1460}});
    assert_eq!(dialogue.ask(&question)["numbers"], json!({}));
    dialogue.end();
}
