//! The page of `plait explain CAPTURE --html`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use crate::captured::{capture_of, plait};
use crate::run_files::{check_alone, check_elements, numbers};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

/// A run with an outage, as in docs/explain-capture.md.
const OUTAGE: &str = "--path wifi:rate=20mbit,rtt=22ms,down=1s..3s --path lte:rate=10mbit,rtt=60ms \
                      --workload download:8MB";

fn file(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("captured-page");
    fs::create_dir_all(&dir).unwrap();
    dir.join(name)
}

fn captured(name: &str, run: &str) -> PathBuf {
    capture_of(run, file(name))
}

/// Explains files with a page. Returns what the command writes, and the page.
fn page(name: &str, args: &[&str]) -> (Output, String) {
    let html = file(name);
    let _ = fs::remove_file(&html);
    let output = plait(&[&["explain"], args, &["--html", html.to_str().unwrap()]].concat());
    (output, fs::read_to_string(html).unwrap())
}

fn text(html: &str) -> String {
    html.replace("&#39;", "'").replace("&quot;", "\"").replace("&amp;", "&")
}

fn sum(sparse: &Value) -> u64 {
    sparse.as_array().unwrap().iter().map(|pair| pair[1].as_u64().unwrap()).sum()
}

#[test]
fn the_page_has_the_sentence_the_incidents_and_the_transfer_over_time() {
    let pcap = captured("outage.pcapng", OUTAGE);
    let pcap = pcap.to_str().unwrap();
    let (output, html) = page("outage.html", &[pcap, "--json"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    check_alone(&html);
    check_elements(&html);
    let connection = &document["connections"][0];
    let sentence = document["sentence"].as_str().unwrap();
    assert!(text(&html).contains(&format!("<h1 class=\"sentence\">{sentence}</h1>")), "{sentence}");
    assert!(sentence.contains("wifi was silent"), "{sentence}");
    // The first table row with an incident is the most expensive one, and has its packets.
    let incidents = connection["incidents"].as_array().unwrap();
    let first =
        html.split("<a href=\"#incident=1\">").nth(1).unwrap().split("</tr>").next().unwrap();
    assert!(first.contains("path-silent of wifi"), "{first}");
    for incident in incidents {
        let packets = format!("{} to {}", incident["first"]["packet"], incident["last"]["packet"]);
        assert!(html.contains(&packets), "{packets}");
    }
    for caption in ["Lost time by cause", "What each path did", "Fitted links", "What was read"] {
        assert!(html.contains(&format!("<caption>{caption}</caption>")), "{caption}");
    }
    assert!(text(&html).contains(document["command"].as_str().unwrap()));

    // Each series has as many points as there are bins, and the sums are those of the report.
    let drawing = numbers(&html);
    let bins = drawing["bins"].as_u64().unwrap() as usize;
    assert!((1_190..=1_200).contains(&bins), "{bins}");
    let last = |band: &Value| band["last"].as_array().unwrap().last().unwrap().as_u64();
    assert_eq!(last(&drawing["readable"]), connection["data"]["acked_bytes"].as_u64());
    assert_eq!(last(&drawing["unacked"]), Some(0));
    for band in ["readable", "unacked", "window"] {
        for part in ["least", "greatest", "last"] {
            assert_eq!(drawing[band][part].as_array().unwrap().len(), bins, "{band}");
        }
    }
    let duration = connection["duration_ms"].as_f64().unwrap();
    assert!((drawing["end_us"].as_f64().unwrap() / 1e3 - duration).abs() < 0.01);
    for (drawn, path) in
        drawing["paths"].as_array().unwrap().iter().zip(connection["paths"].as_array().unwrap())
    {
        assert_eq!(drawn["name"], path["name"]);
        let traffic = &path["traffic"];
        assert_eq!(sum(&drawn["sent"]), traffic["bytes"].as_u64().unwrap());
        assert_eq!(sum(&drawn["again"]), traffic["retransmitted_segments"].as_u64().unwrap());
        assert_eq!(drawn["unacked"]["last"].as_array().unwrap().len(), bins);
        let trips = drawn["rtt_us"].as_array().unwrap();
        let least = trips.iter().map(|it| it[1].as_u64().unwrap()).min().unwrap();
        let rtt = path["rtt"]["min_ms"].as_f64().unwrap();
        assert!((least as f64 / 1e3 - rtt).abs() < 0.01, "{least} {rtt}");
        assert!(trips.len() > 200 && trips.len() <= bins);
    }
    // The incidents are shaded where they cost something, in the order of the table.
    let spans = drawing["spans"].as_array().unwrap();
    assert_eq!(spans.len(), incidents.len());
    assert_eq!((&spans[0][2], &spans[0][3]), (&Value::from(0), &Value::from(1)));
    assert!(
        (spans[0][0].as_f64().unwrap() / 1e3 - incidents[0]["from_ms"].as_f64().unwrap()).abs()
            < 0.01
    );
    assert_eq!(drawing["blocked"][0]["name"], "path-silent of wifi");
    // Sent again and reinjected data is marked.
    let kinds: Vec<&Value> =
        drawing["marks"].as_array().unwrap().iter().map(|it| &it["kind"]).collect();
    for kind in ["sent", "again", "copied"] {
        assert!(kinds.iter().any(|it| *it == kind), "{kind}: {kinds:?}");
    }
}

#[test]
fn the_page_changes_nothing_else_and_is_reproducible() {
    let pcap = captured("plain.pcapng", OUTAGE);
    let pcap = pcap.to_str().unwrap();
    for flags in [&[][..], &["--json"], &["--output", "/dev/stdout"]] {
        let plain = plait(&[&["explain", pcap], flags].concat());
        let (with, first) = page("plain.html", &[&[pcap], flags].concat());
        let (_, second) = page("plain.html", &[&[pcap], flags].concat());
        assert_eq!(String::from_utf8(with.stdout), String::from_utf8(plain.stdout));
        assert_eq!((with.status.code(), with.stderr), (Some(0), plain.stderr));
        assert!(first == second);
    }
}

#[test]
fn a_damaged_capture_has_the_page_of_what_came_before() {
    let pcap = captured("whole.pcapng", OUTAGE);
    let whole = fs::read(&pcap).unwrap();
    let cut = file("cut.pcapng");
    fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    let plain = plait(&["explain", cut.to_str().unwrap()]);
    let (output, html) = page("cut.html", &[cut.to_str().unwrap()]);
    assert_eq!((output.status.code(), output.stderr), (Some(2), plain.stderr));
    assert!(html.contains("<ul class=\"faults\">") && html.contains(" was read up to packet "));
    check_elements(&html);
    let drawing = numbers(&html);
    let sent: u64 =
        drawing["paths"].as_array().unwrap().iter().map(|path| sum(&path["sent"])).sum();
    assert!((2_000_000..6_000_000).contains(&sent), "{sent}");
    // A file without a connection has a page without drawings.
    let head = file("head.pcap");
    let words = [0xa1b2_c3d4_u32, 4 << 16 | 2, 0, 0, 65_535, 1];
    fs::write(&head, words.map(u32::to_le_bytes).concat()).unwrap();
    let (_, html) = page("head.html", &[head.to_str().unwrap()]);
    check_elements(&html);
    assert!(html.contains("There is no TCP connection") && !html.contains("<canvas"));
}

#[test]
fn a_qlog_is_drawn_too_and_what_if_has_a_table() {
    let qlog = file("run.sqlog");
    let words = OUTAGE.split_whitespace().chain(["--qlog", qlog.to_str().unwrap()]);
    assert!(plait(&["run"].into_iter().chain(words).collect::<Vec<_>>()).status.success());
    let what_if = ["--what-if", "ecf", "--runs", "1"];
    let (output, html) = page("qlog.html", &[&[qlog.to_str().unwrap()], &what_if[..]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    check_elements(&html);
    assert!(
        html.contains("<caption>With other schedulers</caption>") && html.contains(">lines</th>")
    );
    assert!(html.contains("<th scope=\"row\">ecf</th>"));
    assert!(numbers(&html)["bins"].as_u64().unwrap() > 1_000);
}

#[test]
fn names_cannot_break_out_of_the_page() {
    let run = "--path wifi:rate=20mbit,rtt=22ms --workload download:64kB";
    let pcap = captured("strange.pcapng", run);
    let strange = file("a'b\"<script>alert(1)<\u{2044}script>&amp;.pcapng");
    fs::rename(pcap, &strange).unwrap();
    let (output, html) = page("strange.html", &[strange.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    check_elements(&html);
    assert!(!html.contains("<script>alert") && html.contains("&lt;script&gt;alert(1)"));
    assert!(html.contains("&amp;amp;.pcapng"));
}

/// The page of a long transfer is not larger than that of a short one with many segments.
#[test]
fn the_page_of_a_long_transfer_is_bounded() {
    let size = |name: &str, run: &str| {
        let pcap = captured(&format!("{name}.pcapng"), run);
        let (_, html) = page(&format!("{name}.html"), &[pcap.to_str().unwrap()]);
        fs::remove_file(pcap).unwrap();
        let drawing = numbers(&html);
        let marks = drawing["marks"].as_array().unwrap().iter();
        let marks: usize = marks.map(|it| it["boxes"].as_array().unwrap().len() / 4).sum();
        (html.len(), drawing["bins"].as_u64().unwrap(), marks)
    };
    let links = "--path wifi:rate=40mbit,rtt=22ms --path lte:rate=20mbit,rtt=60ms";
    let short = size("short", &format!("{links} --workload bulk:4s"));
    let long = size("long", &format!("{links} --workload bulk:40s"));
    assert!(short.1 <= 1_200 && long.1 <= 1_200, "{short:?} {long:?}");
    assert!(short.2 <= 12_000 && long.2 <= 12_000, "{short:?} {long:?}");
    assert!(long.0 < 800_000 && long.0 * 2 < short.0 * 3, "{short:?} {long:?}");
}

#[test]
fn the_flag_is_refused_where_it_cannot_be_followed() {
    let pcap =
        captured("refused.pcapng", "--path wifi:rate=20mbit,rtt=22ms --workload download:64kB");
    let pcap = pcap.to_str().unwrap();
    let same = file("same.html");
    let same = same.to_str().unwrap();
    let run = ["--path", "wifi-home", "--path", "lte-att", "--workload", "download:64kB"];
    let cases: [(Vec<&str>, &str); 5] = [
        (vec![pcap, "--html", pcap], "--html: `PCAP`: it is read, and would be replaced"),
        (vec![pcap, "--html", same, "--output", same], "--output names the same file"),
        (vec![pcap, "--html", "/no/such/dir/page.html"], "--html: `/no/such/dir/page.html`"),
        (vec!["missing.pcapng", "--html", same], "RUN: `missing.pcapng`: there is no such file"),
        ([&run[..], &["--html", same]].concat(), "--html: `SAME`: it needs a capture"),
    ];
    for (args, problem) in cases {
        let output = plait(&[&["explain"], &args[..]].concat());
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{args:?}: {error}");
        let problem = problem.replace("PCAP", pcap).replace("SAME", same);
        assert!(error.contains(&problem), "{args:?}: {error}");
        assert!(!Path::new(same).exists(), "{args:?}");
    }
    assert!(plait(&["explain", pcap]).status.success(), "the capture is unchanged");
}
