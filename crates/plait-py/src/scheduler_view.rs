//! What a scheduler in Python sees, and what it returns.

use crate::error::Error;
use plait_base::DataRange;
use plait_sched::SubflowView;
use pyo3::prelude::*;

/// The state of a connection before a decision.
#[pyclass(frozen, module = "plait")]
pub(crate) struct View {
    subflows: Vec<SubflowView>,
    candidates: plait_base::SubflowSet,
    tsq: bool,
    /// Time since the start of the run in ms.
    #[pyo3(get)]
    now_ms: f64,
    /// Offset of the segment in the data, in bytes from 0.
    #[pyo3(get)]
    segment_dsn: u64,
    /// Payload bytes of the segment.
    #[pyo3(get)]
    segment_bytes: u64,
    /// Bytes that have not been sent, including the segment.
    #[pyo3(get)]
    unsent_bytes: u64,
    /// Bytes from the segment to the end of the send window.
    #[pyo3(get)]
    window_left_bytes: u64,
}

impl View {
    pub(crate) fn new(view: &plait_sched::View<'_>, segment: DataRange) -> View {
        let connection = &view.connection;
        View {
            subflows: view.subflows.to_vec(),
            candidates: view.candidates(),
            tsq: view.tsq,
            now_ms: view.now.since(plait_base::Time::ZERO).as_millis_f64(),
            segment_dsn: segment.start.get(),
            segment_bytes: segment.len(),
            unsent_bytes: connection.unsent,
            window_left_bytes: connection.wnd_end.get().saturating_sub(segment.start.get()),
        }
    }
}

#[pymethods]
impl View {
    /// All subflows, in the order of their ids.
    #[getter]
    fn subflows(&self) -> Vec<Subflow> {
        self.subflows.iter().copied().map(Subflow).collect()
    }

    /// The live subflows that may carry new data: backup subflows only if there is no other.
    #[getter]
    fn candidates(&self) -> Vec<Subflow> {
        let candidate = |it: &&SubflowView| self.candidates.contains(it.id);
        self.subflows.iter().filter(candidate).copied().map(Subflow).collect()
    }

    /// The candidates that can take the segment now. At a decision there is at least one.
    #[getter]
    fn usable(&self) -> Vec<Subflow> {
        let usable = |it: &&SubflowView| {
            self.candidates.contains(it.id) && it.usable(self.segment_bytes, self.tsq)
        };
        self.subflows.iter().filter(usable).copied().map(Subflow).collect()
    }
}

/// A subflow before a decision. Counts of bytes are payload bytes.
#[pyclass(frozen, module = "plait")]
pub(crate) struct Subflow(SubflowView);

impl Subflow {
    pub(crate) fn number(&self) -> u8 {
        self.0.id.0
    }
}

#[pymethods]
impl Subflow {
    /// The id, from 0. A later subflow may get the id of one that has ended.
    #[getter]
    fn id(&self) -> u8 {
        self.0.id.0
    }

    /// Smoothed RTT in ms; infinite before the first sample.
    #[getter]
    fn srtt_ms(&self) -> f64 {
        self.0.srtt.map_or(f64::INFINITY, plait_base::Span::as_millis_f64)
    }

    /// Lowest RTT in ms; infinite before the first sample.
    #[getter]
    fn min_rtt_ms(&self) -> f64 {
        self.0.min_rtt.map_or(f64::INFINITY, plait_base::Span::as_millis_f64)
    }

    /// RTT variation (RFC 6298) in ms.
    #[getter]
    fn rttvar_ms(&self) -> f64 {
        self.0.rttvar.as_millis_f64()
    }

    /// Congestion window in bytes.
    #[getter]
    fn cwnd_bytes(&self) -> u64 {
        self.0.cwnd
    }

    /// Slow start threshold in bytes; None if it is infinite.
    #[getter]
    fn ssthresh_bytes(&self) -> Option<u64> {
        self.0.ssthresh
    }

    /// Bytes in flight.
    #[getter]
    fn inflight_bytes(&self) -> u64 {
        self.0.inflight
    }

    /// Bytes that the congestion window still allows.
    #[getter]
    fn room_bytes(&self) -> u64 {
        self.0.room()
    }

    /// Payload bytes of a full segment.
    #[getter]
    fn mss_bytes(&self) -> u32 {
        self.0.mss
    }

    /// True if this end or the peer requested low priority.
    #[getter]
    fn backup(&self) -> bool {
        self.0.backup
    }

    /// Price of a byte, relative to other subflows; 0 is free.
    #[getter]
    fn cost(&self) -> u32 {
        self.0.price.cost
    }

    /// Delivery rate in bytes per second; 0 if it is unknown.
    #[getter]
    fn delivery_rate(&self) -> u64 {
        self.0.latest.delivery_rate
    }

    fn __repr__(&self) -> String {
        let (id, srtt, room) = (self.0.id.0, self.srtt_ms(), self.0.room());
        format!("<plait.Subflow {id}: srtt_ms={srtt}, room_bytes={room}>")
    }
}

/// Returns the id of a subflow that is given as itself or as its id.
fn id_of(subflow: &Bound<'_, PyAny>) -> PyResult<u8> {
    match subflow.cast::<Subflow>() {
        Ok(subflow) => Ok(subflow.get().0.id.0),
        Err(_) => subflow.extract().map_err(|_| {
            let given = subflow.str().map(|it| it.to_string()).unwrap_or_default();
            Error::new_err(format!(
                "subflow: `{given}` is no subflow\n  allowed: a subflow or its id"
            ))
        }),
    }
}

/// A decision to send the segment on a subflow, which is given as itself or by its id.
///
/// With `room`, the subflow takes further segments without another call while it has room and nothing else changes.
#[pyclass(frozen, module = "plait")]
pub(crate) struct Send {
    pub(crate) subflow: u8,
    pub(crate) room: bool,
}

#[pymethods]
impl Send {
    #[new]
    #[pyo3(signature = (subflow, room=false))]
    fn new(subflow: &Bound<'_, PyAny>, room: bool) -> PyResult<Send> {
        Ok(Send { subflow: id_of(subflow)?, room })
    }

    fn __repr__(&self) -> String {
        let room = if self.room { ", room=True" } else { "" };
        format!("plait.Send({}{room})", self.subflow)
    }
}

/// A decision to wait: for a subflow, which is given as itself or by its id, or for any change.
#[pyclass(frozen, module = "plait")]
pub(crate) struct Wait {
    pub(crate) subflow: Option<u8>,
}

#[pymethods]
impl Wait {
    #[new]
    #[pyo3(signature = (subflow=None))]
    fn new(subflow: Option<&Bound<'_, PyAny>>) -> PyResult<Wait> {
        Ok(Wait { subflow: subflow.map(id_of).transpose()? })
    }

    fn __repr__(&self) -> String {
        format!("plait.Wait({})", self.subflow.map_or_else(String::new, |id| id.to_string()))
    }
}
