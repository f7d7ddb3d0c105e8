//! The causes of lost time: a closed set.

use schemars::JsonSchema;
use serde::Serialize;

/// Why a transfer took longer than the rates of its paths demand.
#[derive(Serialize, JsonSchema, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The server answered without MPTCP, or the options disappeared on the way.
    OptionsRemoved,
    /// A join was refused, or nothing answered it.
    JoinRefused,
    /// A path joined long after the first data.
    JoinLate,
    /// Slow start filled a queue until it dropped many packets.
    SlowStartOvershoot,
    /// Packets were lost, and the window was small after it.
    Loss,
    /// A path had data on its way and nothing was acknowledged.
    PathSilent,
    /// A path was reset before the transfer was complete.
    PathReset,
    /// The receive window was full.
    ReceiveWindow,
    /// The sender kept a constant amount of data unacknowledged.
    SendBuffer,
    /// Fast paths waited for data that was sent on a slow one.
    LateOnSlowPath,
    /// The sender had nothing to send.
    ApplicationIdle,
    /// The scheduler left a path unused although the others were full.
    PathUnused,
    /// The congestion window was still growing.
    StartUp,
}

impl Cause {
    /// Returns the name as in the JSON document.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Cause::OptionsRemoved => "options-removed",
            Cause::JoinRefused => "join-refused",
            Cause::JoinLate => "join-late",
            Cause::SlowStartOvershoot => "slow-start-overshoot",
            Cause::Loss => "loss",
            Cause::PathSilent => "path-silent",
            Cause::PathReset => "path-reset",
            Cause::ReceiveWindow => "receive-window",
            Cause::SendBuffer => "send-buffer",
            Cause::LateOnSlowPath => "late-on-slow-path",
            Cause::ApplicationIdle => "application-idle",
            Cause::PathUnused => "path-unused",
            Cause::StartUp => "start-up",
        }
    }

    /// Returns true if the cause is the connection, not a path.
    pub(crate) const fn is_of_connection(self) -> bool {
        matches!(self, Cause::ReceiveWindow | Cause::SendBuffer | Cause::ApplicationIdle)
    }

    /// Returns the clause that follows "because", about the path `path`.
    #[must_use]
    pub fn clause(self, path: Option<&str>) -> String {
        let of = path.unwrap_or("a path");
        match self {
            Cause::OptionsRemoved => {
                "segments came without MPTCP options, so the connection has one path".to_owned()
            }
            Cause::JoinRefused => format!("the join of {of} was refused or not answered"),
            Cause::JoinLate => format!("{of} joined late"),
            Cause::SlowStartOvershoot => format!("slow start overran the queue of {of}"),
            Cause::Loss => format!("packets were lost on {of}"),
            Cause::PathSilent => {
                format!("{of} was silent: nothing that it carried was acknowledged")
            }
            Cause::PathReset => format!("{of} was reset"),
            Cause::ReceiveWindow => "the receive window was full".to_owned(),
            Cause::SendBuffer => "the send buffer was full".to_owned(),
            Cause::LateOnSlowPath => format!("the other paths waited for late data on {of}"),
            Cause::ApplicationIdle => "the sender's application had nothing to send".to_owned(),
            Cause::PathUnused => format!("the scheduler left {of} unused"),
            Cause::StartUp => format!("the congestion window of {of} was still growing"),
        }
    }
}
