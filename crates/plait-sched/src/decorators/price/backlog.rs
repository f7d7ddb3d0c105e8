//! Data that waits for the cheaper subflows, and how busy the cheapest ones were of late.

use crate::exact;
use crate::state;
use crate::{SubflowView, View, rules};
use plait_base::{Dsn, Span, Time};

/// New data that the connection has to send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unsent {
    /// Its first byte, or the next one to be written.
    first: Dsn,
    /// No new data may be sent because a buffer is full: the receive window, or the send buffer although all of its
    /// data is sent.
    pub(super) buffer_full: bool,
}

impl Unsent {
    pub(super) fn of(view: &View<'_>) -> Unsent {
        let it = &view.connection;
        match rules::next_segment(view) {
            Some(next) => Unsent { first: next.start, buffer_full: next.end > it.wnd_end },
            None => Unsent { first: it.snd_nxt, buffer_full: it.app_blocked },
        }
    }
}

/// Data that waits for the cheaper subflows.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Backlog {
    /// Start of the data that waits.
    from: Dsn,
    /// End of the data that waits.
    mark: Dsn,
    /// Time since which it waits.
    pub(super) since: Time,
    /// Highest cost of a subflow that need not rest, if above the lowest.
    pub(super) ceiling: u32,
    /// Data waited at the last call, and the application was blocked.
    blocked: bool,
}

impl Backlog {
    /// Notes what waits now. Data that waits for a buffer does not wait for the subflows.
    pub(super) fn note(&mut self, view: &View<'_>, unsent: Unsent) {
        let (it, Unsent { first, buffer_full }) = (&view.connection, unsent);
        let end = first.saturating_add(it.unsent).max(it.snd_nxt);
        let blocked = it.app_blocked && !buffer_full;
        if buffer_full || (first >= self.mark && !(self.blocked && blocked)) {
            *self = Backlog { from: first, mark: end, since: view.now, ..Backlog::default() };
        }
        self.blocked = blocked;
        if blocked {
            self.mark = self.mark.max(end);
        }
    }

    /// Returns the bytes that wait, with those of them that were sent since.
    pub(super) const fn bytes(&self) -> u64 {
        self.mark.get().saturating_sub(self.from.get())
    }

    pub(super) fn save(&self, write: &mut dyn FnMut(&str, f64)) {
        write("price.from", self.from.get() as f64);
        write("price.mark", self.mark.get() as f64);
        write("price.since", state::millis(self.since));
        write("price.ceiling", f64::from(self.ceiling));
        write("price.blocked", f64::from(u8::from(self.blocked)));
    }

    /// Loads a value. Returns `None` if the name is unknown or the value is out of range.
    pub(super) fn load(&mut self, name: &str, value: f64) -> Option<()> {
        match name {
            "price.from" => self.from = Dsn::new(exact::nearest(value)),
            "price.mark" => self.mark = Dsn::new(exact::nearest(value)),
            "price.since" => self.since = state::time(value)?,
            "price.ceiling" => {
                self.ceiling = u32::try_from(exact::nearest(value)).unwrap_or(u32::MAX);
            }
            "price.blocked" => self.blocked = value > 0.0,
            _ => return None,
        }
        Some(())
    }
}

/// Half of the recent time.
#[derive(Clone, Copy, Default, Debug)]
struct Half {
    time: Span,
    /// Time without data to send or in flight on the cheapest subflows.
    idle: Span,
    /// New data that the cheapest subflows have sent.
    cheap: u64,
    /// New data that other subflows have sent.
    costly: u64,
}

/// Use of the cheapest subflows in recent time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    /// Time up to which it counts; [`Time::NEVER`] before the first data.
    until: Time,
    /// The cheapest subflows had nothing to send and nothing in flight at that time.
    idle: bool,
    /// Their cost. It is that of the latest call, before any data is counted.
    cost: u32,
    /// The current half of the recent time, and the one before.
    halves: [Half; 2],
}

impl Default for Usage {
    fn default() -> Usage {
        Usage { until: Time::NEVER, idle: false, cost: 0, halves: [Half::default(); 2] }
    }
}

