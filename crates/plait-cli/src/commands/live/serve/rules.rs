//! `--rules`: a file that selects the scheduler by client.

use crate::commands::live::prices::{self, ServerPrices};
use crate::failure::Failure;
use plait_live::{Match, Prefix};
use plait_report::names::spec_problem;
use plait_sched::Goal;
use std::path::Path;

/// Format of a line.
const SHAPE: &str = "SCHEDULER [port=PORT] [from=ADDR[/BITS]] [goal=GOAL]";
/// Most rules of a file. Each new connection is compared with them one by one.
const MAX_RULES: usize = 4_096;

/// A rule: one line of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Rule {
    /// Clients to which the rule applies.
    pub(super) of: Match,
    /// The scheduler, with its parameters.
    pub(super) scheduler: String,
    /// Its use of paths with a cost.
    goal: Option<Goal>,
}

impl Rule {
    /// Returns the goal that its scheduler keeps to; `None` if there is no price and no goal.
    pub(super) fn goal(&self, prices: &ServerPrices) -> Option<Goal> {
        prices.goal(self.goal, self.of.port)
    }
}

/// Column of an error (in characters, from 1), and its description.
type Problem = (usize, String);

/// Family and ports of the server. A rule for any other would never match.
#[derive(Clone, Copy, Debug)]
struct Listening<'a> {
    v4: bool,
    ports: &'a [u16],
}

/// Reads the rules of a file. `v4` is the family of the server, `ports` are its ports.
pub(super) fn read(file: &Path, v4: bool, ports: &[u16]) -> Result<Vec<Rule>, Failure> {
    let text = plait_app::file::settings(file).map_err(|error| {
        Failure::unreadable("--rules", file, &error, &format!("a file with lines of {SHAPE}"))
    })?;
    parse(&text, Listening { v4, ports }).map_err(|(line, (column, problem))| {
        Failure::Usage(format!("{}:{line}:{column}: {problem}", file.display()))
    })
}

fn parse(text: &str, listening: Listening<'_>) -> Result<Vec<Rule>, (usize, Problem)> {
    let mut rules: Vec<(usize, Rule)> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let words = words(line);
        let Some(((column, scheduler), conditions)) = words.split_first() else { continue };
        let place = |problem| (at + 1, problem);
        // No client would ever reach this rule.
        if rules.last().is_some_and(|(_, rule)| rule.of == Match::default()) {
            let problem = "a rule above matches every client\n  move this line above it".to_owned();
            return Err(place((*column, problem)));
        }
        if rules.len() == MAX_RULES {
            let problem = format!("more than {MAX_RULES} rules\n  join addresses: from=ADDR/BITS");
            return Err(place((*column, problem)));
        }
        plait_sched::Spec::parse(scheduler)
            .map_err(|error| place((*column, spec_problem(&error))))?;
        let (of, scheduler) = (Match::default(), (*scheduler).to_owned());
        let mut rule = Rule { of, scheduler, goal: None };
        for (column, word) in conditions {
            condition(word, &mut rule, listening).map_err(|problem| place((*column, problem)))?;
        }
        if let (Some(goal), Some((column, word))) = (rule.goal, goal_of(conditions))
            && let Some(problem) = prices::goal_problem(word, goal, &rule.scheduler)
        {
            return Err(place((column, problem)));
        }
        if let Some((line, _)) = rules.iter().find(|(_, earlier)| earlier.of.covers(&rule.of)) {
            let problem = format!("the rule of line {line} matches every client of this one");
            let remedy = "move this line above it, or leave it out";
            return Err(place((*column, format!("{problem}\n  {remedy}"))));
        }
        rules.push((at + 1, rule));
    }
    Ok(rules.into_iter().map(|(_, rule)| rule).collect())
}

/// Returns the condition with the goal, and its column.
fn goal_of<'a>(conditions: &[(usize, &'a str)]) -> Option<(usize, &'a str)> {
    conditions.iter().find(|(_, word)| word.starts_with("goal=")).copied()
}

/// Returns the words of a line and their columns, in characters from 1.
fn words(line: &str) -> Vec<(usize, &str)> {
    let (mut words, mut rest, mut column) = (Vec::new(), line, 1);
    while let Some(start) = rest.find(|c: char| !c.is_whitespace()) {
        let (gap, tail) = rest.split_at(start);
        let (word, after) = tail.split_at(tail.find(char::is_whitespace).unwrap_or(tail.len()));
        column += gap.chars().count();
        words.push((column, word));
        column += word.chars().count();
        rest = after;
    }
    words
}

