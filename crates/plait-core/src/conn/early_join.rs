//! Joins that come before the key they are proven with
//! ([`JoinTiming::Simultaneous`](crate::JoinTiming::Simultaneous)).

use crate::conn::Connection;
use crate::conn::context::Context;
use crate::paths::early_join::EarlyJoin;
use crate::tcp::state::State;
use crate::tcp::timer::Timer;

impl Connection {
    /// Takes over a join that came before this connection was there.
    pub(crate) fn adopt(&mut self, ctx: &mut Context<'_>, early: EarlyJoin) {
        let Some(id) = self.take_slot() else { return };
        self.paths.add_subflow(
            &self.spec,
            &mut self.notices,
            id,
            early.address,
            State::SynReceived,
            early.shake,
        );
        let subflow = &mut self.paths.subflows[id.index()];
        subflow.status.peer_backup = early.backup;
        subflow.timers.set(Timer::Rto, ctx.now + subflow.rtt.rto());
        if let Some(answer) = early.answer {
            self.handle(ctx, id.index(), &answer);
        }
    }
}
