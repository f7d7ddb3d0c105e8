//! Both ends of a workload over a pair of streams in memory, with a fixed delay, a send buffer and
//! no rate limit.

use super::{App, AppEvent, Role, Stream, StreamState, Workload};
use crate::{Measures, Observer};
use plait_base::{PathId, ServerAddress, Span, SubflowId, Time};
use plait_core::Event;
use std::collections::VecDeque;

/// The network and the hosts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    /// One-way delay.
    pub(super) delay: Span,
    pub(super) sndbuf: u64,
    pub(super) payload: u64,
    pub(super) subflows: u32,
    /// Delay of a DATA_ACK after the ACK of the subflow.
    pub(super) data_ack_lag: Span,
    /// Interval of additional polls; zero means none.
    pub(super) tick: Span,
    /// Time from the first subflow to the establishment of all.
    pub(super) joined_after: Span,
    /// Time from the last byte sent until the windows are at their initial value; [`Span::MAX`] is
    /// never.
    pub(super) decay: Span,
    /// Time at which the connection fails.
    pub(super) fails_at: Time,
    /// No handshake completes.
    pub(super) unreachable: bool,
}

impl Default for Setting {
    fn default() -> Setting {
        Setting {
            delay: Span::from_millis(10),
            data_ack_lag: Span::ZERO,
            tick: Span::ZERO,
            sndbuf: 1 << 40,
            payload: 1428,
            subflows: 2,
            joined_after: Span::from_millis(30),
            decay: Span::from_secs(2),
            fails_at: Time::NEVER,
            unreachable: false,
        }
    }
}

/// An action of an app on its stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Act {
    Write(u64),
    Finish,
    WarmUp(bool),
    ResetWindows,
}

#[derive(Debug, Default)]
struct End {
    opens_at: Time,
    written: u64,
    acked: u64,
    arrived: u64,
    read: u64,
    finished: bool,
    /// Real bytes in flight to this end. A single queue is enough to check the events of apps.
    bytes: VecDeque<u8>,
    /// Arrival time of the peer's DATA_FIN, and its position.
    peer_end: Option<(Time, u64)>,
    arrivals: VecDeque<(Time, u64)>,
    acks: VecDeque<(Time, u64)>,
    last_sent: Time,
    acts: Vec<(Time, Act)>,
}

impl End {
    fn advance(&mut self, now: Time) {
        while let Some((_, upto)) = self.arrivals.pop_front_if(|(at, _)| *at <= now) {
            self.arrived = upto;
        }
        while let Some((_, upto)) = self.acks.pop_front_if(|(at, _)| *at <= now) {
            self.acked = upto;
        }
    }

    fn next(&self) -> [Time; 4] {
        let first =
            |queue: &VecDeque<(Time, u64)>| queue.front().map_or(Time::NEVER, |entry| entry.0);
        let end = self.peer_end.map_or(Time::NEVER, |end| end.0);
        [first(&self.arrivals), first(&self.acks), end, self.opens_at]
    }
}

struct Lent<'a> {
    now: Time,
    setting: &'a Setting,
    me: &'a mut End,
    peer: &'a mut End,
}

