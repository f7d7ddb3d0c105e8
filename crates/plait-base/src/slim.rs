use crate::{Span, Time};
use core::fmt;

/// A type with one value that means "none" in a [`Slim`].
pub trait Missing: Copy + PartialEq {
    /// The value that means "none".
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

/// An optional value in the space of the value itself: [`Missing::MISSING`] means none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Slim<T>(T);

impl<T: Missing> Slim<T> {
    /// No value.
    pub const NONE: Slim<T> = Slim(T::MISSING);

    /// Returns a present value; [`Missing::MISSING`] is none.
    pub const fn some(value: T) -> Slim<T> {
        Slim(value)
    }

    /// Returns the value, if there is one.
    #[inline]
    pub fn value(self) -> Option<T> {
        self.is_some().then_some(self.0)
    }

    /// Returns true if there is a value.
    #[inline]
    pub fn is_some(self) -> bool {
        self.0 != T::MISSING
    }

    /// Returns true if there is no value.
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
