//! Floor 1: one direction of a path.
//!
//! A packet that is offered to a [`Link`] meets, in this order: an outage, the largest packet, loss (random or in
//! bursts), a queue, a transmitter with a fixed, stepped or recorded rate, and the propagation
//! delay with its jitter, reordering, duplication and damage. [`CrossTraffic`] of others takes places in the queue. What a packet carries is no concern
//! of the link: it sees when the packet is offered and how many bytes it has, and returns its
//! [`Fate`]. The departure from a first-in-first-out queue with a known rate is known on entry, so
//! a link needs no events of its own; virtual time and real time can both drive it. Only a queue
//! that drops at its head ([`Aqm::Codel`]) has to be asked again when packets leave it.
//!
//! Times are integer nanoseconds and capacity is integrated exactly: a back-to-back train of
//! packets departs when the exact integral of the rate says, rounded up to the nanosecond, however
//! long the train is.
#![no_std]

extern crate alloc;

mod codel;
mod config;
mod cross;
mod delay;
mod fault;
mod host;
mod link;
mod loss;
mod mtu;
mod outage;
mod queue;
mod schedule;
mod service;
mod trace;

pub use config::{Aqm, LinkConfig, QueueLimit, RateSource};
pub use cross::{Arrivals, CrossTraffic};
pub use fault::Reorder;
pub use host::HostLink;
pub use link::{DropCause, Fate, Link, LinkCounters};
pub use loss::{GilbertElliott, LossModel};
pub use service::Service;
pub use trace::{OPPORTUNITY_BYTES, Trace, TraceError, TraceFormat};
