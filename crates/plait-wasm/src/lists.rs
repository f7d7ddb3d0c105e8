//! The names that the page offers.

use plait_app::WORKLOADS;
use plait_lab::scenario::PROFILES;
use serde::Serialize;

/// A name and one line about it.
#[derive(Serialize, Debug)]
pub struct Named {
    /// The name.
    pub name: &'static str,
    /// The line.
    pub idea: &'static str,
}

/// A workload.
#[derive(Serialize, Debug)]
pub struct Offered {
    /// The name.
    pub name: &'static str,
    /// Grammar of its text.
    pub grammar: &'static str,
    /// One line about it.
    pub idea: &'static str,
    /// A valid text.
    pub example: &'static str,
}

/// All lists.
#[derive(Serialize, Debug)]
pub struct Lists {
    /// The version and commit of this build.
    pub version: &'static str,
    /// Schedulers.
    pub schedulers: Vec<Named>,
    /// Congestion controllers.
    pub cc: Vec<Named>,
    /// Workloads.
    pub workloads: Vec<Offered>,
    /// Profiles of paths.
    pub profiles: Vec<&'static str>,
}

impl Lists {
    /// Returns the lists of this build.
    #[must_use]
    pub fn new() -> Lists {
        let schedulers = plait_sched::schedulers();
        let schedulers = schedulers.iter().map(|it| (it.about.name, it.about.idea));
        let controllers = plait_cc::CONTROLLERS.iter().map(|it| (it.about.name, it.about.idea));
        let workloads = WORKLOADS.iter().map(|it| Offered {
            name: it.name,
            grammar: it.grammar,
            idea: it.summary,
            example: it.examples.first().copied().unwrap_or(it.name),
        });
        let named = |(name, idea)| Named { name, idea };
        Lists {
            version: plait_report::PROGRAM,
            schedulers: schedulers.map(named).collect(),
            cc: controllers.map(named).collect(),
            workloads: workloads.collect(),
            profiles: PROFILES.iter().map(|profile| profile.name).collect(),
        }
    }
}

impl Default for Lists {
    fn default() -> Lists {
        Lists::new()
    }
}
