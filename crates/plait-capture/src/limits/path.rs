//! The sender's state of one path.

use super::losses::{FirstLosses, Losses};
use super::outage::Outage;
use super::period::{Label, Period, join};
use super::rtt::Rtt;
use super::{AckEvent, DataEvent};
use std::collections::VecDeque;

/// A path without acknowledgements for this many RTTs is silent.
const SILENT_RTTS: i64 = 3;
/// Shortest silence, in nanoseconds. A retransmission timeout of Linux is 200 ms after an RTT.
const MIN_SILENCE: i64 = 350_000_000;
/// Shortest retransmission timeout of Linux, in nanoseconds.
const MIN_TIMEOUT: i64 = 200_000_000;
/// A window that has not grown for this many RTTs is not in slow start.
const FLAT_RTTS: i64 = 5;
/// Shortest busy time that gives the rate of a link, and shortest wait in a queue, in nanoseconds.
const MIN_BUSY_NS: i64 = 50_000_000;
const MIN_WAIT_NS: i64 = 2_000_000;
/// Largest payload of a segment in bytes.
const ONE_SEGMENT: u64 = 1_460;
/// Smallest part of the data that was delivered in busy time, if that gives the rate: one in this many.
const BUSY_PART: u64 = 20;
/// Periods that wait for the next acknowledgement. Beyond it, they are as they are.
const MAX_PENDING: usize = 4_096;

/// The flights of a path.
#[derive(Clone, Default, Debug)]
struct Flights {
    /// The largest ones of this round and of the last one, in bytes.
    recent: (i64, i64),
    round: i64,
    /// The largest one of all, and when it last grew by a tenth.
    peak: (i64, i64),
}

/// The busy time of a link.
#[derive(Clone, Default, Debug)]
struct Busy {
    /// Time of the latest acknowledgement of more data.
    progress: Option<i64>,
    /// Time that its packet waited in the queue, in nanoseconds.
    waited: i64,
    /// Time in which the link was busy, and the bytes delivered in it.
    sum: (i64, u64),
}

/// The state of one path.
#[derive(Clone, Default, Debug)]
pub(crate) struct PathLimits {
    opened: Option<i64>,
    next: i64,
    ack: i64,
    delivered: i64,
    /// Bytes delivered since the last period.
    uncharged: u64,
    /// End of the highest data that it delivered.
    pub(crate) top: i64,
    /// Time of the latest data, if it is captured at the receiver, and the end of the data that was on its way then.
    arrived: Option<(i64, i64)>,
    /// Since when a gap is open, at the receiver.
    pub(crate) gap_since: Option<i64>,
    /// Since when data is outstanding without an acknowledgement; none if nothing is.
    waiting: Option<i64>,
    pub(super) outage: Outage,
    rtt: Rtt,
    flights: Flights,
    losses: Losses,
    busy: Busy,
    pending: VecDeque<Period>,
}

impl PathLimits {
    pub(crate) fn open(&mut self, at_ns: i64, rtt_ns: Option<i64>) {
        self.opened.get_or_insert(at_ns);
        if let Some(rtt) = rtt_ns.filter(|rtt| *rtt > 0 && self.rtt.smoothed == 0) {
            (self.rtt.smoothed, self.rtt.least) = (rtt, rtt);
        }
    }

    pub(crate) const fn is_open(&self) -> bool {
        self.opened.is_some()
    }

    pub(crate) const fn srtt(&self) -> i64 {
        self.rtt.smoothed
    }

    /// Returns the smallest RTT of data in nanoseconds; zero if unknown.
    pub(crate) const fn min_rtt(&self) -> i64 {
        self.rtt.least
    }

    /// Returns the losses of the first recovery.
    pub(crate) const fn first_losses(&self) -> FirstLosses {
        self.losses.first
    }

    /// Returns the segments that were lost while the queue was at least half as full as ever, and the others.
    pub(crate) const fn losses(&self) -> (u64, u64) {
        (self.losses.with_queue, self.losses.without_queue)
    }

    pub(crate) const fn had_loss(&self) -> bool {
        self.losses.recoveries > 0
    }

    fn flight(&self) -> i64 {
        if self.outage.reset.is_some() {
            return 0;
        }
        (self.next - 1 - self.delivered).max(0)
    }

