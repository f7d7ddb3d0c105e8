//! `plait explain`: shows why data waited in a run, the decision that caused it, and its cost. Captures are in
//! `explain_capture`.

use super::explain_capture::{self, CaptureRequest, check_regular, names_capture};
use crate::console::{Console, check_unread, check_writable, deliver, json};
use crate::failure::Failure;
use crate::flags::{ExplainFlags, check_is_file, whole};
use crate::progress::{self, Tally};
use plait_app::{file, quantity};
use plait_base::{Span, Time};
use plait_lab::explain::{ExplainControl, MOST_STALLS, Question, Unexplained, Which, explain};
use plait_lab::{Cell, RawScenario};
use plait_report::recorded::Recorded;
use plait_report::transfer::{ExplainedRun, Transfer};
use plait_report::{Watchers, render};
use plait_sim::Watch;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "Examples:
  plait explain --path wifi-home --path lte-att --workload download:512kB
  plait explain run.jsonl --slowest 3 --compare-with ecf,blest
  plait explain client.pcapng --html client.html";

/// Default number of explained waits.
const USUAL: usize = 10;

/// Explain the waits in a run or in a capture, with their cost
///
/// RUN is a capture (pcap or pcapng) of any sender, a qlog of plait, or a file of `plait run --events`. Without it, the
/// flags of `plait run` describe the run.
///
/// The command shows the time that the transfer lost beyond the rates of its paths, by cause. docs/explain-capture.md
/// describes that report. Several captures are merged by time.
///
/// For a run, the command also shows the waits. It repeats the run. For every other subflow that a decision could have
/// chosen, it makes one more run in which only this decision differs. The difference is the cost of the decision.
/// --compare-with shows the decisions of other schedulers in the same states. In the documentation,
/// docs/explain.md describes the report line by line.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Args {
    /// A file of `plait run --events`, a qlog, or one or more captures
    #[arg(value_name = "RUN")]
    run: Vec<PathBuf>,
    /// Explain the waits at this time, such as 1.2s
    #[arg(long, value_name = "TIME", value_parser = instant)]
    at: Option<Span>,
    /// Number of longest waits to explain [default: 10]
    ///
    /// With --at, these are the longest waits at that time.
    #[arg(long, value_name = "N", value_parser = whole(1, MOST_STALLS as u64), hide_short_help = true)]
    slowest: Option<u64>,
    /// Replay a capture's transfer with these schedulers
    ///
    /// The links, the workload and the buffers are fitted to the capture. Other settings of the replay are flags,
    /// such as --cc. --scheduler is the one to compare with, in place of the capture's own [default: linux].
    #[arg(long, value_name = "LIST")]
    what_if: Option<String>,
    /// Add the decisions of the kernel, from a trace
    ///
    /// FILE is the text of the tracepoint mptcp:mptcp_subflow_get_send: the output of `perf script`, of `trace-cmd
    /// report`, or the file `trace` of tracefs. It must be recorded at the sender, at the same time as the capture.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    kernel_decisions: Option<PathBuf>,
    #[command(flatten)]
    flags: ExplainFlags,
    /// Write one JSON document (`plait schema explain`)
    ///
    /// The document of a capture has another form: `plait schema explain-capture`.
    #[arg(long)]
    json: bool,
    /// Write to this file in place of stdout
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Draw a capture's transfer over time on an HTML page
    ///
    /// The page has the incidents and the numbers too. A browser shows it without a network.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Parses a time. The caller adds the flag and the text to the error.
fn instant(text: &str) -> Result<Span, String> {
    quantity::time(text).map_err(|error| {
        let problem = error.to_string();
        let rest = problem.strip_prefix(&format!("`{text}`")).unwrap_or(&problem);
        rest.trim_start_matches(':').trim_start().to_owned()
    })
}

/// The waits to explain, and the source of the run.
pub(crate) struct ExplainRequest {
    cell: Cell,
    question: Question,
    recorded: Option<Recorded>,
}

