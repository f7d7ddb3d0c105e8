//! Claims and their verdicts as text, Markdown and CSV.

use super::table::{self, wrap, wrap_words};
use super::{Align, Column, Emphasis, Table, again as run_again};
use crate::reproduction::{Paper, ReproductionDocument, Verdict, papers};
use anstyle::{AnsiColor, Style};
use plait_lab::experiment::{CHANGED, Experiment, Results, figure};

/// Columns of the name of a claim, unless one is longer.
const NAME: usize = 9;
/// Columns of the kind and the standing of a claim, with the gaps around them.
const STANDING: usize = 23;
/// Least width of the running text beside the names. If there is less, it is below them.
const LEAST_PROSE: usize = 30;

/// Returns the experiments of a paper, one per line.
#[must_use]
pub fn list(experiments: &[&Experiment], width: usize) -> String {
    let mut table = Table::new(vec![
        Column::new("name", Align::Left),
        Column::new("claims", Align::Right),
        Column::new("what it shows", Align::Left).prose(),
    ]);
    for it in experiments {
        let cells = vec![it.id.clone(), it.claims.len().to_string(), it.title.clone()];
        table.row(Emphasis::None, cells);
    }
    table.to_text(width, false)
}

/// Returns a table for each paper.
#[must_use]
pub fn text(
    results: &[Results],
    document: &ReproductionDocument,
    width: usize,
    colour: bool,
) -> String {
    let mut out = String::new();
    for Paper { tag, title, place } in papers(document) {
        let heading = wrap(&heading(&title, &place), width);
        out.push_str(&format!("{}\n", heading.join("\n")));
        let of: Vec<&Verdict> = document.claims.iter().filter(|it| it.paper_tag() == tag).collect();
        if !of.is_empty() {
            out.push_str(&claims(&of, width, colour));
            out.push('\n');
        }
        // Experiments without claims are shown by their numbers.
        let unjudged = |one: &&Results| {
            let experiment = &one.plan.experiment;
            experiment.paper() == tag && experiment.claims.is_empty()
        };
        for one in results.iter().filter(unjudged) {
            out.push_str(&measured(one, width));
        }
    }
    out.push_str(&ablation(document, |table| table.to_text(width, false)));
    out.push_str(&left_out(document, width));
    out + &closing(document, width)
}

/// Names the experiments that a quick run skips.
fn left_out(document: &ReproductionDocument, width: usize) -> String {
    let text = match document.left_out.as_slice() {
        [] => return String::new(),
        [one] => one.sentence(),
        several => {
            let names: Vec<&str> = several.iter().map(|it| it.id.as_str()).collect();
            format!("No core claims: {}. Leave --quick out to run them.", names.join(", "))
        }
    };
    format!("{}\n", wrap(&text, width).join("\n"))
}

/// Returns each claim over the values that its paper does not specify.
fn ablation(document: &ReproductionDocument, write: impl Fn(&Table) -> String) -> String {
    if document.ablation.is_empty() {
        return String::new();
    }
    let mut table = Table::new(vec![
        Column::new("claim", Align::Left),
        Column::new("kind", Align::Left),
        Column::new("verdict", Align::Left),
        Column::new("holds for", Align::Left),
        Column::new("settings", Align::Right),
        Column::new("other verdicts", Align::Left).prose(),
    ]);
    for it in &document.ablation {
        table.row(
            Emphasis::None,
            vec![
                it.id.clone(),
                it.kind.clone(),
                it.standing.clone(),
                it.word.clone(),
                format!("{}/{}", it.holds, it.settings),
                it.other.join("; "),
            ],
        );
    }
    format!("What the papers leave open, one value at a time\n\n{}\n", write(&table))
}

