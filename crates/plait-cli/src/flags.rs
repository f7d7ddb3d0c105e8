//! Flags of a scenario. They are generated from the list of settings, so that flags, keys of scenario files and
//! help agree. The scenario code also parses their values.

use crate::failure::Failure;
use clap::builder::{StringValueParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use plait_app::WORKLOADS;
use plait_lab::links::{LinkFile, Values};
use plait_lab::scenario::{PATH_KEYS, PROFILES, PathKey, SETTINGS, Setting, quoted};
use plait_lab::{RawScenario, ScenarioError};
use std::path::Path;

/// A scenario as flags.
#[derive(Clone, Default, Debug)]
pub(crate) struct ScenarioFlags {
    /// Scenario file to start from.
    file: Option<String>,
    /// File of links, whose paths replace those of the scenario file.
    links: Option<String>,
    /// Name and text of each flag, paths first.
    said: Vec<(&'static str, String)>,
}

impl ScenarioFlags {
    /// Returns the file and the flags as an unparsed scenario.
    pub(crate) fn draft(&self) -> Result<RawScenario, ScenarioError> {
        let mut draft = match &self.file {
            Some(file) => RawScenario::from_file(file, &|name| plait_app::file::settings(name))?,
            None => RawScenario::new(),
        };
        let own = self.said.iter().any(|(name, _)| *name == "path");
        if let Some(file) = self.links.as_deref().filter(|_| !own) {
            draft.take_paths(links(file, Values::Middle)?);
        }
        for (name, text) in &self.said {
            draft.argument(name, text)?;
        }
        Ok(draft)
    }
}

/// Reads a file of links as a scenario that has only paths and shared links.
pub(crate) fn links(file: &str, values: Values) -> Result<RawScenario, ScenarioError> {
    LinkFile::from_file(file, &|name| plait_app::file::settings(name))?.scenario(values)
}

/// Returns the paths and the shared links of a file of links as the values of `--path` and `--link`.
pub(crate) fn paths_of_links(file: &str) -> Result<Vec<(&'static str, String)>, ScenarioError> {
    Ok(links(file, Values::Middle)?.arguments())
}

/// Returns true if the value of `--links` is the name of a file, and not the name of a list.
pub(crate) fn names_file(links: &str) -> bool {
    links.ends_with(".toml") || links.contains(['/', '\\'])
}

/// Parses a whole number from `min` to `max`. Its errors have the words of scenario errors.
pub(crate) fn whole(min: u64, max: u64) -> impl TypedValueParser<Value = u64> {
    StringValueParser::new().try_map(move |text| plait_lab::scenario::whole(&text, min, max))
}

/// Returns a line with the names that the registry lists for a setting, or an empty text.
fn known(setting: &str) -> String {
    let names: Vec<String> = match setting {
        "schedulers" => {
            let bases = plait_sched::schedulers().iter().map(|entry| entry.about.name.to_owned());
            let around =
                plait_sched::DECORATORS.iter().map(|entry| format!("+{}", entry.about.name));
            bases.chain(around).collect()
        }
        "cc" => plait_cc::CONTROLLERS.iter().map(|entry| entry.about.name.to_owned()).collect(),
        _ => return String::new(),
    };
    format!("\nNames: {} (`plait list {setting}`)", names.join(", "))
}

/// Begins the line with the allowed values of a flag in `--help`.
const VALUES: &str = "Values: ";
const SHORT: [&str; 9] =
    ["path", "workload", "schedulers", "cc", "runs", "seed", "vary", "expect", "scenario"];

/// Last line of `-h`.
const MORE: &str = "`--help` explains each flag, every key of a path, and the flags for TCP.";

/// Last line of `--help`.
const PAGES: &str = "See `plait list paths` for named paths and `plait list measures` for the numbers of a report. \
                     In the documentation, docs/paths.md describes paths and docs/terms.md defines the terms.";

/// Returns the heading under which `--help` lists a flag.
fn heading(name: &str) -> &'static str {
    Setting::named(name).map_or("Scenario", |setting| setting.group)
}

fn flag(name: &'static str) -> Arg {
    let arg = Arg::new(name).long(name).help_heading(heading(name)).action(ArgAction::Append);
    arg.hide_short_help(!SHORT.contains(&name))
}

/// Returns the setting that takes a value given without a flag: `workload` for `bulk:10s`.
fn setting_of(word: &str) -> Option<&'static str> {
    let (name, rest) = word.split_once(':').unwrap_or((word, ""));
    let is_scheduler = |text: &str| plait_sched::Spec::parse(text).is_ok();
    let is_controller = |text: &str| plait_cc::Spec::parse(text).is_ok();
    let has_key = rest.split_once('=').is_some_and(|(key, _)| PathKey::named(key).is_some());
    Some(match word {
        _ if WORKLOADS.iter().any(|known| known.name == name) => "workload",
        _ if has_key || PROFILES.iter().any(|known| known.name == name) => "path",
        _ if word == "all" || word.split(',').all(is_scheduler) => "schedulers",
        _ if word.split(',').all(is_controller) => "cc",
        _ if word.ends_with(".toml") => "scenario",
        _ => return None,
    })
}

