//! `plait list`: the entries of the registries, and the page of each entry.

mod measured;
mod page;
#[cfg(test)]
mod tests;

use crate::names::{spec_problem, unknown};
use crate::render::{Align, Column, Emphasis, Table, csv, fold};
use measured::Measurement;
use plait_app::measure::Better;
use plait_params::{About, Listed, Param, SpecError};
use schemars::JsonSchema;
use serde::Serialize;

/// A list that `plait list` prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListKind {
    /// Packet schedulers and their decorators.
    Schedulers,
    /// Congestion controllers.
    Cc,
    /// Workloads.
    Workloads,
    /// Named paths.
    Paths,
    /// Measures.
    Measures,
}

impl ListKind {
    /// Every kind.
    pub const ALL: [ListKind; 5] = [
        ListKind::Schedulers,
        ListKind::Cc,
        ListKind::Workloads,
        ListKind::Paths,
        ListKind::Measures,
    ];

    /// Returns its name as an argument of `plait list`.
    #[must_use]
    pub const fn plural(self) -> &'static str {
        match self {
            ListKind::Schedulers => "schedulers",
            ListKind::Cc => "cc",
            ListKind::Workloads => "workloads",
            ListKind::Paths => "paths",
            ListKind::Measures => "measures",
        }
    }

    const fn singular(self) -> &'static str {
        match self {
            ListKind::Schedulers => "scheduler",
            ListKind::Cc => "congestion controller",
            ListKind::Workloads => "workload",
            ListKind::Paths => "path profile",
            ListKind::Measures => "measure",
        }
    }

    /// Returns a short description.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        match self {
            ListKind::Schedulers => "Packet schedulers and their decorators",
            ListKind::Cc => "Congestion controllers",
            ListKind::Workloads => "Workloads",
            ListKind::Paths => "Named paths",
            ListKind::Measures => "Measures",
        }
    }
}

/// Forms of at most this many characters are listed in full.
const LONG_FORM: usize = 40;

/// `plait list --json`.
#[derive(Serialize, JsonSchema, Debug)]
#[schemars(title = "Document")]
pub struct ListDocument {
    /// Always `plait.list/1`.
    schema: &'static str,
    /// Kind of the entries, or `lists`.
    kind: &'static str,
    /// The entries, in the order of the registry.
    entries: Vec<Item>,
}

/// One entry of any registry.
#[derive(Serialize, JsonSchema, Clone, Default, Debug)]
struct Item {
    /// Canonical name; the name of a decorator starts with `+`.
    name: String,
    /// Other names that are accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    aliases: Vec<String>,
    /// Description in one line.
    summary: String,
    /// The default scheduler, if the entry is part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    live_default: Option<&'static str>,
    /// The form of its arguments, if it has arguments.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    grammar: String,
    /// The whole page.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    page: String,
    /// Its measurements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    measured: Vec<Measurement>,
    /// Its parameters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    params: Vec<Setting>,
    /// Values of its saved state (`plait decide`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    state: Vec<StateValue>,
}

/// A parameter.
#[derive(Serialize, JsonSchema, Clone, Debug)]
struct Setting {
    /// Name in `name:key=value`.
    name: &'static str,
    /// The allowed values.
    allowed: String,
    /// The default value.
    default: String,
    /// Unit, if any.
    unit: &'static str,
    /// Its effect.
    help: &'static str,
    /// The standard or paper that defines it.
    clause: &'static str,
}

/// A value of a saved state.
#[derive(Serialize, JsonSchema, Clone, Debug)]
struct StateValue {
    /// Its name; `ID` stands for a subflow's id.
    name: &'static str,
    /// Its meaning.
    meaning: &'static str,
}