/// Returns the cells of one experiment, then its claims.
#[must_use]
pub fn experiment(
    results: &[Results],
    document: &ReproductionDocument,
    width: usize,
    colour: bool,
) -> String {
    let mut out = String::new();
    for one in results {
        out.push_str(&measured(one, width));
    }
    let all: Vec<&Verdict> = document.claims.iter().collect();
    if !all.is_empty() {
        out.push_str(&claims(&all, width, colour));
        out.push('\n');
    }
    out.push_str(&left_out(document, width));
    out + &closing(document, width)
}

/// Returns the title of an experiment and its numbers.
fn measured(results: &Results, width: usize) -> String {
    let experiment = &results.plan.experiment;
    let title = wrap(&format!("{}: {}", experiment.id, experiment.title), width).join("\n");
    format!("{title}\n{}\n", cells(results, width))
}

/// Returns the title of a paper with its place of publication.
fn heading(title: &str, place: &str) -> String {
    if place.is_empty() { format!("{title}\n") } else { format!("{title} ({place})\n") }
}

/// Returns medians by row at each point.
fn cells(results: &Results, width: usize) -> String {
    let Some((title, table)) = medians(results) else { return String::new() };
    let axes = results.plan.experiment.axes.len();
    let parts = table.parts(axes, width);
    let parts: Vec<String> = parts.iter().map(|part| part.to_text(width, false)).collect();
    format!("{title}\n{}", parts.join("\n"))
}

/// Returns an experiment in Markdown: its cells, then its claims.
#[must_use]
pub fn experiment_markdown(results: &[Results], document: &ReproductionDocument) -> String {
    let mut out = String::new();
    for one in results {
        let experiment = &one.plan.experiment;
        out.push_str(&format!("## {}: {}\n\n", experiment.id, experiment.title));
        if let Some((title, table)) = medians(one) {
            out.push_str(&format!("{title}\n\n{}\n", table.to_markdown()));
        }
    }
    if !document.claims.is_empty() {
        let all: Vec<&Verdict> = document.claims.iter().collect();
        out.push_str(&format!("{}\n", claims_table(&all, document).to_markdown()));
    }
    out.push_str(&left_out(document, usize::MAX / 2));
    out + &closing(document, usize::MAX / 2)
}

/// Returns every measure of every cell, one per line.
pub fn csv_of_cells(results: &[Results], document: &ReproductionDocument) -> String {
    let axes = results.iter().flat_map(|it| &it.plan.experiment.axes);
    let axes: Vec<String> = axes.map(|axis| axis.name.clone()).collect();
    let mut header = vec!["experiment", "row"];
    header.extend(axes.iter().map(String::as_str));
    header.extend(["measure", "mean", "median", "min", "max", "n"]);
    let rows: Vec<Vec<String>> = document.cells.iter().flat_map(|it| it.csv(&axes)).collect();
    table::csv(&header, &rows)
}

/// Returns the measure of an experiment, and its medians by row at each point.
fn medians(results: &Results) -> Option<(String, Table)> {
    let experiment = &results.plan.experiment;
    let first = results.plan.cells.first()?;
    let measure = first.cell.scenario.workload.primary();
    let mut columns: Vec<Column> =
        experiment.axes.iter().map(|axis| Column::new(&axis.name, Align::Left)).collect();
    columns.extend(experiment.rows.iter().map(|row| Column::new(&row.name, Align::Right)));
    let mut table = Table::new(columns);
    let mut points: Vec<&Vec<usize>> = results.plan.cells.iter().map(|cell| &cell.at).collect();
    points.sort();
    points.dedup();
    for at in points {
        let names = experiment.axes.iter().zip(at).map(|(axis, at)| axis.points[*at].text.clone());
        let values = (0..experiment.rows.len()).map(|row| {
            let cell = results.plan.position(row, at);
            match cell.map(|cell| results.summary(cell, measure)) {
                None => String::new(),
                Some(None) => "-".to_owned(),
                Some(Some(summary)) => figure(summary.median),
            }
        });
        table.row(Emphasis::None, names.chain(values).collect());
    }
    let runs = results.runs.iter().map(Vec::len).max().unwrap_or(0);
    let runs = if runs == 1 { "one run".to_owned() } else { format!("median of {runs} runs") };
    Some((format!("{measure}, {runs} in each cell"), table))
}

