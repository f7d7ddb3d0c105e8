//! Colours of series. A row has the same colour in every figure of a page.

use plait_lab::experiment::Results;
use std::collections::{BTreeMap, BTreeSet};

/// Number of colours in the style sheet.
const COLOURS: usize = 8;
/// Number of distinct looks: each colour solid and dashed.
const LOOKS: usize = 2 * COLOURS;

/// The look of a series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Look {
    /// The colour, from 0.
    pub(super) colour: usize,
    /// True if its lines are dashed, because another series in the figure has the same colour.
    pub(super) dashed: bool,
}

/// The look of each row, by its name.
#[derive(Default, Debug)]
pub(super) struct Palette(BTreeMap<String, usize>);

impl Palette {
    /// Assigns looks to the rows of these experiments' figures. Rows of the same figure look
    /// different, up to [`LOOKS`] rows.
    pub(super) fn of(results: &[&Results]) -> Palette {
        let mut pictures: Vec<Vec<&str>> = Vec::new();
        for experiment in results.iter().map(|one| &one.plan.experiment) {
            let names = |row: &usize| experiment.rows[*row].name.as_str();
            pictures
                .extend(experiment.pictures.iter().map(|it| it.rows.iter().map(names).collect()));
        }
        let mut looks: BTreeMap<String, usize> = BTreeMap::new();
        for name in pictures.iter().flatten() {
            if looks.contains_key(*name) {
                continue;
            }
            let together = pictures.iter().filter(|names| names.contains(name)).flatten();
            let taken: BTreeSet<usize> =
                together.filter_map(|other| looks.get(*other).copied()).collect();
            let used = |look: &usize| looks.values().filter(|it| *it == look).count();
            let free = |from: usize, to: usize| {
                (from..to).filter(|look| !taken.contains(look)).min_by_key(used)
            };
            let look = free(0, COLOURS).or_else(|| free(COLOURS, LOOKS));
            looks.insert((*name).to_owned(), look.unwrap_or(looks.len() % LOOKS));
        }
        Palette(looks)
    }

    /// Returns the look of a row; the first look if the row is in no figure.
    pub(super) fn look(&self, name: &str) -> Look {
        let look = self.0.get(name).copied().unwrap_or(0);
        Look { colour: look % COLOURS, dashed: look >= COLOURS }
    }
}
