//! Checks that every figure of every experiment is well formed and that no labels overlap.

use super::*;
use plait_lab::experiment::{Experiment, Plan, RunRecord, experiments};
use plait_lab::scenario::no_files;
use roxmltree::{Document, Node};

/// Least width of a letter in the pages' fonts at 10.5 px.
const LETTER: f64 = 6.0;

/// Returns made-up results for the measures of the figures: values of several magnitudes, with runs
/// that differ.
fn imagined(experiment: &Experiment) -> Results {
    let plan = Plan::of(experiment, false, &no_files).unwrap_or_else(|error| panic!("{error}"));
    let measures: Vec<String> = experiment
        .pictures
        .iter()
        .flat_map(|it| match it.kind {
            PictureKind::Time => {
                (0..60).map(|second| format!("{}.{second}s", it.measure)).collect()
            }
            _ => vec![it.measure.clone()],
        })
        .collect();
    let record = |cell: usize, run: usize| {
        let value = |at: usize| {
            let size = [1e-4, 0.03, 1.0, 2_000.0, 3e6][(cell + at) % 5];
            size * (1.0 + ((cell * 7 + run * 3) % 11) as f64 / 10.0)
        };
        let values = measures.iter().enumerate().map(|(at, name)| (name.clone(), value(at)));
        Some(RunRecord { values: values.collect(), ..RunRecord::default() })
    };
    let runs = (0..plan.cells.len()).map(|cell| (0..3).map(|run| record(cell, run)).collect());
    Results { runs: runs.collect(), plan }
}

struct Label {
    text: String,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

fn label(node: Node<'_, '_>) -> Label {
    let number = |name: &str| -> f64 {
        node.attribute(name).and_then(|it| it.parse().ok()).unwrap_or_else(|| panic!("{name}"))
    };
    let (x, y, class) = (number("x"), number("y"), node.attribute("class").unwrap_or_default());
    let text = node.text().unwrap_or_default().to_owned();
    let long = LETTER * text.chars().count() as f64;
    let start = match class.split(' ').nth(1) {
        Some("m") => -long / 2.0,
        Some("e") => -long,
        _ => 0.0,
    };
    // Upright letters reach 8 above their baseline and 3 below it.
    let (left, right, top, bottom) = match node.attribute("transform") {
        Some(_) => (x - 8.0, x + 3.0, y + start, y + start + long),
        None => (x + start, x + start + long, y - 8.0, y + 3.0),
    };
    Label { text, left, right, top, bottom }
}

fn check(drawn: &Drawn, wrong: &mut Vec<String>) {
    let document = match Document::parse(&drawn.svg) {
        Ok(document) => document,
        Err(error) => return wrong.push(format!("{}: {error}: {}", drawn.name, drawn.svg)),
    };
    let frame = document.root_element().attribute("viewBox").unwrap_or_default();
    let frame: Vec<f64> = frame.split(' ').filter_map(|it| it.parse().ok()).collect();
    let labels: Vec<Label> =
        document.descendants().filter(|it| it.has_tag_name("text")).map(label).collect();
    for (at, one) in labels.iter().enumerate() {
        if one.left < -1.0 || one.right > frame[2] + 1.0 || one.top < 0.0 || one.bottom > frame[3] {
            wrong.push(format!("{}: `{}` goes beyond the edge", drawn.name, one.text));
        }
        for other in &labels[..at] {
            let across = one.left < other.right && other.left < one.right;
            if across && one.top < other.bottom && other.top < one.bottom {
                wrong.push(format!("{}: `{}` on `{}`", drawn.name, one.text, other.text));
            }
        }
    }
    for node in document.descendants() {
        for attribute in node.attributes() {
            let (name, value) = (attribute.name(), attribute.value());
            if value.contains("NaN") || value.contains("inf") {
                wrong.push(format!("{}: {name}=\"{value}\"", drawn.name));
            }
        }
    }
}

#[test]
fn the_pictures_of_every_experiment_are_well_formed_and_legible() {
    let all = experiments(None).unwrap_or_else(|error| panic!("{error}"));
    let (mut wrong, mut count) = (Vec::new(), 0);
    for experiment in all.iter().filter(|it| !it.pictures.is_empty()) {
        let drawn = drawing(&imagined(experiment));
        assert!(!drawn.is_empty(), "{}", experiment.id);
        drawn.iter().for_each(|it| check(it, &mut wrong));
        count += drawn.len();
    }
    assert!(wrong.is_empty() && count > 100, "{count} pictures\n{}", wrong.join("\n"));
}

/// Every kind with features that the experiments lack: many rows, long names, two logarithmic axes,
/// no axis at all.
#[test]
fn every_kind_is_legible_at_its_worst() {
    let kinds = [
        ("line", "x = \"size\"\nlog = \"xy\""),
        ("line", "x = \"size\""),
        ("line", "x = \"word\""),
        ("bars", "x = \"word\"\nlog = \"y\""),
        ("bars", "x = \"size\""),
        ("bars", "pool = [\"size\"]"),
        ("box", "x = \"word\""),
        ("box", "pool = [\"size\", \"word\"]"),
        ("cdf", "x = \"size\"\nlog = \"x\""),
        ("cdf", "pool = [\"size\"]"),
        ("time", "pool = [\"size\"]"),
        ("time", "pool = [\"size\", \"word\"]\nlog = \"y\""),
        ("heat", "x = \"size\"\ny = \"word\""),
        ("heat", "x = \"word\"\ny = \"size\"\nagainst = \"ecf\""),
    ];
    let pictures: String = kinds
        .iter()
        .map(|(kind, more)| {
            let measure = match *kind {
                "time" => "measure = \"gap_max_seg\"",
                _ => "measure = \"path_share.wifi-of-the-neighbour\"",
            };
            format!("[[picture]]\nkind = \"{kind}\"\ntitle = \"<{kind}>\"\n{measure}\n{more}\n")
        })
        .collect();
    let rows: String = ["minrtt", "ecf", "daps", "otias", "blest", "sttf", "stms-a", "stms-c"]
        .iter()
        .enumerate()
        .map(|(at, it)| format!("[row.{it}{}]\nscheduler = \"{it}\"\n", "-longer".repeat(at / 2)))
        .collect();
    let text = format!(
        "title = \"Worst\"\nworkload = \"download:{{size}}\"\nruns = 3\nseed = 1\n\
         until = \"{{word.until}}\"\n\
         [[path]]\nname = \"wifi-of-the-neighbour\"\nrtt = \"20ms\"\nrate = \"20mbit\"\n\
         [[path]]\nname = \"lte\"\nrtt = \"60ms\"\nrate = \"8mbit\"\n\
         [sweep]\nsize = \"10kB..100MB:19\"\nword = [{{ is = \"a network of the <third> generation\", \
         until = \"100s\" }}, {{ is = \"b\", until = \"200s\" }}, {{ is = \"another one & more\", \
         until = \"300s\" }}]\n{rows}{pictures}"
    );
    let experiment =
        Experiment::from_toml("worst.toml", &text).unwrap_or_else(|error| panic!("{error}"));
    let drawn = drawing(&imagined(&experiment));
    for (at, (kind, _)) in kinds.iter().enumerate() {
        let name = format!("worst-{}-", at + 1);
        assert!(drawn.iter().any(|it| it.name.starts_with(&name)), "{kind} {at}");
    }
    let mut wrong = Vec::new();
    drawn.iter().for_each(|it| check(it, &mut wrong));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