/// Returns name, kind and standing of each claim; beside them the paper's words and, below, the
/// result.
fn claims(list: &[&Verdict], width: usize, colour: bool) -> String {
    let name = list.iter().map(|it| it.id.chars().count()).max().unwrap_or(0).max(NAME);
    let names = name + STANDING;
    let below = width < names + LEAST_PROSE;
    let half = if below { width.saturating_sub(6) / 2 } else { (width - names - 2) / 2 };
    let margin = " ".repeat(if below { 4 } else { names });
    let mut out = String::new();
    let mut line = |text: &str| {
        out.push_str(text.trim_end());
        out.push('\n');
    };
    let words = format!("{:<half$}  {}", "paper says", "we got");
    let head = format!("{:<name$}  {:<5}  {:<12}  ", "claim", "kind", "");
    let heads = if below { vec![head, format!("{margin}{words}")] } else { vec![head + &words] };
    for head in heads {
        line(&painted(head.trim_end(), Style::new().underline(), colour));
    }
    for claim in list {
        let standing = painted(&format!("{:<12}", claim.standing), style(claim), colour);
        let head = format!("{:<name$}  {:<5}  {standing}  ", claim.id, claim.kind);
        if below {
            line(&head);
        }
        let (theirs, ours) = (wrap_words(&claim.paper, half), wrap_words(&result(claim), half));
        for at in 0..theirs.len().max(ours.len()) {
            let left = theirs.get(at).map_or("", String::as_str);
            let right = ours.get(at).map_or("", String::as_str);
            let names = if at == 0 && !below { &head } else { &margin };
            line(&format!("{names}{left:<half$}  {right}"));
        }
    }
    out
}

/// Returns the result of a claim, with its other seeds, its number of runs and its cause.
fn result(claim: &Verdict) -> String {
    let mut text = claim.got.clone();
    if !claim.again.is_empty() {
        text.push_str(&format!(". Again: {}", again(claim)));
    }
    if let Some(outlook) = outlook(claim) {
        text.push_str(&format!(". Runs: {outlook}"));
    }
    if !claim.why.is_empty() {
        text.push_str(&format!(". Why not: {}", claim.why));
    }
    text
}

fn style(claim: &Verdict) -> Style {
    match claim.standing.as_str() {
        "holds" | "proven" => AnsiColor::Green.on_default(),
        "miss" | "not run" | "undecided" | "varies" => AnsiColor::Yellow.on_default(),
        _ if claim.gates => AnsiColor::Red.on_default(),
        _ => Style::new().dimmed(),
    }
}

fn painted(text: &str, style: Style, colour: bool) -> String {
    if colour {
        format!("{}{text}{}", style.render(), style.render_reset())
    } else {
        text.to_owned()
    }
}

/// Returns the number of claims for each standing, and the command that runs it again.
fn closing(document: &ReproductionDocument, width: usize) -> String {
    let parts: Vec<String> =
        document.tally.iter().map(|(standing, count)| format!("{count} {standing}")).collect();
    let tally = match (parts.is_empty(), document.left_out.is_empty()) {
        (false, _) => parts.join(", "),
        (true, true) => "no claims".to_owned(),
        (true, false) => "no core claims".to_owned(),
    };
    let headline = document.headline();
    let lines = headline.lines().chain([tally.as_str()]).flat_map(|line| wrap(line, width));
    let lines: Vec<String> = lines.chain([run_again(&document.command, width)]).collect();
    format!("{}\n", lines.join("\n"))
}

