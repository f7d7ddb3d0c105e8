use super::*;
use plait_lab::advise::{Choice, Drawn, FirstLine, FirstPath, Price, Remedy};

fn taken(goal: &str) -> Option<Choice> {
    Some(Choice { scheduler: "slot".to_owned(), goal: goal.to_owned(), costs: Vec::new() })
}

/// Returns the advice for two paths, of which the second one has a cost and a quota.
pub(crate) fn advice() -> Advice {
    let gain = |low, median, high| Gain { low, median, high };
    let line = |name: &str, gain: Gain, verdict| Line {
        name: name.to_owned(),
        workload: "download:8MB".to_owned(),
        outage: false,
        measure: "completion_ms".to_owned(),
        best_path: "wifi".to_owned(),
        alone: 3000.0,
        bonded: 2000.0,
        gain,
        tail: 1.2,
        backup: None,
        shares: vec![0.75, 0.25],
        extra: 0.01,
        path_bytes: vec![6e6, 2.08e6],
        extra_bytes: vec![20e3, 60e3],
        verdict,
    };
    let mut down = line("calls while wifi is down", gain(150.0, 190.0, 210.0), Verdict::Gain);
    (down.outage, down.backup) = (true, Some(gain(140.0, 180.0, 200.0)));
    let goal = |load: &str, goal: &str, median: f64, lte: f64, (suffices, advised)| GoalLine {
        load: load.to_owned(),
        goal: goal.to_owned(),
        gain: gain(median, median, median),
        path_bytes: vec![8e6 - lte, lte],
        suffices,
        advised,
    };
    Advice {
        schema: plait_lab::advise::SCHEMA.to_owned(),
        command: "plait advise --path 'wifi:rate=<5mbit>' --draws 9".to_owned(),
        drawn: Drawn { seed: 1, draws: 9, interrupted: false },
        first: None,
        paths: vec!["wifi".to_owned(), "lte".to_owned()],
        known: vec!["rate=20mbit..30mbit,rtt=22ms".to_owned(), "rate=8mbit,cost=2".to_owned()],
        prices: vec![
            Price { cost: 0, quota: None, exceeded_by: Vec::new() },
            Price { cost: 2, quota: Some("1GB".to_owned()), exceeded_by: Vec::new() },
        ],
        backups: Vec::new(),
        shared: None,
        unknown_rates: Vec::new(),
        answer: "Bond the links: large downloads gain, and the other loads change little."
            .to_owned(),
        take: Some(Choice { costs: vec![0, 2], ..taken("interactive").unwrap() }),
        lines: vec![
            line("large downloads", gain(1.2, 1.5, 1.8), Verdict::Gain),
            line("video", gain(0.5, 0.98, 1.02), Verdict::Unclear),
            down,
        ],
        goals: vec![
            goal("large downloads", "interactive", 1.5, 2e6, (true, true)),
            goal("large downloads", "thrifty", 1.0, 0.0, (false, false)),
        ],
        remedies: Vec::new(),
    }
}

#[test]
fn the_goal_comes_with_its_bytes_and_with_the_price_of_thrift() {
    let text = text(&advice(), 140, false);
    for part in [
        "Use the scheduler slot with the goal interactive: for every load, no goal is more than 5 % faster.",
        "A large download then sends 6.00 MB on wifi and 2.00 MB on lte.",
        "With thrifty, large downloads are 1.50x slower, with 0 B in place of 2.00 MB on lte.",
    ] {
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(words.join(" ").contains(part), "{part}: {text}");
    }
    assert!(text.contains("6.00/2.08 MB"), "{text}");
    assert!(text.contains("*1.50x 2.00 MB") && text.contains("  1.00x 0 MB\n"), "{text}");
}

#[test]
fn the_commands_have_the_paths_the_prices_and_the_goal() {
    let mut advice = advice();
    let lines = |advice: &Advice| -> Vec<String> {
        commands(advice).into_iter().map(|it| it.line).collect()
    };
    assert_eq!(
        lines(&advice)[..2],
        [
            "plait serve --listen ADDRESS:80 --to 127.0.0.1:8080 --cost NETWORK_OF_LTE=2 \
             --quota NETWORK_OF_LTE=1GB --goal interactive",
            "plait get http://ADDRESS/file --from wifi --from lte --cost lte=2 --quota lte=1GB --goal interactive",
        ]
    );
    // One path at a time begins on the one that the others back up.
    (advice.prices, advice.goals) = (Vec::new(), Vec::new());
    advice.take = taken("handover");
    advice.lines[2].best_path = "lte".to_owned();
    assert_eq!(
        lines(&advice)[1],
        "plait get http://ADDRESS/file --from lte --from wifi --goal handover"
    );
    assert!(goal(&advice).unwrap().contains("begin on lte"), "{:?}", goal(&advice));
    advice.take = taken("aggregate");
    assert_eq!(lines(&advice)[1], "plait get http://ADDRESS/file --from wifi --from lte");
    advice.take = None;
    assert!(lines(&advice).is_empty() && goal(&advice).is_none());
}

