//! A path of a scenario: its settings, and the links built from them.

use super::delay::Delay;
use super::impairment::{aqm_text, reorder_text};
use super::profile::{Profile, Wander};
use super::redraw::Redraw;
use crate::report::{PathDelays, PathLosses, PathRates, PathReport};
use plait_app::quantity::Limit;
use plait_base::{Chance, RandomStream, Rate, Span, Time};
use plait_link::{Aqm, Impairments, LinkConfig, Loss, QueueLimit, RateSource, Reorder, Trace};
use plait_sim::MiddleboxConfig;
use std::sync::Arc;

/// Default rate of the sending host's own link.
const NIC: Rate = Rate::from_bps(1_000_000_000);

/// A value for each direction of a path.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Both<T> {
    /// Server to client.
    pub down: T,
    /// Client to server.
    pub up: T,
}

/// Rate of one direction of a path.
#[derive(Clone, PartialEq, Debug)]
pub enum Speed {
    /// A constant rate.
    Fixed(Rate),
    /// Rates, each from its time on. The first starts at zero.
    Steps(Vec<(Time, Rate)>),
    /// A recorded link.
    Trace(Recording),
    /// A mean rate, and how it varies at regular times.
    Wander(Rate, Wander),
    /// Rates drawn at random times.
    Redraw(Redraw),
}

/// A recorded link and its file.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The file as given.
    pub file: String,
    /// The parsed content.
    pub trace: Arc<Trace>,
}

/// Two recordings are the same if they name the same file.
impl PartialEq for Recording {
    fn eq(&self, other: &Recording) -> bool {
        self.file == other.file
    }
}

/// Start position of a path in its traces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offset {
    /// This far into the trace.
    At(Span),
    /// Drawn once per run, the same for every path.
    Random,
}

impl Default for Offset {
    fn default() -> Offset {
        Offset::At(Span::ZERO)
    }
}

/// A path of a scenario. A field is `None` if it is not set and its default depends on other
/// settings.
#[derive(Clone, PartialEq, Debug)]
pub struct Path {
    /// Name, unique in its scenario: letters, digits, `-` and `_`.
    pub name: String,
    /// The profile on which it is based.
    pub profile: Option<&'static Profile>,
    /// Propagation.
    pub delay: Both<Delay>,
    /// Rates; always set, except in an ideal scenario.
    pub speed: Both<Option<Speed>>,
    /// Start position in its traces.
    pub offset: Offset,
    /// Queue of each direction; by default 100 ms at its rate, at least 10 packets.
    pub queue: Option<Limit>,
    /// Queue management of each direction.
    pub aqm: Aqm,
    /// Random impairments of packets. They are the same each way, except for loss: the key `loss`
    /// sets the way down, and `loss_up` the way up.
    pub impairments: Both<Impairments>,
    /// Largest packet in bytes that passes, each way, from each time on; empty for no limit.
    pub mtu: Vec<(Time, u32)>,
    /// Outages `[from, to)` of both directions; [`Time::NEVER`] as the end means for ever.
    pub outages: Vec<(Time, Time)>,
    /// Times `[from, to)` in which the client has no address on the path and is aware of it. They
    /// do not overlap or touch.
    pub gone: Vec<(Time, Time)>,
    /// Rate of the own link of each host; by default 1 Gbit/s, without limit in an ideal scenario.
    pub nic: Option<Rate>,
    /// The shared link that packets cross after the path's own link, each way.
    pub via: Option<String>,
    /// When it is used, beside other paths.
    pub usage: Usage,
    /// The middlebox that changes segments, each way.
    pub middlebox: MiddleboxConfig,
}

/// The use of a path beside others.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Usage {
    /// Used only if no other path works.
    pub backup: bool,
    /// Price of a byte, relative to other paths; 0 is free.
    pub cost: u32,
    /// Payload bytes that each end may send over it.
    pub quota: Option<u64>,
}

impl Usage {
    /// Returns true if the path has a cost or a quota.
    #[must_use]
    pub const fn has_price(&self) -> bool {
        self.cost > 0 || self.quota.is_some()
    }
}

/// Returns true if the chance is neither 0 nor 1.
fn has_dice(chance: Chance) -> bool {
    chance != Chance::NEVER && chance != Chance::ALWAYS
}

