//! Congestion control (floor 1 of plait). [`Congestion`] holds the state of one subflow: window, threshold,
//! slow start, idle restart and loss intervals. An [`Algorithm`] computes congestion avoidance.
//! Coupled algorithms read the sibling flows and never change them.
//!
//! Windows and thresholds are in bytes, times in nanoseconds. The crate has no sequence numbers,
//! clocks or timers: the transport passes in each acknowledgement, loss and timeout with its time.
//!
//! ```
//! use plait_base::{Span, Time};
//! use plait_cc::{Ack, Congestion, Flows, Settings, Spec};
//!
//! let algorithm = Spec::parse("lia").map(|spec| spec.build())?;
//! let mut window = Congestion::new(Settings { mss: 1460, ..Settings::default() }, algorithm);
//! assert_eq!(window.cwnd(), 14_600);
//! let srtt = Span::from_millis(20);
//! let now = Time::ZERO;
//! let ack = Ack { now, bytes: 1460, rtt: None, srtt, min_rtt: srtt, cwnd_limited: true,
//!     round: false, acked: 0, sent: 0 };
//! let all = [window.flow(Some(srtt), true)];
//! window.on_ack(&ack, Flows { all: &all, own: 0 });
//! assert_eq!(window.cwnd(), 16_060);
//! # Ok::<(), plait_cc::SpecError>(())
//! ```
#![forbid(unsafe_code)]
#![no_std]

extern crate alloc;

mod algorithm;
mod algorithms;
mod books;
mod congestion;
mod hystart;
mod idle;
mod rate;
mod registry;
mod rounds;
mod spec;
mod view;

pub use algorithm::{Ack, Algorithm};
pub use algorithms::balia::{self, Balia};
pub use algorithms::bbr::{self, Bbr};
pub use algorithms::cubic::{self, Cubic};
pub use algorithms::fixed::Fixed;
pub use algorithms::lia::{self, Lia};
pub use algorithms::olia::{self, Olia};
pub use algorithms::reno::{self, Reno};
pub use algorithms::wvegas::{self, Wvegas};
pub use books::{Books, LossIntervals, Phase, Settings};
pub use congestion::Congestion;
pub use hystart::HyStart;
pub use idle::{IdleReset, IdleRestart, Restarted, restart};
pub use plait_params::{
    About, FixedWindow, Listed, Param, ParamError, ParamFault, ParamKind, Params, SpecError, Value,
};
pub use rate::{LostSegment, RateControl, RateSample, RateWindow};
pub use registry::{CONTROLLERS, Entry};
pub use rounds::{Round, Rounds};
pub use spec::Spec;
pub use view::{Flow, Flows, View};
