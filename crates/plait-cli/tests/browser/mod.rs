//! The pages of `plait run --html` and of `plait explain CAPTURE --html` in a browser: every scenario of the README and
//! harder ones, in light and dark mode, on a desktop and a phone.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod advice;
mod devtools;
mod papers;
mod scenarios;

use devtools::{Browser, Look};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const PLAIT: &str = env!("CARGO_BIN_EXE_plait");
/// Records every number and text passed to a drawing.
const HOOK: &str = include_str!("hook.js");
/// The content of the page, as the page reports it.
const PROBE: &str = include_str!("probe.js");

const LIGHT: Look = Look { scheme: "light", width: 1280, mobile: false };
const DARK: Look = Look { scheme: "dark", width: 1280, mobile: false };
const PHONE: Look = Look { scheme: "dark", width: 360, mobile: true };

/// Returns a directory of this test.
fn directory(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser").join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

/// Returns a browser. Without one, the summary reports that the test was skipped.
fn browser(dir: &Path) -> Option<Browser> {
    let browser = Browser::start(&dir.join("profile"));
    if browser.is_none() {
        // Written past the capture of the test's output, so that `make test` finds it.
        let why = "no browser (Debian package chromium) to open the pages of `plait run --html` in";
        let _ = writeln!(std::io::stdout(), "\nskipped: {why}");
    }
    browser.map(|mut browser| {
        browser.prepare(HOOK);
        browser
    })
}

/// Returns the page of a run.
fn page(dir: &Path, name: &str, args: &[String]) -> PathBuf {
    let page = dir.join(format!("{name}.html"));
    let mut command = Command::new(PLAIT);
    command.arg("run").args(args).arg("--html").arg(&page).current_dir(dir);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    page
}

/// Opens a page and returns its content.
fn look(browser: &mut Browser, page: &Path, look: Look) -> Value {
    browser.open(page, look);
    let seen = browser.evaluate(PROBE);
    let place = format!("{}, {look:?}", page.display());
    assert_eq!(browser.complaints(page), Vec::<String>::new(), "{place}");
    assert_eq!(seen["wrong"], json!([]), "{place}");
    let text = |key: &str| seen[key].as_str().unwrap_or_default().to_owned();
    let ground = if look.scheme == "light" { "rgb(255, 255, 255)" } else { "rgb(20, 23, 28)" };
    assert_eq!(text("ground"), ground, "{place}");
    assert!(text("time").contains(" to "), "{place}: {}", seen["time"]);
    seen
}

#[test]
fn every_scenario_of_the_readme_opens_light_dark_and_on_a_phone() {
    let dir = directory("scenarios");
    let Some(mut browser) = browser(&dir) else { return };
    for (name, args) in scenarios::all(&dir) {
        let page = page(&dir, &name, &args);
        let paths = args.iter().filter(|word| *word == "--path").count();
        for how in [LIGHT, DARK, PHONE] {
            let seen = look(&mut browser, &page, how);
            // Sequence, rate, out of order and the ruler; three for each path; and the sender's limits.
            let plots = seen["plots"].as_array().unwrap();
            assert!((4 + 3 * paths..=5 + 3 * paths).contains(&plots.len()), "{name}: {plots:?}");
            for plot in plots {
                assert_eq!(plot["missing"], json!([]), "{name}, {how:?}: {plot}");
            }
            assert_eq!(seen["pathRows"], paths, "{name}");
            assert!(seen["tiles"].as_u64().unwrap() >= 1, "{name}");
        }
    }
}

#[test]
fn the_page_of_a_capture_opens_light_dark_and_on_a_phone() {
    let dir = directory("captured");
    let Some(mut browser) = browser(&dir) else { return };
    let runs = [
        (
            "outage",
            "--path wifi:rate=20mbit,rtt=22ms,down=1s..3s --path lte:rate=10mbit,rtt=60ms --workload download:8MB",
        ),
        (
            "window",
            "--path a:rate=20mbit,rtt=22ms --path b:rate=10mbit,rtt=60ms --workload upload:4MB --rcvbuf 48KiB",
        ),
        ("loss", "--path one:rate=20mbit,rtt=22ms,loss=3% --workload download:2MB"),
    ];
    for (name, run) in runs {
        let [pcap, page] = ["pcapng", "html"].map(|form| dir.join(format!("{name}.{form}")));
        let run = run.split_whitespace();
        let made = Command::new(PLAIT).arg("run").args(run).arg("--pcap").arg(&pcap).output();
        assert!(made.unwrap().status.success(), "{name}");
        let files = [pcap.as_os_str(), "--html".as_ref(), page.as_os_str()];
        let explained = Command::new(PLAIT).arg("explain").args(files).output();
        assert!(explained.unwrap().status.success(), "{name}");
        for how in [LIGHT, DARK, PHONE] {
            let seen = look(&mut browser, &page, how);
            let paths = seen["pathRows"].as_u64().unwrap() as usize;
            let plots = seen["plots"].as_array().unwrap();
            // Sequence, incidents, rate, unacknowledged data and the ruler, and two for each path.
            assert_eq!(plots.len(), 5 + 2 * paths, "{name}: {plots:?}");
            for plot in plots {
                assert_eq!(plot["missing"], json!([]), "{name}, {how:?}: {plot}");
            }
        }
    }
    // The link of an incident leads to its time, and a key back to all.
    browser.open(&dir.join("outage.html"), LIGHT);
    let there = |wanted: &str| {
        format!(
            "new Promise((done) => {{ const end = performance.now() + 60000; \
            const text = () => document.getElementById('time').textContent; \
            const look = () => text().startsWith('{wanted}') || performance.now() > end \
            ? done(text()) : requestAnimationFrame(look); look(); }})"
        )
    };
    browser.evaluate("document.querySelector('a[href=\"#incident=1\"]').click()");
    let seen = browser.evaluate(&there("0.6")).as_str().unwrap().to_owned();
    assert!(seen.starts_with("0.6") && seen.contains(" to 3.5"), "{seen}");
    browser.evaluate("document.querySelector('canvas[data-plot=sequence]').focus()");
    browser.press("Escape");
    let seen = browser.evaluate(&there("0.000 ")).as_str().unwrap().to_owned();
    assert!(seen.starts_with("0.000 s to 4.0"), "{seen}");
    assert_eq!(browser.complaints(&dir.join("outage.html")), Vec::<String>::new());
}

#[test]
fn pointer_and_keys_read_values_and_zoom() {
    let dir = directory("pointer");
    let Some(mut browser) = browser(&dir) else { return };
    let args = "--path wifi-home --path lte-att --workload download:2MB --schedulers ecf";
    let args: Vec<String> = args.split_whitespace().map(str::to_owned).collect();
    let page = page(&dir, "run", &args);
    look(&mut browser, &page, LIGHT);
    let time = "document.getElementById('time').textContent";
    let settled = format!(
        "new Promise((done) => requestAnimationFrame(() => \
        requestAnimationFrame(() => done({time}))))"
    );
    let whole = browser.evaluate(&settled).as_str().unwrap().to_owned();

    // The pointer shows a value in every drawing, and a drag zooms in.
    let place = browser.evaluate(
        "(() => { const b = document.querySelector('canvas[data-plot=sequence]')\
         .getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()",
    );
    let [x, y, width, height] = [0, 1, 2, 3].map(|nth| place[nth].as_f64().unwrap());
    let middle = y + height / 2.0;
    browser.drag(&[
        (x + width * 0.4, middle),
        (x + width * 0.5, middle),
        (x + width * 0.6, middle),
    ]);
    let at = browser.evaluate(&settled);
    assert!(at.as_str().unwrap().starts_with("at "), "{at}");
    let values = browser
        .evaluate("Array.from(document.querySelectorAll('figure output'), (o) => o.textContent)");
    let values = values.as_array().unwrap();
    assert!(values.iter().all(|value| !value.as_str().unwrap().is_empty()), "{values:?}");
    assert!(values.iter().any(|value| value.as_str().unwrap().starts_with("cwnd ")), "{values:?}");
    browser.evaluate("document.activeElement.blur()");
    browser.drag(&[(2.0, 2.0)]);
    let closer = browser.evaluate(&settled).as_str().unwrap().to_owned();
    assert_ne!(closer, whole);

    // A link sets the visible range. The page receives it as an event.
    let there = format!(
        "new Promise((done) => {{ const end = performance.now() + 60000; \
        const look = () => {time}.startsWith('at 300.') || performance.now() > end \
        ? done({time}) : requestAnimationFrame(look); look(); }})"
    );
    browser.evaluate("location.hash = '#at=0.3s'");
    assert_eq!(browser.evaluate(&there).as_str().unwrap().split('.').next(), Some("at 300"));

    // Keys do the same without a pointer.
    browser.evaluate("document.querySelector('canvas[data-plot=sequence]').focus()");
    browser.press("Escape");
    browser.press("ArrowRight");
    browser.press("ArrowRight");
    let at = browser.evaluate(&settled);
    assert!(at.as_str().unwrap().starts_with("at "), "{at}");
    browser.press("+");
    browser.press("+");
    let seen = browser.evaluate(PROBE);
    assert_eq!(seen["wrong"], json!([]));
    // If a path or a kind of mark is switched off, it is no longer drawn.
    browser.press("Escape");
    browser.evaluate("document.querySelectorAll('#key input').forEach((box) => box.click())");
    let none = browser.evaluate(PROBE);
    let sequence = &none["plots"][0];
    assert_ne!(sequence["missing"], json!([]), "{sequence}");
    assert_eq!(browser.complaints(&page), Vec::<String>::new());
}
