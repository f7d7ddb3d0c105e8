//! Evaluates statements over cells.

use super::array::{Array, Dim, RUNS, aligned};
use super::finding::{Atom, Group, RelationResult, tighter};
use super::function::{Function, of_runs};
use super::names::Names;
use super::statement::{Each, Expression, Relations, Statement, Statistic, Value};
use crate::relation::Relation;

/// Provides the numbers of cells.
pub(super) trait Cells {
    /// Returns the points of an axis at which a row is run; `None` for all points.
    fn only(&self, row: usize, axis: usize) -> Option<&[usize]>;
    /// Returns the number of runs of a row at these points.
    fn runs(&self, row: usize, at: &[usize]) -> usize;
    /// Returns the measure of every run of a cell; empty if a run is missing or did not finish.
    fn values(&self, row: usize, at: &[usize], value: &Value) -> Vec<f64>;
    /// Returns the point that replaces `point`; a resample of networks replaces points.
    fn point(&self, _axis: usize, point: usize) -> usize {
        point
    }
    /// Returns the share of runs for which a relation holds, if it holds for `held` of `all`.
    fn share(&self, held: usize, all: usize) -> f64 {
        held as f64 / all as f64
    }
}

/// A relation of a statement in one iteration of `for`, at all of its points.
struct Finding<'s> {
    left: &'s str,
    right: &'s str,
    sign: Option<Relation>,
    /// True if one atom that holds is enough.
    any: bool,
    /// The points that `for` selected, in words.
    bound: String,
    dims: Vec<Dim>,
    atoms: Vec<Atom>,
    rights: Vec<f64>,
    /// All values of a list that is judged as a whole.
    list: Vec<f64>,
}

