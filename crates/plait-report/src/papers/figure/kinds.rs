//! The kinds of figures.

use super::super::labels;
use super::super::palette::Look;
use super::super::plot::{Plot, Scale, Side};
use super::{Drawn, Table, View, spread};
use plait_lab::experiment::figure;
use plait_lab::stats::percentile;

impl View<'_> {
    /// Draws medians over the axis, with the range of the runs if there are several.
    pub(super) fn lines(&self) -> Option<String> {
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
    pub(super) fn over_time(&self) -> Option<String> {
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
    pub(super) fn bars(&self) -> Option<String> {
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
    pub(super) fn boxes(&self) -> Option<String> {
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
    pub(super) fn distribution(&self) -> Option<String> {
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
    pub(super) fn heats(&self, name: &str, against: Option<usize>) -> Vec<Drawn> {
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
                plot.cell((*x as f64, *y as f64), (0, share), &brief(*value), &says);
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
