//! The clock of a trace against that of a capture.
//!
//! The kernel decides when an acknowledgement arrives or the application writes, so nearly every decision is within
//! some microseconds of a packet. Of all differences between the clocks, the right one brings the most decisions next
//! to packets. It is found for the first decisions, and then followed, because clocks drift.

/// A decision belongs to a packet within this time, in nanoseconds.
const NEAR_NS: i64 = 60_000;
/// Width of the classes of differences in nanoseconds.
const CLASS_NS: i64 = 50_000;
/// Largest number of classes.
const MAX_CLASSES: i64 = 1 << 24;
/// Decisions that vote for differences, and those that judge a candidate.
const VOTERS: usize = 200;
const JUDGES: usize = 1_024;
/// Longest time of the decisions that judge, in nanoseconds, in which clocks drift by less than [`NEAR_NS`]; and the
/// number of decisions that judge in any case.
const ANCHOR_NS: i64 = 2_000_000_000;
const FEW_JUDGES: usize = 64;
/// Largest number of votes.
const MAX_VOTES: usize = 100_000_000;
/// Candidates with the most votes.
const CANDIDATES: usize = 24;
/// Candidates closer than this are one, in nanoseconds.
const APART_NS: i64 = 400_000;
/// Decisions next to packets, in percent of all, that an alignment needs.
const ENOUGH_PERCENT: usize = 60;
/// Decisions that the best candidate must have more than the second, and one in so many of all.
const LEAD: usize = 6;
const LEAD_PART: usize = 25;
/// Decisions between two corrections for drift.
const CHUNK: usize = 128;

/// The alignment.
#[derive(Clone, Debug)]
pub(super) struct Alignment {
    /// Times of decisions, and from each on the difference capture - trace, in nanoseconds.
    offsets: Vec<(i64, i64)>,
    /// Decisions within the time of the capture, and those next to a packet.
    pub(super) inside: usize,
    pub(super) matched: usize,
}

impl Alignment {
    /// Returns the time of the capture for a time of the trace.
    pub(super) fn in_capture(&self, at_ns: i64) -> i64 {
        at_ns.saturating_add(self.offset(at_ns))
    }

    fn offset(&self, at_ns: i64) -> i64 {
        let after = self.offsets.partition_point(|(from, _)| *from <= at_ns);
        self.offsets.get(after.saturating_sub(1)).map_or(0, |(_, offset)| *offset)
    }

    /// Returns the first difference in nanoseconds, and the drift in parts per million.
    pub(super) fn first_and_drift(&self) -> (i64, f64) {
        match (self.offsets.first(), self.offsets.last()) {
            (Some((from, first)), Some((to, last))) if to > from => {
                (*first, (last - first) as f64 * 1e6 / (to - from) as f64)
            }
            (Some((_, first)), _) => (*first, 0.0),
            _ => (0, 0.0),
        }
    }
}

/// Aligns the times of decisions with those of packets. Both are sorted.
///
/// # Errors
/// If no difference explains the decisions, or several do: the reason.
pub(super) fn align(decisions: &[i64], packets: &[i64]) -> Result<Alignment, String> {
    let decisions = distinct(decisions);
    if decisions.len() < 2 * LEAD || packets.is_empty() {
        return Err(format!("{} decisions are too few to compare", decisions.len()));
    }
    // The trace may begin before the capture or end after it.
    let len = decisions.len();
    let begins = [0, len.saturating_sub(JUDGES) / 2, len.saturating_sub(JUDGES)];
    let mut refused = String::new();
    for (nth, begin) in begins.into_iter().enumerate() {
        if nth > 0 && begins[nth - 1] == begin {
            continue;
        }
        let whole = &decisions[begin..len.min(begin + JUDGES)];
        let brief = whole.partition_point(|at| at - whole[0] <= ANCHOR_NS);
        let anchor = &whole[..brief.max(FEW_JUDGES).min(whole.len())];
        match best(anchor, packets) {
            Ok(offset) => return Ok(followed(&decisions, begin, offset, packets)),
            Err(reason) if refused.is_empty() => refused = reason,
            Err(_) => {}
        }
    }
    Err(refused)
}

/// Returns the times that differ by more than a few microseconds: the lines of one decision have nearly the same.
fn distinct(times: &[i64]) -> Vec<i64> {
    let mut kept: Vec<i64> = Vec::new();
    for time in times {
        if kept.last().is_none_or(|last| time - last > 8_000) {
            kept.push(*time);
        }
    }
    kept
}

/// Returns the difference that brings the most decisions next to packets.
fn best(decisions: &[i64], packets: &[i64]) -> Result<i64, String> {
    let mut scored: Vec<(usize, i64)> = candidates(decisions, packets)
        .into_iter()
        .map(|rough| {
            let fine = (-8..=8).map(|step| rough + step * 20_000);
            fine.map(|offset| (near(decisions, packets, offset).count(), offset))
                .max_by_key(|(count, offset)| (*count, -(offset - rough).abs()))
                .unwrap_or((0, rough))
        })
        .collect();
    scored.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let Some((count, offset)) = scored.first().copied() else {
        return Err("no packet is near any decision".to_owned());
    };
    let other = scored.iter().find(|(_, it)| (it - offset).abs() > APART_NS);
    let second = other.map_or(0, |(count, _)| *count);
    let all = decisions.len();
    if count * 100 < all * ENOUGH_PERCENT {
        return Err(format!("at best, {count} of {all} decisions are next to a packet"));
    }
    if count < second + LEAD.max(all / LEAD_PART) {
        return Err(format!(
            "two differences between the clocks fit: {count} and {second} of {all} decisions are next to a packet"
        ));
    }
    Ok(middle(decisions, packets, offset))
}

