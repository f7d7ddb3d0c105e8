//! The finished runs of sweeps, in the file that `plait experiment run --cache` uses. Only their places are in memory.

use crate::ending::detached;
use crate::error::{Error, refused};
use crate::sweep::{Entry, Plan, Unit};
use crate::table::{Datum, Rows, Table};
use plait_lab::experiment::{RunRecord, file_name};
use plait_lab::{run_seed, sealed, unsealed};
use pyo3::prelude::*;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A file of finished runs. Several processes may append to it.
#[pyclass(frozen, module = "plait._plait")]
pub(crate) struct RunLog {
    path: PathBuf,
    /// The name of this program in the addresses of runs.
    program: String,
    open: Mutex<Open>,
}

/// The open file.
struct Open {
    appended: File,
    read: File,
    /// Place and length of the line of each run.
    places: BTreeMap<u128, (u64, usize)>,
}

#[pymethods]
impl RunLog {
    /// Opens the file of this program in a directory, and creates both if necessary.
    #[new]
    fn new(py: Python<'_>, mut directory: PathBuf) -> PyResult<RunLog> {
        let program = plait_report::program();
        let made = fs::create_dir_all(&directory);
        made.map_err(|error| unusable(&directory, &error))?;
        directory.push(file_name(&program));
        let path = directory;
        let open = detached(py, || Open::at(&path))?;
        let open = open.map_err(|error| unusable(&path, &error))?;
        Ok(RunLog { path, program, open: Mutex::new(open) })
    }

    /// The name of this program in the addresses of runs.
    #[getter]
    fn program(&self) -> &str {
        &self.program
    }

    /// Returns the runs of a plan that the file lacks, in units of at most `most` runs.
    fn missing(&self, py: Python<'_>, plan: &Plan, most: u32) -> PyResult<Vec<Unit>> {
        detached(py, || {
            let mut units: Vec<Unit> = Vec::new();
            for (cell, entry) in plan.entries.iter().enumerate() {
                for run in (0..entry.runs).filter(|run| !self.has(&entry.key(*run, &self.program)))
                {
                    match units.last_mut() {
                        Some((of, first, end))
                            if *of == cell && *end == run && run - *first < most =>
                        {
                            *end += 1;
                        }
                        _ => units.push((cell, run, run + 1)),
                    }
                }
            }
            units
        })
    }

    /// Adds the lines of units, which a worker has returned.
    fn add(
        &self,
        py: Python<'_>,
        plan: &Plan,
        units: Vec<Unit>,
        lines: Vec<String>,
    ) -> PyResult<()> {
        detached(py, || {
            let mut keys = Vec::new();
            for unit in units {
                let entry = plan.entry(unit)?;
                keys.extend((unit.1..unit.2).map(|run| entry.key(run, &self.program)));
            }
            let fits = |(key, line): (&String, &String)| {
                line.split_once(' ').is_some_and(|(its, rest)| {
                    its == key && !rest.contains('\n') && RunRecord::from_line(rest).is_some()
                })
            };
            if keys.len() != lines.len() || !keys.iter().zip(&lines).all(fits) {
                return Err(Error::new_err("a worker has returned other runs than it was given"));
            }
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.append(lines).map_err(|error| unusable(&self.path, &error))
        })?
    }

    /// Returns the SHA-256 over all runs of a plan, and the names of their values. All runs are in the file.
    fn summary(&self, py: Python<'_>, plan: &Plan) -> PyResult<(String, Vec<String>)> {
        detached(py, || {
            let (mut hasher, mut names) = (Sha256::new(), BTreeSet::new());
            for entry in &plan.entries {
                for run in 0..entry.runs {
                    let record = self.record(entry, run)?;
                    hasher.update(entry.key(run, ""));
                    hasher.update(record.to_line());
                    hasher.update("\n");
                    for name in record.values.into_keys() {
                        names.insert(name);
                    }
                }
            }
            let digest = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
            Ok((digest, names.into_iter().collect()))
        })?
    }

    /// Returns the runs of the cells from `first` to `end` (excluded) as a table.
    fn table(&self, py: Python<'_>, plan: &Plan, first: usize, end: usize) -> PyResult<Table> {
        detached(py, || {
            let mut rows = Rows::default();
            let some = plan.entries.iter().take(end).skip(first);
            for entry in some {
                for run in 0..entry.runs {
                    let record = self.record(entry, run)?;
                    fill(&mut rows, plan.name(), entry, run, &record);
                }
            }
            rows.finish()
        })?
    }
}