/// The row and the points that `for` selected.
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
    /// Returns each relation of a statement at the point with the smallest margin.
    pub(super) fn judge(&self, statement: &Statement) -> Vec<RelationResult> {
        self.judge_by(statement, &|_| 0.0)
    }

    /// Returns each relation at the point with the least confidence; `confidence` returns that of an atom.
    pub(super) fn judge_by(
        &self,
        statement: &Statement,
        confidence: &dyn Fn(usize) -> f64,
    ) -> Vec<RelationResult> {
        let mut shown: Vec<Option<RelationResult>> = Vec::new();
        let mut before = 0;
        for turn in self.findings(statement) {
            for (index, finding) in turn.into_iter().enumerate() {
                let found = self.shown(&finding, before, confidence);
                before += finding.atoms.len();
                if shown.len() <= index {
                    shown.push(None);
                }
                shown[index] = Some(match shown[index].take() {
                    None => found,
                    Some(known) => tighter(known, found),
                });
            }
        }
        shown.into_iter().flatten().collect()
    }

    /// Returns every relation of a statement at each of its points, always in the same order. A group holds
    /// if all of its atoms hold, or any of them if `any` is set.
    pub(super) fn groups(&self, statement: &Statement) -> Vec<Group> {
        let findings = self.findings(statement).into_iter().flatten();
        let sample = |dim: &Dim| self.names.axes.get(dim.axis).is_some_and(|it| it.is_sample());
        let group = |Finding { any, dims, atoms, .. }: Finding<'_>| Group {
            any,
            over_networks: dims.iter().any(sample),
            atoms,
        };
        findings.map(group).collect()
    }

    /// Returns the relations of a statement, by iteration of `for`.
    fn findings<'s>(&self, statement: &'s Statement) -> Vec<Vec<Finding<'s>>> {
        let turn = |bound: &Bound| {
            let all = statement.all.iter();
            all.flat_map(|relations| self.relations(relations, bound)).collect()
        };
        self.turns(statement).iter().map(turn).collect()
    }

    fn shown(
        &self,
        finding: &Finding<'_>,
        before: usize,
        confidence: &dyn Fn(usize) -> f64,
    ) -> RelationResult {
        let atoms = &finding.atoms;
        let order = |at: &usize| (confidence(before + *at), atoms[*at].holds, atoms[*at].margin);
        let worst = (0..atoms.len()).min_by(|a, b| {
            let order = order(a).partial_cmp(&order(b)).unwrap_or(core::cmp::Ordering::Equal);
            if finding.any { order.reverse() } else { order }
        });
        let flat = worst.unwrap_or(0);
        let at = Array { dims: finding.dims.clone(), data: Vec::new() };
        let place = match finding.sign {
            Some(_) => self.places(&at.points_of(flat)),
            None => String::new(),
        };
        let texts = [finding.bound.clone(), place].into_iter().filter(|text| !text.is_empty());
        let held = atoms.iter().filter(|atom| atom.holds).count();
        let holds = if finding.any { held > 0 } else { held == atoms.len() };
        let places = match finding.sign {
            Some(_) if !finding.any => (held, atoms.len()),
            _ => (usize::from(holds), 1),
        };
        RelationResult {
            left: finding.left.to_owned(),
            left_value: atoms.get(flat).map_or(f64::NAN, |atom| atom.left),
            list: finding.list.clone(),
            sign: finding.sign.map_or("", Relation::sign),
            right: finding.right.to_owned(),
            right_value: finding.rights.get(flat).copied().unwrap_or(f64::NAN),
            place: texts.collect::<Vec<_>>().join(", "),
            holds,
            places,
            margin: atoms.get(flat).map_or(f64::NEG_INFINITY, |atom| atom.margin),
            confidence: confidence(before + flat),
            atom: before + flat,
        }
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

    fn relations<'s>(&self, relations: &'s Relations, bound: &Bound) -> Vec<Finding<'s>> {
        let values: Vec<Array> =
            relations.sides.iter().map(|(_, side)| self.value(side, bound)).collect();
        if relations.signs.is_empty() {
            return vec![self.alone(&relations.sides[0], &values[0], bound)];
        }
        let pairs = relations.signs.iter().enumerate();
        pairs
            .map(|(at, sign)| {
                let (left, right) = (&relations.sides[at], &relations.sides[at + 1]);
                let mut sides = [values[at].clone(), values[at + 1].clone()];
                let any = self.unfold(*sign, [&left.1, &right.1], &mut sides, bound);
                let finding = self.compared(*sign, [&left.0, &right.0], &sides, bound);
                Finding { any, ..finding }
            })
            .collect()
    }

    /// Replaces an extreme by its values. A bound on the largest or least of several values is a bound on
    /// each of them, or on any of them. Returns true if any is enough.
    fn unfold(
        &self,
        sign: Relation,
        sides: [&Expression; 2],
        values: &mut [Array; 2],
        bound: &Bound,
    ) -> bool {
        use Relation::{AtLeast, AtMost, Greater, Less};
        for at in [0, 1] {
            let Expression::Call(function, arguments) = sides[at] else { continue };
            let ([of], Function::Max | Function::Min) = (arguments.as_slice(), *function) else {
                continue;
            };
            let below = matches!((sign, at), (Less | AtMost, 0) | (Greater | AtLeast, 1));
            let above = matches!((sign, at), (Greater | AtLeast, 0) | (Less | AtMost, 1));
            // With several values on the other side, the bound would be tested at each of them.
            if !(below || above) || !values[1 - at].dims.is_empty() {
                continue;
            }
            values[at] = self.value(of, bound);
            return if *function == Function::Max { above } else { below };
        }
        false
    }

    fn compared<'s>(
        &self,
        sign: Relation,
        texts: [&'s str; 2],
        [left, right]: &[Array; 2],
        bound: &Bound,
    ) -> Finding<'s> {
        let margins = left.zip(right, |a, b| sign.margin(a, b));
        let margins = margins.unwrap_or_else(|| Array::scalar(f64::NEG_INFINITY));
        let wide = |side: &Array| {
            let same = margins.zip(side, |_, value| value);
            same.filter(|wide| wide.dims == margins.dims).map(|wide| wide.data)
        };
        let missing = || vec![f64::NAN; margins.data.len()];
        let lefts = wide(left).unwrap_or_else(missing);
        let rights = wide(right).unwrap_or_else(missing);
        let sides = lefts.iter().zip(&rights).zip(&margins.data);
        let atom = |((left, right), margin): ((&f64, &f64), &f64)| Atom {
            holds: sign.holds(*left, *right),
            margin: *margin,
            left: *left,
            absent: left.is_nan() || right.is_nan(),
        };
        Finding {
            left: texts[0],
            right: texts[1],
            sign: Some(sign),
            any: false,
            bound: self.bound_text(bound),
            atoms: sides.map(atom).collect(),
            dims: margins.dims,
            rights,
            list: Vec::new(),
        }
    }

    fn places(&self, points: &[(usize, usize)]) -> String {
        points.iter().map(|point| self.place(*point)).collect::<Vec<_>>().join(", ")
    }

    /// Evaluates an expression without a relation, such as `increasing(...)`, as one atom for each pair of
    /// neighbours.
    fn alone<'s>(
        &self,
        (text, side): &'s (String, Expression),
        value: &Array,
        bound: &Bound,
    ) -> Finding<'s> {
        let mut list = Vec::new();
        let mut margins = None;
        if let Expression::Call(function, arguments) = side {
            let arguments: Vec<Array> = arguments.iter().map(|it| self.value(it, bound)).collect();
            margins = function.margins(&arguments);
            list = arguments.into_iter().next().map(|it| it.data).unwrap_or_default();
        }
        let truth = |value: &f64| if *value > 0.0 { 1.0 } else { -1.0 };
        let margins = margins.unwrap_or_else(|| value.data.iter().map(truth).collect());
        let left = value.data.first().copied().unwrap_or(f64::NAN);
        let absent = left.is_nan() || list.iter().any(|it| it.is_nan());
        let atom = |margin: f64| Atom { holds: margin >= 0.0, margin, left, absent };
        Finding {
            left: text,
            right: "",
            sign: None,
            any: false,
            bound: self.bound_text(bound),
            dims: Vec::new(),
            atoms: margins.into_iter().map(atom).collect(),
            rights: Vec::new(),
            list,
        }
    }

    /// Returns the array of an expression. Arguments with different points give a missing value.
    fn value(&self, expression: &Expression, bound: &Bound) -> Array {
        let missing = || Array::scalar(f64::NAN);
        match expression {
            Expression::Literal(array) => at_bound(array.clone(), bound),
            Expression::Value(value) => self.cells_of(value, bound),
            Expression::Points(axis, field) => {
                let all = &self.names.axes[*axis].points;
                let points = (0..all.len()).collect();
                let array = Array::over(vec![Dim { axis: *axis, points }], |at| {
                    let point = self.cells.point(*axis, at[0]);
                    all[point].number(field.as_deref()).unwrap_or(f64::NAN)
                });
                at_bound(array, bound)
            }
            Expression::Sum(sign, left, right) => {
                let of = |a: f64, b: f64| match sign {
                    '+' => a + b,
                    '-' => a - b,
                    '*' => a * b,
                    // A division by zero has no value, so no relation with it holds.
                    _ if b == 0.0 => f64::NAN,
                    _ => a / b,
                };
                let (left, right) = (self.value(left, bound), self.value(right, bound));
                left.zip(&right, of).unwrap_or_else(missing)
            }
            Expression::Call(function, arguments) => {
                let arguments: Vec<Array> =
                    arguments.iter().map(|it| self.value(it, bound)).collect();
                // Arrays over all points of an axis are restricted to the points of the other arguments.
                let arguments = aligned(arguments);
                if let Some(share) = self.share_of_runs(*function, &arguments) {
                    return share;
                }
                function.of(&arguments).unwrap_or_else(missing)
            }
            Expression::Truth(all) => {
                let each = all.iter().map(|relations| self.truth(relations, bound));
                each.reduce(|a, b| a.zip(&b, f64::min).unwrap_or_else(missing))
                    .unwrap_or_else(missing)
            }
        }
    }

    /// Returns `share(relation)` or `count(relation)` over runs; `None` if the argument has other axes.
    fn share_of_runs(&self, function: Function, arguments: &[Array]) -> Option<Array> {
        let of = arguments.first()?;
        let [Dim { axis: RUNS, .. }] = of.dims.as_slice() else { return None };
        let held = of.data.iter().filter(|held| **held > 0.0).count();
        let share = self.cells.share(held, of.data.len());
        match function {
            Function::Share => Some(Array::scalar(share)),
            Function::Count => Some(Array::scalar(share * of.data.len() as f64)),
            _ => None,
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

/// Restricts an array to the points that `for` selected.
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
