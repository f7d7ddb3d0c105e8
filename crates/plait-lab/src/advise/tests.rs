use super::*;
use crate::scenario::no_files;
use crate::simulated::Simulator;

fn asked(paths: &[&str], draws: u32) -> Result<Advice, ScenarioError> {
    let mut raw = RawScenario::new();
    for path in paths {
        let name = if path.starts_with("link ") { "link" } else { "path" };
        raw.argument(name, path.trim_start_matches("link ")).unwrap();
    }
    let options = Options {
        raw,
        draws,
        seed: 1,
        spread: 1.25,
        jobs: None,
        command: "plait advise".to_owned(),
    };
    let cancelled = AtomicBool::new(false);
    let control = AdviceControl { progress: &|_, _| {}, cancelled: &cancelled, read: &no_files };
    advise(&options, &Simulator, &control)
}

fn line<'a>(advice: &'a Advice, name: &str) -> &'a Line {
    advice.lines.iter().find(|it| it.name == name).unwrap()
}

#[test]
fn two_equal_links_are_worth_bonding_for_downloads() {
    let link = "rate=10mbit,rtt=30ms,queue=100ms,loss=0%";
    let advice = asked(&[&format!("a:{link}"), &format!("b:{link}")], 8).unwrap();
    let large = line(&advice, "large downloads");
    assert_eq!(large.verdict, Verdict::Gain);
    assert!(large.gain.median > 1.4 && large.gain.median < 2.1, "{large:?}");
    assert!(large.gain.low <= large.gain.median && large.gain.median <= large.gain.high);
    assert!(advice.answer.starts_with("Bond the links"), "{}", advice.answer);
    assert_eq!(advice, asked(&[&format!("a:{link}"), &format!("b:{link}")], 8).unwrap());
}

#[test]
fn a_shared_bottleneck_gains_nothing() {
    let paths = [
        "a:rate=100mbit,rtt=30ms,queue=100ms,loss=0%,via=home",
        "b:rate=100mbit,rtt=30ms,queue=100ms,loss=0%,via=home",
        "link home:rate=10mbit,queue=100ms",
    ];
    let advice = asked(&paths, 8).unwrap();
    let large = line(&advice, "large downloads");
    assert_eq!(large.verdict, Verdict::Nothing, "{large:?}");
    assert!(!advice.answer.starts_with("Bond"), "{}", advice.answer);
}

#[test]
fn an_unknown_rate_is_no_advice() {
    let advice = asked(&["a:rate=10mbit,rtt=30ms", "b:rtt=30ms"], 2).unwrap();
    assert!(
        advice.answer.starts_with("Cannot tell: the rate of b is unknown"),
        "{}",
        advice.answer
    );
    assert!(advice.lines.is_empty() && advice.unknown_rates == ["b"]);
}

#[test]
fn one_path_and_bad_ranges_are_refused() {
    assert!(asked(&["a:rate=10mbit,rtt=30ms"], 2).unwrap_err().to_string().contains("two links"));
    let error = asked(&["a:rate=10mbit..5mbit,rtt=30ms", "b:rate=1mbit,rtt=9ms"], 2).unwrap_err();
    assert!(error.to_string().contains("--path a:rate"), "{error}");
}

/// The second path saves the calls of the best path. An outage of the other path changes nothing for it.
#[test]
fn an_outage_counts_against_the_best_path_alone() {
    let paths =
        ["a:rate=10mbit,rtt=20ms,queue=100ms,loss=0%", "b:rate=5mbit,rtt=90ms,queue=100ms,loss=0%"];
    let advice = asked(&paths, 6).unwrap();
    let down = line(&advice, "calls while a is down");
    assert!(down.verdict == Verdict::Gain && down.best_path == "a", "{down:?}");
    assert!(down.backup.unwrap().median > 1.2, "{down:?}");
    let other = line(&advice, "calls while b is down");
    assert!(other.best_path == "a" && other.backup.is_none(), "{other:?}");
    assert!(other.alone < 100.0 && other.gain.median < 1.2, "{other:?}");
}
