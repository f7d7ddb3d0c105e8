//! The course of a measurement: each path alone, then all together.

use super::analysis::{self, Echo, Offered};
use super::collect::Summary;
use super::exchange::{Exchange, Wanted, Way};
use super::result::{MeasureDocument, PathResult, SCHEMA, WayResult};
use super::schedule::{Rest, Schedule, affordable};
use super::shared::Together;
use super::socket::From;
use super::variation::{self, Later};
use super::{MeasureError, mptcp};
use crate::date::day_of;
use crate::estimate::Estimate;
use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// First rate of the search, and the factor to the next one.
const FIRST_BPS: f64 = 1e6;
const SEARCH_FACTOR: f64 = 3.0;
/// Highest rate of the search.
const MAX_SEARCH_BPS: f64 = 2e9;
/// Time of each step of the search.
const STEP: Duration = Duration::from_millis(150);
/// Load over the rate, so that the queue fills.
const OVERLOAD: f64 = 1.5;
/// The same if all paths are loaded at once.
const OVERLOAD_TOGETHER: f64 = 1.3;
/// Load below the rate, at which no queue fills.
const LIGHT: f64 = 0.3;
/// Payload of the datagrams of a full load, and of a light one with more of them.
const FULL_SIZE_BYTES: u16 = 1_400;
const LIGHT_SIZE_BYTES: u16 = 400;
/// Most packets of a light load.
const MAX_LIGHT_PACKETS: f64 = 30_000.0;
/// Share of the intended rate below which the sending host is too slow.
const SLOW_HOST: f64 = 0.8;
/// Upper end of the range of a rate that no load reached, over the highest one seen.
const UNREACHED: f64 = 3.0;
/// Most loads above the rate.
const MAX_OVERLOADS: usize = 4;
/// Bytes without which no further load begins.
const LEAST_BYTES: u64 = 100_000;
/// Part of the bytes that one load may take.
const LOAD_SHARE: u64 = 4;

/// A measurement to make.
#[derive(Clone, Debug)]
pub struct Options {
    /// The far side.
    pub to: SocketAddr,
    /// Its name, for the source of the values.
    pub server: String,
    /// Where the packets of each path start.
    pub from: Vec<From>,
    /// Longest time.
    pub time: Duration,
    /// Most bytes in each direction.
    pub bytes: u64,
    /// The time of the measurement in seconds since 1970.
    pub now_s: u64,
}

impl Options {
    /// Describes the measurement.
    #[must_use]
    pub fn plan(&self) -> String {
        let schedule = Schedule::of(self.time, self.from.len());
        let mut text = format!("far side: {} (UDP and TCP)\n", self.to);
        for from in &self.from {
            let start = from.device.clone().or(from.address.map(|it| it.to_string()));
            text += &format!("path {} from {}\n", from.name, start.unwrap_or_default());
        }
        let s = |time: Duration| time.as_secs_f64();
        text += &format!(
            "each path: probes for {:.1} s; in both directions a search for the rate, {:.1} s above it, {:.1} s below it\n",
            s(schedule.idle),
            s(schedule.full),
            s(schedule.light)
        );
        let again = format!("each path: {:.1} s above the rate once more\n", s(schedule.again));
        if self.from.len() > 1 {
            text +=
                &format!("all paths together: {:.1} s above their rates\n", s(schedule.together));
        }
        text + &again
            + &format!(
                "at most {} s, and {:.0} MB in each direction\n",
                self.time.as_secs(),
                self.bytes as f64 / 1e6
            )
    }
}

/// Measures paths to a far side that runs [`serve`](super::serve). Progress goes to `say`.
///
/// # Errors
/// If a path cannot be used, or if the far side refuses or fails. If the time or the bytes are used up, the rest is
/// unknown, and a remark of each path says so.
pub fn measure(
    options: &Options,
    stop: &AtomicBool,
    say: &(dyn Fn(&str) + Sync),
) -> Result<MeasureDocument, MeasureError> {
    let exchange = Exchange::open(options.to, &options.from, options.time, options.bytes, stop)?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for line in &exchange.lines {
            let (exchange, over) = (&exchange, &over);
            scope.spawn(move || exchange.receive(line, over));
        }
        let schedule = Schedule::of(options.time, options.from.len());
        let overhead = Cell::new(schedule.usual_overhead());
        let course = Course { exchange: &exchange, options, schedule, overhead, say };
        let result = course.run();
        over.store(true, Ordering::Relaxed);
        result
    })
}