/// The configuration from which a simulated world builds a path.
#[derive(Clone, Debug)]
pub struct PathLinks {
    /// The links of the path.
    pub link: Both<LinkConfig>,
    /// Rate of the own link of each host. Packets cross the link of their sender first.
    pub nic: Rate,
    /// Its use beside others.
    pub usage: Usage,
}

impl Path {
    /// Returns the links of this path in the run of `seed`. An ideal path has no rate limit and no
    /// queue.
    #[must_use]
    pub fn links(&self, ideal: bool, seed: u64) -> PathLinks {
        let link = |speed: &Option<Speed>, delay: &Delay, impairments: Impairments| {
            let rate = match speed {
                Some(speed) if !ideal => speed.source(self, seed),
                _ => RateSource::Fixed(Rate::INFINITE),
            };
            LinkConfig {
                queue: if ideal { QueueLimit::Infinite } else { self.queue(speed.as_ref()) },
                aqm: if ideal { Aqm::DropTail } else { self.aqm },
                rate,
                delay: delay.start,
                delay_steps: delay.steps.clone(),
                impairments,
                cross: Vec::new(),
                mtu: self.mtu.clone(),
                outages: self.outages.clone(),
            }
        };
        PathLinks {
            link: Both {
                down: link(&self.speed.down, &self.delay.down, self.impairments.down),
                up: link(&self.speed.up, &self.delay.up, self.impairments.up),
            },
            nic: self.nic.unwrap_or(if ideal { Rate::INFINITE } else { NIC }),
            usage: self.usage,
        }
    }

    /// Returns true if two runs of it can differ.
    #[must_use]
    pub fn is_random(&self, ideal: bool) -> bool {
        let drawn = |speed: &Option<Speed>| match speed {
            Some(Speed::Wander(..) | Speed::Redraw(_)) => true,
            Some(Speed::Trace(_)) => self.offset == Offset::Random,
            _ => false,
        };
        self.impairments.down.is_random()
            || self.impairments.up.is_random()
            || has_dice(self.middlebox.edit)
            || self.middlebox.cut.is_some_and(|cut| has_dice(cut.chance))
            || (!ideal && (drawn(&self.speed.down) || drawn(&self.speed.up)))
    }

    /// Returns the path as reports show it.
    #[must_use]
    pub fn report(&self, ideal: bool) -> PathReport {
        let rate = |speed: &Option<Speed>| {
            let mean = speed.as_ref().map_or(Rate::INFINITE, Speed::mean);
            (!ideal && !mean.is_infinite()).then_some(mean.as_bps())
        };
        let trace = |speed: &Option<Speed>| match speed {
            Some(Speed::Trace(recording)) if !ideal => Some(recording.file.clone()),
            _ => None,
        };
        let queue = if ideal { QueueLimit::Infinite } else { self.queue(self.speed.down.as_ref()) };
        let Both { down, up } = &self.impairments;
        PathReport {
            name: self.name.clone(),
            profile: self.profile.map(|profile| profile.name.to_owned()),
            rates: PathRates {
                rate_down_bps: rate(&self.speed.down),
                rate_up_bps: rate(&self.speed.up),
            },
            delays: PathDelays {
                rtt_us: self.delay.round_trip().as_micros(),
                owd_down_us: self.delay.down.start.as_micros(),
                owd_up_us: self.delay.up.start.as_micros(),
                jitter_us: down.jitter.as_micros(),
            },
            losses: PathLosses { loss: share(down.loss.mean()), loss_up: share(up.loss.mean()) },
            queue: limit_of(queue).to_string(),
            aqm: (!ideal && self.aqm != Aqm::DropTail).then(|| aqm_text(self.aqm)),
            reorder: (down.reorder != Reorder::default()).then(|| reorder_text(down.reorder)),
            duplicate: share(down.duplicate),
            corrupt: share(down.corrupt),
            via: self.via.clone(),
            trace: trace(&self.speed.down),
            trace_up: trace(&self.speed.up),
            backup: self.usage.backup,
            settings: self.written(),
        }
    }

    fn queue(&self, speed: Option<&Speed>) -> QueueLimit {
        match self.queue {
            Some(Limit::Time(span)) => QueueLimit::Delay(span),
            Some(Limit::Bytes(bytes)) => QueueLimit::Bytes(bytes),
            Some(Limit::Packets(packets)) => QueueLimit::Packets(packets),
            Some(Limit::Infinite) => QueueLimit::Infinite,
            None => LinkConfig::default_queue(speed.map_or(Rate::INFINITE, Speed::mean)),
        }
    }