/// Returns the flag of `command` that takes a value given without a flag: `--workload` for `bulk:10s`.
pub(crate) fn flag_of<'a>(word: &str, command: &'a Command) -> Option<&'a str> {
    let setting = setting_of(word)?;
    command.get_arguments().find(|arg| arg.get_id() == setting)?.get_long()
}

/// Fails if `argument` does not name a file and looks like the value of a flag, such as `bulk:10s`. `task` is a
/// command with that flag.
pub(crate) fn check_is_file(argument: &str, file: &Path, task: &str) -> Result<(), Failure> {
    let word = file.to_str().unwrap_or_default();
    let run = RunFlags::augment_args(Command::new("run"));
    match flag_of(word, &run) {
        Some(flag) if flag != "scenario" && !file.exists() => Err(Failure::Usage(format!(
            "{argument}: `{word}`: there is no such file; it looks like a value of --{flag}\n  \
             write the flag before it: {task} --{flag} {}",
            quoted(word)
        ))),
        _ => Ok(()),
    }
}

/// Describes each key of a path, in lines that fit a terminal of 80 columns.
fn path_keys() -> String {
    let mut help = "A path, or the name of a profile (`plait list paths`). Repeat the\n\
                    flag for each path. The first path is the primary. Down means from\n\
                    server to client. Keys:"
        .to_owned();
    for key in PATH_KEYS {
        let form = if key.is_switch() { "" } else { "=" };
        let left = format!("{}{form}{}", key.name, key.form);
        help += &format!("\n{left:<17}{}", key.help.replace('\n', &format!("\n{:17}", "")));
    }
    help
}

impl ScenarioFlags {
    /// Declares the flags. If `one` is set, there is a single run, and its scheduler is `--scheduler`.
    fn declare(command: Command, one: bool) -> Command {
        let path = flag("path")
            .value_name("NAME:KEY=VALUE,...")
            .help("A path such as wifi:rtt=25ms,rate=25mbit, or a profile; once per path")
            .long_help(path_keys());
        let file = Arg::new("scenario")
            .long("scenario")
            .value_name("FILE")
            .help_heading(heading("scenario"))
            .help("Start from a scenario file (TOML); flags override it");
        let links = Arg::new("links")
            .long("links")
            .value_name("FILE")
            .help_heading(heading("path"))
            .hide_short_help(true)
            .help("Take the paths from a file of links (TOML); --path replaces them")
            .long_help(
                "Take the paths and shared links from a file of links (TOML), as `plait measure` writes it\n\
                 An unknown rate is an error. --path replaces its paths.",
            );
        let mut command = command.after_help(MORE).after_long_help(PAGES);
        command = command.arg(path).arg(links).arg(file);
        for setting in SETTINGS {
            let default = match setting.default {
                "" => String::new(),
                _ if setting.is_flag() => String::new(),
                default => format!(" [default: {default}]"),
            };
            let mut help = setting.help.chars();
            let first = help.next().map(char::to_uppercase).into_iter().flatten();
            let help: String = first.chain(help).collect::<String>() + &default;
            let clause = match setting.clause {
                "" => String::new(),
                clause => format!(" ({clause})"),
            };
            let values = setting.values();
            let long = format!("{help}{clause}\n{VALUES}{values}{}", known(setting.name));
            let mut arg = flag(setting.name).help(help);
            arg = if setting.is_flag() {
                arg.action(ArgAction::SetTrue)
            } else {
                arg.value_name("VALUE").long_help(long).allow_hyphen_values(true)
            };
            if setting.name == "schedulers" {
                // Both spellings mean the same in every command.
                arg = match one {
                    true => arg.long("scheduler").alias("schedulers"),
                    false => arg.alias("scheduler"),
                };
            }
            command = command.arg(arg);
        }
        command
    }
}

