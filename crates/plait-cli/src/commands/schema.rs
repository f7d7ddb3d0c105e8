//! `plait schema`: prints the JSON Schema of a command's output.

use crate::console::{deliver, json};
use crate::failure::Failure;
use clap::ValueEnum;
use plait_report::render::{Align, Column, Emphasis, Table};

const EXAMPLES: &str = "Examples:
  plait schema compare
  plait schema decide
  plait schema trace";

/// Print the JSON Schema of a command's JSON
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Args {
    /// The command [default: list all]
    #[arg(value_enum)]
    command: Option<Reporting>,
}

/// The commands that write JSON.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Reporting {
    /// `plait compare --json`
    Compare,
    /// An answer of `plait decide`
    Decide,
    /// A question for `plait decide`
    DecideQuestion,
    /// An answer of `plait decide --cc`
    DecideCc,
    /// A question for `plait decide --cc`
    DecideCcQuestion,
    /// `plait run --json`
    Run,
    /// `plait doctor --json`
    #[cfg(live)]
    Doctor,
    /// `plait get --json`
    #[cfg(live)]
    Get,
    /// `plait paths --json`
    #[cfg(live)]
    Paths,
    /// `plait shell --report`
    #[cfg(live)]
    Shell,
    /// `plait race --json`
    #[cfg(live)]
    Race,
    /// `plait measure --json`
    #[cfg(live)]
    Measure,
    /// A line of `plait run --events`
    Events,
    /// `plait explain --json`
    Explain,
    /// `plait explain CAPTURE --json`
    ExplainCapture,
    /// `plait list --json`
    List,
    /// `plait advise --json`
    Advise,
    /// `plait scoreboard --json`
    Scoreboard,
    /// `plait scoreboard --random --json`
    ScoreboardRandom,
    /// `plait swarm --json`
    Swarm,
    /// `plait swarm --case --json`, and `--replay --json`
    SwarmReplay,
    /// `plait trace show --json`
    Trace,
    /// `plait reproduce --json`
    Reproduce,
    /// `plait experiment run --json`
    Experiment,
    /// An experiment file
    ExperimentFile,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let Some(command) = args.command else { return deliver(&listed(), None) };
    let schema = match command {
        Reporting::Compare => return deliver(&json(&plait_lab::schema("compare"))?, None),
        Reporting::ExperimentFile => {
            return deliver(&json(&plait_lab::experiment::file_schema())?, None);
        }
        // These documents are input; all others are output.
        Reporting::DecideQuestion => schemars::schema_for!(plait_report::decide::Question),
        Reporting::Decide => written::<plait_report::decide::Answer>(),
        Reporting::DecideCcQuestion => {
            schemars::schema_for!(plait_report::decide::controller::Question)
        }
        Reporting::DecideCc => written::<plait_report::decide::controller::Answer>(),
        Reporting::Run => written::<plait_report::run::RunDocument>(),
        #[cfg(live)]
        Reporting::Doctor => written::<plait_live::doctor::DoctorDocument>(),
        #[cfg(live)]
        Reporting::Get => written::<crate::commands::live::get::GetDocument>(),
        #[cfg(live)]
        Reporting::Paths => written::<crate::commands::live::paths::PathsDocument>(),
        #[cfg(live)]
        Reporting::Shell => written::<crate::commands::live::shell::ShellDocument>(),
        #[cfg(live)]
        Reporting::Race => written::<plait_lab::race::RaceDocument>(),
        #[cfg(live)]
        Reporting::Measure => written::<plait_measure::live::MeasureDocument>(),
        Reporting::Events => written::<plait_report::events::Line<'static>>(),
        Reporting::Explain => written::<plait_report::transfer::ExplainedRun>(),
        Reporting::ExplainCapture => written::<plait_capture::CaptureExplanation>(),
        Reporting::List => written::<plait_report::list::ListDocument>(),
        Reporting::Reproduce | Reporting::Experiment => {
            written::<plait_report::reproduction::ReproductionDocument>()
        }
        Reporting::Trace => written::<plait_report::trace::TraceDocument>(),
        Reporting::Advise => written::<plait_lab::advise::Advice>(),
        Reporting::Scoreboard => written::<plait_lab::scoreboard::Board>(),
        Reporting::ScoreboardRandom => written::<plait_lab::scoreboard::random::RandomBoard>(),
        Reporting::Swarm => written::<plait_lab::swarm::Report>(),
        Reporting::SwarmReplay => written::<plait_lab::swarm::Replay>(),
    };
    deliver(&json(&schema)?, None)
}

/// Returns every name that has a schema, with the document that the schema describes.
fn listed() -> String {
    let mut table = Table::new(vec![
        Column::new("name", Align::Left),
        Column::new("schema of", Align::Left).prose(),
    ]);
    for it in Reporting::value_variants().iter().filter_map(Reporting::to_possible_value) {
        let of = it.get_help().map(ToString::to_string).unwrap_or_default();
        table.row(Emphasis::None, vec![it.get_name().to_owned(), of]);
    }
    table.to_text(80, false)
}

/// Returns the schema of an output document. A field that is always present is required, even if it may be
/// `null`.
fn written<T: schemars::JsonSchema>() -> schemars::Schema {
    schemars::generate::SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<T>()
}
