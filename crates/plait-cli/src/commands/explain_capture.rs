//! `plait explain CAPTURE...`: explains captures of any sender, and replays the largest transfer with other schedulers.

use super::replay;
use crate::console::{Console, check_unread, check_writable, deliver, is_same_file, json, write};
use crate::failure::Failure;
use crate::progress::Tally;
use plait_app::file;
use plait_capture::{
    Broken, CaptureExplanation, FileReport, FitReport, KernelDecisions, PredictedRow,
    PredictionReport, Unexplained, explain_watched, explain_with, is_capture,
};
use plait_lab::scenario::quoted;
use plait_lab::{Control, RawScenario, Report, Simulator};
use plait_report::page::{self, TransferCollector};
use plait_report::render;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The scheduler of the replay if no flag names another one: that of Linux.
const USUAL_SCHEDULER: &str = "linux";
/// Runs of each scheduler if no flag gives their number.
const USUAL_RUNS: &str = "10";

/// What to do with captures.
pub(crate) struct CaptureRequest<'a> {
    pub(crate) files: &'a [PathBuf],
    /// The text of a trace of the kernel's decisions.
    pub(crate) kernel: Option<&'a Path>,
    /// Write the document in place of the text.
    pub(crate) json: bool,
    pub(crate) output: Option<&'a Path>,
    /// Draw the largest transfer on a page.
    pub(crate) html: Option<&'a Path>,
    /// Schedulers to replay the largest transfer with, and the settings of the replay.
    pub(crate) what_if: Option<(&'a str, RawScenario)>,
}

/// Returns true if the file is a capture or a qlog. A file that cannot be read is none.
pub(crate) fn names_capture(file: &Path) -> bool {
    let mut head = [0; 8];
    let read = File::open(file).and_then(|mut file| file.read(&mut head));
    read.is_ok_and(|read| is_capture(&head[..read]))
}

/// Fails if a file is a pipe or a device. Captures are read twice.
pub(crate) fn check_regular(files: &[PathBuf]) -> Result<(), Failure> {
    let is_other = |file: &&PathBuf| file.metadata().is_ok_and(|it| !it.is_file() && !it.is_dir());
    match files.iter().find(is_other) {
        Some(file) => Err(Failure::Usage(format!(
            "`{}`: it is a pipe or a device, and a file is read twice\n  write it to a file first",
            file.display()
        ))),
        None => Ok(()),
    }
}

/// Reads captures and explains them. `command` is the command line with the files.
pub(crate) fn read(
    files: &[PathBuf],
    command: &str,
    cancelled: &AtomicBool,
) -> Result<CaptureExplanation, Failure> {
    let names = files.iter().map(|file| quoted(&file.display().to_string()));
    let command = format!("{command} {}", names.collect::<Vec<_>>().join(" "));
    let mut advance = |_: u64| !cancelled.load(Ordering::Relaxed);
    plait_capture::explain(files, command, &mut advance)
        .map_err(|(index, broken)| Failure::Usage(refused(&files[index], &broken)))
}

impl CaptureRequest<'_> {
    /// Fails if two flags, or a flag and a capture, name the same file, or if a file cannot be written.
    fn check(&self) -> Result<(), Failure> {
        let written = [("--output", self.output), ("--html", self.html)];
        for (flag, file) in written.into_iter().filter_map(|(flag, file)| Some((flag, file?))) {
            let read = self.files.iter().map(PathBuf::as_path).chain(self.kernel);
            check_unread(flag, Some(file), read)?;
            if flag == "--html" && self.output.is_some_and(|output| is_same_file(output, file)) {
                let shown = file.display();
                let problem = "--output names the same file";
                return Err(Failure::Usage(format!(
                    "{flag}: `{shown}`: {problem}\n  give another one"
                )));
            }
            check_writable(flag, Some(file))?;
        }
        Ok(())
    }

    /// Reads the captures, with a trace of the kernel's decisions if there is one, and explains them.
    fn explained(
        &self,
        cancelled: &AtomicBool,
        seen: Option<&mut TransferCollector>,
    ) -> Result<CaptureExplanation, Failure> {
        let kernel = self.kernel.map(decisions).transpose()?;
        let names = self.files.iter().map(|file| quoted(&file.display().to_string()));
        let mut command = format!("plait explain {}", names.collect::<Vec<_>>().join(" "));
        if let Some(trace) = self.kernel {
            let trace = quoted(&trace.display().to_string());
            command.push_str(&format!(" --kernel-decisions {trace}"));
        }
        let mut advance = |_: u64| !cancelled.load(Ordering::Relaxed);
        let explained = match (seen, &kernel) {
            (Some(seen), kernel) => {
                explain_watched(self.files, kernel.as_ref(), command, &mut advance, seen)
            }
            (None, Some(kernel)) => explain_with(self.files, kernel, command, &mut advance),
            (None, None) => return read(self.files, "plait explain", cancelled),
        };
        explained.map_err(|error| {
            Failure::Usage(match error {
                Unexplained::File(index, broken) => refused(&self.files[index], &broken),
                Unexplained::Unaligned(reason) => format!(
                    "--kernel-decisions: {}: it cannot be aligned with the capture: {reason}\n  \
                     record both at the sender, at the same time, with one connection of MPTCP",
                    self.kernel.unwrap_or(Path::new("")).display()
                ),
            })
        })
    }
}

