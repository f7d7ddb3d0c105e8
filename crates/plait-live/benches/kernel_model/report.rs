//! Reports the error of the model.

use super::Options;
use super::measure::MOST_LATE_US;
use super::model::{self, Settings};
use super::net::stamp::stamp;
use super::pairs::{Chance, Group, Load, Pair};
use super::table::{self, Measured, Seen, interpolated, median};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

/// Runs of the model for each pair.
const MODEL_RUNS: u64 = 30;
/// Samples of a bootstrap.
const SAMPLES: usize = 2_000;
/// Seeds of the samples for the interval of the model, and for the comparison of the kernel with itself.
const MODEL_SEED: u64 = 1;
const KERNEL_SEED: u64 = 2;
/// If the kernel's own runs spread by more than this, the error of a pair is inconclusive.
const WIDE_SPREAD: f64 = 0.15;
/// Settings of the model, unless others are given.
const MODEL: [(&str, &str); 2] = [("schedulers", "linux"), ("kernel", "6.18")];

/// One measure of one pair.
struct Line {
    pair: Pair,
    measure: &'static str,
    kernel: [f64; 3],
    model: [f64; 3],
    /// Relative error of the medians.
    error: f64,
    /// Its 95 % interval, over the runs of the kernel and the model.
    interval: [f64; 2],
    /// Errors between the medians of two samples of the kernel's own runs.
    kernel_again: Vec<f64>,
    shares: [f64; 2],
    /// Median number of packets that each queue dropped: for the kernel, for the model.
    drops: [[f64; 2]; 2],
}

impl Line {
    /// Returns the range of the kernel's own runs over their median.
    fn spread(&self) -> f64 {
        let [middle, least, largest] = self.kernel;
        (largest - least) / middle
    }

    /// Returns the absolute error. If the kernel's own runs spread by more than that, returns the least error
    /// within the interval.
    fn judged(&self) -> f64 {
        let error = self.error.abs();
        if self.spread() <= error {
            return error;
        }
        let [low, high] = self.interval;
        if low <= 0.0 && high >= 0.0 { 0.0 } else { low.abs().min(high.abs()) }
    }
}

/// Returns the median, the least and the largest value.
fn summary(values: &[f64]) -> [f64; 3] {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    [median(values), least, largest]
}

pub fn compare(options: &Options) -> io::Result<()> {
    let settings = if options.settings.is_empty() {
        MODEL.map(|(name, text)| (name, text.to_owned())).to_vec()
    } else {
        options.settings.clone()
    };
    let lines = lines(options, &settings)?;
    for line in &lines {
        println!("{}", text(line));
    }
    for ((name, errors), (_, judged)) in
        groups(&lines, plain).iter().zip(groups(&lines, Line::judged))
    {
        println!("{name}: {}; judged by the interval: {}", said(errors), said(&judged));
    }
    println!("{}", repeatability(&lines));
    if options.write {
        let before = lines_before(options)?;
        write(options, &lines, &before)?;
    }
    Ok(())
}

/// Returns the measurements with valid times.
fn loaded(options: &Options) -> io::Result<Vec<Measured>> {
    let mut all = table::load(&options.file)?;
    all.retain(|it| it.late_us <= MOST_LATE_US);
    Ok(all)
}

/// Returns the same lines for a model with only the scheduler and fixed buffers.
fn lines_before(options: &Options) -> io::Result<Vec<Line>> {
    lines(options, &vec![("schedulers", "linux".to_owned())])
}

fn lines(options: &Options, settings: &Settings) -> io::Result<Vec<Line>> {
    let measured = loaded(options)?;
    let mut lines = Vec::new();
    for pair in &options.pairs {
        let of_pair = |it: &&Measured| it.pair == pair.name && it.cc == options.cc;
        let kernel: Vec<Seen> = measured.iter().filter(of_pair).map(|it| it.seen.clone()).collect();
        if kernel.is_empty() {
            eprintln!("{}: not measured with {}", pair.name, options.cc);
            continue;
        }
        let model = model::runs(pair, settings, MODEL_RUNS)
            .map_err(|error| io::Error::other(error.to_string()))?;
        lines.extend(lines_of(pair, &kernel, &model));
    }
    Ok(lines)
}

