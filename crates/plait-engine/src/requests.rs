//! Accepted connections whose destination is not known yet. Each has a limited time for its request, and for the
//! resolution of a name in it.

use crate::request::{Request, RequestKey};
use plait_base::{ConnId, Span, Time};
use plait_core::{ConnectionState, Endpoint};
use std::collections::{BTreeMap, VecDeque};

/// Time for the request of a connection and for the resolution of its name.
const REQUEST_TIME: Span = Span::from_secs(30);
/// Largest number of connections without a destination. Further ones are refused.
const MAX_WAITING: usize = 1_024;

/// What a connection without a destination has sent.
pub(crate) enum Heard {
    /// Part of a request, or a request whose destination is being looked up.
    Waits,
    /// A whole request.
    Asks(Request),
    /// Something else, or the connection has failed.
    Fails(String),
}

/// A connection without a destination.
#[derive(Debug)]
struct Waiting {
    until: Time,
    /// The bytes of its request so far; `None` if the request is complete.
    bytes: Option<Vec<u8>>,
}

/// Connections without a destination.
#[derive(Debug)]
pub(crate) struct Requests {
    key: RequestKey,
    waiting: BTreeMap<ConnId, Waiting>,
    /// The deadline of each, in order. Connections that have a destination stay until their deadline.
    deadlines: VecDeque<(Time, ConnId)>,
}

impl Requests {
    pub(crate) fn new(key: RequestKey) -> Requests {
        Requests { key, waiting: BTreeMap::new(), deadlines: VecDeque::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Adds a connection. Returns `false` if there are too many.
    pub(crate) fn add(&mut self, now: Time, conn: ConnId) -> bool {
        if self.waiting.len() >= MAX_WAITING {
            return false;
        }
        let until = now + REQUEST_TIME;
        self.waiting.insert(conn, Waiting { until, bytes: Some(Vec::new()) });
        self.deadlines.push_back((until, conn));
        true
    }

    pub(crate) fn has(&self, conn: ConnId) -> bool {
        self.waiting.contains_key(&conn)
    }

    /// Removes a connection. Returns `false` if it was not there.
    pub(crate) fn remove(&mut self, conn: ConnId) -> bool {
        self.waiting.remove(&conn).is_some()
    }

    /// Returns the first deadline.
    pub(crate) fn next(&self) -> Time {
        self.deadlines.front().map_or(Time::NEVER, |(at, _)| *at)
    }

    /// Returns a connection whose time is over.
    pub(crate) fn poll_expired(&mut self, now: Time) -> Option<ConnId> {
        while let Some((at, conn)) = self.deadlines.front().copied().filter(|(at, _)| *at <= now) {
            self.deadlines.pop_front();
            if self.waiting.get(&conn).is_some_and(|it| it.until == at) {
                return Some(conn);
            }
        }
        None
    }

    /// Reads from a connection up to the end of its request, and no byte beyond. `unix_s` is the time in seconds
    /// since 1970.
    pub(crate) fn read(
        &mut self,
        now: Time,
        unix_s: u64,
        conn: ConnId,
        endpoint: &mut Endpoint,
    ) -> Heard {
        let state = endpoint.state(conn).unwrap_or(ConnectionState::Failed);
        if state == ConnectionState::Failed {
            return Heard::Fails("the client left before its request was answered".to_owned());
        }
        let Some(waiting) = self.waiting.get_mut(&conn) else { return Heard::Waits };
        let Some(bytes) = &mut waiting.bytes else { return Heard::Waits };
        let fails = |problem: &str| Heard::Fails(format!("the request was refused: {problem}"));
        loop {
            let wanted = match Request::len(bytes) {
                Ok(len) if len > bytes.len() => len - bytes.len(),
                Ok(_) => break,
                Err(problem) => return fails(problem),
            };
            let begun = bytes.len();
            bytes.resize(begun + wanted, 0);
            let count = endpoint.read(now, conn, &mut bytes[begun..]).unwrap_or(0);
            bytes.truncate(begun + count);
            if count == 0 {
                let ended = [ConnectionState::PeerDone, ConnectionState::Closed].contains(&state);
                return if ended { fails("it has ended early") } else { Heard::Waits };
            }
        }
        match Request::decode(bytes, &self.key, unix_s) {
            Ok(request) => {
                waiting.bytes = None;
                Heard::Asks(request)
            }
            Err(problem) => fails(problem),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    #[test]
    fn connections_without_a_request_are_few_and_end_in_time() {
        let key = RequestKey::new(&[7; 32]).unwrap();
        let mut requests = Requests::new(key);
        let all = u32::try_from(MAX_WAITING).unwrap();
        assert!((0..all).all(|conn| requests.add(at(1), ConnId(conn))));
        assert!(!requests.add(at(1), ConnId(all)));
        assert!(requests.remove(ConnId(0)) && !requests.remove(ConnId(0)));
        assert!(requests.add(at(2), ConnId(all)));
        // The first one has its destination, and the last one has a second more.
        assert_eq!(requests.next(), at(31));
        assert_eq!(requests.poll_expired(at(30)), None);
        for conn in 1..all {
            assert_eq!(requests.poll_expired(at(31)), Some(ConnId(conn)));
            requests.remove(ConnId(conn));
        }
        assert_eq!(requests.poll_expired(at(31)), None);
        assert_eq!((requests.len(), requests.next()), (1, at(32)));
    }
}
