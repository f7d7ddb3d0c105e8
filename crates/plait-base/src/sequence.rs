use crate::Missing;
use core::cmp::Ordering;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Add, AddAssign, Sub};

/// A space of sequence numbers: [`DataSpace`] or [`SubflowSpace`], and no other.
pub trait Space: sealed::Sealed + Copy + Ord + core::hash::Hash + Default + fmt::Debug {}

mod sealed {
    pub trait Sealed {}
}

/// The connection level (RFC 8684 section 3.3): one space for all subflows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct DataSpace;

/// One subflow in one direction (RFC 9293 section 3.4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct SubflowSpace;

impl sealed::Sealed for DataSpace {}
impl Space for DataSpace {}
impl sealed::Sealed for SubflowSpace {}
impl Space for SubflowSpace {}

/// A data sequence number (RFC 8684 section 3.3): the position of a byte in the data of a connection,
/// counted in bytes from 0 at the first one.
pub type Dsn = Sequence<DataSpace>;

/// A subflow sequence number (RFC 9293 section 3.4): the position of a byte on a subflow, counted in bytes
/// from 0 at the SYN.
pub type Ssn = Sequence<SubflowSpace>;

/// A sequence number of 64 bits. Numbers of different spaces cannot be mixed, and the difference of two is a
/// count of bytes. It prints as a bare number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct Sequence<S: Space>(u64, PhantomData<S>);

impl<S: Space> Sequence<S> {
    /// The first number.
    pub const ZERO: Sequence<S> = Sequence::new(0);
    /// Above every number in use.
    pub const MAX: Sequence<S> = Sequence::new(u64::MAX);

    /// The number `value`.
    #[inline]
    #[must_use]
    pub const fn new(value: u64) -> Sequence<S> {
        Sequence(value, PhantomData)
    }

    /// The bare number.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number that ends in the 32 bits `low` of the wire: of all of them the closest to `near`
    /// (RFC 8684 section 3.3.1, RFC 9293 section 3.4).
    #[inline]
    #[must_use]
    pub fn from_low(low: u32, near: Sequence<S>) -> Sequence<S> {
        let ahead = low.wrapping_sub(near.0 as u32) as i32;
        Sequence::new(near.0.wrapping_add_signed(i64::from(ahead)))
    }

    /// The low 32 bits, for the wire.
    #[inline]
    #[must_use]
    pub fn low(self) -> u32 {
        self.0 as u32
    }

    /// Bytes from `earlier` to this; zero if `earlier` is not below this.
    #[inline]
    #[must_use]
    pub fn saturating_sub(self, earlier: Sequence<S>) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Bytes from `earlier` to this; `None` if `earlier` is above this.
    #[inline]
    #[must_use]
    pub fn checked_sub(self, earlier: Sequence<S>) -> Option<u64> {
        self.0.checked_sub(earlier.0)
    }

    /// The number of the byte before, or 0.
    #[inline]
    #[must_use]
    pub fn before(self) -> Sequence<S> {
        Sequence::new(self.0.saturating_sub(1))
    }

    /// The number `bytes` further on, or the greatest one.
    #[inline]
    #[must_use]
    pub fn saturating_add(self, bytes: u64) -> Sequence<S> {
        Sequence::new(self.0.saturating_add(bytes))
    }

    /// The number `bytes` further on, if there is one.
    #[inline]
    #[must_use]
    pub fn checked_add(self, bytes: u64) -> Option<Sequence<S>> {
        self.0.checked_add(bytes).map(Sequence::new)
    }
}

impl Ssn {
    /// The number of the first byte of data: the SYN has 0 (RFC 9293 section 3.4).
    pub const FIRST: Ssn = Ssn::new(1);
}

impl<S: Space> Ord for Sequence<S> {
    #[inline]
    fn cmp(&self, other: &Sequence<S>) -> Ordering {
        self.0.cmp(&other.0)
    }
}

/// Each comparison is that of the bare numbers: hot paths compare much.
impl<S: Space> PartialOrd for Sequence<S> {
    #[inline]
    fn partial_cmp(&self, other: &Sequence<S>) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    #[inline]
    fn lt(&self, other: &Sequence<S>) -> bool {
        self.0 < other.0
    }

    #[inline]
    fn le(&self, other: &Sequence<S>) -> bool {
        self.0 <= other.0
    }

    #[inline]
    fn gt(&self, other: &Sequence<S>) -> bool {
        self.0 > other.0
    }

    #[inline]
    fn ge(&self, other: &Sequence<S>) -> bool {
        self.0 >= other.0
    }
}

impl<S: Space> Add<u64> for Sequence<S> {
    type Output = Sequence<S>;

    #[inline]
    fn add(self, bytes: u64) -> Sequence<S> {
        Sequence::new(self.0 + bytes)
    }
}

impl<S: Space> AddAssign<u64> for Sequence<S> {
    #[inline]
    fn add_assign(&mut self, bytes: u64) {
        self.0 += bytes;
    }
}

impl<S: Space> Sub for Sequence<S> {
    type Output = u64;

    #[inline]
    fn sub(self, earlier: Sequence<S>) -> u64 {
        self.0 - earlier.0
    }
}

impl<S: Space> Sub<u64> for Sequence<S> {
    type Output = Sequence<S>;

    #[inline]
    fn sub(self, bytes: u64) -> Sequence<S> {
        Sequence::new(self.0 - bytes)
    }
}

impl<S: Space> Missing for Sequence<S> {
    const MISSING: Sequence<S> = Sequence::MAX;
}

impl<S: Space> fmt::Display for Sequence<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<S: Space> fmt::Debug for Sequence<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use proptest::prelude::*;

    #[test]
    fn a_number_counts_bytes_and_comes_back_from_its_low_bits() {
        let first = Dsn::new(0xffff_fff0);
        let next = first + 0x20;
        assert_eq!(
            (next.get(), next - first, first.saturating_sub(next)),
            (0x1_0000_0010, 0x20, 0)
        );
        assert_eq!((next - 0x20, next.low()), (first, 0x10));
        assert_eq!((Dsn::from_low(0x10, first), Dsn::from_low(0xffff_fff0, next)), (next, first));
        assert_eq!((next.checked_sub(first), first.checked_sub(next)), (Some(0x20), None));
        assert_eq!((Dsn::MAX.saturating_add(1), Dsn::MAX.checked_add(1)), (Dsn::MAX, None));
        assert!(Ssn::ZERO < Ssn::new(1) && Ssn::new(1) <= Ssn::new(1) && Ssn::MAX > Ssn::ZERO);
    }

    /// What prints numbers stays as it was with bare ones.
    #[test]
    fn it_takes_and_prints_as_a_bare_number() {
        assert_eq!(size_of::<Ssn>(), size_of::<u64>());
        let (ssn, bare) = (Ssn::new(255), 255_u64);
        assert_eq!(
            format!("{ssn} {ssn:?} {ssn:#?} {ssn:>9}"),
            format!("{bare} {bare:?} {bare:#?} {bare:>9}")
        );
        assert_eq!(format!("{ssn:#x?}"), format!("{bare:#x?}"));
    }

    proptest! {
        #[test]
        fn a_number_comes_back_within_half_the_space(near: u64, off in -0x7fff_ffffi64..0x7fff_ffff) {
            let number = Ssn::new(near.wrapping_add(off as u64));
            prop_assert_eq!(Ssn::from_low(number.low(), Ssn::new(near)), number);
        }
    }
}
