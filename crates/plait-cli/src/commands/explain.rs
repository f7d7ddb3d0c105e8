//! `plait explain`: shows why data waited in a run, the decision that caused it, and its cost.

use crate::console::{Console, check_writable, deliver, json};
use crate::failure::Failure;
use crate::flags::{ExplainFlags, check_is_file, whole};
use crate::progress::Tally;
use plait_app::{file, quantity};
use plait_base::{Span, Time};
use plait_lab::explain::{Explanation, MOST_STALLS, Question, Unexplained, Which, explain};
use plait_lab::{Cell, RawScenario};
use plait_report::recorded::Recorded;
use plait_report::render;
use plait_sim::Watch;
use std::path::PathBuf;

const EXAMPLES: &str = "Examples:
  plait explain --path wifi-home --path lte-att --workload download:512kB
  plait explain --path wifi-home --path lte-att --workload burst:15seg --json
  plait explain run.jsonl --slowest 3 --compare-with ecf,blest";

/// Default number of explained waits.
const USUAL: usize = 10;

/// Explain the waits in a run: the decisions and their cost
///
/// RUN is a file of `plait run --events`. Without it, the flags of `plait run` describe the run.
/// The command repeats the run. For every other subflow that a decision could have chosen, it makes one
/// more run in which only this decision differs. The difference is the cost of the decision.
/// --compare-with shows the decisions of other schedulers in the same states. In the documentation,
/// docs/explain.md describes the report line by line.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Args {
    /// A file of `plait run --events`
    #[arg(value_name = "RUN")]
    run: Option<PathBuf>,
    /// Explain the waits at this time, such as 1.2s
    #[arg(long, value_name = "TIME", value_parser = instant)]
    at: Option<Span>,
    /// Number of longest waits to explain [default: 10]
    ///
    /// With --at, these are the longest waits at that time.
    #[arg(long, value_name = "N", value_parser = whole(1, MOST_STALLS as u64))]
    slowest: Option<u64>,
    #[command(flatten)]
    flags: ExplainFlags,
    /// Write one JSON document (`plait schema explain`)
    #[arg(long)]
    json: bool,
    /// Write to this file in place of stdout
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
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
    let mut asked = args.asked()?;
    check_writable("--output", args.output.as_deref())?;
    let tally = Tally::new(console);
    let advance = |done: usize, total: usize| tally.tell(done, total);
    let ExplainRequest { cell, question, recorded } = &mut asked;
    let beside = recorded.as_mut().map(|recorded| recorded as &mut dyn Watch);
    let outcome = explain(cell, cell.scenario.seed, question, beside, &advance);
    tally.clear();
    if let Some(recorded) = asked.recorded {
        recorded.finish()?;
    }
    let mut explanation = outcome.map_err(|error| match error {
        Unexplained::Violated(_) => Failure::Internal(error.to_string()),
        _ => Failure::Usage(args.misplaced(&error)),
    })?;
    explanation.command = args.again(&asked.cell, &asked.question);
    deliver(&args.text(&explanation, console)?, args.output.as_deref())
}

impl Args {
    fn text(&self, explanation: &Explanation, console: Console) -> Result<String, Failure> {
        if self.json {
            return json(explanation);
        }
        let console = if self.output.is_some() { console.plain() } else { console };
        Ok(render::explained(explanation, console.width))
    }

    /// Returns the run and the question about it.
    pub(crate) fn asked(&self) -> Result<ExplainRequest, Failure> {
        if let Some(file) = &self.run {
            check_is_file("RUN", file, "plait explain")?;
        }
        let recorded = match &self.run {
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