fn lines_of(pair: &Pair, kernel: &[Seen], model: &[Seen]) -> Vec<Line> {
    let of = |seen: &[Seen], value: &dyn Fn(&Seen) -> f64| seen.iter().map(value).collect();
    table::measures(pair.load)
        .into_iter()
        .map(|(measure, value)| {
            let (real, ours): (Vec<f64>, Vec<f64>) = (of(kernel, &value), of(model, &value));
            let share = |seen| median(&of(seen, &|it| it.second_share));
            let drops = |seen| [0, 1].map(|at| median(&of(seen, &|it| it.dropped[at] as f64)));
            Line {
                pair: pair.clone(),
                measure,
                kernel: summary(&real),
                model: summary(&ours),
                error: median(&ours) / median(&real) - 1.0,
                interval: interval(&real, &ours),
                kernel_again: errors_of_samples(&real, &real, KERNEL_SEED),
                shares: [share(kernel), share(model)],
                drops: [drops(kernel), drops(model)],
            }
        })
        .collect()
}

/// Returns the 95 % interval of the relative error of the medians, by a bootstrap over both sets of runs.
fn interval(kernel: &[f64], model: &[f64]) -> [f64; 2] {
    let mut errors = errors_of_samples(kernel, model, MODEL_SEED);
    errors.sort_by(f64::total_cmp);
    [interpolated(&errors, 2.5), interpolated(&errors, 97.5)]
}

/// Returns the relative errors of the median of `runs` against that of `kernel`. Each sample draws both
/// with replacement.
fn errors_of_samples(kernel: &[f64], runs: &[f64], seed: u64) -> Vec<f64> {
    let mut chance = Chance::new(seed);
    let mut sample = || {
        let mut again = |values: &[f64]| {
            let drawn: Vec<f64> =
                values.iter().map(|_| values[chance.below(values.len())]).collect();
            median(&drawn)
        };
        again(runs) / again(kernel) - 1.0
    };
    (0..SAMPLES).map(|_| sample()).collect()
}

/// Describes how well a second measurement of the kernel agrees with the first. No model can agree better.
fn repeatability(lines: &[Line]) -> String {
    let groups = [vec![Group::Fixed], vec![Group::HeldOut], vec![Group::Fixed, Group::HeldOut]];
    let mut text = REPEATABILITY.to_owned();
    for groups in groups {
        let of_groups: Vec<&Line> =
            lines.iter().filter(|it| groups.contains(&it.pair.group)).collect();
        if of_groups.is_empty() {
            continue;
        }
        let measurement = |at: usize| {
            let errors: Vec<f64> = of_groups.iter().map(|it| it.kernel_again[at].abs()).collect();
            summary(&errors)
        };
        let measurements: Vec<[f64; 3]> = (0..SAMPLES).map(measurement).collect();
        let of = |at: usize| -> Vec<f64> { measurements.iter().map(|it| it[at]).collect() };
        let (middle, worst) = (median(&of(0)), of(2));
        let beyond = worst.iter().filter(|it| **it > WIDE_SPREAD).count() as f64 / SAMPLES as f64;
        let repeatable = of_groups.iter().filter(|it| it.spread() <= WIDE_SPREAD);
        let repeatable: Vec<f64> = repeatable.map(|it| plain(it)).collect();
        let names: Vec<&str> = groups.iter().map(|it| it.name()).collect();
        let _ = writeln!(
            text,
            "| {} | median {:.1} %, worst {:.0} % | {:.1} % | {} |",
            names.join(" and "),
            middle * 100.0,
            median(&worst) * 100.0,
            beyond * 100.0,
            said(&repeatable),
        );
    }
    text
}

/// Returns the absolute error.
fn plain(line: &Line) -> f64 {
    line.error.abs()
}

