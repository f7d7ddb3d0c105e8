//! Segments on their way, each with the time at which it should arrive.

use super::way::{Retransmission, Way};
use crate::View;
use alloc::collections::VecDeque;
use plait_base::{DataRange, Dsn, SubflowId, SubflowSet, Time};

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
    /// Number of segments that were noted before it.
    pub(super) order: u64,
    /// Bytes that its subflow had sent with it.
    pub(super) position: u64,
    /// Its first copy.
    pub(super) copy: Option<Copied>,
}

/// A copy of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Copied {
    /// The subflow that carried it.
    pub(super) by: SubflowId,
    /// The end of the data that was sent then. The copy saves time if all of this data arrives sooner.
    pub(super) end: Dsn,
}

/// The segments that are not DATA_ACKed, in the order of their DSNs.
#[derive(Default, Debug)]
pub(super) struct Flights {
    list: VecDeque<Flight>,
    /// Number of all segments that were noted.
    pub(super) noted: u64,
    pub(super) ways: [Way; SubflowId::MAX],
}

impl Flights {
    /// Notes a segment of new data that is sent now.
    #[inline(always)]
    pub(super) fn sent(
        &mut self,
        range: DataRange,
        (subflow, position): (SubflowId, u64),
        arrives: Time,
    ) {
        let order = self.noted;
        self.noted += 1;
        let full = self.is_full();
        match self.list.back_mut() {
            Some(last) if last.range.start > range.start => {
                self.sent_before(range, (subflow, position), arrives);
            }
            // It was planned before, and not sent then.
            Some(last) if last.range.start == range.start => {
                (last.range, last.subflow, last.arrives) = (range, subflow, arrives);
                (last.lost, last.order, last.copy, last.position) = (false, order, None, position);
            }
            _ if full => {}
            _ => self.list.push_back(Flight {
                range,
                subflow,
                arrives,
                lost: false,
                order,
                position,
                copy: None,
            }),
        }
    }

    /// Notes a segment that lies before others. It may have been planned before.
    #[inline(never)]
    fn sent_before(
        &mut self,
        range: DataRange,
        (subflow, position): (SubflowId, u64),
        arrives: Time,
    ) {
        let flight = Flight {
            range,
            subflow,
            arrives,
            lost: false,
            order: self.noted - 1,
            position,
            copy: None,
        };
        let (at, full) = (self.place(range.start), self.is_full());
        match self.list.get_mut(at).filter(|it| it.range.start == range.start) {
            Some(planned) => *planned = flight,
            None if full => {}
            None => self.list.insert(at, flight),
        }
    }

    /// Notes a copy, sent when all data up to `end` had been sent. It does not change what is known of the first.
    pub(super) fn copied(
        &mut self,
        range: DataRange,
        (subflow, position): (SubflowId, u64),
        (arrives, end): (Time, Dsn),
    ) {
        let next = self.list.partition_point(|it| it.range.start <= range.start);
        let known = next.checked_sub(1).and_then(|at| self.list.get_mut(at));
        match known.filter(|it| range.start < it.range.end) {
            // If several paths copy it, the first copy decides.
            Some(known) => _ = known.copy.get_or_insert(Copied { by: subflow, end }),
            None => self.sent(range, (subflow, position), arrives),
        }
    }

    /// Notes that the subflow that has carried a segment first counts it as lost. If the time of its repair is
    /// known, all data behind it waits for that.
    pub(super) fn lost(
        &mut self,
        now: Time,
        range: DataRange,
        subflow: SubflowId,
        repair: Option<Retransmission>,
    ) {
        let at = self.place(range.start);
        let flight = self.list.get_mut(at);
        let same = |it: &&mut Flight| it.range.start == range.start && it.subflow == subflow;
        let Some(flight) = flight.filter(same) else { return };
        let new = !core::mem::replace(&mut flight.lost, true);
        if let (Some(repair), Some(way)) = (repair, self.ways.get_mut(subflow.index())) {
            way.on_lost(now, flight.order, new, repair);
        }
    }

    /// Notes that a subflow has acknowledged all its segments below `first_unacked`, or all of them if there is
    /// none.
    pub(super) fn passed_on(&mut self, subflow: SubflowId, first_unacked: Option<Dsn>) {
        let passed = match first_unacked {
            None => Some(self.noted),
            // Of a copy it is unknown which segments the subflow has sent before it.
            Some(dsn) => self.with(dsn).filter(|it| it.subflow == subflow).map(|it| it.order),
        };
        if let (Some(passed), Some(way)) = (passed, self.ways.get_mut(subflow.index())) {
            way.passed = passed;
        }
    }

