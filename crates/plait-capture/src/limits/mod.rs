//! The limit of the sender at each time: the state of its paths, and the periods that follow from it.
//!
//! The state is that of the sender. Acknowledgements that the capture has before the sender does take effect
//! later, by the delay between capture and sender. So a capture at the receiver gives the same periods.

mod dry;
mod losses;
mod outage;
mod path;
mod period;
mod rtt;
mod under_way;
mod waits;

pub(crate) use path::PathLimits;
pub(crate) use period::{Label, Log, Period, Stall};
pub(crate) use under_way::UnderWay;

use crate::data_level::{DataLevel, UNKNOWN_WINDOW};
use crate::held::Held;
use crate::subflow::Mark;
use dry::NewData;
use waits::{Lost, Waits};

/// A segment with payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataEvent {
    pub(crate) at_ns: i64,
    pub(crate) path: usize,
    /// Position after the highest byte of the path.
    pub(crate) next: i64,
    /// Begin and end of its data, and the bytes beyond all earlier data.
    pub(crate) data: (i64, i64),
    pub(crate) fresh: u64,
    /// True if another path, or an earlier segment, has brought all of it.
    pub(crate) copy: bool,
    /// True if the capture has its data from this path already.
    pub(crate) again: bool,
    /// If it fills a gap of its path late: the time of the first data beyond the gap.
    pub(crate) missing_since: Option<i64>,
    /// The same of the first gap that is still open.
    pub(crate) gap_since: Option<i64>,
    /// True if it is captured when it arrives, not when it is sent.
    pub(crate) at_receiver: bool,
    pub(crate) packet: Mark,
}

/// An acknowledgement, when the sender has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckEvent {
    pub(crate) at_ns: i64,
    pub(crate) path: usize,
    /// Position of the next byte that the receiver expects, and bytes that it has beyond.
    pub(crate) ack: i64,
    pub(crate) delivered: i64,
    pub(crate) rtt_ns: Option<i64>,
    /// End of the highest data that the path delivered.
    pub(crate) top: i64,
    pub(crate) data_acked: i64,
    /// Right edge of the receive window. It does not move back if it is known.
    pub(crate) edge: i64,
    pub(crate) is_edge_known: bool,
    pub(crate) packet: Mark,
}

/// The largest amount of unacknowledged data.
#[derive(Clone, Copy, Default, Debug)]
struct Ceiling {
    bytes: i64,
    /// When it last grew by a tenth.
    grew: i64,
}

/// The sender of one direction.
#[derive(Clone, Default, Debug)]
pub(crate) struct Limits {
    pub(crate) paths: Vec<PathLimits>,
    under_way: UnderWay,
    pub(crate) log: Log,
    /// Time up to which all paths are charged.
    now: i64,
    /// The packet of that time.
    packet: Mark,
    /// Time of the first data.
    pub(crate) began: Option<i64>,
    new_data: NewData,
    /// Time at which the receiver had everything.
    pub(crate) finished: i64,
    next: i64,
    acked: i64,
    edge: i64,
    ceiling: Ceiling,
    mss: i64,
    waits: Waits,
    /// State of the sender, from a log: outer none if it is unknown, inner none if there is no unsent data.
    sender: Option<Option<Held>>,
}

impl Limits {
    /// Takes the state of the sender from a log.
    pub(crate) fn on_held(&mut self, held: Option<Held>, packet: Mark, data: &DataLevel) {
        self.advance(packet.at_ns, packet, data);
        self.sender = Some(held);
    }

    /// Returns the number of messages, if the program of the sender had written no more for most of the time.
    pub(crate) fn messages(&self) -> Option<u64> {
        let (time, pauses) = self.new_data.dry();
        let whole = self.finished - self.began.unwrap_or(self.finished);
        (time > 0 && time * 2 >= whole).then_some(pauses + 1)
    }

    /// Forgets the state of the sender.
    pub(crate) fn forget_sender(&mut self) {
        self.sender = None;
    }

