//! A run whose decisions a program makes one by one, for the Gymnasium environment.
//!
//! The engine calls its scheduler in the middle of an event, so the run has a thread of its own. For each decision,
//! the scheduler of this module sends an observation to the program and waits for the action.

use crate::draft::Draft;
use crate::ending::{self, waiting};
use crate::error::{Error, refused};
use crate::single::{RunReport, watched};
use crate::work::BETWEEN_LOOKS;
use plait_base::{DataRange, Span};
use plait_lab::Cell;
use plait_sched::rules::{self, Task};
use plait_sched::{
    About, Decision, Entry, Needs, Outcome, Params, Reason, Scheduler, SubflowView, View,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::thread;

/// Name of the scheduler in the list.
const NAME: &str = "environment";
/// Numbers of an observation about the connection.
const OF_CONNECTION: [&str; 4] = ["now_ms", "segment_bytes", "unsent_bytes", "window_left_bytes"];
/// Numbers of an observation about each subflow.
const OF_SUBFLOW: [&str; 12] = [
    "present",
    "usable",
    "srtt_ms",
    "min_rtt_ms",
    "rttvar_ms",
    "cwnd_bytes",
    "inflight_bytes",
    "room_bytes",
    "mss_bytes",
    "delivery_rate",
    "backup",
    "cost",
];

/// A message from the run.
enum Message {
    /// A decision is due. The observation consists of numbers of 32 bits in the order of this machine.
    Asked(Vec<u8>),
    Ended(Box<Result<RunReport, String>>),
}

/// The run's ends of the two channels.
struct Link {
    asked: SyncSender<Message>,
    actions: Mutex<Receiver<i64>>,
    /// Number of subflows in an observation.
    slots: usize,
}

thread_local! {
    /// The link of the run on this thread.
    static LINK: RefCell<Option<Arc<Link>>> = const { RefCell::new(None) };
}

/// A run that waits for decisions.
#[pyclass(module = "plait._plait")]
pub(crate) struct Episode {
    actions: Sender<i64>,
    messages: Mutex<Receiver<Message>>,
    cancelled: Arc<AtomicBool>,
    report: Option<Py<RunReport>>,
}

#[pymethods]
impl Episode {
    /// The names of the numbers of an observation: about the connection, and about each subflow.
    #[staticmethod]
    fn numbers() -> (Vec<&'static str>, Vec<&'static str>) {
        (OF_CONNECTION.to_vec(), OF_SUBFLOW.to_vec())
    }

    /// The number of paths of a scenario.
    #[staticmethod]
    fn paths(draft: &Draft) -> PyResult<usize> {
        Ok(cell_of(draft)?.scenario.paths.len())
    }

    /// Starts a run of the scenario. Observations have `slots` subflows.
    #[new]
    fn new(draft: &Draft, slots: usize) -> PyResult<Episode> {
        let cell = cell_of(draft)?;
        let (asked, messages) = mpsc::sync_channel(1);
        let (actions, from_program) = mpsc::channel();
        let cancelled = Arc::new(AtomicBool::new(false));
        let link = Link { asked: asked.clone(), actions: Mutex::new(from_program), slots };
        let in_run = Arc::clone(&cancelled);
        let started = thread::Builder::new().name("plait-episode".to_owned()).spawn(move || {
            LINK.set(Some(Arc::new(link)));
            let ran = watched(&cell, false, &in_run);
            LINK.set(None);
            if let Some(ran) = ran {
                // If the program has closed the episode, nobody waits for the end.
                let _ = asked.send(Message::Ended(Box::new(ran)));
            }
        });
        started.map_err(|error| Error::new_err(format!("a thread cannot be started: {error}")))?;
        Ok(Episode { actions, messages: Mutex::new(messages), cancelled, report: None })
    }

    /// Waits for a decision, and returns its observation. Returns None if the run has ended.
    fn observe<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        ending::refuse()?;
        let messages = self.messages.get_mut().unwrap_or_else(PoisonError::into_inner);
        let message = loop {
            let from_run = &mut *messages;
            match waiting(py, move || from_run.recv_timeout(BETWEEN_LOOKS)) {
                Ok(message) => break message,
                Err(RecvTimeoutError::Timeout) => py.check_signals()?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::new_err("the episode is closed, or its run has panicked"));
                }
            }
        };
        match message {
            Message::Asked(numbers) => Ok(Some(PyBytes::new(py, &numbers))),
            Message::Ended(ran) => {
                self.report = Some(Py::new(py, ran.map_err(refused)?)?);
                Ok(None)
            }
        }
    }

    /// Makes the decision that is due, and returns the next observation: the place of a subflow, or a negative number
    /// to wait.
    fn act<'py>(&mut self, py: Python<'py>, action: i64) -> PyResult<Option<Bound<'py, PyBytes>>> {
        if self.report.is_some() || self.actions.send(action).is_err() {
            return Err(Error::new_err("the episode has ended: call reset"));
        }
        self.observe(py)
    }

    /// The report of the run; None before its end.
    #[getter]
    fn report(&self, py: Python<'_>) -> Option<Py<RunReport>> {
        self.report.as_ref().map(|report| report.clone_ref(py))
    }
}

