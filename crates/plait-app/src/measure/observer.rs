//! The observer, which computes measures from events.

mod tallies;

use super::playback::Playback;
use super::values::pooled;
use super::{Distribution, Histogram, MEASURES, Measures, PathMeasures};
use crate::{AppEvent, Role, Workload};
use plait_base::{DataRange, Dsn, PathId, Span, SubflowId, SubflowSet, Time};
use plait_core::{Carry, Event};
use tallies::{Blocked, Messages, Objects, PathTotals, Sent, is_extra, ratio};

/// Takes the timestamped events of both hosts of one connection and returns [`Measures`].
///
/// Events must come in order of time. Events of the same instant must come in the order in which
/// they happened.
#[derive(Debug)]
pub struct Observer {
    workload: Workload,
    start: Time,
    /// End of the measured time (`bulk`, and workloads with a deadline); otherwise [`Time::NEVER`].
    end: Time,
    /// The sender's data from this position on are measured.
    offset: Dsn,
    /// The path of each subflow of the sender.
    route: [Option<PathId>; SubflowId::MAX],
    sent: Sent,
    paths: Vec<PathTotals>,
    ooo: Histogram,
    blocked: Blocked,
    messages: Messages,
    objects: Objects,
    /// Measures of a client that sends repeated requests.
    playback: Option<Box<Playback>>,
}

impl Observer {
    /// Returns an observer for the same client and a restarted server. It keeps the objects and
    /// messages of the client's app, and forgets everything else.
    #[must_use]
    pub fn before_server(self) -> Observer {
        let Observer { workload, start, paths, objects, messages, playback, .. } = self;
        let fresh = Observer::new(&workload, paths.len(), start);
        match workload.asks() {
            true => Observer { objects, messages, playback, ..fresh },
            false => Observer { objects, ..fresh },
        }
    }

    /// Creates an observer of one connection that runs `workload` over at most `paths` paths. The
    /// client sends its first SYN at `start`.
    #[must_use]
    pub fn new(workload: &Workload, paths: usize, start: Time) -> Observer {
        let end = match workload {
            Workload::Bulk { duration } => start + *duration,
            Workload::Blocks { rate, duration, .. } if rate.is_infinite() => start + *duration,
            Workload::Video(video) => video.deadline().map_or(Time::NEVER, |after| start + after),
            _ => Time::NEVER,
        };
        let playback = || Box::new(Playback::new(paths, start, workload.messages()));
        Observer {
            workload: workload.clone(),
            start,
            end,
            offset: Dsn::ZERO,
            route: [None; SubflowId::MAX],
            sent: Sent::default(),
            paths: vec![PathTotals::default(); paths],
            ooo: Histogram::default(),
            blocked: Blocked::default(),
            messages: Messages::new(workload.messages()),
            objects: Objects::default(),
            playback: workload.asks().then(playback),
        }
    }

    /// Takes an event of the core of `host`.
    pub fn observe(&mut self, now: Time, host: Role, event: &Event) {
        self.observe_all(now, host, [event]);
    }

