//! Copies in advance: how many a path may carry, and the time that they have saved.
//!
//! Most data needs no copy, so copies in advance have a budget. A path may exceed it if its copies have shown
//! their use: they arrived so much earlier than the originals that this is a share of the busy time.

use super::estimate::time_for;
use super::flights::Copied;
use crate::SubflowView;
use plait_base::{Dsn, Span, SubflowId, Time};

/// Time for which the budget counts.
const WINDOW: Span = Span::from_secs(60);
/// Part of the busy time that copies must have saved: one in this many.
const WORTH: u64 = 50;
/// Busy time after which older time counts half.
const MEMORY: Span = Span::from_secs(60);
/// Time that does not count, or the RTT variation if that is longer: paths differ by as much without cause.
const NOISE: Span = Span::from_millis(2);

/// The budget of copies in advance, in bytes a minute.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// Bytes a second. Half of the budget may be spent at once, and half as time goes on.
    rate: u64,
}

impl Budget {
    pub(super) const fn of(bytes_a_minute: u64) -> Budget {
        Budget { rate: bytes_a_minute / 120 }
    }
}

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
    /// When the copies that it carries would have left at the rate of the budget.
    pub(super) until: Time,
    /// Time by which these copies arrived before the originals.
    pub(super) saved: Span,
    /// Bytes that the path has sent.
    pub(super) sent: u64,
    /// The data of the path that arrived by copies first.
    pub(super) ahead: Option<Ahead>,
}

impl Spare {
    /// Returns true if the path may carry a copy in advance.
    pub(super) fn allows(&self, now: Time, budget: Budget, busy: Span) -> bool {
        let is_worth = || self.saved > Span::ZERO && self.saved.times(WORTH) >= busy;
        (budget.rate > 0 && self.until <= now + WINDOW) || is_worth()
    }

    /// Notes that `len` bytes were not sent after all.
    pub(super) fn not_sent(&mut self, len: u64) {
        self.sent = self.sent.saturating_sub(len);
    }

    /// Notes a copy of `len` bytes.
    pub(super) fn on_copied(&mut self, now: Time, len: u64, budget: Budget) {
        self.until = self.until.max(now) + time_for(len, budget.rate);
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

    /// Takes in an acknowledgement of the path, which the receiver may have held back for `held`. Returns the subflow
    /// with copies that came before the data that it completes, and by how much.
    ///
    /// Time before that data was due does not count: new data could have gone to the faster path.
    pub(super) fn on_acked(
        &mut self,
        view: &SubflowView,
        now: Time,
        held: Span,
    ) -> Option<(SubflowId, Span)> {
        let delivered = self.delivered(view);
        let Ahead { since, copy, due, .. } = self.ahead.take_if(|it| it.position <= delivered)?;
        let saved = now.since(since.max(due)).minus(held);
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
    fn half_of_the_budget_may_be_spent_at_once() {
        let (budget, mut spare) = (Budget::of(10 * MB), Spare::default());
        let mut sent = Vec::new();
        for millis in (0..180_000).step_by(2) {
            if spare.allows(at(millis), budget, Span::from_secs(1)) {
                spare.on_copied(at(millis), 1_400, budget);
                sent.push(millis);
            }
        }
        let within = |from, to| 1_400 * sent.iter().filter(|it| (from..to).contains(*it)).count();
        assert!((4_900_000..5_700_000).contains(&within(0, 8_000)), "{}", within(0, 8_000));
        for from in [0, 3_000, 30_000, 60_000, 110_000] {
            let bytes = within(from, from + 60_000);
            assert!((4_900_000..10_003_000).contains(&bytes), "from {from}: {bytes}");
        }
    }

    const COPY: Copied = Copied { by: SubflowId(1), end: Dsn::new(30_000) };

    /// Returns what a path with `outstanding` bytes has shown of the copies of a message that it should have delivered by
    /// 20 ms. The whole message is acknowledged at 12 ms, and the path acknowledges the rest of it `late`.
    fn credit(copy: Copied, edge: u64, late: u64) -> Option<(SubflowId, Span)> {
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
        spare.on_acked(&view(33_000), at(late), Span::ZERO)
    }

    #[test]
    fn a_copy_saves_the_time_for_which_the_original_is_late() {
        assert_eq!(credit(COPY, 30_000, 45), Some((SubflowId(1), Span::from_millis(23))));
        // 2 ms do not count.
        assert_eq!(credit(COPY, 30_000, 22), None);
        assert_eq!(credit(COPY, 30_000, 18), None);
    }

    #[test]
    fn a_copy_of_a_part_saves_nothing_before_the_whole_message_has_arrived() {
        assert_eq!(credit(COPY, 29_999, 45), None);
    }

    #[test]
    fn without_a_budget_only_useful_copies_are_allowed() {
        let none = Budget::of(0);
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