/// Returns the `error` of the lines of each group, and of A to F together with the held-out pairs.
fn groups(lines: &[Line], error: impl Fn(&Line) -> f64) -> Vec<(String, Vec<f64>)> {
    let of = |groups: &[Group]| -> Vec<f64> {
        let of_groups = lines.iter().filter(|it| groups.contains(&it.pair.group));
        of_groups.map(&error).collect()
    };
    let mut groups: Vec<_> =
        Group::ALL.iter().map(|group| (group.name().to_owned(), of(&[*group]))).collect();
    groups.push(("A-F and held-out".to_owned(), of(&[Group::Fixed, Group::HeldOut])));
    groups.retain(|(_, errors)| !errors.is_empty());
    groups
}

fn said(errors: &[f64]) -> String {
    let [middle, _, worst] = summary(errors);
    let within = errors.iter().filter(|error| **error <= WIDE_SPREAD).count();
    format!(
        "median {:.1} %, worst {:.0} %, {within} of {} within 15 %",
        middle * 100.0,
        worst * 100.0,
        errors.len()
    )
}

fn three([middle, least, largest]: [f64; 3]) -> String {
    format!("{middle:.0} ({least:.0} to {largest:.0})")
}

fn text(line: &Line) -> String {
    format!(
        "{:4} {:10} kernel {:22} model {:22} {:+6.1} %  second link {:.2} {:.2}  drops {:?} {:?}",
        line.pair.name,
        line.measure,
        three(line.kernel),
        three(line.model),
        line.error * 100.0,
        line.shares[0],
        line.shares[1],
        line.drops[0],
        line.drops[1],
    )
}

/// Writes docs/results/kernel-model.md.
fn write(options: &Options, lines: &[Line], before: &[Line]) -> io::Result<()> {
    let mut page = String::from(INTRODUCTION);
    let _ = writeln!(
        page,
        "\n{MEASURED} Compared on {}, congestion controller {}.\n",
        stamp(),
        options.cc
    );
    page.push_str(SUMMARY);
    let judged = groups(lines, Line::judged);
    let old = groups(before, plain);
    for (at, (name, errors)) in groups(lines, plain).iter().enumerate() {
        let (judged, old) = (said(&judged[at].1), said(&old[at].1));
        let _ = writeln!(page, "| {name} | {} | {judged} | {old} |", said(errors));
    }
    page.push_str(&repeatability(lines));
    for group in Group::ALL {
        let _ = writeln!(page, "\n## {}\n", title(group));
        page.push_str(HEADER);
        for line in lines.iter().filter(|line| line.pair.group == group) {
            let _ = writeln!(page, "{}", row(line));
        }
    }
    let _ = write!(page, "\n## Other controllers\n\n{}", others(options)?);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/kernel-model.md");
    fs::write(path, page)
}

const INTRODUCTION: &str = "\
# The model of Linux 6.18 against Linux 6.18

After this page you know the error of `plait compare --schedulers linux --kernel 6.18` against a stock kernel. The first table has
the error for each set of pairs of links, and the later ones for each pair and load. These commands make the page again:

```sh
cargo bench -p plait-live --bench kernel_model --profile dev -- measure --runs 7
cargo bench -p plait-live --bench kernel_model --profile dev -- compare --pairs all --write
```

The first command runs Multipath TCP of the kernel in fresh namespaces over emulated links, and adds each
run to [kernel-model.csv](kernel-model.csv). It needs root. The emulator and both ends run in the real-time
class. A run counts if no packet was more than 2 ms late, because ACKs further apart end the ACK train of HyStart. The
second command runs the same links in the simulator and writes this page.

* **Downloads** are judged by the completion time, **streams** by the median and the 99th percentile of
  the delay of messages.
* **Error** is the median of the model over the median of the kernel, less 1. The interval is a bootstrap
  over the runs of both.
* **Spread** is the range of the kernel's own runs over their median. A spread above 15 % is bold. Such
  a pair has more than one outcome, and its median is near the more frequent one.
* **Judged by the interval**: if the spread of the kernel is larger than the error, the error counts as the least
  value of its interval. If the interval has both signs, the error counts as zero. Such a figure cannot prove
  agreement, because a wide interval contains many values. The other columns have the plain error.
