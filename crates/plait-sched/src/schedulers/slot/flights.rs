//! Segments on their way, each with the time at which it should arrive.

use crate::View;
use alloc::collections::VecDeque;
use plait_base::{DataRange, Dsn, SubflowId, Time};

/// Most segments that are remembered. Later ones have no prediction.
const MAX_FLIGHTS: usize = 16_384;

/// A segment on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Flight {
    pub(super) range: DataRange,
    /// The subflow that carried it first.
    pub(super) subflow: SubflowId,
    /// When it should arrive.
    pub(super) arrives: Time,
    /// Whether its subflow counts it as lost.
    pub(super) lost: bool,
}

/// The segments that are not DATA_ACKed, in the order of their DSNs.
#[derive(Default, Debug)]
pub(super) struct Flights {
    list: VecDeque<Flight>,
}

impl Flights {
    /// Notes a segment. A copy does not change the prediction of the first.
    pub(super) fn sent(&mut self, flight: Flight) {
        let start = flight.range.start;
        if self.list.back().is_some_and(|last| last.range.start >= start) {
            let at = self.list.partition_point(|it| it.range.start < start);
            let known = self.list.get(at).is_some_and(|it| it.range.start == start);
            if !known && !self.is_full() {
                self.list.insert(at, flight);
            }
        } else if !self.is_full() {
            self.list.push_back(flight);
        }
    }

    /// Notes that a subflow counts data as lost.
    pub(super) fn lost(&mut self, range: DataRange, subflow: SubflowId) {
        let at = self.place(range.start);
        let flight = self.list.get_mut(at);
        let same = |it: &&mut Flight| it.range.start == range.start && it.subflow == subflow;
        if let Some(flight) = flight.filter(same) {
            flight.lost = true;
        }
    }

    /// Forgets the segments of data that was not sent after all.
    pub(super) fn not_sent(&mut self, data: DataRange) {
        let (from, to) = (self.place(data.start), self.place(data.end));
        self.list.drain(from..to);
    }

    /// Forgets the segments below the left edge.
    pub(super) fn acked(&mut self, edge: Dsn) {
        while self.list.front().is_some_and(|it| it.range.end <= edge) {
            self.list.pop_front();
        }
    }

    /// Returns true if `test` holds for one of `count` segments from the left edge.
    #[inline]
    pub(super) fn any_of_first(&self, count: usize, test: impl Fn(&Flight) -> bool) -> bool {
        let (older, newer) = self.list.as_slices();
        let older = &older[..older.len().min(count)];
        let newer = &newer[..newer.len().min(count - older.len())];
        older.iter().any(&test) || newer.iter().any(&test)
    }

    /// Returns the first of `count` segments from the left edge that one subflow alone has carried and for
    /// which `wanted` holds.
    pub(super) fn first(
        &self,
        view: &View<'_>,
        count: usize,
        wanted: impl Fn(&Flight) -> bool,
    ) -> Option<Flight> {
        let mut flights = self.list.iter().take(count).filter(|it| wanted(it));
        let alone = |flight: &&Flight| {
            view.queue.sent_from(flight.range.start).is_some_and(|sent| {
                sent.range.start <= flight.range.start && sent.carried.len() == 1
            })
        };
        flights.find(alone).copied()
    }

    /// Returns the end of the last segment.
    pub(super) fn end(&self) -> Dsn {
        self.list.back().map_or(Dsn::ZERO, |it| it.range.end)
    }

    /// Returns true if no more segments are remembered.
    pub(super) fn is_full(&self) -> bool {
        self.list.len() >= MAX_FLIGHTS
    }

    /// Returns all segments.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Flight> {
        self.list.iter()
    }

    /// Returns the segment at this place, with one that is added if it is the next.
    pub(super) fn saved(&mut self, at: usize) -> Option<&mut Flight> {
        if at == self.list.len() && at < MAX_FLIGHTS {
            let range = DataRange::new(Dsn::ZERO, Dsn::ZERO);
            let (subflow, arrives) = (SubflowId(0), Time::ZERO);
            self.list.push_back(Flight { range, subflow, arrives, lost: false });
        }
        self.list.get_mut(at)
    }

    fn place(&self, start: Dsn) -> usize {
        match self.list.back() {
            Some(last) if last.range.start < start => self.list.len(),
            _ => self.list.partition_point(|it| it.range.start < start),
        }
    }
}
