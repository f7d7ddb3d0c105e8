//! Reads a file of `plait run --events` back. It contains the scenario, and its lines are compared
//! with the lines of a repeated run.

use super::events::EventLog;
use crate::{Contents, Error};
use plait_app::AppEvent;
use plait_app::quantity::Binary;
use plait_base::{PathId, Time};
use plait_core::Event;
use plait_lab::RawScenario;
use plait_sim::{Direction, Hop, Watch, Who};
use plait_wire::Segment;
use serde::Deserialize;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

/// Greatest length of the first line in bytes: a quoted scenario (2 MiB).
const LONGEST_HEADER: u64 = 2 << 20;

/// The parts of the first line that are needed to run it again.
#[derive(Deserialize, Debug)]
struct Opening {
    schema: String,
    #[serde(default)]
    command: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    scenario: String,
    #[serde(default)]
    paths: Vec<String>,
}

/// A file of events. As a watcher of the repeated run, it finds the first line that differs.
pub struct Recorded {
    file: PathBuf,
    opening: Opening,
    log: EventLog,
    /// The unread part of the file, and the progress of the comparison.
    state: Arc<Mutex<Comparison>>,
}

/// The progress of the comparison.
struct Comparison {
    rest: BufReader<File>,
    /// Lines that agree, the header included.
    lines: usize,
    differs: bool,
}

/// Compares written bytes with the file instead of writing them.
struct Comparing(Arc<Mutex<Comparison>>);

impl Write for Comparing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Ok(mut state) = self.0.lock() else { return Ok(bytes.len()) };
        if state.differs {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut there = Vec::with_capacity(bytes.len());
        (&mut state.rest).take(bytes.len() as u64).read_to_end(&mut there)?;
        let same = bytes.iter().zip(&there).take_while(|(one, other)| one == other).count();
        let agreed = bytes.get(..same).unwrap_or_default();
        state.lines += agreed.iter().filter(|byte| **byte == b'\n').count();
        if same < bytes.len() {
            state.differs = true;
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Recorded {
    /// Opens a file and reads its first line.
    ///
    /// # Errors
    /// If it cannot be read, or is not a file of events.
    pub fn open(file: &Path) -> Result<Recorded, Error> {
        let shown = file.display();
        let allowed = "a capture, or a file that `plait run --events FILE` wrote";
        let unreadable = |error: &io::Error| {
            let problem = plait_lab::unreadable(error);
            let problem = format!("{problem}\n  allowed: {allowed}");
            Error::File { contents: Contents::RecordedRun, file: file.to_owned(), problem }
        };
        let mut rest = BufReader::new(File::open(file).map_err(|error| unreadable(&error))?);
        let mut first = Vec::new();
        (&mut rest)
            .take(LONGEST_HEADER)
            .read_until(b'\n', &mut first)
            .map_err(|error| unreadable(&error))?;
        let refused = |problem: &str| Error::Refused(format!("{shown}:1: {problem}"));
        if first.len() as u64 == LONGEST_HEADER && !first.ends_with(b"\n") {
            let most = Binary(LONGEST_HEADER);
            return Err(refused(&format!("the first line is larger than {most}, the limit")));
        }
        if first.is_empty() {
            return Err(Error::Refused(format!("{shown}: it is empty\n  allowed: {allowed}")));
        }
        let opening: Option<Opening> = serde_json::from_slice(&first).ok();
        let opening = opening.filter(|it| it.schema == "plait.events/1").ok_or_else(|| {
            refused(
                "it is neither a capture (pcap, pcapng), nor a qlog of plait, nor a file of `plait run --events`\n  \
                 the last one begins with {\"schema\":\"plait.events/1\",...}",
            )
        })?;
        if opening.scenario.is_empty() {
            let problem = "scenario: it does not describe the run, as in files of earlier versions";
            let again = format!("make it again: {} --events {shown}", opening.command);
            return Err(refused(&format!("{problem}\n  {again}")));
        }
        let state = Arc::new(Mutex::new(Comparison { rest, lines: 1, differs: false }));
        let out = Box::new(Comparing(Arc::clone(&state)));
        let log = EventLog::into_writer(file, out, &opening.paths);
        Ok(Recorded { file: file.to_owned(), opening, log, state })
    }

    /// Returns the file, and the number of its latest line, which grows during the repeated run.
    #[must_use]
    pub fn line_number(&self) -> (&Path, Arc<AtomicU64>) {
        (&self.file, self.log.line_number())
    }

    /// Returns the scenario of the file.
    ///
    /// # Errors
    /// If the scenario is invalid. The error has a place in the text in the first line.
    pub fn draft(&self) -> Result<RawScenario, Error> {
        let name = format!("{}:1: scenario", self.file.display());
        RawScenario::from_toml(&name, &self.opening.scenario)
            .map_err(|error| Error::Refused(error.to_string()))
    }

    /// Ends the comparison.
    ///
    /// # Errors
    /// If the file differs from the repeated run.
    pub fn finish(mut self) -> Result<(), Error> {
        let written = self.log.flush();
        let Ok(mut state) = self.state.lock() else { return Ok(()) };
        let differs = state.differs || written.is_err();
        let longer = !differs && state.rest.fill_buf().is_ok_and(|rest| !rest.is_empty());
        if !differs && !longer {
            return Ok(());
        }
        let (file, line) = (self.file.display(), state.lines + 1);
        Err(Error::Refused(format!(
            "{file}:{line}: the run of the first line differs here: the file was cut or changed, or \
             another version wrote it ({})\n  make it again: {} --events {file}",
            self.opening.version, self.opening.command,
        )))
    }
}

impl Watch for Recorded {
    fn on_core(&mut self, now: Time, who: Who, event: &Event) {
        self.log.on_core(now, who, event);
    }

    fn on_app(&mut self, now: Time, who: Who, event: &AppEvent) {
        self.log.on_app(now, who, event);
    }

    fn on_segment(&mut self, now: Time, hop: Hop, path: PathId, way: Direction, segment: &Segment) {
        self.log.on_segment(now, hop, path, way, segment);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_is_named_as_such() {
        let file = std::env::temp_dir().join(format!("plait-empty-{}.pcap", std::process::id()));
        std::fs::write(&file, b"").unwrap();
        let error = Recorded::open(&file).err().unwrap().to_string();
        std::fs::remove_file(&file).unwrap();
        assert!(error.contains(".pcap: it is empty\n  allowed: a capture"), "{error}");
    }
}