    /// Returns true if a log has the state of the sender.
    pub(crate) const fn knows_sender(&self) -> bool {
        self.sender.is_some()
    }

    /// Adds a path that opened at `at_ns`. The packets are those that begin and end its handshake.
    pub(crate) fn open(
        &mut self,
        path: usize,
        at_ns: i64,
        rtt_ns: Option<i64>,
        packets: (Mark, Mark),
        is_backup: bool,
    ) {
        // A backup would have carried nothing before.
        let label = if is_backup { Label::Link } else { Label::BeforeJoin };
        let known = self.paths.len();
        if known <= path {
            self.paths.resize_with(path + 1, PathLimits::default);
        }
        // The time of the known paths is charged already, also before they open.
        if let Some(began) = self.began.filter(|began| *began < self.now) {
            for index in known..=path {
                self.paths[index].add(Period {
                    label: if index == path { label } else { Label::BeforeJoin },
                    blamed: Some(index),
                    holder: None,
                    from: began,
                    to: self.now,
                    bytes: 0,
                    packets,
                    window: 0,
                    unacked: 0,
                    byte_time: 0.0,
                });
            }
        }
        self.paths[path].open(at_ns, rtt_ns);
    }

    /// Notes whether a path is a backup.
    pub(crate) fn set_backup(&mut self, path: usize, is_backup: bool) {
        if let Some(path) = self.paths.get_mut(path) {
            path.outage.is_backup = is_backup;
        }
    }

    /// Takes the reset of a path by a packet.
    pub(crate) fn reset(&mut self, path: usize, packet: Mark, data: &DataLevel) {
        if self.paths.get(path).is_some_and(PathLimits::is_open) {
            self.advance(packet.at_ns, packet, data);
            self.packet = packet;
            self.paths[path].reset(path, packet.at_ns);
        }
    }

    /// Another path replaces a path that was reset.
    pub(crate) fn replace(&mut self, path: usize) {
        self.paths.get_mut(path).into_iter().for_each(|it| it.outage.replace());
    }

    /// Sets the payload of a full segment.
    pub(crate) fn set_mss(&mut self, mss: i64) {
        self.mss = self.mss.max(mss);
    }

    /// Takes a segment with payload.
    pub(crate) fn on_data(&mut self, event: &DataEvent, data: &DataLevel) {
        self.advance(event.at_ns, event.packet, data);
        self.open(event.path, event.at_ns, None, (event.packet, event.packet), false);
        if self.began.is_none() {
            (self.began, self.now) = (Some(event.at_ns), event.at_ns);
            self.packet = event.packet;
            self.edge = self.edge.max(data.window.edge);
        }
        self.next = self.next.max(event.data.1);
        if event.fresh > 0 {
            let len = event.data.1 - event.data.0;
            self.new_data.add(event.at_ns, len, self.waits.since());
        }
        let unacked = self.next - self.acked;
        if unacked * 10 > self.ceiling.bytes * 11 {
            self.ceiling.grew = event.at_ns;
        }
        self.ceiling.bytes = self.ceiling.bytes.max(unacked);
        let holder = data.holder(event.data.0);
        if let Some(since) = self.paths[event.path].on_data(event, self.next + unacked) {
            // The sender repeats what it sent on this path first. At the receiver, a repetition of data that had arrived is none.
            let repairs = if event.at_receiver { !event.again } else { holder == Some(event.path) };
            if repairs {
                self.waits.lost.add(Lost { data: event.data, path: event.path });
                self.blame_waits(event);
            }
            self.paths[event.path].blame_own(since, event.at_ns, event.path);
        }
        if event.fresh > 0 {
            self.commit(event.at_ns, false);
        }
    }

    /// Blames a path that lost data for the past waits of the others for this data.
    fn blame_waits(&mut self, event: &DataEvent) {
        for (from, to) in self.waits.of(event.data) {
            self.blame(event.path, (from, to));
        }
    }