pub(crate) fn run(args: &Args, console: Console) -> Result<(), Failure> {
    check_regular(&args.run)?;
    if args.run.iter().any(|file| names_capture(file)) {
        return args.explain_captures(console);
    }
    if args.run.iter().any(|file| !file.exists()) {
        args.asked()?;
    }
    if args.what_if.is_some() {
        return Err(Failure::Usage(
            "--what-if: it needs a capture\n  allowed: plait explain CAPTURE --what-if ecf,blest; of a \
             run, --compare-with shows the decisions of other schedulers"
                .to_owned(),
        ));
    }
    if let Some(trace) = &args.kernel_decisions {
        return Err(Failure::Usage(format!(
            "--kernel-decisions: `{}`: it needs a capture\n  allowed: plait explain CAPTURE \
             --kernel-decisions FILE",
            trace.display()
        )));
    }
    if let Some(file) = &args.html {
        return Err(Failure::Usage(format!(
            "--html: `{}`: it needs a capture\n  allowed: plait explain CAPTURE --html FILE; of a run, \
             plait run --html FILE draws it",
            file.display()
        )));
    }
    let mut asked = args.asked()?;
    check_unread("--output", args.output.as_deref(), args.run.iter().map(PathBuf::as_path))?;
    check_writable("--output", args.output.as_deref())?;
    let cancelled = progress::on_interrupt()?;
    let tally = Tally::new(console);
    let advance = |done: usize, total: usize| tally.tell(done, total);
    let ExplainRequest { cell, question, recorded } = &mut asked;
    let (seed, from_file) = (cell.scenario.seed, recorded.is_some());
    let events = recorded.as_ref().map(Recorded::line_number);
    let mut transfer = Transfer::new(cell, seed, events);
    // The file comes first: it counts the lines.
    let mut watchers = Watchers(Vec::new());
    watchers.0.extend(recorded.as_mut().map(|recorded| recorded as &mut dyn Watch));
    watchers.0.push(&mut transfer);
    let control = ExplainControl { progress: &advance, ..ExplainControl::unwatched(cancelled) };
    let outcome = explain(cell, seed, question, Some(&mut watchers), &control);
    tally.clear();
    // A file is not compared to its end if its run was not repeated to its end.
    if matches!(outcome, Err(Unexplained::Cancelled)) {
        return Err(Failure::Interrupted);
    }
    if let Some(recorded) = asked.recorded {
        recorded.finish()?;
    }
    let mut explanation = outcome.map_err(|error| match error {
        Unexplained::Violated(_) => Failure::Internal(error.to_string()),
        _ => Failure::Usage(args.misplaced(&error)),
    })?;
    explanation.command = args.again(&asked.cell, &asked.question);
    let explained = transfer.explained(explanation)?;
    deliver(&args.text(&explained, from_file, console)?, args.output.as_deref())
}

impl Args {
    fn text(
        &self,
        explained: &ExplainedRun,
        from_file: bool,
        console: Console,
    ) -> Result<String, Failure> {
        if self.json {
            return json(explained);
        }
        let console = if self.output.is_some() { console.plain() } else { console };
        Ok(render::explained_run(explained, from_file, console.width))
    }

    /// Explains captures. The flags for runs do not apply.
    fn explain_captures(&self, console: Console) -> Result<(), Failure> {
        let for_run = self.at.is_some() || self.slowest.is_some() || self.flags.others().is_some();
        if for_run || (!self.flags.is_empty() && self.what_if.is_none()) {
            let capture = self.run.iter().find(|file| names_capture(file));
            return Err(Failure::Usage(format!(
                "{}: a capture takes no flags of a run\n  allowed: --json, --output, \
                 --html, --kernel-decisions, and --what-if with settings of its replay such as --cc",
                capture.map_or(Path::new("CAPTURE"), PathBuf::as_path).display()
            )));
        }
        let what_if = match &self.what_if {
            Some(list) => Some((list.as_str(), self.flags.draft()?)),
            None => None,
        };
        let (files, json, output) = (&self.run[..], self.json, self.output.as_deref());
        let (kernel, html) = (self.kernel_decisions.as_deref(), self.html.as_deref());
        let request = CaptureRequest { files, kernel, json, output, html, what_if };
        explain_capture::run(request, console)
    }

