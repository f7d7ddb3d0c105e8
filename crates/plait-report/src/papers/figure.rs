//! Draws the figures of an experiment from its cells.

use super::labels;
use super::palette::{Look, Palette};
use super::plot::{PANEL, Plot, Scale, Side, Size, WHOLE};
use plait_app::aggregation_benefit;
use plait_lab::experiment::{Picture, PictureKind, Results, figure};
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

    /// Draws medians over the axis, with the range of the runs if there are several.
    fn lines(&self) -> Option<String> {
        let table = self.table()?;
        let axis = &self.results.plan.experiment.axes[self.picture.kind.x()?];
        let numbers: Option<Vec<f64>> =
            table.points.iter().map(|at| axis.points[*at].number(None)).collect();
        let words = numbers.is_none();
        let places =
            numbers.unwrap_or_else(|| (0..table.words.len()).map(|at| at as f64).collect());
        let all = table.rows.iter().flat_map(|(_, values)| values).flatten().flatten().copied();
        let x = Scale::over(places.iter().copied(), self.picture.log.0 && !words, false);
        let y = Scale::over(all, self.picture.log.1, true);
        let mut plot = self.plot((x, y), &self.series(&table), &self.unit());
        if words {
            plot.words(&places, &table.words, &self.axis_name(true));
        } else {
            plot.horizontal(&self.axis_name(false));
        }
        for (name, values) in &table.rows {
            let look = self.look(name);
            let mut points = Vec::new();
            for ((place, runs), word) in places.iter().zip(values).zip(&table.words) {
                let Some([low, middle, high]) = runs.as_deref().and_then(spread) else { continue };
                points.push((*place, middle));
                if low < high {
                    plot.rule(&format!("l s{} thin", look.colour), (*place, low), (*place, high));
                }
                plot.dot(look, *place, middle, &format!("{name}, {word}: {}", figure(middle)));
            }
            plot.line(look, &points);
        }
        Some(plot.finish())
    }

    /// Draws medians of the runs over the time of a run in seconds.
    fn over_time(&self) -> Option<String> {
        let experiment = &self.results.plan.experiment;
        let measures = self.results.measures();
        let part = |name: &str| -> Option<u64> {
            let rest = name.strip_prefix(&self.picture.measure)?.strip_prefix('.')?;
            rest.strip_suffix('s')?.parse().ok()
        };
        let mut seconds: Vec<u64> = measures.iter().filter_map(|name| part(name)).collect();
        seconds.sort_unstable();
        let places = self.places(None, None);
        let median = |row: usize, second: u64| {
            let measure = format!("{}.{second}s", self.picture.measure);
            Some((second as f64, spread(&self.pooled(row, &places, &measure)?)?[1]))
        };
        let rows: Vec<(&str, Vec<(f64, f64)>)> = self
            .picture
            .rows
            .iter()
            .map(|row| {
                let points = seconds.iter().filter_map(|second| median(*row, *second));
                (experiment.rows[*row].name.as_str(), points.collect())
            })
            .filter(|(_, points): &(&str, Vec<(f64, f64)>)| !points.is_empty())
            .collect();
        let all = || rows.iter().flat_map(|(_, points)| points);
        all().next()?;
        let x = Scale::over(all().map(|point| point.0), false, false);
        let y = Scale::over(all().map(|point| point.1), self.picture.log.1, true);
        let series: Vec<(Look, &str)> =
            rows.iter().map(|(name, _)| (self.look(name), *name)).collect();
        let mut plot = self.plot((x, y), &series, &self.unit());
        plot.horizontal("time of the run (s)");
        for (name, points) in &rows {
            plot.line(self.look(name), points);
        }
        Some(plot.finish())
    }

    /// Draws a bar for each row, grouped by point. A line spans the middle 90 % of the runs.
    fn bars(&self) -> Option<String> {
        let table = self.table()?;
        let all = table.rows.iter().flat_map(|(_, values)| values).flatten().flatten().copied();
        let y = Scale::over(all, self.picture.log.1, true);
        let mut plot = self.groups(&table, y);
        let floor = plot.floor();
        for (row, (name, values)) in table.rows.iter().enumerate() {
            for (group, runs) in values.iter().enumerate() {
                let Some([low, middle, high]) = runs.as_deref().and_then(spread) else { continue };
                let (left, right) = place(group, row, table.rows.len());
                let says = format!("{name}, {}: {}", table.words[group], figure(middle));
                plot.bar(self.look(name), (left, right), (floor, middle), &says);
                if low < high {
                    let centre = (left + right) / 2.0;
                    plot.rule("l w", (centre, low), (centre, high));
                }
            }
        }
        Some(plot.finish())
    }

    /// Draws boxes from the 25th to the 75th percentile, with whiskers from the 5th to the 95th.
    fn boxes(&self) -> Option<String> {
        let table = self.table()?;
        let all = table.rows.iter().flat_map(|(_, values)| values).flatten().flatten().copied();
        let y = Scale::over(all, self.picture.log.1, true);
        let mut plot = self.groups(&table, y);
        for (row, (name, values)) in table.rows.iter().enumerate() {
            for (group, runs) in values.iter().enumerate() {
                let Some(runs) = runs else { continue };
                let mut sorted = runs.clone();
                sorted.sort_by(f64::total_cmp);
                let at = |percent| percentile(&sorted, percent).unwrap_or(f64::NAN);
                let (left, right) = place(group, row, table.rows.len());
                let centre = (left + right) / 2.0;
                let says = format!("{name}, {}: median {}", table.words[group], figure(at(50.0)));
                plot.rule(
                    &format!("l s{} thin", self.look(name).colour),
                    (centre, at(5.0)),
                    (centre, at(95.0)),
                );
                plot.bar(self.look(name), (left, right), (at(25.0), at(75.0)), &says);
                plot.rule("l w", (left, at(50.0)), (right, at(50.0)));
            }
        }
        Some(plot.finish())
    }

    fn groups(&self, table: &Table, y: Scale) -> Plot {
        // Groups are centred at whole numbers.
        let x = Scale::of(-0.5, table.words.len() as f64 - 0.5);
        let mut plot = self.plot((x, y), &self.series(table), &self.unit());
        let places: Vec<f64> = (0..table.words.len()).map(|at| at as f64).collect();
        plot.words(&places, &table.words, &self.axis_name(true));
        plot
    }

    /// Draws the share of points with a median of at most a given value. Without a horizontal axis,
    /// it is the share of runs.
    fn distribution(&self) -> Option<String> {
        let table = self.table()?;
        let points = self.picture.kind.x().is_some();
        let medians = |values: &[Option<Vec<f64>>]| -> Vec<f64> {
            let runs = values.iter().filter_map(Option::as_deref);
            let mut list: Vec<f64> = match points {
                true => runs.filter_map(|runs| Some(spread(runs)?[1])).collect(),
                false => runs.flatten().copied().collect(),
            };
            list.sort_by(f64::total_cmp);
            list
        };
        let all: Vec<Vec<f64>> = table.rows.iter().map(|(_, values)| medians(values)).collect();
        let x = Scale::over(all.iter().flatten().copied(), self.picture.log.0, false);
        let y = Scale::over([0.0, 1.0].into_iter(), false, true);
        let name = if points { "share of the points" } else { "share of the runs" };
        let mut plot = self.plot((x, y), &self.series(&table), name);
        plot.horizontal(&self.unit());
        for ((row, _), list) in table.rows.iter().zip(&all) {
            let count = list.len() as f64;
            let mut points = Vec::new();
            for (at, value) in list.iter().enumerate() {
                points.push((*value, at as f64 / count));
                points.push((*value, (at + 1) as f64 / count));
            }
            plot.line(self.look(row), &points);
        }
        Some(plot.finish())
    }

    /// Draws a heat map of each row's medians, relative to another row if `against` names one. All
    /// maps use the same colour range.
    fn heats(&self, name: &str, against: Option<usize>) -> Vec<Drawn> {
        let kind = self.picture.kind;
        let (columns, lines) = (self.words(kind.x()), self.words(kind.y()));
        let value = |row: usize, x: usize, y: usize| {
            let of = |row| {
                let point = |axis: Option<usize>, at| axis.map(|_| at);
                let runs = self.runs(row, point(kind.x(), x), point(kind.y(), y))?;
                Some(spread(&runs)?[1])
            };
            let own = of(row)?;
            Some(match against {
                Some(other) => own / of(other)?,
                None => own,
            })
        };
        let grid = |row: &usize| -> Vec<(usize, usize, f64)> {
            (0..columns.len())
                .flat_map(|x| (0..lines.len()).map(move |y| (x, y)))
                .filter_map(|(x, y)| Some((x, y, value(*row, x, y)?)))
                .collect()
        };
        let rows: Vec<usize> =
            self.picture.rows.iter().copied().filter(|row| Some(*row) != against).collect();
        let grids: Vec<Vec<(usize, usize, f64)>> = rows.iter().map(grid).collect();
        let all = || grids.iter().flatten().map(|cell| cell.2);
        let least = all().fold(f64::INFINITY, f64::min);
        let most = all().fold(f64::NEG_INFINITY, f64::max);
        let names = &self.results.plan.experiment;
        let mut drawn = Vec::new();
        for (at, (row, grid)) in rows.iter().zip(&grids).enumerate().filter(|it| !it.1.1.is_empty())
        {
            let title = format!("{}: {}", self.title, names.rows[*row].name);
            let measure = self.unit();
            let title = match title.contains(&measure) {
                true => title,
                false => format!("{title}, {measure}"),
            };
            let side = |count: usize| Scale::of(-0.5, count as f64 - 0.5);
            let scales = (side(columns.len()), side(lines.len()));
            let upward = self.picture.kind.y().map(|axis| labels::axis(&names.axes[axis], false));
            let upward = upward.unwrap_or_default();
            let mut plot =
                Plot::new((&title, self.size), scales, &[], &upward, Side::Words(&lines));
            for (x, y, value) in grid {
                let share = if most > least { (value - least) / (most - least) } else { 0.5 };
                let says = format!("{}, {}: {}", columns[*x], lines[*y], figure(*value));
                plot.cell(*x as f64, *y as f64, share, &brief(*value), &says);
            }
            let places: Vec<f64> = (0..columns.len()).map(|at| at as f64).collect();
            plot.words(&places, &columns, &self.axis_name(true));
            let name = if at == 0 { name.to_owned() } else { format!("{name}-{}", at + 1) };
            let note = match against {
                Some(other) => {
                    format!("{} Values are relative to {}.", self.note(), names.rows[other].name)
                }
                None => self.note(),
            };
            drawn.push(Drawn { name, title, note, svg: plot.finish() });
        }
        drawn
    }
}

/// Formats a number for a cell of a heat map; differences between cells stay visible.
fn brief(value: f64) -> String {
    if value.abs() < 10.0 { format!("{value:.2}") } else { figure(value) }
}

/// Returns the left and right edge of a bar in a group.
fn place(group: usize, row: usize, rows: usize) -> (f64, f64) {
    let width = 0.84 / rows.max(1) as f64;
    let left = group as f64 - 0.42 + width * row as f64;
    (left + width * 0.06, left + width * 0.94)
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