fn condition(word: &str, rule: &mut Rule, listening: Listening<'_>) -> Result<(), String> {
    let of = &mut rule.of;
    let given = word.escape_debug();
    let (key, value) = word.split_once('=').unwrap_or((word, ""));
    let twice = || Err(format!("`{given}`: `{key}` is given twice\n  allowed: {SHAPE}"));
    match key {
        "port" => {
            let port = value.parse().ok().filter(|port| *port > 0);
            let port = port.ok_or_else(|| format!("`{given}`\n  allowed: port=1 to port=65535"))?;
            if !listening.ports.contains(&port) {
                let remedy = format!("listen on it with --port {port}=SCHEDULER");
                return Err(format!(
                    "`{given}`: the server does not listen on this port\n  {remedy}"
                ));
            }
            if of.port.replace(port).is_some() { twice() } else { Ok(()) }
        }
        "from" => {
            let allowed = "allowed: from=ADDR or from=ADDR/BITS, such as from=10.0.0.0/8";
            let prefix: Prefix =
                value.parse().map_err(|problem| format!("`{given}`: {problem}\n  {allowed}"))?;
            if prefix.is_ipv4() != listening.v4 {
                let problem =
                    "it is of another family than --listen\n  give one of the same family";
                return Err(format!("`{given}`: {problem}"));
            }
            if of.from.replace(prefix).is_some() { twice() } else { Ok(()) }
        }
        "goal" => {
            let goal = prices::goal(value)?;
            if rule.goal.replace(goal).is_some() { twice() } else { Ok(()) }
        }
        _ => Err(format!("`{given}` is not a condition\n  allowed: {SHAPE}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HERE: Listening<'_> = Listening { v4: true, ports: &[80, 443] };

    fn refused(text: &str) -> (usize, usize, String) {
        let (line, (column, problem)) = parse(text, HERE).unwrap_err();
        (line, column, problem)
    }

    #[test]
    fn rules_are_read_in_order() {
        let text = "\n# those at home\nredundant from=10.0.0.0/8 port=80 # all of it\n\n\
                    ecf:beta=0.5\tport=443\r\nblest+rp\n";
        let rules = parse(text, HERE).unwrap();
        let from = |text: &str| text.parse().ok();
        let of = |port, from| Match { port, from };
        let expected = [
            (of(Some(80), from("10.0.0.0/8")), "redundant"),
            (of(Some(443), None), "ecf:beta=0.5"),
            (of(None, None), "blest+rp"),
        ];
        let expected =
            expected.map(|(of, name)| Rule { of, scheduler: name.to_owned(), goal: None });
        assert_eq!(rules, expected);
        let rules = parse("slot goal=thrifty port=80\nslot goal=handover", HERE).unwrap();
        assert_eq!(rules[0].goal, Some(Goal::Thrifty));
        assert_eq!((rules[1].goal, rules[1].of), (Some(Goal::Handover), Match::default()));
        assert_eq!(parse("# nothing\n", HERE), Ok(Vec::new()));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, line, column, words) in [
            ("ecff", 1, 1, "did you mean `ecf`?"),
            ("\n  ecf prt=80", 2, 7, "`prt=80` is not a condition"),
            ("ecf port=0", 1, 5, "allowed: port=1 to port=65535"),
            ("ecf port=81", 1, 5, "listen on it with --port 81=SCHEDULER"),
            ("ecf port=80 port=443", 1, 13, "`port` is given twice"),
            ("ecf from=10.1.0.0/8", 1, 5, "bits are set behind the prefix"),
            ("ecf from=fd00::/8", 1, 5, "another family than --listen"),
            ("ecf from=10.0.0.1 from=10.0.0.2", 1, 19, "`from` is given twice"),
            ("ecf\nminrtt port=80", 2, 1, "a rule above matches every client"),
            (
                "ecf port=80\nminrtt port=80",
                2,
                1,
                "the rule of line 1 matches every client of this",
            ),
            ("ecf from=10.0.0.0/8\necf from=10.1.0.0/16 port=80", 2, 1, "the rule of line 1"),
            ("ecf é=1 x", 1, 5, "is not a condition"),
            ("ecf goal=thriftty", 1, 5, "did you mean `thrifty`?"),
            ("ecf goal=handover goal=thrifty", 1, 19, "`goal` is given twice"),
            ("slot+price:goal=thrifty port=80 goal=handover", 1, 33, "has the goal thrifty by its"),
            ("slot+price goal=thrifty", 1, 12, "has the goal aggregate by its"),
            ("minrtt port=80\n\u{a0}ecf x", 2, 6, "is not a condition"),
        ] {
            let (at, from, problem) = refused(text);
            assert_eq!((at, from), (line, column), "{text}: {problem}");
            assert!(problem.contains(words), "{text}: {problem}");
        }
    }

    #[test]
    fn the_number_of_rules_has_a_limit() {
        let line = |at: usize| format!("ecf from=10.0.{}.{}\n", at / 256, at % 256);
        let most: String = (0..MAX_RULES).map(line).collect();
        assert_eq!(parse(&most, HERE).unwrap().len(), MAX_RULES);
        let (line, column, problem) = refused(&(most + "# one more\n ecf port=80\n"));
        assert_eq!((line, column), (MAX_RULES + 2, 2));
        assert!(problem.starts_with("more than 4096 rules"), "{problem}");
    }

    proptest! {
        #[test]
        fn no_file_makes_the_reader_panic(text in "[a-z0-9=/.:# \\n\\té]{0,80}") {
            if let Err((line, (column, problem))) = parse(&text, HERE) {
                prop_assert!(line >= 1 && column >= 1 && !problem.is_empty());
                prop_assert!(text.lines().nth(line - 1).is_some_and(|it| it.chars().count() >= column));
            }
        }
    }
}
