//! Copies in advance: how many a path may carry, and the time that they have saved.
//!
//! Most data needs no copy, so copies in advance have a budget. A path may exceed it if its copies have shown
//! their use: they arrived so much earlier than the originals that this is a share of the busy time.

use super::allowance::Allowance;
use super::flights::Copied;
use crate::SubflowView;
use plait_base::{Dsn, Span, SubflowId, Time};

/// Part of the busy time that copies must have saved: one in this many.
const WORTH: u64 = 50;
/// Busy time after which older time counts half.
const MEMORY: Span = Span::from_secs(60);
/// Time that does not count, or the RTT variation if that is longer: paths differ by as much without cause.
const NOISE: Span = Span::from_millis(2);

/// Data that copies have brought, and that its first carrier has not delivered yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    /// Since when all of the data up to the end of the first copy is acknowledged; `Time::NEVER` if it is not.
    pub(super) since: Time,
    /// The first of the copies.
    pub(super) copy: Copied,
    /// Bytes that the carrier had sent with the last of this data.
    pub(super) position: u64,
    /// When the carrier should have delivered the first message of this data, and its acknowledgement have arrived.
    pub(super) due: Time,
}

/// The copies of one path, those that it carries and those of its data.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Spare {
    /// The copies that it carries.
    pub(super) copies: Allowance,
    /// Time by which these copies arrived before the originals.
    pub(super) saved: Span,
    /// Bytes that the path has sent.
    pub(super) sent: u64,
    /// The data of the path that arrived by copies first.
    pub(super) ahead: Option<Ahead>,
}

impl Spare {
    /// Returns true if the path may carry a copy in advance. The `budget` is in bytes a minute.
    pub(super) fn allows(&self, now: Time, budget: u64, busy: Span) -> bool {
        let is_worth = || self.saved > Span::ZERO && self.saved.times(WORTH) >= busy;
        self.copies.in_a_minute(now) < budget || is_worth()
    }

    /// Notes that `len` bytes were not sent after all.
    pub(super) fn not_sent(&mut self, len: u64) {
        self.sent = self.sent.saturating_sub(len);
    }

    /// Notes that data was acknowledged that the path has sent first, up to `position`, and of which another subflow
    /// has sent a copy. The path should have it acknowledged at `due`.
    pub(super) fn on_data_acked(
        &mut self,
        view: &SubflowView,
        position: u64,
        copy: Copied,
        due: Time,
    ) {
        if position > self.delivered(view) {
            let since = Time::NEVER;
            let ahead = self.ahead.get_or_insert(Ahead { since, copy, position, due });
            // Later messages may be on time, although the acknowledgement of this one is still missing.
            if ahead.since == Time::NEVER {
                ahead.position = ahead.position.max(position);
                ahead.due = ahead.due.max(due);
            }
        }
    }

    /// Notes that all data up to `edge` is acknowledged now. The acknowledgement of the path may come `later` than that
    /// of the other subflow.
    ///
    /// A copy of a segment in the middle of a message saves nothing until the rest of the message has arrived.
    pub(super) fn on_edge(&mut self, edge: Dsn, now: Time, later: impl Fn(SubflowId) -> Span) {
        if let Some(ahead) = self.ahead.as_mut()
            && ahead.since == Time::NEVER
            && ahead.copy.end <= edge
        {
            ahead.since = now + later(ahead.copy.by);
        }
    }

    /// Takes in an acknowledgement of the path, which should come at `expected`, and which the receiver may have held
    /// back for `held`. Returns the subflow with copies that came before the data that it completes, and by how much.
    ///
    /// Time before that data was due does not count: new data could have gone to the faster path.
    pub(super) fn on_acked(
        &mut self,
        view: &SubflowView,
        now: Time,
        expected: Time,
        held: Span,
    ) -> Option<(SubflowId, Span)> {
        let delivered = self.delivered(view);
        let Ahead { since, copy, due, .. } = self.ahead.take_if(|it| it.position <= delivered)?;
        let saved = now.since(since.max(due).max(expected)).minus(held);
        let saved = saved.minus(view.rttvar.max(NOISE));
        (saved > Span::ZERO).then_some((copy.by, saved))
    }

    /// Returns the bytes that the path has sent and its receiver has in order.
    const fn delivered(&self, view: &SubflowView) -> u64 {
        self.sent.saturating_sub(view.outstanding.saturating_add(view.queued))
    }
}

