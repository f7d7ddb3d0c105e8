//! Comparison of estimated arrival times with the actual ones.

use crate::Role;
use plait_base::{DataRange, Dsn, SubflowId, Time};
use plait_core::{Carry, Event};
use std::collections::BTreeMap;

/// A decision whose segment has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Regret {
    /// The end that made the decision.
    pub sender: Role,
    /// Number of the decision.
    pub number: u64,
    /// The chosen subflow.
    pub subflow: SubflowId,
    /// The segment.
    pub data: DataRange,
    /// Estimated arrival on the chosen subflow, by the plain estimate.
    pub foretold: Time,
    /// Earliest arrival by the plain estimate, over all candidates.
    pub earliest: Time,
    /// Actual arrival, on any subflow.
    pub arrived: Time,
}

/// A segment in flight.
#[derive(Clone, Copy, Debug)]
struct Expected {
    number: u64,
    subflow: SubflowId,
    data: DataRange,
    foretold: Time,
    earliest: Time,
}

/// State of one end.
#[derive(Default, Debug)]
struct End {
    /// Estimates for the next decision.
    estimates: Vec<(SubflowId, Time)>,
    /// The decided segment, if it has not left yet.
    decided: Option<Expected>,
    /// Segments in flight, by their first byte.
    under_way: BTreeMap<Dsn, Expected>,
}

/// Compares the plain estimates of one connection's decisions with the arrivals.
///
/// Decisions that assign data ahead of sending are ignored, because their estimates are for a later
/// transmission.
#[derive(Default, Debug)]
pub struct Foretold {
    client: End,
    server: End,
}

impl Foretold {
    /// Takes an event of the core of `host`. Returns the comparison if the event is the arrival of
    /// an expected segment.
    pub fn on_core(&mut self, now: Time, host: Role, event: &Event) -> Option<Regret> {
        let (own, (peer, sender)) = match host {
            Role::Client => (&mut self.client, (&mut self.server, Role::Server)),
            Role::Server => (&mut self.server, (&mut self.client, Role::Client)),
        };
        match *event {
            Event::Considered { subflow, arrival, .. } => own.estimates.push((subflow, arrival)),
            Event::Decision { number, data, chosen, candidates, .. } => {
                own.decided = chosen.and_then(|subflow| {
                    let of = |id| own.estimates.iter().find(|(it, _)| *it == id).map(|it| it.1);
                    let earliest = candidates.iter().filter_map(of).min()?;
                    let foretold = of(subflow).filter(|at| *at < Time::NEVER)?;
                    Some(Expected { number, subflow, data, foretold, earliest })
                });
                own.estimates.clear();
            }
            Event::Assigned { .. } => own.estimates.clear(),
            Event::DataSent { subflow, data, carry } => {
                let decided = own.decided.take();
                if let Some(expected) =
                    decided.filter(|it| it.subflow == subflow && it.data == data)
                    && carry == Carry::New
                {
                    own.under_way.insert(data.start, expected);
                }
            }
            Event::DataArrived { data, .. } => {
                let Expected { number, subflow, data, foretold, earliest } =
                    peer.under_way.remove(&data.start)?;
                let arrived = now;
                return Some(Regret { sender, number, subflow, data, foretold, earliest, arrived });
            }
            _ => {}
        }
        None
    }
}
