//! Invariants and audits of connections (`--check`).

use crate::conn::Connection;
use crate::conn::audit::Audit;
use crate::endpoint::Endpoint;
use crate::segments::Transmit;
use alloc::collections::BTreeMap;
use alloc::string::String;
use plait_base::ConnId;

/// State of the verification.
#[derive(Default)]
pub(super) struct Checks {
    on: bool,
    /// Description of the first violation.
    violation: Option<String>,
    /// The audit of each connection.
    audits: BTreeMap<ConnId, Audit>,
}

impl Checks {
    pub(super) const fn are_on(&self) -> bool {
        self.on
    }

    /// Returns true if they are on and have found no violation yet.
    pub(super) const fn are_due(&self) -> bool {
        self.on && self.violation.is_none()
    }

    /// Stores a violation, if there is one.
    pub(super) fn note(&mut self, violation: Option<String>) {
        self.violation = violation;
    }

    /// Forgets the audit of a connection that has ended.
    pub(super) fn forget(&mut self, id: ConnId) {
        self.audits.remove(&id);
    }
}

impl Endpoint {
    /// Verifies the invariants after every call; see [`Endpoint::violation`].
    pub fn check_invariants(&mut self, on: bool) {
        self.checks.on = on;
        self.shared.checked = on;
    }

    /// Returns a description of the first violation of an invariant.
    #[must_use]
    pub fn violation(&self) -> Option<&str> {
        self.checks.violation.as_deref()
    }

    /// Returns the audit of a connection, until the first violation.
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
