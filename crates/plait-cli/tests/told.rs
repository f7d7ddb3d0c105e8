//! Error messages: each names the cause, the place and the remedy.
#![allow(clippy::unwrap_used)]

use std::process::Command;

const PLAIT: &str = env!("CARGO_BIN_EXE_plait");

/// Returns exit code, stdout and stderr of a command line without quotes.
fn plait(line: &str) -> (i32, String, String) {
    words(&line.split_whitespace().collect::<Vec<_>>())
}

fn words(words: &[&str]) -> (i32, String, String) {
    let output = Command::new(PLAIT).args(words).env("COLUMNS", "1000").output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Returns the stderr of a command that is refused.
fn refusal(line: &str) -> String {
    let (code, out, told) = plait(line);
    assert_eq!((code, out.as_str()), (2, ""), "{line}: {told}");
    told
}

/// A broken connection is not reported as a timeout.
#[test]
fn a_connection_that_broke_is_told_with_its_time_and_cause() {
    let alone = "run --path a:rate=10mbit,rtt=20ms,gone=500ms..3s --workload download:5MB";
    let why = "the connection broke at 0.50 s: its only address was gone";
    let (code, out, told) = plait(alone);
    assert_eq!(code, 4, "{told}");
    assert!(told.contains(why), "{told}");
    assert!(out.contains(&format!("did not finish: {why}")), "{out}");
    let json = plait(&format!("{alone} --json")).1;
    assert!(json.contains(&format!("\"broke\": \"{why}\"")), "{json}");
    let both = "compare --path a:rate=10mbit,rtt=20ms,gone=500ms..3s \
                --path b:rate=5mbit,rtt=20ms,gone=500ms..3s --workload download:5MB \
                --schedulers minrtt --jobs 1 --exact";
    let (_, out, told) = plait(both);
    assert!(out.contains(&format!("Some runs failed ({why})")), "{out}{told}");
    // A plain timeout is reported as such.
    let late = "run --path a:rate=10mbit,rtt=20ms --workload download:5MB --until 1s";
    assert!(plait(late).2.contains("the workload did not finish in 1s"));
}

/// No run is longer than an hour: a longer workload must be refused, not cut.
#[test]
fn a_workload_that_is_longer_than_a_run_is_refused_at_once() {
    for workload in ["bulk:100000min", "stream:1kB@1s,for=61min", "blocks:8KiB@inf,for=3601s"] {
        for command in ["run", "compare"] {
            let line = format!("{command} --path a:rate=1mbit,rtt=20ms --workload {workload}");
            let told = refusal(&line);
            let place = format!("--workload: `{workload}`: longer than a run can be\n");
            assert!(told.contains(&place) && told.contains("allowed: at most 60min"), "{told}");
        }
    }
}

#[test]
fn the_help_has_every_workload() {
    for command in ["run", "compare"] {
        let help = plait(&format!("{command} --help")).1;
        for workload in plait_app::WORKLOADS {
            let form = workload.grammar.split('[').next().unwrap();
            assert!(help.contains(form), "{command}: {form}");
        }
    }
}

/// `fixed:cwnd=N` of the README: N segments.
#[test]
fn a_fixed_window_may_be_a_plain_number_of_segments() {
    let run = |cc: &str| {
        let line = "run --path a:rate=10mbit,rtt=20ms --workload download:100kB --json --cc";
        plait(&format!("{line} {cc}"))
    };
    let (plain, unit) = (run("fixed:cwnd=20"), run("fixed:cwnd=20seg"));
    assert_eq!((plain.0, &plain.1), (0, &unit.1), "{}", plain.2);
    for none in ["0seg", "0", "0B"] {
        let told = run(&format!("fixed:cwnd={none}")).2;
        assert!(told.contains("at least one segment"), "{told}");
    }
}

/// The error for an invalid scenario file names the file and the place of its first error.
#[test]
fn what_is_wrong_with_a_scenario_file_is_told_with_its_name_and_place() {
    let file = format!("{}/told.toml", env!("CARGO_TARGET_TMPDIR"));
    let path = "[[path]]\nname = \"a\"\nrtt = \"20ms\"\nrate = \"10mbit\"\n";
    for (text, place) in [
        ("", "1:1: path: no path is given"),
        ("workload = \"download:1MB\"\n", "1:1: path: no path is given"),
        ("\nworkload = 5\n", "2:12: workload: `5`: unknown workload"),
        ("runs=-3\nworkload = 5", "1:6: runs: `-3`: not a number that fits"),
        ("# x\nseed=99999999999999999999999\n", "2:6: seed: `99999999999999999999999`: not a"),
        (path, "1:1: workload: no workload is given"),
    ] {
        std::fs::write(&file, text).unwrap();
        for command in ["run", "compare"] {
            let told = refusal(&format!("{command} --scenario {file}"));
            assert!(told.contains(&format!("{file}:{place}")), "{text}: {told}");
            assert!(told.contains("allowed: "), "{told}");
        }
    }
    // Without a file the error names the flag.
    assert!(refusal("run --workload download:1MB").contains("--path: no path is given"));
}

/// Contradictory or useless input is refused or reported.
#[test]
fn what_cannot_have_been_meant_is_told() {
    let download = "--workload download:1MB";
    let path = "--path a:rate=10mbit,rtt=20ms";
    let told = refusal(&format!("run {path} --link l:rate=5mbit {download}"));
    assert!(told.contains("--link: `l:rate=5mbit`: no path goes through it"), "{told}");
    assert!(told.contains("allowed: via=l"), "{told}");
    let (code, _, told) = plait(&format!("run {path},via=l --link l:rate=5mbit {download}"));
    assert_eq!(code, 0, "{told}");
    for commas in ["a:rate=10mbit,,rtt=20ms", "a:rate=10mbit,rtt=20ms,", "a:,rate=10mbit,rtt=20ms"]
    {
        let told = refusal(&format!("run --path {commas} {download}"));
        assert!(told.contains("a comma too many") && told.contains("allowed: KEY=VALUE"), "{told}");
    }
    for (below, allowed) in
        [("rate=-1mbit,rtt=20ms", "a rate such as"), ("rate=1mbit,rtt=-20ms", "a time such as")]
    {
        let told = refusal(&format!("run --path a:{below} {download}"));
        assert!(told.contains("is below zero: expected") && told.contains(allowed), "{told}");
    }
    let told = refusal(&format!("run {path} {download} --qlog /proc/x"));
    assert!(told.contains("--qlog: `/proc/x`: no file can be made there"), "{told}");
    let rules = format!("{}/told.rules", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&rules, "# nobody yet\n").unwrap();
    let serve = "serve --listen 10.77.0.1:80 --to 127.0.0.1:8080 --dry-run --rules";
    let (code, _, told) = plait(&format!("{serve} {rules}"));
    assert_eq!(code, 0, "{told}");
    assert!(told.contains(&format!("--rules: `{rules}` has no rule")), "{told}");
}

/// Every command has a manual page with its options and examples, and `man` reports no error.
#[test]
fn every_command_has_a_page_for_man() {
    let pages = |text: &str| -> Vec<String> {
        let names = text.lines().filter_map(|line| line.strip_prefix("plait\\-"));
        names.filter_map(|rest| rest.split('(').next().map(str::to_owned)).collect()
    };
    let (code, top, told) = plait("man");
    assert_eq!(code, 0, "{told}");
    assert!(top.contains(".TH plait 1"), "{top}");
    let named = pages(&top);
    for command in ["run", "compare", "swarm", "serve", "completions", "man"] {
        assert!(named.iter().any(|name| name == command), "{command}: {named:?}\n{top}");
    }
    assert!(!named.iter().any(|name| name == "help"), "{named:?}");
    for command in named {
        let page = plait(&format!("man {command}")).1;
        assert!(page.contains(&format!(".TH plait-{command} 1")), "{command}: {page}");
        assert!(page.contains(".SH EXAMPLES"), "{command}: {page}");
    }
    let run = plait("man run").1;
    assert!(run.contains("workload") && run.contains("download:SIZE"), "{run}");
    // Lines in columns are not filled like prose.
    assert!(run.contains(".nf\nprofile=NAME     start"), "{run}");
    assert!(plait("man trace show").1.contains(".TH plait-trace-show 1"));
    assert!(refusal("man runn").contains("did you mean `run`?"));
    assert!(refusal("man run x").contains("`run` has no subcommands"));
}
