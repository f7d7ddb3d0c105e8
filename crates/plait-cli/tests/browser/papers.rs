//! The pages of `plait reproduce --html` in the browser: every kind of picture, with the fonts installed there.

use super::devtools::Browser;
use super::{DARK, LIGHT, PHONE, PLAIT, browser, directory};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Finds labels that overlap or leave their drawing, texts that are hard to read, and elements wider than the
/// screen.
pub(super) const PROBE: &str = include_str!("papers.js");

const EXPERIMENT: &str = r#"
title = "Every kind"
kernel = "4.1"
reported = "Nothing: it is a test."
workload = "download:{size}"
runs = 3
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
size = ["10kB", "20kB", "100kB", "200kB", "1MB", "2MB"]
rtt = ["40ms", "80ms", "120ms", "160ms", "200ms", "240ms"]
[row]
tcp-over-wifi = { single = "wifi" }
lrf = { scheduler = "minrtt" }
ecf = { scheduler = "ecf" }
sttf = { scheduler = "sttf" }
blest-in-paper-mode = { scheduler = "blest" }
[[claim]]
id = "ton-h99"
kind = "hard"
says = "more takes longer"
holds = "for rtt: increasing(lrf.completion_ms, 10%)"
[[picture]]
kind = "line"
measure = "completion_ms"
x = "size"
log = "xy"
[[picture]]
kind = "bars"
measure = "path_share.wifi"
x = "size"
[[picture]]
kind = "box"
measure = "completion_ms"
x = "size"
log = "y"
[[picture]]
kind = "cdf"
measure = "completion_ms"
x = "size"
log = "x"
[[picture]]
kind = "heat"
measure = "completion_ms"
x = "size"
y = "rtt"
against = "tcp-over-wifi"
"#;

fn pages(dir: &Path) -> Vec<PathBuf> {
    fs::create_dir_all(dir.join("files/ton")).unwrap();
    fs::write(dir.join("files/ton/ton-kinds.toml"), EXPERIMENT).unwrap();
    let output = Command::new(PLAIT)
        .args(["reproduce", "ton", "--no-cache", "--experiments", "files", "--html", "pages"])
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    vec![dir.join("pages/index.html"), dir.join("pages/ton.html")]
}

fn look(browser: &mut Browser, page: &Path, wanted: usize) {
    for look in [LIGHT, DARK, PHONE] {
        browser.open(page, look);
        let seen: Value = browser.evaluate(PROBE);
        let place = format!("{}, {look:?}", page.display());
        assert_eq!(browser.complaints(page), Vec::<String>::new(), "{place}");
        assert_eq!(seen["wrong"], json!([]), "{place}");
        assert_eq!(seen["drawings"], wanted, "{place}");
    }
}

#[test]
fn the_pages_of_the_papers_open_light_dark_and_on_a_phone() {
    let dir = directory("papers");
    let Some(mut browser) = browser(&dir) else { return };
    let pages = pages(&dir);
    // One panel for each of the six points of the other axis, and one heat map for each of four rows.
    for (page, drawings) in pages.iter().zip([0, 4 * 6 + 4]) {
        look(&mut browser, page, drawings);
    }
    // A separate picture has its colours at its marks, on white, so dark mode does not change it.
    let svg = dir.join("pages/svg/ton-kinds-1-1.svg");
    browser.open(&svg, DARK);
    let colour = "getComputedStyle(document.querySelector('[stroke-width=\"1.8\"]')).stroke";
    assert_eq!(browser.evaluate(colour), "rgb(0, 114, 178)");
}
