//! Draws the figures of an experiment from its cells.

mod kinds;

use super::labels;
use super::palette::{Look, Palette};
use super::plot::{PANEL, Plot, Scale, Side, Size, WHOLE};
use plait_app::aggregation_benefit;
use plait_lab::experiment::{Picture, PictureKind, Results};
use plait_lab::stats::percentile;

/// Greatest number of cells that a note names because runs lack a value.
const MOST_CELLS_NAMED: usize = 4;

/// A drawn figure.
pub(crate) struct Drawn {
    /// Its file name without extension: `ton-fig8-1-2`.
    pub(crate) name: String,
    /// The heading above it.
    pub(crate) title: String,
    /// The meaning of its marks, and the data that it omits.
    pub(crate) note: String,
    /// The drawing.
    pub(crate) svg: String,
}

/// Draws every figure of an experiment, one for each panel.
pub(super) fn draw(results: &Results, palette: &Palette) -> Vec<Drawn> {
    let experiment = &results.plan.experiment;
    let mut drawn = Vec::new();
    for (number, picture) in experiment.pictures.iter().enumerate() {
        for (panel, fixed) in picture.panels.iter().enumerate() {
            let at = |(axis, point): &(usize, usize)| {
                let axis = &experiment.axes[*axis];
                format!("{} {}", axis.name, axis.points[*point].text)
            };
            let place: Vec<String> = fixed.iter().map(at).collect();
            let title = match picture.title.as_str() {
                "" => labels::measure(&picture.measure),
                title => title.to_owned(),
            };
            let title = match place.as_slice() {
                [] => title,
                place => format!("{title}, {}", place.join(", ")),
            };
            let size = if picture.panels.len() == 1 { WHOLE } else { PANEL };
            let view = View { results, picture, fixed, palette, title: &title, size };
            let name = format!("{}-{}-{}", experiment.id, number + 1, panel + 1);
            let svg = match picture.kind {
                PictureKind::Line { .. } => view.lines(),
                PictureKind::Bars { .. } => view.bars(),
                PictureKind::Box { .. } => view.boxes(),
                PictureKind::Cdf { .. } => view.distribution(),
                PictureKind::Time => view.over_time(),
                PictureKind::Heat { against, .. } => {
                    drawn.extend(view.heats(&name, against));
                    continue;
                }
            };
            let note = view.note();
            drawn.extend(svg.map(|svg| Drawn { name, title: title.clone(), note, svg }));
        }
    }
    drawn
}

/// One panel.
struct View<'a> {
    results: &'a Results,
    picture: &'a Picture,
    fixed: &'a [(usize, usize)],
    palette: &'a Palette,
    title: &'a str,
    size: Size,
}

/// The data of a panel: the words of the horizontal axis, and the values of each row by point.
struct Table {
    /// The points of the horizontal axis that were run.
    points: Vec<usize>,
    words: Vec<String>,
    rows: Vec<(String, Vec<Option<Vec<f64>>>)>,
}

