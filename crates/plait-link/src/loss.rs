use plait_base::{Chance, RandomStream, Time};

/// Loss of packets before the queue.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Loss {
    /// Which packets are lost.
    pub model: LossModel,
}

impl Loss {
    /// No loss.
    pub const NEVER: Loss = Loss { model: LossModel::NEVER };

    /// Returns the long-term loss rate, as [`LossModel::mean`] does.
    #[must_use]
    pub fn mean(self) -> Chance {
        self.model.mean()
    }

    /// Returns true if the losses depend on random numbers.
    #[must_use]
    pub fn is_random(self) -> bool {
        self.model.is_random()
    }
}

impl From<LossModel> for Loss {
    fn from(model: LossModel) -> Loss {
        Loss { model }
    }
}

impl From<Chance> for Loss {
    fn from(chance: Chance) -> Loss {
        LossModel::from(chance).into()
    }
}

/// Model of packet loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossModel {
    /// Independent losses with this probability.
    Random(Chance),
    /// Losses in bursts. The channel is in a good or a bad state, and each state has its own loss rate
    /// (Gilbert 1960, Elliott 1963). It starts in the good state.
    GilbertElliott(GilbertElliott),
}

/// A channel with two states. For each packet, the state changes first; then the loss is drawn with the
/// probability of the new state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GilbertElliott {
    /// Probability per packet of a change from good to bad.
    pub p: Chance,
    /// Probability per packet of a change from bad to good.
    pub r: Chance,
    /// Loss probability in the bad state.
    pub bad: Chance,
    /// Loss probability in the good state.
    pub good: Chance,
}

impl LossModel {
    /// No loss.
    pub const NEVER: LossModel = LossModel::Random(Chance::NEVER);

    /// Returns the long-term loss rate, rounded down to parts per billion. In the two-state model, the
    /// bad state applies to `p / (p + r)` of the packets.
    #[must_use]
    pub fn mean(self) -> Chance {
        match self {
            LossModel::Random(chance) => chance,
            LossModel::GilbertElliott(model) => model.mean(),
        }
    }

    /// Returns true if the losses depend on random numbers.
    #[must_use]
    pub fn is_random(self) -> bool {
        match self {
            LossModel::Random(chance) => has_dice(chance),
            LossModel::GilbertElliott(model) if model.p == Chance::NEVER => has_dice(model.good),
            LossModel::GilbertElliott(GilbertElliott { p, r, bad, good }) => {
                // States with equal loss rates cannot be distinguished.
                has_dice(bad) || has_dice(good) || (bad != good && (has_dice(p) || has_dice(r)))
            }
        }
    }
}

/// Returns true if the chance is neither 0 nor 1.
pub(crate) fn has_dice(chance: Chance) -> bool {
    chance != Chance::NEVER && chance != Chance::ALWAYS
}

impl Default for LossModel {
    fn default() -> LossModel {
        LossModel::NEVER
    }
}

impl From<Chance> for LossModel {
    fn from(chance: Chance) -> LossModel {
        LossModel::Random(chance)
    }
}

impl GilbertElliott {
    fn mean(self) -> Chance {
        let part = |chance: Chance| u64::from(chance.as_ppb());
        let turns = part(self.p) + part(self.r);
        if turns == 0 {
            return self.good;
        }
        let lost = part(self.p) * part(self.bad) + part(self.r) * part(self.good);
        // The mean of two `u32` values fits in `u32`.
        Chance::from_ppb((lost / turns) as u32)
    }
}

/// The losses of one link, with the state of the model.
#[derive(Clone, Debug)]
pub(crate) struct Losses {
    loss: Loss,
    /// Time from which on no packet is lost.
    heals: Time,
    bad: bool,
    stream: RandomStream,
}

impl Losses {
    /// Returns the losses of a link that loses no packet from `heals` on.
    pub(crate) fn new(loss: Loss, heals: Time, stream: RandomStream) -> Losses {
        Losses { loss, heals, bad: false, stream }
    }

    /// Returns true if no packet is ever lost.
    pub(crate) fn is_empty(&self) -> bool {
        self.loss.model == LossModel::NEVER
    }