/// A measurement.
struct Course<'a> {
    exchange: &'a Exchange<'a>,
    options: &'a Options,
    schedule: Schedule,
    /// Time of the latest way without its loads: the search, and the waits of round trips.
    overhead: Cell<Duration>,
    say: &'a (dyn Fn(&str) + Sync),
}

/// A path while it is measured.
struct PathState {
    /// Its place in the list of paths.
    at: usize,
    result: PathResult,
    echoes: Vec<Echo>,
    idle_ms: f64,
}

/// Paths that do not answer, with their places in the list of paths.
type DeadPaths = Vec<(usize, PathResult)>;

impl Course<'_> {
    fn run(&self) -> Result<MeasureDocument, MeasureError> {
        // All paths show themselves first, so that a path without an answer is found early.
        let (mut states, dead) = self.probe_all()?;
        let paths = u32::try_from(states.len()).unwrap_or(u32::MAX);
        let mut rest = Rest { ways: 2 * paths, together: paths > 1, again: paths };
        for state in &mut states {
            for way in [Way::Down, Way::Up] {
                let schedule = self.left(rest);
                let began = self.exchange.elapsed();
                let result = self.way(way, state, schedule)?;
                let used = self.exchange.elapsed().saturating_sub(began);
                self.overhead.set(used.saturating_sub(schedule.full + schedule.light));
                rest.ways -= 1;
                match way {
                    Way::Down => state.result.down = result,
                    Way::Up => state.result.up = result,
                }
            }
            self.conclude(state);
            if self.exchange.mptcp {
                match mptcp::survive(&self.exchange.lines[state.at].from, self.options.to) {
                    Ok(arrive) => state.result.mptcp_options = Some(arrive),
                    Err(why) => state.result.remarks.push(format!("MPTCP options: {why}")),
                }
            }
        }
        self.asymmetries(&mut states);
        let mut later = self.together(&states, rest)?;
        rest.together = false;
        for (state, later) in states.iter_mut().zip(&mut later) {
            later.alone = self.again(state, rest)?;
            rest.again -= 1;
        }
        let mut paths: Vec<PathResult> = states.into_iter().map(|it| it.result).collect();
        let together = variation::add(&mut paths, &later);
        // Each path has its place again.
        dead.into_iter().for_each(|(at, result)| paths.insert(at, result));
        Ok(MeasureDocument {
            schema: SCHEMA.to_owned(),
            server: self.options.server.clone(),
            date: day_of(self.options.now_s),
            paths,
            together_mbps: together
                .as_ref()
                .and_then(Together::rate)
                .map(|it| it.times(1e-6).into()),
            missing_share: together.as_ref().and_then(Together::missing).map(Into::into),
            bottleneck: together.as_ref().map(Together::verdict),
            bytes: [Way::Down, Way::Up]
                .map(|way| self.options.bytes - self.exchange.left_bytes(way))
                .iter()
                .sum(),
        })
    }

    /// Returns the schedule of the time that is left for the remaining loads.
    fn left(&self, rest: Rest) -> Schedule {
        let left = self.options.time.saturating_sub(self.exchange.elapsed());
        self.schedule.within(left, rest, self.overhead.get())
    }

    /// Probes each path without load. Returns the paths that answer, and then the others with their places, in order.
    /// Fails if no path answers.
    fn probe_all(&self) -> Result<(Vec<PathState>, DeadPaths), MeasureError> {
        let (mut states, mut dead) = (Vec::new(), Vec::new());
        for (at, line) in self.exchange.lines.iter().enumerate() {
            (self.say)(&format!("{}: probing the idle path", line.from.name));
            let (echoes, sent) = self.exchange.probe(at, self.schedule.idle)?;
            let mut result = PathResult { name: line.from.name.clone(), ..PathResult::default() };
            match echoes.iter().map(|it| it.rtt_ms).reduce(f64::min) {
                Some(idle_ms) => states.push(PathState { at, result, echoes, idle_ms }),
                None => {
                    let remark = silent(sent, line.passes_tcp(self.options.to), self.options.to);
                    result.remarks.push(remark);
                    dead.push((at, result));
                }
            }
        }
        match dead.first().filter(|_| states.is_empty()) {
            Some((_, PathResult { name, remarks, .. })) => {
                Err(MeasureError::Peer(format!("path {name}: {}", remarks.join("\n  "))))
            }
            None => Ok((states, dead)),
        }
    }

    /// Returns true if time and bytes are left. Otherwise it adds a remark.
    fn may_go_on(&self, state: &mut PathState) -> bool {
        let remark = match () {
            () if self.exchange.elapsed() >= self.options.time => "the time (--time) is used up",
            () if [Way::Down, Way::Up]
                .iter()
                .any(|way| self.exchange.left_bytes(*way) < LEAST_BYTES) =>
            {
                "the bytes (--quota) are used up"
            }
            () => return true,
        };
        if !state.result.remarks.iter().any(|it| it == remark) {
            state.result.remarks.push(remark.to_owned());
        }
        false
    }

    /// Sends one load, within the remaining time and bytes.
    fn load(
        &self,
        way: Way,
        state: &PathState,
        (rate_bps, time, size_bytes): (f64, Duration, u16),
    ) -> Result<(Offered, Summary), MeasureError> {
        let bytes = self.exchange.left_bytes(way) / LOAD_SHARE;
        let left = self.options.time.saturating_sub(self.exchange.elapsed());
        let time = affordable(time, rate_bps, bytes).min(left);
        let wanted = Wanted { line: state.at, rate_bps, time, size_bytes };
        let mut all = self.exchange.load(way, &[wanted], state.idle_ms)?;
        all.pop().ok_or_else(|| MeasureError::Peer("the far side sent nothing".to_owned()))
    }

    /// Measures a direction of a path.
    fn way(
        &self,
        way: Way,
        state: &mut PathState,
        schedule: Schedule,
    ) -> Result<WayResult, MeasureError> {
        let mut result = WayResult::default();
        let word = if way == Way::Down { "down" } else { "up" };
        if !self.may_go_on(state) {
            return Ok(result);
        }
        (self.say)(&format!("{}: loading {word}", state.result.name));
        let Some(found) = self.search(way, state)? else {
            state.result.remarks.push(format!("no load arrived {word}"));
            return Ok(result);
        };
        let found = (found.0, found.1, schedule.full);
        let Some(rate_bps) = self.full(way, state, found, &mut result)? else {
            return Ok(result);
        };
        if self.may_go_on(state) {
            let rate = rate_bps * LIGHT;
            let most = MAX_LIGHT_PACKETS * self.exchange.packet_bits(LIGHT_SIZE_BYTES) / rate;
            let time = schedule.light.min(Duration::from_secs_f64(most.clamp(0.1, 60.0)));
            let load = (rate, time, LIGHT_SIZE_BYTES);
            let (offered, arrived) = self.load(way, state, load)?;
            let lost = offered.packets.saturating_sub(arrived.packets);
            result.loss_percent = Estimate::loss_percent(lost, offered.packets).map(Into::into);
            result.loss_packets = offered.packets;
        }
        Ok(result)
    }

    /// Loads a direction above its rate, and fills in rate and queue. Returns the rate.
    fn full(
        &self,
        way: Way,
        state: &mut PathState,
        (mut guess, mut least_ns, time): (f64, i64, Duration),
        result: &mut WayResult,
    ) -> Result<Option<f64>, MeasureError> {
        let word = if way == Way::Down { "down" } else { "up" };
        let mut limit = None;
        // If the search found too little, the load is no overload, and the next one is twice as large.
        for _ in 0..MAX_OVERLOADS {
            if !self.may_go_on(state) {
                return Ok(None);
            }
            let load = (guess * OVERLOAD, time, FULL_SIZE_BYTES);
            let bytes = self.exchange.left_bytes(way) / LOAD_SHARE;
            let (offered, arrived) = self.load(way, state, load)?;
            least_ns = least_ns.min(arrived.least_ns);
            let Some(rate) = analysis::rate(&arrived, offered.packet_bits) else { return Ok(None) };
            if offered.passed(&arrived) {
                // The link may carry more.
                let least = Estimate { high: UNREACHED * rate.value, ..rate };
                result.rate_mbps = Some(least.times(1e-6).into());
                guess = guess.max(rate.value);
                if offered.rate_bps() < SLOW_HOST * load.0 {
                    limit = Some(Limit::Host);
                    break;
                }
                limit = (affordable(time, load.0, bytes) < time).then_some(Limit::Bytes);
                guess *= 2.0;
                continue;
            }
            result.rate_mbps = Some(rate.times(1e-6).into());
            let lost = offered.packets.saturating_sub(arrived.packets);
            if let Some((queue, full)) = analysis::queue(&arrived, least_ns, lost) {
                result.queue_ms = Some(queue.into());
                if !full {
                    state.result.remarks.push(format!("{word}: the load did not fill the queue"));
                }
            }
            return Ok(Some(rate.value));
        }
        state.result.remarks.push(format!("{word}: {}", unreached(limit)));
        Ok(Some(guess))
    }

    /// Searches the rate by short loads, each three times the one before. Returns it with the least difference of
    /// the clocks.
    fn search(&self, way: Way, state: &mut PathState) -> Result<Option<(f64, i64)>, MeasureError> {
        let (mut rate, mut least_ns) = (FIRST_BPS, i64::MAX);
        let mut found = None;
        while rate <= MAX_SEARCH_BPS && self.may_go_on(state) {
            let load = (rate, STEP, FULL_SIZE_BYTES);
            let (offered, arrived) = self.load(way, state, load)?;
            if arrived.packets < 2 {
                break;
            }
            least_ns = least_ns.min(arrived.least_ns);
            found = Some((analysis::arrival_bps(&arrived, offered.packet_bits), least_ns));
            if !offered.passed(&arrived) || offered.rate_bps() < SLOW_HOST * rate {
                break;
            }
            rate *= SEARCH_FACTOR;
        }
        Ok(found)
    }

    /// Computes the values that need the probes and both directions.
    fn conclude(&self, state: &mut PathState) {
        let result = &mut state.result;
        let time_ms = |way: &WayResult| {
            way.rate_mbps.map_or(0.0, |it| self.exchange.probe_bits() / it.value.max(1e-6) / 1e3)
        };
        let (down, up) = (time_ms(&result.down), time_ms(&result.up));
        if let Some((rtt, jitter)) = analysis::idle(&state.echoes, down + up) {
            result.rtt_ms = Some(rtt.into());
            result.jitter_ms = Some(jitter.into());
            let queues =
                [&result.down, &result.up].map(|it| it.queue_ms.map_or(0.0, |it| it.value));
            result.loaded_rtt_ms = Some(rtt.value + queues[0] + queues[1]);
        }
        if self.exchange.one_host {
            let least = |of: fn(&Echo) -> f64| state.echoes.iter().map(of).reduce(f64::min);
            result.down.delay_ms = least(|it| it.down_ms).map(|ms| (ms - down).max(0.0));
            result.up.delay_ms = least(|it| it.up_ms).map(|ms| (ms - up).max(0.0));
        }
    }

    /// Compares the ways of the paths. The clocks of two hosts differ by an unknown time, but by the same one on all
    /// paths, and by at most half the RTT of the fastest path.
    fn asymmetries(&self, states: &mut [PathState]) {
        let slant = |state: &PathState| {
            let least = |of: fn(&Echo) -> f64| state.echoes.iter().map(of).reduce(f64::min);
            Some(least(|it| it.down_ms)? - least(|it| it.up_ms)?)
        };
        let rtt = |state: &PathState| state.result.rtt_ms.map_or(f64::INFINITY, |it| it.value);
        let fastest = states.iter().min_by(|a, b| rtt(a).total_cmp(&rtt(b)));
        let Some((reference, error)) = fastest.and_then(|it| Some((slant(it)?, rtt(it)))) else {
            return;
        };
        for state in states {
            let Some(slant) = slant(state) else { continue };
            let (reference, error) = match self.exchange.one_host {
                true => (0.0, 0.1),
                false => (reference, error),
            };
            state.result.asymmetry_ms = Some(slant - reference);
            state.result.asymmetry_error_ms = Some(error);
        }
    }

    /// Loads all paths at once, from server to client. Returns the windows of each; they are empty if the load was not
    /// possible.
    fn together(&self, states: &[PathState], rest: Rest) -> Result<Vec<Later>, MeasureError> {
        let none = || vec![Later::default(); states.len()];
        let rates: Option<Vec<f64>> =
            states.iter().map(|it| Some(it.result.down.rate_mbps?.value * 1e6)).collect();
        let Some(alone) = rates.filter(|it| it.len() > 1) else { return Ok(none()) };
        if self.exchange.elapsed() >= self.options.time {
            return Ok(none());
        }
        (self.say)("all paths: loading down together");
        let bytes = self.exchange.left_bytes(Way::Down) / LOAD_SHARE / alone.len() as u64;
        let fastest = alone.iter().copied().fold(1.0, f64::max) * OVERLOAD_TOGETHER;
        let time = affordable(self.left(rest).together, fastest, bytes);
        let wanted = |(state, rate): (&PathState, &f64)| Wanted {
            line: state.at,
            rate_bps: rate * OVERLOAD_TOGETHER,
            time,
            size_bytes: FULL_SIZE_BYTES,
        };
        let wanted: Vec<Wanted> = states.iter().zip(&alone).map(wanted).collect();
        let idle_ms = states.iter().map(|it| it.idle_ms).fold(0.0, f64::max);
        let all = self.exchange.load(Way::Down, &wanted, idle_ms)?;
        let windows = |(offered, arrived): &(Offered, Summary)| {
            analysis::windows(arrived, offered.packet_bits)
        };
        Ok(all.iter().map(|it| Later { together: windows(it), alone: None }).collect())
    }

    /// Loads a path above its rate once more, from server to client. Returns bits per second; `None` if its rate is
    /// unknown, or time or bytes are used up.
    fn again(&self, state: &mut PathState, rest: Rest) -> Result<Option<f64>, MeasureError> {
        let Some(rate) = state.result.down.rate_mbps.filter(|_| self.may_go_on(state)) else {
            return Ok(None);
        };
        (self.say)(&format!("{}: loading down once more", state.result.name));
        let load = (rate.value * 1e6 * OVERLOAD, self.left(rest).again, FULL_SIZE_BYTES);
        let (offered, arrived) = self.load(Way::Down, state, load)?;
        Ok(analysis::rate(&arrived, offered.packet_bits).map(|it| it.value))
    }
}

