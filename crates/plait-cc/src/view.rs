//! What an algorithm may look at: its own flow and, read-only, the siblings.

use plait_base::Span;

/// What an algorithm sees of one subflow of its connection, its own included.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Flow {
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow start threshold in bytes; `None` is infinite.
    pub ssthresh: Option<u64>,
    /// Smoothed RTT; a flow without a sample is not coupled.
    pub srtt: Option<Span>,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// In fast recovery: coupled formulas take `ssthresh` for its window (RFC 6356 section 3).
    pub in_recovery: bool,
    /// Live; a dead flow is not coupled.
    pub live: bool,
    /// The greater of: bytes acknowledged since the last loss, and between the last two losses
    /// (draft-khalili-mptcp-congestion-control-05 section 3.1).
    pub loss_interval: u64,
}

impl Flow {
    /// The window that coupled formulas read, in bytes: `ssthresh` during fast recovery, for the
    /// window is heading there.
    #[must_use]
    pub fn window(&self) -> u64 {
        match self.ssthresh {
            Some(ssthresh) if self.in_recovery => ssthresh,
            _ => self.cwnd,
        }
    }

    /// Whether coupled formulas count the flow: live, with an RTT sample.
    #[must_use]
    pub fn is_coupled(&self) -> bool {
        self.live && self.srtt.is_some()
    }

    /// Segment size in bytes, at least one.
    #[must_use]
    pub fn mss(&self) -> u64 {
        u64::from(self.mss.max(1))
    }

    /// [`Flow::window`] in segments, with fraction.
    #[must_use]
    pub fn segments(&self) -> f64 {
        self.window() as f64 / self.mss() as f64
    }

    /// Smoothed RTT in whole nanoseconds, at least one; one where there is no sample, so that
    /// nothing divides by zero.
    #[must_use]
    pub(crate) fn rtt_nanos(&self) -> u64 {
        self.srtt.map_or(1, |srtt| srtt.as_nanos().max(1))
    }

    /// [`Flow::rtt_nanos`] in seconds.
    #[must_use]
    pub(crate) fn rtt_secs(&self) -> f64 {
        Span::from_nanos(self.rtt_nanos()).as_secs_f64()
    }
}

/// The flows of a connection and which of them is speaking.
#[derive(Clone, Copy, Debug)]
pub struct Flows<'a> {
    /// All flows.
    pub all: &'a [Flow],
    /// Index of the speaker.
    pub own: usize,
}

/// The flows as one algorithm sees them: its own as it is this moment, the siblings as the
/// connection described them.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    own: Flow,
    flows: Flows<'a>,
}

impl<'a> View<'a> {
    /// A view of `flows` in which `own` stands in the place of the speaker's entry. A speaker is
    /// live, whatever the entry says.
    #[must_use]
    pub fn new(own: Flow, flows: Flows<'a>) -> View<'a> {
        View { own: Flow { live: true, ..own }, flows }
    }

    /// The view of the speaker's entry itself; `None` where the index is not in the list.
    #[must_use]
    pub fn of(flows: Flows<'a>) -> Option<View<'a>> {
        flows.all.get(flows.own).map(|own| View::new(*own, flows))
    }

    /// The speaker.
    #[must_use]
    pub fn own(&self) -> &Flow {
        &self.own
    }

    /// The flows that coupled formulas sum over: live and with an RTT sample.
    pub fn coupled(&self) -> impl Iterator<Item = Flow> + '_ {
        let at = |(index, flow): (usize, &Flow)| {
            if index == self.flows.own { self.own } else { *flow }
        };
        self.flows.all.iter().enumerate().map(at).filter(Flow::is_coupled)
    }

    /// The coupled flows beside the speaker.
    pub fn siblings(&self) -> impl Iterator<Item = Flow> + '_ {
        let others =
            self.flows.all.iter().enumerate().filter(|(index, _)| *index != self.flows.own);
        others.map(|(_, flow)| *flow).filter(Flow::is_coupled)
    }

    /// Whether there is anything to couple with: a sample of one's own and a coupled sibling.
    /// Without it every coupled algorithm is [`Reno`](crate::Reno).
    #[must_use]
    pub fn has_siblings(&self) -> bool {
        self.own.srtt.is_some()
            && self.flows.own < self.flows.all.len()
            && self.coupled().nth(1).is_some()
    }
}
