//! Bugs that a test switches on to prove that the swarm finds them.

plait_base::planted_bugs! {
    /// The DATA_ACK is one ahead of what arrived.
    DataAckAhead,
    /// After a timeout nothing is reinjected on other subflows.
    NoReinjection,
    /// The advertised window leaves out what waits out of order: its edge moves left.
    WindowMovesLeft,
    /// Of data that was delivered in part, all is delivered.
    OverlapTwice,
    /// Of data that was delivered in part, the rest is dropped.
    RestDropped,
    /// The DATA_FIN is sent once and never again.
    DataFinOnce,
    /// The peer's DATA_FIN counts before all data is here.
    DataFinEarly,
    /// A retransmission has the mapping of the first data that is not DATA_ACKed.
    WrongMapping,
    /// What lies below a SACK block counts as delivered.
    SackForgets,
    /// A closed window is never probed.
    NoWindowProbe,
    /// The second timeout in a row sets no timer.
    TimeoutOnce,
    /// Subflows send their FIN as soon as the DATA_FIN is sent.
    FinEarly,
    /// The proof of a join is sent once and never again.
    ProofOnce,
    /// A window update that is older than the last one is believed.
    StaleWindow,
    /// The application is not told that its send buffer has room again.
    LostWakeUp,
    /// A retransmission does not count as in flight.
    FlightForgets,
    /// A connection stays whole while its subflows only wait.
    WaitsInFull,
}
