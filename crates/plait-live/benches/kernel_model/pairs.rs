//! The pairs of links and their loads: A to F, and pairs drawn at random from a seed.

use super::net::Line;
use plait_base::Span;

/// Seed of the pairs that were used to improve the model, and of the pairs seen since. It was fixed before
/// any measurement.
const SEED: u64 = 1;
/// Seed of the held-out pairs. It was fixed before any of them was measured.
const HELD_OUT_SEED: u64 = 2;
/// Drawn pairs of each group.
const DRAWN_PER_GROUP: usize = 12;
/// Bytes of a full packet.
const PACKET_BYTES: f64 = 1500.0;

/// The use of a pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    /// The links A to F of docs/promise.md.
    Fixed,
    /// Drawn, and used to improve the model.
    Mending,
    /// Drawn, held out of the first version of the model, and published with it.
    Seen,
    /// Drawn, and not examined before the model was complete.
    HeldOut,
}

impl Group {
    pub const ALL: [Group; 4] = [Group::Fixed, Group::Mending, Group::Seen, Group::HeldOut];

    pub fn name(self) -> &'static str {
        match self {
            Group::Fixed => "A-F",
            Group::Mending => "mending",
            Group::Seen => "seen",
            Group::HeldOut => "held-out",
        }
    }

    /// Returns the first letter of the names of its pairs.
    fn initial(self) -> &'static str {
        match self {
            Group::Fixed => "",
            Group::Mending => "m",
            Group::Seen => "h",
            Group::HeldOut => "n",
        }
    }
}

/// The data that a server sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Load {
    /// `bytes` bytes at once.
    Download { bytes: u64 },
    /// A message of `bytes` bytes every `interval`, `messages` times.
    Stream { bytes: u64, interval: Span, messages: u64 },
}

impl Load {
    /// Returns the number of bytes that the server sends.
    pub fn total(self) -> u64 {
        match self {
            Load::Download { bytes } => bytes,
            Load::Stream { bytes, messages, .. } => bytes * messages,
        }
    }
}

/// Two links with a load.
#[derive(Clone, Debug)]
pub struct Pair {
    pub name: String,
    pub group: Group,
    /// The primary link first.
    pub lines: [Line; 2],
    pub load: Load,
    /// The client's receive buffer in bytes of payload. `None` if the kernel tunes it.
    pub rcvbuf: Option<u64>,
}

/// Returns a link with a rate in Mbit/s, a round-trip time in ms, and a queue in ms at that rate.
fn line(mbit: u64, rtt_ms: u64, queue_ms: u64) -> Line {
    Line::new(mbit, rtt_ms, mbit * 1_000 / 8 * queue_ms)
}

/// Returns a stream of messages of `bytes` bytes every 50 ms for 10 s.
fn stream(bytes: u64) -> Load {
    Load::Stream { bytes, interval: Span::from_millis(50), messages: 200 }
}

fn download(bytes: u64) -> Load {
    Load::Download { bytes }
}

/// Returns all pairs, always the same.
pub fn all() -> Vec<Pair> {
    let near = || line(10, 20, 100);
    let far = || line(3, 200, 600);
    let fixed = |name: &str, lines, load, rcvbuf| {
        let name = name.to_owned();
        Pair { name, group: Group::Fixed, lines, load, rcvbuf }
    };
    let mut pairs = vec![
        fixed("A", [near(), far()], download(8_000_000), None),
        fixed("B", [near(), line(1, 600, 1_500)], download(2_000_000), None),
        fixed("C", [near(), far()], download(2_000_000), Some(64_000)),
        fixed("D", [line(25, 25, 25), line(4, 75, 120)], download(4 << 20), None),
        fixed("E", [near(), far()], stream(30_000), None),
        fixed("F", [line(8, 20, 100), far()], stream(60_000), None),
    ];
    let mut chance = Chance::new(SEED);
    for number in 0..2 * DRAWN_PER_GROUP {
        // Every other pair was initially held out.
        let group = if number % 2 == 0 { Group::Mending } else { Group::Seen };
        pairs.push(chance.pair(group, number / 2));
    }
    let mut chance = Chance::new(HELD_OUT_SEED);
    for number in 0..DRAWN_PER_GROUP {
        pairs.push(chance.pair(Group::HeldOut, number));
    }
    pairs
}

/// A stream of random numbers (SplitMix64).
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    /// Returns an integer below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number from 0 to below 1.
    pub fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a number from `low` to `high`, uniform in the logarithm.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.uniform())
    }

    /// Returns the pair of a group with this number. A third of the pairs carry streams.
    fn pair(&mut self, group: Group, number: usize) -> Pair {
        let lines = [self.line(), self.line()];
        let rate = (lines[0].mbit + lines[1].mbit) as f64 * 1e6 / 8.0;
        let load = if number % 3 == 2 {
            let share = 0.3 + 0.5 * self.uniform();
            stream((rate * share * 0.050 / 1_000.0).round() as u64 * 1_000)
        } else {
            let seconds = self.between(0.7, 6.0);
            download((rate * seconds / 1e4).round() as u64 * 10_000)
        };
        let name = format!("{}{}", group.initial(), number + 1);
        Pair { name, group, lines, load, rcvbuf: None }
    }

    /// Draws a link of 1 to 50 Mbit/s and 10 to 300 ms, with a queue of 0.5 to 4 bandwidth-delay products.
    fn line(&mut self) -> Line {
        let mbit = self.between(1.0, 50.0).round();
        let rtt_ms = self.between(10.0, 300.0).round();
        let product = mbit * 1e6 / 8.0 * rtt_ms / 1e3;
        let queue = (product * self.between(0.5, 4.0)).max(10.0 * PACKET_BYTES);
        Line::new(mbit as u64, rtt_ms as u64, (queue / 1e3).round() as u64 * 1_000)
    }
}
