use alloc::collections::VecDeque;

/// Reserves memory when a ring is full: 4 entries, then `stride`, then four times as many each
/// time. Idle rings stay small, and a window that still grows slowly after its first round trips
/// does not allocate again.
#[inline]
pub fn reserve_ahead<T>(ring: &mut VecDeque<T>, stride: usize) {
    if ring.len() == ring.capacity() && !ring.is_empty() {
        grow(ring, stride);
    }
}

#[cold]
fn grow<T>(ring: &mut VecDeque<T>, stride: usize) {
    ring.reserve((3 * ring.len()).max(stride.saturating_sub(ring.len())));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_grows_in_few_strides_and_not_before_it_is_full() {
        let (mut ring, mut sizes) = (VecDeque::new(), alloc::vec::Vec::new());
        for entry in 0..1_000u32 {
            reserve_ahead(&mut ring, 64);
            ring.push_back(entry);
            if sizes.last() != Some(&ring.capacity()) {
                sizes.push(ring.capacity());
            }
        }
        assert_eq!(sizes, [4, 64, 256, 1024]);
    }
}
