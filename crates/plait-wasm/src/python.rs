//! The call in Python that makes the same comparison.

use plait_lab::Scenario;
use plait_lab::scenario::Setting;
use std::fmt::Write;

/// Returns the call of `plait.compare`. Settings at their default are omitted, except the number of runs and the
/// seed.
#[must_use]
pub fn call(scenario: &Scenario) -> String {
    let arguments = scenario.raw().arguments();
    let texts = |wanted: &str| -> Vec<&str> {
        let of_name = arguments.iter().filter(|(name, _)| *name == wanted);
        of_name.map(|(_, text)| text.as_str()).collect()
    };
    let paths = texts("path").into_iter().map(|path| format!("        {},\n", quoted(path)));
    let mut text = format!("plait.compare(\n    paths=[\n{}    ],\n", paths.collect::<String>());
    let mut names: Vec<&str> = arguments.iter().map(|(name, _)| *name).collect();
    names.dedup();
    for name in names.into_iter().filter(|name| *name != "path") {
        let value = match (name, texts(name).as_slice()) {
            ("schedulers", _) => {
                let schedulers = scenario.schedulers.iter().map(ToString::to_string);
                list(&schedulers.collect::<Vec<_>>())
            }
            ("runs" | "seed", [number]) => (*number).to_owned(),
            (_, ["on"]) if Setting::named(name).is_some_and(Setting::is_flag) => "True".to_owned(),
            (_, [one]) => quoted(one),
            (_, several) => list(several),
        };
        let _ = writeln!(text, "    {}={value},", name.replace('-', "_"));
    }
    text + ")"
}

fn list<T: AsRef<str>>(texts: &[T]) -> String {
    let words: Vec<String> = texts.iter().map(|text| quoted(text.as_ref())).collect();
    format!("[{}]", words.join(", "))
}

/// Quotes a text as Python does.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
