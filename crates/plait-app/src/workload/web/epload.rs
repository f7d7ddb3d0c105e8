//! Reads page graphs in the format of Epload and WProf.

use super::known;
use super::page::{After, Builder, MOST_ACTIVITIES, Page};
use super::sizes::log_normal;
use crate::file::Bounded;
use plait_base::Span;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Default mean size of an object in bytes. The six measured pages have 10,260,444 bytes in 483
/// objects.
const MEAN_BYTES: u64 = 21_243;
/// Longest time in a graph, in milliseconds; a longer one is an error.
const LONGEST_MS: f64 = 3_600_000.0;
/// Maximum number of dependencies of a graph: five for each activity.
const MOST_DEPENDENCIES: usize = 5 * MOST_ACTIVITIES;

#[derive(Deserialize)]
#[serde(expecting = "an object with `objs` and `deps`")]
struct Graph {
    #[serde(default)]
    name: String,
    objs: Bounded<Object, MOST_ACTIVITIES>,
    #[serde(default)]
    deps: Bounded<Dependency, MOST_DEPENDENCIES>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with `id`, `download` and `comps`")]
struct Object {
    id: String,
    download: Download,
    #[serde(default)]
    comps: Bounded<Computation, MOST_ACTIVITIES>,
    /// 1 if the first computation starts with the first bytes of the object; otherwise it starts
    /// after the last.
    #[serde(default)]
    when_comp_start: i64,
    /// Extension of plait; recordings do not have it. Used if every object has one.
    #[serde(default)]
    size: Option<u64>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with `id`")]
struct Download {
    id: String,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with `id` and `time`")]
struct Computation {
    id: String,
    time: f64,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with `a1`, `a2` and `time`")]
struct Dependency {
    a1: String,
    a2: String,
    /// Milliseconds after the start of `a1`. If negative, `a2` starts after the end of `a1`.
    time: f64,
}

/// Reads a graph. Each object is a download followed by its computations in order. The dependencies
/// are added to that.
///
/// # Errors
/// Returns an error if the text is not a graph, refers to unknown activities, or is not a valid
/// page.
pub(super) fn read(text: &str, total: Option<u64>) -> Result<Page, String> {
    let graph: Graph = serde_json::from_str(text).map_err(|error| {
        format!("not an Epload graph: {error}; it has `objs` (id, download, comps) and `deps` (a1, a2, time)")
    })?;
    let sizes = sizes(&graph, total);
    let mut page = Builder::default();
    let mut known = BTreeMap::new();
    let mut place = |id: &str, activity: u32| match known.insert(id.to_owned(), activity) {
        Some(_) => Err(format!("activity `{id}` is given twice; give each its own id")),
        None => Ok(()),
    };
    for (object, size) in graph.objs.0.iter().zip(sizes) {
        let fetch = page.fetch(&object.download.id, size);
        place(&object.download.id, fetch)?;
        let mut before = fetch;
        for computation in &object.comps.0 {
            let what = format!("time of `{}` of object `{}`", computation.id, object.id);
            let run = page.compute(&computation.id, millis(&what, computation.time)?);
            place(&computation.id, run)?;
            let first = before == fetch && object.when_comp_start == 1;
            page.wait(before, if first { After::FirstBytes } else { After::End(Span::ZERO) }, run);
            before = run;
        }
    }
    for (number, dependency) in graph.deps.0.iter().enumerate() {
        let find = |id: &str| {
            known.get(id).copied().ok_or_else(|| {
                format!("dependency {number}: no activity `{id}`; add it, or remove the dependency")
            })
        };
        let (first, second) = (find(&dependency.a1)?, find(&dependency.a2)?);
        let after = if dependency.time < 0.0 {
            After::End(Span::ZERO)
        } else {
            After::Start(millis(&format!("time of dependency {number}"), dependency.time)?)
        };
        page.wait(first, after, second);
    }
    page.build()
}

/// Returns the graph's own sizes, or log-normal ones. Their sum is `total`, else the measured size
/// of the page, else the mean of other pages times the number of objects.
fn sizes(graph: &Graph, total: Option<u64>) -> Vec<u64> {
    let own: Option<Vec<u64>> = graph.objs.0.iter().map(|object| object.size).collect();
    match (own, total) {
        (Some(own), None) => own,
        (_, total) => {
            let measured = known::recorded_as(&graph.name).map(|known| known.bytes);
            let count = graph.objs.0.len();
            let total = total.or(measured).unwrap_or(MEAN_BYTES * count as u64);
            log_normal(&graph.name, count, total)
        }
    }
}

fn millis(what: &str, millis: f64) -> Result<Span, String> {
    if (0.0..=LONGEST_MS).contains(&millis) {
        Ok(Span::from_nanos((millis * 1e6) as u64))
    } else {
        Err(format!("{what} is {millis} ms; it is from 0 to {LONGEST_MS}"))
    }
}
