//! Copies of data: which data a path carries again.

use super::estimate::Estimate;
use super::flights::Flight;
use super::memory::Memory;
use super::paths::Paths;
use crate::rules;
use crate::{Decision, Reason, View, What};
use plait_base::{DataRange, SubflowId};

/// Segments from the left edge that are examined for late data.
const LATE_SEGMENTS: usize = 4;
/// Segments from the left edge that are examined for data that another path delivers sooner.
const STALLED_SEGMENTS: usize = 512;

impl Memory {
    fn copy(&mut self, view: &View<'_>, path: &Estimate<'_>, range: DataRange) -> Decision {
        let (subflow, len) = (path.view.id, range.len());
        let arrives = self.note(view, path, len);
        let spare = &mut self.lanes[subflow.index()].spare;
        spare.copies.on_copied(view.now, len);
        self.flights.copied(range, (subflow, spare.sent), (arrives, view.connection.snd_nxt));
        Decision::Send { subflow, what: What::Redundant(range), grant: len, reason: Reason::Copy }
    }

    /// Copies a segment to the path, other than its carrier, where it arrives first.
    fn copy_elsewhere(
        &mut self,
        view: &View<'_>,
        paths: &Paths<'_, '_>,
        flight: &Flight,
    ) -> Option<Decision> {
        let path = paths.fastest_except(view, flight.subflow, flight.range.len())?;
        Some(self.copy(view, path, flight.range))
    }

    /// Copies one of the first segments if it is late, and its own path does not repair it in time.
    pub(super) fn late(&mut self, view: &View<'_>, paths: &Paths<'_, '_>) -> Option<Decision> {
        let may_be_late = paths.may_be_late();
        if !self.flights.any_of_first(LATE_SEGMENTS, &may_be_late) {
            return None;
        }
        let late = self.flights.first(view, LATE_SEGMENTS, may_be_late, |flight| {
            let useful = !paths.rules.copying.repair
                || !flight.lost
                || paths.is_sooner_elsewhere(view, flight);
            useful && paths.is_late(view, flight) && !paths.repairs_in_time(flight)
        })?;
        self.copy_elsewhere(view, paths, &late)
    }

    /// Copies data that another path delivers sooner than its carrier.
    pub(super) fn stalled(&mut self, view: &View<'_>, paths: &Paths<'_, '_>) -> Option<Decision> {
        if !paths.iter().any(|it| paths.may_copy(it, view, 1)) {
            return None;
        }
        let least = paths.iter().map(|it| it.arrives_in(u64::from(it.view.mss))).min()?;
        let calms = paths.calms(view, &self.flights.ways);
        let may_need = |flight: &Flight| calms.of(flight.subflow).may_end(flight);
        let flight = self.flights.first(view, STALLED_SEGMENTS, may_need, |flight| {
            let waits = flight.arrives > view.now + least;
            calms.of(flight.subflow).is_late(flight)
                || (waits && paths.is_sooner_elsewhere(view, flight))
        })?;
        self.copy_elsewhere(view, paths, &flight)
    }

    /// Copies the first data that a path of unknown rate has not carried, to learn its rate.
    pub(super) fn probe(&mut self, view: &View<'_>, paths: &Paths<'_, '_>) -> Option<Decision> {
        let mss = rules::segment_len(view);
        let path = paths.unknown(view, mss)?;
        let range = self.uncarried(view, path.view.id, mss)?;
        Some(self.copy(view, path, range))
    }

    /// Copies the first data that a path has not carried, on the path where it arrives first. Each path has a budget
    /// of such copies.
    pub(super) fn hedge(&mut self, view: &View<'_>, paths: &Paths<'_, '_>) -> Option<Decision> {
        let budget = paths.hedge_budget();
        let allowed = |path: &&Estimate<'_>| {
            let spare = &self.lanes[path.view.id.index()].spare;
            spare.allows(view.now, budget, self.busy.time)
        };
        let mss = rules::segment_len(view);
        let (path, range) = paths
            .for_hedge(view, mss)
            .filter(allowed)
            .find_map(|path| Some((path, self.uncarried(view, path.view.id, mss)?)))?;
        Some(self.copy(view, path, range))
    }

    /// Returns the first data, at most `len` bytes, that a subflow has not carried and that was not passed on.
    fn uncarried(&self, view: &View<'_>, subflow: SubflowId, len: u64) -> Option<DataRange> {
        let mut from = view.connection.snd_una;
        loop {
            let sent = view.queue.uncarried_from(from, subflow)?;
            let (start, end) = (sent.range.start.max(from), sent.range.end);
            if let Some(open) = self.flights.first_open(DataRange::new(start, end)) {
                return Some(DataRange::new(open, end.min(open.saturating_add(len))));
            }
            from = end;
        }
    }
}
