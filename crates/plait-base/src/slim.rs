use crate::{Span, Time};
use core::fmt;

/// What stands for nothing in a [`Slim`].
pub trait Missing: Copy + PartialEq {
    /// Never a value.
    const MISSING: Self;
}

impl Missing for u64 {
    const MISSING: u64 = u64::MAX;
}

impl Missing for Time {
    const MISSING: Time = Time::NEVER;
}

impl Missing for Span {
    const MISSING: Span = Span::MAX;
}

/// A value that may be missing, in no more room than the value takes: one of them,
/// [`Missing::MISSING`], counts as none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Slim<T>(T);

impl<T: Missing> Slim<T> {
    /// No value.
    pub const NONE: Slim<T> = Slim(T::MISSING);

    /// A value.
    pub const fn some(value: T) -> Slim<T> {
        Slim(value)
    }

    /// The value, if there is one.
    #[inline]
    pub fn value(self) -> Option<T> {
        self.is_some().then_some(self.0)
    }

    /// Whether there is a value.
    #[inline]
    pub fn is_some(self) -> bool {
        self.0 != T::MISSING
    }

    /// Whether there is none.
    #[inline]
    pub fn is_none(self) -> bool {
        !self.is_some()
    }
}

impl<T: Missing> Default for Slim<T> {
    fn default() -> Slim<T> {
        Slim::NONE
    }
}

impl<T: Missing> From<Option<T>> for Slim<T> {
    #[inline]
    fn from(value: Option<T>) -> Slim<T> {
        Slim(value.unwrap_or(T::MISSING))
    }
}

impl<T: Missing + fmt::Debug> fmt::Debug for Slim<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_counts_as_none() {
        assert_eq!(size_of::<Slim<Time>>(), size_of::<Time>());
        assert_eq!(Slim::from(Some(0_u64)).value(), Some(0));
        assert_eq!(Slim::<u64>::from(None), Slim::NONE);
        assert!(Slim::some(Span::MAX).is_none() && Slim::<Span>::default().value().is_none());
        assert!(Slim::some(Time::ZERO).is_some());
    }
}
