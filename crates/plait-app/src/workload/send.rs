//! The end that sends the data.

use super::{App, AppEvent, REQUEST, Size, Stream, StreamState};
use plait_base::{DataRange, Dsn, Span, Time};

/// Number of full segments that warm up each subflow before a burst (`burst`).
pub const WARM_UP_SEGMENTS: u64 = 200;

/// An endless sender stops at this position.
const ENDLESS: Dsn = Dsn::new(1 << 62);

/// The data that a sender sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Plan {
    /// One message.
    Once(Size),
    /// As much as the send buffer accepts, until this long after the first poll.
    Endless { duration: Span },
    /// `count` messages, one every `interval`.
    Periodic { size: Size, interval: Span, count: u64 },
    /// One message after the other, as fast as the send buffer accepts them, until this long after
    /// the first poll.
    Saturating { size: Size, duration: Span },
}

/// Phase of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// A server waits for the request; this many bytes are missing.
    Asked(u64),
    /// A client writes its request; this many bytes are left.
    Asking(u64),
    /// A client waits for one poll, so that its request leaves in a segment before the measured
    /// data.
    Apart,
    /// Waits until every subflow is established.
    Subflows,
    /// Writes the warm-up up to this position and waits for its DATA_ACK.
    WarmUp(Dsn),
    /// Waits until every cwnd is back at its initial window.
    Idle,
    /// Sends the measured data.
    Send,
    /// All data are written; waits for their DATA_ACK and for the end of the peer.
    Finish,
    /// Finished.
    Done,
}

/// The messages of a plan, as positions in the stream. Valid once the first message is due.
#[derive(Clone, Copy, Debug)]
struct Messages {
    /// Position of the first byte of message 0.
    base: Dsn,
    /// Bytes of each message.
    size: u64,
    /// When message 0 is due.
    first: Time,
    /// Number of messages that have become due.
    due: u64,
    /// Number of messages that the send buffer has accepted completely.
    written: u64,
}

impl Messages {
    /// Returns the position of the first byte of message `id`.
    fn start(&self, id: u64) -> Dsn {
        self.base.saturating_add(self.size.saturating_mul(id))
    }
}

/// Sends a [`Plan`] after the request, then finishes.
#[derive(Debug)]
pub(crate) struct Sender {
    plan: Plan,
    warm_up: bool,
    phase: Phase,
    start: Option<Time>,
    /// Position of the next byte to write.
    position: Dsn,
    messages: Messages,
    wake: Option<Time>,
}

impl Sender {
    /// Creates a client, which writes its request and then the plan.
    pub(crate) const fn client(plan: Plan) -> Sender {
        Sender::new(plan, Phase::Asking(REQUEST))
    }

    /// Creates a server, which waits for a request.
    pub(crate) const fn server(plan: Plan) -> Sender {
        Sender::new(plan, Phase::Asked(REQUEST))
    }

    /// Adds a warm-up of every subflow before the first measured byte.
    pub(crate) const fn with_warm_up(mut self) -> Sender {
        self.warm_up = true;
        self
    }

    const fn new(plan: Plan, phase: Phase) -> Sender {
        let messages = Messages { base: Dsn::ZERO, size: 0, first: Time::ZERO, due: 0, written: 0 };
        Sender {
            plan,
            warm_up: false,
            phase,
            start: None,
            position: Dsn::ZERO,
            messages,
            wake: None,
        }
    }

    fn deadline(&self) -> Option<Time> {
        match self.plan {
            Plan::Endless { duration } | Plan::Saturating { duration, .. } => {
                Some(self.start? + duration)
            }
            _ => None,
        }
    }

    /// Runs one step. Returns the next phase if the phase changes.
    fn step(
        &mut self,
        now: Time,
        stream: &mut dyn Stream,
        log: &mut Vec<AppEvent>,
    ) -> Option<Phase> {
        match self.phase {
            Phase::Asked(0) => {
                log.push(AppEvent::RequestRead);
                Some(if self.warm_up { Phase::Subflows } else { self.begin(now, stream, log) })
            }
            Phase::Asking(0) => {
                log.push(AppEvent::RequestWritten);
                self.wake = Some(now);
                Some(Phase::Apart)
            }
            Phase::Asking(left) => {
                let taken = if open(stream) { stream.write(left).min(left) } else { 0 };
                self.position += taken;
                (taken > 0).then_some(Phase::Asking(left - taken))
            }
            // `poll` leaves `Apart`, so that it lasts until the next poll.
            Phase::Asked(_) | Phase::Apart | Phase::Done => None,
            Phase::Subflows => self.start_warm_up(stream, log),
            Phase::WarmUp(end) => {
                self.position += stream.write(end - self.position).min(end - self.position);
                (self.position == end && stream.unacked() == 0).then_some(Phase::Idle)
            }
            Phase::Idle => self.idle(now, stream, log),
            Phase::Send => self.send(now, stream, log),
            Phase::Finish => {
                let peer_done =
                    matches!(stream.state(), StreamState::PeerDone | StreamState::Closed);
                if self.deadline().is_none() && (stream.unacked() > 0 || !peer_done) {
                    return None;
                }
                log.push(AppEvent::Complete);
                Some(Phase::Done)
            }
        }
    }

    fn start_warm_up(&mut self, stream: &mut dyn Stream, log: &mut Vec<AppEvent>) -> Option<Phase> {
        if !stream.subflows_ready() {
            return None;
        }
        let segments = WARM_UP_SEGMENTS * u64::from(stream.subflows());
        let data = DataRange::with_len(self.position, segments * stream.segment_payload());
        stream.warm_up(true);
        log.push(AppEvent::WarmUp { data });
        Some(Phase::WarmUp(data.end))
    }

