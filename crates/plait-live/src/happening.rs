use crate::limits::Shortage;
use plait_base::ConnId;
use plait_core::FallbackCause;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// What happens, for logs: `Display` gives a line of `key=value`.
#[derive(Clone, PartialEq, Debug)]
pub enum Happening {
    /// A client has connected.
    Accepted {
        /// The connection.
        conn: ConnId,
        /// The client's address.
        from: Option<IpAddr>,
        /// Multipath TCP is spoken.
        multipath: bool,
    },
    /// A connection that was dialled has not come about; its end is told too.
    Unreached {
        /// The connection.
        conn: ConnId,
        /// The other end.
        to: SocketAddr,
        /// The other end has refused it; otherwise it has not answered.
        refused: bool,
    },
    /// Connections were refused, since this was last told of.
    TurnedAway {
        /// How many.
        count: u64,
        /// What is short, if it still is.
        shortage: Option<Shortage>,
    },
    /// A connection has ended.
    Ended {
        /// The connection.
        conn: ConnId,
        /// Bytes that came from the peer and were handed on.
        received: u64,
        /// Bytes for the peer that were taken.
        sent: u64,
        /// Multipath TCP was spoken to the end.
        multipath: bool,
        /// Why not, where it was offered.
        fallback: Option<FallbackCause>,
        /// Why it did not end in order, if so.
        problem: Option<String>,
    },
}

impl fmt::Display for Happening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Happening::Accepted { conn, from, multipath } => {
                write!(f, "event=accepted conn={}", conn.0)?;
                if let Some(from) = from {
                    write!(f, " from={from}")?;
                }
                write!(f, " multipath={multipath}")
            }
            Happening::Unreached { conn, to, refused } => {
                write!(f, "event=unreached conn={} to={to} refused={refused}", conn.0)
            }
            Happening::TurnedAway { count, shortage } => {
                write!(f, "event=turned-away count={count}")?;
                shortage.map_or(Ok(()), |it| write!(f, " shortage={}", it.name()))
            }
            Happening::Ended { conn, received, sent, multipath, fallback, problem } => {
                write!(f, "event=ended conn={} received_bytes={received}", conn.0)?;
                write!(f, " sent_bytes={sent} multipath={multipath}")?;
                if let Some(cause) = fallback {
                    write!(f, " fallback={cause:?}")?;
                }
                match problem {
                    Some(problem) => write!(f, " problem={problem:?}"),
                    None => Ok(()),
                }
            }
        }
    }
}