impl View<'_> {
    /// Returns the runs of a row at a point of the horizontal axis; `None` if it was not run there.
    fn runs(&self, row: usize, x: Option<usize>, y: Option<usize>) -> Option<Vec<f64>> {
        self.pooled(row, &self.places(x, y), &self.picture.measure)
    }

    /// Returns the runs of a row at all of these places.
    fn pooled(&self, row: usize, places: &[Vec<usize>], measure: &str) -> Option<Vec<f64>> {
        let runs = places.iter().filter_map(|at| self.at_place(row, at, measure));
        let all: Vec<f64> = runs.flatten().collect();
        (!all.is_empty()).then_some(all)
    }

    /// Returns the places to pool.
    fn places(&self, x: Option<usize>, y: Option<usize>) -> Vec<Vec<usize>> {
        let drawn = [(self.picture.kind.x(), x), (self.picture.kind.y(), y)];
        let drawn = drawn.into_iter().filter_map(|(axis, point)| Some((axis?, point?)));
        let mut at = vec![0; self.results.plan.experiment.axes.len()];
        for (axis, point) in self.fixed.iter().copied().chain(drawn) {
            at[axis] = point;
        }
        let pooled = self.picture.pool.iter().map(|pool| {
            let mut at = at.clone();
            for (axis, point) in pool {
                at[*axis] = *point;
            }
            at
        });
        pooled.collect()
    }

    fn at_place(&self, row: usize, at: &[usize], measure: &str) -> Option<Vec<f64>> {
        let runs = self.measured(row, at, measure)?;
        if self.picture.benefit.is_empty() {
            return Some(runs);
        }
        let alone = |row: &usize| Some(spread(&self.measured(*row, at, measure)?)?[1]);
        let alone: Option<Vec<f64>> = self.picture.benefit.iter().map(alone).collect();
        let alone = alone?;
        runs.into_iter().map(|goodput| aggregation_benefit(goodput, &alone)).collect()
    }

    fn measured(&self, row: usize, at: &[usize], measure: &str) -> Option<Vec<f64>> {
        let cell = self.results.plan.position(row, at)?;
        // Runs end at different times, so a median over runs would jump from second to second.
        if self.picture.kind == PictureKind::Time {
            return self.results.values(cell, measure);
        }
        let values = self.results.present(cell, measure);
        (!values.is_empty()).then_some(values)
    }

    /// Returns true if a row was run at one of these places.
    fn was_run(&self, row: usize, places: &[Vec<usize>]) -> bool {
        let mut cells = places.iter().filter_map(|at| self.results.plan.position(row, at));
        cells.any(|cell| self.results.made(cell) > 0)
    }

    fn words(&self, axis: Option<usize>) -> Vec<String> {
        let Some(axis) = axis else { return vec![String::new()] };
        let axis = &self.results.plan.experiment.axes[axis];
        axis.points.iter().map(|point| point.text.clone()).collect()
    }

    fn table(&self) -> Option<Table> {
        let experiment = &self.results.plan.experiment;
        let points = self.points_run();
        let all = self.words(self.picture.kind.x());
        let words = points.iter().map(|point| all[*point].clone()).collect();
        let values = |row: usize| -> Vec<Option<Vec<f64>>> {
            let at = |x: &usize| self.runs(row, self.picture.kind.x().map(|_| *x), None);
            points.iter().map(at).collect()
        };
        let rows = self.picture.rows.iter();
        let rows = rows.map(|row| (experiment.rows[*row].name.clone(), values(*row)));
        let rows: Vec<_> = rows.filter(|(_, values)| values.iter().any(Option::is_some)).collect();
        // A figure is not drawn if none of its rows was run.
        (!rows.is_empty()).then_some(Table { points, words, rows })
    }

    /// Returns the points of the horizontal axis at which some row was run.
    fn points_run(&self) -> Vec<usize> {
        let Some(axis) = self.picture.kind.x() else { return vec![0] };
        let was_run = |x: &usize| {
            let places = self.places(Some(*x), None);
            self.picture.rows.iter().any(|row| self.was_run(*row, &places))
        };
        (0..self.results.plan.experiment.axes[axis].points.len()).filter(was_run).collect()
    }

    /// Returns the meaning of the marks, the omitted points, and the cells that lack values.
    fn note(&self) -> String {
        let mut sentences = vec![self.marks().to_owned()];
        sentences.extend(self.points_left_out());
        sentences.extend(self.runs_left_out());
        sentences.join(" ")
    }

    /// Returns the runs behind each mark of a figure over one axis.
    fn samples(&self) -> Vec<Vec<f64>> {
        let rows = self.table().into_iter().flat_map(|table| table.rows);
        rows.flat_map(|(_, values)| values).flatten().collect()
    }

    fn marks(&self) -> &'static str {
        let kind = self.picture.kind;
        let samples = if kind.y().is_some() { Vec::new() } else { self.samples() };
        let several = samples.iter().any(|runs| runs.len() > 1);
        let span = samples.iter().any(|runs| spread(runs).is_some_and(|it| it[0] < it[2]));
        match kind {
            PictureKind::Line { .. } if span => {
                "Dots are medians; the lines through them span the 5th to the 95th percentile of the runs."
            }
            PictureKind::Bars { .. } if span => {
                "Bars are medians; the lines on them span the 5th to the 95th percentile of the runs."
            }
            PictureKind::Box { .. } => {
                "Boxes span the 25th to the 75th percentile of the runs, whiskers the 5th to the 95th; \
                 the line inside is the median."
            }
            PictureKind::Cdf { x: Some(_) } => {
                "The share of points whose median is at most this value."
            }
            PictureKind::Cdf { x: None } => "The share of runs with at most this value.",
            PictureKind::Time => "The median of the runs, by second.",
            PictureKind::Heat { .. } => {
                "Medians; a darker cell has a larger value, and an empty cell has none."
            }
            PictureKind::Line { .. } if several => {
                "Dots are medians; all runs of a point have the same value."
            }
            PictureKind::Bars { .. } if several => {
                "Bars are medians; all runs of a point have the same value."
            }
            _ => "One run at each point.",
        }
    }

    /// Returns how many points of the horizontal axis were run, unless all were.
    fn points_left_out(&self) -> Option<String> {
        let axis = self.picture.kind.x().filter(|_| self.picture.kind.y().is_none())?;
        let axis = &self.results.plan.experiment.axes[axis];
        let (run, all) = (self.points_run().len(), axis.points.len());
        let were = if run == 1 { "was" } else { "were" };
        (run < all).then(|| format!("Of the {all} points of {}, {run} {were} run.", axis.name))
    }

    /// Returns `minrtt at 40ms: 5 of 8 runs have a value.`
    fn runs_left_out(&self) -> Option<String> {
        // A figure over time has as many measures as seconds.
        if self.picture.kind == PictureKind::Time {
            return None;
        }
        let experiment = &self.results.plan.experiment;
        let points = |axis: Option<usize>| match axis {
            Some(axis) => (0..experiment.axes[axis].points.len()).map(Some).collect(),
            None => vec![None],
        };
        let (columns, lines) = (points(self.picture.kind.x()), points(self.picture.kind.y()));
        let mut cells = Vec::new();
        for row in &self.picture.rows {
            for (x, y) in columns.iter().flat_map(|x| lines.iter().map(move |y| (*x, *y))) {
                let places = self.places(x, y);
                let positions = places.iter().filter_map(|at| self.results.plan.position(*row, at));
                let (mut made, mut present) = (0, 0);
                for cell in positions {
                    made += self.results.made(cell);
                    present += self.results.present(cell, &self.picture.measure).len();
                }
                if present < made {
                    let point = [(self.picture.kind.x(), x), (self.picture.kind.y(), y)];
                    let point = point.into_iter().filter_map(|(axis, point)| {
                        Some(experiment.axes[axis?].points[point?].text.as_str())
                    });
                    let point: Vec<&str> = point.collect();
                    let at = if point.is_empty() { "" } else { " at " };
                    let (name, point) = (&experiment.rows[*row].name, point.join(", "));
                    cells.push(format!("{name}{at}{point}: {present} of {made}"));
                }
            }
        }
        let more = cells.len().saturating_sub(MOST_CELLS_NAMED);
        cells.truncate(MOST_CELLS_NAMED);
        let (first, rest) = cells.split_first()?;
        let rest: String = rest.iter().map(|cell| format!("; {cell}")).collect();
        let more = if more > 0 { format!("; and {more} more such cells") } else { String::new() };
        Some(format!("{first} runs have a value{rest}{more}."))
    }

    /// Returns the name of the vertical axis with its unit.
    fn unit(&self) -> String {
        match self.picture.benefit.is_empty() {
            true => labels::measure(&self.picture.measure),
            false => "aggregation benefit (1: the sum of the paths)".to_owned(),
        }
    }

    /// Returns the name of the horizontal axis, with the unit if its points are numbers.
    fn axis_name(&self, words: bool) -> String {
        let Some(axis) = self.picture.kind.x() else { return String::new() };
        let axis = &self.results.plan.experiment.axes[axis];
        labels::axis(axis, !words)
    }

    fn look(&self, name: &str) -> Look {
        self.palette.look(name)
    }

    fn series<'t>(&self, table: &'t Table) -> Vec<(Look, &'t str)> {
        table.rows.iter().map(|(name, _)| (self.look(name), name.as_str())).collect()
    }

    fn plot(&self, scales: (Scale, Scale), series: &[(Look, &str)], name: &str) -> Plot {
        Plot::new((self.title, self.size), scales, series, name, Side::Numbers)
    }
}

/// Returns the 5th percentile, the median and the 95th percentile.
fn spread(runs: &[f64]) -> Option<[f64; 3]> {
    let mut sorted = runs.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some([percentile(&sorted, 5.0)?, percentile(&sorted, 50.0)?, percentile(&sorted, 95.0)?])
}

/// Draws the figures of one experiment with a palette of its own.
#[cfg(test)]
fn drawing(results: &Results) -> Vec<Drawn> {
    draw(results, &Palette::of(&[results]))
}

#[cfg(test)]
mod legible;
#[cfg(test)]
mod tests;
