//! The decision vectors that concern this crate, one test each. A test is named `NAME#INDEX`, with
//! the index in the file from zero. Real numbers may differ by one unit of the last place given.

use libtest_mimic::{Arguments, Failed, Trial};
use plait_base::{Span, Time};
use plait_cc::{
    Ack, Congestion, Flow, Flows, IdleRestart, Restarted, Rounds, Settings, Spec, View, balia,
    cubic, lia, olia, reno, restart, wvegas,
};
use serde_json::Value;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/schedulers.json");
const MSS: u32 = 1460;

type Check = fn(&Value, &Value, &str) -> Result<(), Failed>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Arguments::from_args();
    let vectors: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(FILE)?)?;
    let mut trials = Vec::new();
    for (index, vector) in vectors.into_iter().enumerate() {
        let name = vector["name"].as_str().unwrap_or_default().to_owned();
        let check: Check = match name.split('/').next() {
            Some("lia") => check_lia,
            Some("olia") => check_olia,
            Some("balia") => check_balia,
            Some("wvegas") => check_wvegas,
            Some("cubic") => check_cubic,
            Some("ss") => check_slow_start,
            Some("idle") => check_idle,
            _ => continue,
        };
        trials.push(Trial::test(format!("{name}#{index}"), move || {
            check(&vector["inputs"], &vector["expect"], &name)
        }));
    }
    if trials.is_empty() {
        return Err("the file holds no vector of this crate".into());
    }
    libtest_mimic::run(&args, trials).exit()
}

fn real(value: &Value, key: &str) -> Result<f64, Failed> {
    value[key].as_f64().ok_or_else(|| format!("no number `{key}` in {value}").into())
}

fn whole(value: &Value, key: &str) -> Result<u64, Failed> {
    value[key].as_u64().ok_or_else(|| format!("no whole number `{key}` in {value}").into())
}

fn list<'a>(value: &'a Value, what: &str) -> Result<&'a [Value], Failed> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| format!("no list of {what}: {value}").into())
}

fn near(what: &str, ours: f64, expected: &Value, places: i32) -> Result<(), Failed> {
    let theirs = expected.as_f64().ok_or_else(|| format!("{what}: no number: {expected}"))?;
    let unit = libm::pow(10.0, f64::from(-places));
    if (ours - theirs).abs() <= unit {
        Ok(())
    } else {
        Err(format!("{what}: {ours}, not {theirs}").into())
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, ours: &T, theirs: &T) -> Result<(), Failed> {
    if ours == theirs { Ok(()) } else { Err(format!("{what}: {ours:?}, not {theirs:?}").into()) }
}

fn flows(paths: &Value) -> Result<Vec<Flow>, Failed> {
    let flow = |path: &Value| {
        Ok(Flow {
            cwnd: whole(path, "w")?,
            ssthresh: None,
            srtt: Some(Span::from_nanos((real(path, "r")? * 1e9).round() as u64)),
            mss: MSS,
            in_recovery: false,
            live: true,
            loss_interval: path["l"].as_u64().unwrap_or(0),
        })
    };
    list(paths, "paths")?.iter().map(flow).collect()
}

fn view(all: &[Flow], own: usize) -> Result<View<'_>, Failed> {
    View::of(Flows { all, own }).ok_or_else(|| "no such flow".into())
}

/// R77.
fn check_lia(inputs: &Value, expect: &Value, _: &str) -> Result<(), Failed> {
    let all = flows(&inputs["paths"])?;
    let acked = whole(inputs, "acked")?;
    same("paths", &list(&expect["inc"], "increases")?.len(), &all.len())?;
    for own in 0..all.len() {
        let view = view(&all, own)?;
        near("alpha", lia::alpha(&view), &expect["alpha"], 5)?;
        near("inc", lia::increase(acked, &view), &expect["inc"][own], 4)?;
        near("reno", reno::increase(acked, &view), &expect["reno"][own], 4)?;
    }
    Ok(())
}

/// R77.
fn check_olia(inputs: &Value, expect: &Value, name: &str) -> Result<(), Failed> {
    let quality = if name.contains("draft") { olia::Quality::Draft } else { olia::Quality::Paper };
    let all = flows(inputs)?;
    same("paths", &list(expect, "terms")?.len(), &all.len())?;
    for own in 0..all.len() {
        let view = view(&all, own)?;
        near("alpha", olia::terms(&view, quality).a, &expect[own]["alpha"], 4)?;
        let increase = olia::increase(u64::from(MSS), &view, quality);
        near("inc", increase, &expect[own]["inc"], 4)?;
    }
    Ok(())
}

/// R77.
fn check_balia(inputs: &Value, expect: &Value, _: &str) -> Result<(), Failed> {
    let all = flows(&inputs["paths"])?;
    let acked = whole(inputs, "acked")?;
    same("paths", &list(expect, "subflows")?.len(), &all.len())?;
    for own in 0..all.len() {
        let view = view(&all, own)?;
        near("alpha", balia::alpha(&view), &expect[own]["alpha"], 4)?;
        near("inc", balia::increase(acked, &view), &expect[own]["inc"], 4)?;
        let left = balia::reduced(view.own().cwnd, &view) as f64;
        near("loss_to", left, &expect[own]["loss_to"], 0)?;
    }
    Ok(())
}

