//! Experiments: a figure or table of a paper as one file. The file has a sweep, and the statements of the
//! paper as claims about the swept cells.
//!
//! [`Experiment::from_toml`] reads a file in the form that `docs/experiments.md` describes. [`Plan`] creates
//! its cells, [`run`] runs the cells that the [`Store`] lacks, and [`judge`] checks the claims.

mod again;
mod array;
mod axis;
mod check;
mod design;
mod embedded;
mod eval;
mod evidence;
mod extra;
mod file;
mod finding;
mod function;
mod given;
mod judgement;
mod kernels;
mod misses;
mod names;
mod open;
mod plan;
mod results;
mod run;
mod schema;
mod settle;
mod statement;
mod store;
mod verdict;
mod wanted;

pub use again::{Again, again};
pub use axis::{Axis, Point};
pub use embedded::{CHANGED, EMBEDDED, Proof, Proven, ProvenClaim, Unrun, UnrunClaim, experiments};
pub use extra::unit_of_measure;
pub use finding::RelationResult;
pub use judgement::CONFIDENCE;
pub use kernels::Differs;
pub use misses::{Miss, Misses};
pub use open::{Ablated, Alternative, Open, Parameter, ablate};
pub use plan::{Plan, Planned};
pub use results::{Results, RunRecord};
pub use run::{Progress, run};
pub use schema::schema as file_schema;
pub use settle::{Looks, Settled, Unsettled, settle};
pub use statement::Statement;
pub use store::{SOURCES, Store, file_name};
pub use verdict::{ClaimVerdict, Judged, figure, judge};

use crate::error::{Fault, Place, ScenarioError};
use crate::scenario::{KernelProfile, PlacedText, RawScenario};
use names::Names;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A figure or table of a paper.
#[derive(Clone, PartialEq, Debug)]
pub struct Experiment {
    /// Name of the experiment, which is the stem of its file name: `ton-fig8`.
    pub id: String,
    /// One line of text that describes the figure or table.
    pub title: String,
    /// Results of the paper.
    pub reported: String,
    /// Decisions that the paper leaves open, and other remarks for the reader.
    pub notes: Vec<String>,
    /// The axes of the sweep.
    pub axes: Vec<Axis>,
    /// The rows: schedulers, single paths, variants.
    pub rows: Vec<Row>,
    /// The claims of the paper.
    pub claims: Vec<Claim>,
    /// The pictures of the results.
    pub pictures: Vec<Picture>,
    /// The changes that a quick run makes.
    pub quick: Quick,
    /// The kernel that the authors used; `None` if the paper names none.
    pub kernel: Option<KernelProfile>,
    /// Settings that differ from those of the kernel.
    pub differs: Vec<Differs>,
    pub(crate) raw: RawScenario,
    paths: Vec<String>,
}

/// A row of an experiment.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// The name that claims and pictures use.
    pub name: String,
    /// The scheduler, or the single path.
    pub subject: RowSubject,
    /// Settings that differ from those of the experiment.
    pub(crate) settings: Vec<(String, PlacedText)>,
    /// The points at which the row is run, by axis. The row is run at every point of an axis that is absent.
    pub only: BTreeMap<usize, Vec<usize>>,
    pub(crate) given: PlacedText,
}

/// How a row chooses paths.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RowSubject {
    /// A scheduler, as on the command line.
    Scheduler(String),
    /// Plain TCP on the path of this name.
    Single(String),
}

/// The weight of a claim.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClaimKind {
    /// A value that follows from first principles.
    Exact,
    /// The mechanism determines the result, so a faithful run must show it.
    Hard,
    /// The result depends on chance conditions of the paper. A failure is reported and does not change the exit
    /// code.
    Soft,
}

impl ClaimKind {
    /// Returns the name of the kind, as in a file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ClaimKind::Exact => "exact",
            ClaimKind::Hard => "hard",
            ClaimKind::Soft => "soft",
        }
    }
}

/// A claim of a paper.
#[derive(Clone, PartialEq, Debug)]
pub struct Claim {
    /// Name of the claim: `ton-h8`.
    pub id: String,
    /// Weight of the claim.
    pub kind: ClaimKind,
    /// Whether a quick run judges it.
    pub core: bool,
    /// The claim in a sentence.
    pub says: String,
    /// The statement that is judged.
    pub holds: Statement,
    /// Position in the file.
    pub place: Place,
}

