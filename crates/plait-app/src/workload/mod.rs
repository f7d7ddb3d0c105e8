//! Workloads: the behaviour of the two ends of a connection.
//!
//! In most workloads the client connects and sends one request of [`REQUEST`] bytes. One end then
//! sends the measured data, and both finish. Videos and maps repeat the request; pages send HTTP
//! requests.

mod contract;
mod error;
pub(crate) mod exchange;
#[cfg(test)]
mod fake;
mod field;
pub mod maps;
mod parse;
mod receive;
mod registry;
mod send;
#[cfg(test)]
mod tests;
pub mod video;
pub mod web;

pub use crate::quantity::Size;
pub use contract::{App, AppEvent, Ends, REQUEST, Role, Stream, StreamState};
pub use error::WorkloadError;
pub use field::Files;
pub use registry::{Entry, WORKLOADS};
pub use send::WARM_UP_SEGMENTS;

use crate::quantity::Bytes;
use core::fmt;
use exchange::{Asking, Server};
use plait_base::{Rate, Span};
use receive::Receiver;
use send::{Plan, Sender};
use std::sync::Arc;
use web::Web;

/// A workload: the behaviour of both ends of a connection, or of all connections of one session.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Workload {
    /// The client sends a request, and the server sends `size`.
    Download {
        /// Size of the answer.
        size: Size,
    },
    /// The client sends `size`.
    Upload {
        /// Size of the data, without the request.
        size: Size,
    },
    /// The client sends a request, and the server sends without a pause.
    Bulk {
        /// Time from the client's first SYN to the end.
        duration: Span,
    },
    /// The server sends `size` on warm, idle subflows whose windows are at their initial value.
    Burst {
        /// Size of the burst.
        size: Size,
    },
    /// The server sends messages at regular intervals.
    Stream {
        /// Size of each message.
        size: Size,
        /// Time from one message to the next.
        interval: Span,
        /// Messages are due within this time after the server has read the request.
        duration: Span,
    },
    /// The server sends blocks at a constant rate, or one after the other as fast as its send
    /// buffer accepts them.
    Blocks {
        /// Size of each block in bytes.
        bytes: u64,
        /// Rate of the application. With [`Rate::INFINITE`] a block is due when the send buffer has
        /// accepted the one before.
        rate: Rate,
        /// Blocks are due within this time after the server has read the request. At infinite rate
        /// it counts from the client's first SYN.
        duration: Span,
    },
    /// A video: a client requests chunks.
    Video(Arc<video::Video>),
    /// A map: a client requests many small objects.
    Maps(maps::Maps),
    /// The client loads a web page.
    Web(Web),
}

impl Workload {
    /// Returns the maximum number of connections that the client opens. Unopened connections cost
    /// nothing.
    #[must_use]
    pub const fn connections(&self) -> usize {
        match self {
            Workload::Web(web) => web.connections(),
            _ => 1,
        }
    }

    /// Returns the client's and the server's end of each connection. The client ends form one
    /// session.
    #[must_use]
    pub fn apps(&self) -> Vec<Ends> {
        let ends: Ends = match *self {
            Workload::Download { size } => {
                (Box::new(Receiver::client(None)), Box::new(Sender::server(Plan::Once(size))))
            }
            Workload::Upload { size } => {
                (Box::new(Sender::client(Plan::Once(size))), Box::new(Receiver::server()))
            }
            Workload::Bulk { duration } => (
                Box::new(Receiver::client(Some(duration))),
                Box::new(Sender::server(Plan::Endless { duration })),
            ),
            Workload::Burst { size } => (
                Box::new(Receiver::client(None)),
                Box::new(Sender::server(Plan::Once(size)).with_warm_up()),
            ),
            Workload::Stream { size, interval, .. } => {
                let plan = Plan::Periodic { size, interval, count: self.messages() };
                (Box::new(Receiver::client(None)), Box::new(Sender::server(plan)))
            }
            Workload::Blocks { bytes, rate, duration } if rate.is_infinite() => (
                Box::new(Receiver::client(Some(duration))),
                Box::new(Sender::server(Plan::Saturating { size: Size::Bytes(bytes), duration })),
            ),
            Workload::Blocks { bytes, rate, .. } => {
                let (size, interval) = (Size::Bytes(bytes), rate.time_for(bytes));
                let plan = Plan::Periodic { size, interval, count: self.messages() };
                (Box::new(Receiver::client(None)), Box::new(Sender::server(plan)))
            }
            Workload::Video(ref video) => (video.client(), Box::new(Server::default())),
            Workload::Maps(ref maps) => {
                (Box::new(Asking::new(maps.schedule())), Box::new(Server::default()))
            }
            Workload::Web(ref web) => return web.apps(),
        };
        vec![ends]
    }