impl Usage {
    /// Notes whether the subflows of the cost `least` are idle now. `half` is the length of half of the recent
    /// time; a longer gap counts as one half.
    pub(super) fn note(&mut self, view: &View<'_>, least: u32, half: Span) {
        self.cost = least;
        let it = &view.connection;
        let holds = |it: &SubflowView| it.price.cost <= least && (it.outstanding | it.queued) > 0;
        let idle = it.unsent == 0 && it.reinject.is_none() && !view.subflows.iter().any(holds);
        if self.until == Time::NEVER && idle {
            return;
        }
        let gap = view.now.since(self.until).min(half);
        let now = &mut self.halves[0];
        now.time += gap;
        now.idle += if self.idle { gap } else { Span::ZERO };
        (self.until, self.idle) = (view.now, idle);
        if now.time >= half {
            self.halves = [Half::default(), *now];
        }
    }

    /// Notes `len` bytes of new data that are sent on a subflow with this cost.
    pub(super) const fn on_sent(&mut self, len: u64, cost: u32) {
        let now = &mut self.halves[0];
        let sent = if cost <= self.cost { &mut now.cheap } else { &mut now.costly };
        *sent = sent.saturating_add(len);
    }

    fn sum(&self) -> Half {
        let [now, before] = self.halves;
        Half {
            time: now.time + before.time,
            idle: now.idle + before.idle,
            cheap: now.cheap.saturating_add(before.cheap),
            costly: now.costly.saturating_add(before.costly),
        }
    }

    /// Returns the percentage of the recent time for which the cheapest subflows would have been idle if they had
    /// carried all data, at the rate that they had while they were busy.
    pub(super) fn idle_percent(&self) -> u64 {
        let Half { time, idle, cheap, costly } = self.sum();
        let busy = exact::bytes(time.minus(idle).as_nanos());
        let (all, cheap) = (exact::nanos(time), exact::bytes(cheap));
        let taken = match cheap {
            _ if costly == 0 => 0,
            0 => all,
            _ => busy.saturating_mul(exact::bytes(costly)) / cheap,
        };
        let idle = exact::bytes(idle.as_nanos()).saturating_sub(taken);
        u64::try_from(100 * idle / all).unwrap_or(100)
    }

    /// Returns the time in which the cheapest subflows carry `len` bytes at the rate that they had while they were
    /// busy; zero if that is unknown.
    pub(super) fn time_for(&self, len: u64) -> Span {
        let Half { time, idle, cheap, .. } = self.sum();
        let busy = exact::bytes(time.minus(idle).as_nanos());
        let nanos = exact::bytes(len).saturating_mul(busy).checked_div(exact::bytes(cheap));
        Span::from_nanos(nanos.map_or(0, |it| u64::try_from(it).unwrap_or(u64::MAX)))
    }

    pub(super) fn save(&self, write: &mut dyn FnMut(&str, f64)) {
        let span = |it: Span| it.as_millis_f64();
        if self.until != Time::NEVER {
            write("price.until", state::millis(self.until));
        }
        write("price.idle", f64::from(u8::from(self.idle)));
        let [now, before] = &self.halves;
        write("price.now.time", span(now.time));
        write("price.now.idle", span(now.idle));
        write("price.now.cheap", now.cheap as f64);
        write("price.now.costly", now.costly as f64);
        write("price.before.time", span(before.time));
        write("price.before.idle", span(before.idle));
        write("price.before.cheap", before.cheap as f64);
        write("price.before.costly", before.costly as f64);
    }

    /// Loads a value. Returns `None` if the name is unknown or the value is out of range.
    pub(super) fn load(&mut self, name: &str, value: f64) -> Option<()> {
        let span = || state::time(value).map(|it| it.since(Time::ZERO));
        let [now, before] = &mut self.halves;
        match name {
            "price.until" => self.until = state::time(value)?,
            "price.idle" => self.idle = value > 0.0,
            "price.now.time" => now.time = span()?,
            "price.now.idle" => now.idle = span()?,
            "price.now.cheap" => now.cheap = exact::nearest(value),
            "price.now.costly" => now.costly = exact::nearest(value),
            "price.before.time" => before.time = span()?,
            "price.before.idle" => before.idle = span()?,
            "price.before.cheap" => before.cheap = exact::nearest(value),
            "price.before.costly" => before.costly = exact::nearest(value),
            _ => return None,
        }
        Some(())
    }
}
