use plait_base::{ConnId, PathId, Span, Time};
use plait_core::Event;
use plait_wire::Segment;
use std::net::IpAddr;

/// A packet as it leaves or arrives.
#[derive(Clone, Copy, Debug)]
pub struct Sight<'a> {
    /// The path's number. A server gives it to another client's address when it runs out of numbers.
    pub path: PathId,
    /// The client's address on the path.
    pub client: IpAddr,
    /// It leaves this host.
    pub outbound: bool,
    /// The parsed segment.
    pub segment: &'a Segment,
    /// From the IP header on.
    pub bytes: &'a [u8],
}

/// Hears of every packet and of every event of the endpoint, as they happen, for captures.
pub trait Observe: Send {
    /// From now on; `epoch_ns` is what the host's clock shows at [`Time::ZERO`], in nanoseconds since
    /// 1970.
    fn on_start(&mut self, epoch_ns: u64);

    /// The endpoint tells something of a connection. What explains a packet comes before it.
    fn on_core(&mut self, now: Time, conn: ConnId, event: &Event);

    /// A packet leaves, and the kernel has taken it, or one has arrived.
    fn on_packet(&mut self, now: Time, sight: &Sight<'_>);

    /// The user is done with a connection; of what it has left to send, and its peer's end, is still told.
    fn on_ended(&mut self, conn: ConnId);

    /// Something was told a while ago, a tenth of a second at most: readers want to see it.
    fn on_lull(&mut self);
}

/// How long events may wait before they are shown to readers.
const LAG: Span = Span::from_millis(100);

/// Who hears, and the list by which events come.
pub(crate) struct Observed {
    observer: Option<Box<dyn Observe>>,
    events: Vec<(ConnId, Event)>,
    /// When the waiting events are due to be shown to readers.
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

    /// Whether anybody hears.
    pub(crate) fn is_on(&self) -> bool {
        self.observer.is_some()
    }

    /// Passes the recorded events of the endpoint on.
    pub(crate) fn tell(&mut self, now: Time, endpoint: &mut plait_core::Endpoint) {
        let Some(observer) = &mut self.observer else { return };
        if endpoint.has_events() {
            endpoint.swap_events(&mut self.events);
            self.due = self.due.min(now + LAG);
            self.events.iter().for_each(|(conn, event)| observer.on_core(now, *conn, event));
        }
    }

    pub(crate) fn on_packet(&mut self, now: Time, sight: &Sight<'_>) {
        if let Some(observer) = &mut self.observer {
            observer.on_packet(now, sight);
            self.due = self.due.min(now + LAG);
        }
    }

    /// When [`Observed::show`] is to be called.
    pub(crate) fn due(&self) -> Time {
        self.due
    }

    /// Shows the waiting events to readers if they are due.
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
