//! Tests of scenarios, by topic, with their common helpers.

mod forms;
mod generated;
mod kernels;
mod links;
mod paths;
mod settings;
mod table;

use super::*;
use crate::error::{Fault, ScenarioError};
use plait_base::{Chance, Rate, Time};
use plait_link::{Aqm, GilbertElliott, Impairments, LossModel, QueueLimit, RateSource, Reorder};
use plait_sim::{Strip, StripAt};

/// Traces for these tests: 1500 bytes per millisecond, and a CSV file.
fn read(file: &str) -> std::io::Result<String> {
    match file {
        "a.down" => Ok("1\n2\n3\n4\n".to_owned()),
        "b.csv" => Ok("1,500000\n2,0\n3,250000\n".to_owned()),
        "bad.down" => Ok("1\n2\nx\n".to_owned()),
        _ => Err(std::io::Error::from(std::io::ErrorKind::NotFound)),
    }
}

fn raw(arguments: &[(&str, &str)]) -> Result<RawScenario, ScenarioError> {
    let mut raw = RawScenario::new();
    for (name, text) in arguments {
        raw.argument(name, text)?;
    }
    Ok(raw)
}

fn build(arguments: &[(&str, &str)]) -> Result<Scenario, ScenarioError> {
    raw(arguments)?.build_point(&read)
}

fn with_path(path: &str) -> Result<Scenario, ScenarioError> {
    build(&[("path", path), ("workload", "download:512kB")])
}

fn path(text: &str) -> Path {
    with_path(text).unwrap().paths.remove(0)
}

fn refused(path: &str) -> ScenarioError {
    with_path(path).unwrap_err()
}

/// Splits a command line into arguments, as a POSIX shell does.
fn arguments(line: &str) -> Vec<(String, String)> {
    let mut words = vec![String::new()];
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        let Some(word) = words.last_mut() else { continue };
        match c {
            ' ' => words.push(String::new()),
            '\\' => word.extend(chars.next()),
            '\'' => word.extend(chars.by_ref().take_while(|c| *c != '\'')),
            _ => word.push(c),
        }
    }
    assert_eq!(words[..2], ["plait", "compare"]);
    let mut words = words.into_iter().skip(2).peekable();
    let mut list = Vec::new();
    while let Some(name) = words.next() {
        let name = name.strip_prefix("--").unwrap().to_owned();
        let switch = Setting::named(&name).is_some_and(Setting::is_flag);
        let text = if switch { "on".to_owned() } else { words.next().unwrap() };
        list.push((name, text));
    }
    list
}

fn from_line(line: &str) -> Scenario {
    let list = arguments(line);
    let list: Vec<(&str, &str)> = list.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    build(&list).unwrap()
}
