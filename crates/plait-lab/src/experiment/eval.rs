//! What statements come to over cells.

use super::array::{Array, Dim, RUNS};
use super::names::Names;
use super::statement::{Each, Expression, Relations, Statement, Statistic, Value};
use crate::stats::percentile;

/// Where the numbers of cells come from.
pub(super) trait Cells {
    /// The points of an axis at which a row is run; `None` for all of them.
    fn only(&self, row: usize, axis: usize) -> Option<&[usize]>;
    /// How many runs are made of a row at these points.
    fn runs(&self, row: usize, at: &[usize]) -> usize;
    /// The measure of every run of a cell; empty where a run is missing or did not finish.
    fn values(&self, row: usize, at: &[usize], value: &Value) -> Vec<f64>;
}

/// One relation of a statement, at the point where it holds by least or fails by most.
#[derive(Clone, PartialEq, Debug)]
pub struct Shown {
    /// The left side as written, the relation and the right side.
    pub left: String,
    /// Its value, not a number where a cell has none.
    pub left_value: f64,
    /// All values of a list, where it is one that is judged as a whole.
    pub list: Vec<f64>,
    /// The relation; empty for what is true or not by itself.
    pub sign: &'static str,
    /// The right side as written.
    pub right: String,
    /// Its value.
    pub right_value: f64,
    /// Where: `n=15, rtt2=100ms`; empty where there is one place only.
    pub place: String,
    /// Whether it holds, everywhere.
    pub holds: bool,
    /// At how many places it was asked, and at how many it holds.
    pub places: (usize, usize),
    margin: f64,
    /// The turn of `for` and the place in the array, so that the value can be made again.
    turn: usize,
    flat: usize,
}

/// The row and the points that `for` has chosen.
#[derive(Clone, Default, Debug)]
struct Bound {
    row: Option<usize>,
    points: Vec<(usize, usize)>,
}

/// Evaluates over cells.
pub(super) struct Evaluator<'a, C> {
    pub(super) names: Names<'a>,
    pub(super) cells: &'a C,
}