    /// Blames the path `loser`, which lost data, for the time in which the other paths waited for this data.
    fn blame(&mut self, loser: usize, time: (i64, i64)) {
        let label = self.paths[loser].repairing();
        for (_, path) in self.paths.iter_mut().enumerate().filter(|(at, _)| *at != loser) {
            path.blame_other(time, label, loser);
        }
    }

    /// Takes an RTT sample of a path that the receiver measured, in nanoseconds.
    pub(crate) fn on_rtt(&mut self, path: usize, rtt_ns: i64) {
        if let Some(path) = self.paths.get_mut(path).filter(|_| rtt_ns > 0) {
            path.on_rtt(rtt_ns);
        }
    }

    /// Takes an acknowledgement, which takes effect at its time.
    pub(crate) fn on_ack(&mut self, event: AckEvent, data: &DataLevel) {
        if self.began.is_none() {
            self.acked = self.acked.max(event.data_acked);
            self.move_edge(&event);
            return;
        }
        self.apply_until(event.packet.at_ns, data);
        self.under_way.add(event);
    }

    /// Applies the acknowledgements that the sender has at `now`.
    fn apply_until(&mut self, now: i64, data: &DataLevel) {
        while let Some(event) = self.under_way.arrived(now) {
            self.charge(event.at_ns, event.packet, data);
            self.apply(&event);
        }
    }

    /// Applies everything up to `now`.
    fn advance(&mut self, now: i64, packet: Mark, data: &DataLevel) {
        self.apply_until(now, data);
        self.charge(now, packet, data);
    }

    /// Returns the receive window in bytes. Before the first acknowledgement it is unknown.
    const fn window(&self) -> i64 {
        if self.edge > 0 { self.edge - self.acked } else { UNKNOWN_WINDOW }
    }

    fn move_edge(&mut self, event: &AckEvent) {
        self.edge = if event.is_edge_known { self.edge.max(event.edge) } else { event.edge };
    }

    fn apply(&mut self, event: &AckEvent) {
        if let Some(path) = self.paths.get_mut(event.path) {
            path.on_ack(event);
        }
        self.move_edge(event);
        if event.data_acked > self.acked {
            let (missing, time) = (self.acked, self.waits.next(event.at_ns));
            match self.waits.lost.path(missing) {
                Some(loser) => self.blame(loser, time),
                None => self.waits.add(missing, time),
            }
            self.acked = event.data_acked;
            if self.acked >= self.next {
                self.finished = event.at_ns;
            }
        }
    }

    /// Adds the time since the last event to the periods of all paths.
    fn charge(&mut self, now: i64, packet: Mark, data: &DataLevel) {
        if self.began.is_none() || now <= self.now {
            return;
        }
        let holder = data.holder(self.acked).filter(|holder| *holder < self.paths.len());
        for index in 0..self.paths.len() {
            let label = self.label(index, holder);
            let (window, unacked) = (self.window(), self.next - self.acked);
            let period = Period {
                label,
                blamed: match label {
                    Label::Behind { .. } => holder,
                    Label::Window
                    | Label::Idle
                    | Label::Short
                    | Label::BufferFull
                    | Label::NothingToSend => None,
                    _ => Some(index),
                },
                holder,
                from: self.now,
                to: now,
                bytes: 0,
                packets: (self.packet, packet),
                window,
                unacked,
                byte_time: unacked as f64 * (now - self.now) as f64,
            };
            self.paths[index].add(period);
        }
        (self.now, self.packet) = (now, packet);
    }

