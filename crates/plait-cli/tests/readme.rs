//! The README shows the actual output of the program. Its numbers and the numbers of pages are in the lists and
//! tables that they cite.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::process::Command;

/// Returns the lines of the first block after `marker`, without the fence and the command line.
fn shown(marker: &str) -> String {
    let readme = include_str!("../../../README.md");
    let block = readme.split("```").find(|block| block.contains(marker)).unwrap();
    block.lines().skip_while(|line| !line.contains(marker)).skip(1).collect::<Vec<_>>().join("\n")
}

/// Returns the arguments of `make demo`, from the Makefile.
fn demo() -> Vec<String> {
    let makefile = include_str!("../../../Makefile");
    let value = |name: &str| {
        let start = format!("{name} := ");
        makefile.lines().find_map(|line| line.strip_prefix(&start)).unwrap().to_owned()
    };
    let line = value("DEMO").replace("$(WIFI)", &value("WIFI")).replace("$(LTE)", &value("LTE"));
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn the_demo_in_the_readme_is_the_demo() {
    let output = Command::new(env!("CARGO_BIN_EXE_plait"))
        .arg("compare")
        .args(demo())
        .env("COLUMNS", "80")
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    assert!(output.status.success());
    let printed = String::from_utf8(output.stdout).unwrap();
    let shown = shown("$ make demo");
    let printed = printed.split("\n\nRun again").next().unwrap();
    assert_eq!(printed.trim_end(), shown.trim_end(), "README.md is behind");
}

/// Returns a file of the repository.
fn read(file: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    std::fs::read_to_string(format!("{root}/{file}")).unwrap()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns a complaint if the text of `page` lacks `statement`, which has the numbers of `source`.
fn lacks(page: &str, text: &str, source: &str, statement: &str) -> Option<String> {
    let has = one_line(text).contains(statement);
    (!has).then(|| format!("{page} has other numbers than {source}: write \"{statement}\""))
}

/// Fails if `page` does not have a statement.
fn states(page: &str, source: &str, statement: &str) {
    assert_eq!(lacks(page, &read(page), source, statement), None);
}

/// A table of a page.
struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Returns the table of `page` whose head begins with `head`, behind the heading `after` if it is not empty.
    fn read(page: &str, after: &str, head: &str) -> Table {
        let text = read(page);
        let lines = text.lines().skip_while(|line| !after.is_empty() && *line != after);
        let mut lines = lines.skip_while(|line| !line.starts_with(head));
        // Bold cells are as other cells.
        let cell = |text: &str| text.trim().trim_matches('*').to_owned();
        let cells = |line: &str| line.trim_matches('|').split('|').map(cell).collect();
        let head = cells(lines.next().unwrap_or_else(|| panic!("{page} has no table `{head}`")));
        let rows = lines.skip(1).take_while(|line| line.starts_with('|')).map(cells).collect();
        Table { head, rows }
    }

    /// Returns the cell of the column `column` in the row that begins with `row`.
    fn of(&self, row: &str, column: &str) -> &str {
        let at = self.head.iter().position(|it| it == column);
        let at = at.unwrap_or_else(|| panic!("no column `{column}`: {:?}", self.head));
        let found = self.rows.iter().find(|it| it[0] == row);
        &found.unwrap_or_else(|| panic!("no row `{row}`"))[at]
    }
}

fn number(text: &str) -> f64 {
    text.trim_end_matches([' ', '%']).parse().unwrap_or_else(|_| panic!("`{text}` is no number"))
}

fn word(number: usize) -> &'static str {
    const WORDS: [&str; 21] = [
        "none",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
        "twenty",
    ];
    WORDS[number]
}

