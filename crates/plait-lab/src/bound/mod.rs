//! The bound of a run: the earliest time by which any sender could have delivered the data over its
//! links.
//!
//! By time `t`, a path has delivered nothing before its handshake and its one-way delay, then at most
//! the windows of slow start, then at most its rate. The bound is the first time at which the sum over
//! all paths reaches the size. Every path counts as the first one that is dialled. Buffers limit the
//! bytes in flight. Loss, cross traffic, outages and acknowledgements cost nothing, and only the
//! payload of full segments of plain TCP counts. So no run of any scheduler is better.

mod links;
#[cfg(test)]
mod tests;

use links::{Limits, Links};
use plait_app::Workload;
use plait_app::measure::{Better, Distribution, MEASURES, Measures, Value};
use plait_base::{Span, Time};
use plait_cc::Spec;
use plait_core::Config;
use plait_sim::Setup;

/// A run whose bound is wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoundedRun<'a> {
    /// The links of the run, with the randomness of its seed.
    pub(crate) setup: &'a Setup,
    pub(crate) workload: &'a Workload,
    /// When the application starts, and the latest end.
    pub(crate) begin: Time,
    pub(crate) end: Time,
    /// Settings of the connection, and of plain TCP, whose segments have the largest payload.
    pub(crate) config: &'a Config,
    pub(crate) plain: &'a Config,
    /// Subflows on each path.
    pub(crate) subflows: u8,
    pub(crate) cc: &'a Spec,
}

/// The best values that any sender could reach in a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bound {
    completion: Option<Span>,
    /// In Mbit/s.
    goodput: Option<f64>,
    delays: Option<Distribution>,
}

impl Bound {
    /// Returns the bound of a run: a property of its links, workload, buffers and initial window. `None`
    /// for workloads that have no bound yet: pages, videos, maps, and blocks at infinite rate.
    pub(crate) fn of(run: BoundedRun<'_>) -> Option<Bound> {
        let BoundedRun { setup, workload, begin, end, .. } = run;
        let none = Bound { completion: None, goodput: None, delays: None };
        let links = Links::new(setup, workload.sender(), begin, run.limits());
        let bytes =
            |size: plait_app::workload::Size| size.bytes(run.config.segment_payload()) as f64;
        match *workload {
            Workload::Download { size } | Workload::Upload { size } => {
                let size = bytes(size);
                let done = links.first(size, (begin, end), Links::delivered)?.since(begin);
                let goodput = size * 8.0 / (done.as_nanos().max(1) as f64 / 1e3);
                Some(Bound { completion: Some(done), goodput: Some(goodput), ..none })
            }
            Workload::Bulk { duration } => {
                let micros = duration.as_nanos().max(1) as f64 / 1e3;
                let goodput = links.delivered(begin + duration) * 8.0 / micros;
                Some(Bound { goodput: Some(goodput), ..none })
            }
            Workload::Burst { size } => {
                let plan = Plan { bytes: bytes(size), interval: Span::ZERO, messages: 1 };
                Some(Bound { delays: plan.delays(links, end), ..none })
            }
            Workload::Stream { size, interval, .. } => {
                let messages = workload.messages();
                let plan = Plan { bytes: bytes(size), interval, messages };
                Some(Bound { delays: plan.delays(links, end), ..none })
            }
            Workload::Blocks { bytes, rate, .. } if !rate.is_infinite() => {
                let (interval, messages) = (rate.time_for(bytes), workload.messages());
                let plan = Plan { bytes: bytes as f64, interval, messages };
                Some(Bound { delays: plan.delays(links, end), ..none })
            }
            _ => None,
        }
    }

    /// Returns the best value of a measure, by its name; `None` if the bound does not limit it.
    #[must_use]
    pub fn of_measure(&self, name: &str) -> Option<f64> {
        match name {
            "completion_ms" => self.completion.map(Span::as_millis_f64),
            "goodput_mbps" => self.goodput,
            "message_delay_ms" => self.delays.map(|it| it.mean),
            "message_delay_median_ms" => self.delays.map(|it| it.median),
            "message_delay_p95_ms" => self.delays.map(|it| it.p95),
            "message_delay_p99_ms" => self.delays.map(|it| it.p99),
            "message_delay_max_ms" => self.delays.map(|it| it.max),
            _ => None,
        }
    }

    /// Returns the share of the bound that a run reached in a measure: 1 is the bound, lower is worse.
    #[must_use]
    pub fn share(&self, measure: &str, measures: &Measures) -> Option<f64> {
        let best = self.of_measure(measure)?;
        let entry = MEASURES.iter().find(|entry| entry.name == measure)?;
        let Value::Run(of) = entry.value else { return None };
        let value = of(measures)?;
        let share = match entry.better {
            Better::Higher => value / best,
            Better::Lower => best / value,
            Better::Neither => return None,
        };
        share.is_finite().then_some(share)
    }
}

impl BoundedRun<'_> {
    fn limits(&self) -> Limits {
        let payload = self.plain.segment_payload() as f64;
        // A fixed window has no slow start.
        let first_window = match self.cc.entry().about.name {
            "fixed" => f64::INFINITY,
            _ => f64::from(self.plain.window.initial) * payload * f64::from(self.subflows),
        };
        let buffers = &self.plain.buffers;
        Limits {
            efficiency: payload / f64::from(self.plain.packets.mtu),
            first_window,
            buffer: buffers.rcvbuf.min(buffers.sndbuf) as f64,
        }
    }
}

/// Messages at regular intervals.
struct Plan {
    bytes: f64,
    interval: Span,
    messages: u64,
}

impl Plan {
    /// Returns the least delays of the messages, from the time at which each is due. When the first is
    /// due, all paths may be open, because the first dial may have been a slow one.
    fn delays(&self, mut links: Links, end: Time) -> Option<Distribution> {
        let begin = links.opens()?;
        links.open_all(begin);
        let mut delays = Vec::with_capacity(usize::try_from(self.messages).unwrap_or(0));
        // The start of the present busy period: the first of the messages that wait for each other.
        let mut busy = (0, begin);
        let mut last = begin;
        for index in 0..self.messages {
            let due = begin + self.interval.times(index);
            if due >= last {
                busy = (index, due);
            }
            let all = (index + 1) as f64 * self.bytes;
            let waiting = (index + 1 - busy.0) as f64 * self.bytes;
            let rounds = ((self.bytes - 1.0) / links.buffer()) as u64;
            let earliest = last.max(due + links.there() + links.round().times(rounds));
            let mut done = links.first(all, (earliest, end), Links::delivered)?;
            done = links
                .first(waiting, (done, end), |links, time| links.delivered_since(busy.1, time))?;
            done = links
                .first(self.bytes, (done, end), |links, time| links.delivered_since(due, time))?;
            delays.push(done.since(due));
            last = done;
        }
        Distribution::exact(&mut delays)
    }
}
