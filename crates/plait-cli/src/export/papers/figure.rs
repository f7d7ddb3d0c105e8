//! From the cells of an experiment to its pictures.

use super::plot::{Plot, Scale};
use plait_lab::experiment::{Picture, Results, figure};
use plait_lab::stats::percentile;

/// Most panels of a picture.
const PANELS: usize = 24;
/// Colours that series take in turn.
const COLOURS: usize = 8;

/// A picture that is drawn.
pub(crate) struct Drawn {
    /// What it is called as a file: `ton-fig8-1-2`.
    pub(crate) name: String,
    /// What stands above it.
    pub(crate) title: String,
    /// The drawing.
    pub(crate) svg: String,
}

/// Every picture of an experiment, a panel each.
pub(crate) fn draw(results: &Results) -> Vec<Drawn> {
    let experiment = &results.plan.experiment;
    let mut drawn = Vec::new();
    for (number, picture) in experiment.pictures.iter().enumerate() {
        for (panel, fixed) in picture.panels.iter().take(PANELS).enumerate() {
            let place: Vec<String> = fixed
                .iter()
                .map(|(axis, point)| {
                    let axis = &experiment.axes[*axis];
                    format!("{} {}", axis.name, axis.points[*point].text)
                })
                .collect();
            let title = if place.is_empty() {
                picture.title.clone()
            } else {
                format!("{}, {}", picture.title, place.join(", "))
            };
            let view = View { results, picture, fixed, title: &title };
            let svg = match picture.kind.as_str() {
                "line" => view.lines(),
                "bars" => view.bars(),
                "box" => view.boxes(),
                "cdf" => view.distribution(),
                _ => view.heat(),
            };
            if let Some(svg) = svg {
                let name = format!("{}-{}-{}", experiment.id, number + 1, panel + 1);
                drawn.push(Drawn { name, title, svg });
            }
        }
    }
    drawn
}

/// One panel.
struct View<'a> {
    results: &'a Results,
    picture: &'a Picture,
    fixed: &'a [(usize, usize)],
    title: &'a str,
}

/// What a panel shows: the words of the horizontal axis, and for each row a list of values by point.
struct Table {
    words: Vec<String>,
    rows: Vec<(String, Vec<Option<Vec<f64>>>)>,
}

