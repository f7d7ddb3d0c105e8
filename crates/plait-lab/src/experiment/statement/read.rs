//! Reads statements by their grammar.

use super::super::array::{Array, Dim};
use super::super::function::{FUNCTIONS, Function};
use super::super::names::Names;
use super::{Each, Expression, Relations, Statement, Statistic, Value};
use crate::error::{Fault, Place, ScenarioError};
use crate::relation::Relation;

/// The shape of a statement, for error messages.
const GRAMMAR: &str =
    "such as `for n>10: lrf.message_delay_ms[rtt2=100ms] >= 2 * tcp.message_delay_ms`";
/// Largest number of numbers, values, brackets and calls in a statement, because nested parts are read by
/// recursion.
const MOST_PARTS: usize = 200;

type Result<T> = core::result::Result<T, ScenarioError>;

impl Statement {
    /// Reads a statement about cells with these names.
    ///
    /// # Errors
    /// If the statement violates the grammar or uses an unknown name.
    pub(in crate::experiment) fn parse(
        text: &str,
        locate: &dyn Fn(usize) -> Place,
        names: &Names<'_>,
    ) -> Result<Statement> {
        let mut reader =
            Reader { rest: text.trim_start(), text, locate, names, row: false, parts: 0 };
        let mut each = Vec::new();
        if reader.take_word("for") {
            loop {
                each.push(reader.each()?);
                if !reader.take(",") {
                    break;
                }
            }
            reader.expect(":")?;
        }
        let all = reader.all(true)?;
        if !reader.rest.is_empty() {
            return Err(reader.refuse("a relation, `and` or the end is expected before this"));
        }
        Ok(Statement { text: text.split_whitespace().collect::<Vec<_>>().join(" "), each, all })
    }
}

/// Reads a statement from its start to its end.
struct Reader<'a> {
    rest: &'a str,
    text: &'a str,
    locate: &'a dyn Fn(usize) -> Place,
    names: &'a Names<'a>,
    /// True if `row` is the row of `for`.
    row: bool,
    /// Number of parts read so far.
    parts: usize,
}

impl<'a> Reader<'a> {
    fn refuse(&self, problem: &str) -> ScenarioError {
        let given = if self.rest.is_empty() { self.text.trim() } else { self.rest };
        let given = given.split_whitespace().collect::<Vec<_>>().join(" ");
        let place = (self.locate)(self.text.len() - self.rest.len());
        ScenarioError::new(&place, Fault::Invalid, &given, problem).allow(GRAMMAR)
    }

    /// Returns the position of a word that was just read or is next.
    fn place(&self, word: &str) -> Place {
        let read = self.text.len() - self.rest.len();
        let ahead = self.rest.starts_with(word);
        let before = self.text[..read].rfind(word).filter(|_| !ahead);
        (self.locate)(before.unwrap_or(read))
    }