    /// Returns the path that a profile describes, unchanged.
    #[must_use]
    pub fn from_profile(name: &str, profile: &'static Profile) -> Path {
        let speed = match profile.wander {
            None => Speed::Fixed(profile.rate),
            Some(wander) => Speed::Wander(profile.rate, wander),
        };
        let impaired =
            |loss: Loss| Impairments { loss, jitter: profile.jitter, ..Impairments::NONE };
        Path {
            profile: Some(profile),
            delay: Delay::from(profile.rtt).split(),
            speed: Both { down: Some(speed.clone()), up: Some(speed) },
            queue: Some(Limit::Bytes(profile.queue_bytes)),
            impairments: Both { down: impaired(profile.loss.into()), up: impaired(Loss::NEVER) },
            ..Path::blank(name)
        }
    }

    /// Returns a path without any settings.
    pub(super) fn blank(name: &str) -> Path {
        Path {
            name: name.to_owned(),
            profile: None,
            delay: Both::default(),
            speed: Both::default(),
            offset: Offset::default(),
            queue: None,
            aqm: Aqm::DropTail,
            impairments: Both::default(),
            mtu: Vec::new(),
            outages: Vec::new(),
            gone: Vec::new(),
            nic: None,
            via: None,
            usage: Usage::default(),
            middlebox: MiddleboxConfig::default(),
        }
    }
}

impl Speed {
    /// Returns true if it is a recording.
    #[must_use]
    pub const fn is_trace(&self) -> bool {
        matches!(self, Speed::Trace(_))
    }

    /// Returns the mean rate.
    #[must_use]
    pub fn mean(&self) -> Rate {
        match self {
            Speed::Fixed(rate) | Speed::Wander(rate, _) => *rate,
            Speed::Steps(steps) => RateSource::Steps(steps.clone()).mean_rate(),
            Speed::Trace(recording) => recording.trace.mean_rate(),
            Speed::Redraw(redraw) => redraw.mean(),
        }
    }

    fn source(&self, path: &Path, seed: u64) -> RateSource {
        match self {
            Speed::Fixed(rate) => RateSource::Fixed(*rate),
            Speed::Steps(steps) => RateSource::Steps(steps.clone()),
            Speed::Redraw(redraw) => RateSource::Steps(redraw.steps(seed, &path.name)),
            Speed::Wander(mean, wander) => RateSource::Steps(wander.steps(*mean, seed, &path.name)),
            Speed::Trace(recording) => {
                let offset = match path.offset {
                    Offset::At(span) => span,
                    Offset::Random => random_offset(seed),
                };
                RateSource::Trace { trace: Arc::clone(&recording.trace), offset }
            }
        }
    }

    /// Returns `10mbit`, `10mbit@0s/4mbit@20s`, or the file of a trace. The variation of a
    /// wandering rate is not in the text: it comes from the profile.
    pub(super) fn text(&self) -> String {
        match self {
            Speed::Fixed(rate) | Speed::Wander(rate, _) => rate.to_string(),
            Speed::Steps(steps) => {
                let step = |(at, rate): &(Time, Rate)| format!("{rate}@{}", at.since(Time::ZERO));
                steps.iter().map(step).collect::<Vec<_>>().join("/")
            }
            Speed::Trace(recording) => recording.file.clone(),
            Speed::Redraw(redraw) => redraw.to_string(),
        }
    }
}

/// Returns the common random offset of a run: every trace starts this far in, modulo its own
/// length. A day is longer than any recording.
fn random_offset(seed: u64) -> Span {
    let day = Span::from_secs(86_400).as_nanos();
    Span::from_nanos(RandomStream::new(seed, &["trace", "offset"]).below(day))
}

fn share(chance: Chance) -> f64 {
    f64::from(chance.as_ppb()) / 1e9
}

fn limit_of(queue: QueueLimit) -> Limit {
    match queue {
        QueueLimit::Infinite => Limit::Infinite,
        QueueLimit::Bytes(bytes) => Limit::Bytes(bytes),
        QueueLimit::Packets(packets) => Limit::Packets(packets),
        QueueLimit::Delay(span) => Limit::Time(span),
    }
}