    /// Returns the present limit of a path.
    fn label(&self, index: usize, holder: Option<usize>) -> Label {
        let path = &self.paths[index];
        let unacked = self.next - self.acked;
        if !path.is_open() {
            return Label::BeforeJoin;
        }
        if let Some(label) = path.outage.after_reset() {
            return label;
        }
        if path.rests() && self.others_work() {
            return Label::Link;
        }
        if let Some(label) = path.recovering() {
            return label;
        }
        let beyond = self.paths.iter().any(|path| path.top > self.acked);
        let blocked = beyond && holder.is_some_and(|holder| holder != index);
        if self.window() - unacked < self.mss.max(1) {
            let behind = Label::Behind { window: true, buffer: false };
            return if blocked { behind } else { Label::Window };
        }
        if let Some(label) = self.sender.and_then(|held| self.label_by_log(index, held, blocked)) {
            return label;
        }
        if !path.is_full() {
            return match () {
                () if unacked <= 0 => Label::Idle,
                () if blocked => Label::Behind { window: false, buffer: false },
                () if self.others_are_full(index) => Label::Unused,
                () => Label::Short,
            };
        }
        if path.has_queue() {
            return Label::Link;
        }
        let flat = (self.now - self.ceiling.grew)
            > path.srtt().saturating_mul(if path.had_loss() { 12 } else { 5 });
        if flat && unacked * 10 >= self.ceiling.bytes * 9 {
            return Label::Short;
        }
        if !path.had_loss() && path.is_flat(self.now) { Label::Short } else { path.growing() }
    }

    /// Returns the limit of a path by the state of the sender in a log; none if the state leaves it open. `blocked`
    /// is true if another path has the missing data.
    fn label_by_log(&self, index: usize, held: Option<Held>, blocked: bool) -> Option<Label> {
        let path = &self.paths[index];
        if path.is_full() && path.has_queue() {
            return Some(Label::Link);
        }
        Some(match held {
            Some(Held::SendBuffer) if blocked => Label::Behind { window: false, buffer: true },
            Some(Held::SendBuffer) => Label::BufferFull,
            Some(Held::CongestionWindow) => path.growing(),
            _ if blocked && !path.is_full() => Label::Behind { window: false, buffer: false },
            Some(Held::Scheduler) if !path.is_full() => Label::Declined,
            Some(Held::Scheduler) => path.growing(),
            None if self.next <= self.acked => Label::Idle,
            None => Label::NothingToSend,
            Some(Held::ReceiveWindow | Held::NoPath) => return None,
        })
    }

    /// Returns true if a regular path may carry data.
    fn others_work(&self) -> bool {
        let mut regular = self.paths.iter().filter(|it| it.is_open() && !it.outage.is_backup);
        regular.any(|it| it.outage.reset.is_none())
    }

    fn others_are_full(&self, index: usize) -> bool {
        let mut others = self.paths.iter().enumerate().filter(|(at, _)| *at != index);
        others.any(|(_, path)| path.is_full())
    }

    /// Moves finished periods to the log. `last` is true at the end, when the remaining ones are the tail.
    fn commit(&mut self, now: i64, last: bool) {
        // A loss that is repaired later may be the cause of the wait.
        let open = self.paths.iter().filter_map(|path| path.gap_since).min();
        let open = open.unwrap_or(i64::MAX).min(self.waits.since());
        for index in 0..self.paths.len() {
            let limit = if last { i64::MAX } else { self.paths[index].settled(now, open) };
            while let Some(mut period) = self.paths[index].take_before(limit) {
                if last && period.from >= self.new_data.last_ns {
                    self.relabel_tail(index, &mut period);
                }
                if let (Label::Behind { .. } | Label::Tail, Some(blamed)) =
                    (period.label, period.blamed)
                {
                    let holder = &self.paths[blamed];
                    period.label = holder.label_of_wait(&period, now).unwrap_or(period.label);
                }
                self.log.add(index, &period);
            }
        }
    }

    /// After the last new data, an idle path waits for the path that holds the next byte.
    fn relabel_tail(&self, index: usize, period: &mut Period) {
        let idle = period.label.has_room();
        match period.holder {
            Some(holder) if idle && holder != index => {
                (period.label, period.blamed) = (Label::Tail, Some(holder));
            }
            _ if idle => period.label = Label::Link,
            _ => {}
        }
    }

