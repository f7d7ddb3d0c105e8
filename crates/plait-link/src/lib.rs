//! Models one direction of a path (floor 1 of plait).
//!
//! A packet that is offered to a [`Link`] passes these stages in order: outage, MTU, loss (random or in
//! bursts), queue, transmitter, propagation. The transmitter has a fixed, stepped or recorded rate. Propagation
//! adds delay, jitter, reordering, duplication and corruption. [`CrossTraffic`] shares the queue. The link
//! does not see the content of a packet, only its offer time and its size, and returns its [`Fate`].
//!
//! The departure from a first-in-first-out queue with a known rate is known on entry. A link therefore needs
//! no events of its own, and virtual time and real time can both drive it. Only a queue that drops at its
//! head ([`Aqm::Codel`]) needs a second call when packets leave it.
//!
//! Times are integer nanoseconds and capacity is integrated exactly. The departure of each packet in a
//! back-to-back train is the exact integral of the rate, rounded up to the nanosecond, for any train length.
#![forbid(unsafe_code)]
#![no_std]

extern crate alloc;

mod capacity;
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

pub use capacity::Capacity;
pub use config::{Aqm, LinkConfig, QueueLimit, RateSource};
pub use cross::{Arrivals, CrossTraffic};
pub use fault::{Impairments, Reorder};
pub use host::HostLink;
pub use link::{DropCause, Fate, Link, LinkCounters};
pub use loss::{GilbertElliott, Loss, LossModel};
pub use service::Service;
pub use trace::{OPPORTUNITY_BYTES, Trace, TraceError, TraceFormat};
