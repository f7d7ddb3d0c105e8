//! Tests of the lists, and of the pages in `docs/schedulers` and `docs/cc` with their measured
//! table. `PLAIT_BLESS=1 cargo test -p plait-report list::` writes these files; otherwise they are
//! compared.

use super::measured::{CASES, Case, row_names};
use super::*;
use plait_lab::scenario::no_files;
use plait_lab::{Control, RawScenario, Report, Simulator};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

/// If set, generated text is written instead of compared.
const BLESS: &str = "PLAIT_BLESS";
/// The origin of a file, as its header states it.
const ORIGIN: &str = "Written by `PLAIT_BLESS=1 cargo test -p plait-report list::`; do not edit.";

fn crate_file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns the difference between a generated text and its file; writes the file if `BLESS` is set.
fn drift(path: &Path, fresh: &str) -> Option<String> {
    if std::env::var_os(BLESS).is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, fresh).unwrap();
        return None;
    }
    let stored = fs::read_to_string(path).unwrap_or_default();
    let line = fresh.lines().zip(stored.lines()).find(|(fresh, stored)| fresh != stored);
    let (now, then) = line.unwrap_or(("(another number of lines)", ""));
    (fresh != stored).then(|| format!("{}:\n  is   {then}\n  now  {now}", path.display()))
}

fn none_differs(differences: &[String]) {
    assert!(
        differences.is_empty(),
        "out of date; `PLAIT_BLESS=1 cargo test -p plait-report list::` writes them:\n{}",
        differences.join("\n")
    );
}

fn report(case: &Case) -> Report {
    let names = row_names();
    let schedulers: Vec<&str> = names.iter().map(String::as_str).collect();
    let schedulers = schedulers.into_iter().filter(|name| !name.starts_with("tcp:"));
    let schedulers = schedulers.collect::<Vec<_>>().join(",");
    let mut draft = RawScenario::new();
    let line = format!("{} --schedulers {schedulers}", case.arguments());
    for setting in line.split("--").skip(1) {
        let (name, text) = setting.trim().split_once(' ').unwrap();
        draft.argument(name, text).unwrap();
    }
    draft.argument("exact", "on").unwrap();
    let never = AtomicBool::new(false);
    let control = Control::unwatched(&never);
    plait_lab::compare(&draft.build().unwrap(), &Simulator, &control, &no_files)
        .unwrap()
        .points
        .remove(0)
}

/// Returns a table measured now.
fn fresh() -> &'static str {
    static TABLE: OnceLock<String> = OnceLock::new();
    TABLE.get_or_init(|| {
        let reports = CASES.each_ref().map(|case| (case, report(case)));
        let mut table = format!("# {ORIGIN}\n{:<14}", "scheduler");
        for case in &CASES {
            write!(table, " {:>13}", case.column).unwrap();
        }
        table.push('\n');
        for name in row_names() {
            write!(table, "{name:<14}").unwrap();
            for (case, report) in &reports {
                assert_eq!(report.primary_measure, case.measure, "{}", case.column);
                assert_eq!(report.seed, 1);
                let row = report.rows.iter().find(|row| row.scheduler == name).unwrap();
                assert_eq!(row.cc, "cubic");
                assert_eq!(row.incomplete, 0, "{name}, {}: {:?}", case.column, row.failures);
                write!(table, " {:>13.1}", row.measures[case.measure].median).unwrap();
            }
            table.push('\n');
        }
        table
    })
}

/// Returns the file name of a page.
fn file_name(item: &Item) -> String {
    format!("{}.md", item.name.trim_start_matches('+'))
}

fn index(kind: ListKind, items: &[Item]) -> String {
    let (title, command) = match kind {
        ListKind::Schedulers => ("Schedulers and decorators", "schedulers"),
        _ => ("Congestion controllers", "cc"),
    };
    let mut page = format!(
        "# {title}\n\n<!-- {ORIGIN} -->\n\n`plait list {command} NAME` prints these pages.\n\n"
    );
    let titles = ["name", "description", "also"];
    let mut table = Table::new(titles.map(|title| Column::new(title, Align::Left)).into());
    for item in items {
        let link = format!("[{}]({})", item.name, file_name(item));
        let summary = page::sentence(&item.summary);
        table.row(Emphasis::None, vec![link, summary, item.aliases.join(", ")]);
    }
    page.push_str(&table.to_markdown());
    if matches!(kind, ListKind::Schedulers) {
        page.push_str(&everything_measured());
    }
    page
}