    /// Applies the acknowledgements that the sender has at `now`, and joins periods, if no data follows. The last
    /// acknowledgement stays, because it ends the record.
    pub(crate) fn settle(&mut self, now: i64, data: &DataLevel) {
        while self.under_way.len() > 1
            && let Some(event) = self.under_way.arrived(now)
        {
            self.charge(event.at_ns, event.packet, data);
            self.apply(&event);
        }
        // A path may have to repeat data that another path has delivered. Then its losses are not known yet.
        if self.paths.iter().all(PathLimits::is_settled) {
            let ends = [self.new_data.last_ns, self.finished];
            self.paths.iter_mut().for_each(|path| path.join_periods(ends));
        }
    }

    /// Returns unused memory.
    pub(crate) fn shrink(&mut self) {
        self.under_way.shrink();
        self.paths.iter_mut().for_each(PathLimits::shrink);
        self.log.stalls.shrink_to_fit();
    }

    /// Ends the record at `end`, the time of the last packet.
    pub(crate) fn finish(&mut self, end: i64, data: &DataLevel) {
        if self.began.is_none() {
            return;
        }
        let last = self.under_way.last().copied();
        let packet = last.map_or(self.packet, |event| event.packet);
        self.advance(last.map_or(end, |event| event.at_ns.max(end)), packet, data);
        let complete = self.acked >= self.next && self.finished > 0;
        let end = if complete { self.finished } else { self.now };
        self.finished = end;
        for (index, path) in self.paths.iter_mut().enumerate() {
            path.end(index, end);
        }
        self.commit(end, true);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A direction that sends one request gets all acknowledgements of the answer. None of them waits for more data.
    #[test]
    fn acknowledgements_wait_only_until_the_sender_has_them() {
        let (mut limits, data) = (Limits::default(), DataLevel::default());
        limits.on_data(&event(0, (0, 100), 0), &data);
        let (ms, delay) = (1_000_000, 20_000_000);
        for nth in 1..1_000 {
            let ack = AckEvent {
                at_ns: nth * ms + delay,
                path: 0,
                ack: 100,
                delivered: 100,
                rtt_ns: None,
                top: 100,
                data_acked: 100,
                edge: 10_000,
                is_edge_known: true,
                packet: mark(nth * ms),
            };
            limits.on_ack(ack, &data);
            assert!(limits.under_way.len() <= 21, "{}", limits.under_way.len());
        }
        limits.finish(2_000 * ms, &data);
        assert_eq!(limits.finished, ms + delay);
    }

    /// The third path opens before the second one. The time of the second one before that counts once.
    #[test]
    fn the_time_before_a_join_counts_once() {
        let (mut limits, data) = (Limits::default(), DataLevel::default());
        let ms = 1_000_000;
        for (nth, path) in [0, 2, 1].into_iter().enumerate() {
            let (start, at_ns) = (nth as i64 * 1_000, nth as i64 * 100 * ms);
            let event = event(path, (start, start + 1_000), at_ns);
            limits.on_data(&event, &data);
        }
        limits.finish(300 * ms, &data);
        let before = limits.log.stalls.iter().filter(|it| it.whole.label == Label::BeforeJoin);
        let mut times = [0; 3];
        for (path, share) in before.flat_map(|stall| stall.shares.iter()) {
            times[path] += share.time;
        }
        assert_eq!(times, [0, 200 * ms, 100 * ms]);
    }

    pub(super) fn mark(at_ns: i64) -> Mark {
        Mark { file: 0, number: 1, at_ns }
    }

    /// Returns new data, sent on `path`.
    fn event(path: usize, data: (i64, i64), at_ns: i64) -> DataEvent {
        DataEvent {
            at_ns,
            path,
            next: data.1 - data.0,
            data,
            fresh: (data.1 - data.0) as u64,
            copy: false,
            again: false,
            missing_since: None,
            gap_since: None,
            at_receiver: false,
            packet: mark(at_ns),
        }
    }
}
