//! Types that all other crates of plait share (floor 0). The only protocol types are sequence numbers.
//!
//! Time is an integer count of nanoseconds, and data an integer count of bytes. Sequence numbers
//! have a type for the data, and one for each direction of a subflow. Random numbers come from streams derived from a seed and a purpose.
//! The crate has no clock, no thread and no unordered container.
#![forbid(unsafe_code)]
#![no_std]

extern crate alloc;

mod chance;
mod digest;
mod filter;
mod ids;
mod planted;
mod random_stream;
mod ranges;
mod rate;
mod ring;
mod sequence;
mod slim;
mod time;

pub use chance::Chance;
pub use digest::RunningHash;
pub use filter::WindowedMin;
pub use ids::{ConnId, PathId, ServerAddress, SubflowId, SubflowSet};
pub use random_stream::RandomStream;
pub use ranges::{
    ByteRange, DataRange, DataRangeSet, RangeSet, RecvRange, RecvRangeSet, SendRange, SendRangeSet,
};
pub use rate::Rate;
pub use ring::reserve_ahead;
pub use sequence::{
    DataSpace, Dsn, RecvSpace, RecvSsn, SendSpace, SendSsn, Sequence, Space, SubflowSpace,
};
pub use slim::{Missing, Slim};
pub use time::{Span, Time};
