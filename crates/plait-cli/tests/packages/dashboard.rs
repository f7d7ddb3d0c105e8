//! The dashboard draws each metric of `plait serve --metrics`, by its kind and its labels.

use plait_core::FallbackCause;
use plait_live::{Opened, Overview};
use plait_report::metrics::{Schedulers, render};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The kind of a metric, and its labels.
#[derive(Default, Debug)]
struct Family {
    kind: String,
    labels: BTreeSet<String>,
}

/// Returns the metrics that a server exports.
fn exported() -> BTreeMap<String, Family> {
    let mut overview = Overview::default();
    // Without clients, these two have no series.
    overview.tally.accepted.insert(Opened { port: 80, rule: None, multipath: true }, 1);
    overview.tally.fallbacks.insert(FallbackCause::Syn, 1);
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    for line in render(&overview, &Schedulers::default()).lines() {
        if let Some((name, kind)) =
            line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            families.entry(name.to_owned()).or_default().kind = kind.to_owned();
        } else if let Some((name, labels)) = line.split_once('{') {
            let labels = labels.split_once('}').unwrap().0.split(',');
            let family = families.get_mut(name).unwrap();
            family.labels.extend(labels.map(|label| label.split_once('=').unwrap().0.to_owned()));
        }
    }
    families
}

/// Returns the queries of a dashboard, each with its legend.
fn queries(dashboard: &Value) -> Vec<(String, String)> {
    let of = |target: &Value, key: &str| target[key].as_str().unwrap().to_owned();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    targets.map(|target| (of(target, "expr"), of(target, "legendFormat"))).collect()
}

/// Returns the metrics that a query uses.
fn metrics(query: &str) -> Vec<&str> {
    let words = query.split(|it: char| !it.is_ascii_alphanumeric() && it != '_');
    words.filter(|word| word.starts_with("plait_")).collect()
}

/// Returns the labels by which a query sums: those in the parentheses after `by`.
fn sums_by(query: &str) -> BTreeSet<String> {
    let labels = query.split_once(" by (").map_or("", |(_, rest)| rest.split_once(')').unwrap().0);
    labels.split(", ").filter(|label| !label.is_empty()).map(str::to_owned).collect()
}

/// Returns the labels that a legend shows.
fn shown(legend: &str) -> BTreeSet<String> {
    legend.split("{{").skip(1).map(|rest| rest.split_once("}}").unwrap().0.to_owned()).collect()
}

/// Returns the faults of a dashboard for these metrics.
fn faults(dashboard: &Value, exported: &BTreeMap<String, Family>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut drawn = BTreeSet::new();
    for (query, legend) in queries(dashboard) {
        for name in metrics(&query) {
            drawn.insert(name.to_owned());
            let Some(family) = exported.get(name) else {
                faults.push(format!("`{query}`: no metric `{name}`"));
                continue;
            };
            if (family.kind == "counter") != query.contains(&format!("rate({name}{{")) {
                faults.push(format!("`{query}`: `{name}` is a {}", family.kind));
            }
            let sums_by = sums_by(&query);
            if !sums_by.is_subset(&family.labels) {
                faults.push(format!("`{query}`: `{name}` has the labels {:?}", family.labels));
            }
            if shown(&legend) != sums_by {
                faults.push(format!("`{query}`: the legend `{legend}` shows other labels"));
            }
        }
    }
    let missing = exported.keys().filter(|name| !drawn.contains(*name));
    faults.extend(missing.map(|name| format!("`{name}` is not drawn")));
    faults
}

fn dashboard() -> Value {
    serde_json::from_str(&super::text("contrib/package/grafana.json")).unwrap()
}

#[test]
fn the_dashboard_draws_every_metric() {
    let exported = exported();
    assert!(exported.len() > 20, "{exported:?}");
    assert_eq!(faults(&dashboard(), &exported), Vec::<String>::new());
}

/// Faults of each kind are found.
#[test]
fn a_dashboard_with_faults_is_refused() {
    let text = dashboard().to_string();
    for (from, to, fault) in [
        ("plait_fallbacks_total", "plait_fallback_total", "no metric `plait_fallback_total`"),
        ("plait_subflows{", "plait_nothing{", "`plait_subflows` is not drawn"),
        ("rate(plait_packets_total{", "abs(plait_packets_total{", "is a counter"),
        ("sum(plait_memory_bytes{", "rate(plait_memory_bytes{", "is a gauge"),
        ("by (subflow)", "by (path)", "has the labels {\"subflow\"}"),
        ("{{cause}}", "{{why}}", "shows other labels"),
    ] {
        assert!(text.contains(from), "{from}");
        let broken = serde_json::from_str(&text.replace(from, to)).unwrap();
        let faults = faults(&broken, &exported());
        assert!(faults.iter().any(|it| it.contains(fault)), "{from}: {faults:?}");
    }
}

/// Grafana needs different numbers for panels, and panels side by side within 24 columns.
#[test]
fn panels_do_not_overlap() {
    let dashboard = dashboard();
    let (mut numbers, mut cells) = (BTreeSet::new(), BTreeSet::new());
    for panel in dashboard["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        assert!(numbers.insert(panel["id"].as_u64().unwrap()), "{title}");
        let at = |key: &str| panel["gridPos"][key].as_u64().unwrap();
        assert!(at("x") + at("w") <= 24, "{title}");
        for x in at("x")..at("x") + at("w") {
            for y in at("y")..at("y") + at("h") {
                assert!(cells.insert((x, y)), "{title} overlaps a panel");
            }
        }
    }
}