/// R77: the formulas, and then a round trip of three samples beside a sibling whose rate leaves the
/// given weight.
fn check_wvegas(inputs: &Value, expect: &Value, _: &str) -> Result<(), Failed> {
    let ms = |key| whole(inputs, key).map(Span::from_millis);
    let (base, rtt) = (ms("base")?, ms("rtt")?);
    let (cwnd, weight) = (whole(inputs, "cwnd")?, real(inputs, "weight")?);
    let diff = wvegas::diff(cwnd as f64, base, rtt);
    let alpha = wvegas::alpha(weight);
    near("diff", diff, &expect["diff"], 3)?;
    near("alpha", alpha, &expect["alpha"], 3)?;
    near("next", wvegas::next(cwnd as f64, diff, alpha), &expect["next"], 3)?;

    let mss = u64::from(MSS);
    let flow = |cwnd: f64| Flow {
        cwnd: (cwnd * mss as f64).round() as u64,
        ssthresh: Some(0),
        srtt: Some(rtt),
        mss: MSS,
        in_recovery: false,
        live: true,
        loss_interval: 0,
    };
    let all = [flow(cwnd as f64), flow(cwnd as f64 * (1.0 - weight) / weight)];
    let settings = Settings { mss: MSS, ..Settings::default() };
    let mut congestion = Congestion::resumed(settings, Spec::parse("wvegas")?.build(), &all[0]);
    // The lowest sample belongs to an earlier round.
    let samples = [(base, true), (rtt, false), (rtt, false), (rtt, true)];
    for (sample, round) in samples {
        let ack = Ack {
            now: Time::ZERO,
            bytes: mss,
            rtt: Some(sample),
            srtt: rtt,
            min_rtt: base,
            cwnd_limited: round && sample == rtt,
            round,
            acked: 0,
            sent: 0,
        };
        congestion.on_ack(&ack, Flows { all: &all, own: 0 });
    }
    same("window", &congestion.cwnd(), &(whole(expect, "next")? * mss))
}

fn check_cubic(inputs: &Value, expect: &Value, _: &str) -> Result<(), Failed> {
    if expect.get("K").is_some() {
        let cwnd = real(inputs, "cwnd_epoch")?;
        let curve = cubic::Curve::new(real(inputs, "wmax")?, cwnd);
        let (secs, rtt) = (real(inputs, "t")?, real(inputs, "rtt")?);
        near("K", curve.k, &expect["K"], 4)?;
        near("W_now", curve.at(secs), &expect["W_now"], 4)?;
        return near("W_next_rtt", curve.target(secs + rtt, cwnd), &expect["W_next_rtt"], 4);
    }
    same("beta", &cubic::BETA, &real(inputs, "beta")?)?;
    near("alpha", cubic::ALPHA, &expect["alpha"], 4)?;
    let at_loss = real(inputs, "cwnd_at_loss")?;
    let w_max = cubic::w_max_after(at_loss, real(inputs, "prev_wmax")?);
    near("new_wmax", w_max, &expect["new_wmax"], 4)?;
    let after = cubic::threshold(whole(inputs, "cwnd_at_loss")? * u64::from(MSS), u64::from(MSS));
    same("cwnd_after", &after, &(whole(expect, "cwnd_after")? * u64::from(MSS)))
}

/// R68.
fn check_slow_start(inputs: &Value, expect: &Value, _: &str) -> Result<(), Failed> {
    let settings = Settings { mss: 1448, ssthresh: Some(64 << 10), ..Settings::default() };
    let rounds: Vec<_> = Rounds::new(settings, whole(inputs, "segs")?)
        .map(|round| serde_json::json!([round.window, round.total]))
        .collect();
    if let Some(count) = expect.get("rounds") {
        same("rounds", &Some(rounds.len() as u64), &count.as_u64())?;
    }
    let trace = expect.get("trace").unwrap_or(expect);
    same("trace", &Value::from(rounds), trace)
}

/// R68.
fn check_idle(inputs: &Value, expect: &Value, name: &str) -> Result<(), Failed> {
    let mode = if name.contains("5681") { IdleRestart::Rfc5681 } else { IdleRestart::Linux };
    let mss = u64::from(MSS);
    let settings = Settings {
        mss: MSS,
        initial_window: u32::try_from(whole(inputs, "iw")?)?,
        ..Settings::default()
    };
    let window = Restarted {
        cwnd: whole(inputs, "cwnd")? * mss,
        ssthresh: Some(whole(inputs, "ssthresh")? * mss),
    };
    let idle = Span::from_millis(whole(inputs, "idle")?);
    let rto = Span::from_millis(whole(inputs, "rto")?);
    let after = restart(mode, &settings, window, idle, rto);
    same("cwnd", &after.cwnd, &(whole(expect, "cwnd")? * mss))?;
    match expect.get("ssthresh") {
        Some(_) => same("ssthresh", &after.ssthresh, &Some(whole(expect, "ssthresh")? * mss)),
        None => same("ssthresh", &after.ssthresh, &window.ssthresh),
    }
}
