//! Invariants and audits of connections, while they are verified.

use crate::conn::Connection;
use crate::conn::audit::Audit;
use crate::endpoint::Endpoint;
use crate::segments::Transmit;
use alloc::collections::BTreeMap;
use alloc::string::String;
use plait_base::ConnId;

/// Invariants, while they are verified.
#[derive(Default)]
pub(super) struct Checks {
    pub(super) on: bool,
    /// The first violation, in words.
    pub(super) violation: Option<String>,
    /// What each connection has told and taken in.
    pub(super) audits: BTreeMap<ConnId, Audit>,
}

impl Endpoint {
    /// Verifies the invariants after every call; see [`Endpoint::violation`].
    pub fn check_invariants(&mut self, on: bool) {
        self.checks.on = on;
        self.shared.checked = on;
    }

    /// The first violation of an invariant, in words.
    #[must_use]
    pub fn violation(&self) -> Option<&str> {
        self.checks.violation.as_deref()
    }

    /// The audit of a connection, up to the first violation.
    pub(super) fn audit(&mut self, id: ConnId) -> Option<(&mut Audit, &Connection)> {
        if self.checks.violation.is_some() {
            return None;
        }
        let conn = self.connections.find(id)?;
        Some((self.checks.audits.entry(id).or_default(), conn))
    }

    #[cold]
    pub(super) fn audit_sent(&mut self, id: ConnId, sent: Option<&Transmit>) {
        if let Some((audit, conn)) = self.audit(id) {
            let told = sent.and_then(|sent| audit.on_sent(conn, sent));
            let stall = || if sent.is_none() { conn.stall() } else { None };
            self.checks.violation = told.or_else(|| conn.violation()).or_else(stall);
        }
    }
}