/// The README has the score of the claims, and the page with all claims adds up to it.
#[test]
fn the_readme_has_the_score_of_the_claims() {
    let summary = read("docs/results/summary.md");
    let paper = |line: &&str| line.starts_with("| [") && line.contains(".md) | `plait reproduce");
    let mut sums = [0; 5];
    for row in summary.lines().filter(paper) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        // All, hold, fail, undecided, vary: the other columns are not added up.
        for (sum, column) in sums.iter_mut().zip([4, 5, 6, 8, 9]) {
            *sum += cells[column].parse().unwrap_or(0);
        }
    }
    let [hard, hold, fail, undecided, vary] = sums;
    let vary = if vary == 1 { "one varies".to_owned() } else { format!("{} vary", word(vary)) };
    let undecided = match undecided {
        0 => "none is undecided".to_owned(),
        1 => "one is undecided".to_owned(),
        several => format!("{several} are undecided"),
    };
    let score = format!(
        "Of {hard} hard claims {hold} hold, {fail} fail, {undecided}, and {vary} with the seed."
    );
    states("docs/results/summary.md", "its table", &score);
    states("README.md", "docs/results/summary.md", &score);
}

#[test]
fn the_readme_counts_schedulers_papers_faults_and_lines_as_they_are() {
    // The demo has a row for each scheduler, which begins with its group.
    let demo = shown("$ make demo");
    let group = |line: &&str| {
        let number = line.strip_prefix(' ').and_then(|it| it.split_whitespace().next());
        number.is_some_and(|it| it.parse::<u8>().is_ok())
    };
    let schedulers = word(demo.lines().filter(group).count());
    states(
        "README.md",
        "its demo",
        &format!("`compare` runs {schedulers} schedulers and plain TCP"),
    );
    let papers = word(plait_lab::experiment::PAPERS.len());
    states("README.md", "the list PAPERS", &format!("each experiment of {papers} papers by name"));
    let kinds = plait_lab::swarm::KINDS;
    let count = word(kinds.len());
    states("README.md", "the list swarm::KINDS", &format!("{count} kinds of faults"));
    for kind in kinds {
        states("docs/swarm.md", "the list swarm::KINDS", &format!("`{}`", kind.name));
    }
    let example = "examples/embed/src/main.rs";
    let lines = read(example).lines().count();
    states("README.md", example, &format!("the core in a program of {lines} lines"));
}

#[test]
fn pages_count_the_planted_bugs() {
    let [core, engine] = ["core", "engine"].map(|part| {
        let text = read(&format!("crates/plait-{part}/src/planted.rs"));
        let is_name =
            |line: &&str| line.starts_with("    ") && line.ends_with(',') && !line.contains("//");
        text.lines().filter(is_name).count()
    });
    let bugs = Table::read("docs/swarm.md", "", "| planted bug |").rows.len();
    assert_eq!(bugs, core + engine, "docs/swarm.md needs a row for each planted bug");
    states("README.md", "docs/swarm.md", &format!("It finds {bugs} planted bugs"));
    let (core, engine) = (word(core), word(engine));
    let count =
        format!("{} bugs can be planted in the core and {engine} in the engine.", &core[1..]);
    states("docs/swarm.md", "planted.rs of plait-core and plait-engine", &count);
}

