//! The input of an algorithm: its own flow, and the siblings read-only.

use plait_base::Span;

/// An algorithm's view of one subflow of the connection, its own included.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Flow {
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow start threshold in bytes; `None` is infinite.
    pub ssthresh: Option<u64>,
    /// Smoothed RTT. A flow without a sample is not coupled.
    pub srtt: Option<Span>,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// True in fast recovery. Coupled formulas then use `ssthresh` as the window (RFC 6356 section
    /// 3).
    pub in_recovery: bool,
    /// True if the flow is live. A dead flow is not coupled.
    pub live: bool,
    /// The larger of two byte counts: acknowledged since the last loss, and between the last two
    /// losses (draft-khalili-mptcp-congestion-control-05 section 3.1).
    pub loss_interval: u64,
}

impl Flow {
    /// Returns the window for coupled formulas, in bytes. In fast recovery it is `ssthresh`,
    /// because the window is about to become that.
    #[must_use]
    pub fn window(&self) -> u64 {
        match self.ssthresh {
            Some(ssthresh) if self.in_recovery => ssthresh,
            _ => self.cwnd,
        }
    }

    /// Returns true if coupled formulas count the flow: it is live and has an RTT sample.
    #[must_use]
    pub fn is_coupled(&self) -> bool {
        self.live && self.srtt.is_some()
    }

    /// Returns the segment size in bytes, at least one.
    #[must_use]
    pub fn mss(&self) -> u64 {
        u64::from(self.mss.max(1))
    }

    /// Returns [`Flow::window`] in segments, with fraction.
    #[must_use]
    pub fn segments(&self) -> f64 {
        self.window() as f64 / self.mss() as f64
    }

    /// Returns the smoothed RTT in whole nanoseconds, at least one. Without a sample it is one, so
    /// that no formula divides by zero.
    #[must_use]
    pub(crate) fn rtt_nanos(&self) -> u64 {
        self.srtt.map_or(1, |srtt| srtt.as_nanos().max(1))
    }

    /// Returns [`Flow::rtt_nanos`] in seconds.
    #[must_use]
    pub(crate) fn rtt_secs(&self) -> f64 {
        Span::from_nanos(self.rtt_nanos()).as_secs_f64()
    }
}

/// The flows of a connection, and the index of the algorithm's own flow.
#[derive(Clone, Copy, Debug)]
pub struct Flows<'a> {
    /// All flows.
    pub all: &'a [Flow],
    /// Index of the own flow.
    pub own: usize,
}

/// The flows as one algorithm reads them: its own flow in its present state, the siblings as the
/// connection described them.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    own: Flow,
    flows: Flows<'a>,
}

impl<'a> View<'a> {
    /// Creates a view of `flows` with `own` in place of its entry. The own flow counts as live,
    /// even if the entry is not.
    #[must_use]
    pub fn new(own: Flow, flows: Flows<'a>) -> View<'a> {
        View { own: Flow { live: true, ..own }, flows }
    }

    /// Creates a view that uses the own entry as it is; `None` if the index is not in the list.
    #[must_use]
    pub fn of(flows: Flows<'a>) -> Option<View<'a>> {
        flows.all.get(flows.own).map(|own| View::new(*own, flows))
    }

    /// Returns the own flow.
    #[must_use]
    pub fn own(&self) -> &Flow {
        &self.own
    }

    /// Returns the flows that coupled formulas sum over: live and with an RTT sample.
    pub fn coupled(&self) -> impl Iterator<Item = Flow> + '_ {
        let at = |(index, flow): (usize, &Flow)| {
            if index == self.flows.own { self.own } else { *flow }
        };
        self.flows.all.iter().enumerate().map(at).filter(Flow::is_coupled)
    }

    /// Returns the coupled flows except the own one.
    pub fn siblings(&self) -> impl Iterator<Item = Flow> + '_ {
        let others =
            self.flows.all.iter().enumerate().filter(|(index, _)| *index != self.flows.own);
        others.map(|(_, flow)| *flow).filter(Flow::is_coupled)
    }

    /// Returns true if there is a flow to couple with: the own flow has an RTT sample, and a
    /// sibling is coupled. Otherwise every coupled algorithm is [`Reno`](crate::Reno).
    #[must_use]
    pub fn has_siblings(&self) -> bool {
        self.own.srtt.is_some()
            && self.flows.own < self.flows.all.len()
            && self.coupled().nth(1).is_some()
    }
}