    /// Returns true if as much is on its way as lately.
    pub(crate) fn is_full(&self) -> bool {
        let flight = self.flight();
        flight > 0 && flight * 2 >= self.flights.recent.0.max(self.flights.recent.1)
    }

    /// Returns true if packets wait in the queue of the link.
    pub(crate) const fn has_queue(&self) -> bool {
        self.rtt.least > 0 && self.rtt.smoothed > self.rtt.least + self.rtt.least / 4 + 3_000_000
    }

    pub(crate) const fn recovering(&self) -> Option<Label> {
        match (self.losses.recovery, self.losses.recoveries) {
            (None, _) => None,
            (Some(_), 0 | 1) => Some(Label::FirstRecovery),
            (Some(_), _) => Some(Label::Recovery),
        }
    }

    /// Takes its reset. `index` is its number.
    pub(crate) fn reset(&mut self, index: usize, at_ns: i64) {
        if let Some(since) = self.waiting.filter(|since| at_ns - since > self.silence_limit()) {
            self.fall_silent(index, since, at_ns);
        }
        self.outage.reset.get_or_insert((at_ns, false));
        (self.waiting, self.arrived, self.gap_since) = (None, None, None);
        self.losses.recovery = None;
    }

    /// Returns true if it is a backup without unacknowledged data.
    pub(crate) const fn rests(&self) -> bool {
        self.outage.is_backup && self.waiting.is_none()
    }

    pub(crate) const fn growing(&self) -> Label {
        match self.losses.recoveries {
            0 => Label::Ramp,
            1 => Label::AfterFirst,
            _ => Label::AfterLoss,
        }
    }

    fn silence_limit(&self) -> i64 {
        self.rtt.smoothed.saturating_mul(SILENT_RTTS).max(MIN_SILENCE)
    }

    /// Takes data. If it shows a loss, it returns the time since which the path has been held up by it. `under_way` is the end
    /// of the data that was sent by now.
    pub(crate) fn on_data(&mut self, event: &DataEvent, under_way: i64) -> Option<i64> {
        if self.outage.reset.is_some() {
            return None;
        }
        let mut since = event.missing_since.or(event.again.then_some(event.at_ns));
        if event.at_receiver {
            self.gap_since = event.gap_since;
            since = self.on_arrival(event, under_way).or(since);
        } else if since.is_some() {
            since = self.waiting.or(since);
        }
        self.next = self.next.max(event.next);
        if self.flight() > 0 && self.waiting.is_none() {
            self.waiting = Some(event.at_ns);
        }
        if let Some(since) = since {
            self.sort_loss(event.at_ns);
            if self.losses.recovery.is_none() {
                self.begin_recovery(event.at_ns, since);
            }
            if self.losses.recoveries == 1 {
                self.losses.first.in_all += 1;
                self.losses.first.at_once += u64::from(!self.losses.is_continued);
            }
        }
        if event.at_ns - self.flights.round > self.rtt.smoothed.max(10_000_000) * 2 {
            (self.flights.recent, self.flights.round) = ((0, self.flights.recent.0), event.at_ns);
        }
        let flight = self.flight();
        self.flights.recent.0 = self.flights.recent.0.max(flight);
        if flight * 10 > self.flights.peak.0 * 11 {
            self.flights.peak = (flight, event.at_ns);
        }
        since
    }

    /// Begins a recovery. If the lost segment was sent during the one before, it continues that one. `missing` is the time
    /// since which it was missing. At the receiver, the repair arrives a round trip later than at the sender, or a timeout.
    fn begin_recovery(&mut self, now: i64, missing: i64) {
        let (losses, rtt) = (&mut self.losses, self.rtt.smoothed);
        losses.recovery = Some(self.next);
        let continues = |end: i64| now - end < rtt * 2 || missing - end < rtt;
        let before = losses.latest.filter(|last| continues(last.1));
        losses.is_continued = before.is_some();
        losses.latest = Some((before.map_or(now, |last| last.0), now));
        if !losses.is_continued {
            losses.recoveries += 1;
        }
        // A loss of the window that is being repaired adds no window.
        let is_same = before.is_some_and(|last| missing - last.0 <= rtt);
        if losses.recoveries == 1 && !is_same {
            let window = self.flights.recent.0.max(self.flights.recent.1) as u64 / ONE_SEGMENT;
            let first = &mut losses.first;
            // The window shrinks at a loss. Without SACK, data that arrived behind a loss seems to be on its way too.
            first.window = if losses.is_continued { first.window } else { window };
            first.windows += window.min(first.window);
        }
    }

