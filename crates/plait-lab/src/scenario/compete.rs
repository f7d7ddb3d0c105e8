//! Flows that compete with the connection: `reno@cell*2`, `poisson:rate=3mbit@wifi`.

use super::cross::{UDP, Udp, is_udp};
use super::path::Path;
use super::placed_text::PlacedText;
use super::specs::controllers;
use crate::error::{Fault, ScenarioError};
use plait_base::{RandomStream, Span};
use plait_link::Aqm;
use std::fmt;

/// Maximum number of competing flows in a scenario.
const MAX_FLOWS: u64 = 64;
/// Every flow starts before this time.
const START: Span = Span::from_millis(100);

/// Flows from server to client between hosts of their own, active for the whole run.
#[derive(Clone, PartialEq, Debug)]
pub struct Competition {
    /// The kind of sender.
    pub sender: Sender,
    /// The path or shared link that they cross.
    pub over: String,
    /// Number of flows.
    pub flows: u32,
}

/// The sender of a competing flow.
#[derive(Clone, PartialEq, Debug)]
pub enum Sender {
    /// Plain TCP with this controller.
    Tcp(plait_cc::Spec),
    /// UDP at a given rate.
    Udp(Udp),
}

impl Competition {
    /// Reads `CC@PATH_OR_LINK` or `CC@PATH_OR_LINK*N`. A UDP source may replace the controller.
    pub(super) fn parse(
        given: &PlacedText,
        paths: &[Path],
        shared: &[Path],
    ) -> Result<Competition, ScenarioError> {
        let allowed =
            "CC@PATH_OR_LINK or CC@PATH_OR_LINK*N, such as reno@wifi*2 or poisson:rate=3mbit@wifi";
        let Some((cc, rest)) = given.text.trim().rsplit_once('@') else {
            return Err(given.error(Fault::Invalid, "not competing flows").allow(allowed));
        };
        let (over, flows) = match rest.split_once('*') {
            None => (rest, 1),
            Some((over, flows)) => {
                (over, PlacedText::new(&given.place, flows).count(1, MAX_FLOWS)?)
            }
        };
        let over = over.trim();
        if !paths.iter().chain(shared).any(|known| known.name == over) {
            let names = paths.iter().chain(shared).map(|known| known.name.as_str());
            return Err(ScenarioError::unknown(&given.place, "path or link", over, names));
        }
        let shared_by = |path: &Path| path.via.as_deref() == Some(over);
        if !paths.iter().any(|path| path.name == over || shared_by(path)) {
            let problem = format!("no path goes through the link `{over}`");
            return Err(given.error(Fault::Conflict, &problem).allow("via=LINK on a path"));
        }
        let over = over.to_owned();
        let flows = flows as u32;
        if is_udp(cc.split(':').next().unwrap_or_default().trim()) {
            let managed = |link: &&Path| link.name == over && link.aqm != Aqm::DropTail;
            if paths.iter().chain(shared).any(|link| managed(&link)) {
                let problem = "UDP cross traffic supports only drop-tail queues";
                return Err(given.error(Fault::Conflict, problem).allow("aqm=droptail there"));
            }
            let sender = Sender::Udp(Udp::parse(&PlacedText::new(&given.place, cc))?);
            return Ok(Competition { sender, over, flows });
        }
        let listed = controllers(&PlacedText::new(&given.place, cc));
        let cc = match listed.map_err(|error| unknown(given, cc).unwrap_or(error))?.as_slice() {
            [cc] if cc.needs_bdp() => {
                let problem = "a competing flow's window is given in bytes or segments";
                return Err(given.error(Fault::Invalid, problem).allow("fixed:cwnd=20seg@PATH"));
            }
            [cc] => cc.clone(),
            _ => {
                let problem = "several controllers for one kind of flow";
                return Err(given.error(Fault::Invalid, problem).allow("--compete once for each"));
            }
        };
        Ok(Competition { sender: Sender::Tcp(cc), over, flows })
    }

    /// Returns the start time of a flow of the competition at `index` in the run of `seed`: within
    /// the first 100 ms. Simultaneous starts would give the same order in every run.
    #[must_use]
    pub fn start(seed: u64, index: usize, flow: u32) -> Span {
        let words = ["compete", &index.to_string(), &flow.to_string()];
        Span::from_nanos(RandomStream::new(seed, &words).below(START.as_nanos()))
    }
}

/// Returns an error with the names of all senders if `sender` is none of them.
fn unknown(given: &PlacedText, sender: &str) -> Option<ScenarioError> {
    let name = sender.split(':').next().unwrap_or_default().trim();
    let names = || {
        let tcp = plait_cc::CONTROLLERS
            .iter()
            .flat_map(|it| [it.about.name].into_iter().chain(it.about.aliases.iter().copied()));
        tcp.chain(UDP)
    };
    let is_known = name.is_empty() || name.contains(',') || names().any(|known| known == name);
    (!is_known).then(|| ScenarioError::unknown(&given.place, "sender", name, names()))
}

/// Writes it as `--compete` has it.
impl fmt::Display for Competition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.sender {
            Sender::Tcp(cc) => write!(f, "{cc}@{}", self.over)?,
            Sender::Udp(udp) => write!(f, "{udp}@{}", self.over)?,
        }
        if self.flows == 1 { Ok(()) } else { write!(f, "*{}", self.flows) }
    }
}
