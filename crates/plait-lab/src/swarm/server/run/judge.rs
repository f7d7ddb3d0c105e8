//! What must hold of a server all the time, and in the end.

use super::{Event, PATIENCE, RARE_SAMPLE, Run, SAMPLE};
use crate::swarm::run::Broken;
use crate::swarm::server::Visit;
use crate::swarm::server::client::{Client, Outcome, Visited};
use crate::swarm::server::service::Pipe;
use plait_base::Span;
use plait_core::Holdings;

/// A relay goes on for so long at most after its program has gone: until it is asked after, and what it
/// has left behind has gone to a client that may take nothing.
const DESERTED: Span = Span::from_secs(60);
/// Memory of an endpoint that rests, and of each subflow in TIME-WAIT.
const RESTING_BYTES: u64 = 64 << 10;
const TIME_WAIT_BYTES: u64 = 320;
/// Numbers that a new address and a rest may look at (`plait-engine/src/numbers.rs`).
const LOOKS_EACH: u64 = 4;
const LOOKS_RESTING: u64 = 64;

impl Run<'_> {
    /// Looks at the server from outside.
    pub(super) fn sample(&mut self) {
        let soon = self.heals + PATIENCE;
        let after = if self.now < soon { SAMPLE } else { RARE_SAMPLE };
        self.at(self.now + after, Event::Sample);
        if let Some(wrong) = self.host.wrong.take() {
            return self.broke(Broken::Invariant, wrong);
        }
        // A live server turns at least once a minute; this one does with each look.
        self.serve_idle();
        let now = self.now;
        let deserted = |it: &Pipe| !it.dropped && now > it.gone_at + DESERTED;
        let left = self.pipes.borrow().iter().find(|it| deserted(&it.borrow())).cloned();
        if let Some(it) = left {
            let what = format!("a program is gone, and its relay goes on: {:?}", it.borrow());
            return self.broke(Broken::Lingering, what);
        }
        let Some(engine) = &self.engine else { return };
        if let Some(what) = engine.stack.endpoint.violation() {
            let what = what.to_owned();
            return self.broke(Broken::Invariant, what);
        }
        self.most_paths = self.most_paths.max(engine.paths() as u64);
        let (looks, packets) = (engine.looks(), engine.stack.counters().packets_in);
        let rests = self.now.as_nanos() / Span::from_secs(5).as_nanos() + 2;
        let most = LOOKS_EACH * packets + rests * (LOOKS_RESTING + self.most_paths);
        if looks > most {
            let what = format!("{looks} looks at numbers for {packets} packets; at most {most}");
            return self.broke(Broken::Invariant, what);
        }
        let holdings = engine.holdings();
        let idle = engine.is_idle();
        let forgotten = engine.is_over() && engine.paths() == 0 && holdings.time_wait == 0;
        let told = engine.refused().values().sum::<u64>() == self.told_away;
        let gone = self.now > self.heals && self.clients.iter().all(Client::is_done);
        self.settled = forgotten && told && gone;
        self.weigh(&holdings, idle);
    }

    fn serve_idle(&mut self) {
        if let Some(engine) = &mut self.engine
            && self.now >= self.patience
        {
            // What is ready is taken by the turn that follows.
            engine.stack.expire();
        }
    }

    /// Memory is within its limit, and what has ended takes little.
    fn weigh(&mut self, holdings: &Holdings, idle: bool) {
        let Holdings { bytes, time_wait, closing, half_open, .. } = *holdings;
        if bytes > self.case.memory_bytes {
            let what = format!("connections hold {bytes} of {} bytes", self.case.memory_bytes);
            return self.broke(Broken::Invariant, what);
        }
        let most = RESTING_BYTES + TIME_WAIT_BYTES * time_wait as u64;
        if idle && closing == 0 && half_open == 0 && bytes > most {
            let what =
                format!("{time_wait} subflows in TIME-WAIT hold {bytes} bytes; at most {most}");
            self.broke(Broken::Invariant, what);
        }
    }

    /// What must hold at the end.
    pub(super) fn judge(&mut self) {
        if self.violation.is_some() {
            return;
        }
        if let Some(client) = self.clients.iter().find(|it| !it.is_done()) {
            let what = client.state();
            return self.broke(Broken::Stuck, what);
        }
        self.judge_clients();
        self.judge_rest();
    }

    /// Clients were served, or there is a reason.
    fn judge_clients(&mut self) {
        let visits =
            || self.clients.iter().flat_map(|it| it.visited.iter().map(move |seen| (it, seen)));
        let spoilt = *self.spoilt.borrow();
        let refused: u64 = self.engine.as_ref().map_or(0, |it| it.refused().values().sum());
        // A client for whose address there is no number gets no answer.
        let vain = |client: &Client, it: &Visited| {
            let waits = client.group.visit != Visit::Stay && it.outcome == Outcome::GaveUp;
            waits && (it.established || refused == 0)
        };
        let waited = visits().filter(|(client, it)| vain(client, it)).count() as u64;
        let failed = visits().filter(|(_, it)| it.outcome == Outcome::Failed).count() as u64;
        let first = visits().find(|(client, it)| vain(client, it));
        if waited > spoilt
            && let Some((client, seen)) = first
        {
            let what = format!("{waited} clients waited in vain: {}: {seen}", client.state());
            return self.broke(Broken::Stuck, what);
        }
        let complete = visits().filter(|(_, it)| it.outcome == Outcome::Complete).count();
        let served = self.pipes.borrow().iter().filter(|it| it.borrow().is_complete()).count();
        if self.lives == 1 && complete as u64 > served as u64 + spoilt {
            let what =
                format!("{complete} clients were served, and {served} by the service's count");
            return self.broke(Broken::Invariant, what);
        }
        let excused = refused > 0 || self.draining || self.lives > 1;
        let first = visits().find(|(_, it)| it.outcome == Outcome::Failed);
        if failed > spoilt
            && !excused
            && let Some((client, seen)) = first
        {
            let what = format!(
                "{failed} connections failed, and {spoilt} may have: {}: {seen}",
                client.state()
            );
            self.broke(Broken::Failed, what);
        }
    }

    /// Nothing is left, and what was refused was told.
    fn judge_rest(&mut self) {
        let Some(engine) = &self.engine else { return };
        let refused: u64 = engine.refused().values().sum();
        let (holdings, paths) = (engine.holdings(), engine.paths());
        let over = engine.is_over();
        if !over {
            return self.broke(
                Broken::Lingering,
                format!("the server is not over: {holdings:?}, {:?}", self.left()),
            );
        }
        let Holdings { bytes, laden, half_open, closing, time_wait } = holdings;
        let left = laden + half_open + closing + time_wait + paths;
        let unread = self.host.unread.get();
        if left > 0 || bytes > RESTING_BYTES || unread > 0 {
            let what = format!("{holdings:?}, {paths} numbers and {unread} unread bytes are left");
            return self.broke(Broken::Lingering, what);
        }
        if refused != self.told_away {
            let what = format!("{refused} were refused, and the log tells of {}", self.told_away);
            self.broke(Broken::Invariant, what);
        }
    }

    /// Streams that the server still has.
    fn left(&self) -> Vec<String> {
        let pipes = self.pipes.borrow();
        let left = pipes.iter().filter(|it| !it.borrow().dropped).take(3);
        left.map(|it| format!("{:?}", it.borrow())).collect()
    }
}