/// Reads a trace of the kernel's decisions.
fn decisions(trace: &Path) -> Result<KernelDecisions, Failure> {
    KernelDecisions::read(trace).map_err(|broken| {
        let place = if broken.packet > 0 { format!(":{}", broken.packet) } else { String::new() };
        let shown = trace.display();
        Failure::Usage(format!("--kernel-decisions: {shown}{place}: {}", broken.problem))
    })
}

/// Explains captures.
pub(crate) fn run(request: CaptureRequest<'_>, console: Console) -> Result<(), Failure> {
    request.check()?;
    let cancelled = crate::progress::on_interrupt()?;
    let mut seen = request.html.map(|_| TransferCollector::default());
    let mut explanation = request.explained(cancelled, seen.as_mut())?;
    if let Some((list, draft)) = request.what_if {
        let fit = replay::fit_of(&explanation)?.clone();
        explanation.what_if = Some(predict(&fit, list, draft, cancelled, console)?);
        explanation.command.push_str(&format!(" --what-if {}", quoted(list)));
    }
    if let (Some(file), Some(seen)) = (request.html, &seen) {
        write("--html", file, &page::captured(&explanation, seen)?)?;
    }
    let console = if request.output.is_some() { console.plain() } else { console };
    let text = match request.json {
        true => json(&explanation)?,
        false => render::captured(&explanation, console.width),
    };
    deliver(&text, request.output)?;
    if cancelled.load(Ordering::Relaxed) {
        return Err(Failure::Interrupted);
    }
    complete(&explanation, None)
}

/// Fails if a capture is damaged. `consequence` is what follows, if not that what comes before is explained.
pub(crate) fn complete(
    explanation: &CaptureExplanation,
    consequence: Option<&str>,
) -> Result<(), Failure> {
    let mut files = explanation.files.iter();
    match files.find_map(|file| Some((file, file.broken.as_ref()?))) {
        None => Ok(()),
        Some((report, broken)) if report.kind.has_lines() => Err(Failure::Usage(format!(
            "{}:{}: {}\n  {}",
            report.file,
            broken.packet,
            broken.problem,
            consequence.unwrap_or("the lines before it are explained")
        ))),
        Some((FileReport { file, .. }, broken)) => Err(Failure::Usage(format!(
            "{file}: packet {}: {}\n  {}; `pcapfix` or `editcap` may repair the rest",
            broken.packet,
            broken.problem,
            consequence.unwrap_or("the packets before it are explained")
        ))),
    }
}

fn refused(file: &Path, broken: &Broken) -> String {
    format!("{}: {}", file.display(), broken.problem)
}

/// Replays the fit with its own scheduler and with those of `list`.
fn predict(
    fit: &FitReport,
    list: &str,
    mut draft: RawScenario,
    cancelled: &AtomicBool,
    console: Console,
) -> Result<PredictionReport, Failure> {
    let said = draft.arguments().into_iter().find(|(name, _)| *name == "schedulers");
    let base = said.map_or_else(|| USUAL_SCHEDULER.to_owned(), |(_, text)| text);
    let others = list.split(',').filter(|other| *other != base);
    let schedulers = others.fold(base.clone(), |all, other| format!("{all},{other}"));
    draft.forget("schedulers");
    draft.argument("schedulers", &schedulers)?;
    if !draft.says("runs") {
        draft.argument("runs", USUAL_RUNS)?;
    }
    // The list is parsed like the setting, but errors name the flag that has it.
    let scenario = replay::scenario(fit, draft).map_err(|failure| match failure {
        Failure::Usage(text) => Failure::Usage(text.replacen("--schedulers:", "--what-if:", 1)),
        other => other,
    })?;
    let tally = Tally::new(console);
    let advance = |done: usize, total: usize| tally.tell(done, total);
    let control = Control { progress: &advance, ..Control::unwatched(cancelled) };
    let compared = plait_lab::compare(&scenario, &Simulator, &control, &file::named)?;
    tally.clear();
    let command = scenario.command_line();
    if let [path] = fit.paths.as_slice() {
        let name = path.argument.split(':').next().unwrap_or_default();
        console.remark(
            1,
            &format!(
                "plait: --what-if: the fit has one path, {name}, so there is no row of {schedulers}"
            ),
        );
    }
    match compared.reports().first() {
        Some(report) => Ok(predicted(fit, report, command)),
        None => Err(Failure::Peer("no run of the replay finished".to_owned())),
    }
}

/// Returns the prediction of each row. The first row is that of the base.
fn predicted(fit: &FitReport, report: &Report, command: String) -> PredictionReport {
    let measure = match report.rows.iter().any(|row| row.measures.contains_key("completion_ms")) {
        true => "completion_ms",
        false => "message_delay_ms",
    };
    let of = |row: &plait_lab::Row| row.measures.get(measure).map(|summary| summary.median);
    let base = report.rows.first().and_then(of);
    let rows = report.rows.iter().map(|row| PredictedRow {
        scheduler: row.scheduler.clone(),
        median: of(row),
        change_percent: of(row).zip(base).map(|(own, base)| hundredths((own / base - 1.0) * 100.0)),
    });
    let captured = fit.completion_ms.filter(|_| measure == "completion_ms");
    PredictionReport {
        measure: measure.to_owned(),
        runs: report.runs,
        captured,
        error_percent: captured
            .zip(base)
            .map(|(captured, base)| hundredths((base / captured - 1.0) * 100.0)),
        rows: rows.collect(),
        command,
    }
}

fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
