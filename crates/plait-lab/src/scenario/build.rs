//! Builds a scenario from a raw scenario: reads every text, and checks that the settings fit
//! together.

use super::Scenario;
use super::path::Path;
use super::path_build;
use super::path_parse::{Reader, no_files};
use super::profile::{PROFILES, Profile};
use super::raw_scenario::{RawPath, RawScenario};
use super::settings::{SETTINGS, Setting};
use crate::error::{Fault, Place, ScenarioError};
use plait_app::WORKLOADS;
use plait_base::SubflowId;

type Result<T> = core::result::Result<T, ScenarioError>;

impl RawScenario {
    /// Builds a scenario that names no files.
    ///
    /// If a text is invalid: the error is about the first such text.
    /// Returns the first text that is invalid.
    pub fn build(&self) -> Result<Scenario> {
        self.build_with(&no_files)
    }

    /// Builds the scenario. `read` gives the files that it names: traces, pages, descriptions of
    /// videos.
    ///
    /// # Errors
    /// As [`RawScenario::build`].
    pub fn build_with(&self, read: Reader<'_>) -> Result<Scenario> {
        let scenario = self.build_point(read)?;
        self.check_links(&scenario)?;
        let place = self.value("cc").map_or_else(|| self.nowhere("cc"), |given| given.place);
        scenario.check_window(&place)?;
        Ok(scenario)
    }

    /// Refuses a shared link that no path uses: it is probably a mistake. If a sweep varies `via`,
    /// paths may use the links in turn.
    fn check_links(&self, scenario: &Scenario) -> Result<()> {
        if self.values("vary").iter().any(|given| given.text.contains(".via=")) {
            return Ok(());
        }
        let used = |link: &Path| {
            scenario.paths.iter().any(|path| path.via.as_deref() == Some(link.name.as_str()))
        };
        let links = self.values("link").iter().zip(&scenario.shared);
        let Some((given, link)) = links.into_iter().find(|(_, link)| !used(link)) else {
            return Ok(());
        };
        let error = given.error(Fault::Conflict, "no path goes through it");
        Err(error.allow(&format!("via={} of one or more paths", link.name)))
    }

    /// Reads a point of a sweep. A point may leave a shared link unused.
    pub(crate) fn build_point(&self, read: Reader<'_>) -> Result<Scenario> {
        match self.with_kernel()? {
            Some(raw) => raw.build_plain(self, read),
            None => self.build_plain(self, read),
        }
    }

    /// Reads a raw scenario whose kernel is not a profile. `written` is the scenario before a
    /// profile was applied: sweeps vary that one.
    fn build_plain(&self, written: &RawScenario, read: Reader<'_>) -> Result<Scenario> {
        let mut scenario = Scenario::blank();
        // Links come before the paths that name them. Settings that refer to paths come after them.
        scenario.ideal = self.switch("ideal")?;
        scenario.shared = self.read_links(scenario.ideal, read)?;
        scenario.paths = self.read_paths(&scenario.shared, scenario.ideal, read)?;
        if self.value("workload").is_none() {
            let grammars: Vec<&str> = WORKLOADS.iter().map(|entry| entry.grammar).collect();
            let problem = "no workload is given";
            return Err(ScenarioError::new(&self.nowhere("workload"), Fault::Missing, "", problem)
                .allow(&grammars.join(", ")));
        }
        SETTINGS.iter().try_for_each(|setting| self.read(setting, &mut scenario, read))?;
        self.check_goal(&scenario)?;
        scenario.vary = written.varied(&scenario, read)?;
        Ok(scenario)
    }

    /// Reads the value of a setting, or its default.
    fn read(&self, setting: &Setting, scenario: &mut Scenario, read: Reader<'_>) -> Result<()> {
        let mut set = |given| (setting.field.set)(scenario, given, read);
        match self.values(setting.name) {
            [] => self.value(setting.name).iter().try_for_each(&mut set),
            given => given.iter().try_for_each(&mut set),
        }
    }

    fn switch(&self, name: &str) -> Result<bool> {
        self.value(name).map_or(Ok(false), |given| given.switch())
    }

