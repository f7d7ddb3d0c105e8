//! The DSS checksum (RFC 8684 section 3.3.1): the Internet checksum (RFC 1071) over a pseudo header
//! and the mapped bytes.

use crate::payload::pattern_word;
use crate::{Payload, WireDsn};

/// A running ones' complement sum of bytes. The first byte of each 16-bit word is the high half.
#[derive(Clone, Copy, Default, Debug)]
pub struct Sum {
    /// Sum of 32-bit words. Since 2^16 is 1 modulo 0xffff, it folds to the sum of 16-bit words.
    words: u64,
    /// True if an odd number of bytes was added so far.
    odd: bool,
}

impl Sum {
    /// Returns the sum of the pseudo header of a mapping: the DSN, the subflow sequence number
    /// relative to the SYN, the length, and zeros. All 64 bits of the DSN count, even if the option
    /// carries 32.
    #[must_use]
    pub const fn of_mapping(dsn: WireDsn, ssn: u32, len: u16) -> Sum {
        let words = (dsn.0 >> 32) + dsn.low() as u64 + ssn as u64 + len as u64;
        Sum { words, odd: false }
    }

    /// Adds the bytes of a payload. A pattern is added without being stored.
    pub fn add_payload(&mut self, payload: &Payload) {
        match payload {
            Payload::Empty => {}
            Payload::Bytes { .. } => self.add(payload.bytes().unwrap_or_default()),
            Payload::Pattern { offset, len } => self.add_pattern(*offset, u64::from(*len)),
            Payload::Edited { offset, len, at } => {
                let (before, after) = (u64::from(*at), u64::from(len.saturating_sub(at + 1)));
                self.add_pattern(*offset, before);
                self.add(&[Payload::edited_byte(offset + before)]);
                self.add_pattern(offset + before + 1, after);
            }
        }
    }

    /// Adds bytes.
    pub fn add(&mut self, mut bytes: &[u8]) {
        if self.odd
            && let Some((first, rest)) = bytes.split_first()
        {
            self.push(u64::from(*first));
            (self.odd, bytes) = (false, rest);
        }
        // The sum does not depend on the byte order of the words if its own bytes are swapped as well
        // (RFC 1071 section 2). Without a swap in the loop, the compiler vectorises it. A slice would
        // need 2^34 bytes to overflow the sum.
        let (chunks, rest) = bytes.as_chunks::<4>();
        let words = chunks.iter().fold(0, |sum, word| sum + u64::from(u32::from_le_bytes(*word)));
        self.push(u64::from(fold(words).swap_bytes()));
        for pair in rest.chunks(2) {
            let low = pair.get(1).copied();
            self.push(u64::from(pair[0]) << 8 | u64::from(low.unwrap_or(0)));
            self.odd = low.is_none();
        }
    }

    /// Adds `len` bytes of the pattern from position `offset` on, eight at a time.
    fn add_pattern(&mut self, offset: u64, len: u64) {
        let (mut at, end) = (offset, offset.saturating_add(len));
        while at < end {
            let word = pattern_word(at / 8).to_be_bytes();
            let (from, to) = ((at % 8) as usize, (end - (at - at % 8)).min(8) as usize);
            self.add(&word[from..to]);
            at += (to - from) as u64;
        }
    }

    const fn push(&mut self, word: u64) {
        let (sum, carry) = self.words.overflowing_add(word);
        self.words = sum + carry as u64;
    }

    /// Returns the checksum. The sum of all bytes, checksum included, is then all ones.
    #[must_use]
    pub const fn checksum(self) -> u16 {
        !fold(self.words)
    }

    /// Returns true if `told` is the checksum of the added bytes. Zero has two forms, 0 and 0xffff.
    #[must_use]
    pub const fn matches(self, told: u16) -> bool {
        let own = self.checksum();
        own == told || own == !told && (own == 0 || told == 0)
    }
}

/// Folds a sum to 16 bits.
const fn fold(mut sum: u64) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// RFC 1071 section 3: its worked example sums to ddf2.
    #[test]
    fn the_example_of_rfc_1071() {
        let mut sum = Sum::default();
        sum.add(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.checksum(), !0xddf2);
    }

    /// R34: DSN 1, SSN 1, length 2 and the bytes 01 02 give 1 + 1 + 2 + 0x0102 = 0x0106. All 64 bits
    /// of a DSN count.
    #[test]
    fn a_mapping_by_hand() {
        let mut sum = Sum::of_mapping(WireDsn(1), 1, 2);
        sum.add(&[1, 2]);
        assert_eq!(sum.checksum(), !0x0106);
        assert!(sum.matches(!0x0106) && !sum.matches(!0x0107));
        let mut high = Sum::of_mapping(WireDsn(1 << 48 | 1), 1, 2);
        high.add(&[1, 2]);
        assert_eq!(high.checksum(), !0x0107);
    }

    /// R34: the checksum of a DATA_FIN without data covers the pseudo header only.
    #[test]
    fn a_pseudo_header_alone() {
        assert_eq!(Sum::of_mapping(WireDsn(0x1_0000_0002), 0, 1).checksum(), !4);
    }

    /// Pieces of any length give the sum of the whole, for real bytes and for the pattern.
    #[test]
    fn pieces_and_wholes_agree() {
        for (offset, len) in [(0, 1), (3, 17), (5, 64), (1_427, 1_428), (u64::from(u32::MAX), 333)]
        {
            let pattern = Payload::Pattern { offset, len };
            let bytes: Vec<u8> =
                (0..u64::from(len)).map(|n| Payload::pattern_byte(offset + n)).collect();
            let mut real = Sum::default();
            real.add_payload(&Payload::from_bytes(&bytes));
            let mut slow = Sum::default();
            bytes.iter().for_each(|byte| slow.add(&[*byte]));
            let mut whole = Sum::default();
            whole.add_payload(&pattern);
            assert_eq!((real.checksum(), slow.checksum()), (whole.checksum(), whole.checksum()));
            for cut in [1, 2, 3, len / 2] {
                let mut pieces = Sum::default();
                pieces.add_payload(&pattern.slice(0, cut));
                pieces.add_payload(&pattern.slice(cut, len));
                assert_eq!(pieces.checksum(), whole.checksum(), "{offset}, {len}, {cut}");
            }
        }
    }

    /// F4: an edited byte changes the sum at any position, in real bytes and in the pattern.
    #[test]
    fn an_edit_shows() {
        let sum = |payload: &Payload| {
            let mut sum = Sum::of_mapping(WireDsn(1), 1, 100);
            sum.add_payload(payload);
            sum.checksum()
        };
        let pattern = Payload::Pattern { offset: 7, len: 100 };
        let bytes: Vec<u8> = (7..107).map(Payload::pattern_byte).collect();
        let real = Payload::from_bytes(&bytes);
        for at in 0..100 {
            let (synthetic, copied) = (pattern.edited(at), real.edited(at));
            assert_ne!(sum(&synthetic), sum(&pattern), "{at}");
            assert_eq!(sum(&synthetic), sum(&copied), "{at}");
            // The piece without the edit is unchanged.
            let (rest, edit) = (synthetic.slice(at + 1, 100), synthetic.slice(at, 1));
            assert_eq!(sum(&rest), sum(&pattern.slice(at + 1, 100)));
            assert_ne!(sum(&edit), sum(&pattern.slice(at, 1)));
        }
    }

    /// Minus zero and zero are the same sum.
    #[test]
    fn both_zeros_match() {
        let mut zero = Sum::default();
        zero.add(&[0xff, 0xff]);
        assert!(zero.matches(0) && zero.matches(0xffff));
    }
}