impl<C: Cells> Evaluator<'_, C> {
    /// What becomes of each relation of a statement.
    pub(super) fn judge(&self, statement: &Statement) -> Vec<Shown> {
        let mut shown: Vec<Option<Shown>> = Vec::new();
        for (turn, bound) in self.turns(statement).iter().enumerate() {
            let mut index = 0;
            for relations in &statement.all {
                for mut found in self.relations(relations, bound, turn) {
                    found.place = [self.bound_text(bound), found.place]
                        .into_iter()
                        .filter(|text| !text.is_empty())
                        .collect::<Vec<_>>()
                        .join(", ");
                    if shown.len() <= index {
                        shown.push(None);
                    }
                    shown[index] = Some(match shown[index].take() {
                        None => found,
                        Some(known) => tighter(known, found),
                    });
                    index += 1;
                }
            }
        }
        shown.into_iter().flatten().collect()
    }

    /// The left value of a relation of a statement once more, from other numbers.
    pub(super) fn again(&self, statement: &Statement, index: usize, shown: &Shown) -> f64 {
        let turns = self.turns(statement);
        let mut sides = statement.all.iter().flat_map(|relations| {
            let count = relations.signs.len().max(1);
            (0..count).map(move |at| &relations.sides[at].1)
        });
        let (Some(bound), Some(side)) = (turns.get(shown.turn), sides.nth(index)) else {
            return f64::NAN;
        };
        let array = self.value(side, bound);
        let flat = if array.data.len() == 1 { 0 } else { shown.flat };
        array.data.get(flat).copied().unwrap_or(f64::NAN)
    }

    fn turns(&self, statement: &Statement) -> Vec<Bound> {
        let mut turns = vec![Bound::default()];
        for each in &statement.each {
            let more = |bound: &Bound| -> Vec<Bound> {
                match each {
                    Each::Axis(axis, points) => points
                        .iter()
                        .map(|point| {
                            let mut next = bound.clone();
                            next.points.push((*axis, *point));
                            next
                        })
                        .collect(),
                    Each::Row(rows) => {
                        rows.iter().map(|row| Bound { row: Some(*row), ..bound.clone() }).collect()
                    }
                }
            };
            turns = turns.iter().flat_map(more).collect();
        }
        turns
    }

    fn bound_text(&self, bound: &Bound) -> String {
        let row = bound.row.map(|row| self.names.rows[row].clone());
        row.into_iter()
            .chain(bound.points.iter().map(|at| self.place(*at)))
            .collect::<Vec<_>>()
            .join(", ")
    }

    fn place(&self, (axis, point): (usize, usize)) -> String {
        if axis == RUNS {
            return format!("run {point}");
        }
        let axis = &self.names.axes[axis];
        format!("{}={}", axis.name, axis.points[point].text)
    }

    fn relations(&self, relations: &Relations, bound: &Bound, turn: usize) -> Vec<Shown> {
        let values: Vec<Array> =
            relations.sides.iter().map(|(_, side)| self.value(side, bound)).collect();
        if relations.signs.is_empty() {
            return vec![self.alone(&relations.sides[0], &values[0], bound, turn)];
        }
        let pairs = relations.signs.iter().enumerate();
        pairs
            .map(|(at, sign)| {
                let (left, right) = (&values[at], &values[at + 1]);
                let texts = (&relations.sides[at].0, &relations.sides[at + 1].0);
                // Which pair is the tightest.
                let margins = left.zip(right, |a, b| sign.margin(a, b));
                let holds = left.zip(right, |a, b| f64::from(u8::from(sign.holds(a, b))));
                let (margins, holds) = match (margins, holds) {
                    (Some(margins), Some(holds)) => (margins, holds),
                    _ => (Array::scalar(f64::NEG_INFINITY), Array::scalar(0.0)),
                };
                let worst = (0..margins.data.len()).min_by(|a, b| {
                    let key = |at: &usize| (holds.data[*at], margins.data[*at]);
                    key(a).partial_cmp(&key(b)).unwrap_or(core::cmp::Ordering::Equal)
                });
                let flat = worst.unwrap_or(0);
                let at_worst = |one: &Array| {
                    one.zip(&margins, |value, _| value)
                        .filter(|wide| wide.dims == margins.dims)
                        .or_else(|| margins.zip(one, |_, value| value))
                        .and_then(|wide| wide.data.get(flat).copied())
                        .unwrap_or(f64::NAN)
                };
                let met = holds.data.iter().filter(|held| **held > 0.0).count();
                let points = margins.points_of(flat);
                // The place of the left value in its own array.
                let own = (0..left.data.len())
                    .find(|at| left.points_of(*at).iter().all(|point| points.contains(point)));
                Shown {
                    left: texts.0.clone(),
                    left_value: at_worst(left),
                    list: Vec::new(),
                    sign: sign.sign(),
                    right: texts.1.clone(),
                    right_value: at_worst(right),
                    place: self.places(&points),
                    holds: met == holds.data.len(),
                    places: (met, holds.data.len()),
                    margin: margins.data.get(flat).copied().unwrap_or(f64::NEG_INFINITY),
                    turn,
                    flat: own.unwrap_or(0),
                }
            })
            .collect()
    }

    fn places(&self, points: &[(usize, usize)]) -> String {
        points.iter().map(|point| self.place(*point)).collect::<Vec<_>>().join(", ")
    }

    /// What is true or not by itself: `increasing(...)`.
    fn alone(
        &self,
        (text, side): &(String, Expression),
        value: &Array,
        bound: &Bound,
        turn: usize,
    ) -> Shown {
        let met = value.data.iter().filter(|value| **value > 0.0).count();
        let list = match side {
            Expression::Call(_, arguments) => {
                arguments.first().map(|it| self.value(it, bound).data).unwrap_or_default()
            }
            _ => Vec::new(),
        };
        let holds = met == value.data.len();
        Shown {
            left: text.clone(),
            left_value: value.data.first().copied().unwrap_or(f64::NAN),
            list,
            sign: "",
            right: String::new(),
            right_value: f64::NAN,
            place: String::new(),
            holds,
            places: (met, value.data.len()),
            margin: if holds { 0.0 } else { -1.0 },
            turn,
            flat: 0,
        }
    }

    /// The array of an expression. What does not fit together is missing.
    fn value(&self, expression: &Expression, bound: &Bound) -> Array {
        let missing = || Array::scalar(f64::NAN);
        match expression {
            Expression::Literal(array) => at_bound(array.clone(), bound),
            Expression::Value(value) => self.cells_of(value, bound),
            Expression::Points(axis, field) => {
                let all = &self.names.axes[*axis].points;
                let points = (0..all.len()).collect();
                let array = Array::over(vec![Dim { axis: *axis, points }], |at| {
                    all[at[0]].number(field.as_deref()).unwrap_or(f64::NAN)
                });
                at_bound(array, bound)
            }
            Expression::Sum(sign, left, right) => {
                let of = |a: f64, b: f64| match sign {
                    '+' => a + b,
                    '-' => a - b,
                    '*' => a * b,
                    // What is divided by nothing has no value, and no relation holds of it.
                    _ if b == 0.0 => f64::NAN,
                    _ => a / b,
                };
                let (left, right) = (self.value(left, bound), self.value(right, bound));
                left.zip(&right, of).unwrap_or_else(missing)
            }
            Expression::Call(function, arguments) => {
                let arguments: Vec<Array> =
                    arguments.iter().map(|it| self.value(it, bound)).collect();
                // Points of an axis beside values over some of them: those alone.
                let arguments = aligned(arguments);
                function.of(&arguments).unwrap_or_else(missing)
            }
            Expression::Truth(all) => {
                let each = all.iter().map(|relations| self.truth(relations, bound));
                each.reduce(|a, b| a.zip(&b, f64::min).unwrap_or_else(missing))
                    .unwrap_or_else(missing)
            }
        }
    }

    fn truth(&self, relations: &Relations, bound: &Bound) -> Array {
        let values: Vec<Array> =
            relations.sides.iter().map(|(_, side)| self.value(side, bound)).collect();
        let pairs = relations.signs.iter().zip(values.iter().zip(values.iter().skip(1)));
        let held = pairs.map(|(sign, (left, right))| {
            left.zip(right, |a, b| f64::from(u8::from(sign.holds(a, b))))
        });
        held.reduce(|a, b| a?.zip(&b?, f64::min))
            .unwrap_or_else(|| values.first().cloned())
            .unwrap_or_else(|| Array::scalar(f64::NAN))
    }

    fn cells_of(&self, value: &Value, bound: &Bound) -> Array {
        let Some(row) = value.row.or(bound.row) else { return Array::scalar(f64::NAN) };
        let mut fixed: Vec<usize> = vec![0; self.names.axes.len()];
        let mut dims = Vec::new();
        for (axis, known) in self.names.axes.iter().enumerate() {
            let chosen = value.chosen.iter().find(|(of, _)| *of == axis).map(|(_, list)| list);
            let turn = bound.points.iter().find(|(of, _)| *of == axis).map(|(_, point)| *point);
            let only = self.cells.only(row, axis);
            let points: Vec<usize> = match (chosen, turn, only) {
                (Some(list), ..) => list.clone(),
                (None, _, Some([single])) => vec![*single],
                (None, Some(point), _) => vec![point],
                (None, None, Some(list)) => list.to_vec(),
                (None, None, None) => (0..known.points.len()).collect(),
            };
            match points.as_slice() {
                [single] => fixed[axis] = *single,
                _ => dims.push(Dim { axis, points }),
            }
        }
        let place = |at: &[usize], dims: &[Dim]| {
            let mut full = fixed.clone();
            for (dim, place) in dims.iter().zip(at) {
                full[dim.axis] = dim.points[*place];
            }
            full
        };
        if value.statistic == Statistic::Runs {
            let first = place(&vec![0; dims.len()], &dims);
            let runs = (0..self.cells.runs(row, &first)).collect();
            let inner = dims.clone();
            dims.push(Dim { axis: RUNS, points: runs });
            return Array::over(dims, |at| {
                let (run, at) = at.split_last().map_or((0, at), |(run, at)| (*run, at));
                let values = self.cells.values(row, &place(at, &inner), value);
                values.get(run).copied().unwrap_or(f64::NAN)
            });
        }
        let over = dims.clone();
        Array::over(dims, |at| {
            let values = self.cells.values(row, &place(at, &over), value);
            of_runs(value.statistic, values)
        })
    }
}