    /// Returns the run and the question about it.
    pub(crate) fn asked(&self) -> Result<ExplainRequest, Failure> {
        if let [_, second, ..] = &self.run[..] {
            return Err(Failure::Usage(format!(
                "{}: a second file, which is not a capture\n  allowed: one file of `plait run \
                 --events`, or several captures (pcap, pcapng)",
                second.display()
            )));
        }
        if let Some(file) = self.run.first() {
            check_is_file("RUN", file, "plait explain")?;
        }
        let recorded = match self.run.first() {
            None => None,
            Some(file) if self.flags.is_empty() => Some(Recorded::open(file)?),
            Some(file) => {
                return Err(Failure::Usage(format!(
                    "RUN: `{}`: the run is described twice, by the file and by flags\n  \
                     allowed: one of them, with --at, --slowest and --compare-with",
                    file.display()
                )));
            }
        };
        let draft = || match &recorded {
            Some(recorded) => recorded.draft().map_err(Failure::from),
            None => self.flags.draft().map_err(Failure::from),
        };
        let run = draft()?;
        if recorded.is_none() && !self.flags.names_something() {
            return Err(Failure::Usage(
                "RUN: nothing to explain\n  allowed: a file of `plait run --events`, or the \
                 flags of `plait run`: --path, --workload, ..."
                    .to_owned(),
            ));
        }
        let cell = super::run::one_cell(&run, "plait explain")?;
        let workload = &cell.scenario.workload;
        if workload.connections() > 1 {
            return Err(Failure::Usage(format!(
                "--workload: `{workload}`: it has several connections, and explain takes one\n  \
                 allowed: one connection, such as http=2 or connections=1"
            )));
        }
        let schedulers = self.others(draft()?)?;
        let most = self.slowest.map_or(USUAL, |count| count as usize);
        let which = match self.at {
            Some(at) => Which::At { at: Time::ZERO + at, most },
            None => Which::Slowest(most),
        };
        Ok(ExplainRequest { cell, question: Question { which, schedulers }, recorded })
    }

    /// Returns the schedulers to compare with.
    fn others(&self, mut draft: RawScenario) -> Result<Vec<plait_sched::Spec>, Failure> {
        let Some(list) = self.flags.others() else { return Ok(Vec::new()) };
        // The list is parsed like the setting, but errors name `--compare-with`.
        let usage = |error: plait_lab::ScenarioError| {
            Failure::Usage(error.to_string().replacen("--schedulers", "--compare-with", 1))
        };
        draft.forget("schedulers");
        draft.argument("schedulers", list).map_err(usage)?;
        Ok(draft.build_with(&file::named).map_err(usage)?.schedulers)
    }

    /// Returns an error about the instant, with the flag that gave it.
    fn misplaced(&self, error: &Unexplained) -> String {
        match self.at {
            Some(at) => format!("--at: `{at}`: {error}"),
            None => format!("RUN: {error}"),
        }
    }

    /// Returns the command line that repeats the explanation.
    fn again(&self, cell: &Cell, question: &Question) -> String {
        let mut line = cell.command_line("plait explain");
        match question.which {
            Which::At { at, most } => {
                line.push_str(&format!(" --at {}", at.since(Time::ZERO)));
                if most != USUAL {
                    line.push_str(&format!(" --slowest {most}"));
                }
            }
            Which::Slowest(count) => line.push_str(&format!(" --slowest {count}")),
        }
        if let Some(list) = self.flags.others() {
            line.push_str(&format!(" --compare-with {list}"));
        }
        line
    }
}
