//! Checks that any line gets an answer or an error message, without a panic.

use super::{Session, controller};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Generates values for every key of both forms, of the correct kind and of other kinds.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => (0..2_000_i64).prop_map(Value::from),
        2 => (0.0..500.0_f64).prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<u64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(|it| json!(it)),
        1 => prop::sample::select(vec![
            json!(null), json!(true), json!(false), json!(0), json!(-1), json!(1e308), json!(5e-324),
            json!("x"), json!(""), json!("loss"), json!("recovery"), json!("é"), json!("on"),
        ]),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-z_]{1,8}", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Returns an object with some of these keys; most values are valid.
fn object(keys: &'static [(&'static str, &'static str)]) -> impl Strategy<Value = Value> {
    let sound = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    let pick = (prop::sample::select(keys), value(), prop::bool::weighted(0.25));
    let fields = prop::collection::vec(pick, 0..8);
    fields.prop_map(move |fields| {
        let field = |((key, text), value, odd): ((&str, &str), Value, bool)| {
            (key.to_owned(), if odd { value } else { sound(text) })
        };
        Value::Object(fields.into_iter().map(field).collect::<Map<_, _>>())
    })
}

const CONNECTION: &[(&str, &str)] = &[
    ("unsent", "11.5"),
    ("mss", "1460"),
    ("send_window", "65536"),
    ("snd_una", "7"),
    ("outstanding", "3"),
    ("sent", r#"[{"dsn":7,"len":2,"carried":[1,0]}]"#),
    ("reinject", "true"),
    ("app_blocked", "true"),
    ("sndbuf_free", "100"),
    ("now_ms", "1000"),
    ("start_ms", "0"),
    ("tsq", "false"),
];

const SUBFLOW: &[(&str, &str)] = &[
    ("srtt_ms", "20"),
    ("rttvar_ms", "3"),
    ("cwnd", "10"),
    ("ssthresh", "20"),
    ("inflight", "9"),
    ("queued", "2"),
    ("rec_cwnd", "40"),
    ("backup", "true"),
    ("alive", "false"),
    ("pf", "true"),
    ("ca", r#""loss""#),
    ("tsq_blocked", "true"),
    ("carried", "true"),
    ("rto_ms", "220"),
    ("min_rtt_ms", "12"),
    ("last_rtt_ms", "25"),
    ("pacing_rate_bps", "1000000"),
    ("last_send_ms", "10"),
];

const PRICE: &[(&str, &str)] =
    &[("subflow", "1"), ("subflow", "0"), ("cost", "3"), ("quota_left_bytes", "4000")];

const FLOW: &[(&str, &str)] = &[
    ("cwnd", "20"),
    ("cwnd_bytes", "29200.25"),
    ("ssthresh", "null"),
    ("ssthresh_bytes", "14600"),
    ("srtt_ms", "20"),
    ("mss", "1000"),
    ("phase", r#""restart""#),
    ("alive", "false"),
    ("since_loss_bytes", "5000"),
    ("between_losses_bytes", "7000"),
    ("state", r#"{"w_max":40,"epoch_ms":10,"k_s":3}"#),
    ("state", r#"{"base_ms":10,"samples":3,"sum_ms":45,"alpha":0,"q_ms":1}"#),
];

const EVENT: &[(&str, &str)] = &[
    ("ack", "1460"),
    ("ack", "0"),
    ("rtt_ms", "30"),
    ("round", "true"),
    ("cwnd_limited", "false"),
    ("loss", "true"),
    ("timeout", "true"),
    ("again", "true"),
    ("recovered", "true"),
    ("idle_ms", "5000"),
    ("rto_ms", "300"),
    ("inflight", "12"),
    ("flow", "1"),
    ("times", "3"),
    ("now_ms", "500"),
];

const SETTINGS: &[(&str, &str)] = &[
    ("mss", "1448"),
    ("initial_window", "4"),
    ("slow_start_limit", "null"),
    ("idle_restart", r#""off""#),
];

/// Returns every scheduler, alone and with every decorator.
fn schedulers() -> Vec<String> {
    let bases = plait_sched::SCHEDULERS.iter().map(|entry| entry.about.name.to_owned());
    let decorated = plait_sched::SCHEDULERS.iter().flat_map(|entry| {
        plait_sched::DECORATORS
            .iter()
            .map(|over| format!("{}+{}", entry.about.name, over.about.name))
    });
    bases.chain(decorated).collect()
}

fn controllers() -> Vec<String> {
    plait_cc::CONTROLLERS.iter().map(|entry| entry.about.name.to_owned()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_500,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_question_of_a_scheduler_is_answered_or_refused(
        scheduler in prop::sample::select(schedulers()),
        connection in object(CONNECTION),
        mut subflows in prop::collection::vec(object(SUBFLOW), 0..4),
        state in object(&[("waiting", "1"), ("next", "1"), ("ptr.0", "1460"), ("lambda_milli", "1200")]),
        prices in prop::collection::vec(object(PRICE), 0..2),
        stray in prop::bool::weighted(0.05),
    ) {
        for (id, subflow) in subflows.iter_mut().enumerate() {
            subflow["id"] = json!(id);
        }
        let mut question = json!({
            "scheduler": scheduler, "connection": connection, "subflows": subflows, "prices": prices,
        });
        if stray {
            question["state"] = state;
        }
        if let Err(refusal) = Session::default().answer(&question.to_string()) {
            prop_assert!(!refusal.to_string().is_empty());
        }
    }

    #[test]
    fn any_question_of_a_controller_is_answered_or_refused(
        cc in prop::sample::select(controllers()),
        settings in object(SETTINGS),
        flows in prop::collection::vec(object(FLOW), 0..4),
        event in object(EVENT),
    ) {
        let mut question = json!({"cc": cc, "settings": settings, "flows": flows, "event": event});
        // The state of an answer continues in the next question.
        for _ in 0..3 {
            match controller::answer(&question.to_string()) {
                Ok(answer) => {
                    let answer: Value = serde_json::from_str(&answer).unwrap();
                    question["flows"] = answer["flows"].clone();
                }
                Err(refusal) => {
                    prop_assert!(!refusal.to_string().is_empty());
                    break;
                }
            }
        }
    }

    #[test]
    fn any_json_and_any_text_is_refused_in_words(value in value(), text in ".{0,60}") {
        let wrapped = json!({"scheduler": value, "cc": value, "flows": value, "subflows": value});
        for line in [value.to_string(), wrapped.to_string(), format!("{{{text}"), text] {
            for refused in [Session::default().answer(&line).err(), controller::answer(&line).err()] {
                prop_assert!(refused.is_some_and(|it| !it.to_string().is_empty()), "{line}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(3_000)
    ))]

    #[test]
    fn no_question_makes_decide_panic(line in any::<String>(), cut in 0..200_usize, put in any::<char>()) {
        let mut session = Session::default();
        let _ = session.answer(&line);
        let whole = r#"{"scheduler":"blest+rp","state":{"lambda_milli":1200},"connection":{"unsent":3,"send_window":1,"now_ms":5},"subflows":[{"id":0,"srtt_ms":9,"inflight":10,"ssthresh":5},{"id":1,"srtt_ms":1e9,"carried":true}]}"#;
        let mut text: Vec<char> = whole.chars().collect();
        let at = cut.min(text.len() - 1);
        text[at] = put;
        let _ = session.answer(&text.into_iter().collect::<String>());
    }

    #[test]
    fn no_numbers_make_decide_panic(numbers in prop::collection::vec(prop_oneof![
        any::<f64>().prop_filter("JSON has no others", |n| n.is_finite()),
        prop::sample::select(vec![0.0, 1.0, 1e3, 1e9, 1e15, 9e15]),
    ], 9), index in 0..5_usize) {
        let name = plait_sched::SCHEDULERS[index % plait_sched::SCHEDULERS.len()].about.name;
        let [a, b, c, d, e, f, g, h, i] = numbers[..] else { unreachable!() };
        let question = format!(
            r#"{{"scheduler":"{name}+rp","connection":{{"unsent":{a},"now_ms":{b}}},"subflows":[{{"id":0,"srtt_ms":{c},"cwnd":{d},"inflight":{e}}},{{"id":7,"srtt_ms":{f},"rttvar_ms":{g},"cwnd":{h},"ssthresh":{i},"carried":true}}]}}"#
        );
        let _ = Session::default().answer(&question);
    }
}
