//! The result of a measurement: a document, and a file of links.

use crate::estimate::{Estimate, Origin};
use plait_lab::links::{Known, Link, LinkFile};
use schemars::JsonSchema;
use serde::Serialize;

/// Name and version of the document.
pub const SCHEMA: &str = "plait.measure/1";
/// Name of the link that paths with a common bottleneck share.
const SHARED_LINK: &str = "shared";
/// Least part of the RTT, and least time in ms, by which the ways of a path differ notably.
const NOTABLE_ASYMMETRY: (f64, f64) = (0.1, 2.0);
/// Least jitter in ms that is more than the timing of the hosts.
const NOTABLE_JITTER_MS: f64 = 0.5;

/// A measured value with the range that holds the true one in eight of ten cases.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Measured {
    /// The best estimate.
    pub value: f64,
    /// Lower end of the range.
    pub low: f64,
    /// Upper end of the range.
    pub high: f64,
}

impl std::convert::From<Estimate> for Measured {
    fn from(it: Estimate) -> Measured {
        Measured { value: it.value, low: it.low, high: it.high }
    }
}

impl Measured {
    pub(super) fn estimate(self) -> Estimate {
        Estimate { value: self.value, low: self.low, high: self.high }
    }
}

/// Whether paths share a bottleneck.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Bottleneck {
    /// Each path has its own.
    Own,
    /// They share one.
    Shared,
    /// The measurement does not show it.
    Unclear,
}

/// The values of a direction of a path.
#[derive(Clone, PartialEq, Default, Debug, Serialize, JsonSchema)]
pub struct WayResult {
    /// Rate of IP packets under load, in Mbit/s.
    pub rate_mbps: Option<Measured>,
    /// Deepest queue under load, in ms at this rate.
    pub queue_ms: Option<Measured>,
    /// Lost packets below the rate, in percent.
    pub loss_percent: Option<Measured>,
    /// Packets that the loss comes from.
    pub loss_packets: u64,
    /// Least delay of this way in ms; only if both ends have the same clock.
    pub delay_ms: Option<f64>,
}

/// The values of a path.
#[derive(Clone, PartialEq, Default, Debug, Serialize, JsonSchema)]
pub struct PathResult {
    /// Name of the path.
    pub name: String,
    /// RTT of the idle path in ms, without the time that the packets take to be sent.
    pub rtt_ms: Option<Measured>,
    /// RTT under load in ms: that of the idle path and both queues.
    pub loaded_rtt_ms: Option<f64>,
    /// Jitter of each way in ms.
    pub jitter_ms: Option<Measured>,
    /// How much longer packets take from server to client than back, in ms.
    pub asymmetry_ms: Option<f64>,
    /// Greatest error of the asymmetry: the clocks of two hosts differ by an unknown time.
    pub asymmetry_error_ms: Option<f64>,
    /// From server to client.
    pub down: WayResult,
    /// From client to server.
    pub up: WayResult,
    /// Whether options of Multipath TCP arrive; absent if that is unknown.
    pub mptcp_options: Option<bool>,
    /// Remarks for the reader.
    pub remarks: Vec<String>,
}

/// The document of `plait measure --json`.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct MeasureDocument {
    /// Always `plait.measure/1`.
    pub schema: String,
    /// The far side.
    pub server: String,
    /// The day of the measurement.
    pub date: String,
    /// The paths.
    pub paths: Vec<PathResult>,
    /// Rate of all paths together from server to client, in Mbit/s.
    pub together_mbps: Option<Measured>,
    /// The part of the smallest rate that is missing in that sum: 0 if each path has its own bottleneck, and 1 if
    /// two paths share one.
    pub missing_share: Option<Measured>,
    /// Whether the paths share a bottleneck from server to client; absent for one path.
    pub bottleneck: Option<Bottleneck>,
    /// Bytes that were sent in both directions.
    pub bytes: u64,
}

impl MeasureDocument {
    /// Returns the file of links.
    #[must_use]
    pub fn links(&self) -> LinkFile {
        let source = format!("plait measure {}", self.server);
        let origin = Origin { source, date: self.date.clone() };
        let shared = self.bottleneck == Some(Bottleneck::Shared);
        let mut file = LinkFile::default();
        for path in &self.paths {
            let mut link = path.link(&origin);
            if shared {
                link.set("via", Known::exact(SHARED_LINK, &origin.source, &origin.date));
            }
            file.merge(link);
        }
        if let (true, Some(rate)) = (shared, self.together_mbps) {
            let up = self.paths.iter().filter_map(|it| it.up.rate_mbps).map(|it| it.value);
            let up = up.reduce(f64::max).unwrap_or(rate.value);
            let queue = self.paths.iter().filter_map(|it| it.down.queue_ms).map(|it| it.value);
            let queue =
                queue.reduce(f64::max).map_or(String::new(), |ms| format!(",queue={ms:.1}ms"));
            let rate = rate.value;
            let text = format!("{SHARED_LINK}:rate_down={rate:.3}mbit,rate_up={up:.3}mbit{queue}");
            file.shared.push(text);
        }
        file
    }
}