impl Stream for Lent<'_> {
    fn state(&self) -> StreamState {
        if self.now >= self.setting.fails_at {
            return StreamState::Failed;
        }
        if self.now < self.me.opens_at {
            return StreamState::Connecting;
        }
        match self.me.peer_end {
            Some((at, end)) if at <= self.now && self.me.read == end => {
                let all_acked = self.me.finished && self.me.acked == self.me.written;
                if all_acked { StreamState::Closed } else { StreamState::PeerDone }
            }
            _ => StreamState::Open,
        }
    }

    fn write(&mut self, len: u64) -> u64 {
        assert!(!self.me.finished, "written after the end");
        if self.now < self.me.opens_at {
            return 0;
        }
        let taken = len.min(self.setting.sndbuf - self.unacked());
        if taken > 0 {
            self.me.written += taken;
            self.me.last_sent = self.now;
            self.me.acts.push((self.now, Act::Write(taken)));
            let there = self.now + self.setting.delay;
            self.peer.arrivals.push_back((there, self.me.written));
            let back = there + self.setting.delay + self.setting.data_ack_lag;
            self.me.acks.push_back((back, self.me.written));
        }
        taken
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> u64 {
        let taken = self.write(bytes.len() as u64);
        self.peer.bytes.extend(&bytes[..taken as usize]);
        taken
    }

    fn read_bytes(&mut self, buffer: &mut [u8]) -> u64 {
        let count = self.read(buffer.len() as u64);
        for place in &mut buffer[..count as usize] {
            *place = self.me.bytes.pop_front().unwrap_or_default();
        }
        count
    }

    fn readable(&self) -> u64 {
        self.me.arrived - self.me.read
    }

    fn read(&mut self, max: u64) -> u64 {
        let count = max.min(self.readable());
        self.me.read += count;
        count
    }

    fn unacked(&self) -> u64 {
        self.me.written - self.me.acked
    }

    fn finish(&mut self) {
        if !self.me.finished {
            self.me.finished = true;
            self.me.acts.push((self.now, Act::Finish));
            self.peer.peer_end = Some((self.now + self.setting.delay, self.me.written));
        }
    }

    fn segment_payload(&self) -> u64 {
        self.setting.payload
    }

    fn subflows(&self) -> u32 {
        self.setting.subflows
    }

    fn subflows_ready(&self) -> bool {
        self.now >= self.me.opens_at + self.setting.joined_after
    }

    fn warm_up(&mut self, on: bool) {
        self.me.acts.push((self.now, Act::WarmUp(on)));
    }

    fn initial_window_at(&self) -> Option<Time> {
        let acked_at = self.me.last_sent + self.setting.delay.times(2);
        (self.now >= acked_at).then(|| match self.setting.decay {
            Span::MAX => Time::NEVER,
            decay => self.me.last_sent + decay,
        })
    }

    fn reset_windows(&mut self) {
        self.me.acts.push((self.now, Act::ResetWindows));
    }
}

/// Result of a run.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) log: Vec<(Time, Role, AppEvent)>,
    pub(super) client: Vec<(Time, Act)>,
    pub(super) server: Vec<(Time, Act)>,
    pub(super) measures: Measures,
    pub(super) end: Time,
    /// Both ends reported that they were done.
    pub(super) done: bool,
}

impl Outcome {
    /// Returns the time of `event` of `host` in the log.
    pub(super) fn when(&self, host: Role, event: AppEvent) -> Option<Time> {
        self.log.iter().find(|entry| (entry.1, entry.2) == (host, event)).map(|entry| entry.0)
    }
}

/// Runs `workload` from `start` until both ends are done or no event is left.
pub(super) fn run(workload: &Workload, setting: &Setting, start: Time) -> Outcome {
    let (mut client, mut server) = workload.apps().remove(0);
    let mut ends = [End::default(), End::default()];
    let never = setting.unreachable;
    ends[0].opens_at = if never { Time::NEVER } else { start + setting.delay.times(2) };
    ends[1].opens_at = if never { Time::NEVER } else { start + setting.delay.times(3) };
    let mut observer = Observer::new(workload, 1, start);
    let up = Event::SubflowUp { subflow: SubflowId(0), path: PathId(0), server: ServerAddress(0) };
    observer.observe(start, workload.sender(), &up);
    let (mut log, mut fresh, mut now) = (Vec::new(), Vec::new(), start);
    for _ in 0..100_000 {
        // The second poll is for apps that asked to be woken at once.
        for again in [false, true] {
            for host in [Role::Client, Role::Server] {
                let [first, second] = &mut ends;
                let (app, me, peer): (&mut Box<dyn App>, _, _) = match host {
                    Role::Client => (&mut client, first, second),
                    Role::Server => (&mut server, second, first),
                };
                me.advance(now);
                if again && app.wake().is_none_or(|wake| wake > now) {
                    continue;
                }
                app.poll(now, &mut Lent { now, setting, me, peer }, &mut fresh);
                for event in fresh.drain(..) {
                    observer.observe_app(now, host, &event);
                    log.push((now, host, event));
                }
            }
        }
        let done = client.done() && server.done();
        let wakes = [&client, &server].map(|app| app.wake().unwrap_or(Time::NEVER));
        let joined = ends[1].opens_at + setting.joined_after;
        let times = ends.iter().flat_map(End::next).chain(wakes).chain([setting.fails_at, joined]);
        let next = times.filter(|at| *at > now && *at != Time::NEVER).min();
        let tick = |next: Time| match setting.tick.as_nanos() {
            0 => next,
            step => next.min(Time::from_nanos((now.as_nanos() / step + 1) * step)),
        };
        let Some(next) = next.filter(|_| !done).map(tick) else {
            let [client, server] = ends.map(|end| end.acts);
            return Outcome { log, client, server, measures: observer.finish(now), end: now, done };
        };
        now = next;
    }
    panic!("no end in sight");
}
