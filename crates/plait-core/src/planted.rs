//! Bugs that a test switches on, one at a time, to prove that the swarm finds them. They exist only
//! with the feature `planted-bugs`, which no crate of the product turns on; without it every
//! question here is answered `false` when the program is built.

/// A bug that can be switched on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
#[cfg_attr(not(feature = "planted-bugs"), allow(unreachable_pub))]
pub enum Planted {
    /// The DATA_ACK is one ahead of what arrived.
    DataAckAhead = 1,
    /// After a timeout nothing is reinjected on other subflows.
    NoReinjection,
    /// The advertised window leaves out what waits out of order: its edge moves left.
    WindowMovesLeft,
    /// Of data that was delivered in part, all is delivered.
    OverlapTwice,
    /// Of data that was delivered in part, the rest is dropped.
    RestDropped,
    /// The DATA_FIN is sent once and never again.
    DataFinOnce,
    /// The peer's DATA_FIN counts before all data is here.
    DataFinEarly,
    /// A retransmission has the mapping of the first data that is not DATA_ACKed.
    WrongMapping,
    /// What lies below a SACK block counts as delivered.
    SackForgets,
    /// A closed window is never probed.
    NoWindowProbe,
    /// The second timeout in a row sets no timer.
    TimeoutOnce,
    /// Subflows send their FIN as soon as the DATA_FIN is sent.
    FinEarly,
    /// The proof of a join is sent once and never again.
    ProofOnce,
    /// A window update that is older than the last one is believed.
    StaleWindow,
    /// The application is not told that its send buffer has room again.
    LostWakeUp,
    /// A retransmission does not count as in flight.
    FlightForgets,
}

/// Whether `bug` is switched on.
#[cfg(not(feature = "planted-bugs"))]
#[inline(always)]
pub(crate) const fn planted(_: Planted) -> bool {
    false
}

#[cfg(feature = "planted-bugs")]
mod switch {
    use super::Planted;
    use core::sync::atomic::{AtomicU8, Ordering};

    static ACTIVE: AtomicU8 = AtomicU8::new(0);

    impl Planted {
        /// Every bug.
        pub const ALL: [Planted; 16] = [
            Planted::DataAckAhead,
            Planted::NoReinjection,
            Planted::WindowMovesLeft,
            Planted::OverlapTwice,
            Planted::RestDropped,
            Planted::DataFinOnce,
            Planted::DataFinEarly,
            Planted::WrongMapping,
            Planted::SackForgets,
            Planted::NoWindowProbe,
            Planted::TimeoutOnce,
            Planted::FinEarly,
            Planted::ProofOnce,
            Planted::StaleWindow,
            Planted::LostWakeUp,
            Planted::FlightForgets,
        ];
    }

    /// Switches one bug on in the whole process, or all off.
    pub fn plant(bug: Option<Planted>) {
        ACTIVE.store(bug.map_or(0, |bug| bug as u8), Ordering::SeqCst);
    }

    /// Whether `bug` is switched on.
    pub(crate) fn planted(bug: Planted) -> bool {
        ACTIVE.load(Ordering::Relaxed) == bug as u8
    }
}

#[cfg(feature = "planted-bugs")]
pub use switch::plant;
#[cfg(feature = "planted-bugs")]
pub(crate) use switch::planted;
