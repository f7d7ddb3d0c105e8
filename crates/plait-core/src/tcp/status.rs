//! Flags of a subflow within its connection.

/// Whether a subflow may carry our data.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Use {
    /// Its handshake is not complete.
    #[default]
    No,
    /// It may, but the peer has not acknowledged our HMAC (`JoinTiming::Agreed`).
    Early,
    Yes,
}

/// Status of a subflow within its connection.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct SubflowStatus {
    /// This end requested backup priority.
    backup: bool,
    /// The peer requested it (RFC 8684 section 3.3.8).
    peer_backup: bool,
    /// Its price keeps data off it.
    resting: bool,
    /// Whether data may be sent on it.
    data: Use,
    /// Our FIN was sent.
    fin_sent: bool,
    /// A timeout expired and no valid packet has arrived since.
    pf: bool,
    /// Probes of the current silence.
    probes: u16,
    /// Segments in order without a mapping since the last one with a mapping.
    unmapped: u8,
}

impl SubflowStatus {
    pub(crate) const fn backup(&self) -> bool {
        self.backup
    }

    /// Returns true if either end requested backup priority.
    pub(crate) const fn is_backup(&self) -> bool {
        self.backup || self.peer_backup
    }

    pub(crate) const fn resting(&self) -> bool {
        self.resting
    }

    /// Returns true if data may be sent on it.
    pub(crate) const fn joined(&self) -> bool {
        !matches!(self.data, Use::No)
    }

    /// Returns true if data may be sent on it and no HMAC of ours is unacknowledged.
    pub(crate) const fn proven(&self) -> bool {
        matches!(self.data, Use::Yes)
    }

    pub(crate) const fn fin_sent(&self) -> bool {
        self.fin_sent
    }

    pub(crate) const fn pf(&self) -> bool {
        self.pf
    }

    pub(crate) const fn probes(&self) -> u16 {
        self.probes
    }

    pub(super) const fn set_backup(&mut self, backup: bool) {
        self.backup = backup;
    }

    /// Notes the priority that the peer requests. Returns true if it changes.
    pub(super) const fn set_peer_backup(&mut self, backup: bool) -> bool {
        core::mem::replace(&mut self.peer_backup, backup) != backup
    }

    pub(super) const fn set_resting(&mut self, resting: bool) {
        self.resting = resting;
    }

    /// Notes a segment that was sent, with or without our FIN.
    pub(super) const fn note_sent(&mut self, fin: bool) {
        self.fin_sent |= fin;
    }

    /// Allows data on it. `proven` is false if our HMAC is not acknowledged yet.
    pub(super) const fn set_joined(&mut self, proven: bool) {
        self.data = if proven { Use::Yes } else { Use::Early };
    }

    /// Forbids data on it.
    pub(super) const fn end(&mut self) {
        self.data = Use::No;
    }

    /// Marks the path as silent until a valid packet arrives.
    pub(super) const fn suspect(&mut self) {
        self.pf = true;
    }

    /// Notes a valid packet. Returns true if the path was silent.
    pub(super) const fn revive(&mut self) -> bool {
        core::mem::replace(&mut self.pf, false)
    }

    /// Counts a probe of the silent path.
    pub(super) const fn count_probe(&mut self) {
        self.probes = self.probes.saturating_add(1);
    }

    pub(super) const fn forget_probes(&mut self) {
        self.probes = 0;
    }

    /// Counts a segment without a mapping. Returns the number since the last mapping.
    pub(super) const fn on_unmapped(&mut self) -> u8 {
        self.unmapped += 1;
        self.unmapped
    }

    pub(super) const fn on_mapped(&mut self) {
        self.unmapped = 0;
    }
}
