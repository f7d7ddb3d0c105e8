//! The parts of a comparison's text, for pages that draw their own table.

use super::heading::title;
use super::tables::{legend, table};
use super::verdict::{limits, verdict};
use crate::render::Emphasis;
use plait_lab::ComparisonDocument;
use serde::Serialize;

/// A heading of the table.
#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
pub struct Heading {
    /// Its text.
    pub title: String,
    /// True for a column of numbers.
    pub number: bool,
}

/// A row of the table.
#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
pub struct PartsRow {
    /// `best`, `bad`, `reference` or empty.
    pub emphasis: &'static str,
    /// One text for each heading.
    pub cells: Vec<String>,
}

/// A comparison in parts. [`text`](super::text) has the same parts as one text.
#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
pub struct Parts {
    /// Workload, measure, number of runs and seed.
    pub title: String,
    /// Headings from left to right.
    pub headings: Vec<Heading>,
    /// Rows, best first, then plain TCP on each path.
    pub rows: Vec<PartsRow>,
    /// What the numbers say.
    pub verdict: String,
    /// A line for each buffer that holds rows back.
    pub limits: Vec<String>,
    /// What the columns mean, where a heading does not say it.
    pub legend: String,
}

impl Parts {
    /// Returns the parts of a comparison; `None` if a setting was varied.
    ///
    /// ```
    /// use plait_lab::{Control, RawScenario, Simulator, compare, scenario::no_files};
    /// use plait_report::render::comparison::Parts;
    ///
    /// let mut draft = RawScenario::new();
    /// for (name, text) in [
    ///     ("path", "wifi-home"),
    ///     ("path", "lte-att"),
    ///     ("workload", "download:64kB"),
    ///     ("schedulers", "minrtt,ecf"),
    ///     ("runs", "2"),
    /// ] {
    ///     draft.argument(name, text)?;
    /// }
    /// let cancelled = std::sync::atomic::AtomicBool::new(false);
    /// let control = Control::unwatched(&cancelled);
    /// let document = compare(&draft.build()?, &Simulator, &control, &no_files)?;
    /// let parts = Parts::of(&document).expect("one point");
    /// assert_eq!(parts.rows.len(), 4);
    /// assert!(parts.rows.iter().all(|row| row.cells.len() == parts.headings.len()));
    /// assert_eq!(parts.headings[0].title, "scheduler");
    /// # Ok::<(), plait_lab::ScenarioError>(())
    /// ```
    #[must_use]
    pub fn of(document: &ComparisonDocument) -> Option<Parts> {
        let report = document.single()?;
        let table = table(report);
        let heading = |(title, number): (&str, bool)| Heading { title: title.to_owned(), number };
        let rows = table.cells().map(|(emphasis, cells)| PartsRow {
            emphasis: match emphasis {
                Emphasis::None => "",
                Emphasis::Best => "best",
                Emphasis::Bad => "bad",
                Emphasis::Reference => "reference",
            },
            cells: cells.into_iter().map(str::to_owned).collect(),
        });
        Some(Parts {
            title: title(report),
            headings: table.headings().into_iter().map(heading).collect(),
            rows: rows.collect(),
            verdict: verdict(report),
            limits: limits(report),
            legend: legend(report, &[]),
        })
    }
}
