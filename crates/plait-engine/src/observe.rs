use plait_base::{ConnId, PathId, Span, Time};
use plait_core::Event;
use plait_wire::Segment;
use std::net::IpAddr;

/// A packet that leaves or arrives.
#[derive(Clone, Copy, Debug)]
pub struct PacketEvent<'a> {
    /// Path number. A server reuses the numbers of idle addresses.
    pub path: PathId,
    /// The client's address on the path.
    pub client: IpAddr,
    /// True if it leaves this host.
    pub outbound: bool,
    /// The parsed segment.
    pub segment: &'a Segment,
    /// The packet, from the IP header on.
    pub bytes: &'a [u8],
}

/// Receives every packet and every event of the endpoint in order, for captures.
pub trait Observe: Send {
    /// Starts. `epoch_ns` is the host's clock at [`Time::ZERO`], in nanoseconds since 1970.
    fn on_start(&mut self, epoch_ns: u64);

    /// Receives an event of a connection. Events that explain a packet precede it.
    fn on_core(&mut self, now: Time, conn: ConnId, event: &Event);

    /// Receives a packet that arrived, or that leaves and was accepted by the kernel.
    fn on_packet(&mut self, now: Time, packet: &PacketEvent<'_>);

    /// Receives the end of a connection. Events of its remaining data and of the peer's end may
    /// follow.
    fn on_ended(&mut self, conn: ConnId);

    /// Makes earlier events visible to readers. It is called at most 100 ms after an event.
    fn on_lull(&mut self);
}

/// Longest delay until events are visible to readers.
const LAG: Span = Span::from_millis(100);

/// The observer, and the list that carries events to it.
pub(crate) struct Observed {
    observer: Option<Box<dyn Observe>>,
    events: Vec<(ConnId, Event)>,
    /// When the pending events must be made visible.
    due: Time,
}

impl Default for Observed {
    fn default() -> Observed {
        Observed { observer: None, events: Vec::new(), due: Time::NEVER }
    }
}

impl Observed {
    pub(crate) fn start(&mut self, mut observer: Box<dyn Observe>, epoch_ns: u64) {
        observer.on_start(epoch_ns);
        self.observer = Some(observer);
    }

    /// Returns true if there is an observer.
    pub(crate) fn is_on(&self) -> bool {
        self.observer.is_some()
    }

    /// Passes the recorded events of the endpoint to the observer.
    pub(crate) fn tell(&mut self, now: Time, endpoint: &mut plait_core::Endpoint) {
        let Some(observer) = &mut self.observer else { return };
        if endpoint.has_events() {
            endpoint.swap_events(&mut self.events);
            self.due = self.due.min(now + LAG);
            self.events.iter().for_each(|(conn, event)| observer.on_core(now, *conn, event));
        }
    }

    pub(crate) fn on_packet(&mut self, now: Time, packet: &PacketEvent<'_>) {
        if let Some(observer) = &mut self.observer {
            observer.on_packet(now, packet);
            self.due = self.due.min(now + LAG);
        }
    }

    /// Returns when to call [`Observed::show`].
    pub(crate) fn due(&self) -> Time {
        self.due
    }

    /// Makes the pending events visible to readers if they are due.
    pub(crate) fn show(&mut self, now: Time) {
        if now >= self.due
            && let Some(observer) = &mut self.observer
        {
            self.due = Time::NEVER;
            observer.on_lull();
        }
    }

    pub(crate) fn on_ended(&mut self, conn: ConnId) {
        if let Some(observer) = &mut self.observer {
            observer.on_ended(conn);
        }
    }
}
