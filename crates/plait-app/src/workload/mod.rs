//! Workloads: what the two ends of a connection do.
//!
//! In each the client connects and sends a request of [`REQUEST`] bytes; what follows is the
//! workload. One end then sends everything that is measured, and both finish.

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

/// What the two ends of a connection do, or those of the connections of one session.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Workload {
    /// The client asks, the server sends `size`.
    Download {
        /// How much.
        size: Size,
    },
    /// The client sends `size`.
    Upload {
        /// How much, besides the request.
        size: Size,
    },
    /// The client asks, the server sends all the time.
    Bulk {
        /// For how long, from the connect on.
        duration: Span,
    },
    /// The server sends `size` on warm, idle subflows whose windows are at their initial value.
    Burst {
        /// How much.
        size: Size,
    },
    /// The server sends a message again and again.
    Stream {
        /// Of each message.
        size: Size,
        /// From the start of one to the start of the next.
        interval: Span,
        /// Messages are due within this time after the request was read.
        duration: Span,
    },
    /// The server sends blocks at a constant rate, or one after the other as its send buffer takes
    /// them.
    Blocks {
        /// Of each, in bytes.
        bytes: u64,
        /// Of the application; [`Rate::INFINITE`] for as fast as it goes.
        rate: Rate,
        /// Blocks are due within this time.
        duration: Span,
    },
    /// A video: a client asks for chunks.
    Video(Arc<video::Video>),
    /// A map: a client asks for many small objects.
    Maps(maps::Maps),
    /// The client loads a web page.
    Web(Web),
}

impl Workload {
    /// How many connections its client may open; those that it never opens cost nothing.
    #[must_use]
    pub const fn connections(&self) -> usize {
        match self {
            Workload::Web(web) => web.connections(),
            _ => 1,
        }
    }

    /// The two ends of each of its connections, client and server. The clients' are one session.
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

    /// Whether the client asks again and again, and says so ([`AppEvent::MessageDue`]).
    #[must_use]
    pub const fn asks(&self) -> bool {
        matches!(self, Workload::Video(_) | Workload::Maps(_))
    }

    /// The end that sends the data that is measured.
    #[must_use]
    pub const fn sender(&self) -> Role {
        match self {
            Workload::Upload { .. } => Role::Client,
            _ => Role::Server,
        }
    }

    /// How many messages there are: those of a stream, none in a bulk transfer or a page, otherwise
    /// one.
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

    /// How long it goes on at least, over whatever network, where that is said.
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

    /// The name of its entry in [`WORKLOADS`].
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

    /// The name of the measure that it is made for: what a comparison ranks by.
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

/// The form that [`Workload::parse`] reads.
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
