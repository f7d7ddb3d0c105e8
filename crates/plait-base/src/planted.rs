//! Planted bugs. A test switches them on one at a time, to prove that it would find such a bug.

/// Declares a crate's planted bugs:
///
/// - the enum `Planted`, and `Planted::ALL`
/// - `plant(Option<Planted>)`, which switches one bug on in the whole process and the others off
/// - `planted(Planted) -> bool`, which returns true if a bug is on
///
/// A crate has them only with its feature `planted-bugs`, which no shipped crate enables. The bugs
/// themselves are in `tests/planted.patch`.
#[macro_export]
macro_rules! planted_bugs {
    ($($(#[doc = $doc:expr])+ $bug:ident,)+) => {
        /// A bug that can be switched on.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum Planted {
            $($(#[doc = $doc])+ $bug,)+
        }

        mod switch {
            use super::Planted;
            use core::sync::atomic::{AtomicU8, Ordering};

            /// Number of the active bug, counted from one; zero if none is active.
            static ACTIVE: AtomicU8 = AtomicU8::new(0);

            impl Planted {
                /// Every bug.
                pub const ALL: &[Planted] = &[$(Planted::$bug,)+];
            }

            /// Switches one bug on in the whole process, or all bugs off.
            pub fn plant(bug: Option<Planted>) {
                ACTIVE.store(bug.map_or(0, |bug| bug as u8 + 1), Ordering::SeqCst);
            }

            /// Returns true if `bug` is on.
            pub(crate) fn planted(bug: Planted) -> bool {
                ACTIVE.load(Ordering::Relaxed) == bug as u8 + 1
            }
        }

        pub use switch::plant;
        pub(crate) use switch::planted;
    };
}