    /// Takes the events of the core of `host` at one instant.
    pub fn observe_all<'e>(
        &mut self,
        now: Time,
        host: Role,
        events: impl IntoIterator<Item = &'e Event>,
    ) {
        if now > self.end {
            return;
        }
        if host == self.workload.sender() {
            events.into_iter().for_each(|event| self.on_sender(now, event));
        } else {
            events.into_iter().for_each(|event| self.on_receiver(now, event));
        }
    }

    #[inline]
    fn on_receiver(&mut self, now: Time, event: &Event) {
        if let Event::DataReadable { data, waited, subflow } = event
            && data.end > self.offset
        {
            self.ooo.record(*waited);
            if let Some(playback) = &mut self.playback {
                let at = Time::ZERO + now.since(Time::ZERO).minus(*waited);
                playback.on_arrival(at, *subflow);
            }
        } else if let Event::SubflowUp { subflow, path, .. } = event
            && let Some(playback) = &mut self.playback
        {
            playback.on_subflow(*subflow, *path);
        }
    }

    #[inline(always)]
    fn on_sender(&mut self, now: Time, event: &Event) {
        match event {
            Event::DataSent { subflow, data, carry } => {
                self.sent(*subflow, *data, *carry);
                if let Some((playback, path)) = self.playback(*subflow) {
                    playback.on_sent(now, *subflow, path, data.len());
                }
            }
            Event::Acked { subflow, rtt, inflight, .. } => {
                if let Some(rtt) = rtt
                    && let Some(path) = self.path(*subflow)
                {
                    path.sample(*rtt);
                }
                if let Some((playback, path)) = self.playback(*subflow) {
                    playback.on_flight(now, *subflow, path, *inflight);
                }
            }
            seldom => self.on_seldom(now, seldom),
        }
    }

    /// Handles the events that a sender does not emit for every packet.
    #[inline(never)]
    fn on_seldom(&mut self, now: Time, event: &Event) {
        match event {
            Event::SubflowUp { subflow, path, .. } => {
                if let Some(route) = self.route.get_mut(subflow.index()) {
                    *route = Some(*path);
                }
            }
            Event::Blocked(cause) => self.blocked.turn(now, *cause),
            // Resets before the first measured data of a subflow are not measured.
            Event::IdleReset { subflow, .. } if known(self.sent.active, *subflow) => {
                self.sent.idle_resets += 1;
                if let Some(playback) = &mut self.playback {
                    playback.on_idle_reset(*subflow);
                }
            }
            _ => {}
        }
    }

    /// Takes an event of the app of `host`.
    pub fn observe_app(&mut self, now: Time, host: Role, event: &AppEvent) {
        if now > self.end {
            return;
        }
        if let Some(playback) = &mut self.playback {
            playback.on_app(now, event);
        }
        match event {
            AppEvent::MeasureFrom { offset } if host == self.workload.sender() => {
                self.restart(now, *offset);
            }
            AppEvent::MessageDue { data, due, .. } => {
                self.messages.due.push((data.end, *due));
                self.messages.first_due.get_or_insert(*due);
                self.messages.settle(now);
            }
            AppEvent::ObjectAsked { id } => self.objects.asked(now, *id),
            AppEvent::ObjectRead { id } => self.objects.read(now, *id),
            AppEvent::Loaded => self.objects.loaded = Some(now),
            AppEvent::Read { data } if host != self.workload.sender() => {
                let counted = data.intersect(DataRange::new(self.offset, Dsn::MAX));
                self.messages.frontier = data.end;
                if !counted.is_empty() {
                    self.messages.read += counted.len();
                    self.messages.last = now;
                }
                self.messages.settle(now);
            }
            _ => {}
        }
    }

    /// Adds the results of `other`, which observed another connection of the same session: bytes,
    /// samples and blocked times. Both observers are closed at `now`.
    pub fn join(&mut self, now: Time, mut other: Observer) {
        for observer in [&mut *self, &mut other] {
            observer.blocked.turn(now.min(observer.end), None);
        }
        self.sent.join(other.sent);
        for (path, more) in self.paths.iter_mut().zip(&other.paths) {
            path.join(more);
        }
        self.ooo.join(&other.ooo);
        self.blocked.join(other.blocked);
        self.messages.join(&other.messages);
        self.objects.join(other.objects);
    }

    /// Returns the measures at the end of the run.
    #[must_use]
    pub fn finish(mut self, now: Time) -> Measures {
        let now = now.min(self.end);
        self.blocked.turn(now, None);
        let (sent, total) = (self.sent, self.sent.total());
        let mut paths: Vec<PathMeasures> =
            self.paths.iter().map(|path| path.measures(&sent)).collect();
        let playback = self.playback.take().map(|playback| playback.finish(now));
        if let Some((_, idle)) = &playback {
            paths.iter_mut().zip(idle).for_each(|(path, share)| path.idle_share = *share);
        }
        let (complete, goodput_mbps) = (self.complete(now), self.goodput(now));
        let all = Measures {
            complete,
            completion_ms: self.completion().map(Span::as_millis_f64),
            goodput_mbps,
            ooo_delay_ms: self.ooo.distribution(),
            reinjected_share: ratio(sent.reinjected, total),
            retransmitted_share: ratio(sent.retransmitted, total),
            rwnd_blocked_ms: Some(self.blocked.rwnd.as_millis_f64()),
            sndbuf_blocked_ms: Some(self.blocked.sndbuf.as_millis_f64()),
            idle_resets: Some(sent.idle_resets),
            playback: playback.map(|(measures, _)| measures),
            paths,
            message_delay_sd_ms: deviation(&self.messages.delays),
            message_delay_ms: Distribution::exact(&mut self.messages.delays),
            message_delays: pooled(std::mem::take(&mut self.messages.delays)),
            object_time_ms: Distribution::exact(&mut self.objects.times),
            page_load_ms: self
                .objects
                .loaded
                .map(|loaded| loaded.since(self.start).as_millis_f64()),
        };
        self.restricted(all)
    }

    #[inline(always)]
    fn sent(&mut self, subflow: SubflowId, data: DataRange, carry: Carry) {
        let bytes = data.intersect(DataRange::new(self.offset, Dsn::MAX)).len();
        if bytes == 0 {
            return;
        }
        if subflow.index() < SubflowId::MAX {
            self.sent.active.insert(subflow);
        }
        let new = carry == Carry::New;
        if let Some(path) = self.path(subflow) {
            path.sent += bytes;
            path.first += if new { bytes } else { 0 };
        }
        if new {
            self.sent.first += bytes;
        } else {
            self.sent_again(subflow, carry, bytes);
        }
    }

    #[inline(never)]
    fn sent_again(&mut self, subflow: SubflowId, carry: Carry, bytes: u64) {
        self.sent.again(carry, bytes);
        if let Some(path) = self.path(subflow).filter(|_| is_extra(carry)) {
            path.extra += bytes;
        }
    }

    #[inline]
    fn playback(&mut self, subflow: SubflowId) -> Option<(&mut Playback, PathId)> {
        let playback = self.playback.as_deref_mut()?;
        Some((playback, (*self.route.get(subflow.index())?)?))
    }

    fn path(&mut self, subflow: SubflowId) -> Option<&mut PathTotals> {
        let path = (*self.route.get(subflow.index())?)?;
        self.paths.get_mut(path.index())
    }

    /// Forgets all results before `now`, and ignores the sender's data below `offset` from now on.
    fn restart(&mut self, now: Time, offset: Dsn) {
        self.offset = offset;
        self.sent = Sent::default();
        self.paths.fill(PathTotals::default());
        self.ooo.clear();
        self.blocked.restart(now);
        self.messages.read = 0;
    }

    fn complete(&self, now: Time) -> bool {
        match self.workload {
            Workload::Bulk { .. } => now >= self.end,
            Workload::Video(_) | Workload::Blocks { .. } if now >= self.end => true,
            Workload::Web(_) => self.objects.loaded.is_some(),
            _ => self.messages.delays.len() as u64 == self.workload.messages(),
        }
    }

    /// Returns the time from the first SYN to the last byte of the first message.
    fn completion(&self) -> Option<Span> {
        let (_, due) = *self.messages.due.first()?;
        let delay = *self.messages.delays.first()?;
        Some((due + delay).since(self.start))
    }

    fn goodput(&self, now: Time) -> Option<f64> {
        let interval = match self.workload {
            Workload::Bulk { .. } => now.since(self.start),
            Workload::Blocks { rate, .. } if rate.is_infinite() => now.since(self.start),
            Workload::Stream { .. } | Workload::Blocks { .. } => {
                self.messages.last.since(self.messages.first_due?)
            }
            _ => self.completion()?,
        };
        // Bits per microsecond are Mbit/s. A single division keeps round numbers exact.
        (interval > Span::ZERO)
            .then(|| self.messages.read as f64 * 8_000.0 / interval.as_nanos() as f64)
    }

    /// Returns only the measures that the workload has, as [`MEASURES`] defines.
    fn restricted(&self, all: Measures) -> Measures {
        let has = |name: &str| {
            MEASURES.iter().any(|entry| entry.name == name && entry.applies_to(&self.workload))
        };
        Measures {
            completion_ms: all.completion_ms.filter(|_| has("completion_ms")),
            goodput_mbps: all.goodput_mbps.filter(|_| has("goodput_mbps")),
            message_delay_ms: all.message_delay_ms.filter(|_| has("message_delay_ms")),
            message_delays: Some(all.message_delays)
                .filter(|_| has("message_delay_ms"))
                .unwrap_or_default(),
            object_time_ms: all.object_time_ms.filter(|_| has("object_time_ms")),
            page_load_ms: all.page_load_ms.filter(|_| has("page_load_ms")),
            message_delay_sd_ms: all.message_delay_sd_ms.filter(|_| has("message_delay_sd_ms")),
            ..all
        }
    }
}

/// Returns the standard deviation in milliseconds.
fn deviation(delays: &[Span]) -> Option<f64> {
    let count = delays.len() as f64;
    let ms = |delay: &Span| delay.as_millis_f64();
    let mean = delays.iter().map(ms).sum::<f64>() / count;
    let squares: f64 = delays.iter().map(|delay| (ms(delay) - mean) * (ms(delay) - mean)).sum();
    (!delays.is_empty()).then(|| libm::sqrt(squares / count))
}

fn known(set: SubflowSet, subflow: SubflowId) -> bool {
    subflow.index() < SubflowId::MAX && set.contains(subflow)
}

#[cfg(test)]
mod tests;
