//! Draws the links and the load of a cell of the random scoreboard.

use plait_base::RandomStream;

/// Links and a load, drawn at random.
#[derive(Clone, PartialEq, Debug)]
pub struct Drawn {
    /// Number of the cell, from 0. The seed of the scoreboard and this number give the cell.
    pub number: u32,
    /// Settings as on a command line, without dashes; the path that is dialled first comes first.
    pub settings: Vec<(&'static str, String)>,
    /// Properties of the cell, such as `download` and `loss`.
    pub classes: Vec<&'static str>,
    /// Rate of the second path over that of the first.
    pub rate_ratio: f64,
    /// RTT of the second path over that of the first.
    pub rtt_ratio: f64,
    /// RTT of each path without a queue, in ms.
    pub rtts_ms: Vec<f64>,
}

/// Least and largest rate of a path in Mbit/s.
const RATES: (f64, f64) = (0.3, 100.0);
/// Least and largest RTT in ms.
const RTTS: (f64, f64) = (5.0, 400.0);
/// Least and largest queue in ms at the rate of the path.
const QUEUES: (f64, f64) = (10.0, 1_000.0);
/// Least queue in bytes: four full packets.
const MIN_QUEUE: f64 = 6_000.0;
/// Least and largest size of a transfer in bytes.
const SIZES: (f64, f64) = (16e3, 16e6);
/// Least and largest small buffer in bytes.
const BUFFERS: (f64, f64) = (64e3, 1e6);
/// Length of a stream in seconds.
const STREAM_SECS: u64 = 8;
/// Pages that are built in.
const PAGES: [&str; 6] = ["google", "wikipedia", "instagram", "amazon", "guardian", "huffpost"];

/// A path before it is written.
struct Path {
    rate: f64,
    rtt: f64,
    text: String,
}

/// Draws the cell `number` of the scoreboard with `seed`.
#[must_use]
pub fn draw(seed: u64, number: u32) -> Drawn {
    let mut dice = Dice(RandomStream::new(seed, &["random scoreboard", &number.to_string()]));
    let mut classes = Vec::new();
    let count = if dice.chance(20) { 3 } else { 2 };
    classes.push(if count == 3 { "three paths" } else { "two paths" });
    let mut paths: Vec<Path> =
        ["a", "b", "c"][..count].iter().map(|name| path(name, &mut dice, &mut classes)).collect();
    let mut settings = Vec::new();
    change(&mut paths, &mut settings, &mut dice, &mut classes);
    let load = load(&paths, &mut dice, &mut classes);
    // A quarter of the cells has a small receive buffer, and a quarter a small send buffer.
    for (name, class) in [("rcvbuf", "small rcvbuf"), ("sndbuf", "small sndbuf")] {
        if dice.chance(25) {
            classes.push(class);
            settings.push((name, format!("{}B", dice.log(BUFFERS) as u64)));
        }
    }
    classes.sort_unstable();
    classes.dedup();
    let mut all: Vec<(&str, String)> =
        paths.iter().map(|path| ("path", path.text.clone())).collect();
    all.extend(settings);
    all.push(("workload", load));
    Drawn {
        number,
        settings: all,
        classes,
        rate_ratio: paths[1].rate / paths[0].rate,
        rtt_ratio: paths[1].rtt / paths[0].rtt,
        rtts_ms: paths.iter().map(|path| path.rtt).collect(),
    }
}

fn path(name: &str, dice: &mut Dice, classes: &mut Vec<&'static str>) -> Path {
    let (rate, rtt) = (dice.log(RATES), dice.log(RTTS));
    let queue = (dice.log(QUEUES) * rate * 1e3 / 8.0).max(MIN_QUEUE);
    let mut text = format!("{name}:");
    if dice.chance(20) {
        classes.push("asymmetric delay");
        let down = rtt * (0.2 + 0.6 * dice.unit());
        text += &format!("owd_down={down:.2}ms,owd_up={:.2}ms", rtt - down);
    } else {
        text += &format!("rtt={rtt:.2}ms");
    }
    text += &if dice.chance(25) {
        classes.push("slow uplink");
        let up = (rate * dice.log((0.1, 1.0))).max(0.1);
        format!(",rate_down={rate:.3}mbit,rate_up={up:.3}mbit")
    } else {
        format!(",rate={rate:.3}mbit")
    };
    text += &format!(",queue={}B", queue as u64);
    match dice.below(5) {
        0 => {
            classes.push("loss");
            text += ",loss=0.1%";
        }
        1 => {
            classes.push("loss");
            text += ",loss=1%";
        }
        _ => {}
    }
    Path { rate, rtt, text }
}

/// Adds at most one of: jitter, an outage, a step of the rate, a shared bottleneck.
fn change(
    paths: &mut [Path],
    settings: &mut Vec<(&'static str, String)>,
    dice: &mut Dice,
    classes: &mut Vec<&'static str>,
) {
    let which = dice.below(paths.len() as u64) as usize;
    match dice.below(100) {
        0..15 => {
            classes.push("jitter");
            let jitter = paths[which].rtt * dice.log((0.01, 0.5));
            paths[which].text += &format!(",jitter={jitter:.2}ms");
        }
        15..25 => {
            classes.push("outage");
            let from = dice.within(200, 5_000);
            let to = from + dice.within(200, 4_000);
            paths[which].text += &format!(",down={from}ms..{to}ms");
        }
        25..40 => {
            let (at, later, path) = (dice.within(200, 5_000), dice.log(RATES), &mut paths[which]);
            let rate = format!(",rate={:.3}mbit", path.rate);
            // A path with a slow uplink has two rates, and keeps them.
            if path.text.contains(&rate) {
                classes.push("rate step");
                let steps = format!("{rate}@0s/{later:.3}mbit@{at}ms");
                path.text = path.text.replace(&rate, &steps);
            }
        }
        40..50 => {
            classes.push("shared bottleneck");
            let fastest = paths.iter().map(|path| path.rate).fold(0.0, f64::max);
            let sum: f64 = paths.iter().map(|path| path.rate).sum();
            let rate = fastest + dice.unit() * (sum - fastest);
            let queue = (dice.log(QUEUES) * rate * 1e3 / 8.0).max(MIN_QUEUE);
            settings.push(("link", format!("common:rate={rate:.3}mbit,queue={}B", queue as u64)));
            paths.iter_mut().for_each(|path| path.text += ",via=common");
        }
        _ => {}
    }
}

fn load(paths: &[Path], dice: &mut Dice, classes: &mut Vec<&'static str>) -> String {
    let fastest = paths.iter().map(|path| path.rate).fold(0.0, f64::max);
    let sum: f64 = paths.iter().map(|path| path.rate).sum();
    match dice.below(100) {
        0..35 => {
            classes.push("download");
            format!("download:{}B", dice.log(SIZES) as u64)
        }
        35..40 => {
            classes.push("upload");
            format!("upload:{}B", dice.log(SIZES) as u64)
        }
        40..80 => {
            let interval = [20, 50, 100, 500][dice.below(4) as usize];
            let above = dice.chance(50);
            classes.push(if above { "stream above one path" } else { "stream below one path" });
            let rate = match above {
                true => fastest + (0.1 + 0.8 * dice.unit()) * (sum - fastest),
                false => fastest * (0.1 + 0.8 * dice.unit()),
            };
            let bytes = (rate * 1e3 / 8.0 * f64::from(interval)).max(200.0) as u64;
            format!("stream:{bytes}B@{interval}ms,for={STREAM_SECS}s")
        }
        80..90 => {
            classes.push("page");
            format!("web:{}", PAGES[dice.below(PAGES.len() as u64) as usize])
        }
        _ => {
            classes.push("requests");
            format!("maps:{STREAM_SECS}s,seed={}", dice.within(1, 1_000))
        }
    }
}

struct Dice(RandomStream);

impl Dice {
    fn unit(&mut self) -> f64 {
        self.0.unit()
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    fn within(&mut self, low: u64, high: u64) -> u64 {
        self.0.within(low, high)
    }

    /// Returns true with a probability in percent.
    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Returns a number whose logarithm is uniformly distributed.
    fn log(&mut self, (low, high): (f64, f64)) -> f64 {
        low * libm::pow(high / low, self.unit())
    }
}