impl MeasureDocument {
    /// Adds the links to a file. A link with the same name keeps the values that were not measured.
    pub fn merge_into(&self, file: &mut LinkFile) {
        let mine = format!("{SHARED_LINK}:");
        let new = self.links();
        file.shared.retain(|it| !it.starts_with(&mine));
        file.shared.extend(new.shared);
        for link in new.links {
            if let Some(known) = file.links.iter_mut().find(|it| it.name == link.name) {
                let via = |value: &Known| value.value.as_deref() == Some(SHARED_LINK);
                known.values.retain(|(key, value)| key != "via" || !via(value));
            }
            file.merge(link);
        }
    }
}

impl PathResult {
    fn link(&self, origin: &Origin) -> Link {
        let mut link = Link::new(&self.name);
        let unknown = || Known::unknown("it could not be measured", &origin.date);
        let ways = self.down.delay_ms.zip(self.up.delay_ms);
        match (self.rtt_ms, ways) {
            (Some(rtt), Some((down, up))) if notable(down, up, rtt.value) => {
                for (key, delay) in [("owd_down", down), ("owd_up", up)] {
                    let spread = (rtt.value - rtt.low).max(rtt.high - rtt.value) / 2.0;
                    let (low, high) = ((delay - spread).max(0.01), delay + spread);
                    let delay = Estimate { value: delay.max(0.01), low, high };
                    link.set(key, delay.time(origin));
                }
            }
            (Some(rtt), _) => link.set("rtt", rtt.estimate().time(origin)),
            (None, _) => {}
        }
        for (key, way) in [("rate_down", &self.down), ("rate_up", &self.up)] {
            let rate = way.rate_mbps.map(|it| it.estimate().times(1e6).rate(origin));
            link.set(key, rate.unwrap_or_else(unknown));
        }
        let queue = self.down.queue_ms.or(self.up.queue_ms);
        link.set("queue", queue.map_or_else(unknown, |it| it.estimate().time(origin)));
        for (key, way) in [("loss", &self.down), ("loss_up", &self.up)] {
            let loss = way.loss_percent.map(|it| it.estimate().share(origin));
            link.set(key, loss.unwrap_or_else(unknown));
        }
        if let Some(jitter) = self.jitter_ms.filter(|it| it.value >= NOTABLE_JITTER_MS) {
            link.set("jitter", jitter.estimate().time(origin));
        }
        link
    }
}

/// Returns true if the ways of a path differ notably.
fn notable(down: f64, up: f64, rtt: f64) -> bool {
    let difference = (down - up).abs();
    difference > NOTABLE_ASYMMETRY.0 * rtt && difference > NOTABLE_ASYMMETRY.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use plait_lab::links::Values;

    fn measured(value: f64) -> Option<Measured> {
        Some(Measured { value, low: value * 0.9, high: value * 1.1 })
    }

    fn path(name: &str) -> PathResult {
        let way = |rate| WayResult {
            rate_mbps: measured(rate),
            queue_ms: measured(100.0),
            loss_percent: Some(Estimate::loss_percent(0, 1_000).unwrap().into()),
            ..WayResult::default()
        };
        PathResult {
            name: name.to_owned(),
            rtt_ms: measured(20.0),
            down: way(20.0),
            up: way(5.0),
            ..PathResult::default()
        }
    }

    fn document(paths: Vec<PathResult>, bottleneck: Option<Bottleneck>) -> MeasureDocument {
        MeasureDocument {
            schema: SCHEMA.to_owned(),
            server: "far".to_owned(),
            date: "2026-11-27".to_owned(),
            paths,
            together_mbps: measured(20.0),
            missing_share: None,
            bottleneck,
            bytes: 0,
        }
    }

    #[test]
    fn a_comparison_takes_the_links() {
        let mut slanted = path("lte");
        (slanted.down.delay_ms, slanted.up.delay_ms) = (Some(15.0), Some(5.0));
        let all = document(vec![path("wifi"), slanted], Some(Bottleneck::Shared));
        let text = all.links().to_toml();
        let file = LinkFile::from_toml("links.toml", &text).unwrap();
        let mut raw = file.scenario(Values::Middle).unwrap();
        raw.argument("workload", "bulk:1s").unwrap();
        let scenario = raw.build().unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!((scenario.paths.len(), scenario.shared.len()), (2, 1));
        assert!(text.contains("owd_down = { value = \"15.000ms\", low = \"14.000ms\""), "{text}");
        assert!(text.contains("rate_up = { value = \"5.000mbit\", low = \"4.500mbit\""), "{text}");
        assert!(file.scenario(Values::Ranges).is_ok());
    }

    #[test]
    fn a_path_without_a_rate_says_so() {
        let nothing = PathResult { name: "wifi".to_owned(), ..PathResult::default() };
        let file = document(vec![nothing], None).links();
        assert!(file.links[0].value("rate_down").unwrap().is_unknown());
        assert!(file.scenario(Values::Middle).is_err());
    }
}
