//! Named paths. Their rates, delays, buffers and losses follow the wireless links measured in "A
//! measurement-based study of MultiPath TCP performance over wireless networks" (IMC 2013).

use plait_app::name::nearest;
use plait_base::{Chance, RandomStream, Rate, Span, Time};

/// The steps of a wandering rate are drawn for this long. The last rate then holds.
const HORIZON: Span = Span::from_secs(3_600);

/// A named path. Both directions are alike, except that only the way down has loss, as in the
/// measurements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Profile {
    /// Name.
    pub name: &'static str,
    /// One line that describes it.
    pub summary: &'static str,
    /// Rate; the mean if it wanders.
    pub rate: Rate,
    /// Variation of the rate.
    pub wander: Option<Wander>,
    /// Round-trip propagation.
    pub rtt: Span,
    /// Greatest jitter, each way.
    pub jitter: Span,
    /// Queue in bytes.
    pub queue_bytes: u64,
    /// Random loss on the way down.
    pub loss: Chance,
}

/// A rate that is drawn again at regular times, uniformly around its mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wander {
    /// Largest deviation from the mean, in per cent.
    pub percent: u64,
    /// Time between two draws.
    pub every: Span,
}

/// All profiles.
pub const PROFILES: &[Profile] = &[
    Profile {
        name: "wifi-home",
        summary: "WiFi at home: 20 Mbit/s, 22 ms, shallow buffer, 1.6 % loss",
        rate: Rate::from_bps(20_000_000),
        wander: None,
        rtt: Span::from_millis(22),
        jitter: Span::ZERO,
        queue_bytes: 60_000,
        loss: Chance::from_ppb(16_000_000),
    },
    Profile {
        name: "wifi-cafe",
        summary: "busy public WiFi: 8 Mbit/s that vary by half every 0.5 s, 21 ms, 4 % loss",
        rate: Rate::from_bps(8_000_000),
        wander: Some(Wander { percent: 50, every: Span::from_millis(500) }),
        rtt: Span::from_millis(21),
        jitter: Span::ZERO,
        queue_bytes: 100_000,
        loss: Chance::from_ppb(40_000_000),
    },
    Profile {
        name: "lte-att",
        summary: "LTE (AT&T): 8 Mbit/s, 60 to 70 ms, hardly any loss",
        rate: Rate::from_bps(8_000_000),
        wander: None,
        rtt: Span::from_millis(60),
        // The source gives 40 to 70 ms around a base of 60 ms. Jitter only adds delay. Therefore
        // the base stays, and 5 ms each way reach the upper end.
        jitter: Span::from_millis(5),
        queue_bytes: 200_000,
        loss: Chance::from_ppb(100_000),
    },
    Profile {
        name: "lte-verizon",
        summary: "LTE (Verizon): 4 Mbit/s, 45 ms, a buffer of two seconds, no loss",
        // RTTs under load from Tables 2 and 6 (92 to 625 ms), with a tail up to two seconds.
        rate: Rate::from_bps(4_000_000),
        wander: None,
        rtt: Span::from_millis(45),
        jitter: Span::ZERO,
        queue_bytes: 1_000_000,
        loss: Chance::NEVER,
    },
    Profile {
        name: "3g-sprint",
        summary: "3G (Sprint): 1 Mbit/s, 180 ms, a buffer of nearly two seconds, 0.4 % loss",
        rate: Rate::from_bps(1_000_000),
        wander: None,
        rtt: Span::from_millis(180),
        jitter: Span::ZERO,
        queue_bytes: 220_000,
        loss: Chance::from_ppb(4_000_000),
    },
];

impl Profile {
    /// Returns the profile of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Profile> {
        PROFILES.iter().find(|profile| profile.name == name)
    }

    /// Returns the profile with the most similar name.
    #[must_use]
    pub fn nearest(name: &str) -> Option<&'static str> {
        nearest(name, PROFILES.iter().map(|profile| profile.name))
    }
}

impl Wander {
    /// Returns the steps of one run on the path of this name. Both directions share them, as they
    /// share the air. After the first hour the last rate holds.
    #[must_use]
    pub fn steps(&self, mean: Rate, seed: u64, path: &str) -> Vec<(Time, Rate)> {
        let mut stream = RandomStream::new(seed, &["path", path, "wander"]);
        let spread = mean.as_bps() / 100 * self.percent.min(100);
        let (low, high) = (mean.as_bps() - spread, mean.as_bps().saturating_add(spread));
        let every = self.every.as_nanos().max(1);
        let count = HORIZON.as_nanos().div_ceil(every);
        (0..count)
            .map(|i| (Time::from_nanos(i * every), Rate::from_bps(stream.within(low, high).max(1))))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wandering_rate_stays_within_half_of_its_mean_and_repeats_with_its_seed() {
        let profile = Profile::named("wifi-cafe").unwrap();
        let wander = profile.wander.unwrap();
        let steps = wander.steps(profile.rate, 1, "wifi");
        assert_eq!(steps.len(), 7_200);
        assert_eq!(steps[3].0, Time::from_nanos(1_500_000_000));
        assert!(steps.iter().all(|(_, rate)| (4_000_000..=12_000_000).contains(&rate.as_bps())));
        let mean = steps.iter().map(|(_, rate)| rate.as_bps()).sum::<u64>() / 7_200;
        assert!(mean.abs_diff(8_000_000) < 100_000, "{mean}");
        assert_eq!(steps, wander.steps(profile.rate, 1, "wifi"));
        assert_ne!(steps, wander.steps(profile.rate, 2, "wifi"));
        assert_ne!(steps, wander.steps(profile.rate, 1, "other"));
    }

    #[test]
    fn names_are_found_and_slips_recognised() {
        assert_eq!(Profile::named("3g-sprint").map(|p| p.rtt), Some(Span::from_millis(180)));
        assert_eq!(Profile::nearest("wifi_home"), Some("wifi-home"));
        assert_eq!(Profile::named("none"), None);
    }
}