#[test]
fn the_values_of_a_load_have_the_bytes_on_each_path() {
    let csv = csv(&advice());
    assert!(
        csv.contains(",verdict,path_bytes.wifi,extra_bytes.wifi,path_bytes.lte,extra_bytes.lte\n")
    );
    assert!(csv.contains(",gain,6000000,20000,2080000,60000\n"), "{csv}");
    let markdown = markdown(&advice());
    assert!(markdown.contains("\n```console\n# on the server\nplait serve"), "{markdown}");
}

#[test]
fn another_first_path_is_in_the_sentence_and_in_the_commands() {
    let mut advice = advice();
    advice.prices = Vec::new();
    advice.goals = Vec::new();
    advice.take = taken("aggregate");
    let usual = text(&advice, 200, false);
    assert!(usual.contains("--from wifi --from lte") && !usual.contains("to begin on"), "{usual}");
    let gain = Gain { low: 1.5, median: 1.9, high: 2.2 };
    let small = FirstLine { load: "small downloads".to_owned(), gain, only: false };
    let first = FirstPath { path: "lte".to_owned(), loads: vec![small] };
    advice.remedies = vec![Remedy {
        change: "to begin on lte (as the first --from or --path)".to_owned(),
        load: "small downloads".to_owned(),
        gain: 1.9,
        first: Some(first.clone()),
    }];
    let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let kept = words(text(&advice, 200, false));
    for part in [
        "What else helps the bonded links: to begin on lte (as the first --from or --path) makes small downloads \
         1.90x faster (1.50x to 2.20x).",
        "--from wifi --from lte",
        "--via wifi --via lte",
    ] {
        assert!(kept.contains(part), "{part}: {kept}");
    }
    // In the better order, the paths begin with it, and the legend says so.
    (advice.remedies, advice.first) = (Vec::new(), Some(first));
    advice.paths.reverse();
    let better = words(text(&advice, 200, false));
    let begin = "Bonded connections begin on lte, which makes small downloads 1.90x faster (1.50x to 2.20x).";
    for part in [begin, "--from lte --from wifi"] {
        assert!(better.contains(part), "{part}: {better}");
    }
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_backup_has_a_cost_in_the_commands() {
    let mut advice = advice();
    (advice.prices, advice.goals) = (Vec::new(), Vec::new());
    advice.backups = vec!["lte".to_owned()];
    advice.take = Some(Choice { costs: vec![0, 1], ..taken("thrifty").unwrap() });
    let text = words(&text(&advice, 200, false));
    for part in [
        "with the goal thrifty. A large download",
        "lte is a backup, so it is not the best path alone.",
        "In the commands, lte costs more than all other paths: with this goal, data goes there only",
        "--from wifi --from lte --cost lte=1 --goal thrifty",
        "plait serve --listen ADDRESS:80 --to 127.0.0.1:8080 --cost NETWORK_OF_LTE=1 --goal thrifty",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("defaults"), "{text}");
}

#[test]
fn the_legend_says_what_the_table_lacks() {
    let mut advice = advice();
    let narrow = words(&text(&advice, 80, false));
    assert!(narrow.contains("Not enough columns for: backup, wifi/lte, extra."), "{narrow}");
    assert!(!words(&text(&advice, 200, false)).contains("Not enough columns"));
    advice.drawn.draws = 1;
    advice.prices[1].exceeded_by = vec!["large downloads".to_owned()];
    advice.lines[2].verdict = Verdict::Stalled;
    let text = words(&text(&advice, 200, false));
    for part in [
        "Over 1 link drawn",
        "With fewer than 10 draws, the range is too narrow",
        "The quota of lte does not suffice for large downloads.",
        "calls while wifi is down: messages wait for the end of the outage.",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// An hour stands for a load that does not end, so ratios with it say nothing.
#[test]
fn a_load_that_does_not_end_has_no_ratio() {
    let mut advice = advice();
    advice.lines[0].alone = 3.6e6;
    let text = words(&text(&advice, 200, false));
    assert!(text.contains("large downloads wifi never 2000 -"), "{text}");
    let gain = Gain { low: 900.0, median: 9_000.0, high: 9_900.0 };
    assert_eq!((times(gain.median), times(0.001)), (">1000x".to_owned(), "<0.01x".to_owned()));
    let small = FirstLine { load: "small downloads".to_owned(), gain, only: true };
    advice.first = Some(FirstPath { path: "lte".to_owned(), loads: vec![small] });
    let sentence = first_sentence(&advice).unwrap();
    assert_eq!(sentence, "Bonded connections begin on lte, which makes small downloads possible.");
}
