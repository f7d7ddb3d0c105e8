//! The states of a TCP connection (RFC 9293 section 3.3.2) as a table of legal steps.

/// State of a subflow. LISTEN belongs to the endpoint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum State {
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
    Closed,
}

/// An event that changes the state of a subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// The peer's SYN crosses ours (simultaneous open).
    SynCrossed,
    /// The SYN/ACK or the third ACK arrived.
    Established,
    /// Our FIN was sent.
    FinSent,
    /// Our FIN was acknowledged.
    FinAcked,
    /// The peer's FIN arrived, in order.
    FinReceived,
    /// TIME-WAIT is over.
    WaitOver,
    /// Reset by either end, or timed out.
    Aborted,
}

impl State {
    /// Returns the state after `step`; `None` if the step is not possible.
    pub(crate) const fn after(self, step: Step) -> Option<State> {
        use State::*;
        Some(match (self, step) {
            (_, Step::Aborted) => Closed,
            (SynSent, Step::SynCrossed) => SynReceived,
            (SynSent | SynReceived, Step::Established) => Established,
            (SynReceived | Established, Step::FinSent) => FinWait1,
            (CloseWait, Step::FinSent) => LastAck,
            (FinWait1, Step::FinAcked) => FinWait2,
            (Closing, Step::FinAcked) => TimeWait,
            (LastAck, Step::FinAcked) => Closed,
            (Established | SynReceived, Step::FinReceived) => CloseWait,
            (FinWait1, Step::FinReceived) => Closing,
            (FinWait2, Step::FinReceived) => TimeWait,
            (TimeWait, Step::WaitOver) => Closed,
            _ => return None,
        })
    }

    /// Returns true if the handshake is complete and the subflow is not closed.
    pub(crate) const fn synchronised(self) -> bool {
        !matches!(self, State::SynSent | State::SynReceived | State::Closed)
    }

    /// Returns true if the peer may still send data: its FIN has not arrived.
    pub(crate) const fn takes_data(self) -> bool {
        matches!(self, State::Established | State::FinWait1 | State::FinWait2)
    }

    /// Returns true if new data may be sent (ESTABLISHED or CLOSE-WAIT).
    pub(crate) const fn sends_data(self) -> bool {
        matches!(self, State::Established | State::CloseWait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::state::tests::matrix;

    /// R61.
    #[test]
    fn the_whole_matrix() {
        use State::*;
        let states = [
            SynSent,
            SynReceived,
            Established,
            FinWait1,
            FinWait2,
            CloseWait,
            Closing,
            LastAck,
            TimeWait,
            Closed,
        ];
        let steps = [
            Step::SynCrossed,
            Step::Established,
            Step::FinSent,
            Step::FinAcked,
            Step::FinReceived,
            Step::WaitOver,
            Step::Aborted,
        ];
        insta::assert_snapshot!(matrix(&states, &steps, State::after));
    }
}
