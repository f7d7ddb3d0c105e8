//! The file of links: what is known of each link, how certain it is, and where each value comes from.
//!
//! ```toml
//! schema = "plait.links/1"
//! link = ["home:rate=50mbit"]
//!
//! [[path]]
//! name = "wifi"
//! rtt = { value = "22ms", low = "21ms", high = "24ms", source = "ping", date = "2026-11-27" }
//! rate_down = { value = "unknown", source = "ping shows no rate", date = "2026-11-27" }
//! backup = true
//! ```

pub(crate) mod amount;
mod read;

pub use read::{Values, check_name};

use crate::error::Place;
use std::fmt::Write as _;

/// Name and version of the file.
pub const SCHEMA: &str = "plait.links/1";
/// The text of a value that nobody knows.
pub const UNKNOWN: &str = "unknown";

/// A file of links.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LinkFile {
    /// The links, the primary first.
    pub links: Vec<Link>,
    /// Links that several of them share, as for `--link`.
    pub shared: Vec<String>,
    /// Their place, for messages.
    shared_place: Option<Place>,
}

/// What is known of a link.
#[derive(Clone, PartialEq, Debug)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// The keys of a path, each with its value. A key that repeats has several entries.
    pub values: Vec<(String, Known)>,
    /// Its place, for messages.
    pub place: Place,
}

/// A value, its uncertainty and its origin.
#[derive(Clone, PartialEq, Debug)]
pub struct Known {
    /// The best estimate; `None` if it is unknown, or if only a range is known.
    pub value: Option<String>,
    /// The interval that holds the true value in eight of ten cases.
    pub range: Option<(String, String)>,
    /// The program or file that the value comes from; empty if nobody said.
    pub source: String,
    /// The day of the measurement, `2026-11-27`; empty if nobody said.
    pub date: String,
    /// Its place, for messages.
    pub place: Place,
}

impl LinkFile {
    /// Adds a link. If the file has a link with this name, each value that `link` knows replaces the earlier one.
    pub fn merge(&mut self, link: Link) {
        let Some(known) = self.links.iter_mut().find(|it| it.name == link.name) else {
            self.links.push(link);
            return;
        };
        for (key, value) in link.values {
            if !value.is_unknown() {
                known.set(&key, value);
            } else if known.value(&key).is_none() {
                known.values.push((key, value));
            }
        }
    }

    /// Returns the text of the file.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut out = String::from(
            "# Links for plait: `--links THIS_FILE` takes them. The range from low to high holds the\n\
             # true value in eight of ten cases. `rate_down` and `loss` are from server to client.\n",
        );
        // Writing to a String does not fail.
        let _ = writeln!(out, "schema = {}", string(SCHEMA));
        if !self.shared.is_empty() {
            let texts: Vec<String> = self.shared.iter().map(|it| string(it)).collect();
            let _ = writeln!(out, "link = [{}]", texts.join(", "));
        }
        for link in &self.links {
            let _ = writeln!(out, "\n[[path]]\nname = {}", string(&link.name));
            let mut written: Vec<&str> = Vec::new();
            for (key, known) in &link.values {
                if written.contains(&key.as_str()) {
                    continue;
                }
                written.push(key);
                let all: Vec<&Known> =
                    link.values.iter().filter(|it| it.0 == *key).map(|it| &it.1).collect();
                let _ = match all.as_slice() {
                    [_] => writeln!(out, "{key} = {}", known.to_toml()),
                    all => {
                        let texts: Vec<String> = all.iter().map(|it| it.to_toml()).collect();
                        writeln!(out, "{key} = [{}]", texts.join(", "))
                    }
                };
            }
        }
        out
    }
}

impl Link {
    /// Returns a link without values.
    #[must_use]
    pub fn new(name: &str) -> Link {
        Link { name: name.to_owned(), values: Vec::new(), place: nowhere() }
    }

    /// Returns the value of a key.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&Known> {
        self.values.iter().find(|(name, _)| name == key).map(|(_, known)| known)
    }

    /// Sets a key to one value. `rate` and the rates of both directions replace each other, and so do delays.
    pub fn set(&mut self, key: &str, known: Known) {
        let excluded: &[&str] = match key {
            "rate" => &["rate_down", "rate_up", "trace", "trace_up"],
            "rate_down" => &["trace"],
            "rate_up" => &["trace_up"],
            "trace" => &["rate_down"],
            "trace_up" => &["rate_up"],
            "rtt" => &["owd_down", "owd_up"],
            "owd_down" | "owd_up" => &["rtt"],
            _ => &[],
        };
        // A rate of both directions is now one of the other direction.
        let direction = match key {
            "rate_down" | "trace" => Some("rate_up"),
            "rate_up" | "trace_up" => Some("rate_down"),
            _ => None,
        };
        if let Some(other) = direction
            && let Some((name, _)) = self.values.iter_mut().find(|it| it.0 == "rate")
        {
            other.clone_into(name);
        }
        self.values.retain(|(name, _)| name != key && !excluded.contains(&name.as_str()));
        self.values.push((key.to_owned(), known));
    }
}

impl Known {
    /// Returns a value without a range.
    #[must_use]
    pub fn exact(value: &str, source: &str, date: &str) -> Known {
        let (source, date) = (source.to_owned(), date.to_owned());
        Known { value: Some(value.to_owned()), range: None, source, date, place: nowhere() }
    }

    /// Returns a value with the interval that holds it in eight of ten cases.
    #[must_use]
    pub fn within(value: &str, low: &str, high: &str, source: &str, date: &str) -> Known {
        let range = Some((low.to_owned(), high.to_owned()));
        Known { range, ..Known::exact(value, source, date) }
    }

    /// Returns an unknown value. `source` says why it is unknown.
    #[must_use]
    pub fn unknown(source: &str, date: &str) -> Known {
        Known { value: None, ..Known::exact(UNKNOWN, source, date) }
    }

    /// Returns true if nothing is known.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.value.is_none() && self.range.is_none()
    }

    fn to_toml(&self) -> String {
        if self.range.is_none() && self.source.is_empty() && self.date.is_empty() {
            return match self.value.as_deref() {
                Some("on" | "true") => "true".to_owned(),
                Some("off" | "false") => "false".to_owned(),
                value => string(value.unwrap_or(UNKNOWN)),
            };
        }
        let mut fields = Vec::new();
        let mut field = |name: &str, text: &str| fields.push(format!("{name} = {}", string(text)));
        match (&self.value, &self.range) {
            (Some(value), _) => field("value", value),
            (None, None) => field("value", UNKNOWN),
            (None, Some(_)) => {}
        }
        if let Some((low, high)) = &self.range {
            field("low", low);
            field("high", high);
        }
        for (name, text) in [("source", &self.source), ("date", &self.date)] {
            if !text.is_empty() {
                field(name, text);
            }
        }
        format!("{{ {} }}", fields.join(", "))
    }
}

/// Returns the place of a value that comes from no file.
fn nowhere() -> Place {
    Place::Argument("--links".to_owned())
}

fn string(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests;