impl RunLog {
    /// Returns true if the file has the run with this key.
    fn has(&self, key: &str) -> bool {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        number(key).is_some_and(|key| open.places.contains_key(&key))
    }

    fn record(&self, entry: &Entry, run: u32) -> PyResult<RunRecord> {
        let key = entry.key(run, &self.program);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let line = open.line(&key).map_err(|error| unusable(&self.path, &error))?;
        let record = run_of(&line).filter(|(its, _)| *its == key).map(|(_, record)| record);
        record.ok_or_else(|| {
            let error = io::Error::other("it was changed while the sweep used it");
            unusable(&self.path, &error)
        })
    }
}

impl Open {
    /// Opens a file and finds its lines. An incomplete last line, which a killed process leaves, is ended.
    fn at(path: &Path) -> io::Result<Open> {
        let mut appended = OpenOptions::new().create(true).append(true).open(path)?;
        let read = File::open(path)?;
        let (mut places, mut at) = (BTreeMap::new(), 0);
        let (mut lines, mut line) = (BufReader::new(&read), Vec::new());
        loop {
            line.clear();
            let length = lines.read_until(b'\n', &mut line)?;
            if length == 0 {
                break;
            }
            if line.last() != Some(&b'\n') {
                appended.write_all(b"\n")?;
                break;
            }
            let text = std::str::from_utf8(&line[..length - 1]).ok();
            let key = text.and_then(run_of).and_then(|(key, _)| number(key));
            places.extend(key.map(|key| (key, (at, length - 1))));
            at += length as u64;
        }
        Ok(Open { appended, read, places })
    }

    /// Appends lines in one call, so that other processes cannot interleave with them.
    fn append(&mut self, lines: Vec<String>) -> io::Result<()> {
        let with_key = |line: String| {
            let key = line.split_once(' ').and_then(|(key, _)| number(key));
            (key, sealed(&line) + "\n")
        };
        let lines: Vec<_> = lines.into_iter().map(with_key).collect();
        let text: String = lines.iter().map(|(_, line)| line.as_str()).collect();
        self.appended.write_all(text.as_bytes())?;
        let mut at = self.appended.stream_position()?.saturating_sub(text.len() as u64);
        for (key, line) in lines {
            self.places.extend(key.map(|key| (key, (at, line.len() - 1))));
            at += line.len() as u64;
        }
        Ok(())
    }

    fn line(&mut self, key: &str) -> io::Result<String> {
        let place = number(key).and_then(|key| self.places.get(&key).copied());
        let (at, length) = place.ok_or_else(|| io::Error::other("a run is missing"))?;
        self.read.seek(SeekFrom::Start(at))?;
        let mut line = vec![0; length];
        self.read.read_exact(&mut line)?;
        String::from_utf8(line).map_err(io::Error::other)
    }
}

/// Returns the key and the run of a line of the file. `None` for a line that is no run, or was changed.
fn run_of(line: &str) -> Option<(&str, RunRecord)> {
    let (key, rest) = unsealed(line)?.split_once(' ')?;
    Some((key, RunRecord::from_line(rest)?))
}

/// Converts the key of a run, 32 hexadecimal digits.
fn number(key: &str) -> Option<u128> {
    if key.len() == 32 { u128::from_str_radix(key, 16).ok() } else { None }
}

/// Adds a run to a table.
fn fill(rows: &mut Rows, scenario: &str, entry: &Entry, run: u32, record: &RunRecord) {
    rows.set("scenario", Datum::Text(scenario.to_owned()));
    entry.places().for_each(|(name, value)| rows.set(name, Datum::Text(value.to_owned())));
    rows.set("scheduler", Datum::Text(entry.scheduler.clone()));
    rows.set("cc", Datum::Text(entry.cc.clone()));
    rows.set("run", Datum::Whole(run.into()));
    rows.set("seed", Datum::Count(run_seed(entry.seed, run)));
    rows.set("completed", Datum::Switch(record.failure.is_none()));
    rows.set("failure", Datum::Text(record.failure.clone().unwrap_or_default()));
    rows.set("segment_hash", Datum::Text(format!("{:016x}", record.hash)));
    for (name, value) in &record.values {
        rows.set(name, Datum::Number(*value));
    }
    rows.end_row();
}

fn unusable(path: &Path, error: &io::Error) -> PyErr {
    refused(format!("{}: {}", path.display(), plait_lab::unreadable(error)))
}