/// Returns the entry with this name, or the parts of a compound name such as `ecf:beta=0.5+copy`.
fn chosen(entries: &[Item], kind: ListKind, name: &str) -> Result<Vec<Item>, String> {
    let one = |name: &str| {
        let wanted = entries.iter().find(|item| item.answers_to(name)).cloned();
        let names = entries.iter().map(|item| item.name.as_str());
        wanted.ok_or_else(|| unknown(kind.singular(), name, names))
    };
    let bare = |piece: &'_ str| piece.split(':').next().unwrap_or_default().to_owned();
    match entries.iter().find(|item| item.answers_to(name)) {
        Some(item) => Ok(vec![item.clone()]),
        None => match plait_sched::Spec::parse(name) {
            Err(error @ SpecError::Class { .. }) if kind == ListKind::Schedulers => {
                Err(spec_problem(&error))
            }
            Ok(spec) if kind == ListKind::Schedulers && spec.class().is_some() => {
                spec.to_string().split('+').map(|piece| one(&bare(piece))).collect()
            }
            _ => name.split('+').map(|piece| one(&bare(piece))).collect(),
        },
    }
}

impl ListDocument {
    /// Creates the list of the kinds.
    #[must_use]
    pub fn of_kinds() -> ListDocument {
        let item = |kind: ListKind| {
            let summary = format!("{}: {}", entries(kind).len(), kind.summary());
            Item { name: kind.plural().to_owned(), summary, ..Item::default() }
        };
        let entries = ListKind::ALL.map(item).into();
        ListDocument { schema: "plait.list/1", kind: "lists", entries }
    }

    /// Creates the list of the entries of a kind. With a name, it has only that entry, or the parts
    /// of a compound name.
    ///
    /// # Errors
    /// If no entry has the name; the message suggests the nearest one.
    pub fn of(kind: ListKind, name: Option<&str>) -> Result<ListDocument, String> {
        let mut entries = entries(kind);
        if let Some(name) = name {
            entries = chosen(&entries, kind, name)?;
        }
        Ok(ListDocument { schema: "plait.list/1", kind: kind.plural(), entries })
    }

    /// Returns the entries as CSV.
    #[must_use]
    pub fn csv(&self) -> String {
        let row =
            |item: &Item| vec![item.name.clone(), item.aliases.join(" "), item.summary.clone()];
        let rows: Vec<_> = self.entries.iter().map(row).collect();
        csv(&["name", "aliases", "summary"], &rows)
    }

    /// Returns the table of the entries in Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        table(self).to_markdown()
    }

    /// Returns the table of the entries as text.
    #[must_use]
    pub fn text(&self, width: usize, colour: bool) -> String {
        table(self).to_text(width, colour)
    }

    /// Returns the page of each entry in Markdown.
    #[must_use]
    pub fn markdown_pages(&self) -> String {
        self.entries.iter().map(page::markdown).collect()
    }

    /// Returns the page of each entry as text.
    #[must_use]
    pub fn pages(&self, width: usize) -> String {
        fold(&self.entries.iter().map(page::text).collect::<String>(), width)
    }
}

fn table(document: &ListDocument) -> Table {
    let mut table = Table::new(vec![
        Column::new("name", Align::Left),
        Column::new("description", Align::Left).prose(),
        Column::new("also", Align::Left).dispensable(1),
    ]);
    for item in &document.entries {
        let name = if item.grammar.is_empty() { item.name.clone() } else { brief(&item.grammar) };
        let mark = item.live_default.map(|it| format!("; `{it}` is the default"));
        let summary = format!("{}{}", item.summary, mark.unwrap_or_default());
        let row = vec![name, summary, item.aliases.join(" ")];
        table.row(Emphasis::None, row);
    }
    table
}

/// Returns a long form without its options, which the entry's page has.
fn brief(form: &str) -> String {
    match form.split_once('[') {
        Some((must, _)) if form.chars().count() > LONG_FORM => format!("{must}[,...]"),
        _ => form.to_owned(),
    }
}

