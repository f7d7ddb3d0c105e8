//! Expectations: `ecf.completion_ms.p95 < minrtt.completion_ms.p95 * 1.05 and ecf.speedup > 1`.
//!
//! ```text
//! expectation = comparison { "and" comparison }
//! comparison  = term ("<" | "<=" | ">" | ">=" | "==" | "!=") term
//! term        = factor { "*" factor }
//! factor      = number | value
//! value       = ROW "." MEASURE [ "." STATISTIC ]        without a statistic: the median
//!             | ROW "." ("speedup_vs_best_path" | "aggregation_benefit" | "reinjected_share"
//!             | "retransmitted_share")
//!             | ROW ".path_share." PATH                  of the first transmissions
//!             | ROW ".path_sent_share." PATH             of all bytes sent, with copies
//!             | ROW ".path_bytes." PATH                  all bytes sent, with copies
//!             | ROW ".rtt_ms." PATH
//!             | ROW ".message_delay_ms." ("p50" | "p99" | "worst")     over the messages of all runs
//! ROW         = SCHEDULER [ "/" CC ]                     the controller if there are several
//! ```

use crate::error::{Fault, Place, ScenarioError};
use crate::relation::Relation;
use crate::report::{Compared, Messages, Report, Row, Verdict};
use crate::stats::STATISTICS;
use std::fmt;

/// Form of an expectation, for error messages.
const GRAMMAR: &str = "ROW.MEASURE.STATISTIC OP ROW.MEASURE.STATISTIC or a number, such as `ecf.completion_ms.p95 < \
     minrtt.completion_ms.p95 * 1.05`; several joined by `and`";
/// Numbers of a row that are not measures and have no statistics.
const ROW_NUMBERS: &[&str] =
    &["speedup_vs_best_path", "aggregation_benefit", "reinjected_share", "retransmitted_share"];
