//! `plait experiment` and `plait reproduce` as people and scripts use them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test may fail, and waits for a process"
)]

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const PLAIT: &str = env!("CARGO_BIN_EXE_plait");
const EXPERIMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../plait-lab/experiments");

fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory
}

fn plait(words: &[&str]) -> Output {
    Command::new(PLAIT).args(words).output().unwrap()
}

fn json(words: &[&str], code: i32) -> Value {
    let output = plait(words);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{words:?}\n{errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns a directory with the files of these experiments.
fn some(name: &str, files: &[&str]) -> PathBuf {
    let root = directory(name);
    for file in files {
        let to = root.join(format!("{file}.toml"));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(Path::new(EXPERIMENTS).join(format!("{file}.toml")), to).unwrap();
    }
    root
}

/// `make test` runs all core claims with the program itself; this test runs two figures. A claim listed as a
/// miss fails the run if it holds.
#[test]
fn the_list_of_misses_stays_true() {
    let root = some("core-claims", &["ton/ton-fig8", "imc/imc-u"]);
    let path = root.to_str().unwrap();
    let line = ["reproduce", "--quick", "--no-cache", "--json", "--experiments", path];
    let document = json(&line, 0);
    let claims = document["claims"].as_array().unwrap();
    let held = claims.iter().filter(|it| it["standing"] == "holds").count();
    assert_eq!(held, 5, "{claims:?}");
    // Own experiments are run whole without `--all`, and with it.
    let command = |document: &Value| document["command"].as_str().unwrap().to_owned();
    assert!(!command(&document).contains("--all"), "{}", command(&document));
    let document = json(&[&line[..], &["--all"]].concat(), 0);
    let all = "plait reproduce --all --quick --experiments ";
    assert!(command(&document).starts_with(all), "{}", command(&document));
    let missing = "[ton-h8]\nwhy = \"x\"\n";
    fs::write(root.join("misses.toml"), missing).unwrap();
    let document = json(&line, 1);
    assert_eq!(document["tally"]["holds again"], 1);
    let refused = |list: &str, parts: [&str; 2]| {
        fs::write(root.join("misses.toml"), list).unwrap();
        let output = plait(&line);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{list}\n{errors}");
        assert!(parts.iter().all(|part| errors.contains(part)), "{list}\n{errors}");
    };
    refused(
        "[ton-h8]\nwy = \"x\"\n",
        ["misses.toml:2:1: ton-h8.wy: `wy`: unknown key", "did you mean `why`?"],
    );
    // An entry for an unknown claim would otherwise stay in the list for ever.
    refused(
        "\n[ton-h88]\nwhy = \"x\"\n",
        ["misses.toml:2:2: `ton-h88`: unknown claim", "did you mean `ton-h8`?"],
    );
    refused(
        "[ton-u1]\nwhy = \"x\"\n",
        ["misses.toml:1:2: `ton-u1`: no experiment there judges this claim: the test", "allowed: "],
    );
    // If only a part is run, the rest of the list is not checked.
    fs::write(root.join("misses.toml"), missing).unwrap();
    json(&[&line[..], &["imc/u"]].concat(), 0);
}

/// Errors for an unknown paper and for an invalid directory of experiments.
#[test]
fn a_directory_has_papers_of_its_own() {
    let root = some("own-paper", &["imc/imc-u"]);
    let own = root.join("my/my-1.toml");
    fs::create_dir(root.join("my")).unwrap();
    let text = fs::read_to_string(root.join("imc/imc-u.toml")).unwrap();
    fs::write(&own, text.replace("id = \"imc-", "id = \"my-")).unwrap();
    let path = root.to_str().unwrap();
    let line = ["reproduce", "--no-cache", "--json", "--experiments", path];
    for what in ["my", "my/1"] {
        let document = json(&[&line[..], &[what]].concat(), 0);
        assert_eq!(document["experiments"][0]["id"], "my-1", "{what}");
    }
    let refused = |what: &str, parts: &[&str]| {
        let output = plait(&[&line[..], &[what]].concat());
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{what}\n{errors}");
        assert!(parts.iter().all(|part| errors.contains(part)), "{what}\n{errors}");
    };
    refused("mi", &["unknown paper `mi`", "stms my"]);
    // An entry of misses.toml would match both claims.
    fs::write(&own, &text).unwrap();
    refused("my", &["my/my-1.toml:", "`imc-u1`: given twice, also at ", "imc/imc-u.toml:"]);
    fs::rename(&own, root.join("my-1.toml")).unwrap();
    refused(
        "imc",
        &["my-1.toml`: it is not in the directory of a paper", "own-paper/my/my-1.toml"],
    );
}

/// Ctrl-C keeps finished runs, and the same command makes the remaining ones.
#[test]
fn an_interrupted_run_goes_on_where_it_stopped() {
    let root = directory("interrupted-experiment");
    let file = root.join("x.toml");
    let text = "title = \"Many\"\nworkload = \"download:1MB\"\nruns = 3000\nschedulers = [\"minrtt\"]\n\
        [[path]]\nname = \"a\"\nrtt = \"10ms\"\nrate = \"20mbit\"\nloss = \"1%\"\n\
        [[path]]\nname = \"b\"\nrtt = \"40ms\"\nrate = \"10mbit\"\n";
    fs::write(&file, text).unwrap();
    let cache = root.join("cache");
    let line = ["experiment", "run", file.to_str().unwrap(), "--cache", cache.to_str().unwrap()];
    let lines = || -> Vec<String> {
        let kept = fs::read_dir(&cache).ok().and_then(|mut it| it.next()?.ok());
        let text = kept.map(|it| fs::read_to_string(it.path()).unwrap()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    };
    // With one run at a time it takes seconds on any machine, long enough to interrupt it.
    let mut child = Command::new(PLAIT)
        .args(line)
        .args(["--jobs", "1"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while lines().len() < 20 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was interrupted");
        std::thread::sleep(Duration::from_millis(5));
    }
    let signal = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(signal.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    let first = lines();
    assert!((20..3000).contains(&first.len()), "{}", first.len());

    let document = json(&[&line[..], &["--json"]].concat(), 0);
    assert_eq!(document["experiments"][0]["runs"], 3000);
    let all = lines();
    assert_eq!((all.len(), &all[..first.len()]), (3000, &first[..]));
}

/// Follows the steps of `docs/experiments.md`.
#[test]
fn an_experiment_is_added_by_copying_one_file() {
    let root = directory("newcomers-experiment");
    let (paper, cache) = (root.join("ton"), root.join("cache"));
    fs::create_dir(&paper).unwrap();
    let file = paper.join("ton-fig99.toml");
    let text = fs::read_to_string(Path::new(EXPERIMENTS).join("ton/ton-fig8.toml")).unwrap();
    fs::write(&file, text.replace("100mbit", "90mbit")).unwrap();
    let file = file.to_str().unwrap();
    let checked = plait(&["experiment", "check", file]);
    let said = String::from_utf8(checked.stdout).unwrap();
    assert!(said.starts_with("ton-fig99: ") && said.contains(" claims; quick: "), "{said}");

    let cache = cache.to_str().unwrap();
    let run = ["experiment", "run", file, "--quick", "--cache", cache, "--json"];
    let first = json(&run, 0);
    assert_eq!(first["schema"], "plait.experiment/1");
    assert!(first["claims"].as_array().unwrap().iter().all(|claim| claim["standing"] == "holds"));

    let (out, pages) = (root.join("out"), root.join("pages"));
    let root = root.to_str().unwrap();
    let again = plait(&[
        "reproduce",
        "ton/fig99",
        "--experiments",
        root,
        "--cache",
        cache,
        "--output",
        out.to_str().unwrap(),
        "--html",
        pages.to_str().unwrap(),
    ]);
    let said = String::from_utf8_lossy(&again.stdout);
    // The command is broken before flags if it is wider than the terminal.
    let joined = said.replace("\\\n", " ");
    let joined = joined.split_whitespace().collect::<Vec<_>>().join(" ");
    let command = "Run again: plait reproduce ton/fig99 --experiments ";
    assert!(said.contains("ton-h8 ") && joined.contains(command), "{said}");
    // Every run is present, and the manifest has the claims.
    let csv = fs::read_to_string(out.join("ton-fig99.csv")).unwrap();
    let lines = fs::read_to_string(out.join("ton-fig99.jsonl")).unwrap();
    assert_eq!(csv.lines().count(), lines.lines().count() + 1);
    assert!(lines.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    let manifest: Value =
        serde_json::from_slice(&fs::read(out.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["experiments"][0]["id"], "ton-fig99");
    // The page loads no external resource. Each picture is also a file.
    let page = fs::read_to_string(pages.join("ton-fig99.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("ton-h8"), "{page}");
    for foreign in ["http://", "https://", "<script", "src="] {
        let page = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!page.contains(foreign), "{foreign}");
    }
    // A second figure goes into the same directory. The index lists both; a page that plait did not write is
    // left unchanged.
    let other = Path::new(EXPERIMENTS).join("imc/imc-u.toml");
    let imc = Path::new(root).join("imc");
    fs::create_dir(&imc).unwrap();
    fs::copy(other, imc.join("imc-u.toml")).unwrap();
    fs::write(pages.join("ton-notes.html"), "<p>mine").unwrap();
    let pages_text = pages.to_str().unwrap();
    for what in ["imc/u", "imc/u", "imc"] {
        let args =
            ["reproduce", what, "--experiments", root, "--cache", cache, "--html", pages_text];
        let output = plait(&args);
        assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let index = fs::read_to_string(pages.join("index.html")).unwrap();
    let links: Vec<&str> =
        index.split("<a href=\"").skip(1).map(|link| link.split('"').next().unwrap()).collect();
    assert_eq!(links, ["ton-fig99.html", "imc.html", "imc-u.html"], "{index}");
    assert!(index.contains("<td>ToN</td>") && index.contains("1 holds"), "{index}");
    let drawn = fs::read_to_string(pages.join("svg/ton-fig99-1-1.svg")).unwrap();
    // In a separate file, the marks carry their colours themselves.
    assert!(drawn.starts_with("<svg xmlns=") && drawn.contains("#0072b2"), "{drawn}");
    assert!(!drawn.contains("var(") && !drawn.contains("class="), "{drawn}");
    assert!(fs::read(pages.join("pdf/ton-fig99-1-1.pdf")).unwrap().starts_with(b"%PDF-"));
    let runs = fs::read_to_string(pages.join("csv/ton-fig99.csv")).unwrap();
    assert_eq!(runs, csv);
    for link in ["svg/ton-fig99-1-1.svg", "pdf/ton-fig99-1-1.pdf", "csv/ton-fig99.csv"] {
        assert!(page.contains(&format!("href=\"{link}\"")), "{link}");
    }
}

/// A user's experiment without claims: its numbers, its pictures and its entry in the index.
#[test]
fn own_experiments_are_drawn_listed_and_shown_with_and_without_claims() {
    let root = directory("own");
    fs::create_dir_all(root.join("my")).unwrap();
    let text = r#"
title = "Two links at home"
workload = "download:{size}"
runs = 2
[[path]]
name = "wifi"
rtt = "20ms"
rate = "20mbit"
loss = "1%"
[[path]]
name = "cell"
rtt = "60ms"
rate = "8mbit"
[sweep]
size = ["20kB", "40kB"]
[row.one]
single = "wifi"
[row.both]
scheduler = "ecf"
[[picture]]
kind = "line"
measure = "completion_ms"
x = "size"
"#;
    fs::write(root.join("my/my-2.toml"), text).unwrap();
    let claim = "[[claim]]\nid = \"my-h1\"\nkind = \"hard\"\nsays = \"it ends\"\n\
                 holds = \"both.completion_ms > 0\"\n";
    fs::write(root.join("my/my-3.toml"), format!("{text}{claim}")).unwrap();
    let (pages, root) = (root.join("pages"), root.to_str().unwrap());
    let pages_text = pages.to_str().unwrap();
    let own = |what: &str, more: &[&str]| {
        let args = ["reproduce", what, "--experiments", root, "--no-cache", "--html", pages_text];
        let output = plait(&[&args[..], more].concat());
        assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    for more in [&[][..], &["--quick"]] {
        let said = own("my/2", more);
        assert!(said.contains("my-2: Two links at home") && said.contains("40kB"), "{said}");
        assert!(said.contains("median of 2 runs"), "{said}");
    }
    let said = own("my/3", &[]);
    assert!(said.contains("my-h1") && said.contains("1 holds"), "{said}");
    own("my", &[]);
    let index = fs::read_to_string(pages.join("index.html")).unwrap();
    for page in ["my", "my-2", "my-3"] {
        assert!(index.contains(&format!("<a href=\"{page}.html\">")), "{page}: {index}");
        let text = fs::read_to_string(pages.join(format!("{page}.html"))).unwrap();
        assert!(text.contains("<svg") && text.contains("completion time (ms)"), "{page}");
        assert!(!text.contains("Paper:"), "{page}");
    }
    assert!(pages.join("svg/my-3-1-1.svg").exists() && pages.join("csv/my-2.csv").exists());
}

#[test]
fn a_claim_that_fails_is_exit_code_one() {
    let root = directory("failing-claim");
    let file = root.join("x.toml");
    let text = fs::read_to_string(Path::new(EXPERIMENTS).join("imc/imc-u.toml")).unwrap();
    fs::write(&file, text.replace("120, 330", "120, 331")).unwrap();
    let file = file.to_str().unwrap();
    let output = plait(&["experiment", "run", file, "--no-cache"]);
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("imc-u1 fails: 330 == 331 at size=512KiB (2 of 3)"), "{errors}");
}

#[test]
fn what_is_not_there_is_refused_with_what_is() {
    for (words, parts) in [
        (vec!["reproduce"], ["PAPER: not given; all ", "plait reproduce --all"]),
        (vec!["reproduce", "--full", "--ablate"], [" runs, which take hours", "--quick"]),
        (vec!["reproduce", "--all", "ton"], ["--all", "cannot be used with"]),
        (
            vec!["reproduce", "my/x.toml"],
            ["`my/x.toml` is a file", "plait experiment run my/x.toml"],
        ),
        (vec!["reproduce", "tonn"], ["unknown paper `tonn`", "did you mean `ton`?"]),
        (vec!["reproduce", "ton-fig8"], ["unknown paper `ton-fig8`", "did you mean `ton/fig8`?"]),
        (vec!["reproduce", "ton/fig88"], ["unknown figure `fig88`", "did you mean `fig8`?"]),
        (vec!["experiment", "run", "ton-fig88"], ["unknown experiment", "`ton-fig8`"]),
        (vec!["experiment", "check", "none.toml"], ["none.toml", "no such file"]),
        (vec!["reproduce", "--experiments", "none"], ["--experiments: `none`", "no such file"]),
    ] {
        let output = plait(&words);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}\n{errors}");
        assert!(parts.iter().all(|part| errors.contains(part)), "{words:?}\n{errors}");
    }
}

/// `--again` judges the claims that hold with further seeds. The results are a line of counts, a column in
/// Markdown and CSV, and the verdicts of each claim in JSON.
#[test]
fn claims_that_hold_are_judged_again_with_further_seeds() {
    let root = directory("again").join("my");
    fs::create_dir_all(&root).unwrap();
    let path = |name: &str, rtt: &str| {
        format!("[[path]]\nname = \"{name}\"\nrtt = \"{rtt}\"\nrate = \"10mbit\"\nloss = \"1%\"\n")
    };
    let claim = |id: &str, holds: &str| {
        format!("[[claim]]\nid = \"{id}\"\nkind = \"hard\"\nsays = \"s\"\nholds = \"{holds}\"\n")
    };
    let text = "title = \"Mine\"\nworkload = \"download:100kB\"\nruns = 10\n".to_owned()
        + &path("one", "20ms")
        + &path("two", "40ms")
        + "[row]\na = { scheduler = \"minrtt\" }\n"
        + &claim("my-h1", "a.completion_ms > 20")
        + &claim("my-h2", "a.completion_ms < 20");
    fs::write(root.join("my-1.toml"), text).unwrap();
    let root = root.parent().unwrap().to_str().unwrap();
    let line =
        ["reproduce", "my", "--no-cache", "--experiments", root, "--seed", "5", "--again", "3"];
    let with = |more: &[&'static str]| -> Vec<&str> { line.iter().chain(more).copied().collect() };
    // The second claim fails, so the exit code is 1.
    let document = json(&with(&["--json"]), 1);
    let seeds: Vec<u64> = document["again"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["seed"].as_u64().unwrap())
        .collect();
    assert_eq!(seeds, [6, 7, 8]);
    assert_eq!(document["again"][0]["claims"], 1);
    assert_eq!(document["again"][2]["holds"], 1);
    assert_eq!(document["claims"][0]["again"], serde_json::json!(["holds", "holds", "holds"]));
    assert_eq!(document["claims"][1]["again"], Value::Null);
    assert!(document["command"].as_str().unwrap().ends_with("--seed 5 --again 3"));
    let text = |words: &[&str]| String::from_utf8(plait(words).stdout).unwrap();
    let sentence = "Claims that hold with the first seed and depend on chance: 1. These hold again: 1 with seed 6, \
        1 with seed 7, 1 with seed 8.";
    let plain = text(&line).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(plain.contains(sentence) && plain.contains("Again: holds 3"), "{plain}");
    let page = text(&with(&["--format", "markdown"]));
    assert!(page.contains("| again |") && page.contains("| holds 3 |"), "{page}");
    let table = text(&with(&["--format", "csv"]));
    assert!(table.lines().next().unwrap().ends_with(",why,again"), "{table}");
    assert!(table.contains(",holds 3\n"), "{table}");
}

/// If a quick run has a figure without core claims, the output and the page say so.
#[test]
fn a_figure_without_core_claims_is_named_in_a_quick_run() {
    let page = directory("no-core-claims");
    let words = ["reproduce", "ecf/fig9", "--quick", "--no-cache"];
    let output = plait(&[&words[..], &["--html", page.to_str().unwrap()]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("ecf-fig9 has "), "{text}");
    assert!(text.contains("leave --quick out to run it"), "{text}");
    assert!(text.contains("no core claims"), "{text}");
    let own = fs::read_to_string(page.join("ecf-fig9.html")).unwrap();
    assert!(own.contains("leave --quick out to run it"), "{own}");
    let index = fs::read_to_string(page.join("index.html")).unwrap();
    assert!(index.contains("ecf-fig9.html") && index.contains("no core claims"), "{index}");
    let document = json(&[&words[..], &["--json"]].concat(), 0);
    assert_eq!(document["left_out"][0]["id"], "ecf-fig9");
}

/// Every format contains the values of an experiment.
#[test]
fn cells_have_their_values_in_every_format() {
    let root = directory("cell-values");
    let text = "title = \"Mine\"\nworkload = \"download:100kB\"\nruns = 2\n\
                path = [\"a:rtt={rtt},rate=20mbit\", \"b:rtt=50ms,rate=8mbit\"]\n\
                schedulers = [\"minrtt\"]\n[sweep]\nrtt = [\"10ms\", \"20ms\"]\n";
    fs::create_dir_all(root.join("mine")).unwrap();
    let file = root.join("mine/mine-1.toml");
    fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let run = ["experiment", "run", file, "--no-cache"];
    let document = json(&[&run[..], &["--json"]].concat(), 0);
    let cells = document["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2);
    assert_eq!((&cells[1]["row"], &cells[1]["point"]["rtt"]), (&"minrtt".into(), &"20ms".into()));
    let completion = &cells[1]["measures"]["completion_ms"];
    assert!(completion["n"] == 2 && completion["median"].as_f64().unwrap() > 20.0, "{completion}");
    let written = |words: &[&str]| {
        let output = plait(&[&run[..], words].concat());
        assert!(output.status.success(), "{words:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let csv = written(&["--format", "csv"]);
    assert!(csv.starts_with("experiment,row,rtt,measure,mean,median,min,max,n\n"), "{csv}");
    assert!(csv.contains("\nmine-1,minrtt,20ms,completion_ms,"), "{csv}");
    let markdown = written(&["--format", "markdown"]);
    assert!(markdown.contains("## mine-1: Mine") && markdown.contains("| 20ms |"), "{markdown}");
    // The text about papers is absent for a user's experiments.
    let page = directory("cell-values-page");
    let of = ["reproduce", "mine", "--no-cache", "--experiments", root.to_str().unwrap()];
    let output = plait(&[&of[..], &["--format", "markdown"]].concat());
    let markdown = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && !markdown.contains("frozen"), "{markdown}");
    let document = json(&[&of[..], &["--json", "--html", page.to_str().unwrap()]].concat(), 0);
    assert_eq!(document["cells"].as_array().unwrap().len(), 2);
    let index = fs::read_to_string(page.join("index.html")).unwrap();
    assert!(!index.contains("The papers again") && index.contains("<h1>Experiments"), "{index}");
    let schema = json(&["schema", "reproduce"], 0).to_string();
    assert!(
        schema.contains("\"cells\"") && schema.contains("Number of runs that have it"),
        "{schema}"
    );
}
