//! `plait explain`: from flags and from a file, as text and as JSON, and its errors.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
#[cfg(target_os = "linux")]
use std::{process::Stdio, time::Duration};

const PLAIT: &str = env!("CARGO_BIN_EXE_plait");
const RUN: &str = "--path fast:rate=10mbit,rtt=20ms,loss=0.5% --path slow:rate=3mbit,rtt=200ms \
                   --workload stream:15kB@1s,for=4s";

fn plait(command: &str, args: &str, files: &[&Path]) -> Output {
    let words = args.split_whitespace().map(str::to_owned);
    let files = files.iter().map(|file| file.display().to_string());
    Command::new(PLAIT).arg(command).args(words.chain(files)).output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Returns the error of a refused command.
fn refused(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    text
}

/// A file of the events of [`RUN`].
fn recorded(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("explain");
    fs::create_dir_all(&dir).unwrap();
    let file = dir.join(name);
    stdout(&plait("run", &format!("{RUN} --events"), &[&file]));
    file
}

#[test]
fn a_file_and_its_flags_are_explained_alike() {
    let file = recorded("alike.jsonl");
    let asked = "--slowest 4 --compare-with ecf,blest --json";
    // Incidents have the lines of the file, and otherwise the numbers of packets.
    let document = |text: &str| -> Value {
        let mut document: Value = serde_json::from_str(text).unwrap();
        for incident in document["transfer"]["incidents"].as_array_mut().unwrap() {
            let [first, last] = ["first", "last"].map(|end| incident[end]["packet"].as_u64());
            assert!(first.unwrap() > 0 && first <= last, "{incident}");
            incident.as_object_mut().unwrap().retain(|key, _| key != "first" && key != "last");
        }
        document
    };
    let from_file = document(&stdout(&plait("explain", asked, &[&file])));
    let from_flags = stdout(&plait("explain", &format!("{RUN} {asked}"), &[]));
    assert_eq!(from_file, document(&from_flags));
    assert_eq!(from_file["schema"], "plait.explain/1");
    assert_eq!(from_file["stalls"].as_array().unwrap().len(), 4);
    let first = &from_file["stalls"][0];
    assert_eq!((&first["kind"], &first["sent"][0]["carry"]), (&"message".into(), &"new".into()));
    assert_eq!(first["decisions"][0]["others"][0]["scheduler"], "ecf");
    // The printed command line gives the same explanation.
    let again = from_file["command"].as_str().unwrap().strip_prefix("plait explain ").unwrap();
    let again = stdout(&plait("explain", &format!("{again} --json"), &[]));
    assert_eq!(from_file, document(&again));
}

#[test]
fn the_document_has_the_fields_of_its_schema() {
    let text =
        stdout(&plait("explain", &format!("{RUN} --slowest 9 --compare-with all --json"), &[]));
    let document: Value = serde_json::from_str(&text).unwrap();
    let schema = stdout(&plait("schema", "explain", &[]));
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let fields = |part: &Value, of: &Value| {
        let known = of["properties"].as_object().unwrap();
        for key in part.as_object().unwrap().keys() {
            assert!(known.contains_key(key), "{key}");
        }
        for key in of["required"].as_array().unwrap() {
            assert!(part.get(key.as_str().unwrap()).is_some(), "{key}");
        }
    };
    let defs = &schema["$defs"];
    fields(&document, &schema);
    let mut lists = std::collections::BTreeSet::new();
    for stall in document["stalls"].as_array().unwrap() {
        fields(stall, &defs["Explained"]);
        for decision in stall["decisions"].as_array().unwrap() {
            fields(decision, &defs["Judged"]);
            for (name, part) in
                [("subflows", "Seen"), ("alternatives", "Alternative"), ("others", "Opinion")]
            {
                // A decision without alternatives has no list of them.
                for each in decision[name].as_array().into_iter().flatten() {
                    lists.insert(name);
                    fields(each, &defs[part]);
                }
            }
        }
    }
    assert_eq!(lists.len(), 3, "{lists:?}");
}

#[test]
fn an_instant_is_explained_by_what_waited_or_by_the_last_decision() {
    let at = |time: &str| {
        let text = stdout(&plait("explain", &format!("{RUN} --at {time} --json"), &[]));
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let all = stdout(&plait("explain", &format!("{RUN} --slowest 100 --json"), &[]));
    let all: Value = serde_json::from_str(&all).unwrap();
    let longest = &all["stalls"][0];
    let middle = (longest["from_ms"].as_f64().unwrap() + longest["to_ms"].as_f64().unwrap()) / 2.0;
    assert_eq!(&at(&format!("{middle}ms"))["stalls"][0], longest);
    // Between two messages no data waits.
    let quiet = at("900ms");
    let [decision] = quiet["stalls"].as_array().unwrap().as_slice() else { panic!("{quiet}") };
    assert_eq!(
        (&decision["kind"], &decision["decisions"][0]["decision"]),
        (&"decision".into(), &"send".into())
    );
    let text = stdout(&plait("explain", &format!("{RUN} --at 900ms"), &[]));
    assert!(text.contains("nothing waited; the last decision before, at "), "{text}");
}

#[test]
fn an_instant_with_many_waits_is_limited_and_says_so() {
    let run = "--path a:rate=20mbit,rtt=20ms,loss=2% --path b:rate=5mbit,rtt=120ms \
               --workload stream:10kB@5ms,for=1s --scheduler roundrobin";
    let json = |args: &str| {
        let text = stdout(&plait("explain", &format!("{run} {args} --json"), &[]));
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let at = json("--at 600ms");
    let (asked, found) =
        (at["stalls_asked"].as_u64().unwrap(), at["stalls_found"].as_u64().unwrap());
    assert!(found > asked && asked > 10, "{asked} of {found}");
    assert_eq!(at["stalls"].as_array().unwrap().len(), 10);
    let text = stdout(&plait("explain", &format!("{run} --at 600ms"), &[]));
    let line = format!(
        "10 of {asked} waits at that time ({found} in all), the longest first; --slowest {} shows more",
        asked.min(100)
    );
    assert!(text.contains(&line), "{text}");
    let all = json(&format!("--at 600ms --slowest {}", asked.min(100)));
    assert_eq!(all["stalls"].as_array().unwrap().len() as u64, asked.min(100));
    assert_eq!(all["stalls"][0], at["stalls"][0]);
    assert!(all["command"].as_str().unwrap().contains(" --slowest "), "{}", all["command"]);
}

#[test]
fn where_a_path_has_several_subflows_sentences_name_them_too() {
    let run = "--path a:rate=20mbit,rtt=20ms,loss=1% --path b:rate=5mbit,rtt=120ms \
               --workload download:600kB --scheduler roundrobin --slowest 6";
    // The text after each place that names a subflow.
    let named = |more: &str| {
        let text = stdout(&plait("explain", &format!("{run} {more}"), &[]));
        let words: Vec<&str> = text.split_whitespace().collect();
        let pairs = words.windows(4).filter(|it| matches!(it[..2], ["sent", "on"]));
        pairs.map(|it| it[3].to_owned()).collect::<Vec<String>>()
    };
    let (two, four) = (named(""), named("--subflows mesh4"));
    assert!(two.len() > 3 && two.iter().all(|it| it == "at"), "{two:?}");
    assert!(four.len() > 3 && four.iter().all(|it| it == "(subflow"), "{four:?}");
}

#[test]
fn what_cannot_be_explained_is_refused_with_its_place() {
    let file = recorded("refused.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    let with = |name: &str, text: &str| {
        let file = file.with_file_name(name);
        fs::write(&file, text).unwrap();
        file
    };
    let bent =
        with("bent.jsonl", &text.replacen("\"reason\":\"only-subflow\"", "\"reason\":\"turn\"", 1));
    let line = 1 + text.lines().position(|line| line.contains("\"only-subflow\"")).unwrap();
    let half = with("half.jsonl", &text[..text.len() / 2]);
    let longer = with("longer.jsonl", &format!("{text}\n"));
    let (header, rest) = text.split_once('\n').unwrap();
    let mut old: Value = serde_json::from_str(header).unwrap();
    old.as_object_mut().unwrap().remove("scenario");
    let old = with("old.jsonl", &format!("{old}\n{rest}"));
    let broken = header.replacen("stream:15kB@1s", "strem:15kB@1s", 2);
    let broken = with("broken.jsonl", &format!("{broken}\n{rest}"));
    let csv = with("link.csv", "1,1000000\n");
    let empty = with("empty", "");
    let binary = file.with_file_name("binary");
    fs::write(&binary, [0xff, 0xfe, 0, 1, 2]).unwrap();
    let lines = text.lines().count();
    for (file, words) in [
        (
            &bent,
            vec![format!("bent.jsonl:{line}: "), "make it again: plait run --path fast".to_owned()],
        ),
        (&half, vec!["half.jsonl:".to_owned(), "the file was cut or changed".to_owned()]),
        (&longer, vec![format!("longer.jsonl:{}: ", lines + 1)]),
        (
            &old,
            vec![
                "old.jsonl:1: scenario: it does not describe the run".to_owned(),
                "--events".to_owned(),
            ],
        ),
        (
            &broken,
            vec!["broken.jsonl:1: scenario:2:12: workload: `strem`".to_owned(), "strem".to_owned()],
        ),
        (
            &csv,
            vec![
                "link.csv:1: it is neither a capture (pcap, pcapng), nor a qlog of plait, nor a file of `plait run --events`"
                    .to_owned(),
            ],
        ),
        (&empty, vec!["empty: it is empty".to_owned()]),
        (&binary, vec!["binary:1: it is neither a capture".to_owned()]),
        (
            &file.with_file_name("none"),
            vec!["RUN: ".to_owned(), "there is no such file".to_owned()],
        ),
        (
            &file.parent().unwrap().to_owned(),
            vec!["RUN: ".to_owned(), "it is a directory".to_owned()],
        ),
    ] {
        let said = refused(&plait("explain", "", &[file]));
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
    let said = refused(&plait("explain", "--seed 2", &[&file]));
    assert!(said.contains("the run is described twice, by the file and by flags"), "{said}");
    for (args, words) in [
        ("", "RUN: nothing to explain\n  allowed: a file of `plait run --events`, or the flags"),
        ("--at 1s", "RUN: nothing to explain"),
        (&*format!("{RUN} --at 1.2"), "--at: `1.2`: has no unit: a time needs one of ns,"),
        (
            &*format!("{RUN} --at 60min"),
            "--at: `3600s`: the run had ended by then\n  allowed: an instant up to",
        ),
        (&*format!("{RUN} --at 1us"), "--at: `1us`: the sender had made no decision by then"),
        (&*format!("{RUN} --slowest 0"), "--slowest: `0`: "),
        (&*format!("{RUN} --slowest 101"), "allowed: a whole number from 1 to 100"),
        (&*format!("{RUN} --compare-with blset"), "did you mean `blest`?"),
        (&*format!("{RUN} --scheduler blset"), "did you mean `blest`?"),
        (
            &*format!("{RUN} --scheduler all"),
            "--scheduler: `plait explain` takes one, 14 are given",
        ),
        ("--path wifi-home", "--workload"),
    ] {
        let said = refused(&plait("explain", args, &[]));
        assert!(said.contains(words), "{args}: {said}");
    }
}

#[test]
fn a_comparison_says_why_where_it_is_asked() {
    let line = "--path fast:rate=10mbit,rtt=20ms --path slow:rate=2mbit,rtt=200ms \
                --workload download:1MB --schedulers minrtt,ecf --exact";
    let document = |more: &str| -> Value {
        let text = stdout(&plait("compare", &format!("{line} --json {more}"), &[]));
        serde_json::from_str(&text).unwrap()
    };
    let (told, plain) = (document("--explain"), document(""));
    assert_eq!(told["digest"], plain["digest"]);
    for (told, plain) in
        told["rows"].as_array().unwrap().iter().zip(plain["rows"].as_array().unwrap())
    {
        assert!(!told["why"].as_str().unwrap().is_empty() && plain.get("why").is_none());
        assert_eq!(told["measures"], plain["measures"]);
    }
    assert!(told["command"].as_str().unwrap().ends_with(" --explain"));
    let text = stdout(&plait("compare", &format!("{line} --explain"), &[]));
    for row in told["rows"].as_array().unwrap() {
        let (name, why) = (row["scheduler"].as_str().unwrap(), row["why"].as_str().unwrap());
        let first = why.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
        let said = |line: &str| line.trim_start().starts_with(name) && line.contains(&first);
        assert!(text.lines().any(said), "{name}: {why}\n{text}");
    }
    let markdown = stdout(&plait("compare", &format!("{line} --explain --format markdown"), &[]));
    assert!(markdown.contains("* `minrtt`: "), "{markdown}");
}

/// Ctrl-C ends an explanation inside a run.
#[test]
#[cfg(target_os = "linux")]
#[allow(clippy::disallowed_methods, reason = "another process is waited for")]
fn an_interrupt_ends_an_explanation() {
    let long =
        "--path fast:rate=50mbit,rtt=20ms --path slow:rate=50mbit,rtt=60ms --workload bulk:60min";
    let child = Command::new(PLAIT)
        .arg("explain")
        .args(long.split_whitespace())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Bit 1 of the mask is the handler of SIGINT.
    let handles = || {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(mask.trim(), 16).unwrap() & 2 != 0
    };
    let mut looks = (0..2_000).map(|_| std::thread::sleep(Duration::from_millis(5)));
    let installed = looks.any(|()| handles());
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(installed && killed.success());
    assert_eq!(output.status.code(), Some(130));
    assert!(output.stdout.is_empty());
    assert!(String::from_utf8(output.stderr).unwrap().contains("interrupted"));
}
