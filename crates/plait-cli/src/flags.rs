//! The flags of a scenario. They are read from the list of settings, so that a flag, a key of a
//! scenario file and their help are one thing; what the texts mean is decided there too.

use clap::builder::{StringValueParser, TypedValueParser};
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
}

/// Reads a bare whole number from `min` to `max`, and refuses another text as a scenario does.
pub(crate) fn whole(min: u64, max: u64) -> impl TypedValueParser<Value = u64> {
    StringValueParser::new().try_map(move |text| plait_lab::scenario::whole(&text, min, max))
}

/// A line with the names that the registry has for a setting, if there is one.
fn known(setting: &str) -> String {
    let names: Vec<String> = match setting {
        "schedulers" => {
            let bases = plait_sched::SCHEDULERS.iter().map(|entry| entry.name.to_owned());
            let around = plait_sched::DECORATORS.iter().map(|entry| format!("+{}", entry.name));
            bases.chain(around).collect()
        }
        "cc" => plait_cc::CONTROLLERS.iter().map(|entry| entry.name.to_owned()).collect(),
        _ => return String::new(),
    };
    format!("\n{} (`plait list {setting}`)", names.join(", "))
}

fn flag(name: &'static str) -> Arg {
    Arg::new(name).long(name).help_heading("Scenario").action(ArgAction::Append)
}

impl ScenarioFlags {
    /// Declares the flags. With `alias` the scheduler's may be written in the singular.
    fn declare(command: Command, alias: bool) -> Command {
        let path = flag("path").value_name("NAME:KEY=VALUE,...").help(
            "A path, or the name of a profile (`plait list paths`); once per path, the first is the\n\
             primary. Down is server to client. Keys:\n\
             profile=NAME       start from a profile\n\
             rtt=TIME           propagation, half each way; or owd_down=TIME and owd_up=TIME;\n\
             \u{20}                  steps 25ms@0s/80ms@10s\n\
             rate=RATE          or rate_down and rate_up; `inf`, or steps 10mbit@0s/4mbit@20s;\n\
             \u{20}                  1mbit/4mbit~40s draws one anew every 40 s on average\n\
             trace=FILE         Mahimahi or CSV instead of a rate; trace_up=FILE;\n\
             \u{20}                  offset=TIME or random\n\
             queue=LIMIT        50ms, 64KiB, 100pkt or inf [default: 100 ms at the rate]\n\
             aqm=codel          [default: droptail]\n\
             loss=PERCENT       or ge:p=1%,r=30%,bad=50% for bursts; loss_up\n\
             jitter=TIME        keeps order; reorder=PERCENT:TIME, duplicate=PERCENT,\n\
             \u{20}                  corrupt=PERCENT (a host drops what is damaged)\n\
             edit=PERCENT       a middlebox changes a byte and repairs the TCP checksum\n\
             strip=WHAT[@TIME]  a middlebox takes MPTCP options off: syn, synack, ack (the third),\n\
             \u{20}                  first (data), data or all; @TIME from then on, or @FROM..TO\n\
             mtu=BYTES          longest packet that gets through, either way; longer ones vanish;\n\
             \u{20}                  steps 1500@0s/1280@2s\n\
             down=FROM..TO      an outage, repeatable; `down=1s..` for ever\n\
             gone=FROM..TO      the client\u{2019}s address goes away and comes back, and its host\n\
             \u{20}                  knows (REMOVE_ADDR), repeatable\n\
             nic=RATE           the sending host\u{2019}s own link [default: 1gbit]\n\
             via=LINK           a link that paths share (--link)\n\
             backup             used when no other path works",
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
            let long = format!("{help}\n{}{}", setting.values, known(setting.name));
            let mut arg = flag(setting.name).help(help);
            arg = if setting.switch {
                arg.action(ArgAction::SetTrue)
            } else {
                arg.value_name("VALUE").long_help(long).allow_hyphen_values(true)
            };
            // `plait run` takes one.
            if alias && setting.name == "schedulers" {
                arg = arg.visible_alias("scheduler");
            }
            command = command.arg(arg);
        }
        // Known words of a later version are refused by name, not as strangers.
        LATER_SETTINGS.iter().fold(command, |command, name| command.arg(flag(name).hide(true)))
    }
}