#[test]
fn pages_have_the_numbers_of_the_promise() {
    let page = "docs/promise.md";
    let schedulers = Table::read(page, "", "| scheduler | worst |");
    let cells = Table::read(page, "", "| cell | best path |");
    let own = |column: &str| schedulers.of(plait_sched::DEFAULT, column);
    let (worst, place, median) = (own("worst"), own("where"), own("median"));
    let (slower, count) = own("slower in").split_once(" of ").unwrap();
    assert_eq!(
        count,
        cells.rows.len().to_string(),
        "{page}: its tables have other numbers of cells"
    );
    // The papers have neither copies nor the rules of plait, of the kernel and of the drafts.
    let others = ["redundant", "linux", "rtt-threshold", "strict", "slot"];
    let mut papers: Vec<&String> = cells.head[3..].iter().collect();
    papers.retain(|name| !name.contains("+copy") && !others.contains(&name.as_str()));
    let best = papers.iter().map(|name| number(cells.of(place, name))).fold(0.0, f64::max);
    let linux = cells.of(place, "linux");
    // The name of a cell is its pair of links, its start, its load and a percentile.
    let name: Vec<&str> = place.split(' ').collect();
    let [pair, _, load, percentile] = name[..] else { panic!("{page}: `{place}` has other parts") };
    for statement in [
        format!("Over [{count} measured cells](docs/promise.md)"),
        format!("`{}` is never below {worst} of the best path alone.", plait_sched::DEFAULT),
        format!(
            "Its median cell is {median}, and {slower} of the {count} are more than 2 % slower than plain TCP on the best path."
        ),
        format!("In the worst cell ({percentile} of a {load} over the recorded links {pair})"),
        format!(
            "the schedulers of the papers have at most {best:.2}, and `linux`, the rule of the kernel, {linux}."
        ),
    ] {
        states("README.md", page, &statement);
    }
    states("docs/README.md", page, &format!("in {count} cells of links and loads"));
    states("docs/never-slower.md", page, &format!("has every scheduler in {count} cells."));
}

#[test]
fn the_readme_has_the_numbers_of_the_random_cells() {
    let page = "docs/scoreboard.md";
    let board = Table::read(page, "", "| scheduler | > 2 % |");
    let (own, earlier) = (plait_sched::DEFAULT, "ecf+copy");
    for statement in [
        format!(
            "Over [2000 random cells](docs/scoreboard.md), {} of the comparisons with plain TCP are more than 10 % slower, the worst {};",
            board.of(own, "> 10 %"),
            board.of(own, "worst")
        ),
        format!(
            "with `{earlier}` {}, the worst {}.",
            board.of(earlier, "> 10 %"),
            board.of(earlier, "worst")
        ),
        format!("Compared with TCP on the best path of each cell, {} are.", board.of(own, "known")),
        format!("Copies add {} there", board.of(own, "extra")),
    ] {
        states("README.md", page, &statement);
    }
    states("docs/README.md", page, "in 2000 random cells");
}

#[test]
fn the_page_of_slow_cells_has_the_numbers_of_the_promise() {
    let page = "docs/promise.md";
    let cells = Table::read(page, "", "| cell | best path |");
    // Cells of recorded links have the name of a pair: `7_3 start bulk`.
    let recorded = cells.rows.iter().map(|it| it[0].as_str()).filter(|it| it.contains('_'));
    let mut ratios: Vec<(f64, &str)> =
        recorded.map(|it| (number(cells.of(it, plait_sched::DEFAULT)), it)).collect();
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let below = |limit: f64| ratios.iter().filter(|it| it.0 < limit).count();
    let (count, (worst, place)) = (ratios.len(), ratios[0]);
    let (below_95, below_98) = (below(0.95), below(0.98));
    for statement in [
        format!("| {count} recorded cells of `{}` |", plait_sched::DEFAULT),
        format!("| seed 1, now | {worst:.2} | {place} | {below_95} | {below_98} |"),
    ] {
        states("docs/never-slower.md", page, &statement);
    }
    for cell in ["7_3 anywhere stream p99", "8_5 anywhere stream p50", "12_2 anywhere stream p99"] {
        let ratio = cells.of(cell, plait_sched::DEFAULT);
        states("docs/never-slower.md", page, &format!("* **`{cell}`** ({ratio} with seed 1"));
    }
}