/// Time with unacknowledged data.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Busy {
    pub(super) time: Span,
    /// Time up to which it counts.
    pub(super) until: Time,
}

impl Busy {
    /// Notes that data is sent while none is unacknowledged.
    pub(super) const fn on_start(&mut self, now: Time) {
        self.until = now;
    }

    /// Notes that data was acknowledged. Returns true if older time counts half from now on.
    pub(super) fn on_acked(&mut self, now: Time) -> bool {
        self.time += now.since(self.until);
        self.until = now;
        let is_long = self.time > MEMORY;
        if is_long {
            self.time = self.time.over(2);
        }
        is_long
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const MB: u64 = 1_000_000;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// In any minute, a path carries no more copies than the budget and one copy.
    #[test]
    fn a_minute_has_no_more_copies_than_the_budget() {
        let (budget, mut spare) = (10 * MB, Spare::default());
        let mut sent = Vec::new();
        for millis in (0..180_000).step_by(2) {
            if spare.allows(at(millis), budget, Span::from_secs(1)) {
                spare.copies.on_copied(at(millis), 1_400);
                sent.push(millis);
            }
        }
        let within = |from, to| 1_400 * sent.iter().filter(|it| (from..to).contains(*it)).count();
        // The budget is spent at once, and again after 70 s.
        let most = (10 * MB as usize).div_ceil(1_400) * 1_400;
        assert_eq!([within(0, 16_000), within(70_000, 86_000)], [most; 2]);
        for from in [0, 3_000, 12_000, 60_000, 110_000] {
            let bytes = within(from, from + 60_000);
            assert!(bytes <= most, "from {from}: {bytes}");
        }
    }

    const COPY: Copied = Copied { by: SubflowId(1), end: Dsn::new(30_000) };

    /// Returns what a path with `outstanding` bytes has shown of the copies of a message that it should have delivered by
    /// 20 ms. The whole message is acknowledged at 12 ms. The path should acknowledge the rest of it at `expected`, and does so
    /// `late`.
    fn credit(copy: Copied, edge: u64, expected: u64, late: u64) -> Option<(SubflowId, Span)> {
        let view = |outstanding| SubflowView {
            outstanding,
            ..SubflowView::new(SubflowId(0), 1_400, 50_000)
        };
        let mut spare = Spare { sent: 30_000, ..Spare::default() };
        spare.on_data_acked(&view(10_000), 25_000, copy, at(20));
        spare.on_edge(Dsn::new(edge), at(12), |_| Span::ZERO);
        // A message that follows is not late, although it is unacknowledged.
        spare.sent = 60_000;
        spare.on_data_acked(&view(40_000), 55_000, copy, at(70));
        spare.on_acked(&view(33_000), at(late), at(expected), Span::ZERO)
    }

    #[test]
    fn a_copy_saves_the_time_for_which_the_original_is_late() {
        assert_eq!(credit(COPY, 30_000, 0, 45), Some((SubflowId(1), Span::from_millis(23))));
        // 2 ms do not count.
        assert_eq!(credit(COPY, 30_000, 0, 22), None);
        assert_eq!(credit(COPY, 30_000, 0, 18), None);
    }

    /// The receiver may wait for the next message before it acknowledges the end of the last one.
    #[test]
    fn an_original_is_not_late_before_its_acknowledgement_is_expected() {
        assert_eq!(credit(COPY, 30_000, 40, 45), Some((SubflowId(1), Span::from_millis(3))));
        assert_eq!(credit(COPY, 30_000, 44, 45), None);
    }

    #[test]
    fn a_copy_of_a_part_saves_nothing_before_the_whole_message_has_arrived() {
        assert_eq!(credit(COPY, 29_999, 0, 45), None);
    }

    #[test]
    fn without_a_budget_only_useful_copies_are_allowed() {
        let none = 0;
        let mut spare = Spare::default();
        assert!(!spare.allows(at(0), none, Span::ZERO));
        spare.saved = Span::from_millis(20);
        assert!(spare.allows(at(0), none, Span::from_millis(1_000)));
        assert!(!spare.allows(at(0), none, Span::from_millis(1_001)));
    }

    #[test]
    fn older_busy_time_counts_half() {
        let mut busy = Busy::default();
        busy.on_start(at(1_000));
        assert!(!busy.on_acked(at(61_000)));
        assert_eq!(busy.time, Span::from_secs(60));
        busy.on_start(at(100_000));
        assert!(busy.on_acked(at(120_000)));
        assert_eq!(busy.time, Span::from_secs(40));
    }
}
