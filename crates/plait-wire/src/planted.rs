//! Bugs of the codec that a test switches on, one at a time, to prove that the fuzzer finds them.
//! They exist only with the feature `planted-bugs`, which no crate of the product turns on.

/// A bug that can be switched on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[cfg_attr(not(feature = "planted-bugs"), allow(unreachable_pub))]
pub enum Planted {
    /// The data offset is believed, wherever it points.
    DataOffset = 1,
    /// An option's length below two counts as two.
    ShortOption,
    /// The length of a DSS is not held against its flags.
    DssLength,
    /// The port in an echo is not read.
    EchoPort,
    /// The bytes of a long REMOVE_ADDR are counted in a field that is too small.
    ManyAddresses,
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

    static BUG: AtomicU8 = AtomicU8::new(0);

    impl Planted {
        /// Every bug.
        pub const ALL: [Planted; 5] = [
            Planted::DataOffset,
            Planted::ShortOption,
            Planted::DssLength,
            Planted::EchoPort,
            Planted::ManyAddresses,
        ];
    }

    /// Switches a bug on, and the others off.
    pub fn plant(bug: Option<Planted>) {
        BUG.store(bug.map_or(0, |bug| bug as u8), Ordering::Relaxed);
    }

    pub(crate) fn planted(bug: Planted) -> bool {
        BUG.load(Ordering::Relaxed) == bug as u8
    }
}

#[cfg(feature = "planted-bugs")]
pub use switch::plant;
#[cfg(feature = "planted-bugs")]
pub(crate) use switch::planted;