    /// Returns whether the client sends repeated requests and announces each with
    /// [`AppEvent::MessageDue`].
    #[must_use]
    pub const fn asks(&self) -> bool {
        matches!(self, Workload::Video(_) | Workload::Maps(_))
    }

    /// Returns the end that sends the measured data.
    #[must_use]
    pub const fn sender(&self) -> Role {
        match self {
            Workload::Upload { .. } => Role::Client,
            _ => Role::Server,
        }
    }

    /// Returns the number of messages that are known in advance. It is 0 for bulk transfers, pages,
    /// and blocks at infinite rate, and 1 for a download, an upload or a burst.
    #[must_use]
    pub fn messages(&self) -> u64 {
        match self {
            Workload::Bulk { .. } | Workload::Web(_) => 0,
            Workload::Stream { interval, duration, .. } => {
                let interval = interval.as_nanos();
                duration.as_nanos().div_ceil(if interval == 0 { 1 } else { interval })
            }
            Workload::Blocks { bytes, rate, duration } => match rate.is_infinite() {
                true => 0,
                false => {
                    let interval = rate.time_for(*bytes).as_nanos().max(1);
                    duration.as_nanos().div_ceil(interval)
                }
            },
            Workload::Video(video) => video.messages(),
            Workload::Maps(maps) => maps.schedule().len() as u64,
            _ => 1,
        }
    }

    /// Returns the shortest time that the workload lasts on any network, if it is known.
    #[must_use]
    pub fn duration(&self) -> Option<Span> {
        match self {
            Workload::Bulk { duration }
            | Workload::Stream { duration, .. }
            | Workload::Blocks { duration, .. } => Some(*duration),
            Workload::Maps(maps) => Some(maps.duration),
            Workload::Video(video) => video.length(),
            Workload::Download { .. }
            | Workload::Upload { .. }
            | Workload::Burst { .. }
            | Workload::Web(_) => None,
        }
    }

    /// Returns the name of the entry in [`WORKLOADS`].
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Workload::Download { .. } => "download",
            Workload::Upload { .. } => "upload",
            Workload::Bulk { .. } => "bulk",
            Workload::Burst { .. } => "burst",
            Workload::Stream { .. } => "stream",
            Workload::Blocks { .. } => "blocks",
            Workload::Video(_) => "video",
            Workload::Maps(_) => "maps",
            Workload::Web(_) => "web",
        }
    }

    /// Returns the name of the primary measure, by which comparisons rank.
    #[must_use]
    pub fn primary(&self) -> &'static str {
        match self {
            Workload::Download { .. } | Workload::Upload { .. } => "completion_ms",
            Workload::Bulk { .. } => "goodput_mbps",
            Workload::Video(video) if video.top().is_some() => "bit_rate_mbps",
            Workload::Burst { .. }
            | Workload::Stream { .. }
            | Workload::Blocks { .. }
            | Workload::Video(_)
            | Workload::Maps(_) => "message_delay_ms",
            Workload::Web(_) => "page_load_ms",
        }
    }
}

/// Prints the text that [`Workload::parse`] reads.
impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name();
        match self {
            Workload::Download { size } | Workload::Upload { size } | Workload::Burst { size } => {
                write!(f, "{name}:{size}")
            }
            Workload::Bulk { duration } => write!(f, "{name}:{duration}"),
            Workload::Stream { size, interval, duration } => {
                write!(f, "{name}:{size}@{interval},for={duration}")
            }
            Workload::Blocks { bytes, rate, duration } => {
                write!(f, "{name}:{}@{rate},for={duration}", Bytes(*bytes))
            }
            Workload::Video(video) => write!(f, "{name}:{video}"),
            Workload::Maps(maps) => write!(f, "{name}:{maps}"),
            Workload::Web(web) => write!(f, "{name}:{web}"),
        }
    }
}