impl Drop for Episode {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

/// Returns the run of a scenario with the scheduler that asks.
fn cell_of(draft: &Draft) -> PyResult<Cell> {
    list_the_scheduler();
    let mut draft = draft.copy();
    draft.set("schedulers", vec![NAME.to_owned()])?;
    draft.one("plait run")
}

/// Adds the scheduler to the list, once.
fn list_the_scheduler() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let about = About {
            name: NAME,
            aliases: &[],
            idea: "Asks a program for each decision (plait.gym).",
            page: "Asks a program for each decision (plait.gym).\n\nOutside of an environment it is `minrtt`.\n",
            params: &[],
            state: &[],
        };
        // If a class has taken the name, `Episode::new` runs that class, which is then the user's wish.
        let _ = plait_sched::register_apart(&[Entry { about, queues_ahead: false, spreads_bursts: false, build: built }]);
    });
}

fn built(_: &Params) -> Box<dyn Scheduler> {
    Box::new(Asking { link: LINK.with_borrow(Option::clone) })
}

/// The scheduler that asks.
struct Asking {
    /// `None` outside of an episode, and after its end.
    link: Option<Arc<Link>>,
}

impl std::fmt::Debug for Asking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(NAME)
    }
}

impl Scheduler for Asking {
    // As for a Python class: the program decides only about new data, and only while a subflow has room.
    fn needs(&self) -> Needs {
        Needs { pacing_rate: true, ..Needs::LEAST }
    }

    fn schedule(&mut self, view: &View<'_>, _: &mut Outcome) -> Decision {
        let segment = match rules::task(view) {
            Task::Settled(decision) => return decision,
            Task::Place(segment) => segment,
        };
        let usable = |subflow: &&SubflowView| takes(view, subflow, segment);
        let Some(fast) = view.subflows.iter().filter(usable).min_by_key(|it| (it.srtt, it.id))
        else {
            return rules::none_usable(view);
        };
        let Some(link) = &self.link else {
            return rules::new_on(view, fast.id, segment, Reason::LowestRtt);
        };
        let Some(action) = link.ask(view, segment) else {
            self.link = None;
            return rules::none_usable(view);
        };
        let place = usize::try_from(action).ok().and_then(|action| view.subflows.get(action));
        match place {
            Some(subflow) if takes(view, subflow, segment) => {
                rules::new_on(view, subflow.id, segment, Reason::Chosen)
            }
            Some(subflow) => Decision::Wait { on: Some(subflow.id), reason: Reason::Chosen },
            None => Decision::Wait { on: None, reason: Reason::Chosen },
        }
    }
}

/// Returns true if a subflow can take the segment now.
fn takes(view: &View<'_>, subflow: &SubflowView, segment: DataRange) -> bool {
    view.candidates().contains(subflow.id) && subflow.usable(segment.len(), view.tsq)
}

impl Link {
    /// Returns the action of the program; `None` if it has closed the episode.
    fn ask(&self, view: &View<'_>, segment: DataRange) -> Option<i64> {
        self.asked.send(Message::Asked(self.observation(view, segment))).ok()?;
        self.actions.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
    }

    fn observation(&self, view: &View<'_>, segment: DataRange) -> Vec<u8> {
        let size = OF_CONNECTION.len() + self.slots * OF_SUBFLOW.len();
        let mut numbers = Vec::with_capacity(size * size_of::<f32>());
        let mut add = |value: f64| numbers.extend_from_slice(&(value as f32).to_ne_bytes());
        let connection = &view.connection;
        let window_left = connection.wnd_end.get().saturating_sub(segment.start.get());
        add(view.now.since(plait_base::Time::ZERO).as_millis_f64());
        [segment.len(), connection.unsent, window_left].into_iter().for_each(|it| add(it as f64));
        for subflow in view.subflows.iter().take(self.slots) {
            let millis = |span: Option<Span>| span.map_or(0.0, Span::as_millis_f64);
            add(1.0);
            add(f64::from(u8::from(takes(view, subflow, segment))));
            for span in [subflow.srtt, subflow.min_rtt, Some(subflow.rttvar)] {
                add(millis(span));
            }
            let (window, inflight, mss) = (subflow.cwnd, subflow.inflight, u64::from(subflow.mss));
            for bytes in [window, inflight, subflow.room(), mss] {
                add(bytes as f64);
            }
            add(subflow.latest.delivery_rate as f64);
            add(f64::from(u8::from(subflow.backup)));
            add(f64::from(subflow.price.cost));
        }
        numbers.resize(size * size_of::<f32>(), 0);
        numbers
    }
}