* **Links** are rate in Mbit/s, round-trip time in ms and queue in kB. The connection starts on the first one.
* **Pairs**: [promise.md](../promise.md) has A to F. The others were drawn before the first measurement: 1 to 50
  Mbit/s, 10 to 300 ms, a queue of 0.5 to 4 bandwidth-delay products, no random loss. Seed 1 drew the pairs by
  which the model was corrected (m, *mending*), and the pairs that its first version held out (h, *seen*). All of
  them have been examined since. Seed 2 drew the pairs that this version holds out (n, *held-out*). They were not
  compared before the model was complete.
";

/// Date and machine of kernel-model.csv.
const MEASURED: &str = "Measured on 2026-11-23, Linux 6.18.44-fc-v669, AMD EPYC (2 cores).";

const SUMMARY: &str = "\
| pairs | model of Linux 6.18 (`--kernel 6.18`) | the same, judged by the interval | scheduler `linux` alone |
|---|---|---|---|
";

const REPEATABILITY: &str = "
## The kernel against itself

A second measurement of the kernel does not agree with the first one everywhere. The second column is the error of
a second measurement with as many runs, drawn from the same runs (2,000 times, with replacement). No model can have
a smaller error. The third column is the share of these draws in which the worst measure is more than 15 % off. The
last column is the error of the model on repeatable measures, for which the kernel's own runs spread by at most 15 %.

| pairs | the kernel again | worst measure beyond 15 % | model, on repeatable measures |
|---|---|---:|---|
";

const HEADER: &str = "\
| pair | links | load | measure | kernel, ms | spread | model, ms | error | 95 % interval |
|---|---|---|---|---|---:|---|---:|---|
";

fn title(group: Group) -> &'static str {
    match group {
        Group::Fixed => "A to F",
        Group::Mending => "Pairs by which the model was corrected",
        Group::Seen => "Pairs that the first version held out",
        Group::HeldOut => "Held-out pairs",
    }
}

fn row(line: &Line) -> String {
    let pair = &line.pair;
    let link = |at: usize| {
        let it = &pair.lines[at];
        format!("{}/{}/{}", it.mbit, it.rtt.as_micros() / 1_000, it.queue / 1_000)
    };
    let load = match pair.load {
        Load::Download { bytes } => format!("{:.1} MB", bytes as f64 / 1e6),
        Load::Stream { bytes, interval, .. } => {
            format!("{} kB every {} ms", bytes / 1_000, interval.as_micros() / 1_000)
        }
    };
    let percent = |share: f64| format!("{:+.1} %", share * 100.0);
    let mark = if line.spread() > WIDE_SPREAD { "**" } else { "" };
    format!(
        "| {} | {} and {} | {load} | {} | {} | {mark}{:.0} %{mark} | {} | {} | {} to {} |",
        pair.name,
        link(0),
        link(1),
        line.measure,
        three(line.kernel),
        line.spread() * 100.0,
        three(line.model),
        percent(line.error),
        percent(line.interval[0]),
        percent(line.interval[1]),
    )
}

/// Reports the measurements with congestion controllers that the simulator lacks.
fn others(options: &Options) -> io::Result<String> {
    let measured = loaded(options)?;
    let mut text = "The kernel has version 1 of bbr and the simulator version 3 ([comparison](bbr.md)), so the table has the \
                    kernel alone. Medians\nand ranges in ms.\n\n\
                    | pair | controller | measure | kernel |\n|---|---|---|---|\n"
        .to_owned();
    for pair in &options.pairs {
        for (measure, value) in table::measures(pair.load) {
            let other = |it: &&Measured| it.pair == pair.name && it.cc != options.cc;
            let values: Vec<f64> =
                measured.iter().filter(other).map(|it| value(&it.seen)).collect();
            let Some(first) = measured.iter().find(other) else { continue };
            let _ = writeln!(
                text,
                "| {} | {} | {measure} | {} |",
                pair.name,
                first.cc,
                three(summary(&values))
            );
        }
    }
    Ok(text)
}
