//! The type of a setting, and what its entries share.

use crate::scenario::Scenario;
use crate::scenario::kind::{Field, SettingKind};

/// A setting of a scenario: a flag without its dashes, and a key of a scenario file.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Name. A file may also write `_` for `-`.
    pub name: &'static str,
    /// Its group in the help.
    pub group: &'static str,
    /// Default value; empty if there is none.
    pub default: &'static str,
    /// Its effect, in one line.
    pub help: &'static str,
    /// Its source: a standard, paper or kernel file; empty for the laboratory's own settings.
    pub clause: &'static str,
    /// Whether a sweep may vary it. Settings of the comparison as a whole cannot vary.
    pub varies: bool,
    /// Its type with unit and range, and its accessors.
    pub(in crate::scenario) field: Field,
}

pub(super) const SCENARIO: &str = "Scenario";
pub(super) const MPTCP: &str = "Multipath TCP";
pub(super) const TCP: &str = "TCP";
pub(super) const HOSTS: &str = "Hosts and model";
pub(super) const RUNS: &str = "Runs";

/// The values that an entry leaves out: no default, no clause, and it varies.
pub(super) const BLANK: Setting = Setting {
    name: "",
    group: "",
    default: "",
    help: "",
    clause: "",
    varies: true,
    field: Field { kind: SettingKind::Flag, get: |_| Vec::new(), set: |_, _, _| Ok(()) },
};

impl Setting {
    /// Returns its allowed values: type, unit and range.
    #[must_use]
    pub fn values(&self) -> String {
        self.field.kind.values()
    }

    /// Returns the JSON Schema of its value in an experiment, which may contain `{AXIS}`; `None` if
    /// any text is allowed.
    pub(crate) fn schema(&self) -> Option<serde_json::Value> {
        self.field.kind.schema()
    }

    /// Returns example texts.
    #[must_use]
    pub fn examples(&self) -> Vec<String> {
        self.field.kind.examples()
    }

    /// Returns true if it is a flag without a value. In a file it is `on` or `off`.
    #[must_use]
    pub const fn is_flag(&self) -> bool {
        matches!(self.field.kind, SettingKind::Flag)
    }

    /// Returns true if it may be given more than once.
    #[must_use]
    pub const fn repeats(&self) -> bool {
        matches!(self.field.kind, SettingKind::List { .. })
    }

    /// Returns the texts that give a scenario this setting. For a default value there are none,
    /// except for the number of runs and the seed.
    pub(in crate::scenario) fn texts(&self, scenario: &Scenario) -> Vec<String> {
        let mut texts = (self.field.get)(scenario);
        if !["runs", "seed"].contains(&self.name) {
            texts.retain(|text| text != self.default);
        }
        texts
    }
}