    /// Returns the first byte of `data` that was not passed on.
    pub(super) fn first_open(&self, data: DataRange) -> Option<Dsn> {
        let mut open = data.start;
        let next = self.list.partition_point(|it| it.range.start <= open);
        for flight in self.list.range(next.saturating_sub(1)..) {
            if flight.range.end <= open {
                continue;
            }
            if flight.range.start > open || open >= data.end || self.known(flight).is_some() {
                break;
            }
            open = flight.range.end;
        }
        (open < data.end).then_some(open)
    }

    /// Returns the segment with this byte.
    fn with(&self, dsn: Dsn) -> Option<&Flight> {
        let next = self.list.partition_point(|it| it.range.start <= dsn);
        self.list.get(next.checked_sub(1)?).filter(|it| dsn < it.range.end)
    }

    /// Returns a segment with the time at which it should be passed on, or `None` if it was passed on.
    #[inline]
    fn known(&self, flight: &Flight) -> Option<Flight> {
        let way = self.ways.get(flight.subflow.index())?;
        let arrives = way.passes_on(flight.order, flight.arrives)?;
        Some(Flight { arrives, ..*flight })
    }

    /// Forgets the segments of data that was not sent after all.
    pub(super) fn not_sent(&mut self, data: DataRange) {
        let (from, to) = (self.place(data.start), self.place(data.end));
        self.list.drain(from..to);
    }

    /// Forgets the segments below the left edge. Passes those to `copied` of which a subflow has carried a copy.
    pub(super) fn acked(&mut self, edge: Dsn, mut copied: impl FnMut(&Flight, Copied)) {
        while let Some(first) = self.list.front().filter(|it| it.range.end <= edge) {
            if let Some(copy) = first.copy {
                copied(first, copy);
            }
            self.list.pop_front();
        }
    }

    /// Returns true if all segments are acknowledged.
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns true if `test` holds for one of `count` segments from the left edge. Repairs and segments that were
    /// passed on are ignored, so it may be true too often. `first` decides.
    #[inline]
    pub(super) fn any_of_first(&self, count: usize, test: impl Fn(&Flight) -> bool) -> bool {
        let (front, back) = self.list.as_slices();
        let more = count.saturating_sub(front.len());
        front.iter().take(count).any(&test) || (more > 0 && back.iter().take(more).any(&test))
    }

    /// Returns the first of `count` segments from the left edge without a copy that only its first subflow has carried,
    /// that this subflow has not passed on, and for which `wanted` holds. `may_be` is true for these at least, without
    /// the repairs.
    pub(super) fn first(
        &self,
        view: &View<'_>,
        count: usize,
        may_be: impl Fn(&Flight) -> bool,
        wanted: impl Fn(&Flight) -> bool,
    ) -> Option<Flight> {
        let alone = |flight: &Flight| {
            view.queue.sent_from(flight.range.start).is_some_and(|sent| {
                sent.range.start <= flight.range.start
                    && sent.carried == SubflowSet::one(flight.subflow)
            })
        };
        for flight in self.list.iter().take(count) {
            if flight.copy.is_none()
                && may_be(flight)
                && let Some(flight) = self.known(flight)
                && wanted(&flight)
                && alone(&flight)
            {
                return Some(flight);
            }
        }
        None
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
            self.list.push_back(Flight {
                range,
                subflow,
                arrives,
                lost: false,
                order: 0,
                position: 0,
                copy: None,
            });
        }
        self.list.get_mut(at)
    }

    /// Returns the place of the first segment that does not start before `start`.
    fn place(&self, start: Dsn) -> usize {
        match self.list.back() {
            Some(last) if last.range.start < start => self.list.len(),
            _ => self.list.partition_point(|it| it.range.start < start),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// The first copy of a segment has brought it, so it gets the credit.
    #[test]
    fn the_first_of_several_copies_counts() {
        let (mut flights, range) = (Flights::default(), DataRange::between(0, 1_000));
        flights.sent(range, (SubflowId(0), 1_000), Time::ZERO);
        for (by, end) in [(1, 3_000), (2, 4_000)] {
            flights.copied(range, (SubflowId(by), 500), (Time::ZERO, Dsn::new(end)));
        }
        let mut seen = Vec::new();
        flights.acked(range.end, |flight, copy| seen.push((flight.subflow, copy)));
        assert_eq!(seen, [(SubflowId(0), Copied { by: SubflowId(1), end: Dsn::new(3_000) })]);
    }
}