    fn unknown<'b>(
        &self,
        what: &str,
        given: &str,
        names: impl IntoIterator<Item = &'b str>,
    ) -> ScenarioError {
        ScenarioError::unknown(&self.place(given), what, given, names)
    }

    fn take(&mut self, sign: &str) -> bool {
        let Some(rest) = self.rest.strip_prefix(sign) else { return false };
        self.rest = rest.trim_start();
        true
    }

    fn expect(&mut self, sign: &str) -> Result<()> {
        if self.take(sign) { Ok(()) } else { Err(self.refuse(&format!("`{sign}` is missing"))) }
    }

    /// Returns the next word: letters, digits, `_` and, inside a word, `-`.
    fn peek_word(&self) -> &'a str {
        let bytes = self.rest.as_bytes();
        let part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let mut end = 0;
        while let Some(byte) = bytes.get(end) {
            let joins = *byte == b'-' && end > 0 && bytes.get(end + 1).is_some_and(|it| part(*it));
            if !part(*byte) && !joins {
                break;
            }
            end += 1;
        }
        &self.rest[..end]
    }

    fn word(&mut self) -> Result<&'a str> {
        let word = self.peek_word();
        if word.is_empty() {
            return Err(self.refuse("a name is expected before this"));
        }
        self.rest = &self.rest[word.len()..];
        Ok(word)
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.peek_word() == word;
        if found {
            self.rest = self.rest[word.len()..].trim_start();
        }
        found
    }

    fn each(&mut self) -> Result<Each> {
        if self.peek_word() == "row" {
            self.take_word("row");
            self.expect("=")?;
            let mut rows = Vec::new();
            loop {
                let name = self.word()?;
                rows.push(self.row_named(name)?);
                self.rest = self.rest.trim_start();
                if !self.take("|") {
                    break;
                }
            }
            self.row = true;
            return Ok(Each::Row(rows));
        }
        let (axis, points) = self.choice()?;
        Ok(Each::Axis(axis, points))
    }

    /// Reads an axis and its points.
    fn choice(&mut self) -> Result<(usize, Vec<usize>)> {
        let name = self.word()?;
        let axis = self.names.axis(name).ok_or_else(|| {
            self.unknown("axis", name, self.names.axes.iter().map(|it| it.name.as_str()))
        })?;
        self.rest = self.rest.trim_start();
        let all = &self.names.axes[axis].points;
        if let Some((text, sign)) = Relation::leading(self.rest) {
            self.take(text);
            let at = self.point(axis)?;
            let limit = all[at].number(None);
            let kept = |index: usize| match sign {
                Relation::Equal => index == at,
                Relation::Differs => index != at,
                _ => all[index].number(None).zip(limit).is_some_and(|(a, b)| sign.holds(a, b)),
            };
            let points: Vec<usize> = (0..all.len()).filter(|index| kept(*index)).collect();
            if points.is_empty() {
                return Err(self.refuse("no point of the axis is left"));
            }
            return Ok((axis, points));
        }
        if !self.take("=") {
            return Ok((axis, (0..all.len()).collect()));
        }
        let mut points = Vec::new();
        loop {
            points.push(self.point(axis)?);
            if !self.take("|") {
                break;
            }
        }
        Ok((axis, points))
    }

    /// Reads a point of an axis.
    fn point(&mut self, axis: usize) -> Result<usize> {
        let end = self.rest.find(['|', ',', ']', ':']).unwrap_or(self.rest.len());
        // A point may contain a colon, such as `download:8KiB`. The colon that ends a `for` is followed by a
        // blank.
        let end = match self.rest[end..].strip_prefix(':') {
            Some(after) if !after.starts_with([' ', '\n']) && !after.is_empty() => {
                end + 1 + after.find(['|', ',', ']', ':']).unwrap_or(after.len())
            }
            _ => end,
        };
        let text = self.rest[..end].trim();
        let axis = &self.names.axes[axis];
        let at = axis.position(text).ok_or_else(|| {
            let what = format!("point of the axis `{}`", axis.name);
            self.unknown(&what, text, axis.points.iter().map(|it| it.text.as_str()))
        })?;
        self.rest = self.rest[end..].trim_start();
        Ok(at)
    }

    /// Reads relations joined by `and`. If `judged` is set, or if there are several, each must be true or
    /// false; a number is refused.
    fn all(&mut self, judged: bool) -> Result<Vec<Relations>> {
        let mut starts = vec![self.rest];
        let mut list = vec![self.relations()?];
        while self.take_word("and") {
            starts.push(self.rest);
            list.push(self.relations()?);
        }
        if judged || list.len() > 1 {
            let number = list.iter().position(|it| !it.is_true_or_not());
            if let Some(at) = number {
                return Err(self.no_relation(starts[at]));
            }
        }
        Ok(list)
    }

    fn no_relation(&self, start: &'a str) -> ScenarioError {
        let problem = "a number is neither true nor false: a relation is expected";
        Reader { rest: start, ..*self }.refuse(problem)
    }

    fn relations(&mut self) -> Result<Relations> {
        let mut sides = vec![self.side()?];
        let mut signs = Vec::new();
        while let Some((text, sign)) = Relation::leading(self.rest) {
            self.take(text);
            signs.push(sign);
            sides.push(self.side()?);
        }
        Ok(Relations { sides, signs })
    }

    fn side(&mut self) -> Result<(String, Expression)> {
        let before = self.rest;
        let expression = self.sum()?;
        let text = before[..before.len() - self.rest.len()].split_whitespace();
        Ok((text.collect::<Vec<_>>().join(" "), expression))
    }

    fn sum(&mut self) -> Result<Expression> {
        let mut left = self.product()?;
        while let Some(sign) = ['+', '-'].into_iter().find(|sign| self.rest.starts_with(*sign)) {
            self.take(sign.encode_utf8(&mut [0; 4]));
            left = Expression::Sum(sign, left.into(), self.product()?.into());
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Expression> {
        let mut left = self.part()?;
        while let Some(sign) = ['*', '/'].into_iter().find(|sign| self.rest.starts_with(*sign)) {
            self.take(sign.encode_utf8(&mut [0; 4]));
            left = Expression::Sum(sign, left.into(), self.part()?.into());
        }
        Ok(left)
    }

    fn part(&mut self) -> Result<Expression> {
        self.parts += 1;
        if self.parts > MOST_PARTS {
            return Err(
                self.refuse(&format!("more than {MOST_PARTS} parts: make two claims of it"))
            );
        }
        if self.take("-") {
            let zero = Expression::Literal(Array::scalar(0.0));
            return Ok(Expression::Sum('-', zero.into(), self.part()?.into()));
        }
        if self.take("(") {
            let inner = self.truth()?;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.take("{") {
            return self.literal();
        }
        if self.rest.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(Expression::Literal(Array::scalar(self.number()?)));
        }
        let word = self.peek_word();
        if self.rest[word.len()..].starts_with('(') {
            return self.call();
        }
        self.value().map(Expression::Value)
    }

    /// Reads an expression; relations evaluate to 1 or 0.
    fn truth(&mut self) -> Result<Expression> {
        let mut all = self.all(false)?;
        match all.as_mut_slice() {
            [only] if only.signs.is_empty() => Ok(only.sides.swap_remove(0).1),
            _ => Ok(Expression::Truth(all)),
        }
    }

    fn number(&mut self) -> Result<f64> {
        let digits = |c: char| c.is_ascii_digit() || c == '.';
        let end = self.rest.find(|c| !digits(c)).unwrap_or(self.rest.len());
        let number: f64 = match self.rest[..end].parse() {
            Ok(number) => number,
            Err(_) => return Err(self.refuse("not a number")),
        };
        self.rest = self.rest[end..].trim_start();
        Ok(if self.take("%") { number / 100.0 } else { number })
    }

    /// Reads `AXIS: NUMBER, ... }`.
    fn literal(&mut self) -> Result<Expression> {
        let (axis, points) = self.choice()?;
        self.expect(":")?;
        let mut data = vec![self.number()?];
        while self.take(",") {
            data.push(self.number()?);
        }
        self.expect("}")?;
        if data.len() != points.len() {
            let problem = format!("{} numbers for {} points", data.len(), points.len());
            return Err(self.refuse(&problem));
        }
        Ok(Expression::Literal(Array { dims: vec![Dim { axis, points }], data }))
    }

    fn call(&mut self) -> Result<Expression> {
        let name = self.word()?;
        self.take("(");
        if name == "at" {
            return self.at();
        }
        let Some(function) = Function::named(name) else {
            let names = FUNCTIONS.iter().map(|(name, ..)| *name).chain(["at"]);
            return Err(self.unknown("function", name, names));
        };
        let start = self.rest;
        let mut arguments = vec![self.truth()?];
        if function.counts() && !arguments[0].is_true_or_not() {
            return Err(self.no_relation(start));
        }
        while self.take(",") {
            let start = self.rest;
            let argument = self.truth()?;
            if function == Function::Quantile && !argument.is_share() {
                let problem = "a quantile is a share, from 0% to 100%";
                return Err(Reader { rest: start, ..*self }.refuse(problem));
            }
            arguments.push(argument);
        }
        self.expect(")")?;
        if !function.takes(arguments.len()) {
            return Err(self.refuse(&format!("{name} takes {}", function.arguments())));
        }
        Ok(Expression::Call(function, arguments))
    }

    /// Reads `at(AXIS)` or `at(AXIS.FIELD)`.
    fn at(&mut self) -> Result<Expression> {
        let (axis, _) = self.choice()?;
        let field = if self.take(".") { Some(self.word()?.to_owned()) } else { None };
        self.rest = self.rest.trim_start();
        self.expect(")")?;
        if self.names.axes[axis].points.iter().any(|it| it.number(field.as_deref()).is_none()) {
            return Err(self.refuse("not every point of the axis is a number"));
        }
        Ok(Expression::Points(axis, field))
    }

    fn row_named(&self, name: &str) -> Result<usize> {
        let rows = || self.names.rows.iter().map(String::as_str);
        rows().position(|row| row == name).ok_or_else(|| self.unknown("row", name, rows()))
    }

    fn value(&mut self) -> Result<Value> {
        let name = self.word()?;
        let row = match name {
            "row" if self.row => None,
            _ => Some(self.row_named(name)?),
        };
        let mut parts = Vec::new();
        while self.rest.starts_with('.') {
            self.rest = &self.rest[1..];
            parts.push(self.word()?);
        }
        self.rest = self.rest.trim_start();
        let Some((measure, more)) = parts.split_first() else {
            return Err(self.refuse("a row is followed by `.MEASURE`"));
        };
        let place = self.place(measure);
        let (measure, more) = self.names.measure(measure, more, &place)?;
        let statistic = match more {
            [] => Statistic::Median,
            [name] => Statistic::named(name)
                .ok_or_else(|| self.unknown("statistic", name, Statistic::NAMES.iter().copied()))?,
            [_, extra, ..] => return Err(self.unknown("part of a value", extra, [])),
        };
        let mut chosen = Vec::new();
        if self.take("[") {
            loop {
                let start = self.rest;
                let choice = self.choice()?;
                if chosen.iter().any(|(axis, _)| *axis == choice.0) {
                    let problem = "the axis is given twice: write its points with `|` between";
                    return Err(Reader { rest: start, ..*self }.refuse(problem));
                }
                chosen.push(choice);
                if !self.take(",") {
                    break;
                }
            }
            self.expect("]")?;
        }
        Ok(Value { place, row, measure, statistic, chosen })
    }
}
