//! The specification's test vectors for the transport, one test each: timeouts, loss detection by
//! time, tail probes, small queues, buffers.
#![allow(clippy::unwrap_used, clippy::panic)]

use libtest_mimic::{Arguments, Failed, Trial};
use plait_base::{Rate, Span, Time};
use plait_core::RtoMode;
use plait_core::buffers::{self, PathProperties};
use plait_core::formulas::{lost_at, probe_timeout, reorder_window, round_trips, tsq_limit};
use serde_json::{Value, json};

const VECTORS: &str = include_str!("../../../tests/vectors/schedulers.json");

fn main() {
    let vectors: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
    let trials: Vec<Trial> = vectors
        .into_iter()
        .enumerate()
        .filter_map(|(index, vector)| {
            let name = vector["name"].as_str().unwrap().to_owned();
            let check = match name.split('/').next() {
                _ if name == "stms/buffers" => buffers,
                Some("rto") if name.contains("linux") => rto_linux,
                Some("rto") => rto_rfc200,
                Some("tlp") => tlp,
                Some("rack") => rack,
                Some("tsq") => tsq,
                _ => return None,
            };
            Some(Trial::test(format!("{name}#{index}"), move || {
                let (inputs, expect) = (&vector["inputs"], &vector["expect"]);
                let actual = check(inputs);
                if same(&actual, expect) {
                    return Ok(());
                }
                Err(Failed::from(format!("inputs {inputs}\nexpected {expect}\nactual   {actual}")))
            }))
        })
        .collect();
    assert_eq!(trials.len(), 8, "two rto vectors, rack, tlp, three of tsq and one of buffers");
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Compares JSON values; numbers may differ by 0.0005.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            (a.as_f64().unwrap() - b.as_f64().unwrap()).abs() <= 0.000_501
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

fn millis(value: &Value) -> Span {
    Span::from_nanos((value.as_f64().unwrap() * 1e6) as u64)
}

/// R67.
fn rto(mode: RtoMode, inputs: &Value) -> Value {
    let samples: Vec<Span> = inputs.as_array().unwrap().iter().map(millis).collect();
    let steps = round_trips(mode, &samples).map(|step| {
        json!([step.srtt.as_millis_f64(), step.rttvar.as_millis_f64(), step.rto.as_millis_f64()])
    });
    steps.collect()
}

fn rto_rfc200(inputs: &Value) -> Value {
    rto(RtoMode::Rfc200, inputs)
}

fn rto_linux(inputs: &Value) -> Value {
    rto(RtoMode::Linux, inputs)
}

/// R69: a probe is never later than the timeout.
fn tlp(inputs: &Value) -> Value {
    let (srtt, rto) = (Some(millis(&inputs["srtt"])), millis(&inputs["rto"]));
    json!({
        "two_in_flight": probe_timeout(srtt, 2).min(rto).as_millis_f64(),
        "one_in_flight": probe_timeout(srtt, 1).min(rto).as_millis_f64(),
    })
}

/// R69.
fn rack(inputs: &Value) -> Value {
    let multiplier = inputs["reo_mult"].as_u64().unwrap();
    let window =
        reorder_window(multiplier, millis(&inputs["min_rtt"]), Some(millis(&inputs["srtt"])));
    let sent_at = Time::ZERO + millis(&inputs["xmit"]);
    let lost = lost_at(sent_at, millis(&inputs["rack_rtt"]), window);
    json!({
        "reo_wnd": window.as_millis_f64(),
        "lost_at": lost.since(Time::ZERO).as_millis_f64(),
    })
}

/// Computes the equations of STMS. One-way delays are half of the round trips.
fn buffers(inputs: &Value) -> Value {
    let way = |rate: &str, rtt: &str| PathProperties {
        rate: Rate::from_bps(inputs[rate].as_u64().unwrap() * 1_000_000),
        rtt: millis(&inputs[rtt]),
    };
    let (fast, slow) = (way("Bf_Mbps", "RTTf"), way("Bs_Mbps", "RTTs"));
    json!({
        "default_B": buffers::in_order(&[fast, slow]),
        "stms_B": buffers::out_of_order(fast, slow),
        "fallback_B": buffers::fallback(fast, slow),
    })
}

fn tsq(inputs: &Value) -> Value {
    let number = |key: &str| inputs[key].as_u64().unwrap();
    json!(tsq_limit(number("pace"), number("truesize"), number("cap")))
}