    /// Returns true if the next packet, offered at `at`, is lost. Every packet draws, even if no packet can be
    /// lost at that time, so that the losses of the other packets stay the same.
    #[inline]
    pub(crate) fn hit(&mut self, at: Time) -> bool {
        let hit = match self.loss.model {
            LossModel::Random(chance) => chance.happens(&mut self.stream),
            LossModel::GilbertElliott(model) => self.hit_in_state(model),
        };
        hit && at < self.heals
    }

    fn hit_in_state(&mut self, model: GilbertElliott) -> bool {
        let turn = if self.bad { model.r } else { model.p };
        self.bad ^= turn.happens(&mut self.stream);
        let loss = if self.bad { model.bad } else { model.good };
        loss.happens(&mut self.stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn percent(n: u32) -> Chance {
        Chance::from_ppb(n * 10_000_000)
    }

    fn model(p: u32, r: u32, bad: u32, good: u32) -> LossModel {
        LossModel::GilbertElliott(GilbertElliott {
            p: percent(p),
            r: percent(r),
            bad: percent(bad),
            good: percent(good),
        })
    }

    fn lost(model: LossModel, packets: usize) -> Vec<bool> {
        let mut losses = Losses::new(model.into(), Time::NEVER, RandomStream::new(7, &["t"]));
        (0..packets).map(|_| losses.hit(Time::ZERO)).collect()
    }

    #[test]
    fn the_state_changes_before_the_loss_is_drawn() {
        // The state changes at every packet, and the first packet is in the bad state.
        assert_eq!(lost(model(100, 100, 100, 0), 4), [true, false, true, false]);
        // Bad from the first packet on, for ever.
        assert_eq!(lost(model(100, 0, 100, 0), 3), [true; 3]);
        // Never bad.
        assert_eq!(lost(model(0, 0, 100, 0), 3), [false; 3]);
        assert_eq!(lost(model(0, 100, 0, 100), 3), [true; 3]);
    }

    #[test]
    fn the_mean_is_that_of_the_stationary_states() {
        // 1 / 31 of the packets, half of them lost.
        assert_eq!(model(1, 30, 50, 0).mean().as_ppb(), 16_129_032);
        assert_eq!(model(20, 60, 80, 4).mean(), percent(23));
        assert_eq!(model(0, 0, 80, 4).mean(), percent(4));
        assert_eq!(model(0, 7, 80, 4).mean(), percent(4));
        assert_eq!(LossModel::from(percent(3)).mean(), percent(3));
    }

    #[test]
    fn a_long_run_loses_the_mean_and_in_bursts_of_the_right_length() {
        let lost = lost(model(1, 30, 100, 0), 1_000_000);
        let count = lost.iter().filter(|lost| **lost).count();
        // The mean is 32258; bursts of 10/3 packets widen its deviation to some 440.
        assert!((30_500..34_000).contains(&count), "{count}");
        let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        let length = count as f64 / bursts as f64;
        assert!((3.2..3.47).contains(&length), "{length}");
    }

    #[test]
    fn what_needs_no_dice_is_not_random() {
        assert!(!LossModel::NEVER.is_random() && !LossModel::Random(Chance::ALWAYS).is_random());
        assert!(LossModel::Random(percent(1)).is_random());
        assert!(model(1, 30, 50, 0).is_random() && model(1, 30, 100, 0).is_random());
        assert!(!model(0, 30, 50, 0).is_random() && model(0, 30, 50, 1).is_random());
        assert!(!model(100, 100, 100, 0).is_random() && !model(5, 5, 0, 0).is_random());
    }

    proptest! {
        #[test]
        fn every_model_loses_its_mean(p in 1u32..100, r in 1u32..100, bad in 0u32..=100, good in 0u32..=100) {
            let model = model(p, r, bad, good);
            let count = lost(model, 200_000).iter().filter(|lost| **lost).count();
            let expected = f64::from(model.mean().as_ppb()) / 1e9 * 200_000.0;
            // Six deviations; those of a chain grow as its states correlate, over 1 / (p + r).
            let variance = 200_000.0 * 0.25 * 200.0 / f64::from(p + r).min(100.0);
            let off = count as f64 - expected;
            prop_assert!(off * off <= 36.0 * variance, "{} {}", count, expected);
        }
    }
}
