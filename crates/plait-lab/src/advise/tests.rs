use super::*;
use crate::compare::RunOutcome;
use crate::scenario::no_files;
use crate::simulated::Simulator;

fn asked(paths: &[&str], draws: u32) -> Result<Advice, ScenarioError> {
    asked_in_order(paths, draws, false)
}

fn asked_in_order(paths: &[&str], draws: u32, keep_order: bool) -> Result<Advice, ScenarioError> {
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
        loads: Vec::new(),
        keep_order,
    };
    let cancelled = AtomicBool::new(false);
    let control = AdviceControl { progress: &|_, _| {}, cancelled: &cancelled, read: &no_files };
    advise(&options, &Simulator, &control)
}

/// Returns a run of the default scheduler with a goal.
fn played(paths: &[&str], workload: &str, goal: &str) -> RunOutcome {
    let mut raw = RawScenario::new();
    for path in paths {
        raw.argument("path", path).unwrap();
    }
    for (name, text) in [
        ("workload", workload),
        ("schedulers", plait_sched::DEFAULT),
        ("goal", goal),
        ("runs", "1"),
    ] {
        raw.argument(name, text).unwrap();
    }
    let cell = cells(&raw.build_with(&no_files).unwrap()).into_iter().next().unwrap();
    Simulator.run_unless(&cell, 1, &AtomicBool::new(false)).unwrap()
}

fn line<'a>(advice: &'a Advice, name: &str) -> &'a Line {
    advice.lines.iter().find(|it| it.name == name).unwrap()
}

fn goal(advice: &Advice) -> Option<&str> {
    advice.take.as_ref().map(|it| it.goal.as_str())
}