    /// Waits until idle time has reset the windows. If it never does, sets the windows directly.
    fn idle(
        &mut self,
        now: Time,
        stream: &mut dyn Stream,
        log: &mut Vec<AppEvent>,
    ) -> Option<Phase> {
        match stream.initial_window_at()? {
            Time::NEVER => stream.reset_windows(),
            at if at > now => {
                self.wake = Some(at);
                return None;
            }
            _ => {}
        }
        stream.warm_up(false);
        Some(self.begin(now, stream, log))
    }

    /// Starts the measured part of the stream.
    fn begin(&mut self, now: Time, stream: &dyn Stream, log: &mut Vec<AppEvent>) -> Phase {
        if self.position > Dsn::ZERO {
            log.push(AppEvent::MeasureFrom { offset: self.position });
        }
        let size = match self.plan {
            Plan::Once(size) | Plan::Periodic { size, .. } | Plan::Saturating { size, .. } => {
                size.bytes(stream.segment_payload())
            }
            Plan::Endless { .. } => 0,
        };
        self.messages = Messages { base: self.position, size, first: now, due: 0, written: 0 };
        Phase::Send
    }

    fn send(
        &mut self,
        now: Time,
        stream: &mut dyn Stream,
        log: &mut Vec<AppEvent>,
    ) -> Option<Phase> {
        let (end, more) = match self.plan {
            Plan::Saturating { .. } => {
                self.saturate(now, stream, log);
                return None;
            }
            Plan::Endless { .. } => (ENDLESS, self.wake),
            Plan::Once(_) => (self.due(now, Span::ZERO, 1, log), None),
            Plan::Periodic { interval, count, .. } => {
                let end = self.due(now, interval, count, log);
                let next = self.messages.first + interval.times(self.messages.due);
                (end, (self.messages.due < count).then_some(next))
            }
        };
        if self.position < end {
            let left = end - self.position;
            self.position += stream.write(left).min(left);
        }
        let messages = &mut self.messages;
        while messages.written < messages.due
            && self.position >= messages.start(messages.written + 1)
        {
            log.push(AppEvent::MessageWritten { id: messages.written });
            messages.written += 1;
        }
        self.wake = more;
        if more.is_some() || self.position < end {
            return None;
        }
        stream.finish();
        Some(Phase::Finish)
    }

    /// Writes messages until the send buffer takes no more.
    fn saturate(&mut self, now: Time, stream: &mut dyn Stream, log: &mut Vec<AppEvent>) {
        loop {
            let messages = &mut self.messages;
            let id = messages.written;
            let data = DataRange::new(messages.start(id), messages.start(id + 1));
            if messages.due == id {
                log.push(AppEvent::MessageDue { id, data, due: now });
                messages.due += 1;
            }
            let left = data.end - self.position;
            self.position += stream.write(left).min(left);
            if self.position < data.end {
                return;
            }
            log.push(AppEvent::MessageWritten { id });
            self.messages.written += 1;
        }
    }

    /// Announces the messages that are due by now. Returns the position up to which data may be
    /// written.
    fn due(&mut self, now: Time, interval: Span, count: u64, log: &mut Vec<AppEvent>) -> Dsn {
        let messages = &mut self.messages;
        while messages.due < count {
            let (id, due) = (messages.due, messages.first + interval.times(messages.due));
            if due > now {
                break;
            }
            let data = DataRange::new(messages.start(id), messages.start(id + 1));
            log.push(AppEvent::MessageDue { id, data, due });
            messages.due += 1;
        }
        messages.start(messages.due)
    }
}

fn open(stream: &dyn Stream) -> bool {
    matches!(stream.state(), StreamState::Open | StreamState::PeerDone)
}

impl App for Sender {
    fn poll(&mut self, now: Time, stream: &mut dyn Stream, log: &mut Vec<AppEvent>) {
        self.start.get_or_insert(now);
        if self.phase == Phase::Done {
            return;
        }
        let read = if stream.readable() > 0 { stream.read(u64::MAX) } else { 0 };
        if let Phase::Asked(missing) = self.phase {
            self.phase = Phase::Asked(missing.saturating_sub(read));
        }
        let state = stream.state();
        // A peer that leaves before its answer is finished will never acknowledge it.
        let gone = match self.phase {
            Phase::Asked(missing) if missing > 0 => {
                matches!(state, StreamState::PeerDone | StreamState::Closed)
            }
            Phase::Finish => false,
            _ => state == StreamState::Closed,
        };
        self.wake = self.deadline();
        // If the duration ends the workload, the peer's deadline may come first.
        if self.wake.is_some_and(|deadline| now >= deadline || gone) {
            stream.finish();
            self.phase = Phase::Finish;
        } else if gone || state == StreamState::Failed {
            self.wake = None;
            self.phase = Phase::Done;
            log.push(AppEvent::Failed);
            return;
        } else if self.phase == Phase::Apart {
            self.phase = self.begin(now, stream, log);
        }
        while let Some(next) = self.step(now, stream, log) {
            self.phase = next;
        }
        if self.phase == Phase::Done {
            self.wake = None;
        }
    }

    fn wake(&self) -> Option<Time> {
        self.wake
    }

    fn done(&self) -> bool {
        self.phase == Phase::Done
    }
}
