//! The measurement between two hosts: UDP for the load, a TCP connection for consent and results.
//!
//! The client asks over TCP. A server that runs has agreed to be measured, within its limits. It sends datagrams only
//! to addresses that sent it the token of a measurement, and only while the connection of that measurement is open.

mod analysis;
mod channel;
mod clock;
mod collect;
mod driver;
mod exchange;
mod message;
mod mptcp;
mod pace;
mod packet;
mod result;
mod schedule;
mod server;
mod shared;
mod socket;
mod variation;

pub use channel::Channel;
pub use driver::{Options, measure};
pub use message::DEFAULT_PORT;
pub use result::{Bottleneck, MeasureDocument, Measured, PathResult, SCHEMA, WayResult};
pub use server::{Limits, serve};
pub use socket::From;

use std::fmt;

/// Why a measurement failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MeasureError {
    /// An argument is wrong.
    Usage(String),
    /// The process may not do it, or the kernel cannot.
    Privilege(String),
    /// The far side failed, refused or did not answer.
    Peer(String),
    /// The user interrupted it.
    Interrupted,
}

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MeasureError::Usage(text)
            | MeasureError::Privilege(text)
            | MeasureError::Peer(text) => f.write_str(text),
            MeasureError::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for MeasureError {}
