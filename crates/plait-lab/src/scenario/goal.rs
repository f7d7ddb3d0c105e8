//! The goal of a scenario, and schedulers that have one of their own.

use super::Scenario;
use super::raw_scenario::RawScenario;
use crate::error::{Fault, ScenarioError};

/// The decorator for paths with a cost, and its parameter.
const PRICE: &str = "price";
const GOAL: &str = "goal";

/// Returns the goal of a scheduler that names `+price`, also if it is the default of the decorator.
#[must_use]
pub fn goal_of(scheduler: &plait_sched::Spec) -> Option<&'static str> {
    let price = scheduler.decorators().iter().find(|it| it.entry().about.name == PRICE)?;
    let goal = price.entry().about.params.iter().find(|it| it.name == GOAL)?;
    Some(price.params().word(goal))
}

impl RawScenario {
    /// Refuses a goal beside a scheduler with `+price`: the scheduler keeps its own goal, so the given one
    /// would have no effect on it.
    pub(super) fn check_goal(&self, scenario: &Scenario) -> Result<(), ScenarioError> {
        let Some(given) = self.values(GOAL).first() else { return Ok(()) };
        let own = |it: &plait_sched::Spec| Some((it.to_string(), goal_of(it)?));
        let Some((scheduler, goal)) = scenario.schedulers.iter().find_map(own) else {
            return Ok(());
        };
        let problem = format!("`{scheduler}` has the goal {goal} by its `+price`");
        let remedy = format!(
            "a goal, or schedulers with `+price`; leave out one of them, or write the goal there: \
             +price:goal={}",
            scenario.transport.goal.as_str()
        );
        Err(given.error(Fault::Conflict, &problem).allow(&remedy))
    }
}
