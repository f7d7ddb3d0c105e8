use crate::Missing;
use core::cmp::Ordering;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Add, AddAssign, Sub};

/// A space of sequence numbers. [`DataSpace`], [`SendSpace`] and [`RecvSpace`] are the only ones.
pub trait Space: sealed::Sealed + Copy + Ord + core::hash::Hash + Default + fmt::Debug {}

/// A space of one subflow in one direction (RFC 9293 section 3.3.1).
pub trait SubflowSpace: Space {}

mod sealed {
    pub trait Sealed {}
}

/// The connection level (RFC 8684 section 3.3): one space for all subflows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct DataSpace;

/// The send sequence space of one subflow (RFC 9293 section 3.3.1): the bytes of this end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct SendSpace;

/// The receive sequence space of one subflow (RFC 9293 section 3.3.1): the bytes of the peer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct RecvSpace;

impl sealed::Sealed for DataSpace {}
impl Space for DataSpace {}
impl sealed::Sealed for SendSpace {}
impl Space for SendSpace {}
impl SubflowSpace for SendSpace {}
impl sealed::Sealed for RecvSpace {}
impl Space for RecvSpace {}
impl SubflowSpace for RecvSpace {}

/// A data sequence number (RFC 8684 section 3.3): the position of a byte in the data of a
/// connection. The first byte is 0.
pub type Dsn = Sequence<DataSpace>;

/// A subflow sequence number of this end (RFC 9293 section 3.4): the position of a byte that this end
/// sends on a subflow. Our SYN is 0.
pub type SendSsn = Sequence<SendSpace>;

/// A subflow sequence number of the peer: the position of a byte that this end receives on a subflow.
/// The peer's SYN is 0.
pub type RecvSsn = Sequence<RecvSpace>;

/// A sequence number of 64 bits. Numbers of different spaces cannot be mixed. The difference of two
/// is a count of bytes. It prints as a plain number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct Sequence<S: Space>(u64, PhantomData<S>);

impl<S: Space> Sequence<S> {
    /// The first number.
    pub const ZERO: Sequence<S> = Sequence::new(0);
    /// Above every number in use.
    pub const MAX: Sequence<S> = Sequence::new(u64::MAX);

    /// Returns the number `value`.
    #[inline]
    #[must_use]
    pub const fn new(value: u64) -> Sequence<S> {
        Sequence(value, PhantomData)
    }

    /// Returns the plain number.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the number closest to `near` whose low 32 bits are `low` (RFC 8684 section 3.3.1,
    /// RFC 9293 section 3.4).
    #[inline]
    #[must_use]
    pub fn from_low(low: u32, near: Sequence<S>) -> Sequence<S> {
        let ahead = low.wrapping_sub(near.0 as u32) as i32;
        Sequence::new(near.0.wrapping_add_signed(i64::from(ahead)))
    }

    /// Returns the low 32 bits, for the wire.
    #[inline]
    #[must_use]
    pub fn low(self) -> u32 {
        self.0 as u32
    }

    /// Returns the bytes from `earlier` to `self`; zero if `earlier` is above `self`.
    #[inline]
    #[must_use]
    pub fn saturating_sub(self, earlier: Sequence<S>) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns the bytes from `earlier` to `self`; `None` if `earlier` is above `self`.
    #[inline]
    #[must_use]
    pub fn checked_sub(self, earlier: Sequence<S>) -> Option<u64> {
        self.0.checked_sub(earlier.0)
    }

    /// Returns the number of the byte before, or 0.
    #[inline]
    #[must_use]
    pub fn before(self) -> Sequence<S> {
        Sequence::new(self.0.saturating_sub(1))
    }

    /// Returns the number `bytes` above this one, at most [`Sequence::MAX`].
    #[inline]
    #[must_use]
    pub fn saturating_add(self, bytes: u64) -> Sequence<S> {
        Sequence::new(self.0.saturating_add(bytes))
    }

    /// Returns the number `bytes` above this one; `None` if it exceeds 64 bits.
    #[inline]
    #[must_use]
    pub fn checked_add(self, bytes: u64) -> Option<Sequence<S>> {
        self.0.checked_add(bytes).map(Sequence::new)
    }
}

impl<S: SubflowSpace> Sequence<S> {
    /// The number of the first byte of data. The SYN has 0 (RFC 9293 section 3.4).
    pub const FIRST: Sequence<S> = Sequence::new(1);
}

impl<S: Space> Ord for Sequence<S> {
    #[inline]
    fn cmp(&self, other: &Sequence<S>) -> Ordering {
        self.0.cmp(&other.0)
    }
}

/// Compares the plain numbers directly, because hot paths compare often.
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
        assert!(
            SendSsn::ZERO < SendSsn::new(1)
                && SendSsn::new(1) <= SendSsn::new(1)
                && SendSsn::MAX > SendSsn::ZERO
        );
    }

    /// Snapshots and digests print sequence numbers as plain numbers.
    #[test]
    fn it_takes_and_prints_as_a_bare_number() {
        assert_eq!(size_of::<SendSsn>(), size_of::<u64>());
        let (ssn, bare) = (SendSsn::new(255), 255_u64);
        assert_eq!(
            format!("{ssn} {ssn:?} {ssn:#?} {ssn:>9}"),
            format!("{bare} {bare:?} {bare:#?} {bare:>9}")
        );
        assert_eq!(format!("{ssn:#x?}"), format!("{bare:#x?}"));
    }

    proptest! {
        #[test]
        fn a_number_comes_back_within_half_the_space(near: u64, off in -0x7fff_ffffi64..0x7fff_ffff) {
            let number = SendSsn::new(near.wrapping_add(off as u64));
            prop_assert_eq!(SendSsn::from_low(number.low(), SendSsn::new(near)), number);
        }
    }
}