impl Item {
    fn answers_to(&self, name: &str) -> bool {
        let bare = self.name.strip_prefix('+').unwrap_or(&self.name);
        self.name == name || bare == name || self.aliases.iter().any(|alias| alias == name)
    }
}

fn entries(kind: ListKind) -> Vec<Item> {
    match kind {
        ListKind::Schedulers => schedulers(),
        ListKind::Cc => controllers(),
        ListKind::Workloads => workloads(),
        ListKind::Paths => paths(),
        ListKind::Measures => measures(),
    }
}

/// Creates the item of an entry in a registry of schedulers, decorators or controllers.
fn item(about: About) -> Item {
    let setting = |param: &Param| Setting {
        name: param.name,
        allowed: param.kind.to_string(),
        default: param.kind.default_value().to_string(),
        unit: param.unit,
        help: param.help,
        clause: param.clause,
    };
    Item {
        name: about.name.to_owned(),
        aliases: about.aliases.iter().map(ToString::to_string).collect(),
        summary: about.idea.to_owned(),
        page: about.page.to_owned(),
        params: about.params.iter().map(setting).collect(),
        state: about.state.iter().map(|(name, meaning)| StateValue { name, meaning }).collect(),
        ..Item::default()
    }
}

fn schedulers() -> Vec<Item> {
    let item = |mark: &str, about: About| {
        let name = format!("{mark}{}", about.name);
        let measured = measured::of(&name, measured::STORED);
        Item { name, live_default: live_default(about.name), measured, ..item(about) }
    };
    let bases = plait_sched::schedulers().iter().map(|entry| item("", entry.about()));
    let decorators = plait_sched::DECORATORS.iter().map(|entry| item("+", entry.about()));
    bases.chain(decorators).collect()
}

/// Returns the default scheduler if the scheduler or decorator `name` is part of it.
fn live_default(name: &str) -> Option<&'static str> {
    let default = plait_sched::DEFAULT;
    let mut parts = default.split('+').filter_map(|part| part.split(':').next());
    parts.any(|part| part == name).then_some(default)
}

fn controllers() -> Vec<Item> {
    let item = |entry: &plait_cc::Entry| Item {
        page: match entry.clause {
            "none" => entry.about.page.to_owned(),
            clause => format!("{}\nFollows  {clause}", entry.about.page.trim_end()),
        },
        ..item(entry.about())
    };
    plait_cc::CONTROLLERS.iter().map(item).collect()
}

fn workloads() -> Vec<Item> {
    let item = |entry: &plait_app::workload::Entry| Item {
        name: entry.name.to_owned(),
        summary: entry.summary.to_owned(),
        grammar: entry.grammar.to_owned(),
        page: format!("{}\n\nExamples\n  {}", entry.page, entry.examples.join("\n  ")),
        ..Item::default()
    };
    plait_app::WORKLOADS.iter().map(item).collect()
}

fn paths() -> Vec<Item> {
    let item = |profile: &plait_lab::scenario::Profile| Item {
        name: profile.name.to_owned(),
        summary: profile.summary.to_owned(),
        page: format!(
            "Use it as it is, or change it:\n  --path {name}\n  --path mine:profile={name},loss=2%",
            name = profile.name
        ),
        ..Item::default()
    };
    plait_lab::scenario::PROFILES.iter().map(item).collect()
}

fn measures() -> Vec<Item> {
    let item = |entry: &plait_app::measure::Entry| Item {
        name: entry.name.to_owned(),
        summary: entry.definition.to_owned(),
        page: format!(
            "Unit: {}; {}. Workloads: {}.",
            if entry.unit.is_empty() { "none" } else { entry.unit },
            match entry.better {
                Better::Higher => "higher is better",
                Better::Lower => "lower is better",
                Better::Neither => "neither higher nor lower is better",
            },
            entry.workloads.join(", ")
        ),
        ..Item::default()
    };
    plait_app::MEASURES.iter().map(item).collect()
}
