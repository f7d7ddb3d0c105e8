//! The flags of a scenario. They are read from the list of settings, so that a flag, a key of a
//! scenario file and their help are one thing; what the texts mean is decided there too.

use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches};
use plait_lab::scenario::{LATER_SETTINGS, SETTINGS};
use plait_lab::{Draft, ScenarioError};

/// A scenario as flags.
#[derive(Clone, Default, Debug)]
pub(crate) struct ScenarioFlags {
    /// The file that it starts from.
    file: Option<String>,
    /// Name and text of each flag, paths first.
    said: Vec<(&'static str, String)>,
}

impl ScenarioFlags {
    /// What was said, not yet understood.
    pub(crate) fn draft(&self) -> Result<Draft, ScenarioError> {
        let mut draft = match &self.file {
            Some(file) => Draft::from_file(file)?,
            None => Draft::new(),
        };
        for (name, text) in &self.said {
            draft.argument(name, text)?;
        }
        Ok(draft)
    }

    /// Whether a flag was given, on the command line or in no file.
    pub(crate) fn says(&self, name: &str) -> bool {
        self.file.is_some() || self.said.iter().any(|(said, _)| *said == name)
    }
}

fn flag(name: &'static str) -> Arg {
    Arg::new(name).long(name).help_heading("Scenario").action(ArgAction::Append)
}

impl clap::Args for ScenarioFlags {
    fn augment_args(command: Command) -> Command {
        let path = flag("path").value_name("NAME:KEY=VALUE,...").help(
            "A path, or the name of a profile; once per path, the first is the primary\n\
             keys: rtt, rate, queue, loss, trace, ... (`plait list paths`)",
        );
        let file = Arg::new("scenario")
            .long("scenario")
            .value_name("FILE")
            .help_heading("Scenario")
            .help("Start from a scenario file (TOML); flags go before what it says");
        let mut command = command.arg(path).arg(file);
        for setting in SETTINGS {
            let default = match setting.default {
                "" => String::new(),
                _ if setting.switch => String::new(),
                default => format!(" [default: {default}]"),
            };
            let mut help = setting.help.chars();
            let first = help.next().map(char::to_uppercase).into_iter().flatten();
            let help: String = first.chain(help).collect::<String>() + &default;
            let long = format!("{help}\n{}", setting.values);
            let mut arg = flag(setting.name).help(help);
            arg = if setting.switch {
                arg.action(ArgAction::SetTrue)
            } else {
                arg.value_name("VALUE").long_help(long).allow_hyphen_values(true)
            };
            // `plait run` takes one.
            if setting.name == "schedulers" {
                arg = arg.visible_alias("scheduler");
            }
            command = command.arg(arg);
        }
        // Known words of a later version are refused by name, not as strangers.
        LATER_SETTINGS.iter().fold(command, |command, name| command.arg(flag(name).hide(true)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ScenarioFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<ScenarioFlags, clap::Error> {
        let mut flags = ScenarioFlags {
            file: matches.get_one::<String>("scenario").cloned(),
            said: Vec::new(),
        };
        let switches = SETTINGS.iter().filter(|setting| setting.switch).map(|setting| setting.name);
        for name in switches.filter(|name| matches.get_flag(name)) {
            flags.said.push((name, "on".to_owned()));
        }
        let texts = SETTINGS.iter().filter(|setting| !setting.switch).map(|setting| setting.name);
        for name in ["path"].into_iter().chain(texts).chain(LATER_SETTINGS.iter().copied()) {
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
