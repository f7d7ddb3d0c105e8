//! Files that `plait run` writes, mainly the page (`events` tests the JSON lines).
#![allow(clippy::unwrap_used, clippy::panic)]

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PLAIT: &str = env!("CARGO_BIN_EXE_plait");

/// Runs with these files and returns stdout.
fn run(args: &str) -> String {
    let args = args.split_whitespace();
    let output = Command::new(PLAIT).arg("run").args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn file(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("run-files");
    fs::create_dir_all(&dir).unwrap();
    dir.join(name)
}

/// Returns the page that a run writes.
fn page(name: &str, args: &str) -> (PathBuf, String) {
    let path = file(name);
    run(&format!("{args} --html {}", path.display()));
    let text = fs::read_to_string(&path).unwrap();
    (path, text)
}

const HARD: &str = "--path a:rtt=20ms,rate=8mbit,loss=1%,down=300ms..900ms \
                    --path b:rtt=90ms,rate=4mbit,queue=20pkt --workload download:600kB \
                    --schedulers ecf+rp --rcvbuf 96KiB --runs 1";
const EASY: &str = "--path wifi-home --path lte-att --workload download:256kB";

#[test]
fn watching_changes_nothing_and_the_files_are_reproducible() {
    let plain = run(&format!("{HARD} --json"));
    let (first, second) = (file("first"), file("second"));
    let with = |path: &Path| {
        let files = format!("--events {0}.jsonl --html {0}.html", path.display());
        run(&format!("{HARD} --json {files}"))
    };
    assert!(plain == with(&first) && plain == with(&second));
    for kind in ["jsonl", "html"] {
        let read = |path: &Path| fs::read(path.with_extension(kind)).unwrap();
        assert!(read(&first) == read(&second), "{kind}");
    }
}

#[test]
fn a_file_that_cannot_be_written_is_an_error_before_the_run() {
    for flag in ["--html", "--events"] {
        let args: Vec<&str> = EASY.split_whitespace().chain([flag, "/no/such/dir/run"]).collect();
        let output = Command::new(PLAIT).arg("run").args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{flag}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("/no/such/dir/run"));
    }
}

/// Returns the numbers in a page.
pub(crate) fn numbers(page: &str) -> Value {
    let start = page.find("id=\"run\">").unwrap() + "id=\"run\">".len();
    let end = start + page[start..].find("</script>").unwrap();
    serde_json::from_str(&page[start..end]).unwrap()
}

#[test]
fn the_page_needs_nothing_but_itself() {
    let (_, text) = page("alone.html", EASY);
    check_alone(&text);
    assert!(text.contains("plait run --path wifi-home --path lte-att --workload download:256kB"));
    // The page has no date and no path: its bytes depend only on the scenario.
    assert!(!text.contains(env!("CARGO_TARGET_TMPDIR")));
}

/// Fails if the page loads something.
pub(crate) fn check_alone(text: &str) {
    for word in ["http:", "https:", "src=", "url(", "@import", "fetch(", "XMLHttp", "//cdn"] {
        assert!(!text.contains(word), "{word}");
    }
    assert!(text.contains("default-src 'none'"));
}

#[test]
fn the_elements_of_the_page_are_closed_in_order() {
    let (_, text) = page("elements.html", HARD);
    check_elements(&text);
    // One in each figure, plus the ruler.
    assert!(text.matches("<figure").count() > 5);
    for table in [
        "What each path did",
        "Subflows of the sender",
        "Held back",
        "Scheduling decisions",
        "Measures",
        "Paths as simulated",
    ] {
        assert!(text.contains(&format!("<caption>{table}</caption>")), "{table}");
    }
}

