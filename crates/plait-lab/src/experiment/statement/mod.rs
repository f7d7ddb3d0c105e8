//! Statements about the cells of an experiment, as claims make them.
//!
//! ```text
//! statement = [ "for" choice { "," choice } ":" ] expression        which is true or not
//! expression = relation { "and" relation }
//! relation  = sum { ("<" | "<=" | ">" | ">=" | "==" | "!=") sum }       50 <= x <= 56 is two
//! sum       = product { ("+" | "-") product }             a minus has blanks around it
//! product   = part { ("*" | "/") part }
//! part      = ["-"] NUMBER ["%"] | FUNCTION "(" expression { "," expression } ")"
//!           | "(" expression ")" | "{" AXIS ":" NUMBER { "," NUMBER } "}" | value
//! value     = ROW "." MEASURE [ "." PATH ] [ "." STATISTIC ] [ "[" choice { "," choice } "]" ]
//! choice    = AXIS | AXIS ("=" POINT { "|" POINT } | ("<" | "<=" | ">" | ">=" | "!=") POINT)
//! ```
//! A relation, `increasing(...)` and `decreasing(...)` are true or false; `count`, `share` and `first` take
//! one of these. If a value does not name an axis, it has all points of that axis, and a relation must hold
//! at each. `for` iterates over the points. `for row=a|b:` replaces `row` by each of the rows.

mod read;

use super::array::Array;
use super::function::Function;
use crate::error::Place;
use crate::relation::Relation;

/// A statement.
#[derive(Clone, PartialEq, Debug)]
pub struct Statement {
    /// The text as written.
    pub text: String,
    pub(in crate::experiment) each: Vec<Each>,
    pub(in crate::experiment) all: Vec<Relations>,
}

/// The values that `for` iterates over.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::experiment) enum Each {
    /// The points of an axis.
    Axis(usize, Vec<usize>),
    /// Rows.
    Row(Vec<usize>),
}

/// Expressions and the relations between neighbours. A single expression without a relation is true or false
/// by itself, such as `increasing(...)`.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::experiment) struct Relations {
    pub(in crate::experiment) sides: Vec<(String, Expression)>,
    pub(in crate::experiment) signs: Vec<Relation>,
}

#[derive(Clone, PartialEq, Debug)]
pub(in crate::experiment) enum Expression {
    Literal(Array),
    Value(Value),
    Call(Function, Vec<Expression>),
    /// The numbers of an axis' points, or of one of their fields.
    Points(usize, Option<String>),
    Sum(char, Box<Expression>, Box<Expression>),
    /// 1 if all relations hold, otherwise 0.
    Truth(Vec<Relations>),
}

#[derive(Clone, PartialEq, Debug)]
pub(in crate::experiment) struct Value {
    /// Position of the measure.
    pub(in crate::experiment) place: Place,
    /// The row; `None` for the row of `for`.
    pub(in crate::experiment) row: Option<usize>,
    pub(in crate::experiment) measure: String,
    pub(in crate::experiment) statistic: Statistic,
    /// The selected points by axis. An axis with one selected point is not an axis of the result.
    pub(in crate::experiment) chosen: Vec<(usize, Vec<usize>)>,
}

/// A statistic over the runs of a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::experiment) enum Statistic {
    Mean,
    Median,
    Min,
    Max,
    Count,
    Variance,
    /// This percentile.
    Percentile(u8),
    /// Each run separately.
    Runs,
}

impl Statistic {
    pub(in crate::experiment) const NAMES: &'static [&'static str] = &[
        "mean", "median", "min", "max", "n", "var", "p5", "p25", "p75", "p90", "p95", "p99", "runs",
    ];

    /// Returns true for the largest and the least value of the runs.
    pub(in crate::experiment) const fn is_extreme(self) -> bool {
        matches!(self, Statistic::Min | Statistic::Max)
    }

    fn named(name: &str) -> Option<Statistic> {
        Some(match name {
            "mean" => Statistic::Mean,
            "median" => Statistic::Median,
            "min" => Statistic::Min,
            "max" => Statistic::Max,
            "n" => Statistic::Count,
            "var" => Statistic::Variance,
            "runs" => Statistic::Runs,
            _ if Statistic::NAMES.contains(&name) => {
                Statistic::Percentile(name.get(1..)?.parse().ok()?)
            }
            _ => return None,
        })
    }
}

impl Statement {
    /// Returns true if a relation bounds this largest (or least) value of the runs of a cell from above (or
    /// below). The relation is then a statement about every run.
    pub(in crate::experiment) fn bounds_every_run(&self, value: &Value) -> bool {
        self.all.iter().any(|relations| {
            relations.signs.iter().enumerate().any(|(at, sign)| {
                use Relation::{AtLeast, AtMost, Equal, Greater, Less};
                let sides = [&relations.sides[at].1, &relations.sides[at + 1].1];
                let has = |side: &Expression| side.has(value);
                match (value.statistic, sign) {
                    (Statistic::Max, Less | AtMost) | (Statistic::Min, Greater | AtLeast) => {
                        has(sides[0])
                    }
                    (Statistic::Max, Greater | AtLeast) | (Statistic::Min, Less | AtMost) => {
                        has(sides[1])
                    }
                    (Statistic::Max | Statistic::Min, Equal) => has(sides[0]) || has(sides[1]),
                    _ => false,
                }
            })
        })
    }

    /// Returns true if the statement names a measure for which `is` is true.
    pub(in crate::experiment) fn names(&self, is: &dyn Fn(&str) -> bool) -> bool {
        self.all.iter().flat_map(|relations| &relations.sides).any(|(_, side)| side.names(is))
    }
}

impl Relations {
    fn is_true_or_not(&self) -> bool {
        !self.signs.is_empty() || self.sides.iter().all(|(_, side)| side.is_true_or_not())
    }
}

impl Expression {
    /// Returns true if the value is 1 or 0.
    fn is_true_or_not(&self) -> bool {
        match self {
            Expression::Truth(_) => true,
            Expression::Call(function, _) => function.judges(),
            _ => false,
        }
    }

    /// Returns true if it is a number from 0 to 1.
    fn is_share(&self) -> bool {
        match self {
            Expression::Literal(array) => array.data.iter().all(|it| (0.0..=1.0).contains(it)),
            _ => false,
        }
    }

    /// Returns true if the expression contains this value.
    fn has(&self, value: &Value) -> bool {
        match self {
            Expression::Literal(_) | Expression::Points(..) => false,
            Expression::Value(other) => other == value,
            Expression::Sum(_, left, right) => left.has(value) || right.has(value),
            Expression::Call(_, arguments) => arguments.iter().any(|it| it.has(value)),
            Expression::Truth(all) => {
                all.iter().flat_map(|relations| &relations.sides).any(|(_, side)| side.has(value))
            }
        }
    }

    fn names(&self, is: &dyn Fn(&str) -> bool) -> bool {
        match self {
            Expression::Literal(_) | Expression::Points(..) => false,
            Expression::Value(value) => is(&value.measure),
            Expression::Sum(_, left, right) => left.names(is) || right.names(is),
            Expression::Call(_, arguments) => arguments.iter().any(|it| it.names(is)),
            Expression::Truth(all) => {
                all.iter().flat_map(|relations| &relations.sides).any(|(_, side)| side.names(is))
            }
        }
    }
}