    /// Takes data at the receiver. After a long pause, data that another path has brought meanwhile shows that the
    /// path was silent: its sender had sent the data before.
    ///
    /// If a pause is shorter, but long enough for a retransmission timeout, and the data was sent before the pause, it is a
    /// repetition of data that was lost. Then this returns the begin of the pause.
    fn on_arrival(&mut self, event: &DataEvent, under_way: i64) -> Option<i64> {
        let (since, sent) = self.arrived.replace((event.at_ns, under_way))?;
        let pause = event.at_ns - since;
        if pause > self.silence_limit() && event.copy {
            self.losses.silent_up_to = self.next;
            self.fall_silent(event.path, since, event.at_ns);
            return None;
        }
        let timeout = pause > MIN_TIMEOUT + self.rtt.smoothed / 2;
        (timeout && event.fresh == 0 && event.data.0 < sent).then_some(since)
    }

    /// Returns the label of the time in which the path repairs a loss.
    pub(crate) const fn repairing(&self) -> Label {
        if self.losses.recoveries > 1 { Label::Recovery } else { Label::FirstRecovery }
    }

    /// Blames a loss of this path, of the number `index`, for the time from `from` to `to` in which it had room.
    pub(crate) fn blame_own(&mut self, from: i64, to: i64, index: usize) {
        let label = self.repairing();
        let had_room = |period: &Period| {
            matches!(
                period.label,
                Label::Short | Label::Unused | Label::Behind { window: false, buffer: false }
            )
        };
        self.blame((from, to), label, index, &had_room);
    }

    /// Blames a loss of the path `loser` for a time in which this path had room.
    pub(crate) fn blame_other(&mut self, time: (i64, i64), label: Label, loser: usize) {
        let waited = |period: &Period| match period.label {
            Label::Behind { window: false, buffer: false } => {
                period.blamed.is_none_or(|blamed| blamed == loser)
            }
            // At the receiver, no path is known to have the missing data.
            Label::Short | Label::Unused => period.holder.is_none(),
            _ => false,
        };
        self.blame(time, label, loser, &waited);
    }

    /// Gives a label to the parts of pending periods in a time.
    fn blame(
        &mut self,
        (from, to): (i64, i64),
        label: Label,
        loser: usize,
        which: &dyn Fn(&Period) -> bool,
    ) {
        if self.pending.back().is_none_or(|last| last.to <= from) {
            return;
        }
        let is_within = |period: &Period| period.to > from && period.from < to && which(period);
        if !self.pending.iter().any(is_within) {
            return;
        }
        let mut pending = VecDeque::with_capacity(self.pending.len() + 2);
        for period in std::mem::take(&mut self.pending) {
            if !is_within(&period) {
                pending.push_back(period);
                continue;
            }
            let (before, rest) = period.split(from);
            let (within, after) = rest.split(to);
            pending.extend([before].into_iter().filter(Period::is_some));
            pending.push_back(Period { label, blamed: Some(loser), ..within });
            pending.extend([after].into_iter().filter(Period::is_some));
        }
        self.pending = pending;
    }

    /// Counts a loss as one of the queue or of the link.
    fn sort_loss(&mut self, now: i64) {
        let silent = self.waiting.is_some_and(|since| now - since > self.silence_limit() / 2);
        if silent {
            self.losses.silent_up_to = self.next;
        } else if self.ack < self.losses.silent_up_to {
            // A copy of data that the silence lost.
        } else if self.peak_queue_ns() > 2_000_000
            && (self.rtt.smoothed - self.rtt.least) * 2 >= self.peak_queue_ns()
        {
            self.losses.with_queue += 1;
        } else {
            self.losses.without_queue += 1;
        }
    }

    /// Returns the rate of the link in bits of payload per second: the mean while it was busy. None if that was
    /// too short.
    pub(crate) fn queued_rate(&self) -> Option<f64> {
        let (time, bytes) = self.busy.sum;
        let enough = time >= MIN_BUSY_NS && bytes * BUSY_PART >= self.delivered as u64;
        enough.then(|| bytes as f64 * 8e9 / time as f64)
    }

    /// Returns the longest time that packets waited in the queue, in nanoseconds.
    pub(crate) const fn peak_queue_ns(&self) -> i64 {
        self.rtt.peak - self.rtt.least
    }