    /// Returns the place of a missing field: the start of the file, or the flag.
    fn nowhere(&self, field: &str) -> Place {
        match &self.file {
            Some(file) => {
                Place::File { file: file.clone(), line: 1, column: 1, field: field.to_owned() }
            }
            None => Place::Argument(format!("--{field}")),
        }
    }

    /// Returns the error for a scenario without paths. If a setting in the file is invalid, returns
    /// that error, because it has a line and column.
    fn without_paths(&self, read: Reader<'_>) -> ScenarioError {
        let names: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
        let names = names.join(", ");
        let place = self.nowhere("path");
        let allowed = match &self.file {
            Some(_) => format!(
                "[[path]] tables with name = \"wifi\", rtt = \"25ms\" and rate = \"25mbit\", or --path \
                 NAME:rtt=25ms,rate=25mbit, or a profile: {names}"
            ),
            None => format!("--path NAME:rtt=25ms,rate=25mbit, or a profile: {names}"),
        };
        let missing =
            ScenarioError::new(&place, Fault::Missing, "", "no path is given").allow(&allowed);
        let without_path = ["workload", "schedulers", "cc", "runs", "seed", "until", "jobs"];
        let wrong = without_path.into_iter().filter_map(|name| {
            self.read(Setting::named(name)?, &mut Scenario::blank(), read).err()
        });
        let at = |error: &ScenarioError| match &error.place {
            Place::File { line, column, .. } => Some((*line, *column)),
            Place::Argument(_) => None,
        };
        let stands = |error: &ScenarioError| error.fault != Fault::Missing && at(error).is_some();
        wrong.filter(stands).min_by_key(at).unwrap_or(missing)
    }

    fn read_paths(&self, shared: &[Path], ideal: bool, read: Reader<'_>) -> Result<Vec<Path>> {
        let Some(first) = self.paths.first() else {
            return Err(self.without_paths(read));
        };
        if self.paths.len() > SubflowId::MAX {
            let problem = format!("{} paths are given", self.paths.len());
            return Err(ScenarioError::new(&first.name.place, Fault::Invalid, "", &problem)
                .allow(&most_paths()));
        }
        let mut paths: Vec<Path> = Vec::new();
        for raw in &self.paths {
            let bare = matches!(raw.fields.as_slice(), [(key, _)] if key == "profile");
            if bare && raw.fields[0].1 == raw.name && Profile::named(&raw.name.text).is_none() {
                let names = PROFILES.iter().map(|profile| profile.name);
                let mut error = raw.name.unknown("profile", names);
                error.allowed = format!("NAME:key=value,... or a profile: {}", error.allowed);
                return Err(error);
            }
            if paths.iter().any(|path| path.name == raw.name.text) {
                let error = raw.name.error(Fault::Conflict, "two paths have this name");
                return Err(error.allow("a name of its own for each path"));
            }
            if shared.iter().any(|link| link.name == raw.name.text) {
                let error = raw.name.error(Fault::Conflict, "a link has this name");
                return Err(error.allow("a name of its own for each path and link"));
            }
            let path = path_build::path(raw, ideal, read)?;
            if let (Some(given), Some(via)) = (raw.field("via"), &path.via)
                && !shared.iter().any(|link| link.name == *via)
            {
                let names = shared.iter().map(|link| link.name.as_str());
                let error = given.unknown("link", names);
                let missing = shared.is_empty();
                return Err(if missing { error.allow("--link NAME:rate=20mbit") } else { error });
            }
            paths.push(path);
        }
        Ok(paths)
    }

    fn read_links(&self, ideal: bool, read: Reader<'_>) -> Result<Vec<Path>> {
        let mut links: Vec<Path> = Vec::new();
        for given in self.values("link") {
            let raw = RawPath::parse(&given.text, &given.place);
            if links.iter().any(|link| link.name == raw.name.text) {
                let error = raw.name.error(Fault::Conflict, "two links have this name");
                return Err(error.allow("a name of its own for each link"));
            }
            links.push(path_build::link(&raw, ideal, read)?);
        }
        Ok(links)
    }
}

/// Returns the limit on the number of paths, for error texts.
pub(super) fn most_paths() -> String {
    format!("at most {} paths", SubflowId::MAX)
}
