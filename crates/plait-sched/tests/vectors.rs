//! The decision vectors in `tests/vectors/schedulers.json`, one test each.
#![allow(clippy::unwrap_used, clippy::panic)]

mod model;

use libtest_mimic::{Arguments, Failed, Trial};
use model::{MSS, Model, noted, subflow};
use plait_base::{DataRange, Dsn, Span, SubflowId, SubflowSet, Time};
use plait_sched::{
    Decision, Effect, Notice, Outcome, PriceView, Reason, Scheduler, Spec, SubflowView, What,
    WindowChange, rec_cwnd_after,
};
use serde_json::{Value, json};

const VECTORS: &str = include_str!("../../../tests/vectors/schedulers.json");

/// The value for an infinite threshold.
const INFINITE: u64 = 1_000_000_000;

fn main() {
    let vectors: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
    let trials = vectors.into_iter().enumerate().filter_map(|(index, vector)| {
        let name = vector["name"].as_str().unwrap().to_owned();
        let (family, _) = name.split_once('/')?;
        let check = match (family, name.as_str()) {
            ("lrf", _) => lrf,
            ("rr", _) => rr,
            ("rp", _) => rp,
            ("red", _) => red,
            ("bm", _) => bm,
            ("up", _) => linux,
            ("stms", "stms/gapC") => stms_gap,
            ("stms", "stms/A") => stms_learns,
            ("stms", "stms/buffers") => stms_buffers,
            ("stms", _) => stms_pick,
            ("blest", "blest/paper") => blest_paper,
            ("blest", "blest/lambda") => blest_lambda,
            ("blest", _) => blest_code,
            ("ecf", "ecf/rec_snd_cwnd") => ecf_record,
            ("ecf", _) => ecf,
            ("otias", "otias/metric") => otias_metric,
            ("otias", _) => otias_run,
            ("sttf", "sttf/tt") => sttf_transfer,
            ("sttf", _) => sttf_run,
            ("daps", _) => daps,
            _ => return None,
        };
        Some(Trial::test(format!("{name}#{index}"), move || {
            let (inputs, expect) = (&vector["inputs"], &vector["expect"]);
            let actual = check(inputs, expect);
            if same(&actual, expect) {
                return Ok(());
            }
            Err(Failed::from(format!("inputs {inputs}\nexpected {expect}\nactual   {actual}")))
        }))
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}

/// Compares as JSON. Here 10 and 10.0 are one number.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            (a.as_f64().unwrap() - b.as_f64().unwrap()).abs() < 1e-9 * b.as_f64().unwrap().max(1.0)
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

fn number(value: &Value, key: &str, default: u64) -> u64 {
    value.get(key).map_or(default, |value| value.as_u64().unwrap())
}

fn millis(value: &Value, key: &str) -> Span {
    Span::from_nanos((value[key].as_f64().unwrap() * 1e6) as u64)
}

fn switch(value: &Value, key: &str, default: bool) -> bool {
    value.get(key).map_or(default, |value| value.as_bool().unwrap())
}

fn threshold(value: &Value, key: &str) -> Option<u64> {
    Some(number(value, key, INFINITE)).filter(|it| *it != INFINITE).map(|it| it * MSS)
}

/// Reads a subflow from its object, in segments and milliseconds.
fn read_subflow(value: &Value) -> SubflowView {
    let id = number(value, "id", 0) as u8;
    let up = switch(value, "up", true);
    SubflowView {
        open: up,
        backup: switch(value, "backup", false),
        price: PriceView::FREE,
        tsq_blocked: switch(value, "tsq", false),
        inflight: number(value, "inflight", 0) * MSS,
        outstanding: number(value, "inflight", 0) * MSS,
        ssthresh: threshold(value, "ssthresh"),
        ..subflow(id, millis(value, "srtt"), number(value, "cwnd", 10) * MSS)
    }
}

fn read_subflows(value: &Value) -> Vec<SubflowView> {
    value.as_array().unwrap().iter().map(read_subflow).collect()
}

fn read_set(value: &Value) -> SubflowSet {
    value.as_array().unwrap().iter().map(|id| SubflowId(id.as_u64().unwrap() as u8)).collect()
}

fn build(spec: &str) -> Box<dyn Scheduler> {
    Spec::parse(spec).unwrap().build()
}

fn segments(from: u64, to: u64) -> DataRange {
    DataRange::between(from * MSS, to * MSS)
}

/// Returns the subflow, or `WAIT`.
fn place(decision: Decision) -> Value {
    match decision {
        Decision::Send { subflow, .. } => json!(subflow.0),
        Decision::Wait { .. } => json!("WAIT"),
        other => panic!("{other:?}"),
    }
}

fn lrf(inputs: &Value, _: &Value) -> Value {
    let subflows = inputs.get("subs").unwrap_or(inputs);
    let mut model = Model::new(read_subflows(subflows), 100 * MSS);
    model.tsq = model.subflows.iter().any(|subflow| subflow.tsq_blocked);
    let mut expected_reason = None;
    if let Some(mask) = inputs.get("mask") {
        let carried = read_set(mask);
        model.reinject(segments(0, 1), carried);
        expected_reason =
            Some(if carried.len() == 2 { Reason::ReinjectionAgain } else { Reason::Reinjection });
    }
    let decision = model.ask(&mut *build("minrtt"), &mut Outcome::default());
    if let (Decision::Send { what, reason, .. }, Some(expected)) = (decision, expected_reason) {
        assert_eq!((what, reason), (What::Reinject, expected));
    }
    place(decision)
}

fn rr(inputs: &Value, expect: &Value) -> Value {
    // The expected result implies the switch: with `cwnd_limited=off` the fifth segment waits.
    let limited = expect.as_array().unwrap().len() != 5;
    let spec = format!(
        "rr:num_segments={},cwnd_limited={}",
        inputs["num_segments"],
        if limited { "on" } else { "off" }
    );
    let mut scheduler = build(&spec);
    let mut model = Model::new(read_subflows(&inputs["subs"]), number(inputs, "nseg", 0) * MSS);
    run(&mut model, &mut *scheduler, |subflow, _| json!(subflow.0))
}

/// Applies decisions until there is nothing to send, or until the scheduler waits.
fn run(
    model: &mut Model,
    scheduler: &mut dyn Scheduler,
    write: impl Fn(SubflowId, DataRange) -> Value,
) -> Value {
    let (mut out, mut log) = (Outcome::default(), Vec::new());
    loop {
        let decision = model.ask(scheduler, &mut out);
        if let Decision::Wait { .. } = decision {
            log.push(json!("WAIT"));
        }
        match model.apply(decision, &out.effects) {
            Some((subflow, range)) => log.push(write(subflow, range)),
            None => return log.into(),
        }
    }
}

fn red(inputs: &Value, _: &Value) -> Value {
    let queue: Vec<u64> =
        inputs["queue"].as_array().unwrap().iter().map(|dsn| dsn.as_u64().unwrap()).collect();
    let start = number(inputs, "snd_una", 0);
    let subflows =
        inputs["cwnd"].as_array().unwrap().iter().enumerate().map(|(id, cwnd)| {
            subflow(id as u8, Span::from_millis(10), cwnd.as_u64().unwrap() * MSS)
        });
    let mut model = Model::new(subflows.collect(), 0);
    let mut scheduler = build("redundant");
    let mut sent = start;
    if let Some(ptr) = inputs.get("ptr") {
        for (id, last) in ptr.as_object().unwrap() {
            // The state holds the end of the last range given to the subflow.
            let end = last.as_u64().unwrap() + 1;
            assert!(scheduler.load_state(&format!("ptr.{id}"), (end * MSS) as f64));
            sent = sent.max(end);
        }
        assert!(scheduler.load_state("next", 1.0));
    }
    for dsn in &queue {
        model.queue.unsent.insert(segments(*dsn, dsn + 1));
    }
    for dsn in start..sent {
        model.queue.record(segments(dsn, dsn + 1), SubflowId(0));
    }
    model.connection.snd_una = Dsn::new(start * MSS);
    model.connection.snd_nxt = Dsn::new(sent * MSS);
    model.connection.unsent = model.queue.unsent.len();
    run(&mut model, &mut *scheduler, |subflow, range| json!([subflow.0, range.start.get() / MSS]))
}

fn rp(inputs: &Value, _: &Value) -> Value {
    let mut model = Model::new(read_subflows(&inputs["subs"]), 0);
    let free = SubflowId(number(inputs, "s", 0) as u8);
    model.now = Time::ZERO + millis(inputs, "now");
    model.queue = plait_sched::StaticQueue::fresh(segments(0, 20));
    for holder in read_set(&inputs["head_mask"]).iter() {
        model.queue.record(segments(0, 1), holder);
    }
    model.connection.unsent = model.queue.unsent.len();
    model.connection.wnd_end = Dsn::new(MSS);
    let mut scheduler = build("minrtt+rp");
    assert!(
        scheduler.load_state(&format!("last_pen.{free}_ms"), inputs["last_pen"].as_f64().unwrap())
    );
    let mut out = Outcome::default();
    let decision = model.ask(&mut *scheduler, &mut out);
    let retransmit = match decision {
        Decision::Send { subflow, what: What::OppRetx(range), .. } => {
            assert_eq!((subflow, range), (free, segments(0, 1)));
            true
        }
        Decision::Wait { on, reason: Reason::SendWindow } => {
            assert_eq!(on, Some(free));
            false
        }
        other => panic!("{other:?}"),
    };
    let penalised = match out.effects[..] {
        [] => Value::Null,
        [Effect::Penalise { subflow, cwnd, ssthresh }] => json!({
            "id": subflow.0,
            "cwnd": cwnd / MSS,
            "ssthresh": ssthresh.map_or(INFINITE, |ssthresh| ssthresh / MSS),
        }),
        ref other => panic!("{other:?}"),
    };
    // A recorded penalty is not repeated.
    assert!(
        out.effects.is_empty() || {
            model.ask(&mut *scheduler, &mut out);
            out.effects.is_empty()
        }
    );
    json!({ "penalised": penalised, "retransmit": retransmit })
}

fn bm(inputs: &Value, _: &Value) -> Value {
    let cwnd = number(inputs, "cwnd", 0);
    let only = subflow(0, millis(inputs, "srtt"), cwnd * MSS);
    let mut model = Model::new(vec![only], 1000 * MSS);
    let mut scheduler = build(&format!("minrtt+bm:lambda={}", inputs["lam"]));
    assert!(scheduler.load_state("bm_min_srtt.0_ms", inputs["srtt_min"].as_f64().unwrap()));
    let mut out = Outcome::default();
    let decision = model.ask(&mut *scheduler, &mut out);
    let noted = |name| out.numbers.iter().find(|number| number.name == name).unwrap().value;
    let (limit, cap) = (noted("limit_segments"), noted("cap_segments"));
    // Exactly this many segments are sent, and congestion control gets the cap.
    model.apply(decision, &out.effects);
    let told = if model.subflows[0].cap == u64::MAX { cwnd } else { model.subflows[0].cap / MSS };
    let log = run(&mut model, &mut *scheduler, |_, _| json!(1));
    let sent = log.as_array().unwrap().len();
    assert_eq!((sent as f64, told as f64), (cap, cap));
    json!({ "limit_raw": limit, "effective": cap })
}

fn linux(inputs: &Value, _: &Value) -> Value {
    let list = inputs["subs"].as_array().unwrap();
    let sndbuf = &list[0]["sndbuf"];
    let mut scheduler = build(&format!("linux:sndbuf={sndbuf}"));
    let subflows = list.iter().map(|value| {
        assert_eq!(&value["sndbuf"], sndbuf);
        let id = number(value, "id", 0) as u8;
        let avg = number(value, "avg_pace", 0);
        assert!(scheduler.load_state(&format!("avg_pace.{id}"), avg as f64));
        SubflowView {
            outstanding: number(value, "wmem", 0),
            pacing_rate: number(value, "pace", 0),
            backup: switch(value, "backup", false),
            price: PriceView::FREE,
            ..subflow(id, Span::from_millis(10), 10 * MSS)
        }
    });
    let mut model = Model::new(subflows.collect(), 1_000 * MSS);
    model.connection.wnd_end = Dsn::new(number(inputs, "wnd_left", 0));
    let mut out = Outcome::default();
    let decision = model.ask(&mut *scheduler, &mut out);
    if let Decision::Wait { reason: Reason::SendMemory, .. } = decision {
        return json!("WAIT");
    }
    assert!(matches!(decision, Decision::Assign { .. }), "{decision:?}");
    let [(range, SubflowId(id))] = out.plan[..] else { panic!("{:?}", out.plan) };
    let noted = |name: &str, id: u8| {
        let of = |it: &&plait_sched::Number| it.name == name && it.subflow == Some(SubflowId(id));
        out.numbers.iter().find(of).unwrap().value
    };
    let lingers: serde_json::Map<String, Value> =
        (0..list.len()).map(|id| (id.to_string(), json!(noted("linger_us", id as u8)))).collect();
    assert_eq!(range.len() as f64, noted("burst_bytes", id));
    json!({
        "id": id,
        "linger_us": lingers,
        "burst": range.len(),
        "new_avg_pace": noted("avg_pace", id),
    })
}

/// Returns a named value of a scheduler's state.
fn saved(scheduler: &dyn Scheduler, wanted: &str) -> Option<f64> {
    let mut found = None;
    scheduler.save_state(&mut |name, value| {
        if name == wanted {
            found = Some(value);
        }
    });
    found
}

fn stms_gap(inputs: &Value, _: &Value) -> Value {
    let fast = subflow(0, millis(inputs, "srtt_f"), number(inputs, "cwnd_f", 0) * MSS);
    let model = pair(fast, subflow(1, millis(inputs, "srtt_s"), 10 * MSS), 1000);
    // At the start both variants use the calculated gap.
    for spec in ["stms-a", "stms-c"] {
        let mut scheduler = build(spec);
        let mut out = Outcome::default();
        let decision = model.ask(&mut *scheduler, &mut out);
        let gap = saved(&*scheduler, "gap.1").unwrap();
        let Decision::Send { what: What::New { offset }, subflow: SubflowId(1), .. } = decision
        else {
            panic!("{decision:?}");
        };
        assert_eq!(offset, gap as u64 * MSS);
        if let Some(number) = out.numbers.iter().find(|number| number.name == "calculated") {
            return json!({ "gap": (number.value * 1e4).round() / 1e4, "gap_int": gap });
        }
    }
    panic!("stms-c notes the calculated gap");
}

fn stms_pick(inputs: &Value, _: &Value) -> Value {
    let fast_ok = switch(inputs, "fast_ok", false);
    let window = |usable: bool| if usable { 10 * MSS } else { 0 };
    let fast = subflow(0, Span::from_millis(20), window(fast_ok));
    let slow = subflow(1, Span::from_millis(200), window(switch(inputs, "slow_ok", true)));
    let mut model = Model::new(vec![fast, slow], 0);
    for run in inputs["unsent"].as_str().unwrap().split(',') {
        let (first, last) = run.split_once("..").unwrap();
        let (first, last): (u64, u64) = (first.parse().unwrap(), last.parse().unwrap());
        model.queue.unsent.insert(segments(first, last + 1));
    }
    model.connection.unsent = model.queue.unsent.len();
    if let Some(end) = inputs.get("win_end") {
        model.connection.wnd_end = Dsn::new(end.as_u64().unwrap() * MSS);
    }
    let picks = ["stms-a", "stms-c"].map(|spec| {
        let mut scheduler = build(spec);
        assert!(scheduler.load_state("gap.1", inputs["gap"].as_f64().unwrap()));
        let decision = model.ask(&mut *scheduler, &mut Outcome::default());
        match decision {
            Decision::Send { subflow, what, .. } => {
                let range = model.range(what).unwrap();
                let lane = ["FAST", "SLOW"][usize::from(subflow.0)];
                json!([lane, range.start.get() / MSS])
            }
            Decision::Wait { on: Some(SubflowId(0)), reason: Reason::GapReserved } => json!("WAIT"),
            other => panic!("{other:?}"),
        }
    });
    assert_eq!(picks[0], picks[1]);
    picks[0].clone()
}

fn stms_learns(inputs: &Value, _: &Value) -> Value {
    // The interval is the mean of the RTTs.
    let tau = number(inputs, "tau", 0);
    let fast = subflow(0, Span::from_millis(20), 10 * MSS);
    let mut model = pair(fast, subflow(1, Span::from_millis(2 * tau - 20), 10 * MSS), 1000);
    let mut scheduler = build(&format!("stms-a:gap0={}", inputs["gap0"]));
    let events = inputs["events"].as_array().unwrap().iter();
    let log = events.map(|event| {
        let (at, segments) = (event[0].as_u64().unwrap(), event[1].as_u64().unwrap());
        model.now = Time::ZERO + Span::from_millis(at);
        let old = model.connection.snd_una;
        model.connection.snd_una += segments * MSS;
        let first = SubflowId(u8::from(event[2] == json!("slow")));
        let edge = Some(plait_sched::LeftEdge { first, again: false });
        let new = model.connection.snd_una;
        scheduler.on_notice(&model.view(), Notice::DataAck { old, new, edge });
        let ewma = saved(&*scheduler, "ewma.1").unwrap_or(0.0);
        json!([at, (ewma * 1e3).round() / 1e3, saved(&*scheduler, "gap.1").unwrap()])
    });
    Value::Array(log.collect())
}

fn stms_buffers(inputs: &Value, _: &Value) -> Value {
    use plait_sched::formulas::{default_buffer, fallback_buffer, stms_buffer};
    let rate = |key| number(inputs, key, 0) * 1_000_000 / 8;
    let (fast, slow) = (rate("Bf_Mbps"), rate("Bs_Mbps"));
    let (fast_rtt, slow_rtt) = (millis(inputs, "RTTf"), millis(inputs, "RTTs"));
    let (fast_delay, slow_delay) = (fast_rtt.over(2), slow_rtt.over(2));
    json!({
        "default_B": default_buffer(fast, slow, slow_rtt),
        "stms_B": stms_buffer(fast, slow, fast_delay, slow_delay),
        "fallback_B": fallback_buffer(fast, fast_rtt, fast_delay, slow_delay),
    })
}

/// Returns the decision and its numbers, under the names of the vector.
fn weighed(decision: Decision, out: &Outcome, names: &[(&str, &str)]) -> Value {
    let mut result = json!({ "decision": match decision {
        Decision::Send { subflow: SubflowId(1), .. } => "SLOW",
        Decision::Wait { on: Some(SubflowId(0)), .. } => "WAIT",
        other => panic!("{other:?}"),
    }});
    for (name, noted) in names {
        if let Some(number) = out.numbers.iter().find(|number| number.name == *noted) {
            result[*name] = json!(number.value);
        }
    }
    result
}

/// Creates a fast subflow with a full window and a slow one.
fn pair(fast: SubflowView, slow: SubflowView, k: u64) -> Model {
    let fast = SubflowView { inflight: fast.cwnd, ..fast };
    Model::new(vec![fast, slow], k * MSS)
}

fn blest_paper(inputs: &Value, _: &Value) -> Value {
    let fast = subflow(0, millis(inputs, "srtt_f"), number(inputs, "cwnd_f", 0) * MSS);
    let mut slow = subflow(1, millis(inputs, "srtt_s"), 1000 * MSS);
    slow.inflight = number(inputs, "inflight_s", 0) * MSS;
    slow.outstanding = slow.inflight;
    let mut model = pair(fast, slow, 10);
    model.connection.wnd_end = Dsn::new(number(inputs, "sw_b", 0));
    let mut scheduler = build("blest:mode=paper");
    assert!(scheduler.load_state("lambda_milli", inputs["lam"].as_f64().unwrap() * 1e3));
    let mut out = Outcome::default();
    let decision = model.ask(&mut *scheduler, &mut out);
    let names =
        [("rtts", "rtts"), ("X", "x_bytes"), ("Xlam", "x_lambda_bytes"), ("room", "room_bytes")];
    weighed(decision, &out, &names)
}

fn blest_code(inputs: &Value, _: &Value) -> Value {
    let (f, s) = (&inputs["fast"], &inputs["slow"]);
    let micros = |value: &Value, key| Span::from_micros(number(value, key, 0));
    let mut fast = subflow(0, micros(f, "min"), number(f, "cwnd", 0) * MSS);
    fast.ssthresh = threshold(f, "ssthresh");
    let mut slow = subflow(1, micros(s, "srtt"), number(s, "cwnd", 0) * MSS);
    slow.inflight = number(s, "inflight", 0) * MSS;
    slow.outstanding = slow.inflight;
    let mut model = pair(fast, slow, 10);
    model.connection.wnd_end = Dsn::new(number(inputs, "sw_b", 0));
    let mut scheduler = build("blest");
    assert!(scheduler.load_state("lambda_milli", inputs["lam1000"].as_f64().unwrap()));
    for (id, value) in [(0, f), (1, s)] {
        for bound in ["min", "max"] {
            let millis = value[bound].as_f64().unwrap() / 1e3;
            assert!(scheduler.load_state(&format!("{bound}_srtt.{id}_ms"), millis));
        }
    }
    let mut out = Outcome::default();
    let decision = model.ask(&mut *scheduler, &mut out);
    let names = [
        ("linger", "linger_ms"),
        ("n", "rounds"),
        ("packets", "packets"),
        ("fast_bytes", "x_lambda_bytes"),
        ("room", "room_bytes"),
    ];
    let mut result = weighed(decision, &out, &names);
    result["linger"] = json!(result["linger"].as_f64().unwrap() * 1e3);
    result
}

fn blest_lambda(inputs: &Value, _: &Value) -> Value {
    let slow_rtt = Span::from_millis(40);
    let mut model =
        pair(subflow(0, Span::from_millis(10), 10 * MSS), subflow(1, slow_rtt, 10 * MSS), 10);
    let (mut scheduler, mut out) = (build("blest"), Outcome::default());
    assert!(scheduler.load_state("lambda_milli", inputs["start"].as_f64().unwrap()));
    let flags = inputs["blocked_flags"].as_array().unwrap().iter();
    let steps = flags.map(|blocked| {
        if blocked == &json!(1) {
            scheduler.on_notice(&model.view(), Notice::WindowLimited);
        }
        // A decision too early changes nothing. The one after the lowest RTT of S makes one step.
        let early = model.now + slow_rtt - Span::from_nanos(1);
        let last = lambda(&*scheduler);
        model.now += slow_rtt;
        let mut before = model.clone();
        before.now = early;
        before.ask(&mut *scheduler, &mut out);
        assert!((lambda(&*scheduler) - last).abs() < 1e-9);
        model.ask(&mut *scheduler, &mut out);
        model.ask(&mut *scheduler, &mut out);
        json!(lambda(&*scheduler))
    });
    Value::Array(steps.collect())
}

fn lambda(scheduler: &dyn Scheduler) -> f64 {
    let mut lambda = f64::NAN;
    scheduler.save_state(&mut |name, value| {
        if name == "lambda_milli" {
            lambda = value;
        }
    });
    lambda
}

fn ecf(inputs: &Value, _: &Value) -> Value {
    let path = |id: u8, suffix: &str| {
        let key = |name: &str| format!("{name}_{suffix}");
        let mut it =
            subflow(id, millis(inputs, &key("rtt")), number(inputs, &key("cwnd"), 0) * MSS);
        it.rttvar = millis(inputs, &key("var"));
        it
    };
    let model = pair(path(0, "f"), path(1, "s"), number(inputs, "k", 0));
    let spec = format!(
        "ecf:m={},floor={}",
        number(inputs, "kvar", 1),
        if switch(inputs, "floor1", true) { "on" } else { "off" }
    );
    let mut scheduler = build(&spec);
    assert!(scheduler.load_state("waiting", number(inputs, "waiting", 0) as f64));
    let mut out = Outcome::default();
    let decision = model.ask(&mut *scheduler, &mut out);
    let names = [("lhs", "lhs_ms"), ("rhs", "rhs_ms"), ("lhs2", "lhs2_ms"), ("rhs2", "rhs2_ms")];
    let mut result = weighed(decision, &out, &names);
    scheduler.save_state(&mut |name, value| result[name] = json!(value));
    result
}

/// Applies decisions until all data has a subflow, without acknowledgements. Returns the runs of
/// segments per subflow.
fn assign_all(model: &mut Model, scheduler: &mut dyn Scheduler) -> Vec<(u8, u64)> {
    let (mut out, mut runs) = (Outcome::default(), Vec::<(u8, u64)>::new());
    while model.connection.unsent > 0 {
        let before = model.connection.unsent;
        let id = match model.ask(scheduler, &mut out) {
            decision @ Decision::Send { subflow, .. } => {
                model.apply(decision, &[]);
                subflow
            }
            Decision::Assign { .. } => {
                model.assign(&out.plan);
                out.plan[0].1
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(before - model.connection.unsent, MSS);
        match runs.last_mut() {
            Some((last, count)) if *last == id.0 => *count += 1,
            _ => runs.push((id.0, 1)),
        }
    }
    runs
}

/// Creates the path of the vector beside one with a delay of a minute, and one segment to place.
fn beside_a_far_path(path: SubflowView) -> Model {
    Model::new(vec![path, subflow(1, Span::from_secs(120), 10 * MSS)], MSS)
}

fn otias_metric(inputs: &Value, _: &Value) -> Value {
    let queued = number(inputs, "queued", 0) * MSS;
    let model = beside_a_far_path(SubflowView { queued, ..read_subflow(inputs) });
    let mut out = Outcome::default();
    model.ask(&mut *build("otias"), &mut out);
    json!(noted(&out, "arrival_ms", 0).unwrap())
}

fn otias_run(inputs: &Value, _: &Value) -> Value {
    let paths = [10, 100].into_iter().zip(0..);
    let paths = paths.map(|(rtt, id)| subflow(id, Span::from_millis(rtt), 10 * MSS)).collect();
    let mut model = Model::new(paths, number(inputs, "n", 0) * MSS);
    let runs = assign_all(&mut model, &mut *build("otias"));
    let after = |it: &SubflowView| {
        let srtt = it.srtt.unwrap().as_millis_f64();
        let [cwnd, inflight, queued] = [it.cwnd, it.inflight, it.queued].map(|bytes| bytes / MSS);
        json!({ "id": it.id.0, "srtt": srtt, "cwnd": cwnd, "inflight": inflight, "queued": queued })
    };
    json!({ "rle": runs, "final": model.subflows.iter().map(after).collect::<Vec<_>>() })
}

fn sttf_transfer(inputs: &Value, _: &Value) -> Value {
    let [cwnd, free, q] = ["cwnd", "free", "q"].map(|key| number(inputs, key, 0));
    let path = SubflowView {
        inflight: (cwnd - free) * MSS,
        queued: (q - 1) * MSS,
        ssthresh: threshold(inputs, "ssthresh"),
        ..subflow(0, millis(inputs, "rtt"), cwnd * MSS)
    };
    let mut out = Outcome::default();
    beside_a_far_path(path).ask(&mut *build("sttf"), &mut out);
    json!(noted(&out, "arrival_ms", 0).unwrap())
}

fn sttf_run(inputs: &Value, _: &Value) -> Value {
    let path = |(rtt, id): (&Value, u8)| SubflowView {
        ssthresh: threshold(inputs, "ssthresh"),
        ..subflow(id, Span::from_millis(rtt.as_u64().unwrap()), number(inputs, "cwnd", 0) * MSS)
    };
    let paths = inputs["rtt"].as_array().unwrap().iter().zip(0..).map(path).collect();
    let mut model = Model::new(paths, number(inputs, "n", 0) * MSS);
    json!(assign_all(&mut model, &mut *build("sttf")))
}

/// Returns a whole plan in the terms of the vector.
fn daps(inputs: &Value, expect: &Value) -> Value {
    let paths = match inputs.get("flows") {
        Some(flows) => read_subflows(flows),
        None => {
            let srtts = inputs["srtt"].as_array().unwrap().iter().zip(0..);
            let path = |(srtt, id): (&Value, u8)| {
                subflow(id, Span::from_millis(srtt.as_u64().unwrap()), 10 * MSS)
            };
            srtts.map(path).collect()
        }
    };
    let mut model = Model::new(paths, 10_000 * MSS);
    let mut scheduler = build(&format!("daps:round={}", inputs["round"]));
    let (mut out, mut total, mut plan) = (Outcome::default(), 0, json!({}));
    // Runs: time within the plan, subflow, first and last segment.
    let mut runs: Vec<(u64, u8, u64, u64)> = Vec::new();
    loop {
        let decision = model.ask(&mut *scheduler, &mut out);
        if let Some(length) = out.numbers.iter().find(|number| number.name == "plan_ms") {
            if total > 0 {
                break;
            }
            let delays = [0, 1].map(|id| noted(&out, "delay_ms", id).unwrap());
            plan = json!({ "delays": delays, "lcm": length.value });
        }
        let id = match decision {
            Decision::Send { subflow, reason: Reason::Planned, .. } => subflow,
            Decision::Assign { reason: Reason::Planned } => out.plan[0].1,
            other => panic!("{other:?}"),
        };
        let mut due = 0.0;
        scheduler.save_state(&mut |name, value| {
            due = if name == format!("due.{id}_ms") { value } else { due };
        });
        model.apply(decision, &[]);
        model.assign(&out.plan);
        match runs.last_mut() {
            Some((at, last, _, end)) if (*at, *last) == (due as u64, id.0) => *end = total,
            _ => runs.push((due as u64, id.0, total, total)),
        }
        total += 1;
    }
    plan["total"] = json!(total);
    let of = |id: u8| runs.iter().filter(move |run| run.1 == id);
    let told = [
        ("schedule", json!(runs)),
        ("first_slow", json!(of(1).next())),
        ("runs_fast", json!(of(0).count())),
        ("runs_slow", json!(of(1).count())),
    ];
    for (name, value) in told.into_iter().filter(|(name, _)| expect.get(name).is_some()) {
        plan[name] = value;
    }
    plan
}

/// Returns the congestion window, the record, and the window that the decision uses.
fn ecf_record(_: &Value, _: &Value) -> Value {
    let (mut cwnd, mut record, mut log) = (42_u64, 0, Vec::new());
    let mut note = |cwnd: u64, record: u64| log.push(json!([cwnd, record, cwnd.max(record)]));
    note(cwnd, record);
    record = rec_cwnd_after(record, WindowChange::IdleReset { before: cwnd });
    cwnd = 10;
    note(cwnd, record);
    for grown in [30, 43] {
        record = rec_cwnd_after(record, WindowChange::Moved { cwnd: grown });
        note(grown, record);
    }
    log.into()
}