/// The kinds of pictures, with the axes that they draw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PictureKind {
    /// Medians with the spread of the runs over an axis, joined by a line.
    Line {
        /// The axis from left to right.
        x: usize,
    },
    /// Medians with the spread of the runs as bars.
    Bars {
        /// The axis from left to right.
        x: Option<usize>,
    },
    /// Boxes and whiskers of the runs.
    Box {
        /// The axis from left to right.
        x: Option<usize>,
    },
    /// The distribution of runs, or of the medians of points.
    Cdf {
        /// The axis whose points have a median each.
        x: Option<usize>,
    },
    /// Medians as a map of two axes.
    Heat {
        /// The axis of the columns.
        x: usize,
        /// The axis from bottom to top.
        y: usize,
        /// Values are relative to this row.
        against: Option<usize>,
    },
    /// Medians by second.
    Time,
}

impl PictureKind {
    /// The names of the kinds.
    pub const NAMES: [&str; 6] = ["line", "bars", "box", "cdf", "heat", "time"];

    /// Returns the kind with this name, one of [`PictureKind::NAMES`], and its axes.
    ///
    /// # Errors
    /// If an axis is missing or superfluous; the error says which axes the kind has.
    fn new(
        name: &str,
        x: Option<usize>,
        y: Option<usize>,
        against: Option<usize>,
    ) -> Result<PictureKind, (Fault, &'static str)> {
        Ok(match (name, x, y) {
            ("heat", Some(x), Some(y)) => PictureKind::Heat { x, y, against },
            ("heat", ..) => return Err((Fault::Missing, "x and y")),
            ("time", None, None) => PictureKind::Time,
            ("time", ..) => return Err((Fault::Conflict, "neither x nor y")),
            ("line", None, _) => return Err((Fault::Missing, "x")),
            (_, _, Some(_)) => return Err((Fault::Conflict, "no y")),
            ("line", Some(x), None) => PictureKind::Line { x },
            ("bars", x, None) => PictureKind::Bars { x },
            ("box", x, None) => PictureKind::Box { x },
            (_, x, None) => PictureKind::Cdf { x },
        })
    }

    /// Returns the axis from left to right; in a heat map the columns.
    #[must_use]
    pub const fn x(self) -> Option<usize> {
        match self {
            PictureKind::Line { x } | PictureKind::Heat { x, .. } => Some(x),
            PictureKind::Bars { x } | PictureKind::Box { x } | PictureKind::Cdf { x } => x,
            PictureKind::Time => None,
        }
    }

    /// Returns the axis from bottom to top of a heat map.
    #[must_use]
    pub const fn y(self) -> Option<usize> {
        match self {
            PictureKind::Heat { y, .. } => Some(y),
            _ => None,
        }
    }
}

/// Largest number of panels of a picture.
pub const PANELS: usize = 24;

/// A picture of the results.
#[derive(Clone, PartialEq, Debug)]
pub struct Picture {
    /// Kind and axes.
    pub kind: PictureKind,
    /// One line of text that describes the picture.
    pub title: String,
    /// The measure: `goodput_mbps`, `path_share.wifi`. For a picture over time, the name lacks the part of
    /// the time.
    pub measure: String,
    /// The rows, in order.
    pub rows: Vec<usize>,
    /// Combinations of points whose runs are pooled; one empty combination if nothing is pooled.
    pub pool: Vec<Vec<(usize, usize)>>,
    /// Combinations of points of the other axes, each with its own panel.
    pub panels: Vec<Vec<(usize, usize)>>,
    /// True for a logarithmic axis: `x`, `y`.
    pub log: (bool, bool),
    /// Rows of the reference. If there are any, the picture shows the aggregation benefit over their median
    /// goodputs (CSWS 2014) in place of the goodput.
    pub benefit: Vec<usize>,
}

