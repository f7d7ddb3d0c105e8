//! The simulator in a browser. A request is a JSON text with the arguments of `plait compare` and the files that
//! they name. The page of `web/` sends requests from Web Workers. Every answer is the same as the command line's.
//!
//! The functions here only convert to JavaScript. The modules do the work.

#![forbid(unsafe_code)]

pub mod answer;
pub mod lists;
mod packets;
pub mod python;
pub mod race;
pub mod request;

use wasm_bindgen::prelude::{JsError, wasm_bindgen};

#[wasm_bindgen]
extern "C" {
    /// The page's function for progress: ended runs, and all runs.
    #[wasm_bindgen(js_name = plaitProgress)]
    fn plait_progress(done: u32, total: u32);
}

fn thrown(problem: &impl ToString) -> JsError {
    JsError::new(&problem.to_string())
}

/// Compares schedulers. Returns the JSON text of an [`answer::Answer`].
///
/// # Errors
/// With the text of `plait compare`.
#[wasm_bindgen]
pub fn compare(request: &str) -> Result<String, JsError> {
    let scenario = request::scenario(request).map_err(|error| thrown(&error))?;
    let count = |runs: usize| u32::try_from(runs).unwrap_or(u32::MAX);
    let advance = |done: usize, total: usize| plait_progress(count(done), count(total));
    let answer = answer::compare(&scenario, &advance).map_err(|error| thrown(&error))?;
    serde_json::to_string(&answer).map_err(|error| thrown(&error))
}

/// Reads a scenario without running it. Returns the JSON text of an [`answer::Lines`].
///
/// # Errors
/// With the text of `plait compare`.
#[wasm_bindgen]
pub fn check(request: &str) -> Result<String, JsError> {
    let scenario = request::scenario(request).map_err(|error| thrown(&error))?;
    serde_json::to_string(&answer::Lines::of(&scenario)).map_err(|error| thrown(&error))
}

/// Returns the names of schedulers, controllers, profiles and workloads as the JSON text of a [`lists::Lists`].
///
/// # Errors
/// None occur: the lists are always valid JSON.
#[wasm_bindgen]
pub fn lists() -> Result<String, JsError> {
    serde_json::to_string(&lists::Lists::new()).map_err(|error| thrown(&error))
}

/// Describes a recorded link. Returns the document of `plait trace show --json`.
///
/// # Errors
/// If the text is not a trace.
#[wasm_bindgen]
pub fn trace(name: &str, text: &str) -> Result<String, JsError> {
    let trace = plait_link::Trace::parse(name, text).map_err(|error| thrown(&error))?;
    serde_json::to_string(&plait_report::trace::describe(&trace, 100))
        .map_err(|error| thrown(&error))
}

/// A run with every packet, for the page to draw.
#[wasm_bindgen]
pub struct Race(race::Race);

/// Runs a row of the comparison once, with the seed of the scenario, and records its packets.
///
/// # Errors
/// With the text of `plait compare`, or if there is no such row.
#[wasm_bindgen]
pub fn run(request: &str, row: usize) -> Result<Race, JsError> {
    let scenario = request::scenario(request).map_err(|error| thrown(&error))?;
    race::run(&scenario, row).map(Race).map_err(|error| thrown(&error))
}

#[wasm_bindgen]
impl Race {
    /// Returns the JSON text of a [`race::About`].
    ///
    /// # Errors
    /// None occur: the description is always valid JSON.
    pub fn about(&self) -> Result<String, JsError> {
        serde_json::to_string(&self.0.about).map_err(|error| thrown(&error))
    }

    /// Returns [`race::PACKET_WORDS`] words for each packet, in the order of sending.
    #[must_use]
    pub fn packets(&self) -> Vec<u32> {
        self.0.packets.clone()
    }

    /// Returns three words for each change at the receiver: time in us, readable bytes, and bytes held behind a
    /// gap.
    #[must_use]
    pub fn receiver(&self) -> Vec<u32> {
        self.0.receiver.clone()
    }

    /// Returns the words of each sample: time in us, then for each path the queue, the congestion window and the
    /// data in flight, all in bytes.
    #[must_use]
    pub fn samples(&self) -> Vec<u32> {
        self.0.samples.clone()
    }

    /// Returns two words for each change: time in us, and the cause that blocks the sender, or 0.
    #[must_use]
    pub fn blocked(&self) -> Vec<u32> {
        self.0.blocked.clone()
    }
}