/// Of two findings of one relation at different turns, the one that fails, or holds by less.
fn tighter(a: Shown, b: Shown) -> Shown {
    let places = (a.places.0 + b.places.0, a.places.1 + b.places.1);
    let holds = a.holds && b.holds;
    let first = match (a.holds, b.holds) {
        (true, false) => false,
        (false, true) => true,
        _ => a.margin <= b.margin,
    };
    Shown { places, holds, ..if first { a } else { b } }
}

/// At the points that `for` has chosen.
fn at_bound(array: Array, bound: &Bound) -> Array {
    let mut array = array;
    for (axis, point) in &bound.points {
        let Some(dim) = array.dims.iter().position(|dim| dim.axis == *axis) else { continue };
        let mut dims = array.dims.clone();
        let gone = dims.remove(dim);
        let Some(place) = gone.points.iter().position(|it| it == point) else {
            return Array::scalar(f64::NAN);
        };
        let old = array.clone();
        let points: Vec<usize> = (0..old.data.len())
            .filter(|flat| old.points_of(*flat).contains(&(*axis, gone.points[place])))
            .collect();
        array = Array { dims, data: points.into_iter().map(|flat| old.data[flat]).collect() };
    }
    array
}

/// Numbers of all points of an axis beside values over some: both over those.
fn aligned(arguments: Vec<Array>) -> Vec<Array> {
    let mut list = arguments;
    for at in 0..list.len() {
        for dim in list[at].dims.clone() {
            let narrow = list
                .iter()
                .flat_map(|other| &other.dims)
                .filter(|other| other.axis == dim.axis)
                .min_by_key(|other| other.points.len())
                .cloned();
            let Some(narrow) = narrow.filter(|narrow| narrow.points != dim.points) else {
                continue;
            };
            if !narrow.points.iter().all(|point| dim.points.contains(point)) {
                continue;
            }
            let old = list[at].clone();
            let kept = |flat: &usize| {
                let at = old.points_of(*flat);
                at.iter().any(|(axis, point)| *axis == dim.axis && narrow.points.contains(point))
            };
            let data = (0..old.data.len()).filter(kept).map(|flat| old.data[flat]).collect();
            let dims = old
                .dims
                .iter()
                .map(|it| if it.axis == dim.axis { narrow.clone() } else { it.clone() })
                .collect();
            list[at] = Array { dims, data };
        }
    }
    list
}

/// A statistic over the runs of a cell.
pub(super) fn of_runs(statistic: Statistic, mut values: Vec<f64>) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    match statistic {
        Statistic::Count => return values.len() as f64,
        Statistic::Mean if values.windows(2).all(|pair| pair[0] == pair[1]) => return values[0],
        Statistic::Mean => return mean(&values),
        Statistic::Variance => {
            let middle = mean(&values);
            let squares = values.iter().map(|value| (value - middle) * (value - middle));
            return squares.sum::<f64>() / (values.len() as f64 - 1.0).max(1.0);
        }
        _ => {}
    }
    values.sort_by(f64::total_cmp);
    let percent = match statistic {
        Statistic::Min => 0.0,
        Statistic::Max => 100.0,
        Statistic::Percentile(percent) => f64::from(percent),
        _ => 50.0,
    };
    percentile(&values, percent).unwrap_or(f64::NAN)
}