    /// Takes an RTT sample in nanoseconds.
    pub(crate) fn on_rtt(&mut self, rtt: i64) {
        self.rtt.add(rtt);
    }

    /// Takes an acknowledgement of `bytes` bytes as a sample of the link's rate, if its packet waited in the queue for longer than
    /// the time since the last acknowledgement: the link was then busy for all of that time.
    fn measure_link(&mut self, now: i64, bytes: u64) {
        let gap = self.busy.progress.replace(now).map_or(i64::MAX, |last| now - last);
        let waited = self.rtt.latest - self.rtt.least;
        let before = std::mem::replace(&mut self.busy.waited, waited);
        // An acknowledgement of one segment may have waited for the next segment instead of in the queue.
        let certain = bytes > ONE_SEGMENT || before >= gap.max(MIN_WAIT_NS);
        if waited >= gap.max(MIN_WAIT_NS) && certain {
            self.busy.sum.0 += gap;
            self.busy.sum.1 += bytes;
        }
    }

    /// Returns true if the largest flight has not grown for some RTTs.
    pub(crate) const fn is_flat(&self, now: i64) -> bool {
        now - self.flights.peak.1 > self.rtt.smoothed.saturating_mul(FLAT_RTTS)
    }

    pub(crate) fn on_ack(&mut self, event: &AckEvent) {
        if let Some(rtt) = event.rtt_ns {
            self.on_rtt(rtt);
        }
        self.ack = self.ack.max(event.ack);
        self.top = self.top.max(event.top);
        let news = event.delivered - self.delivered;
        if news <= 0 {
            return;
        }
        self.uncharged += news as u64;
        self.measure_link(event.at_ns, news as u64);
        self.delivered = event.delivered;
        if let Some(since) = self.waiting.filter(|since| event.at_ns - since > self.silence_limit())
        {
            self.fall_silent(event.path, since, event.at_ns);
        }
        self.waiting = (self.flight() > 0).then_some(event.at_ns);
        if self.losses.recovery.is_some_and(|end| self.ack >= end) {
            self.losses.recovery = None;
            self.flights.recent = (self.flight(), self.flight());
            if let Some(last) = &mut self.losses.latest {
                last.1 = event.at_ns;
            }
        }
    }

    /// Turns the pending periods since `from` into a silence up to `to`.
    fn fall_silent(&mut self, index: usize, from: i64, to: i64) {
        self.outage.silence = Some((from, to));
        for period in &mut self.pending {
            if period.from >= from && period.label != Label::BeforeJoin {
                (period.label, period.to) = (Label::Silent, period.to.min(to));
                period.blamed = Some(index);
            }
        }
    }

    /// Adds a period that ends now.
    pub(crate) fn add(&mut self, period: Period) {
        let period = Period { bytes: std::mem::take(&mut self.uncharged), ..period };
        // A period does not go beyond the time since which the path waits, so a silence is whole periods.
        let since = self.waits_since();
        match self.pending.back_mut() {
            Some(last)
                if last.label == period.label
                    && last.blamed == period.blamed
                    && last.holder == period.holder
                    && since.is_none_or(|since| last.from >= since || period.from < since) =>
            {
                last.extend(&period);
            }
            _ => self.pending.push_back(period),
        }
    }

    /// Returns the time up to which the periods are final. The cause of later ones than `open` is not known yet.
    pub(crate) fn settled(&self, now: i64, open: i64) -> i64 {
        let held = self.waits_since().unwrap_or(now);
        if self.pending.len() > MAX_PENDING { now } else { held.min(open).min(now) }
    }

    /// Takes the first period if it ends by `limit`.
    pub(crate) fn take_before(&mut self, limit: i64) -> Option<Period> {
        self.pending.front().filter(|period| period.to <= limit)?;
        self.pending.pop_front()
    }

    /// Returns the time since which it waits.
    fn waits_since(&self) -> Option<i64> {
        self.waiting.or(self.arrived.map(|it| it.0))
    }

    /// Returns true if all of its data is acknowledged, and arrived.
    pub(crate) const fn is_settled(&self) -> bool {
        self.waiting.is_none() && self.gap_since.is_none()
    }

    /// Joins periods that add up in the log, if no data follows. `ends` are times that divide periods.
    pub(crate) fn join_periods(&mut self, ends: [i64; 2]) {
        let since = self.waits_since().unwrap_or(i64::MAX);
        join(&mut self.pending, [ends[0], ends[1], since]);
    }