/// Fails if elements are not closed in order, or if one lacks what it needs.
pub(crate) fn check_elements(text: &str) {
    let void = ["meta", "link", "br", "input", "!DOCTYPE"];
    let mut open: Vec<String> = Vec::new();
    let mut ids = BTreeSet::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let end = at + rest[at..].find('>').unwrap();
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        let name = tag.split([' ', '\n']).next().unwrap();
        if let Some(name) = name.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "near {rest:.80}");
            continue;
        }
        for id in tag.split(" id=\"").skip(1) {
            assert!(ids.insert(id.split('"').next().unwrap().to_owned()), "twice: {id}");
        }
        if !void.contains(&name) {
            open.push(name.to_owned());
        }
        // The content of scripts and styles is not markup.
        if ["script", "style"].contains(&name) {
            rest = &rest[rest.find(&format!("</{name}>")).unwrap()..];
        }
    }
    assert!(open.is_empty(), "{open:?}");
    assert!(text.contains("<html lang=\"en\">") && text.contains("<title>"));
    assert_eq!(text.matches("<h1").count(), 1);
    assert_eq!(text.matches("<table>").count(), text.matches("<caption>").count());
    let canvases = text.matches("<canvas").count();
    assert!(canvases == 0 || canvases == text.matches("<figure").count() + 1);
    for canvas in text.split("<canvas").skip(1) {
        assert!(canvas.split('>').next().unwrap().contains("aria-"), "{canvas:.80}");
    }
}

#[test]
fn the_drawing_shows_what_happened() {
    let path = file("both.html");
    let log = file("both.jsonl");
    run(&format!("{HARD} --html {} --events {}", path.display(), log.display()));
    let drawing = numbers(&fs::read_to_string(path).unwrap());
    let lines: Vec<Value> = fs::read_to_string(log)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let bins = drawing["bins"].as_u64().unwrap() as usize;
    assert!((300..=1_200).contains(&bins), "{bins}");
    let last = |band: &Value| band["last"].as_array().unwrap().last().unwrap().as_u64().unwrap();
    assert_eq!(last(&drawing["readable"]), 600_000);
    assert_eq!(last(&drawing["held"]), 0);
    let sum = |sparse: &Value| -> u64 {
        sparse.as_array().unwrap().iter().map(|pair| pair[1].as_u64().unwrap()).sum()
    };
    for (index, path) in drawing["paths"].as_array().unwrap().iter().enumerate() {
        let of = |event: &'static str| {
            let name = path["name"].clone();
            lines.iter().filter(move |line| line["event"] == event && line["path"] == name)
        };
        let sent: u64 =
            of("segment-sent").map(|line| line["payload_bytes"].as_u64().unwrap()).sum();
        let asked = if index == 0 { 200 } else { 0 };
        assert_eq!(sum(&path["sent"]), sent - asked, "all but the request");
        let lost = of("segment-dropped").count() as u64;
        assert_eq!(sum(&path["lost"]) + sum(&path["lost_acks"]), lost);
        for band in ["cwnd", "inflight", "srtt_us", "queue"] {
            assert_eq!(path[band]["last"].as_array().unwrap().len(), bins, "{band}");
        }
    }
    // With so few segments, each keeps its own mark.
    let marks = |kind: &str| -> usize {
        let groups = drawing["marks"].as_array().unwrap().iter();
        groups
            .filter(|group| group["kind"] == kind)
            .map(|g| g["boxes"].as_array().unwrap().len() / 4)
            .sum()
    };
    let new = lines
        .iter()
        .filter(|l| l["host"] == "server" && l["event"] == "data-sent" && l["carry"] == "new");
    assert_eq!(marks("sent"), new.count());
    let lost = lines.iter().filter(|l| l["event"] == "segment-dropped" && l["host"] == "server");
    let lost = lost.filter(|l| l["payload_bytes"] != 0).count();
    assert!(lost > 10, "{lost}");
    assert_eq!(marks("lost"), lost);
    assert_eq!(drawing["paths"][0]["down"], serde_json::json!([[300_000, 900_000]]));
    assert_eq!(drawing["paths"][1]["down"], serde_json::json!([]));
    let timeouts =
        lines.iter().filter(|l| l["host"] == "server" && l["event"] == "timeout").count();
    let incidents = drawing["incidents"].as_array().unwrap();
    assert_eq!(incidents.iter().filter(|incident| incident[2] == "timeout").count(), timeouts);
}

