//! The command line of `plait`: compares and explains Multipath TCP schedulers. Data goes to stdout and
//! everything else to stderr. Exit codes: see `failure`.
//!
//! The program `plait` only calls [`main`]. `examples/own-scheduler` registers a scheduler of its own before. The
//! command `plait` of the Python package calls [`main_within`].
#![forbid(unsafe_code)]
#![warn(clippy::print_stderr)] // it panics if stderr is closed; use `console::remark`

mod commands;
mod console;
mod failure;
mod flags;
mod invocation;
#[cfg(live)]
mod log;
mod output;
mod progress;

pub use invocation::Host;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand};
use console::Console;
use failure::Failure;
use plait_lab::experiment::Experiment;
use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::LazyLock;

/// Version, commit and built-in features.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let live = if cfg!(live) { " live" } else { "" };
    format!("{}\ncommit {}\nfeatures simulator{live}", plait_report::VERSION, plait_report::COMMIT)
});

/// Builds of the program must not contain the bugs that the test of the swarm plants.
const _: () = assert!(!plait_core::PLANTED_BUGS, "built with planted bugs");

const EXAMPLES: &str = "Examples:
  plait compare --path wifi-home --path lte-att --workload download:512kB
  plait run --path wifi-home --path lte-att --workload download:2MB
  plait list schedulers blest";

/// Multipath TCP: which packet scheduler to choose, and why
#[derive(Parser, Debug)]
#[command(name = "plait", version = VERSION.as_str(), before_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Task,
    /// Write only errors to stderr
    #[arg(short, long, global = true, display_order = 900)]
    quiet: bool,
    /// Write more to stderr; may be repeated
    #[arg(short, long, global = true, display_order = 901, action = ArgAction::Count, conflicts_with = "quiet")]
    verbose: u8,
}

#[derive(Subcommand, Debug)]
enum Task {
    Compare(commands::compare::Args),
    Run(commands::run::Args),
    Explain(commands::explain::Args),
    Regress(commands::regress::Args),
    Decide(commands::decide::Args),
    List(commands::list::Args),
    Trace(commands::trace::Args),
    Scoreboard(commands::scoreboard::Args),
    Advise(commands::advise::Args),
    Measure(commands::measure::Args),
    Swarm(commands::swarm::Args),
    Experiment(commands::experiment::Args),
    Reproduce(commands::reproduce::Args),
    #[cfg(live)]
    Serve(commands::live::serve::Args),
    #[cfg(live)]
    Get(commands::live::get::Args),
    #[cfg(live)]
    Proxy(commands::live::proxy::Args),
    #[cfg(live)]
    Paths(commands::live::paths::Args),
    #[cfg(live)]
    Shell(commands::live::shell::Args),
    #[cfg(live)]
    Race(commands::live::race::Args),
    #[cfg(live)]
    Doctor(commands::live::doctor::Args),
    Schema(commands::schema::Args),
    Completions(commands::completions::Args),
    Man(commands::man::Args),
}

fn perform(task: &Task, console: Console) -> Result<(), Failure> {
    match task {
        Task::Compare(args) => commands::compare::run(args, console),
        Task::Run(args) => commands::run::run(args, console),
        Task::Explain(args) => commands::explain::run(args, console),
        Task::Regress(args) => commands::regress::run(args, console),
        Task::Decide(args) => commands::decide::run(args),
        Task::List(args) => commands::list::run(args, console),
        Task::Trace(args) => commands::trace::run(args, console),
        Task::Scoreboard(args) => commands::scoreboard::run(args, console),
        Task::Advise(args) => commands::advise::run(args, console),
        Task::Measure(args) => commands::measure::run(args, console),
        Task::Swarm(args) => commands::swarm::run(args, console),
        Task::Experiment(args) => commands::experiment::run(args, console),
        Task::Reproduce(args) => commands::reproduce::run(args, console),
        #[cfg(live)]
        Task::Serve(args) => commands::live::serve::run(args, console),
        #[cfg(live)]
        Task::Get(args) => commands::live::get::run(args, console),
        #[cfg(live)]
        Task::Proxy(args) => commands::live::proxy::run(args, console),
        #[cfg(live)]
        Task::Paths(args) => commands::live::paths::run(args, console),
        #[cfg(live)]
        Task::Shell(args) => commands::live::shell::run(args, console),
        #[cfg(live)]
        Task::Race(args) => commands::live::race::run(args, console),
        #[cfg(live)]
        Task::Doctor(args) => commands::live::doctor::run(args, console),
        Task::Schema(args) => commands::schema::run(args),
        Task::Completions(args) => commands::completions::run(args),
        Task::Man(args) => commands::man::run(args),
    }
}

