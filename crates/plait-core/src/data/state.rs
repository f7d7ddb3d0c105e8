//! The end of the data as a table of legal steps: the states of a connection in RFC 8684 appendix D,
//! without its subflows. Plain TCP ends its data with the FIN of its only subflow.

/// State of the data in both directions. The order makes the frequent questions comparisons.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) enum DataState {
    #[default]
    Established,
    /// The peer's data has ended.
    CloseWait,
    /// Our DATA_FIN was sent before the peer's data ended.
    Closing,
    /// Our DATA_FIN was sent after the peer's data had ended, together with our DATA_ACK of it.
    LastAck,
    /// Our DATA_FIN was sent.
    FinWait1,
    /// It was acknowledged.
    FinWait2,
    /// Plain TCP: our FIN was acknowledged.
    PlainFinWait2,
    /// Both directions have ended. The peer may not have our DATA_ACK of its DATA_FIN.
    TimeWait,
    /// Both ends have confirmed the end, or this end no longer waits for the peer's confirmation.
    Closed,
    /// Reset by either end, or timed out.
    Failed,
}

/// An event that changes the state of the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DataStep {
    /// Our DATA_FIN was sent.
    FinSent,
    /// Our DATA_FIN was acknowledged.
    FinAcked,
    /// Plain TCP: our FIN was acknowledged.
    PlainFinAcked,
    /// All data of the peer has arrived, and its DATA_FIN or FIN.
    FinReceived,
    /// No further segment of the peer is needed: it has everything, or does not return.
    Settled,
    /// The connection begins again with a new key.
    Restarted,
    /// Reset by either end, or timed out.
    Aborted,
}

impl DataState {
    /// Returns the state after `step`; `None` if the step is not possible.
    pub(crate) const fn after(self, step: DataStep) -> Option<DataState> {
        use DataState::*;
        Some(match (self, step) {
            (_, DataStep::Aborted) | (Failed, DataStep::Restarted) => Failed,
            (_, DataStep::Restarted) => Established,
            (Established, DataStep::FinSent) => FinWait1,
            (CloseWait, DataStep::FinSent) => LastAck,
            (FinWait1, DataStep::FinAcked) => FinWait2,
            (Closing, DataStep::FinAcked) => TimeWait,
            (LastAck, DataStep::FinAcked) => Closed,
            (Established | FinWait1, DataStep::PlainFinAcked) => PlainFinWait2,
            (CloseWait | Closing | LastAck, DataStep::PlainFinAcked) => Closed,
            (Established, DataStep::FinReceived) => CloseWait,
            (FinWait1, DataStep::FinReceived) => Closing,
            (FinWait2, DataStep::FinReceived) => TimeWait,
            (PlainFinWait2, DataStep::FinReceived) | (TimeWait, DataStep::Settled) => Closed,
            _ => return None,
        })
    }

    /// Returns true if both directions have ended.
    pub(crate) const fn is_done(self) -> bool {
        matches!(self, DataState::TimeWait | DataState::Closed)
    }

    /// Returns true if our DATA_FIN was sent and is not acknowledged.
    pub(crate) const fn has_fin_pending(self) -> bool {
        matches!(self, DataState::FinWait1 | DataState::Closing | DataState::LastAck)
    }

    /// Returns true if our DATA_FIN was sent.
    pub(crate) const fn is_fin_sent(self) -> bool {
        use DataState::*;
        matches!(self, Closing | LastAck | FinWait1 | FinWait2 | PlainFinWait2 | TimeWait | Closed)
    }

    /// Returns true if the end of our data was acknowledged.
    pub(crate) const fn is_fin_acked(self) -> bool {
        use DataState::*;
        matches!(self, FinWait2 | PlainFinWait2 | TimeWait | Closed)
    }

    /// Returns true if the peer's data has ended.
    pub(crate) const fn is_peer_finished(self) -> bool {
        use DataState::*;
        matches!(self, CloseWait | Closing | LastAck | TimeWait | Closed)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use alloc::string::String;
    use core::fmt::{Debug, Write};

    /// Returns a table of states: a line a state, with each possible step and the state after it.
    pub(crate) fn matrix<S: Copy + Debug, T: Copy + Debug>(
        states: &[S],
        steps: &[T],
        after: impl Fn(S, T) -> Option<S>,
    ) -> String {
        let mut table = String::new();
        for &state in states {
            write!(table, "{state:?}:").unwrap();
            for &step in steps {
                if let Some(next) = after(state, step) {
                    write!(table, " {step:?}->{next:?}").unwrap();
                }
            }
            table.push('\n');
        }
        table
    }

    #[test]
    fn the_whole_matrix_of_the_end_of_the_data() {
        use DataState::*;
        let states = [
            Established,
            CloseWait,
            FinWait1,
            FinWait2,
            PlainFinWait2,
            Closing,
            LastAck,
            TimeWait,
            Closed,
            Failed,
        ];
        let steps = [
            DataStep::FinSent,
            DataStep::FinAcked,
            DataStep::PlainFinAcked,
            DataStep::FinReceived,
            DataStep::Settled,
            DataStep::Restarted,
            DataStep::Aborted,
        ];
        insta::assert_snapshot!(matrix(&states, &steps, DataState::after));
    }
}
