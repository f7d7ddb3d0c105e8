//! `plait measure`: what links can do, as a file of links.

#[cfg(live)]
pub(crate) mod host;
mod import;
#[cfg(live)]
mod serve;
#[cfg(live)]
mod text;

use crate::console::Console;
use crate::failure::Failure;
#[cfg(live)]
use plait_measure::live::MeasureError;
#[cfg(live)]
use std::time::Duration;

#[cfg(live)]
const EXAMPLES: &str = "Examples:
  plait measure 192.0.2.1 --from wlan0 --from wwan0 --dry-run
  plait measure 192.0.2.1 --from lte=wwan0 --time 10s --quota 20MB --dry-run
  plait measure import link.down --name lte -q";
#[cfg(not(live))]
const EXAMPLES: &str = "Examples:
  plait measure import link.down --name lte -q
  plait measure import link.down --name lte --direction up -q";

/// Measure links, or import measurements, as a file of links
///
/// Measures each path to a host that runs `plait measure serve`: its RTT, and in both directions the rate, the queue
/// under load, and the loss below the rate. Then it loads all paths together, which shows a shared bottleneck. It also
/// checks whether options of Multipath TCP arrive. It sends UDP above the rate of each path for a few seconds, so other
/// traffic suffers meanwhile. Needs no privilege.
///
/// The result is a file of links with the range, the source and the date of each value. Every command with --path
/// takes it as --links FILE.
///
/// Exit codes: 0, 2 for wrong arguments, 4 if the far side refuses or does not answer, 130 after Ctrl-C.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    task: Option<Task>,
    #[cfg(live)]
    #[command(flatten)]
    host: host::HostArgs,
}

#[derive(clap::Subcommand, Debug)]
enum Task {
    Import(import::Args),
    #[cfg(live)]
    Serve(serve::Args),
}

pub(crate) fn run(args: &Args, console: Console) -> Result<(), Failure> {
    match &args.task {
        Some(Task::Import(args)) => import::run(args, console),
        #[cfg(live)]
        Some(Task::Serve(args)) => serve::run(args, console),
        #[cfg(live)]
        None => host::run(&args.host, console),
        #[cfg(not(live))]
        None => {
            Err(Failure::Usage("measure: the subcommand is missing\n  allowed: import".to_owned()))
        }
    }
}

#[cfg(live)]
fn failure(error: MeasureError) -> Failure {
    match error {
        MeasureError::Usage(text) => Failure::Usage(text),
        MeasureError::Privilege(text) => Failure::Privilege(text),
        MeasureError::Peer(text) => Failure::Peer(text),
        MeasureError::Interrupted => Failure::Interrupted,
    }
}

/// Reads `--time`.
#[cfg(live)]
fn time(text: &str) -> Result<Duration, String> {
    let allowed = "allowed: from 5s to 10min";
    match plait_app::quantity::time(text).map(|time| Duration::from_nanos(time.as_nanos())) {
        Ok(time) if (5..=600).contains(&time.as_secs()) => Ok(time),
        Ok(_) => Err(format!("that is out of range\n  {allowed}")),
        Err(error) => Err(format!("{error}\n  {allowed}")),
    }
}

/// Reads `--quota`.
#[cfg(live)]
fn quota(text: &str) -> Result<u64, String> {
    let allowed = "allowed: from 1MB to 1000GB";
    match plait_app::quantity::bytes(text) {
        Ok(bytes) if (1_000_000..=1_000_000_000_000).contains(&bytes) => Ok(bytes),
        Ok(_) => Err(format!("that is out of range\n  {allowed}")),
        Err(error) => Err(format!("{error}\n  {allowed}")),
    }
}
