//! Subflows without a handshake, given to their connections by data sequence numbers.

use std::collections::BTreeMap;

/// Two numbers of 8 bytes belong to one connection if the later one is larger by at most this.
const WIDE_AFTER: u64 = 1 << 40;
/// Or smaller by at most this: a path may begin with older data.
const WIDE_BEFORE: u64 = 1 << 31;
/// Numbers of 4 bytes are close with at most this difference.
const CLOSE: u32 = 1 << 24;

/// A data sequence number of 4 or 8 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Number {
    pub(crate) value: u64,
    pub(crate) long: bool,
}

impl Number {
    /// Returns the better of two numbers: the first one with 8 bytes.
    pub(crate) fn better(old: Option<Number>, new: Option<Number>) -> Option<Number> {
        old.filter(|old| old.long || new.is_none_or(|new| !new.long)).or(new)
    }

    fn is_close(self, other: Number) -> bool {
        let apart = (self.value as u32).wrapping_sub(other.value as u32) as i32;
        apart.unsigned_abs() <= CLOSE
    }

    const fn bucket(self) -> u8 {
        (self.value as u32 / CLOSE) as u8
    }
}

/// A connection and one of its sides.
pub(crate) type Side = (usize, usize);

/// The first data sequence numbers of connections.
#[derive(Default, Debug)]
pub(crate) struct Numbers {
    /// Numbers of 8 bytes.
    wide: BTreeMap<u64, Side>,
    /// The number of a side, and that of the other side, by the upper bits of 4 bytes.
    short: BTreeMap<u8, Vec<(Side, [Number; 2])>>,
}

impl Numbers {
    /// Adds a number of 8 bytes.
    pub(crate) fn add_wide(&mut self, value: u64, side: Side) {
        self.wide.insert(value, side);
    }

    /// Adds the numbers that the sides 0 and 1 of a new connection send.
    pub(crate) fn add(&mut self, connection: usize, numbers: [Option<Number>; 2]) {
        for (side, number) in numbers.into_iter().enumerate() {
            if let Some(number) = number.filter(|number| number.long) {
                self.add_wide(number.value, (connection, side));
            }
        }
        if let [Some(first), Some(second)] = numbers {
            for (side, own, other) in [(0, first, second), (1, second, first)] {
                let bucket = self.short.entry(own.bucket()).or_default();
                bucket.push(((connection, side), [own, other]));
            }
        }
    }

    /// Returns the side that sent numbers like these. `numbers` are from one end of a subflow and from the other end.
    /// One number of 8 bytes is enough. With 4 bytes, both numbers must be close, and `shares_host` must be true.
    pub(crate) fn find(
        &self,
        numbers: [Option<Number>; 2],
        shares_host: impl Fn(Side) -> bool,
    ) -> Option<Side> {
        for (of, number) in numbers.into_iter().enumerate() {
            let Some(number) = number.filter(|number| number.long) else { continue };
            let near =
                number.value.saturating_sub(WIDE_AFTER)..=number.value.saturating_add(WIDE_BEFORE);
            if let Some((_, (at, side))) = self.wide.range(near).next_back() {
                return Some((*at, side ^ of));
            }
        }
        let [Some(own), Some(other)] = numbers else { return None };
        let buckets = [u8::MAX, 0, 1].map(|step| own.bucket().wrapping_add(step));
        let known = buckets.iter().filter_map(|bucket| self.short.get(bucket)).flatten();
        let close = |known: &[Number; 2]| own.is_close(known[0]) && other.is_close(known[1]);
        let mut found = known.filter(|(side, known)| close(known) && shares_host(*side));
        found.next().map(|(side, _)| *side)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: u64, long: bool) -> Option<Number> {
        Some(Number { value, long })
    }

    #[test]
    fn numbers_of_four_bytes_need_both_sides() {
        let mut numbers = Numbers::default();
        numbers.add(3, [number(0xffff_fff0, false), number(1 << 31, false)]);
        let find = |own, other, shares| numbers.find([own, other], |_| shares);
        let (client, server) = (number(5, false), number((1 << 31) + 5, false));
        assert_eq!(find(client, server, true), Some((3, 0)));
        assert_eq!(find(server, client, true), Some((3, 1)));
        assert_eq!(find(client, server, false), None);
        assert_eq!(find(client, number(1 << 30, false), true), None);
        assert_eq!(find(client, None, true), None);
    }

    #[test]
    fn one_number_of_eight_bytes_is_enough() {
        let mut numbers = Numbers::default();
        numbers.add(3, [None, number(1 << 60, true)]);
        let find = |own, other| numbers.find([own, other], |_| false);
        assert_eq!(find(number((1 << 60) + 5_000, true), None), Some((3, 1)));
        assert_eq!(find(None, number((1 << 60) - 5_000, true)), Some((3, 0)));
        assert_eq!(find(number(1 << 59, true), None), None);
    }
}
