//! Reads a scenario with one row, one seed and one point.

use crate::compare::{Cell, cells};
use crate::error::{Fault, Place, ScenarioError};
use crate::scenario::{RawScenario, Reader, Scenario, Speed};
use plait_app::Role;
use plait_base::Rate;

impl RawScenario {
    /// Reads the scenario of one run. The default scheduler is [`plait_sched::DEFAULT`]. If the scenario has several runs,
    /// it takes the first. `command` is the command that errors name, such as `plait run`. `read` returns the files that
    /// the scenario names.
    ///
    /// # Errors
    /// As [`RawScenario::build_with`]. Also if the scenario has several schedulers or controllers, or a
    /// setting that needs several runs.
    pub fn build_one(&self, command: &str, read: Reader<'_>) -> Result<Cell, ScenarioError> {
        let mut raw = self.clone();
        for (name, one) in [("schedulers", plait_sched::DEFAULT), ("runs", "1")] {
            if !raw.says(name) {
                raw.argument(name, one)?;
            }
        }
        let mut scenario = raw.build_with(read)?;
        // A file for `plait compare` may have several runs; this is the first.
        scenario.budget.runs = 1;
        check_one(&scenario, command)?;
        let cell = cells(&scenario).into_iter().next();
        cell.ok_or_else(|| refuse("path", "a scenario without a row"))
    }
}

impl Cell {
    /// Returns the command line that repeats this run with `command`, such as `plait run`.
    #[must_use]
    pub fn command_line(&self, command: &str) -> String {
        let line = self.scenario.command_line().replacen("plait compare", command, 1);
        line.replacen(" --schedulers ", " --scheduler ", 1).replacen(" --runs 1 ", " ", 1)
    }
}

fn refuse(setting: &str, problem: &str) -> ScenarioError {
    let place = Place::Argument(format!("--{setting}"));
    ScenarioError::new(&place, Fault::Conflict, "", problem)
}

fn check_one(scenario: &Scenario, command: &str) -> Result<(), ScenarioError> {
    let several = |setting: &str, given: usize| {
        refuse(setting, &format!("`{command}` takes one, {given} are given"))
    };
    if scenario.schedulers.len() > 1 && scenario.paths.len() > 1 {
        let names: Vec<String> = scenario.schedulers.iter().map(ToString::to_string).collect();
        let others = if command == "plait explain" {
            format!(
                "one, and others to compare its decisions with: --scheduler {} --compare-with {}",
                names[0],
                names[1..].join(",")
            )
        } else {
            format!("one of {}; `plait compare` runs several", names.join(" "))
        };
        return Err(several("scheduler", names.len()).allow(&others));
    }
    if scenario.ccs.len() > 1 {
        let names: Vec<String> = scenario.ccs.iter().map(ToString::to_string).collect();
        return Err(several("cc", names.len()).allow(&format!("one of {}", names.join(" "))));
    }
    for (setting, given) in
        [("vary", !scenario.vary.is_empty()), ("expect", !scenario.expect.is_empty())]
    {
        if given {
            let problem = format!("`{command}` is one run: --vary and --expect belong to");
            return Err(refuse(setting, &format!("{problem} `plait compare`")));
        }
    }
    if scenario.budget.precision.is_some() {
        let problem = format!("`{command}` is one run: ci= belongs to `plait compare`");
        return Err(refuse("until", &problem).allow("a time"));
    }
    Ok(())
}

impl Scenario {
    /// Refuses `fixed:cwnd=BDP` if a path has no rate. `place` is the position of the controllers.
    pub(crate) fn check_window(&self, place: &Place) -> Result<(), ScenarioError> {
        if !self.ccs.iter().any(plait_cc::Spec::needs_bdp) {
            return Ok(());
        }
        let upward = self.workload.sender() == Role::Client;
        let unlimited = |path: &&crate::scenario::Path| {
            let speed = if upward { &path.speed.up } else { &path.speed.down };
            self.ideal || speed.as_ref().map_or(Rate::INFINITE, Speed::mean) == Rate::INFINITE
        };
        let Some(path) = self.paths.iter().find(unlimited) else { return Ok(()) };
        let problem = format!("`fixed:cwnd=BDP` needs a rate, and path `{}` has none", path.name);
        Err(ScenarioError::new(place, Fault::Conflict, "", &problem)
            .allow("fixed:cwnd=20seg, fixed:cwnd=64KiB"))
    }
}