impl clap::Args for ScenarioFlags {
    fn augment_args(command: Command) -> Command {
        ScenarioFlags::declare(command, false)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ScenarioFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<ScenarioFlags, clap::Error> {
        let mut flags = ScenarioFlags {
            file: matches.get_one::<String>("scenario").cloned(),
            links: matches.get_one::<String>("links").cloned(),
            said: Vec::new(),
        };
        let switches =
            SETTINGS.iter().filter(|setting| setting.is_flag()).map(|setting| setting.name);
        for name in switches.filter(|name| matches.get_flag(name)) {
            flags.said.push((name, "on".to_owned()));
        }
        let texts =
            SETTINGS.iter().filter(|setting| !setting.is_flag()).map(|setting| setting.name);
        for name in ["path"].into_iter().chain(texts) {
            let values = matches.get_many::<String>(name).into_iter().flatten();
            flags.said.extend(values.map(|text| (name, text.clone())));
        }
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = ScenarioFlags::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Flags of `plait run`: a scenario of one row and one run. Its help has other defaults than that of `plait
/// compare`, and hides flags for many runs.
#[derive(Clone, Default, Debug)]
pub(crate) struct RunFlags(pub(crate) ScenarioFlags);

impl clap::Args for RunFlags {
    fn augment_args(command: Command) -> Command {
        let command = for_one_run(ScenarioFlags::declare(command, true), &["jobs"]);
        let one = [
            (
                "schedulers",
                format!("The scheduler [default: {}]", plait_sched::DEFAULT),
                "a scheduler such as ecf:beta=0.5 or blest+rp",
            ),
            ("cc", "Congestion controller [default: cubic]".into(), "a controller such as olia"),
            ("seed", "Seed of the run [default: 1]".into(), "a whole number"),
        ];
        described(command, one)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for RunFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<RunFlags, clap::Error> {
        ScenarioFlags::from_arg_matches(matches).map(RunFlags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

/// Hides the flags for many runs, and `more`.
fn for_one_run(command: Command, more: &[&'static str]) -> Command {
    let hidden = ["runs", "vary", "expect"];
    hidden
        .iter()
        .chain(more)
        .fold(command, |command, name| command.mut_arg(name, |arg| arg.hide(true)))
}

/// Replaces the help of flags, given as name, description and values.
fn described(command: Command, flags: [(&str, String, &'static str); 3]) -> Command {
    flags.into_iter().fold(command, |command, (name, help, values)| {
        let long = format!("{help}\n{VALUES}{values}{}", known(name));
        command.mut_arg(name, |arg| arg.help(help).long_help(long))
    })
}

/// Flags of `plait explain`: the flags of one run, and the schedulers to compare its decisions
/// with.
#[derive(Clone, Default, Debug)]
pub(crate) struct ExplainFlags {
    scenario: ScenarioFlags,
    others: Option<String>,
}

/// Name of the flag with the other schedulers.
const OTHERS: &str = "compare-with";

impl ExplainFlags {
    /// Returns the scenario of the run.
    pub(crate) fn draft(&self) -> Result<RawScenario, ScenarioError> {
        self.scenario.draft()
    }

    /// Returns true if no flag describes a run.
    pub(crate) fn is_empty(&self) -> bool {
        self.scenario.file.is_none()
            && self.scenario.links.is_none()
            && self.scenario.said.is_empty()
    }

    /// Returns true if a flag other than the scheduler describes the run.
    pub(crate) fn names_something(&self) -> bool {
        let of_run = |(name, _): &(&str, String)| *name != "schedulers";
        let files = [&self.scenario.file, &self.scenario.links];
        files.iter().any(|file| file.is_some()) || self.scenario.said.iter().any(of_run)
    }

    /// Returns the list of other schedulers.
    pub(crate) fn others(&self) -> Option<&str> {
        self.others.as_deref()
    }
}

impl clap::Args for ExplainFlags {
    fn augment_args(command: Command) -> Command {
        let command = for_one_run(ScenarioFlags::declare(command, true), &[]);
        let one = [
            (
                "schedulers",
                format!("The scheduler of the run [default: {}]", plait_sched::DEFAULT),
                "a scheduler such as ecf:beta=0.5 or blest+rp",
            ),
            ("cc", "Congestion controller [default: cubic]".into(), "a controller such as olia"),
            ("seed", "Seed of the run [default: 1]".into(), "a whole number"),
        ];
        let help = "Show the decisions of these schedulers in the same states";
        let long = format!("{help}\n{VALUES}all, or a list such as ecf,blest:mode=paper");
        let others = Arg::new(OTHERS).long(OTHERS).help_heading(heading("schedulers"));
        let others = others.value_name("VALUE").help(help).long_help(long);
        described(command, one).arg(others)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ExplainFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<ExplainFlags, clap::Error> {
        let scenario = ScenarioFlags::from_arg_matches(matches)?;
        Ok(ExplainFlags { scenario, others: matches.get_one(OTHERS).cloned() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = ExplainFlags::from_arg_matches(matches)?;
        Ok(())
    }
}
