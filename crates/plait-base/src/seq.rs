/// Recovers a full 64-bit position from its low 32 bits: of all values that end in `low`, the one
/// closest to `near` (RFC 8684 section 3.3.1 for data sequence numbers, RFC 9293 section 3.4 for
/// TCP sequence numbers).
#[must_use]
pub const fn unwrap32(low: u32, near: u64) -> u64 {
    let ahead = low.wrapping_sub(near as u32) as i32;
    near.wrapping_add(ahead as i64 as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn crossing_the_wrap_in_both_directions() {
        assert_eq!(unwrap32(5, 0xffff_fff0), 0x1_0000_0005);
        assert_eq!(unwrap32(0xffff_fff0, 0x1_0000_0005), 0xffff_fff0);
    }

    proptest! {
        #[test]
        fn the_value_comes_back_within_half_the_space(near: u64, off in -0x7fff_ffffi64..0x7fff_ffff) {
            let value = near.wrapping_add(off as u64);
            prop_assert_eq!(unwrap32(value as u32, near), value);
        }
    }
}
