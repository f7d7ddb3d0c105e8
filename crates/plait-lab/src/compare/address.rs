//! The content address of a cell: a hash of everything that its runs depend on.

use super::{Cell, Subject};
use crate::error::{Place, ScenarioError};
use crate::scenario::{Budget, PlacedText, Reader};
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The content address of a cell: SHA-256 of everything that its runs depend on, except the seed and the
/// program. Two cells with the same address give the same outcomes for the same seed. An outcome may
/// therefore be kept under [`Address::of_run`].
///
/// These texts are hashed:
///
/// 1. the [command line](crate::Scenario::command_line) of the scenario, with only the scheduler and the
///    controller of the cell, `--runs 1`, `--seed 0`, and without `--jobs`, `--vary`, `--expect` and
///    `--until ci=`, which change no run;
/// 2. the text of each file that the scenario names, in the order of their names;
/// 3. the cell and its controller in canonical form, whether [further numbers] are collected, and the
///    jitter of hosts, each after a line end.
///
/// It prints as 64 hexadecimal digits.
///
/// [further numbers]: crate::experiment::Experiment
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Address([u8; 32]);

impl Address {
    /// Returns the address of a cell; `texts` are the files that its scenario names.
    pub(crate) fn of<'a>(
        cell: &Cell,
        texts: impl IntoIterator<Item = &'a str>,
        extra: bool,
    ) -> Address {
        let mut alone = (*cell.scenario).clone();
        let scheduler = match &cell.subject {
            Subject::Scheduler(spec) => spec.clone(),
            Subject::SinglePath(_) => plait_sched::Spec::of(&plait_sched::SCHEDULERS[0]),
        };
        let canonical = scheduler.to_string();
        alone.schedulers = vec![scheduler];
        alone.ccs = vec![cell.cc.clone()];
        alone.seed = 0;
        alone.budget = Budget { runs: 1, precision: None, jobs: None, ..alone.budget };
        alone.vary.clear();
        alone.expect.clear();
        let mut alone = alone.raw();
        // A command line names a class as `module:Class`.
        let place = Place::Argument("--schedulers".to_owned());
        alone.replace("schedulers", PlacedText::new(&place, &canonical));
        let mut hasher = Sha256::new();
        hasher.update(alone.command_line());
        texts.into_iter().for_each(|text| hasher.update(text));
        let jitter = cell.scenario.host_jitter();
        hasher.update(format!("\n{cell}\n{}\n{extra}\n{jitter}", cell.cc));
        Address(hasher.finalize().into())
    }

    /// Returns the key of one run: the first 32 hexadecimal digits of a SHA-256. It covers the address, the
    /// seed (eight bytes, little-endian) and a text that identifies the program.
    #[must_use]
    pub fn of_run(&self, seed: u64, program: &str) -> String {
        let mut hasher = Sha256::new();
        hasher.update(self.0);
        hasher.update(seed.to_le_bytes());
        hasher.update(program.as_bytes());
        hasher.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Cell {
    /// Returns the content address of the cell. `read` returns the files that its scenario names.
    ///
    /// # Errors
    /// If a file can no longer be read.
    pub fn address(&self, read: Reader<'_>) -> Result<Address, ScenarioError> {
        let texts = RefCell::new(BTreeMap::new());
        let reader = |file: &str| {
            let text = read(file)?;
            texts.borrow_mut().insert(file.to_owned(), text.clone());
            Ok(text)
        };
        let mut alone = Cell { scenario: Arc::clone(&self.scenario), ..self.clone() };
        Arc::make_mut(&mut alone.scenario).vary.clear();
        alone.scenario.raw().build_point(&reader)?;
        Ok(Address::of(self, texts.borrow().values().map(String::as_str), false))
    }
}