/// Returns the differences between decisions and packets that are the most frequent.
fn candidates(decisions: &[i64], packets: &[i64]) -> Vec<i64> {
    let voters = VOTERS.min(MAX_VOTES / packets.len().max(1)).clamp(1, decisions.len());
    let (Some(first), Some(last)) = (decisions.first(), decisions.last()) else {
        return Vec::new();
    };
    let (Some(begin), Some(end)) = (packets.first(), packets.last()) else { return Vec::new() };
    let (low, high) = (begin - last, end - first);
    let class = CLASS_NS.max((high - low) / MAX_CLASSES + 1);
    let mut votes = vec![0_u16; ((high - low) / class + 2) as usize];
    for nth in 0..voters {
        let decision = decisions[nth * decisions.len() / voters];
        for packet in packets {
            let at = ((packet - decision - low) / class) as usize;
            if let Some(vote) = votes.get_mut(at) {
                *vote = vote.saturating_add(1);
            }
        }
    }
    let mut found: Vec<(u16, i64)> = Vec::new();
    // Neighbours share the votes of a difference on their border.
    for (at, pair) in votes.windows(2).enumerate() {
        let sum = pair[0].saturating_add(pair[1]);
        let middle = low + (at as i64 + 1) * class;
        if found.len() < CANDIDATES || found.last().is_some_and(|least| sum > least.0) {
            match found.iter().position(|(_, it)| (it - middle).abs() <= APART_NS) {
                Some(known) if found[known].0 >= sum => continue,
                Some(known) => found[known] = (sum, middle),
                None => found.push((sum, middle)),
            }
            found.sort_by_key(|(sum, _)| std::cmp::Reverse(*sum));
            found.truncate(CANDIDATES);
        }
    }
    found.into_iter().map(|(_, offset)| offset).collect()
}

/// Returns for each decision next to a packet the time from the decision to the nearest packet.
fn near<'a>(
    decisions: &'a [i64],
    packets: &'a [i64],
    offset: i64,
) -> impl Iterator<Item = i64> + 'a {
    decisions.iter().filter_map(move |decision| {
        let at = decision + offset;
        let after = packets.partition_point(|packet| *packet < at);
        let around = [after.checked_sub(1), Some(after)];
        let nearest = around.into_iter().flatten().filter_map(|nth| Some(packets.get(nth)? - at));
        nearest.min_by_key(|difference| difference.abs()).filter(|it| it.abs() <= NEAR_NS)
    })
}

/// Returns the difference in the middle of those near `offset`.
fn middle(decisions: &[i64], packets: &[i64], offset: i64) -> i64 {
    let mut rest: Vec<i64> = near(decisions, packets, offset).collect();
    rest.sort_unstable();
    offset + rest.get(rest.len() / 2).copied().unwrap_or(0)
}

/// Follows the difference from the decision `begin` on to both ends of the trace.
fn followed(decisions: &[i64], begin: usize, offset: i64, packets: &[i64]) -> Alignment {
    let mut offsets = Vec::new();
    let mut known = offset;
    for chunk in decisions[begin..].chunks(CHUNK) {
        known = middle(chunk, packets, known);
        offsets.push((chunk[0], known));
    }
    known = offset;
    for chunk in decisions[..begin].rchunks(CHUNK) {
        known = middle(chunk, packets, known);
        offsets.push((chunk[0], known));
    }
    offsets.sort_unstable();
    let mut alignment = Alignment { offsets, inside: 0, matched: 0 };
    let (first, last) = (packets[0] - NEAR_NS, packets[packets.len() - 1] + NEAR_NS);
    for decision in decisions {
        let offset = alignment.offset(*decision);
        if (first..=last).contains(&(decision + offset)) {
            alignment.inside += 1;
            alignment.matched += near(&[*decision], packets, offset).count();
        }
    }
    alignment
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times with irregular distances, from a linear congruence.
    fn times(count: usize) -> Vec<i64> {
        let (mut state, mut at) = (7_u64, 5_000_000_000_i64);
        (0..count)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                at += 200_000 + (state >> 42) as i64;
                at
            })
            .collect()
    }

    #[test]
    fn the_difference_and_its_drift_are_found() {
        let packets = times(6_000);
        for ahead in [0_i64, 1_795_869_234_808_963_000, -77_000_000] {
            // Every third packet brings a decision 15 us later, by a clock that gains 30 us in a second.
            let decisions: Vec<i64> = packets
                .iter()
                .step_by(3)
                .map(|at| at + 15_000 + (at - packets[0]) * 3 / 100_000 - ahead)
                .collect();
            let alignment = align(&decisions, &packets).unwrap();
            assert!(alignment.matched * 100 > decisions.len() * 99, "{}", alignment.matched);
            let (offset, drift) = alignment.first_and_drift();
            assert!((offset - ahead + 15_000).abs() < 20_000, "{offset}");
            assert!((-33.0..-27.0).contains(&drift), "{drift}");
            let last = decisions[decisions.len() - 1];
            let expected = packets[5_997];
            assert!((alignment.in_capture(last) - expected).abs() < 20_000);
        }
    }

    #[test]
    fn other_times_are_refused() {
        let packets = times(3_000);
        let strangers: Vec<i64> =
            times(4_000).windows(4).step_by(4).map(|it| (it[0] + it[2]) / 2).collect();
        let refused = align(&strangers, &packets).unwrap_err();
        assert!(refused.contains("next to a packet"), "{refused}");
        assert!(align(&packets[..5], &packets).unwrap_err().contains("too few"));
        // A regular clock fits itself in many ways.
        let regular: Vec<i64> = (0..500).map(|nth| nth * 10_000_000).collect();
        let refused = align(&regular[100..400], &regular).unwrap_err();
        assert!(refused.contains("two differences"), "{refused}");
    }
}