/// The changes that a quick run makes.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Quick {
    /// Settings that replace those of the experiment.
    pub(crate) settings: Vec<(String, PlacedText)>,
    /// The points that a quick run keeps, by axis.
    pub points: BTreeMap<usize, Vec<usize>>,
}

impl Experiment {
    /// Returns the paper's tag: `ton`.
    #[must_use]
    pub fn paper(&self) -> &str {
        self.id.split('-').next().unwrap_or(&self.id)
    }

    /// Returns the experiment of a quick run: only core claims, on fewer points.
    #[must_use]
    pub fn quickened(&self) -> Experiment {
        let mut quick = self.clone();
        quick.claims.retain(|claim| claim.core);
        for (name, given) in &self.quick.settings {
            // Reading the file checked the names.
            quick.raw.forget(name);
            let _ = quick.raw.set(name, given.clone());
        }
        for (axis, points) in &self.quick.points {
            for row in &mut quick.rows {
                let only = row.only.entry(*axis).or_insert_with(|| points.clone());
                only.retain(|point| points.contains(point));
            }
        }
        quick
    }

    /// Returns the experiment with first seed `seed` and `times` as many runs. If an axis is a sample of
    /// networks, the seed draws `times` as many networks instead. The number of runs of each network stays.
    ///
    /// # Errors
    /// If the seed cannot be set.
    pub fn enlarged(&self, seed: u64, times: u32) -> Result<Experiment, ScenarioError> {
        let mut larger = self.clone();
        let place = Place::Argument("--seed".to_owned());
        larger.raw.forget("seed");
        larger.raw.set("seed", PlacedText { place, text: seed.to_string() })?;
        let networks = self.axes.iter().any(Axis::is_sample);
        for (at, axis) in larger.axes.iter_mut().enumerate().filter(|(_, axis)| axis.is_sample()) {
            let first = self.axes[at].design.as_ref().map_or(1, |design| design.seed);
            let before = axis.points.len();
            axis.redraw(first.wrapping_add(seed.wrapping_sub(1)), times as usize);
            let added = before..axis.points.len();
            for row in &mut larger.rows {
                if let Some(only) = row.only.get_mut(&at) {
                    only.extend(added.clone());
                }
            }
        }
        let runs = self.raw.value("runs");
        if let Some((given, runs)) =
            runs.and_then(|given| Some((given.clone(), given.text.trim().parse::<u32>().ok()?)))
            && !networks
        {
            let text = runs.saturating_mul(times).to_string();
            larger.raw.forget("runs");
            larger.raw.set("runs", PlacedText { text, ..given })?;
        }
        if networks {
            let rows = larger.row_names();
            let names = Names { rows: &rows, axes: &larger.axes, paths: &larger.paths };
            let read = |claim: &Claim| {
                Statement::parse(&claim.holds.text, &|_| claim.place.clone(), &names)
            };
            let read: Result<Vec<Statement>, ScenarioError> =
                larger.claims.iter().map(read).collect();
            for (claim, statement) in larger.claims.iter_mut().zip(read?) {
                claim.holds = statement;
            }
        }
        Ok(larger)
    }

    /// Returns true if a claim or a picture names an extra measure, which ordinary runs do not collect.
    fn wants_extra(&self) -> bool {
        self.claims.iter().any(|claim| claim.holds.names(&extra::is_extra))
            || self.pictures.iter().any(|picture| extra::is_extra(&picture.measure))
    }

    /// Returns the names of the rows.
    fn row_names(&self) -> Vec<String> {
        self.rows.iter().map(|row| row.name.clone()).collect()
    }
}

/// The papers: tag, title, and where they appeared.
pub const PAPERS: &[(&str, &str, &str)] = &[
    ("ton", "Low-Latency Scheduling in MPTCP", "ToN"),
    (
        "imc",
        "A Measurement-based Study of MultiPath TCP Performance over Wireless Networks",
        "IMC 2013",
    ),
    ("csws", "Experimental Evaluation of Multipath TCP Schedulers", "CSWS 2014"),
    ("ecf", "ECF: An MPTCP Path Scheduler to Manage Heterogeneous Paths", "CoNEXT 2017"),
    ("stms", "STMS: Improving MPTCP Throughput Under Heterogeneous Networks", "ATC 2018"),
];