/// Exits as the parser does: help and version go to stdout and are no failures. Returns a failure if stdout
/// cannot be written, or if a value is invalid, in the wording of scenarios.
fn parse_failure(mut error: clap::Error) -> Failure {
    if let Some(tip) = missing_flag(&error) {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    let said = |kind| error.get(kind).map(ToString::to_string);
    let flag = said(ContextKind::InvalidArg).filter(|_| error.kind() == ErrorKind::ValueValidation);
    let (Some(flag), Some(value), Some(problem)) =
        (flag, said(ContextKind::InvalidValue), error.source())
    else {
        if error.use_stderr() {
            error.exit()
        }
        let written = error.print().and_then(|()| io::stdout().flush());
        match written {
            Err(problem) if problem.kind() != io::ErrorKind::BrokenPipe => {
                return Failure::stdout(&problem);
            }
            _ => std::process::exit(error.exit_code()),
        }
    };
    let flag = flag.split(' ').next().unwrap_or_default();
    Failure::Usage(format!("{flag}: `{}`: {problem}", value.escape_debug()))
}

/// Returns the flag to write before a value that was given without one.
fn missing_flag(error: &clap::Error) -> Option<String> {
    let word = error.get(ContextKind::InvalidArg)?.to_string();
    let words = invocation::words();
    let task = words.iter().skip(1).find(|argument| !argument.starts_with('-'))?;
    let cli = Cli::command();
    let flag = flags::flag_of(&word, cli.find_subcommand(task)?)?;
    let unknown = error.kind() == ErrorKind::UnknownArgument;
    unknown.then(|| format!("write its flag before it: '--{flag} {word}'"))
}

/// Removes `-h` and `--help` after the command `help`, which has no flags: `plait help --help` is `plait help`.
fn without_flag_of_help(mut arguments: Vec<OsString>) -> Vec<OsString> {
    if arguments.get(1).is_some_and(|it| it == "help") {
        arguments.retain(|it| it != "-h" && it != "--help");
    }
    arguments
}

/// Performs the command that the arguments of the process give, and returns the exit code of the process.
///
/// A help text or a wrong argument ends the process at once.
#[must_use]
pub fn main() -> ExitCode {
    ExitCode::from(exit_code())
}

/// Performs the command that `host` gives, as [`main`] does, and returns the exit code. The process performs only one
/// command.
#[must_use]
pub fn main_within(host: Host) -> u8 {
    invocation::set(host);
    let code = exit_code();
    // Only a program of Rust does this at its end. If stdout is closed, the command has reported it.
    let _ = io::stdout().flush();
    code
}

/// Returns the experiment with this name or of this file.
///
/// # Errors
/// Returns the text of the command line if there is none, or if the file is invalid.
pub fn experiment(name: &str) -> Result<Experiment, String> {
    commands::experiment::find(name).map_err(|failure| failure.to_string())
}

/// Returns the document of `plait experiment list --json` for these experiments.
#[must_use]
pub fn list_of_experiments(all: &[Experiment]) -> serde_json::Value {
    commands::experiment::listed(all)
}

fn exit_code() -> u8 {
    let work = || {
        // Help is as wide as the terminal, but at most 100 columns, so that it stays easy to read.
        let width = Console::detect(false, 0).width.min(100);
        let arguments = without_flag_of_help(invocation::arguments());
        let parsed = Cli::command().term_width(width).try_get_matches_from(arguments);
        let cli = parsed.and_then(|matches| Cli::from_arg_matches(&matches));
        let cli = cli.map_err(parse_failure)?;
        perform(&cli.command, Console::detect(cli.quiet, cli.verbose))
    };
    let outcome = catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(Failure::Internal("a panic; its message is above".to_owned())));
    let code = match outcome {
        Ok(()) => 0,
        #[cfg(live)]
        Err(Failure::Ended(code)) => code,
        Err(failure) => {
            console::complain(&failure);
            failure.code()
        }
    };
    #[cfg(live)]
    log::finish();
    code
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Valid words, so that mutation reaches beyond the first error.
    const WORDS: &[&str] = &[
        "compare",
        "run",
        "explain",
        "--slowest",
        "--at",
        "400ms",
        "--scheduler",
        "decide",
        "list",
        "trace",
        "scoreboard",
        "advise",
        "--draws",
        "a:rate=8mbit..9mbit",
        "--links",
        "A-F",
        "swarm",
        "--seeds",
        "--from",
        "--case",
        r#"{"paths":[{},{}]}"#,
        "show",
        "convert",
        "schema",
        "completions",
        "man",
        "schedulers",
        "cc",
        "paths",
        "--path",
        "--path=wifi-home",
        "wifi-home",
        "lte-att:loss=2%",
        "a:rtt=9ms,rate=1mbit",
        "b:profile=wifi-cafe,down=1s..3s,queue=50ms",
        "--workload",
        "download:64KiB",
        "burst:15seg",
        "stream:8KiB@35ms,for=1s",
        "bulk:1s",
        "--schedulers",
        "all",
        "ecf:beta=0.25,floor=off",
        "minrtt+rp:mode=retransmit",
        "--cc",
        "cubic,lia",
        "fixed:cwnd=BDP",
        "--runs",
        "0",
        "3",
        "--seed",
        "18446744073709551615",
        "--vary",
        "a.rtt=1ms..9ms:3",
        "--expect",
        "ecf.completion_ms.p95 < 1.05 * minrtt.completion_ms.p95",
        "--ideal",
        "--check",
        "--json",
        "--format",
        "csv",
        "--mtu",
        "576",
        "--rcvbuf",
        "64KiB",
        "--ssthresh",
        "45seg",
        "--until",
        "1h",
        "--jobs",
        "--link",
        "--compete",
        "cubic@a*2",
        "--scenario",
        "-q",
        "-vv",
        "--",
        "-",
        "",
        "=",
        "--path=a:rate=10mbit@0s/4mbit@20s,rtt=1ms",
        "--join",
        "after-synack",
    ];

    /// Applies one to three edits to a word: cut it, double it, or insert a character.
    fn edited() -> impl Strategy<Value = String> {
        let edits =
            prop::collection::vec((any::<prop::sample::Index>(), 0..3_u8, any::<char>()), 1..4);
        (prop::sample::select(WORDS), edits).prop_map(|(word, edits)| {
            let mut text: Vec<char> = word.chars().collect();
            for (at, kind, new) in edits {
                let at = at.index(text.len() + 1);
                match (kind, text.get(at).copied()) {
                    (0, Some(_)) => drop(text.remove(at)),
                    (1, Some(same)) => text.insert(at, same),
                    _ => text.insert(at, new),
                }
            }
            text.into_iter().collect()
        })
    }

    fn arguments() -> impl Strategy<Value = Vec<String>> {
        let word = prop_oneof![
            6 => prop::sample::select(WORDS).prop_map(str::to_owned),
            2 => edited(),
            1 => any::<String>(),
        ];
        let tail = prop::collection::vec(word, 0..14);
        let head = prop_oneof![
            3 => Just(vec!["compare".to_owned()]),
            1 => Just(vec!["run".to_owned()]),
            1 => Just(vec!["explain".to_owned()]),
            1 => Just(vec![]),
        ];
        (head, tail).prop_map(|(head, tail)| {
            ["plait".to_owned()].into_iter().chain(head).chain(tail).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(
            std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(3_000)
        ))]

        #[test]
        fn no_arguments_make_the_parser_panic(arguments in arguments()) {
            match Cli::try_parse_from(&arguments).map(|cli| cli.command) {
                Ok(Task::Compare(args)) => {
                    if let Err(failure) = args.scenario() {
                        prop_assert_eq!(failure.code(), 2);
                        prop_assert!(!failure.to_string().is_empty());
                    }
                }
                Ok(Task::Run(args)) => {
                    if let Err(failure) = args.cell() {
                        prop_assert_eq!(failure.code(), 2);
                    }
                }
                Ok(Task::Explain(args)) => {
                    if let Err(failure) = args.asked() {
                        prop_assert_eq!(failure.code(), 2);
                    }
                }
                Ok(_) => {}
                Err(error) => prop_assert!(matches!(error.exit_code(), 0 | 2)),
            }
        }
    }

    #[test]
    fn the_grammar_of_the_arguments_is_sound() {
        Cli::command().debug_assert();
    }
}
