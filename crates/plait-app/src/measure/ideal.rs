//! Reference values from the papers: the ideal bit rate, the ideal share of a path, the minimum
//! delay.

use plait_base::{Rate, Span};

/// Returns the ideal bit rate of a player (ECF 2017): the sum of the paths' rates, but at most
/// `top`, the highest bit rate of the clip.
#[must_use]
pub fn ideal_bit_rate(rates: &[Rate], top: Rate) -> Rate {
    let sum = rates.iter().fold(0u64, |sum, rate| sum.saturating_add(rate.as_bps()));
    Rate::from_bps(sum).min(top)
}

/// Returns the index of the fast path (ECF 2017), which is the path with the highest rate. If rates
/// are equal, the path with the lowest RTT under load is fast; if these are equal too, the first
/// one. Returns `None` if there are no paths.
#[must_use]
pub fn fast_path(paths: &[(Rate, Span)]) -> Option<usize> {
    let order = |index: &usize| {
        let (rate, rtt) = paths[*index];
        (core::cmp::Reverse(rate), rtt, *index)
    };
    (0..paths.len()).min_by_key(order)
}

/// Returns the share of a path if each path carries data in proportion to its rate (ECF 2017).
/// Returns `None` if `path` does not exist, if the rates are all zero, or if one is infinite.
#[must_use]
pub fn ideal_share(rates: &[Rate], path: usize) -> Option<f64> {
    let sum: f64 = rates.iter().map(|rate| rate.as_bps() as f64).sum();
    let own = rates.get(path)?.as_bps() as f64;
    let finite = rates.iter().all(|rate| !rate.is_infinite());
    (sum > 0.0 && finite).then(|| own / sum)
}

/// Returns the increase of a delay over the minimum one-way delay, relative to that minimum (CSWS
/// 2014): 1 is 100 %. Returns `None` if the minimum is zero.
#[must_use]
pub fn delay_increase(delay: Span, least: Span) -> Option<f64> {
    let (delay, least) = (delay.as_nanos() as f64, least.as_nanos() as f64);
    (least > 0.0).then(|| (delay - least) / least)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kbit(kbps: u64) -> Rate {
        Rate::from_bps(kbps * 1000)
    }

    #[test]
    fn a_block_at_twice_the_least_delay_came_100_percent_later() {
        // Claim csws-u5.
        let increase = |ms| delay_increase(Span::from_millis(ms), Span::from_millis(20));
        assert_eq!(increase(40), Some(1.0));
        assert_eq!(increase(20), Some(0.0));
        assert_eq!(increase(320), Some(15.0));
        assert_eq!(delay_increase(Span::from_millis(5), Span::ZERO), None);
    }

    /// Mean RTT in milliseconds of WiFi and LTE, for each rate in kbit/s (Table 2 of the ECF
    /// paper).
    const TABLE_2: [(u64, u64, u64); 6] = [
        (300, 969, 858),
        (700, 413, 416),
        (1_100, 273, 268),
        (1_700, 196, 210),
        (4_200, 87, 131),
        (8_600, 40, 105),
    ];

    #[test]
    fn the_fast_path_has_the_higher_rate_or_else_the_lower_round_trip() {
        // Claim ecf-u10: if rates are equal, LTE is fast at 0.3 and 1.1, and WiFi otherwise.
        for (wifi, wifi_rtt, _) in TABLE_2 {
            for (lte, _, lte_rtt) in TABLE_2 {
                let paths = [(kbit(wifi), wifi_rtt), (kbit(lte), lte_rtt)]
                    .map(|(rate, ms)| (rate, Span::from_millis(ms)));
                let expected = match wifi.cmp(&lte) {
                    core::cmp::Ordering::Less => 1,
                    core::cmp::Ordering::Greater => 0,
                    core::cmp::Ordering::Equal => usize::from([300, 1_100].contains(&wifi)),
                };
                assert_eq!(fast_path(&paths), Some(expected), "{wifi} {lte}");
            }
        }
        assert_eq!(fast_path(&[]), None);
    }

    #[test]
    fn the_ideal_share_of_the_fast_path_is_its_part_of_the_rates() {
        // Claim ecf-u10: 0.966, 0.887 and 0.672 beside 8.6 Mbit/s.
        for (slow, share) in [(300, 0.966), (1_100, 0.887), (4_200, 0.672)] {
            let ours = ideal_share(&[kbit(slow), kbit(8_600)], 1).unwrap();
            assert!((ours - share).abs() < 5e-4, "{slow}: {ours}");
        }
        assert_eq!(ideal_share(&[Rate::INFINITE, kbit(1)], 1), None);
        assert_eq!(ideal_share(&[Rate::ZERO], 0), None);
        assert_eq!(ideal_share(&[], 0), None);
    }

    #[test]
    fn the_ideal_bit_rate_is_the_sum_of_the_rates_up_to_the_top_of_the_ladder() {
        // The ladder of ECF (CoNEXT 2017) ends at 8,470 kbit/s.
        let ideal = |a, b| ideal_bit_rate(&[kbit(a), kbit(b)], kbit(8_470)).as_bps() / 1000;
        assert_eq!(ideal(300, 300), 600);
        assert_eq!(ideal(1_700, 1_700), 3_400);
        assert_eq!(ideal(4_200, 4_200), 8_400);
        assert_eq!(ideal(300, 8_600), 8_470);
        let endless = ideal_bit_rate(&[Rate::INFINITE, kbit(1)], kbit(8_470));
        assert_eq!(endless, kbit(8_470));
    }
}