/// Returns the whole table with an explanation of its columns.
fn everything_measured() -> String {
    let mut page =
        "\n## Measured\n\nMedians; controller cubic, seed 1. `tcp:` is plain TCP on one \
                    path alone.\n\n"
            .to_owned();
    let mut rows = fresh()
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().map(ToOwned::to_owned).collect::<Vec<_>>());
    let header = rows.next().unwrap();
    let aligned = |(at, title): (usize, &String)| {
        Column::new(title, if at == 0 { Align::Left } else { Align::Right })
    };
    let mut table = Table::new(header.iter().enumerate().map(aligned).collect());
    rows.for_each(|row| table.row(Emphasis::None, row));
    page.push_str(&table.to_markdown());
    page.push('\n');
    let titles = ["column", "paths", "workload", "measure"];
    let mut columns = Table::new(titles.map(|title| Column::new(title, Align::Left)).into());
    for case in &CASES {
        let cells = [case.column, case.paths, case.workload, case.measure];
        columns.row(Emphasis::None, cells.map(str::to_owned).into());
    }
    page.push_str(&columns.to_markdown());
    page.push('\n');
    page::fenced(&mut page, page::legend());
    page
}

/// Returns the entries with fresh measurements.
fn described(kind: ListKind) -> Vec<Item> {
    let mut items = entries(kind);
    if matches!(kind, ListKind::Schedulers) {
        items.iter_mut().for_each(|item| item.measured = measured::of(&item.name, fresh()));
    }
    items
}

fn pages_are_up_to_date(kind: ListKind) {
    let directory = crate_file("../../docs").join(kind.plural());
    let items = described(kind);
    let mut known = BTreeSet::from(["README.md".to_owned()]);
    let mut differences = Vec::new();
    differences.extend(drift(&directory.join("README.md"), &index(kind, &items)));
    for item in &items {
        let page = page::markdown(item);
        let (title, rest) = page.split_once('\n').unwrap();
        let page = format!("{title}\n\n<!-- {ORIGIN} -->\n{rest}");
        differences.extend(drift(&directory.join(file_name(item)), &page));
        assert!(known.insert(file_name(item)), "two pages are {}", file_name(item));
    }
    for entry in fs::read_dir(&directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if !known.contains(&name) {
            differences.push(format!("{name} is nobody's: remove it"));
        }
    }
    none_differs(&differences);
}

#[test]
fn what_was_measured_is_measured_again() {
    let path = crate_file("src/list/measured.txt");
    none_differs(&Vec::from_iter(drift(&path, fresh())));
}

#[test]
fn the_pages_of_schedulers_are_up_to_date() {
    pages_are_up_to_date(ListKind::Schedulers);
}

#[test]
fn the_pages_of_controllers_are_up_to_date() {
    pages_are_up_to_date(ListKind::Cc);
}

#[test]
fn every_scheduler_says_where_it_is_from_and_what_it_is_good_for() {
    for item in described(ListKind::Schedulers) {
        let page = page::markdown(&item);
        let source = ["**Paper**", "**Papers**", "**Source**"];
        assert!(source.iter().any(|label| page.contains(label)), "{}", item.name);
        // The commands after this heading have the same form as labelled lines.
        let (words, _) = page.split_once("## Measured\n").unwrap();
        for part in ["```text\n", "**Good at**", "**Bad at**"] {
            assert!(words.contains(part), "{} has no {part}", item.name);
        }
        assert_eq!(page.contains("## Parameters\n"), !item.params.is_empty(), "{}", item.name);
        for param in &item.params {
            assert!(!param.help.is_empty() && !param.clause.is_empty(), "{}: {param:?}", item.name);
        }
        assert_eq!(item.measured.len(), CASES.len(), "{}", item.name);
    }
}

#[test]
fn indented_lines_follow_a_label_or_a_blank_line() {
    for item in entries(ListKind::Schedulers).iter().chain(&entries(ListKind::Cc)) {
        let lines: Vec<&str> = item.page.lines().collect();
        for pair in lines.windows(2) {
            let begins = !pair[0].is_empty() && !pair[0].starts_with("  ");
            let stray = begins && pair[1].starts_with("  ") && page::label(pair[0]).is_none();
            assert!(!stray, "{}: what is {:?} after {:?}?", item.name, pair[1], pair[0]);
        }
    }
}

#[test]
fn every_entry_has_a_line_and_a_page() {
    for kind in [
        ListKind::Schedulers,
        ListKind::Cc,
        ListKind::Workloads,
        ListKind::Paths,
        ListKind::Measures,
    ] {
        let list = entries(kind);
        assert!(list.len() >= 5, "{kind:?}");
        for item in list {
            assert!(!item.summary.is_empty() && !item.summary.contains('\n'), "{item:?}");
            assert!(!item.page.is_empty(), "{item:?}");
            assert!(item.answers_to(&item.name));
        }
    }
}