/// The measure whose values are pooled over runs.
const OF_MESSAGES: &str = "message_delay_ms";
/// A statistic of pooled messages: the name in the table of a comparison, and the value.
type Pooled = (&'static str, fn(&Messages) -> f64);
/// Statistics of the pooled messages of all runs.
const POOLED: [Pooled; 3] =
    [("p50", |it| it.median_ms), ("p99", |it| it.p99_ms), ("worst", |it| it.max_ms)];
/// Numbers of a path in a row, as help shows them.
const PATH_NUMBERS: [&str; 4] =
    ["path_share.PATH", "path_sent_share.PATH", "path_bytes.PATH", "rtt_ms.PATH"];

/// The names that an expectation may use.
#[derive(Clone, Default, Debug)]
pub struct Names {
    /// Schedulers in canonical form, and `tcp:PATH`.
    pub rows: Vec<String>,
    /// Congestion controllers in canonical form.
    pub ccs: Vec<String>,
    /// Measures.
    pub measures: Vec<String>,
    /// Paths.
    pub paths: Vec<String>,
    /// Returns the canonical form of a row that `rows` does not contain as written.
    pub canonical: Option<fn(&str) -> Option<String>>,
}

/// A statement about a report.
#[derive(Clone, PartialEq, Debug)]
pub struct Expectation {
    text: String,
    comparisons: Vec<Comparison>,
}

#[derive(Clone, PartialEq, Debug)]
struct Comparison {
    left: Term,
    relation: Relation,
    right: Term,
}

/// A product.
#[derive(Clone, PartialEq, Debug)]
struct Term {
    text: String,
    factors: Vec<Factor>,
}

#[derive(Clone, PartialEq, Debug)]
enum Factor {
    Number(f64),
    Value { row: String, cc: Option<String>, number: Number },
}

/// A number of a row.
#[derive(Clone, PartialEq, Debug)]
enum Number {
    Measure {
        name: String,
        statistic: &'static str,
    },
    /// A number of [`Traffic::by_path`], and the name of the path.
    OfPath(&'static str, String),
    /// A statistic of [`POOLED`].
    Messages(&'static str),
    Plain(&'static str),
}

impl Expectation {
    /// Reads an expectation.
    ///
    /// # Errors
    /// If the text violates the grammar, or names a row, measure, statistic or path that the scenario does
    /// not have.
    pub fn parse(text: &str, place: &Place, names: &Names) -> Result<Expectation, ScenarioError> {
        let malformed = |given: &str, problem| {
            ScenarioError::new(place, Fault::Invalid, given, problem).allow(GRAMMAR)
        };
        let tokens = tokens(text);
        let mut comparisons = Vec::new();
        for part in tokens.split(|token| *token == "and") {
            let mut relations = part.iter().enumerate().filter_map(|(at, token)| {
                Relation::ALL.iter().find(|(sign, _)| sign == token).map(|found| (at, found.1))
            });
            let (Some((at, relation)), None) = (relations.next(), relations.next()) else {
                let given = if part.is_empty() { text.trim().to_owned() } else { part.join(" ") };
                return Err(malformed(&given, "not one comparison"));
            };
            let side = |tokens: &[&str]| term(tokens, place, names);
            comparisons.push(Comparison {
                left: side(&part[..at])?,
                relation,
                right: side(&part[at + 1..])?,
            });
        }
        Ok(Expectation { text: text.trim().to_owned(), comparisons })
    }

    /// Evaluates the expectation with the values of a report.
    #[must_use]
    pub fn evaluate(&self, report: &Report) -> Verdict {
        let comparisons: Vec<Compared> = self
            .comparisons
            .iter()
            .map(|comparison| {
                let left_value = comparison.left.value(report);
                let right_value = comparison.right.value(report);
                let holds = match (left_value, right_value) {
                    (Some(left), Some(right)) => comparison.relation.holds(left, right),
                    _ => false,
                };
                Compared {
                    left: comparison.left.text.clone(),
                    left_value,
                    relation: comparison.relation.sign().to_owned(),
                    right: comparison.right.text.clone(),
                    right_value,
                    holds,
                }
            })
            .collect();
        let holds = comparisons.iter().all(|compared| compared.holds);
        Verdict { expectation: self.text.clone(), holds, comparisons }
    }
}

/// Prints the text as given.
impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Term {
    fn value(&self, report: &Report) -> Option<f64> {
        self.factors.iter().try_fold(1.0, |product, factor| Some(product * factor.value(report)?))
    }
}

impl Factor {
    fn value(&self, report: &Report) -> Option<f64> {
        let (row, cc, number) = match self {
            Factor::Number(number) => return Some(*number),
            Factor::Value { row, cc, number } => (row, cc, number),
        };
        let row = report.rows.iter().find(|candidate| {
            candidate.scheduler == *row && cc.as_ref().is_none_or(|cc| candidate.cc == *cc)
        })?;
        // The values of unfinished runs are unknown, and may differ from the mean of the others.
        if row.incomplete > 0 {
            return None;
        }
        number.of(row)
    }
}

impl Number {
    fn of(&self, row: &Row) -> Option<f64> {
        match self {
            Number::Measure { name, statistic } => row.measures.get(name)?.statistic(statistic),
            Number::OfPath(name, path) => {
                let (_, of_paths) = row.traffic.by_path().into_iter().find(|it| it.0 == *name)?;
                of_paths.get(path).copied()
            }
            Number::Messages(name) => {
                let (_, of) = POOLED.iter().find(|known| known.0 == *name)?;
                row.messages.as_ref().map(of)
            }
            Number::Plain("aggregation_benefit") => row.standing.aggregation_benefit,
            Number::Plain("reinjected_share") => row.traffic.reinjected_share,
            Number::Plain("retransmitted_share") => row.traffic.retransmitted_share,
            Number::Plain(_) => row.standing.speedup_vs_best_path,
        }
    }
}

/// Splits a text into words and signs. A single `=` belongs to a word: `ecf:beta=0.5`.
fn tokens(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for word in text.split_whitespace() {
        let mut rest = word;
        while !rest.is_empty() {
            let signs = Relation::ALL.iter().map(|(sign, _)| *sign).chain(["*"]);
            let next = signs.filter_map(|sign| rest.find(sign).map(|at| (at, sign)));
            // Takes the earliest sign, and the longer of two at the same place: `<=` before `<`.
            let next = next.min_by_key(|(at, sign)| (*at, usize::MAX - sign.len()));
            let Some((at, sign)) = next else {
                found.push(rest);
                break;
            };
            if at > 0 {
                found.push(&rest[..at]);
            }
            found.push(sign);
            rest = &rest[at + sign.len()..];
        }
    }
    found
}

fn term(tokens: &[&str], place: &Place, names: &Names) -> Result<Term, ScenarioError> {
    let text = tokens.join(" ");
    let mut factors = Vec::new();
    for factor in tokens.split(|token| *token == "*") {
        let [word] = factor else {
            let problem = "not a number, a value of a row, or a product of them";
            return Err(ScenarioError::new(place, Fault::Invalid, &text, problem).allow(GRAMMAR));
        };
        factors.push(match word.parse::<f64>() {
            Ok(number) if number.is_finite() => Factor::Number(number),
            _ => value(word, place, names)?,
        });
    }
    Ok(Term { text, factors })
}

/// Reads `ROW.MEASURE.STATISTIC`, from its end, because a row may contain dots (`ecf:beta=0.5`).
fn value(word: &str, place: &Place, names: &Names) -> Result<Factor, ScenarioError> {
    let parts: Vec<&str> = word.split('.').collect();
    let statistic = |name: &str| STATISTICS.iter().find(|known| **known == name).copied();
    let plain = |name: &str| ROW_NUMBERS.iter().find(|known| **known == name).copied();
    let pooled = |name: &str| POOLED.iter().map(|it| it.0).find(|known| *known == name);
    let of_path = |name: &str| {
        PATH_NUMBERS.iter().filter_map(|it| it.strip_suffix(".PATH")).find(|known| *known == name)
    };
    let is_measure = |name: &str| names.measures.iter().any(|known| known == name);
    let (row, number) = match parts.as_slice() {
        [row @ .., last] if !row.is_empty() && plain(last).is_some() => {
            (row, Number::Plain(plain(last).unwrap_or_default()))
        }
        [row @ .., name, path] if !row.is_empty() && of_path(name).is_some() => {
            if !names.paths.iter().any(|known| known == path) {
                let known = names.paths.iter().map(String::as_str);
                return Err(ScenarioError::unknown(place, "path", path, known));
            }
            (row, Number::OfPath(of_path(name).unwrap_or_default(), (*path).to_owned()))
        }
        [row @ .., measure] if !row.is_empty() && is_measure(measure) => {
            (row, Number::Measure { name: (*measure).to_owned(), statistic: "median" })
        }
        [row @ .., measure @ OF_MESSAGES, last]
            if !row.is_empty() && is_measure(measure) && pooled(last).is_some() =>
        {
            (row, Number::Messages(pooled(last).unwrap_or_default()))
        }
        [row @ .., measure, last] if !row.is_empty() && is_measure(measure) => {
            let Some(statistic) = statistic(last) else {
                let of_messages = POOLED.iter().map(|it| it.0).filter(|_| *measure == OF_MESSAGES);
                let known = STATISTICS.iter().copied().chain(of_messages);
                return Err(ScenarioError::unknown(place, "statistic", last, known));
            };
            (row, Number::Measure { name: (*measure).to_owned(), statistic })
        }
        [_, .., measure, last] if statistic(last).is_some() => {
            return Err(unknown_measure(measure, place, names));
        }
        [_, measure] => return Err(unknown_measure(measure, place, names)),
        [_, .., measure, _] => return Err(unknown_measure(measure, place, names)),
        _ => {
            let problem = "not a number and not a value of a row";
            return Err(ScenarioError::new(place, Fault::Invalid, word, problem).allow(GRAMMAR));
        }
    };
    let (row, cc) = row_name(&row.join("."), place, names)?;
    Ok(Factor::Value { row, cc, number })
}

fn unknown_measure(given: &str, place: &Place, names: &Names) -> ScenarioError {
    let of_runs = names.measures.iter().map(String::as_str);
    let of_rows = ROW_NUMBERS.iter().copied().filter(|name| of_runs.clone().all(|of| of != *name));
    let known = of_runs.clone().chain(of_rows).chain(PATH_NUMBERS);
    ScenarioError::unknown(place, "measure for this workload", given, known)
}

/// Returns the row and, after a slash, its congestion controller.
fn row_name(
    given: &str,
    place: &Place,
    names: &Names,
) -> Result<(String, Option<String>), ScenarioError> {
    let known = |row: &str| {
        let canonical = || names.canonical.and_then(|canonical| canonical(row));
        let has = |name: &String| names.rows.contains(name);
        Some(row.to_owned()).filter(has).or_else(|| canonical().filter(has))
    };
    let with_cc = names.ccs.iter().find_map(|cc| {
        let row = given.strip_suffix(cc.as_str())?.strip_suffix('/')?;
        Some((known(row)?, Some(cc.clone())))
    });
    if let Some(found) = with_cc {
        return Ok(found);
    }
    let Some(row) = known(given) else {
        let rows = names.rows.iter().map(String::as_str);
        let what = match names.paths.as_slice() {
            [_] => "row (one path has no row of a scheduler)",
            _ => "row",
        };
        return Err(ScenarioError::unknown(place, what, given, rows));
    };
    if names.ccs.len() > 1 {
        let problem = "the report has this row once for each congestion controller";
        let allowed: Vec<String> = names.ccs.iter().map(|cc| format!("{row}/{cc}")).collect();
        return Err(
            ScenarioError::new(place, Fault::Invalid, given, problem).allow(&allowed.join(", "))
        );
    }
    Ok((row, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Standing, Traffic};
    use crate::stats::Summary;

    fn names() -> Names {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Names {
            rows: list(&["minrtt", "ecf:beta=0.5", "tcp:wifi"]),
            ccs: list(&["cubic"]),
            measures: list(&["completion_ms", "goodput_mbps"]),
            paths: list(&["wifi", "lte"]),
            canonical: Some(|row| Some(row.replace("lrf", "minrtt"))),
        }
    }

    fn parse(text: &str) -> Result<Expectation, ScenarioError> {
        Expectation::parse(text, &Place::Argument("--expect".to_owned()), &names())
    }

    fn report() -> Report {
        let row = |scheduler: &str, values: &[f64]| Row {
            scheduler: scheduler.to_owned(),
            cc: "cubic".to_owned(),
            measures: [("completion_ms".to_owned(), Summary::of(values, 1, "x").unwrap())].into(),
            traffic: Traffic {
                path_share: [("wifi".to_owned(), 0.75)].into(),
                path_sent_share: [("wifi".to_owned(), 0.5)].into(),
                path_bytes: [("wifi".to_owned(), 3_000.0)].into(),
                reinjected_share: Some(0.5),
                ..Traffic::default()
            },
            standing: Standing {
                speedup_vs_best_path: Some(1.25),
                aggregation_benefit: Some(0.5),
                ..Standing::default()
            },
            ..Row::default()
        };
        Report {
            runs: 3,
            primary_measure: "completion_ms".to_owned(),
            rows: vec![
                row("minrtt", &[100.0, 200.0, 300.0]),
                row("ecf:beta=0.5", &[90.0, 205.0, 250.0]),
            ],
            ..Report::default()
        }
    }

    fn holds(text: &str) -> bool {
        parse(text).unwrap().evaluate(&report()).holds
    }

    #[test]
    fn comparisons_of_rows_numbers_and_products() {
        assert!(holds("minrtt.completion_ms.median == 200"));
        assert!(holds("minrtt.completion_ms == 200"));
        assert!(!holds("ecf:beta=0.5.completion_ms.median < minrtt.completion_ms.median"));
        assert!(holds("ecf:beta=0.5.completion_ms.median<minrtt.completion_ms.median*1.05"));
        assert!(holds("1.05 * lrf.completion_ms.median >= ecf:beta=0.5.completion_ms.median"));
        assert!(holds("minrtt.completion_ms.max > 299 and minrtt.completion_ms.min <= 100"));
        assert!(!holds("minrtt.completion_ms.max > 299 and minrtt.completion_ms.min != 100"));
        assert!(holds("minrtt.speedup_vs_best_path > 1.2 and minrtt.path_share.wifi >= 0.75"));
        assert!(holds("minrtt.path_sent_share.wifi == 0.5 and minrtt.path_bytes.wifi == 3000"));
        assert!(!holds("minrtt.path_bytes.lte < 1"));
        assert!(holds("minrtt/cubic.reinjected_share == 0.5"));
    }

    /// The table of a stream has percentiles of the messages, and an expectation can use them.
    #[test]
    fn the_columns_of_a_stream_can_be_expected() {
        let mut report = report();
        report.rows[0].messages =
            Some(Messages { median_ms: 40.0, p95_ms: 50.0, p99_ms: 60.0, max_ms: 70.0, n: 9 });
        let names = Names { measures: vec![OF_MESSAGES.to_owned()], ..names() };
        let parse =
            |text: &str| Expectation::parse(text, &Place::Argument("--expect".to_owned()), &names);
        let text = "minrtt.message_delay_ms.p50 == 40 and minrtt.message_delay_ms.p99 == 60 and \
                    minrtt.message_delay_ms.worst == 70";
        assert!(parse(text).unwrap().evaluate(&report).holds);
        let error = parse("minrtt.message_delay_ms.p98 < 1").unwrap_err();
        assert!(error.allowed.contains("p99") && error.allowed.contains("worst"), "{error}");
        assert!(super::tests::parse("minrtt.completion_ms.worst < 1").is_err());
    }

    #[test]
    fn a_missing_value_and_an_incomplete_row_never_hold() {
        assert!(!holds("minrtt.goodput_mbps > 0"));
        assert!(!holds("minrtt.goodput_mbps <= 0"));
        assert!(!holds("tcp:wifi.completion_ms > 0"));
        let mut report = report();
        report.rows[0].incomplete = 1;
        assert!(!parse("minrtt.completion_ms > 0").unwrap().evaluate(&report).holds);
    }

    #[test]
    fn a_verdict_prints_both_values() {
        let verdict = parse("minrtt.completion_ms.max < 250 and minrtt.goodput_mbps > 1").unwrap();
        assert_eq!(
            verdict.evaluate(&report()).to_string(),
            "fails: minrtt.completion_ms.max (300.000) < 250\n\
             fails: minrtt.goodput_mbps (no value) > 1"
        );
    }

    #[test]
    fn a_wrong_name_is_refused_with_the_nearest() {
        let nearest = |text: &str| parse(text).unwrap_err().nearest.clone();
        assert_eq!(nearest("minrt.completion_ms.p95 < 1").as_deref(), Some("minrtt"));
        assert_eq!(nearest("minrtt.completion_m.p95 < 1").as_deref(), Some("completion_ms"));
        assert_eq!(nearest("minrtt.completion_ms.p59 < 1").as_deref(), Some("p95"));
        assert_eq!(nearest("minrtt.path_share.wfi < 1").as_deref(), Some("wifi"));
        for bad in ["", "and", "1", "1 < 2 < 3", "a < ", "* < 1", "1 2 < 3", ". < .", "ecf < 1"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn with_two_controllers_a_row_names_its_own() {
        let names = Names { ccs: vec!["cubic".into(), "olia:quality=l2/r".into()], ..names() };
        let place = Place::Argument("--expect".to_owned());
        let parse = |text| Expectation::parse(text, &place, &names);
        let error = parse("minrtt.completion_ms < 1").unwrap_err();
        assert_eq!(error.allowed, "minrtt/cubic, minrtt/olia:quality=l2/r");
        assert!(parse("minrtt/olia:quality=l2/r.completion_ms < 1").is_ok());
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "([a-z]{0,4}|minrtt|completion_ms|p95|and|[.<>=!*/ :]|[0-9.]{1,3}|\\PC){0,14}") {
            if let Err(error) = parse(&text) {
                proptest::prop_assert!(error.to_string().lines().count() <= 3);
            }
        }
    }
}