#[test]
fn pages_have_the_error_of_the_kernel_model() {
    let page = "docs/results/kernel-model.md";
    let errors = Table::read(page, "", "| pairs | model of Linux");
    // "median 4.0 %, worst 39 %, 20 of 24 within 15 %".
    let parts = |pairs: &str| -> Vec<String> {
        let row = errors.rows.iter().find(|row| row[0] == pairs).unwrap();
        row[1].split(", ").map(str::to_owned).collect()
    };
    let (both, held_out) = (parts("A-F and held-out"), parts("held-out"));
    let median = both[0].strip_prefix("median ").unwrap();
    let worst = both[1].strip_prefix("worst ").unwrap();
    let within = both[2].strip_suffix(" within 15 %").unwrap();
    let alone = held_out[0].strip_prefix("median ").unwrap();
    let pairs = Table::read(page, "## Held-out pairs", "| pair |");
    let names: std::collections::BTreeSet<&str> =
        pairs.rows.iter().map(|row| row[0].as_str()).collect();
    let count = names.len();
    for statement in [
        format!(
            "has a median error of {median} over the pairs of links A to F and {count} held-out pairs,"
        ),
        format!("{alone} over the held-out pairs alone."),
        format!("{within} measures are within 15 %, and the worst is {worst} off,"),
    ] {
        states("README.md", page, &statement);
    }
    states("docs/promise.md", page, &format!("has a median error of {median} against that kernel"));
}

#[test]
fn the_page_of_core_claims_counts_its_rows() {
    let page = "docs/results/core-claims.md";
    let claims = Table::read(page, "", "| claim | kind | one seed |");
    let kind = |kind: &str| claims.rows.iter().filter(|row| row[1] == kind).collect::<Vec<_>>();
    let (hard, exact) = (kind("hard"), kind("exact"));
    let count =
        |column: usize, verdict: &str| hard.iter().filter(|row| row[column] == verdict).count();
    let [holds, fails, undecided] = ["holds", "fails", "undecided"].map(|it| count(2, it));
    let (all, proven) = (hard.len(), exact.len());
    for statement in [
        format!("Of {all} hard claims {holds} hold, {fails} fail and {undecided} are undecided,"),
        format!("The {proven} exact ones hold."),
        format!("The {} claims that hold were judged again", holds + proven),
    ] {
        states(page, "its table", &statement);
    }
    let [holds, fails, undecided] = ["holds", "fails", "undecided"].map(|it| count(4, it));
    let more = format!(
        "With up to four times the runs, {holds} hold, {fails} fail and {undecided} are undecided."
    );
    states(page, "its table", &more);
}

/// The page on performance repeats figures of the page with all runs over TUN, the busy ones with one decimal.
#[test]
fn the_page_on_performance_has_the_numbers_of_the_runs_over_tun() {
    let page = "docs/results/tun.md";
    let [quiet, earlier] = ["## A quiet machine", "## Another quiet machine, an earlier version"]
        .map(|after| Table::read(page, after, "| | endpoint alone"));
    let busy = Table::read(page, "## A busy machine", "| | runs");
    let shown = Table::read("docs/performance.md", "## Over TUN", "| | goal");
    let short = |text: &str| {
        let round = |it: &str| format!("{:.1}", (number(it) * 10.0).round() / 10.0);
        text.split(" to ").map(round).collect::<Vec<_>>().join(" to ")
    };
    for row in &shown.rows {
        let name = row[0].as_str();
        let (way, place) = name.rsplit_once(", ").unwrap();
        let of_run = |it: &Table| it.of(way, place).split(" (").next().unwrap().to_owned();
        // The runs before superpackets were without offload.
        let before = name.replace("superpackets", "no offload");
        let source = [
            of_run(&quiet),
            of_run(&earlier),
            short(busy.of(name, "Gbit/s")),
            short(&busy.rows.iter().find(|row| row[0] == name).unwrap()[3]),
            short(&busy.rows.iter().find(|row| row[0] == before).unwrap()[5]),
        ];
        assert_eq!(row[2..], source, "docs/performance.md has other numbers than {page}: {name}");
    }
}

#[test]
fn a_number_that_differs_from_its_source_is_found() {
    let text = "It has 21\nplanted bugs.";
    assert_eq!(lacks("a.md", text, "b.md", "It has 21 planted bugs."), None);
    let expected = "a.md has other numbers than b.md: write \"It has 22 planted bugs.\"";
    assert_eq!(lacks("a.md", text, "b.md", "It has 22 planted bugs."), Some(expected.to_owned()));
}