    /// Returns unused memory.
    pub(crate) fn shrink(&mut self) {
        self.pending.shrink_to_fit();
    }

    /// Ends the record at `end`.
    pub(crate) fn end(&mut self, index: usize, end: i64) {
        if let Some(since) = self.waiting.filter(|since| end - since > self.silence_limit()) {
            self.fall_silent(index, since, end);
        }
        self.pending.retain(|period| period.from < end);
        for period in &mut self.pending {
            period.to = period.to.min(end);
        }
    }

    /// Returns the label of a path that waited for data of this one, if this one was silent or repaired a loss.
    pub(crate) fn label_of_wait(&self, period: &Period, now: i64) -> Option<Label> {
        let half = (period.to - period.from) / 2;
        let overlaps = |(from, to): (i64, i64)| period.to.min(to) - period.from.max(from) > half;
        if self.outage.reset.is_some_and(|(at, _)| overlaps((at, now))) {
            return Some(Label::Reset);
        }
        let present = self.waiting.filter(|since| now - since > self.silence_limit());
        if present.is_some_and(|since| overlaps((since, now)))
            || self.outage.silence.is_some_and(overlaps)
        {
            return Some(Label::Silent);
        }
        let repairing = match (self.losses.recovery, self.losses.latest) {
            (Some(_), Some((from, _))) => Some((from, now)),
            (None, last) => last,
            (Some(_), None) => None,
        };
        repairing.is_some_and(overlaps).then(|| self.repairing())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::mark;
    use super::*;

    const MS: i64 = 1_000_000;
    const SEGMENT: i64 = ONE_SEGMENT as i64;

    /// Returns the arrival of data up to `next` segments. It fills a gap that is known since `missing`.
    fn arrival(at: i64, next: i64, missing: Option<i64>) -> DataEvent {
        DataEvent {
            at_ns: at * MS,
            path: 0,
            next: next * SEGMENT,
            data: (0, SEGMENT),
            fresh: ONE_SEGMENT,
            copy: false,
            again: false,
            missing_since: missing.map(|at| at * MS),
            gap_since: None,
            at_receiver: true,
            packet: mark(at * MS),
        }
    }

    fn ack(at: i64, segments: i64) -> AckEvent {
        AckEvent {
            at_ns: at * MS,
            path: 0,
            ack: segments * SEGMENT,
            delivered: segments * SEGMENT,
            rtt_ns: Some(80 * MS),
            top: 0,
            data_acked: 0,
            edge: 0,
            is_edge_known: true,
            packet: mark(at * MS),
        }
    }

    /// A path that has repaired 50 of 100 segments, one in each round trip. 300 others arrived meanwhile.
    fn repaired() -> PathLimits {
        let mut path = PathLimits::default();
        path.open(0, Some(80 * MS));
        path.on_data(&arrival(100, 101, None), 0);
        for nth in 0..50 {
            path.on_data(&arrival(180 + 80 * nth, 101 + 6 * nth, Some(100)), 0);
        }
        path.on_ack(&ack(4_110, 101));
        path
    }

    #[test]
    fn a_loss_during_a_recovery_continues_it_although_its_repair_arrives_later() {
        let mut path = repaired();
        assert_eq!((path.first_losses().at_once, path.first_losses().windows), (50, 100));
        path.on_data(&arrival(4_400, 401, Some(4_150)), 0);
        assert_eq!(path.repairing(), Label::FirstRecovery);
        let first = path.first_losses();
        // The window is at most the first one, although 300 segments seem to be on their way.
        assert_eq!((first.at_once, first.in_all, first.windows), (50, 51, 200));
    }

    #[test]
    fn a_loss_of_the_window_that_is_being_repaired_adds_no_window() {
        let mut path = repaired();
        path.on_data(&arrival(4_120, 401, Some(100)), 0);
        assert_eq!(path.repairing(), Label::FirstRecovery);
        assert_eq!((path.first_losses().in_all, path.first_losses().windows), (51, 100));
    }

    #[test]
    fn a_loss_after_a_recovery_begins_another_one() {
        let mut path = repaired();
        path.on_data(&arrival(4_400, 401, Some(4_200)), 0);
        assert_eq!(path.repairing(), Label::Recovery);
        assert_eq!((path.first_losses().in_all, path.first_losses().windows), (50, 100));
    }
}