impl View<'_> {
    /// The runs of a row at a point of the horizontal axis; `None` where it is not run there.
    fn runs(&self, row: usize, x: Option<usize>, y: Option<usize>) -> Option<Vec<f64>> {
        let experiment = &self.results.plan.experiment;
        let mut at = vec![0; experiment.axes.len()];
        for (axis, point) in self.fixed {
            at[*axis] = *point;
        }
        for (axis, point) in [(self.picture.x, x), (self.picture.y, y)] {
            if let (Some(axis), Some(point)) = (axis, point) {
                at[axis] = point;
            }
        }
        let cell = self.results.plan.position(row, &at)?;
        self.results.values(cell, &self.picture.measure)
    }

    fn words(&self, axis: Option<usize>) -> Vec<String> {
        let axis = axis.map(|axis| &self.results.plan.experiment.axes[axis]);
        axis.map_or(vec![String::new()], |axis| {
            axis.points.iter().map(|point| point.text.clone()).collect()
        })
    }

    fn table(&self) -> Option<Table> {
        let experiment = &self.results.plan.experiment;
        let words = self.words(self.picture.x);
        let rows: Vec<(String, Vec<Option<Vec<f64>>>)> = self
            .picture
            .rows
            .iter()
            .map(|row| {
                let values = (0..words.len())
                    .map(|x| self.runs(*row, self.picture.x.map(|_| x), None))
                    .collect();
                (experiment.rows[*row].name.clone(), values)
            })
            .filter(|(_, values): &(String, Vec<Option<Vec<f64>>>)| {
                values.iter().any(Option::is_some)
            })
            .collect();
        // What no row has at all is not drawn.
        (!rows.is_empty()).then_some(Table { words, rows })
    }

    fn unit(&self) -> &str {
        &self.picture.measure
    }

    fn axis_name(&self) -> &str {
        self.picture.x.map_or("", |axis| &self.results.plan.experiment.axes[axis].name)
    }

    fn series(table: &Table) -> Vec<(usize, &str)> {
        let names = table.rows.iter().map(|(name, _)| name.as_str());
        names.enumerate().map(|(at, name)| (at % COLOURS, name)).collect()
    }

    /// Medians over the axis, with the range of the runs where there are several.
    fn lines(&self) -> Option<String> {
        let table = self.table()?;
        let axis = &self.results.plan.experiment.axes[self.picture.x?];
        let numbers: Option<Vec<f64>> =
            axis.points.iter().map(|point| point.number(None)).collect();
        let words = numbers.is_none();
        let places =
            numbers.unwrap_or_else(|| (0..table.words.len()).map(|at| at as f64).collect());
        let all = table.rows.iter().flat_map(|(_, values)| values).flatten().flatten().copied();
        let x = Scale::over(places.iter().copied(), self.picture.log.0 && !words, false);
        let y = Scale::over(all, self.picture.log.1, true);
        let mut plot = Plot::new(self.title, x, y, &View::series(&table));
        plot.vertical(self.unit());
        if words {
            label(&mut plot, &places, &table.words);
            plot.name(self.axis_name());
        } else {
            plot.horizontal(self.axis_name());
        }
        for (row, (name, values)) in table.rows.iter().enumerate() {
            let colour = row % COLOURS;
            let mut points = Vec::new();
            for ((place, runs), word) in places.iter().zip(values).zip(&table.words) {
                let Some([low, middle, high]) = runs.as_deref().and_then(spread) else { continue };
                points.push((*place, middle));
                if low < high {
                    plot.rule(&format!("l s{colour} thin"), (*place, low), (*place, high));
                }
                plot.dot(colour, *place, middle, &format!("{name}, {word}: {}", figure(middle)));
            }
            plot.line(colour, &points);
        }
        Some(plot.finish())
    }

    /// Groups by point, a bar for each row; the line is the range of nine tenths of the runs.
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
                plot.bar(row % COLOURS, (left, right), (floor, middle), &says);
                if low < high {
                    let centre = (left + right) / 2.0;
                    plot.rule("l w", (centre, low), (centre, high));
                }
            }
        }
        Some(plot.finish())
    }

    /// Box from the 25th to the 75th percentile, whiskers from the 5th to the 95th.
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
                    &format!("l s{} thin", row % COLOURS),
                    (centre, at(5.0)),
                    (centre, at(95.0)),
                );
                plot.bar(row % COLOURS, (left, right), (at(25.0), at(75.0)), &says);
                plot.rule("l w", (left, at(50.0)), (right, at(50.0)));
            }
        }
        Some(plot.finish())
    }

    fn groups(&self, table: &Table, y: Scale) -> Plot {
        // Groups stand at whole numbers.
        let x = Scale::of(-0.5, table.words.len() as f64 - 0.5);
        let mut plot = Plot::new(self.title, x, y, &View::series(table));
        plot.vertical(self.unit());
        let places: Vec<f64> = (0..table.words.len()).map(|at| at as f64).collect();
        label(&mut plot, &places, &table.words);
        plot.name(self.axis_name());
        plot
    }

    /// The share of the points at which the median is at most so much.
    fn distribution(&self) -> Option<String> {
        let table = self.table()?;
        let medians = |values: &[Option<Vec<f64>>]| -> Vec<f64> {
            let mut list: Vec<f64> =
                values.iter().filter_map(|runs| Some(spread(runs.as_deref()?)?[1])).collect();
            list.sort_by(f64::total_cmp);
            list
        };
        let all: Vec<Vec<f64>> = table.rows.iter().map(|(_, values)| medians(values)).collect();
        let x = Scale::over(all.iter().flatten().copied(), self.picture.log.0, false);
        let y = Scale::over([0.0, 1.0].into_iter(), false, true);
        let mut plot = Plot::new(self.title, x, y, &View::series(&table));
        plot.vertical("share of the points");
        plot.horizontal(self.unit());
        for (row, list) in all.iter().enumerate() {
            let count = list.len() as f64;
            let mut points = Vec::new();
            for (at, value) in list.iter().enumerate() {
                points.push((*value, at as f64 / count));
                points.push((*value, (at + 1) as f64 / count));
            }
            plot.line(row % COLOURS, &points);
        }
        Some(plot.finish())
    }

    /// The median of the first row, relative to another where one is named.
    fn heat(&self) -> Option<String> {
        let (columns, lines) = (self.words(self.picture.x), self.words(self.picture.y));
        let row = *self.picture.rows.first()?;
        let value = |x: usize, y: usize| {
            let of = |row| Some(spread(&self.runs(row, Some(x), Some(y))?)?[1]);
            let own = of(row)?;
            Some(match self.picture.against {
                Some(other) => own / of(other)?,
                None => own,
            })
        };
        let grid: Vec<(usize, usize, f64)> = (0..columns.len())
            .flat_map(|x| (0..lines.len()).map(move |y| (x, y)))
            .filter_map(|(x, y)| Some((x, y, value(x, y)?)))
            .collect();
        let least = grid.iter().map(|cell| cell.2).fold(f64::INFINITY, f64::min);
        let most = grid.iter().map(|cell| cell.2).fold(f64::NEG_INFINITY, f64::max);
        if grid.is_empty() {
            return None;
        }
        let side = |count: usize| Scale::of(-0.5, count as f64 - 0.5);
        let mut plot = Plot::new(self.title, side(columns.len()), side(lines.len()), &[]);
        for (x, y, value) in grid {
            let share = if most > least { (value - least) / (most - least) } else { 0.5 };
            plot.cell(x as f64, y as f64, share, &figure(value));
        }
        let places: Vec<f64> = (0..columns.len()).map(|at| at as f64).collect();
        label(&mut plot, &places, &columns);
        for (at, word) in lines.iter().enumerate() {
            plot.beside(at as f64, word);
        }
        plot.name(self.axis_name());
        Some(plot.finish())
    }
}

/// As many words as there is room for.
fn label(plot: &mut Plot, places: &[f64], words: &[String]) {
    let longest = words.iter().map(|word| word.chars().count()).max().unwrap_or(1).max(1);
    let room = (52 / longest).max(1);
    let every = words.len().div_ceil(room).max(1);
    for (at, word) in words.iter().enumerate().filter(|(at, _)| at % every == 0) {
        plot.below(places[at], word);
    }
}

/// Where a bar of a group stands.
fn place(group: usize, row: usize, rows: usize) -> (f64, f64) {
    let width = 0.84 / rows.max(1) as f64;
    let left = group as f64 - 0.42 + width * row as f64;
    (left + width * 0.06, left + width * 0.94)
}

/// The 5th percentile, the median and the 95th.
fn spread(runs: &[f64]) -> Option<[f64; 3]> {
    let mut sorted = runs.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some([percentile(&sorted, 5.0)?, percentile(&sorted, 50.0)?, percentile(&sorted, 95.0)?])
}
