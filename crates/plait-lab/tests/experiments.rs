//! Tests the embedded experiments: each can be read and planned, and each claim of the papers
//! occurs exactly once.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

#[path = "experiments/kernels.rs"]
mod kernels;
#[path = "experiments/verdicts.rs"]
mod verdicts;

use plait_lab::experiment::{
    CONFIDENCE, ClaimKind, ClaimVerdict, Experiment, Misses, Plan, Progress, Proven, Results,
    Store, Unrun, experiments, file_schema, judge, run,
};
use plait_lab::scenario::no_files;
use plait_lab::{Simulator, World};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const OWN: &str = env!("CARGO_MANIFEST_DIR");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn all() -> Vec<Experiment> {
    experiments(None).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_experiment_can_be_planned_whole_and_quick() {
    let mut wrong = Vec::new();
    for experiment in all() {
        for (quick, plan) in [
            (false, Plan::of(&experiment, false, &no_files)),
            (true, Plan::of(&experiment.quickened(), true, &no_files)),
        ] {
            match plan {
                Ok(plan) if plan.cells.is_empty() && !quick => wrong.push(experiment.id.clone()),
                Ok(_) => {}
                Err(error) => wrong.push(error.to_string()),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_claim_is_judged_once_and_a_miss_is_a_claim() {
    let mut kinds: BTreeMap<String, ClaimKind> = BTreeMap::new();
    for claim in all().iter().flat_map(|experiment| &experiment.claims) {
        let before = kinds.insert(claim.id.clone(), claim.kind);
        assert_eq!(before, None, "{} stands twice", claim.id);
    }
    let proven = Proven::embedded().unwrap().0;
    for id in Misses::embedded().unwrap().0.keys() {
        assert!(kinds.contains_key(id), "{id} is listed as a miss and judged nowhere");
    }
    for id in proven.keys() {
        assert_eq!(
            kinds.insert(id.clone(), ClaimKind::Exact),
            None,
            "{id} is judged and proven by a test"
        );
    }
    for (id, claim) in Unrun::embedded().unwrap().0 {
        let before = kinds.insert(id.clone(), claim.kind);
        assert_eq!(before, None, "{id} is in unrun.toml, and judged or proven");
    }
    // The lists have every claim of the papers.
    let mut count = BTreeMap::new();
    for (id, kind) in &kinds {
        *count.entry((id.split('-').next().unwrap(), *kind)).or_insert(0) += 1;
    }
    let catalogue = [
        ("csws", [13, 5, 8]),
        ("ecf", [22, 9, 11]),
        ("imc", [23, 9, 7]),
        ("stms", [22, 16, 14]),
        ("ton", [21, 18, 19]),
        ("web", [2, 0, 1]),
    ];
    for (paper, counts) in catalogue {
        for (kind, wanted) in
            [ClaimKind::Hard, ClaimKind::Soft, ClaimKind::Exact].into_iter().zip(counts)
        {
            let found = count.get(&(paper, kind)).copied().unwrap_or(0);
            assert_eq!(found, wanted, "{paper}, {}", kind.name());
        }
    }
}

/// A quick run judges exactly these claims.
#[test]
fn the_core_claims_are_those_of_the_catalogue() {
    let core = "csws-h1 csws-h3 csws-h8 csws-h9 ecf-h10 ecf-h11 ecf-h13 ecf-u2 imc-h1 imc-h10 imc-h18 \
        imc-h23 imc-u1 stms-h13 stms-h19 stms-h20 stms-h7 stms-u3 ton-h10 ton-h11 ton-h15 ton-h16 ton-h17 \
        ton-h8 ton-u16";
    let core: BTreeSet<String> = core.split_whitespace().map(str::to_owned).collect();
    assert_eq!(core.len(), 25);
    let proven = Proven::embedded().unwrap().0;
    let quick: BTreeSet<String> =
        all().iter().flat_map(|it| it.quickened().claims).map(|claim| claim.id).collect();
    let by_tests = core.iter().filter(|id| proven.contains_key(*id)).cloned();
    assert_eq!(quick.iter().cloned().chain(by_tests).collect::<BTreeSet<String>>(), core);
}

/// Every test that is listed as a proof exists.
#[test]
fn proofs_are_there() {
    for (id, claim) in Proven::embedded().unwrap().0 {
        for (file, test) in claim.proofs() {
            let text = std::fs::read_to_string(Path::new(ROOT).join(file))
                .unwrap_or_else(|error| panic!("{id}: {file}: {error}"));
            assert!(text.contains(&format!("fn {test}(")), "{id}: no test {test} in {file}");
        }
    }
}

/// A test that names a claim in its documentation is listed as one of its proofs.
#[test]
fn proofs_are_complete_for_claims_of_several_parts() {
    for (id, count) in [
        ("csws-u6", 3),
        ("csws-u7", 3),
        ("imc-u7", 2),
        ("ecf-u9", 2),
        ("ecf-u10", 2),
        ("stms-u8", 2),
        ("ton-u6", 2),
    ] {
        let proven = Proven::embedded().unwrap();
        assert!(proven.0[id].proofs().count() >= count, "{id}");
    }
}

/// `PLAIT_BLESS=1 cargo test -p plait-lab --test experiments` writes the file.
#[test]
fn the_schema_of_the_files_is_the_one_that_is_written_down() {
    let file = Path::new(OWN).join("experiments/schema.json");
    let text = serde_json::to_string_pretty(&file_schema()).unwrap() + "\n";
    if std::env::var_os("PLAIT_BLESS").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    assert!(std::fs::read_to_string(&file).unwrap() == text, "it drifted; see above");
}

/// Collects the names in `file` that `schema` does not know, in nested tables too.
fn unknown_names(schema: &Value, root: &Value, file: &Value, unknown: &mut Vec<String>) {
    let reference = schema["$ref"].as_str().and_then(|it| it.strip_prefix('#'));
    if let Some(whole) = reference.and_then(|it| root.pointer(it)) {
        return unknown_names(whole, root, file, unknown);
    }
    // If several forms are allowed, takes the table.
    let mut forms = schema["anyOf"].as_array().into_iter().flatten();
    let schema = forms.find(|it| it["properties"].is_object()).unwrap_or(schema);
    match file {
        Value::Object(table) if schema["properties"].is_object() => {
            for (name, value) in table {
                match (&schema["properties"][name], &schema["additionalProperties"]) {
                    (Value::Null, Value::Bool(false)) => unknown.push(name.clone()),
                    (Value::Null, _) => {}
                    (known, _) => unknown_names(known, root, value, unknown),
                }
            }
        }
        Value::Array(rows) => {
            rows.iter().for_each(|row| unknown_names(&schema["items"], root, row, unknown));
        }
        _ => {}
    }
}

/// Editors use the schema and underline errors.
#[test]
fn the_schema_knows_every_name_in_the_files() {
    let (schema, mut looked_at) = (file_schema(), 0);
    for directory in std::fs::read_dir(Path::new(OWN).join("experiments")).unwrap() {
        let Ok(files) = std::fs::read_dir(directory.unwrap().path()) else { continue };
        for file in files.map(|it| it.unwrap().path()) {
            let text = std::fs::read_to_string(&file).unwrap();
            let Ok(read) = toml::from_str::<Value>(&text) else { continue };
            let mut unknown = Vec::new();
            unknown_names(&schema, &schema, &read, &mut unknown);
            assert!(unknown.is_empty(), "{}: {unknown:?}", file.display());
            looked_at += 1;
        }
    }
    assert!(looked_at > 40, "{looked_at} files");
    let mut unknown = Vec::new();
    let wrong = toml::from_str::<Value>("idle_restart = 1\n[[path]]\nratte = 1\n").unwrap();
    unknown_names(&schema, &schema, &wrong, &mut unknown);
    assert_eq!(unknown, ["idle_restart", "ratte"]);
}

const SMALL: &str = r#"
title = "Small"
workload = "download:{size}"
runs = 4
[[path]]
name = "wifi"
rtt = "20ms"
rate = "20mbit"
loss = "1%"
[[path]]
name = "lte"
rtt = "{rtt}"
rate = "8mbit"
[sweep]
size = ["20kB", "100kB"]
rtt = ["40ms", "80ms"]
[row]
tcp = { single = "wifi", only = { rtt = ["40ms"] } }
lrf = { scheduler = "minrtt" }
[[claim]]
id = "x-h1"
kind = "hard"
says = "s"
holds = "for rtt: increasing(lrf.completion_ms) and lrf.completion_ms > 0 and count(lrf.completion_ms.runs[size=20kB] > 0) >= 4"
[[claim]]
id = "x-h2"
kind = "hard"
says = "s"
holds = "lrf.completion_ms[size=20kB] >= lrf.completion_ms[size=100kB]"
[[claim]]
id = "x-u3"
kind = "exact"
core = true
says = "s"
holds = "max(tcp.completion_ms[size=20kB]) <= 2 * tcp.completion_ms.max[size=20kB] and {size: 1, 2} * 2 == {size: 2, 4} and 20 < at(rtt) / 1 <= 80"
"#;

fn plan(text: &str) -> Plan {
    let experiment = Experiment::from_toml("small.toml", text).unwrap_or_else(|it| panic!("{it}"));
    Plan::of(&experiment, false, &no_files).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the results of a complete run.
fn outcome(plan: Plan) -> Results {
    let progress = Progress { told: &|_, _, _| (), cancelled: &AtomicBool::new(false), jobs: None };
    run(vec![plan], &Simulator, &Store::in_memory("1"), &progress).unwrap().remove(0)
}

#[test]
fn claims_are_judged_over_cells() {
    let plan = plan(&SMALL.replace("runs = 4", "runs = 20"));
    // tcp at one rtt and two sizes; lrf at four points.
    assert_eq!((plan.cells.len(), plan.runs()), (6, 120));
    let results = outcome(plan);
    let misses = Misses::from_toml("m", "[x-h1]\nwhy = \"because\"\n").unwrap();
    let judged = judge(&results, &misses, CONFIDENCE);
    let standings: Vec<&ClaimVerdict> = judged.iter().map(|it| &it.standing).collect();
    assert_eq!(standings, [&ClaimVerdict::HoldsAgain, &ClaimVerdict::Fails, &ClaimVerdict::Holds]);
    assert!(judged[0].gates() && judged[1].gates() && !judged[2].gates());
    let misses = Misses::from_toml("m", "[x-h2]\nwhy = \"because\"\n").unwrap();
    let judged = judge(&results, &misses, CONFIDENCE);
    assert_eq!(judged[1].standing, ClaimVerdict::Miss("because".to_owned()));
    assert!(!judged[1].gates());
    // A quick run makes only the runs that its claims use.
    let quick = Plan::of(&results.plan.experiment.quickened(), true, &no_files).unwrap();
    assert_eq!(quick.cells.len(), 1);
    let csv = results.csv();
    assert_eq!(csv.lines().count(), 121);
    assert!(csv.starts_with("experiment,row,size,rtt,run,seed,failure,"), "{csv}");
    assert_eq!(results.json_lines().lines().count(), 120);
}

/// Counts runs of the simulator, and cancels after some.
struct Counted<'a> {
    made: AtomicUsize,
    stop_after: usize,
    cancelled: &'a AtomicBool,
}

impl World for Counted<'_> {
    fn run(&self, cell: &plait_lab::Cell, seed: u64) -> plait_lab::RunOutcome {
        if self.made.fetch_add(1, Ordering::Relaxed) + 1 >= self.stop_after {
            self.cancelled.store(true, Ordering::Relaxed);
        }
        Simulator.run(cell, seed)
    }
}

#[test]
fn an_interrupted_experiment_goes_on_where_it_stopped() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("store");
    let _ = std::fs::remove_dir_all(&directory);
    let made = |stop_after: usize, version: &str, text: &str| {
        let cancelled = AtomicBool::new(false);
        let world = Counted { made: AtomicUsize::new(0), stop_after, cancelled: &cancelled };
        let progress = Progress {
            told: &|_, _, _| (),
            cancelled: &cancelled,
            jobs: std::num::NonZero::new(1),
        };
        let store = Store::in_directory(&directory, version).unwrap();
        let results = run(vec![plan(text)], &world, &store, &progress).unwrap().remove(0);
        (world.made.into_inner(), results)
    };
    let (first, results) = made(7, "1", SMALL);
    assert_eq!((first, results.interrupted()), (7, true));
    assert!(
        judge(&results, &Misses::default(), CONFIDENCE)
            .iter()
            .any(|it| it.standing == ClaimVerdict::Unknown)
    );
    // A truncated line is run again.
    let file = std::fs::read_dir(&directory).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read(&file).unwrap();
    std::fs::write(&file, &text[..text.len() - 9]).unwrap();
    let (second, whole) = made(usize::MAX, "1", SMALL);
    assert_eq!((second, whole.interrupted()), (18, false));
    let (third, again) = made(usize::MAX, "1", SMALL);
    assert_eq!((third, again.runs), (0, whole.runs));
    // Only the inputs of a cell matter: its seed, its paths and the program.
    assert_eq!(made(usize::MAX, "1", &SMALL.replace("\"Small\"", "\"Other\"")).0, 0);
    assert_eq!(made(usize::MAX, "1", &SMALL.replace("runs = 4", "runs = 5")).0, 6);
    assert_eq!(made(usize::MAX, "1", &SMALL.replace("8mbit", "9mbit")).0, 24);
    assert_eq!(made(usize::MAX, "2", SMALL).0, 24);
}

#[test]
fn mistakes_have_line_column_and_the_nearest_name() {
    let cases = [
        (
            "title = \"Small\"",
            "titel = \"Small\"",
            "small.toml:2:1: titel: `titel`: unknown key",
            "`title`",
        ),
        ("runs = 4", "rnus = 4", "small.toml:4:1: rnus", "`runs`"),
        ("rate = \"20mbit\"", "rte = \"20mbit\"", "small.toml:8:1: path[0].rte", "`r"),
        ("single = \"wifi\"", "single = \"wfi\"", "small.toml:18:18: row.tcp.single", "`wifi`"),
        ("only = { rtt", "only = { rt", "small.toml:18:35: rt", "`rtt`"),
        (
            "only = { rtt = [\"40ms\"] }",
            "only = { rtt = [] }",
            "small.toml:18:41: row.tcp.only",
            "at least",
        ),
        ("kind = \"exact\"", "kind = \"exat\"", "small.toml:32:8: claim[2].kind", "`exact`"),
        // Within a statement, the column is that of the word.
        (
            "increasing(",
            "incresing(",
            "small.toml:24:19: claim[0].holds: `incresing`: unknown function",
            "`increasing`",
        ),
        ("lrf.completion_ms > 0", "lrff.completion_ms > 0", "small.toml:24:53", "`lrf`"),
        ("lrf.completion_ms > 0", "lrf.complation_ms > 0", "small.toml:24:57", "`completion_ms`"),
        ("for rtt:", "for rt:", "small.toml:24:14", "`rtt`"),
        ("[size=20kB] >=", "[size=20kb] >=", "small.toml:29:33", "20kB, 100kB"),
        ("ms[size=20kB] >=", "ms.p42[size=20kB] >=", "small.toml:29:28", "p95"),
        ("completion_ms > 0", "path_share > 0", "small.toml:24:57", ".PATH"),
        ("[\"20kB\", \"100kB\"]", "[]", "small.toml:15:1: sweep.size: an axis has", "range"),
        ("\"Small\"", "5", "small.toml:2:9: title: this integer", "a text"),
        ("says = \"s\"", "says = [\"s\"]", "small.toml:23:8: claim[0].says: this array", "a text"),
        (
            "download:{size}",
            "download:1kB",
            "small.toml:15:1: sweep.size: `size`: no setting",
            "{size}",
        ),
        ("id = \"x-h2\"", "id = \"x-h1\"", "small.toml:25:1: claim[1]: `x-h1`: given twice", ""),
        (
            "tcp.completion_ms.max[size=20kB]",
            "tcp.completion_ms[size=20kB, rtt=80ms]",
            "small.toml:30:1: claim[2]: `x-u3`: it uses tcp at rtt=80ms",
            "rtt=40ms",
        ),
        (
            "lrf.completion_ms[size=20kB] >= lrf.completion_ms[size=100kB]",
            "1 <= 2",
            "small.toml:25:1: claim[1]: `x-h2`: the statement uses no run",
            "ROW.MEASURE",
        ),
        (
            "[[claim]]\nid = \"x-h1\"",
            "[[picture]]\nkind = \"heat\"\nmeasure = \"completion_ms\"\nx = \"size\"\n[[claim]]\nid = \"x-h1\"",
            "small.toml:20:1: picture[0]: a picture of the kind heat has x and y",
            "size, rtt",
        ),
        (
            "[[claim]]\nid = \"x-h1\"",
            "[[picture]]\nkind = \"cdf\"\nmeasure = \"completion_ms\"\nlog = \"z\"\n[[claim]]\nid = \"x-h1\"",
            "small.toml:23:7: picture[0].log: `z`: unknown axis",
            "xy",
        ),
        (
            "[[claim]]\nid = \"x-h1\"",
            "[[picture]]\nkind = \"box\"\nmeasure = \"completion_ms\"\nbenefit = [\"tcp\"]\n[[claim]]\nid = \"x-h1\"",
            "small.toml:20:1: picture[0].benefit: `completion_ms`: the benefit of several paths",
            "goodput_mbps",
        ),
        // A measure that no run has could never satisfy the claim.
        (
            "completion_ms[size=20kB] >= lrf.completion_ms",
            "completion_ms[size=20kB] >= lrf.page_load_ms",
            "small.toml:29:46: claim[1].holds: `page_load_ms`: no measure of the workload `download:100kB`",
            "completion_ms, goodput_mbps, ooo_delay_ms, ooo_delay_p95_ms, ooo_delay_max_ms, path_share.PATH",
        ),
        (
            "lrf.completion_ms > 0",
            "lrf.fetch_mbps.20s > 0",
            "small.toml:24:57: claim[0].holds: `fetch_mbps`: no measure of the workload `download:20kB`",
            "gap_seg.TIME",
        ),
        (
            "lrf.completion_ms > 0",
            "lrf.competing_mbps > 0",
            "small.toml:24:57: claim[0].holds: `competing_mbps`: there is no competing flow",
            "completion_ms",
        ),
        (
            "[[claim]]\nid = \"x-h1\"",
            "[[picture]]\nkind = \"cdf\"\nmeasure = \"object_time_ms\"\n[[claim]]\nid = \"x-h1\"",
            "small.toml:22:11: picture[0].measure: `object_time_ms`: no measure of the workload",
            "completion_ms",
        ),
        (
            "[[claim]]\nid = \"x-h1\"",
            "[quick]\nworkload = \"bulk:{size}\"\n[[claim]]\nid = \"x-h1\"",
            "small.toml:37:18: claim[2].holds: `completion_ms`: no measure of the workload `bulk:20kB`",
            "goodput_mbps",
        ),
        // Expressions that are neither true nor false.
        (
            "lrf.completion_ms[size=20kB] >= lrf.completion_ms[size=100kB]",
            "lrf.completion_ms[size=20kB]",
            "small.toml:29:10: claim[1].holds: `lrf.completion_ms[size=20kB]`: a number is neither",
            "for n>10",
        ),
        (
            "lrf.completion_ms > 0 and",
            "lrf.completion_ms and",
            "small.toml:24:53: claim[0].holds: `lrf.completion_ms and",
            "a relation is expected",
        ),
        (
            "count(lrf.completion_ms.runs[size=20kB] > 0)",
            "count(lrf.completion_ms.runs[size=20kB])",
            "small.toml:24:85: claim[0].holds: `lrf.completion_ms.runs",
            "a relation is expected",
        ),
        (
            "max(tcp.completion_ms[size=20kB])",
            "quantile(tcp.completion_ms[size=20kB], 250%)",
            "small.toml:35:49: claim[2].holds: `250%)",
            "from 0% to 100%",
        ),
        (
            "[size=20kB] >= lrf.completion_ms[size=100kB]",
            "[size=20kB, size=100kB] >= 1",
            "small.toml:29:39: claim[1].holds: `size=100kB] >= 1`: the axis is given twice",
            "",
        ),
        (
            "[[claim]]\nid = \"x-h1\"",
            "[[picture]]\nkind = \"time\"\nmeasure = \"gap_seg\"\nx = \"rtt\"\n[[claim]]\nid = \"x-h1\"",
            "small.toml:20:1: picture[0]: a picture of the kind time has neither x nor y",
            "pool = [AXIS",
        ),
        (
            "[[claim]]\nid = \"x-h1\"",
            "[[picture]]\nkind = \"box\"\nmeasure = \"completion_ms\"\ny = \"rtt\"\n[[claim]]\nid = \"x-h1\"",
            "small.toml:20:1: picture[0]: a picture of the kind box has no y",
            "pool = [AXIS",
        ),
        (
            "[[claim]]\nid = \"x-h1\"",
            "[[picture]]\nkind = \"time\"\nmeasure = \"goodput_mbps\"\n[[claim]]\nid = \"x-h1\"",
            "small.toml:22:11: picture[0].measure: `goodput_mbps`: unknown measure over the time",
            "gap_seg",
        ),
        (
            "[[claim]]\nid = \"x-h1\"",
            "[[picture]]\nkind = \"box\"\nmeasure = \"completion_ms\"\nx = \"size\"\npool = [\"rtt\", \"size\"]\n[[claim]]\nid = \"x-h1\"",
            "small.toml:24:16: picture[0].pool",
            "once",
        ),
        (
            "rtt = [\"40ms\", \"80ms\"]\n",
            "rtt = [\"40ms\", \"80ms\"]\n[sweep.more]\ndesign = 30\nseed = 1\nloss = \"0%..1%\"\n[[picture]]\nkind = \"box\"\nmeasure = \"completion_ms\"\nx = \"size\"\n",
            "small.toml:21:1: picture[0]: `60`: 24 panels at most, one for each point of rtt, more",
            "pool = [AXIS",
        ),
        // `--quick` would silently skip this core claim.
        (
            "[[claim]]\nid = \"x-h1\"",
            "[quick]\nsweep = { size = [\"100kB\"] }\n[[claim]]\nid = \"x-h1\"",
            "small.toml:32:1: claim[2]: `x-u3`: a core claim uses tcp at size=20kB, which `[quick]`",
            "size with the point 20kB in the sweep of [quick], or a claim without `core`",
        ),
        (
            "[[claim]]\nid = \"x-h1\"",
            "[quick]\nsweep = { rtt = [\"80ms\"] }\n[[claim]]\nid = \"x-h1\"",
            "small.toml:32:1: claim[2]: `x-u3`: a core claim uses tcp, which `[quick]` does not run",
            "points of tcp",
        ),
        (
            "[[claim]]\nid = \"x-h1\"",
            "[quick]\nsweep = { rtt = [\"80ms\"] }\n[[claim]]\nid = \"x-h0\"\nkind = \"soft\"\ncore = true\n\
             says = \"s\"\nholds = \"count(tcp.completion_ms.runs > 0) > 0\"\n[[claim]]\nid = \"x-h1\"",
            "small.toml:22:1: claim[0]: `x-h0`: a core claim uses tcp, which",
            "points of tcp",
        ),
        // Names that a statement cannot use.
        ("lrf = {", "\"a b\" = {", "small.toml:19:1: row.a b: `a b`: not a name of a row", "`-`"),
        ("lrf = {", "\"a.b\" = {", "small.toml:19:1: row.a.b: `a.b`: not a name of a row", "`_`"),
        (
            "lrf = {",
            "for = {",
            "small.toml:19:1: row.for: `for`: not a name of a row",
            "not row, for",
        ),
        ("lrf = {", "\"\" = {", "small.toml:19:1: row.: not a name of a row", "letters"),
        (
            "lrf = {",
            "3g = {",
            "small.toml:19:1: row.3g: `3g`: not a name of a row",
            "a letter, then",
        ),
        ("lrf = {", "lrf- = {", "small.toml:19:1: row.lrf-: `lrf-`: not a name of a row", "inside"),
    ];
    for (from, to, start, near) in cases {
        let text = SMALL.replacen(from, to, 1);
        let error = Experiment::from_toml("small.toml", &text).unwrap_err().to_string();
        assert!(error.starts_with(start) && error.contains(near), "{to}: {error}");
    }
    // The text is checked after its placeholders are replaced.
    for (from, to, part) in [
        ("download:{size}", "download:{sice}", "small.toml:3:12: workload: `sice`: unknown axis"),
        ("rtt = \"{rtt}\"", "rtt = \"{rtt\"", "small.toml:12:7: path[1].rtt"),
        ("scheduler = \"minrtt\"", "scheduler = \"minrt\"", "small.toml:19:21: row.lrf.scheduler"),
    ] {
        let text = SMALL.replacen(from, to, 1);
        let experiment = Experiment::from_toml("small.toml", &text).unwrap();
        let error = Plan::of(&experiment, false, &no_files).unwrap_err().to_string();
        assert!(error.starts_with(part), "{to}: {error}");
    }
}

/// A division by zero has no value, so no relation with it holds.
#[test]
fn a_quotient_by_nothing_makes_no_relation_hold() {
    for (holds, standing) in [
        ("lrf.completion_ms / tcp.completion_ms[rtt=40ms] > 0", ClaimVerdict::Holds),
        (
            "lrf.completion_ms / (lrf.completion_ms - lrf.completion_ms) > 0",
            ClaimVerdict::Undecided,
        ),
        ("lrf.completion_ms / 0 > 0", ClaimVerdict::Undecided),
    ] {
        let statement = "lrf.completion_ms[size=20kB] >= lrf.completion_ms[size=100kB]";
        let small = SMALL.replace("runs = 4", "runs = 10");
        let plan = plan(&small.replacen(statement, holds, 1));
        let judged = judge(&outcome(plan), &Misses::default(), CONFIDENCE);
        assert_eq!(judged[1].standing, standing, "{holds}");
    }
}

#[test]
fn a_statement_has_an_end_to_its_depth() {
    for deep in
        ["(".repeat(100_000), "-".repeat(100_000), "min(".repeat(100_000), "1+".repeat(100_000)]
    {
        let file = SMALL.replacen("lrf.completion_ms[size=20kB] >=", &format!("{deep}1 >="), 1);
        let error = Experiment::from_toml("small.toml", &file).unwrap_err().to_string();
        assert!(error.contains("more than 200 parts") && error.len() < 500, "{}", error.len());
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(512))]
    #[test]
    fn no_statement_and_no_file_panics(
        words in proptest::collection::vec("(lrf|tcp|\\.|completion_ms|rtt|size|=|40ms|20kB|\\[|\\]|\\(|\\)|\\{|\\}|:|,|\\||for|row|and|min|at|increasing|[<>=*/+-]|[0-9.%]{1,3}| |\\PC)", 0..24),
        at in 0usize..1200,
    ) {
        let text = words.concat();
        let statement: String = text.chars().filter(|c| !c.is_control() && *c != '"' && *c != '\\').collect();
        let file = SMALL.replacen("lrf.completion_ms[size=20kB] >= lrf.completion_ms[size=100kB]", &statement, 1);
        if let Err(error) = Experiment::from_toml("small.toml", &file) {
            proptest::prop_assert!(error.to_string().lines().count() <= 3);
        }
        let mut cut = SMALL.to_owned();
        let at = at.min(cut.len());
        cut.insert_str(at, &text);
        let _ = Experiment::from_toml("small.toml", &cut);
    }
}

#[test]
fn ids_are_those_of_papers() {
    let papers: BTreeSet<&str> =
        plait_lab::experiment::PAPERS.iter().map(|paper| paper.0).collect();
    for experiment in all() {
        assert!(papers.contains(experiment.paper()), "{}", experiment.id);
    }
}