impl clap::Args for ScenarioFlags {
    fn augment_args(command: Command) -> Command {
        ScenarioFlags::declare(command, true)
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

/// The flags of `plait run`: a scenario of one row and one run. Its help has other defaults than that
/// of `plait compare`, and is silent about what concerns many runs.
#[derive(Clone, Default, Debug)]
pub(crate) struct RunFlags(pub(crate) ScenarioFlags);

impl clap::Args for RunFlags {
    fn augment_args(command: Command) -> Command {
        let command = for_one_run(ScenarioFlags::augment_args(command), &["jobs"]);
        let one = [
            (
                "schedulers",
                "The scheduler [default: minrtt]",
                "one such as ecf:beta=0.5 or blest+rp",
            ),
            ("cc", "Congestion controller [default: cubic]", "one such as olia"),
            ("seed", "Seed of the run [default: 1]", "a whole number"),
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

/// Hides what concerns many runs, and `more`.
fn for_one_run(command: Command, more: &[&'static str]) -> Command {
    let hidden = ["runs", "vary", "expect"];
    hidden
        .iter()
        .chain(more)
        .fold(command, |command, name| command.mut_arg(name, |arg| arg.hide(true)))
}

/// Gives flags another help: name, what it is, what it takes.
fn described(command: Command, flags: [(&str, &'static str, &'static str); 3]) -> Command {
    flags.into_iter().fold(command, |command, (name, help, values)| {
        let long = format!("{help}\n{values}{}", known(name));
        command.mut_arg(name, |arg| arg.help(help).long_help(long))
    })
}

/// The flags of `plait explain`: those of one run, whose scheduler is `--scheduler`, and with
/// `--schedulers` others to ask.
#[derive(Clone, Default, Debug)]
pub(crate) struct ExplainFlags {
    scenario: ScenarioFlags,
    scheduler: Option<String>,
    asked: Option<String>,
}

impl ExplainFlags {
    /// The run, but for its scheduler.
    pub(crate) fn draft(&self) -> Result<Draft, ScenarioError> {
        self.scenario.draft()
    }

    /// Whether nothing is said of a run.
    pub(crate) fn is_empty(&self) -> bool {
        !self.names_something() && self.scheduler.is_none()
    }

    /// Whether anything is said of a run beside its scheduler.
    pub(crate) fn names_something(&self) -> bool {
        self.scenario.file.is_some() || !self.scenario.said.is_empty()
    }

    /// The scheduler of the run.
    pub(crate) fn scheduler(&self) -> Option<&str> {
        self.scheduler.as_deref()
    }

    /// The list of schedulers to ask.
    pub(crate) fn asked(&self) -> Option<&str> {
        self.asked.as_deref()
    }
}

impl clap::Args for ExplainFlags {
    fn augment_args(command: Command) -> Command {
        let command = for_one_run(ScenarioFlags::declare(command, false), &[]);
        let others = [
            (
                "schedulers",
                "Ask these too what they would have decided in the same states",
                "all, or a list such as ecf,blest:mode=paper",
            ),
            ("cc", "Congestion controller [default: cubic]", "one such as olia"),
            ("seed", "Seed of the run [default: 1]", "a whole number"),
        ];
        let help = "The scheduler of the run [default: minrtt]";
        let long = format!("{help}\none such as ecf:beta=0.5 or blest+rp");
        let own = Arg::new("scheduler").long("scheduler").help_heading("Scenario");
        let own = own.value_name("VALUE").help(help).long_help(long);
        described(command, others).arg(own)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ExplainFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<ExplainFlags, clap::Error> {
        let mut scenario = ScenarioFlags::from_arg_matches(matches)?;
        let asked: Vec<String> = scenario
            .said
            .extract_if(.., |(name, _)| *name == "schedulers")
            .map(|it| it.1)
            .collect();
        let asked = (!asked.is_empty()).then(|| asked.join(","));
        Ok(ExplainFlags { scenario, scheduler: matches.get_one("scheduler").cloned(), asked })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = ExplainFlags::from_arg_matches(matches)?;
        Ok(())
    }
}