#[test]
fn what_is_drawn_starts_with_the_first_syn_or_after_the_warm_up() {
    let end = |name: &str, workload: &str| {
        let args = format!("--path wifi-home --path lte-att --workload {workload} --json");
        let path = file(name);
        let report = run(&format!("{args} --html {}", path.display()));
        let report: Value = serde_json::from_str(&report).unwrap();
        let drawing = numbers(&fs::read_to_string(path).unwrap());
        (drawing["end_us"].as_f64().unwrap() / 1e3, drawing, report["measures"].clone())
    };
    let (ms, _, measures) = end("upload.html", "upload:200kB");
    assert!(ms >= measures["completion_ms"].as_f64().unwrap(), "{ms} {measures}");
    let (ms, drawing, measures) = end("burst.html", "burst:15seg");
    let delay = measures["message_delay_ms"].as_f64().unwrap();
    assert!((delay..delay + 100.0).contains(&ms), "{ms} {measures}");
    // Only the burst, counted from its first byte. Windows are known from the start.
    let sent: u64 = drawing["marks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|group| group["kind"] == "sent")
        .flat_map(|group| group["boxes"].as_array().unwrap().chunks(4))
        .map(|mark| mark[3].as_u64().unwrap())
        .sum();
    assert_eq!(sent % 15, 0, "15 segments: {sent}");
    assert_eq!(drawing["readable"]["last"].as_array().unwrap().last().unwrap(), sent);
    assert!(drawing["paths"][0]["cwnd"]["last"][0].is_u64());
}

#[test]
fn a_minute_of_bulk_fits_the_page() {
    let args = "--path wifi-home --path lte-att --workload bulk:60s";
    let (_, text) = page("bulk.html", args);
    assert!(text.len() < 2_000_000, "{} bytes", text.len());
    // The page reports which series were thinned, and to how many points.
    let told = text.split("id=\"thinned\">").nth(1).unwrap().split('<').next().unwrap();
    assert!(told.contains(" are drawn as ") && told.contains(" share a mark."), "{told}");
    let (_, text_of_few) = page("few.html", EASY);
    assert!(text_of_few.contains("losses of data has its mark."));
    let drawing = numbers(&text);
    assert!(drawing["end_us"].as_f64().unwrap() >= 59.9e6);
}

#[test]
fn names_cannot_break_out_of_the_page() {
    let strange = "--path <script>alert(1)</script>:rtt=9ms,rate=9mbit --workload download:64kB";
    let args: Vec<&str> = strange.split_whitespace().collect();
    let path = file("strange.html");
    let output =
        Command::new(PLAIT).arg("run").args(args).arg("--html").arg(&path).output().unwrap();
    if output.status.code() == Some(2) {
        return; // Refusing such a name is correct too.
    }
    assert!(!fs::read_to_string(path).unwrap().contains("<script>alert"));
}

/// R46: the page shades the time without an address, and its path carries nothing during it.
#[test]
fn the_page_shades_a_path_without_an_address() {
    let path = file("gone.html");
    let said = run(&format!(
        "--path a:rtt=30ms,rate=8mbit,gone=500ms..1s --path b:rtt=50ms,rate=6mbit \
         --workload download:2MB --html {}",
        path.display()
    ));
    assert!(said.contains("gone=500ms..1s"), "the line to run it again: {said}");
    let drawing = numbers(&fs::read_to_string(path).unwrap());
    assert_eq!(drawing["paths"][0]["down"], serde_json::json!([[500_000, 1_000_000]]));
    assert_eq!(drawing["paths"][1]["down"], serde_json::json!([]));
}