/// Returns the standings of each kind of claim, then a table for each paper, in Markdown.
pub fn markdown(document: &ReproductionDocument) -> String {
    let mut out: String =
        document.headline().lines().map(|line| format!("* {line}\n")).collect::<String>() + "\n";
    // The list of changes concerns only the papers' experiments.
    if document.of_papers() {
        out.push_str(CHANGED);
        out.push('\n');
    }
    out.push_str(&kinds(document).to_markdown());
    out.push_str(&format!(
        "\n{} experiments, {} runs, seed {}, plait {}.\n\n",
        document.experiments.len(),
        document.runs,
        document.seed,
        document.version
    ));
    for Paper { tag, title, place } in papers(document) {
        out.push_str(&format!("## {}\n", heading(&title, &place)));
        let of: Vec<&Verdict> = document.claims.iter().filter(|it| it.paper_tag() == tag).collect();
        out.push_str(&claims_table(&of, document).to_markdown());
        out.push('\n');
    }
    out.push_str(&ablation(document, Table::to_markdown));
    out.push_str(&left_out(document, usize::MAX / 2));
    out + &closing(document, usize::MAX / 2)
}

/// Returns a table of claims, one per line.
fn claims_table(claims: &[&Verdict], document: &ReproductionDocument) -> Table {
    let mut titles =
        vec!["claim", "experiment", "kind", "paper says", "we got", "", "runs", "why not"];
    if !document.again.is_empty() {
        titles.push("again");
    }
    let columns = titles.iter().map(|title| Column::new(title, Align::Left)).collect();
    let mut table = Table::new(columns);
    for claim in claims {
        table.row(Emphasis::None, row(claim).into_iter().take(titles.len()).collect());
    }
    table
}

/// Returns a line for each kind of claim and a column for each standing.
fn kinds(document: &ReproductionDocument) -> Table {
    let titles = ["", "claims"].into_iter().chain(document.tally.keys().map(String::as_str));
    let mut table = Table::new(titles.map(|title| Column::new(title, Align::Left)).collect());
    for kind in ["exact", "hard", "soft"] {
        let of: Vec<&Verdict> = document.claims.iter().filter(|it| it.kind == kind).collect();
        let count = |standing: &String| of.iter().filter(|it| it.standing == *standing).count();
        let counts = document.tally.keys().map(|standing| count(standing).to_string());
        let head = [kind.to_owned(), of.len().to_string()];
        table.row(Emphasis::None, head.into_iter().chain(counts).collect());
    }
    table
}

/// Returns every claim as a line of CSV.
pub fn csv(document: &ReproductionDocument) -> String {
    let header =
        ["claim", "experiment", "kind", "paper", "got", "standing", "runs", "why", "again"];
    let rows: Vec<Vec<String>> = document.claims.iter().map(row).collect();
    table::csv(&header, &rows)
}

fn row(claim: &Verdict) -> Vec<String> {
    let Verdict { id, experiment, kind, paper, got, standing, why, runs, networks, .. } =
        claim.clone();
    // Counts are per cell. If the networks are a sample, they are counted as well.
    let mut made = match (networks, runs) {
        (Some(networks), Some(runs)) => format!("{runs} of each of {networks} networks"),
        (None, Some(runs)) => runs.to_string(),
        _ => String::new(),
    };
    if let Some(outlook) = outlook(claim) {
        made = format!("{made}; {outlook}");
    }
    vec![id, experiment, kind, paper, got, standing, made, why, again(claim)]
}

/// Returns how many runs would decide an undecided claim.
fn outlook(claim: &Verdict) -> Option<String> {
    (claim.standing == "undecided").then(|| match claim.factor {
        Some(factor) => format!("about {factor:.1} times as many would decide"),
        None => "at its bound".to_owned(),
    })
}

/// Returns the verdicts with further seeds and their counts: `holds 4, undecided 1`.
fn again(claim: &Verdict) -> String {
    let mut words: Vec<&String> = claim.again.iter().collect();
    words.sort();
    let counts = words.chunk_by(|one, other| one == other);
    counts.map(|it| format!("{} {}", it[0], it.len())).collect::<Vec<_>>().join(", ")
}