#[test]
fn two_equal_links_are_worth_bonding_for_downloads() {
    let link = "rate=10mbit,rtt=30ms,queue=100ms,loss=0%";
    let advice = asked(&[&format!("a:{link}"), &format!("b:{link}")], 8).unwrap();
    let large = line(&advice, "large downloads");
    assert_eq!(large.verdict, Verdict::Gain);
    let sent: f64 = large.path_bytes.iter().sum();
    let copies: f64 = large.extra_bytes.iter().sum();
    assert!(sent >= 8e6 + copies && sent < 9.5e6, "{large:?}");
    // Without prices, goals are not compared.
    assert!(advice.goals.is_empty() && goal(&advice) == Some("aggregate"));
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

/// The rates of two paths behind one link are known with an error each, as `plait measure` finds them. Some draws then
/// gain, and for calls the interval is wide, but nothing is to be gained.
#[test]
fn a_shared_bottleneck_of_uncertain_paths_gains_nothing() {
    let paths = [
        "a:rate=18mbit..22mbit,rtt=22ms,via=home",
        "b:rate=17mbit..23mbit,rtt=60ms,via=home",
        "link home:rate=20mbit",
    ];
    let advice = asked(&paths, 12).unwrap();
    assert_eq!(advice.shared.as_deref(), Some("home"));
    let answer = &advice.answer;
    assert!(
        answer.starts_with("Don't bond the links for speed: nothing is to be gained"),
        "{answer}"
    );
    assert!(answer.contains("one bottleneck (home)"), "{answer}");
    // The second path still helps while the first one is down.
    assert!(answer.contains("As a backup"), "{answer}");
    assert_eq!(goal(&advice), Some("handover"));
}

/// A shared link that both paths together cannot fill is no bottleneck.
#[test]
fn a_wide_shared_link_is_no_bottleneck() {
    let link = "rate=10mbit,rtt=30ms,queue=100ms,loss=0%,via=home";
    let paths = [format!("a:{link}"), format!("b:{link}"), "link home:rate=200mbit".to_owned()];
    let advice = asked(&paths.each_ref().map(String::as_str), 6).unwrap();
    assert!(advice.answer.starts_with("Bond the links"), "{}", advice.answer);
    assert_eq!((advice.shared.as_deref(), goal(&advice)), (None, Some("aggregate")));
}

/// The column `backup` is what the goal handover does, if the best path is the first one: the advice says both.
#[test]
fn a_backup_path_is_the_goal_handover() {
    let first = "a:rate=10mbit,rtt=20ms,queue=100ms,down=3s..5s";
    let delay = |second: &str, goal: &str| {
        played(&[first, second], CALLS.workload, goal)
            .measures
            .value("message_delay_p99_ms")
            .unwrap()
    };
    let backup = delay("b:rate=5mbit,rtt=90ms,queue=100ms,backup", "aggregate");
    assert_eq!(backup, delay("b:rate=5mbit,rtt=90ms,queue=100ms", "handover"));
    assert!(backup > 100.0, "{backup}");
}

/// WiFi carries everything as fast, so the goal to take leaves LTE empty. Only an outage of WiFi uses LTE.
#[test]
fn a_costly_path_that_gains_little_is_spared() {
    let paths = [
        "wifi:rate=40mbit,rtt=20ms,queue=100ms,loss=0%",
        "lte:rate=1mbit,rtt=80ms,queue=100ms,loss=0%,cost=1",
    ];
    let advice = asked(&paths, 6).unwrap();
    let of = |load: &str, goal: &str| {
        let found = advice.goals.iter().find(|it| it.load == load && it.goal == goal);
        found.unwrap_or_else(|| panic!("{load} {goal}: {:?}", advice.goals)).clone()
    };
    let thrifty = of("large downloads", "thrifty");
    assert_eq!(thrifty.path_bytes[1], 0.0, "{thrifty:?}");
    // 8 MB, and what WiFi loses in its queue.
    assert!((8e6..9.5e6).contains(&thrifty.path_bytes[0]), "{thrifty:?}");
    assert!(thrifty.suffices && (0.95..1.05).contains(&thrifty.gain.median), "{thrifty:?}");
    let down = of("calls while wifi is down", "thrifty");
    assert!(down.path_bytes[1] > 1e5 && down.gain.median > 1.2, "{down:?}");
    assert_eq!((advice.prices[1].cost, &advice.prices[1].quota), (1, &None));
    let taken = goal(&advice).unwrap();
    let lte = |goal: &str| {
        let lines = advice.goals.iter().filter(|it| it.goal == goal);
        lines.map(|it| it.path_bytes[1]).sum::<f64>()
    };
    // Bytes of LTE that differ by 1 % of all cost the same.
    let all: f64 = advice.lines.iter().flat_map(|it| &it.path_bytes).sum();
    assert!(lte(taken) <= lte("thrifty") + all * 0.01, "{taken}: {:?}", advice.goals);
}

/// Two like paths: bonding is much faster, so it is worth the bytes on the second one. Each advised goal is the one
/// with the least bytes there among those than which none is more than 5 % faster.
#[test]
fn a_costly_path_that_gains_much_is_used() {
    let paths = [
        "wifi:rate=8mbit,rtt=30ms,queue=100ms,loss=0%",
        "lte:rate=8mbit,rtt=30ms,queue=100ms,loss=0%,cost=1",
    ];
    let advice = asked(&paths, 6).unwrap();
    let large: Vec<&GoalLine> =
        advice.goals.iter().filter(|it| it.load == "large downloads").collect();
    let words: Vec<&str> = large.iter().map(|it| it.goal.as_str()).collect();
    assert_eq!(words, ["aggregate", "interactive", "handover", "thrifty"]);
    assert!(large[0].suffices && large[0].gain.median > 1.4, "{large:?}");
    assert!(!large[3].suffices && large[3].gain.median < 1.05, "{large:?}");
    let fastest = large.iter().map(|it| it.gain.median).fold(0.0, f64::max);
    for it in &large {
        assert_eq!(it.suffices, it.gain.median * 1.05 >= fastest, "{it:?}");
    }
    assert_eq!(large.iter().filter(|it| it.advised && it.suffices).count(), 1, "{large:?}");
    assert!(matches!(goal(&advice), Some("aggregate" | "interactive")), "{advice:?}");
    // The main line is the default goal.
    assert_eq!(line(&advice, "large downloads").gain, large[0].gain);
    assert_eq!(line(&advice, "large downloads").path_bytes, large[0].path_bytes);
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
    assert_eq!(advice.take, None);
}

#[test]
fn an_unknown_direction_is_named_with_its_remedy() {
    let one_way = "rate_down=9mbit,rtt=30ms";
    let advice = asked(&[&format!("a:{one_way}"), &format!("b:{one_way}")], 2).unwrap();
    let start = "Cannot tell: the rate of a and b from client to server is unknown. Give rate_up=";
    assert!(advice.answer.starts_with(start), "{}", advice.answer);
    assert!(advice.answer.contains("iperf3 -c HOST -J and"), "{}", advice.answer);
    let advice = asked(&["a:rate_up=9mbit,rtt=30ms", "b:rate=9mbit,rtt=30ms"], 2).unwrap();
    assert!(advice.answer.contains("of a from server to client"), "{}", advice.answer);
    assert!(advice.answer.contains("iperf3 -c HOST -J -R and"), "{}", advice.answer);
}

/// LTE is faster than the others, but the user spares it: it is not the baseline, and the goal to take keeps it a backup.
#[test]
fn a_backup_is_no_baseline_and_stays_a_backup() {
    let paths = [
        "lte:rate=40mbit,rtt=30ms,queue=100ms,loss=0%,backup",
        "dsl:rate=10mbit,rtt=20ms,queue=100ms,loss=0%",
        "cable:rate=10mbit,rtt=20ms,queue=100ms,loss=0%,backup=off",
    ];
    let advice = asked(&paths, 3).unwrap();
    assert_eq!(advice.backups, ["lte"]);
    assert_eq!(advice.paths.last().map(String::as_str), Some("lte"));
    assert!(advice.lines.iter().all(|it| it.best_path != "lte"), "{advice:?}");
    let large = line(&advice, "large downloads");
    assert!(large.verdict == Verdict::Gain && large.path_bytes[2] == 0.0, "{large:?}");
    let take = advice.take.clone().unwrap();
    assert_eq!((take.goal.as_str(), &take.costs[..]), ("thrifty", &[0, 0, 1][..]));
    // With prices, only goals that keep it a backup are taken.
    let priced = [paths[0], paths[1], "cable:rate=10mbit,rtt=20ms,queue=100ms,loss=0%,cost=2"];
    let advice = asked(&priced, 2).unwrap();
    let take = advice.take.clone().unwrap();
    assert!(["handover", "thrifty"].contains(&take.goal.as_str()), "{take:?}");
    assert_eq!(take.costs, [0, 2, 3]);
    let advised = advice.goals.iter().filter(|it| it.advised);
    assert!(advised.into_iter().all(|it| ["handover", "thrifty"].contains(&it.goal.as_str())));
}

/// If all paths are backups, none is.
#[test]
fn a_backup_beside_backups_is_a_path() {
    let link = "rate=10mbit,rtt=30ms,queue=100ms,loss=0%,backup";
    let advice = asked(&[&format!("a:{link}"), &format!("b:{link}")], 2).unwrap();
    assert!(advice.backups.is_empty() && goal(&advice) == Some("aggregate"), "{advice:?}");
}

/// The commands have no backup paths, but a cost with the goal thrifty sends the same data, except for copies.
#[test]
fn a_backup_is_a_cost_with_the_goal_thrifty() {
    for (workload, measure) in
        [("download:8MB", "completion_ms"), (CALLS.workload, "message_delay_p99_ms")]
    {
        let run = |lte: &str, goal: &str| {
            let a = "a:rate=10mbit,rtt=20ms,queue=100ms,down=3s..5s";
            let b = "b:rate=10mbit,rtt=40ms,queue=100ms,down=3s..4s";
            let measures = played(&[a, b, lte], workload, goal).measures;
            (measures.value(measure).unwrap(), measures.paths[2].sent_bytes)
        };
        let backup = run("lte:rate=20mbit,rtt=50ms,queue=100ms,backup", "aggregate");
        let cost = run("lte:rate=20mbit,rtt=50ms,queue=100ms,cost=1", "thrifty");
        assert!(backup.1 > 0 && cost.1 > 0, "{workload}");
        assert!((0.8..1.25).contains(&(backup.0 / cost.0)), "{workload}: {backup:?} {cost:?}");
    }
}

/// LTE alone would be fastest, but its quota does not suffice for a large download.
#[test]
fn a_path_is_no_baseline_beyond_its_quota() {
    let wifi = "wifi:rate=8mbit,rtt=30ms,queue=100ms,loss=0%";
    let of = |quota: &str| {
        let lte = format!("lte:rate=40mbit,rtt=30ms,queue=100ms,loss=0%,quota={quota}");
        let advice = asked(&[wifi, &lte], 2).unwrap();
        let large = line(&advice, "large downloads");
        (large.best_path.clone(), advice.prices[1].exceeded_by.contains(&large.name))
    };
    assert_eq!(of("1MB"), ("wifi".to_owned(), true));
    assert_eq!(of("8MB"), ("lte".to_owned(), false));
}

#[test]
fn a_path_that_delivers_nothing_keeps_nothing_alive() {
    let wifi = "wifi:rate=20mbit,rtt=20ms,queue=100ms,loss=0%";
    for dead in ["down=0s..", "loss=100%", "mtu=500"] {
        let lte = format!("lte:rate=10mbit,rtt=60ms,{dead}");
        let advice = asked(&[wifi, &lte], 2).unwrap();
        assert!(!advice.answer.contains("alive"), "{dead}: {}", advice.answer);
        let down = line(&advice, "calls while wifi is down");
        assert_eq!((down.verdict, down.backup), (Verdict::Stalled, None), "{dead}");
        assert_eq!(advice.take, None, "{dead}");
    }
    // A path of 1 kbit/s carries no call.
    let advice = asked(&[wifi, "lte:rate=1kbit,rtt=60ms"], 2).unwrap();
    assert!(!advice.answer.contains("alive") && advice.take.is_none(), "{}", advice.answer);
    // The first path is dead: the other one makes loads possible.
    let advice = asked(&["lte:rate=10mbit,rtt=60ms,loss=100%", wifi], 2).unwrap();
    let first = advice.first.unwrap();
    assert!(first.path == "wifi" && first.loads.iter().all(|it| it.only), "{first:?}");
    let both = ["a:rate=9mbit,rtt=60ms,loss=100%", "b:rate=9mbit,rtt=60ms,down=0s.."];
    assert!(asked(&both, 1).unwrap().answer.contains("no load finishes"));
}

/// Two equal costs are no price, as without costs.
#[test]
fn equal_costs_are_no_price() {
    let paths = |cost: &str| {
        let of = |name: &str, rate: u32| format!("{name}:rate={rate}mbit,rtt=20ms{cost}");
        let advice = asked(&[&of("a", 5), &of("b", 10)], 2).unwrap();
        (advice.prices, advice.goals, advice.lines, advice.take)
    };
    let free = paths("");
    assert!(free.0.is_empty() && free.1.is_empty());
    assert_eq!(paths(",cost=3"), free);
    assert!(asked(&["a:rate=5mbit,rtt=20ms,cost=x", "b:rate=5mbit,rtt=20ms,cost=x"], 1).is_err());
}

/// The other loads change little, but an outage harms more than without bonding.
#[test]
fn the_answer_names_an_outage_that_gets_worse() {
    let mut advice = asked(&["a:rate=5mbit,rtt=20ms", "b:rate=10mbit,rtt=30ms"], 2).unwrap();
    assert!(!advice.answer.contains("slower"), "{}", advice.answer);
    let down = advice.lines.iter_mut().find(|it| it.name == "calls while b is down").unwrap();
    down.verdict = Verdict::Loss;
    let answer = judge::answer(&advice);
    assert!(answer.ends_with(" But calls while b is down get slower."), "{answer}");
    // One path at a time is not what the line shows.
    advice.take.as_mut().unwrap().goal = "handover".to_owned();
    assert!(!judge::answer(&advice).contains("slower"));
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

/// The second path has a fifth of the RTT: a small download that begins there is over much sooner.
#[test]
fn connections_begin_on_a_second_path_with_a_short_rtt() {
    let slow = "a:rate=10mbit,rtt=150ms,queue=100ms,loss=0%";
    let fast = "b:rate=10mbit,rtt=30ms,queue=100ms,loss=0%";
    let advice = asked(&[slow, fast], 6).unwrap();
    let found = advice.first.clone().unwrap_or_else(|| panic!("{advice:?}"));
    assert_eq!((found.path.as_str(), &advice.paths[..]), ("b", &["b", "a"].map(str::to_owned)[..]));
    let small = found.loads.iter().find(|it| it.load == "small downloads").unwrap();
    assert!(small.gain.low > 1.0 && small.gain.median > 1.3, "{small:?}");
    assert!(advice.answer.contains(" Begin on b (as the first"), "{}", advice.answer);
    // The lines are those of the other order, in which there is nothing to change.
    let other = asked(&[fast, slow], 6).unwrap();
    assert_eq!((other.first, &other.lines), (None, &advice.lines));
    assert!(!other.answer.contains("Begin on"), "{}", other.answer);
}

/// With the order kept, the advice says how much the other one would help.
#[test]
fn the_order_is_kept_if_it_is_asked_for() {
    let slow = "a:rate=10mbit,rtt=150ms,queue=100ms,loss=0%";
    let fast = "b:rate=10mbit,rtt=30ms,queue=100ms,loss=0%";
    let advice = asked_in_order(&[slow, fast], 6, true).unwrap();
    let small = line(&advice, "small downloads");
    assert!(advice.first.is_none() && advice.paths == ["a", "b"]);
    let found = advice.remedies.iter().find_map(|it| it.first.as_ref()).unwrap();
    assert_eq!(found.path, "b");
    let faster = found.loads.iter().find(|it| it.load == small.name).unwrap().gain.median;
    let better = asked(&[slow, fast], 6).unwrap();
    let gain = line(&better, "small downloads").gain.median / small.gain.median;
    assert!((gain / faster - 1.0).abs() < 0.1, "{gain} {faster}");
}

/// The second path would be faster to begin on, but it costs more, or is a backup. A backup has all lines, too.
#[test]
fn connections_do_not_begin_on_a_path_that_is_spared() {
    let slow = "a:rate=10mbit,rtt=150ms,queue=100ms,loss=0%";
    for spared in ["cost=2", "quota=1GB", "backup"] {
        let fast = format!("b:rate=10mbit,rtt=30ms,queue=100ms,loss=0%,{spared}");
        let advice = asked(&[slow, &fast], 3).unwrap();
        assert_eq!((advice.first, &advice.paths[0][..]), (None, "a"), "{spared}");
        assert_eq!((advice.drawn.draws, advice.lines.len()), (3, 7), "{spared}");
    }
}

/// The fastest of three paths costs more, so the next one is taken.
#[test]
fn a_costly_path_does_not_keep_another_one_from_being_first() {
    let paths = [
        "a:rate=8mbit,rtt=200ms,queue=100ms,loss=0%",
        "b:rate=8mbit,rtt=60ms,queue=100ms,loss=0%,backup=off",
        "c:rate=8mbit,rtt=25ms,queue=100ms,loss=0%,cost=1",
    ];
    let advice = asked(&paths, 3).unwrap();
    assert_eq!(advice.first.map(|it| it.path).as_deref(), Some("b"));
}

#[test]
fn an_interrupted_search_is_no_answer() {
    let mut raw = RawScenario::new();
    raw.argument("path", "a:rate=10mbit,rtt=150ms").unwrap();
    raw.argument("path", "b:rate=10mbit,rtt=30ms").unwrap();
    let options = Options {
        raw,
        draws: 4,
        seed: 1,
        spread: 1.25,
        jobs: NonZeroUsize::new(1),
        command: "plait advise".to_owned(),
        loads: Vec::new(),
        keep_order: false,
    };
    let cancelled = AtomicBool::new(false);
    // The third draw of the search ends, and no more.
    let progress = |done: usize, _: usize| cancelled.store(done >= 3, Ordering::Relaxed);
    let control = AdviceControl { progress: &progress, cancelled: &cancelled, read: &no_files };
    let advice = advise(&options, &Simulator, &control).unwrap();
    assert!(advice.drawn.interrupted && advice.first.is_none() && advice.paths == ["a", "b"]);
    assert_eq!(advice.answer, "Cannot tell: interrupted before the first draw ended.");
    assert_eq!(advice.take, None);
}

#[test]
fn the_order_of_equal_paths_does_not_matter() {
    let link = "rate=10mbit,rtt=30ms,queue=100ms,loss=0%";
    let advice = asked(&[&format!("a:{link}"), &format!("b:{link}")], 6).unwrap();
    assert_eq!(advice.first, None);
}

/// Of three paths, the last one is tried as the first too. The others keep their order.
#[test]
fn each_later_path_is_tried_as_the_first() {
    let paths = [
        "a:rate=8mbit,rtt=200ms,queue=100ms,loss=0%",
        "b:rate=8mbit,rtt=90ms,queue=100ms,loss=0%",
        "c:rate=8mbit,rtt=25ms,queue=100ms,loss=0%",
    ];
    let advice = asked(&paths, 4).unwrap();
    assert_eq!(advice.first.as_ref().map(|it| it.path.as_str()), Some("c"));
    assert_eq!(advice.paths, ["c", "a", "b"]);
}