/// Why no load reached the rate of a link.
#[derive(Clone, Copy, Debug)]
enum Limit {
    /// The sending host is too slow.
    Host,
    /// The bytes of the loads.
    Bytes,
}

/// Says that no load reached the rate of a link, and what helps.
fn unreached(limit: Option<Limit>) -> String {
    let remedy = match limit {
        Some(Limit::Host) => ": the sending host is too slow",
        Some(Limit::Bytes) => "; give the loads more bytes with --quota, such as --quota 1GB",
        None => "",
    };
    format!("the load did not reach the rate of the link, which may carry more{remedy}")
}

/// Says that a path answered none of `sent` probes, and what helps. `tcp` is true if it carries TCP.
fn silent(sent: u64, tcp: bool, to: SocketAddr) -> String {
    match tcp {
        true => format!(
            "none of {sent} probes over UDP was answered, and TCP passes: let UDP to {to} pass, or leave the path out"
        ),
        false => format!(
            "none of {sent} probes over UDP was answered, and TCP does not pass either: check that the path leads to \
             {to}, or leave it out"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remark_names_the_remedy() {
        let to: SocketAddr = "192.0.2.1:7788".parse().unwrap();
        assert!(silent(18, true, to).contains("let UDP to 192.0.2.1:7788 pass"));
        assert!(!silent(18, false, to).contains("let UDP"));
        assert!(unreached(Some(Limit::Bytes)).contains("--quota 1GB"));
        assert!(unreached(Some(Limit::Host)).contains("the sending host is too slow"));
        assert!(unreached(None).ends_with("may carry more"));
    }
}
