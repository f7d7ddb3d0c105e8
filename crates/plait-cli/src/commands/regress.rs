//! `plait regress CAPTURE... --expect TEXT`: a captured transfer as a test.

use super::{explain_capture, replay};
use crate::console::{Console, json};
use crate::failure::Failure;
use crate::flags::ScenarioFlags;
use crate::output::{Output, TableFormat};
use crate::progress::{self, Tally};
use plait_app::file;
use plait_lab::{ComparisonDocument, Control, Simulator};
use plait_report::render::comparison;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

const EXAMPLES: &str = "Examples:
  plait regress client.pcapng --expect 'ecf.completion_ms.p95 < 9000' --runs 3
  plait regress client.pcapng --expect 'ecf.goodput_mbps.mean > 1' --runs 3";

/// Replay a captured transfer with schedulers, and check expectations
///
/// The links, the workload and the buffers are those that `plait explain CAPTURE` fits. All other settings are
/// flags of `plait compare`. The same seed gives the same result.
///
/// Exit codes: 0 if all expectations hold, 1 if one does not, 2 for wrong arguments or a damaged capture, 4 if no
/// run has finished.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Args {
    /// Captures (pcap or pcapng) of one transfer
    #[arg(value_name = "CAPTURE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    scenario: ScenarioFlags,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args, console: Console) -> Result<(), Failure> {
    explain_capture::check_regular(&args.files)?;
    args.output.check_beside(args.files.iter().map(PathBuf::as_path))?;
    let draft = args.scenario.draft()?;
    if !draft.says("expect") {
        return Err(Failure::Usage(
            "--expect: nothing is expected\n  allowed: a comparison such as \
             'ecf.completion_ms.median < 2000', once or more"
                .to_owned(),
        ));
    }
    let cancelled = progress::on_interrupt()?;
    let explanation = explain_capture::read(&args.files, "plait regress", cancelled)?;
    explain_capture::complete(&explanation, Some("a damaged capture is not replayed"))?;
    let fit = replay::fit_of(&explanation)?;
    let scenario = replay::scenario(fit, draft)?;
    if let Some(note) = &fit.note {
        console.remark(1, &format!("plait: in the replay, {note}"));
    }
    let tally = Tally::new(console);
    let advance = |done: usize, total: usize| tally.tell(done, total);
    let control = Control { progress: &advance, ..Control::unwatched(cancelled) };
    let document = plait_lab::compare(&scenario, &Simulator, &control, &file::named)?;
    tally.clear();
    args.output.deliver(&args.text(&document, console)?)?;
    if cancelled.load(Ordering::Relaxed) {
        return Err(Failure::Interrupted);
    }
    if let Some(violation) = document.violation() {
        return Err(Failure::Internal(violation));
    }
    if document.has_nothing() {
        return Err(Failure::Peer("no run finished".to_owned()));
    }
    if document.holds() { Ok(()) } else { Err(Failure::Claim(comparison::broken(&document))) }
}

impl Args {
    fn text(&self, document: &ComparisonDocument, console: Console) -> Result<String, Failure> {
        let console = self.output.reader(console);
        match (self.output.json, self.output.format) {
            (true, _) => json(document),
            (_, Some(TableFormat::Csv)) => Ok(comparison::csv(document)),
            (_, Some(TableFormat::Markdown)) => Ok(comparison::markdown(document)),
            (_, None) => Ok(comparison::text(document, console.width, console.colour)),
        }
    }
}
